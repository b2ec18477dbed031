r"""Sections 4.1 to 4.4: the weights that the proofs construct, run; the landscape they imply, and what descent finds.

Lemma 1: at $W_Q$ the quadratic part of a network is the sparse term $\sum_i \alpha_i (\beta_i^T x)^{k+1}$. Lemma 2: at
$W_L$, in the span of the first $n_k$ eigenvectors of the feature covariance, the linear part is any polynomial of
degree k. Theorem 2: $W_\star = W_L + W_Q S$ with good column signs S does both, and is small on the four regularisers.
Lemma 3: curvature along $W_\star S$ pays for excess loss. So a second-order stationary point has small loss (Corollary
1), perturbed descent finds one (Theorem 3), and small regularised loss means small test loss (Theorem 4).

The widths the proofs ask for are out of reach ($d^{10k}$ for Lemma 2 and Theorem 2, more for Lemma 3). What scales is
judged by slopes; what needs those widths is shown, and said to be outside the hypothesis. Float64 on the host, but for
training.
"""

import math
from dataclasses import dataclass, replace

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent.lab import Claim, Cost, Results
from offtangent.networks import TwoLayer
from offtangent.papers.nichani import _stationary_report, constructions_report
from offtangent.papers.nichani._stationary import (
    SIGMAS,
    Descents,
    Learned,
    descents,
    generator,
    learned,
    network,
    on_sphere,
    planted,
)
from offtangent.report import Figure
from offtangent.special.sphere import harmonic_coefficients, polynomial_dimension, tangent_eigenvalues
from offtangent.theory import FeatureCovariance
from offtangent.theory.bai_lee.expressivity import column_norm, quadratic_part
from offtangent.theory.nichani.choice import regulariser_choice
from offtangent.theory.nichani.joint import JointExpression, express_jointly, express_low_degree
from offtangent.theory.nichani.landscape import JointLandscape
from offtangent.theory.nichani.signed import neuron_outputs, sign_energy
from offtangent.theory.nichani.sparse import SphereRidge, express_sparse

DELTA, EPSILON = constructions_report.DELTA, constructions_report.EPSILON
HARMONICS = 16  # the degree up to which Σ is expanded, at d ≤ 5; the rest is 10⁻¹⁵ of the trace
DRAWS = 16  # of signs, and of random directions


@dataclass(frozen=True)
class Sparse:
    """Lemma 1 and random signs at one width and dimension: W_Q for R = 2 terms of degree k + 1."""

    sigma: str
    degree: int  # k
    width: int
    dim: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Dense:
    """Lemma 2: W_L for a polynomial of degree k from n samples; Σ by harmonics, or from `unlabelled` inputs."""

    sigma: str
    degree: int
    dim: int
    samples: int
    width: int
    unlabelled: int
    seeds: int


@dataclass(frozen=True)
class Joint:
    """Theorem 2 at one width, and (31) at `points` random W, if any."""

    sigma: str
    degree: int
    width: int
    dim: int
    samples: int
    unlabelled: int
    points: int
    seeds: int


Cell = Sparse | Dense | Joint | Descents | Learned


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]  # of Lemma 1 and Theorem 2
    dims: tuple[int, ...]  # of Lemma 1
    dense: tuple[tuple[str, int, int, tuple[tuple[int, int], ...]], ...]  # Lemma 2: σ, k, d and pairs of n and m
    dense_dims: tuple[tuple[str, int, tuple[int, ...]], ...]  # Lemma 2: σ, k and dimensions
    descents: tuple[tuple[str, int, int], ...]  # Theorem 3: σ, m and steps
    samples: tuple[int, ...]  # of Theorem 4
    sparse: tuple[tuple[str, int], ...] = (
        ("sigmoid", 1),
        ("sigmoid", 2),
        ("sigmoid", 3),
        ("softplus", 1),
        ("softplus", 3),
    )
    joint: tuple[tuple[str, int, int], ...] = (("softplus", 1, 8), ("sigmoid", 1, 8), ("sigmoid", 2, 4))  # σ, k, d
    seeds: int = 10
    starts: int = 10  # of Theorem 3
    points: int = 3
    learnt_steps: int = 200
    tests: int = 10_000


