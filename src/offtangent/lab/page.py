"""From records to a page: what every paper says, what was measured, and how it looks."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import offtangent
from offtangent._errors import InputError
from offtangent.lab.claims import Claim, Verdict
from offtangent.lab.costs import seconds
from offtangent.lab.experiment import Experiment
from offtangent.lab.judging import Judged, what_it_said
from offtangent.lab.questions import told
from offtangent.lab.records import Record
from offtangent.lab.store import room_in
from offtangent.report.page import RESERVED, Badge, Block, Cell, Kind, Note, Page, Section, Table, render, write

KINDS: Mapping[Verdict, Kind] = {
    Verdict.HOLDS: "good",
    Verdict.CONSTANTS: "good",
    Verdict.FAILS: "bad",
    Verdict.REFUTED: "warn",
    Verdict.OUTSIDE: "neutral",
    Verdict.UNTESTABLE: "neutral",
    Verdict.NOT_RUN: "neutral",
}
CAPTIONS: Mapping[str, str] = {
    "claim": "Claims",
    "identity": "Identities, which follow by algebra from what is measured, and are not counted",
}


@dataclass(frozen=True)
class Exhibit:
    """Results that the page shows, this run's or those that came with the package, and their claims as judged."""

    record: Record
    judged: Judged
    shipped: bool = False


@dataclass(frozen=True)
class Chapter:
    """A paper (or a user's file) with what there is to show of each of its experiments."""

    name: str
    title: str
    lead: str
    entries: tuple[tuple[Experiment, Sequence[Exhibit]], ...]


def publish(
    chapters: Sequence[Chapter],
    path: Path,
    facts: Mapping[str, str],
    faults: Sequence[str],
    tell: Callable[[str], object],
) -> Path:
    """Write the report page and return its path. Needs plotly.

    Verdicts on records that came with the package are counted apart. `faults` tell of records that are left out, in
    colour, before anything else. `tell` hears of figures that could not be drawn, which the page says in their place.
    """
    counts: dict[bool, Counter[Verdict]] = {False: Counter(), True: Counter()}
    for exhibit in (one for chapter in chapters for _, exhibits in chapter.entries for one in exhibits):
        counts[exhibit.shipped].update(claim.verdict for claim in exhibit.judged.claims if claim.kind == "claim")
    anchors = _Anchors()
    sections = [_chapter(chapter, anchors, tell) for chapter in chapters]
    columns = ["verdict", "this run"] + (["at the papers' sizes, shipped"] if counts[True] else [])
    rows: list[list[Cell]] = [
        [Badge(v.value, KINDS[v]), counts[False][v], *([counts[True][v]] if counts[True] else [])]
        for v in Verdict
        if counts[False][v] or counts[True][v]
    ]
    own = len(chapters) == 1 and not chapters[0].lead
    page = Page(
        f"offtangent: {chapters[0].title}" if own else "offtangent: the papers, measured",
        "What a neural network learns on, and beyond, its tangent kernel. Every statement stands next to what was "
        "measured, and holds where all of a measured interval lies on the right side. “Outside the hypothesis” marks a "
        "number measured where the theorem promises nothing; the hypotheses that fail are named with both numbers. "
        "“With constants 1” says that the paper hides constants of its hypotheses in an O or a poly. “Refuted as "
        "printed” marks a misprint, whose correction is a claim of its own.",
        sections,
        {"offtangent": offtangent.__version__, **facts},
        (*(Note(fault, "bad") for fault in faults), *([Table("Claims by verdict", columns, rows)] if rows else [])),
    )
    with room_in(path.parent):
        try:
            return write(page, path)
        except (OSError, ImportError):
            raise
        except Exception:  # something in a figure that plotly cannot write: without it, then
            return write(replace(page, sections=[_sound(section, tell) for section in page.sections]), path)


def _sound(section: Section, tell: Callable[[str], object]) -> Section:
    """The section with a note in the place of every block that cannot be written."""
    blocks = [_sound(one, tell) if isinstance(one, Section) else _tried(one, tell) for one in section.blocks]
    return replace(section, blocks=blocks)


def _tried(block: Block, tell: Callable[[str], object]) -> Block:
    try:
        render(Page("", "", [Section("", "", [block], "tried")]))
    except ImportError:
        raise
    except Exception as error:
        what = getattr(block, "title", getattr(block, "caption", ""))
        fault = f"“{what}” cannot be shown: {told(error)}"
        tell(fault)
        return Note(fault, "bad")
    return block


@dataclass
class _Anchors:
    """The addresses on a page. Each is given once, whatever experiments are called: the second `a-b` is `a-b-2`."""

    taken: set[str] = field(default_factory=lambda: set(RESERVED))

    def take(self, name: str) -> str:
        wanted, number = _anchor(name), 1
        found = wanted
        while found in self.taken:
            number += 1
            found = f"{wanted}-{number}"
        self.taken.add(found)
        return found


