"""What each part of the ResNet has learnt along its training, and how far it is from its signal."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import _methods
from offtangent.papers.allen_zhu_li.hierarchy_report import NAMES, ONE, where_of
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style

COLOURS = {("first", "F"): "blue", ("rest", "F"): "sky", ("first", "αG(F)"): "orange", ("rest", "αG(F)"): "vermillion"}
AIMS = {"first": "out₁ to F", "rest": "out − out₁ to αG(F)"}
DASHES = {"together": "solid", "together, decay on W": "dot", "layer by layer": "dash", ONE: "dashdot"}
OWN = "Layer by layer, each part along the training of its own layer, the first before the second."


def figures(results: Results) -> list[Figure]:
    found = []
    for n in sorted(results.values("samples")):
        here = results.where(samples=n).pairs
        found += [_figure(cell, data) for cell, data in here]
        if here:
            found.append(_distances(here))
    return found


def _figure(cell: Any, data: Any) -> Figure:
    plot = new_plot()
    for (part, signal), colour in COLOURS.items():
        each = _along(data, "learnt", part).sel(signal=signal).values
        line(
            plot,
            _epochs(cell, data),
            each.mean(axis=0),
            name=f"{signal} in {NAMES[part]}",
            colour=colour,
            dash="solid" if signal == "F" else "dash",
            band=(each.min(axis=0), each.max(axis=0)),
        )
    style(plot, x="epochs", y="share of the signal that is learnt", log_x=True)
    own = f" {OWN}" if cell.way == "layer by layer" else ""
    caption = (
        f"{where_of(cell)}; lines: means over seeds, bands: all. 1: all of a signal is there.{own} Test error at the "
        f"end {float(data['test'].mean()):.3f}."
    )
    return Figure(f"What each part has learnt, trained {cell.way}, N = {cell.samples}", caption, plot)


def _distances(pairs: Any) -> Figure:
    plot = new_plot()
    for cell, data in pairs:
        for part, colour in (("first", "blue"), ("rest", "vermillion")):
            each = _along(data, "missed", part).values
            line(
                plot,
                _epochs(cell, data),
                each.mean(axis=0),
                name=f"{AIMS[part]}, {cell.way}",
                colour=colour,
                dash=DASHES[cell.way],
                band=(each.min(axis=0), each.max(axis=0)),
            )
    style(plot, x="epochs", y="E‖part − signal‖²/E‖signal‖²", log_x=True, log_y=True)
    cell = pairs[0][0]
    caption = (
        f"{where_of(cell)}; lines: means over seeds, bands: all. 1: as far as nothing is, 0: the signal alone. {OWN}"
    )
    return Figure(f"How far each part is from its signal, N = {cell.samples}", caption, plot)


def _along(data: Any, name: str, part: str) -> Any:
    """A part along the training of its own layer: layer by layer, out₁ is held while the second one trains."""
    alone = f"alone_{name}"
    return data[alone] if part == "first" and alone in data else data[name].sel(part=part)


def _epochs(cell: Any, data: Any) -> Float[np.ndarray, " t"]:
    return np.asarray((1.0 + data["look"].values) / max(cell.samples // _methods.BATCH, 1))
