"""The labelled samples of a network of quadratic neurons, as its quadratic layers see them."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_labels, check_magnitude, require
from offtangent._errors import InputError, a_kind
from offtangent.data.preprocessing import unit_norm
from offtangent.linalg.brackets import EPS
from offtangent.networks import PolynomialNet, QuadraticNet

MISSED = 1e-4  # of the largest label: by more than this no interpolant misses one
DENSE = 1000  # rows up to which the smallest eigenvalue of their Gram matrix is looked at


def as_quadratic(
    net: QuadraticNet | PolynomialNet, X: object, y: object
) -> tuple[QuadraticNet, Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """The quadratic layers, what they see of X, and the labels, all checked."""
    if not isinstance(net, QuadraticNet | PolynomialNet):
        raise InputError(f"net is {a_kind(net)}: expected a networks.QuadraticNet or a PolynomialNet.")
    inputs, labels = check_labels(X, y)
    dim = net.dim if isinstance(net, QuadraticNet) else net.R.shape[1]
    if inputs.shape[1] != dim:
        raise InputError(f"X has {inputs.shape[1]} features, and the network takes {dim}.")
    if isinstance(net, QuadraticNet):
        check_magnitude(2, dtype=jnp.zeros(()).dtype, X=inputs, y=labels)
        return net, inputs, labels
    seen = np.asarray(net.features(jnp.asarray(inputs)), np.float64)
    require(
        np.isfinite(seen).all(),
        f"The features (Rx)^{net.power} overflow. Shorten the rows of X, as data.preprocessing.unit_norm does.",
    )
    return net.net, seen, labels


def nearly_dependent(inputs: Float[np.ndarray, "n d"], held: Float[Array, "n d"]) -> str:
    """Why σ_min[x_j ⊗ x_j] cannot be told from zero in the precision in which X is `held`, in words, or nothing.

    Moving unit rows by ε moves σ_min by at most 2ε√n. Time O(n³), so that more than 1000 rows are not looked at.
    """
    n, dim = inputs.shape
    if n > DENSE:
        return ""
    units = unit_norm(inputs)
    lowest = float(np.linalg.eigvalsh((units @ units.T) ** 2)[0])
    rounding = max(n * (n + dim + 6) * EPS, (2 * float(np.finfo(held.dtype).eps)) ** 2 * n)
    if lowest > rounding:
        return ""
    return f"The matrices xxᵀ of X are not independent to rounding in {held.dtype}.{nearly_parallel(inputs)}"


def check_met(W: Float[np.ndarray, "d r"], inputs: Float[np.ndarray, "n d"], labels: Float[np.ndarray, " n"]) -> None:
    """Refuse an interpolant that rounding keeps from the labels."""
    squares, half = (inputs @ W) ** 2, W.shape[1] // 2
    missed = float(np.abs(squares[:, :half].sum(axis=1) - squares[:, half:].sum(axis=1) - labels).max())
    if not missed <= MISSED * np.abs(labels).max():
        raise InputError(
            f"The {len(inputs)} matrices xxᵀ are nearly dependent, so that rounding misses a label by {missed:.2g}."
            f"{nearly_parallel(inputs)} data.distributions.smooth_inputs puts inputs in general position."
        )


def check_positive(**sizes: Array | float) -> None:
    """Refuse sizes that are not positive. Inside a jitted function nobody knows them."""
    for name, value in sizes.items():
        try:
            right = bool(jnp.all(jnp.asarray(value) > 0))
        except jax.errors.ConcretizationTypeError:
            return
        require(right, f"{name}={value}: expected a positive number.")


def nearly_parallel(inputs: Float[np.ndarray, "n d"]) -> str:
    """The pair of rows nearest to multiples of each other, in words, where it alone makes σ vanish to rounding."""
    n, dim = inputs.shape
    units = unit_norm(inputs)
    cosines = np.triu(units @ units.T, 1)
    i, j = np.unravel_index(np.abs(cosines).argmax(), cosines.shape)
    apart = float(np.linalg.norm(units[j] - np.sign(cosines[i, j]) * units[i]))  # the cosine has not these digits
    if apart**2 > n * (n + dim + 6) * EPS:  # what rounding may do to λ_min of the unit rows' Gram matrix
        return ""
    return f" Rows {i} and {j} of X (counted from 0) are multiples of each other but for {apart:.0e}: merge them."
