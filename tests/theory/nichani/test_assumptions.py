"""Assumptions 2 and 3 of Nichani et al. against suprema by hand, symmetry, and Gauss–Hermite's closed forms."""

import functools
import math
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.special import activation
from offtangent.special.activations import shifted
from offtangent.theory.nichani.assumptions import bounded_assumption, harmonic_assumption

bounded = functools.cache(bounded_assumption)
harmonic = functools.cache(harmonic_assumption)


def smaller(z):
    return 0.5 * jnp.sin(z)


@pytest.mark.parametrize(
    ("sigma", "suprema"),
    [
        ("sigmoid(z − 1)", (1, 1 / 4, math.sqrt(3) / 18)),
        ("tanh", (1, 1, 4 / math.sqrt(27))),
        ("erf", (1, 2 / math.sqrt(math.pi), math.sqrt(8 / (math.pi * math.e)))),
        ("softplus", (np.inf, 1, 1 / 4)),
        ("quadratic", (np.inf, np.inf, 2)),
        (smaller, (0.5, 0.5, 0.5)),
    ],
)
def test_the_suprema_are_those_by_hand(sigma, suprema):
    found = bounded(sigma)
    assert [part.supremum for part in found.parts] == pytest.approx(suprema, rel=1e-9)


@pytest.mark.parametrize(
    ("sigma", "holds", "allowed"),
    [("sigmoid(z − 1)", False, True), ("tanh", False, True), ("erf", False, False), (smaller, True, True)],
)
def test_the_paper_s_sigmoid_meets_assumption_2_only_with_less_or_equal(sigma, holds, allowed):
    assert (bounded(sigma).holds, bounded(sigma).allowed) == (holds, allowed)


def test_a_supremum_between_grid_points_and_at_zero_is_found():
    assert bounded(shifted("tanh", 0.123456)).first.at == pytest.approx(0.123456, abs=1e-6)
    assert bounded("tanh").first.at == 0


def test_relu_has_no_second_derivative_to_bound():
    part = bounded("relu").second
    assert part.missing
    assert not part.allowed
    assert part.supremum == np.inf


def test_a_jump_that_nobody_named_is_found():
    part = bounded(activation(lambda z: 0.1 * jnp.abs(z - 2.0) / (1 + z**2))).second
    assert part.missing
    assert part.at == pytest.approx(2, abs=1e-3)


@pytest.mark.parametrize(
    ("sigma", "first", "second"),
    [
        ("sigmoid", (1, 3, 5), (0, 2, 4)),  # σ' is even, σ'' odd
        ("tanh", (1, 3, 5), (0, 2, 4)),
        ("softplus", (2, 4), (1, 3, 5)),  # σ' − 1/2 is odd
        ("quadratic", (0, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
        ("sigmoid(z − 1)", (), ()),
        ("sin(z − 1)", (), ()),
    ],
)
@pytest.mark.parametrize("dim", [3, 100])
def test_the_degrees_that_symmetry_kills_fail_and_no_others(sigma, first, second, dim):
    found = harmonic(sigma, dim=dim, degree=5)
    assert (found.first.failures, found.second.failures) == (first, second)
    assert found.holds == (not first and not second)


def test_the_limit_is_that_of_a_gaussian():
    """For sin(z − b): E[cos(g − b) h_k(g)] has squares cos²b/k! or sin²b/k! over e, alternating."""
    found = harmonic("sin(z − 1)", dim=3, degree=5).first
    expected = [(math.sin(1) if k % 2 else math.cos(1)) ** 2 / math.factorial(k) / math.e for k in range(6)]
    np.testing.assert_allclose(found.limits, expected, rtol=1e-10)
    assert found.smallest == min(*found.limits, *found.energies)


def test_relu_fails_for_want_of_a_second_derivative():
    found = harmonic("relu", dim=10, degree=3)
    assert not found.second.holds
    assert found.second.missing == "σ'' is no function"
    assert found.first.failures == (2,)  # 1{z ≥ 0} − 1/2 is odd
    assert found.smallest == 0


def test_a_floor_of_ones_own_is_kept():
    strict = harmonic_assumption("sigmoid(z − 1)", dim=100, degree=3, least=5e-4)
    assert strict.first.failures == (3,)  # 3.6e-4, as the specification prints
    assert strict.second.failures == (3,)  # 4e-5


def test_a_report_says_what_fails_and_what_helps():
    text = str(harmonic("sigmoid", dim=100, degree=3))
    assert "does not meet Assumption 3" in text
    assert "fails for k = 1, 3" in text
    assert "shifted(activation, 1)" in text
    assert "shifted" not in str(harmonic("quadratic", dim=100, degree=5))  # which helps no polynomial
    assert "meets, with ≤ for <, Assumption 2" in str(bounded("sigmoid(z − 1)"))
    assert "none (σ'' is no function)" in str(bounded("relu"))


def test_results_survive_pickling():
    found = harmonic("sigmoid(z − 1)", dim=100, degree=5)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301
    assert pickle.loads(pickle.dumps(bounded("tanh"))) == bounded("tanh")  # noqa: S301


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 1, "degree": 2}, "dim ≥ 2"),
        ({"dim": 5, "degree": -1}, "degree=-1"),
        ({"dim": 5, "degree": 2, "least": -1.0}, "least=-1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        harmonic_assumption("tanh", **settings)
