"""What is known of the shipped records' code: has it changed since, and have its numbers at smoke size?

    python tools/shipped.py --work DIR

Records are never edited. This script takes each record's own commit out of git, hashes the code that made it as the
present lab does, and writes results/meta/fingerprints.json. Where that code differs from today's, it runs the smoke
profile of both on this machine, one thread a process, keeps the earlier one in results/meta/smoke/, and notes whether
numbers moved: a changed verdict, or more than 1e-4 relative in float32 or 1e-8 in float64, cell by cell where class and
fields agree. Run it after a change of anything that numbers depend on, and commit what it writes by itself. DIR keeps
what was run, so that it can be broken off and started again; about ten minutes on two cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np

from offtangent.lab import Experiment, read_record
from offtangent.lab.fingerprint import fingerprint
from offtangent.lab.records import Record
from offtangent.papers import PAPERS

ROOT = Path(__file__).resolve().parents[1]
RESULTS, META = ROOT / "results", ROOT / "results" / "meta"
TOLERANCES = {"f4": 1e-4, "f8": 1e-8}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--work", type=Path, required=True, metavar="DIR", help="where trees and runs are kept")
    work = words.parse_args().work.resolve()
    known = {
        f"{paper.name}/{name}": Experiment(f"{paper.name}/{name}", f"offtangent.papers.{paper.name}.{name}")
        for paper in PAPERS
        for name in paper.experiments
    }
    records = {path.stem: read_record(path, known) for path in sorted(RESULTS.glob("*.json"))}
    found = {stem: code_of(record, work) for stem, record in records.items()}
    changed = [stem for stem, facts in found.items() if facts["code"] != facts["now"]]
    print(f"{len(records) - len(changed)} records of today's code, {len(changed)} of another")
    for stem in changed:
        record = records[stem]
        earlier, today = smoke_of(record, work), smoke_of(record, work, today=True)
        found[stem]["smoke"] = compare(earlier, today, known[record.name])
        (META / "smoke").mkdir(parents=True, exist_ok=True)
        (META / "smoke" / earlier.name).write_bytes(earlier.read_bytes())
        print(f"{stem}: {found[stem]['smoke']}")
    META.mkdir(exist_ok=True)
    text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
    (META / "fingerprints.json").write_text(text + "\n", encoding="utf-8")


def code_of(record: Record, work: Path) -> dict[str, object]:
    """The hash of the code that made a record, and of the same code today."""
    commit = record.provenance.commit
    package = tree(commit, work) / "src" / "offtangent"
    path = package.joinpath("papers", *record.name.split("/")).with_suffix(".py")
    here = ROOT / "src" / "offtangent"
    now = here.joinpath("papers", *record.name.split("/"))
    now = now / "__init__.py" if now.is_dir() else now.with_suffix(".py")
    return {
        "commit": commit.rstrip("+"),
        "exact": not commit.endswith("+"),
        "code": fingerprint(path, record.kinds, package=package).code,
        "now": fingerprint(now, record.kinds, package=here).code,
    }


def tree(commit: str, work: Path) -> Path:
    """The sources of a commit."""
    folder = work / commit.rstrip("+")[:7]
    if not folder.exists():
        packed = subprocess.run(
            ["git", "-C", ROOT, "archive", commit.rstrip("+"), "src"], check=True, capture_output=True
        )
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def smoke_of(record: Record, work: Path, *, today: bool = False) -> Path:
    """The record of a smoke run, of today's code or of the record's own commit."""
    sources = ROOT if today else tree(record.provenance.commit, work)
    out = work / "today" if today else sources / "run"
    name = f"{record.name.replace('/', '-')}-smoke.json"
    if today or not (out / "results" / name).exists():
        command = [sys.executable, "-m", "offtangent", "run", record.name, "--profile", "smoke", "--on", "processes:2"]
        environment = os.environ | {"PYTHONPATH": str(sources / "src")}
        told = subprocess.run([*command, "--out", out], env=environment, capture_output=True, text=True, check=False)
        if told.returncode not in (0, 1):
            raise SystemExit(f"{record.name} at {sources}: {told.stderr}")
    return out / "results" / name


def compare(earlier: Path, today: Path, experiment: Experiment) -> dict[str, object]:
    """Whether numbers moved from one smoke record to another, by how much at most, and what could not be compared."""
    old, new = (json.loads(path.read_text(encoding="utf-8"))["cells"] for path in (earlier, today))
    partners = {json.dumps([cell["kind"], cell["fields"]], sort_keys=True): cell["data"] for cell in new}
    moved, compared, lost = {}, 0, 0
    for cell in old:
        data = partners.get(json.dumps([cell["kind"], cell["fields"]], sort_keys=True))
        if data is None:
            lost += 1
            continue
        compared += 1
        for name in cell["data"].keys() & data.keys():
            by = difference(cell["data"][name], data[name])
            if by > 0:
                moved[name] = max(by, moved.get(name, 0.0))
    verdicts = [[claim.verdict for claim in experiment.claims(read_record(path, {experiment.name: experiment}).results)]
                for path in (earlier, today)] if not lost and compared == len(new) else [[], []]  # fmt: skip
    return {
        "compared": compared,
        "without partner": lost + len(new) - compared,
        "moved": dict(sorted(moved.items())),
        "verdicts changed": verdicts[0] != verdicts[1],
    }


def difference(old: dict[str, object], new: dict[str, object]) -> float:
    """The largest relative difference beyond what a variable's precision allows; 0 if there is none."""
    if (old["dims"], old["dtype"]) != (new["dims"], new["dtype"]):
        return float("inf")
    a, b = (np.array(one["data"], dtype=np.dtype(str(one["dtype"]))) for one in (old, new))
    if a.shape != b.shape:
        return float("inf")
    if a.dtype.kind != "f":
        return 0.0 if (a == b).all() else float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = np.maximum(np.abs(a), np.abs(b)).max(initial=0.0, where=np.isfinite(a) & np.isfinite(b))
    gap = np.where(same, 0.0, np.abs(a.astype(float) - b) / max(float(scale), 1e-300))
    by = float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0))
    return by if by > TOLERANCES[a.dtype.str[1:]] else 0.0


if __name__ == "__main__":
    main()
