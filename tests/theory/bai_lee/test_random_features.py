"""Lemma 9: Hermite coefficients and series against mpmath, expectations against two-dimensional quadrature."""

import math

import mpmath
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels.closed_forms import relu_output
from offtangent.special.hermite_polynomials import hermite_coefficients
from offtangent.theory.bai_lee.random_features import (
    random_feature_energy,
    random_feature_energy_bound,
    random_feature_variance,
    random_feature_weights,
    relu_hermite,
    relu_series,
    relu_series_bound,
)

DEGREES = [0, 1, 2, 4, 6, 8]
RADIUS = 1.7
BETA = np.array([0.5, -1.0, 0.4])


def plane_average(x, of):
    """E of(w₀ᵀx, w₀) for w₀ ~ N(0, B_x⁻²I) in the plane of x and β: Gauss on a half line, on both of its sides."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    ends = np.linspace(-14, 14, 29)  # a panel ends at 0, where the ReLU has its kink
    u = (ends[:-1, None] + (1 + nodes) / 2 * np.diff(ends)[:, None]).ravel()
    density = np.tile(weights / 2, 28) * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    along = x / np.linalg.norm(x)
    rest = BETA - (BETA @ along) * along
    across = rest / np.linalg.norm(rest)
    W0 = (u[:, None, None] * along + u[:, None] * across) / RADIUS
    values = of((W0 @ x).ravel(), W0.reshape(-1, 3).T).reshape(len(u), len(u))
    return density @ values @ density


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 7, 10, 24])
def test_hermite_coefficients_of_the_relu_equal_the_integral(power):
    with mpmath.workdps(30):
        value = mpmath.quad(
            lambda z: z * mpmath.hermite(power, z / mpmath.sqrt(2)) * mpmath.npdf(z), [0, 2, 5, 10, 20]
        ) / mpmath.sqrt(2**power * mpmath.factorial(power))
    assert relu_hermite(power) == pytest.approx(float(value), rel=1e-13, abs=1e-17)
    assert relu_hermite(power) ** 2 == pytest.approx(relu_series(power), rel=1e-15)


def test_hermite_coefficients_agree_with_quadrature_of_the_activation():
    np.testing.assert_allclose([relu_hermite(p) for p in range(31)], hermite_coefficients("relu", order=30), atol=1e-13)


def test_the_series_is_that_of_the_kernel():
    np.testing.assert_allclose([relu_series(p) for p in range(101)], relu_output.series(101), rtol=1e-13)
    with mpmath.workdps(30):
        u = mpmath.mpf("0.7")
        kernel = (u * (mpmath.pi - mpmath.acos(u)) + mpmath.sqrt(1 - u * u)) / (2 * mpmath.pi)
        printed = [mpmath.fac2(2 * k - 3) / mpmath.fac2(2 * k - 2) / ((2 * k - 1) * 2 * k) for k in range(1, 100)]
    assert sum(relu_series(p) * 0.7**p for p in range(200)) == pytest.approx(float(kernel), rel=1e-14)
    for k, value in enumerate(printed, start=1):
        assert relu_series(2 * k) == pytest.approx(float(value) / (2 * math.pi), rel=1e-13)


def test_coefficients_lie_above_the_proofs_bound():
    for p in [0, 1, *range(2, 400, 2)]:
        assert relu_series(p) >= relu_series_bound(p) * (1 - 1e-15)
        if p >= 2:  # the sharper step before it, an equality at p = 2
            assert relu_series(p) >= (1 - 1e-15) / (2 * math.pi * (p - 1) ** 2 * p)


@pytest.mark.parametrize("power", DEGREES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_features_average_to_the_power(power, seed):
    """E[relu(w₀ᵀx)a(w₀)] = α(βᵀx)^p, its variance, and E[a²], each against quadrature."""
    x = np.random.default_rng(seed).standard_normal(3)
    x *= RADIUS / np.linalg.norm(x)
    scale = {"coefficient": -1.3, "radius": RADIUS}

    def a(W0):
        return random_feature_weights(W0, BETA, power, **scale)

    target = -1.3 * (BETA @ x) ** power
    second = plane_average(x, lambda z, W0: (np.maximum(z, 0) * a(W0)) ** 2)
    energy = random_feature_energy(BETA, power, **scale)
    assert plane_average(x, lambda z, W0: np.maximum(z, 0) * a(W0)) == pytest.approx(target, abs=1e-10 * energy**0.5)
    assert random_feature_variance(x[None], BETA, power, **scale)[0] == pytest.approx(second - target**2, rel=1e-9)
    assert plane_average(x, lambda _, W0: a(W0) ** 2) == pytest.approx(energy, rel=1e-9)
    assert energy <= random_feature_energy_bound(BETA, power, **scale)


def test_a_zero_vector_costs_nothing_but_for_a_constant():
    W0, zero = np.ones((3, 2)), np.zeros(3)
    np.testing.assert_array_equal(random_feature_weights(W0, zero, 2), [0.0, 0.0])
    np.testing.assert_allclose(random_feature_weights(W0, zero, 0), math.sqrt(2 * math.pi))


@pytest.mark.parametrize("power", [3, 5, 11])
def test_odd_degrees_are_refused_with_the_reason(power):
    assert relu_hermite(power) == 0.0
    for call in (
        lambda: random_feature_weights(np.ones((3, 2)), BETA, power),
        lambda: random_feature_energy(BETA, power),
        lambda: relu_series_bound(power),
    ):
        with pytest.raises(InputError, match=f"degree {power} is odd.*no odd Hermite"):
            call()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: relu_series(-1), "power=-1"),
        (lambda: random_feature_energy(BETA, -2), "degree -2"),
        (lambda: random_feature_energy(BETA, 2, radius=0.0), "radius=0"),
        (lambda: random_feature_weights(np.ones((2, 4)), BETA, 2), "2 rows and β has 3"),
        (lambda: random_feature_energy(np.array([1.0, np.inf]), 2), "finite"),
    ],
)
def test_bad_arguments_are_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()


def test_a_variance_is_that_of_inputs_on_the_sphere():
    with pytest.raises(InputError, match="row 0 of X has length 3, and B_x is radius=1"):
        random_feature_variance(3 * np.eye(2), np.ones(2), 2)