PROFILES = {
    "smoke": Config(
        widths=(64, 512, 4096),
        dims=(5, 20, 80),
        sparse=(("sigmoid", 2),),
        joint=(("softplus", 1, 6),),
        dense=(("softplus", 1, 5, ((24, 8), (155, 96), (1000, 1000))),),
        dense_dims=(("sigmoid", 1, (4, 12, 36)),),
        descents=(("softplus", 64, 800),),
        samples=(16, 100, 640),
        seeds=6,
        starts=2,
        points=2,
        learnt_steps=0,
        tests=2000,
    ),
    "laptop": Config(
        widths=(128, 400, 1280, 4000, 12_800),
        dims=(5, 16, 50, 160, 500),
        dense=(
            ("softplus", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2048))),
            ("sigmoid", 2, 4, ((28, 8), (89, 30), (280, 112), (885, 756), (2800, 1600))),
        ),
        dense_dims=(("sigmoid", 1, (3, 8, 20, 50, 120)), ("sigmoid", 2, (3, 5, 8, 11, 14))),
        descents=(("softplus", 256, 1000), ("sigmoid", 256, 1000)),
        samples=(16, 50, 160, 500, 1600),
        starts=6,
        points=2,
        learnt_steps=100,
        tests=4000,
    ),
    "paper": Config(
        widths=(128, 512, 2048, 8192, 32_768),
        dims=(5, 16, 50, 160, 500, 1600),
        dense=(
            ("softplus", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2560))),
            ("sigmoid", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2560))),
            ("softplus", 2, 4, ((28, 8), (89, 34), (280, 144), (885, 756), (2800, 3200))),
            ("sigmoid", 2, 4, ((28, 8), (89, 34), (280, 144), (885, 756), (2800, 3200))),
        ),
        dense_dims=(
            ("softplus", 1, (3, 10, 30, 100, 300)),
            ("sigmoid", 1, (3, 10, 30, 100, 300)),
            ("sigmoid", 2, (3, 5, 9, 15, 25)),
        ),
        descents=(("softplus", 64, 3000), ("softplus", 256, 3000), ("softplus", 1024, 4500), ("sigmoid", 1024, 2000)),
        samples=(16, 50, 160, 500, 1600, 5000),
    ),
}


