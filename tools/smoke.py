"""Whether numbers moved: smoke profiles of another commit and of the present tree, on this machine.

    python -m tools.smoke COMMIT                        every experiment, bit by bit
    python -m tools.smoke COMMIT arora/fig1 --rtol 1e-6

Both sides run with the Python at hand, one thread a process. Cells are partners when experiment, class and fields
agree; those without a partner are listed. No golden file is kept of this: another CPU or JAX rounds otherwise.
Exit status 1 if a variable or a verdict differs, or if a cell has no partner, whose numbers nobody compared.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Moved:
    """A variable of a cell that is not the same; `by` is the largest relative difference of an entry, or why not."""

    experiment: str
    cell: str  # its class and fields
    variable: str
    by: float | str


@dataclass(frozen=True)
class Comparison:
    """What `compare_records` found. `moved` has what differs by more than was allowed."""

    cells: int  # that have a partner
    moved: tuple[Moved, ...]
    only_old: tuple[str, ...]  # cells without a partner
    only_new: tuple[str, ...]


def compare_records(
    old: Mapping[str, Any], new: Mapping[str, Any], rtol: Mapping[str, float] | None = None
) -> Comparison:
    """Compare the cells of two records of one experiment, as JSON has them.

    Args:
        old: a record's file, read by `json.load`.
        new: another, of the same experiment.
        rtol: dtype → largest relative difference of an entry, such as {"float32": 1e-4, "float64": 1e-8}; a dtype that
            is not named is compared bit by bit.
    """
    sides = [_by_name(record["cells"]) for record in (old, new)]
    both = [name for name in sides[0] if name in sides[1]]
    moved = []
    for name in both:
        a, b = (side[name]["data"] for side in sides)
        for variable in dict.fromkeys([*a, *b]):
            by = difference(a.get(variable), b.get(variable), rtol or {})
            if by is not None:
                moved.append(Moved(new["experiment"], name, variable, by))
    only = [tuple(name for name in side if name not in both) for side in sides]
    return Comparison(len(both), tuple(moved), *only)


def _by_name(cells: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Cells by class and fields, in any order of the fields; equal ones are told apart by their number."""
    named: dict[str, Mapping[str, Any]] = {}
    for cell in cells:
        name = f"{cell['kind']} {json.dumps(cell['fields'], sort_keys=True, ensure_ascii=False)}"
        count = sum(other == name or other.startswith(f"{name} #") for other in named)
        named[f"{name} #{count + 1}" if count else name] = cell
    return named


