"""Appendix A.1's small network, trained: the parity of six coordinates on all 64 corners, with weight decay.

F(W; x) = aᵀσ(Wx) with m neurons and d = 6, mean square error plus λ‖W‖_F², by Adam with a rate that falls to zero. All
seeds and all λ are one program; `theory.allen_zhu_li.padded_copies` makes networks
for larger d and m of what comes out.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from offtangent.theory.allen_zhu_li.parity import parity_correlation
from offtangent.training import train

DEGREE = 6
RATE = 0.05
PAPER = ((0.12, 9.7), (0.037, 12.5), (0.011, 13.8))  # errors and ‖W⋆‖_F/√d of the paper's hand-built networks
SOLVED = 1 / (math.sqrt(DEGREE) * abs(parity_correlation(DEGREE)))  # ‖W‖_F/√d of the parity itself


class _Objective(eqx.Module):
    """Mean square error and λ‖W‖² of every network."""

    penalties: Float[Array, " p"]

    def __call__(
        self, W: Float[Array, "s p d m"], X: Float[Array, "n d"], y: Float[Array, " n"]
    ) -> Float[Array, "s p"]:
        return errors(W, X, y) + self.penalties * jnp.sum(W**2, axis=(2, 3))


def errors(W: Float[Array, "*b d m"], X: Float[Array, "n d"], y: Float[Array, " n"]) -> Float[Array, "*b"]:
    """The mean square error of each network, the first half of its neurons with a = +1/√m, the second with −1/√m."""
    half = W.shape[-1] // 2
    hidden = jax.nn.relu(jnp.einsum("nd,...dm->...nm", X, W))
    outputs = (hidden[..., :half].sum(axis=-1) - hidden[..., half:].sum(axis=-1)) / math.sqrt(W.shape[-1])
    return jnp.mean((outputs - y) ** 2, axis=-1)


def corners() -> tuple[Float[np.ndarray, "64 6"], Float[np.ndarray, " 64"]]:
    """The 64 inputs of ±1/√6 and their parities."""
    X = np.array(list(itertools.product((-1.0, 1.0), repeat=DEGREE)))
    return X / math.sqrt(DEGREE), X.prod(axis=1)


def train_parity(
    penalties: tuple[float, ...], *, width: int = 200, steps: int, seeds: int
) -> tuple[Float[np.ndarray, "s p d m"], Float[np.ndarray, "s p"]]:
    """Trained weights for every seed and every λ, and their mean square errors."""
    X, y = corners()
    start = jax.random.normal(jax.random.key(0), (seeds, 1, DEGREE, width))
    W = jnp.broadcast_to(start, (seeds, len(penalties), DEGREE, width))
    objective = _Objective(jnp.asarray(penalties, jnp.float32))
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))
    found = train(objective, W, X, y, optimiser=optimiser, steps=steps).params
    return np.asarray(found), np.asarray(errors(found, jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)))
