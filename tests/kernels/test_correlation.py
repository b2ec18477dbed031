"""Correlation kernels: closed forms against finite networks and printed formulas, spectra against brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import kernels
from offtangent._errors import InputError
from offtangent.kernels import gaussian
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.coordinates import correlation_regression, cube_coefficients
from offtangent.kernels.correlation import (
    CORRELATION_KERNELS,
    arcsine,
    check_correlation,
    correlation_kernel,
    linear_plus_power,
    recursive,
)
from offtangent.kernels.cube import CubeKernel
from offtangent.kernels.residual import resnet
from offtangent.special.boolean import character, corners, hamming, subsets


def cube(n, dim, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (n, dim))


class Weighted:
    """Π_j (1 + a_j x_j y_j): a correlation kernel that depends on more than ⟨x, y⟩, with λ_S² = Π_{j∈S} a_j."""

    name = "weighted"

    def __init__(self, weights):
        self.weights = np.asarray(weights)

    def __call__(self, X1, X2):
        return jnp.prod(1 + X1[:, None] * X2[None] * self.weights * len(self.weights), axis=2)

    def diag(self, X):
        return np.full(len(X), np.prod(1 + self.weights))

    def exact(self, X1, X2=None):
        X2 = X1 if X2 is None else X2
        return np.prod(1 + X1[:, None] * X2[None] * self.weights * len(self.weights), axis=2)


class Turned(Weighted):
    """The Gaussian kernel of Rx with a matrix R that is no diagonal one."""

    name = "turned"

    def exact(self, X1, X2=None):
        R = np.random.default_rng(0).standard_normal((X1.shape[1], X1.shape[1]))
        return gaussian(1.0).exact(X1 @ R, (X1 if X2 is None else X2) @ R)


def features(params, X):
    """σ(h) + σ(h') of (2.1) in the NTK parametrisation, with weight 1.3 and bias 0.4."""
    m = params["U"].shape[0]
    first = jax.nn.relu(1.3 * X @ params["W"] + 0.4 * params["b"])
    return first + jax.nn.relu(1.3 * first @ params["U"] / m**0.5 + 0.4 * params["c"])


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
def test_the_resnet_s_kernel_is_the_mean_over_wide_networks(kind):
    X = np.random.default_rng(0).standard_normal((3, 4)) / 2
    width, found = 400, []
    for key in jax.random.split(jax.random.key(0), 30):
        parts = jax.random.split(key, 5)
        shapes = {"W": (4, width), "b": (width,), "U": (width, width), "c": (width,)}
        params = {name: jax.random.normal(k, shapes[name]) for name, k in zip(shapes, parts, strict=False)}
        A = jax.random.normal(parts[4], (width,))
        if kind == "nngp":
            hidden = np.asarray(features(params, jnp.asarray(X, jnp.float32)), np.float64)
            found.append(hidden @ hidden.T / width)
        else:
            found.append(np.asarray(_tangent(params, A, jnp.asarray(X, jnp.float32)), np.float64))
    found = np.stack(found)
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    exact = resnet(weight=1.3, bias=0.4, kind=kind).exact(X)
    # beside the standard error, networks of width m have a bias of order 1/m
    assert (abs(found.mean(axis=0) - exact) <= 4 * error + 2 * exact.max() / width).all()
    assert (error < 0.03 * exact.max()).all()


@jax.jit
def _tangent(params, A, X):
    rows = jax.vmap(jax.grad(lambda p, x: features(p, x[None])[0] @ A / len(A) ** 0.5), (None, 0))(params, X)
    flat = jnp.concatenate([leaf.reshape(len(X), -1) for leaf in jax.tree.leaves(rows)], axis=1)
    return jnp.matmul(flat, flat.T, precision="highest")


def test_arcsine_is_the_printed_formula_and_the_random_features_of_the_sign():
    X = np.random.default_rng(0).standard_normal((4, 3))
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(arcsine.exact(X), np.arcsin(np.clip(U @ U.T, -1, 1)), atol=1e-7)  # arcsin' is ∞ at 1
    signs = np.sign(np.random.default_rng(1).standard_normal((100_000, 3)) @ X.T)
    assert abs(signs.T @ signs / 1e5 - 2 / np.pi * arcsine.exact(X)).max() < 4 / 1e5**0.5


def test_the_series_of_the_arcsine_adds_up_to_it():
    cosine = 0.6
    X = np.array([[1.0, 0.0], [cosine, 0.8]])
    assert arcsine.series(80) @ cosine ** np.arange(80.0) == pytest.approx(arcsine.exact(X)[0, 1], abs=1e-15)


def test_the_recursive_kernel_has_zhang_lee_and_jordan_s_closed_form():
    """After p steps k = (p − (p − 1)u)/(p + 1 − pu)."""
    X = cube(5, 6) / 6**0.5
    u, p = X @ X.T, 4
    np.testing.assert_allclose(recursive(p).exact(X), (p - (p - 1) * u) / (p + 1 - p * u), rtol=1e-12)


@pytest.mark.parametrize("length", [1 + 1e-5, 2.0])
def test_the_recursive_kernel_refuses_inputs_longer_than_one(length):
    X = np.vstack([np.eye(3), length * np.eye(3)[:1]])
    calls = (lambda k: k.exact(X), lambda k: k.exact(X[:3], X), lambda k: k.diag(X))
    for call in calls:
        with pytest.raises(InputError, match=rf"row of length {length:.6g}: .* ‖x‖ ≤ 1.*Divide X"):
            call(recursive(3))
    found = np.asarray(jax.jit(recursive(3))(jnp.asarray(X), jnp.asarray(X)))
    assert np.isnan(found[3]).all()
    assert np.isnan(found[:, 3]).all()
    np.testing.assert_allclose(found[:3, :3], recursive(3).exact(X[:3]), rtol=1e-6)


@pytest.mark.parametrize("name", CORRELATION_KERNELS)
def test_every_named_kernel_is_unchanged_when_a_coordinate_of_both_changes_sign(name):
    """On inputs of any length, not on the cube alone."""
    rng = np.random.default_rng(0)
    X, flips = rng.standard_normal((5, 4)) / 4, rng.choice([-1.0, 1.0], 4)
    kernel = correlation_kernel(name)
    np.testing.assert_allclose(kernel.exact(X * flips), kernel.exact(X), atol=1e-13)
    assert check_correlation(name, 4) == kernel


def test_a_kernel_that_tells_signs_apart_is_refused_and_told_why():
    with pytest.raises(InputError, match=r"turned is no correlation kernel.*coordinate 0 of both.*kernels.deep"):
        check_correlation(Turned(np.ones(5)), 5)
    with pytest.raises(InputError, match="no correlation kernel"):
        correlation_regression(Turned(np.ones(5)), cube(6, 5), np.ones((6, 1)), strength=0.1)


def test_a_finite_network_s_kernel_is_refused():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((5, 50))

    class Finite(Weighted):
        name = "finite"

        def exact(self, X1, X2=None):
            return np.maximum(X1 @ W, 0) @ np.maximum((X1 if X2 is None else X2) @ W, 0).T

    with pytest.raises(InputError, match="limit of infinite width"):
        check_correlation(Finite(np.ones(5)), 5)


def test_an_empirical_tangent_kernel_is_refused_with_its_limit_to_take_instead():
    X = cube(4, 3)
    K = kernels.empirical_ntk(lambda w, x: jnp.tanh(x @ w), jnp.ones(3), jnp.asarray(X, jnp.float32))
    with pytest.raises(InputError, match=r"no correlation kernel: it depends on the draw.*kernels.residual.resnet\(\)"):
        correlation_regression(K, X, np.ones((4, 1)), strength=1)


def test_a_table_by_name_is_that_of_the_kernel():
    np.testing.assert_array_equal(CubeKernel.of("gaussian", 30).values, CubeKernel.of(gaussian(), 30).values)


def test_a_correlation_kernel_of_more_than_the_inner_product_passes_and_is_enumerated():
    weights = np.array([0.5, 0.1, 0.3, 0.9, 0.2])
    kernel = Weighted(weights)
    assert check_correlation(kernel, 5) is kernel
    found = cube_coefficients(kernel, 5)
    for number in range(2**5):
        members = [j for j in range(5) if number >> j & 1]
        assert found[number] == pytest.approx(weights[members].prod(), abs=1e-14)


def test_a_kernel_that_is_not_positive_definite_is_refused_by_its_subset():
    with pytest.raises(InputError, match=r"S = \(1,\).*not positive definite"):
        cube_coefficients(Weighted([0.1, -0.5, 0.1]), 3)


class Opposite(Weighted):
    """−⟨x, y⟩: of the products x_j y_j alone, and the opposite of a kernel."""

    name = "opposite"

    def exact(self, X1, X2=None):
        return -X1 @ (X1 if X2 is None else X2).T


class Broken(Weighted):
    name = "broken"

    def exact(self, X1, X2=None):
        return np.full((len(X1), len(X1 if X2 is None else X2)), np.nan)


def test_a_kernel_with_a_negative_eigenvalue_is_no_correlation_kernel():
    for kernel in (Opposite([1.0]), AngularKernel("opposite", lambda pair, _: -pair.inner), Weighted([0.1, -0.5, 0.1])):
        with pytest.raises(InputError, match=f"{kernel.name} is not positive definite: .* has the eigenvalue -"):
            check_correlation(kernel, 3)
        with pytest.raises(InputError, match="not positive definite"):
            correlation_regression(kernel, cube(4, 3), np.ones((4, 1)), strength=1.0)


class Leaning(Weighted):
    """With a millionth of (1 + x_1)(1 + y_1), on corners of ±1: a kernel, of more than products."""

    name = "leaning"

    def exact(self, X1, X2=None):
        first, second = (1 + np.sign(rows[:, 0]) for rows in (X1, X1 if X2 is None else X2))
        return gaussian().exact(X1, X2) + 1e-6 * np.outer(first, second)


def test_a_kernel_that_tells_signs_apart_by_a_millionth_is_refused():
    with pytest.raises(InputError, match="leaning is no correlation kernel"):
        check_correlation(Leaning([1.0]), 5)


def test_a_kernel_with_an_eigenvalue_of_minus_a_millionth_is_refused():
    """⟨x, y⟩² sees products of two coordinates alone: of 16 corners in 4 dimensions nine directions are left."""
    kernel = AngularKernel("nearly", lambda pair, _: pair.inner**2 - 1e-6 * pair.inner)
    with pytest.raises(InputError, match=r"nearly is not positive definite: .* has the eigenvalue -.*e-06"):
        check_correlation(kernel, 4)


@pytest.mark.parametrize("dim", [3, 16, 60])
@pytest.mark.parametrize("name", CORRELATION_KERNELS)
def test_every_named_kernel_has_none_beyond_rounding(name, dim):
    assert check_correlation(name, dim).name == correlation_kernel(name).name


def test_a_kernel_that_is_not_finite_says_so_and_nothing_of_signs():
    with pytest.raises(InputError, match="broken gives 256 values that are NaN or infinite"):
        check_correlation(Broken([1.0]), 3)
    with pytest.raises(InputError, match="broken gives 256 values that are NaN or infinite"):
        cube_coefficients(Broken([1.0]), 3)


ANGULAR = [name for name in CORRELATION_KERNELS if isinstance(correlation_kernel(name), AngularKernel)]


@pytest.mark.parametrize("name", ANGULAR)
def test_the_spectrum_of_every_named_kernel_is_its_mean_with_characters(name):
    dim, kernel = 8, correlation_kernel(name)
    x = corners(dim)
    K = kernel.exact(x / dim**0.5)
    found = CubeKernel.of(kernel, dim)
    for s in (0, 1, 2, 4, 7):
        chi = character(subsets(dim, s)[-1], x)
        assert found.spectrum.squares[s] == pytest.approx(chi @ K @ chi / 4**dim, abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(CORRELATION_KERNELS) - set(ANGULAR)))
