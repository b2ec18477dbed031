"""What the theorems ask for, next to what a cell has: the hypotheses that the claims of all experiments here share.

Inputs have unit length and labels are ±1 in every cell. Constants hidden in the paper's O(·), Ω(·) and poly(·) are
taken as one and marked so.
"""

import math
from dataclasses import replace
from typing import Any

from offtangent.lab import Claim
from offtangent.lab.claims import Verdict
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval
from offtangent.theory.arora.prescriptions import prescribe
from offtangent.theory.arora.widths import required_width

DELTA = 0.1  # the probability of failure at which every statement is judged
# A rule that was written after a record is judged on networks and draws that nobody had seen by then.
SEEN = 2  # key of the networks of the first records
NEW = 1000  # the first key, seed or draw of those made since


def positive(smallest: float) -> Hypothesis:
    """λ₀ > 0."""
    return Hypothesis("λ₀ = λ_min(H∞)", smallest, ">", 0, "Section 3.2")


def theorem_31(
    n: int, *, width: float | int, scale: float, smallest: float, rate: float, delta: float = DELTA
) -> tuple[Hypothesis, ...]:
    """Theorem 3.1: m = Ω(n⁶/(λ₀⁴κ²δ³)), η = O(λ₀/n²), κ ≤ 1, λ₀ > 0."""
    if not smallest > 0:
        return (positive(smallest),)
    asked = required_width(n, scale=scale, smallest=smallest, delta=delta)
    return (
        Hypothesis("width m", width, "≥", asked, f"Theorem 3.1: n⁶/(λ₀⁴κ²δ³), δ = {delta:g}", given=False),
        _rate(n, smallest, rate, "Theorem 3.1"),
        Hypothesis("initial size κ", scale, "≤", 1, "eq. (1)"),
        positive(smallest),
    )


def theorem_41(
    n: int, *, width: float | int, scale: float, smallest: float, rate: float, epsilon: float, delta: float = DELTA
) -> tuple[Hypothesis, ...]:
    """Theorem 4.1: κ = O(εδ/√n), m = Ω(n⁷/(λ₀⁴κ²δ⁴ε²)), η = O(λ₀/n²), λ₀ > 0.

    A κ above what is asked cannot be made up for by width: the width shown is that of the κ asked.
    """
    if not smallest > 0:
        return (positive(smallest),)
    at = f"δ = {delta:g}, ε = {epsilon:g}"
    largest = prescribe("4.1", n, smallest=smallest, delta=delta, epsilon=epsilon).scale
    asked = required_width(n, scale=min(scale, largest), smallest=smallest, delta=delta, epsilon=epsilon)
    return (
        Hypothesis("width m", width, "≥", asked, f"Theorem 4.1: n⁷/(λ₀⁴κ²δ⁴ε²), {at}", given=False),
        Hypothesis("initial size κ", scale, "≤", largest, f"Theorem 4.1: εδ/√n, {at}", given=False),
        _rate(n, smallest, rate, "Theorem 4.1"),
        positive(smallest),
    )


def theorem_51(
    n: int, *, width: float | int, scale: float, smallest: float, delta: float = DELTA
) -> tuple[Hypothesis, ...]:
    """Theorem 5.1: κ = O(λ₀δ/n), m ≥ κ⁻²poly(n, 1/λ₀, 1/δ), λ₀ > 0; the poly is what closes its proof.

    In the limit of an infinite width and κ = 0 no constant of them matters.
    """
    if not smallest > 0:
        return (positive(smallest),)
    if math.isinf(width):
        limit = Hypothesis(
            "width m", "infinite", "=", "infinite", "Theorem 5.1: m ≥ κ⁻²poly(n, 1/λ₀, 1/δ), in the limit"
        )
        return limit, Hypothesis("initial size κ", scale, "≤", 0, "Theorem 5.1, in the limit"), positive(smallest)
    asked = prescribe("5.1", n, smallest=smallest, delta=delta)
    return (
        Hypothesis(
            "width m", width, "≥", asked.width, f"Theorem 5.1: κ⁻²poly(n, 1/λ₀, 1/δ), δ = {delta:g}", given=False
        ),
        Hypothesis("initial size κ", scale, "≤", asked.scale, f"Theorem 5.1: λ₀δ/n, δ = {delta:g}", given=False),
        positive(smallest),
    )


def constant_one(source: str) -> Hypothesis:
    """What a conclusion hides in its O(·) is taken as one."""
    return Hypothesis("constant of O(·)", 1, "=", 1, source, given=False)


def _rate(n: int, smallest: float, rate: float, source: str) -> Hypothesis:
    return Hypothesis("step size η", rate, "≤", smallest / n**2, f"{source}: λ₀/n²", given=False)


def often(successes: int, trials: int, *, delta: float = DELTA, **words: Any) -> Claim:
    """Claim that what happens with probability at least 1 − δ does, by Clopper and Pearson's 95 % interval."""
    share = fraction_interval(successes, trials)
    return or_too_wide(Claim.at_least(share, 1 - delta, **words), share.value >= 1 - delta, f"{trials} networks")


def or_too_wide(claim: Claim, right: bool, what: str) -> Claim:
    """The claim; where the number is `right` and its interval alone is not, "not testable at this size"."""
    if claim.verdict is not Verdict.FAILS or not right:
        return claim
    few = f"The interval of {what} is too wide to tell."
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{few} {claim.note}")
