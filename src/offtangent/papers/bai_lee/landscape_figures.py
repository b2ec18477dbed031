"""The figures of the landscape."""

import math

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from offtangent.lab import Results
from offtangent.papers.bai_lee.landscape_report import column
from offtangent.papers.bai_lee.stationary_report import EPSILON
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.bai_lee.signs import ENUMERATED

SHOWN = 6  # starts in a figure
COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")


def figures(drawn: Results, widths: Results, trained: Results) -> list[Figure]:
    found = [_losses(cell, data) for cell, data in _ends(trained)]
    if len(trained):
        found.append(_curvatures(trained))
    if len(widths) > 1:
        found += [_epsilons(widths), _closeness(widths)]
    if len(drawn):
        found.append(_slacks(drawn))
    return found


def _ends(trained: Results) -> list[tuple[object, xr.Dataset]]:
    """The narrowest and the widest network."""
    first = [(cell, data) for cell, data in trained if cell.seed == 0]
    return first[:1] + first[1:][-1:]


def _losses(cell: object, data: xr.Dataset) -> Figure:
    plot = new_plot()
    steps = data["look"].values + 1.0
    shown = np.unique(np.linspace(0, data.sizes["start"] - 1, SHOWN).round().astype(int))
    for j, k in enumerate(shown):
        size = float(data["start_norm"][k] / data["norm_star"])
        name = f"from {size:.1g} ‖W⋆‖" if k else f"from {size:.1g} ‖W⋆‖, by the saddle"
        line(plot, steps, data["loss"].values[:, k], name=name, colour=COLOURS[j % len(COLOURS)])
    for value, name, dash in (
        (float(data["loss_bound"]), "(1 + γ) OPT + ε", "dash"),
        (float(data["opt"]), "OPT", "dot"),
        (float(data["best"]), "H(q), the best possible", "dashdot"),
    ):
        line(plot, steps[[0, -1]], np.full(2, value), name=name, colour="grey", dash=dash)
    style(plot, x="step + 1 (SGD with fresh signs, then descent)", y="L_λ", log_x=True, log_y=True)
    width, signs = cell.width, "all signs" if cell.width <= ENUMERATED else f"{cell.signs} signs"  # type: ignore[attr-defined]
    caption = (
        f"2-XOR with label noise, d = {cell.dim}, m = {width}, {signs}; {cell.steps} steps of noisy SGD, then descent. "  # type: ignore[attr-defined]
        f"The losses of all {data.sizes['start']} starts end between {float(data['last_loss'].min()):.4f} and "
        f"{float(data['last_loss'].max()):.4f}."
    )
    return Figure(f"From every start to nearly the same loss: m = {width}", caption, plot)


def _curvatures(trained: Results) -> Figure:
    plot, shown = new_plot(), [(cell, data) for cell, data in trained if cell.seed == 0]
    for k, (cell, data) in enumerate(shown):
        colour = COLOURS[k % len(COLOURS)]
        line(plot, data["look"].values + 1.0, _along(data), name=f"λ_min ‖W⋆‖², m = {cell.width}", colour=colour)
    cell, data = shown[-1]
    bound = data["corollary_right"].values[:, 0] + EPSILON
    line(plot, data["look"].values + 1.0, bound, name=f"(8), right side, m = {cell.width}", colour="grey", dash="dash")
    style(plot, x="step + 1 (SGD with fresh signs, then descent)", y="smallest curvature times ‖W⋆‖²", log_x=True)
    caption = (
        f"The start at 10⁻³ ‖W⋆‖. Corollary 3 with ε = {EPSILON:g} bounds λ_min ‖W⋆‖² from above by the dashed line: "
        "where the loss is high and the gradient small, some curvature must be negative."
    )
    return Figure("W = 0 is a saddle; training leaves it, and the smallest curvature rises to zero", caption, plot)


def _epsilons(results: Results) -> Figure:
    widths, plot = np.array([float(cell.width) for cell, _ in results]), new_plot()
    for name, label, colour in (("proven", "proven: Lemmas 1, 12, 13, 14", "blue"), ("needed", "needed", "vermillion")):
        table = column(results, name, "W⋆")
        points(plot, widths, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    first = float(column(results, "needed", "W⋆")[:, 0].mean())
    for power, dash in ((-0.25, "dot"), (-0.5, "dash")):
        trend = first * (widths / widths[0]) ** power
        line(plot, widths, trend, name=f"m^(−1/{round(-1 / power)})", colour="grey", dash=dash)
    style(plot, x="width m", y="ε of Theorem 2 at W⋆", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds (bars: all of them), {cell.signs} signs."
    return Figure("The ε that Theorem 2 needs goes to zero, faster than the proof has it", caption, plot)


def _closeness(results: Results) -> Figure:
    widths, plot = np.array([float(cell.width) for cell, _ in results]), new_plot()
    labels = {"loss": "value (12)", "gradient": "gradient along W (13)", "curvature": "Hessian along W⋆Σ' (14)"}
    for (name, label), colour in zip(labels.items(), COLOURS, strict=False):
        for at, symbol in (("W⋆", "circle"), ("random", "circle-open")):
            table = column(results, name, at)
            band = (table.min(axis=0), table.max(axis=0))
            where = f"{label}, {at if at == 'W⋆' else 'random W'}"
            points(plot, widths, table.mean(axis=0), name=where, colour=colour, symbol=symbol, band=band)
    first = float(column(results, "curvature", "W⋆")[:, 0].mean())
    for power, name, dash in ((-0.25, "m^(−1/4), the lemmas", "dot"), (-0.5, "m^(−1/2)", "dash")):
        line(plot, widths, first * (widths / widths[0]) ** power, name=name, colour="grey", dash=dash)
    style(plot, x="width m", y="difference between L and L^Q", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds (bars: all of them), {cell.signs} signs. Random W "
        "have the norm of W⋆."
    )
    return Figure("The landscapes of L and L^Q come together like m^(−1/2)", caption, plot)


def _slacks(drawn: Results) -> Figure:
    plot = new_plot()
    names = ("W anywhere", "W next to W⋆Σ", "W and W⋆ anywhere")
    for kind, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        chosen = [(data["kind"].values == kind, data) for _, data in drawn]
        x, y = (np.concatenate([_picked(data, of, rows) for rows, data in chosen]) for of in ("size", "lemma"))
        points(plot, x, y, name=name, colour=colour)
    style(plot, x="‖W‖ / ‖W⋆‖ (2,4-norms)", y="slack of (5) over its terms", log_x=True)
    caption = (
        "Right less left side of Lemma 1, divided by the sum of all terms' sizes; below zero the lemma would be "
        f"violated. {math.prod(drawn.pairs[0][1]['lemma'].shape)} points for each size and loss."
    )
    return Figure("Lemma 1 is never violated, and nearly attained next to W⋆", caption, plot)


def _picked(data: xr.Dataset, name: str, rows: Bool[np.ndarray, "s p"]) -> Float[np.ndarray, " k"]:
    return np.asarray(data[name].values[rows], np.float64)


def _along(one: xr.Dataset) -> Float[np.ndarray, " t"]:
    """λ_min‖W⋆‖_F², from above, at every look at the start next to the saddle."""
    return np.asarray(one["curvature"] * one["length_star"], np.float64)
