"""Perturbed descent on the regularised loss, many networks at once, and what is to be seen where it ends.

Theorem 3, Corollary 1, and Lemma 3 along the way: from W = 0, with noise, on L_λ of the network itself. Theorem 4: from
W⋆, where L_λ is small already, on more and more samples. Training is in float32; what is measured, in float64.
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent._host import on_host
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.activations import shifted
from offtangent.taylor import certificate
from offtangent.theory import FeatureCovariance
from offtangent.theory.bai_lee.signs import in_float64
from offtangent.theory.nichani.choice import regulariser_choice
from offtangent.theory.nichani.joint import JointExpression, express_jointly
from offtangent.theory.nichani.landscape import JointLandscape
from offtangent.theory.nichani.risk import JointRisk, loss_on_host
from offtangent.training.directions import perturbed_descent

SIGMAS = {"softplus": activation("softplus"), "sigmoid": shifted("sigmoid", 1.0)}
RATES = {"softplus": 1.0, "sigmoid": 8.0}  # η: the features of the sigmoid are an eighth in square
SLOW = 0.25  # times that, for Theorem 4's ε_min and few samples, where λ₃R₃ is steep
TESTS = 4000  # fresh inputs for the networks that start at zero
NOISE = 0.1  # σ: the length of the noise on a gradient
LOOSE = 1e-2  # tolerance of a curvature, over the largest


@dataclass(frozen=True)
class Descents:
    """`seeds` networks from W = 0: `steps` of perturbed descent on L_λ, with k = 1, R = 1 and ε_min = `epsilon`."""

    sigma: str
    width: int
    dim: int
    samples: int
    steps: int
    epsilon: float
    looks: int
    seeds: int


@dataclass(frozen=True)
class Learned:
    """The same from W⋆, on n = `samples`; with no steps, W⋆ itself, which depends on the data as well."""

    sigma: str
    samples: int
    width: int
    dim: int
    steps: int
    epsilon: float
    tests: int
    seeds: int


def stacked(risks: list[JointRisk]) -> JointRisk:
    """L_λ of several networks of one shape, each with its own samples and regularisers: a first axis on every array."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)) if eqx.is_array(leaves[0]) else leaves[0], *risks)


