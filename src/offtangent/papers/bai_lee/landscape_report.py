"""What the results on the landscape say.

Lemma 1 with its exact last term, Lemmas 10 and 12 to 14 with their constants, the ε that these add up to in (7) and
(8), and the inequality of the regulariser are true of every W by algebra, whatever was trained: identities. What can
be wrong is how the differences shrink with the width, which is judged by slopes. Theorem 2 asks for the width of (6),
which no computer holds. What is said of trained networks is in `stationary_report`.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import mean_interval, slope_interval
from offtangent.papers.bai_lee import stationary_report
from offtangent.papers.bai_lee.stationary_report import EPSILON, Columns, columns

ROUNDING = 1e-9  # of the inequalities' terms, in float64
LEMMAS = {"outputs": "Lemma 10", "loss": "Lemma 12", "gradient": "Lemma 13", "curvature": "Lemma 14"}
SIDES = {
    "outputs": "max_i |f^Q_W(x_i)| ≤ ½ C₂ ρ b²",
    "loss": "|L − L^Q| ≤ δ + ½κ²",
    "gradient": "|⟨∇L − ∇L^Q, W⟩| ≤ κ + (δ + ½κ²) C₂ρb² + 3δ",
    "curvature": "|E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']| ≤ C₁²(ρ + b_∞)⁴b⋆² m^(−1/2) + C₂²ρ²b²b⋆² m⁻¹ + C₃bb⋆² m^(−1/4) + "
    "(δ + ½κ²) C₂ρb⋆²",
}
RATES = {
    "loss": "|L − L^Q| = O(m^(−1/4))",
    "gradient": "|⟨∇L − ∇L^Q, W⟩| = O(m^(−1/4))",
    "curvature": "|E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']| = O(m^(−1/4))",
}
WORDS = (
    "κ² = C₁²ρ⁴b²m^(−1/2) and δ = C₃b³m^(−1/4)/6 from Lemma 11, with ρ = max |w_{0,r}ᵀx_i|, b = B_x‖W‖_{2,4}, "
    "b⋆ = B_x‖W⋆‖_{2,4}, b_∞ = B_x‖W‖_{2,∞} and C = (½, 1, 1) for relu³/6: the proof's bounds with their constants, "
    "for means over all signs."
)


def claims(drawn: Results, widths: Results, trained: Results) -> list[Claim]:
    """All of them.

    Args:
        drawn: The cells of random points.
        widths: Those of one width each, at W⋆ and at random W.
        trained: Those of starts.

    Returns:
        The claims, in the order of the paper.
    """
    found: list[Claim] = []
    if len(drawn):
        cell, parts = drawn.first, columns(drawn)
        sizes = ", ".join(dict.fromkeys(f"({one.dim}, {one.width})" for one, _ in drawn))
        losses = " and ".join(drawn.values("loss"))
        where = f"{_count(parts)} random points, (d, m) = {sizes}, {cell.seeds} seeds, {losses} loss"
        found += [*_inequalities(parts, where, "at random points"), _penalty(parts, where)]
    if len(trained):
        cell, parts = trained.first, columns(trained)
        sizes = ", ".join(str(width) for width in trained.values("width"))
        where = f"{_count(parts)} points on the way from {cell.count} starts, d = {cell.dim}, m = {sizes}"
        found += _inequalities(parts, where, "along training")
    if len(widths) >= 3:
        found += [*_sides(widths), *_rates(widths)]
    return [*found, *stationary_report.claims(trained)]


def column(results: Results, name: str, at: str) -> Float[np.ndarray, "s k"]:
    """A variable at W⋆ or at random W over widths.

    Args:
        results: The cells of one width each.
        name: The variable.
        at: "W⋆" or "random".

    Returns:
        A row for each seed, a column for each width.
    """
    return np.stack([data[name].values[:, list(data["at"].values).index(at)] for _, data in results], axis=1)


def _count(parts: list[Columns]) -> int:
    return sum(part["lemma"].size for part in parts)


def _inequalities(parts: list[Columns], where: str, when: str) -> list[Claim]:
    """(5), (7) and (8) with what the proofs add: true of every W, so that only a mistake of ours breaks them."""

    def worst(name: str) -> float:
        return max(float((one[name] / one["proven"]).max()) for one in parts)

    broken = sum(int((one["lemma"] < -ROUNDING).sum()) for one in parts)
    tightest = min(float((one["lemma_slack"] / one["lemma_last"]).min()) for one in parts)
    return [
        Claim.at_most(
            broken,
            0,
            identity=True,
            source="Lemma 1, eq. (5)",
            statement="E_Σ' ∇²L^Q[W⋆Σ', W⋆Σ'] ≤ ⟨∇L^Q, W⟩ − 2(L^Q − OPT) + (mn)⁻¹ Σ_i Σ_r σ''(w_{0,r}ᵀx_i)² (w_rᵀx_i)² "
            f"(w⋆_rᵀx_i)², {when}",
            measured=f"points at which it is violated, {where}",
            note="True of every W and W⋆ where ℓ is convex with ℓ'' ≤ 1. The smallest slack is "
            f"{tightest:.2g} of the last term, which has 1/m where B.1 prints 2/m.",
        ),
        Claim.at_most(
            worst("theorem"),
            1.0,
            identity=True,
            source="Theorem 2, eq. (7)",
            statement="E_Σ' ∇²L[W⋆Σ', W⋆Σ'] ≤ ⟨∇L, W⟩ − 2(L − OPT) + ε with the ε that Lemmas 1, 12, 13 and 14 add up "
            f"to, at any width, {when}",
            measured=f"largest ε needed over that ε, {where}",
            note=f"(7) holds with ε = 0 at {_share(parts, 'theorem')} of the points and needs "
            f"{_largest(parts, 'theorem')} at most; the proof's ε lies between "
            f"{min(float(one['proven'].min()) for one in parts):.2g} and {_largest(parts, 'proven')}: true of every W "
            "for the mean over all signs, and far from sharp.",
        ),
        Claim.at_most(
            worst("corollary"),
            1.0,
            identity=True,
            source="Corollary 3, eq. (8)",
            statement="the same for L_λ, with − λ‖W‖⁸_{2,4} + Cλ‖W⋆‖⁸_{2,4}, C = 378(14/5)³ ≈ 8298, on the right, "
            f"{when}",
            measured=f"largest ε needed over the ε of Theorem 2, {where}",
            note=f"(8) holds with ε = 0 at {_share(parts, 'corollary')} of the points and needs "
            f"{_largest(parts, 'corollary')} at most.",
        ),
    ]


def _share(parts: list[Columns], name: str) -> str:
    return f"{np.mean(np.concatenate([one[name].ravel() for one in parts]) == 0):.0%}".replace("%", " %")


def _largest(parts: list[Columns], name: str) -> str:
    return f"{max(float(one[name].max()) for one in parts):.2g}"


def _penalty(parts: list[Columns], where: str) -> Claim:
    attained = min(float(one["penalty_attained"].min()) for one in parts)
    return Claim.at_most(
        max(float(one["penalty"].max()) for one in parts),
        1 + ROUNDING,
        identity=True,
        source="Corollary 3, Appendix B.5",
        statement="E_Σ' ∇²P[W⋆Σ', W⋆Σ'] ≤ ⟨∇P, W⟩ − 3P(W) + C P(W⋆) for P = ‖·‖⁸_{2,4}, for all W and W⋆, "
        "C = 378(14/5)³",
        measured=f"largest ratio of the two sides, {where}",
        note=f"C cannot be smaller: with one column of W⋆ and W = √8.4 W⋆ the ratio is {attained:.9f}.",
    )


def _over(results: Results) -> str:
    cell, widths = results.first, results.field("width")
    return (
        f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds, {cell.signs} signs, {len(widths)} widths from "
        f"{widths[0]:.0f} to {widths[-1]:.0f}"
    )


def _sides(results: Results) -> Iterable[Claim]:
    """Lemmas 10 and 12 to 14 with their constants: by the Lipschitz bounds and Hölder's inequality true of every W."""
    for name, lemma in LEMMAS.items():
        yield Claim.at_most(
            max(float(data[f"{name}_ratio"].values.max()) for _, data in results),
            1.0,
            identity=True,
            source=lemma,
            statement=SIDES[name],
            measured=f"largest ratio of the two sides, at W⋆ and at random W of the same norm, {_over(results)}",
            note=WORDS if name == "outputs" else "",
        )


