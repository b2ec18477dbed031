"""Theorem 4 with its own settings on a new data set for each run: all runs in one program. In float64.

Settings differ from set to set, and `training.perturbed.algorithm1` takes numbers alone: here its loop is written for
thresholds that are arrays, and tests hold it next to the other. As in `_literal`, values are those of g(W) − g(0).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, Key

from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao import _literal, _paths
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.capacity import least_width
from offtangent.theory.ge_wang_zhao.descent import Theorem4, theorem4
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular

MOST = 20  # times the largest t_thres: where runs that have not returned are given up
LABEL = 4.0  # the largest label
DRAWN = 8  # perturbations that are drawn before the run; a ninth would be the first again


@dataclass(frozen=True)
class Fresh:
    """Theorem 4 on as many data sets as seeds, each drawn again until σ_min ≥ `least` and f(0) ≥ `start`.

    Both bound t_thres, which is as 1/σ²f(0), and with it how long all of them take together.
    """

    dim: int
    samples: int
    seeds: int
    least: float
    start: float


class Thresholds(NamedTuple):
    """Algorithm 1's, as arrays."""

    rate: Float[Array, ""]
    radius: Float[Array, ""]
    gradient: Float[Array, ""]
    decrease: Float[Array, ""]
    wait: Int[Array, ""]


class Chase(NamedTuple):
    """How far a run is, and the largest g(W_t) − g(0) at times outside the perturbation phases."""

    W: Float[Array, "d r"]
    anchor: Float[Array, "d r"]
    level: Float[Array, ""]
    time: Int[Array, ""]
    shaken: Int[Array, ""]
    perturbations: Int[Array, ""]
    done: Bool[Array, ""]
    settled: Float[Array, ""]


