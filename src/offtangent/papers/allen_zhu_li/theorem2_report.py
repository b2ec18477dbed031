"""What the kernels' errors and norms say about Theorem 2, its lemmas and its argument."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import mean_interval
from offtangent.theory.allen_zhu_li.kernel_limits import (
    least_alpha,
    memorising_bound,
    memorising_samples,
    theorem2,
    theorem2_samples,
)

QUARTER = 0.25  # of α²: below it, by Theorem 2, no kernel comes
EXACT = 1e-8  # what rounding may do to an identity in float64, with β up to 10⁵
LOOKED_AT = (50, 150, 400)  # samples at which λ_min(ΦᵀΦ) gets a row of its own; else the largest below


def cells_of(results: Results, kind: str) -> list[tuple[Any, Any]]:
    """Cells by the name of their class, which this module does not import."""
    return [(cell, found) for cell, found in results if type(cell).__name__ == kind]


def held_in(results: Results, dim: int) -> Any:
    """The memorising solutions in one dimension, or None while they are not computed."""
    return next((found for cell, found in cells_of(results, "Memorised") if cell.dim == dim), None)


def claims(results: Results) -> list[Claim]:
    return [
        *_enumerated(results),
        *_lemma_e3(results),
        *_argument(results),
        *_theorem(results),
        *_printed(results),
    ]


def _enumerated(results: Results) -> Iterator[Claim]:
    found = cells_of(results, "Enumerated")
    if not found:
        return
    where = ", ".join(f"d = {cell.dim}, N = {' and '.join(map(str, cell.samples))}" for cell, _ in found)
    worst = max(float(max(data["norm"].max(), data["function"].max())) for _, data in found)
    yield Claim.at_most(
        worst, EXACT, source="Proposition E.1", identity=True,
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
        max(float(data["polarised"]) for _, data in found), EXACT, source="Corollary 7.1, Section E.4", identity=True,
        statement="Corollary 7.1's F and G, the latter 2^k ridges of degree k by polarisation, give k^(−1/2) H of "
        "Theorem 2",
        measured=f"largest difference at all corners, times √k; {where}",
    )  # fmt: skip


def _needed(cell: Any, data: Any) -> Float[np.ndarray, " found"]:
    """2λ‖u‖/α of the outputs that have learnt the product to α²/4."""
    ratios = 2 * data["coefficient"].values[:, None, None, None] * data["size"].values / cell.alpha
    return ratios[data["error"].values <= cell.alpha**2 / 4]


def _lemma_e3(results: Results) -> Iterator[Claim]:
    held = cells_of(results, "Memorised")
    if not held:
        return
    seeds = f"{held[0][0].seeds} draws for each of d = {', '.join(str(cell.dim) for cell, _ in held)}"
    yield Claim.at_most(
        max(float(data["misfit"].max()) for _, data in held), EXACT, source="Lemma E.3", identity=True,
        statement="the memorising u′ has φ(u′, x_j) = y_j at every sample, with characters of size k alone",
        measured=f"largest |φ(u′, x_j) − y_j| where ΦᵀΦ can be inverted, {seeds}",
    )  # fmt: skip
    ratios = []
    for cell, data in held:
        good = data["smallest"].values >= 0.5
        bounds = np.vectorize(lambda y, c=cell: memorising_bound(y, c.dim, c.degree, 1.0))(data["labels"].values)
        ratios.append((data["quadratic"].values / bounds)[good].ravel())
    yield Claim.at_most(
        float(np.concatenate(ratios).max()), 1.0, source="Lemma E.3", identity=True,
        statement="where ΦᵀΦ ⪰ Λ/2, ‖u′‖² ≤ 400‖y‖²/((d/5)^k λ_o²)",
        measured=f"largest ratio of the two sides, {seeds}",
        note="Where ΦᵀΦ ⪰ Λ/2 it follows by arithmetic, so that it is our u′ that is tested. The bound keeps 0.5 % of "
        "the characters, and (d/5)^k for C(d, k): it is far from tight.",
    )  # fmt: skip
    statement = "λ_min(ΦᵀΦ) ≥ Λ/2 with high probability"
    for cell, data in cells_of(results, "Inside"):
        yield Claim.at_least(
            float(data["smallest"].min()), 0.5, source="Lemma E.3", statement=f"{statement}: d = {cell.dim}",
            measured=f"smallest of {cell.seeds} draws, N = {cell.samples}",
            hypotheses=few_samples(cell, cell.samples),
        )  # fmt: skip
    for cell, data in held:
        for n in [n for n in cell.samples if n in LOOKED_AT] or [n for n in cell.samples if n <= max(LOOKED_AT)][-1:]:
            smallest = data["smallest"].sel(n=n).values
            yield Claim.at_least(
                float(smallest.min()), 0.5, source="Lemma E.3", hypotheses=few_samples(cell, n),
                statement=f"{statement}: d = {cell.dim}, N = {n}",
                measured=f"smallest of {cell.seeds} draws; their median is {np.median(smallest):.2f}",
            )  # fmt: skip


def _argument(results: Results) -> Iterator[Claim]:
    regressions = [pair for pair in cells_of(results, "Regression") if not pair[0].first]
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
        held = held_in(results, cell.dim)
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
            statement="where 2λ‖u′_i‖ < α for all outputs, each of six kernels errs by more than kα²/4, whatever λ",
            measured=f"smallest error/α² over λ, of {lowest.size} regressions; all seeds of {_points(covered)}",
            note="Neither N nor α is asked to be within the theorem's limits: the norms themselves are compared.",
        )  # fmt: skip


def _dims(cells: list[Any]) -> str:
    return ", ".join(map(str, sorted({cell.dim for cell in cells})))


def _points(covered: list[tuple[int, int]]) -> str:
    """The largest N of each d."""
    largest = {dim: max(n for d, n in covered if d == dim) for dim in sorted({dim for dim, _ in covered})}
    return ", ".join(f"d = {dim} up to N = {n}" for dim, n in largest.items())


def few_samples(cell: Any, samples: int) -> tuple[Hypothesis, ...]:
    limit = memorising_samples(cell.dim, cell.degree)
    return (Hypothesis("samples N", samples, "≤", limit, "Lemma E.3: (d/(20k² log² d))^(k/2)"),)


def asked(dim: int, degree: int, samples: int, alpha: float) -> tuple[Hypothesis, ...]:
    """Theorem 2's, with the constants of its O and Ω as one."""
    source = "Theorem 2"
    return (
        Hypothesis("degree k", degree, "≥", 4, source),
        Hypothesis("samples N", samples, "≤", theorem2_samples(dim, degree), f"{source}: d^(k/2)/log^k d", given=False),
        Hypothesis("α", alpha, "≥", dim ** (-degree / 4), f"{source}: d^(−k/4)", given=False),
        Hypothesis("α", alpha, "≤", 1, source),
    )


