"""The yardstick: what the shipped records say, claim by claim and trace by trace, against golden files.

    python -m tools.judged            compare; exit status 1 if anything changed
    python -m tools.judged --renew    write the golden files anew and print what changed, for the commit's message

Golden files are renewed only in a commit of their own, whose message has that table and says why. A number that
differs by no more than 1e-9 of itself is told and forgiven: another CPU or another release of a library rounds
otherwise. Everything else, words and their order included, must be the same.
"""

import argparse
import base64
import json
import math
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from offtangent import lab
from offtangent.lab.records import committed_records, finite
from offtangent.papers import PAPERS

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
FILES = ("claims.json", "figures.json")
RTOL = 1e-9
LEFT_OUT = (("hypotheses", []), ("kind", "claim"))  # what most claims have, to keep the lines short
SHOWN = 70  # characters of a text in the table

Item = dict[str, Any]  # a claim, a figure or a trace; its first entries say which


@dataclass(frozen=True)
class Difference:
    """One field of one item that is not what it was; `rounding` says that it is forgiven."""

    item: str
    field: str
    old: Any
    new: Any
    rounding: bool


def judged() -> tuple[list[Item], list[Item]]:
    """The claims of all shipped records, and their figures with every trace, in the order of the report."""
    known = {
        f"{paper.name}/{name}": lab.experiment.Experiment(
            f"{paper.name}/{name}", f"offtangent.papers.{paper.name}.{name}"
        )
        for paper in PAPERS
        for name in paper.experiments
    }
    records = {record.name: record for record in (lab.records.read_record(path, known) for path in committed_records())}
    claims: list[Item] = []
    figures: list[Item] = []
    for name, experiment in known.items():
        if name not in records:
            continue
        results = records[name].results
        for number, claim in enumerate(experiment.claims(results), start=1):
            told = plain(asdict(claim))
            told = {field: value for field, value in told.items() if (field, value) not in LEFT_OUT}
            claims.append({"experiment": name, "claim": number} | told)
        for number, figure in enumerate(experiment.draw(results), start=1):
            figures += items_of(name, number, figure)
    return claims, figures


def items_of(experiment: str, number: int, figure: Any) -> Iterator[Item]:
    """A figure as items: its words first, then every trace with its arrays."""
    drawn = figure.plot.to_plotly_json()
    place = {"experiment": experiment, "figure": number}
    yield {**place, "title": figure.title, "caption": figure.caption, **dict(_words(drawn["layout"]))}
    for position, trace in enumerate(drawn["data"], start=1):
        yield {
            **place,
            "trace": position,
            "name": trace.get("name"),
            "type": trace["type"],
            "meta": trace.get("meta"),
            **{path: plain(values) for path, values in _arrays(trace)},
        }


