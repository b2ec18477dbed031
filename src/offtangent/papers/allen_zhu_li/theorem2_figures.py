"""The figures of Theorem 2: errors of six kernels against N, the samples that each statement allows, norms."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li.theorem2_report import cells_of, held_in
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.kernel_limits import (
    corollary71_samples,
    error_floor,
    memorising_samples,
    theorem2_samples,
)

COLOURS = ("blue", "orange", "green", "purple", "sky", "vermillion")
SHOWN = 1e-3  # of α²: smaller errors are drawn here


def figures(results: Results) -> list[Figure]:
    regressions = [pair for pair in cells_of(results, "Regression") if not pair[0].first]
    dims = sorted({cell.dim for cell, _ in regressions})
    found = [_errors([pair for pair in regressions if pair[0].dim == dim], held_in(results, dim)) for dim in dims]
    held = cells_of(results, "Memorised")
    return found + ([_limits(held), _norms(held), _conditioning(held)] if held else [])


def _errors(here: list[tuple[Any, Any]], held: Any) -> Figure:
    plot, (first, _) = new_plot(), here[0]
    sizes = np.array(first.samples, float)
    ends = [0.25]
    for (cell, data), colour in zip(here, COLOURS, strict=False):
        errors = data["error"].sum("output").values / cell.alpha**2
        low, middle, high = (np.maximum(part, SHOWN) for part in (errors.min(0), errors.mean(0), errors.max(0)))
        ends += [float(low.min()), float(high.max())]
        line(plot, sizes, middle, name=cell.kernel, colour=colour, band=(low, high), symbol="circle")
    for level, name, dash in (
        (first.degree, "nothing of αG(F) learnt", "dash"),
        (first.degree / 4, "kα²/4, the proof", "dashdot"),
        (0.25, "α²/4, Theorem 2", "dot"),
    ):
        line(plot, sizes[[0, -1]], np.full(2, level), name=name, colour="grey", dash=dash)
    if held is not None:
        quadratic = held["quadratic"].isel(seed=slice(first.seeds)).sel(n=list(first.samples)).values
        floor = np.array(
            [[sum(error_floor(first.alpha, 1.0, q**0.5) for q in one) for one in seed] for seed in quadratic]
        )
        shown = floor.mean(axis=0) / first.alpha**2
        points(
            plot, sizes, np.where(shown > 0, shown, np.nan), name="bound from u′", colour="grey", symbol="triangle-up"
        )
    span = np.array([min(ends), max(ends)])
    line(plot, np.full(2, theorem2_samples(first.dim, first.degree)), span, name="limit of Theorem 2", colour="purple")
    allowed = _by_the_norms(first.dim, first.degree, first.alpha)
    if allowed <= sizes[-1]:
        line(plot, np.full(2, allowed), span, name="limit of its argument", colour="purple", dash="dash")
    style(plot, x="samples N", y="error/α², sum over outputs", log_x=True, log_y=True)
    caption = (
        f"Over all corners; λ chosen on samples of its own; mean of {first.seeds} seeds, the band from the smallest to "
        f"the largest. Vertical: the N that Theorem 2 allows, its constant as 1, and about where its argument by the "
        f"norms themselves ends; Lemma E.3's own constants allow {memorising_samples(first.dim, first.degree):.1g}; "
        f"Corollary 7.1 wants {corollary71_samples(first.dim, first.alpha):.1g}. Triangles: "
        r"what $(\alpha - \lambda\|u'\|)_+^2$ proves of every kernel of ⟨x, x'⟩. "
        f"Errors below {SHOWN:g} are drawn there."
    )
    return Figure(f"Six kernels on F + αG(F), d = {first.dim}, k = {first.degree}", caption, plot)


def _by_the_norms(dim: int, degree: int, alpha: float) -> float:
    """N = α² C(d, k)/4(1 + α²), where 2λ‖u′‖ = α if ΦᵀΦ = ΛI."""
    return alpha**2 * math.comb(dim, degree) / (4 * (1 + alpha**2))


def _limits(held: list[tuple[Any, Any]]) -> Figure:
    plot = new_plot()
    cells = sorted((cell for cell, _ in held), key=lambda cell: cell.dim)
    k, alpha = cells[0].degree, cells[0].alpha
    dims = np.array([cell.dim for cell in cells], float)
    whole = [int(dim) for dim in dims]
    features = np.array([math.comb(dim, k) for dim in whole], float)
    for name, values, colour, dash in (
        ("d/α⁸, Corollary 7.1", [corollary71_samples(dim, alpha) for dim in whole], "green", None),
        ("C(d, k) characters", features, "grey", "dash"),
        ("the argument, by the norms", [_by_the_norms(dim, k, alpha) for dim in whole], "blue", None),
        ("Theorem 2, constant 1", [theorem2_samples(dim, k) for dim in whole], "vermillion", None),
        ("Lemma E.3", [memorising_samples(dim, k) for dim in whole], "purple", None),
    ):
        line(plot, dims, np.asarray(values, float), name=name, colour=colour, dash=dash)
    measured = [(cell.dim, n) for cell in cells for n in cell.samples]
    points(plot, [d for d, _ in measured], [n for _, n in measured], name="measured here", colour="grey")
    style(plot, x="dimension d", y="samples N", log_x=True, log_y=True)
    caption = (
        f"k = {k}, α = {alpha:g}. The argument by the norms: $N = \\alpha^2 \\binom{{d}}{{k}}/4(1 + \\alpha^2)$, where "
        r"$2\lambda\|u'\| = \alpha$ if $\Phi^T\Phi = \Lambda I$. Below one sample nothing is promised."
    )
    return Figure("How many samples each statement allows", caption, plot)


def _norms(held: list[tuple[Any, Any]]) -> Figure:
    plot, most = new_plot(), 0
    shades = dict(zip([cell.dim for cell, _ in reversed(held)], COLOURS, strict=False))
    for cell, data in reversed(held):
        ratio = 2 * np.sqrt(data["quadratic"].max("output").values) / cell.alpha
        known = np.isfinite(ratio).all(axis=0)
        sizes = np.array(cell.samples, float)[known]
        most = max(most, int(max(cell.samples)))
        band = (ratio[:, known].min(axis=0), ratio[:, known].max(axis=0))
        line(
            plot,
            sizes,
            ratio[:, known].mean(axis=0),
            name=f"d = {cell.dim}",
            colour=shades[cell.dim],
            band=band,
            symbol="circle",
        )  # where one N alone has a u′, a line has nothing to show
    line(plot, np.array([3.0, most]), np.ones(2), name="α/2λ, what learning needs", colour="grey", dash="dash")
    style(plot, x="samples N", y="2λ‖u′‖/α, the largest output", log_x=True, log_y=True)
    caption = (
        "Below the dashed line what memorising takes is less than what learning αG(F) to α²/4 needs, and no kernel of "
        f"⟨x, x'⟩ learns it. Mean of {held[0][0].seeds} draws, the band from the smallest to the largest. A line ends "
        "where two samples are equal or opposite, or N exceeds the number of characters: then no u′ has all labels."
    )
    return Figure("‖u′‖ available against ‖u‖ needed (Lemmas E.3 and E.2)", caption, plot)


def _conditioning(held: list[tuple[Any, Any]]) -> Figure:
    plot, most = new_plot(), 0
    for (cell, data), colour in zip(reversed(held), COLOURS, strict=False):
        smallest, sizes = data["smallest"].values, np.array(cell.samples, float)
        band = (smallest.min(axis=0), smallest.max(axis=0))
        line(plot, sizes, smallest.mean(axis=0), name=f"d = {cell.dim}", colour=colour, band=band)
        most = max(most, int(sizes.max()))
    line(plot, np.array([3.0, most]), np.full(2, 0.5), name="½, Lemma E.3", colour="grey", dash="dash")
    style(plot, x="samples N", y="λ_min(ΦᵀΦ)/Λ", log_x=True)
    caption = f"Characters of size k at N random corners, {held[0][0].seeds} draws: mean, smallest and largest."
    return Figure("How far the characters are from dependent", caption, plot)
