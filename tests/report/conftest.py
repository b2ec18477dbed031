"""One page with everything on it."""

from collections.abc import Callable

import numpy as np
import pytest

from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.report.page import Badge, Note, Page, Section, Table

LONG = (
    r"$\sqrt{y^\top (H^\infty)^{-1} y} \le "
    + " + ".join(rf"\lambda_{{{i}}}^2 \|\beta_{{{i}}}\|" for i in range(20))
    + "$"
)


def figure(title: str) -> Figure:
    widths = np.geomspace(100, 10_000, 9)
    plot = new_plot()
    line(plot, widths, widths**-0.5, name="mean of ten seeds", colour="blue", band=(widths**-0.6, widths**-0.4))
    points(plot, widths, widths**-0.5, name="the paper's own numbers", colour="vermillion")
    line(plot, widths, 2 * widths**-0.5, name="the bound of Theorem 4.1", colour="grey", dash="dash")
    return Figure(title, r"The bound is $\sqrt{2 / m}$.", style(plot, x="width m", y="error", log_x=True, log_y=True))


@pytest.fixture
def page() -> Page:
    return everything()


@pytest.fixture(scope="session")
def make_page() -> Callable[[], Page]:
    return everything


@pytest.fixture(scope="session")
def make_figure() -> Callable[[str], Figure]:
    return figure


def everything() -> Page:
    claims = Table(
        "Claims of $H^\\infty$",
        ("Source", "Statement", "Measured", "Expected", "Verdict"),
        [
            ("Theorem 4.1, eq. (8)", LONG, 0.0123456, 0.05, Badge("holds", "good")),
            ("Lemma 3.2", "a<b & more", 1.2e-7, 1, Badge("refuted as printed", "warn")),
            ("Theorem 5", "w" * 120, 123456, 2.0, Badge("fails", "bad")),
        ],
    )
    part = Section("Sizes", "", [Table("Sizes", ("n", "seconds"), [(200, 0.5)]), figure("In part $n$")], "arora-sizes")
    experiment = Section("Figure 1", f"First.\n\nSecond: {LONG}.", [claims, figure("One"), part], "arora-figure-1")
    return Page(
        "Papers & <kernels> with $H^\\infty$",
        "What was measured.",
        [
            Section("Arora et al.", "On $H^\\infty$.", [experiment], "arora"),
            Section("Bai and Lee", "", [figure("Two"), Note("Two cores.", "warn")], "bai-lee"),
        ],
        {"command": "offtangent run " + "x" * 200, "seeds": "0–9"},
        summary=(
            Table("Verdicts", ("Paper", "holds"), [("Arora et al.", 3)]),
            Note("No claim fails.", "good"),
        ),
    )
