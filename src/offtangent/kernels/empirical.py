"""The tangent and conjugate kernels of any network f(params, x), at its own width and weights.

    K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output.

As an operator, K v = J (Jᵀ v): one vjp and one jvp through the network, a block of samples at a time, no Jacobian is
ever held. Dense, blocks of samples are multiplied, layer by layer in the way that costs least: most often by what
entered a layer and what came back to it, so that nothing of the size of its weights is formed (`kernels.factors`).
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

from offtangent._checks import check_finite, require
from offtangent._errors import InputError
from offtangent.kernels.blocks import Form, check_apart, length, matrix, take
from offtangent.kernels.factors import Factored, Way
from offtangent.taylor.checks import check_function, check_outputs, check_some

BATCH = 256  # samples that go through the network together


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
        check_apart(self.f, self.params, self.X)
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
        """Compute K(X, X2).

        Time O(npk²(a + b)) for a layer of a inputs and b outputs that acts once, where its Jacobians would take
        O(npk²ab), and k passes a sample through the network.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p) for one output, an array of (n, p, k, k) for k of them.
        """
        return _matrix(self, X2, "every_pair")

    def trace(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p"]:
        """Compute Σ_j ⟨∂f_j(x), ∂f_j(x')⟩, the trace of each k × k block, in the time of `dense` at most.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p).
        """
        return _matrix(self, X2, "summed")

    def diagonal(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *k"]:
        """Compute ⟨∂f_j(x), ∂f_j(x')⟩ for each output j: the kernel of each output by itself, in that time, too.

        Args:
            X2: Other inputs, by default X.

        Returns:
            An array of (n, p, k), or (n, p) where there is one output and no axis for it.
        """
        return _matrix(self, X2, "each_output")

    def by_leaf(self, X2: PyTree | None = None) -> dict[str, Float[np.ndarray, "n p"]]:
        """Compute what each leaf of the parameters adds to `trace`: how much of the kernel each layer carries.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p) for each leaf, by the leaf's place among the parameters; they add up to `trace(X2)`.
        """
        found = _matrix(self, X2, "each_leaf")
        return {leaf: found[:, :, place] for place, leaf in enumerate(self.ways)}

    @property
    def ways(self) -> dict[str, Way]:
        """How inner products of gradients are computed, leaf by leaf, for all inputs against all.

        "positions" and "lookup" keep what entered the layer and what came back to it, "outer products" multiplies the
        two for each sample, "gradient" is JAX's own gradient, and "unused" a leaf on which the outputs do not depend.
        """
        return {route.leaf: route.way for route in self._factored.routes((len(self),))}


def empirical_ntk(f: Callable[..., Any], params: PyTree, X: PyTree) -> TangentKernel:
    """Make the tangent kernel of any network f(params, x), at its own width and weights.

        K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output

    As an operator, `K @ v` = J(Jᵀv) takes two passes through the network, a block of samples at a time, and no Jacobian
    is ever held. `K.dense()` multiplies what entered each layer and what came back to it: for n samples, k outputs and
    a layer of a inputs and b outputs in O(n²k²(a + b)), without anything of the size of the weights; where that takes
    more than products of the gradients, as in convolutions over many positions, these are formed. It holds two blocks
    of samples: 256 MB in float32, or one sample's each if that is more. Nothing but checks is computed before one of
    these is asked for.

    Args:
        f: The network, a function of parameters and of a batch x, whose first axis counts samples; it returns (n,) or
            (n, k). Keep batch norm's running statistics in f, as docs/taylor.md does, or the kernel has them too.
        params: The parameters θ, any pytree. Leaves that hold no floating-point numbers are left alone, all others
            count.
        X: The inputs, an array or a pytree of arrays.

    Returns:
        The kernel, with `K @ v`, `K.dense()`, `K.trace()` (summed over the outputs), `K.diagonal()` (of each output by
        itself) and `K.by_leaf()` (what each leaf of the parameters adds); all but the first also take other inputs, as
        in `K.dense(X2)`. `K.ways` tells how each leaf is done.

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
    check_function(f)
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
        require(length(side), "There are no inputs: expected at least one.")
        check_finite(side, "The inputs")
        check_outputs(features, params, side)
    run = eqx.filter_jit(features)
    values = [
        np.concatenate(
            [np.asarray(run(params, take(side, slice(at, at + BATCH)))) for at in range(0, length(side), BATCH)]
        )
        for side in sides
    ]
    values = [value.reshape(len(value), -1) for value in values]
    return np.asarray(values[0] @ values[-1].T)


def _product(f: Callable[..., Any], params: PyTree, X: PyTree, v: Array) -> Array:
    size = min(BATCH, len(v))
    pull = None
    for at in range(0, len(v), size):
        part = _pull(f, params, take(X, slice(at, at + size)), v[at : at + size])
        pull = part if pull is None else jax.tree.map(jnp.add, pull, part)
    pushed = [_push(f, params, take(X, slice(at, at + size)), pull) for at in range(0, len(v), size)]
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


def _matrix(K: TangentKernel, X2: PyTree | None, form: Form) -> np.ndarray:
    """The kernel in one of its forms, read-only; with one output there is no axis for it."""
    other = K.X if X2 is None else _arrays(X2)
    if X2 is not None:
        check_finite(other, "The inputs")
        check_outputs(K.f, K.params, other)
    found = matrix(K.f, K.params, K.X, None if X2 is None else other, form, K._factored)
    found = found[:, :, 0, 0] if form == "every_pair" and len(K.outputs) == 1 else found
    found = found[:, :, 0] if form == "each_output" and len(K.outputs) == 1 else found
    found.flags.writeable = False
    return found


def _arrays(X: PyTree) -> PyTree:
    try:
        return jax.tree.map(jnp.asarray, X)
    except (TypeError, ValueError) as error:
        raise InputError(f"The inputs are no arrays of numbers: {error}") from error


def _count(params: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array)))
