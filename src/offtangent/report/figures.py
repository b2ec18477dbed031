"""Figures in the house style: restrained, legible on a phone, for colour-blind eyes, on light and dark pages.

Draw first, style last:

    plot = new_plot()
    line(plot, widths, error, name="measured", colour="blue", band=(low, high))
    style(plot, x="width m", y="test error", log_x=True)
    Figure("Error against width", "Mean of ten seeds; the band is a 95 % interval.", plot)

plotly is imported when the first plot is made, not before.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from offtangent._errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from plotly.graph_objects import Figure as Plot
else:  # checked at run time in the tests, where plotly's types must not be needed
    ArrayLike = Plot = Any

# Okabe and Ito's colours without yellow and black, which vanish on a light or a dark page.
PALETTE: Mapping[str, str] = MappingProxyType(
    {
        "blue": "#0072B2",
        "vermillion": "#D55E00",
        "green": "#009E73",
        "purple": "#CC79A7",
        "orange": "#E69F00",
        "sky": "#56B4E9",
        "grey": "#7A7F87",
    }
)

# The page repaints exactly these colours when it is dark (templates/page.html.j2): use them for nothing else.
INK, RULE, GRID, PAPER = "#1A1C1E", "#9A9EA3", "#E6E7E9", "#FFFFFF"

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
HEIGHT = 400  # pixels of a figure
SHORT = 2.5  # decades of a log axis on which 2 and 5 are named as well
LEAST = 0.7  # decades below which plotly has linear ticks, all of them named


@dataclass(frozen=True)
class Figure:
    """A plot, its title (what is to be seen) and its caption (how it was made); both may carry formulas."""

    title: str
    caption: str
    plot: Plot


def new_plot() -> Plot:
    """An empty plot."""
    return _graph_objects().Figure()


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
    """Add a line, with a shaded `band` (low, high) around it, and return the plot.

    `colour` is a name in PALETTE; `dash` is plotly's "dot", "dash", "dashdot" or None for solid; `symbol`, one of
    plotly's marker symbols, marks where it was measured. A NaN leaves a gap. The band follows the line when the reader
    hides it through the legend.
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
    """Add markers, with error bars from low to high where a `band` (low, high) is given, and return the plot.

    `colour` is a name in PALETTE; `symbol` is one of plotly's marker symbols.
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
    """Add a table of shares between 0 and 1, z of shape (len(y), len(x)), as tiles from clear to `colour`."""
    xs, ys, zs = (np.asarray(values, float) for values in (x, y, z))
    if zs.shape != (len(ys), len(xs)):
        raise InputError(f"z has shape {zs.shape}: expected ({len(ys)}, {len(xs)}), a row for each y.")
    red, green, blue = (int(_colour(colour)[i : i + 2], 16) for i in (1, 3, 5))
    scale = [[share, f"rgba({red}, {green}, {blue}, {0.05 + 0.85 * share:g})"] for share in (0.0, 1.0)]
    bar = {"title": {"text": name, "side": "right", "font": {"size": 12}}, "thickness": 10, "outlinewidth": 0}
    plot.add_heatmap(x=xs, y=ys, z=zs, zmin=0, zmax=1, colorscale=scale, colorbar=bar, name=name, xgap=1, ygap=1)
    plot.update_layout(showlegend=True)  # also where a single line lies over the tiles
    return plot


def style(plot: Plot, *, x: str, y: str, log_x: bool = False, log_y: bool = False) -> Plot:
    """Give the plot its axis titles (plain text, with units) and the house style; call it last.

    On a log axis a band that reaches zero or below is cut at the smallest positive value drawn, since it has
    no other place to end. Linear in the number of points.
    """
    if log_y:
        _cut_bands(plot)
    plot.update_layout(template=_template())
    plot.update_xaxes(title_text=x, **_scale(plot, "x", log_x))
    plot.update_yaxes(title_text=y, **_scale(plot, "y", log_y))
    return plot


def _graph_objects() -> Any:
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("Figures need plotly, which is not installed here: pip install 'plotly>=6'") from error
    return plotly.graph_objects


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


def _positive(plot: Plot, axis: str) -> Any:
    """Every positive finite coordinate of the plot on one axis, in one vector."""
    found = [np.zeros(0)]
    for trace in plot.data:
        try:
            values = np.asarray(getattr(trace, axis, None), dtype=float).ravel()
        except (TypeError, ValueError):  # categories, dates
            continue
        found.append(values[np.isfinite(values) & (values > 0)])
    return np.concatenate(found)


def _bar_ends(plot: Plot) -> Any:
    """The positive ends of all error bars, which plotly's axes make room for."""
    found = [np.zeros(0)]
    for trace in plot.data:
        bars = getattr(trace, "error_y", None)
        if bars is not None and bars.array is not None:
            y, up, down = (np.asarray(part, dtype=float) for part in (trace.y, bars.array, bars.arrayminus))
            found += [y + up, y - down]
    ends = np.concatenate(found)
    return ends[np.isfinite(ends) & (ends > 0)]


