"""The closed forms against mpmath, Monte Carlo and power series, at every angle and every length."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.kernels import gaussian, relu_hidden
from offtangent.kernels.closed_forms import arc_cosine, erf_output, relu3_hidden, relu_both, relu_output
from offtangent.kernels.pairs import Pair
from offtangent.networks import TwoLayer

EPS = np.finfo(np.float64).eps
NEAR = [1e-9, 1e-6, 1e-3, 0.3, 0.999, 1.001, 1.4]
ANGLES = [*NEAR, np.pi / 2, *(np.pi - angle for angle in reversed(NEAR))]
HOMOGENEOUS = [relu_hidden, relu_output, relu_both, relu3_hidden, arc_cosine(0), arc_cosine(1), arc_cosine(2)]
ALL = [*HOMOGENEOUS, gaussian(0.7), erf_output(weight=1.5, bias=0.3)]


def named(kernel):
    return kernel.name


def rows(angle, lengths=(1.0, 1.0), seed=0):
    """Two rows in five dimensions at about this angle."""
    u, v = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 2)))[0].T
    return np.stack([lengths[0] * u, lengths[1] * ((1 - 2 * np.sin(angle / 2) ** 2) * u + np.sin(angle) * v)])


def polar_of(x, z):
    """Lengths and angle of two rows with 60 digits, by Kahan's formula."""
    x, z = ([mp.mpf(float(c)) for c in row] for row in (x, z))
    r, s = (mp.sqrt(mp.fsum(c * c for c in row)) for row in (x, z))
    apart = mp.sqrt(mp.fsum((a / r - b / s) ** 2 for a, b in zip(x, z, strict=True)))
    together = mp.sqrt(mp.fsum((a / r + b / s) ** 2 for a, b in zip(x, z, strict=True)))
    return r, s, 2 * mp.atan2(apart, together)


def truth(kernel, r, s, angle):
    """The formula of the paper, as printed."""
    rest, cos, sin = mp.pi - angle, mp.cos(angle), mp.sin(angle)
    orders = [rest, sin + rest * cos, 3 * sin * cos + rest * (1 + 2 * cos**2)]
    if kernel.name.startswith("arc_cosine"):
        order = kernel.of_pair.order
        return (r * s) ** order * orders[order] / mp.pi
    if kernel.name.startswith("gaussian"):
        return mp.exp(-(r * r + s * s - 2 * r * s * cos) / (2 * mp.mpf(kernel.of_pair.width) ** 2))
    if kernel.name.startswith("erf_output"):
        weight, bias = mp.mpf(kernel.of_pair.weight), mp.mpf(kernel.of_pair.bias)
        k, q, p = (weight**2 * inner + bias**2 for inner in (r * s * cos, r * r, s * s))
        return 2 / mp.pi * mp.asin(2 * k / mp.sqrt((1 + 2 * q) * (1 + 2 * p)))
    hidden, output = r * s * cos * rest / (2 * mp.pi), r * s * orders[1] / (2 * mp.pi)
    cubic = (r * s) ** 3 * cos * orders[2] / (8 * mp.pi)
    known = {"relu_hidden": hidden, "relu_output": output, "relu_both": hidden + output, "relu3_hidden": cubic}
    return known[kernel.name]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_exact_is_the_printed_formula_to_sixteen_ulp_of_the_lengths_at_every_angle(kernel, angle):
    x, z = rows(angle, (0.7, 1.3))
    found = kernel.exact(x[None], z[None]).item()
    with mp.workdps(60):
        r, s, exact = polar_of(x, z)
        scale = mp.sqrt(truth(kernel, r, r, mp.mpf(0)) * truth(kernel, s, s, mp.mpf(0)))
        assert float(abs(found - truth(kernel, r, s, exact)) / scale) <= 16 * EPS


@pytest.mark.parametrize("plus", [1e-100, 1e-18, 1e-12, 1e-6, 0.01, 0.4597, 0.4598, 0.9])
@pytest.mark.parametrize("kernel", [relu_output, arc_cosine(0), arc_cosine(1), arc_cosine(2)], ids=named)
def test_for_opposite_inputs_the_kernel_is_accurate_relative_to_its_vanishing_self(kernel, plus):
    """It vanishes like (π − θ)^{2n+1}, down to (1 + cos)^{5/2} for order 2; 0.4597: where the series gives way."""
    one = np.float64(1.0)
    found = kernel.of_pair(Pair(one, one, np.float64(2 - plus), np.float64(plus)), np)
    with mp.workdps(320):
        angle = mp.pi - 2 * mp.asin(mp.sqrt(mp.mpf(plus) / 2))
        assert abs(float(found / truth(kernel, mp.mpf(1), mp.mpf(1), angle)) - 1) <= 32 * EPS


@pytest.mark.parametrize("lengths", [(1e-150, 1.0), (1e-150, 1e-150), (1e-150, 1e150), (1e70, 1e70)])
@pytest.mark.parametrize("kernel", ALL, ids=named)
def test_tiny_and_huge_inputs_keep_their_accuracy(kernel, lengths):
    for angle in (1e-9, 1.0, np.pi - 1e-9):
        x, z = rows(angle, lengths)
        found = kernel.exact(x[None], z[None]).item()
        with mp.workdps(400):
            r, s, exact = polar_of(x, z)
            scale = mp.sqrt(truth(kernel, r, r, mp.mpf(0)) * truth(kernel, s, s, mp.mpf(0)))
            if 1e-290 < scale < 1e300:
                assert float(abs(found - truth(kernel, r, s, exact)) / scale) <= 16 * EPS