def _rates(results: Results) -> Iterable[Claim]:
    """What the lemmas say of large m, by slopes; and Theorem 2 at its own width."""
    widths, slope = results.field("width"), f"log-log slope in m, 99 % interval, {_over(results)}"
    yield Claim.no_slower(
        slope_interval(widths, column(results, "outputs", "W⋆"), level=0.99),
        0.0,
        source="Lemma 10",
        statement="f^Q_W = O(1) in m at W⋆",
        measured=slope,
    )
    for name, rate in RATES.items():
        for at in ("W⋆", "random"):
            table = column(results, name, at)
            yield Claim.no_slower(
                slope_interval(widths, table, level=0.99),
                -0.25,
                source=LEMMAS[name],
                statement=f"{rate} at {'W⋆' if at == 'W⋆' else 'random W'}",
                measured=slope,
                note=_faster(widths, table),
            )
    needed = column(results, "needed", "W⋆")
    yield Claim.no_slower(
        slope_interval(widths, needed, level=0.99),
        -0.25,
        source="Theorem 2, eq. (7)",
        statement="the ε needed in (7) is O(m^(−1/4)), by Lemmas 1 and 12 to 14 at any width",
        measured=f"at W⋆: {slope}",
        note="At W⋆ convexity leaves no room in (7): needed are Lemma 1's last term, of order m⁻¹, and what L and "
        f"L^Q differ by, of order m^(−1/2). {_faster(widths, needed)} The lemmas' bounds fall with a slope of "
        f"{slope_interval(widths, column(results, 'proven', 'W⋆')).value:.3f}, since ρ grows with log m.",
    )
    last, data = results.pairs[-1]
    asked = float(data["asked"].values.mean())
    yield Claim.at_most(
        mean_interval(needed[:, -1], level=0.99),
        EPSILON,
        source="Theorem 2, eq. (7)",
        statement=f"(7) with ε = {EPSILON:g} at W⋆",
        measured=f"ε needed at m = {last.width}, 99 % interval over {last.seeds} seeds",
        hypotheses=(Hypothesis("width m", last.width, "≥", asked, "Theorem 2, eq. (6)", given=False),),
    )


def _faster(widths: Float[np.ndarray, " k"], table: Float[np.ndarray, "s k"]) -> str:
    root = (widths**0.5 * table).mean(axis=0)
    return f"m^(1/2) times it: {root[0]:.3g} at the smallest width, {root[-1]:.3g} at the largest."
