"""A trained network measured: which order of its Taylor series carries it, how far it moved, how its kernel turned.

Between its initial parameters θ₀ and its trained ones θ, on given inputs,

    f(θ) − f(θ₀) = f^{(1)} + f^{(2)} + … + f^{(order)} + remainder.

A *lazy* network is carried by the first term: it is the linear model of its tangent kernel (NTK). In a two-layer
network of width m that happens where neurons move by m^{-1/2}; Bai & Lee (2020) let them move by m^{-1/4}.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from offtangent._checks import check_count, check_finite, require
from offtangent._errors import InputError
from offtangent.kernels.blocks import length, take
from offtangent.regime.kernel import KernelAt, centred, layers, turned
from offtangent.regime.measured import LEAVES, Regime, bootstrap
from offtangent.regime.movement import movements
from offtangent.regime.neurons import Neurons, neurons_of
from offtangent.regime.scores import LOSSES, Prediction, Scoring
from offtangent.taylor import expand
from offtangent.taylor.checks import check_function, check_like, check_order, check_outputs, check_some
from offtangent.taylor.expansion import TaylorModel

BATCH = 256  # samples that go through the network together

Outputs = Float[np.ndarray, "n *k"]


def measure_regime(
    f: Callable[..., Any],
    params0: PyTree,
    params: PyTree,
    X: PyTree,
    y: object = None,
    *,
    held_out: tuple[PyTree, object] | None = None,
    order: int = 2,
) -> Regime:
    """Measure which order of its Taylor series carries a trained network, how far it moved, how its kernel turned.

    Between the initial parameters θ₀ and the trained ones θ, on given inputs,

        f(θ) − f(θ₀) = f^{(1)} + f^{(2)} + … + f^{(order)} + remainder.

    A lazy network is carried by f^{(1)}: it is the linear model of its tangent kernel. In a two-layer network of width
    m that happens where neurons move by m^{-1/2}; Bai & Lee (2020) let them move by m^{-1/4}, where f^{(2)} carries it.
    Time is a few passes of the network for the terms, and two tangent kernels of n samples, which `empirical_ntk` does
    layer by layer in the cheapest way; a few hundred samples will do.

    Args:
        f: The network, a function f(params, X) of a batch, whose outputs have one row for each input.
        params0: The initial parameters, any pytree; the Taylor series is around them.
        params: The trained parameters, of the same structure.
        X: The inputs, an array or a pytree of arrays whose first axis counts samples.
        y: The labels, of shape (n,) or (n, k), whole numbers for classes. With them it is also measured how the
            tangent kernel is aligned with the labels, before and after.
        held_out: Other inputs with their labels, (X, y). With them it is also measured how well the network, and each
            Taylor polynomial in its place, predicts.
        order: The order of the Taylor series, at least 1.

    Returns:
        A `Regime`: `carried_by` is the smallest order that leaves at most a tenth of the change, or None; `shares`,
        `movements`, `kernel`, `layers` and `predictions` say how.

    Raises:
        InputError: If the outputs have not changed beyond rounding, or are not finite after training, if there are no
            samples, if parameters are of different structures or shapes, or if labels do not fit. Each message says
            what was expected.

    >>> import jax.numpy as jnp
    >>> regime = measure_regime(lambda w, x: jnp.tanh(x @ w), jnp.zeros(1), jnp.full(1, 0.01), jnp.ones((1, 1)))
    >>> regime.carried_by, round(regime.shares[0], 3)
    (1, 1.0)
    """
    return Start(f, params0, X, y, held_out=held_out, order=order).measure(params)


@dataclass(frozen=True, eq=False)
class Start:
    """A network before training, and all that is the same for every checkpoint of it, computed once.

    Attributes:
        f: The network, a function of parameters and of a batch.
        params0: Its initial parameters.
        X: The inputs.
        y: Their labels, or None.
        held_out: Other inputs with their labels, or None.
        order: The order of the Taylor series.
        loss: By what held-out predictions are judged, where it is not what fits the labels (`scores.Scoring`).
        memory: Bytes that gradients may take at once, by default 256 MB.
    """

    f: Callable[..., Any]
    params0: PyTree
    X: PyTree
    y: object = None
    held_out: tuple[PyTree, object] | None = None
    order: int = 2
    loss: str | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_order(self.order)
        if self.memory is not None:
            check_count("memory", self.memory)
        require(self.order >= 1, f"order={self.order}: at least the first order is measured.")
        check_function(self.f)
        check_some(self.params0)
        check_finite(self.params0, "The parameters to expand around")
        require(self.loss in (None, *LOSSES), f"loss={self.loss!r} is none of {', '.join(LOSSES)}.")
        _check_samples(self.X, "X")
        check_outputs(self.f, self.params0, self.X)
        if self.y is not None:
            centred(self.y, length(self.X))
        if self.held_out is not None:
            pair: Any = self.held_out
            require(
                isinstance(pair, tuple) and len(pair) == 2,
                "held_out must be inputs with their labels: held_out=(X_test, y_test).",
            )
            _check_samples(self.held_out[0], "held_out")
            check_outputs(self.f, self.params0, self.held_out[0])
            _ = self.scoring

    @cached_property
    def model(self) -> TaylorModel:
        """The Taylor series around the start."""
        return expand(self.f, self.params0, self.order)

    @cached_property
    def neurons(self) -> list[Neurons]:
        """The neurons of every array of parameters."""
        return neurons_of(self.f, self.params0, take(self.X, slice(0, 1)))

    @cached_property
    def kernel(self) -> KernelAt:
        """The tangent kernel at the start."""
        return KernelAt.of(self.f, self.params0, self.X, self.memory)

    @cached_property
    def outputs(self) -> Outputs:
        """f(θ₀) on X."""
        return _in_blocks(lambda X: _run(self.f, self.params0, X), self.X)

    @cached_property
    def scoring(self) -> Scoring | None:
        """How held-out predictions are judged."""
        if self.held_out is None:
            return None
        X, y = self.held_out
        return Scoring.of(y, tuple(eqx.filter_eval_shape(self.f, self.params0, X).shape), self.loss)

    def measure(self, params: PyTree) -> Regime:
        """Measure the network with trained parameters; `measure_regime` has the words.

        Args:
            params: The trained parameters, of the structure of the initial ones.

        Returns:
            What was found.
        """
        check_like(params, self.params0)
        end = _in_blocks(lambda X: _run(self.f, params, X), self.X)
        require(np.isfinite(end).all(), "The trained network's outputs are not all finite: its training has diverged.")
        start, *terms = self._terms(params, self.X)
        total = end - start
        _check_change(start, end, self.outputs, eqx.filter_eval_shape(self.f, params, self.X).dtype)
        energy, n = float(np.sum(total**2)), len(total)
        left = [total - part for part in np.cumsum(np.stack(terms), axis=0)]
        squares = [np.square(part).reshape(n, -1).sum(axis=1) for part in (total, *left)]
        after, Y = KernelAt.of(self.f, params, self.X, self.memory), None if self.y is None else centred(self.y, n)
        return Regime(
            samples=n,
            outputs=total.size // n,
            parameters=sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.params0, eqx.is_inexact_array))),
            change=_size(total),
            sizes=tuple(map(_size, terms)),
            left=tuple(map(_size, left)),
            intervals=tuple(bootstrap(one, squares[0]) for one in squares[1:]),
            shares=tuple(float(np.sum(term * total)) / energy for term in terms),
            remainder_share=float(np.sum(left[-1] * total)) / energy,
            movements=movements(self.params0, params, self.neurons),
            kernel=turned(self.kernel.whole, after.whole, Y),
            layers=layers(self.kernel, after, Y),
            predictions=self._predictions(params),
            loss=None if self.scoring is None else self.scoring.loss,
        )

    def _terms(self, params: PyTree, X: PyTree) -> list[Outputs]:
        parts = _in_blocks(lambda X: jnp.stack(self.model.terms(params, X), axis=1), X)
        return [parts[:, k] for k in range(self.order + 1)]

    def _predictions(self, params: PyTree) -> tuple[Prediction, ...]:
        if self.held_out is None or self.scoring is None:
            return ()
        X, _ = self.held_out
        network = _in_blocks(lambda X: _run(self.f, params, X), X)
        models = list(np.cumsum(np.stack(self._terms(params, X)), axis=0))
        return self.scoring.predictions(network, models)


@eqx.filter_jit
def _run(f: Callable[..., Any], params: PyTree, X: PyTree) -> Array:
    return f(params, X)


def _in_blocks(compute: Callable[[PyTree], Array], X: PyTree) -> Outputs:
    """All samples, some at a time and always as many, so that nothing is compiled for a rest."""
    n = length(X)
    size = min(BATCH, n)
    found: list[np.ndarray] = []
    for at in range(0, n, size):
        first = min(at, n - size)
        found.append(np.asarray(compute(take(X, slice(first, first + size))), np.float64)[at - first :])
    return np.concatenate(found)


def _size(values: Outputs) -> float:
    """The root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def _check_samples(X: PyTree, name: str) -> None:
    check_finite(X, "The inputs" if name == "X" else "The held-out inputs")
    require(
        not any(jnp.shape(leaf)[:1] == (0,) for leaf in jax.tree.leaves(X) if eqx.is_array(leaf)),
        f"{name} has no samples: expected at least one.",
    )


def _check_change(start: Outputs, end: Outputs, again: Outputs, dtype: Any) -> None:
    """Refuse a change of the outputs that rounding may have made: f(θ₀) comes twice, by itself and as a term.

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
