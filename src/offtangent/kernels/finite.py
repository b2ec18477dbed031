"""The tangent kernel of a two-layer network at finite width.

Arora et al. (2019), Section 3.4: H = ZᵀZ, with the gradient of Φ equal to Z(u − y), and

    H_ij = xᵢᵀxⱼ m⁻¹ Σ_r a_r² σ'(w_rᵀxᵢ) σ'(w_rᵀxⱼ)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer


def tangent_gram(net: TwoLayer, W: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"]) -> Float[Array, "n n"]:
    """H at the weights W₀ + W, in the dtype of X. Time O(n²(d + m)), memory O(nm + n²)."""
    if not isinstance(net, TwoLayer):
        raise InputError(f"net is {a_kind(net)}: expected a networks.TwoLayer. Of others: kernels.empirical_ntk.")
    if jnp.shape(W) != net.W0.shape or jnp.ndim(X) != 2 or jnp.shape(X)[1] != net.dim:
        raise InputError(
            f"W has shape {jnp.shape(W)} and X {jnp.shape(X)}: expected {net.W0.shape} and (n, {net.dim}) for this "
            "network."
        )
    return _tangent_gram(net, W, X)


@eqx.filter_jit
def _tangent_gram(net: TwoLayer, W: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"]) -> Float[Array, "n n"]:
    highest = jax.lax.Precision.HIGHEST
    slopes = net.activation.derivative(1)(jnp.matmul(X, net.W0 + W, precision=highest)) * net.a
    return jnp.matmul(X, X.T, precision=highest) * jnp.matmul(slopes, slopes.T, precision=highest) / net.width
