import math

import pytest

from offtangent._errors import InputError
from offtangent.lab import Claim
from offtangent.lab.claims import Verdict
from offtangent.lab.hypotheses import Hypothesis, unmet
from offtangent.lab.statistics import Interval

WORDS = {"source": "Theorem 1", "statement": "s", "measured": "m"}
WIDE = Hypothesis("width m", 1000, "≥", 100, "Theorem 1")
NARROW = Hypothesis("width m", 10, "≥", 100, "Theorem 1")
POLYNOMIAL = Hypothesis("width m", 1000, "≥", 100, "Theorem 1", given=False)


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


def test_nan_fails_even_outside_the_hypothesis():
    claim = Claim.at_most(math.nan, 1.0, hypotheses=(NARROW,), **WORDS)
    assert claim.verdict == Verdict.FAILS
    assert "not a number" in claim.note


def test_a_misprint_is_refuted_only_if_the_numbers_say_so():
    assert Claim.at_most(2.0, 1.0, misprint=True, **WORDS).verdict == Verdict.REFUTED
    assert Claim.at_most(1.0, 1.0, misprint=True, **WORDS).verdict == Verdict.HOLDS


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_outside_a_hypothesis_no_verdict_is_drawn_and_both_numbers_are_told(value):
    claim = Claim.at_most(value, 1.0, hypotheses=(WIDE, NARROW), **WORDS)
    assert claim.verdict == Verdict.OUTSIDE
    assert claim.conditions == (
        "Outside: width m = 10, asked ≥ 100 (Theorem 1). Inside: width m = 1000, asked ≥ 100 (Theorem 1)."
    )


def test_inside_all_hypotheses_a_claim_holds_or_fails():
    assert Claim.at_most(0.0, 1.0, hypotheses=(WIDE,), **WORDS).verdict == Verdict.HOLDS
    assert Claim.at_most(2.0, 1.0, hypotheses=(WIDE,), **WORDS).verdict == Verdict.FAILS
    assert Claim.at_most(2.0, 1.0, hypotheses=(WIDE,), misprint=True, **WORDS).verdict == Verdict.REFUTED


def test_a_hypothesis_whose_constant_is_not_given_is_told_and_counted_apart():
    claim = Claim.at_most(0.0, 1.0, hypotheses=(WIDE, POLYNOMIAL), **WORDS)
    assert claim.verdict == Verdict.CONSTANTS
    assert "its constant taken as 1, not given" in claim.conditions
    failed = Claim.at_most(2.0, 1.0, hypotheses=(POLYNOMIAL,), **WORDS)
    assert failed.verdict == Verdict.FAILS
    assert failed.note == "With larger constants this lies outside the hypothesis."


@pytest.mark.parametrize("relation", ["≤", "<", "≥", ">", "="])
def test_what_is_not_a_number_meets_no_hypothesis(relation):
    for value, limit in ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)):
        assert unmet([Hypothesis("δ", value, relation, limit, "Theorem 1")])


@pytest.mark.parametrize(
    ("value", "relation", "limit", "met"),
    [(1, "≤", 1, True), (1, "<", 1, False), (1, "≥", 1, True), (1, ">", 1, False), (1, "=", 1, True),
     ("relu", "=", "relu", True), ("relu", "=", "softplus", False)],
)  # fmt: skip
def test_a_hypothesis_compares_its_value_with_its_limit(value, relation, limit, met):
    assert Hypothesis("it", value, relation, limit, "Theorem 1").met is met


@pytest.mark.parametrize(("value", "relation", "limit"), [("relu", "≤", "tanh"), ("relu", "=", 1.0), (1.0, "≈", 1.0)])
def test_a_hypothesis_that_compares_nothing_is_refused(value, relation, limit):
    with pytest.raises((InputError, TypeError), match=r"expected one of|can only be equal|Actual value: '≈'"):
        Hypothesis("it", value, relation, limit, "Theorem 1")


def test_an_identity_is_marked_as_one():
    assert Claim.at_most(0.0, 1.0, identity=True, **WORDS).kind == "identity"
    assert Claim.at_most(0.0, 1.0, **WORDS).kind == "claim"


@pytest.mark.parametrize(("reason", "told"), [("size", "sizes"), ("data", "data"), ("device", "device")])
def test_what_is_not_run_names_its_reason_and_the_profile_that_tests_it(reason, told):
    claim = Claim.not_run(source="Theorem 1", statement="s", reason=reason, profile="paper", why="Too small.")
    assert claim.verdict == Verdict.NOT_RUN
    assert told in claim.note
    assert "Too small. Tested in profile paper." in claim.note
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
