"""From records to a page: what every paper says, what was measured, and how it looks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import offtangent
from offtangent.lab.claims import Claim, Verdict
from offtangent.lab.costs import seconds
from offtangent.lab.experiment import Experiment
from offtangent.lab.records import Record
from offtangent.lab.store import room_in
from offtangent.report import Badge, Block, Cell, Note, Page, Section, Table, write
from offtangent.report.page import Kind

KINDS: Mapping[Verdict, Kind] = {
    Verdict.HOLDS: "good",
    Verdict.FAILS: "bad",
    Verdict.REFUTED: "warn",
    Verdict.OUTSIDE: "neutral",
    Verdict.UNTESTABLE: "neutral",
}


@dataclass(frozen=True)
class Chapter:
    """A paper (or a user's file) with the records to show: local ones and those that came with the package."""

    name: str
    title: str
    lead: str
    entries: tuple[tuple[Experiment, Sequence[Record]], ...]


def publish(chapters: Sequence[Chapter], path: Path, facts: Mapping[str, str]) -> Path:
    """Write the report page and return its path. Needs plotly; claims are judged afresh from the records."""
    counts: Counter[Verdict] = Counter()
    sections = [_chapter(chapter, counts) for chapter in chapters]
    summary = Table(
        "What was measured, over all experiments below",
        ["verdict", "claims"],
        [[Badge(verdict.value, KINDS[verdict]), counts[verdict]] for verdict in Verdict if counts[verdict]],
    )
    page = Page(
        "offtangent: the papers, measured",
        "What a neural network learns on, and beyond, its tangent kernel. Every statement stands next to what was "
        "measured; “outside the hypothesis” marks a number measured where the theorem promises nothing.",
        sections,
        {"offtangent": offtangent.__version__, **facts},
        (summary,),
    )
    with room_in(path.parent):
        return write(page, path)


def claims_table(claims: Sequence[Claim], caption: str) -> Table:
    """One row a claim; on a phone one card."""
    rows: list[list[Cell]] = [
        [
            Badge(claim.verdict.value, KINDS[claim.verdict]),
            claim.source,
            claim.statement,
            claim.number,
            claim.expected or "–",
            " ".join(part for part in (claim.measured + "." if claim.measured else "", claim.note) if part),
        ]
        for claim in claims
    ]
    return Table(caption, ["verdict", "source", "statement", "measured", "expected", "how"], rows)


def _chapter(chapter: Chapter, counts: Counter[Verdict]) -> Section:
    sections = [_experiment(experiment, records, counts) for experiment, records in chapter.entries]
    own = any(experiment.name == chapter.name for experiment, _ in chapter.entries)  # a user's file is both
    return Section(chapter.title, chapter.lead, sections, _anchor(f"file-{chapter.name}" if own else chapter.name))


def _experiment(experiment: Experiment, records: Sequence[Record], counts: Counter[Verdict]) -> Section:
    parts = [_part(experiment, record, counts, number) for number, record in enumerate(records, start=1)]
    name = experiment.name if "/" in experiment.name else f"experiment-{experiment.name}"
    return Section(experiment.title, experiment.about, parts, _anchor(name))


def _part(experiment: Experiment, record: Record, counts: Counter[Verdict], number: int) -> Section:
    results, origin = record.results, record.provenance
    blocks: list[Block] = []
    again = f"`offtangent run {experiment.name} --profile {results.profile}` computes them afresh"
    if record.stale(experiment):
        blocks.append(
            Note(f"Stale: the experiment's source has changed since these numbers were made; {again}.", "warn")
        )
    elif record.older(experiment):
        blocks.append(Note(f"offtangent's code that this experiment uses has changed since; {again}."))
    if not results.complete:
        blocks.append(Note("Incomplete: some cells failed or are missing; the claims rest on the others.", "bad"))
    claims = experiment.claims(results)
    counts.update(claim.verdict for claim in claims)
    blocks.append(claims_table(claims, f"Claims, profile {results.profile}"))
    blocks += experiment.draw(results)
    blocks.append(_settings(record))
    where = "GPU" if origin.backend == "gpu" else origin.backend.upper()
    lead = (
        f"{origin.device}, {origin.date[:10]}, {seconds(origin.seconds)} of computing; offtangent {origin.offtangent}"
        + (f" (commit {origin.commit})" if origin.commit else "")
        + (f", jax {origin.jax}" if origin.jax else "")
        + f", Python {origin.python}."
    )
    return Section(f"Profile {results.profile}, on a {where}", lead, blocks, f"{_anchor(experiment.name)}-{number}")


def _settings(record: Record) -> Table:
    """What was run: one row a class of cells, a varying field as its list of values."""
    rows: list[list[str]] = []
    kinds = dict.fromkeys(type(cell) for cell, _ in record.results)
    for kind in kinds:
        cells = record.results.where(kind)
        assert is_dataclass(kind)
        told = [f"{field.name} = {_values(cells.values(field.name))}" for field in fields(kind)]
        rows.append([kind.__name__, str(len(cells)), "; ".join(told)])
    return Table("Settings", ["cells", "number", "fields"], rows)


def _values(values: Sequence[Any]) -> str:
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= 12 else f"{', '.join(texts[:5])} … {texts[-1]} ({len(texts)} values)"


def _anchor(name: str) -> str:
    cleaned = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name.lower())
    return cleaned if cleaned[:1].isalpha() else f"x{cleaned}"
