"""The functions of the catalogue of activations, and their derivatives of order k ≥ 1 in closed form.

Every formula keeps the dtype of z and stays finite far out in the tails, where nested autodiff of a careless formula
gives 0·∞. `f_derivative(order, z)` is the derivative of `f(z)`.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array


def relu(z: Array) -> Array:
    """max(z, 0), with the sub-gradient 1{z ≥ 0} under autodiff."""
    # Autodiff of this form gives 1{z ≥ 0}, the papers' sub-gradient (jax.nn.relu gives 0 at 0); written with
    # z < 0 so that a NaN passes through instead of becoming 0.
    return jnp.where(z < 0, 0, z)


def _step(z: Array) -> Array:
    return jnp.where(z < 0, jnp.zeros_like(z), jnp.where(z >= 0, jnp.ones_like(z), z))  # a NaN stays one


def relu_derivative(order: int, z: Array) -> Array:
    """1{z ≥ 0}, of order 1; the higher ones are no functions."""
    assert order == 1
    return _step(z)


def relu3(z: Array) -> Array:
    """max(z, 0)³/6."""
    return relu(z) ** 3 / 6


def relu3_derivative(order: int, z: Array) -> Array:
    """max(z, 0)²/2, max(z, 0) and 1{z ≥ 0}, of orders 1 to 3."""
    if order == 3:
        return _step(z)
    return relu(z) ** (3 - order) / math.factorial(3 - order)


def quadratic(z: Array) -> Array:
    """z²."""
    return z**2


def quadratic_derivative(order: int, z: Array) -> Array:
    """2z, 2, and then 0."""
    return 2 * z if order == 1 else jnp.full_like(z, 2.0 if order == 2 else 0.0)


@functools.cache
def _eulerian(n: int) -> tuple[int, ...]:
    """The Eulerian numbers A(n, 0), …, A(n, n−1)."""
    if n == 1:
        return (1,)
    row = (0, *_eulerian(n - 1), 0)
    return tuple((n - j) * row[j] + (j + 1) * row[j + 1] for j in range(n))


def logistic_derivative(order: int, z: Array) -> Array:
    """s^(n) = Σ_j (−1)^j A(n, j) s^(j+1) (1−s)^(n−j) with s = sigmoid(z).

    Both tails keep their relative accuracy: 1 − s is sigmoid(−z), and one term alone is left there.
    """
    s, r = jax.nn.sigmoid(z), jax.nn.sigmoid(-z)
    total, power = jnp.zeros_like(z), jnp.ones_like(z)
    for j, number in enumerate(_eulerian(order)):
        total = total * r + (-1.0) ** j * number * power
        power = power * s
    return s * r * total


def tanh(z: Array) -> Array:
    """The hyperbolic tangent."""
    return jnp.tanh(z)


def tanh_derivative(order: int, z: Array) -> Array:
    """2^{n+1} s^(n)(2z), since tanh z = 2s(2z) − 1 for the sigmoid s."""
    return 2.0 ** (order + 1) * logistic_derivative(order, 2 * z)


def softplus(z: Array) -> Array:
    """log(1 + e^z)."""
    return jax.nn.softplus(z)


def softplus_derivative(order: int, z: Array) -> Array:
    """The sigmoid, and its derivatives of order n − 1."""
    return jax.nn.sigmoid(z) if order == 1 else logistic_derivative(order - 1, z)


def _normal_cdf(z: Array) -> Array:
    return 0.5 * jax.lax.erfc(-math.sqrt(0.5) * z)


def _normal_cdf_derivative(order: int, z: Array) -> Array:
    """Φ^(n) = φ^(n−1), by φ^(n+1) = −zφ^(n) − nφ^(n−1): the Gaussian is in every term, so none overflows."""
    z = jnp.clip(z, -40, 40)  # exp(−800) is already 0 in float64, and ∞·0 is not
    before, now = jnp.zeros_like(z), jnp.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    for n in range(order - 1):
        before, now = now, -z * now - n * before
    return now


def erf(z: Array) -> Array:
    """The error function."""
    return jax.lax.erf(z)


def erf_derivative(order: int, z: Array) -> Array:
    """2·2^{n/2} Φ^(n)(√2 z), since erf z = 2Φ(√2 z) − 1."""
    return 2 * math.sqrt(2.0**order) * _normal_cdf_derivative(order, math.sqrt(2) * z)


def gelu(z: Array) -> Array:
    """zΦ(z), with the distribution function Φ of N(0, 1)."""
    return z * _normal_cdf(z)


def gelu_derivative(order: int, z: Array) -> Array:
    """zΦ^(n)(z) + nΦ^(n−1)(z), by Leibniz."""
    lower = _normal_cdf(z) if order == 1 else _normal_cdf_derivative(order - 1, z)
    return jnp.clip(z, -40, 40) * _normal_cdf_derivative(order, z) + order * lower


def sin(z: Array) -> Array:
    """The sine."""
    return jnp.sin(z)


def sin_derivative(order: int, z: Array) -> Array:
    """The derivatives cos z, −sin z, −cos z, sin z, and again."""
    value = jnp.cos(z) if order % 2 else jnp.sin(z)
    return -value if order % 4 in (2, 3) else value
