"""Algorithm 1 with Theorem 4's own settings, watched at every step. In float64.

What is followed is h(W) = g(W) − g(0) = (1/4n) Σ_j q_j(q_j − 2y_j) + (γ/2)‖W‖², with q_j the outputs: the same
gradient and the same differences, and next to W = 0, where the theorem's perturbations are 10⁻⁸ long, sixteen digits
of it where g itself keeps none.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import DescentSettings
from offtangent.training.perturbed import Algorithm1State, algorithm1


class Watched(NamedTuple):
    """The largest so far."""

    rise: Float[Array, ""]  # h
    length: Float[Array, ""]  # ‖W‖²
    excess: Float[Array, ""]  # h(W_{t+1}) − h(W_t) + (η/2)‖∇g(W_t)‖² over steps of gradient descent


@dataclass(frozen=True, eq=False)
class Literal:
    """All seeds at some steps, what was largest on the way, and where they ended."""

    looks: Int[np.ndarray, "t"]
    losses: Float[np.ndarray, "t s"]  # f
    watched: dict[str, Float[np.ndarray, "s"]]
    last: Float[Array, "s d r"]
    returned: Bool[np.ndarray, "s"]
    steps: Int[np.ndarray, "s"]  # t where it returned
    perturbations: Int[np.ndarray, "s"]


def follow(risk: QuadraticRisk, settings: DescentSettings, *, seeds: int, most: int, looks: int) -> Literal:
    """From W = 0, as many runs as seeds in one program, until all have returned or taken `most` steps."""
    W, state, watched = _begin(risk, settings, jnp.arange(seeds))
    at = np.unique(np.geomspace(1, most + 1, looks).round().astype(int) - 1)
    seen = [0]
    losses = [np.full(seeds, 0.25 * float(np.mean(np.asarray(risk.y) ** 2)))]
    for before, after in itertools.pairwise(at):
        W, state, watched, loss = _advance(risk, settings, W, state, watched, np.asarray(after - before))
        seen.append(int(after))
        losses.append(np.asarray(loss))
        if bool(np.asarray(state.done).all()):
            break
    return Literal(
        np.array(seen), np.array(losses), {name: np.asarray(values) for name, values in watched._asdict().items()},
        W, np.asarray(state.done), np.asarray(state.time), np.asarray(state.perturbations),
    )  # fmt: skip


def rise(risk: QuadraticRisk, W: Float[Array, "d r"]) -> Float[Array, ""]:
    """g(W) − g(0), without g(0) in it."""
    outputs = risk.net(W, risk.X)
    return 0.25 * jnp.mean(outputs * (outputs - 2 * risk.y)) + 0.5 * risk.gamma * jnp.sum(W**2)


Run = tuple[Array, Algorithm1State, Watched]  # W, how far it is, and what was largest


@eqx.filter_jit
def _begin(risk: QuadraticRisk, settings: DescentSettings, seeds: Int[Array, "s"]) -> Run:
    def one(seed: Array) -> Run:
        W, zero = jnp.zeros((risk.net.dim, risk.net.width), risk.X.dtype), jnp.zeros((), risk.X.dtype)
        return W, algorithm1(settings, key=jax.random.key(seed)).init(W), Watched(zero, zero, zero - jnp.inf)

    return jax.vmap(one)(seeds)


@eqx.filter_jit
def _advance(
    risk: QuadraticRisk,
    settings: DescentSettings,
    W: Float[Array, "s d r"],
    state: Algorithm1State,
    watched: Watched,
    steps: Int[Array | np.ndarray, ""],
) -> tuple[Float[Array, "s d r"], Algorithm1State, Watched, Float[Array, "s"]]:
    Carry = tuple[Array, Algorithm1State, Watched, Array]

    def step(carry: Carry) -> Carry:
        W, state, watched, count = carry
        value, gradient = rise(risk, W), risk.gradient(W)
        moved, after = algorithm1(settings, key=state.key).update(gradient, state, W, value=value)
        W = W + moved
        new = rise(risk, W)
        excess = new - value + 0.5 * settings.rate * jnp.sum(gradient**2)
        seen = Watched(new, jnp.sum(W**2), jnp.where(after.time > state.time, excess, -jnp.inf))
        return W, after, Watched(*map(jnp.maximum, watched, seen)), count + 1

    def one(W: Array, state: Algorithm1State, watched: Watched) -> tuple[Array, Algorithm1State, Watched, Array]:
        carry = (W, state, watched, jnp.zeros((), jnp.int32))
        W, state, watched, _ = jax.lax.while_loop(lambda c: ~c[1].done & (c[3] < steps), step, carry)
        return W, state, watched, risk.loss(W)

    return jax.vmap(one)(W, state, watched)
