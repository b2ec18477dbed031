"""What the judgements of this paper's experiments share: losses that are promised within a number of steps."""

import math
from dataclasses import replace

from offtangent.lab import Claim
from offtangent.lab.claims import Verdict

DELTA = 0.1  # the probability with which Theorems 1, 3, 4, 5 and 6 may fail, as it is judged


def within(claim: Claim, *, steps: float | int, promised: float | int) -> Claim:
    """Judge a loss that is promised within a number of steps after fewer of them.

    Reached, it confirms the statement. Missed, it contradicts nothing: the claim is not testable at this size, and
    both numbers are told. After all of the steps that are promised the claim stays as it is.

    Args:
        claim: The claim that so large a share of runs has reached the loss.
        steps: After how many steps it was looked at.
        promised: Within how many the theorem promises it, its constant taken as 1.

    Returns:
        The claim, with its verdict.
    """
    missed = claim.verdict is Verdict.FAILS and claim.value is not None and not math.isnan(claim.value)
    if not missed or not steps < promised:
        return claim
    said = claim.note.removeprefix("With larger constants this lies outside the hypothesis.")
    note = f"{steps:.2g} steps were taken, and the theorem has {promised:.2g}, its constant as one. {said.strip()}"
    return replace(claim, verdict=Verdict.UNTESTABLE, note=note.strip())


def told_apart(claim: Claim, limit: float) -> Claim:
    """Judge a probability that lies below its bound by less than its interval: not testable with so few draws.

    Args:
        claim: A claim that an interval lies at or below the limit.
        limit: The bound.

    Returns:
        The claim, with its verdict.
    """
    if claim.verdict is not Verdict.FAILS or claim.interval is None or claim.interval[0] > limit:
        return claim
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"The interval holds the bound. {claim.note}".strip())
