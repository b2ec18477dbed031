"""What the theorems ask for, as numbers: how wide, how small at the start, how slow.

Arora et al. (2019), Theorems 3.1, 4.1 and 5.1, the constants of O(·) and Ω(·) taken as one. The widths are astronomic;
networks many orders of magnitude narrower do what the theorems say (papers/arora/lemmas.py measures it).
"""

import math
from dataclasses import dataclass

from offtangent._checks import check_bound, require
from offtangent._errors import InputError
from offtangent.theory.arora.generalisation import generalisation_bound
from offtangent.theory.arora.widths import required_width


@dataclass(frozen=True)
class Prescription:
    """The hypotheses of a theorem, for n samples with λ_min(H∞) = λ₀."""

    theorem: str
    width: float  # m, at least
    scale: float  # κ, at most
    rate: float  # η = λ₀/n², at most
    steps: float  # log(n/δ)/(ηλ₀), from which on Theorem 5.1 speaks


def prescribe(
    theorem: str,
    n: int,
    *,
    smallest: float,
    delta: float,
    epsilon: float | None = None,
    scale: float | None = None,
) -> Prescription:
    """Width, κ, learning rate and steps that a theorem asks for.

    - "3.1" (gradient descent converges): m = n⁶/(λ₀⁴κ²δ³), any κ ≤ 1.
    - "4.1" (the loss follows eq. (8) to within ε): m = n⁷/(λ₀⁴κ²δ⁴ε²), κ = εδ/√n.
    - "5.1" (generalisation): κ = λ₀δ/n and m = κ⁻²·poly, where poly is what makes the proof's terms in the width small
      enough, R_S ≤ √(yᵀ(H∞)⁻¹y/2n) + 2/√n for every y; at least Theorem 3.1's.

    `smallest` is λ₀; a smaller κ than the theorem's may be given as `scale`.

    >>> prescribe("3.1", 2, smallest=0.5, delta=0.5, scale=0.5).width
    32768.0
    """
    check_bound(delta, n=n, smallest=smallest)
    require(
        theorem in ("3.1", "4.1", "5.1"),
        f"theorem={theorem!r}: the theorems that ask for a width are '3.1', '4.1' and '5.1'.",
    )
    if (theorem == "4.1") != (epsilon is not None):
        raise InputError("epsilon is the accuracy of Theorem 4.1: give it there, and only there.")
    if epsilon is not None:
        check_bound(epsilon=epsilon)
    if scale is not None:
        check_bound(scale=scale)
    largest = {
        "3.1": 1.0,
        "4.1": min((epsilon or 0.0) * delta / math.sqrt(n), 1.0),
        "5.1": min(smallest * delta / n, 1.0),
    }[theorem]
    kappa = largest if scale is None else scale
    if not 0 < kappa <= largest:
        raise InputError(f"scale={kappa:g}: Theorem {theorem} asks for a positive κ of at most {largest:.3g}.")
    width = required_width(n, scale=kappa, smallest=smallest, delta=delta, epsilon=epsilon)
    if theorem == "5.1":
        width = max(width, _width_for_generalisation(n, kappa, smallest, delta))
    rate = smallest / n**2
    return Prescription(theorem, width, kappa, rate, math.log(n / delta) / (rate * smallest))


def _width_for_generalisation(n: int, scale: float, smallest: float, delta: float) -> float:
    """The width from which on Theorem 5.1's terms, but for training and sampling, add at most 4/√n to the measure.

    Found by bisection of log m: every term falls with the width.
    """

    def excess(log_width: float) -> float:
        bound = generalisation_bound(
            n / smallest, n, smallest=smallest, delta=delta, width=math.exp(log_width), scale=scale
        )
        return bound.rounding + bound.initial + bound.of_width - 4 / math.sqrt(n)

    low, high = 0.0, 700.0  # of the natural logarithm; e^700 is 10^304
    if excess(high) > 0:
        return math.inf
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return math.exp(high)
