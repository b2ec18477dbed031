"""What the constructions of Appendices A.1, B, C, D.2 and F say: claims and figures."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, slope_interval
from offtangent.papers.allen_zhu_li import existence_formulas, existence_layers
from offtangent.papers.allen_zhu_li._existence import all_of, kind_of, table_of, widths_of
from offtangent.papers.allen_zhu_li._parity import PAPER, SOLVED
from offtangent.theory.allen_zhu_li.indicator import indicator_moment

ROUNDING = 1e-9
DEGREE = 3  # of the series in Weights
LAWS = (
    ("product", "Σ a₁a₂1[n ≥ 0]h(α)", "h = L = 1, of variance m"),
    ("square", "Σ a₁²1[n ≥ 0]h(α) less its mean", "h = L = 1, of variance 2m"),
    ("signed", "Σ a₁²1[n ≥ 0]h(α) less its mean", "h = ±L, either as likely, of variance 3m"),
)


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    judges = {
        "Maps": _of_maps, "Tail": _of_tails, "Indicator": _of_indicators, "Weights": _of_weights,
        "Layers": existence_layers.of_layers, "Parity": _of_parity, **existence_formulas.JUDGES,
    }  # fmt: skip
    for name, judge in judges.items():
        chosen = kind_of(results, name)
        if len(chosen):
            found += judge(chosen)
    return found


def _of_maps(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    where = f"{len(results) * cell.seeds} random maps, k = p = 1 and k = 4, p = 3, {cell.pairs} pairs each"
    return [
        Claim.at_most(
            float(all_of(results, "slope").max()), 1.0, source="Fact B.3", identity=True,
            statement="‖F(x) − F(y)‖ ≤ √k p 𝔠_s(F)‖x − y‖, with C* = 1",
            measured=f"largest ratio of the two sides, {where}",
            note="The proof ends with 3p𝔠_s; the factor 3 is not needed, since (x,1)/‖(x,1)‖ changes at the rate "
            "1/‖(x,1)‖ at most. A constant φ attains the bound.",
        ),
        Claim.at_most(
            float(all_of(results, "printed").max()), 1.0, misprint=True, source="Fact B.3, as printed",
            statement="‖F(x)‖ ≤ √k p 𝔠_s(F)‖x‖", measured=f"largest ratio of the two sides, {where}",
            note="F(0) = Σ a φ(w₁·(0,1)) w₂·(0,1) is not zero, so that no C* mends it.",
        ),
        Claim.at_most(
            float(all_of(results, "bound").max()), 1.0, source="Fact B.3, corrected", identity=True,
            statement="‖F(x)‖ ≤ √k p 𝔠_s(F)‖(x, 1)‖, with C* = 1",
            measured=f"largest ratio of the two sides, {where}",
        ),
    ]  # fmt: skip


def _of_tails(results: Results) -> list[Claim]:
    found = []
    for law, told, h in LAWS:
        chosen = results.where(law=law)
        statement = f"|{told}| ≥ BL(√m + B) with probability at most 4e^(−B²/8), at every indicator 1 and {h}"
        if not len(chosen):
            why = "This law is not among these cells."
            found.append(
                Claim.not_run(source="Lemma C.3", statement=statement, reason="size", why=why, profile="laptop")
            )
            continue
        # By the frequency itself, and the smallest B among equal ones: a larger B with nothing to count says less.
        tails = [_tail(cell, data, B) for B in chosen.pairs[0][1]["B"].values for cell, data in chosen]
        worst, B, width = max((one for one in tails if _tail_bound(one[1]) < 1), key=lambda one: one[0].value)
        often: dict[float, float] = {}
        for ratio, size, _ in tails:
            often[size] = max(often.get(size, 0.0), ratio.value * _tail_bound(size))
        listed = "; ".join(f"B = {size:g}: {share:.2g} ({_tail_bound(size):.2g})" for size, share in often.items())
        found.append(
            Claim.at_most(
                worst, 1.0, source="Lemma C.3",
                statement=statement,
                measured=f"largest ratio of frequency and bound where the bound is below 1 (B = {B:g}, m = {width}), "
                f"99 % interval, {chosen.pairs[0][0].draws} draws, m = 1, 16, 256",
                note=f"Largest frequencies over m, and the bounds: {listed}. The bound is far from tight.",
            )
        )  # fmt: skip
    return found


def _tail_bound(B: float) -> float:
    return 4 * math.exp(-(B**2) / 8)


def _tail(cell: Any, data: Any, B: float) -> tuple[Interval, float, int]:
    """Frequency over bound at one B, with B and the width."""
    one, limit = fraction_interval(int(data["count"].sel(B=B)), cell.draws, level=0.99), _tail_bound(B)
    return Interval(one.value / limit, one.low / limit, one.high / limit), float(B), cell.width


def _of_indicators(results: Results) -> list[Claim]:
    epsilon, names = results.pairs[0][0].epsilon, ", ".join(cell.series for cell, _ in results)
    where = f"φ: {names}"
    printed = min(abs(indicator_moment(i)) / (math.prod(range(i - 1, 0, -2)) / 4) for i in range(1, 16, 2))
    energy = all_of(results, "energy") / all_of(results, "smooth") ** 2
    size = np.maximum(all_of(results, "bound"), all_of(results, "lipschitz")) / all_of(results, "size")
    sizes = ", ".join(f"{cell.series}: {ratio:.2g}" for (cell, _), ratio in zip(results, size, strict=True))
    return [
        Claim.at_most(
            float(all_of(results, "error").max()), epsilon / 4, source="Lemma F.2(a)", identity=True,
            statement="|E[1{α₁x₁ + β₁√(1−x₁²) ≥ 0} h(α₁)] − φ(x₁)| ≤ ε/4 for every x₁ in [−1, 1]",
            measured=f"largest difference on 41 points, by quadrature, ε = {epsilon:g}, {where}",
            note="With the exact p′_i; the clipping at B_i ≥ 100 is not seen at all.",
        ),
        Claim.at_least(
            printed, 1.0, misprint=True, source="Claim F.3, as printed", statement="|p′_i| ≥ (i − 1)!!/4 for odd i",
            measured="smallest ratio of the two sides, exact, i = 1, 3, …, 15",
            note="p′_i = (−1)^((i−1)/2)(i − 2)!!/√(2π): E[h²] has i^1.5|c_i|² instead of the proof's i^0.5|c_i|².",
        ),
        Claim.at_most(
            float(energy.max()), 1 + ROUNDING, source="Lemma F.2", statement="E[h(α₁)²] ≤ 𝔠_s(φ)², with C* = 2",
            measured=f"largest ratio of the two sides, exact, {where}",
            note="Constants need C* = 2; of the odd powers z³ needs most, 1.535.",
        ),
        Claim.at_most(
            float(size.max()), 1 + ROUNDING, source="Lemma F.2",
            statement="|h| ≤ 𝔠_ε(φ) and |h′| ≤ 𝔠_ε(φ), with C* = 10⁴",
            measured=f"largest ratio of the two sides, at the clips, {where}",
            note=f"For each φ, {sizes}. Constants attain it whatever C* is; for others C* = 10⁴, to the power of i, "
            "makes it empty: all that is left is that h is bounded. With clips at B_i ≥ 100 z alone asks for C* ≈ 100.",
        ),
    ]  # fmt: skip


def _of_weights(results: Results) -> list[Claim]:
    cell, widths = results.pairs[0][0], widths_of(results)
    where = (
        f"k = {cell.outputs}, p = {cell.terms}, d = {cell.dim}, φ = ½ + z³, {cell.seeds} targets, m from "
        f"{widths[0]:.0f} to {widths[-1]:.0f}"
    )
    exact, norm = table_of(results, "exact"), table_of(results, "norm")
    longest = table_of(results, "longest")
    found = [
        Claim.includes(
            mean_interval((norm * np.sqrt(widths) / exact)[:, -1], level=0.999), 1.0, source="Lemma F.1, ‖W⋆‖_F",
            statement="‖W⋆‖_F = m^(−1/2)(Σ_r E‖Σ_i a_ri h_ri w₂‖²)^(1/2), exactly in the mean",
            measured=f"measured over stated at the largest width, 99.9 % interval, {where}",
        ),
        Claim.at_most(
            float((norm * np.sqrt(widths) / table_of(results, "smooth")).max()), 1.0, source="Lemma F.1, ‖W⋆‖_F",
            statement="‖W⋆‖_F ≤ k p 𝔠_s(F)/√m, with C* = 2 and Õ(·) as one",
            measured=f"largest ratio of the two sides, {where}",
        ),
    ]  # fmt: skip
    if len(results) < 3:
        return found
    logs = (2 * np.log(widths)) ** ((DEGREE + 1) / 2)
    slope = f"log-log slope in m, 99 % interval, {where}"
    return [
        Claim.includes(
            slope_interval(widths, table_of(results, "error"), level=0.99), -0.5, source="Lemma F.1",
            statement="Σ_r |F_r(x) − G_r((x,1); W⋆)|/‖(x,1)‖ falls like m^(−1/2)", measured=slope,
            note=f"Root mean square over {cell.samples} inputs; {table_of(results, 'error').mean(axis=0)[-1]:.3g} at "
            "the largest width.",
        ),
        *found,
        Claim.includes(
            slope_interval(widths, norm, level=0.99), -0.5, source="Lemma F.1, ‖W⋆‖_F",
            statement="‖W⋆‖_F falls like m^(−1/2)", measured=slope,
        ),
        Claim.no_slower(
            slope_interval(widths, longest / logs, level=0.99), -1.0, source="Lemma F.1, ‖W⋆‖_2,∞",
            statement="‖W⋆‖_2,∞ = Õ(1/m), where Õ(·) is (2 ln m)^((i+1)/2), the largest |a h| of degree i = 3 there is",
            measured=slope,
            note=f"Without the logarithm the slope is {slope_interval(widths, longest, level=0.99).value:.3f}. The "
            "bound itself, kp𝔠_ε(F)/m with C* = 10⁴, is empty: to the power of three C* allows "
            f"{1 / float((longest * widths / table_of(results, 'size')).max()):.1g} times what there is.",
        ),
    ]  # fmt: skip


def _of_parity(results: Results) -> list[Claim]:
    cell, data = results.pairs[0]
    errors, norms = data["error"].values.ravel(), data["norm"].values.ravel()
    reached = "; ".join(
        f"{error:g}: {norms[errors <= error].min():.3g}√d, the corners {SOLVED * (1 - math.sqrt(error)):.3g}√d, "
        f"the paper {norm:g}√d"
        for error, norm in PAPER
        if (errors <= error).any()
    )
    needed = SOLVED * (1 - np.sqrt(errors))
    return [
        Claim.at_least(
            float((norms / needed).min()),
            1 - 1e-4,
            source="Appendix A.1, sharpened",
            statement=f"E(F − y)² ≥ (1 − ‖W‖_F/{SOLVED:.2f}√d)²: no trained W at d = 6 does better than the corners",
            measured=f"smallest ratio of ‖W‖_F and what its error needs, {len(errors)} networks trained at d = 6, "
            f"m = {cell.width}",
            note="Trained networks are a sample: that it is so for every W on six coordinates rests on the largest "
            "correlation of a single neuron, found by search, and other d are not tried. Padded to d = 40 and copied "
            f"twice, ‖W‖_F/√d changes by a factor {float(data['copied']):.6g}. Least norms with the paper's errors: "
            f"{reached or 'none'}.",
        )
    ]
