"""Inputs drawn from the distributions of the papers.

Each is computed in float64 inside JAX's scoped context, whatever the user's own setting: the same key gives
the same numbers. Time and memory O(n·dim).
"""

import math

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError
from offtangent.data._rows import unit_rows
from offtangent.data.keys import PRNGKeyArray, check_count, check_key


def sphere(n: int, dim: int, *, radius: float | int = 1.0, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Points uniform on the sphere ‖x‖ = radius in `dim` dimensions, n of them."""
    if not (math.isfinite(radius) and radius > 0):
        raise InputError(f"radius={radius:g} must be positive and finite.")
    return radius * unit_rows(gaussian(n, dim, key=key))


def hypercube(n: int, dim: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Points uniform on the corners {−1, +1}^dim, n of them."""
    import jax

    _check(n, dim, key)
    with jax.enable_x64(True):
        return np.array(jax.random.rademacher(key, (n, dim), dtype=np.float64))


def gaussian(n: int, dim: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Points from N(0, I) in `dim` dimensions, n of them."""
    import jax

    _check(n, dim, key)
    with jax.enable_x64(True):
        return np.array(jax.random.normal(key, (n, dim), dtype=np.float64))


def _check(n: int, dim: int, key: PRNGKeyArray) -> None:
    check_count("n", n)
    check_count("dim", dim)
    check_key(key)
