r"""Appendices B, C and F: a wide random network contains every target of the concept class, and at a small distance.

Lemma F.2 turns indicators of random half-spaces into smooth functions, Lemma F.1 turns that into weights W⋆ with
$A D_{W^{(0)}} W^\star (x, 1) \approx F(x)$, Lemma D.2 does so for both layers, and Lemma D.3 says that it survives the
signs that change while the network trains. What the sizes of these weights are made of is in Section 4 (complexities),
Lemma B.2 and Fact B.3; what concentrates, in Lemma C.3. Appendix A.1's two-layer network for a parity of six is a
matter of existence too: by training, as in the paper, and exactly.

Kinds of cells: Indicator (Lemma F.2), Weights (F.1), Layers (D.2, D.3, with the worst displacements), Maps (Fact B.3),
Tail (Lemma C.3), Parity (Appendix A.1), and four without a network: Sizes (Example 4.1), General (Lemma B.2),
Lengths and Matrices (Propositions C.1 and C.2).
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.data.hierarchy import GeneralRidges
from offtangent.data.preprocessing import unit_norm
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import ResNet
from offtangent.papers.allen_zhu_li import existence_figures, existence_formulas, existence_report
from offtangent.papers.allen_zhu_li._concept import BASE, COMPOSITE, TAU_V
from offtangent.papers.allen_zhu_li._parity import train_parity
from offtangent.papers.allen_zhu_li.existence_formulas import General, Lengths, Matrices, Sizes
from offtangent.report import Figure
from offtangent.theory.allen_zhu_li.concept import concept_complexity, series_complexity, series_smoothness
from offtangent.theory.allen_zhu_li.indicator import (
    IndicatorFunction,
    existence_hidden,
    existence_norm,
    existence_weights,
    indicator_mean,
)
from offtangent.theory.allen_zhu_li.parity import padded_copies
from offtangent.theory.allen_zhu_li.worst_signs import worst_change, worst_output

SERIES = {
    "constant": (1.0,),
    "z": (0.0, 1.0),
    "½ + z³": (0.5, 0.0, 0.0, 1.0),
    "sin": tuple(0.0 if i % 2 == 0 else (-1.0) ** (i // 2) / math.factorial(i) for i in range(16)),
}
EPSILON = 0.01
LAWS = ("product", "square", "signed")  # of Lemma C.3's sums: a₁a₂, a₁² − 1, ±a₁²
STARTS = 3  # of the adversary


@dataclass(frozen=True)
class Indicator:
    """The function h of one series."""

    series: str
    epsilon: float


@dataclass(frozen=True)
class Weights:
    """W⋆ of Lemma F.1 for one random F a seed, in the lemma's own scaling."""

    width: int
    outputs: int
    terms: int
    dim: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Layers:
    """W⋆ and V⋆ in one network, as they are and after the worst displacements within 10‖W⋆‖_F and 10‖V⋆‖_F."""

    width: int
    outputs: int
    dim: int
    samples: int
    points: int  # samples at which an adversary is let loose
    seeds: int


@dataclass(frozen=True)
class Maps:
    """Slopes and sizes of random maps of Definition B.1."""

    outputs: int
    terms: int
    dim: int
    pairs: int
    seeds: int


@dataclass(frozen=True)
class Tail:
    """How often sums over m neurons are further from their mean than BL(√m + B)."""

    width: int
    law: str  # of LAWS
    draws: int


@dataclass(frozen=True)
class Parity:
    """Trained networks for the parity of six, one for each weight decay and seed."""

    penalties: tuple[float, ...]
    width: int
    steps: int
    seeds: int


Kind = Indicator | Weights | Layers | Maps | Tail | Parity | Sizes | General | Lengths | Matrices


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]  # of Weights
    layers: tuple[int, ...]  # of Layers
    samples: int  # of Weights
    points: int  # of Layers, each with adversaries of its own
    draws: int
    steps: int
    penalties: tuple[float, ...] = (1e-5, 3e-5, 1e-4, 2e-4, 3e-4, 5e-4)
    seeds: int = 10


