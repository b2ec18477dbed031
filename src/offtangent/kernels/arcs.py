"""The angular functions J_n of Cho and Saul (2009), which carry every kernel of a rectified power.

    E_{w~N(0,I)} [relu(wᵀx)ⁿ relu(wᵀx')ⁿ] = ‖x‖ⁿ‖x'‖ⁿ J_n(θ) / 2π

    J_0 = π − θ,   J_1 = sin θ + (π − θ) cos θ,   J_2 = 3 sin θ cos θ + (π − θ)(1 + 2cos²θ)

J_n vanishes like (π − θ)^{2n+1} at θ = π, where these formulas cancel: there they are summed as power series, so
that each is accurate to rounding, relative to itself.
"""

import math
from types import ModuleType
from typing import Any

import numpy as np

from offtangent.kernels.pairs import Pair

SWITCH = 1.0  # below this angle by the series: beyond it the formulas lose less than two bits


def arc1(pair: Pair, angles: tuple[Any, Any], xp: ModuleType) -> tuple[Any, Any]:
    """J_1(θ), and J_1(π − θ) = sin θ − θ cos θ, which is J_1(θ) − π cos θ; `angles` are the pair's θ and π − θ."""
    small, cosine = xp.minimum(*angles), abs(pair.cosine)
    plain = pair.sine(xp) - small * cosine
    square = xp.minimum(small, SWITCH) ** 2
    near = small * square * _horner([2 * k / math.factorial(2 * k + 1) for k in range(1, 10)], square, xp)
    below = xp.where(small < SWITCH, near, plain)  # J_1 of the obtuse angle, small where that is near π
    above = below + np.pi * cosine
    obtuse = pair.plus < pair.minus
    return xp.where(obtuse, below, above), xp.where(obtuse, above, below)


def arc2(pair: Pair, xp: ModuleType) -> Any:
    """J_2(θ)."""
    rest, cosine = pair.angles(xp)[1], pair.cosine
    plain = 3 * pair.sine(xp) * cosine + rest * (1 + 2 * cosine**2)
    # With y = 2(π − θ) it is y + y cos(y)/2 − 3 sin(y)/2.
    square = 4 * xp.minimum(rest, SWITCH) ** 2
    series = [(k - 1) / math.factorial(2 * k + 1) for k in range(2, 14)]
    near = 2 * rest * square**2 * _horner(series, square, xp)
    return xp.where(rest < SWITCH, near, plain)


def _horner(coefficients: list[float], square: Any, xp: ModuleType) -> Any:
    """c_0 − c_1 z + c_2 z² − …, with z = `square`; leaves out what float32 cannot see."""
    eps = np.finfo(square.dtype).eps
    kept = [c for k, c in enumerate(coefficients) if c * (4 * SWITCH**2) ** k > eps / 8 * coefficients[0]]
    value = xp.full_like(square, kept[-1])
    for coefficient in kept[-2::-1]:
        value = coefficient - square * value
    return value