def test_the_spectrum_of_a_convolutional_kernel_is_its_mean_with_characters_and_knows_neighbours(name):
    dim, kernel = 7, correlation_kernel(name)
    x = corners(dim)
    K, found = kernel.exact(x / dim**0.5), cube_coefficients(name, dim)
    for number in range(2**dim):
        chi = character([j for j in range(dim) if number >> j & 1], x)
        assert found[number] == pytest.approx(chi @ K @ chi / 4**dim, abs=1e-12)
    assert found[0b0000011] > 1.1 * found[0b0001001]  # ReLUs of patches of three: x₁x₂ comes before x₁x₄


def test_a_table_is_the_kernel_and_its_square_the_mean_over_a_third_input():
    dim, kernel = 7, gaussian(0.8)
    table, x = CubeKernel.of(kernel, dim), corners(dim)
    K = kernel.exact(x / dim**0.5)
    np.testing.assert_allclose(table.exact(x), K, atol=1e-14)
    np.testing.assert_allclose(table.squared.exact(x), K @ K / len(x), atol=1e-14)
    found = np.asarray(table(jnp.asarray(x[:5], jnp.float32), jnp.asarray(x, jnp.float32)))
    np.testing.assert_allclose(found, K[:5], rtol=1e-6)
    np.testing.assert_array_equal(table.diag(x), np.diagonal(table.exact(x)))