PROFILES = {
    "smoke": Config((128, 1024, 8192), (512, 1024, 4096), 8, 2, 4000, 600, (3e-5, 1e-4, 3e-4)),
    "laptop": Config((256, 1024, 4096, 16_384, 65_536), (512, 2048, 4096, 16_384, 65_536), 16, 2, 40_000, 5000),
    "paper": Config(
        tuple(2**i for i in range(9, 18)), tuple(2**i for i in range(9, 17)), 64, 8, 400_000, 20_000,
        (1e-5, 2e-5, 5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 4e-4, 5e-4, 7e-4),
    ),
}  # fmt: skip


def cells(config: Config) -> list[Kind]:
    found: list[Kind] = [Indicator(name, EPSILON) for name in SERIES]
    found += [Weights(width, 2, 2, 5, config.samples, config.seeds) for width in config.widths]
    found += [Layers(width, 2, 5, 4 * config.samples, config.points, config.seeds) for width in config.layers]
    found += [Maps(k, p, 5, 1000, config.seeds) for k, p in ((1, 1), (4, 3))]
    found += [Tail(width, law, config.draws) for law in LAWS for width in (1, 16, 256)]
    found += existence_formulas.cells(config.seeds)
    return [*found, Parity(config.penalties, 200, config.steps, 3)]


def cost(cell: Kind) -> Cost:
    """Roughly: numbers drawn times what is done with each."""
    if isinstance(cell, Matrices):
        choices = math.comb(cell.columns, cell.sparsity)
        each = cell.columns**2 * cell.rows + choices * (20 * cell.sparsity**3 + 100)
        return Cost(cell.seeds * cell.draws * each, 8 * cell.draws * cell.columns * (cell.rows + 2 * cell.columns))
    if isinstance(cell, Indicator | Sizes | General | Lengths):
        return Cost(1e8, 1e8)
    if isinstance(cell, Weights | Layers):
        rounds = 0 if isinstance(cell, Weights) else 3000 * cell.points
        per = cell.width * (cell.samples * (2 * cell.dim + 10) + rounds + 1000)
        return Cost(cell.seeds * per, 8 * cell.width * (cell.samples + 40) + 1e6)
    if isinstance(cell, Maps):
        return Cost(1e3 * cell.seeds * cell.pairs * cell.outputs * cell.terms, 1e7)
    if isinstance(cell, Tail):
        return Cost(60 * cell.draws * cell.width, 24 * cell.draws * cell.width + 1e6)
    networks = cell.seeds * len(cell.penalties)
    return Cost(6 * 64 * 6 * cell.width * networks * cell.steps, 64 * cell.width * networks * 40)


def run(cell: Kind) -> xr.Dataset:
    if isinstance(cell, Parity):
        return _parity(cell)
    if isinstance(cell, Indicator):
        return xr.Dataset(_indicator(cell))
    if isinstance(cell, Tail):
        return _tail(cell)
    if isinstance(cell, Sizes | General | Lengths | Matrices):
        return existence_formulas.run(cell)
    one = {Weights: _weights, Layers: _layers, Maps: _maps}[type(cell)]
    parts = [one(cell, seed) for seed in range(cell.seeds)]  # type: ignore[operator]
    table = {name: ("seed", np.array([part[name] for part in parts], np.float64)) for name in parts[0]}
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> list[Claim]:
    return existence_report.claims(results)


def draw(results: Results) -> list[Figure]:
    return existence_figures.figures(results)


def _indicator(cell: Indicator) -> dict[str, float]:
    series = np.array(SERIES[cell.series])
    h, grid = IndicatorFunction(series, cell.epsilon), np.linspace(-1, 1, 41)
    found = indicator_mean(h, grid) - np.polynomial.polynomial.polyval(grid, series)
    return {
        "error": float(np.abs(found).max()),
        "energy": h.energy,
        "smooth": float(series_smoothness(series, constant=2.0)),
        "bound": h.bound,
        "lipschitz": h.lipschitz,
        "size": float(series_complexity(series, epsilon=cell.epsilon, constant=1e4)),
    }


