"""Assumption A against constants by hand, and against activations made to break one part at one place."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.special import activation
from offtangent.special.activations import CATALOGUE, relu3
from offtangent.theory.bai_lee.assumptions import assumption_a

judged = functools.cache(assumption_a)
PLACE = 2.345678  # on no grid


def relu(z):
    return jnp.where(z < 0, 0, z)


def log_bend(t):
    """With second derivative log(1 + t²)."""
    return ((t**2 - 1) * jnp.log1p(t**2) + 4 * t * jnp.arctan(t) - 3 * t**2) / 2


@pytest.mark.parametrize(
    ("sigma", "constants"),
    [
        (relu3, (0.5, 1, 1)),
        (lambda z: 6 * relu3(z), (3, 6, 6)),
        (lambda z: relu(z) ** 3, (3, 6, 6)),  # the same by autodiff of a plain function
        (lambda z: z - jnp.sin(z), (0.5, 1, 1)),  # smooth, and σ' = 1 − cos t
        # σ' = t²/(1 + t²), σ'' = 2t/(1 + t²)², with its steepest point at zero
        (lambda z: z - jnp.arctan(z), (1, 2, 2)),
        # σ'' = log(1 + t²) has |σ''|/|t| largest at t = 1.98, and slope 1 there at t = 1
        (log_bend, (None, 0.804743, 1)),
    ],
)
def test_the_constants_are_those_by_hand(sigma, constants):
    found = assumption_a(sigma)
    assert found.holds
    assert found.allowed
    for part, constant in zip(found.parts, constants, strict=True):
        assert constant is None or part.constant == pytest.approx(constant, rel=2e-6)
    assert found.constant == max(part.constant for part in found.parts)


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("softplus", ("zero", "zero", "")),
        ("gelu", ("zero", "zero", "")),
        ("quadratic", ("zero", "zero", "")),
        ("tanh", ("zero", "", "")),
        ("sigmoid", ("zero", "", "")),
        ("erf", ("zero", "", "")),
        ("relu", ("zero", "t = 0", "t = 0")),
    ],
)
def test_the_catalogue_fails_where_sigma_s_derivatives_at_zero_say(name, fails):
    found = judged(name)
    assert tuple(part.fails_at for part in found.parts) == fails
    assert found.allowed == (name != "relu")
    assert ("footnote 2 allows it" in str(found)) == (name != "relu")


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "relu"])
def test_where_the_second_derivative_is_lipschitz_nothing_fails_far_out(name):
    """|σ''(t)| ≤ |σ''(0)| + C|t|, and so on: the bounds of the module's docstring, at |t| ≥ 1."""
    found = judged(name)
    slope, bend = (abs(float(activation(name).derivative(k)(0.0))) for k in (1, 2))
    C = found.lipschitz.constant
    assert found.second.far_out <= bend + C + 1e-6
    assert found.first.far_out <= slope + bend + C / 2 + 1e-6


def test_near_and_far_are_told_apart():
    softplus = judged("softplus").first
    assert softplus.near_zero == np.inf
    assert softplus.far_out == pytest.approx(1 / (1 + np.exp(-1)), rel=1e-12)  # σ'(1)/1²
    fourth = assumption_a(lambda z: z**4).second
    assert (fourth.near_zero, fourth.far_out, fourth.fails_at) == (12.0, np.inf, "infinity")
    both = assumption_a(lambda z: jnp.exp(z / 2))
    assert [part.fails_at for part in both.parts] == ["zero and infinity", "zero and infinity", "infinity"]
    assert not both.allowed


@pytest.mark.parametrize(
    ("sigma", "place"),
    [
        (lambda z: relu(z - PLACE) ** 2, PLACE),  # σ'' jumps, which autodiff does not see
        (lambda z: relu(z) ** 2, 0.0),
        (lambda z: jnp.abs(z - PLACE) ** 2.5, PLACE),  # σ'' is continuous, with a vertical tangent
    ],
)
def test_a_second_derivative_that_is_not_lipschitz_is_found_and_placed(sigma, place):
    found = assumption_a(sigma)
    assert not found.lipschitz.holds
    assert found.lipschitz.at == pytest.approx(place, abs=1e-5)
    assert not found.allowed
    assert "does not help" in str(found)


def test_a_corner_that_was_not_declared_leaves_no_second_derivative():
    """Autodiff says σ'' = 0."""
    found = assumption_a(lambda z: relu(z - PLACE))
    assert found.first.holds
    assert found.second.fails_at == found.lipschitz.fails_at == "t = 2.346"
    assert "no function" in str(found.second)


def test_what_overflows_cannot_be_judged_and_says_where():
    found = assumption_a(lambda z: jnp.log(1 + jnp.exp(z)))
    assert not found.holds
    assert not found.allowed
    assert "cannot be judged" in str(found)
    assert 300 < found.lipschitz.at < 800  # exp(2z), then exp(z), leaves float64
