"""A trained network measured: which order of its Taylor series carries it, how far it moved, how its kernel turned.

Between its initial parameters θ₀ and its trained ones θ, on given inputs,

    f(θ) − f(θ₀) = f^{(1)} + f^{(2)} + … + f^{(order)} + remainder.

A *lazy* network is carried by the first term: it is the linear model of its tangent kernel (NTK). In a two-layer
network of width m that happens where neurons move by m^{-1/2}; Bai & Lee (2020) let them move by m^{-1/4}.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from offtangent._checks import check_finite, require
from offtangent._errors import InputError
from offtangent.kernels.empirical import empirical_ntk
from offtangent.taylor import expand
from offtangent.taylor.checks import check_order

LEAVES = 0.1  # of the change, at most, where the orders so far carry the network


@dataclass(frozen=True)
class Movement:
    """How far one array of parameters moved. Its neurons are the slices along one axis."""

    name: str
    shape: tuple[int, ...]
    distance: float  # ‖θ − θ₀‖_F
    relative: float  # over ‖θ₀‖_F; infinite where it started at zero
    width: int  # m: neurons
    largest: float  # max_r ‖w_r − w_{0,r}‖
    mean: float  # over the neurons

    @property
    def in_lazy_units(self) -> float:
        """The largest movement over m^{-1/2}: of order one in the regime of the tangent kernel."""
        return self.largest * self.width**0.5

    @property
    def in_quadratic_units(self) -> float:
        """The largest movement over m^{-1/4}: of order one where the second order carries a two-layer network."""
        return self.largest * self.width**0.25


@dataclass(frozen=True, eq=False)
class Regime:
    """What one training did to a network, on given inputs. `summary()` has the numbers as a dictionary for JSON.

    `regime.page.regime_figures` draws it, and `regime.page.regime_page` makes a page of it.

    Attributes:
        samples: The number of inputs.
        outputs: The number of outputs for each of them.
        parameters: The number of parameters.
        change: The root mean square of f(θ) − f(θ₀) over samples and outputs.
        sizes: The terms of orders 1, 2, …, in the same units.
        left: What the sum of the first k terms leaves of the change, for k = 1, 2, …, in the same units.
        shares: ⟨f^{(k)}, f(θ) − f(θ₀)⟩ over ‖f(θ) − f(θ₀)‖², for each order k.
        remainder_share: The same of the remainder; with `shares` it adds up to one.
        movements: How far each array of parameters moved.
        kernel_change: ‖K(θ) − K(θ₀)‖_F / ‖K(θ₀)‖_F of the tangent kernels' traces over outputs.
        kernel_growth: ‖K(θ)‖_F / ‖K(θ₀)‖_F.
        kernel_turn: The angle between the two as vectors, in degrees.
        alignment: How K is aligned with the centred labels, ⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F), before and after; None without
            labels.
    """

    samples: int
    outputs: int
    parameters: int
    change: float
    sizes: tuple[float, ...]
    left: tuple[float, ...]
    shares: tuple[float, ...]
    remainder_share: float
    movements: tuple[Movement, ...]
    kernel_change: float
    kernel_growth: float
    kernel_turn: float
    alignment: tuple[float, float] | None

    @property
    def carried_by(self) -> int | None:
        """The smallest order k with ‖f(θ) − f(θ₀) − Σ_{j≤k} f^{(j)}‖ ≤ ‖f(θ) − f(θ₀)‖/10; None if none measured."""
        return next((k for k, left in enumerate(self.left, start=1) if left <= LEAVES * self.change), None)

    @property
    def remainder(self) -> float:
        """What all terms together leave of the change."""
        return self.left[-1]

    def summary(self) -> dict[str, Any]:
        """Put all numbers into a dictionary for JSON.

        Returns:
            Plain numbers, lists and text by name; None where there is nothing to say.
        """
        return {
            "samples": self.samples,
            "outputs": self.outputs,
            "parameters": self.parameters,
            "change": self.change,
            "sizes": list(self.sizes),
            "remainder": self.remainder,
            "left": list(self.left),
            "shares": list(self.shares),
            "remainder_share": self.remainder_share,
            "carried_by": self.carried_by,
            "kernel": {"change": self.kernel_change, "growth": self.kernel_growth, "turn_degrees": self.kernel_turn},
            "alignment": self.alignment and dict(zip(("before", "after"), self.alignment, strict=True)),
            "movements": [
                {
                    "name": one.name,
                    "shape": list(one.shape),
                    "distance": one.distance,
                    "relative": one.relative if np.isfinite(one.relative) else None,
                    "width": one.width,
                    "largest": one.largest,
                    "mean": one.mean,
                }
                for one in self.movements
            ],
        }


def measure_regime(
    f: Callable[..., Any],
    params0: PyTree,
    params: PyTree,
    X: PyTree,
    y: object = None,
    *,
    order: int = 2,
    neurons: int = -1,
) -> Regime:
    """Measure which order of its Taylor series carries a trained network, how far it moved, how its kernel turned.

    Between the initial parameters θ₀ and the trained ones θ, on given inputs,

        f(θ) − f(θ₀) = f^{(1)} + f^{(2)} + … + f^{(order)} + remainder.

    A lazy network is carried by f^{(1)}: it is the linear model of its tangent kernel. In a two-layer network of width
    m that happens where neurons move by m^{-1/2}; Bai & Lee (2020) let them move by m^{-1/4}, where f^{(2)} carries it.
    Time is a few passes of the network for the terms, and some n²kP operations for each of the two kernels of n
    samples, k outputs and P parameters; a few hundred samples will do.

    Args:
        f: The network, a function f(params, X) of a batch, whose outputs have one row for each input.
        params0: The initial parameters, any pytree; the Taylor series is around them.
        params: The trained parameters, of the same structure.
        X: The inputs, an array or a pytree of arrays whose first axis counts samples.
        y: The labels, of shape (n,) or (n, k), whole numbers for classes. With them it is also measured how the
            tangent kernel is aligned with the labels, before and after.
        order: The order of the Taylor series, at least 1.
        neurons: The axis of a weight array that counts its neurons: the last, -1, for Flax and for our own networks, 0
            for Equinox and PyTorch.

    Returns:
        A `Regime`: `carried_by` is the smallest order that leaves at most a tenth of the change, or None; `shares`,
        `movements` and the kernel's change say how.

    Raises:
        InputError: If the outputs have not changed beyond rounding, or are not finite after training, if there are no
            samples, if `neurons` is no axis of every array of weights, or if labels do not fit. Each message says what
            was expected.

    >>> import jax.numpy as jnp
    >>> regime = measure_regime(lambda w, x: jnp.tanh(x @ w), jnp.zeros(1), jnp.full(1, 0.01), jnp.ones((1, 1)))
    >>> regime.carried_by, round(regime.shares[0], 3)
    (1, 1.0)
    """
    check_order(order)
    require(order >= 1, f"order={order}: at least the first order is measured.")
    check_finite(X, "The inputs")
    require(hasattr(neurons, "__index__"), f"neurons={neurons!r}: expected an axis, such as -1 or 0.")
    require(
        not any(jnp.shape(leaf)[:1] == (0,) for leaf in jax.tree.leaves(X) if eqx.is_array(leaf)),
        "X has no samples: expected at least one.",
    )
    found = expand(f, params0, order).terms(params, X)
    start, *terms = (np.asarray(term, np.float64) for term in found)
    end, again = (np.asarray(f(one, X), np.float64) for one in (params, params0))
    require(np.isfinite(end).all(), "The trained network's outputs are not all finite: its training has diverged.")
    total = end - start
    _check_change(start, end, again, found[0].dtype)
    energy, count = float(np.sum(total**2)), total.size
    partial = np.cumsum(np.stack(terms), axis=0)
    remainder = total - partial[-1]
    before, after = (
        np.asarray(empirical_ntk(f, one, X).trace(), np.float64).reshape(len(total), -1) for one in (params0, params)
    )
    sizes = [float(np.linalg.norm(K)) for K in (before, after)]
    cosine = float(np.sum(before * after) / (sizes[0] * sizes[1]))
    return Regime(
        samples=len(total),
        outputs=count // len(total),
        parameters=sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(params0, eqx.is_inexact_array))),
        change=(energy / count) ** 0.5,
        sizes=tuple(float(np.sqrt(np.mean(term**2))) for term in terms),
        left=tuple(float(np.sqrt(np.mean((total - part) ** 2))) for part in partial),
        shares=tuple(float(np.sum(term * total)) / energy for term in terms),
        remainder_share=float(np.sum(remainder * total)) / energy,
        movements=_movements(params0, params, neurons),
        kernel_change=float(np.linalg.norm(after - before)) / sizes[0],
        kernel_growth=sizes[1] / sizes[0],
        kernel_turn=float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))),
        alignment=None if y is None else (_alignment(before, y), _alignment(after, y)),
    )


def _check_change(
    start: Float[np.ndarray, "n *k"], end: Float[np.ndarray, "n *k"], again: Float[np.ndarray, "n *k"], dtype: Any
) -> None:
    """Refuse a change of the outputs that rounding may have made: f(θ₀) comes twice, compiled and as it is.

    The last operation alone rounds each end by eps‖f‖, eps that of the outputs' dtype; what the sums before it add is
    seen where the two f(θ₀) differ. `carried_by` looks at a tenth of the change, so this has to be less than a tenth.
    """
    lengths = [float(np.linalg.norm(values)) for values in (end - start, end, start, again - start)]
    change, *ends, apart = (length / start.size**0.5 for length in lengths)
    eps = float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    rounding = max(eps * sum(ends), apart)
    if change <= rounding / LEAVES:
        raise InputError(
            f"The network's outputs on X have not changed beyond rounding: by {change:.2g} (root mean square), and "
            f"{dtype} rounds them by {rounding:.2g}, so that there is nothing to share out among orders. Expected the "
            "initial parameters and then the trained ones. If they are, and moved as little as that, give parameters "
            "and inputs in float64, under jax.enable_x64(True)."
        )


def _movements(params0: PyTree, params: PyTree, neurons: int) -> tuple[Movement, ...]:
    found = []
    pairs = zip(jax.tree_util.tree_leaves_with_path(params0), jax.tree.leaves(params), strict=True)
    for (path, start), end in pairs:
        if not eqx.is_inexact_array(start):
            continue
        start, end = (np.asarray(leaf, np.float64) for leaf in (start, end))
        delta = end - start
        rows = delta.reshape(1, 1) if delta.ndim == 0 else delta
        if rows.ndim > 1:
            if not -rows.ndim <= neurons < rows.ndim:
                raise InputError(
                    f"neurons={neurons}, and the parameter {jax.tree_util.keystr(path) or 'array'} has shape "
                    f"{start.shape}: expected the axis that counts neurons, -1 for Flax and our own networks, 0 for "
                    "Equinox and PyTorch."
                )
            rows = np.moveaxis(rows, neurons, 0)
        moved = np.linalg.norm(rows.reshape(len(rows), -1), axis=1)
        initial, distance = float(np.linalg.norm(start)), float(np.linalg.norm(delta))
        found.append(
            Movement(
                name=jax.tree_util.keystr(path) or "weights",
                shape=tuple(start.shape),
                distance=distance,
                relative=distance / initial if initial else float("inf"),
                width=len(rows),
                largest=float(moved.max()),
                mean=float(moved.mean()),
            )
        )
    return tuple(found)


def _alignment(K: Float[np.ndarray, "n n"], y: object) -> float:
    """⟨K, YYᵀ⟩ / (‖K‖_F ‖YYᵀ‖_F), with labels centred; whole numbers of more than two kinds are classes."""
    try:
        labels = np.asarray(y)
    except ValueError as error:  # ragged lists
        raise InputError(f"y is no array: {error}. Give rows of equal length.") from None
    require(
        labels.shape[:1] == (len(K),) and labels.ndim in (1, 2),
        f"y has shape {labels.shape}: expected ({len(K)},) or ({len(K)}, k), a label for each sample.",
    )
    if labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer) and len(np.unique(labels)) > 2:
        labels = labels[:, None] == np.unique(labels)
    require(
        labels.dtype.kind in "buif",
        f"y has dtype {labels.dtype}: expected numbers; np.unique(y, return_inverse=True)[1] makes some.",
    )
    Y = np.asarray(labels, np.float64).reshape(len(K), -1)
    if not np.isfinite(Y).all():
        raise InputError(f"{np.count_nonzero(~np.isfinite(Y))} labels are NaN or infinite: drop those samples.")
    Y = Y - Y.mean(axis=0)
    require(Y.any(), "All labels are the same: nothing can be aligned with them.")
    return float(np.sum(Y * (K @ Y)) / (np.linalg.norm(K) * np.linalg.norm(Y.T @ Y)))
