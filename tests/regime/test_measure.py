"""A trained network measured, where its regime is known beforehand."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import models
from offtangent._errors import InputError
from offtangent.kernels import empirical_ntk
from offtangent.networks import TwoLayer
from offtangent.regime import measure_regime
from offtangent.regime.page import regime_figures, regime_page
from offtangent.regime.words import answers
from offtangent.report.page import render

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
    found = measure_regime(f, params, models.moved(params, 0.01), x, order=1)
    assert [move.width for move in found.movements if len(move.shape) == 2] == [8, 8, 8, 2]
    assert all(move.name.startswith("layers.") for move in found.movements)


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
    assert len(answers(found)) == 6
    assert "the first, that of its tangent kernel" in page
    second = dict(
        answers(replace(found, left=(found.change, 0.0, 0.0), intervals=((0.9, 1.1), (0.0, 0.0), (0.0, 0.0))))
    )
    assert "the second, which with those below leaves" in second["Which order carries it?"]
    assert second["Is it lazy?"].startswith("no")


def test_the_figures_can_be_had_without_the_page(moved):
    orders, movements = regime_figures(moved[2])
    sizes = next(trace for trace in orders.plot.data if trace.name == "size of the term")
    np.testing.assert_allclose(sizes.y, moved[2].sizes)
    furthest = next(trace for trace in movements.plot.data if trace.name == "furthest neuron")
    np.testing.assert_allclose(furthest.y, [one.largest for one in moved[2].movements])


@pytest.mark.parametrize(("name", "by"), [("equinox_mlp", 0.0), ("equinox_mlp", 3e-7), ("scanned", 0.0)])
def test_parameters_that_stayed_or_moved_by_rounding_alone_are_refused(name, by):
    """Compiled, f(θ₀) may differ from itself by rounding; 3·10⁻⁷ is two and a half units of float32's last place."""
    f, params, x = models.ALL[name]()
    with pytest.raises(InputError, match=r"float32 rounds them by .* and then the trained ones"):
        measure_regime(f, params, rescaled(params, by), x, order=1)


def test_what_float32_cannot_tell_float64_can():
    with jax.enable_x64(True):
        wide, w = X.astype(jnp.float64), jnp.ones(4, jnp.float64)
        found = measure_regime(lambda w, x: jnp.tanh(x @ w), w, rescaled(w, 3e-7), wide)
        assert found.carried_by == 1
        assert found.left[0] < 1e-5 * found.change  # the second order, 3·10⁻⁷ of the first and some
        with pytest.raises(InputError, match="float64 rounds them by"):
            measure_regime(lambda w, x: jnp.tanh(x @ w), w, rescaled(w, 3e-16), wide)


def rescaled(params, size):
    """Every weight times 1 ± size, at random."""
    signs = models.moved(jax.tree.map(lambda leaf: 0 * leaf if eqx.is_inexact_array(leaf) else leaf, params), 1.0)
    return jax.tree.map(
        lambda leaf, sign: leaf * (1 + size * jnp.sign(sign)) if eqx.is_inexact_array(leaf) else leaf, params, signs
    )


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
