"""What Algorithm 1 says about the proof of Theorem 1: claims and figures."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.concept import ConceptComplexity
from offtangent.theory.allen_zhu_li.parameters import ENOUGH, ROOM, ResNetSettings, theorem1
from offtangent.theory.allen_zhu_li.worst_signs import flip_fraction, operator_limit

ROUNDING = 1e-3  # of sums over thousands of neurons in float32
EQUAL = 1e-9  # by which rounding may part two equal numbers
LEAST_WIDTHS = 3  # of a slope


def claims(results: Results) -> list[Claim]:
    """Of the cells with one way to set the radii, each claim at the width where it is nearest to failing."""
    found = []
    for stated in (True, False):
        here = results.where(stated=stated, optimum=0.0)
        if len(here):
            every = [_of(cell, data) for cell, data in here]
            found += [min(same, key=_margin) for same in zip(*every, strict=True)] + _steepest(here)
        elif stated and len(results):
            why = "No cell here has the theorem's α, δ, T, τ_w and τ_v."
            found.append(
                Claim.not_run(
                    source="Theorem 1",
                    statement="(1/T)Σ E‖H − out_t‖² ≤ O(δ), constant one, τ_w and τ_v of Theorem 1",
                    reason="size",
                    why=why,
                    profile="paper",
                )
            )
    noisy = [_promise(*_summed(cell, data)) for cell, data in results if cell.optimum > 0]
    return found + ([min(noisy, key=_margin)] if noisy else [])


def _margin(claim: Claim) -> float:
    low, high = claim.interval or (claim.value or 0.0, claim.value or 0.0)
    return low if claim.expected.startswith("≥") else -high


def _of(cell: Any, data: Any) -> list[Claim]:
    summed = _summed(cell, data)
    return [*_inequalities(*summed), *_errors(*summed), _promise(*summed)]


def _summed(cell: Any, data: Any) -> tuple[Any, Any, dict[str, float], str]:
    """A cell and its data, with means over seeds and where they come from."""
    one = {name: float(data[name].mean()) for name in data.data_vars if set(data[name].dims) <= {"seed"}}
    one["base_bound"] = float(data["base_bound"].max())
    where = (
        f"k = {cell.outputs}, m = {cell.width}, T = {one['steps']:.0f}, α = {one['alpha']:.3g}, {cell.seeds} seeds, "
        f"{len(data['moment'])} moments, {cell.samples} fresh samples"
    )
    return cell, data, one, where


def _table1(cell: Any, one: dict[str, float]) -> tuple[Hypothesis, ...]:
    """The ranges of Table 1, its polylog as one."""
    m, source = cell.width, "Table 1"
    return (
        Hypothesis("radius τ_w", one["tau_w"], "≥", 1.0, source),
        Hypothesis("√m σ_w", m**0.375, ">", one["tau_w"], source),
        Hypothesis("radius τ_v", one["tau_v"], "≥", one["sigma_v"] * (cell.outputs / m) ** 0.375, source),
        Hypothesis("radius τ_v", one["tau_v"], "≤", 1.0, f"{source}, 1/polylog(m)", given=False),
        Hypothesis("σ_v", one["sigma_v"], "≤", m**0.37, source),
    )


def _asked(cell: Any, one: dict[str, float]) -> tuple[ResNetSettings, float]:
    """What `theorem1` sets for the cell's maps with C* = 2, and the largest α that it allows."""
    k, alpha = cell.outputs, one["alpha"]
    composite = one["lipschitz"] / math.sqrt(k)  # 𝔠_s with C* = 1, p = 1
    base = alpha / (k * one["tilde"]) - composite
    sizes = [ConceptComplexity(k, 1, ENOUGH * smooth, 0.0, ENOUGH) for smooth in (base, composite)]
    found = theorem1(*sizes, alpha=alpha, width=cell.width, base_bound=one["base_bound"], optimum=cell.optimum)
    return found, 1 / (ROOM * k * ENOUGH * composite)


