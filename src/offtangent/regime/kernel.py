"""How a network's tangent kernel changed in training and turned towards the labels, whole and layer by layer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, PyTree

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.kernels.empirical import empirical_ntk
from offtangent.regime.neurons import plain_name


@dataclass(frozen=True)
class Turn:
    """How one kernel matrix became another in training.

    Attributes:
        change: ‖K(θ) − K(θ₀)‖_F / ‖K(θ₀)‖_F; infinite where it was zero.
        growth: ‖K(θ)‖_F / ‖K(θ₀)‖_F; likewise.
        angle: The angle between the two as vectors, in degrees; 0 where one is zero.
        alignment: How K is aligned with the centred labels, ⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F), before and after; None without
            labels.
    """

    change: float
    growth: float
    angle: float
    alignment: tuple[float, float] | None


@dataclass(frozen=True)
class Layer:
    """What one array of parameters has of the tangent kernel.

    Attributes:
        name: The array's place among the parameters.
        share: Its part of the kernel's trace, before and after training.
        turn: How its part changed.
    """

    name: str
    share: tuple[float, float]
    turn: Turn


@dataclass(frozen=True, eq=False)
class KernelAt:
    """The tangent kernel at some parameters, summed over the outputs, array by array of them."""

    leaves: Mapping[str, Float[np.ndarray, "n n"]]
    whole: Float[np.ndarray, "n n"]

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, X: PyTree, memory: int | None = None) -> "KernelAt":
        """Compute it. Time some nkP to n²k²P operations, for the cheaper ways of `kernels.empirical_ntk` less."""
        leaves = empirical_ntk(f, params, X, budget=memory).by_leaf()
        first, *rest = leaves.values()
        whole = np.asarray(first, np.float64).copy()
        for one in rest:
            whole += one
        return cls(leaves, whole)


def turned(before: Float[np.ndarray, "n n"], after: Float[np.ndarray, "n n"], Y: np.ndarray | None) -> Turn:
    """Compare the kernel before training with that after.

    Args:
        before: K(θ₀).
        after: K(θ).
        Y: The centred labels, as `centred` gives them, or None.

    Returns:
        How the one became the other.
    """
    before, after = (np.asarray(K, np.float64) for K in (before, after))
    sizes = [float(np.linalg.norm(K)) for K in (before, after)]
    product = sizes[0] * sizes[1]
    cosine = float(np.clip(np.vdot(before, after) / product, -1, 1)) if product else 1.0
    return Turn(
        change=float(np.linalg.norm(after - before)) / sizes[0] if sizes[0] else float("inf"),
        growth=sizes[1] / sizes[0] if sizes[0] else float("inf"),
        angle=float(np.degrees(np.arccos(cosine))),
        alignment=None if Y is None else (_alignment(before, Y), _alignment(after, Y)),
    )


def layers(before: KernelAt, after: KernelAt, Y: np.ndarray | None) -> tuple[Layer, ...]:
    """Compare what each array of parameters has of the kernel before training with that after."""
    traces = [float(np.trace(kernel.whole)) for kernel in (before, after)]
    found = []
    for name, first in before.leaves.items():
        last = after.leaves[name]
        parts = [float(np.trace(K, dtype=np.float64)) for K in (first, last)]
        share = tuple(part / whole if whole else 0.0 for part, whole in zip(parts, traces, strict=True))
        found.append(Layer(plain_name(name), (share[0], share[1]), turned(first, last, Y)))
    return tuple(found)


def centred(y: object, n: int) -> Float[np.ndarray, "n c"]:
    """The labels as columns without their means; whole numbers of more than two kinds are classes.

    Args:
        y: The labels, of shape (n,) or (n, k).
        n: How many samples there are.

    Returns:
        A column for each number or class.

    Raises:
        InputError: If labels do not fit, are not finite, or all the same.
    """
    try:
        labels = np.asarray(y)
    except ValueError as error:  # ragged lists
        raise InputError(f"y is no array: {error}. Give rows of equal length.") from None
    require(
        labels.shape[:1] == (n,) and labels.ndim in (1, 2),
        f"y has shape {labels.shape}: expected ({n},) or ({n}, k), a label for each sample.",
    )
    if labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer) and len(np.unique(labels)) > 2:
        labels = labels[:, None] == np.unique(labels)
    require(
        labels.dtype.kind in "buif",
        f"y has dtype {labels.dtype}: expected numbers; np.unique(y, return_inverse=True)[1] makes some.",
    )
    Y = np.asarray(labels, np.float64).reshape(n, -1)
    if not np.isfinite(Y).all():
        raise InputError(f"{np.count_nonzero(~np.isfinite(Y))} labels are NaN or infinite: drop those samples.")
    Y = Y - Y.mean(axis=0)
    require(Y.any(), "All labels are the same: nothing can be aligned with them.")
    return Y


def _alignment(K: Float[np.ndarray, "n n"], Y: Float[np.ndarray, "n c"]) -> float:
    """⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F), zero of a kernel that is zero."""
    size = float(np.linalg.norm(K))
    return float(np.sum(Y * (K @ Y)) / (size * np.linalg.norm(Y.T @ Y))) if size else 0.0
