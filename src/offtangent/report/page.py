"""One self-contained HTML page from plain data: sections, tables, notes and figures.

The page asks nothing of any network and forbids itself to (by its own content security policy); plotly's
JavaScript is in it once, when there is a figure. The same page gives the same bytes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from offtangent._errors import InputError
from offtangent._files import write_whole
from offtangent.report import text as texts
from offtangent.report.axes import GRID, HEIGHT, INK, PAPER, RULE
from offtangent.report.figures import Figure

Kind = Literal["good", "bad", "neutral", "warn"]

DEEPEST = 3  # paper > experiment > part
RESERVED = ("contents", "facts", "summary")  # anchors of the page itself
_ANCHOR = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Badge:
    """A word in a coloured frame, such as a verdict."""

    text: str
    kind: Kind

    def __post_init__(self) -> None:
        _check_kind(self.kind)


Cell: TypeAlias = str | int | float | Badge


@dataclass(frozen=True)
class Table:
    """Rows under labelled columns; on a phone, from four columns on, each row becomes a card with the labels.

    Whole numbers are shown in full, others to 4 significant digits; a column of numbers is set to the right.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise InputError(
                    f"Row {number} of the table {self.caption!r} has {len(row)} cells for {len(self.columns)} columns."
                )


@dataclass(frozen=True)
class Note:
    """A remark set apart from the text: what a reader must know before trusting what stands around it."""

    text: str
    kind: Kind = "neutral"

    def __post_init__(self) -> None:
        _check_kind(self.kind)


@dataclass(frozen=True)
class Section:
    """A heading, its lead (paragraphs between blank lines) and its blocks: sections too, at most 3 deep.

    `anchor` is the section's address on the page (`report.html#arora`): lower-case letters, digits, - and _.
    """

    title: str
    lead: str
    blocks: "Sequence[Block]"
    anchor: str

    def __post_init__(self) -> None:
        if not _ANCHOR.fullmatch(self.anchor):
            raise InputError(
                f"anchor={self.anchor!r} of section {self.title!r} cannot be an address: it must start with "
                "a lower-case letter and go on with lower-case letters, digits, '-' and '_'."
            )


Block: TypeAlias = Figure | Table | Note | Section


