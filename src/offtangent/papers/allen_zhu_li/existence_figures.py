"""The figures of the constructions: Lemmas F.1, D.2 and D.3 against the width, and the parity of six."""

from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li._existence import kind_of, table_of, widths_of
from offtangent.papers.allen_zhu_li._parity import PAPER, SOLVED
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style


def figures(results: Results) -> list[Figure]:
    found = []
    weights, layers, parity = (kind_of(results, name) for name in ("Weights", "Layers", "Parity"))
    if len(weights) >= 2:
        found.append(_sizes(weights))
    if len(layers) >= 2:
        found.append(_errors(layers))
    if len(parity):
        found.append(_norms(parity))
    return found


def _marked(plot: Any, results: Results, curves: dict[str, tuple[str, str]]) -> None:
    for name, (label, colour) in curves.items():
        table = table_of(results, name)
        band = (table.min(axis=0), table.max(axis=0))
        points(plot, widths_of(results), table.mean(axis=0), name=label, colour=colour, band=band)


def _sizes(results: Results) -> Figure:
    plot, widths = new_plot(), widths_of(results)
    _marked(
        plot,
        results,
        {
            "error": ("error of G(x; W⋆)", "blue"),
            "norm": ("‖W⋆‖_F", "vermillion"),
            "longest": ("‖W⋆‖_2,∞", "green"),
        },
    )
    start = float(table_of(results, "error")[:, 0].mean())
    line(plot, widths, start * (widths / widths[0]) ** -0.5, name="m^(−1/2)", colour="grey", dash="dot")
    end = float(table_of(results, "longest")[:, -1].mean())
    line(plot, widths, end * widths[-1] / widths, name="1/m", colour="grey", dash="dash")
    style(plot, x="width m", y="error, norms", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"k = p = 2, d = {cell.dim}, φ = ½ + z³, one target a seed, {cell.seeds} seeds (bars: all of them)."
    return Figure("Lemma F.1: better and shorter as the network grows wider", caption, plot)


def _errors(results: Results) -> Figure:
    plot = new_plot()
    _marked(
        plot,
        results,
        {
            "first": ("AD_W⁰ W⋆ against F", "blue"),
            "second": ("AD_V⁰ V⋆ against αG, over ‖z‖", "green"),
            "first_moved": ("AD_W W⋆, worst W", "vermillion"),
            "second_moved": ("AD_V V⋆, worst V", "orange"),
        },
    )
    data = results.pairs[-1][1]
    line(
        plot,
        widths_of(results),
        np.full(len(results), float(data["composite"].mean())),
        name="‖αG(F)‖",
        colour="grey",
        dash="dot",
    )
    style(plot, x="width m", y="norm of the error", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"k = {cell.outputs}, displacements of ten times ‖W⋆‖_F and ‖V⋆‖_F that know the signs; {cell.seeds} seeds "
        "(bars: all of them)."
    )
    return Figure("Lemmas D.2 and D.3: the target is in the network, and how safe it is there", caption, plot)


def _norms(results: Results) -> Figure:
    cell, data = results.pairs[0]
    plot, grid = new_plot(), np.linspace(0.5, 0.999, 200)
    line(plot, SOLVED * grid, (1 - grid) ** 2, name="exact optimum, m a multiple of 64", colour="blue")
    points(
        plot,
        data["norm"].values.ravel(),
        data["error"].values.ravel(),
        name=f"trained, m = {cell.width}",
        colour="orange",
    )
    points(
        plot,
        [norm for _, norm in PAPER],
        [error for error, _ in PAPER],
        name="Appendix A.1",
        colour="vermillion",
        symbol="diamond",
    )
    style(plot, x="‖W‖_F/√d", y="mean square error", log_y=True)
    caption = "Parity of six coordinates by a two-layer ReLU network; Adam on all 64 corners with weight decay."
    return Figure("A parity needs ‖W‖_F = 13.06√d, and 64 neurons", caption, plot)
