"""The landscape drawn: how fast it turns, where its curvature is Lemma 3's, Theorem 4's runs, where starts end."""

from collections.abc import Callable
from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.report.figures import tiles
from offtangent.theory.ge_wang_zhao.capacity import least_width

COLOURS = ("blue", "vermillion", "green", "purple", "orange")
FLOOR = 1e-17  # below rounding: where a zero is drawn


def figures(
    smooth: Results, curved: Results, literal: Results, starts: Results, *, forms: Callable[[int, int], int]
) -> list[Figure]:
    drawn = _starts(starts, forms) if len(starts) else []
    drawn += [_curved(curved)] if len(curved) else []
    drawn += [_literal(proof)] if len(proof := literal.where(printed=False)) else []
    return [*drawn, _smooth(smooth)] if len(smooth) else drawn


def _starts(results: Results, forms: Callable[[int, int], int]) -> list[Figure]:
    cell, count = results.pairs[0][0], len(results)
    n, width = np.array(cell.samples, float), np.array(cell.widths, float)
    at = f"d = {cell.dim}, {cell.starts} starts on {count} data {'set' if count == 1 else 'sets'}"
    drawn = []
    ended = (
        f"Share of starts at the least f of any quadratic form (to 10⁻¹⁰ f(0)) after {cell.polishing} steps of "
        f"Levenberg and Marquardt's from there; {at}. The line is the dimension of the forms xᵀWAWᵀx with r neurons."
    )
    went = f"Share of starts with f ≤ 10⁻⁴ f(0) after {cell.steps} steps of gradient descent; {at}."
    for name, title, caption in (
        ("descended", "Random starts: where gradient descent is", went),
        ("reached", "Random starts: where they end", ended),
    ):
        plot = new_plot()
        share = np.mean([data[name].values for _, data in results], axis=0) / cell.starts
        tiles(plot, width, n, share, name="share of starts", colour="blue")
        limit = np.array([float(forms(cell.dim, int(one))) for one in width])
        line(plot, width, limit, name="dimension of the forms", colour="vermillion")
        edge = float(least_width(cell.dim))
        line(plot, np.full(2, edge), n[[0, -1]], name="r = 2d + 2", colour="orange", dash="dash")
        style(plot, x="neurons r", y="samples n")
        drawn.append(Figure(title, caption, plot))
    return drawn


def _curved(results: Results) -> Figure:
    cell, plot = results.pairs[0][0], new_plot()
    gaps = np.concatenate([data["gap"].transpose("width", "seed", "point").values.reshape(len(cell.widths), -1)
                           for _, data in results], axis=1)  # fmt: skip
    shown = np.maximum(np.abs(gaps), FLOOR)
    points(plot, np.array(cell.widths, float), np.median(shown, axis=1), name="random W (bars: all)", colour="blue",
           band=(shown.min(axis=1), shown.max(axis=1)))  # fmt: skip
    line(plot, np.full(2, float(least_width(cell.dim))), np.array([FLOOR, 1.0]), name="r = 2d + 2", colour="orange",
         dash="dash")  # fmt: skip
    style(plot, x="neurons r", y="|λ_min(∇²f) + ‖M‖| / ‖M‖", log_y=True)
    caption = f"d = {cell.dim}, n = {cell.samples}; {gaps.shape[1]} points at each width. Below 10⁻¹⁴ is rounding."
    return Figure("Lemma 3 holds from r = 2d + 2 on", caption, plot)


def _literal(results: Results) -> Figure:
    plot = new_plot()
    last = 1.0
    for (cell, data), colour in zip(results, COLOURS, strict=False):
        steps = data["look"].values + 1.0
        line(plot, steps, data["loss"].values, name=f"d = {cell.dim}, n = {cell.samples}", colour=colour)
        last = max(last, float(steps[-1]))
    share = float((results.pairs[0][1]["epsilon"] / results.pairs[0][1]["start"]).item())
    line(plot, np.array([1.0, last]), np.full(2, share), name="ε", colour="grey", dash="dash")
    style(plot, x="step + 1", y="f(W) / f(0)", log_x=True)
    told = ", ".join(f"{float(data['wait']):.0f}" for _, data in results)
    caption = f"Mean over seeds, from W = 0 to where Algorithm 1 returns. It waits {told} steps after a perturbation."
    return Figure("Algorithm 1 with Theorem 4's own settings", caption, plot)


def _smooth(results: Results) -> Figure:
    plot, chosen = new_plot(), results.pairs[len(results) // 2]
    cell, data = chosen
    n = np.array(cell.samples, float)

    def add(name: str, label: str, colour: str, dash: str | None) -> None:
        values: Any = data[name].values
        line(plot, n, values.mean(axis=0), name=label, colour=colour, dash=dash,
             band=(values.min(axis=0), values.max(axis=0)))  # fmt: skip

    add("search_gradient", "∇g, by ascent", "blue", None)
    add("search_hessian", "∇²g, by ascent", "vermillion", None)
    add("pairs_gradient", "∇g, random pairs", "blue", "dot")
    add("pairs_hessian", "∇²g, random pairs", "vermillion", "dot")
    style(plot, x="samples n", y="fastest change / Lemma 5's constant", log_x=True, log_y=True)
    caption = (
        f"Γ = {cell.ball:g}, d = {cell.dim}, r = {least_width(cell.dim)}; {cell.seeds} data sets (bands: all), "
        f"{cell.pairs} pairs. One sample attains both constants."
    )
    return Figure("Lemma 5's constants are those of a single sample", caption, plot)
