"""What Algorithm 1 says about the proof of Theorem 1: claims and figures."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, mean_interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.worst_signs import flip_fraction, operator_limit

ROUNDING = 1e-3  # of sums over thousands of neurons in float32


def claims(results: Results) -> list[Claim]:
    """Each claim at the width where it is nearest to failing."""
    every = [_of(cell, data) for cell, data in results]
    return [min(same, key=_margin) for same in zip(*every, strict=True)]


def _margin(claim: Claim) -> float:
    low, high = claim.interval or (claim.value or 0.0, claim.value or 0.0)
    return low if claim.expected.startswith("≥") else -high


def _of(cell: Any, data: Any) -> list[Claim]:
    one = {name: float(data[name].mean()) for name in data.data_vars if set(data[name].dims) <= {"seed"}}
    where = (
        f"m = {cell.width}, T = {one['steps']:.0f}, α = {one['alpha']:.3g}, {cell.seeds} seeds, {len(data['moment'])} "
        f"moments, {cell.samples} fresh samples"
    )
    return [*_inequalities(data, one, where), *_bounds(data, one, where), *_errors(data, one, cell.delta, where)]


def _inequalities(data: Any, one: dict[str, float], where: str) -> list[Claim]:
    gap, error, xi = (data[name].values for name in ("gap", "error", "correlation"))
    first = one["star_w"] ** 2 / (2 * one["rate_w"] * one["steps"])
    second = one["star_v"] ** 2 / (2 * one["rate_v"] * one["steps"])
    mean = float(error.mean())
    allowed = 4 * (first + second) + 8 * error.mean(axis=1)
    norms = data["norms"].values.max(axis=1) / np.array([one["tau_w"], one["tau_v"]])
    return [
        Claim.at_least(
            float(data["slack"].min()), -ROUNDING, source="Section 6.1, Fact D.4",
            statement="Ξ_t ≥ ½‖H − out‖² − 2‖Err_t‖² at every moment and sample",
            measured=f"smallest difference over ‖H − out‖² + ‖Err‖², Ξ by autodiff, Err by Fact D.4, {where}",
            note="This is algebra once Ξ = ⟨H − out, H − out + Err⟩: what it tests is Fact D.4, the formula of the "
            f"gradient. Mean ‖Err‖² is {mean:.2g}, mean ‖H − out‖² goes from {gap[:, 0].mean():.2g} to "
            f"{gap[:, -1].mean():.2g}, mean Ξ from {xi[:, 0].mean():.2g} to {xi[:, -1].mean():.2g}.",
        ),
        Claim.at_most(
            _widest(norms[:, 0], norms[:, 1]), 1.0, source="eq. (D.3)",
            statement="‖W_t‖_F ≤ τ_w and ‖V_t‖_F ≤ τ_v throughout",
            measured=f"largest ratio over moments, 95 % interval, {where}",
            note=f"‖W_T‖_F is {data['norms'].values[:, -1, 0].mean() / one['star_w']:.2f} ‖W⋆‖_F, ‖V_T‖_F is "
            f"{data['norms'].values[:, -1, 1].mean() / one['star_v']:.2f} ‖V⋆‖_F.",
        ),
        Claim.at_most(
            ratio_interval(data["mean_gap"].values, allowed), 1.0, source="eq. (D.4)",
            statement="mean ‖H − out_t‖² ≤ 4(‖W⋆‖²/2η_wT + ‖V⋆‖²/2η_vT) + 8 mean ‖Err_t‖²",
            measured=f"ratio of the two sides, 95 % interval, {where}",
            note=f"At the start ‖H − out‖² is {gap[:, 0].mean() / allowed.mean():.2g} of the right side, most of which "
            f"is ‖Err‖²; without that term the ratio would be {one['mean_gap'] / (4 * (first + second)):.2g}.",
        ),
    ]  # fmt: skip


def _bounds(data: Any, one: dict[str, float], where: str) -> list[Claim]:
    a = data["norm_a"].values
    limits = (
        math.sqrt(2) * a * (1 + a * (data["norm_v0"].values + one["tau_v"])),
        a * (1 + math.sqrt(2) * a * one["tau_w"] + data["b"].values),
    )
    found = []
    for name, symbol, size, limit in zip("wv", "WV", ("σ_v + 1", "τ_w + 1"), limits, strict=True):
        steepest = data[f"gradient_{name}"].values
        found.append(
            Claim.at_most(
                float((steepest / limit).max()), 1.0, source="Claim D.5",
                statement=f"‖∇_{symbol} Obj‖_F ≤ ‖y − out‖·O({size}), the norms of A and V⁰ as they are",
                measured=f"largest ratio of the two sides, {where}",
                note=f"‖∇_{symbol} Obj‖_F/‖y − out‖ is at most {steepest.max():.3g}. With these norms it is the "
                "formula of the gradient that is tested.",
            )
        )  # fmt: skip
    return [found[0], _steepest(data, one, where), found[1]]


def _steepest(data: Any, one: dict[str, float], where: str) -> Claim:
    """The gradient in W by Lemma D.1(f): ‖(x,1)‖‖A‖₂(1 + ‖AD_V,W V⁰‖₂ + ‖A‖₂‖V‖₂), (f) ≤ τ_v² ≤ τ_v as σ_v = 1/τ_v²."""
    a, tau = data["norm_a"].values, one["tau_v"]
    allowed = math.sqrt(2) * a * (1 + (1 + a) * tau)
    worst = operator_limit(tau, one["sigma_v"], 1)
    return Claim.at_most(
        _positive(data["gradient_w"].values / allowed), 1.0, source="Claim D.5, sharpened",
        statement="‖∇_W Obj‖_F ≤ ‖y − out‖·O(τ_v + 1) along SGD: √2‖A‖₂(1 + (1 + ‖A‖₂)τ_v), ‖A‖₂ as it is, by Lemma "
        "D.1(f), Õ(·) as one",
        measured=f"largest ratio of the two sides over moments and samples, 95 % interval over seeds, {where}",
        note="This is what the proof of Theorem 1 uses, η_w·O(1); O(σ_v + 1) = O(1/τ_v²) would not do. For the worst V "
        f"(f) is not as printed: ‖AD_V,W V⁰‖₂ is up to 0.639 τ_v^(2/3)σ_v^(1/3) = {worst:.2g}, which is O(1) as well.",
    )  # fmt: skip


def _errors(data: Any, one: dict[str, float], delta: float, where: str) -> list[Claim]:
    B, tau, alpha = one["base_bound"], one["tau_v"], one["alpha"]
    mean_error, mean_gap = (np.sqrt(data[name].values) for name in ("error", "gap"))
    slope = tau + alpha * one["lipschitz"]
    rest = one["tilde"] ** 2 + tau**2 * (1 + B) + alpha * tau * one["lipschitz"] * (B + 1)
    printed = (mean_error**2 / ((slope * mean_gap) ** 2 + rest**2)).max(axis=1)
    share = float(_positive(printed).value)
    width = data["b"].values[:, None]
    whole = (mean_error / (slope * mean_gap + rest + width)).max(axis=1)
    missed = data["far"].values / (tau * (B + 1) + alpha * one["composite_bound"])
    promised = tau**4 * (1 + B) ** 2
    f = data["f"].values
    worst = operator_limit(tau, one["sigma_v"], 1)
    return [
        Claim.at_most(
            _positive(whole), 1.0, source="Claim D.6, with (b)",
            statement="√E‖Err‖² ≤ (τ_v + α𝔏_G)√E‖H − out‖² + α̃² + τ_v²(1 + 𝔅_F) + ατ_v𝔏_G(𝔅_F + 1) + ‖AD_W W⁰(x,1)‖, "
            "O(·) as one",
            measured=f"largest ratio over moments, 95 % interval, {where}",
            note="The last term is Lemma D.1(b), which the claim drops for m ≥ M: it falls like m^(−1/8), and here "
            f"its mean is {one['mean_b']:.2g}. As stated, without it, E‖Err‖² is {share:.2g} of its bound; no profile "
            f"is so wide that (b) is below α̃² = {one['tilde'] ** 2:.1g}.",
        ),
        Claim.at_most(
            mean_interval(missed), 1.0, source="Claim D.7",
            statement="‖out₁ − F‖ ≤ 2‖out − H‖ + τ_v(𝔅_F + 1) + α𝔅_F∘G, O(·) as one",
            measured=f"largest (‖out₁ − F‖ − 2‖out − H‖) over the rest, 95 % interval, {where}",
        ),
        Claim.at_most(
            _positive(data["mean_gap"].values / delta), 1.0, inside=delta >= promised, source="Theorem 1",
            statement="(1/T)Σ E‖H − out_t‖² ≤ O(δ), constant one, at a width that Table 1 admits; the theorem's own M, "
            "a polynomial that it does not give, is not asked for",
            measured=f"mean over the run over δ = {delta:g}, 95 % interval, {where}",
            note=f"At the start it is {float(data['gap'].values[:, 0].mean()) / delta:.2g} δ. The theorem promises no "
            f"less than τ_v⁴(1 + 𝔅_F)² = {promised:.2g}, and ‖αG(F)‖² is {one['signal']:.1g}: at these sizes it tells "
            "that F is learnt, and not whether G is.",
        ),
        Claim.at_most(
            _positive(f / (tau * (tau / one["sigma_v"]) ** (1 / 3))), 1.0, source="Lemma D.1(f), along SGD",
            statement="‖AD_V,W V⁰‖₂ ≤ τ_v(τ_v/σ_v)^(1/3) along SGD, as printed, Õ(·) as one",
            measured=f"largest ratio over moments and samples, 95 % interval, {where}",
            note=f"The worst V within τ_v would make it {worst:.2g}; here it is at most {f.max():.2g}.",
        ),
    ]  # fmt: skip


def _positive(ratios: Float[np.ndarray, " s"]) -> Interval:
    """Of ratios that cannot be negative, nor then their interval: by logarithms."""
    return ratio_interval(ratios, np.ones_like(ratios))


def _widest(*samples: Float[np.ndarray, " s"]) -> Interval:
    return max((_positive(one) for one in samples), key=lambda one: one.high)


def figures(results: Results) -> list[Figure]:
    if not len(results):
        return []
    cell, data = results.pairs[-1]
    steps = data["moment"].values.astype(float)
    where = f"m = {cell.width}, mean of {cell.seeds} seeds and {cell.samples} fresh samples; bands: all seeds"
    plot = new_plot()
    for name, label, colour in (
        ("gap", "‖H − out‖²", "blue"), ("error", "‖Err‖²", "vermillion"), ("correlation", "Ξ", "green"),
    ):  # fmt: skip
        table = data[name].values
        line(plot, steps, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    style(plot, x="step of Algorithm 1", y="square of the error; Ξ")
    found = [Figure("The network gets below what the proof allows for", f"{where}.", plot)]
    one = {name: float(data[name].mean()) for name in ("tau_w", "tau_v", "sigma_v")}
    sigma_w = cell.width**-0.125
    shares = (
        ("first", "first layer", "blue", one["tau_w"] / (sigma_w * math.sqrt(cell.width))),
        ("second", "second layer", "orange", one["tau_v"] / one["sigma_v"]),
    )
    plot = new_plot()
    for name, label, colour, radius in shares:
        table = data[name].values[:, 1:] / cell.width
        line(plot, steps[1:], table.mean(axis=0), name=f"{label}, along SGD", colour=colour,
             band=(table.min(axis=0), table.max(axis=0)))  # fmt: skip
        worst = np.full(len(steps) - 1, flip_fraction(radius))
        line(plot, steps[1:], worst, name=f"{label}, worst within τ", colour=colour, dash="dot")
    style(plot, x="step of Algorithm 1", y="share of signs that changed", log_y=True)
    found.append(Figure("Signs that change along SGD, and those that could", f"{where}.", plot))
    return found
