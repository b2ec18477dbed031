"""What the theorems ask for: by hand, and back through the bounds they come from."""

import math

import pytest

from offtangent._errors import InputError
from offtangent.theory import generalisation_bound
from offtangent.theory.arora.prescriptions import prescribe
from offtangent.theory.arora.widths import required_width


def test_theorems_31_and_41_by_hand():
    found = prescribe("3.1", 2, smallest=0.5, delta=0.5)
    assert (found.width, found.scale, found.rate) == (2**13, 1.0, 0.125)  # 2⁶·2⁴·2³
    assert found.steps == pytest.approx(math.log(4) / 0.0625)
    found = prescribe("4.1", 4, smallest=0.5, delta=0.5, epsilon=0.5)
    assert found.scale == 0.125  # εδ/√n
    assert found.width == 2**14 * 2**4 * 2**6 * 2**4 * 2**2


def test_theorem_51s_width_is_the_one_at_which_its_proof_closes():
    n, smallest, delta = 100, 0.05, 0.1
    found = prescribe("5.1", n, smallest=smallest, delta=delta)
    assert found.scale == pytest.approx(smallest * delta / n)
    for factor, enough in ((1.001, True), (0.999, False)):
        bound = generalisation_bound(
            n / smallest, n, smallest=smallest, delta=delta, width=factor * found.width, scale=found.scale
        )
        assert (bound.rounding + bound.initial + bound.of_width <= 4 / math.sqrt(n)) is enough
    assert found.width >= required_width(n, scale=found.scale, smallest=smallest, delta=delta)


def test_the_widths_are_astronomic_and_ordered():
    asked = {"smallest": 0.01535, "delta": 0.1}
    first = prescribe("3.1", 10_000, **asked, scale=0.01).width
    second = prescribe("4.1", 10_000, **asked, epsilon=10.0, scale=0.01).width
    third = prescribe("5.1", 10_000, **asked).width
    assert 1e30 < first < second < third < math.inf


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"theorem": "6.1"}, "'3.1', '4.1' and '5.1'"),
        ({"theorem": "4.1"}, "epsilon is the accuracy"),
        ({"theorem": "3.1", "epsilon": 0.1}, "epsilon is the accuracy"),
        ({"theorem": "3.1", "scale": 2.0}, "at most 1"),
        ({"theorem": "5.1", "scale": 0.5}, "at most"),
        ({"theorem": "3.1", "delta": 0.0}, "probability of failure"),
        ({"theorem": "4.1", "epsilon": -1.0}, "positive epsilon"),
    ],
)
def test_hypotheses_that_no_theorem_has_are_refused(words, match):
    with pytest.raises(InputError, match=match):
        prescribe(**({"n": 10, "smallest": 0.1, "delta": 0.1} | words))
