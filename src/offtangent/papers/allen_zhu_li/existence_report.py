"""What the constructions of Appendices A.1, B, C, D.2 and F say: claims and figures."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, slope_interval
from offtangent.papers.allen_zhu_li._concept import SMOOTH_F, SMOOTH_G, TAU_V
from offtangent.papers.allen_zhu_li._parity import PAPER, SOLVED
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.indicator import indicator_moment
from offtangent.theory.allen_zhu_li.parity import low_norm_parity
from offtangent.theory.allen_zhu_li.worst_signs import output_limit

ROUNDING = 1e-9
DEGREE = 3  # of the series in Weights


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    judges = {
        "Maps": _of_maps, "Tail": _of_tails, "Indicator": _of_indicators, "Weights": _of_weights,
        "Layers": _of_layers, "Parity": _of_parity,
    }  # fmt: skip
    for name, judge in judges.items():
        chosen = _kind(results, name)
        if len(chosen):
            found += judge(chosen)
    return found


def _kind(results: Results, name: str) -> Results:
    return Results(results.profile, tuple(one for one in results if type(one[0]).__name__ == name), results.complete)


def _all(results: Results, name: str) -> Float[np.ndarray, " k"]:
    return np.concatenate([np.ravel(data[name].values) for _, data in results])


def _table(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def _widths(results: Results) -> Float[np.ndarray, " k"]:
    return np.array([float(cell.width) for cell, _ in results])


def _largest(ratios: Float[np.ndarray, "s k"]) -> Interval:
    return max((mean_interval(column) for column in ratios.T), key=lambda one: one.high)


def _of_maps(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    where = f"{len(results) * cell.seeds} random maps, k = p = 1 and k = 4, p = 3, {cell.pairs} pairs each"
    return [
        Claim.at_most(
            float(_all(results, "slope").max()), 1.0, source="Fact B.3",
            statement="‖F(x) − F(y)‖ ≤ √k p 𝔠_s(F)‖x − y‖, with C* = 1",
            measured=f"largest ratio of the two sides, {where}",
            note="The proof ends with 3p𝔠_s; the factor 3 is not needed, since (x,1)/‖(x,1)‖ changes at the rate "
            "1/‖(x,1)‖ at most. A constant φ attains the bound.",
        ),
        Claim.at_most(
            float(_all(results, "printed").max()), 1.0, misprint=True, source="Fact B.3, as printed",
            statement="‖F(x)‖ ≤ √k p 𝔠_s(F)‖x‖", measured=f"largest ratio of the two sides, {where}",
            note="F(0) = Σ a φ(w₁·(0,1)) w₂·(0,1) is not zero, so that no C* mends it.",
        ),
        Claim.at_most(
            float(_all(results, "bound").max()), 1.0, source="Fact B.3, corrected",
            statement="‖F(x)‖ ≤ √k p 𝔠_s(F)‖(x, 1)‖, with C* = 1",
            measured=f"largest ratio of the two sides, {where}",
        ),
    ]  # fmt: skip


def _of_tails(results: Results) -> list[Claim]:
    found = []
    for law, told in (("product", "Σ a₁a₂1[n ≥ 0]h(α)"), ("square", "Σ a₁²1[n ≥ 0]h(α) less its mean")):
        chosen = results.where(law=law)
        if not len(chosen):
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
                statement=f"|{told}| ≥ BL(√m + B) with probability at most 4e^(−B²/8), at the largest h and indicators",
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
    energy = _all(results, "energy") / _all(results, "smooth") ** 2
    size = np.maximum(_all(results, "bound"), _all(results, "lipschitz")) / _all(results, "size")
    sizes = ", ".join(f"{cell.series}: {ratio:.2g}" for (cell, _), ratio in zip(results, size, strict=True))
    return [
        Claim.at_most(
            float(_all(results, "error").max()), epsilon / 4, source="Lemma F.2(a)",
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
    cell, widths = results.pairs[0][0], _widths(results)
    where = (
        f"k = {cell.outputs}, p = {cell.terms}, d = {cell.dim}, φ = ½ + z³, {cell.seeds} targets, m from "
        f"{widths[0]:.0f} to {widths[-1]:.0f}"
    )
    exact, norm = _table(results, "exact"), _table(results, "norm")
    longest = _table(results, "longest")
    found = [
        Claim.includes(
            mean_interval((norm * np.sqrt(widths) / exact)[:, -1], level=0.999), 1.0, source="Lemma F.1, ‖W⋆‖_F",
            statement="‖W⋆‖_F = m^(−1/2)(Σ_r E‖Σ_i a_ri h_ri w₂‖²)^(1/2), exactly in the mean",
            measured=f"measured over stated at the largest width, 99.9 % interval, {where}",
        ),
        Claim.at_most(
            float((norm * np.sqrt(widths) / _table(results, "smooth")).max()), 1.0, source="Lemma F.1, ‖W⋆‖_F",
            statement="‖W⋆‖_F ≤ k p 𝔠_s(F)/√m, with C* = 2 and Õ(·) as one",
            measured=f"largest ratio of the two sides, {where}",
        ),
        Claim.at_most(
            float((longest * widths / _table(results, "size")).max()), 1.0, source="Lemma F.1, ‖W⋆‖_2,∞",
            statement="‖W⋆‖_2,∞ ≤ k p 𝔠_ε(F)/m, with C* = 10⁴", measured=f"largest ratio of the two sides, {where}",
            note="C* = 10⁴, to the power of three, makes the bound empty here: weights many times as long would pass. "
            "What is left of it is the slope in m.",
        ),
    ]  # fmt: skip
    if len(results) < 3:
        return found
    logs = (2 * np.log(widths)) ** ((DEGREE + 1) / 2)
    slope = f"log-log slope in m, 99 % interval, {where}"
    return [
        Claim.includes(
            slope_interval(widths, _table(results, "error"), level=0.99), -0.5, source="Lemma F.1",
            statement="Σ_r |F_r(x) − G_r((x,1); W⋆)|/‖(x,1)‖ falls like m^(−1/2)", measured=slope,
            note=f"Root mean square over {cell.samples} inputs; {_table(results, 'error').mean(axis=0)[-1]:.3g} at the "
            "largest width.",
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
            note=f"Without the logarithm the slope is {slope_interval(widths, longest, level=0.99).value:.3f}.",
        ),
    ]  # fmt: skip


def _of_layers(results: Results) -> list[Claim]:
    cell, widths, first = results.pairs[0][0], _widths(results), results.pairs[0][1]
    k, tau, alpha = cell.outputs, float(first["tau_w"].mean()), float(first["alpha"].mean())
    tilde = alpha / (k * (SMOOTH_F + SMOOTH_G))
    reached = widths[-1] * (float(results.pairs[-1][1]["first"].mean()) / tilde**2) ** 2
    setting = f"k = {k}, d = {cell.dim}, τ_w = {tau:.3g}, τ_v = {TAU_V:g}, α = {alpha:.3g}, {cell.seeds} seeds"
    where = f"{setting}, m from {widths[0]:.0f} to {widths[-1]:.0f}"
    norms = np.concatenate([_all(results, "norm_w"), _all(results, "norm_v")])
    told = f"log-log slope in m, 99 % interval, {where}"
    slopes = [
        Claim.includes(
            slope_interval(widths, _table(results, name), level=0.99), -0.5, source=source, statement=statement,
            measured=measured,
        )
        for name, source, statement, measured in (
            ("first", "Lemma D.2(a)", "AD_W⁰ W⋆(x,1) − F(x) falls like m^(−1/2)", told),
            (
                "second", "Lemma D.2(b)", "AD_V⁰,W V⋆z − αG falls like m^(−1/2), uniformly in z = (out₁, 1)",
                f"the worst of {2 * cell.samples} points z for each seed, {told}",
            ),
        )
        if len(results) >= 3
    ]  # fmt: skip
    return [
        *slopes,
        Claim.at_most(
            float(norms.max()), 1.0, source="Lemma D.2",
            statement="‖W⋆‖_F ≤ k p_F 𝔠_s(F) and ‖V⋆‖_F ≤ α k p_G 𝔠_s(G), with C* = 2 and Õ(·) as one",
            measured=f"largest ratio of the two sides, {where}",
            note=f"The lemma's literal error α̃² = {tilde**2:.2g} would be reached at m ≈ {reached:.1g}.",
        ),
        _of_moved_first(results, tilde, where),
        _of_moved_second(results, tilde, where),
        _of_both(results, tilde, where),
    ]  # fmt: skip


def _of_moved_first(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(a) as its proof has it; as it is stated, for widths that nobody has, in a note."""
    cell, widths, tau = results.pairs[0][0], _widths(results), float(results.pairs[0][1]["tau_w"].mean())
    moved, base, length = _table(results, "first_moved"), _table(results, "base"), _length(results)
    change = float(_table(results, "first_change")[:, -1].max())
    miss = float((moved / base)[:, -1].mean())
    return Claim.at_most(
        _largest(moved / (tilde**2 + math.sqrt(2) * length * _turned(results))), 1.0, source="Lemma D.3(a)",
        statement="‖AD_W W⋆(x,1) − F‖ ≤ α̃² + Õ((τ_w/σ_w)^(1/3)m^(−1/6))‖W⋆‖_F‖(x,1)‖ for all W, Õ(·) as one",
        measured=f"largest ratio of the two sides, worst W found at each of {cell.points} inputs for each seed, 95 % "
        f"interval, {where}",
        note="The proof's display with ‖W⋆‖_F itself for τ_w, which is ten times it: with τ_w, W⋆ = 0 would pass. "
        f"At the largest width turned signs change AD_W⁰ W⋆(x,1) by up to {change:.2g}, and ‖W⋆‖_F is "
        f"{float(length[:, -1].mean()):.2g}. As stated, E‖·‖² ≤ O(α̃⁴), it asks for m ≥ (τ_w^(4/3)/α̃²)⁸ ≈ "
        f"{(tau ** (4 / 3) / tilde**2) ** 8:.0e}, and no profile tests it: at m = {widths[-1]:.0f} the miss is "
        f"{miss:.2g}‖F‖ where α̃² is {tilde**2 / float(base[:, -1].mean()):.1g}‖F‖, since a displacement of ten times "
        "‖W⋆‖_F that knows the signs can undo W⋆.",
    )  # fmt: skip