@dataclass(frozen=True)
class Page:
    """Everything a report shows: `summary` stands above the contents, `facts` in a small table at the end."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)
    summary: Sequence[Figure | Table | Note] = ()


def render(page: Page) -> str:
    """The page as HTML.

    About 5 MB with figures (plotly's JavaScript) and 20 kB without; the time is that of writing the figures'
    numbers out.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    _check_anchors(page)
    environment = Environment(
        loader=PackageLoader("offtangent.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["text"] = lambda value: Markup(texts.to_html(value))  # escaped there
    environment.filters["paragraphs"] = lambda value: Markup(texts.paragraphs(value))
    environment.filters["plain"] = texts.plain
    counts = _Counts()
    summary = [_view(block, "summary", counts) for block in page.summary]
    sections = [_view(section, section.anchor, counts) for section in page.sections]
    return environment.get_template("page.html.j2").render(
        page=page,
        summary=summary,
        sections=sections,
        plotly=Markup(_plotly_script()) if counts.figures else "",  # plotly's own file
        colours={name: _css_colour(shade) for name, shade in _REPAINTED.items()},
    )


def write(page: Page, path: Path) -> Path:
    """Write the page to `path`, whole or not at all, and return the path."""
    write_whole(path, render(page).encode(errors="backslashreplace"))  # a user's text may be none that UTF-8 has
    return path


_REPAINTED = {"ink": INK, "rule": RULE, "grid": GRID, "paper": PAPER}


@dataclass
class _Counts:
    """How many figures and tables have been numbered so far."""

    figures: int = 0
    tables: int = 0


def _view(block: Block, anchor: str, counts: _Counts, depth: int = 1) -> dict[str, Any]:
    """A block as the template wants it: every cell and every figure already HTML or JSON."""
    from markupsafe import Markup

    if isinstance(block, Section):
        inner = [
            _view(child, child.anchor if isinstance(child, Section) else anchor, counts, depth + 1)
            for child in block.blocks
        ]
        return {
            "is": "section",
            "title": block.title,
            "lead": block.lead,
            "anchor": anchor,
            "depth": depth,
        } | {
            "blocks": inner,
            "sections": [view for view in inner if view["is"] == "section"],
        }
    if isinstance(block, Figure):
        counts.figures += 1
        return {"is": "figure", "title": block.title, "caption": block.caption, "number": counts.figures} | {
            "id": f"figure.{anchor}.{counts.figures}",  # no section's anchor has a dot
            "json": Markup(_figure_json(block)),  # no < is left in it
            "height": block.plot.layout.height or block.plot.layout.template.layout.height or HEIGHT,
            "legend": _legend(block),
        }
    if isinstance(block, Table):
        counts.tables += 1
        numeric = [_is_numeric([row[at] for row in block.rows]) for at in range(len(block.columns))]
        return {"is": "table", "caption": block.caption, "number": counts.tables} | {
            "columns": list(zip(block.columns, numeric, strict=True)),
            "rows": [[_cell(cell) for cell in row] for row in block.rows],
        }
    return {"is": "note", "text": block.text, "kind": block.kind}


def _cell(cell: Cell) -> dict[str, Any]:
    from markupsafe import Markup

    if isinstance(cell, Badge):
        return {"html": Markup(texts.to_html(cell.text)), "kind": cell.kind}  # escaped there
    if isinstance(cell, str):
        return {"html": Markup(texts.to_html(cell)), "kind": ""}  # escaped there
    return {"html": Markup(texts.number(cell)), "kind": ""}  # digits


def _is_numeric(cells: Sequence[Cell]) -> bool:
    return bool(cells) and all(isinstance(cell, int | float) for cell in cells)


def _figure_json(figure: Figure) -> str:
    # The engine is named because plotly otherwise takes orjson where it is installed, and bytes would differ.
    # No text may end the <script> it stands in; plotly sees to that today, and we do not rely on it.
    encoded: str = figure.plot.to_json(engine="json")
    return encoded.replace("<", "\\u003c")


def _legend(figure: Figure) -> list[list[str]]:
    """The names in a legend of the house style, by groups: the page keeps room for them until it draws the figure."""
    if figure.plot.layout.template.layout.legend.yref != "container":
        return []
    groups: dict[str | int, list[str]] = {}
    for at, trace in enumerate(figure.plot.select_traces({"type": "scatter"})):
        if trace.showlegend is not False:
            groups.setdefault(trace.legendgroup or at, []).append(trace.name or f"trace {at}")
    return list(groups.values())


def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def _css_colour(shade: str) -> str:
    """A colour as browsers write it into a style attribute."""
    return "rgb({}, {}, {})".format(*(int(shade[at : at + 2], 16) for at in (1, 3, 5)))


def _check_kind(kind: str) -> None:
    if kind not in get_args(Kind):
        raise InputError(f"kind={kind!r} is not one of {', '.join(get_args(Kind))}.")


def _check_anchors(page: Page) -> None:
    seen = set(RESERVED)
    for section, depth in _walk(page.sections):
        if depth > DEEPEST:
            raise InputError(f"Section {section.title!r} lies {depth} deep; a page has at most {DEEPEST} levels.")
        if section.anchor in seen:
            raise InputError(
                f"anchor={section.anchor!r} of section {section.title!r} is taken; anchors are unique on a "
                f"page, and {', '.join(RESERVED)} belong to the page itself."
            )
        seen.add(section.anchor)


def _walk(blocks: Sequence[Block], depth: int = 1) -> Iterator[tuple[Section, int]]:
    for block in blocks:
        if isinstance(block, Section):
            yield block, depth
            yield from _walk(block.blocks, depth + 1)
