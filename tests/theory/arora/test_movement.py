"""Movement and flips: against networks, their explicit features, and high precision."""

import math

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.theory.arora.linearised import Features
from offtangent.theory.arora.movement import (
    feature_change_bound,
    flip_candidates,
    flip_counts,
    flip_probability,
    flip_probability_bound,
    flip_sum_bound,
    kernel_change_bound,
    movement_bound,
    movement_radius,
)


def unit(n, dim, seed):
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_descent_stays_within_lemma_c1_where_its_loss_contracts_as_theorem_31_says(seed):
    """The proof of Lemma C.1 needs nothing but the contraction, which is checked here at every step."""
    rng, n, width = np.random.default_rng(seed), 4, 3000
    X, y = unit(n, 6, seed), rng.choice([-1.0, 1.0], n)
    start, a = rng.standard_normal((6, width)), rng.choice([-1.0, 1.0], width) / math.sqrt(width)
    smallest, rate, W = 0.1, 0.3, start.copy()
    losses, furthest = [], 0.0
    for _ in range(100):
        on = X @ W >= 0
        residual = (on * (X @ W)) @ a - y
        losses.append(residual @ residual)
        W -= rate * X.T @ (residual[:, None] * on * a)
        furthest = max(furthest, np.linalg.norm(W - start, axis=0).max())
    assert (np.divide(losses[1:], losses[:-1]) <= 1 - rate * smallest / 2).all()
    radius = movement_radius(n, width, smallest=smallest, residual=math.sqrt(losses[0]))
    assert 0.01 * radius < furthest <= radius


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 2.0))
@settings(max_examples=40)
def test_no_neuron_outside_the_events_flips_when_none_moves_further_than_the_radius(seed, radius):
    rng = np.random.default_rng(seed)
    X, W0 = unit(5, 3, seed), rng.standard_normal((3, 30))
    step = rng.standard_normal((3, 30))
    W = step * radius / np.linalg.norm(step, axis=0) * rng.random(30)
    assert (flip_counts(W0, W, X) <= flip_candidates(W0, X, radius)).all()


def test_the_counts_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    X, W0, W = unit(4, 3, 1), rng.standard_normal((3, 50)), rng.standard_normal((3, 50))
    near = [sum(abs(W0[:, r] @ x) <= 0.3 for r in range(50)) for x in X]
    changed = [sum((W0[:, r] @ x >= 0) != ((W0 + W)[:, r] @ x >= 0) for r in range(50)) for x in X]
    np.testing.assert_array_equal(flip_candidates(W0, X, 0.3), near)
    np.testing.assert_array_equal(flip_counts(W0, W, X), changed)
    assert min(changed) > 0


def test_flips_over_the_width_are_the_squared_change_of_the_features():
    net = TwoLayer.gaussian(dim=3, width=40, scale=0.5, key=jax.random.key(0))
    X, W = unit(5, 3, 0), np.random.default_rng(1).standard_normal((3, 40))
    before, after = Features.of(net, X), Features.of(net, X, W)
    explicit = [X.T @ (np.eye(5)[i][:, None] * (after.slopes - before.slopes)) for i in range(5)]
    assert np.sum(np.square(explicit)) == pytest.approx(flip_counts(net.W0, W, X).sum() / 40, rel=1e-12)


