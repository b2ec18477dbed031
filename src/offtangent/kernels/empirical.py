"""The tangent and conjugate kernels of any network f(params, x), at its own width and weights.

    K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output.

As an operator, K v = J (Jᵀ v): one vjp and one jvp through the network, a block of samples at a time, no Jacobian is
ever held. Dense, the Jacobians of two blocks of samples are held and multiplied.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from offtangent._checks import check_finite, require
from offtangent._errors import InputError
from offtangent.kernels.factors import Factored, Route, gradients
from offtangent.kernels.gradients import Gradients
from offtangent.taylor.checks import check_function, check_outputs, check_some

AT_ONCE = 1 << 26  # numbers that are held at once: 256 MB in float32
BATCH = 256  # samples that go through the network together

Form: TypeAlias = Literal["every_pair", "summed", "each_output"]


@dataclass(frozen=True, eq=False, repr=False)
class TangentKernel:
    """The tangent kernel of f at `params` on inputs X: an operator, and the matrix in three forms.

    `K @ v` takes and gives arrays shaped like f's outputs, (n,) or (n, k), or with one more axis for many vectors.

    Attributes:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: The inputs.
    """

    f: Callable[..., Any]
    params: PyTree
    X: PyTree

    def __post_init__(self) -> None:
        check_function(self.f)
        check_some(self.params)
        check_finite(self.params, "The parameters")
        check_finite(self.X, "The inputs")
        check_outputs(self.f, self.params, self.X)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The shape of f's outputs on X: (n,) or (n, k)."""
        return tuple(eqx.filter_eval_shape(self.f, self.params, self.X).shape)

    @cached_property
    def _factored(self) -> Factored:
        return Factored.of(self.f, self.params, self.X)

    def __len__(self) -> int:
        return self.outputs[0]

    def __repr__(self) -> str:
        return f"TangentKernel({_count(self.params)} parameters, outputs {self.outputs})"

    def __matmul__(self, v: Float[Array | np.ndarray, "n *rest"]) -> Float[Array, "n *rest"]:
        """Compute J(Jᵀv), in the dtype of f. Time: two passes through the network a vector, memory that of one block.

        Args:
            v: A vector shaped like f's outputs, or many along one more axis.

        Returns:
            The product, shaped like v.

        Raises:
            InputError: If v has another shape.
        """
        v = jnp.asarray(v)
        if v.shape == self.outputs:
            return _product(self.f, self.params, self.X, v)
        if v.shape[:-1] == self.outputs:
            columns = [_product(self.f, self.params, self.X, v[..., i]) for i in range(v.shape[-1])]
            return jnp.stack(columns, axis=-1)
        raise InputError(
            f"The vector has shape {v.shape}: expected that of the outputs, {self.outputs}, or one axis more."
        )

    def dense(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *kk"]:
        """Compute K(X, X2). Time O(npk²P) for P parameters, and k passes a sample through the network.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p) for one output, an array of (n, p, k, k) for k of them.
        """
        return _blocks(self, X2, "every_pair")

    def trace(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p"]:
        """Compute Σ_j ⟨∂f_j(x), ∂f_j(x')⟩, the trace of each k × k block. Time O(npkP).

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p).
        """
        return _blocks(self, X2, "summed")

    def diagonal(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p k"]:
        """Compute ⟨∂f_j(x), ∂f_j(x')⟩ for each output j: the kernel of each output by itself. Time O(npkP).

        Args:
            X2: Other inputs, by default X.

        Returns:
            An array of (n, p, k).
        """
        return _blocks(self, X2, "each_output")


def empirical_ntk(f: Callable[..., Any], params: PyTree, X: PyTree) -> TangentKernel:
    """Make the tangent kernel of any network f(params, x), at its own width and weights.

        K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output

    As an operator, `K @ v` = J(Jᵀv) takes two passes through the network, a block of samples at a time, and no Jacobian
    is ever held. `K.dense()` takes O(n²k²P) for n samples, k outputs and P parameters, and holds the Jacobians of two
    blocks of samples: 256 MB in float32, or one sample's each if that is more. Nothing but checks is computed before
    one of these is asked for.

    Args:
        f: The network, a function of parameters and of a batch x, whose first axis counts samples; it returns (n,) or
            (n, k). Keep batch norm's running statistics in f, as docs/taylor.md does, or the kernel has them too.
        params: The parameters θ, any pytree. Leaves that hold no floating-point numbers are left alone, all others
            count.
        X: The inputs, an array or a pytree of arrays.

    Returns:
        The kernel, with `K @ v`, `K.dense()`, `K.trace()` (summed over the outputs) and `K.diagonal()` (of each output
        by itself); the last three also take other inputs, as in `K.dense(X2)`.

    Raises:
        InputError: If f fails on these parameters and inputs or returns another shape, or if there are NaN among them;
            the message says what was expected.

    >>> K = empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> K.dense()
    array([[5., 2.],
           [2., 1.]], dtype=float32)
    >>> K @ jnp.array([1.0, -1.0])
    Array([3., 1.], dtype=float32)
    """
    return TangentKernel(f, params, _arrays(X))


def empirical_conjugate(
    features: Callable[..., Any], params: PyTree, X: PyTree, X2: PyTree | None = None
) -> Float[np.ndarray, "n p"]:
    """Compute the conjugate kernel of a network at its own width and weights: that of training the last layer alone.

        K(x, x') = φ(x)ᵀφ(x')

    Time O(npk) for k features, beside one pass of the samples; memory that of the features and of the matrix.

    Args:
        features: φ(params, x), what the last layer acts on, (n, k) for a batch x of n samples. Where the network
            divides its output by √m, let φ do so too.
        params: The parameters of φ, any pytree.
        X: n inputs, an array or a pytree of arrays.
        X2: p other inputs, by default X.

    Returns:
        The matrix K(X, X2), n × p, in the dtype of φ.

    Raises:
        InputError: If φ fails on these parameters and inputs or returns another shape, or if there are NaN among the
            inputs.

    >>> empirical_conjugate(lambda w, x: jnp.maximum(x @ w, 0), jnp.eye(2), jnp.array([[1.0, -1.0], [2.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]], dtype=float32)
    """
    check_function(features)
    sides = [_arrays(side) for side in ((X,) if X2 is None else (X, X2))]
    check_finite(params, "The parameters")
    for side in sides:
        require(_len(side), "There are no inputs: expected at least one.")
        check_finite(side, "The inputs")
        check_outputs(features, params, side)
    run = eqx.filter_jit(features)
    values = [
        np.concatenate(
            [np.asarray(run(params, _take(side, slice(at, at + BATCH)))) for at in range(0, _len(side), BATCH)]
        )
        for side in sides
    ]
    values = [value.reshape(len(value), -1) for value in values]
    return np.asarray(values[0] @ values[-1].T)


def _product(f: Callable[..., Any], params: PyTree, X: PyTree, v: Array) -> Array:
    size = min(BATCH, len(v))
    pull = None
    for at in range(0, len(v), size):
        part = _pull(f, params, _take(X, slice(at, at + size)), v[at : at + size])
        pull = part if pull is None else jax.tree.map(jnp.add, pull, part)
    pushed = [_push(f, params, _take(X, slice(at, at + size)), pull) for at in range(0, len(v), size)]
    return jnp.concatenate(pushed)


@eqx.filter_jit
def _pull(f: Callable[..., Any], params: PyTree, X: PyTree, v: Array) -> PyTree:
    """Jᵀv."""
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    value, back = jax.vjp(lambda p: f(eqx.combine(p, fixed), X), moving)
    return back(v.astype(value.dtype))[0]


@eqx.filter_jit
def _push(f: Callable[..., Any], params: PyTree, X: PyTree, u: PyTree) -> Array:
    """Ju."""
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    return jax.jvp(lambda p: f(eqx.combine(p, fixed), X), (moving,), (u,))[1]


def _blocks(K: TangentKernel, X2: PyTree | None, form: Form) -> np.ndarray:
    """Every pair of samples, a block of rows by a block of columns; where both sides are the same, half of them."""
    same = X2 is None
    other = K.X if X2 is None else _arrays(X2)
    if not same:
        check_finite(other, "The inputs")
        check_outputs(K.f, K.params, other)
    shape = (_len(K.X), _len(other))
    samples, k = shape[:1] if same else shape, math.prod(K.outputs[1:])
    rows, columns = _cut(K._factored.routes(samples), shape)
    found: np.ndarray | None = None
    for i, row in enumerate(rows):
        left = gradients(K.f, K.params, _take(K.X, row), samples)
        for j, column in enumerate(columns):
            if same and j < i:
                continue
            right = left if same and j == i else gradients(K.f, K.params, _take(other, column), samples)
            block = np.asarray(_tile(left, right, form))
            if form == "every_pair":  # in memory it stays the matrix of all pairs (sample, output)
                block = block.reshape(row.stop - row.start, k, column.stop - column.start, k).swapaxes(1, 2)
            if found is None:
                found = block if block.shape[:2] == shape else _like(block, shape, form)
            if found is not block:
                found[row, column] = block
            if same and j > i:
                turned = np.swapaxes(block, 0, 1)
                found[column, row] = np.swapaxes(turned, 2, 3) if form == "every_pair" else turned
    assert found is not None
    alone = len(K.outputs) == 1  # one output, and no axis for it
    return found.reshape(found.shape[:2]) if alone and found.ndim > 2 else found


def _like(block: np.ndarray, samples: tuple[int, int], form: Form) -> np.ndarray:
    """Room for the blocks of all samples, which lie in memory as one block does."""
    if form != "every_pair":
        return np.empty((*samples, *block.shape[2:]), block.dtype)
    outputs = block.shape[2:]
    return np.empty((samples[0], outputs[0], samples[1], outputs[1]), block.dtype).swapaxes(1, 2)


def _cut(chosen: list[Route], samples: tuple[int, int]) -> tuple[list[slice], list[slice]]:
    """Blocks of rows and of columns: two of them, and what is held of their pairs, take `AT_ONCE` numbers at most.

    The blocks of a side have one size, so that nothing is compiled for a rest: the last one begins earlier instead.
    """
    each = max(1, sum(2 * route.kept + route.passing for route in chosen))
    pair = max(1, max((route.of_pair for route in chosen), default=1))
    size = max(1, int((math.sqrt(each**2 + 4 * pair * AT_ONCE) - each) / (2 * pair)))
    sides = []
    for n in samples:
        count = -(-n // min(size, n))
        rows = -(-n // count)
        sides.append([slice(min(at, n - rows), min(at, n - rows) + rows) for at in range(0, n, rows)])
    return sides[0], sides[1]


@eqx.filter_jit
def _tile(left: list[Gradients], right: list[Gradients], form: Form) -> Array:
    """The inner products of two blocks of samples, added up over the leaves.

    A program of its own: made together with the gradients, XLA would compute these in the order of the products.
    """
    parts = [getattr(one, form)(other) for one, other in zip(left, right, strict=True)]
    return sum(parts[1:], start=parts[0])


def _arrays(X: PyTree) -> PyTree:
    try:
        return jax.tree.map(jnp.asarray, X)
    except (TypeError, ValueError) as error:
        raise InputError(f"The inputs are no arrays of numbers: {error}") from error


def _take(X: PyTree, rows: slice) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[rows], X)


def _len(X: PyTree) -> int:
    return int(jax.tree.leaves(X)[0].shape[0])


def _count(params: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array)))
