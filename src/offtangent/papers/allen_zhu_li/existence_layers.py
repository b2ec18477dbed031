"""What Lemmas D.2 and D.3 say of W⋆ and V⋆ in one network, as they are and after the worst displacements."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.claims import HELD, Verdict
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, mean_interval, slope_interval
from offtangent.papers.allen_zhu_li._concept import SMOOTH_F, SMOOTH_G, TAU_V
from offtangent.papers.allen_zhu_li._existence import all_of, table_of, widths_of
from offtangent.theory.allen_zhu_li.worst_signs import output_limit


def of_layers(results: Results) -> list[Claim]:
    cell, widths, first = results.pairs[0][0], widths_of(results), results.pairs[0][1]
    k, tau, alpha = cell.outputs, float(first["tau_w"].mean()), float(first["alpha"].mean())
    tilde = alpha / (k * (SMOOTH_F + SMOOTH_G))
    reached = widths[-1] * (float(results.pairs[-1][1]["first"].mean()) / tilde**2) ** 2
    setting = f"k = {k}, d = {cell.dim}, τ_w = {tau:.3g}, τ_v = {TAU_V:g}, α = {alpha:.3g}, {cell.seeds} seeds"
    where = f"{setting}, m from {widths[0]:.0f} to {widths[-1]:.0f}"
    norms = np.concatenate([all_of(results, "norm_w"), all_of(results, "norm_v")])
    told = f"log-log slope in m, 99 % interval, {where}"
    slopes = [
        Claim.includes(
            slope_interval(widths, table_of(results, name), level=0.99),
            -0.5,
            source=source,
            statement=statement,
            measured=measured,
        )
        for name, source, statement, measured in (
            ("first", "Lemma D.2(a)", "AD_W⁰ W⋆(x,1) − F(x) falls like m^(−1/2)", told),
            (
                "second",
                "Lemma D.2(b)",
                "AD_V⁰,W V⋆z − αG falls like m^(−1/2), uniformly in z = (out₁, 1)",
                f"the worst of {2 * cell.samples} points z for each seed, {told}",
            ),
        )
        if len(results) >= 3
    ]
    return [
        *slopes,
        Claim.at_most(
            float(norms.max()),
            1.0,
            source="Lemma D.2",
            statement="‖W⋆‖_F ≤ k p_F 𝔠_s(F) and ‖V⋆‖_F ≤ α k p_G 𝔠_s(G), with C* = 2 and Õ(·) as one",
            measured=f"largest ratio of the two sides, {where}",
            note=f"The lemma's literal error α̃² = {tilde**2:.2g} would be reached at m ≈ {reached:.1g}.",
        ),
        _of_moved_first(results, tilde, where),
        _of_moved_second(results, tilde, where),
        _of_both(results, tilde, where),
    ]


def _largest(ratios: Float[np.ndarray, "s k"]) -> Interval:
    return max((mean_interval(column) for column in ratios.T), key=lambda one: one.high)


def _wide(cell: Any, asked: float, source: str) -> tuple[Hypothesis, ...]:
    """A width from which what turned signs do is below α̃²."""
    return (Hypothesis("width m", cell.width, "≥", asked, source, given=False),)


def _of_moved_first(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(a) as it is stated, and its proof's display in the note: that holds for noise as long as W⋆ as well."""
    (cell, data), widths = results.pairs[-1], widths_of(results)
    tau = float(data["tau_w"].mean())
    moved, base = table_of(results, "first_moved"), table_of(results, "base")
    shown = moved / (tilde**2 + math.sqrt(2) * _length(results) * _turned(results))
    return Claim.at_most(
        mean_interval(moved[:, -1] / tilde**2),
        1.0,
        source="Lemma D.3(a)",
        statement="(E‖AD_W W⋆(x,1) − F‖²)^½ ≤ α̃² for all W within τ_w = 10‖W⋆‖_F, O(·) as one",
        measured=f"ratio of the two sides at m = {cell.width}, worst W found at each of {cell.points} inputs for each "
        f"seed, 95 % interval, {where}",
        hypotheses=_wide(
            cell, (tau ** (4 / 3) / tilde**2) ** 8, "Lemma D.3: m ≥ M, where τ_w(τ_w/σ_w)^(1/3)m^(−1/6) ≤ α̃²"
        ),
        note=f"No width within reach tests it: turned signs change AD_W⁰ W⋆(x,1) by up to "
        f"{float(table_of(results, 'first_change')[:, -1].max()):.2g}, the miss is "
        f"{float((moved / base)[:, -1].mean()):.2g}‖F‖, α̃² is {tilde**2 / float(base[:, -1].mean()):.1g}‖F‖, and a "
        "displacement of ten times ‖W⋆‖_F that knows the signs can undo W⋆. The proof's display, α̃² + "
        "(τ_w/σ_w)^(1/3)m^(−1/6)‖W⋆‖_F‖(x,1)‖, is not judged: the miss is up to "
        f"{_largest(shown).value:.2g} of it (m from {widths[0]:.0f} to {widths[-1]:.0f}), and noise as long as W⋆, or "
        "−W⋆, would be within it, too.",
    )