def _theorem1(cell: Any, one: dict[str, float]) -> tuple[Hypothesis, ...]:
    """What Theorem 1 asks for, as `theorem1` computes it: α, δ, T, the ranges of Table 1 and a width."""
    asked, largest = _asked(cell, one)
    source = "Theorem 1, C* = 2 and the 10 of Lemma D.2"
    return (
        Hypothesis("α", one["alpha"], "≤", largest * (1 + EQUAL), f"{source}: 1/(10k p_G 𝔠_s(G))", given=False),
        Hypothesis("δ", cell.delta, "≥", asked.delta, f"{source}: (10αk p_G 𝔠_s(G))⁴(1 + 𝔅_F)²", given=False),
        Hypothesis(
            "steps T",
            one["steps"],
            "≥",
            asked.tau_w**2 / min(1.0, cell.delta) ** 2 * (1 - EQUAL),
            f"{source}: (10k p_F 𝔠_s(F))²/min(1, δ²)",
            given=False,
        ),
        *_table1(cell, one),
        Hypothesis("width m", cell.width, "≥", 1 / one["alpha"], "Theorem 1: M = poly(1/α, …)", given=False),
    )


def _inequalities(cell: Any, data: Any, one: dict[str, float], where: str) -> list[Claim]:
    gap, error, xi = (data[name].values for name in ("gap", "error", "correlation"))
    norms = data["norms"].values.max(axis=1) / np.array([one["tau_w"], one["tau_v"]])
    return [
        Claim.at_least(
            float(data["slack"].min()),
            -ROUNDING,
            source="Section 6.1, Fact D.4",
            identity=True,
            statement="Ξ_t ≥ ½‖H − out‖² − 2‖Err_t‖² at every moment and sample",
            measured=f"smallest difference over ‖H − out‖² + ‖Err‖², Ξ by autodiff, Err by Fact D.4, {where}",
            note="This is algebra once Ξ = ⟨H − out, H − out + Err⟩: what it tests is Fact D.4, the formula of the "
            f"gradient. Mean ‖Err‖² is {error.mean():.2g}, mean ‖H − out‖² goes from {gap[:, 0].mean():.2g} to "
            f"{gap[:, -1].mean():.2g}, mean Ξ from {xi[:, 0].mean():.2g} to {xi[:, -1].mean():.2g}.",
        ),
        Claim.at_most(
            _widest(norms[:, 0], norms[:, 1]),
            1.0,
            source="eq. (D.3)",
            hypotheses=_theorem1(cell, one),
            statement="‖W_t‖_F ≤ τ_w and ‖V_t‖_F ≤ τ_v throughout",
            measured=f"largest ratio over moments, 95 % interval, {where}",
            note=f"‖W_T‖_F is {data['norms'].values[:, -1, 0].mean() / one['star_w']:.2f} ‖W⋆‖_F, ‖V_T‖_F is "
            f"{data['norms'].values[:, -1, 1].mean() / one['star_v']:.3f} ‖V⋆‖_F.",
        ),
        *_gradients(data, one, where),
    ]


def _gradients(data: Any, one: dict[str, float], where: str) -> list[Claim]:
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
                float((steepest / limit).max()),
                1.0,
                source="Claim D.5",
                identity=True,
                statement=f"‖∇_{symbol} Obj‖_F ≤ ‖y − out‖·O({size}), the norms of A and V⁰ as they are",
                measured=f"largest ratio of the two sides, {where}",
                note=f"‖∇_{symbol} Obj‖_F/‖y − out‖ is at most {steepest.max():.3g}. With these norms it is the "
                "formula of the gradient that is tested.",
            )
        )
    return found