def claims_table(claims: Sequence[Claim], caption: str) -> Table:
    """One row a claim; on a phone one card."""
    rows: list[list[Cell]] = [
        [
            Badge(claim.verdict.value, KINDS[claim.verdict]),
            claim.source,
            claim.statement,
            claim.number,
            claim.wanted,
            " ".join(
                part for part in (claim.measured + "." if claim.measured else "", claim.note, claim.conditions) if part
            ),
        ]
        for claim in claims
    ]
    return Table(caption, ["verdict", "source", "statement", "measured", "expected", "how"], rows)


def _chapter(chapter: Chapter, anchors: _Anchors, tell: Callable[[str], object]) -> Section:
    anchor, sections = anchors.take(chapter.name), []
    for experiment, exhibits in chapter.entries:
        inner = anchors.take(f"{experiment.name}-experiment")
        parts = []
        for number, exhibit in enumerate(exhibits, start=1):
            part = _part(experiment, exhibit, tell)
            parts.append(replace(part, anchor=anchors.take(f"{experiment.name}-{number}")))
        sections.append(Section(experiment.title, experiment.about, parts, inner))
    return Section(chapter.title, chapter.lead, sections, anchor)


def _part(experiment: Experiment, exhibit: Exhibit, tell: Callable[[str], object]) -> Section:
    record, judged = exhibit.record, exhibit.judged
    results, origin = record.results, record.provenance
    again = f"offtangent run {experiment.name} --profile {results.profile}"
    blocks: list[Block] = [*_of_code(record, experiment, again)]
    try:
        if results.complete and (missing := record.missing(experiment)):
            note = f"The profile has changed since: {missing} of its cells are not among these results. Afresh: {again}"
            blocks.append(Note(note, "warn"))
    except InputError as error:
        blocks.append(Note(f"What cells the profile has today cannot be told: {error}", "warn"))
    if not results.complete:
        note = "Incomplete: some cells failed (failures.log says why); the claims rest on the others."
        blocks.append(Note(note, "bad"))
    if judged.error:
        blocks.append(Note(f"The claims could not be judged: {judged.error}", "bad"))
    for kind, caption in CAPTIONS.items():
        if of_kind := [claim for claim in judged.claims if claim.kind == kind]:
            blocks.append(claims_table(of_kind, f"{caption}, profile {results.profile}"))
    if len(results):
        try:
            blocks += experiment.draw(results)
        except Exception as error:
            cause = error.__cause__ or error
            if isinstance(cause, ImportError) and (cause.name or "").partition(".")[0] == "plotly":
                raise cause from None  # there will be no page
            fault = f"The figures could not be drawn: {what_it_said(error)}"
            tell(f"{experiment.name}: {fault}")
            blocks.append(Note(fault, "bad"))
        blocks.append(_settings(record))
    where = "GPU" if origin.backend == "gpu" else origin.backend.upper()
    lead = (
        f"{origin.device}, {origin.date[:10]}; its cells' times add up to {seconds(origin.seconds)}, though several "
        f"may have run at once; offtangent {origin.offtangent}"
        + (f" (commit {origin.commit})" if origin.commit else "")
        + (f", jax {origin.jax}" if origin.jax else "")
        + f", Python {origin.python}."
    )
    title = f"{'Shipped results' if exhibit.shipped else 'This run'}: profile {results.profile}, on a {where}"
    return Section(title, lead, blocks, "part")


def _of_code(record: Record, experiment: Experiment, again: str) -> Iterator[Note]:
    """What a reader must know of the code behind these numbers; in colour only where they are not today's."""
    known = record.origin
    if not record.checked:
        yield Note("This record is without a checksum: it cannot be known whether it was changed.", "warn")
    if known and not known.exact:
        yield Note(
            f"The source had been changed after commit {known.commit}: its code is not known exactly.", "neutral"
        )
    if not record.stale(experiment):
        return
    if known is None or known.compared is None or known.looked_at != experiment.fingerprint(*record.kinds).code:
        yield Note(f"Stale: the code that makes these numbers has changed since. Afresh: {again}", "warn")
        return
    compared = known.compared
    if not compared.cells and not compared.numbers_moved:
        alone = f"({compared.alone} without a partner)"
        note = (
            f"The code has changed since, and no cell of smoke size could be compared {alone}: its numbers may differ."
        )
        yield Note(note, "neutral")
        return
    cells = f"{compared.cells} cells compared" + (f", {compared.alone} without a partner" if compared.alone else "")
    if not compared.numbers_moved:
        yield Note(f"The code has changed since, its numbers at smoke size have not ({cells}).", "neutral")
        return
    by = "; ".join([*(f"{name} by {size}" for name, size in compared.moved.items()), *compared.verdicts])
    yield Note(
        f"Older than the library: the code has changed since, and its numbers at smoke size have, too: {by} "
        f"({cells}). Afresh: {again}",
        "warn",
    )


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
