"""The curvature of a loss: is this point a second-order stationary one, and which learning rate is stable there?

Bai & Lee (2020), Section 4: where ∇L = 0 and ∇²L ⪰ 0, the loss is near its best, and noisy SGD finds such points.
`certificate` gives the gradient's norm and the Hessian's smallest eigenvalue, by Lanczos, for any loss of any pytree,
through products with the Hessian alone. After k steps of Lanczos from a random b, with orthonormal polynomials
p₀, …, p_k of its tridiagonal matrix and smallest Ritz pair (θ, v),

    λ_min ≤ vᵀHv,                          proven: it is a Rayleigh quotient;
    |λ − vᵀHv| ≤ ‖Hv − (vᵀHv)v‖            proven, for *some* eigenvalue λ, not necessarily the smallest;
    λ_min ≥ x where |p_k(x)| = 1/t, x < θ  with probability 1 − δ over b, where P(|b₁| < t) = δ.

The last: ‖p_k(H)b‖ = 1, so |p_k(λ_min)| |b₁| ≤ 1 for b's component b₁ along the smallest eigenvector, and |p_k| falls
up to θ (van Dorsselaer, Hochstenbach & van der Vorst 2000). One event serves all k: one may stop when one likes.

`sharpness` gives the largest eigenvalue, and with it the largest learning rate at which gradient descent is stable.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.special
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from offtangent._arguments import check_function, check_positive
from offtangent._checks import check_bound, check_count, check_key, check_real, require
from offtangent._errors import a_kind
from offtangent.linalg.krylov import lanczos

DENSE = 64  # up to this many parameters the whole Hessian is formed


@dataclass(frozen=True)
class Certificate:
    """First and second order at a point. What of it is proven, this module's docstring says; rounding is not counted.

    Products in float32 carry errors of about 10⁻⁷ of the largest eigenvalue, and so do `curvature` and `lowest`.
    """

    value: float
    gradient_norm: float
    curvature: float  # vᵀHv ≥ λ_min, in the direction found
    residual: float  # ‖Hv − (vᵀHv)v‖
    lowest: float  # λ_min is at least this, with probability 1 − δ; with certainty where `exact`
    largest: float  # the largest Ritz value, at most λ_max
    delta: float
    products: int  # with the Hessian
    exact: bool  # the whole Hessian was formed
    direction: PyTree = field(repr=False)  # v, of unit length, shaped like the parameters, with ⟨∇, v⟩ ≤ 0

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that contains an eigenvalue; λ_min is no larger than its upper end, nor than `curvature`."""
        return self.curvature - self.residual, self.curvature + self.residual

    def stationary(self, *, gradient: float, curvature: float) -> bool:
        """Whether ‖∇‖ ≤ `gradient` and λ_min ≥ −`curvature`, the latter by `lowest`."""
        return bool(self.gradient_norm <= gradient and self.lowest >= -curvature)