def _steepest(results: Results) -> list[Claim]:
    """What is O(1) along SGD does not grow with m: gradients, which the proof of Theorem 1 uses, and (f)."""
    sweep = results.sweep("width", f"largest over moments and samples, {results.first.seeds} seeds", least=LEAST_WIDTHS)
    _, data = results.pairs[0]
    tau, sigma = (float(data[one].mean()) for one in ("tau_v", "sigma_v"))
    worst = f"0.639 τ_v^(2/3)σ_v^(1/3) = {operator_limit(tau, sigma, 1):.2g}"
    uses = (
        "The proof of Theorem 1 uses η_w·O(1) of it; O(σ_v + 1) = O(1/τ_v²) would not do. For the worst V "
        f"‖AD_V,W V⁰‖₂ is not as Lemma D.1(f) prints it but up to {worst}, which is O(1) as well."
    )
    printed = f"τ_v(τ_v/σ_v)^(1/3) = {tau * (tau / sigma) ** (1 / 3):.2g}"
    found = []
    for name, source, bound, note in (
        ("gradient_w", "Claim D.5", "‖∇_W Obj‖_F ≤ ‖y − out‖·O(σ_v + 1)", uses),
        ("gradient_v", "Claim D.5", "‖∇_V Obj‖_F ≤ ‖y − out‖·O(τ_w + 1)", ""),
        ("f", "Lemma D.1(f), along SGD", f"‖AD_V,W V⁰‖₂ ≤ Õ({printed})", f"The worst V within τ_v makes it {worst}."),
    ):
        words: dict[str, Any] = {
            "source": source,
            "statement": f"{bound} for every m: along SGD the left side does not grow with m, "
            f"{_radii_of(results.first)}",
        }
        if sweep is None:
            why = f"It takes {LEAST_WIDTHS} widths."
            found.append(Claim.not_run(reason="size", why=why, profile="paper", **words))
            continue
        told = f"It is {sweep.ends(name)}. {note}".strip()
        found.append(sweep.slope(name, "≤", 0.0, hypotheses=_every(results), note=told, **words))
    return found


def _every(results: Results) -> tuple[Hypothesis, ...]:
    """Table 1 at the smallest width, where it asks for most."""
    cell, data = min(results, key=lambda pair: int(pair[0].width))
    return _table1(cell, {name: float(data[name].mean()) for name in ("tau_w", "tau_v", "sigma_v")})


def _errors(cell: Any, data: Any, one: dict[str, float], where: str) -> list[Claim]:
    B, tau, alpha = one["base_bound"], one["tau_v"], one["alpha"]
    mean_error, mean_gap = (np.sqrt(data[name].values) for name in ("error", "gap"))
    slope = tau + alpha * one["lipschitz"]
    rest = one["tilde"] ** 2 + tau**2 * (1 + B) + alpha * tau * one["lipschitz"] * (B + 1)
    printed = (mean_error**2 / ((slope * mean_gap) ** 2 + rest**2)).max(axis=1)
    missed = float((data["far"].values / (tau * (B + 1) + alpha * one["composite_bound"])).max())
    _, largest = _asked(cell, one)
    settings = (
        Hypothesis("α", alpha, "≤", largest * (1 + EQUAL), "Table 1, C* = 2: 1/(10k p_G 𝔠_s(G))", given=False),
        *_table1(cell, one),
        Hypothesis(
            "width m",
            cell.width,
            "≥",
            cell.width * max(1.0, one["mean_b"] / one["tilde"] ** 2) ** 8,
            "Claim D.6: m ≥ M, ‖AD_W W⁰(x,1)‖ ~ m^(−1/8) below α̃²",
            given=False,
        ),
    )
    return [
        Claim.at_most(
            _positive(printed),
            1.0,
            source="Claim D.6",
            hypotheses=settings,
            statement="E‖Err‖² ≤ (τ_v + α𝔏_G)² E‖H − out‖² + (α̃² + τ_v²(1 + 𝔅_F) + ατ_v𝔏_G(𝔅_F + 1))², O(·) as one",
            measured=f"largest ratio over moments, 95 % interval, {where}",
            note="What is missing is Lemma D.1(b), ‖AD_W W⁰(x,1)‖, which the claim drops for m ≥ M: it falls like "
            f"m^(−1/8), its mean is {one['mean_b']:.2g} here and α̃² = {one['tilde'] ** 2:.1g}. No profile is so wide. "
            f"Claim D.7, on which it rests, is far from tight: ‖out₁ − F‖ − 2‖out − H‖ is at most {missed:.2g} of "
            "τ_v(𝔅_F + 1) + α𝔅_F∘G.",
        ),
    ]


