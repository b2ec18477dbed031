"""What is said of the landscape: claims."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import fraction_interval
from offtangent.papers.ge_wang_zhao import landscape_figures
from offtangent.papers.ge_wang_zhao._diagram import LEVEL
from offtangent.papers.ge_wang_zhao._minima import COUNTS, CURVATURE, GRADIENT, ZERO
from offtangent.report import Figure
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples

ROUNDING = 1e-9
DELTA = 0.1  # of Theorem 4
ENOUGH = 36  # runs without a failure from which on the interval of their share lies above 1 − δ


def claims(smooth: Results, curved: Results, literal: Results, starts: Results) -> list[Claim]:
    found: list[Claim] = []
    if len(starts):
        found += _of_starts(starts)
    if len(curved):
        found += _of_curvature(curved)
    if len(proof := literal.where(printed=False)):
        found += _of_theorem_4(proof)
    if len(printed := literal.where(printed=True)):
        found.append(_as_printed(printed))
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
    return [
        Claim.at_most(
            max(float(np.abs(gaps[width]).max()) for width in wide), ROUNDING, source="Lemma 3",
            statement="λ_min(∇²f) = −‖M‖ for r ≥ 2d + 2",
            measured=f"largest |λ_min + ‖M‖|/‖M‖, whole Hessians, r = {', '.join(map(str, wide))}, {where}",
        ),
        Claim.at_least(
            float(gaps[square].max()), ROUNDING, strict=True, source="Lemma 3, its width",
            statement="with r = 2d neurons there are W where λ_min(∇²f) > −‖M‖",
            measured=f"largest (λ_min + ‖M‖)/‖M‖, r = {square}, {where}",
            note=f"On average {told}: neither half of a random W has a null vector there.",
        ),
        Claim.at_most(
            zero, ROUNDING, source="Lemma 3, at W = 0", statement="λ_min(∇²f) = −‖M‖ at W = 0 for every width",
            measured=f"largest |λ_min + ‖M‖|/‖M‖, r = {', '.join(map(str, cell.widths))}, {_sets(cell.seeds)}",
        ),
    ]  # fmt: skip


def _of_theorem_4(results: Results) -> list[Claim]:
    toys = "; ".join(f"d = {cell.dim}, n = {cell.samples}: {cell.seeds}" for cell, _ in results)
    where = f"every step of the runs ({toys})"

    def largest(size: Any) -> float:
        return max(float(np.max(size(data))) for _, data in results)

    told = ", ".join(f"{float(data['wait']):.0f}" for _, data in results)
    steps = ", ".join(f"{float(data['steps'].max()):.0f}" for _, data in results)
    found = [
        Claim.at_most(
            largest(lambda data: data["rise"] / (1.5 * data["slope"] ** 2)), 1.0, source="Theorem 4, proof",
            statement="g(W_t) ≤ g(W_ins) + 3cε′²/2χ⁴ at every step of Algorithm 1 with the theorem's settings",
            measured=f"largest (g(W_t) − g(0))/(3cε′²/2χ⁴), {where}",
            note=f"c = 1, δ = {DELTA:g}, ε = f(0)/4; t_thres is {told}.",
        ),
        Claim.at_most(
            largest(lambda data: data["rise"] * data["smoothness"] / (1.5 * data["slope"] ** 2)), 1.0,
            source="Theorem 4, proof, property 2",
            statement="g(W_t) ≤ g(W_ins) + 3cε′²/2χ⁴ℓ also while it is perturbed",
            measured=f"largest (g(W_t) − g(0))/(3cε′²/2χ⁴ℓ), {where}",
        ),
        Claim.at_most(
            largest(lambda data: data["excess"] / data["start"]), 1e-14, source="Theorem 4, proof, eq. (2)",
            statement="g(W_{t+1}) ≤ g(W_t) − (η/2)‖∇g(W_t)‖² for each step of gradient descent, to rounding",
            measured=f"largest excess over f(0), {where}",
        ),
        Claim.at_most(
            largest(lambda data: data["length"] * data["gamma"] / (2 * (data["start"] + 1))), 1.0,
            source="Theorem 4, proof", statement="‖W_t‖² ≤ 2(f(0) + 1)/γ: it never leaves the ball of Lemma 5",
            measured=f"largest ratio of the two sides, {where}",
        ),
        Claim.at_most(
            largest(lambda data: data["steps"].where(data["returned"], np.inf) / data["iterations"]), 1.0,
            source="Theorem 4, iterations", statement="it ends within the number of iterations that the theorem states",
            measured=f"largest number of steps over the bound, its constant as one, {toys}", note=f"Steps: {steps}.",
        ),
    ]  # fmt: skip
    return found + _returned(results, toys)


def _returned(results: Results, toys: str) -> list[Claim]:
    good, low, total = 0, 0, 0
    for _, data in results:
        returned = data["returned"].values.astype(bool)
        slope, curve = data["gradient"] <= data["accuracy"], data["lowest"] >= -data["gamma"]  # √(ρε′) = γ
        good += int((returned & slope.values & curve.values).sum())
        low += int((returned & (data["last"] <= data["epsilon"]).values).sum())
        total += len(returned)
    told = ", ".join(f"{float((data['last'] / data['epsilon']).max()):.2g}" for _, data in results)
    found = []
    for source, count, statement, note in (
        ("Theorem 3", good, "the point returned has ‖∇g‖ ≤ ε′ and λ_min(∇²g) ≥ −√(ρε′), but with probability δ", ""),
        ("Theorem 4", low, "the point returned has f ≤ ε, but with probability δ",
         f"Largest f/ε of each toy: {told}. Called with ε′, as in the proof, not with ε, as in the statement."),
    ):  # fmt: skip
        if total < ENOUGH:
            why = f"{count} of {total} runs do; {ENOUGH} are needed for an interval above {1 - DELTA:g}."
            found.append(Claim.not_run(reason="size", source=source, statement=statement, profile="laptop", why=why))
        else:
            found.append(
                Claim.at_least(
                    fraction_interval(count, total), 1 - DELTA, source=source, statement=statement, note=note,
                    measured=f"fraction of {total} runs with their own perturbations, 95 % interval, {toys}",
                )
            )  # fmt: skip
    return found


def _as_printed(results: Results) -> Claim:
    toys = "; ".join(f"d = {cell.dim}, n = {cell.samples}: {cell.seeds}" for cell, _ in results)
    told = ", ".join(f"{float((data['last'] / data['epsilon']).max()):.3g}" for _, data in results)
    least = ", ".join(f"{float(data['allowed']):.2g}" for _, data in results)
    return Claim.at_most(
        max(float((data["last"] / data["epsilon"]).max()) for _, data in results), 1.0, misprint=True,
        source="Theorem 4, as printed", statement="called with ε itself, Algorithm 1 returns a point with f ≤ ε",
        measured=f"largest f/ε, ε = 0.9 f(0), runs with their own perturbations ({toys})",
        note=f"For each: {told}. At W = 0, where f > ε, λ_min(∇²g) is above −√(ρε): it may return that point, "
        f"which is so from ε = {least} times f(0) on. The proof calls it with ε′, for which √(ρε′) = γ.",
    )  # fmt: skip


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
        found += [
            Claim.at_most(
                float(np.maximum(table["ratio_before"], table["ratio"])[:, inside].max()), 1.0, source="Lemma 1",
                statement="f ≤ ndε²/4σ² where λ_min(∇²f) ≥ −ε, for r ≥ 2d + 2",
                measured=f"largest f over the bound, λ_min of the whole Hessian and the proven σ, after {cell.steps} "
                f"steps of gradient descent and after {cell.polishing} of Levenberg and Marquardt's, {where}",
                note=f"Of {runs} last points {int(table['certified'][:, inside].sum())} have ‖∇f‖ ≤ {GRADIENT:g} and "
                f"λ_min ≥ −{CURVATURE:g}, and {int(table['stuck'][:, inside].sum())} of these f > {ZERO:g} f(0) "
                "and above the lemma's bound.",
            ),
            Claim.at_least(
                float(share[inside].mean()), 1.0, source="Theorem 1",
                statement="with r ≥ 2d + 2 neurons and n ≤ C(d + 1, 2) samples no start ends in a bad minimum: f = 0",
                measured=f"share of starts with f ≤ {ZERO:g} f(0) in the end, {where}",
                note=f"Gradient descent alone is below {LEVEL:g} f(0) after {cell.steps} steps in "
                f"{_percent(table['descended'][:, inside].mean() / cell.starts)}; where n is near C(d + 1, 2), σ is "
                f"small ({table['smallest'][:, n <= most].min():.2g} at n = {n[n <= most].max()}) and it is slow.",
            ),
        ]  # fmt: skip
    return found + _narrow(table, n, width, counted, share, where, cell)


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
    if fewer.any():
        found.append(
            Claim.at_least(
                float(share[fewer].mean()), 1.0, source="Lemma 1, narrower", inside=False,
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
                float(table["ratio"][:, beyond].max()), 1.0, source="Lemma 1, too narrow", inside=False,
                statement="f ≤ ndε²/4σ² where λ_min(∇²f) ≥ −ε, where n is more than that dimension",
                measured=f"largest f over the bound at the last points, {where}",
                note=f"{caught} of {certified} second-order stationary points have f > {ZERO:g} f(0).",
            )
        )  # fmt: skip
    square = width == 2 * cell.dim
    if square.any():
        inside = (n <= most)[:, None] & square
        found.append(
            Claim.at_most(
                float(table["stuck"][:, inside].sum()), 0, source="Lemma 1, r = 2d", inside=False,
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
                float(share[full].mean()), 1.0, source="Lemma 1, n > C(d + 1, 2)", inside=False,
                statement="with more samples than quadratic forms every start ends at the least f of any of them",
                measured=f"share of starts within {ZERO:g} f(0) of it, n = {_list(n[n > most])}, r ≥ 2d + 2, {where}",
            )
        )  # fmt: skip
    return found


def _list(values: np.ndarray) -> str:
    return ", ".join(str(int(one)) for one in values)


def _percent(share: float) -> str:
    return f"{100 * float(share):.0f} %"
