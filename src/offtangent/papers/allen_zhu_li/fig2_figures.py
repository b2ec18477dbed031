"""Figure 2: errors of nine methods against N, the width and α/β."""

from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import _methods
from offtangent.papers.allen_zhu_li.fig2_report import PANELS, Panel, panels, titled
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

COLOURS = {"3resnet": "blue", "3layer": "green", "2layer": "orange"}
SYMBOLS = {"": "circle", " (NTK)": "triangle-up", " (last)": "square"}
DASHES = {"": "solid", " (NTK)": "dash", " (last)": "dot"}


def figures(results: Results) -> list[Figure]:
    least = {"a": 2, "b": 3, "c": 3}  # two points are no curve, but two N tell who comes first
    return [_figure(panel) for panel in panels(results) if len(panel.places("3resnet")) >= least[panel.panel]]


def _figure(panel: Panel) -> Figure:
    plot = new_plot()
    every: list[float] = []
    for method in panel.methods:
        network, _, kind = method.partition(" ")
        places = panel.places(method)
        if len(places) < 2 and panel.panel != "a":
            continue
        errors = [panel.errors(method, place) for place in places]
        means, lowest, highest = (np.array([f(one) for one in errors]) for f in (np.mean, np.min, np.max))
        x = np.array([_shown(panel, place) for place in places])
        order = x.argsort()
        every += x.tolist()
        looks: dict[str, Any] = {"name": method, "colour": COLOURS[network]}
        looks["band"] = (lowest[order], highest[order])
        looks["symbol"] = SYMBOLS[f" {kind}" if kind else ""]
        if len(places) < 2:
            points(plot, x, means, **looks)
        else:
            line(plot, x[order], means[order], dash=DASHES[f" {kind}" if kind else ""], **looks)
    ends = np.array([min(every), max(every)])
    line(plot, ends, np.full(2, panel.level), name="kα²", colour="grey")
    style(plot, x=PANELS[panel.panel][1], y="test error, E‖out − y‖²", log_x=True, log_y=True)
    cell = panel.results.pairs[0][0]
    samples = "" if panel.panel == "a" else f", N = {cell.samples}"
    caption = (
        f"{panel.where}{samples}; lines: means over seeds, bands: all seeds. kα²: the error of one who knows F and "
        "nothing of αG(F)."
    )
    if panel.panel == "b" and any(len(panel.places(method)) > 1 for method in panel.methods if method != "3resnet"):
        caption += f" 3resnet's error over the best other method's: {panel.ratios()}."
    short = [method for method in panel.methods if len(panel.places(method)) < len(panel.places("3resnet"))]
    if short and panel.panel == "a":
        caption += f" {', '.join(short)}: not run everywhere."
    kind = {"a": "samples", "b": "the width", "c": "α/β"}[panel.panel]
    return Figure(f"Figure 2({panel.panel}), {titled(panel.target).lower()}: test error against {kind}", caption, plot)


def _shown(panel: Panel, place: Any) -> float:
    return _methods.ALPHA / place if panel.panel == "c" else float(place)