def _cut_bands(plot: Plot) -> None:
    drawn = _positive(plot, "y")
    if drawn.size:
        for trace in plot.select_traces({"meta": "band"}):
            trace.y = np.maximum(np.asarray(trace.y, dtype=float), drawn.min())


def _scale(plot: Plot, axis: str, log: bool) -> dict[str, Any]:
    if not log:
        return {}
    drawn = np.concatenate([_positive(plot, axis), _bar_ends(plot)]) if axis == "y" else _positive(plot, axis)
    decades = float(np.log10(drawn.max() / drawn.min())) if drawn.size else 0.0
    if not LEAST <= decades <= 7:  # plotly's own ticks do better on very short and very long axes
        return {"type": "log"}
    minor = {"ticks": "outside", "ticklen": 3, "dtick": "D1", "tickcolor": RULE}
    if decades >= SHORT:
        return {"type": "log", "dtick": 1, "minor": minor}
    # Powers of ten alone leave too little to read, and plotly would set the digits between them in small type.
    digits = (1, 2, 5) if decades >= 1 else (1, 2, 3, 5, 7)
    exponents = range(math.floor(math.log10(drawn.min())), math.ceil(math.log10(drawn.max())) + 1)
    in_full = bool(drawn.min() >= 1e-3 and drawn.max() < 1e5)
    found = [(digit, exponent) for exponent in exponents for digit in digits]
    return {
        "type": "log",
        "tickvals": [float(f"{digit}e{exponent}") for digit, exponent in found],
        "ticktext": [_tick(digit, exponent, in_full) for digit, exponent in found],
        "minor": minor,
    }


def _tick(digit: int, exponent: int, in_full: bool) -> str:
    """The name of digit · 10^exponent, as plotly writes powers unless `in_full`."""
    if in_full:
        return f"{float(f'{digit}e{exponent}'):g}"
    power = f"10<sup>{exponent}</sup>".replace("-", "−")
    return power if digit == 1 else f"{digit}×{power}"


def _template() -> Any:
    axis = {
        "automargin": True,
        "exponentformat": "power",
        "gridcolor": GRID,
        "hoverformat": ".4g",
        "linecolor": RULE,
        "minexponent": 5,
        "showline": True,
        "tickcolor": RULE,
        "tickfont": {"size": 12},
        "ticklen": 5,
        "ticks": "outside",
        "title": {"font": {"size": 13}, "standoff": 8},
        "zeroline": False,
    }
    legend = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "xref": "container",
        "y": 0,
        "yanchor": "bottom",
        "yref": "container",
        "itemsizing": "trace",
        "bgcolor": "rgba(0, 0, 0, 0)",
    }
    return _graph_objects().layout.Template(
        layout={
            "colorway": list(PALETTE.values()),
            "font": {"family": FONT, "size": 13, "color": INK},
            "height": HEIGHT,
            "hoverlabel": {
                "bgcolor": PAPER,
                "bordercolor": RULE,
                "font": {"family": FONT, "size": 12, "color": INK},
            },
            "hovermode": "closest",
            "legend": legend,
            "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "separators": ".\u202f",  # thousands as in the tables
            "xaxis": axis,
            "yaxis": axis,
        }
    )
