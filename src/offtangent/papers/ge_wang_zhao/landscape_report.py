"""What is said of the landscape: claims."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.papers.ge_wang_zhao import _theorem4_report, landscape_figures
from offtangent.papers.ge_wang_zhao._diagram import LEVEL
from offtangent.papers.ge_wang_zhao._minima import COUNTS, CURVATURE, GRADIENT, ZERO
from offtangent.report import Figure
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples
from offtangent.theory.ge_wang_zhao.descent import theorem4

ROUNDING = 1e-9


def claims(smooth: Results, curved: Results, literal: Results, fresh: Results, starts: Results) -> list[Claim]:
    found: list[Claim] = []
    if len(starts):
        found += _of_starts(starts)
    if len(curved):
        found += _of_curvature(curved)
    found += _theorem4_report.claims(literal, fresh)
    if len(smooth):
        found += _of_smoothness(smooth)
    return found


def figures(smooth: Results, curved: Results, literal: Results, starts: Results) -> list[Figure]:
    return landscape_figures.figures(smooth, curved, literal, starts, forms=forms)


def forms(dim: int, width: int) -> int:
    """The dimension of the forms xᵀWAWᵀx with r neurons: dr, less that of the W that have the same one, for r ≤ d.

    >>> [forms(6, width) for width in (2, 4, 6, 14)]
    [11, 18, 21, 21]
    """
    return dim * width - math.comb(width, 2) if width <= dim else most_samples(dim)


def _sets(count: int) -> str:
    return f"{count} data {'set' if count == 1 else 'sets'}"


def _of_smoothness(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    where = (
        f"n = {', '.join(map(str, cell.samples))}, d = {cell.dim}, r = {least_width(cell.dim)}, "
        f"Γ = {', '.join(f'{ball:g}' for ball in results.values('ball'))}, {_sets(cell.seeds)}"
    )

    def largest(name: str, samples: tuple[int, ...] = cell.samples) -> float:
        return max(float(data[name].sel(n=list(samples)).max()) for _, data in results)

    found = []
    for name, what, constant in (
        ("gradient", "∇g", "3B⁴Γ + YB² + γ"),
        ("hessian", "∇²g", "6B⁴√Γ"),
    ):
        found.append(
            Claim.at_most(
                largest(f"search_{name}"), 1 + ROUNDING, source="Lemma 5",
                statement=f"{what} changes no faster than {constant} in the ball ‖W‖² ≤ Γ",
                measured=f"the fastest that ascent from {cell.starts} starts finds, over the constant, {where}",
                note=f"{cell.pairs} random pairs of points: {largest(f'pairs_{name}'):.3g} at most. With "
                f"n = {cell.samples[-1]} samples ascent finds {largest(f'search_{name}', cell.samples[-1:]):.3g}: the "
                "constant is that of samples which are all the same.",
            )
        )  # fmt: skip
    if cell.samples[0] == 1:
        least = min(
            float(data[f"search_{name}"].sel(n=1).min()) for _, data in results for name in ("gradient", "hessian")
        )
        found.append(
            Claim.at_least(
                least, 1 - ROUNDING, source="Lemma 5, sharp",
                statement="one sample attains both constants, where W is one neuron along it",
                measured=f"the fastest that ascent finds over the constant, n = 1, the smallest, {where}",
                note="For any samples ∇²g has the Lipschitz constant 6√Γ max_u n⁻¹Σ(x_jᵀu)⁴ over unit vectors u.",
            )
        )  # fmt: skip
    return found


def _of_curvature(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    gaps = {width: np.concatenate([data["gap"].sel(width=width).values.ravel() for _, data in results])
            for width in cell.widths}  # fmt: skip
    zero = max(float(np.abs(data["zero"]).max()) for _, data in results)
    where = f"d = {cell.dim}, n = {cell.samples}, {cell.points - 1} points W on each of {_sets(cell.seeds)}"
    wide, square = [width for width in cell.widths if width >= least_width(cell.dim)], 2 * cell.dim
    told = ", ".join(f"{gaps[width].mean():.2g} at r = {width}" for width in cell.widths if width < min(wide))
    note = f"Narrower networks have a gap, on average {told}: neither half of a random W has a null vector there."
    if square in gaps:
        note += f" With r = 2d it is up to {gaps[square].max():.2g}, so that the lemma's width cannot be 2d."
    return [
        Claim.at_most(
            max(float(np.abs(gaps[width]).max()) for width in wide),
            ROUNDING,
            source="Lemma 3",
            statement="λ_min(∇²f) = −‖M‖ for r ≥ 2d + 2",
            measured=f"largest |λ_min + ‖M‖|/‖M‖, whole Hessians, r = {', '.join(map(str, wide))}, {where}",
            note=note,
            identity=True,
        ),
        Claim.at_most(
            zero,
            ROUNDING,
            source="Lemma 3, at W = 0",
            statement="λ_min(∇²f) = −‖M‖ at W = 0 for every width",
            measured=f"largest |λ_min + ‖M‖|/‖M‖, r = {', '.join(map(str, cell.widths))}, {_sets(cell.seeds)}",
            identity=True,
        ),
    ]


def _of_starts(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    dim, most = cell.dim, most_samples(cell.dim)
    n, width = (np.array(values) for values in (cell.samples, cell.widths))
    counted = np.array([forms(dim, int(one)) for one in width])
    table = {name: np.stack([data[name].values for _, data in results]) for name in COUNTS}
    share = table["reached"].mean(axis=0) / cell.starts
    fits, wide = (n <= most)[:, None] & (width > 0), (n > 0)[:, None] & (width >= least_width(dim))
    where = f"d = {dim}, {cell.starts} starts for each n and r on {_sets(len(results))}"
    found = []
    if (fits & wide).any():
        inside = fits & wide
        runs = int(inside.sum()) * cell.starts * len(results)
        found += _wide(table, inside, share, where, cell, runs)
    return found + _narrow(table, n, width, counted, share, where, cell)


def _wide(
    table: dict[str, np.ndarray], inside: np.ndarray, share: np.ndarray, where: str, cell: Any, runs: int
) -> list[Claim]:
    """Where the lemma speaks: its bound, where the starts end, and what plain descent does of it."""
    most, n = most_samples(cell.dim), np.array(cell.samples)
    last = int(n[inside.any(axis=1)].max())
    sigma = float(table["smallest"][:, inside].min())
    narrowest = min(width for width in cell.widths if width >= least_width(cell.dim))
    asked = (
        Hypothesis("neurons r", narrowest, "≥", least_width(cell.dim), "Lemma 1"),
        Hypothesis("samples n", last, "≤", most, "Theorem 1"),
        Hypothesis("proven σ_min[x_j ⊗ x_j]", sigma, ">", 0, "Lemma 1"),
    )
    return [
        Claim.at_most(
            float(np.maximum(table["ratio_before"], table["ratio"])[:, inside].max()),
            1.0,
            source="Lemma 1",
            statement="f ≤ ndε²/4σ² where λ_min(∇²f) ≥ −ε, for r ≥ 2d + 2",
            measured=f"largest f over the bound, λ_min of the whole Hessian and the proven σ, after {cell.steps} "
            f"steps of gradient descent and after {cell.polishing} of Levenberg and Marquardt's, {where}",
            note="True of every W, by Lemma 3 and Cauchy and Schwarz's inequality.",
            hypotheses=asked,
            identity=True,
        ),
        Claim.at_least(
            float(share[inside].mean()),
            1.0,
            source="Theorem 1, landscape",
            statement="every local minimum is a global one: with r ≥ 2d + 2 neurons and n ≤ C(d + 1, 2) samples every "
            "start, of whatever size, ends at f = 0, by gradient descent and then Levenberg and Marquardt's steps",
            measured=f"share of starts with f ≤ {ZERO:g} f(0) after {cell.steps} steps of the one and {cell.polishing} "
            f"of the other, {where}",
            note=f"Of {runs} last points {int(table['certified'][:, inside].sum())} have ‖∇f‖ ≤ {GRADIENT:g} and "
            f"λ_min ≥ −{CURVATURE:g}, and {int(table['stuck'][:, inside].sum())} of these f > {ZERO:g} f(0) "
            "and above the lemma's bound. The theorem's own algorithm is in `ge_wang_zhao/phases`.",
            hypotheses=asked,
        ),
        _alone(table, inside, where, cell, asked),
    ]


def _alone(
    table: dict[str, np.ndarray], inside: np.ndarray, where: str, cell: Any, asked: tuple[Hypothesis, ...]
) -> Claim:
    """What gradient descent does without Levenberg and Marquardt's steps after it."""
    n = np.array(cell.samples)
    slow = {
        int(one): table["descended"][:, i][:, inside[i]].mean() / cell.starts
        for i, one in enumerate(n)
        if inside[i].any()
    }
    last = max(slow)
    sigma = float(table["smallest"][:, inside].min())
    narrowest = min(width for width in cell.widths if width >= least_width(cell.dim))
    plain = "gradient descent without perturbations"
    promised = (
        theorem4(
            samples=last,
            dim=cell.dim,
            width=narrowest,
            smallest=sigma,
            radius=1,
            label=1,
            start=1 / 12,
            epsilon=LEVEL / 12,
        ).iterations
        if sigma > 0
        else math.inf
    )
    return Claim.at_least(
        float(np.mean(list(slow.values()))),
        1.0,
        source="Theorem 1, descent alone",
        statement=f"gradient descent alone fits n ≤ C(d + 1, 2) samples from every start: f ≤ {LEVEL:g} f(0)",
        measured=f"share of starts after {cell.steps} steps, {where}",
        note=f"By n: {', '.join(f'{count}: {_percent(part)}' for count, part in slow.items())}. At n = {last} the "
        f"least σ_min is {sigma:.2g}, and Theorem 4 has {promised:.1g} steps there, its constant as one.",
        hypotheses=(*asked, Hypothesis("algorithm", plain, "=", "perturbed gradient descent", "Theorem 1")),
    )