def problem(cell: Fresh, seed: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"], float]:
    """A data set of this seed, its labels four times as large as the paper's, and σ_min, proven."""
    for attempt in range(1000):
        X, y = _paths.sample(cell.samples, cell.dim, 1000 * (seed + 1) + attempt)
        sigma, y = smallest_singular(X).lower, LABEL * y
        if sigma >= cell.least and 0.25 * np.mean(y**2) >= cell.start:
            return X, y, sigma
    raise RuntimeError(f"No data set of {cell} has σ_min ≥ {cell.least:g} and f(0) ≥ {cell.start:g}.")


def run(cell: Fresh, share: float) -> xr.Dataset:
    """Where every run ends, for ε = `share` times f(0), next to what the theorem says of it."""
    width, found = least_width(cell.dim), [problem(cell, seed) for seed in range(cell.seeds)]
    X, y = (np.array([one[part] for one in found]) for part in (0, 1))
    starts = 0.25 * np.mean(y**2, axis=1)
    chosen = [
        theorem4(
            samples=cell.samples,
            dim=cell.dim,
            width=width,
            smallest=sigma,
            radius=1.0,
            label=float(np.abs(labels).max()),
            start=float(start),
            epsilon=share * float(start),
        )
        for (_, labels, sigma), start in zip(found, starts, strict=True)
    ]
    settings = [one.settings() for one in chosen]
    waits = jnp.array([one.wait for one in settings], jnp.int32)
    thresholds = Thresholds(
        jnp.array([one.rate for one in settings]),
        jnp.array([one.radius for one in settings]),
        jnp.array([one.gradient for one in settings]),
        jnp.array([one.decrease for one in settings]),
        waits,
    )
    keys, gammas = jax.random.split(jax.random.key(0), cell.seeds), jnp.array([one.gamma for one in chosen])
    sets = (jnp.asarray(X), jnp.asarray(y), gammas)
    ends, (losses, slopes, lowest) = _all(QuadraticNet(cell.dim, width), sets, thresholds, keys, MOST * jnp.max(waits))
    table = {
        "returned": ends.done,
        "steps": ends.time,
        "perturbations": ends.perturbations,
        "settled": ends.settled / starts,
        "last": losses,
        "gradient": slopes,
        "lowest": lowest,
        "start": starts,
        "wait": waits,
        "epsilon": share * starts,
        "smallest": [one[2] for one in found],
        **{name: [getattr(one, name) for one in chosen] for name in ("accuracy", "gamma", "iterations")},
        "relative": [_relative(one) for one in chosen],
    }
    return xr.Dataset({name: ("seed", np.asarray(values, np.float64)) for name, values in table.items()})


def _relative(chosen: Theorem4) -> float:
    """ε′ over ℓ²/ρ, which Theorem 3 asks to be 1 at most."""
    return chosen.accuracy * chosen.hessian / chosen.smoothness**2


@eqx.filter_jit
def _all(
    net: QuadraticNet,
    sets: tuple[Float[Array, "s n d"], Float[Array, "s n"], Float[Array, " s"]],
    settings: Any,
    keys: Key[Array, " s"],
    most: Int[Array, ""],
) -> tuple[Any, tuple[Array, Array, Array]]:
    """Where all runs end: f, ‖∇g‖ and λ_min(∇²g) there. Settings and ends have one row for each run."""

    def one(X: Array, y: Array, gamma: Array, at: Thresholds, key: Array) -> tuple[Chase, tuple[Array, Array, Array]]:
        risk = QuadraticRisk(net, X, y, gamma)
        end = chase(risk, at, key, most)
        lowest = jnp.linalg.eigvalsh(risk.hessian(end.W))[0]
        return end, (risk.loss(end.W), jnp.linalg.norm(risk.gradient(end.W)), lowest)

    return jax.vmap(one)(*sets, settings, keys)


def chase(risk: QuadraticRisk, at: Thresholds, key: Key[Array, ""], most: Int[Array, ""]) -> Chase:
    """Follow Algorithm 1 from W = 0 until it returns, or has looked `most` times."""
    zero, none = jnp.zeros((risk.net.dim, risk.net.width), risk.X.dtype), jnp.zeros((), jnp.int32)
    infinite = jnp.asarray(math.inf, risk.X.dtype)
    balls = jnp.stack([_in_ball(jax.random.fold_in(key, i), zero.shape, at.radius) for i in range(DRAWN)])
    start = Chase(zero, zero, infinite, none, none - at.wait - 1, none, none > 0, -infinite)

    def step(carry: tuple[Chase, Array]) -> tuple[Chase, Array]:
        now, looks = carry
        value, gradient, since = _literal.rise(risk, now.W), risk.gradient(now.W), now.time - now.shaken
        shake = (jnp.linalg.norm(gradient) <= at.gradient) & (since > at.wait)
        finished = (since == at.wait) & (value - now.level > -at.decrease)
        shaken = balls[now.perturbations % DRAWN]
        moved = jnp.where(shake, now.W + shaken, jnp.where(finished, now.anchor, now.W - at.rate * gradient))
        outside = (since >= at.wait) & (now.perturbations > 0)
        return Chase(
            moved,
            jnp.where(shake, now.W, now.anchor),
            jnp.where(shake, value, now.level),
            now.time + jnp.where(shake | finished, 0, 1),
            jnp.where(shake, now.time, now.shaken),
            now.perturbations + jnp.where(shake, 1, 0),
            finished,
            jnp.maximum(now.settled, jnp.where(outside, value, -infinite)),
        ), looks + 1

    return jax.lax.while_loop(lambda carry: ~carry[0].done & (carry[1] < most), step, (start, none))[0]


def _in_ball(key: Key[Array, ""], shape: tuple[int, ...], radius: Float[Array, ""]) -> Float[Array, "d r"]:
    """Uniform in a ball of d · r dimensions, by the numbers that `algorithm1` draws."""
    of_direction, of_length = jax.random.split(key)
    direction = jax.random.normal(of_direction, (math.prod(shape),), radius.dtype)
    length = radius * jax.random.uniform(of_length, (), radius.dtype) ** (1 / direction.size)
    return (length * direction / jnp.linalg.norm(direction)).reshape(shape)
