"""How far a network of finite width may stray from its infinitely wide limit.

Arora et al. (2019), Theorems 3.1 and 4.1, Lemma C.3. Constants hidden in the paper's O(·) and Ω(·) are taken
as one; where the proof gives a constant, it is the proof's.
"""

import math

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound


def gram_deviation_bound(n: int, width: int, *, delta: float) -> float:
    """‖H(0) − H∞‖_F ≤ n √(log(2n²/δ) / 2m), with probability at least 1 − δ over the initial weights.

    Lemma C.3 with its proof's constants, for inputs of unit length. (The statement prints log(2/δ); the union
    bound over n² entries in its proof needs log(2n²/δ).)

    >>> round(gram_deviation_bound(100, 10_000, delta=0.1), 4)
    2.4704
    """
    check_bound(delta, n=n, width=width)
    return n * math.sqrt(math.log(2 * n**2 / delta) / (2 * width))


def initial_output_bound(n: int, scale: float, *, delta: float) -> float:
    """‖u(0)‖ ≤ κ√(n/δ), with probability at least 1 − δ: Markov's inequality before eq. (29), E‖u(0)‖² ≤ nκ²."""
    check_bound(delta, n=n, scale=scale)
    return scale * math.sqrt(n / delta)


def initial_residual_bound(n: int, scale: float, *, delta: float) -> float:
    """‖y − u(0)‖ ≤ √n + κ√(n/δ) for |y| ≤ 1, with probability at least 1 − δ: O(√(n/δ)) of Theorem 3.1."""
    check_bound(delta, n=n)
    check_not_negative(scale=scale)
    return math.sqrt(n) + (initial_output_bound(n, scale, delta=delta) if scale else 0.0)


def initial_loss_bound(n: int, scale: float, *, delta: float) -> float:
    """Φ(W(0)) ≤ n(1 + κ²)/(2δ) for |y| ≤ 1, with probability at least 1 − δ: the O(n/δ) of Theorem 3.1.

    Markov's inequality on the mean: the signs a_r make E u(0) = 0, so E Φ(W(0)) = (‖y‖² + E‖u(0)‖²)/2, and E‖u(0)‖² is
    at most nκ². That mean is at most δ times this bound. With κ ≤ 1, as eq. (1) has it, the bound is at most n/δ.

    Args:
        n: The number of samples, of unit length.
        scale: The size κ of the initial weights, zero or positive.
        delta: The probability δ with which the bound may fail, between 0 and 1.

    Returns:
        The bound on Φ(W(0)) = ½‖y − u(0)‖².

    >>> initial_loss_bound(10, 1.0, delta=0.1)
    100.0
    """
    check_bound(delta, n=n)
    check_not_negative(scale=scale)
    return n * (1 + scale**2) / (2 * delta)


def deviation_bound(n: int, width: int, *, scale: float, smallest: float, delta: float) -> float:
    """√nκ/δ + n^{7/2}/(√m λ₀² κ δ²), the error of eq. (8) as the last display of Theorem 4.1's proof gives it.

    The constants of its O(·) are one; `smallest` is λ₀ = λ_min(H∞).
    """
    check_bound(delta, n=n, width=width, scale=scale, smallest=smallest)
    return math.sqrt(n) * scale / delta + n**3.5 / (math.sqrt(width) * smallest**2 * scale * delta**2)


def required_width(n: int, *, scale: float, smallest: float, delta: float, epsilon: float | None = None) -> float:
    """The width a theorem asks for: Theorem 3.1's n⁶/(λ₀⁴κ²δ³), or, with ε, Theorem 4.1's n⁷/(λ₀⁴κ²δ⁴ε²)."""
    check_bound(delta, n=n, scale=scale, smallest=smallest, epsilon=1.0 if epsilon is None else epsilon)
    if epsilon is None:
        return n**6 / (smallest**4 * scale**2 * delta**3)
    return n**7 / (smallest**4 * scale**2 * delta**4 * epsilon**2)