def _narrow(
    table: dict[str, np.ndarray],
    n: np.ndarray,
    width: np.ndarray,
    counted: np.ndarray,
    share: np.ndarray,
    where: str,
    cell: Any,
) -> list[Claim]:
    """Where nothing is promised: as found."""
    most, slim = most_samples(cell.dim), width < least_width(cell.dim)
    fewer, equal = (n[:, None] < counted) & slim, (n[:, None] == counted) & slim
    beyond = (n[:, None] > counted) & (n <= most)[:, None] & slim
    stuck, reached = (table[name][:, equal] for name in ("stuck", "reached"))
    found = []
    widest = int(width[slim].max()) if slim.any() else 0
    asked = (Hypothesis("neurons r", widest, "≥", least_width(cell.dim), "Lemma 1"),)
    if fewer.any():
        found.append(
            Claim.at_least(
                float(share[fewer].mean()), 1.0, source="Lemma 1, narrower", hypotheses=asked,
                statement="narrower networks reach f = 0 from every start as well, where n is less than the dimension "
                "of their quadratic forms, dr − r(r − 1)/2 for r ≤ d",
                measured=f"share of starts with f ≤ {ZERO:g} f(0), r = {_list(width[slim])}, {where}",
                note=f"Where n equals that dimension: {_percent(share[equal].mean())}; {int(stuck.sum())} last points "
                f"there are second-order stationary with f > 0, {int(stuck[reached > 0].sum())} of them on samples on "
                "which other starts reach 0."
                if stuck.any() else "",
            )
        )  # fmt: skip
    if beyond.any():
        caught, certified = (int(table[name][:, beyond].sum()) for name in ("stuck", "certified"))
        found.append(
            Claim.at_most(
                float(table["ratio"][:, beyond].max()), 1.0, source="Lemma 1, too narrow", hypotheses=asked,
                statement="f ≤ ndε²/4σ² where λ_min(∇²f) ≥ −ε, where n is more than that dimension",
                measured=f"largest f over the bound at the last points, {where}",
                note=f"{caught} of {certified} second-order stationary points have f > {ZERO:g} f(0).",
            )
        )  # fmt: skip
    return found + _beside(table, n, width, share, where, cell)


