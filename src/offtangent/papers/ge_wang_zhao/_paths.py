"""Ways down the loss of a quadratic network: gradient descent, Algorithm 1, negative curvature, and the closed form."""

import itertools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent import data
from offtangent.networks import QuadraticNet
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import DescentSettings
from offtangent.theory.ge_wang_zhao.landscape import interpolant, negative_curvature_descent
from offtangent.training.perturbed import Algorithm1State, algorithm1

# Algorithm 1 as one would use it: the theory's thresholds ask for 10²⁰ steps.
PRACTICAL = DescentSettings(rate=5.0, radius=0.01, gradient=1e-5, decrease=1e-6, wait=400)
NOISE = 1e-5  # the length of what is added to W at every step of noisy descent


@dataclass(frozen=True, eq=False)
class Path:
    """f and λ_min(∇²f) = −‖M‖ at some steps, and where it ended."""

    looks: Float[np.ndarray, "t"]
    losses: Float[np.ndarray, "t"]
    lowest: Float[np.ndarray, "t"]
    last: Float[Array, "d r"]
    perturbations: int = 0
    escapes: int = 0
    returned: bool = False


def sample(samples: int, dim: int, seed: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Appendix A.1: entries and labels uniform on [−1, 1], rows divided by their norm."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (samples, dim))
    return data.preprocessing.unit_norm(X), rng.uniform(-1, 1, samples)


def follow(
    method: str, risk: QuadraticRisk, start: Float[Array, "d r"], *, rate: float, looks: list[int], key: Key[Array, ""]
) -> Path:
    """In the dtype of the risk; `looks` are numbers of steps, from 0 on."""
    if method == "closed form":
        net: QuadraticNet = risk.net
        W = jnp.asarray(interpolant(net, np.asarray(risk.X), np.asarray(risk.y)), risk.X.dtype)
        return _path(risk, [0, 1], [start, W])
    seen, W, state = [start], start, None
    optimiser = algorithm1(PRACTICAL, key=key)
    for before, after in itertools.pairwise(looks):
        if method == "negative curvature":
            W, _ = negative_curvature_descent(risk, W, after - before)
        elif method == "noisy descent":
            W = _shaken(risk, W, jnp.asarray(rate, W.dtype), key, jnp.asarray([before, after]))
        elif method == "algorithm 1":
            state = optimiser.init(W) if state is None else state
            W, state = _perturbed(risk, optimiser.update, W, state, jnp.asarray(after - before))
        else:
            W = _descend(risk, W, jnp.asarray(rate, W.dtype), jnp.asarray(after - before))
        seen.append(W)
    found = _path(risk, looks, seen)
    if state is None:
        return found
    return Path(
        found.looks, found.losses, found.lowest, found.last, int(state.perturbations), int(state.escapes),
        bool(state.done),
    )  # fmt: skip


def _path(risk: QuadraticRisk, looks: list[int], seen: list[Float[Array, "d r"]]) -> Path:
    values = [_look(risk, W) for W in seen]
    losses, lowest = (np.array([float(value[k]) for value in values]) for k in (0, 1))
    return Path(np.array(looks, float), losses, lowest, seen[-1])


@eqx.filter_jit
def _look(risk: QuadraticRisk, W: Float[Array, "d r"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    return risk.loss(W), risk.lowest_curvature(W)


@eqx.filter_jit
def _descend(risk: QuadraticRisk, W: Float[Array, "d r"], rate: Array, steps: Array) -> Float[Array, "d r"]:
    return jax.lax.fori_loop(0, steps, lambda _, V: V - rate * risk.gradient(V), W)


@eqx.filter_jit
def _shaken(
    risk: QuadraticRisk, W: Float[Array, "d r"], rate: Array, key: Key[Array, ""], between: Array
) -> Float[Array, "d r"]:
    """Descent with a Gaussian of length NOISE or so added at every step, new at each."""

    def step(t: Array, V: Array) -> Array:
        noise = jax.random.normal(jax.random.fold_in(key, t), V.shape, V.dtype)
        return V - rate * risk.gradient(V) + NOISE * noise / V.size**0.5

    return jax.lax.fori_loop(between[0], between[1], step, W)


@eqx.filter_jit
def _perturbed(
    risk: QuadraticRisk, update: Any, W: Float[Array, "d r"], state: Algorithm1State, steps: Array
) -> tuple[Float[Array, "d r"], Algorithm1State]:
    def step(_: Any, carry: tuple[Array, Algorithm1State]) -> tuple[Array, Algorithm1State]:
        V, state = carry
        moved, state = update(risk.gradient(V), state, V, value=risk(V))
        return V + moved, state

    return jax.lax.fori_loop(0, steps, step, (W, state))