def test_erf_output_is_accurate_at_its_ends_where_the_formula_as_printed_is_not():
    x, z = rows(1e-6, (1e6, 1e6))
    cosine = 2 * (x @ z) / np.sqrt((1 + 2 * x @ x) * (1 + 2 * z @ z))
    with mp.workdps(60):
        exact = truth(erf_output(), *polar_of(x, z))
        assert abs(float(erf_output().exact(x[None], z[None]).item() - exact)) <= 4 * EPS
        assert abs(float(2 / np.pi * np.arcsin(cosine) - exact)) > 1e3 * EPS


ACTIVATIONS = {
    relu_output: lambda u: np.maximum(u, 0),
    arc_cosine(0): lambda u: np.sqrt(2) * (u >= 0),
    arc_cosine(2): lambda u: np.sqrt(2) * np.maximum(u, 0) ** 2,
}


@pytest.mark.parametrize("kernel", ACTIVATIONS, ids=named)
def test_it_is_the_covariance_of_random_features(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 3)) / 2
    features = ACTIVATIONS[kernel](rng.standard_normal((200_000, 3)) @ X.T)
    products = features[:, :, None] * features[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(products))
    assert (abs(products.mean(axis=0) - kernel.exact(X)) <= 4 * error + 1e-15).all()


def test_relu3_hidden_is_the_tangent_kernel_of_a_wide_network_whose_hidden_weights_are_trained():
    X = np.random.default_rng(0).standard_normal((4, 3)) / 2
    net = TwoLayer.symmetric(dim=3, width=200_000, activation="relu3", key=jax.random.key(0))
    slopes = np.asarray(net.activation.derivative(1)(jnp.asarray(X, jnp.float32) @ net.W0[:, :100_000]), np.float64)
    products = slopes[:, None] * slopes[None] * (X @ X.T)[:, :, None]
    error = products.std(axis=2) / np.sqrt(products.shape[2])
    assert (abs(products.mean(axis=2) - relu3_hidden.exact(X)) <= 4 * error).all()


def test_erf_output_is_the_covariance_of_error_functions_with_bias():
    from scipy.special import erf

    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 3))
    features = erf(1.5 * rng.standard_normal((200_000, 3)) @ X.T + 0.7 * rng.standard_normal((200_000, 1)))
    products = features[:, :, None] * features[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(products))
    assert (abs(products.mean(axis=0) - erf_output(weight=1.5, bias=0.7).exact(X)) <= 4 * error).all()


def test_gaussian_is_scipys():
    from scipy.spatial.distance import cdist

    X = np.random.default_rng(0).standard_normal((9, 4))
    np.testing.assert_allclose(
        gaussian(1.7).exact(X, X[:5]), np.exp(-cdist(X, X[:5], "sqeuclidean") / (2 * 1.7**2)), rtol=1e-13
    )


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=named)
def test_the_series_is_mpmaths_taylor_series_to_rounding(kernel):
    with mp.workdps(60):
        expected = mp.taylor(lambda c: truth(kernel, mp.mpf(1), mp.mpf(1), mp.acos(c)), 0, 16)
        found = kernel.series(17)
        for mine, theirs in zip(found, expected, strict=True):
            assert abs(mine - theirs) <= 4 * EPS * abs(theirs) + mp.mpf(10) ** -25  # a difference quotient's zero


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=named)
def test_the_series_is_positive_and_sums_to_the_kernel(kernel):
    coefficients = kernel.series(2000)
    assert (coefficients >= 0).all()
    X = np.stack([rows(angle)[1] for angle in (0.2, 1.0, 2.0, np.pi - 0.2)])
    cosine = (X @ X.T)[np.triu_indices(4, 1)]
    assert abs(cosine).max() < 0.99
    summed = np.polynomial.polynomial.polyval(cosine, coefficients)
    np.testing.assert_allclose(summed, kernel.exact(X)[np.triu_indices(4, 1)], rtol=0, atol=32 * EPS)


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_short_series_are_the_beginning_of_long_ones(terms):
    for kernel in HOMOGENEOUS:
        np.testing.assert_array_equal(kernel.series(terms), kernel.series(9)[:terms])


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=named)
def test_lengths_come_out_to_the_power_of_the_degree(kernel):
    X = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(kernel.exact(8 * X), 64.0**kernel.degree * kernel.exact(X), rtol=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.integers(1, 5))
@settings(max_examples=25)
def test_every_matrix_is_symmetric_and_positive_semidefinite(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, size=(n, 1))
    X[rng.integers(n)] = -X[0]
    for kernel in ALL:
        K = kernel.exact(X)
        np.testing.assert_array_equal(K, K.T)
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -8 * n * EPS * values[-1]


def test_float32_agrees_with_exact_away_from_cosine_one():
    X = np.random.default_rng(0).standard_normal((7, 6)).astype(np.float32)
    blocks = jax.jit(lambda X1, X2: [kernel(X1, X2) for kernel in ALL])(jnp.asarray(X[:4]), jnp.asarray(X[4:]))
    for kernel, found in zip(ALL, blocks, strict=True):
        assert found.dtype == np.float32
        scale = np.sqrt(np.outer(kernel.diag(X[:4]), kernel.diag(X[4:])))
        assert (abs(np.asarray(found) - kernel.exact(X[:4], X[4:])) / scale).max() <= 2e-6, kernel.name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arc_cosine(3), "0, 1 or 2"),
        (lambda: gaussian(0.0), "positive"),
        (lambda: gaussian(np.nan), "positive"),
        (lambda: erf_output(weight=-1.0), "positive"),
        (lambda: erf_output(bias=-1.0), "zero or positive"),
        (lambda: relu_hidden.series(0), "at least one term"),
    ],
)
def test_what_makes_no_kernel_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