def _beside(
    table: dict[str, np.ndarray], n: np.ndarray, width: np.ndarray, share: np.ndarray, where: str, cell: Any
) -> list[Claim]:
    """At r = 2d, and with more samples than quadratic forms: as found."""
    most, found = most_samples(cell.dim), list[Claim]()
    square = width == 2 * cell.dim
    if square.any():
        inside = (n <= most)[:, None] & square
        found.append(
            Claim.at_most(
                float(table["stuck"][:, inside].sum()), 0, source="Lemma 1, r = 2d",
                hypotheses=(Hypothesis("neurons r", 2 * cell.dim, "≥", least_width(cell.dim), "Lemma 1"),),
                statement="with r = 2d no second-order stationary point has f > 0",
                measured=f"how many have, of {int(table['certified'][:, inside].sum())}, n ≤ C(d + 1, 2), {where}",
                note="Exactly so: either a half of W is invertible, and ∇f = MWA = 0 gives M = 0; or both have null "
                "vectors, and Lemma 3's directions exist. It is the bound for λ_min ≥ −ε that needs 2d + 2.",
            )
        )  # fmt: skip
    full = (n > most)[:, None] & (width >= least_width(cell.dim))
    if full.any():
        found.append(
            Claim.at_least(
                float(share[full].mean()), 1.0, source="Lemma 1, n > C(d + 1, 2)",
                hypotheses=(Hypothesis("samples n", int(n.max()), "≤", most, "Theorem 1"),),
                statement="with more samples than quadratic forms every start ends at the least f of any of them",
                measured=f"share of starts within {ZERO:g} f(0) of it, n = {_list(n[n > most])}, r ≥ 2d + 2, {where}",
            )
        )  # fmt: skip
    return found


def _list(values: np.ndarray) -> str:
    return ", ".join(str(int(one)) for one in values)


def _percent(share: float) -> str:
    return f"{100 * float(share):.0f} %"