def _promise(cell: Any, data: Any, one: dict[str, float], where: str) -> Claim:
    first, second = (one[f"star_{name}"] ** 2 / (2 * one[f"rate_{name}"] * one["steps"]) for name in "wv")
    allowed = 4 * (first + second) + 8 * data["error"].values.mean(axis=1)
    start = float(data["gap"].values[:, 0].mean())
    share = float((data["norms"].values[:, -1, 1] / data["star_v"].values).mean())
    noise = f", OPT = {cell.optimum:g}" if cell.optimum else ""
    return Claim.at_most(
        _positive(data["mean_gap"].values / cell.delta),
        1.0,
        source=f"Theorem 1{noise}",
        hypotheses=_theorem1(cell, one),
        statement=f"(1/T)Σ E‖H − out_t‖² ≤ O(δ), constant one, δ = {cell.delta:g}, {_radii_of(cell)}",
        measured=f"mean over the run over δ, 95 % interval, {where}",
        note=f"At the start it is {start / cell.delta:.2g} δ. ‖αG(F)‖² is {one['signal']:.1g}, "
        f"{one['signal'] / cell.delta:.1g} δ, and V comes to {100 * share:.2g} % of ‖V⋆‖_F: this tells that F is "
        "learnt and not whether G is, and would hold with η_v = 0 as well; where G matters is in "
        "allen_zhu_li/corollary71. Eq. (D.4), from which the proof concludes, allows "
        f"{allowed.mean():.2g} here, {allowed.mean() / start:.2g} times what the network starts with: it says nothing "
        "at these widths.",
    )


def _radii_of(cell: Any) -> str:
    return "τ_w and τ_v of Theorem 1" if cell.stated else "τ_w and τ_v ten times ‖W⋆‖_F and ‖V⋆‖_F"


def _positive(ratios: Float[np.ndarray, " s"]) -> Interval:
    """Of ratios that cannot be negative, nor then their interval: by logarithms."""
    return ratio_interval(ratios, np.ones_like(ratios))


def _widest(*samples: Float[np.ndarray, " s"]) -> Interval:
    return max((_positive(one) for one in samples), key=lambda one: one.high)


def figures(results: Results) -> list[Figure]:
    if not len(results):
        return []
    cell, data = (results.where(optimum=0.0) or results).pairs[-1]
    steps = data["moment"].values.astype(float)
    where = f"m = {cell.width}, mean of {cell.seeds} seeds and {cell.samples} fresh samples; bands: all seeds"
    plot = new_plot()
    for name, label, colour in (
        ("gap", "‖H − out‖²", "blue"),
        ("error", "‖Err‖²", "vermillion"),
        ("correlation", "Ξ", "green"),
    ):
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
        line(
            plot,
            steps[1:],
            table.mean(axis=0),
            name=f"{label}, along SGD",
            colour=colour,
            band=(table.min(axis=0), table.max(axis=0)),
        )
        worst = np.full(len(steps) - 1, flip_fraction(radius))
        line(plot, steps[1:], worst, name=f"{label}, worst within τ", colour=colour, dash="dot")
    style(plot, x="step of Algorithm 1", y="share of signs that changed", log_y=True)
    found.append(Figure("Signs that change along SGD, and those that could", f"{where}.", plot))
    return found
