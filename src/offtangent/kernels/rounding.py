"""Kernels in float64 together with what rounding may have done to them, entry by entry.

Directions and their inner product carry an error of at most δ = (2d + 8)ε in the cosine. Where the kernel is smooth
it moves by |∂k/∂cos| δ; next to cosine ±1, where it may behave like √(1 − cos), the derivative is taken at a distance
δ from the end, and eight times it covers the step from the end to 3δ. Lengths and the evaluation add their own.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.pairs import Pair, pair_of, polar
from offtangent.linalg.brackets import EPS

EVALUATION = 32  # units of ε, relative to √(k(x,x) k(x',x')), for the arithmetic after the cosine, in each layer


@dataclass(frozen=True)
class WithError:
    """`block(X1, X2)`: K and a bound on its error. For kernels that are no AngularKernel, that of an inner product."""

    kernel: Any

    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"]) -> tuple[Array, Array]:
        delta = (2 * X1.shape[1] + 8) * EPS
        scale = jnp.sqrt(jnp.abs(self.kernel.diag(X1)))[:, None] * jnp.sqrt(jnp.abs(self.kernel.diag(X2)))
        if not isinstance(self.kernel, AngularKernel):
            return self.kernel(X1, X2), (delta + _evaluation(self.kernel)) * scale
        pair = pair_of(*polar(X1, jnp), *polar(X2, jnp), precision=jax.lax.Precision.HIGHEST)

        def of_cosine(shift: Array) -> Array:
            inside = jnp.maximum(pair.minus, delta) - shift, jnp.maximum(pair.plus, delta) + shift
            return self.kernel.of_pair(Pair(pair.r, pair.s, *inside), jnp)

        zero = jnp.zeros_like(pair.minus)
        _, change = jax.jvp(of_cosine, (zero,), (jnp.full_like(zero, delta),))
        return self.kernel.of_pair(pair, jnp), 8 * jnp.abs(change) + (delta + _evaluation(self.kernel)) * scale


@dataclass(frozen=True)
class DiagonalWithError:
    """`diagonal(X)`: k(x, x) and a bound on its error."""

    kernel: Any

    def __call__(self, X: Float[Array, "n d"]) -> tuple[Array, Array]:
        value = self.kernel.diag(X)
        return value, ((2 * X.shape[1] + 8) * EPS + _evaluation(self.kernel)) * jnp.abs(value)


def _evaluation(kernel: Any) -> float:
    layers: int = getattr(getattr(kernel, "of_pair", None), "depth", 1)
    return EVALUATION * EPS * layers


@dataclass(frozen=True)
class OfCosine:
    """The kernel of unit vectors as a function of their cosine, g(u)."""

    kernel: AngularKernel

    def __call__(self, u: Array) -> Array:
        one = jnp.ones_like(u)
        return self.kernel.of_pair(Pair(one, one, 1 - u, 1 + u), jnp)
