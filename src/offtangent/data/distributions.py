"""Inputs drawn from the distributions of the papers.

Each is computed in float64 inside JAX's scoped context, whatever the user's own setting: the same key gives
the same numbers. Time and memory O(n·dim).
"""

import math

import numpy as np
from jaxtyping import Float

from offtangent._checks import PRNGKeyArray, check_count, check_inputs, check_key, check_real, require, unit_rows

MOST = 10**12  # entries, of 8 bytes: JAX ends the whole process where it cannot have the memory


def sphere(n: int, dim: int, *, radius: float | int = 1.0, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Draw points uniformly from the sphere ‖x‖ = radius.

    A Gaussian vector has a uniform direction: each point is radius·g/‖g‖ with g ~ N(0, I). It is computed in float64
    whatever JAX's setting, so that the same key gives the same numbers. Time and memory O(n·dim).

    Args:
        n: The number of points.
        dim: The dimension d of the space; the sphere in it has dimension d − 1.
        radius: The length of every point, positive and finite. Arora et al. (2019) take 1, Nichani et al. (2022) √d.
        key: The JAX key that decides the draw.

    Returns:
        The points as rows, in float64.

    Raises:
        InputError: If a size is no positive whole number, `radius` not positive and finite, or `key` no JAX key.

    >>> import jax
    >>> X = sphere(3, 5, radius=2.0, key=jax.random.key(0))
    >>> np.linalg.norm(X, axis=1).round(12)
    array([2., 2., 2.])
    """
    check_real("radius", radius)
    require(math.isfinite(radius) and radius > 0, f"radius={radius:g} must be positive and finite.")
    return radius * unit_rows(gaussian(n, dim, key=key))


def hypercube(n: int, dim: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Draw points uniformly from the corners {−1, +1}^dim of the cube.

    These are the inputs of the experiments of Allen-Zhu & Li (2019), Appendix A. They are computed in float64 whatever
    JAX's setting, so that the same key gives the same numbers. Time and memory O(n·dim).

    Args:
        n: The number of points; corners may repeat.
        dim: The dimension of the cube.
        key: The JAX key that decides the draw.

    Returns:
        The points as rows of ±1, in float64.

    Raises:
        InputError: If a size is no positive whole number, or `key` no JAX key.

    >>> import jax
    >>> X = hypercube(100, 3, key=jax.random.key(0))
    >>> X.shape, np.unique(X)
    ((100, 3), array([-1.,  1.]))
    """
    import jax

    _check(n, dim, key)
    with jax.enable_x64(True):
        return np.array(jax.random.rademacher(key, (n, dim), dtype=np.float64))


def noisy_xor(n: int, dim: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Noisy 2-XOR as Wei et al. (2019) have it: (±1, 0) or (0, ±1), each with probability ¼, then dim − 2 signs.

    The label is x₁² − x₂². In the plane of the first two this is {±1}² turned by 45° and shortened by √2, with the
    label x₁x₂ of the corners; against the other coordinates, which say nothing, the signal is shorter by √2.
    """
    check_count("dim", dim)
    require(dim >= 2, f"dim={dim}: noisy 2-XOR has two coordinates that matter; dim must be 2 or more.")
    corners = hypercube(n, dim, key=key)
    first, second = corners[:, 0].copy(), corners[:, 1].copy()
    corners[:, 0], corners[:, 1] = (first + second) / 2, (first - second) / 2
    return corners


def gaussian(n: int, dim: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """Points from N(0, I) in `dim` dimensions, n of them."""
    import jax

    _check(n, dim, key)
    with jax.enable_x64(True):
        return np.array(jax.random.normal(key, (n, dim), dtype=np.float64))


def smooth_inputs(X: object, noise: float | int, *, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"]:
    """X with N(0, noise²) added to every entry: smoothed analysis, where x̄ = x + N(0, vI) has v = noise².

    >>> import jax
    >>> smooth_inputs([[1.0, 2.0]], 0, key=jax.random.key(0))
    array([[1., 2.]])
    """
    inputs = check_inputs(X)
    check_real("noise", noise)
    require(0 <= noise < math.inf, f"noise={noise:g}: a standard deviation must be finite and not negative.")
    with np.errstate(over="ignore"):
        smoothed = inputs + noise * gaussian(*inputs.shape, key=key)
    require(np.isfinite(smoothed).all(), f"noise={noise:g} leads beyond float64. Give less, or divide X by a constant.")
    return smoothed


def _check(n: int, dim: int, key: PRNGKeyArray) -> None:
    check_count("n", n)
    check_count("dim", dim)
    require(n * dim <= MOST, f"n={n}, dim={dim}: {n * dim:.3g} numbers, more than any memory holds. Give fewer.")
    check_key(key)
