"""Learning curves of kernel regression: closed forms, and regression itself on fresh samples."""

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.labels.learning_curves import kernel_curve
from offtangent.special.sphere import gegenbauers, harmonic_dimension, tangent_eigenvalues


def test_one_level_with_a_ridge_is_the_root_of_a_quadratic_equation():
    """With p equal eigenvalues 1, n = p/(1 + κ) + δ/κ."""
    curve = kernel_curve(np.ones(1), np.array([40.0]), np.ones(1), samples=60, ridge=5.0, noise=0.1)
    kappa = max(np.roots([60, 60 - 40 - 5, -5]))
    assert curve.kappa == pytest.approx(kappa, rel=1e-9)
    share = 1 / (1 + kappa)
    assert curve.error == pytest.approx(((1 - share) ** 2 + 0.1) * 60 / (60 - 40 * share**2), rel=1e-9)


def test_fewer_directions_than_samples_are_learnt_whole_and_noise_costs_what_least_squares_costs():
    """Least squares in p of n dimensions: the noise's variance times n/(n − p)."""
    curve = kernel_curve(np.array([1.0, 0.0]), np.array([20.0, 50.0]), np.array([1.0, 0.3]), samples=80, noise=0.5)
    assert (curve.kappa, curve.learnt.tolist()) == (0.0, [1.0, 0.0])
    assert curve.error == pytest.approx((0.5 + 0.3) * 80 / 60)


def test_a_tail_acts_as_a_ridge_and_as_its_own_small_levels_do():
    values, sizes, energies = np.array([1.0, 0.1]), np.array([10.0, 100.0]), np.array([1.0, 1.0])
    tail = kernel_curve(values, sizes, energies, samples=60, tail=0.5)
    ridge = kernel_curve(values, sizes, energies, samples=60, ridge=0.5)
    many = kernel_curve(np.append(values, 1e-7), np.append(sizes, 5e6), np.append(energies, 0), samples=60)
    assert tail.error == pytest.approx(ridge.error, rel=1e-12)
    assert tail.error == pytest.approx(many.error, rel=1e-3)


@pytest.mark.parametrize("n", [40, 100, 200])
def test_the_error_is_that_of_regression_with_the_tangent_kernel_on_fresh_samples(n):
    """The kernel of infinite width, d = 10 (n₁ = 11, n₂ = 65), noise 0.09; means of 12 sets, within 15 %."""
    dim, degrees = 10, 16
    values = tangent_eigenvalues("sigmoid(z − 1)", dim=dim, degree=degrees)
    sizes = np.array([float(harmonic_dimension(dim, j)) for j in range(degrees + 1)])
    found, told = [], []
    for seed in range(12):
        target = LowDegreePlusSparse.random(dim, 1, 1, low_energies=(0.0, 1.0), key=jax.random.key(seed))
        X = data.sphere(n + 500, dim, radius=dim**0.5, key=jax.random.key(100 + seed))
        y = target(X) + 0.3 * np.random.default_rng(seed).standard_normal(len(X))
        Q = gegenbauers(degrees, np.clip(X @ X[:n].T / dim, -1, 1), dim=dim)
        K = np.tensordot(values * sizes, Q, 1)
        found.append(np.mean((K[n:] @ np.linalg.solve(K[:n], y[:n]) - y[n:]) ** 2))
        energies = np.zeros(degrees + 1)
        energies[:3] = target.energies().total
        told.append(kernel_curve(values, sizes, energies, samples=n, noise=0.09).error)
    assert np.mean(found) == pytest.approx(np.mean(told), rel=0.15)


def test_bad_input_is_refused():
    one = np.ones(1)
    for wrong in ({"values": -one}, {"values": 0 * one}, {"samples": 0}, {"noise": -1.0}):
        given = {"values": one, "multiplicities": one, "energies": one, "samples": 5} | wrong
        with pytest.raises(InputError):
            kernel_curve(given.pop("values"), given.pop("multiplicities"), given.pop("energies"), **given)
