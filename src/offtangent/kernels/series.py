"""The Taylor coefficients of the homogeneous kernels, as functions of the cosine.

Each is ≥ 0 (Schoenberg) and accurate to rounding: only positive numbers are added and multiplied on the way.
SPEC V-B12 turns them into a lower bound for the smallest eigenvalue.
"""

import operator
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent._checks import require
from offtangent.kernels.arcs import arc1
from offtangent.kernels.moments import relu_moments
from offtangent.kernels.pairs import Pair

Coefficients = Float[np.ndarray, " terms"]


def relu_hidden(terms: int) -> Coefficients:
    """c/4 + (1/2π) Σ_{l≥1} ((2l−3)!!/(2l−2)!!) c^{2l}/(2l−1): SPEC B5.

    >>> relu_hidden(5).round(6)
    array([0.      , 0.25    , 0.159155, 0.      , 0.026526])
    """
    return np.concatenate(([0.0], arc_cosine(0, terms)[:-1])) / 2


def relu_output(terms: int) -> Coefficients:
    """The coefficients of `closed_forms.relu_output`, which is half of the arc-cosine kernel of order 1."""
    return arc_cosine(1, terms) / 2


def relu_both(terms: int) -> Coefficients:
    """The coefficients of `closed_forms.relu_both`, the sum of `relu_hidden` and `relu_output`."""
    return relu_hidden(terms) + relu_output(terms)


def relu3_hidden(terms: int) -> Coefficients:
    """An eighth of the arc-cosine kernel of order 2, times the cosine: degrees 1, 3 and all even ones from 2 on."""
    return np.concatenate(([0.0], arc_cosine(2, terms)[:-1])) / 8


def tensor_square(terms: int) -> Coefficients:
    """The square alone."""
    return (np.arange(_at_least_one(terms)) == 2).astype(np.float64)


def arc_cosine(order: int, terms: int) -> Coefficients:
    """Of J_n/π: J_0 = π/2 + arcsin c, and J_n' = n² J_{n−1} with J_1(0) = 1, J_2(0) = π/2."""
    terms = _at_least_one(terms)
    slope = np.zeros(terms, np.longdouble)  # of arcsin: (1 − c²)^{−1/2} = Σ (2j−1)!!/(2j)!! c^{2j}
    even = np.arange(1, (terms + 1) // 2, dtype=np.longdouble)
    slope[::2] = np.concatenate(([1], np.cumprod((2 * even - 1) / (2 * even))))
    result = _integral(slope, np.longdouble(np.pi) / 2)
    for n, start in ((1, 1.0), (2, np.pi / 2))[:order]:
        result = _integral(n * n * result, start)
    return (result / np.longdouble(np.pi)).astype(np.float64)


def _integral(coefficients: np.ndarray, start: Any) -> np.ndarray:
    """The series whose derivative is this one, cut to as many terms, with the given value at 0."""
    return np.concatenate(([start], coefficients[:-1] / np.arange(1, len(coefficients))))


def deep_relu(depth: int, weight: float, residual: bool, tangent: bool, terms: int) -> Coefficients:
    """Of `deep` with the ReLU and no bias, at unit length. Time O(depth·terms²).

    The recursion of `deep` on power series: with u the cosine's, k_0(u)' = u'/(π√(1 − u²)) and k_1(u)' = k_0(u)u', so
    that only the values at 0 are needed, which a pair of inputs at a right angle gives.
    """
    cosine = np.zeros(_at_least_one(terms))
    cosine[1:2] = 1.0
    one = np.float64(1.0)
    pair, square = Pair(one, one, one, one).scaled(weight), weight**2  # square: ‖h‖² at this layer
    theta = total = square * cosine
    for number in range(1, depth + 1):
        step, arc = _composed(cosine, pair)
        value, skip = weight**2 * square / 2 * arc, residual and number < depth
        theta = value + np.convolve(theta, weight**2 / 2 * step)[: len(theta)] + (theta if skip else 0)
        branch = relu_moments(pair, np).pair.scaled(weight)
        pair = pair.joined(branch, np) if skip else branch
        total = value + square * cosine if skip else value
        square = weight**2 * square / 2 + (square if skip else 0)
        cosine = total / square
    return theta if tangent else total


def _composed(cosine: np.ndarray, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """k_0(u) and k_1(u) of the arc-cosine kernels for the series u = `cosine`, whose value at 0 is the pair's."""
    angles, terms = pair.angles(np), len(cosine)
    slope = cosine[1:] * np.arange(1, terms)
    rest = -np.convolve(cosine, cosine)[:terms]  # 1 − u², but for its first term
    inverse = np.zeros(terms)  # (1 − u²)^{−1/2}, by J.C.P. Miller's recurrence
    inverse[0] = 1 / pair.sine(np)
    for m in range(1, terms):
        k = np.arange(1, m + 1)
        inverse[m] = (k / 2 - m) @ (rest[1 : m + 1] * inverse[m - 1 :: -1]) / (m * pair.minus * pair.plus)
    step = _integral(_cut_product(inverse, slope, terms) / np.pi, angles[1] / np.pi)
    return step, _integral(_cut_product(step, slope, terms), arc1(pair, angles, np)[0] / np.pi)


def _cut_product(first: np.ndarray, second: np.ndarray, terms: int) -> np.ndarray:
    return np.convolve(first, second)[:terms] if len(second) else np.zeros(terms)


def _at_least_one(terms: int) -> int:
    terms = operator.index(terms)
    require(terms >= 1, f"series({terms}): ask for at least one term.")
    return terms