def difference(old: Any, new: Any, rtol: Mapping[str, float]) -> float | str | None:
    """How far two variables of a record are apart: None if they are the same, or no further than allowed."""
    if old is None or new is None:
        return "only in the new results" if old is None else "only in the old results"
    for part in ("dtype", "dims"):
        if old[part] != new[part]:
            return f"{part} {old[part]} → {new[part]}"
    if "data" not in old or "data" not in new:  # an array that lies elsewhere, named by its checksum
        return None if old == new else "another array, stored elsewhere"
    a, b = (np.array(side["data"], np.dtype(side["dtype"])) for side in (old, new))
    if a.shape != b.shape:
        return f"shape {a.shape} → {b.shape}"
    if a.tobytes() == b.tobytes():
        return None
    if a.dtype.kind not in "fc":
        return f"{np.count_nonzero(a != b)} of {a.size} entries"
    a, b = (side.astype(np.complex128 if side.dtype.kind == "c" else np.float64) for side in (a, b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return "NaN or infinite on one side"
    # Where all entries are equal as numbers a sign of zero differs.
    largest = float(np.max(np.abs(a - b)[~same] / np.maximum(np.abs(a), np.abs(b))[~same], initial=0.0))
    allowed = rtol.get(np.dtype(old["dtype"]).name)
    return largest if allowed is None or largest > allowed else None


def run_smoke(source: Path, folder: Path, selectors: Sequence[str], commit: str = "") -> list[dict[str, Any]]:
    """Run smoke profiles of the tree `source` into `folder`/results; the claims, as the run tells them."""
    on = f"processes:{os.cpu_count()}"
    words = [sys.executable, "-m", "offtangent", "run", *selectors, "--profile", "smoke", "--on", on]
    place = {**os.environ, "PYTHONPATH": str(source / "src"), "OFFTANGENT_COMMIT": commit or "compared"}
    done = subprocess.run(
        [*words, "--out", str(folder), "--json"], cwd=source, env=place, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        raise SystemExit(f"{' '.join(words)} in {source} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    for failure in told["failures"]:
        print(f"{source.name}: {failure['experiment']} {failure['cell']}: {failure['error']}")
    return told["claims"]


def export(commit: str, folder: Path) -> None:
    """Lay out the tree of a commit."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"git cannot give {commit!r}: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def compare_verdicts(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Moved]:
    """The claims of two runs, experiment by experiment in order: verdicts that differ, and numbers of claims."""
    moved = []
    for experiment in dict.fromkeys(claim["experiment"] for claim in [*old, *new]):
        a, b = ([claim for claim in side if claim["experiment"] == experiment] for side in (old, new))
        if len(a) != len(b):
            moved.append(Moved(experiment, "claims", "number", f"{len(a)} → {len(b)}"))
        for number, (before, after) in enumerate(zip(a, b, strict=False), start=1):
            if before["verdict"] != after["verdict"]:
                words = f"{before['verdict']} → {after['verdict']}"
                moved.append(Moved(experiment, f"claim {number}: {after['statement']}", "verdict", words))
    return moved


def main(words: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("python -m tools.smoke", description="Compare the smoke results of a commit with "
        "those of the present tree, bit by bit. Exit status 1 if any differ.")  # fmt: skip
    parser.add_argument("commit")
    parser.add_argument("selectors", nargs="*", help="experiments, as offtangent run takes them; default: all")
    parser.add_argument("--rtol", type=float, help="largest relative difference of an entry, for a step that says so")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder, results = Path(name), {}
        export(given.commit, folder / "source")
        for side, source in (("old", folder / "source"), ("new", ROOT)):
            claims = run_smoke(source, folder / side, given.selectors)
            paths = sorted((folder / side / "results").glob("*.json"))
            results[side] = claims, {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    allowed = {} if given.rtol is None else {"float32": given.rtol, "float64": given.rtol}
    (old_claims, old), (new_claims, new) = results["old"], results["new"]
    moved, alone = compare_verdicts(old_claims, new_claims), 0
    for record in old.keys() ^ new.keys():
        moved.append(Moved(record, "", "record", f"only in the {'old' if record in old else 'new'} results"))
    print("| experiment | cells compared | moved | without a partner: old, new |\n|---|---|---|---|")
    for record in sorted(old.keys() & new.keys()):
        found = compare_records(old[record], new[record], allowed)
        counts = f"{len(found.only_old)}, {len(found.only_new)}"
        print(f"| {new[record]['experiment']} | {found.cells} | {len(found.moved)} | {counts} |")
        for side, names in (("old", found.only_old), ("new", found.only_new)):
            for cell in names:
                print(f"only {side}: {cell}")
        moved += found.moved
        alone += len(found.only_old) + len(found.only_new)
    if moved:
        print("\n| experiment | cell | variable | by |\n|---|---|---|---|")
    for one in moved:
        by = one.by if isinstance(one.by, str) else f"{one.by:.3g}"
        print(f"| {one.experiment} | {one.cell} | {one.variable} | {by} |")
    print(summary(len(moved), alone))
    return 1 if moved or alone else 0


def summary(moved: int, alone: int) -> str:
    """The comparison in a sentence, which does not call the same what was not compared."""
    told = f"{moved} differences" if moved else "No difference in what was compared" if alone else "No difference"
    return f"{told}; {alone} cells without a partner." if alone else f"{told}."


if __name__ == "__main__":
    sys.exit(main())
