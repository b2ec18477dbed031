"""Figures in the house style: restrained, legible on a phone, for colour-blind eyes, on light and dark pages.

Draw first, style last:

    plot = new_plot()
    line(plot, widths, error, name="measured", colour="blue", band=(low, high))
    style(plot, x="width m", y="test error", log_x=True)
    Figure("Error against width", "Mean of ten seeds; the band is a 95 % interval.", plot)

plotly is imported when the first plot is made, not before.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from offtangent._errors import InputError
from offtangent.report.axes import PALETTE, graph_objects

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from plotly.graph_objects import Figure as Plot
else:  # checked at run time in the tests, where plotly's types must not be needed
    ArrayLike = Plot = Any


@dataclass(frozen=True)
class Figure:
    """A plot with its title and caption, as a page shows it. Both texts may carry formulas between dollar signs.

    Attributes:
        title: What is to be seen.
        caption: How it was made.
        plot: The plotly figure, styled by `style`.

    >>> from offtangent.report.axes import style
    >>> plot = style(line(new_plot(), [1, 2], [3, 4], name="measured", colour="blue"), x="steps", y="loss")
    >>> Figure("Loss against steps", "One seed.", plot).title
    'Loss against steps'
    """

    title: str
    caption: str
    plot: Plot


def new_plot() -> Plot:
    """Make an empty plot, to be drawn on by `line`, `points` and `tiles` and finished by `style`.

    The first call imports plotly, which takes a moment; it raises `ImportError`, with what to install, where plotly is
    missing.

    Returns:
        An empty plotly figure.

    >>> len(new_plot().data)
    0
    """
    return graph_objects().Figure()


def line(
    plot: Plot,
    x: ArrayLike,
    y: ArrayLike,
    *,
    name: str,
    colour: str,
    dash: str | None = None,
    symbol: str | None = None,
    band: tuple[ArrayLike, ArrayLike] | None = None,
) -> Plot:
    """Add a line to a plot, with a shaded band around it where one is given.

    A NaN leaves a gap. The band follows the line when the reader hides it through the legend. Time and memory are
    linear in the number of points.

    Args:
        plot: The plot.
        x: Where the line goes along the first axis, a vector.
        y: Its values, as many.
        name: What the legend calls it.
        colour: A name in `report.axes.PALETTE`, such as "blue".
        dash: Plotly's "dot", "dash" or "dashdot"; solid without it.
        symbol: One of plotly's marker symbols, such as "circle", that marks where it was measured; none without it.
        band: The edges (low, high) of the band, vectors like y, or None for no band.

    Returns:
        The plot itself.

    Raises:
        InputError: If x, y and the band are no vectors of one length, if the band has low above high, or if the palette
            has no such colour; the message lists those that it has.

    >>> plot = line(new_plot(), [1, 2], [3, 4], name="measured", colour="blue", band=([2, 3], [4, 5]))
    >>> [trace.name for trace in plot.data]  # the band and the line
    ['measured', 'measured']
    """
    xs, ys = _aligned(x, y)
    shade = _colour(colour)
    if band is not None:
        low, high = _band(xs, band)
        known = np.isfinite(low) & np.isfinite(high)
        plot.add_scatter(
            x=np.concatenate([xs[known], xs[known][::-1]]),
            y=np.concatenate([high[known], low[known][::-1]]),
            name=name,
            legendgroup=name,
            meta="band",
            fill="toself",
            fillcolor=_translucent(shade),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
        )
    marks = {"mode": "lines"} if symbol is None else {"mode": "lines+markers", "marker": _marker(shade, symbol)}
    plot.add_scatter(x=xs, y=ys, name=name, legendgroup=name, line={"color": shade, "dash": dash, "width": 2}, **marks)
    return plot


def points(
    plot: Plot,
    x: ArrayLike,
    y: ArrayLike,
    *,
    name: str,
    colour: str,
    symbol: str = "circle",
    band: tuple[ArrayLike, ArrayLike] | None = None,
) -> Plot:
    """Add markers to a plot, with error bars where a band is given, in time linear in their number.

    Args:
        plot: The plot.
        x: Where the markers are along the first axis, a vector.
        y: Their values, as many.
        name: What the legend calls them.
        colour: A name in `report.axes.PALETTE`, such as "blue".
        symbol: One of plotly's marker symbols.
        band: The ends (low, high) of the error bars, vectors like y, or None for no bars.

    Returns:
        The plot itself.

    Raises:
        InputError: If x, y and the band are no vectors of one length, if the band has low above high, or if the palette
            has no such colour; the message lists those that it has.

    >>> plot = points(new_plot(), [1, 2], [3, 4], name="seeds", colour="green", band=([2, 3], [5, 5]))
    >>> plot.data[0].mode, plot.data[0].error_y.array.tolist()
    ('markers', [2.0, 1.0])
    """
    xs, ys = _aligned(x, y)
    shade = _colour(colour)
    bars = None
    if band is not None:
        low, high = _band(xs, band)
        bars = {
            "type": "data",
            "symmetric": False,
            "array": high - ys,
            "arrayminus": ys - low,
            "thickness": 1.25,
            "width": 3,
        }
    plot.add_scatter(
        x=xs,
        y=ys,
        name=name,
        legendgroup=name,
        mode="markers",
        marker=_marker(shade, symbol),
        error_y=bars,
    )
    return plot


def tiles(plot: Plot, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, name: str, colour: str) -> Plot:
    """Add a table of shares between 0 and 1 to a plot, as tiles from clear to a full colour, with a colour bar.

    Args:
        plot: The plot.
        x: The centres of the columns, a vector.
        y: The centres of the rows, a vector.
        z: The shares, a row for each y and a column for each x.
        name: What the colour bar is called.
        colour: A name in `report.axes.PALETTE`, the colour of a share of one.

    Returns:
        The plot itself.

    Raises:
        InputError: If z has another shape, or the palette has no such colour.

    >>> tiles(new_plot(), [1, 2], [3, 4], [[0, 1], [1, 0]], name="share", colour="blue").data[0].zmax
    1
    """
    xs, ys, zs = (np.asarray(values, float) for values in (x, y, z))
    if zs.shape != (len(ys), len(xs)):
        raise InputError(f"z has shape {zs.shape}: expected ({len(ys)}, {len(xs)}), a row for each y.")
    red, green, blue = (int(_colour(colour)[i : i + 2], 16) for i in (1, 3, 5))
    scale = [[share, f"rgba({red}, {green}, {blue}, {0.05 + 0.85 * share:g})"] for share in (0.0, 1.0)]
    bar = {"title": {"text": name, "side": "right", "font": {"size": 12}}, "thickness": 10, "outlinewidth": 0}
    plot.add_heatmap(x=xs, y=ys, z=zs, zmin=0, zmax=1, colorscale=scale, colorbar=bar, name=name, xgap=1, ygap=1)
    plot.update_layout(showlegend=True)  # also where a single line lies over the tiles
    return plot


def _aligned(x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
    xs, ys = np.asarray(x), np.asarray(y)
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise InputError(f"x and y must be vectors of one length, but have shapes {xs.shape} and {ys.shape}.")
    return xs, ys


def _band(x: Any, band: tuple[ArrayLike, ArrayLike]) -> tuple[Any, Any]:
    low, high = (np.asarray(edge, dtype=float) for edge in band)
    if low.shape != x.shape or high.shape != x.shape:
        raise InputError(
            f"band=(low, high) must have x's shape {x.shape}, but has {low.shape} and {high.shape}; "
            "for a constant width use (y - w, y + w)."
        )
    if (low > high).any():
        raise InputError("band=(low, high) has low above high; give them in this order.")
    return low, high


def _colour(name: str) -> str:
    if name not in PALETTE:
        raise InputError(f"colour={name!r} is not in the palette; choose one of {', '.join(PALETTE)}.")
    return PALETTE[name]


def _marker(shade: str, symbol: str) -> dict[str, Any]:
    return {"color": shade, "symbol": symbol, "size": 7}


def _translucent(shade: str) -> str:
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.18)"
