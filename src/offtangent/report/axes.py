"""Axes, colours and the house style of figures."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Plot
else:  # checked at run time in the tests, where plotly's types must not be needed
    Plot = Any

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


def style(plot: Plot, *, x: str, y: str, log_x: bool = False, log_y: bool = False) -> Plot:
    """Give a plot its axis titles and the house style; it is called last, when everything is drawn.

    Where the second axis is logarithmic, a band that reaches zero or below is cut at the smallest positive value drawn,
    since it has no other place to end. A log axis of 0.7 to 7 decades gets ticks of its own. Time is linear in the
    number of points.

    Args:
        plot: The plot.
        x: The title of the first axis, plain text with units.
        y: The title of the second axis.
        log_x: Whether the first axis is logarithmic.
        log_y: Whether the second axis is.

    Returns:
        The plot itself.

    >>> from offtangent.report import line, new_plot
    >>> plot = line(new_plot(), [1, 100], [3, 4], name="error", colour="blue")
    >>> style(plot, x="width m", y="error", log_x=True).layout.xaxis.type
    'log'
    """
    if log_y:
        _cut_bands(plot)
    plot.update_layout(template=_template())
    plot.update_xaxes(title_text=x, **_scale(plot, "x", log_x))
    plot.update_yaxes(title_text=y, **_scale(plot, "y", log_y))
    return plot


def graph_objects() -> Any:
    """The part of plotly that makes figures, or an ImportError that says how to install it."""
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("Figures need plotly, which is not installed here: pip install 'plotly>=6'") from error
    return plotly.graph_objects


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
    return graph_objects().layout.Template(
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
