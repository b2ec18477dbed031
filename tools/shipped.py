"""What stands in results/meta/: checksums of the shipped records, and what is known of the code that made them.

    python -m tools.shipped            write it anew: after a record was added, or code that numbers depend on changed
    python -m tools.shipped --check    look whether it is of today's records and code; exit status 1 if not

Records are never edited. The code that made one is taken out of git at the record's own commit and hashed as the
present lab does. Where today's differs, and was not compared yet, the smoke profiles of both run on this machine, one
thread a process; the earlier results are kept in results/meta/smoke/, and the largest difference of each variable is
noted, with verdicts that changed. A quarter of an hour for all of them; commit what it writes by itself.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from offtangent import lab
from offtangent.lab.fingerprints import fingerprint
from offtangent.lab.shipped import Comparison, Origin
from offtangent.papers import PAPERS
from tools.smoke import ROOT, compare_records, export, run_smoke

RESULTS = ROOT / "results"
META = RESULTS / "meta"
CHECKSUMS, ORIGINS, SMOKE = META / "checksums.json", META / "fingerprints.json", META / "smoke"
TOLERANCES = {"float32": 1e-4, "float64": 1e-8}

KNOWN = {
    f"{paper.name}/{name}": lab.experiment.Experiment(f"{paper.name}/{name}", f"offtangent.papers.{paper.name}.{name}")
    for paper in PAPERS
    for name in paper.experiments
}


def main(words: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("python -m tools.shipped", description="What is known of the shipped records: "
        "checksums, their code, and whether today's code gives their numbers at smoke size.")  # fmt: skip
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if it is not of today")
    records = {path.stem: lab.records.read_record(path, KNOWN) for path in sorted(RESULTS.glob("*.json"))}
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(RESULTS.glob("*.json"))}
    if parser.parse_args(words).check:
        return check(records, sums)
    with tempfile.TemporaryDirectory() as name:
        origins = origins_of(records, Path(name))
    SMOKE.mkdir(parents=True, exist_ok=True)
    kept = {f"{stem.removesuffix('-paper')}-smoke" for stem, origin in origins.items() if origin.compared}
    for path in SMOKE.glob("*.json"):
        if path.stem not in kept:
            path.unlink()
    _write(CHECKSUMS, sums)
    _write(ORIGINS, {stem: asdict(origin) for stem, origin in origins.items()})
    same = sum(origin.compared is None for origin in origins.values())
    moved = [stem for stem, origin in origins.items() if origin.compared and origin.compared.numbers_moved]
    alone = [stem for stem, origin in origins.items()
             if stem not in moved and origin.compared and not origin.compared.cells]  # fmt: skip
    stayed = len(origins) - same - len(moved) - len(alone)
    print(f"{len(origins)} records: {same} of today's code, {stayed} whose numbers have not moved at smoke size, "
          f"{len(moved)} whose have: {', '.join(moved) or 'none'}, {len(alone)} of which no cell could be compared: "
          f"{', '.join(alone) or 'none'}.")  # fmt: skip
    return 0


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def check(records: Mapping[str, lab.records.Record], sums: Mapping[str, str]) -> int:
    """Say which records are not those of results/meta/, or were last looked at under another code than today's."""
    known = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    origins = known_origins()
    faults = [f"{name}: another checksum" for name in known.keys() | sums.keys() if known.get(name) != sums.get(name)]
    for stem, record in records.items():
        if stem not in origins:
            faults.append(f"{stem}: its code is not known")
        elif today(record) != origins[stem].looked_at:
            faults.append(f"{stem}: the code has changed since its numbers were last compared")
    print("\n".join(sorted(faults)) or f"{len(records)} records are as they were shipped, and compared with this code.")
    return int(bool(faults))


def known_origins() -> dict[str, Origin]:
    """What results/meta/ says of each record."""
    if not ORIGINS.is_file():
        return {}
    return {stem: Origin.read(told) for stem, told in json.loads(ORIGINS.read_text(encoding="utf-8")).items()}


def today(record: lab.records.Record) -> str:
    """The hash of the present code of a record's cells."""
    return KNOWN[record.name].fingerprint(*record.kinds).code


