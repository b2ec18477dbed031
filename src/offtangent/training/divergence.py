"""When training has blown up, and which learning rate would have been stable."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from offtangent._errors import InputError
from offtangent.taylor.curvature import sharpness
from offtangent.training.grids import Bounded

WORRYING = 10.0  # a loss this many times the first one is said, even if it came down again
HOPELESS = 1e3  # a loss this many times the first one is divergence, even while it is finite


class Diverged(ArithmeticError):
    """Training blew up: its loss became NaN, infinite, or more than a thousand times the first one.

    Of minibatches the largest loss of the first epoch stands for the first one. The message names a learning rate that
    is safe for plain gradient descent at the initial parameters.

    Args:
        step: The step before which the loss was seen to be lost.
        loss: The loss there; of several networks their sum.
        first: The loss before the first step.
        largest_stable_rate: 2/λ_max of the objective's Hessian at the initial parameters; not finite where the
            curvature there names no rate.

    Attributes:
        step: As given.
        loss: As given.
        largest_stable_rate: As given, for a program that tries again.

    >>> import optax
    >>> from offtangent.training import HalfSquares, train
    >>> one, slope = np.ones(1), HalfSquares(lambda w, X: X @ w)  # of curvature 1
    >>> try:
    ...     run = train(slope, 0 * one, one[:, None], one, optimiser=optax.sgd(3.0), steps=100)
    ... except Diverged as error:
    ...     print(error.step, error.largest_stable_rate)
    5 2.0
    """

    def __init__(self, step: int, loss: float, first: float, largest_stable_rate: float):
        self.step, self.loss, self.largest_stable_rate = step, loss, largest_stable_rate
        super().__init__(
            f"Training diverged at step {step}: the loss is {loss:.3g}, it was {first:.3g} at the start. "
            f"{_advice(largest_stable_rate)}"
        )


def _advice(largest_stable_rate: float) -> str:
    if not np.isfinite(largest_stable_rate):
        return "The curvature at the initial parameters names no stable learning rate; try a much smaller one."
    return (
        f"At the initial parameters plain gradient descent is stable only below a learning rate of 2/λ_max = "
        f"{largest_stable_rate:.3g}; {largest_stable_rate / 2:.3g} is safe."
    )


def refuse_divergence(
    losses: Float[np.ndarray, "all *k"],
    start: int,
    stop: int,
    epoch: int,
    objective: Callable[[Any, Array, Array], Array],
    params: PyTree,
    X: Array,
    y: Array,
) -> None:
    """Raise `Diverged` where a step from `start` to `stop` has a hopeless loss; `epoch` steps see all rows."""

    def totals(part: Float[np.ndarray, "some *k"]) -> Float[np.ndarray, " some"]:
        return part.reshape(len(part), -1).sum(axis=1)

    usual, new = np.abs(totals(losses[: min(epoch, stop)])), totals(losses[start:stop])
    if not np.isfinite(usual[0]):
        raise InputError(
            f"The objective is {totals(losses[:1])[0]} before the first step: look for NaN or infinite entries in X, y "
            "and the parameters, and for an objective that overflows there."
        )
    limit = HOPELESS * usual[np.isfinite(usual)].max()  # one batch may start with a loss that is small by chance
    bad = ~np.isfinite(new) | ((new > limit) & (limit > 0))
    if bad.any():
        at = int(bad.argmax())
        curvature = sharpness(lambda p: jnp.sum(objective(p, X, y)), params, key=jax.random.key(0))
        raise Diverged(start + at, float(new[at]), float(totals(losses[:1])[0]), curvature.largest_stable_rate)


def warn_of_a_rise(
    losses: Float[np.ndarray, "all *k"],
    epoch: int,
    objective: Callable[[Any, Array, Array], Array],
    params: PyTree,
    X: Array,
    y: Array,
) -> None:
    """Warn where a network's loss was once ten times the first one, or the largest of the first epoch of minibatches.

    Such a run has come through an instability: what it ended with need not have to do with where it started. Of a grid
    of rates, which `Bounded` marks, some are meant to be too large, and nothing is said.
    """
    if _may_lose_networks(objective):
        return
    each = np.abs(losses.reshape(len(losses), -1))
    usual = each[:epoch].max(axis=0)
    rise = np.divide(each.max(axis=0), usual, out=np.zeros_like(usual), where=usual > 0)
    worst = int(rise.argmax())
    if rise[worst] > WORRYING:
        at = int(each[:, worst].argmax())
        curvature = sharpness(lambda p: jnp.sum(objective(p, X, y)), params, key=jax.random.key(0))
        warnings.warn(
            f"The loss rose to {each[at, worst]:.3g} at step {at}, {rise[worst]:.3g} times the first one, and ended at "
            f"{each[-1, worst]:.3g}. {_advice(curvature.largest_stable_rate)}",
            stacklevel=3,  # whoever called train
        )


def _may_lose_networks(objective: Callable[[Any, Array, Array], Array]) -> bool:
    """Whether `Bounded` stands anywhere in the objective."""
    return any(
        isinstance(part, Bounded) for part in jax.tree.leaves(objective, is_leaf=lambda x: isinstance(x, Bounded))
    )
