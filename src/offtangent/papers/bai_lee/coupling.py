r"""Section 3: random signs take a network out of its tangent space and couple it with its quadratic part.

With neurons that moved by $\|w_r\| \sim m^{-1/4}$ and independent signs $\Sigma_{rr} = \pm 1$ on them, the linear part
$f^L_{W\Sigma}$ has mean zero and falls like $m^{-1/4}$, the quadratic part $f^Q_{W\Sigma} = f^Q_W$ does not change and
stays of order one, and what is left, $\Delta^Q$, is at most of order $m^{-1/4}$ for every choice of signs (Lemma 11).

One kind of cell: a width, and two networks for each seed. With σ = relu³/6 the weights are those W⋆ of Theorem 7 at
which the quadratic part is $(\beta^T x)^4$; with the softplus, one half of the neurons moves by $m^{-1/4}\beta$. The
linear part is linear in the signs of the neurons, the quadratic part does not depend on them, and each neuron adds to
$\Delta^Q$ an even part and its sign times an odd one: many signs cost one product, and the worst signs are known.

Widths start where $m^{1/4} f^L$ has nearly settled. At W⋆ it does so late, since the a(w₀) of Theorem 7 have heavy
tails: narrow networks miss the rare large ones, $m^{1/4} f^L$ still rises there, and f^L falls slower than $m^{-1/4}$.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent import data
from offtangent._host import on_host
from offtangent.lab import Claim, Cost, Results, over_seeds
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import slope_interval
from offtangent.lab.sweeps import Sweep
from offtangent.networks import TwoLayer
from offtangent.report import Figure, finished, new_plot, power, series
from offtangent.theory.bai_lee.assumptions import assumption_a
from offtangent.theory.bai_lee.bounds import initial_norm_bound
from offtangent.theory.bai_lee.expressivity import RidgePower, column_norm, express, quadratic_part

NAMES = {"relu3": "relu³/6 at W⋆", "softplus": "softplus"}
DELTA = 0.1  # of eq. (4)
LOOKED_AT = 2  # signs under which f^Q is computed anew
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


@dataclass(frozen=True)
class Coupling:
    """`seeds` networks of one width, `draws` pairs of opposite signs on each."""

    width: int
    activation: str
    dim: int
    samples: int
    draws: int
    seeds: int


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]
    dim: int = 6
    samples: int = 20
    draws: int = 64
    seeds: int = 10


# At W⋆ the parts of f^L have heavy tails: m^{1/4} f^L settles from below, and widths start where it nearly has.
PROFILES = {
    "smoke": Config(widths=(256, 2048, 16_384)),
    "laptop": Config(widths=(256, 1024, 4096, 16_384, 65_536)),
    "paper": Config(widths=(1024, 4096, 16_384, 65_536, 262_144)),
}


def cells(config: Config) -> list[Coupling]:
    return [
        Coupling(width, activation, config.dim, config.samples, config.draws, config.seeds)
        for activation in NAMES
        for width in config.widths
    ]


def cost(cell: Coupling) -> Cost:
    entries = cell.samples * cell.width
    return Cost(cell.seeds * entries * (4 * cell.dim + 4 * cell.draws + 300), 8 * entries * 12 + 1e6)


def run(cell: Coupling) -> xr.Dataset:
    return over_seeds(_one, cell)


def claims(results: Results[Coupling]) -> Iterator[Claim]:
    for (activation,), cells in results.groups("activation"):
        cell = cells.first
        setting = f"n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds, {2 * cell.draws} signs each"
        sweep = cells.sweep("width", f"{NAMES[activation]}, {setting}")
        if sweep:
            yield from _on_signs(sweep)
            yield from _on_sizes(sweep)
            yield from _on_lemma_11(sweep)


def _on_signs(sweep: Sweep[Coupling]) -> Iterator[Claim]:
    """What the signs do by algebra: their mean is zero and their square one."""
    draws = sweep.cell.draws
    independent = sweep.where.replace(f"{2 * draws} signs", f"{draws} independent signs")
    yield sweep.equals(
        "linear_mean",
        0.0,
        identity=True,
        source="Section 3",
        statement="E_Σ f^L_{WΣ} = 0",
        measured="mean over signs of f^L's mean over inputs, in standard errors (exact variance), averaged over "
        f"networks, 99 % interval, {independent}",
        note="f^L is linear in the signs: what is measured is that signs are drawn as they should be.",
    )
    yield sweep.worst(
        "quadratic_change",
        ROUNDING,
        identity=True,
        of="largest difference over the root mean square of f^Q",
        source="Section 3",
        statement="f^Q_{WΣ} = f^Q_W, computed at WΣ itself",
    )
    yield sweep.equals(
        (sweep["linear"] ** 2).mean(axis=1, keepdims=True) / (sweep["linear_exact"] ** 2).mean(axis=1, keepdims=True),
        1.0,
        identity=True,
        of="measured over stated",
        source="Section 3",
        statement="E_Σ (f^L_{WΣ})² = m⁻¹ Σ_r a_r² σ'(w_{0,r}ᵀx)² (w_rᵀx)²",
    )


def _on_sizes(sweep: Sweep[Coupling]) -> Iterator[Claim]:
    pooled = np.sqrt((sweep["linear"] ** 2).mean(axis=0, keepdims=True))
    gained = sweep["quadratic"] / sweep["linear"]
    unsigned = sweep["quadratic"] / np.maximum(sweep["linear_unsigned"], 1e-300)
    inside = (_initial(sweep),)
    yield sweep.slope(
        "linear",
        "=",
        -0.25,
        source="Section 3",
        hypotheses=inside,
        statement="f^L_{WΣ} falls like m^(−1/4) under random signs",
        note=f"m^(1/4) f^L, root mean square: {sweep.ends(sweep.sizes**0.25 * pooled)}."
        + (LATE if sweep.cell.activation == "relu3" else ""),
    )
    yield sweep.slope(
        "quadratic",
        "=",
        0.0,
        source="Section 3",
        hypotheses=inside,
        statement="f^Q stays of order one: it neither grows nor falls with the width",
    )
    yield sweep.slope(
        gained,
        "=",
        0.25,
        source="Section 3",
        hypotheses=inside,
        statement="f^Q outgrows f^L like m^(1/4): the network is coupled with its quadratic part",
        note=f"f^Q over f^L: {sweep.ends(gained)}; without signs {sweep.ends(unsigned)}.",
    )


def _initial(sweep: Sweep[Coupling]) -> Hypothesis:
    """The paper assumes (4) from Section 3 on. A.3's bound is twice what is drawn: as a claim it could not fail."""
    return Hypothesis(
        f"max_r B_x‖w_{{0,r}}‖ over √(8(d log 5 + log(m/δ))), δ = {DELTA:g}",
        float(sweep["initial"].max()),
        "≤",
        1.0,
        "eq. (4) with A.3's constants",
    )


