"""What one layer does to a pair of inputs: E[σ(u)σ(v)], E[σ'(u)σ'(v)], and the pair that the next layer sees.

u = ‖x‖z and v = ‖x'‖z' are Gaussian with correlation cos θ: the values at one neuron of an infinitely wide layer for
the two inputs. The ReLU keeps a pair accurate at every angle. For the smooth activations the new cosine is
accurate to ε in absolute terms, which is all that a smooth kernel asks; when u is so large that they look
like a step or a corner (beyond 10⁴), nearly parallel inputs cost up to half the digits from the second layer on.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from offtangent.kernels.arcs import arc1
from offtangent.kernels.pairs import Pair, arc, hypot, root
from offtangent.special.activations import Activation, erf, gelu, relu, sin


class Moments(NamedTuple):
    """What a layer makes of a pair of Gaussians u and v.

    `value` is E[σ(u)σ(v)], `slope` is E[σ'(u)σ'(v)] (None where not asked for), and `pair` is the pair that the next
    layer sees.
    """

    value: Any
    slope: Any
    pair: Pair


@runtime_checkable
class Layer(Protocol):
    """An activation, as it acts on a pair."""

    def __call__(self, pair: Pair, xp: ModuleType, /, *, slopes: bool = True) -> Moments: ...


def relu_moments(pair: Pair, xp: ModuleType, *, slopes: bool = True) -> Moments:
    """E[σσ] = rs J_1(θ)/2π, E[σ'σ'] = (π − θ)/2π; 1 − cos' = 1 − cos − J_1(π−θ)/π, of which half or more is left."""
    angles = pair.angles(xp)
    here, opposite = arc1(pair, angles, xp)
    half = math.sqrt(0.5)
    after = Pair(half * pair.r, half * pair.s, pair.minus - opposite / np.pi, 1 + here / np.pi)
    nowhere = (pair.r == 0) | (pair.s == 0)
    after = after._replace(minus=xp.where(nowhere, 1, after.minus), plus=xp.where(nowhere, 1, after.plus))
    return Moments(pair.r * pair.s * here / (2 * np.pi), angles[1] / (2 * np.pi) if slopes else None, after)


def erf_moments(pair: Pair, xp: ModuleType, *, slopes: bool = True) -> Moments:
    """(2/π) arcsin(2k/√((1+2r²)(1+2s²))), and (4/π)/√((1+2r²)(1+2s²) − 4k²): Williams (1997)."""
    double = pair.scaled(math.sqrt(2))
    tempered = _tempered(double, xp)
    slope = 4 / np.pi * tempered.first * tempered.second / tempered.sine if slopes else None
    return _smooth(lambda _, tempered: 2 / np.pi * tempered.arcsine, slope, double, tempered, xp)


def gelu_moments(pair: Pair, xp: ModuleType, *, slopes: bool = True) -> Moments:
    """For zΦ(z) (Tsuchida et al. 2021), with R² = 1 + r², S² = 1 + s², k = rs cos θ, c = k/RS and D² = 1 − c²:

    - E[σσ] = k/4 + (k arcsin(c) + rs(rs/RS)(D + cos²θ/(R²S²D)))/2π,
    - E[σ'σ'] = 1/4 + (arcsin(c) + (c/D)(1/(R²S²D²) + 1/R² + 1/S²))/2π.
    """

    def value(at: Pair, t: _Tempered) -> Any:
        bend = t.share * (t.sine + (at.cosine * t.first * t.second) ** 2 / t.sine)
        return at.r * at.s * (at.cosine * (0.25 + t.arcsine / (2 * np.pi)) + bend / (2 * np.pi))

    slope, t = None, _tempered(pair, xp)
    if slopes:
        bend = t.share * pair.cosine / t.sine * ((t.first * t.second / t.sine) ** 2 + t.first**2 + t.second**2)
        slope = 0.25 + (t.arcsine + bend) / (2 * np.pi)
    return _smooth(value, slope, pair, t, xp)


def sin_moments(pair: Pair, xp: ModuleType, *, slopes: bool = True) -> Moments:
    """E[sin u sin v] = e^{−(r²+s²)/2} sinh k, and cosh k for the cosines, from ‖x ∓ x'‖² so that nothing overflows."""

    def value(at: Pair, _: None) -> Any:
        inner = abs(at.inner)
        nearer = at._replace(minus=xp.minimum(at.minus, at.plus)).squared_distance()
        return xp.sign(at.cosine) * xp.exp(-nearer / 2) * -xp.expm1(-2 * inner) / 2

    slope = None
    if slopes:
        opposite = Pair(pair.r, pair.s, pair.plus, pair.minus)
        slope = (xp.exp(-pair.squared_distance() / 2) + xp.exp(-opposite.squared_distance() / 2)) / 2
    return _smooth(value, slope, pair, None, xp)


CLOSED: dict[Activation, Layer] = {relu: relu_moments, erf: erf_moments, gelu: gelu_moments, sin: sin_moments}


class _Tempered(NamedTuple):
    """What a bounded slope makes of a pair: R² = 1 + r², S² = 1 + s², c = xᵀx'/RS."""

    arcsine: Any  # of c
    sine: Any  # √(1 − c²)
    share: Any  # rs/RS
    first: Any  # 1/R
    second: Any  # 1/S


def _tempered(pair: Pair, xp: ModuleType) -> _Tempered:
    """1 − c² = 1/R²S² + r²/R²S² + s²/R²S² + (rs/RS)² sin²θ, with no subtraction."""
    (_, rho, first), (_, sigma, second) = (hypot(length, xp.ones_like(length), xp) for length in (pair.r, pair.s))
    share = rho * sigma
    squares = (first * second) ** 2 + (rho * second) ** 2 + (sigma * first) ** 2
    sine, cosine = root(squares + share**2 * pair.minus * pair.plus, xp), share * pair.cosine
    size = abs(cosine)
    small = arc(xp.minimum(size, sine), xp.maximum(size, sine), xp)
    arcsine = xp.sign(cosine) * xp.where(size <= sine, small, np.pi / 2 - small)
    return _Tempered(arcsine, sine, share, first, second)


def _smooth(value: Callable[[Pair, Any], Any], slope: Any, pair: Pair, tempered: Any, xp: ModuleType) -> Moments:
    """The moments of a layer from its E[σ(u)σ(v)] as a function of the pair."""

    def after(length: Any) -> Any:
        itself = Pair(length, length, xp.zeros_like(length), xp.full_like(length, 2))
        return root(value(itself, None if tempered is None else _tempered(itself, xp)), xp)

    return between(value(pair, tempered), slope, after(pair.r), after(pair.s), pair, xp)


def between(value: Any, slope: Any, r: Any, s: Any, pair: Pair, xp: ModuleType) -> Moments:
    """The moments, when the new lengths r and s are known besides: cos' = value/rs."""
    product = r * s
    cosine = xp.clip(value / xp.where(product > 0, product, 1), -1, 1)
    same = (pair.minus == 0) & (pair.r == pair.s) & (product > 0)  # an input with itself, to the last bit
    return Moments(value, slope, Pair(r, s, xp.where(same, 0, 1 - cosine), xp.where(same, 2, 1 + cosine)))
