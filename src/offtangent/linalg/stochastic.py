"""Trace, Frobenius norm and effective rank of a symmetric matrix that is only known by its products.

Hutch++ (Meyer, Musco, Musco & Woodruff 2021): a third of the products finds a basis Q of what A does most, a third
measures A there exactly, and a third estimates what is left, P = I − QQᵀ, by random signs g:

    tr A = tr QᵀAQ + E gᵀPAPg,        ‖A‖_F² = ‖AQ‖_F² + E ‖APg‖²,

so that the error falls like one over the number of products, and each estimate has a standard error of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key

Product = Callable[[Float[np.ndarray, "n c"]], Float[np.ndarray, "n c"]]


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error, which is zero up to rounding where nothing was left to chance."""

    value: float
    error: float


@dataclass(frozen=True)
class Moments:
    """What a few products tell of a symmetric positive semidefinite matrix A.

    Attributes:
        trace: tr A.
        square: ‖A‖_F².
        covariance: That of the two estimates, by which the error of their ratio is known.
    """

    trace: Estimate
    square: Estimate
    covariance: float

    @property
    def frobenius(self) -> Estimate:
        """‖A‖_F."""
        value = math.sqrt(self.square.value)
        return Estimate(value, self.square.error / (2 * value) if value else 0.0)

    @property
    def effective_rank(self) -> Estimate:
        """(tr A)²/‖A‖_F²: how many eigenvalues of one size would have this trace and this norm."""
        trace, square = self.trace.value, self.square.value
        if not square:
            return Estimate(0.0, 0.0)
        # The first derivatives of the ratio carry the errors over.
        along = 2 * trace / square, -((trace / square) ** 2)
        variance = (along[0] * self.trace.error) ** 2 + (along[1] * self.square.error) ** 2
        variance += 2 * along[0] * along[1] * self.covariance
        return Estimate(trace**2 / square, math.sqrt(max(variance, 0.0)))

    def alignment(self, along: float) -> Estimate:
        """Compute ⟨A, yyᵀ⟩/(‖A‖_F ‖y‖²).

        Args:
            along: yᵀAy/‖y‖², which takes one more product.

        Returns:
            The alignment: 1 where A is a multiple of yyᵀ.
        """
        norm = self.frobenius
        if not norm.value:
            return Estimate(0.0, 0.0)
        return Estimate(along / norm.value, abs(along) * norm.error / norm.value**2)


def moments(product: Product, n: int, *, products: int, key: Key[Array, ""]) -> Moments:
    """Estimate the trace and the Frobenius norm of a symmetric positive semidefinite matrix.

    Time that of the products and O(n·products²), memory O(n·products).

    Args:
        product: v ↦ Av for several columns at once.
        n: The number of rows.
        products: How many columns are multiplied in all, at least 6: a third of them for each of the three parts.
        key: The JAX key that decides the random signs.

    Returns:
        The moments. Where a third of the products is n or more, they are exact.

    Raises:
        InputError: If `products` is no whole number of at least 6, or `key` no key.

    >>> found = moments(lambda v: np.diag([3.0, 1.0]) @ v, 2, products=6, key=jax.random.key(0))
    >>> round(found.trace.value, 12), round(found.square.value, 12), round(found.effective_rank.value, 12)
    (4.0, 10.0, 1.6)
    """
    check_count("products", products, least=6)
    check_key(key)
    count = products // 3
    first, second = (
        np.asarray(jax.random.rademacher(one, (n, min(count, n) if i == 0 else count)), np.float64)
        for i, one in enumerate(jax.random.split(key))
    )
    if count >= n:
        first = np.eye(n)
    basis, _ = np.linalg.qr(product(first))
    inside = product(basis)
    rest = second - basis @ (basis.T @ second)
    outside = product(rest)
    traces, squares = np.sum(rest * outside, axis=0), np.sum(outside**2, axis=0)
    covariance = np.cov(traces, squares) / count
    return Moments(
        Estimate(float(np.sum(basis * inside) + traces.mean()), math.sqrt(covariance[0, 0])),
        Estimate(float(np.sum(inside**2) + squares.mean()), math.sqrt(covariance[1, 1])),
        float(covariance[0, 1]),
    )
