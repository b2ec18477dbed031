"""A trained network measured, where its regime is known beforehand."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import models
from offtangent._errors import InputError
from offtangent.kernels import empirical_ntk
from offtangent.networks import TwoLayer
from offtangent.regime import measure_regime
from offtangent.report import render
from offtangent.report.regime import answers, regime_page

X = jax.random.normal(jax.random.key(1), (12, 4))


@pytest.fixture(scope="module")
def moved():
    """A network at a random small step from its start: lazy, but not quite."""
    net = TwoLayer.symmetric(dim=4, width=64, activation="softplus", key=jax.random.key(0))
    W = 0.3 * jax.random.normal(jax.random.key(2), net.W0.shape) / 8
    return net, W, measure_regime(net, net.origin, W, X, np.sign(X[:, 0]), order=3)


def test_shares_add_up_and_sizes_are_those_of_the_terms(moved):
    net, W, found = moved
    assert sum(found.shares) + found.remainder_share == pytest.approx(1)
    change = np.asarray(net(W, X), float)
    assert found.change == pytest.approx(np.sqrt(np.mean(change**2)), rel=1e-5)
    z, u = np.asarray(X @ net.W0, float), np.asarray(X @ W, float)
    linear = (np.asarray(net.a) / (1 + np.exp(-z)) * u).sum(axis=1) / 8
    assert found.sizes[0] == pytest.approx(np.sqrt(np.mean(linear**2)), rel=1e-4)
    assert found.left[0] == pytest.approx(np.sqrt(np.mean((change - linear) ** 2)), rel=1e-3)
    assert found.left[0] > found.left[1] > found.left[2] == found.remainder


def test_a_small_step_is_lazy_and_signs_that_cancel_the_first_order_are_not():
    """Two halves that move alike cancel at the first order (a is ±1), and add up at the second with a sign each."""
    net = TwoLayer.symmetric(dim=4, width=64, activation="softplus", key=jax.random.key(0))
    V = jax.random.normal(jax.random.key(3), (4, 32)) / 4
    lazy = measure_regime(net, net.origin, jnp.hstack([V, -V]) / 100, X)
    assert lazy.carried_by == 1
    assert lazy.shares[0] == pytest.approx(1, abs=0.01)
    tripled = measure_regime(net, net.origin, jnp.hstack([V, -V / 2]) * 4, X)
    assert tripled.carried_by != 1
    assert tripled.kernel_change > 10 * lazy.kernel_change


def test_the_kernel_and_its_alignment_are_those_of_the_definition(moved):
    net, W, found = moved
    K0, K1 = (empirical_ntk(net, w, X).dense().astype(float) for w in (net.origin, W))
    y = np.sign(np.asarray(X[:, 0], float))
    y = y - y.mean()
    assert found.kernel_change == pytest.approx(np.linalg.norm(K1 - K0) / np.linalg.norm(K0), rel=1e-4)
    cosine = np.sum(K0 * K1) / np.linalg.norm(K0) / np.linalg.norm(K1)
    assert found.kernel_turn == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-2)
    for K, value in zip((K0, K1), found.alignment, strict=True):
        assert value == pytest.approx(y @ K @ y / (np.linalg.norm(K) * (y @ y)), rel=1e-4)


def test_neurons_are_columns_of_our_networks_and_rows_of_equinox():
    net = TwoLayer.symmetric(dim=4, width=6, activation="tanh", key=jax.random.key(0))
    W = jnp.zeros((4, 6)).at[:, 2].set(1.0)
    (one,) = measure_regime(net, net.origin, W, X).movements
    assert (one.width, one.largest, one.mean) == (6, 2.0, pytest.approx(2 / 6))
    assert one.in_lazy_units == pytest.approx(2 * 6**0.5)
    assert one.in_quadratic_units == pytest.approx(2 * 6**0.25)
    f, params, x = models.equinox_mlp()
    found = measure_regime(f, params, models.moved(params, 0.01), x, neurons=0, order=1)
    assert [move.width for move in found.movements if len(move.shape) == 2] == [8, 8, 8, 2]
    assert all(move.name.startswith(".layers") for move in found.movements)


def test_classes_are_aligned_one_against_the_rest():
    classes = np.arange(12) % 3
    # of a linear map, whose tangent kernel is XXᵀ
    found = measure_regime(lambda w, x: x @ w, jnp.zeros(4), jnp.ones(4), X, classes)
    K, Y = np.asarray(X @ X.T, float), (classes[:, None] == np.arange(3)) - 1 / 3
    expected = np.sum(K * (Y @ Y.T)) / (np.linalg.norm(K) * np.linalg.norm(Y @ Y.T))
    assert found.alignment == pytest.approx((expected, expected), rel=1e-4)


def test_the_page_and_the_summary_say_it_all(moved):
    _, _, found = moved
    page = render(regime_page(found, "my $net"))
    assert "Orders of the Taylor series" in page
    assert "my $net" in page
    assert json.loads(json.dumps(found.summary()))["carried_by"] == found.carried_by
    assert len(answers(found)) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": 0}, "at least the first order"),
        ({"params": jnp.zeros((4, 6))}, "have not changed"),
        ({"params": jnp.full((4, 6), jnp.nan)}, "diverged"),
        ({"params": jnp.ones((4, 5))}, r"has shape \(4, 5\)"),
        ({"y": np.ones(3)}, r"expected \(12,\)"),
        ({"y": np.ones(12)}, "labels are the same"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_reason(change, message):
    net = TwoLayer.symmetric(dim=4, width=6, activation="tanh", key=jax.random.key(0))
    given = {"params": jnp.zeros((4, 6)).at[:, 0].set(0.1), "X": X, **change}
    with pytest.raises(InputError, match=message):
        measure_regime(net, net.origin, **given)
