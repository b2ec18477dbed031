"""What the constructions share: the activations, and networks, inputs and targets that are drawn on the host."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.activations import shifted

SIGMAS = {"softplus": activation("softplus"), "sigmoid": shifted("sigmoid", 1.0)}
NAMES = {"sigmoid": "sigmoid(z − 1)", "softplus": "softplus"}
COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")
# Draws of the column signs S.
DRAWS = 16
# Of sums in float64.
ROUNDING = 1e-9
# The largest |y| with ℓ(y, 0) ≤ 1, ℓ the pseudo-Huber loss.
MOST = math.sqrt(3)


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """NumPy's, seeded with a key: JAX would compile its own for every one of the many shapes."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def on_sphere(n: int, dim: int, *, key: Key[Array, ""]) -> Float[np.ndarray, "n d"]:
    """Draw inputs uniformly on S^{d−1}(√d)."""
    drawn = generator(key).standard_normal((n, dim))
    return drawn * (math.sqrt(dim) / np.linalg.norm(drawn, axis=1, keepdims=True))


def network(sigma: str, dim: int, width: int, *, key: Key[Array, ""]) -> TwoLayer:
    """Draw a network as `TwoLayer.symmetric(law="sphere", ...)` does."""
    half = (on_sphere(width // 2, dim, key=key) / math.sqrt(dim)).T
    W0, a = np.hstack([half, half]), np.repeat([1.0, -1.0], width // 2)
    return TwoLayer(jnp.asarray(W0, jnp.float32), jnp.asarray(a, jnp.float32), SIGMAS[sigma], paired=True)


def planted(dim: int, degree: int, rank: int, *, key: Key[Array, ""]) -> LowDegreePlusSparse:
    """Draw a target as `LowDegreePlusSparse.random` does: f_k with energy 1/(k + 1) in every degree, α = ±1 in turn."""
    of_ridges, of_weights, of_betas = jax.random.split(key, 3)
    directions = on_sphere(2 * dim, dim, key=of_ridges) / math.sqrt(dim)
    weights = generator(of_weights).standard_normal((degree + 1, 2 * dim))
    weights[0] = 1.0
    betas = on_sphere(rank, dim, key=of_betas) / math.sqrt(dim)
    drawn = LowDegreePlusSparse(directions, weights, np.resize([1.0, -1.0], rank), betas)
    found = drawn.energies().low[: degree + 1]
    return replace(drawn, weights=weights / np.sqrt((degree + 1) * found)[:, None])


def bounded(dim: int, *, key: Key[Array, ""]) -> LowDegreePlusSparse:
    """Draw a target that meets Assumption 1 and has |f⋆| ≤ √3 on the whole sphere, so that ℓ(y, 0) ≤ 1; k = 1, R = 1.

    f_1 = a₀ + a₁vᵀx with a₀² + a₁² = 1, and α = −(√3 + a₀ − a₁√d)/d: as a₀ + a₁√d = √3, the largest value is √3, where
    v is orthogonal to β, and no value is below −√3. The pseudo-Huber loss √(1 + y²) − 1 is 1 at √3.
    """
    of_direction, of_beta = jax.random.split(key)
    angle = math.atan(math.sqrt(dim)) - math.acos(MOST / math.sqrt(1 + dim))
    constant, slope = math.cos(angle), math.sin(angle)
    alpha = -(MOST + constant - slope * math.sqrt(dim)) / dim
    v, beta = (on_sphere(1, dim, key=one) / math.sqrt(dim) for one in (of_direction, of_beta))
    return LowDegreePlusSparse(v, np.array([[constant], [slope * math.sqrt(dim)]]), np.array([alpha]), beta)