def _on_lemma_11(sweep: Sweep[Coupling]) -> Iterator[Claim]:
    """With its constants it is Taylor's and Hölder's inequality, true of every W and Σ; its exponents are judged."""
    smooth = assumption_a(sweep.cell.activation).lipschitz.constant
    lipschitz = (Hypothesis("the Lipschitz constant of σ''", smooth, "<", math.inf, "Assumption A"),)
    yield sweep.worst(
        "lemma_remainder",
        1 + ROUNDING,
        identity=True,
        of="largest ratio of the two sides, at the worst signs for each input",
        source="Lemma 11(b)",
        hypotheses=lipschitz,
        statement="|Δ^Q| ≤ (C/6) B_x³ ‖W‖³_{2,4} m^(−1/4) for all signs, C = 1 a Lipschitz constant of σ''",
        note=f"The least C is {smooth:.3g}.",
    )
    yield sweep.slope(
        "remainder_worst",
        "≤",
        -0.25,
        source="Lemma 11(b)",
        hypotheses=lipschitz,
        statement="Δ^Q = O(m^(−1/4)) at the worst signs",
    )
    faster = slope_interval(sweep.sizes, sweep["remainder"], level=0.99).high < -0.25
    yield sweep.slope(
        "remainder",
        "≤",
        -0.25,
        source="Lemma 11(b)",
        hypotheses=lipschitz,
        statement="Δ^Q = O(m^(−1/4)) under random signs",
        note="It falls faster: under random signs its part of third order averages out like f^L." if faster else "",
    )
    yield sweep.worst(
        "lemma_linear",
        1 + ROUNDING,
        identity=True,
        source="Lemma 11(a)",
        statement="E_Σ (f^L_{WΣ})² ≤ (max|σ'|)² B_x² ‖W‖²_{2,4} m^(−1/2), max over |t| ≤ B_x max_r ‖w_{0,r}‖",
    )


