"""The Taylor terms of a two-layer network in closed form.

    f^{(k)}(W; x) = m^{-1/2} Σ_r a_r σ^{(k)}(w_{0,r}ᵀx) (w_rᵀx)^k / k!

Bai & Lee (2020), eq. (2) and the general form in Section 6 (whose display in the introduction lacks the m^{-1/2}). On
fixed inputs the coefficients a_r σ^{(k)}(w_{0,r}ᵀx)/(√m k!) never change: `on(X)` computes them once, and a gradient
step is then one product XW, its powers, and one product back.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent._types import IdentityHash
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_batch, check_displacement
from offtangent.taylor.checks import check_like


class OnInputs(IdentityHash, eqx.Module):
    """The expansion on fixed inputs: a function of the parameters alone, with its coefficients kept."""

    X: Float[Array, "n d"]
    origin: Float[Array, "d m"]
    start: Float[Array, " n"]  # f^{(0)}
    coefficients: tuple[Float[Array, "n h"], ...]  # of orders 1, 2, …; of one half where the other's are the opposite
    paired: bool = eqx.field(static=True)

    def terms(self, W: Float[Array, "d m"]) -> tuple[Float[Array, " n"], ...]:
        """f^{(0)}, …, f^{(order)}. Time O(ndm), memory O(nm)."""
        return (self.start, *(jnp.sum(c * p, axis=1) for c, p in zip(self.coefficients, self._powers(W), strict=True)))

    def __call__(self, W: Float[Array, "d m"]) -> Float[Array, " n"]:
        """The sum of the terms, in one pass over the neurons."""
        parts = [c * p for c, p in zip(self.coefficients, self._powers(W), strict=True)]
        return self.start + jnp.sum(sum(parts[1:], start=parts[0]), axis=1) if parts else self.start

    def _powers(self, W: Float[Array, "d m"]) -> list[Float[Array, "n h"]]:
        """(w_rᵀx)^k of orders 1, 2, …; where pairs of neurons have opposite coefficients, their differences."""
        check_displacement(self.origin, W)
        moved = W - self.origin
        if not self.paired:
            Z = self.X @ moved
            return _powers(Z, len(self.coefficients))
        half = moved.shape[1] // 2
        plus, minus = (_powers(self.X @ part, len(self.coefficients)) for part in (moved[:, :half], moved[:, half:]))
        return [p - m for p, m in zip(plus, minus, strict=True)]


class TwoLayerExpansion(IdentityHash, eqx.Module):
    """The Taylor polynomial of a two-layer network; `on(X)` is the same on fixed inputs, several times faster."""

    net: TwoLayer
    origin: Float[Array, "d m"]
    order: int = eqx.field(static=True)
    paired: bool = eqx.field(static=True)  # whether neurons r and r + m/2 are equal, with opposite signs, at the origin

    @classmethod
    def of(cls, net: TwoLayer, origin: Float[Array, "d m"], order: int) -> "TwoLayerExpansion":
        net.activation.derivative(order)  # refuses what does not exist
        return cls(net, origin, order, net.paired and _is_zero(origin))

    def on(self, X: Float[Array, "n d"]) -> OnInputs:
        """The coefficients at these inputs, once and for all. Time O(ndm), memory (order + 1)nm, half if paired."""
        net = self.net
        check_batch(net, X)
        half = net.width // 2 if self.paired else net.width
        Z = X @ (net.W0 + self.origin)[:, :half]
        scale = net.a[:half] / net.width**0.5
        coefficients = tuple(
            net.activation.derivative(k)(Z) * (scale / math.factorial(k)) for k in range(1, self.order + 1)
        )
        return OnInputs(X, self.origin, net(self.origin, X), coefficients, self.paired)

    def terms(self, W: Float[Array, "d m"], X: Float[Array, "n d"]) -> tuple[Float[Array, " n"], ...]:
        """f^{(0)}, …, f^{(order)}. Time O(ndm), memory O(nm)."""
        check_like(W, self.origin)
        return self.on(X).terms(W)

    def __call__(self, W: Float[Array, "d m"], X: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The sum of the terms."""
        check_like(W, self.origin)
        return self.on(X)(W)


def _is_zero(W: Float[Array, "d m"]) -> bool:
    try:
        return not bool(jnp.any(W))
    except jax.errors.ConcretizationTypeError:  # inside a jitted function nobody knows
        return False


def _powers(Z: Float[Array, "n h"], order: int) -> list[Float[Array, "n h"]]:
    """Z, Z², …, each from the one before: faster than jnp.power, and right for negative Z."""
    found = [Z] if order else []
    for _ in range(1, order):
        found.append(found[-1] * Z)
    return found
