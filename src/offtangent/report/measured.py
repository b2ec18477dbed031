"""What experiments draw again and again: a measured series with its spread, a power next to it, several panels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from offtangent._errors import InputError
from offtangent.report.axes import graph_objects, style
from offtangent.report.figures import Figure, line, points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from plotly.graph_objects import Figure as Plot
else:  # checked at run time in the tests, where plotly's types must not be needed
    ArrayLike = Plot = Any


def series(plot: Plot, x: ArrayLike, table: ArrayLike, *, name: str, colour: str, symbol: str = "circle") -> Plot:
    """Add what was measured at several sizes with several seeds: the mean, with bars from the smallest to the largest.

    Args:
        plot: The plot.
        x: The sizes, a vector.
        table: One row a seed and one column a size.
        name: What the legend calls it.
        colour: A name in `report.axes.PALETTE`, such as "blue".
        symbol: One of plotly's marker symbols.

    Returns:
        The plot itself.

    >>> from offtangent.report import new_plot
    >>> plot = series(new_plot(), [64, 256], [[1.0, 0.4], [3.0, 0.6]], name="measured", colour="blue")
    >>> plot.data[0].y, plot.data[0].error_y.array
    (array([2. , 0.5]), array([1. , 0.1]))
    """
    rows = np.asarray(table, dtype=float)
    if rows.ndim != 2:
        raise InputError(f"The table has shape {rows.shape}: expected one row a seed and one column a size.")
    band = (rows.min(axis=0), rows.max(axis=0))
    return points(plot, x, rows.mean(axis=0), name=name, colour=colour, symbol=symbol, band=band)


def power(plot: Plot, x: ArrayLike, exponent: float, *, through: float, name: str, colour: str = "grey") -> Plot:
    """Add a power of x as a dotted line, to compare with: through·(x/x₀)^exponent.

    Args:
        plot: The plot.
        x: The sizes, a vector with x₀ first.
        exponent: What the paper says.
        through: The value at x₀.
        name: What the legend calls it, the exponent as text: "m^(−1/4)".
        colour: A name in `report.axes.PALETTE`.

    Returns:
        The plot itself.

    >>> from offtangent.report import new_plot
    >>> power(new_plot(), [1.0, 16.0], -0.25, through=2.0, name="m^(−1/4)").data[0].y
    array([2., 1.])
    """
    sizes = np.asarray(x, dtype=float)
    if sizes.ndim != 1 or not len(sizes):
        raise InputError(f"x has shape {sizes.shape}: expected a vector of at least one size, x₀ first.")
    return line(plot, sizes, through * (sizes / sizes[0]) ** exponent, name=name, colour=colour, dash="dot")


def finished(plot: Plot, title: str, caption: str, *, x: str, y: str, log: str = "xy") -> Figure:
    """Style a plot and give it its title and caption: the last line of most drawings.

    Args:
        plot: The plot, with all that is drawn.
        title: What is to be seen.
        caption: How it was made.
        x: The title of the first axis, with units.
        y: That of the second.
        log: Which axes are logarithmic: "xy", "x", "y" or "".

    Returns:
        The figure.

    >>> from offtangent.report import new_plot
    >>> plot = series(new_plot(), [64, 256], [[1.0, 0.4]], name="measured", colour="blue")
    >>> finished(plot, "Error against width", "One seed.", x="width m", y="error").plot.layout.xaxis.type
    'log'
    """
    if not set(log) <= {"x", "y"}:
        raise InputError(f'log={log!r}: expected "xy", "x", "y" or "".')
    return Figure(title, caption, style(plot, x=x, y=y, log_x="x" in log, log_y="y" in log))


def grid(panels: Sequence[tuple[str, Plot]], *, columns: int = 2) -> Plot:
    """Put plots side by side, each with its title: small multiples, which share colours and one legend.

    Args:
        panels: For each its title and its plot, which `style` has been called on.
        columns: How many stand beside each other.

    Returns:
        One plot. What has the same name in several panels stands in the legend once, and is hidden in all of them by
        one click.

    Raises:
        InputError: If there are no panels, or fewer than one column.

    >>> from offtangent.report import new_plot
    >>> from offtangent.report.axes import style
    >>> drawn = [series(new_plot(), [1, 2], [[k, k]], name="loss", colour="blue") for k in (1, 2)]
    >>> left, right = (style(plot, x="width m", y="loss") for plot in drawn)
    >>> both = grid([("relu", left), ("tanh", right)])
    >>> [note.text for note in both.layout.annotations], [trace.showlegend for trace in both.data]
    (['relu', 'tanh'], [True, False])
    """
    if not panels or columns < 1:
        raise InputError(f"{len(panels)} panels in {columns} columns: expected at least one of each.")
    graph_objects()  # says what to install, where plotly is missing
    from plotly.subplots import make_subplots

    across = min(columns, len(panels))
    rows = -(-len(panels) // across)
    whole = make_subplots(rows=rows, cols=across, subplot_titles=[title for title, _ in panels])
    named: set[str] = set()
    for number, (_, plot) in enumerate(panels):
        at = {"row": number // across + 1, "col": number % across + 1}
        for trace in plot.data:
            shown = trace.showlegend is not False and trace.name not in named
            named |= {trace.name} if shown else set()
            whole.add_trace(trace, **at)
            whole.data[-1].update(showlegend=shown, legendgroup=trace.name)
        whole.update_xaxes(_own(plot.layout.xaxis), **at)
        whole.update_yaxes(_own(plot.layout.yaxis), **at)
    layout = panels[0][1].layout
    whole.update_layout(template=layout.template, height=rows * (layout.template.layout.height or layout.height))
    return whole


def _own(axis: Any) -> dict[str, Any]:
    """What a panel's axis says of itself: where it lies is the whole plot's matter."""
    return {key: value for key, value in axis.to_plotly_json().items() if key not in ("anchor", "domain")}
