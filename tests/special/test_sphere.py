"""Harmonics against exact sums and integrals, Monte Carlo, and spectra of kernels and networks made without them."""

import functools
import math
from fractions import Fraction

import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.special import roots_jacobi

from offtangent._errors import InputError
from offtangent.special import activation
from offtangent.special.activations import relu, shifted, sigmoid
from offtangent.special.hermite_polynomials import hermite_coefficients
from offtangent.special.sphere import (
    block_dimensions,
    gegenbauer,
    gegenbauers,
    harmonic_coefficients,
    harmonic_dimension,
    harmonic_energies,
    monomial_coefficients,
    polynomial_dimension,
    tangent_eigenvalues,
)

DIMS = [2, 3, 10, 100, 1000]
T = np.array([-1.0, -0.999, -0.5, -1e-3, 0.0, 0.03, 0.25, 0.8, 1.0])


def rule(dim, nodes):
    """Gauss–Jacobi for the cosine of two random directions: exact up to degree 2·nodes − 1."""
    t, weights = roots_jacobi(nodes, (dim - 3) / 2, (dim - 3) / 2)
    return t, weights / weights.sum()


def units(n, dim, seed):
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@functools.cache
def powers(dim, degree):
    """Q_k as exact coefficients of 1, t, t², …, by the explicit sum instead of the recursion."""
    if dim == 2:
        return [Fraction(c) for c in np.polynomial.chebyshev.cheb2poly([0] * degree + [1]).tolist()]
    index, coefficients = Fraction(dim - 2, 2), [Fraction(0)] * (degree + 1)
    for j in range(degree // 2 + 1):
        rising = math.prod((index + i for i in range(degree - j)), start=Fraction(1))
        size = rising * 2 ** (degree - 2 * j) / (math.factorial(j) * math.factorial(degree - 2 * j))
        coefficients[degree - 2 * j] = (-1) ** j * size
    return [c / sum(coefficients) for c in coefficients]


def exact_piece(power, dim, degree, low=0.0):
    """E[z^power 1{z ≥ low} Q_k(t)] for low ≥ 0: a sum of incomplete beta integrals, at 60 digits."""
    with mp.workdps(60):
        b, start = mp.mpf(dim - 1) / 2, mp.mpf(low) ** 2 / dim
        moments = [mp.betainc(mp.mpf(n + power + 1) / 2, b, start, 1) / 2 for n in range(degree + 1)]
        total = mp.fsum(
            mp.mpf(c.numerator) / c.denominator * m for c, m in zip(powers(dim, degree), moments, strict=True)
        )
        return mp.sqrt(dim) ** power * total / mp.beta(mp.mpf(1) / 2, b)


@pytest.mark.parametrize("dim", [2, 3, 7, 100, 1000])
def test_harmonics_are_polynomials_modulo_the_radius(dim):
    """B(d, k) is what homogeneous polynomials of degree k have beyond |x|² times those of degree k − 2."""
    homogeneous = [math.comb(dim + k - 1, k) for k in range(21)]
    expected = homogeneous[:2] + [homogeneous[k] - homogeneous[k - 2] for k in range(2, 21)]
    assert [harmonic_dimension(dim, k) for k in range(21)] == expected
    assert [polynomial_dimension(dim, k) for k in range(21)] == np.cumsum(np.array(expected, object)).tolist()


@pytest.mark.parametrize(("dim", "degree"), [(2, 5), (3, 4), (5, 3)])
def test_the_kernel_q_k_has_the_rank_of_its_harmonics(dim, degree):
    X = units(120, dim, 0)
    assert np.linalg.matrix_rank(gegenbauer(degree, X @ X.T, dim=dim)) == harmonic_dimension(dim, degree)


def test_the_circle_has_two_harmonics_of_every_degree():
    assert [harmonic_dimension(2, k) for k in range(4)] == [1, 2, 2, 2]
    np.testing.assert_allclose(gegenbauer(9, T, dim=2), np.cos(9 * np.arccos(T)), atol=1e-14 * 81)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("degree", [0, 1, 2, 7, 20])
def test_polynomials_equal_the_explicit_sum(dim, degree):
    """To 1e-12 of |Q_k|, or 1e-13 of its root mean square 1/√B where it has a zero."""
    exact = [sum(c * Fraction(t) ** n for n, c in enumerate(powers(dim, degree))) for t in T.tolist()]
    tiny = 1e-13 / math.sqrt(harmonic_dimension(dim, degree))
    np.testing.assert_allclose(gegenbauer(degree, T, dim=dim), np.array(exact, float), rtol=1e-12, atol=tiny)


@pytest.mark.parametrize("dim", DIMS)
def test_polynomials_are_orthogonal_with_squares_one_over_b(dim):
    t, weights = rule(dim, 20)
    roots = np.sqrt([float(harmonic_dimension(dim, k)) for k in range(13)])
    Q = roots[:, None] * gegenbauers(12, t, dim=dim)
    np.testing.assert_allclose((Q * weights) @ Q.T, np.eye(13), atol=1e-10)


def test_polynomials_of_random_directions_are_orthogonal():
    X, Y = units(50_000, 6, 1), units(50_000, 6, 2)
    Q = gegenbauers(3, (X * Y).sum(axis=1), dim=6)
    for j in range(4):
        for k in range(j, 4):
            sample = Q[j] * Q[k]
            error = sample.std() / math.sqrt(len(sample))
            assert abs(sample.mean() - (j == k) / harmonic_dimension(6, k)) <= 5 * error + 1e-15


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("power", [0, 1, 4, 7])
def test_powers_are_rebuilt_from_their_coefficients(dim, power):
    gammas = monomial_coefficients(power, dim=dim)
    assert sum(gammas) == 1
    rebuilt = np.array(gammas, float) @ gegenbauers(power, T, dim=dim)
    np.testing.assert_allclose(rebuilt, T**power, atol=1e-14)


@pytest.mark.parametrize("dim", DIMS)
def test_coefficients_of_a_cube_are_the_closed_form(dim):
    """z³ = d^{3/2} t³ and t³ = 3/(d+2) Q_1 + (d−1)/(d+2) Q_3, so λ_1 = 3√d/(d+2), λ_3 = d^{3/2}(d−1)/((d+2) B(d,3))."""
    third = dim**1.5 * (dim - 1) / (dim + 2) / harmonic_dimension(dim, 3)
    expected = np.array([0, 3 * math.sqrt(dim) / (dim + 2), 0, third, 0])
    found = harmonic_coefficients(lambda z: z**3, dim=dim, degree=4)
    roots = np.sqrt([float(harmonic_dimension(dim, k)) for k in range(5)])
    np.testing.assert_allclose(roots * found, roots * expected, atol=1e-12)


@pytest.mark.parametrize("dim", DIMS)
def test_coefficients_of_the_exponential_are_bessel_functions(dim):
    """λ_k(e^{z/2}) = Γ(ν+1) (2/s)^ν I_{k+ν}(s) with ν = d/2 − 1 and s = √d/2; to 1e-12 in λ_k √B(d, k)."""
    found = harmonic_coefficients(lambda z: np.exp(z / 2), dim=dim, degree=20)
    nu, s = mp.mpf(dim) / 2 - 1, mp.sqrt(dim) / 2
    for k in range(21):
        expected = mp.gamma(nu + 1) * (2 / s) ** nu * mp.besseli(k + nu, s)
        assert abs(found[k] - expected) * mp.sqrt(harmonic_dimension(dim, k)) < 1e-12


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", [0, 1])
def test_relu_and_its_step_are_right_to_1e_12(dim, order):
    found = harmonic_coefficients("relu", dim=dim, degree=20, derivative=order)
    for k in range(21):
        error = abs(found[k] - exact_piece(1 - order, dim, k))
        assert error * mp.sqrt(harmonic_dimension(dim, k)) < 1e-12


@pytest.mark.parametrize("dim", [2, 30, 1000])
def test_a_kink_elsewhere_is_found_too(dim):
    found = harmonic_coefficients(shifted("relu", 0.75), dim=dim, degree=8, derivative=1)
    for k in range(9):
        assert abs(found[k] - exact_piece(0, dim, k, low=0.75)) * mp.sqrt(harmonic_dimension(dim, k)) < 1e-12


@pytest.mark.parametrize("given", [relu.derivative(1), shifted("relu", 0.3).derivative(1)])
def test_a_derivative_brings_its_kinks_along(given):
    by = 0.3 if given.kinks == (0.3,) else 0.0
    expected = harmonic_coefficients(shifted("relu", by), dim=5, degree=6, derivative=1)
    assert np.array_equal(harmonic_coefficients(given, dim=5, degree=6), expected)


def test_coefficients_of_even_parts_vanish_for_odd_functions():
    assert np.abs(harmonic_energies("tanh", dim=50, degree=20)[::2]).max() < 1e-26


def test_energies_add_up_to_the_whole():
    t, weights = rule(4, 200)
    total = weights @ np.tanh(2 * t) ** 2
    assert harmonic_energies("tanh", dim=4, degree=40).sum() == pytest.approx(total, rel=1e-12)


def test_in_high_dimension_coefficients_become_hermite_s_at_the_rate_one_over_d():
    limit = hermite_coefficients("sigmoid(1.0)", order=4) ** 2
    gaps = [np.abs(harmonic_energies("sigmoid(1.0)", dim=dim, degree=4) - limit) for dim in (10**3, 10**4)]
    np.testing.assert_allclose(gaps[0] / gaps[1], 10, rtol=0.05)


@pytest.mark.parametrize("name", ["sigmoid(1.0)", "relu"])
def test_funk_and_hecke_are_right_by_monte_carlo(name):
    dim, sigma = 6, activation(name)
    W = units(100_000, dim, 3)
    x, beta = math.sqrt(dim) * units(1, dim, 4)[0], units(1, dim, 5)[0]
    values = np.asarray(sigma.derivative(1)(jnp.asarray(W @ x)), np.float64)
    coefficients = harmonic_coefficients(sigma, dim=dim, degree=4, derivative=1)
    for k in range(5):
        sample = values * gegenbauer(k, W @ beta, dim=dim)
        expected = coefficients[k] * gegenbauer(k, x @ beta / math.sqrt(dim), dim=dim)
        assert abs(sample.mean() - expected) <= 5 * sample.std() / math.sqrt(len(sample)) + 1e-6  # float32 values


def test_the_numbers_of_the_paper_s_sigmoid_are_those_of_the_specification():
    """Nichani et al. with σ(z) = sigmoid(z − 1), d = 100, to the digits the specification prints."""
    first = harmonic_energies(shifted("sigmoid", 1), dim=100, degree=5, derivative=1)
    second = harmonic_energies(sigmoid(1.0), dim=100, degree=5, derivative=2)
    xi = tangent_eigenvalues(shifted("sigmoid", 1), dim=100, degree=3)
    assert [f"{v:.1e}" for v in first] == ["3.2e-02", "2.8e-03", "6.0e-04", "3.6e-04", "9.0e-06", "4.1e-05"]
    assert [f"{v:.1e}" for v in second] == ["2.7e-03", "1.2e-03", "1.1e-03", "4.0e-05", "2.2e-04", "4.7e-07"]
    assert [f"{v:.1e}" for v in xi] == ["2.8e-03", "3.2e-02", "5.5e-05", "3.4e-07"]


@pytest.mark.parametrize("dim", [3, 4, 20])
def test_tangent_eigenvalues_equal_those_of_the_kernel_integrated_in_two_dimensions(dim):
    """E_w[σ'σ'] by quadrature over u = ⟨w, x̂⟩ and the rest of w along x', then against Q_k: no series is used."""
    sigma = sigmoid(1.0)
    (u, wu), (s, ws), (t, wt) = rule(dim, 60), rule(dim - 1, 60), rule(dim, 60)

    def slope(z):
        p = 1 / (1 + np.exp(1 - math.sqrt(dim) * z))
        return p * (1 - p)

    other = t[:, None, None] * u[:, None] + np.sqrt((1 - t[:, None, None] ** 2) * (1 - u[:, None] ** 2)) * s
    kernel = dim * t * ((slope(other) @ ws) @ (wu * slope(u)))
    expected = gegenbauers(5, t, dim=dim) @ (wt * kernel)
    np.testing.assert_allclose(tangent_eigenvalues(sigma, dim=dim, degree=5), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_tangent_eigenvalues_of_relu_are_those_of_the_arccosine_kernel(dim):
    """E_w[1{wᵀx ≥ 0} 1{wᵀx' ≥ 0}] = (π − arccos t)/2π = 1/4 + θ/2π in every dimension, t = sin θ."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    theta = math.pi / 2 * nodes
    weights = weights * np.cos(theta) ** (dim - 2)
    kernel = dim * np.sin(theta) * (0.25 + theta / (2 * math.pi))
    expected = gegenbauers(6, np.sin(theta), dim=dim) @ (weights * kernel) / weights.sum()
    np.testing.assert_allclose(tangent_eigenvalues("relu", dim=dim, degree=6), expected, atol=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 50, 1000])
def test_tangent_eigenvalues_of_the_square_are_the_closed_form(dim):
    """K = ⟨x, x'⟩ E[4zz'] = 4d t² and t² = 1/d + (1 − 1/d) Q_2."""
    expected = [4, 0, 4 * (dim - 1) / harmonic_dimension(dim, 2), 0]
    np.testing.assert_allclose(tangent_eigenvalues("quadratic", dim=dim, degree=3), expected, rtol=1e-12, atol=1e-20)


@pytest.mark.parametrize("dim", [2, 5, 30])
def test_tangent_eigenvalues_with_their_multiplicities_make_the_trace(dim):
    values = tangent_eigenvalues("sigmoid(1.0)", dim=dim, degree=30)
    whole = dim * harmonic_energies("sigmoid(1.0)", dim=dim, degree=60, derivative=1).sum()
    assert sum(value * harmonic_dimension(dim, k) for k, value in enumerate(values)) == pytest.approx(whole, rel=1e-8)


def test_a_wide_network_has_the_predicted_spectrum_with_the_predicted_multiplicities():
    """The Gram matrix over n of a network: on a log scale each eigenvalue is closest to the ξ_k of its own block."""
    dim, width, n = 8, 6000, 1200
    X, W = math.sqrt(dim) * units(n, dim, 6), units(width, dim, 7)
    s = 1 / (1 + np.exp(1 - X @ W.T))
    slopes = s * (1 - s)
    values = np.linalg.eigvalsh((X @ X.T) * (slopes @ slopes.T) / (width * n))[::-1]
    xi = tangent_eigenvalues(sigmoid(1.0), dim=dim, degree=3)
    order = np.argsort(-xi)
    counts = [harmonic_dimension(dim, int(k)) for k in order]
    assert counts[:3] == [8, 1, 35]  # linear, constant, quadratic
    expected = np.repeat(order, counts)[: sum(counts[:3])]
    found = np.argmin(np.abs(np.log(values[: len(expected), None] / xi)), axis=1)
    assert np.array_equal(found, expected)
    assert values[0] < 2 * xi.max()


def test_a_network_s_kernel_projected_on_a_degree_is_its_eigenvalue_by_monte_carlo():
    """E[K_m(x, x') Q_k(cos(x, x'))] = ξ_k over inputs and weights."""
    dim, n = 5, 200_000
    X, Y, W = units(n, dim, 8), units(n, dim, 9), units(n, dim, 10)
    slope = [1 - np.tanh(math.sqrt(dim) * (W * Z).sum(axis=1) - 0.5) ** 2 for Z in (X, Y)]
    cosine = (X * Y).sum(axis=1)
    xi = tangent_eigenvalues(shifted("tanh", 0.5), dim=dim, degree=3)
    for k in range(4):
        sample = dim * cosine * slope[0] * slope[1] * gegenbauer(k, cosine, dim=dim)
        assert abs(sample.mean() - xi[k]) <= 5 * sample.std() / math.sqrt(n)


def test_eigenvalues_fall_by_a_power_of_the_dimension_a_degree():
    """ξ_k = Θ(d^{1−k}) (Nichani et al., Section 4.1): ten times the dimension, 10^{k−1} times smaller."""
    near, far = (tangent_eigenvalues("sigmoid(1.0)", dim=dim, degree=4)[1:] for dim in (10_000, 100_000))
    np.testing.assert_allclose(near / far, [1, 10, 100, 1000], rtol=0.01)


def test_blocks_partition_the_polynomials_of_twice_the_degree():
    assert block_dimensions(20, 1) == (21, 209)
    assert sum(block_dimensions(100, 3)) == polynomial_dimension(100, 6)


def sawtooth(z):
    return jnp.abs(z - 0.3)


def test_a_kink_that_was_not_named_is_refused_and_helps_when_it_is():
    with pytest.raises(InputError, match=r"sawtooth do not converge at dim=7.*give kinks="):
        harmonic_coefficients(sawtooth, dim=7, degree=3)
    told = harmonic_coefficients(sawtooth, dim=7, degree=3, kinks=(0.3,))
    turned = harmonic_coefficients(shifted("relu", 0.3), dim=7, degree=3)
    straight = harmonic_coefficients(lambda z: 0.3 - z, dim=7, degree=3)  # |z − b| = 2 relu(z − b) + b − z
    np.testing.assert_allclose(told, 2 * turned + straight, atol=1e-14)
    slope = harmonic_coefficients(sawtooth, dim=7, degree=3, derivative=1, kinks=(0.3,))
    step = harmonic_coefficients(shifted("relu", 0.3), dim=7, degree=3, derivative=1)
    np.testing.assert_allclose(slope, 2 * step - [1, 0, 0, 0], atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: harmonic_dimension(1, 2), "dim ≥ 2"),
        (lambda: polynomial_dimension(5, -1), "degree=-1"),
        (lambda: monomial_coefficients(-2, dim=3), "power=-2"),
        (lambda: gegenbauer(2, 0.5, dim=0), "dim ≥ 2"),
        (lambda: harmonic_coefficients("relu", dim=5, degree=2, derivative=2), "delta at 0"),
        (lambda: harmonic_coefficients("relu", dim=5, degree=2, kinks=(1.0,)), "knows its own kinks"),
        (lambda: harmonic_coefficients("reluu", dim=5, degree=2), "Did you mean 'relu'"),
        (lambda: harmonic_coefficients(lambda z: jnp.log(z + 3), dim=16, degree=2), "must be finite on .* ±4"),
        (lambda: harmonic_coefficients("tanh", dim=10**6, degree=150), "beyond 10\\^308"),
        (lambda: tangent_eigenvalues("tanh", dim=3, degree=-1), "at least 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
