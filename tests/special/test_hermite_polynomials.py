"""Hermite polynomials and coefficients against closed forms, Stein's identity and mpmath's quadrature."""

import math

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import factorial2

from offtangent._errors import InputError
from offtangent.special import activation
from offtangent.special.activations import CATALOGUE, relu, sigmoid
from offtangent.special.hermite_polynomials import hermite, hermite_coefficients, hermite_energy


def close(ours, truth):
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)


def test_polynomials_are_orthonormal_under_the_gaussian():
    """Gauss–Hermite with 64 nodes integrates every product up to degree 80 exactly."""
    z, w = np.polynomial.hermite_e.hermegauss(64)
    with jax.enable_x64(True):
        h = np.asarray(hermite(40, jnp.asarray(z)))
    np.testing.assert_allclose((h * w / math.sqrt(2 * math.pi)) @ h.T, np.eye(41), atol=1e-11)


@pytest.mark.parametrize("k", [0, 1, 2, 5, 20, 60])
def test_polynomials_equal_those_of_mpmath(k):
    points = [-7.5, -1.25, 0.0, 0.5, 3.0]
    with jax.enable_x64(True):
        ours = np.asarray(hermite(k, jnp.asarray(points)))[k]
    with mp.workdps(40):
        truth = [
            float(mp.hermite(k, mp.mpf(z) / mp.sqrt(2)) / mp.sqrt(mp.mpf(2) ** k * mp.factorial(k))) for z in points
        ]
    np.testing.assert_allclose(ours, truth, rtol=1e-12, atol=1e-13)


