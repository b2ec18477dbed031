"""A statement of a paper next to what was measured."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from offtangent.lab.statistics import Interval


class Verdict(StrEnum):
    """What a measurement says about a statement. Only `FAILS` makes a run fail."""

    HOLDS = "holds"
    FAILS = "fails"
    REFUTED = "refuted as printed"  # a known misprint; the corrected form is a claim of its own
    OUTSIDE = "outside the hypothesis"  # measured where the theorem promises nothing
    UNTESTABLE = "not testable at this size"


@dataclass(frozen=True)
class Claim:
    """One row of the claims table.

    A measured `Interval` holds when all of it lies on the right side. `inside=False` says that the theorem's
    hypothesis is not met where this was measured: the number is shown, and no verdict is drawn from it.
    """

    source: str  # "Theorem 4.1, eq. (8)"
    statement: str  # the inequality or ordering, in words and $formulas$
    measured: str  # what the number is, and over which seeds
    verdict: Verdict
    value: float | None = None
    interval: tuple[float, float] | None = None
    expected: str = ""
    note: str = ""
    met: bool | None = None  # whether the measured value satisfies what is expected, whatever the verdict

    @classmethod
    def at_most(
        cls, value: float | int | Interval, limit: float | int, *, strict: bool = False, **words: Any
    ) -> "Claim":
        """The measured value is at most (or, `strict`, below) the limit."""
        return cls._compare(value, limit, "<" if strict else "≤", **words)

    @classmethod
    def at_least(
        cls, value: float | int | Interval, limit: float | int, *, strict: bool = False, **words: Any
    ) -> "Claim":
        """The measured value is at least (or, `strict`, above) the limit."""
        return cls._compare(value, limit, ">" if strict else "≥", **words)

    @classmethod
    def includes(cls, value: Interval, expected: float | int, **words: Any) -> "Claim":
        """The interval of the measured value contains the expected one."""
        holds = value.low <= expected <= value.high
        return cls._judge(value, holds, f"{expected:.4g}", **words)

    @classmethod
    def no_slower(cls, slope: Interval, exponent: float | int, **words: Any) -> "Claim":
        """O(size^exponent) bounds a slope from above: contradicted when all of its interval lies above the exponent.

        A slope whose interval holds both a falling exponent and zero says nothing: it is not testable at this size. One
        that lies above the exponent by less than its interval does not contradict it, and the note says so.
        """
        claim = cls._judge(slope, slope.low <= exponent, f"≤ {exponent:.4g}", **words)
        if slope.low <= exponent < slope.value:
            claim = replace(claim, note=f"Not contradicted: the interval holds the exponent. {claim.note}".strip())
        if exponent < 0 <= slope.high and claim.verdict is Verdict.HOLDS:
            wide = "The interval is too wide to tell this exponent from zero."
            return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{wide} {claim.note}".strip())
        return claim

    @classmethod
    def not_testable(cls, *, source: str, statement: str, profile: str, why: str) -> "Claim":
        """Needs more than this profile has; names the profile that tests it."""
        return cls(source, statement, "", Verdict.UNTESTABLE, note=f"{why} Tested in profile {profile}.")

    @classmethod
    def _compare(cls, value: float | int | Interval, limit: float | int, sign: str, **words: Any) -> "Claim":
        low, high = (value.low, value.high) if isinstance(value, Interval) else (float(value), float(value))
        holds = {"≤": high <= limit, "<": high < limit, "≥": low >= limit, ">": low > limit}[sign]
        return cls._judge(value, holds, f"{sign} {limit:.4g}", **words)

    @classmethod
    def _judge(
        cls,
        value: float | int | Interval,
        holds: bool,
        expected: str,
        *,
        source: str,
        statement: str,
        measured: str,
        note: str = "",
        inside: bool = True,
        misprint: bool = False,
    ) -> "Claim":
        verdict = Verdict.HOLDS if holds else Verdict.REFUTED if misprint else Verdict.FAILS
        number, interval = (value.value, (value.low, value.high)) if isinstance(value, Interval) else (value, None)
        if math.isnan(number):
            verdict, note = Verdict.FAILS, f"The measured value is not a number. {note}".strip()
        elif not inside:
            verdict = Verdict.OUTSIDE
        return cls(source, statement, measured, verdict, float(number), interval, expected, note, holds)

    @property
    def wanted(self) -> str:
        """What is expected, for a table; outside the hypothesis, where no verdict tells, with whether it is met."""
        if self.verdict is not Verdict.OUTSIDE:
            return self.expected or "–"
        missed = "not met" if self.interval is None else "not met by all of the interval"
        return f"{self.expected} ({'met all the same' if self.met else missed})"

    @property
    def number(self) -> str:
        """The measured value with its interval, for a table."""
        if self.value is None:
            return "–"
        if self.interval is None:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.interval[0]:.4g}, {self.interval[1]:.4g}]"