@dataclass(frozen=True, eq=False)
class Dimension:
    """What six kernels came to in one dimension, in units of α²: the sum over outputs."""

    cell: Any
    kernels: list[str]
    errors: Float[np.ndarray, "kernels seeds n"]
    best: Float[np.ndarray, "kernels seeds n"]  # with λ chosen in hindsight
    least: Float[np.ndarray, "kernels n"]  # of one output, its mean over seeds

    @classmethod
    def of(cls, here: list[tuple[Any, Any]]) -> "Dimension":
        cell, unit = here[0][0], here[0][0].alpha ** 2
        tables = [np.asarray(data["error"].values) / unit for _, data in here]
        return cls(
            cell,
            [one.kernel for one, _ in here],
            np.stack([table.sum(axis=2) for table in tables]),
            np.stack([np.asarray(data["best"].values) / unit for _, data in here]),
            np.stack([table.mean(axis=0).min(axis=1) for table in tables]),
        )

    def lowest(self, at: int) -> int:
        """The kernel with the least mean error at one N."""
        return int(self.errors[:, :, at].mean(axis=1).argmin())

    def none_below(self, at: int) -> bool:
        """Whether the interval of every kernel lies above α²/4."""
        return all(mean_interval(one).low > QUARTER for one in self.errors[:, :, at])

    def one_below(self, at: int) -> bool:
        """Whether that of some kernel lies below."""
        return any(mean_interval(one).high < QUARTER for one in self.errors[:, :, at])


def _theorem(results: Results) -> Iterator[Claim]:
    tables, fresh = (_tables(results, one) for one in (False, True))
    if tables:
        yield _growth(tables, fresh, cells_of(results, "Inside"))
    for one in tables:
        for at, n in enumerate(one.cell.samples):
            if not theorem2(one.cell.dim, one.cell.degree, n, one.cell.alpha).applies:
                yield _point(one, at, n)


def _tables(results: Results, fresh: bool) -> list[Dimension]:
    """One a dimension, of the seeds from 0 on, or of those that came after the first record."""
    chosen = [pair for pair in cells_of(results, "Regression") if (pair[0].first > 0) == fresh]
    dims = sorted({cell.dim for cell, _ in chosen})
    return [Dimension.of([pair for pair in chosen if pair[0].dim == dim]) for dim in dims]


