"""What 5 000 trivial cells cost: CPU time a computed cell (at most 1.2 ms) and a stored one on resume (at most 0.5 ms).

    python benchmarks/load.py [cells]

Whole commands (`offtangent run … --on local`) on one core, less those of five cells; beside them a program that writes
the same files plainly (with the same syncs and renames) and one that reads them. Sides in turns, the best of each.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = {"computed": 1.2e-3, "stored": 0.5e-3}
ROUNDS = 3
SOURCE = '''
"""Trivial cells."""
from dataclasses import dataclass
import xarray as xr

@dataclass(frozen=True)
class Cell:
    number: int

PROFILES = {"few": 5, "many": COUNT}

def cells(count):
    return [Cell(number) for number in range(count)]

def run(cell):
    return xr.Dataset({"square": ((), float(cell.number**2))})

def claims(results):
    return []

def draw(results):
    return []
'''
PLAIN = """
import os, sys
from pathlib import Path
given, taken = map(Path, sys.argv[1:])
contents = {file.relative_to(given): file.read_bytes() for file in given.glob("cells/*/*.npz")}
before = sum(os.times()[:2])
for name, content in contents.items():
    path = taken / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.part", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
middle = sum(os.times()[:2])
for name in contents:
    (taken / name).read_bytes()
print(middle - before, sum(os.times()[:2]) - middle)
"""


def command(file: Path, profile: str, folder: Path) -> float:
    """Seconds of CPU of one command, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["-m", "offtangent", "run", file, "--profile", profile, "--on", "local", "--out", folder]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    taken: dict[str, list[float]] = {name: [] for name in ("computed", "stored", "plain write", "plain read")}
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        file = base / "trivial.py"
        file.write_text(SOURCE.replace("COUNT", str(count)))
        for _ in range(ROUNDS):
            for side in ("computed", "stored"):
                few = command(file, "few", base / "few")
                taken[side].append((command(file, "many", base / "many") - few) / (count - 5))
            told = subprocess.run(
                [sys.executable, "-c", PLAIN, base / "many", base / "plain"], check=True, capture_output=True, text=True
            )
            for side, seconds in zip(("plain write", "plain read"), told.stdout.split(), strict=True):
                taken[side].append(float(seconds) / count)
            for folder in ("few", "many", "plain"):
                shutil.rmtree(base / folder)
    for side, times in taken.items():
        limit = f", limit {LIMITS[side] * 1e3:.1f}" if side in LIMITS else ""
        print(f"{side:<12} {min(times) * 1e3:6.3f} ms of CPU a cell{limit}")
    return int(any(min(taken[side]) > limit for side, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
