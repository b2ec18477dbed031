"""The hypotheses of Arora et al.'s theorems as data: by hand, and what follows from one that is not met."""

import math

import pytest

from offtangent.lab import Claim
from offtangent.lab.hypotheses import unmet
from offtangent.papers.arora._conditions import often, or_too_wide, theorem_31, theorem_41, theorem_51

WORDS = {"source": "Theorem", "statement": "it holds", "measured": "share"}


def test_theorem_31_asks_for_the_width_rate_and_scale_worked_out_by_hand():
    """2⁶/(2⁻⁴·10⁻³) = 1 024 000 neurons, and η = ½/4."""
    exact = {"width": 1_024_001, "scale": 1.0, "smallest": 0.5, "rate": 0.125}
    assert unmet(theorem_31(2, **exact)) == ()
    for wrong, name in (({"width": 1_023_000}, "width m"), ({"rate": 0.13}, "step size η")):
        assert [one.name for one in unmet(theorem_31(2, **(exact | wrong)))] == [name]
    assert [one.name for one in unmet(theorem_31(2, **(exact | {"scale": 1.1})))] == ["initial size κ"]
    assert [one.name for one in unmet(theorem_31(2, **(exact | {"smallest": 0.0})))] == ["λ₀ = λ_min(H∞)"]


def test_theorem_41_asks_for_more_neurons_than_can_be_had_for_two_inputs():
    """2⁷/(2⁻⁴·κ²·10⁻⁴·0.3²) with κ = 0.03/√2, and 16/(0.1²·10⁻⁴) for one input at ε = 1."""
    has = {"scale": 0.03 / math.sqrt(2), "smallest": 0.5, "rate": 0.125}
    (width,) = unmet(theorem_41(2, width=1e11, epsilon=0.3, **has))
    assert width.limit == pytest.approx(5.0568e11, rel=1e-4)
    assert unmet(theorem_41(1, width=16_000_000, scale=0.1, smallest=0.5, rate=0.5, epsilon=1.0)) == ()
    large = unmet(theorem_41(1, width=16_000_000, scale=0.2, smallest=0.5, rate=0.5, epsilon=1.0))
    assert [one.name for one in large] == ["initial size κ"]  # and no width makes up for it


def test_constants_that_the_paper_hides_are_marked_and_do_not_matter_in_the_limit():
    asked = theorem_51(10, width=1e9, scale=1e-3, smallest=0.1)
    assert [one.given for one in asked] == [False, False, True]
    limit = theorem_51(10, width=math.inf, scale=0.0, smallest=0.1)
    assert unmet(limit) == ()
    assert all(one.given for one in limit)
    assert [one.name for one in unmet(theorem_51(10, width=math.inf, scale=1e-9, smallest=0.1))] == ["initial size κ"]


def test_every_limit_is_finite_or_a_word():
    """They are written as JSON, which has no infinity."""
    everything = [
        *theorem_31(2, width=1, scale=1.0, smallest=0.5, rate=0.1),
        *theorem_41(2, width=1, scale=1.0, smallest=0.5, rate=0.1, epsilon=1.0),
        *theorem_51(60, width=math.inf, scale=0.0, smallest=0.1),
        *theorem_51(2000, width=10_000, scale=0.01, smallest=0.02),
    ]
    assert all(isinstance(end, str) or math.isfinite(end) for one in everything for end in (one.value, one.limit))


@pytest.mark.parametrize(
    ("successes", "trials", "verdict"),
    [(40, 40, "holds"), (36, 36, "holds"), (35, 35, "not testable at this size"), (10, 40, "fails"), (35, 40, "fails")],
)
def test_a_probability_of_nine_tenths_takes_36_networks_and_is_not_rounded_up(successes, trials, verdict):
    assert often(successes, trials, **WORDS).verdict == verdict


def test_a_number_on_the_wrong_side_fails_however_wide_its_interval():
    assert or_too_wide(Claim.at_least(0.5, 1, **WORDS), right=False, what="ten").verdict == "fails"
    assert or_too_wide(Claim.at_least(2.0, 1, **WORDS), right=True, what="ten").verdict == "holds"