def draw(results: Results[Coupling]) -> Iterator[Figure]:
    for (activation,), cells in results.groups("activation"):
        if len(cells) < 2:
            continue
        widths, plot = cells.field("width"), new_plot()
        for name, (label, colour) in CURVES.items():
            series(plot, widths, cells.table(name), name=label, colour=colour)
        power(plot, widths, -0.25, through=cells.table("linear")[:, 0].mean(), name="m^(−1/4)")
        cell, title = cells.first, "Signs leave the quadratic part and take away the linear one"
        caption = (
            f"n = {cell.samples} inputs on the sphere in {cell.dim} dimensions, {2 * cell.draws} signs, "
            f"{cell.seeds} seeds (bars: all of them)."
        )
        of = "root mean square over inputs and signs"
        yield finished(plot, f"{title}: {NAMES[activation]}", caption, x="width m", y=of)


def _one(cell: Coupling, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, at_width = jax.random.split(key, 3)  # a seed has the same inputs and target at every width
    of_net, of_signs = jax.random.split(jax.random.fold_in(at_width, cell.width))
    net = TwoLayer.symmetric(dim=cell.dim, width=cell.width, activation=cell.activation, key=of_net)
    X = data.sphere(cell.samples, cell.dim, key=of_inputs)
    beta = data.sphere(1, cell.dim, key=of_target)[0]
    W = _weights(net, beta)
    signs = np.asarray(jax.random.rademacher(of_signs, (cell.width, cell.draws), int), np.float64)
    linear, quadratic, even, odd = _parts(net, W, X)
    at_signs = linear @ signs  # f^L_{WΣ}; opposite signs give the opposite
    left = even.sum(axis=1)[:, None] + np.concatenate([odd @ signs, -(odd @ signs)], axis=1)  # Δ^Q
    worst = np.abs(even.sum(axis=1)) + np.abs(odd).sum(axis=1)
    mean = linear.mean(axis=0) / np.linalg.norm(linear.mean(axis=0))  # Σ_r of it with signs has mean 0, variance 1
    before = quadratic_part(net, W, X)
    after = np.stack([quadratic_part(net, W * one, X) for one in signs.T[:LOOKED_AT]])
    norm = column_norm(W, 4)
    largest = float(np.linalg.norm(np.asarray(net.W0, np.float64), axis=0).max())
    return {
        "linear": _rms(at_signs),
        "linear_exact": math.sqrt(float((linear**2).sum(axis=1).mean())),
        "linear_mean": float((mean @ signs).mean() * math.sqrt(cell.draws)),
        "quadratic_change": float(np.abs(after - before).max()) / _rms(before),
        "linear_unsigned": _rms(linear.sum(axis=1)),
        "quadratic": _rms(quadratic.sum(axis=1)),
        "remainder": _rms(left),
        "remainder_worst": _rms(worst),
        "lemma_remainder": float((worst / (norm**3 * cell.width**-0.25 / 6)).max()),
        "lemma_linear": float((linear**2).sum(axis=1).max() / (_slope(cell.activation, largest) * norm) ** 2)
        * cell.width**0.5,
        "norm4": norm**4,
        "furthest": float(np.linalg.norm(W, axis=0).max()),
        "initial": largest / initial_norm_bound(cell.dim, cell.width, delta=DELTA),
    }


def _weights(net: TwoLayer, beta: Float[np.ndarray, "d"]) -> Float[np.ndarray, "d m"]:
    if net.activation.name == "relu3":
        return np.sum(express(net, RidgePower(beta, 4)).parts, axis=0)
    half = np.repeat([1.0, 0.0], net.width // 2)
    return net.width**-0.25 * np.outer(beta, half)


def _parts(
    net: TwoLayer, W: Float[np.ndarray, "d m"], X: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"], Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """Every neuron's linear and quadratic part, and what is left: its even and its odd part in the neuron's sign."""
    z, u = X @ np.asarray(net.W0, np.float64), X @ W
    scale = np.asarray(net.a, np.float64) / math.sqrt(net.width)
    value, slope, second = (on_host(net.activation.derivative(k), z) for k in range(3))
    up, down = (
        on_host(net.activation, z + sign * u) - value - sign * slope * u - second * u**2 / 2 for sign in (1, -1)
    )
    return scale * slope * u, scale * second * u**2 / 2, scale * (up + down) / 2, scale * (up - down) / 2


def _slope(activation: str, largest: float) -> float:
    """The largest |σ'| where |t| ≤ max_r ‖w_{0,r}‖: t²/2 for relu³/6, and 1 for the softplus."""
    return largest**2 / 2 if activation == "relu3" else 1.0


def _rms(values: Float[np.ndarray, "..."]) -> float:
    return float(np.sqrt(np.mean(values**2)))