@pytest.mark.parametrize("kernel", ["gaussian", "u + u⁴", "ResNet NTK", Weighted(np.linspace(0.1, 0.9, 8))])
def test_both_coordinates_give_the_same_function_and_the_same_norm(kernel):
    """Proposition E.1."""
    X, Y = cube(40, 8), np.random.default_rng(1).standard_normal((40, 3))
    fit = correlation_regression(kernel, X, Y, strength=1e-3)
    found, x = fit.coordinates(), corners(8)
    np.testing.assert_allclose(found.at_corners(), fit.predict(x / 8**0.5), atol=1e-10)
    np.testing.assert_allclose(found.norms, fit.norms, rtol=1e-10)
    np.testing.assert_allclose(found.u[5], found.coefficients[5] * character((0, 2), X) @ fit.beta, atol=1e-10)


def test_the_solution_has_the_least_value_of_3_1():
    X, rng = cube(20, 6), np.random.default_rng(1)
    Y, strength = rng.standard_normal((20, 2)), 0.05
    fit = correlation_regression("gaussian", X, Y, strength=strength)
    K = gaussian().exact(X / 6**0.5)

    def objective(beta):
        return ((K @ beta - Y) ** 2).sum() / 20 + strength * np.trace(beta.T @ K @ beta)

    assert fit.objective == pytest.approx(objective(fit.beta), rel=1e-12)
    for step in 0.01 * rng.standard_normal((5, 20, 2)):
        above, below = objective(fit.beta + step), objective(fit.beta - step)
        assert min(above, below) > fit.objective
        assert above - below == pytest.approx(0, abs=1e-12)  # flat to first order


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_a_prediction_takes_corners_of_any_size_and_goes_through_the_samples(size):
    X, rng = corners(5)[:20], np.random.default_rng(2)
    Y = rng.standard_normal((20, 2))
    fit = correlation_regression("gaussian", X, Y, strength=1e-12)
    np.testing.assert_allclose(fit.predict(size * X), Y, atol=1e-6)