def _growth(tables: list[Dimension], fresh: list[Dimension], explicit: list[tuple[Any, Any]]) -> Claim:
    """How the N from which one of the kernels gets below α²/4 grows with d: a power, so that no constant enters.

    Inside the theorem, where N is so small that nothing at all is learnt, nothing could go wrong; this can. It came
    after a record, and is judged on seeds that this record does not have.
    """
    cell = tables[0].cell
    statement = (
        "the N up to which none of six kernels has an error below α²/4 grows at least like d^(k/2), "
        f"k = {cell.degree}, α = {cell.alpha:g}; the theorem divides this by log^k d"
    )
    few = "; ".join(
        f"d = {one.cell.dim}, N = {n}: {one.errors[one.lowest(at), :, at].mean():.3g}"
        for one in tables
        for at, n in enumerate(one.cell.samples)
        if theorem2(one.cell.dim, one.cell.degree, n, one.cell.alpha).applies
    )
    more = "; ".join(
        f"d = {of.dim}, N = {of.samples}: {float(data['error'].mean('seed').min()) / of.alpha**2:.3g}"
        for of, data in explicit
    )
    note = (
        "With its constants as 1 the theorem speaks of the N below; there the least error/α² is "
        f"{'; '.join(part for part in (few, more) if part)}, next to {cell.degree * (1 + 1 / cell.alpha**2):.3g} for a "
        "function that is 0: it cannot fail there, and is not judged. The power is judged in its place. It was "
        "chosen after the first record, and is judged on seeds that it does not have."
    )
    found = exponent(fresh)
    if found is None:
        seen = exponent(tables)
        told = f" By the seeds of the first record the least power is {seen[0]:.3g}." if seen else ""
        why = (
            "It takes new seeds in two dimensions, in the smaller of which a kernel gets below, and in the larger N "
            f"beyond that.{told} {note}"
        )
        return Claim.not_run(source="Theorem 2", statement=statement, reason="data", why=why, profile="paper")
    power, (small, below), (large, above) = found
    return Claim.at_least(
        power,
        cell.degree / 2,
        source="Theorem 2",
        statement=statement,
        note=note,
        measured=f"least power: at d = {small} one is below from N = {below} on, at d = {large} none is up to N = "
        f"{above}, by the 95 % intervals of {fresh[0].cell.seeds} seeds from {fresh[0].cell.first} on",
        hypotheses=asked(large, cell.degree, 1, cell.alpha)[:1] + asked(large, cell.degree, 1, cell.alpha)[2:],
    )


def exponent(tables: list[Dimension]) -> tuple[float, tuple[int, int], tuple[int, int]] | None:
    """The least power of d between the smallest dimension in which a kernel gets below and the next one.

    None as well where N ends before it could tell: nobody is below up to the largest, which is too small.
    """
    for one, other in itertools.pairwise(tables):
        learnt = [n for at, n in enumerate(one.cell.samples) if one.one_below(at)]
        if not learnt:
            continue
        none = [other.none_below(at) for at in range(len(other.cell.samples))]
        first = none.index(False) if False in none else len(none)
        above = other.cell.samples[first - 1] if first else 1
        power = math.log(above / learnt[0]) / math.log(other.cell.dim / one.cell.dim)
        if first == len(none) and power < one.cell.degree / 2:
            return None
        return power, (one.cell.dim, learnt[0]), (other.cell.dim, above)
    return None


def _point(one: Dimension, at: int, n: int) -> Claim:
    """One d and N outside: the kernel with the smallest mean error."""
    cell, kernel = one.cell, one.lowest(at)
    return Claim.at_least(
        mean_interval(one.errors[kernel, :, at]),
        QUARTER,
        strict=True,
        source="Theorem 2",
        statement=f"d = {cell.dim}, N = {n}: none of six kernels gets below α²/4",
        measured=f"error/α² of the best of {len(one.kernels)} kernels ({one.kernels[kernel]}), all outputs, "
        f"{cell.seeds} seeds",
        hypotheses=asked(cell.dim, cell.degree, n, cell.alpha),
        note=f"With λ chosen in hindsight {one.best[:, :, at].mean(axis=1).min():.3g}; nothing of αG(F) learnt is "
        f"{cell.degree}. The smallest error of one output is {one.least[:, at].min():.3g} α².",
    )


def _printed(results: Results) -> Iterator[Claim]:
    """The last step of the proof, with α on either side of 40/(d/5)^{k/4}: arithmetic."""
    for cell, _ in cells_of(results, "Inside")[:1]:
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
            2 * bound / alpha, 1.0, strict=True, source=source, identity=True, statement=printed.replace("≤", "≥"),
            measured=f"{words}, α = {alpha:g}",
        )  # fmt: skip
