"""The labelled samples of a network of quadratic neurons, as its quadratic layers see them."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from offtangent._checks import check_labels
from offtangent._errors import InputError, a_kind
from offtangent.data.preprocessing import unit_norm
from offtangent.linalg.brackets import EPS
from offtangent.networks import PolynomialNet, QuadraticNet


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
        return net, inputs, labels
    seen = np.asarray(net.features(jnp.asarray(inputs)), np.float64)
    if not np.isfinite(seen).all():
        raise InputError(
            f"The features (Rx)^{net.power} overflow. Shorten the rows of X, as data.preprocessing.unit_norm does."
        )
    return net.net, seen, labels


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