def origins_of(records: Mapping[str, lab.records.Record], work: Path) -> dict[str, Origin]:
    """What is known of each record; where its code is not today's, with smoke results of both compared."""
    commits: dict[str, list[str]] = {}
    for stem, record in records.items():
        commits.setdefault(record.provenance.commit.rstrip("+"), []).append(stem)
    before = known_origins()
    origins: dict[str, Origin] = {}
    for commit, stems in commits.items():
        export(commit, work / commit)
        package = work / commit / "src" / "offtangent"
        for stem in stems:
            name, exact = records[stem].name, not records[stem].provenance.commit.endswith("+")
            code = fingerprint(package / "papers" / f"{name}.py", records[stem].kinds, package=package).code
            origins[stem] = Origin(commit, exact, code, None)
            if stem in before and (before[stem].code, before[stem].looked_at) == (code, today(records[stem])):
                origins[stem] = before[stem]
    changed = {commit: [stem for stem in stems if origins[stem].looked_at != today(records[stem])]
               for commit, stems in commits.items()}  # fmt: skip
    names = [records[stem].name for stems in changed.values() for stem in stems]
    if not names:
        return origins
    print(f"{len(names)} of {len(records)} records are to be compared; their smoke profiles run, of today's code …")
    run_smoke(ROOT, work / "today", names)
    for commit, stems in changed.items():
        if stems:
            print(f"… and of {commit}: {', '.join(records[stem].name for stem in stems)}", flush=True)
            run_smoke(work / commit, work / commit / "out", [records[stem].name for stem in stems], commit)
        for stem in stems:
            path = work / commit / "out" / "results" / f"{stem.removesuffix('-paper')}-smoke.json"
            compared = compare(path, work / "today" / "results" / path.name, today(records[stem]))
            origins[stem] = Origin(commit, origins[stem].exact, origins[stem].code, compared)
            SMOKE.mkdir(parents=True, exist_ok=True)
            (SMOKE / path.name).write_bytes(path.read_bytes())
            print(f"{stem}: {compared}", flush=True)
    return origins


def compare(earlier: Path, now: Path, code: str) -> Comparison:
    """How far numbers moved from one smoke record to another, and which verdicts changed; both judged as today."""
    found = compare_records(*(json.loads(path.read_text(encoding="utf-8")) for path in (earlier, now)), TOLERANCES)
    moved: dict[str, str] = {}
    for one in found.moved:
        by = f"{one.by:.2g} of itself" if isinstance(one.by, float) else one.by
        moved[one.variable] = max(moved.get(one.variable, ""), by, key=_size)
    alone = len(found.only_old) + len(found.only_new)
    records = [lab.records.read_record(path, KNOWN) for path in (earlier, now)]
    sides = shared(*(record.results for record in records))
    verdicts = changed_verdicts(*(KNOWN[records[0].name].claims(side) if len(side) else [] for side in sides))
    return Comparison(code, found.cells, alone, moved, tuple(verdicts))


def shared(earlier: lab.Results, now: lab.Results) -> tuple[lab.Results, lab.Results]:
    """The results of the cells that both sides have: a claim that needs others is judged on neither."""
    cells = {cell for cell, _ in earlier} & {cell for cell, _ in now}
    return earlier.only(lambda cell: cell in cells), now.only(lambda cell: cell in cells)


def changed_verdicts(earlier: Sequence[lab.Claim], now: Sequence[lab.Claim]) -> list[str]:
    """The verdicts that changed, of statements that both sides judge equally often: in order, these are the same."""
    sides: list[dict[tuple[str, str], list[lab.Claim]]] = [{}, {}]
    for side, claims in zip(sides, (earlier, now), strict=True):
        for claim in claims:
            side.setdefault((claim.source, claim.statement), []).append(claim)
    pairs = [zip(sides[0][key], after, strict=True) for key, after in sides[1].items()
             if len(sides[0].get(key, ())) == len(after)]  # fmt: skip
    return [f"{b.statement}: {a.verdict} → {b.verdict}" for pair in pairs for a, b in pair if a.verdict != b.verdict]


def _size(by: str) -> float:
    try:
        return float(by.partition(" ")[0])
    except ValueError:  # in words, such as another shape
        return float("inf") if by else -1.0


if __name__ == "__main__":
    sys.exit(main())