@given(
    k_max=st.integers(0, 5),
    shape=st.lists(st.integers(0, 3), max_size=3),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_orders_come_first_and_the_dtype_is_kept(k_max, shape, dtype):
    with jax.numpy_dtype_promotion("strict"):
        h = jax.eval_shape(lambda z: hermite(k_max, z), jax.ShapeDtypeStruct(tuple(shape), dtype))
    assert (h.shape, h.dtype) == ((k_max + 1, *shape), jnp.dtype(dtype))


def test_polynomials_can_be_compiled_and_differentiated():
    """h_k' = √k h_{k−1}."""
    slope = jax.jacfwd(jax.jit(hermite, static_argnums=0), argnums=1)(6, 0.7)
    np.testing.assert_allclose(slope[1:], np.sqrt(np.arange(1, 7)) * hermite(5, 0.7), rtol=1e-5)


def relu_truth(order):
    """c_0 = 1/√2π, c_1 = 1/2, c_k = (−1)^(k/2−1) (k−3)!! / √(2π k!) for even k, 0 for odd k ≥ 3."""
    truth = np.zeros(order + 1)
    truth[:2] = 1 / math.sqrt(2 * math.pi), 0.5
    for k in range(2, order + 1, 2):
        double = 1 if k == 2 else math.prod(range(k - 3, 0, -2))
        truth[k] = (-1) ** (k // 2 - 1) * double / math.sqrt(2 * math.pi * math.factorial(k))
    return truth


def test_relu_coefficients_have_their_closed_form():
    close(hermite_coefficients("relu", order=120), relu_truth(120))


def test_squared_relu_coefficients_are_the_kernel_series():
    """E[relu(u) relu(v)] in powers of ρ: c_2l = (2l−3)!!/((2l−2)!! (2l−1) 2l · 2π) after 1/2π, 1/4."""
    series = np.zeros(41)
    series[:2] = 1 / (2 * math.pi), 1 / 4
    for el in range(1, 21):
        ratio = 1.0 if el == 1 else factorial2(2 * el - 3) / factorial2(2 * el - 2)
        series[2 * el] = ratio / ((2 * el - 1) * 2 * el * 2 * math.pi)
    close(hermite_coefficients("relu", order=40) ** 2, series)


def test_relu3_coefficients_follow_from_relu_by_parts():
    """σ'' = relu, so √((k+2)(k+1)) c_{k+2} is the ReLU's c_k."""
    k = np.arange(31)
    close(hermite_coefficients("relu3", order=32)[2:] * np.sqrt((k + 1) * (k + 2)), relu_truth(30))


def test_sine_coefficients_have_their_closed_form():
    """E[sin(g + t)] = e^(−1/2) sin t, whose Taylor coefficients are c_k / √k!."""
    truth = [
        (0, 1, 0, -1)[k % 4] * math.exp(-0.5) / math.sqrt(math.factorial(k)) for k in range(41)
    ]  # fmt: skip
    close(hermite_coefficients("sin", order=40), truth)


def test_erf_coefficients_have_their_closed_form():
    """E[erf(g + t)] = erf(t/√3), whose Taylor coefficients are c_k / √k!."""
    truth = np.zeros(42)
    for j in range(21):
        k = 2 * j + 1
        taylor = 2 / math.sqrt(math.pi) * (-1) ** j / (math.factorial(j) * k) * 3 ** (-k / 2)
        truth[k] = math.sqrt(math.factorial(k)) * taylor
    close(hermite_coefficients("erf", order=41), truth)


def test_quadratic_coefficients_are_one_and_root_two():
    close(hermite_coefficients("quadratic", order=6), [1, 0, math.sqrt(2), 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gelu", lambda z: z * mp.ncdf(z)),
        ("tanh", mp.tanh),
        ("softplus", lambda z: mp.log(1 + mp.exp(z))),
        ("sigmoid(1.0)", lambda z: 1 / (1 + mp.exp(1 - z))),
    ],
)
def test_coefficients_equal_the_quadrature_of_mpmath(name, function):
    orders = (0, 1, 4, 7)
    with mp.workdps(18):
        truth = [
            mp.quad(
                lambda z, k=k: function(z) * mp.hermite(k, z / mp.sqrt(2)) * mp.npdf(z),
                [-12, -4, 0, 4, 12],
            )
            / mp.sqrt(mp.mpf(2) ** k * mp.factorial(k))
            for k in orders
        ]
    close(hermite_coefficients(name, order=7)[list(orders)], [float(value) for value in truth])


@pytest.mark.parametrize(
    ("name", "derivative"),
    [(name, j) for name in (*CATALOGUE, "sigmoid(1.0)") for j in (1, 2, 3) if j == 1 or name != "relu"],
)
def test_coefficients_of_derivatives_obey_steins_identity(name, derivative):
    """E[σ^(j) h_k] = √((k+j)!/k!) E[σ h_{k+j}]."""
    k = np.arange(13)
    factor = np.sqrt(np.prod([k + i for i in range(1, derivative + 1)], axis=0))
    truth = factor * hermite_coefficients(name, order=12 + derivative)[derivative:]
    np.testing.assert_allclose(hermite_coefficients(name, order=12, derivative=derivative), truth, atol=1e-11)


def test_a_kink_anywhere_is_integrated_exactly():
    """E|g − b| = 2φ(b) + b(2Φ(b) − 1), E[|g − b| g] = E[sign(g − b)] = 1 − 2Φ(b)."""
    b = 0.3
    shifted = activation(lambda z: jnp.abs(z - b), smooth=1, kinks=(b,))
    centre = math.erf(b / math.sqrt(2))
    truth = [2 * math.exp(-(b**2) / 2) / math.sqrt(2 * math.pi) + b * centre, -centre]
    close(hermite_coefficients(shifted, order=1), truth)


def test_a_sharp_smooth_function_is_refined_until_it_converges():
    """c_1 of erf(50 g) is 2·50/√π / √(1 + 2·50²)."""
    truth = 100 / math.sqrt(math.pi) / math.sqrt(5001)
    close(hermite_coefficients(lambda z: jax.lax.erf(50 * z), order=1), [0, truth])


def test_a_kink_that_was_not_named_is_refused():
    with pytest.raises(InputError, match=r"do not converge.*kink or jump that was not named \(known: none"):
        hermite_coefficients(lambda z: jnp.abs(z - 0.3), order=4)


def test_a_function_that_works_in_float32_is_refused():
    with pytest.raises(InputError, match=r"do not converge.*float32 inside"):
        hermite_coefficients(lambda z: jnp.tanh(z.astype(jnp.float32)), order=4)


def test_a_function_that_grows_too_fast_is_refused():
    with pytest.raises(InputError, match="grows too fast"):
        hermite_coefficients(lambda z: jnp.exp(0.24 * z**2), order=4)


def test_a_function_that_is_not_finite_is_refused_with_the_point():
    with pytest.raises(InputError, match=r"is nan at z = -19\.9"):
        hermite_coefficients(jnp.sqrt, order=4)


def test_a_derivative_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="delta at 0"):
        hermite_coefficients(relu, order=4, derivative=2)


def test_a_negative_order_is_refused():
    with pytest.raises(InputError, match="order=-1: it must be a whole number of at least 0"):
        hermite_coefficients("relu", order=-1)


def test_a_tiny_function_keeps_its_relative_accuracy():
    """sigmoid(g − 60) is e^(g − 60) to 1e-20, so c_k = e^(1/2 − 60)/√k!."""
    truth = [math.exp(0.5 - 60) / math.sqrt(math.factorial(k)) for k in range(9)]
    np.testing.assert_allclose(hermite_coefficients(sigmoid(60.0), order=8), truth, rtol=1e-11)


def test_energy_of_the_relu_approaches_one_half():
    """E[relu²] = 1/2; the tail beyond K is Σ c_k² over the closed form."""
    energy = hermite_energy("relu", order=100)
    close(energy.total, 0.5)
    close(energy.partial, np.cumsum(relu_truth(100) ** 2))


@pytest.mark.parametrize("name", ["erf", "sin", "gelu", "tanh", "softplus", "quadratic"])
def test_parseval_nothing_is_missing_at_high_order(name):
    assert hermite_energy(name, order=150).missing < 1e-7


def test_missing_energy_is_what_the_partial_sums_leave():
    assert hermite_energy("quadratic", order=0).missing == pytest.approx(2, abs=1e-12)


def test_coefficients_are_float64_and_the_global_flag_stays_off():
    coefficients = hermite_coefficients("gelu", order=3)
    assert (coefficients.dtype, jax.config.jax_enable_x64) == (np.float64, False)