def _words(layout: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a reader reads on a plot: the axes' titles and kinds, and annotations."""
    for name in sorted(layout):
        if name.startswith(("xaxis", "yaxis")):
            yield f"{name} title", layout[name].get("title", {}).get("text")
            yield f"{name} type", layout[name].get("type")
    yield "annotations", [note.get("text") for note in layout.get("annotations", ())]


def _arrays(part: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of a trace by their place in it: x, y, z, error_y.array and so on, colours left out."""
    for name in sorted(part):
        value = part[name]
        if name in ("colorscale", "ticktext", "tickvals"):
            continue
        if isinstance(value, Mapping) and "bdata" in value:  # how plotly writes an array of numbers
            numbers = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            shape = [int(size) for size in str(value.get("shape", numbers.size)).split(",")]
            yield f"{path}{name}", numbers.reshape(shape)
        elif isinstance(value, Mapping):
            yield from _arrays(value, f"{path}{name}.")
        elif isinstance(value, np.ndarray | list | tuple):
            yield f"{path}{name}", value


def plain(value: Any) -> Any:
    """As JSON gives it back: lists and Python's numbers, with text for what is not finite."""
    value = json.loads(json.dumps(value, default=lambda other: other.tolist()))
    return finite(value)


def compare(old: Sequence[Item], new: Sequence[Item]) -> list[Difference]:
    """What differs, item by item in order. Items stand at the same place of an experiment or have no partner."""
    found: list[Difference] = []
    for experiment in dict.fromkeys(item["experiment"] for item in [*old, *new]):
        sides = [[item for item in items if item["experiment"] == experiment] for items in (old, new)]
        for before, after in zip_longest(*sides):
            name = _name(before or after)
            if before is None or after is None:
                found.append(Difference(name, "all of it", _told(before), _told(after), False))
                continue
            for field in dict.fromkeys([*before, *after]):
                a, b = before.get(field), after.get(field)
                if not _same(a, b):
                    found.append(Difference(name, field, a, b, field != "verdict" and _close(a, b)))
    return found


def _name(item: Item) -> str:
    return f"{item['experiment']} " + ", ".join(
        f"{kind} {item[kind]}" for kind in ("claim", "figure", "trace") if kind in item
    )


def _told(item: Item | None) -> str | None:
    return None if item is None else str(item.get("statement") or item.get("name") or item.get("title"))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RTOL)
    return _same(a, b)


def table(differences: Sequence[Difference]) -> str:
    """One row a difference, for a terminal and for a commit's message."""
    rows = ["| item | field | old → new |", "|---|---|---|"]
    for d in differences:
        old, new = _excerpts(d.old, d.new)
        rows.append(f"| {d.item} | {d.field} | {old} → {new} |")
    return "\n".join(rows)


def _excerpts(old: Any, new: Any) -> tuple[str, str]:
    """Both sides from shortly before the place where they begin to differ; of arrays the first entry that does."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{len(old)} entries", f"{len(new)} entries"
        at = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if not _same(a, b))
        a, b = _excerpts(old[at], new[at])
        return f"[{at}] {a}", b
    first, second = ("nothing" if side is None else str(side) for side in (old, new))
    start = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    start = 0 if max(len(first), len(second)) <= SHOWN else max(0, start - 20)
    return tuple(("…" if start else "") + side[start : start + SHOWN].replace("|", "∣") for side in (first, second))  # type: ignore[return-value]


def read(folder: Path) -> tuple[list[Item], list[Item]]:
    """The golden claims and figures."""
    claims, figures = (json.loads((folder / name).read_text(encoding="utf-8")) for name in FILES)
    return claims, [{field: _unpacked(value) for field, value in item.items()} for item in figures]


def write(folder: Path, claims: Sequence[Item], figures: Sequence[Item]) -> None:
    """One item a line, so that git shows what changed; long arrays of numbers are packed."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = [{field: _packed(value) for field, value in item.items()} for item in figures]
    for name, items in zip(FILES, (claims, packed), strict=True):
        lines = ",\n".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items)
        (folder / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _packed(value: Any) -> Any:
    """Numbers as their eight bytes each, compressed, in text; the first and the last stay legible."""
    if not (isinstance(value, list) and len(value) > 4 and all(type(one) is float for one in value)):
        return value
    content = base64.b85encode(zlib.compress(np.array(value, "<f8").tobytes(), 9)).decode()
    return {"first": value[0], "last": value[-1], "count": len(value), "packed": content}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return np.frombuffer(zlib.decompress(base64.b85decode(value["packed"])), "<f8").tolist()


def main(words: Sequence[str] | None = None, folder: Path = GOLDEN) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("python -m tools.judged", description="Compare the shipped records' claims and "
        "figures with the golden files: exit status 1 if anything changed.")  # fmt: skip
    parser.add_argument("--renew", action="store_true", help="write the golden files anew, in a commit of their own, "
        "whose message has the table that this prints and says why")  # fmt: skip
    renew = parser.parse_args(words).renew
    claims, figures = judged()
    there = all((folder / name).is_file() for name in FILES)
    if not there and not renew:
        print(f"There are no golden files in {folder}: python -m tools.judged --renew writes them.")
        return 1
    old = read(folder) if there else ([], [])
    differences = [*compare(old[0], claims), *compare(old[1], figures)] if there else []
    changed = [d for d in differences if not d.rounding]
    rounded = len(differences) - len(changed)
    traces = sum("trace" in item for item in figures)
    print(
        f"{len(claims)} claims, {len(figures) - traces} figures, {traces} traces: {len(changed)} fields changed, "
        f"{rounded} differ by rounding."
    )
    if changed:
        print(table(changed))
    if rounded and not changed:
        print(table(differences[:10]))
    if renew:
        write(folder, claims, figures)
        print(f"Written to {folder}. Commit it by itself, with this table and why.")
    return 1 if changed and not renew else 0


if __name__ == "__main__":
    sys.exit(main())