def _weights(cell: Weights, seed: int) -> dict[str, float]:
    key = jax.random.key(seed)
    F = GeneralRidges.random(cell.dim, cell.outputs, cell.terms, SERIES["½ + z³"], key=key)  # one target a seed
    rng, m = np.random.default_rng([seed, cell.width]), cell.width
    X = 1.5 * _sphere(rng, cell.samples, cell.dim)
    a, W0 = rng.standard_normal((cell.outputs, m)), rng.standard_normal((cell.dim + 1, m)) / math.sqrt(m)
    W = existence_weights(F, a / math.sqrt(m), W0, scale=1 / math.sqrt(m), epsilon=EPSILON) / math.sqrt(m)
    padded = _padded(X)
    found = ((padded @ W0 >= 0) * (padded @ W)) @ a.T
    sizes = concept_complexity(F, epsilon=EPSILON, constant=2.0)
    huge = concept_complexity(F, epsilon=EPSILON, constant=1e4)
    return {
        "error": _rms(np.abs(found - F(X)).sum(axis=1) / np.linalg.norm(padded, axis=1)),
        "longest": float(np.linalg.norm(W, axis=0).max()),
        "norm": float(np.linalg.norm(W)),
        "exact": existence_norm(F),
        "smooth": sizes.outputs * sizes.terms * sizes.smooth,
        "size": huge.outputs * huge.terms * huge.size,
    }


def _layers(cell: Layers, seed: int) -> dict[str, float]:
    k, m, key = cell.outputs, cell.width, jax.random.key(seed)
    F = GeneralRidges.random(cell.dim, k, 1, BASE, key=key)
    G = GeneralRidges.random(k, k, 1, COMPOSITE, key=jax.random.fold_in(key, 1))
    tau_w, alpha = 10 * existence_norm(F), TAU_V / (10 * existence_norm(G))
    sigma_w, sigma_v = m**-0.125, TAU_V**-2
    rng = np.random.default_rng([seed, m])
    A, W0 = rng.standard_normal((k, m)) / math.sqrt(m), sigma_w * rng.standard_normal((cell.dim + 1, m))
    V0 = sigma_v / math.sqrt(m) * rng.standard_normal((k + 1, m))
    with jax.enable_x64(True):
        net = ResNet(*map(jnp.asarray, (W0, V0, A)))
    W, V = existence_hidden(net, F, G, alpha=alpha, sigma_w=sigma_w, sigma_v=sigma_v, epsilon=EPSILON)
    X = _sphere(rng, cell.samples, cell.dim)
    base, padded = F(X), _padded(X)
    still = ((padded @ W0 >= 0) * (padded @ W)) @ A.T - base
    changes, moved, both = [], [], []
    for x, target in zip(padded[: cell.points], base, strict=False):
        g, radius = x @ W0, tau_w * math.sqrt(2)
        size, D = worst_change(A, x @ W, g, radius, starts=STARTS, seed=seed)
        changes.append(size)
        moved.append(A @ (D * (x @ W)) - target)
        E = worst_output(A, g, radius, starts=STARTS, seed=seed)[1]
        both.append(A @ (E * (x @ W)) - target + A @ (E * g))  # AD_W(W⋆ − W)(x,1) − (F − out₁), whatever W made D
    z = _padded(np.vstack([base, tau_w * _sphere(rng, cell.samples, k)]))
    lengths, aim = np.linalg.norm(z, axis=1), alpha * G(z[:, :-1])
    second = np.linalg.norm(((z @ V0 >= 0) * (z @ V)) @ A.T - aim, axis=1) / lengths
    turned = []
    for i in (*range(cell.points), *range(cell.samples, cell.samples + cell.points)):
        D = worst_change(A, z[i] @ V, z[i] @ V0, TAU_V * lengths[i], starts=STARTS, seed=seed)[1]
        turned.append(np.linalg.norm(A @ (D * (z[i] @ V)) - aim[i]) / lengths[i])
    return {
        "first": _rms(np.linalg.norm(still, axis=1)),
        "second": float(second.max()),
        "first_moved": _rms(np.linalg.norm(moved, axis=1)),
        "second_moved": float(np.max(turned)),
        "first_change": float(np.max(changes)),
        "both_moved": _rms(np.linalg.norm(both, axis=1)),
        "tau_w": tau_w,
        "alpha": alpha,
        "norm_w": float(np.linalg.norm(W)) / (k * concept_complexity(F, constant=2.0).smooth),
        "norm_v": float(np.linalg.norm(V)) / (alpha * k * concept_complexity(G, constant=2.0).smooth),
        "base": _rms(np.linalg.norm(base, axis=1)),
        "composite": _rms(np.linalg.norm(aim[: cell.samples], axis=1)),
    }


