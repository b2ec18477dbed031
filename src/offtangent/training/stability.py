"""The largest learning rate at which gradient descent is stable, from the curvature of the objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from offtangent._errors import InputError

VECTORS = 12  # that Lanczos keeps


@dataclass(frozen=True)
class Sharpness:
    """λ_max, the largest (not: the largest in size) eigenvalue of the Hessian, with the residual ‖Hv − λv‖."""

    value: float
    residual: float
    products: int  # with the Hessian

    @property
    def largest_stable_rate(self) -> float:
        """2/λ_max for plain gradient descent; infinite where the objective curves upwards in no direction.

        Below it no direction of positive curvature oscillates away. Along negative curvature gradient descent
        leaves at every rate, which is no instability of the rate.
        """
        return 2.0 / self.value if self.value > 0 else float("inf")


def sharpness(
    objective: Callable[[Any], Array], params: PyTree, *, key: Key[Array, ""], tol: float = 1e-3
) -> Sharpness:
    """λ_max of ∇²objective at `params`, by Lanczos (ARPACK) on Hessian-vector products.

    Stops when the residual is below about `tol`·λ. A product costs about three gradients; a dozen vectors of the
    parameters' size are kept on the host, in float64. Unlike power iteration it does not settle on an eigenvalue
    that is large and negative. Leaves that hold no floating-point numbers stay as they are. Compiled once for each
    objective (the same object) and the shapes of its parameters.

    >>> bowl = lambda w: 2.0 * w[0] ** 2 + 0.5 * w[1] ** 2 + 0.1 * w[2] ** 2 + w[3] ** 2
    >>> round(sharpness(bowl, jnp.zeros(4), key=jax.random.key(0)).value, 3)
    4.0
    """
    moving, fixed = eqx.partition(params, eqx.is_inexact_array_like)
    moving = jax.tree.map(jnp.asarray, moving)
    if not jax.tree.leaves(moving):
        raise InputError("The parameters hold no floating-point numbers: there is nothing to move.")
    flat, unravel = ravel_pytree(moving)
    count = 0

    def product(v: Float[np.ndarray, "p"]) -> Float[np.ndarray, "p"]:
        nonlocal count
        count += 1
        return np.asarray(_hessian_product(objective, unravel, fixed, flat, jnp.asarray(v, flat.dtype)), np.float64)

    p = flat.size
    if p <= VECTORS:  # ARPACK wants more room than this; the whole matrix costs no more
        hessian = np.stack([product(column) for column in np.eye(p)])
        value, vectors = np.linalg.eigh((hessian + hessian.T) / 2) if np.isfinite(hessian).all() else _unknown(p)
    else:
        start = np.asarray(jax.random.normal(key, flat.shape, flat.dtype), np.float64)
        operator = LinearOperator((p, p), matvec=lambda v: product(v.ravel()), dtype=np.float64)
        try:
            value, vectors = eigsh(operator, k=1, which="LA", v0=start, ncv=VECTORS, tol=tol)
        except ArpackError:  # not converged, or NaN in the products
            value, vectors = _unknown(p)
    largest, v = float(value[-1]), vectors[:, -1]
    return Sharpness(largest, float(np.linalg.norm(product(v) - largest * v)), count)


def _unknown(p: int) -> tuple[Float[np.ndarray, "1"], Float[np.ndarray, "p 1"]]:
    return np.array([np.nan]), np.full((p, 1), np.nan)


# `unravel` is hashed by the shapes it makes: a second call with the same ones compiles nothing.
@eqx.filter_jit
def _hessian_product(
    objective: Callable[[Any], Array],
    unravel: Callable[[Array], PyTree],
    fixed: PyTree,
    flat: Float[Array, "p"],
    v: Float[Array, "p"],
) -> Float[Array, "p"]:
    def value(point: Float[Array, "p"]) -> Array:
        found = objective(eqx.combine(unravel(point), fixed))
        if jnp.shape(found) != ():
            raise InputError(
                f"objective(params) has shape {jnp.shape(found)}: expected one number. Take a mean or a sum."
            )
        return found

    return jax.jvp(jax.grad(value), (flat,), (v,))[1]