def _length(results: Results) -> Float[np.ndarray, "s k"]:
    """‖W⋆‖_F, measured; norm_w has C* = 2."""
    return table_of(results, "norm_w") * 2 * results.pairs[0][0].outputs * SMOOTH_F


def _turned(results: Results) -> Float[np.ndarray, " k"]:
    """√(s/m) for the s turned signs of Lemma D.1(a), σ_w√m = m^(3/8)."""
    return (float(results.pairs[0][1]["tau_w"].mean()) / widths_of(results) ** 0.375) ** (1 / 3)


def _of_moved_second(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(b), where V⋆ = 0 would pass as well. τ_v(τ_v/σ_v)^(1/3) = τ_v², since σ_v = 1/τ_v²."""
    cell, alpha = results.pairs[0][0], float(results.pairs[0][1]["alpha"].mean())
    moved, size = table_of(results, "second_moved"), float(table_of(results, "composite").mean())
    allowed = (tilde**2 + TAU_V**2) / size
    claim = Claim.at_most(
        _largest(moved / (tilde**2 + TAU_V**2)),
        1.0,
        source="Lemma D.3(b)",
        statement="‖AD_V,W V⋆z − αG‖ ≤ (α̃² + Õ(τ_v(τ_v/σ_v)^(1/3)))‖z‖, z = (out₁, 1), σ_v = 1/τ_v², for all V, "
        "Õ(·) as one",
        measured="largest ratio of the two sides, worst V found at each z and the worst of "
        f"{2 * cell.points} points z for each seed, 95 % interval, {where}",
        note="The paper writes α̃G; with its own V⋆ and Table 1 it is αG. "
        f"{float(moved[:, -1].mean()) / size:.2g}‖αG(F)‖ are found: at this τ_v a displacement of ten times ‖V⋆‖_F "
        "that knows the signs can undo V⋆ at every width.",
    )
    if allowed < 1 or claim.verdict not in HELD:
        return claim
    empty = (
        f"{allowed:.2g}‖αG(F)‖ are allowed, so that V⋆ = 0 would pass. It would not from τ_v ≤ {size / TAU_V:.1g} on, "
        f"α ≤ {size * alpha / TAU_V**2:.1g} (Table 1: τ_v ≤ 1/polylog(m)), and no profile goes there."
    )
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{empty} {claim.note}")


def _of_both(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(c) as it is stated."""
    (cell, data), widths = results.pairs[-1], widths_of(results)
    tau, both, base = float(data["tau_w"].mean()), table_of(results, "both_moved"), table_of(results, "base")
    still = math.sqrt(cell.outputs) * cell.width**-0.125
    limit = output_limit(math.sqrt(2) * tau, math.sqrt(2) * cell.width**-0.125, cell.width) + still  # ~ m^(−1/8)
    allowed = tilde**2 + math.sqrt(2) * (_length(results) + tau) * _turned(results)
    allowed = allowed + math.sqrt(cell.outputs) * widths**-0.125
    return Claim.at_most(
        mean_interval(both[:, -1] / tilde**2),
        1.0,
        source="Lemma D.3(c)",
        statement="(E‖AD_W(W⋆ − W)(x,1) − (F − out₁)‖²)^½ ≤ α̃² for all W within τ_w = 10‖W⋆‖_F, O(·) as one",
        measured=f"ratio of the two sides at m = {cell.width}, at the W of Lemma D.1(b), {cell.points} inputs for each "
        f"seed, 95 % interval, {where}",
        hypotheses=_wide(
            cell,
            cell.width * (limit / tilde**2) ** 8,
            "Lemma D.3: m ≥ M, where 1.266 τ_w^(4/3)m^(−1/8) + √k σ_w ≤ α̃²",
        ),
        note=f"Nearly all of it is ‖AD_W W⁰(x,1)‖, with the limit 1.266 τ_w^(4/3)m^(−1/8) + √k σ_w = {limit:.2g} next "
        f"to {float(both[:, -1].mean()):.2g} in all: W⋆ = 0 would do as well. The miss is "
        f"{float((both / base)[:, -1].mean()):.2g}‖F‖, and up to {_largest(both / allowed).value:.2g} of what (a) and "
        "Lemma D.1(b) add up to in the proof.",
    )
