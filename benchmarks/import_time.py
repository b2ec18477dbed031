"""How much `import offtangent` costs, as a multiple of `import jax`: at most 1.25.

    python benchmarks/import_time.py

Fresh interpreters, taken in turns so that a busy machine slows both alike; the median of each, less that of an
interpreter that imports nothing.
"""

import statistics
import subprocess
import sys
import time

LIMIT = 1.25
ROUNDS = 15
STATEMENTS = {"nothing": "pass", "jax": "import jax", "offtangent": "import offtangent", "every room": ""}
STATEMENTS["every room"] = "import offtangent; [getattr(offtangent, room) for room in offtangent.ROOMS]"


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> int:
    taken: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            taken[name].append(seconds(statement))
    median = {name: statistics.median(times) for name, times in taken.items()}
    base = median["jax"] - median["nothing"]
    for name in ("jax", "offtangent", "every room"):
        cost = median[name] - median["nothing"]
        print(f"import {name:<12} {cost:6.3f} s  {cost / base:5.2f} × jax")
    ratio = (median["offtangent"] - median["nothing"]) / base
    print(f"offtangent / jax = {ratio:.2f}, limit {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
