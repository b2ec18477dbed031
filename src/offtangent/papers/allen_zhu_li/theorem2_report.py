"""What the kernels' errors and norms say about Theorem 2, its lemmas and its argument."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, mean_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.kernel_limits import (
    corollary71_samples,
    error_floor,
    least_alpha,
    memorising_bound,
    memorising_samples,
    theorem2,
    theorem2_samples,
)

EXACT = 1e-8  # what rounding may do to an identity in float64, with β up to 10⁵
COLOURS = ("blue", "orange", "green", "purple", "sky", "vermillion")
LOOKED_AT = (50, 150, 400)  # samples at which λ_min(ΦᵀΦ) gets a row of its own; else the largest below
SHOWN = 1e-3  # of α²: smaller errors are drawn here


def _of(results: Results, kind: str) -> list[tuple[Any, Any]]:
    """Cells by the name of their class, which this module does not import."""
    return [(cell, found) for cell, found in results if type(cell).__name__ == kind]


def _held(results: Results, dim: int) -> Any:
    """The memorising solutions in one dimension, or None while they are not computed."""
    return next((found for cell, found in _of(results, "Memorised") if cell.dim == dim), None)


def claims(results: Results) -> list[Claim]:
    return [
        *_enumerated(results),
        *_lemma_e3(results),
        *_argument(results),
        *_theorem(results),
        *_printed(results),
    ]


def _enumerated(results: Results) -> Iterator[Claim]:
    found = _of(results, "Enumerated")
    if not found:
        return
    where = ", ".join(f"d = {cell.dim}, N = {' and '.join(map(str, cell.samples))}" for cell, _ in found)
    worst = max(float(max(data["norm"].max(), data["function"].max())) for _, data in found)
    yield Claim.at_most(
        worst, EXACT, source="Proposition E.1",
        statement="Σ_j K(x, x_j)β_j = Σ_S λ_S u_S χ_S(x) and ‖β‖_K² = ‖u‖_F²",
        measured=f"largest difference of the functions at all corners and, relatively, of the norms; six kernels, "
        f"three λ, {where}",
    )  # fmt: skip
    ratios = [_needed(cell, data) for cell, data in found]
    small = np.concatenate(ratios)
    statement = "an output with an error of at most α²/4 has ‖u_i‖ ≥ α/2|λ_S|"
    if not small.size:
        why = "No regression had so small an error."
        yield Claim.not_run(reason="size", source="Lemma E.2", statement=statement, profile="laptop", why=why)
    else:
        yield Claim.at_least(
            float(small.min()), 1.0, source="Lemma E.2", statement=statement,
            measured=f"smallest 2|λ_S|‖u_i‖/α over the {small.size} outputs with such an error, of "
            f"{sum(data['error'].size for _, data in found)}; {where}",
        )  # fmt: skip
    yield Claim.at_most(
        max(float(data["polarised"]) for _, data in found), EXACT, source="Corollary 7.1, Section E.4",
        statement="Corollary 7.1's F and G, the latter 2^k ridges of degree k by polarisation, give k^(−1/2) H of "
        "Theorem 2",
        measured=f"largest difference at all corners, times √k; {where}",
    )  # fmt: skip


def _needed(cell: Any, data: Any) -> Float[np.ndarray, " found"]:
    """2λ‖u‖/α of the outputs that have learnt the product to α²/4."""
    ratios = 2 * data["coefficient"].values[:, None, None, None] * data["size"].values / cell.alpha
    return ratios[data["error"].values <= cell.alpha**2 / 4]


def _lemma_e3(results: Results) -> Iterator[Claim]:
    held = _of(results, "Memorised")
    if not held:
        return
    seeds = f"{held[0][0].seeds} draws for each of d = {', '.join(str(cell.dim) for cell, _ in held)}"
    yield Claim.at_most(
        max(float(data["misfit"].max()) for _, data in held), EXACT, source="Lemma E.3",
        statement="the memorising u′ has φ(u′, x_j) = y_j at every sample, with characters of size k alone",
        measured=f"largest |φ(u′, x_j) − y_j| where ΦᵀΦ can be inverted, {seeds}",
    )  # fmt: skip
    ratios = []
    for cell, data in held:
        good = data["smallest"].values >= 0.5
        bounds = np.vectorize(lambda y, c=cell: memorising_bound(y, c.dim, c.degree, 1.0))(data["labels"].values)
        ratios.append((data["quadratic"].values / bounds)[good].ravel())
    yield Claim.at_most(
        float(np.concatenate(ratios).max()), 1.0, source="Lemma E.3",
        statement="where ΦᵀΦ ⪰ Λ/2, ‖u′‖² ≤ 400‖y‖²/((d/5)^k λ_o²)",
        measured=f"largest ratio of the two sides, {seeds}",
        note="Where ΦᵀΦ ⪰ Λ/2 it follows by arithmetic, so that it is our u′ that is tested. The bound keeps 0.5 % of "
        "the characters, and (d/5)^k for C(d, k): it is far from tight.",
    )  # fmt: skip
    statement = "λ_min(ΦᵀΦ) ≥ Λ/2 with high probability"
    for cell, data in _of(results, "Inside"):
        yield Claim.at_least(
            float(data["smallest"].min()), 0.5, source="Lemma E.3", statement=f"{statement}: d = {cell.dim}",
            measured=f"smallest of {cell.seeds} draws, N = {cell.samples}",
            note=f"Its limit on N is {memorising_samples(cell.dim, cell.degree):.1f} here.",
        )  # fmt: skip
    for cell, data in held:
        for n in [n for n in cell.samples if n in LOOKED_AT] or [n for n in cell.samples if n <= max(LOOKED_AT)][-1:]:
            smallest = data["smallest"].sel(n=n).values
            limit = memorising_samples(cell.dim, cell.degree)
            yield Claim.at_least(
                float(smallest.min()), 0.5, source="Lemma E.3", inside=n <= limit,
                statement=f"{statement}: d = {cell.dim}, N = {n}",
                measured=f"smallest of {cell.seeds} draws; their median is {np.median(smallest):.2f}",
                note=f"Its limit on N is {limit:.2g} here.",
            )  # fmt: skip


def _argument(results: Results) -> Iterator[Claim]:
    regressions = _of(results, "Regression")
    if not regressions:
        return
    cells = [cell for cell, _ in regressions]
    where = f"{len({cell.kernel for cell in cells})} kernels, all N and λ, {cells[0].seeds} seeds"
    yield Claim.at_least(
        min(float(data["slack"].min()) for _, data in regressions), -EXACT, source="Lemma E.2",
        statement="every output errs by (α − |λ_S|‖u_i‖)₊² or more",
        measured=f"smallest excess over it, in units of α², {where}, d = {_dims(cells)}",
    )  # fmt: skip
    ratios, floors, covered = [], [], []
    for cell, data in regressions:
        held = _held(results, cell.dim)
        if held is None:
            continue
        quadratic = held["quadratic"].isel(seed=slice(cell.seeds)).sel(n=list(cell.samples)).values
        ratios.append((float(data["coefficient"]) ** 2 * data["largest"].values / quadratic).ravel())
        applies = (2 * np.sqrt(quadratic) < cell.alpha).all(axis=2)
        floors.append((data["best"].values / cell.alpha**2)[applies])
        covered += [(cell.dim, n) for n, all_seeds in zip(cell.samples, applies.all(axis=0), strict=True) if all_seeds]
    if not ratios:
        return
    yield Claim.at_most(
        float(np.sqrt(np.concatenate(ratios).max())), 1.0 + EXACT, source="Theorem 2, its proof",
        statement="a solution of (3.1) is no larger than the memorising one, ‖u_i‖ ≤ ‖u′_i‖",
        measured=f"largest ‖u_i‖/‖u′_i‖, {where}",
    )  # fmt: skip
    lowest = np.concatenate(floors)
    degree = cells[0].degree
    if lowest.size:
        yield Claim.at_least(
            float(lowest.min()), degree / 4, strict=True, source="Theorem 2, its proof",
            statement="where 2λ‖u′_i‖ < α for all outputs, every kernel errs by more than kα²/4, whatever λ",
            measured=f"smallest error/α² over λ, of {lowest.size} regressions; all seeds of {_points(covered)}",
            note="Neither N nor α is asked to be within the theorem's limits: the norms themselves are compared.",
        )  # fmt: skip


def _dims(cells: list[Any]) -> str:
    return ", ".join(map(str, sorted({cell.dim for cell in cells})))


def _points(covered: list[tuple[int, int]]) -> str:
    """The largest N of each d."""
    largest = {dim: max(n for d, n in covered if d == dim) for dim in sorted({dim for dim, _ in covered})}
    return ", ".join(f"d = {dim} up to N = {n}" for dim, n in largest.items())


def _theorem(results: Results) -> Iterator[Claim]:
    for cell, data in _of(results, "Inside"):
        means = data["error"].mean("seed")
        at = np.unravel_index(int(means.values.argmin()), means.shape)
        yield Claim.at_least(
            _scaled(data["error"].values[:, at[0], at[1]], cell.alpha), 0.25, strict=True, source="Theorem 2",
            statement=f"d = {cell.dim}, N = {cell.samples}: no kernel gets below α²/4",
            measured=f"smallest error/α² of six kernels and three λ ({data['kernel'].values[at[0]]}), on a test set, "
            f"{cell.seeds} seeds",
            inside=theorem2(cell.dim, cell.degree, cell.samples, cell.alpha).explicit,
            note="Inside with the constants of its proof. With so few samples nothing at all is learnt: "
            "E‖H‖² = k(1 + α²).",
        )  # fmt: skip
    regressions = _of(results, "Regression")
    for dim in sorted({cell.dim for cell, _ in regressions}):
        here = [(cell, data) for cell, data in regressions if cell.dim == dim]
        for n in here[0][0].samples:
            yield _point(here, dim, n)


def _point(here: list[tuple[Any, Any]], dim: int, n: int) -> Claim:
    """One d and N: the kernel with the smallest mean error."""
    cell, data = min(here, key=lambda pair: float(pair[1]["error"].sum("output").sel(n=n).mean()))
    errors, alpha = data["error"].sel(n=n), cell.alpha
    hindsight = min(float(one["best"].sel(n=n).mean()) for _, one in here) / alpha**2
    inside = theorem2(dim, cell.degree, n, alpha).applies
    return Claim.at_least(
        _scaled(errors.sum("output").values, alpha), 0.25, strict=True, source="Theorem 2",
        statement=f"d = {dim}, N = {n}: no kernel gets below α²/4",
        measured=f"error/α² of the best of {len(here)} kernels ({cell.kernel}), all outputs, {cell.seeds} seeds",
        inside=inside,
        note=f"{'N ≤' if inside else 'The limit on N is'} d^(k/2)/log^k d = {theorem2_samples(dim, cell.degree):.1f}"
        f", the constant taken as 1. With λ chosen in hindsight {hindsight:.3g}; nothing of αG(F) learnt is "
        f"{cell.degree}. The smallest error of one output is {float(errors.mean('seed').min()) / alpha**2:.3g} α²."
        + (" So few samples teach nothing; the limit on α is taken with a constant of 1 too." if inside else ""),
    )  # fmt: skip


def _scaled(errors: np.ndarray, alpha: float) -> Interval:
    return mean_interval(np.asarray(errors) / alpha**2)


def _printed(results: Results) -> Iterator[Claim]:
    """The last step of the proof, with α on either side of 40/(d/5)^{k/4}: arithmetic."""
    for cell, _ in _of(results, "Inside")[:1]:
        n, alpha = int(memorising_samples(cell.dim, cell.degree)), least_alpha(cell.dim, cell.degree)
        bound = math.sqrt(memorising_bound(4 * cell.degree * n, cell.dim, cell.degree, 1.0))  # |y| ≤ 2
        source = "Theorem 2, its proof"
        words = f"2λ_S/α times the bound on ‖u′‖, d = {cell.dim}, N = {n}"
        printed = "the bound on ‖u′‖ is below α/2|λ_S| for every α ≤ 40/(d/5)^(k/4)"
        yield Claim.at_most(
            2 * bound / (1e-6 * alpha), 1.0, strict=True, source=source, misprint=True, statement=printed,
            measured=f"{words}, α a millionth of that", note="As printed in Section E.1; ≥ is meant.",
        )  # fmt: skip
        yield Claim.at_most(
            2 * bound / alpha, 1.0, strict=True, source=source, statement=printed.replace("≤", "≥"),
            measured=f"{words}, α = {alpha:g}",
        )  # fmt: skip


def figures(results: Results) -> list[Figure]:
    regressions = _of(results, "Regression")
    dims = sorted({cell.dim for cell, _ in regressions})
    found = [_errors([pair for pair in regressions if pair[0].dim == dim], _held(results, dim)) for dim in dims]
    held = _of(results, "Memorised")
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
        line(plot, sizes, ratio[:, known].mean(axis=0), name=f"d = {cell.dim}", colour=shades[cell.dim], band=band,
             symbol="circle")  # where one N alone has a u′, a line has nothing to show  # fmt: skip
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
