"""A statement of a paper next to what was measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from offtangent.lab.hypotheses import Hypothesis, unmet
from offtangent.lab.statistics import Interval

Kind = Literal["claim", "identity"]
Reason = Literal["size", "data", "device"]
WANTING: Mapping[Reason, str] = {
    "size": "it takes other sizes than these",
    "data": "it takes data, or seeds, that are not here",
    "device": "it takes another device than this one",
}


class Verdict(StrEnum):
    """What a measurement says about a statement. Only `FAILS` makes a run fail.

    Attributes:
        HOLDS: The measured value is as the statement says, and every hypothesis of it is met.
        CONSTANTS: So it is where constants of the hypotheses, which the paper does not give, are taken as 1.
        FAILS: It is not, or it is not a number.
        REFUTED: It is not, and the statement is a known misprint; the corrected form is a claim of its own.
        OUTSIDE: It was measured where the theorem promises nothing.
        UNTESTABLE: It was measured, and these sizes are too small to tell.
        NOT_RUN: It was not measured: the sizes, the data or the device that it takes are not here.

    >>> Claim.at_most(0.5, 1, source="Lemma 1", statement="$x ≤ 1$", measured="x").verdict is Verdict.HOLDS
    True
    """

    HOLDS = "holds"
    CONSTANTS = "holds with constants 1"
    FAILS = "fails"
    REFUTED = "refuted as printed"
    OUTSIDE = "outside the hypothesis"
    UNTESTABLE = "not testable at this size"
    NOT_RUN = "not run here"


HELD = (Verdict.HOLDS, Verdict.CONSTANTS)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper next to what was measured: one row of an experiment's table of claims.

    The classmethods compare and draw the verdict. A measured `Interval` holds when all of it lies on the right side.
    Where a hypothesis is not met, the number is shown, and no verdict is drawn from it. A value that is NaN fails,
    whatever is expected.

    Attributes:
        source: Where the paper says it, such as "Theorem 4.1, eq. (8)".
        statement: The inequality or ordering, in words and $formulas$.
        measured: What the number is, and over which seeds.
        verdict: What the measurement says about the statement.
        value: The measured number, None where there is none.
        interval: The ends of its confidence interval, None where it has none.
        expected: What is expected of the number, such as "≤ 1".
        note: What else is to be said.
        met: Whether the measured value satisfies what is expected, whatever the verdict.
        hypotheses: What the statement asks for, each next to what was measured on.
        kind: "identity" where the statement follows from the measured quantities by algebra, so that it can only fail
            by a mistake of ours; a report shows identities apart and does not count them.

    >>> words = {"source": "Theorem 4.1", "statement": "the error falls", "measured": "slope over ten seeds"}
    >>> claim = Claim.at_most(-0.5, 0, **words)
    >>> claim.verdict.value, claim.number, claim.wanted
    ('holds', '-0.5', '≤ 0')
    """

    source: str
    statement: str
    measured: str
    verdict: Verdict
    value: float | None = None
    interval: tuple[float, float] | None = None
    expected: str = ""
    note: str = ""
    met: bool | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    kind: Kind = "claim"

    @classmethod
    def at_most(
        cls, value: float | int | Interval, limit: float | int, *, strict: bool = False, **words: Any
    ) -> "Claim":
        """Claim that the measured value is at most the limit.

        Args:
            value: The measured number, or an interval, all of which has to satisfy it.
            limit: The limit.
            strict: Whether the value has to lie below the limit.
            **words: `source`, `statement` and `measured`; where there is one, a `note`; the `hypotheses` of the
                statement; `misprint=True` where it is known to be wrong as printed; `identity=True` where it follows
                by algebra from what is measured.

        Returns:
            The claim, with its verdict.
        """
        return cls._compare(value, limit, "<" if strict else "≤", **words)

    @classmethod
    def at_least(
        cls, value: float | int | Interval, limit: float | int, *, strict: bool = False, **words: Any
    ) -> "Claim":
        """Claim that the measured value is at least the limit.

        Args:
            value: The measured number, or an interval, all of which has to satisfy it.
            limit: The limit.
            strict: Whether the value has to lie above the limit.
            **words: As of `at_most`.

        Returns:
            The claim, with its verdict.
        """
        return cls._compare(value, limit, ">" if strict else "≥", **words)

    @classmethod
    def includes(cls, value: Interval, expected: float | int, **words: Any) -> "Claim":
        """Claim that the interval of the measured value contains the expected one.

        Args:
            value: The measured interval.
            expected: The number that it is to contain, its ends counted in.
            **words: As of `at_most`.

        Returns:
            The claim, with its verdict.
        """
        holds = value.low <= expected <= value.high
        return cls._judge(value, holds, f"{expected:.4g}", **words)

    @classmethod
    def no_slower(cls, slope: Interval, exponent: float | int, **words: Any) -> "Claim":
        """Claim that a quantity is O(size^exponent), which bounds the slope of its power law from above.

        It is contradicted when all of the slope's interval lies above the exponent. A slope whose interval holds both a
        falling exponent and zero says nothing: it is not testable at this size. One that lies above the exponent by
        less than its interval does not contradict it, and the note says so.

        Args:
            slope: The measured slope in log-log coordinates, as `slope_interval` finds it.
            exponent: The exponent of the statement.
            **words: As of `at_most`.

        Returns:
            The claim, with its verdict.
        """
        claim = cls._judge(slope, slope.low <= exponent, f"≤ {exponent:.4g}", **words)
        if slope.low <= exponent < slope.value:
            claim = replace(claim, note=f"Not contradicted: the interval holds the exponent. {claim.note}".strip())
        if exponent < 0 <= slope.high and claim.verdict in HELD:
            wide = "The interval is too wide to tell this exponent from zero."
            return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{wide} {claim.note}".strip())
        return claim

    @classmethod
    def not_run(cls, *, source: str, statement: str, reason: Reason, why: str, profile: str) -> "Claim":
        """Say of a statement that it was not measured here, for which reason, and which profile does it.

        Args:
            source: Where the paper says it.
            statement: The statement, in words and $formulas$.
            reason: What it takes more of: "size", "data" or "device".
            why: What is missing here, a sentence.
            profile: The profile that measures it.

        Returns:
            A claim without a measured value.
        """
        note = f"Not run because {WANTING[reason]}. {why} Tested in profile {profile}."
        return cls(source, statement, "", Verdict.NOT_RUN, note=note)

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
        hypotheses: Iterable[Hypothesis] = (),
        misprint: bool = False,
        identity: bool = False,
    ) -> "Claim":
        number, interval = (value.value, (value.low, value.high)) if isinstance(value, Interval) else (value, None)
        hypotheses = tuple(hypotheses)
        given = all(one.given for one in hypotheses)
        if math.isnan(number):
            verdict, note = Verdict.FAILS, f"The measured value is not a number. {note}".strip()
        elif unmet(hypotheses):
            verdict = Verdict.OUTSIDE
        elif holds:
            verdict = Verdict.HOLDS if given else Verdict.CONSTANTS
        else:
            verdict = Verdict.REFUTED if misprint else Verdict.FAILS
            note = (
                note if given or misprint else f"With larger constants this lies outside the hypothesis. {note}".strip()
            )
        kind: Kind = "identity" if identity else "claim"
        return cls(
            source, statement, measured, verdict, float(number), interval, expected, note, holds, hypotheses, kind
        )

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

    @property
    def conditions(self) -> str:
        """The hypotheses in a sentence: those that are not met, with both numbers, and then the others."""
        outside = unmet(self.hypotheses)
        parts = (("Outside: ", outside), ("Inside: ", tuple(one for one in self.hypotheses if one.met)))
        return " ".join(f"{head}{'; '.join(map(str, those))}." for head, those in parts if those)