def _length(results: Results) -> Float[np.ndarray, "s k"]:
    """‖W⋆‖_F, measured; norm_w has C* = 2."""
    return _table(results, "norm_w") * 2 * results.pairs[0][0].outputs * SMOOTH_F


def _turned(results: Results) -> Float[np.ndarray, " k"]:
    """√(s/m) for the s turned signs of Lemma D.1(a), σ_w√m = m^(3/8)."""
    return (float(results.pairs[0][1]["tau_w"].mean()) / _widths(results) ** 0.375) ** (1 / 3)


def _of_moved_second(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(b), likewise. τ_v(τ_v/σ_v)^(1/3) = τ_v², since σ_v = 1/τ_v²."""
    cell, alpha = results.pairs[0][0], float(results.pairs[0][1]["alpha"].mean())
    moved, size = _table(results, "second_moved"), float(_table(results, "composite").mean())
    length = _table(results, "norm_v") * 2 * cell.outputs * SMOOTH_G * alpha  # ‖V⋆‖_F, measured
    allowed = (tilde**2 + TAU_V**2) / size
    return Claim.at_most(
        _largest(moved / (tilde**2 + length * TAU_V)), 1.0, source="Lemma D.3(b)",
        statement="‖AD_V,W V⋆z − αG‖ ≤ (α̃² + Õ((τ_v/σ_v)^(1/3))‖V⋆‖_F)‖z‖, z = (out₁, 1), σ_v = 1/τ_v², for all V, "
        "Õ(·) as one",
        measured="largest ratio of the two sides, worst V found at each z and the worst of "
        f"{2 * cell.points} points z for each seed, 95 % interval, {where}",
        note="The paper writes α̃G; with its own V⋆ and Table 1 it is αG. ‖V⋆‖_F itself stands for τ_v, which is ten "
        f"times it: as stated, with τ_v, {allowed:.2g}‖αG(F)‖ are allowed for {float(moved[:, -1].mean()) / size:.2g} "
        "found, and V⋆ = 0 would pass. That bound is below αG from τ_v ≤ "
        f"{size / TAU_V:.1g} on, α ≤ {size * alpha / TAU_V**2:.1g} (Table 1: τ_v ≤ 1/polylog(m)), and no profile goes "
        "there: at this τ_v a displacement of ten times ‖V⋆‖_F that knows the signs can undo V⋆ at every width.",
    )  # fmt: skip


def _of_both(results: Results, tilde: float, where: str) -> Claim:
    """Lemma D.3(c), as its proof has it: (a) and Lemma D.1(b)."""
    cell, widths, tau = results.pairs[0][0], _widths(results), float(results.pairs[0][1]["tau_w"].mean())
    both, base = _table(results, "both_moved"), _table(results, "base")
    still = math.sqrt(cell.outputs) * widths**-0.125
    allowed = tilde**2 + math.sqrt(2) * (_length(results) + tau) * _turned(results) + still
    longer, sigma = math.sqrt(2) * tau, float(widths[-1]) ** -0.125
    limit = output_limit(longer, math.sqrt(2) * sigma, int(widths[-1])) + float(still[-1])  # ~ m^(−1/8)
    return Claim.at_most(
        _largest(both / allowed), 1.0, source="Lemma D.3(c)",
        statement="‖AD_W(W⋆ − W)(x,1) − (F − out₁)‖ ≤ α̃² + Õ((τ_w/σ_w)^(1/3)m^(−1/6))(‖W⋆‖_F + τ_w)‖(x,1)‖ + √k σ_w "
        "for all W, by (a) and Lemma D.1(b), Õ(·) as one",
        measured=f"largest ratio of the two sides at the W of Lemma D.1(b), {cell.points} inputs for each seed, 95 % "
        f"interval, {where}",
        note="Nearly all of it is ‖AD_W W⁰(x,1)‖, with the limit 1.266 τ_w^(4/3)m^(−1/8) + √k σ_w = "
        f"{limit:.2g} next to {float(both[:, -1].mean()):.2g} in all at the largest width: W⋆ = 0 would pass, and what "
        f"tells is (a). As stated, E‖·‖² ≤ O(α̃⁴), it asks for m ≈ {widths[-1] * (limit / tilde**2) ** 8:.0e}, and no "
        f"profile tests it; here the miss is {float((both / base)[:, -1].mean()):.2g}‖F‖.",
    )  # fmt: skip


def _of_parity(results: Results) -> list[Claim]:
    cell, data = results.pairs[0]
    errors, norms = data["error"].values.ravel(), data["norm"].values.ravel()
    found = []
    for error, norm in PAPER:
        exact = low_norm_parity(6, range(6), cell.width, fit=1 - math.sqrt(error))
        trained = norms[errors <= error]
        told = f"Trained networks reach it with {trained.min():.3g}. " if trained.size else "No trained network does. "
        found.append(
            Claim.at_most(
                exact.norm / math.sqrt(6), norm, source="Appendix A.1",
                statement=f"there is W⋆ with ‖W⋆‖_F ≈ {norm:g}√d and E(F − y)² ≤ {error:g}, m = {cell.width}",
                measured=f"‖W⋆‖_F/√d of the 64 corners as neurons, scaled to the error {error:g}",
                note=f"{told}With all of ‖W‖_F = {SOLVED:.2f}√d the error is zero (m a multiple of 64).",
            )
        )  # fmt: skip
    needed = SOLVED * (1 - np.sqrt(errors))
    found.append(
        Claim.at_least(
            float((norms / needed).min()), 1 - 1e-4, source="Appendix A.1, sharpened",
            statement=f"E(F − y)² ≥ (1 − ‖W‖_F/{SOLVED:.2f}√d)²: no trained W at d = 6 does better than the corners",
            measured=f"smallest ratio of ‖W‖_F and what its error needs, {len(errors)} networks trained at d = 6, "
            f"m = {cell.width}",
            note="Trained networks are a sample: that it is so for every W on six coordinates rests on the largest "
            "correlation of a single neuron, found by search, and other d are not tried. Padded to d = 40 and copied "
            f"twice, ‖W‖_F/√d changes by a factor {float(data['copied']):.6g}.",
        )
    )  # fmt: skip
    return found


def figures(results: Results) -> list[Figure]:
    found = []
    weights, layers, parity = (_kind(results, name) for name in ("Weights", "Layers", "Parity"))
    if len(weights) >= 2:
        found.append(_sizes(weights))
    if len(layers) >= 2:
        found.append(_errors(layers))
    if len(parity):
        found.append(_norms(parity))
    return found


def _marked(plot: Any, results: Results, curves: dict[str, tuple[str, str]]) -> None:
    for name, (label, colour) in curves.items():
        table = _table(results, name)
        band = (table.min(axis=0), table.max(axis=0))
        points(plot, _widths(results), table.mean(axis=0), name=label, colour=colour, band=band)


def _sizes(results: Results) -> Figure:
    plot, widths = new_plot(), _widths(results)
    _marked(plot, results, {
        "error": ("error of G(x; W⋆)", "blue"), "norm": ("‖W⋆‖_F", "vermillion"), "longest": ("‖W⋆‖_2,∞", "green"),
    })  # fmt: skip
    start = float(_table(results, "error")[:, 0].mean())
    line(plot, widths, start * (widths / widths[0]) ** -0.5, name="m^(−1/2)", colour="grey", dash="dot")
    end = float(_table(results, "longest")[:, -1].mean())
    line(plot, widths, end * widths[-1] / widths, name="1/m", colour="grey", dash="dash")
    style(plot, x="width m", y="error, norms", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"k = p = 2, d = {cell.dim}, φ = ½ + z³, one target a seed, {cell.seeds} seeds (bars: all of them)."
    return Figure("Lemma F.1: better and shorter as the network grows wider", caption, plot)


def _errors(results: Results) -> Figure:
    plot = new_plot()
    _marked(plot, results, {
        "first": ("AD_W⁰ W⋆ against F", "blue"), "second": ("AD_V⁰ V⋆ against αG, over ‖z‖", "green"),
        "first_moved": ("AD_W W⋆, worst W", "vermillion"), "second_moved": ("AD_V V⋆, worst V", "orange"),
    })  # fmt: skip
    data = results.pairs[-1][1]
    line(plot, _widths(results), np.full(len(results), float(data["composite"].mean())), name="‖αG(F)‖",
         colour="grey", dash="dot")  # fmt: skip
    style(plot, x="width m", y="norm of the error", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"k = {cell.outputs}, displacements of ten times ‖W⋆‖_F and ‖V⋆‖_F that know the signs; {cell.seeds} seeds "
        "(bars: all of them)."
    )
    return Figure("Lemmas D.2 and D.3: the target is in the network, and how safe it is there", caption, plot)


def _norms(results: Results) -> Figure:
    cell, data = results.pairs[0]
    plot, grid = new_plot(), np.linspace(0.5, 0.999, 200)
    line(plot, SOLVED * grid, (1 - grid) ** 2, name="exact optimum, m a multiple of 64", colour="blue")
    points(plot, data["norm"].values.ravel(), data["error"].values.ravel(), name=f"trained, m = {cell.width}",
           colour="orange")  # fmt: skip
    points(plot, [norm for _, norm in PAPER], [error for error, _ in PAPER], name="Appendix A.1", colour="vermillion",
           symbol="diamond")  # fmt: skip
    style(plot, x="‖W‖_F/√d", y="mean square error", log_y=True)
    caption = "Parity of six coordinates by a two-layer ReLU network; Adam on all 64 corners with weight decay."
    return Figure("A parity needs ‖W‖_F = 13.06√d, and 64 neurons", caption, plot)
