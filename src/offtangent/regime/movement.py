"""How far the neurons of a network moved in training, in units of two powers of its width."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from offtangent.regime.neurons import Neurons


@dataclass(frozen=True)
class Movement:
    """How far one array of parameters moved.

    Attributes:
        name: The array's place among the parameters.
        shape: Its shape.
        distance: ‖θ − θ₀‖_F.
        relative: That over ‖θ₀‖_F; infinite where it started at zero.
        width: m, the number of its neurons.
        largest: max_r ‖w_r − w_{0,r}‖ over the neurons r.
        mean: The mean of the same.
        is_guess: Whether the network does not tell which axis counts neurons, so that the last was taken.
    """

    name: str
    shape: tuple[int, ...]
    distance: float
    relative: float
    width: int
    largest: float
    mean: float
    is_guess: bool = False

    @property
    def in_lazy_units(self) -> float:
        """The largest movement over m^{-1/2}: of order one in the regime of the tangent kernel."""
        return self.largest * self.width**0.5

    @property
    def in_quadratic_units(self) -> float:
        """The largest movement over m^{-1/4}: of order one where the second order carries a two-layer network."""
        return self.largest * self.width**0.25


def movements(params0: PyTree, params: PyTree, neurons: Sequence[Neurons]) -> tuple[Movement, ...]:
    """Measure how far each array of parameters moved, and its neurons.

    Args:
        params0: The initial parameters.
        params: The trained ones, of the same structure.
        neurons: What `neurons_of` finds, for each floating-point leaf.

    Returns:
        A movement for each floating-point leaf, in the order of the leaves.
    """
    starts, ends = (jax.tree.leaves(eqx.filter(side, eqx.is_inexact_array)) for side in (params0, params))
    return tuple(_of_one(*one) for one in zip(neurons, starts, ends, strict=True))


def _of_one(neurons: Neurons, start: object, end: object) -> Movement:
    first, last = (np.asarray(side, np.float64) for side in (start, end))
    squares = np.square(last - first)
    moved = np.sqrt(np.bincount(neurons.of_weight.ravel(), squares.ravel(), neurons.count))
    initial, distance = float(np.linalg.norm(first)), float(np.sqrt(squares.sum()))
    return Movement(
        name=neurons.name,
        shape=first.shape,
        distance=distance,
        relative=distance / initial if initial else float("inf"),
        width=neurons.count,
        largest=float(moved.max(initial=0.0)),
        mean=float(moved.mean()) if neurons.count else 0.0,
        is_guess=neurons.is_guess,
    )
