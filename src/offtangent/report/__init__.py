r"""Figures and pages: one self-contained HTML file that reads well on a screen, on a phone and on paper.

    spectrum = Section("Spectrum", r"The eigenvalues of $H^\infty$.", [table, figure], "spectrum")
    write(Page("Two kernels", "What they predict.", [spectrum]), Path("report.html"))

The room knows nothing about experiments: it takes plain frozen dataclasses. Every text may carry formulas
between dollar signs; everything else in it is shown as it is written.
"""

from offtangent.report.figures import PALETTE, Figure, line, new_plot, points, style, tiles
from offtangent.report.page import Badge, Block, Cell, Kind, Note, Page, Section, Table, render, write
from offtangent.report.text import to_html

__all__ = [
    "Page",
    "Section",
    "Block",
    "Table",
    "Cell",
    "Badge",
    "Note",
    "Kind",
    "Figure",
    "PALETTE",
    "new_plot",
    "line",
    "points",
    "tiles",
    "style",
    "render",
    "write",
    "to_html",
]
