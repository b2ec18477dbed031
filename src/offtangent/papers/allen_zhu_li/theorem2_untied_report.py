"""What a kernel whose λ_S differ within a size says of Theorem 2 and Lemma E.3."""

from collections.abc import Iterator

from offtangent.lab import Claim, Results
from offtangent.papers.allen_zhu_li.theorem2_report import Dimension, asked, cells_of, exponent, few_samples
from offtangent.papers.allen_zhu_li.theorem2_untied import HEAVY

WHAT = "a kernel whose λ_S differ"


def claims(results: Results) -> Iterator[Claim]:
    """Of the cells of `theorem2_untied`, where there are any."""
    for cell, data in cells_of(results, "Certified"):
        yield Claim.at_least(
            float(data["smallest"].min()),
            0.5,
            source="Lemma E.3, λ_S that differ",
            statement=f"λ_min(ΦᵀΦ) ≥ Λ/2 with high probability on ℋ, the 0.5 % of the subsets with the largest λ_S of "
            f"{WHAT}: d = {cell.dim}",
            measured=f"smallest of {cell.seeds} draws, N = {cell.samples}",
            hypotheses=few_samples(cell, cell.samples),
        )
    untied = sorted(cells_of(results, "Untied"), key=lambda pair: int(pair[0].dim))
    if not untied:
        return
    tables, cell = [Dimension.of([pair]) for pair in untied], untied[0][0]
    statement = (
        f"the N up to which {WHAT}, exp(Σ ρ_j x_j y_j), has no error below α²/4 grows at least like d^(k/2), k = "
        f"{cell.degree}, α = {cell.alpha:g}; the theorem divides this by log^k d"
    )
    found = exponent(tables)
    if found is None:
        why = "It takes two dimensions, in the smaller of which it gets below, and in the larger N beyond that."
        yield Claim.not_run(
            source="Theorem 2, λ_S that differ", statement=statement, reason="size", why=why, profile="paper"
        )
        return
    power, (small, below), (large, above) = found
    hypotheses = asked(large, cell.degree, 1, cell.alpha)
    told = "; ".join(
        f"d = {one.cell.dim}: {', '.join(f'{value:.3g}' for value in one.errors[0].mean(axis=0))}" for one in tables
    )
    yield Claim.at_least(
        power,
        cell.degree / 2,
        source="Theorem 2, λ_S that differ",
        statement=statement,
        measured=f"least power: at d = {small} it is below from N = {below} on, at d = {large} not up to N = {above}, "
        f"by the 95 % intervals of {cell.seeds} seeds",
        hypotheses=(hypotheses[0], *hypotheses[2:]),
        note=f"Mean error/α² over N, {told}; {cell.degree * (1 + 1 / cell.alpha**2):.3g} for a function that is 0. "
        f"λ_S² differs by up to {_spread(cell.degree):.2g} within size k.",
    )


def _spread(degree: int) -> float:
    """Π tanh ρ_j over S, all of it with the larger weight or none, for small ρ."""
    return HEAVY**degree