@dataclass(frozen=True, eq=False)
class Problem:
    """One seed: target, W⋆, and the landscape of L_λ, with λ such that λᵢRᵢ(W⋆) ≈ ε_min."""

    target: LowDegreePlusSparse
    star: JointExpression
    land: JointLandscape

    def risk(self, epsilon: float) -> JointRisk:
        """L_λ as a function to descend on."""
        star = self.star
        return JointRisk.of(star.covariance, star.X, star.y, rank=star.rank, strengths=star.strengths(epsilon))


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """NumPy's, seeded with a key: JAX would compile its own for every one of the many shapes."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def on_sphere(n: int, dim: int, *, key: Key[Array, ""]) -> Float[np.ndarray, "n d"]:
    """Inputs uniform on S^{d−1}(√d)."""
    drawn = generator(key).standard_normal((n, dim))
    return drawn * (math.sqrt(dim) / np.linalg.norm(drawn, axis=1, keepdims=True))


def network(sigma: str, dim: int, width: int, *, key: Key[Array, ""]) -> TwoLayer:
    """As `TwoLayer.symmetric(law="sphere", ...)` makes it."""
    half = (on_sphere(width // 2, dim, key=key) / math.sqrt(dim)).T
    W0, a = np.hstack([half, half]), np.repeat([1.0, -1.0], width // 2)
    return TwoLayer(jnp.asarray(W0, jnp.float32), jnp.asarray(a, jnp.float32), SIGMAS[sigma], paired=True)


def planted(dim: int, degree: int, rank: int, *, key: Key[Array, ""]) -> LowDegreePlusSparse:
    """As `LowDegreePlusSparse.random` makes it: f_k with energy 1/(k + 1) in every degree, α = ±1 in turn."""
    of_ridges, of_weights, of_betas = jax.random.split(key, 3)
    directions = on_sphere(2 * dim, dim, key=of_ridges) / math.sqrt(dim)
    weights = generator(of_weights).standard_normal((degree + 1, 2 * dim))
    weights[0] = 1.0
    betas = on_sphere(rank, dim, key=of_betas) / math.sqrt(dim)
    drawn = LowDegreePlusSparse(directions, weights, np.resize([1.0, -1.0], rank), betas)
    found = drawn.energies().low[: degree + 1]
    return replace(drawn, weights=weights / np.sqrt((degree + 1) * found)[:, None])


def outputs(net: TwoLayer, W: Float[np.ndarray, "d m"], X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """The network on the host, in float64."""
    hidden = on_host(net.activation, X @ (np.asarray(net.W0, np.float64) + W))
    return np.asarray(hidden @ np.asarray(net.a, np.float64) / math.sqrt(net.width))


def problem(cell: Descents | Learned, seed: int) -> Problem:
    """A seed has one target at every n and m. Σ comes from 30 n₁ inputs without labels."""
    of_net, of_target, unlabelled, of_inputs, of_signs = jax.random.split(jax.random.key(seed), 5)
    net = network(cell.sigma, cell.dim, cell.width, key=jax.random.fold_in(of_net, cell.width))
    target = planted(cell.dim, 1, 1, key=of_target)
    rank = cell.dim + 1
    covariance = FeatureCovariance.of_samples(net, on_sphere(30 * rank, cell.dim, key=unlabelled), count=rank)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    star = express_jointly(covariance, X, target, key=of_signs)
    return Problem(target, star, JointLandscape.of(star, strengths=star.strengths(cell.epsilon)))


def descended(
    cell: Descents | Learned, problems: list[Problem], start: Float[Array, "s d m"], looks: list[int]
) -> Float[np.ndarray, "t s d m"]:
    """W of every seed after each number of steps in `looks`, in float64."""
    risks = stacked([one.risk(cell.epsilon) for one in problems])
    rate = RATES[cell.sigma] * (SLOW if isinstance(cell, Learned) else 1.0)
    optimiser = perturbed_descent(rate, noise=NOISE, key=jax.random.key(cell.width))
    W, state, seen = start, optimiser.init(start), []
    for before, after in itertools.pairwise([0, *looks]):
        W, state = _advance(risks, optimiser, W, state, np.int32(after - before))
        seen.append(np.asarray(W, np.float64))
    found = np.stack(seen)
    if not np.isfinite(found).all():
        raise ArithmeticError(f"{cell} diverged: its rate {rate:g} is too large.")
    return found


@eqx.filter_jit
def _advance(
    risks: JointRisk, optimiser: optax.GradientTransformation, W: Float[Array, "s d m"], state: Any, steps: Any
) -> tuple[Float[Array, "s d m"], Any]:
    def total(V: Float[Array, "s d m"]) -> Float[Array, ""]:
        return jnp.sum(eqx.filter_vmap(lambda risk, one: risk(one))(risks, V))

    def step(_: Any, carry: tuple[Float[Array, "s d m"], Any]) -> tuple[Float[Array, "s d m"], Any]:
        V, state = carry
        updates, state = optimiser.update(jax.grad(total)(V), state, V)
        return optax.apply_updates(V, updates), state

    return jax.lax.fori_loop(0, steps, step, (W, state))


def descents(cell: Descents) -> xr.Dataset:
    problems = [problem(cell, seed) for seed in range(cell.seeds)]
    looks = np.unique(np.geomspace(1, cell.steps, cell.looks).round().astype(int))
    start = jnp.zeros((cell.seeds, cell.dim, cell.width))
    path = np.concatenate([np.zeros((1, *start.shape)), descended(cell, problems, start, looks.tolist())])
    rows = []
    for seed, one in enumerate(problems):
        found = [one.land.at(W) for W in path[:, seed]]
        with jax.enable_x64(True):
            risk = in_float64(one.risk(cell.epsilon))
            point = certificate(risk, path[-1, seed], key=jax.random.key(seed), tol=LOOSE)
        bound = one.land.stationary(path[-1, seed], point)
        rows.append(
            {
                "loss": ("look", np.array([each.loss for each in found])),
                "needed": ("look", np.array([each.needed for each in found])),
                "gradient": point.gradient_norm,
                "lowest": point.lowest,
                "last": bound.loss,
                "bound": bound.bound,
                "opt": bound.opt,
                "inexactness": bound.inexactness,
                "train": _loss(one, one.star.X, path[-1, seed]),
                "test": _loss(one, on_sphere(TESTS, cell.dim, key=jax.random.key(1000 + seed)), path[-1, seed]),
            }
        )
    choice = regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    table = xr.concat([xr.Dataset(row) for row in rows], dim="seed").assign_coords(look=[0, *looks])
    return table.assign(
        nu=choice.gradient,
        gamma=choice.curvature,
        asked=choice.landscape_width(cell.samples),
        allowed=choice.loss_bound(cell.samples),
        generalising=choice.generalising_width,
    )


def learned(cell: Learned) -> xr.Dataset:
    problems = [problem(cell, seed) for seed in range(cell.seeds)]
    last = np.stack([one.star.weights for one in problems])
    if cell.steps:
        (last,) = descended(cell, problems, jnp.asarray(last, jnp.float32), [cell.steps])
    rows = [_tested(cell, one, W, seed) for seed, (one, W) in enumerate(zip(problems, last, strict=True))]
    choice = regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    table = {name: ("seed", np.array([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(table).assign(bound=choice.loss_bound(cell.samples), asked=choice.generalising_width)


def _tested(cell: Learned, one: Problem, W: Float[np.ndarray, "d m"], seed: int) -> dict[str, float]:
    X = on_sphere(cell.tests, cell.dim, key=jax.random.key(1000 + seed))
    return {
        "regularised": one.land.loss(W),
        "train": _loss(one, one.star.X, W),
        "test": _loss(one, X, W),
        "star_test": _loss(one, X, one.star.weights),
    }


def _loss(one: Problem, X: Float[np.ndarray, "n d"], W: Float[np.ndarray, "d m"]) -> float:
    values = outputs(one.star.covariance.net, W, X)
    return float(np.mean(loss_on_host(one.star.criterion, one.target(X), values)))
