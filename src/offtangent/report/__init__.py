r"""Figures and pages: one self-contained HTML file that reads well on a screen, on a phone and on paper.

    spectrum = Section("Spectrum", r"The eigenvalues of $H^\infty$.", [table, figure], "spectrum")
    write(Page("Two kernels", "What they predict.", [spectrum]), Path("report.html"))

The room knows nothing about experiments: it takes plain frozen dataclasses. Every text may carry formulas
between dollar signs; everything else in it is shown as it is written.
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.report import axes as axes
    from offtangent.report import page as page
    from offtangent.report import text as text
    from offtangent.report.figures import Figure as Figure
    from offtangent.report.figures import line as line
    from offtangent.report.figures import new_plot as new_plot
    from offtangent.report.figures import points as points
    from offtangent.report.measured import finished as finished
    from offtangent.report.measured import power as power
    from offtangent.report.measured import series as series

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "figures": "Figure new_plot line points",
            "measured": "finished power series",
        },
    )
