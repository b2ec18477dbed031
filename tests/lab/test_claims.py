import math

import pytest

from offtangent.lab import Claim
from offtangent.lab.claims import Verdict
from offtangent.lab.statistics import Interval

WORDS = {"source": "Theorem 1", "statement": "s", "measured": "m"}


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1.0, Verdict.HOLDS),
        (1.1, Verdict.FAILS),
        (Interval(0.5, 0.0, 1.0), Verdict.HOLDS),
        (Interval(0.5, 0.0, 1.1), Verdict.FAILS),
        (-math.inf, Verdict.HOLDS),
        (math.nan, Verdict.FAILS),
        (Interval(0.5, math.nan, math.nan), Verdict.FAILS),
    ],
)
def test_at_most_wants_the_whole_interval_below(value, verdict):
    assert Claim.at_most(value, 1.0, **WORDS).verdict == verdict


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1.0, Verdict.HOLDS),
        (0.9, Verdict.FAILS),
        (Interval(2.0, 1.0, 3.0), Verdict.HOLDS),
        (Interval(2.0, 0.9, 3.0), Verdict.FAILS),
    ],
)
def test_at_least_wants_the_whole_interval_above(value, verdict):
    assert Claim.at_least(value, 1.0, **WORDS).verdict == verdict


def test_strict_claims_exclude_the_limit():
    assert Claim.at_most(1.0, 1.0, strict=True, **WORDS).verdict == Verdict.FAILS
    assert Claim.at_least(1.0, 1.0, strict=True, **WORDS).verdict == Verdict.FAILS


@pytest.mark.parametrize(("expected", "verdict"), [(1.0, Verdict.HOLDS), (3.0, Verdict.HOLDS), (3.1, Verdict.FAILS)])
def test_includes_wants_the_expected_value_in_the_interval(expected, verdict):
    assert Claim.includes(Interval(2.0, 1.0, 3.0), expected, **WORDS).verdict == verdict


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_outside_the_hypothesis_no_verdict_is_drawn(value):
    assert Claim.at_most(value, 1.0, inside=False, **WORDS).verdict == Verdict.OUTSIDE


def test_nan_fails_even_outside_the_hypothesis():
    claim = Claim.at_most(math.nan, 1.0, inside=False, **WORDS)
    assert claim.verdict == Verdict.FAILS
    assert "not a number" in claim.note


def test_a_misprint_is_refuted_only_if_the_numbers_say_so():
    assert Claim.at_most(2.0, 1.0, misprint=True, **WORDS).verdict == Verdict.REFUTED
    assert Claim.at_most(1.0, 1.0, misprint=True, **WORDS).verdict == Verdict.HOLDS


def test_what_is_not_testable_names_the_profile_that_tests_it():
    claim = Claim.not_testable(source="Theorem 1", statement="s", profile="paper", why="Too small.")
    assert claim.verdict == Verdict.UNTESTABLE
    assert "profile paper" in claim.note
    assert claim.number == "–"


def test_a_number_is_shown_with_its_interval():
    assert Claim.at_most(Interval(0.5, 0.25, 0.75), 1.0, **WORDS).number == "0.5 [0.25, 0.75]"
    assert Claim.at_most(0.5, 1.0, **WORDS).expected == "≤ 1"


@pytest.mark.parametrize(
    ("interval", "exponent", "verdict"),
    [
        (Interval(-0.3, -0.4, -0.2), -0.25, "holds"),
        (Interval(-0.6, -0.7, -0.5), -0.25, "holds"),
        (Interval(-0.1, -0.2, -0.05), -0.25, "fails"),
        (Interval(-0.2, -0.6, 0.2), -0.25, "not testable at this size"),
        (Interval(0.4, -0.26, 1.1), -0.25, "not testable at this size"),
        (Interval(0.4, 0.1, 1.1), -0.25, "fails"),
        (Interval(0.0, -0.1, 0.1), 0.0, "holds"),
        (Interval(0.2, 0.1, 0.3), 0.0, "fails"),
    ],
)
def test_a_bound_on_a_slope_holds_fails_or_says_nothing(interval, exponent, verdict):
    claim = Claim.no_slower(interval, exponent, source="Lemma 1", statement="it falls", measured="slope")
    assert claim.verdict == verdict


@pytest.mark.parametrize(
    ("interval", "verdict", "told"),
    [
        (Interval(-0.2, -0.3, -0.1), "holds", True),
        (Interval(-0.2, -0.25, -0.15), "holds", True),  # just
        (Interval(-0.3, -0.4, -0.2), "holds", False),  # nothing to excuse
        (Interval(-0.2, -0.24, -0.16), "fails", False),
    ],
)
def test_a_slope_above_its_exponent_by_less_than_its_interval_is_not_contradicted_and_told(interval, verdict, told):
    claim = Claim.no_slower(interval, -0.25, **WORDS, note="More.")
    assert claim.verdict == verdict
    assert claim.note == ("Not contradicted: the interval holds the exponent. More." if told else "More.")
