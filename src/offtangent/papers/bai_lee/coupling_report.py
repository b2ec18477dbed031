"""What the results on the coupling say: their claims and figures."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points, style

NAMES = {"relu3": "relu³/6 at W⋆", "softplus": "softplus"}
ROUNDING = 1e-9  # of sums of 10⁵ numbers in float64
LATE = (
    " It settles late: a(w₀) has heavy tails, and networks narrower than these miss the rare large ones, so that from "
    "smaller widths on the slope would be nearer to zero."
)
CURVES = {
    "quadratic": ("f^Q", "blue"),
    "linear": ("f^L, random signs", "vermillion"),
    "linear_unsigned": ("f^L without signs", "orange"),
    "remainder": ("Δ^Q, random signs", "green"),
    "remainder_worst": ("Δ^Q, worst signs", "purple"),
}


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for activation in results.values("activation"):
        found += _of(activation, results.where(activation=activation))
    return found


def _of(activation: str, results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    cell = results.pairs[0][0]
    widths = np.array([float(one.width) for one, _ in results])
    over = (
        f"{NAMES[activation]}, n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds, {2 * cell.draws} signs each, "
        f"{len(widths)} widths from {widths[0]:.0f} to {widths[-1]:.0f}"
    )
    slope = f"log-log slope in m, 99 % interval, {over}"

    def table(name: str) -> Float[np.ndarray, "s k"]:
        return np.stack([data[name].values for _, data in results], axis=1)

    def largest(name: str) -> float:
        return float(table(name).max())

    at_random = slope_interval(widths, table("remainder"), level=0.99)
    ratio = (table("linear") ** 2).mean(axis=1) / (table("linear_exact") ** 2).mean(axis=1)
    said: dict[str, Any] = {"source": "Section 3"}
    return [
        Claim.includes(
            mean_interval(table("linear_mean").ravel(), level=0.99), 0.0, **said,
            statement="E_Σ f^L_{WΣ} = 0",
            measured="mean over signs of f^L's mean over inputs, in standard errors (exact variance), averaged over "
            f"networks, 99 % interval, {over.replace(f'{2 * cell.draws} signs', f'{cell.draws} independent signs')}",
        ),
        Claim.at_most(
            largest("quadratic_change"), ROUNDING, **said,
            statement="f^Q_{WΣ} = f^Q_W, computed at WΣ itself",
            measured=f"largest difference over the root mean square of f^Q, {over}",
        ),
        Claim.includes(
            mean_interval(ratio, level=0.99), 1.0, **said,
            statement="E_Σ (f^L_{WΣ})² = m⁻¹ Σ_r a_r² σ'(w_{0,r}ᵀx)² (w_rᵀx)²",
            measured=f"measured over stated, 99 % interval, {over}",
        ),
        Claim.includes(
            slope_interval(widths, table("linear"), level=0.99), -0.25, **said,
            statement="f^L_{WΣ} falls like m^(−1/4) under random signs", measured=slope,
            note=f"m^(1/4) f^L, root mean square: {_first_and_last(widths**0.25 * _pooled(table('linear')))}."
            + (LATE if activation == "relu3" else ""),
        ),
        Claim.includes(
            slope_interval(widths, table("quadratic"), level=0.99), 0.0, **said,
            statement="f^Q stays of order one: it neither grows nor falls with the width", measured=slope,
        ),
        Claim.includes(
            slope_interval(widths, table("quadratic") / table("linear"), level=0.99), 0.25, **said,
            statement="f^Q outgrows f^L like m^(1/4): the network is coupled with its quadratic part", measured=slope,
            note=f"f^Q over f^L: {_first_and_last(table('quadratic') / table('linear'))}; without signs "
            f"{_first_and_last(table('quadratic') / np.maximum(table('linear_unsigned'), 1e-300))}.",
        ),
        Claim.at_most(
            largest("lemma_remainder"), 1 + ROUNDING, source="Lemma 11(b)",
            statement="|Δ^Q| ≤ (C/6) B_x³ ‖W‖³_{2,4} m^(−1/4) for all signs, C the Lipschitz constant of σ''",
            measured=f"largest ratio of the two sides, at the worst signs for each input, {over}",
            note="C = 1 for relu³/6, and at most 0.1 for the softplus, for which 1 is taken all the same.",
        ),
        Claim.no_slower(
            slope_interval(widths, table("remainder_worst"), level=0.99), -0.25, source="Lemma 11(b)",
            statement="Δ^Q = O(m^(−1/4)) at the worst signs", measured=slope,
        ),
        Claim.no_slower(
            at_random, -0.25, source="Lemma 11(b)",
            statement="Δ^Q = O(m^(−1/4)) under random signs", measured=slope,
            note="It falls faster: under random signs its part of third order averages out like f^L."
            if at_random.high < -0.25
            else "",
        ),
        Claim.at_most(
            largest("lemma_linear"), 1 + ROUNDING, source="Lemma 11(a)",
            statement="E_Σ (f^L_{WΣ})² ≤ (max|σ'|)² B_x² ‖W‖²_{2,4} m^(−1/2), max over |t| ≤ B_x max_r ‖w_{0,r}‖",
            measured=f"largest ratio of the two sides, {over}",
        ),
        Claim.at_most(
            largest("initial"), 1.0, source="eq. (4)",
            statement="max_r B_x ‖w_{0,r}‖ ≤ √(8(d log 5 + log(m/δ))) with probability 1 − δ",
            measured=f"largest ratio of the two sides, δ = 0.1, {over}",
        ),
    ]  # fmt: skip


def _pooled(values: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "1 k"]:
    """The root mean square over seeds."""
    return np.sqrt((values**2).mean(axis=0, keepdims=True))


def _first_and_last(values: Float[np.ndarray, "s k"]) -> str:
    means = values.mean(axis=0)
    return f"{means[0]:.3g} at the smallest width, {means[-1]:.3g} at the largest"


def figures(results: Results) -> list[Figure]:
    drawn = []
    for activation in results.values("activation"):
        chosen = results.where(activation=activation)
        if len(chosen) < 2:
            continue
        widths = np.array([float(one.width) for one, _ in chosen])
        plot = new_plot()
        for name, (label, colour) in CURVES.items():
            table = np.stack([data[name].values for _, data in chosen], axis=1)
            points(plot, widths, table.mean(axis=0), name=label, colour=colour,
                   band=(table.min(axis=0), table.max(axis=0)))  # fmt: skip
        first = float(chosen.pairs[0][1]["linear"].mean())
        line(plot, widths, first * (widths / widths[0]) ** -0.25, name="m^(−1/4)", colour="grey", dash="dot")
        style(plot, x="width m", y="root mean square over inputs and signs", log_x=True, log_y=True)
        cell = chosen.pairs[0][0]
        caption = (
            f"n = {cell.samples} inputs on the sphere in {cell.dim} dimensions, {2 * cell.draws} signs, "
            f"{cell.seeds} seeds (bars: all of them)."
        )
        drawn.append(
            Figure(f"Signs leave the quadratic part and take away the linear one: {NAMES[activation]}", caption, plot)
        )
    return drawn