def certificate(
    loss: Callable[[Any], Array],
    params: PyTree,
    *,
    key: Key[Array, ""],
    tol: float = 1e-3,
    delta: float = 1e-3,
    most: int = 300,
) -> Certificate:
    """Compute the norm of a loss's gradient and the smallest eigenvalue λ_min of its Hessian at a point.

    They tell whether the point is second-order stationary. Bai & Lee (2020), Section 4: where ∇L = 0 and ∇²L ⪰ 0, the
    loss is near its best. λ_min is found by Lanczos, through products with the Hessian alone. That `curvature` = vᵀHv
    is at least λ_min is proven, `lowest` ≤ λ_min holds with probability 1 − δ over the start; the module's docstring
    says why. Up to 64 parameters the whole Hessian is formed instead.

    Products are computed in the dtype of the parameters: in float32 they carry errors of about 10⁻⁷ of the largest
    eigenvalue. A product costs about three gradients; each step keeps one vector of the parameters' size on the host,
    in float64.

    Args:
        loss: A function of the parameters, twice differentiable there, which returns one number.
        params: The point, any pytree. Leaves that hold no floating-point numbers stay as they are.
        key: The JAX key of the random start.
        tol: Lanczos stops once `lowest` is within `tol` times the size of the Hessian (its largest Ritz value in
            absolute value) of the smallest Ritz value.
        delta: The probability δ with which `lowest` may fail.
        most: The most products of Lanczos.

    Returns:
        The certificate, with `value`, `gradient_norm`, `curvature`, `lowest`, the unit vector `direction` of the
        curvature found, and `stationary(gradient=..., curvature=...)`.

    Raises:
        InputError: If the parameters hold no floating-point numbers, the loss returns no single number, or its gradient
            or Hessian is not finite here.

    >>> saddle = lambda w: w[0] ** 2 - 0.5 * w[1] ** 2
    >>> found = certificate(saddle, jnp.zeros(2), key=jax.random.key(0))
    >>> found.gradient_norm, found.curvature, found.exact, abs(found.direction).tolist()
    (0.0, -1.0, True, [0.0, 1.0])
    """
    check_real("delta", delta)
    check_bound(delta)
    check_positive(tol=tol)
    check_count("most", most)
    check_function("loss", loss, "of the parameters, such as a RandomisedRisk")
    check_key(key)
    moving, fixed = eqx.partition(params, _is_inexact)
    leaves = jax.tree.leaves(moving)
    require(leaves, "The parameters hold no array of floating-point numbers: there is nothing to move.")
    wide = np.result_type(*(leaf.dtype for leaf in leaves)) == np.float64
    with jax.enable_x64(True) if wide else nullcontext():
        moving = jax.tree.map(jnp.asarray, moving)
        flat, unravel = ravel_pytree(moving)
        count = 0

        def product(v: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
            nonlocal count
            count += 1
            return _host(_product(loss, fixed, moving, unravel(jnp.asarray(v, flat.dtype))), "Hessian")

        value, gradient = _value_and_gradient(loss, fixed, moving)
        slope = _host(gradient, "gradient")
        exact = flat.size <= DENSE
        if exact:
            hessian = np.stack([product(column) for column in np.eye(flat.size)])
            values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
            v, lowest, largest = vectors[:, 0], float(values[0]), float(values[-1])
        else:
            b = np.asarray(jax.random.normal(key, flat.shape, flat.dtype), np.float64)
            v, lowest, largest = _smallest(product, b, tol, delta, min(most, flat.size))
        v = -v if slope @ v > 0 else v
        image = product(v)
        curvature = float(v @ image)
        return Certificate(
            value=float(value),
            gradient_norm=float(np.linalg.norm(slope)),
            curvature=curvature,
            residual=float(np.linalg.norm(image - curvature * v)),
            lowest=min(lowest, curvature),
            largest=largest,
            delta=0.0 if exact else delta,
            products=count,
            exact=exact,
            direction=eqx.combine(unravel(jnp.asarray(v, flat.dtype)), fixed),
        )


def _smallest(
    product: Callable[[np.ndarray], np.ndarray], b: Float[np.ndarray, " p"], tol: float, delta: float, most: int
) -> tuple[Float[np.ndarray, " p"], float, float]:
    """The smallest Ritz vector, the bound from below, and the largest Ritz value."""
    # b₁² of a random unit vector in p dimensions is Beta(1/2, (p − 1)/2).
    reach = -0.5 * math.log(scipy.special.betaincinv(0.5, (b.size - 1) / 2, delta))  # log 1/t
    found, nodes, size = None, np.empty(0), 0.0
    alpha = beta = np.empty(0)
    for found in lanczos(lambda V: product(V[:, 0])[:, None], b[:, None], most):
        alpha, beta = found.tridiagonal(0)
        nodes = scipy.linalg.eigh_tridiagonal(alpha, beta[:-1], eigvals_only=True)
        size = float(np.abs(nodes).max())
        if beta[-1] == 0 or _log_polynomial(alpha, beta, nodes[0] - tol * size) >= reach:
            break
    assert found is not None
    _, vectors = scipy.linalg.eigh_tridiagonal(alpha, beta[:-1], select="i", select_range=(0, 0))
    v = found.basis[: len(alpha), :, 0].T @ vectors[:, 0]
    return v / np.linalg.norm(v), _root(alpha, beta, float(nodes[0]), size, reach), float(nodes[-1])


def _root(
    alpha: Float[np.ndarray, " k"], beta: Float[np.ndarray, " k"], theta: float, size: float, reach: float
) -> float:
    """The x < θ where log|p_k(x)| = `reach`, by bisection; θ itself where the space is invariant."""
    if beta[-1] == 0:
        return theta
    step = size if size > 0 else float(beta[-1])
    while _log_polynomial(alpha, beta, theta - step) < reach:
        step *= 2
    low, high = theta - step, theta
    for _ in range(60):
        middle = (low + high) / 2
        if _log_polynomial(alpha, beta, middle) < reach:
            high = middle
        else:
            low = middle
    return low


def _log_polynomial(alpha: Float[np.ndarray, " k"], beta: Float[np.ndarray, " k"], x: float) -> float:
    """log|p_k(x)| for x below all Ritz values, by ratios of βⱼpⱼ = (x − αⱼ)pⱼ₋₁ − βⱼ₋₁pⱼ₋₂, which are all negative."""
    total, ratio, before = 0.0, -math.inf, 0.0
    for a, b in zip(alpha.tolist(), beta.tolist(), strict=True):
        ratio = (x - a - before / ratio) / b
        if ratio >= 0:  # rounding, next to θ
            return -math.inf
        total += math.log(-ratio)
        before = b
    return total


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _host(tree: PyTree, what: str) -> Float[np.ndarray, " p"]:
    values = np.array(ravel_pytree(tree)[0], np.float64)
    require(
        np.isfinite(values).all(),
        f"The {what} of the loss is not finite at these parameters: look for NaN or infinite parameters, and for a "
        "loss that overflows or has no second derivative there.",
    )
    return values


def _value(loss: Callable[[Any], Array], fixed: PyTree, moving: PyTree) -> Array:
    value = loss(eqx.combine(moving, fixed))
    _check_one_number("loss", value)
    return value


def _check_one_number(name: str, value: Any) -> None:
    """Refuse values of a loss that are not one number each."""
    given = f"has shape {value.shape}" if hasattr(value, "shape") else f"gave {a_kind(value)}"
    one = isinstance(value, float | int) or getattr(value, "shape", None) == ()
    require(one, f"{name}(params) {given}: expected one number. Take a mean or a sum over samples.")


# Of trees, not of flat vectors: what ravel_pytree returns is new each time, and would be compiled again.
@eqx.filter_jit
def _value_and_gradient(loss: Callable[[Any], Array], fixed: PyTree, moving: PyTree) -> tuple[Float[Array, ""], PyTree]:
    value, gradient = jax.value_and_grad(lambda point: _value(loss, fixed, point))(moving)
    return value, gradient


@eqx.filter_jit
def _product(loss: Callable[[Any], Array], fixed: PyTree, moving: PyTree, v: PyTree) -> PyTree:
    return jax.jvp(jax.grad(lambda point: loss(eqx.combine(point, fixed))), (moving,), (v,))[1]


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
    """Compute λ_max, the largest eigenvalue of an objective's Hessian ∇²f(θ) at a point.

    Gradient descent is stable there below the learning rate 2/λ_max. λ_max is found by Lanczos (ARPACK) on
    Hessian-vector products, which stops when the residual is below about `tol`·λ. Unlike power iteration this does not
    settle on an eigenvalue that is large and negative. A product costs about three gradients; a dozen vectors of the
    parameters' size are kept on the host, in float64. It is compiled once for each objective (the same object) and the
    shapes of its parameters.

    Args:
        objective: A function of the parameters, twice differentiable there, which returns one number.
        params: The point, any pytree. Leaves that hold no floating-point numbers stay as they are.
        key: The JAX key of the random start.
        tol: The relative accuracy wanted of λ_max.

    Returns:
        λ_max as `value`, with its `residual` ‖Hv − λv‖, the number of `products`, and `largest_stable_rate` = 2/λ_max.
        NaN where the products are, or where ARPACK does not converge.

    Raises:
        InputError: If the parameters hold no floating-point numbers, or the objective returns no single number.

    >>> bowl = lambda w: 2.0 * w[0] ** 2 + 0.5 * w[1] ** 2 + 0.1 * w[2] ** 2 + w[3] ** 2
    >>> found = sharpness(bowl, jnp.zeros(4), key=jax.random.key(0))
    >>> round(found.value, 3), round(found.largest_stable_rate, 3)
    (4.0, 0.5)
    """
    check_function("objective", objective, "of the parameters, which gives one number")
    check_key(key)
    check_real("tol", tol)
    require(0 <= tol < math.inf, f"tol={tol:g}: a relative accuracy is zero or positive, and finite.")
    moving, fixed = eqx.partition(params, eqx.is_inexact_array_like)
    moving = jax.tree.map(jnp.asarray, moving)
    require(jax.tree.leaves(moving), "The parameters hold no floating-point numbers: there is nothing to move.")
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
        _check_one_number("objective", found)
        return found

    return jax.jvp(jax.grad(value), (flat,), (v,))[1]
