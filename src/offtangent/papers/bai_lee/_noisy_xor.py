"""Noisy 2-XOR on the whole cube, with the noise in the loss: one problem whose best loss is known.

The label of x ∈ {±1}^d is x₁x₂, wrong with probability q. The mean of the logistic loss over that noise,

    ℓ(y, z) = (1 − q) log(1 + e^{−yz}) + q log(1 + e^{yz}),

keeps Bai & Lee's contract. No predictor has a smaller risk than the entropy H(q), which z = y log((1 − q)/q) attains.
"""

import itertools
import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.losses import Loss, logistic, soft_hinge
from offtangent.theory.bai_lee.expressivity import RidgePower, column_norm, express, quadratic_part, xor_target

NOISE = 1 / 8  # q
BEST = -NOISE * math.log(NOISE) - (1 - NOISE) * math.log(1 - NOISE)  # H(q)


def _noisy(y: Array, z: Array) -> Array:
    return (1 - NOISE) * logistic(y, z) + NOISE * logistic(-y, z)


def _noisy_derivative(order: int, y: Array, z: Array) -> Array:
    slope = logistic.derivative(order)
    return (1 - NOISE) * slope(y, z) + NOISE * slope(-y, z)


LOSSES = {"noisy logistic": Loss("noisy logistic", _noisy, formula=_noisy_derivative), "soft hinge": soft_hinge}
MARGINS = {
    "noisy logistic": math.log(1 / NOISE - 1),
    "soft hinge": 1.0,
}  # where the loss bends: its minimiser, its knee


@dataclass(frozen=True, eq=False)
class Problem:
    """Inputs and labels, a network with σ = relu³/6, and W⋆ of Theorem 7, at which f^Q is about margin · x₁x₂."""

    net: TwoLayer
    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, "n"]
    loss: Loss
    W_star: Float[np.ndarray, "d m"]

    @property
    def norm(self) -> float:
        """B_{w,⋆} = ‖W⋆‖_{2,4}."""
        return column_norm(self.W_star)

    @property
    def opt(self) -> float:
        """OPT = L^Q(W⋆), in float64."""
        f = quadratic_part(self.net, self.W_star, self.X)
        with jax.enable_x64(True):
            return float(_mean_loss(self.loss, jnp.asarray(self.y), jnp.asarray(f)))


def noisy_xor(dim: int, width: int, *, loss: str = "noisy logistic", key: Key[Array, ""]) -> Problem:
    """All 2^d corners, and W₀ of eq. (3) from `key`; the two parts of W⋆ take different halves of the neurons."""
    X = np.array(list(itertools.product((-1.0, 1.0), repeat=dim)))
    radius, half = math.sqrt(dim), width // 2
    # TwoLayer.symmetric, drawn by NumPy: with widths by the dozen, compiling JAX's draws would take most of the time.
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    W0 = np.tile(rng.standard_normal((dim, half)) / radius, 2)
    a = np.repeat([1.0, -1.0], half)
    net = TwoLayer(jnp.asarray(W0, jnp.float32), jnp.asarray(a, jnp.float32), activation("relu3"), paired=True)
    parts = [RidgePower(one.direction, 2, MARGINS[loss] * one.coefficient) for one in xor_target(dim)]
    W_star = np.sum([express(net, part, radius=radius).parts[0] for part in parts], axis=0)
    return Problem(net, X, X[:, 0] * X[:, 1], LOSSES[loss], W_star)


@eqx.filter_jit
def _mean_loss(loss: Loss, y: Float[Array, "n"], f: Float[Array, "n"]) -> Float[Array, ""]:
    return jnp.mean(loss(y, f))
