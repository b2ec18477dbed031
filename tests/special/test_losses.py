"""Losses against mpmath, finite differences and autodiff; their contract against losses that break each part."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.special.losses import LOSSES, Loss, logistic, pseudo_huber, soft_hinge, squared
from offtangent.theory.bai_lee.contract import loss_contract

KEEPERS = [logistic, soft_hinge, pseudo_huber]


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("order", range(4))
def test_logistic_is_mpmaths_to_its_last_digits(y, order):
    z = np.array([-800.0, -40.0, -3.0, -0.1, 0.0, 0.5, 2.0, 37.0, 700.0])
    with jax.enable_x64(True), mpmath.workdps(60):
        found = np.asarray(logistic.derivative(order)(y, z))
        s = [1 / (1 + mpmath.exp(y * mpmath.mpf(one))) for one in z]
        truth = {
            0: [mpmath.log1p(mpmath.exp(-y * mpmath.mpf(one))) for one in z],
            1: [-y * one for one in s],
            2: [one * (1 - one) for one in s],
            3: [-y * one * (1 - one) * (1 - 2 * one) for one in s],
        }[order]
    np.testing.assert_allclose(found, np.array(truth, np.float64), rtol=1e-13, atol=1e-300)


def test_logistic_attains_a_quarter_and_one_over_six_roots_of_three():
    z = np.linspace(-10, 10, 400_001)
    with jax.enable_x64(True):
        second, third = (np.abs(np.asarray(logistic.derivative(k)(1.0, z))) for k in (2, 3))
    assert second.max() == pytest.approx(1 / 4, rel=1e-9)
    assert third.max() == pytest.approx(1 / (6 * math.sqrt(3)), rel=1e-8)


@pytest.mark.parametrize(("margin", "value"), [(-5, 6), (0, 1), ("1/2", "25/48"), (1, "1/6"), ("3/2", "1/48"), (2, 0)])
def test_soft_hinge_is_the_hinge_averaged_over_a_triangle(margin, value):
    """∫ max(0, 1 − u + s)(1 − |s|)₊ ds, by hand."""
    u = float(Fraction(margin))
    with jax.enable_x64(True):
        for y in (-1.0, 1.0):
            assert float(soft_hinge(y, y * u)) == pytest.approx(float(Fraction(value)), abs=1e-15)
    s = (np.arange(20_000) + 0.5) / 10_000 - 1
    assert float(Fraction(value)) == pytest.approx(np.mean(np.maximum(0, 1 - u + s) * (1 - abs(s))) * 2, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda loss: loss.name)
def test_derivatives_are_the_slopes_of_those_one_order_below(loss):
    z, h = np.linspace(-6.03, 6.04, 301), 1e-5  # no point within h of a jump
    with jax.enable_x64(True):
        for y in loss.labels:
            for order in (1, 2, 3):
                lower = jax.jit(loss.derivative(order - 1))
                slope = (np.asarray(lower(y, z + h)) - np.asarray(lower(y, z - h))) / (2 * h)
                np.testing.assert_allclose(jax.jit(loss.derivative(order))(y, z), slope, atol=3e-9)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda loss: loss.name)
def test_autodiff_of_the_loss_agrees_with_its_derivatives_and_is_finite_in_the_tails(loss):
    z = jnp.array([-1e30, -1e8, -1e4, -50.0, -2.0, -1.0, 0.0, 0.25, 1.0, 2.0, 3.0, 60.0, 1e4, 1e8, 1e30], jnp.float32)
    if loss is squared:
        z = z[1:-1]  # its square overflows, as it must
    y = jnp.ones_like(z)
    autodiff = loss.function
    for order in range(4):
        found, closed = (jax.jit(one)(y, z) for one in (autodiff, loss.derivative(order)))
        assert found.dtype == closed.dtype == jnp.float32
        assert bool(jnp.isfinite(found).all())
        assert bool(jnp.isfinite(closed).all())
        jumps = (order == 3) & (loss is soft_hinge) & jnp.isin(z, jnp.array([0.0, 1.0, 2.0]))
        np.testing.assert_allclose(np.asarray(found)[~jumps], np.asarray(closed)[~jumps], atol=2e-6, rtol=1e-6)
        autodiff = (lambda lower: lambda y, z: jax.jvp(lambda t: lower(y, t), (z,), (jnp.ones_like(z),))[1])(autodiff)


def test_soft_hinge_has_one_slope_at_its_joints():
    slope = jax.vmap(jax.grad(soft_hinge.function, argnums=1))
    np.testing.assert_allclose(slope(jnp.ones(3), jnp.array([0.0, 1.0, 2.0])), [-1.0, -0.5, 0.0])


def test_a_derivative_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="order 4"):
        soft_hinge.derivative(4)(1.0, 0.0)
    with pytest.raises(InputError, match="0 or more"):
        logistic.derivative(-1)


# --- the contract --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", KEEPERS, ids=lambda loss: loss.name)
def test_these_keep_the_contract(loss):
    contract = loss_contract(loss)
    assert contract.holds, str(contract)
    assert len(contract.parts) == 6


def test_pseudo_huber_keeps_it_for_labels_up_to_root_three_and_attains_its_constants():
    contract = loss_contract(pseudo_huber, labels=(-math.sqrt(3), 0.0, math.sqrt(3)))
    assert contract.holds
    values = {part.name: part.value for part in contract.parts}
    assert values["|ℓ''| ≤ 1"] == pytest.approx(1, abs=1e-5)
    assert values["|ℓ'''| ≤ 1"] == pytest.approx(48 / (25 * math.sqrt(5)), abs=1e-5)
    assert [part.name for part in loss_contract(pseudo_huber, labels=(1.8,)).failures] == ["ℓ(y, 0) ≤ 1"]


def test_squared_breaks_only_the_lipschitz_part_and_says_where():
    (failure,) = loss_contract(squared).failures
    assert failure.name == "1-Lipschitz"
    assert failure.excess == pytest.approx(1e6, rel=1e-5)
    assert abs(failure.output) == 1e6
    assert "breaks" in str(loss_contract(squared))
    assert "fails by 1e+06" in str(failure)


@pytest.mark.parametrize(
    ("function", "broken"),
    [
        (lambda y, z: jnp.maximum(0, 1 - y * z), {"|ℓ''| ≤ 1"}),  # autodiff sees ℓ'' = 0 everywhere
        (lambda y, z: jax.nn.softplus(1 - y * z), {"ℓ(y, 0) ≤ 1"}),
        (lambda y, z: jnp.exp(-((y * z - 1) ** 2)), {"convex", "|ℓ''| ≤ 1", "|ℓ'''| ≤ 1"}),
        (lambda y, z: jax.nn.softplus(-3 * y * z) / 3, set()),  # ℓ'' ≤ 3/4, |ℓ'''| ≤ 9/(6√3) < 1
        (lambda y, z: jax.nn.softplus(-4 * y * z) / 4, {"|ℓ'''| ≤ 1"}),  # ℓ'' = 4/4, ℓ''' = 16/(6√3)
        (lambda y, z: jax.nn.softplus(-y * z) - 0.5, {"non-negative"}),
        (lambda y, z: jax.nn.softplus(-y * z) / math.log(2), {"1-Lipschitz"}),
        (lambda y, z: jnp.sqrt(z - y), {"non-negative", "1-Lipschitz", "convex", "ℓ(y, 0) ≤ 1"}),  # NaN
    ],
)
def test_each_broken_part_is_named(function, broken):
    found = {part.name for part in loss_contract(Loss("mine", function)).failures}
    assert broken <= found
    if "1-Lipschitz" not in broken or "convex" not in broken:
        assert found == broken


def test_where_and_by_how_much_are_those_of_the_function():
    (part,) = loss_contract(Loss("mine", lambda y, z: jax.nn.softplus(1 - y * z))).failures
    assert (part.output, part.excess) == (pytest.approx(0, abs=1e-9), pytest.approx(math.log(1 + math.e) - 1))
    (part,) = loss_contract(Loss("steep", lambda y, z: jax.nn.softplus(-4 * y * z) / 4)).failures
    assert part.excess == pytest.approx(16 / (6 * math.sqrt(3)) - 1, abs=1e-4)
    assert abs(part.output) == pytest.approx(math.log(2 + math.sqrt(3)) / 4, abs=0.01)


def test_a_loss_that_is_not_elementwise_is_refused():
    with pytest.raises(InputError, match="not elementwise"):
        loss_contract(Loss("mean", lambda y, z: jnp.mean(y * z)))
    with pytest.raises(InputError, match="at least one label"):
        loss_contract(logistic, labels=())


def test_nichani_s_contract_asks_that_a_loss_vanish_at_the_label():
    """ℓ(y, y) = log(1 + e⁻¹) of the logistic loss, (1 − 1)₊ rounded to 1/6 of the soft hinge."""
    for loss, value in ((logistic, math.log1p(math.exp(-1))), (soft_hinge, 1 / 6)):
        (failure,) = loss_contract(loss, own_label=True).failures
        assert failure.name == "ℓ(y, y) = 0"
        assert failure.value == pytest.approx(value, rel=1e-12)
    assert loss_contract(pseudo_huber, own_label=True).holds
