"""Many starts at once: noisy SGD with fresh signs finds a basin, descent on the risk with fixed signs its bottom.

The first is the algorithm of Bai & Lee, Section 4.2, in float32. Where it ends, its own noise keeps it moving; a second
order stationary point is one of a fixed function, so the second phase descends on L_λ with all signs, or with drawn
ones that stay, in float64.
"""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from offtangent.papers.bai_lee._noisy_xor import Problem
from offtangent.theory import RandomisedRisk
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.risks import empirical_risk
from offtangent.theory.bai_lee.signs import in_float64
from offtangent.training.randomised import randomised_sgd

NOISE = 0.01  # s of each entry of the gradient's noise
STILL = 1e-8  # a gradient this short is left alone
SADDLE = 1e-3  # the first start's length, over ‖W⋆‖


def starts(problem: Problem, count: int, *, seed: int) -> Float[np.ndarray, "k d m"]:
    """Gaussian directions; ‖W(0)‖_{2,4} is 10⁻³‖W⋆‖ for the first, next to the saddle, and up to 3‖W⋆‖ for the rest."""
    sizes = np.concatenate([[SADDLE], np.geomspace(SADDLE, 3.0, count - 1)])
    draws = np.random.default_rng([3, seed]).standard_normal((count, *problem.W_star.shape))
    return np.stack([size * problem.norm / column_norm(V) * V for size, V in zip(sizes, draws, strict=True)])


def wander(
    problem: Problem,
    W: Float[np.ndarray, "k d m"],
    *,
    strength: float,
    looks: Int[np.ndarray, "t"],
    key: Key[Array, ""],
) -> Float[np.ndarray, "t k d m"]:
    """W after each number of steps in `looks` of noisy SGD with fresh signs on L_λ, all rows as one batch.

    The first rate grows like √m, as the curvature of L_λ falls, up to where the noise of the signs would drive W out
    again; from there it falls to zero along a cosine, and that noise with it. Time O(knm) a step.
    """
    rate = optax.cosine_decay_schedule(min(problem.net.width**0.5 / 8, 2.0), int(looks[-1]))
    optimiser = randomised_sgd(rate, noise=NOISE, strength=strength, key=key)
    X, y = (jnp.asarray(values, jnp.float32) for values in (problem.X, problem.y))

    def objective(V: Float[Array, "k d m"]) -> Float[Array, ""]:
        return jnp.sum(jax.vmap(lambda one: empirical_risk(problem.net, one, X, y, problem.loss))(V))

    @jax.jit
    def begin(V: Float[Array, "k d m"]) -> Any:
        return V, optimiser.init(V)

    @jax.jit
    def advance(carry: Any, steps: Int[Array, ""]) -> Any:
        def step(_: Any, carry: Any) -> Any:
            V, state = carry
            updates, state = optimiser.update(jax.grad(objective)(V), state, V)
            return optax.apply_updates(V, updates), state

        return jax.lax.fori_loop(0, steps, step, carry)

    carry, seen = begin(jnp.asarray(W, jnp.float32)), []
    for before, after in itertools.pairwise([0, *looks.tolist()]):
        carry = advance(carry, np.int32(after - before))
        V, signs = (np.asarray(one, np.float64) for one in (carry[0], carry[1].signs))
        seen.append(V * signs[:, None, :])
    return np.stack(seen)


def descend(
    risk: RandomisedRisk, W: Float[np.ndarray, "k d m"], *, looks: Int[np.ndarray, "t"]
) -> Float[np.ndarray, "t k d m"]:
    """W after each number of steps in `looks` of descent on the risk, in float64; it ends when all gradients have.

    Nesterov's momentum at a rate of √m: the risk's curvature falls like m^{-1/2}. Time O(ksnm) a step for s signs.
    """
    with jax.enable_x64(True):
        wide, V = in_float64(risk), jnp.asarray(W, jnp.float64)
        state, seen = jax.jit(_momentum(risk.net.width).init)(V), []
        for before, after in itertools.pairwise([0, *looks.tolist()]):
            V, state = _advance(wide, V, state, np.int32(after - before), np.float64(STILL))
            seen.append(np.asarray(V))
    return np.stack(seen)


def values(risk: RandomisedRisk, W: Float[np.ndarray, "k d m"]) -> Float[np.ndarray, " k"]:
    """L_λ at each row, in float64."""
    with jax.enable_x64(True):
        return np.asarray(_values(in_float64(risk), jnp.asarray(W, jnp.float64)))


def _momentum(width: int) -> optax.GradientTransformation:
    return optax.sgd(width**0.5, momentum=0.98, nesterov=True)


@eqx.filter_jit
def _advance(
    risk: RandomisedRisk, W: Float[Array, "k d m"], state: Any, steps: Any, still: Any
) -> tuple[Float[Array, "k d m"], Any]:
    optimiser = _momentum(risk.net.width)

    def going(carry: Any) -> Array:
        step, _, _, slope = carry
        return (step < steps) & (slope > still)

    def step(carry: Any) -> Any:
        k, V, state, _ = carry
        slopes = jax.vmap(jax.grad(risk))(V)
        updates, state = optimiser.update(slopes, state, V)
        return k + 1, optax.apply_updates(V, updates), state, jnp.max(jnp.sqrt(jnp.sum(slopes**2, axis=(1, 2))))

    _, W, state, _ = jax.lax.while_loop(going, step, (jnp.zeros_like(steps), W, state, jnp.full_like(still, jnp.inf)))
    return W, state


@eqx.filter_jit
def _values(risk: RandomisedRisk, W: Float[Array, "k d m"]) -> Float[Array, " k"]:
    return jax.vmap(risk)(W)
