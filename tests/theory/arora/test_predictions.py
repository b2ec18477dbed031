"""Predictions at test points against the recursion itself, and against an ensemble of finite networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import relu_hidden, ridge_regression
from offtangent.kernels.closed_forms import relu_both, relu_output
from offtangent.kernels.finite import tangent_gram
from offtangent.networks import TwoLayer
from offtangent.theory.arora import predictions as module
from offtangent.theory.arora.predictions import gradient_descent

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 5)) / 2
NEW = RNG.standard_normal((6, 5)) / 2
Y = RNG.standard_normal((8, 2))


@pytest.mark.parametrize("part", [0.3, 0.5, 0.95], ids=lambda part: f"{part} of 2/λ_max")
def test_the_mean_is_that_of_the_recursion_at_old_and_new_inputs(part):
    """Above half of 2/λ_max, 1 − ηλ is negative for the largest eigenvalue."""
    H, cross = relu_both.exact(X), relu_both.exact(NEW, X)
    rate = part * 2 / np.linalg.eigvalsh(H)[-1]
    steps = np.array([0, 1, 2, 3, 10, 101])
    descent = gradient_descent(relu_both, X, Y, rate=rate)
    old, new = descent.predict(X, steps).mean, descent.predict(NEW, steps).mean
    u, v = np.zeros_like(Y), np.zeros((6, 2))
    for t in range(102):
        if t in steps:
            at = list(steps).index(t)
            np.testing.assert_allclose(old[at], u, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(new[at], v, rtol=1e-10, atol=1e-12)
        u, v = u - rate * H @ (u - Y), v - rate * cross @ (u - Y)


def test_after_infinitely_many_steps_it_is_kernel_regression():
    end = gradient_descent(relu_hidden, X, Y).predict(NEW, np.inf).mean[0]
    np.testing.assert_allclose(end, ridge_regression(relu_hidden, X, Y, ridge=0).predict(NEW), rtol=1e-8)


def test_a_number_of_steps_beyond_counting_is_the_end():
    descent = gradient_descent(relu_hidden, X, Y[:, 0])
    late = descent.predict(NEW, np.array([1e15, np.inf])).mean
    assert late.shape == (2, 6)
    np.testing.assert_allclose(late[0], late[1], rtol=1e-10)


def test_a_direction_without_curvature_is_never_learnt():
    """Two equal inputs with different labels: their mean is learnt, their difference is not."""
    twice = np.vstack([X, X[:1]])
    labels = np.append(Y[:, 0], Y[0, 0] + 2)
    end = gradient_descent(relu_hidden, twice, labels).predict(twice, np.array([10**9, np.inf])).mean
    np.testing.assert_allclose(end[:, [0, -1]], Y[0, 0] + 1, rtol=1e-6)


def test_the_variance_is_that_of_the_matrices_written_out():
    H, cross = relu_hidden.exact(X), relu_hidden.exact(NEW, X)
    rate, t = 0.7, 5
    A = cross @ np.linalg.inv(H) @ (np.eye(8) - np.linalg.matrix_power(np.eye(8) - rate * H, t))
    K = relu_output.exact(np.vstack([X, NEW]))
    full = K[8:, 8:] + A @ K[:8, :8] @ A.T - A @ K[:8, 8:] - K[8:, :8] @ A.T
    found = gradient_descent(relu_hidden, X, Y, rate=rate, conjugate=relu_output).predict(NEW, t).variance
    np.testing.assert_allclose(found[0], full.diagonal(), rtol=1e-8)


def test_before_training_the_variance_is_the_conjugate_kernel_and_at_the_end_zero_at_the_samples():
    descent = gradient_descent(relu_hidden, X, Y, conjugate=relu_output)
    np.testing.assert_allclose(descent.predict(NEW, 0).variance[0], relu_output.diag(NEW), rtol=1e-12)
    np.testing.assert_allclose(descent.predict(X, np.inf).variance[0], 0, atol=1e-12)
    assert gradient_descent(relu_hidden, X, Y).predict(X, 3).variance is None


def test_mean_and_variance_are_those_of_linearised_networks_of_finite_width():
    """600 networks of width 4096 in their tangent spaces; the limit is O(1/m) away, far below standard errors."""
    count, width, steps, rate = 600, 4096, np.array([3, 30, np.inf]), 0.5
    y, points = Y[:, 0], np.vstack([X, NEW])

    def one(key):
        net = TwoLayer.gaussian(dim=5, width=width, key=key)
        inputs = jnp.asarray(points, jnp.float32)
        return tangent_gram(net, net.origin, inputs), net(net.origin, inputs)

    kernels, starts = jax.lax.map(one, jax.random.split(jax.random.key(1), count))
    kernels, starts = np.asarray(kernels, np.float64), np.asarray(starts, np.float64)
    outputs = np.empty((len(steps), count, len(NEW)))
    for i, (T, f) in enumerate(zip(kernels, starts, strict=True)):
        H, cross = T[:8, :8], T[8:, :8]
        values, V = np.linalg.eigh(H)
        for at, t in enumerate(steps):
            gain = (1 - (1 - rate * values) ** t if np.isfinite(t) else np.ones(8)) / values
            outputs[at, i] = f[8:] + cross @ V @ (gain * (V.T @ (y - f[:8])))
    predicted = gradient_descent(relu_hidden, X, y, rate=rate, conjugate=relu_output).predict(NEW, steps)
    spread = outputs.std(axis=1, ddof=1)
    z = (outputs.mean(axis=1) - predicted.mean) / (spread / np.sqrt(count))
    assert np.abs(z).max() < 4.5  # 18 numbers, correlated
    z = (spread**2 / predicted.variance - 1) / np.sqrt(2 / count)
    assert np.abs(z).max() < 4.5
    assert np.abs(predicted.mean / (spread / np.sqrt(count))).max() > 20  # so a wrong mean would be noticed


def test_predictions_do_not_depend_on_how_many_inputs_are_done_at_once(monkeypatch):
    descent = gradient_descent(relu_hidden, X, Y, conjugate=relu_output)
    whole = descent.predict(NEW, np.array([1, 5]))
    monkeypatch.setattr(module, "AT_ONCE", 16)  # two of the 6
    parts = descent.predict(NEW, np.array([1, 5]))
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.variance, whole.variance, rtol=1e-9)


MANY = RNG.standard_normal((400, 20)) / np.sqrt(20)
LABELS = np.stack([np.sign(MANY[:, 0]), MANY[:, 1] * MANY[:, 2]], axis=1)


def test_products_alone_predict_what_all_eigenpairs_do(monkeypatch):
    times = np.array([0, 1, 7, 100, 2000])
    new = np.vstack([MANY[:3], RNG.standard_normal((5, 20))])
    expected = gradient_descent(relu_hidden, MANY, LABELS).predict(new, times)
    monkeypatch.setattr(module, "FEW_ROWS", 100)
    descent = gradient_descent(relu_hidden, MANY, LABELS)
    found = descent.predict(new, times)
    assert "spectrum" not in vars(descent)  # no eigenpairs were needed
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-7, atol=1e-8)


def test_what_products_do_not_settle_comes_from_all_eigenpairs(monkeypatch):
    expected = gradient_descent(relu_hidden, MANY, LABELS, rate=0.1).predict(MANY, np.array([10**6])).mean
    monkeypatch.setattr(module, "FEW_ROWS", 100)
    monkeypatch.setattr(module, "CHECKS", (3, 6))
    descent = gradient_descent(relu_hidden, MANY, LABELS, rate=0.1)
    np.testing.assert_allclose(descent.predict(MANY, np.array([10**6])).mean, expected, rtol=1e-9)
    assert "spectrum" in vars(descent)


@pytest.mark.parametrize("steps", [-1, 2.5, np.nan])
def test_steps_that_are_no_counts_are_refused(steps):
    with pytest.raises(InputError, match="whole, 0 or more"):
        gradient_descent(relu_hidden, X, Y).predict(NEW, steps)


def test_an_unstable_rate_is_refused_with_a_safe_one():
    with pytest.raises(InputError, match=r"is safe"):
        gradient_descent(relu_hidden, X, Y, rate=100.0)


def test_another_number_of_features_is_refused():
    with pytest.raises(InputError, match="training had 5"):
        gradient_descent(relu_hidden, X, Y).predict(NEW[:, :2], 1)
