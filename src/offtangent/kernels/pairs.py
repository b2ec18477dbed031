"""Two inputs, seen through their lengths and the angle between them.

The angle is the delicate part of every kernel here: arccos turns a rounding error ε of the cosine into √(2ε)
near ±1. So a pair carries both distances from the ends, minus = 1 − cos and plus = 1 + cos. Where these are
known to rounding, so are the angle θ and π − θ, at every angle, and all that is done to pairs here keeps them so:
nothing is subtracted.
"""

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# arcsin x = x P(2x²) for 0 ≤ x ≤ √½: the minimax polynomial of degree 7, whose relative error of 2.0e-8 is a third of
# float32's rounding.
ARC = (
    0.9999999887111962,
    0.08333477335804672,
    0.018720286104555818,
    0.005810106182867109,
    0.0010457118094042118,
    0.002360617306944364,
    -0.0014075971361058445,
    0.0008568279940530558,
)


class Pair(NamedTuple):
    """Rows x of one set against rows x' of another: r = ‖x‖ (p×1), s = ‖x'‖ (1×q), 1 − cos and 1 + cos (p×q).

    The distances are those of the unit vectors, not multiplied by rs, so that tiny and huge rows neither under- nor
    overflow. Any shapes that broadcast will do. A zero row has no direction: its cosine counts as 0, both distances
    as 1. Methods take `xp` = numpy or jax.numpy.
    """

    r: Any
    s: Any
    minus: Any
    plus: Any

    @property
    def cosine(self) -> Any:
        """The cosine, to an absolute error of ε."""
        return (self.plus - self.minus) / 2

    @property
    def inner(self) -> Any:
        """xᵀx', to an error of ε‖x‖‖x'‖."""
        return self.r * self.s * self.cosine

    def sine(self, xp: ModuleType) -> Any:
        """The sine, to rounding."""
        return root(self.minus * self.plus, xp)

    def angles(self, xp: ModuleType) -> tuple[Any, Any]:
        """θ and π − θ, each to rounding."""
        acute = self.minus <= self.plus
        near, far = xp.minimum(self.minus, self.plus), xp.maximum(self.minus, self.plus)
        small = 2 * arc(root(near / 2, xp), root(far / 2, xp), xp)
        large = np.pi - small
        return xp.where(acute, small, large), xp.where(acute, large, small)

    def squared_distance(self) -> Any:
        """‖x − x'‖² = (r − s)² + 2rs(1 − cos), as accurate as r − s."""
        return (self.r - self.s) ** 2 + 2 * self.r * self.s * self.minus

    def scaled(self, factor: float) -> "Pair":
        """The pair of `factor`·x and `factor`·x', factor ≥ 0."""
        return Pair(factor * self.r, factor * self.s, self.minus, self.plus)

    def with_constant(self, value: float, xp: ModuleType) -> "Pair":
        """The pair of (x, value) and (x', value): one more coordinate, the same for all, as a bias adds it."""
        if value == 0:
            return self
        r, s, here, there, between = self._lengths(xp.full_like(self.r, value), xp.full_like(self.s, value), xp)
        return Pair(r, s, here * self.minus + between, here * self.plus + 2 * there + between)

    def joined(self, other: "Pair", xp: ModuleType) -> "Pair":
        """The pair of (x, y) and (x', y'), of rows joined end to end; lengths add up in squares.

        With x = r(cos a), y = r(sin a) and so on, 1 − cos is the mean of both parts' and of 1 − cos(a − b), all ≥ 0:

            1 − cos = w(1 − cos₁) + w'(1 − cos₂) + (1 − w − w'),  1 − w − w' = (ρ₁σ₂ − ρ₂σ₁)²/(1 + w + w')

        where ρᵢ = rᵢ/r, σᵢ = sᵢ/s, w = ρ₁σ₁ and w' = ρ₂σ₂.
        """
        r, s, here, there, between = self._lengths(other.r, other.s, xp)
        minus = here * self.minus + there * other.minus + between
        plus = here * self.plus + there * other.plus + between
        nowhere = (r == 0) | (s == 0)
        return Pair(r, s, xp.where(nowhere, 1, minus), xp.where(nowhere, 1, plus))

    def _lengths(self, r: Any, s: Any, xp: ModuleType) -> tuple[Any, Any, Any, Any, Any]:
        """r, s, w, w' and 1 − w − w' of `joined`, for parts of the lengths r and s besides."""
        (r, first, second), (s, third, fourth) = hypot(self.r, r, xp), hypot(self.s, s, xp)
        here, there = first * third, second * fourth
        return r, s, here, there, (first * fourth - second * third) ** 2 / (1 + here + there)


def root(value: Any, xp: ModuleType) -> Any:
    """√value for value ≥ 0, whose gradient at 0 is 0 instead of infinite: the kernels have corners there."""
    if xp is np:
        return np.sqrt(value)
    positive = value > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1)), 0)


def hypot(x: Any, y: Any, xp: ModuleType) -> tuple[Any, Any, Any]:
    """√(x² + y²), x over it and y over it, without overflow; 0, 0, 0 at the origin. For x, y ≥ 0."""
    large = xp.maximum(x, y)
    large = xp.where(large > 0, large, 1)
    x, y = x / large, y / large
    length = root(x * x + y * y, xp)
    divisor = xp.where(length > 0, length, 1)
    return large * length, x / divisor, y / divisor


def arc(opposite: Any, adjacent: Any, xp: ModuleType) -> Any:
    """The angle up to π/4 whose sine is `opposite` and whose cosine is `adjacent`, to rounding.

    In float64 by arctan2. In float32 by a polynomial, without branches: XLA's own arccos and arctan2 take twenty times
    as long on a CPU, nearly as long as the product of matrices that gives the cosines (784 columns).
    """
    if xp is np or opposite.dtype == jnp.float64:
        return xp.arctan2(opposite, adjacent)
    square = 2 * opposite * opposite
    value = jnp.full_like(square, ARC[-1])
    for coefficient in ARC[-2::-1]:
        value = value * square + coefficient
    return opposite * value


def polar(X: Any, xp: ModuleType) -> tuple[Any, Any]:
    """Directions (n×d) and lengths (n×1); a zero row has the direction zero. Time O(nd).

    Dividing by the largest entry first keeps tiny and huge rows from under- and overflow.
    """
    largest = xp.abs(X).max(axis=1, keepdims=True)
    X = X / xp.where(largest > 0, largest, 1)
    length = root((X * X).sum(axis=1, keepdims=True), xp)
    return X / xp.where(length > 0, length, 1), largest * length


def pair_of(U: Array, r: Array, V: Array, s: Array, *, precision: jax.lax.PrecisionLike) -> Pair:
    """The pair of all rows from `polar`: one product of matrices. Near cosine ±1 the angle errs by √(2ε)."""
    cosine = jnp.matmul(U, V.T, precision=precision)
    return Pair(r, s.T, jnp.maximum(1 - cosine, 0), jnp.maximum(1 + cosine, 0))
