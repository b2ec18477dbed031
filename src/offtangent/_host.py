"""Elementwise JAX functions on NumPy arrays, in float64, compiled once for all shapes."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

BLOCK = 2**16  # JAX compiles for every new shape, which costs more than an array of this size


def on_host(function: Callable[[Array], Array], z: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """function(z) in float64, in blocks of one size. Time O(z.size), memory O(z.size)."""
    flat = z.astype(np.float64, copy=False).ravel()
    values = np.empty_like(flat)
    padded = np.zeros(BLOCK)
    with jax.enable_x64(True):
        for start in range(0, flat.size, BLOCK):
            part = flat[start : start + BLOCK]
            padded[: part.size] = part
            values[start : start + BLOCK] = np.asarray(function(jnp.asarray(padded)))[: part.size]
    return values.reshape(z.shape)
