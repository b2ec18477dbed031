r"""Section 5: the proofs that construct something, run, and what they are for.

Lemma 9 writes a power $\alpha(\beta^T x)^q$ as a mean of random features relu(w₀ᵀx) a(w₀); Theorem 7 turns the a's of
degree p − 2 into weights W⋆ at which the quadratic part of a network is $\alpha(\beta^T x)^p$; with random signs two
such W⋆ add up (footnote 5), which gives 2-XOR. Each falls short of its target by an error that the width makes small.
Theorem 6 bounds what a quadratic model can learn by heart, through Lemma 5's feature term, Lemma 8 and M_{x,op}.

Four kinds of cell: a target expressed at one width; the feature term at one width; the spread of inputs in one
dimension, all three in float64 on the host; and the gap between population and sample itself, at one n, d and m.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent import data
from offtangent.lab import Claim, Cost, Results, over_seeds
from offtangent.networks import TwoLayer
from offtangent.papers.bai_lee import _gaps_report, constructions_report
from offtangent.papers.bai_lee._gaps import measured_gap
from offtangent.report import Figure
from offtangent.special.losses import logistic
from offtangent.theory.bai_lee.bounds import generalisation_gap
from offtangent.theory.bai_lee.complexity import expected_input_spread, feature_rademacher, feature_term
from offtangent.theory.bai_lee.expressivity import Expression, RidgePower, express, xor_target
from offtangent.theory.bai_lee.random_features import (
    random_feature_energy_bound,
    random_feature_variance,
    random_feature_weights,
)

TARGETS = ("2", "3", "4", "6", "xor")  # the degree p, or 2-XOR
LAWS = ("sphere", "hypercube")
DELTA = constructions_report.DELTA


@dataclass(frozen=True)
class Target:
    """One target at one width, for `seeds` networks."""

    target: str
    width: int
    dim: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Features:
    """Lemma 5's feature term and its bounds at one width."""

    width: int
    dim: int
    samples: int
    draws: int  # of pairs of labels' signs
    seeds: int


@dataclass(frozen=True)
class Spread:
    """M_{x,op} of inputs in one dimension, `ratio` times as many as dimensions."""

    law: str
    dim: int
    ratio: int
    seeds: int


@dataclass(frozen=True)
class Gap:
    """L_P(Ŵ) − L(Ŵ) at one size, for `seeds` samples and networks."""

    samples: int
    dim: int
    width: int
    signs: int  # under which L is taken
    tests: int  # inputs, each with either label
    seeds: int


@dataclass(frozen=True)
class Gaps:
    """Sizes of the gap's cells: each of three is gone through by itself, from a common one, the first of all."""

    samples: tuple[int, ...]
    dims: tuple[int, ...]
    widths: tuple[int, ...]
    seeds: int = 5
    tests: int = 4000
    signs: int = 32


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]
    feature_widths: tuple[int, ...]
    dims: tuple[int, ...]
    gaps: Gaps
    seeds: int = 20
    draws: int = 8


PROFILES = {
    "smoke": Config(
        widths=(128, 512, 2048, 8192, 32_768),
        feature_widths=(16, 32, 64, 128, 256),
        dims=(5, 20, 80),
        gaps=Gaps(samples=(128, 512, 2048), dims=(8,), widths=(32,)),
        seeds=10,
    ),
    "laptop": Config(
        widths=(128, 512, 2048, 8192, 32_768),
        feature_widths=(32, 96, 288, 864, 2592),
        dims=(5, 10, 20, 40, 80, 160),
        gaps=Gaps(samples=(256, 1024, 4096), dims=(8, 16, 32), widths=(64, 256, 1024)),
    ),
    "paper": Config(
        widths=(128, 512, 2048, 8192, 32_768, 131_072, 524_288),
        feature_widths=(32, 128, 512, 2048, 8192),
        dims=(5, 10, 20, 40, 80, 160, 320),
        gaps=Gaps(
            samples=(512, 2048, 8192, 32_768),
            dims=(8, 16, 32, 64, 128),
            widths=(128, 512, 2048, 8192),
            seeds=20,
            tests=20_000,
            signs=128,
        ),
    ),
}


