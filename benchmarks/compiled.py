"""What keeping compiled programs saves: CPU time of a second run in an empty folder over that of a first.

    python benchmarks/compiled.py [experiment …]

The command is `offtangent run … --profile smoke --on local`, pinned to one core, with a cache folder of its own: empty
the first time, as the first run left it the second. Nothing is kept for less than a tenth.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENTS = ["bai_lee/orders", "nichani/fig1"]
LIMIT = 0.9
ROUNDS = 2


def seconds(experiments: list[str], out: Path, cache: Path) -> float:
    """Seconds of CPU of one command, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["-m", "offtangent", "run", *experiments, "--profile", "smoke", "--on", "local", "--out", str(out)]
    here = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    env = here | {"XDG_CACHE_HOME": str(cache)}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    experiments = sys.argv[1:] or EXPERIMENTS
    first, second = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            base = Path(name)
            first.append(seconds(experiments, base / "first", base / "cache"))
            second.append(seconds(experiments, base / "second", base / "cache"))
    ratio = min(second) / min(first)
    print(f"first {min(first):.1f} s, second {min(second):.1f} s of CPU: {ratio:.2f}, limit {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
