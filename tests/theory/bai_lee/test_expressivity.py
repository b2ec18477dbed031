"""Theorem 7: W⋆ against the Taylor expansion, its error and norm against exact moments, sums by brute force."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import hypercube, sphere
from offtangent.networks import TwoLayer
from offtangent.special import activation as named
from offtangent.taylor import expand
from offtangent.theory.bai_lee.expressivity import (
    Expression,
    RidgePower,
    column_norm,
    express,
    quadratic_part,
    xor_target,
)
from offtangent.theory.bai_lee.random_features import random_feature_weights

DIM, RADIUS = 4, 1.5
BETA = np.array([0.4, -0.2, 0.5, 0.1])


def network(width, *, dim=DIM, radius=RADIUS, seed=0, activation="relu3"):
    """As TwoLayer.symmetric makes it, with NumPy's numbers: JAX would compile its own for every width."""
    half = np.random.default_rng(seed).standard_normal((dim, width // 2)) / radius
    signs = np.repeat([1.0, -1.0], width // 2)
    f32 = (np.hstack([half, half]).astype(np.float32), signs.astype(np.float32))
    return TwoLayer(*map(jnp.asarray, f32), named(activation), paired=True)


@pytest.fixture(scope="module")
def inputs():
    return sphere(30, DIM, radius=RADIUS, key=jax.random.key(5))


@pytest.mark.parametrize("power", [1, 2, 3, 4, math.inf])
def test_the_norm_adds_up_powers_of_column_lengths(power):
    W = np.random.default_rng(0).standard_normal((3, 7))
    lengths = [math.sqrt(sum(float(w) ** 2 for w in column)) for column in W.T]
    expected = max(lengths) if math.isinf(power) else sum(length**power for length in lengths) ** (1 / power)
    assert column_norm(W, power) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("power", [2, 3, 4, 6])
def test_the_quadratic_part_at_w_star_is_the_average_of_random_features(inputs, power):
    """f^Q_{W⋆} of `taylor`, in float32, equals (βᵀx)²(2/m)Σ relu(w₀ᵀx)a(w₀), and `quadratic_part` to rounding."""
    net = TwoLayer.symmetric(dim=DIM, width=500, radius=RADIUS, activation="relu3", key=jax.random.key(0))
    found = express(net, RidgePower(BETA, power, -0.7), radius=RADIUS)
    half = np.asarray(net.W0, np.float64)[:, :250]
    a = random_feature_weights(half, BETA, power - 2, coefficient=-0.7, radius=RADIUS)
    features = (inputs @ BETA) ** 2 * (np.maximum(inputs @ half, 0) @ a) / 250
    np.testing.assert_allclose(quadratic_part(net, np.sum(found.parts, axis=0), inputs), features, atol=1e-13)
    by_taylor = expand(net, net.origin, 2).terms(found.W, jnp.asarray(inputs, jnp.float32))[2]
    np.testing.assert_allclose(by_taylor, features, atol=3e-6 * np.abs(a).max())
    np.testing.assert_allclose(found.errors(inputs), features - -0.7 * (inputs @ BETA) ** power, atol=1e-13)


def test_the_quadratic_part_holds_for_any_smooth_activation(inputs):
    net = network(500, activation="softplus")
    W = jnp.asarray(np.random.default_rng(1).standard_normal((DIM, 500)), jnp.float32)
    by_taylor = expand(net, net.origin, 2).terms(W, jnp.asarray(inputs, jnp.float32))[2]
    np.testing.assert_allclose(quadratic_part(net, W, inputs), by_taylor, atol=1e-4)


def test_errors_are_as_large_as_their_exact_mean_square(inputs):
    """Over 60 networks, the mean error and the mean square error at every input within 5 standard errors."""
    target = RidgePower(BETA, 4)
    errors = np.stack([express(network(400, seed=s), target, radius=RADIUS).errors(inputs) for s in range(60)])
    expected = target.mean_square_error(inputs, 400, RADIUS)
    assert (np.abs(errors.mean(axis=0)) <= 5 * np.sqrt(expected / 60)).all()
    squares = errors**2
    assert (np.abs(squares.mean(axis=0) - expected) <= 5 * squares.std(axis=0) / math.sqrt(60)).all()


def test_errors_fall_below_the_bound_at_every_width():
    """SPEC A20 at d = 10, p = 4, α = 2, unit β and inputs, which reports errors of 0.33, 0.070, 0.024.

    The error is largest at x = ±β; there, this network's and those of SPEC must be of the size that theory gives.
    """
    beta = np.eye(10)[0]
    X = np.vstack([sphere(20, 10, key=jax.random.key(3)), beta, -beta])
    target = RidgePower(beta, 4, 2.0)
    assert target.norm4_bound() == pytest.approx(32 * math.pi * 8 * 4)  # 3.2e3
    assert target.expected_norm4() == pytest.approx(8 * 4 * math.pi * 4)  # 4.0e2
    for width, reported in ((2_000, 0.33), (6_000, None), (20_000, 0.07), (60_000, None), (200_000, 0.024)):
        found = express(network(width, dim=10, radius=1.0), target)
        errors, typical = np.abs(found.errors(X)), math.sqrt(target.mean_square_error(beta[None], width)[0])
        assert errors.max() <= target.error_bound(X, width, delta=0.1)
        assert typical / 10 <= errors[-2:].max() <= 4 * typical
        assert reported is None or typical / 10 <= reported <= 4 * typical
        assert found.norm4 <= target.norm4_bound()


@pytest.mark.parametrize("power", [2, 3, 4, 6])
def test_the_norm_of_w_star_is_near_its_mean_and_below_the_bound(power):
    width, target = 40_000, RidgePower(BETA, power, 1.4)
    net = network(width)
    found = express(net, target, radius=RADIUS)
    a = random_feature_weights(np.asarray(net.W0)[:, : width // 2], BETA, power - 2, coefficient=1.4, radius=RADIUS)
    error = 8 * target.length**4 * float((a**2).std()) / math.sqrt(width / 2)
    assert found.norm4 == pytest.approx(8 * target.length**4 * float((a**2).mean()), rel=1e-12)
    assert abs(found.norm4 - target.expected_norm4(RADIUS)) <= 5 * error + 1e-9
    size = 1.4**2 * RADIUS ** (2 * (power - 2)) * target.length ** (2 * power)
    assert target.norm4_bound(RADIUS, delta=0.5) == pytest.approx(64 * math.pi * max((power - 2) ** 3, 1) * size)
    assert 2 * target.expected_norm4(RADIUS) <= target.norm4_bound(RADIUS) * (1 + 1e-15)


@pytest.mark.parametrize("power", [2, 3, 4, 8])
def test_the_sufficient_width_suffices_for_any_inputs(inputs, power):
    target = RidgePower(BETA, power, 2.0)
    width = math.ceil(target.sufficient_width(30, RADIUS, epsilon=0.1, delta=0.2))
    worst = np.tile(RADIUS * BETA / target.length, (30, 1))
    for X in (inputs, worst):
        assert target.error_bound(X, width, RADIUS, delta=0.2) <= 0.1
    largest = target.error_bound(worst, width, RADIUS, delta=0.2)
    assert largest >= 0.05  # and is no more than four times what the worst inputs need
    ratio = target.theorem_width(30, RADIUS, epsilon=0.1) / (30 * (RADIUS * target.length) ** (2 * power) * 4 / 0.01)
    assert ratio == pytest.approx(DIM * power**3)


def test_a_sum_is_expressed_in_the_mean_over_all_signs(inputs):
    """2⁸ signs by brute force: the mean of f^Q is f^Q of the parts added, and its variance is `sign_variance`."""
    net = network(8)
    targets = (RidgePower(BETA, 4), RidgePower(np.array([0.1, 0.6, 0.0, -0.3]), 3, -2.0))
    parts = [express(net, target, radius=RADIUS).parts[0] for target in targets]
    values = np.stack(
        [
            quadratic_part(net, parts[0] + parts[1] * np.array(signs), inputs)
            for signs in itertools.product((1.0, -1.0), repeat=8)
        ]
    )
    alone = sum(quadratic_part(net, part, inputs) for part in parts)
    variance = Expression(net, targets, RADIUS, tuple(parts)).sign_variance(inputs)
    assert variance.max() > 1e-3  # there is something to average out
    np.testing.assert_allclose(values.mean(axis=0), alone, atol=1e-13)
    np.testing.assert_allclose(values.var(axis=0), variance, rtol=1e-10, atol=1e-14)


def test_random_signs_express_a_sum_of_three(inputs):
    """Cross terms stay within 5 standard deviations, and the norm below the sum of the parts' norms."""
    targets = [RidgePower(BETA, 4), RidgePower(BETA[::-1], 3, -2.0), RidgePower(np.eye(DIM)[0], 2)]
    net = network(20_000)
    found = express(net, targets, radius=RADIUS, key=jax.random.key(9))
    alone = sum(express(net, target, radius=RADIUS).errors(inputs) for target in targets)
    assert (np.abs(found.errors(inputs) - alone) <= 5 * np.sqrt(found.sign_variance(inputs))).all()
    np.testing.assert_allclose(found.target(inputs), sum(target(inputs) for target in targets), atol=1e-14)
    assert found.norm4**0.25 <= sum(column_norm(part) for part in found.parts)
    assert found.norm4 <= found.norm4_bound()


def test_xor_needs_no_luck_with_signs():
    """x₁x₂ on the cube: the parts live on different neurons, and ‖W⋆‖⁴ = 8π whatever the width."""
    X = hypercube(50, 6, key=jax.random.key(0))
    targets, net = xor_target(6, 1, 4), network(4_000, dim=6, radius=math.sqrt(6))
    found = express(net, targets, radius=math.sqrt(6), key=jax.random.key(2))
    np.testing.assert_allclose(found.target(X), X[:, 1] * X[:, 4], atol=1e-14)
    assert found.norm4 == pytest.approx(8 * math.pi, rel=1e-12)
    np.testing.assert_array_equal(found.sign_variance(X), np.zeros(50))
    features = np.maximum(X @ np.asarray(net.W0, np.float64)[:, :2_000], 0).mean(axis=1) * math.sqrt(2 * math.pi)
    np.testing.assert_allclose(found.errors(X), X[:, 1] * X[:, 4] * (features - 1), atol=1e-12)
    # the mean of 2000 variables with E relu² = 1/2, E relu = 1/√2π
    assert np.abs(found.errors(X)).max() <= 5 * math.sqrt((math.pi - 1) / 2_000)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: RidgePower(BETA, 5), "power=5.*degree 3 is odd"),
        (lambda: RidgePower(BETA, 1), "power=1.*degree -1"),
        (lambda: RidgePower(0 * BETA, 2), "not all zero"),
        (lambda: RidgePower(BETA, 2, math.nan), "coefficient=nan"),
        (lambda: RidgePower(BETA, 2)(np.ones((2, 3))), "3 columns and β 4"),
        (lambda: RidgePower(BETA, 2).norm4_bound(delta=1.5), "delta=1.5"),
        (lambda: RidgePower(BETA, 2).error_bound(np.ones((2, 4)), 10, delta=0.1), "row 0 of X has length 2"),
        (lambda: express(network(8), RidgePower(BETA[:2], 2), radius=RADIUS), "2 entries"),
        (lambda: express(network(8), [], radius=RADIUS), "No targets"),
        (lambda: express(network(8), [RidgePower(BETA, 2)] * 2, radius=RADIUS), "give key="),
        (lambda: express(network(8, activation="tanh"), RidgePower(BETA, 2), radius=RADIUS), "Take activation='relu3'"),
        (lambda: express(network(900), RidgePower(BETA, 2), radius=1.0), "mean square 0.4"),
        (
            lambda: express(
                TwoLayer.gaussian(dim=DIM, width=8, activation="relu3", key=jax.random.key(0)), RidgePower(BETA, 2)
            ),
            "TwoLayer.symmetric",
        ),
        (lambda: xor_target(3, 1, 1), "two different ones"),
        (lambda: column_norm(np.ones((2, 2)), 0.5), "power=0.5"),
    ],
)
def test_what_theorem_7_does_not_cover_is_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()