def cells(config: Config) -> list[Target | Features | Spread | Gap]:
    return [
        *(Target(target, width, 6, 20, config.seeds) for target in TARGETS for width in config.widths),
        *(Features(width, 6, 40, config.draws, config.seeds // 2) for width in config.feature_widths),
        *(Spread(law, dim, 20, config.seeds) for law in LAWS for dim in config.dims),
        *_gap_cells(config.gaps),
    ]


def _gap_cells(gaps: Gaps) -> list[Gap]:
    n, d, m = gaps.samples[0], gaps.dims[0], gaps.widths[0]
    sizes = [
        *((samples, d, m) for samples in gaps.samples),
        *((n, dim, m) for dim in gaps.dims),
        *((n, d, width) for width in gaps.widths),
    ]
    return [Gap(*size, gaps.signs, gaps.tests, gaps.seeds) for size in dict.fromkeys(sizes)]


def cost(cell: Target | Features | Spread | Gap) -> Cost:
    if isinstance(cell, Spread):
        return Cost(cell.seeds * 4 * cell.ratio * cell.dim**3, 8 * cell.ratio * cell.dim**2 + 1e6)
    entries = cell.samples * cell.width
    if isinstance(cell, Gap):
        fit = entries * cell.dim**2 + 20 * cell.width * cell.dim**3
        risks = 2 * cell.width * (cell.tests + cell.samples) * (2 * cell.dim + 60 + 2 * cell.signs)
        return Cost(cell.seeds * (fit + risks), 8 * (6 * entries + 2 * cell.width * cell.dim**2) + 2e8)
    if isinstance(cell, Target):
        return Cost(cell.seeds * entries * (6 * cell.dim + 60), 8 * 6 * entries + 1e6)
    return Cost(cell.seeds * cell.draws * entries * 20 * cell.dim**2, 8 * 8 * entries + 1e7)


def run(cell: Target | Features | Spread | Gap) -> xr.Dataset:
    if isinstance(cell, Gap):
        return over_seeds(measured_gap, cell)
    one = {Target: _target, Features: _features, Spread: _spread}[type(cell)]
    parts = [one(cell, jax.random.key(seed)) for seed in range(cell.seeds)]  # type: ignore[operator]
    table = {name: ("seed", np.array([part[name] for part in parts])) for name in parts[0]}
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> Iterator[Claim]:
    yield from constructions_report.claims(results.where(Target), results.where(Features), results.where(Spread))
    yield from _gaps_report.claims(results.where(Gap))
    yield from constructions_report.risk_claims(results.where(Target))


def draw(results: Results) -> list[Figure]:
    gaps = results.where(Gap)
    found = constructions_report.figures(results.where(Target), results.where(Features), results.where(Spread))
    return [*found, _gaps_report.figure(gaps)] if len(gaps) > 1 else found


def _target(cell: Target, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, at_width = jax.random.split(key, 3)  # a seed has the same inputs and target at every width
    of_net, of_signs = jax.random.split(jax.random.fold_in(at_width, cell.width))
    on_cube = cell.target == "xor"
    radius = math.sqrt(cell.dim) if on_cube else 1.0
    net = TwoLayer.symmetric(dim=cell.dim, width=cell.width, activation="relu3", radius=radius, key=of_net)
    X = (data.hypercube if on_cube else data.sphere)(cell.samples, cell.dim, key=of_inputs)
    if on_cube:
        expression = express(net, xor_target(cell.dim), radius=radius, key=of_signs)
    else:
        expression = express(net, RidgePower(data.sphere(1, cell.dim, key=of_target)[0], int(cell.target)))
    return _measured(expression, X, radius)


def _measured(expression: Expression, X: Float[np.ndarray, "n d"], radius: float) -> dict[str, float]:
    errors, width = expression.errors(X), expression.net.width
    parts = [target.mean_square_error(X, width, radius) for target in expression.targets]
    expected = np.sum(parts, axis=0) + expression.sign_variance(X)
    if len(parts) > 1:  # the two parts share W₀: √E(e₁ + e₂)² ≤ √E e₁² + √E e₂², and the signs' own
        expected = np.sum(np.sqrt(parts), axis=0) ** 2 + expression.sign_variance(X)
    found = {
        "error": _rms(errors),
        "square": float(np.mean(errors**2)),
        "expected": float(np.mean(expected)),
        "risk": _risk_error(expression.target(X), errors),
        "worst": float(np.abs(errors).max() / math.sqrt(float(expected.sum()) / DELTA)),
        "norm4": expression.norm4,
        "norm_ratio": expression.norm4 / expression.norm4_bound(delta=DELTA),
    }
    if len(expression.targets) > 1:
        return found
    (target,) = expression.targets
    power, half = target.power - 2, width // 2
    W0 = np.asarray(expression.net.W0, np.float64)[:, :half]
    a = random_feature_weights(W0, target.direction, power)
    strays = np.maximum(X @ W0, 0) @ a / half - (X @ target.direction) ** power
    variance = random_feature_variance(X, target.direction, power) / half
    return found | {
        "feature_error": _rms(strays),
        "feature_square": float(np.mean(strays**2)),
        "feature_expected": float(np.mean(variance)),
        "energy_ratio": float(np.mean(a**2)) / random_feature_energy_bound(target.direction, power),
    }


def _risk_error(target: Float[np.ndarray, "n"], errors: Float[np.ndarray, "n"]) -> float:
    """|L^Q(W⋆) − L(f⋆)| of Theorem 7, for the logistic loss and the signs of f⋆ as labels, in float64."""
    with jax.enable_x64(True):
        losses = [np.asarray(logistic(np.sign(target), values)) for values in (target + errors, target)]
    return abs(float(np.mean(losses[0] - losses[1])))


def _features(cell: Features, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_net, of_signs = jax.random.split(key, 3)
    X = data.sphere(cell.samples, cell.dim, key=of_inputs)
    net = TwoLayer.symmetric(
        dim=cell.dim, width=cell.width, activation="relu3", key=jax.random.fold_in(of_net, cell.width)
    )
    term, bounds = feature_term(net, X, draws=cell.draws, key=of_signs), feature_rademacher(net, X)
    spread = float(np.linalg.norm(X, 2)) / math.sqrt(cell.samples)
    promised = generalisation_gap(cell.samples, cell.dim, cell.width, norm=1.0, spread=spread)
    return {
        "largest": term.largest.value,
        "typical": term.typical.value,
        "lemma": bounds.lemma,
        "tropp": bounds.tropp,
        "loss_bound": term.loss_bound(1.0).value,
        "theorem": promised.quadratic,
    }


def _spread(cell: Spread, key: Key[Array, ""]) -> dict[str, float]:
    law = {"sphere": data.sphere, "hypercube": data.hypercube}[cell.law]
    found = expected_input_spread(lambda each: law(cell.ratio * cell.dim, cell.dim, key=each), draws=2, key=key)
    return {"spread": found.value}


def _rms(values: Float[np.ndarray, "n"]) -> float:
    return float(np.sqrt(np.mean(values**2)))