def test_norms_by_degree_are_the_sums_over_subsets_of_one_size():
    X, Y = cube(30, 7), np.random.default_rng(1).standard_normal((30, 2))
    fit = correlation_regression("gaussian", X, Y, strength=1e-2)
    u = fit.coordinates().u
    sizes = np.array([bin(number).count("1") for number in range(2**7)])
    expected = np.stack([(u[sizes == s] ** 2).sum(axis=0) for s in range(8)])
    found = CubeKernel.of(gaussian(), 7).degree_norms(X, fit.beta)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_repeated_samples_share_a_corner():
    X = np.vstack([cube(5, 4), cube(5, 4)])
    fit = correlation_regression("gaussian", X, np.arange(10.0)[:, None], strength=0.1)
    np.testing.assert_allclose(fit.coordinates().norms, fit.norms, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: correlation_kernel("laplace"), "'gaussian', 'arcsine'"),
        (lambda: correlation_kernel(3), "kernel is an int"),
        (lambda: check_correlation(len, 3), "kernel is a builtin"),
        (lambda: linear_plus_power(1), "power=1"),
        (lambda: recursive(0), "depth=0"),
        (lambda: resnet(weight=0.0), "weight=0"),
        (lambda: resnet(kind="last"), "kind='last'"),
        (lambda: CubeKernel.of(Weighted([0.5, 0.5]), 2), "no kernel of lengths and angle"),
        (lambda: cube_coefficients("gaussian", 25), "goes up to dim=20"),
        (lambda: CubeKernel.of(gaussian(), 4).exact(np.ones((1, 3))), "a table for 4 dimensions"),
        (lambda: correlation_regression("gaussian", cube(4, 3), np.ones((4, 1)), strength=0), "λ in"),
        (lambda: correlation_regression(None, cube(4, 3), np.ones((4, 1)), strength=1), "CORRELATION_KERNELS"),
        (lambda: CubeKernel.of("gauss", 30), "expected one of 'gaussian'"),
        (lambda: CubeKernel.of(Weighted(np.ones(5)), 5), "no kernel of lengths and angle"),
        (lambda: cube_coefficients(CubeKernel.of("gaussian", 6), 5), "a table for 6 dimensions"),
        (lambda: correlation_regression("gaussian", cube(4, 3), np.ones(4), strength=1), r"Y\[:, None\]"),
        (lambda: correlation_regression("gaussian", np.ones((2, 2)) * [1, 2], np.ones((2, 1)), strength=1), "corners"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_a_table_serves_as_a_kernel_of_ridge_regression():
    X, y = cube(30, 9), np.random.default_rng(1).standard_normal(30)
    first, second = (
        kernels.ridge_regression(kernel, X / 3, y, ridge=0.1) for kernel in (gaussian(), CubeKernel.of(gaussian(), 9))
    )
    np.testing.assert_allclose(first.coefficients, second.coefficients, rtol=1e-10)
    assert hamming(X).max() <= 9