def cells(config: Config) -> list[Cell]:
    seeds, middle = config.seeds, config.widths[len(config.widths) // 2]
    found: list[Cell] = []
    for sigma, degree in config.sparse:
        found += [Sparse(sigma, degree, width, 8, 30, seeds) for width in config.widths]
        found += [Sparse(sigma, degree, middle, dim, 30, seeds) for dim in config.dims]
    for sigma, degree, dim, sizes in config.dense:
        found += [Dense(sigma, degree, dim, n, m, 0, seeds) for n, m in sizes]
    for sigma, degree, dims in config.dense_dims:
        for dim in dims:
            rank = polynomial_dimension(dim, degree)
            found.append(Dense(sigma, degree, dim, 4 * rank, 1024, 6 * rank, seeds))
    for at, (sigma, degree, dim) in enumerate(config.joint):
        rank = polynomial_dimension(dim, degree)
        points = config.points if at == 0 else 0
        found += [Joint(sigma, degree, width, dim, 8 * rank, 15 * rank, points, seeds) for width in config.widths]
    starts = config.starts
    found += [Descents(sigma, width, 8, 64, steps, 0.1, 8, starts) for sigma, width, steps in config.descents]
    found += [Learned("softplus", n, 256, 8, config.learnt_steps, 0.25, config.tests, seeds) for n in config.samples]
    return found


def cost(cell: Cell) -> Cost:
    if isinstance(cell, Sparse):
        entries = cell.samples * cell.width
        flops = cell.seeds * entries * (12 * cell.dim + 8 * DRAWS + 600)
        return Cost(flops + 1e9, 8 * (5 * entries + 3 * cell.dim * cell.width))
    rank = polynomial_dimension(cell.dim, getattr(cell, "degree", 1))
    if isinstance(cell, Dense):
        half, n, N = cell.width / 2, cell.samples, cell.unlabelled
        if N:
            work = N**2 * (2 * half + N) + (N + n) * half * 200
            return Cost(cell.seeds * work + 5e8, 8 * (4 * N**2 + (N + n) * half))
        work = half**2 * (60 * HARMONICS + 500 * cell.dim) + n * half * (80 + 4 * rank * cell.dim)
        return Cost(cell.seeds * work, 80 * half**2 + 8 * n * half)
    if isinstance(cell, Joint):
        inputs = cell.unlabelled + cell.samples
        flops = inputs * cell.width * (150 + 6 * cell.dim + 2 * rank + 4 * DRAWS + 500 * cell.points)
        flops += cell.unlabelled**2 * cell.width
        return Cost(cell.seeds * flops + 1e9, 8 * 8 * inputs * cell.width)
    entries = cell.seeds * (30 * rank + cell.samples) * cell.width
    return Cost(entries * (cell.steps + 50) * (6 * cell.dim + 30) + 1e10, 8 * 6 * entries)


def run(cell: Cell) -> xr.Dataset:
    if isinstance(cell, Descents):
        return descents(cell)
    if isinstance(cell, Learned):
        return learned(cell)
    one = {Sparse: _sparse, Dense: _dense, Joint: _joint}[type(cell)]
    parts = [one(cell, jax.random.key(seed)) for seed in range(cell.seeds)]  # type: ignore[operator]
    table = {name: ("seed", np.array([part[name] for part in parts])) for name in parts[0]}
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> list[Claim]:
    return [
        *constructions_report.claims(results.where(Sparse), results.where(Dense), results.where(Joint)),
        *_stationary_report.claims(results.where(Joint), results.where(Descents), results.where(Learned)),
    ]


def draw(results: Results) -> list[Figure]:
    return [
        *constructions_report.figures(results.where(Sparse), results.where(Dense), results.where(Joint)),
        *_stationary_report.figures(results.where(Joint), results.where(Descents), results.where(Learned)),
    ]


def _sparse(cell: Sparse, key: Key[Array, ""]) -> dict[str, float]:
    own = jax.random.fold_in(jax.random.fold_in(key, cell.degree), list(SIGMAS).index(cell.sigma))
    of_inputs, of_target, at = jax.random.split(own, 3)  # a seed has the same inputs and target at every width
    at = jax.random.fold_in(jax.random.fold_in(at, cell.width), cell.dim)
    of_net, of_signs, of_random = jax.random.split(at, 3)
    net = network(cell.sigma, cell.dim, cell.width, key=of_net)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    ridges = [
        SphereRidge(beta / math.sqrt(cell.dim), cell.degree + 1, net.activation, alpha)
        for beta, alpha in zip(on_sphere(2, cell.dim, key=of_target), (1.0, -1.0), strict=True)
    ]
    found = express_sparse(net, ridges)
    errors, expected = found.errors(X), found.mean_square_error(X)
    signs = generator(of_signs).choice([-1.0, 1.0], (DRAWS, cell.width))
    outputs = quadratic_part(net, found.weights, X)
    flipped = quadratic_part(net, found.weights * signs[0], X)
    moved = neuron_outputs(net, X, found.weights) @ signs.T
    energy = sign_energy(net, found.weights)
    return {
        "error": float(np.sqrt(np.mean(errors**2))),
        "largest": float(np.abs(errors).max()),
        "ratio": float(np.mean(errors**2 / expected)),
        "expected": float(np.mean(expected)),
        "worst": float(np.abs(errors).max() / found.error_bound(X, delta=DELTA)),
        "norm4": found.norm4,
        "norm_mean": found.norm4 / found.expected_norm4,
        "norm_bound": found.norm4_bound(delta=DELTA),
        "constant": found.ridges[0].smallest,
        "flip": float(np.abs(flipped - outputs).max() / np.abs(outputs).max()),
        "signed": energy,
        "signed_ratio": float(np.mean(moved**2)) / energy,
        "random_ratio": _random(net, X, of_random),
    }


def _random(net: TwoLayer, X: Float[np.ndarray, "n d"], key: Key[Array, ""]) -> float:
    """E f_L(x; u)² m/(‖u‖² E[σ'²]) for a random direction u, on fresh inputs."""
    u = generator(key).standard_normal(net.W0.shape)
    slope = net.activation.derivative(1)
    (second,) = harmonic_coefficients(lambda z: slope(z) ** 2, dim=net.dim, degree=0)
    outputs = neuron_outputs(net, X, u).sum(axis=1)
    return float(np.mean(outputs**2) * net.width / (np.sum(u**2) * second))


def _dense(cell: Dense, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, unlabelled, at = jax.random.split(key, 4)
    net = network(cell.sigma, cell.dim, cell.width, key=jax.random.fold_in(at, cell.width))
    target = planted(cell.dim, cell.degree, 0, key=of_target)
    rank = polynomial_dimension(cell.dim, cell.degree)
    if cell.unlabelled:
        fresh = on_sphere(cell.unlabelled, cell.dim, key=unlabelled)
        covariance = FeatureCovariance.of_samples(net, fresh, count=rank)
    else:
        covariance = FeatureCovariance.of_harmonics(net, degree=HARMONICS, count=rank)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    found = express_low_degree(covariance, X, target.low(X), rank=rank)
    smallest = float(tangent_eigenvalues(net.activation, dim=cell.dim, degree=cell.degree).min())
    return {
        "error": found.error,
        "ratio": found.error * cell.samples / cell.dim**cell.degree,
        "norm2": found.norm2,
        "scaled": found.norm2 * smallest,
    }


def _joint(cell: Joint, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, unlabelled, at = jax.random.split(key, 4)
    of_net, of_signs, of_points = jax.random.split(jax.random.fold_in(at, cell.width), 3)
    net = network(cell.sigma, cell.dim, cell.width, key=of_net)
    target = planted(cell.dim, cell.degree, 1, key=of_target)
    rank = polynomial_dimension(cell.dim, cell.degree)
    fresh = on_sphere(cell.unlabelled, cell.dim, key=unlabelled)
    covariance = FeatureCovariance.of_samples(net, fresh, count=rank)
    star = express_jointly(
        covariance, on_sphere(cell.samples, cell.dim, key=of_inputs), target, draws=DRAWS, key=of_signs
    )
    sizes, means = star.sizes, star.expected
    power = cell.degree - 1
    found = {
        "loss": star.loss,
        "promised": max(cell.width**-0.25 * cell.dim ** (3 * power / 4), (cell.dim**cell.degree / cell.samples) ** 0.5),
        "r1": sizes.r1, "r2": sizes.r2, "r3": sizes.r3, "r4": sizes.r4,
        "mean1": means.r1, "mean2": means.r2, "mean3": means.r3,
        "drawn": float(star.drawn.mean()) / star.expected_drawn,
        "best": float(star.drawn.min()) / star.expected_drawn,
        "asked": regulariser_choice(cell.dim, cell.width, cell.degree, EPSILON).expressive_width,
    }  # fmt: skip
    return found | (_landscape(cell, star, of_points) if cell.points else {})


def _landscape(cell: Joint, star: JointExpression, key: Key[Array, ""]) -> dict[str, float]:
    """(31) at random W up to twice as long as W⋆ and at W⋆ with other signs, and with the proof's own terms."""
    rng = generator(key)
    drawn = rng.standard_normal((cell.points, *star.weights.shape))
    lengths = star.sizes.r4**0.125 * np.geomspace(0.1, 2.0, cell.points)
    drawn *= (lengths / np.array([column_norm(V) for V in drawn]))[:, None, None]
    W = np.concatenate([drawn, [star.weights * rng.choice([-1.0, 1.0], cell.width)]])
    land = JointLandscape.of(star, strengths=star.strengths(EPSILON), model="quadratic")
    proven = [land.proven(V) for V in W]
    network = replace(land, model="network")
    needed = [network.at(V) for V in W]
    sizes = [abs(one.curvature) + abs(one.descent) + 2 * (one.loss + one.opt) + one.allowance for one in proven]
    return {
        "proven": min(one.slack / size for one, size in zip(proven, sizes, strict=True)),
        "terms": max(land.remainder(V) for V in W),
        "allowed": max(one.allowance for one in proven) / EPSILON,
        "needed": max(one.needed for one in needed) / EPSILON,
    }
