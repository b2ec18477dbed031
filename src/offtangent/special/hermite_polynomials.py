"""Hermite polynomials, and activations written in them.

h_k are the probabilists' Hermite polynomials normalised under the standard Gaussian, E[h_j(g) h_k(g)] = δ_jk.
An activation with E[σ(g)²] < ∞ is σ = Σ c_k h_k with c_k = E[σ(g) h_k(g)], and for a Gaussian
pair of correlation ρ its kernel is E[σ(u)σ(v)] = Σ c_k² ρ^k (O'Donnell, *Analysis of Boolean Functions*,
§11.2): c_k² is how much of degree k a network with this activation sees.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from offtangent._checks import check_count
from offtangent._errors import InputError
from offtangent.special.activations import Activation, activation

# Quadrature on [−REACH, REACH]. By Cramér's inequality |h_k(z)| √φ(z) < 0.7 for every k, so what is cut off
# is at most ∫ |σ| √φ ≈ |σ(20)|·1e-44, whatever the degree.
REACH = 20
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
BLOCK = 1024
TOLERANCE = 1e-13  # relative to √E[σ²]
REFINEMENTS = 6  # panels of width 1, 1/2, …, 1/64: at most 51 200 nodes


def hermite(k_max: int, z: Float[ArrayLike, "*shape"]) -> Float[Array, " orders *shape"]:
    """h_0(z), …, h_{k_max}(z) along a new first axis, in the dtype of z.

    By h_{k+1} = (z h_k − √k h_{k−1}) / √(k+1), which is stable going up. O(k_max) operations an entry.

    >>> hermite(3, 2.0).round(4)  # 1, z, (z² − 1)/√2, (z³ − 3z)/√6
    Array([1.    , 2.    , 2.1213, 0.8165], dtype=float32...)
    """
    k_max, z = _order("k_max", k_max), jnp.asarray(z)
    return jnp.stack(list(hermite_times(k_max, z, jnp.ones_like(z))))


@dataclass(frozen=True)
class HermiteEnergy:
    """How much of E[σ(g)²] the first degrees carry."""

    partial: Float[np.ndarray, " orders"]  # Σ_{j≤k} c_j², for k = 0, …, order
    total: float  # E[σ(g)²]

    @property
    def missing(self) -> float:
        """The energy of all degrees beyond the last, E[σ²] − Σ c_k² (never below 0)."""
        return max(self.total - float(self.partial[-1]), 0.0)


def hermite_coefficients(
    sigma: str | Activation | Callable[..., object], *, order: int, derivative: int = 0
) -> Float[np.ndarray, " orders"]:
    """c_k = E[σ^(derivative)(g) h_k(g)] for k = 0, …, order, in float64, to about 1e-13 of √E[σ²].

    Composite Gauss–Legendre quadrature with 20 nodes a panel, split at the kinks; panels are halved until two
    rules agree, and it is an InputError when they never do (usually a kink that was not named). On the host:
    O(nodes · order) time, O(nodes) memory, 1 600 to 51 200 nodes.

    >>> hermite_coefficients("relu", order=4).round(6) + 0.0  # 1/√2π, 1/2, 1/2√π, 0, −1/√48π
    array([ 0.398942,  0.5     ,  0.282095,  0.      , -0.081434])
    """
    return _converged(activation(sigma), _order("order", order), _order("derivative", derivative))[0]


def hermite_energy(
    sigma: str | Activation | Callable[..., object], *, order: int, derivative: int = 0
) -> HermiteEnergy:
    """Σ_{j≤k} c_j² against E[σ^(derivative)(g)²] (Parseval), at the cost of ``hermite_coefficients``.

    >>> energy = hermite_energy("quadratic", order=2)
    >>> energy.partial.round(12), round(energy.total, 12), round(energy.missing, 12)  # z² = 1 + √2 h_2
    (array([1., 1., 3.]), 3.0, 0.0)
    """
    coefficients, total = _converged(activation(sigma), _order("order", order), _order("derivative", derivative))
    return HermiteEnergy(np.cumsum(coefficients**2), total)


def _order(name: str, value: int) -> int:
    check_count(name, value, least=0)
    order = operator.index(value)
    # Spelled as it was, so that results stored before `check_count` stood here keep their keys.
    return order  # noqa: RET504


def hermite_times(k_max: int, z: Any, start: Any) -> Iterator[Any]:
    """h_k(z)·start for k = 0, …, k_max, on NumPy and JAX arrays alike."""
    before, now = 0 * start, start
    yield now
    for k in range(k_max):
        before, now = now, (z * now - math.sqrt(k) * before) / math.sqrt(k + 1)
        yield now


def _converged(sigma: Activation, order: int, derivative: int) -> tuple[np.ndarray, float]:
    """The coefficients and E[σ²], from the first rule that agrees with the next coarser one."""
    function = sigma.derivative(derivative)
    label = sigma.name if derivative == 0 else f"the derivative of order {derivative} of {sigma.name}"
    coarse, before = _quadrature(function, label, sigma.kinks, order, 1.0)
    error = math.inf
    for level in range(1, REFINEMENTS + 1):
        fine, energy = _quadrature(function, label, sigma.kinks, order, 0.5**level)
        error = max(float(np.abs(fine - coarse).max()), abs(math.sqrt(energy) - math.sqrt(before)))
        if error <= TOLERANCE * math.sqrt(energy):
            return fine, energy
        coarse, before = fine, energy
    raise InputError(
        f"the Hermite coefficients of {label} do not converge: the two finest rules differ by {error:.1e}, "
        f"where {TOLERANCE:g}·√E[σ²] = {TOLERANCE * math.sqrt(before):.1e} was wanted. Likely causes: a kink "
        f"or jump that was not named (known: {sigma.kinks or 'none'}; say activation(f, smooth=..., "
        "kinks=(...,))), a function that works in float32 inside, or one that turns within 1/100."
    )


def on_host(function: Callable[..., Any], z: np.ndarray) -> np.ndarray:
    """function(z) in float64, constants spread out, in blocks of one size: JAX compiles for every new shape."""
    blocks = np.pad(z, (0, -z.size % BLOCK), mode="edge").reshape(-1, BLOCK)
    with jax.enable_x64(True):
        values = [np.broadcast_to(np.asarray(function(jnp.asarray(b)), np.float64), b.shape) for b in blocks]
    return np.concatenate(values)[: z.size]


def _quadrature(
    function: Callable[[Array], Array], label: str, kinks: tuple[float, ...], order: int, width: float
) -> tuple[np.ndarray, float]:
    inside = [kink for kink in kinks if abs(kink) < REACH]
    ends = np.union1d(np.linspace(-REACH, REACH, round(2 * REACH / width) + 1), inside)
    half = np.diff(ends)[:, None] / 2
    z = np.append((ends[:-1, None] + half * (1 + NODES)).ravel(), [-REACH, REACH])
    values = on_host(function, z)
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        raise InputError(f"{label} is {values[bad[0]]} at z = {z[bad[0]]:g}; it must be finite on [−{REACH}, {REACH}].")
    root = np.exp(-(z**2) / 4) / (2 * math.pi) ** 0.25  # √φ: half in each factor, so that h_k√φ stays bounded
    weighted = values * root
    edge, weighted, z, root = np.abs(weighted[-2:]).max(), weighted[:-2], z[:-2], root[:-2]
    weights = (half * WEIGHTS).ravel()
    energy = float(weights @ weighted**2)
    if edge > 1e-16 * math.sqrt(energy):
        raise InputError(
            f"{label} grows too fast for a Hermite expansion: |σ(±{REACH})|·√φ({REACH}) = {edge:.1e} is not "
            f"negligible beside √E[σ²] = {math.sqrt(energy):.1e}. It must grow slower than exp(z²/8)."
        )
    weighted = weights * weighted
    return np.array([weighted @ h for h in hermite_times(order, z, root)]), energy