def _maps(cell: Maps, seed: int) -> dict[str, float]:
    key = jax.random.key(seed)
    F = GeneralRidges.random(cell.dim, cell.outputs, cell.terms, SERIES["½ + z³"], key=key)
    rng = np.random.default_rng([seed, cell.outputs, cell.terms])
    X = rng.standard_normal((cell.pairs, cell.dim)) * rng.choice([0.01, 0.3, 1.0, 10.0], (cell.pairs, 1))
    Y = X + rng.standard_normal(X.shape) * rng.choice([1e-4, 0.1, 3.0], (cell.pairs, 1))
    found, values = concept_complexity(F), F(X)
    slopes = np.linalg.norm(values - F(Y), axis=1) / np.linalg.norm(X - Y, axis=1)
    sizes = np.linalg.norm(values, axis=1)
    return {
        "slope": float(slopes.max() / found.lipschitz),
        "bound": float((sizes / (found.lipschitz * np.linalg.norm(_padded(X), axis=1))).max()),
        "printed": float((sizes / (found.lipschitz * np.linalg.norm(X, axis=1))).max()),
    }


def _tail(cell: Tail) -> xr.Dataset:
    """With every indicator 1 and L = 1: h = 1, or h = ±1 by a sign that knows nothing of a."""
    rng = np.random.default_rng([cell.width, len(cell.law)])
    a, b = rng.standard_normal((2, cell.draws, cell.width))
    each = {"product": lambda: a * b, "square": lambda: a**2 - 1, "signed": lambda: a**2 * np.sign(b)}[cell.law]()
    sums = np.abs(each.sum(axis=1))
    B = np.array([1.0, 2.0, 4.0, 6.0])
    counts = (sums[:, None] >= B * (math.sqrt(cell.width) + B)).sum(axis=0)
    return xr.Dataset({"count": ("B", counts)}, coords={"B": B})


def _parity(cell: Parity) -> xr.Dataset:
    weights, error = train_parity(cell.penalties, width=cell.width, steps=cell.steps, seeds=cell.seeds)
    large = padded_copies(weights[0, 0].astype(np.float64), 40, range(6), copies=2)
    norms = np.linalg.norm(weights, axis=(2, 3)) / math.sqrt(6)
    return xr.Dataset(
        {
            "error": (("seed", "penalty"), error.astype(np.float64)),
            "norm": (("seed", "penalty"), norms.astype(np.float64)),
            "copied": float(np.linalg.norm(large) / math.sqrt(40) / norms[0, 0]),
        },
        coords={"seed": np.arange(cell.seeds), "penalty": list(cell.penalties)},
    )


def _sphere(rng: np.random.Generator, n: int, dim: int) -> Float[np.ndarray, "n d"]:
    return unit_norm(rng.standard_normal((n, dim)))


def _padded(X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d1"]:
    return np.hstack([X, np.ones((len(X), 1))])


def _rms(values: Float[np.ndarray, " n"]) -> float:
    return float(np.sqrt(np.mean(values**2)))