@pytest.mark.parametrize(("radius", "scale"), [(1e-9, 1.0), (0.01, 0.3), (1.0, 1.0), (5.0, 0.1)])
def test_the_probability_of_an_event_is_the_gaussian_integral_and_below_eq_17(radius, scale):
    with mpmath.workdps(30):
        density = lambda z: mpmath.exp(-(z**2) / (2 * scale**2)) / (mpmath.sqrt(2 * mpmath.pi) * scale)  # noqa: E731
        exact = float(2 * mpmath.quad(density, mpmath.linspace(0, radius, 8)))
    assert flip_probability(radius, scale) == pytest.approx(exact, rel=1e-12)
    assert exact <= flip_probability_bound(radius, scale)
    if radius < 0.1 * scale:
        assert flip_probability_bound(radius, scale) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_lemma_c2_holds_as_often_as_promised_even_if_every_neuron_flips_that_can(scale):
    """Each neuron is pushed by R straight against (or along) the input it is nearest to; 300 networks."""
    n, dim, width, radius, delta = 5, 4, 60, 0.02, 0.3
    X, rng = unit(n, dim, 0), np.random.default_rng(3)
    kernel, features, candidates = [], [], []
    for _ in range(300):
        W0 = scale * rng.standard_normal((dim, width))
        near = np.abs(X @ W0).argmin(axis=0)
        push = -np.sign((X @ W0)[near, np.arange(width)]) * radius * X[near].T
        before, after = X @ W0 >= 0, X @ (W0 + push) >= 0
        inner = X @ X.T / width
        kernel.append(np.linalg.norm(inner * (after @ after.T.astype(float) - before @ before.T.astype(float))))
        features.append(np.sqrt((after != before).sum() / width))
        candidates.append(flip_candidates(W0, X, radius).sum())
    limits = {"radius": radius, "scale": scale, "delta": delta}
    assert np.max(kernel) > 0
    assert np.mean(np.array(kernel) <= kernel_change_bound(n, **limits)) >= 1 - delta
    assert np.mean(np.array(features) <= feature_change_bound(n, **limits)) >= 1 - delta
    assert np.mean(np.array(candidates) <= flip_sum_bound(n, width, **limits)) >= 1 - delta


def test_the_numbers_are_those_worked_out_by_hand():
    assert movement_radius(9, 4, smallest=0.5, residual=1.0) == 12.0
    # n = 4, m = 16, λ₀ = κ = ½, δ = 4/e⁴: log(n/δ) = 4, so 4·√(2/4)/½ = 4√2, and nκ/(λ₀δ) = e⁴
    delta = 4 * math.exp(-4)
    bound = movement_bound(9.0, 4, 16, scale=0.5, smallest=0.5, delta=delta)
    assert (bound.linear, bound.kernel) == pytest.approx((3.0, 4 * math.sqrt(2)), rel=1e-14)
    assert bound.features == pytest.approx(8 / math.sqrt(4 / 16 * delta**1.5), rel=1e-14)
    assert bound.initial == pytest.approx(math.exp(4), rel=1e-14)
    assert bound.trajectory == pytest.approx(256 / (4 / 16 * delta**2), rel=1e-14)
    assert bound.total == pytest.approx(bound.linear + bound.initial + bound.of_width, rel=1e-15)
    infinite = movement_bound(9.0, 4, math.inf, scale=0.5, smallest=0.5, delta=delta)
    assert (infinite.of_width, infinite.total) == (0.0, pytest.approx(3 + math.exp(4)))
    assert kernel_change_bound(3, radius=math.sqrt(2 * math.pi), scale=0.5, delta=0.25) == pytest.approx(288.0)
    assert feature_change_bound(2, radius=math.sqrt(2 * math.pi), scale=0.5, delta=0.25) == pytest.approx(32**0.5)


@pytest.mark.parametrize(
    "bound",
    [
        lambda: movement_radius(4, 10, smallest=0.0, residual=1.0),
        lambda: movement_radius(4, 10, smallest=0.1, residual=-1.0),
        lambda: movement_bound(-1.0, 4, 10, scale=1.0, smallest=0.1, delta=0.1),
        lambda: movement_bound(1.0, 4, 10, scale=0.0, smallest=0.1, delta=0.1),
        lambda: flip_probability(1.0, 0.0),
        lambda: kernel_change_bound(4, radius=1.0, scale=1.0, delta=0.0),
    ],
)
def test_what_no_bound_speaks_of_is_refused(bound):
    with pytest.raises(InputError):
        bound()


@pytest.mark.parametrize(
    "call",
    [
        lambda: flip_probability(-1.0, 1.0),
        lambda: flip_probability_bound(-1.0, 1.0),
        lambda: flip_candidates(np.ones((2, 3)), np.ones((1, 2)), -1.0),
    ],
)
def test_a_negative_distance_is_refused(call):
    with pytest.raises(InputError, match="radius=-1: a distance is zero or positive"):
        call()


def test_nan_flips_no_sign():
    with pytest.raises(InputError, match="W has 6 entries that are NaN"):
        flip_counts(np.ones((2, 3)), np.full((2, 3), np.nan), np.ones((1, 2)))
