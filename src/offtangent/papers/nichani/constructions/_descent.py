"""Perturbed descent on the regularised loss, many networks at once: `corollary1` starts at zero, `theorem4` at W⋆.

Training is in float32; what is measured, in float64.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from offtangent._host import on_host
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.lab import Cost
from offtangent.papers.nichani.constructions._setting import network, on_sphere, planted
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory import FeatureCovariance
from offtangent.theory.nichani.joint import JointExpression, express_jointly
from offtangent.theory.nichani.landscape import JointLandscape
from offtangent.theory.nichani.risk import JointRisk, loss_on_host
from offtangent.training.directions import perturbed_descent

# η: the features of the sigmoid are an eighth in square.
RATES = {"softplus": 1.0, "sigmoid": 8.0}
# σ: the length of the noise on a gradient.
NOISE = 0.1


@dataclass(frozen=True, eq=False)
class Problem:
    """One seed with k = 1 and R = 1: its target, W⋆, and the landscape of L_λ, with λ such that λᵢRᵢ(W⋆) ≈ ε_min."""

    target: LowDegreePlusSparse
    star: JointExpression
    land: JointLandscape
    epsilon: float

    @property
    def risk(self) -> JointRisk:
        """L_λ as a function to descend on."""
        star = self.star
        return JointRisk.of(star.covariance, star.X, star.y, rank=star.rank, strengths=star.strengths(self.epsilon))

    def loss(self, X: Float[np.ndarray, "n d"], W: Float[np.ndarray, "d m"]) -> float:
        """Compute the mean loss of the network itself on inputs, in float64."""
        net = self.star.covariance.net
        hidden = on_host(net.activation, X @ (np.asarray(net.W0, np.float64) + W))
        outputs = np.asarray(hidden @ np.asarray(net.a, np.float64) / math.sqrt(net.width))
        return float(np.mean(loss_on_host(self.star.criterion, self.target(X), outputs)))


def problems(seeds: int, *, sigma: str, width: int, dim: int, samples: int, epsilon: float) -> list[Problem]:
    """Draw the problems of all seeds. A seed has one target at every n and m; Σ comes from 30 n₁ unlabelled inputs."""
    rank, drawn = polynomial_dimension(dim, 1), []
    for seed in range(seeds):
        of_net, of_target, unlabelled, of_inputs, of_signs = jax.random.split(jax.random.key(seed), 5)
        net = network(sigma, dim, width, key=jax.random.fold_in(of_net, width))
        target = planted(dim, 1, 1, key=of_target)
        covariance = FeatureCovariance.of_samples(net, on_sphere(30 * rank, dim, key=unlabelled), count=rank)
        star = express_jointly(covariance, on_sphere(samples, dim, key=of_inputs), target, key=of_signs)
        drawn.append(Problem(target, star, JointLandscape.of(star, strengths=star.strengths(epsilon)), epsilon))
    return drawn


def unseen(count: int, dim: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Draw a seed's test inputs."""
    return on_sphere(count, dim, key=jax.random.key(1000 + seed))


def descended(
    problems: list[Problem], start: Float[Array, "s d m"], looks: list[int], *, rate: float
) -> Float[np.ndarray, "t s d m"]:
    """Descend from `start` and return W of every seed after each number of steps in `looks`, in float64."""
    risks = _stacked([one.risk for one in problems])
    width = start.shape[-1]
    optimiser = perturbed_descent(rate, noise=NOISE, key=jax.random.key(width))
    W, state, seen = start, optimiser.init(start), []
    for before, after in itertools.pairwise([0, *looks]):
        W, state = _advance(risks, optimiser, W, state, np.int32(after - before))
        seen.append(np.asarray(W, np.float64))
    found = np.stack(seen)
    if not np.isfinite(found).all():
        raise ArithmeticError(f"The descent at m = {width} diverged: its rate {rate:g} is too large.")
    return found


def descent_cost(*, seeds: int, width: int, dim: int, samples: int, steps: int) -> Cost:
    """Count what the problems of all seeds and a descent on them take."""
    entries = seeds * (30 * polynomial_dimension(dim, 1) + samples) * width
    return Cost(entries * (steps + 50) * (6 * dim + 30) + 1e10, 8 * 6 * entries)


def _stacked(risks: list[JointRisk]) -> JointRisk:
    """L_λ of several networks of one shape, each with its own samples and regularisers: a first axis on every array."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)) if eqx.is_array(leaves[0]) else leaves[0], *risks)


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
