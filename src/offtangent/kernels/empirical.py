"""The tangent and conjugate kernels of any network f(params, x), at its own width and weights.

    K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output.

As an operator, K v = J (Jᵀ v): one vjp and one jvp through the network, a block of samples at a time, no Jacobian is
ever held. Dense, blocks of samples are multiplied, layer by layer in the way that costs least: most often by what
entered a layer and what came back to it, so that nothing of the size of its weights is formed (`kernels.factors`).
"""

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from jaxtyping import Float, PyTree

from offtangent._checks import check_finite, require
from offtangent.kernels.blocks import arrays, length
from offtangent.kernels.passes import outputs
from offtangent.kernels.tangent import TangentKernel
from offtangent.kernels.tangent_cross import TangentCross
from offtangent.taylor.checks import check_function, check_outputs


@overload
def empirical_ntk(
    f: Callable[..., Any], params: PyTree, X: PyTree, *, budget: float | int | None = None
) -> TangentKernel: ...
@overload
def empirical_ntk(
    f: Callable[..., Any], params: PyTree, X: PyTree, X2: PyTree, *, budget: float | int | None = None
) -> TangentCross: ...
def empirical_ntk(
    f: Callable[..., Any], params: PyTree, X: PyTree, X2: PyTree | None = None, *, budget: float | int | None = None
) -> TangentKernel | TangentCross:
    """Make the tangent kernel of any network f(params, x), at its own width and weights.

        K(x, x') = J(x) J(x')ᵀ,      J(x) = ∂f(θ; x)/∂θ, a row for each output

    As an operator, `K @ v` = J(Jᵀv) takes two passes through the network, a block of samples at a time, and no Jacobian
    is ever held. `K.dense()` multiplies what entered each layer and what came back to it: for n samples, k outputs and
    a layer of a inputs and b outputs in O(n²k²(a + b)), without anything of the size of the weights; where that takes
    more than products of the gradients, as in convolutions over many positions, these are formed. It holds two blocks
    of samples within `budget`, or one sample's each if that is more. Nothing but checks is computed before one of these
    is asked for.

    Args:
        f: The network, a function of parameters and of a batch x, whose first axis counts samples; it returns (n,) or
            (n, k). Keep batch norm's running statistics in f, as docs/taylor.md does, or the kernel has them too.
        params: The parameters θ, any pytree. Leaves that hold no floating-point numbers are left alone, all others
            count.
        X: The inputs, an array or a pytree of arrays.
        X2: Other inputs for the columns of the kernel, by default X.
        budget: Bytes that two blocks of samples may take while they are multiplied, beside the result; by default 2²⁶
            numbers, 256 MB in float32.

    Returns:
        The kernel, with `K @ v`, `K.dense()`, `K.trace()` (summed over the outputs), `K.diagonal()` (of each output by
        itself) and `K.by_leaf()` (what each leaf of the parameters adds); all but the first also take other inputs, as
        in `K.dense(X2)`. `K.ways` tells how each leaf is done. On X alone also `K.diag()`, `K.eigh(k)`, `K.with_ridge`,
        `K.solve(b)`, `K.fit(Y)` (regression), `K.moments()` and `K.project(rank)` (without the matrix). With X2 it is
        the rectangular kernel, a `kernels.tangent_cross.TangentCross`.

    Raises:
        InputError: If f fails on these parameters and inputs or returns another shape, or if there are NaN among them;
            the message says what was expected.

    >>> import jax.numpy as jnp
    >>> K = empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> K.dense()
    array([[5., 2.],
           [2., 1.]], dtype=float32)
    >>> K @ jnp.array([1.0, -1.0])
    Array([3., 1.], dtype=float32)
    """
    check_function(f)
    if X2 is not None:
        return TangentCross(f, params, arrays(X), arrays(X2), budget)
    return TangentKernel(f, params, arrays(X), budget=budget)


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

    >>> import jax.numpy as jnp
    >>> empirical_conjugate(lambda w, x: jnp.maximum(x @ w, 0), jnp.eye(2), jnp.array([[1.0, -1.0], [2.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]], dtype=float32)
    """
    check_function(features)
    sides = [arrays(side) for side in ((X,) if X2 is None else (X, X2))]
    check_finite(params, "The parameters")
    for side in sides:
        require(length(side), "There are no inputs: expected at least one.")
        check_finite(side, "The inputs")
        check_outputs(features, params, side)
    values = [np.asarray(outputs(features, params, side)) for side in sides]
    values = [value.reshape(len(value), -1) for value in values]
    return np.asarray(values[0] @ values[-1].T)
