r"""Lemma D.1: how far displacements within τ_w and τ_v can take the network from its initial signs, in the worst case.

Proposition C.4 counts the signs of $g \sim N(0, I/m)$ that some $g'$ with $\|g'\| \le \delta$ turns; Lemma D.1 builds
on it: for all W and V with $\|W\|_2 \le \tau_w$, $\|V\|_2 \le \tau_v$, few signs of the two hidden layers change
((a), (d)), what is left of the initial weights is small ((b), (e), (f)), and the outputs stay within τ_w and τ_v
((c), (g)).

The worst displacements are looked for by an adversary that knows the network: at one x, W adds to the pre-activations
any vector of length $\tau_w \|(x, 1)\|$, and turning a sign has a price. Largest numbers of turned signs are exact; the
norms are the largest found, and their limits as m → ∞ are known in closed form. Each is shown next to a random
displacement of the same length.

Kinds of cells: Flips (Proposition C.4), First (Lemma D.1(a)–(c)), Second ((d)–(g)), and Outputs ((c) by a better
search: what First and Second have of (c) and (g) is 0.8 of it at large radii), each a width and a radius.
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import coupling_figures, coupling_report
from offtangent.papers.allen_zhu_li._coupling import SIGMA_V  # the lemma depends on τ_v/σ_v alone
from offtangent.report import Figure
from offtangent.theory.allen_zhu_li.worst_signs import most_flips, worst_operator, worst_output, worst_relu

RATIO = 0.3  # τ_v/σ_v where the width varies
TAU_W = 2.0  # where the width varies
STARTS = 3  # of the adversary


@dataclass(frozen=True)
class Flips:
    """Signs of N(0, I/m) turned by the worst and by a random g′ of length δ."""

    width: int
    delta: float
    seeds: int


@dataclass(frozen=True)
class First:
    """The first layer at one x: σ_w = m^{−1/8}, displacements within τ_w."""

    path: str  # "width": only m varies; "radius": only τ_w
    width: int
    tau: float  # τ_w
    outputs: int
    dim: int
    seeds: int


@dataclass(frozen=True)
class Second:
    """The second layer at the out₁ that the worst W makes: displacements within τ_v = ratio·σ_v."""

    path: str  # "width", "radius", or "edge": m varies, τ_v is the smallest allowed, σ_v(k/m)^{3/8}
    width: int
    ratio: float  # τ_v/σ_v
    outputs: int
    dim: int
    seeds: int


@dataclass(frozen=True)
class Outputs:
    """‖out₁‖ by the better search, direction by direction; what `First` has stays below it at large radii."""

    width: int
    tau: float  # τ_w
    outputs: int
    dim: int
    seeds: int


Kind = Flips | First | Second | Outputs


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]
    deltas: tuple[float, ...]
    radii: int  # how many τ_w and τ_v/σ_v
    far: tuple[int, int]  # the width at which they vary, and outputs for τ_v: a radius has (m/k)^{3/8} to vary in
    edge: tuple[int, ...]  # widths of networks with one output and the smallest τ_v
    outputs: int = 4
    dim: int = 10
    seeds: int = 10
    better: tuple[int, int] = (4096, 3)  # width and seeds of `Outputs`


PROFILES = {
    "smoke": Config((128, 512, 2048), (0.01, 0.1, 1.0), 3, (2048, 4), (512, 4096, 32_768)),
    "laptop": Config(
        (256, 1024, 2048, 8192, 32_768), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), 5, (32_768, 4),
        (512, 2048, 8192, 32_768, 131_072),
    ),
    "paper": Config(
        tuple(2**i for i in range(9, 17)), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), 6, (2**18, 1),
        tuple(2**i for i in range(9, 19)), better=(16_384, 10),
    ),
}  # fmt: skip


def cells(config: Config) -> list[Kind]:
    k, d, seeds, most = config.outputs, config.dim, config.seeds, config.widths[-1]
    found: list[Kind] = [Flips(16 * most, delta, seeds) for delta in config.deltas]
    found += [Flips(width, 0.1, seeds) for width in config.widths]
    found += [First("width", width, TAU_W, k, d, seeds) for width in config.widths]
    found += [Second("width", width, RATIO, k, d, seeds) for width in config.widths]
    found += [Second("edge", width, round(width**-0.375, 6), 1, d, seeds) for width in config.edge]
    # As far as the lemma's hypotheses go: τ_w in [1, √m σ_w), τ_v in [σ_v(k/m)^{3/8}, σ_v].
    width, alone = config.far
    first = np.geomspace(1.0, 0.98 * width**0.375, config.radii)
    second = np.geomspace((alone / width) ** 0.375, 1.0, config.radii)
    found += [First("radius", width, round(float(tau), 4), k, d, seeds) for tau in first]
    wide, few = config.better
    within = np.geomspace(1.0, 0.98 * wide**0.375, config.radii)
    found += [Outputs(wide, round(float(tau), 4), k, d, few) for tau in within]
    return found + [Second("radius", width, round(float(ratio), 6), alone, d, seeds) for ratio in second]


def cost(cell: Kind) -> Cost:
    """Sorting, for as many rounds as the adversary takes."""
    rounds = 1 if isinstance(cell, Flips) else 60
    if isinstance(cell, Outputs):
        rounds *= 60
    k = 1 if isinstance(cell, Flips) else cell.outputs + 4
    return Cost(cell.seeds * rounds * cell.width * (50 * math.log2(cell.width) + 10 * k), 8 * cell.width * 40 + 1e6)


def run(cell: Kind) -> xr.Dataset:
    one = {Flips: _flips, First: _first, Second: _second, Outputs: _outputs}[type(cell)]
    parts = [one(cell, np.random.default_rng([seed, cell.width])) for seed in range(cell.seeds)]  # type: ignore[operator]
    table = {name: ("seed", np.array([part[name] for part in parts], np.float64)) for name in parts[0]}
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> list[Claim]:
    return coupling_report.claims(
        results.where(Flips), results.where(First), results.where(Second), results.where(Outputs)
    )


def draw(results: Results) -> list[Figure]:
    return coupling_figures.figures(results.where(Flips), results.where(First), results.where(Second))


def _flips(cell: Flips, rng: np.random.Generator) -> dict[str, float]:
    g = rng.standard_normal(cell.width) / math.sqrt(cell.width)
    worst = np.zeros_like(g)
    turned = most_flips(g, cell.delta)
    worst[turned] = -g[turned] * (1 + 1e-12)
    random = _of_length(rng.standard_normal(cell.width), cell.delta)
    left = [np.linalg.norm(g[(g + step >= 0) != (g >= 0)]) / cell.delta for step in (worst, random)]
    return {
        "share": len(turned) / cell.width,
        "random_share": float(((g + random >= 0) != (g >= 0)).mean()),
        "left": float(left[0]),
        "random_left": float(left[1]),
    }


def _first(cell: First, rng: np.random.Generator) -> dict[str, float]:
    A, g, radius = _layer(cell, cell.tau, rng)
    step = _of_length(rng.standard_normal(cell.width), radius)
    out, _ = worst_relu(A, g, radius, starts=STARTS, seed=1)
    return {
        "a": len(most_flips(g, radius)) / cell.width,
        "b": worst_output(A, g, radius, starts=STARTS, seed=1)[0],
        "c": out,
        "random_a": float(((g + step >= 0) != (g >= 0)).mean()),
        "random_b": float(np.linalg.norm(A @ ((g + step >= 0) * g))),
        "random_c": float(np.linalg.norm(A @ np.maximum(g + step, 0))),
        "norm": float(np.linalg.norm(A, 2)),
    }


def _outputs(cell: Outputs, rng: np.random.Generator) -> dict[str, float]:
    A, g, radius = _layer(cell, cell.tau, rng)
    return {
        "c": worst_relu(A, g, radius, starts=STARTS, seed=1, by_direction=True)[0],
        "local": worst_relu(A, g, radius, starts=STARTS, seed=1)[0],
    }


def _second(cell: Second, rng: np.random.Generator) -> dict[str, float]:
    A, g, radius = _layer(cell, TAU_W, rng)
    step = worst_relu(A, g, radius, starts=STARTS, seed=1)[1]
    z = np.append(A @ np.maximum(g + step, 0), 1.0)
    z = z / np.linalg.norm(z)
    V0 = SIGMA_V / math.sqrt(cell.width) * rng.standard_normal((cell.outputs + 1, cell.width))
    tau, h = cell.ratio * SIGMA_V, z @ V0
    random = _of_length(rng.standard_normal(cell.width), tau)
    D = h + random >= 0
    return {
        "d": len(most_flips(h, tau)) / cell.width,
        "e": worst_output(A, h, tau, starts=STARTS, seed=1)[0],
        "f": worst_operator(A, V0, z, tau, starts=STARTS, seed=1)[0],
        "g": worst_relu(A, h, tau, starts=STARTS, seed=1)[0],
        "random_d": float(((h >= 0) != D).mean()),
        "random_e": float(np.linalg.norm(A @ (D * h))),
        "random_f": float(np.linalg.norm((A * D) @ V0.T, 2)),
        "random_g": float(np.linalg.norm(A @ np.maximum(h + random, 0))),
        "initial_f": float(np.linalg.norm((A * (h >= 0)) @ V0.T, 2)),
        "norm": float(np.linalg.norm(A, 2)),
    }


def _layer(
    cell: First | Second | Outputs, tau: float, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, " m"], float]:
    """A, the pre-activations W⁰(x, 1) at a unit vector x, and how long W(x, 1) may be."""
    x = np.append(_of_length(rng.standard_normal(cell.dim), 1.0), 1.0)
    W0 = cell.width**-0.125 * rng.standard_normal((cell.dim + 1, cell.width))
    A = rng.standard_normal((cell.outputs, cell.width)) / math.sqrt(cell.width)
    return A, x @ W0, tau * math.sqrt(2)


def _of_length(v: Float[np.ndarray, " m"], length: float) -> Float[np.ndarray, " m"]:
    return v * (length / float(np.linalg.norm(v)))
