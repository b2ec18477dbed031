"""The kernel of an angle, on the example of H∞: against mpmath, Monte Carlo and its power series, at every angle."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.kernels import gaussian, relu_hidden
from offtangent.kernels.angular import AngularKernel, angles
from offtangent.kernels.closed_forms import arc_cosine
from offtangent.kernels.pairs import polar

EPS = np.finfo(np.float64).eps
SMALL = [1e-14, 3e-12, 1e-10, 2e-8, 1e-6, 1e-4, 0.01, 0.0447, 0.045, 0.3]  # 0.0447: where chords give way to arccos
ANGLES = [*SMALL, 1.0, np.pi / 2, 2.0, *(np.pi - a for a in reversed(SMALL))]


def exact_angle(x, z):
    """The angle of two rows from their float64 coordinates, with 50 digits, by Kahan's formula."""
    with mp.workdps(50):
        x, z = ([mp.mpf(float(c)) for c in v] for v in (x, z))
        r, s = (mp.sqrt(mp.fsum(c * c for c in v)) for v in (x, z))
        x, z = [c / r for c in x], [c / s for c in z]
        apart = mp.sqrt(mp.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
        together = mp.sqrt(mp.fsum((a + b) ** 2 for a, b in zip(x, z, strict=True)))
        return 2 * mp.atan2(apart, together), r * s


def error(found, x, z):
    """|found − H∞(x, z)| in units of ε‖x‖‖z‖."""
    with mp.workdps(50):
        angle, scale = exact_angle(x, z)
        truth = scale * mp.cos(angle) * (mp.pi - angle) / (2 * mp.pi)
        return float(abs(mp.mpf(float(found)) - truth) / scale) / EPS


def pair(angle, dim=5, lengths=(1.0, 1.0), seed=0):
    """Two rows at about this angle; what is exact is the angle of the rounded rows."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(dim)
    u /= np.linalg.norm(u)
    v = rng.standard_normal(dim)
    v -= (u @ v) * u
    v /= np.linalg.norm(v)
    # (cos − 1) by sin²: π − 1e-14 must not round to π
    other = u + (-2 * np.sin(angle / 2) ** 2) * u + np.sin(angle) * v
    return np.stack([lengths[0] * u, lengths[1] * other])


def unit(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("dim", [2, 5, 784])
@pytest.mark.parametrize("angle", ANGLES)
def test_exact_is_accurate_to_a_few_ulp_at_every_angle(angle, dim):
    for seed in range(5):
        x, z = pair(angle, dim, seed=seed)
        assert error(relu_hidden.exact(x[None], z[None])[0, 0], x, z) <= 8


def test_arccos_alone_would_miss_that_accuracy():
    """So the test before this one guards the chord formula."""
    x, z = pair(2e-8)
    angle = np.arccos(np.clip(x @ z / np.linalg.norm(x) / np.linalg.norm(z), -1, 1))
    assert error(np.cos(angle) * (np.pi - angle) / (2 * np.pi), x, z) > 1e5


@pytest.mark.parametrize("lengths", [(1e-150, 1.0), (1e-150, 1e-150), (1e150, 3.0), (1e-200, 1e200), (1e-300, 1e300)])
@pytest.mark.parametrize("angle", [1e-9, 1.0, np.pi - 1e-9])
def test_exact_keeps_its_accuracy_for_tiny_and_huge_rows(angle, lengths):
    x, z = pair(angle, lengths=lengths)
    assert error(relu_hidden.exact(x[None], z[None])[0, 0], x, z) <= 8


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 0.5), (3.0, 1.5), (1e-5, 0.5e-5), (-1.0, 0.0), (-7.0, 0.0)])
def test_parallel_rows_give_half_their_product_and_antiparallel_rows_nothing(factor, expected):
    x = unit(np.random.default_rng(0), 1, 7)
    np.testing.assert_allclose(relu_hidden.exact(x, factor * x), [[expected]], rtol=0, atol=2 * EPS * abs(factor))


def test_the_diagonal_is_exactly_half_the_squared_length():
    X = np.array([[3.0, 4.0], [-1.0, 0.0], [0.0, 2.0**-500]])
    assert relu_hidden.exact(X).diagonal().tolist() == [12.5, 0.5, 2.0**-1001]


def test_exact_agrees_with_monte_carlo():
    """H∞ = E[xᵀx' 1{wᵀx ≥ 0} 1{wᵀx' ≥ 0}], eq. (3), over 400 000 draws of w."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 3))
    active = (rng.standard_normal((400_000, 3)) @ X.T >= 0).astype(float)
    both = active.T @ active / len(active)
    standard_error = np.abs(X @ X.T) * np.sqrt(both * (1 - both) / len(active))
    assert (abs(relu_hidden.exact(X) - X @ X.T * both) <= 4 * standard_error).all()


def test_exact_agrees_with_the_power_series():
    """H∞ = K/4 + (1/2π) Σ_{l≥1} (2l−3)!!/(2l−2)!! K^{2l}/(2l−1), for unit rows: SPEC B5."""
    X = unit(np.random.default_rng(0), 8, 6)
    K = X @ X.T
    np.fill_diagonal(K, 0.0)  # at cosine 1 the series converges like l^{-1/2}
    assert abs(K).max() < 0.97
    series, coefficient = K / 4, 1.0
    for l in range(1, 600):  # noqa: E741
        series += coefficient * K ** (2 * l) / (2 * l - 1) / (2 * np.pi)
        coefficient *= (2 * l - 1) / (2 * l)
    off = ~np.eye(8, dtype=bool)
    np.testing.assert_allclose(relu_hidden.exact(X)[off], series[off], rtol=0, atol=8 * EPS)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-6), (np.float64, 1e-15)])
def test_the_jitted_kernel_agrees_with_exact_away_from_cosine_one(dtype, atol):
    rng = np.random.default_rng(0)
    X1, X2 = unit(rng, 5, 6).astype(dtype), unit(rng, 4, 6).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = jax.jit(relu_hidden)(jnp.asarray(X1), jnp.asarray(X2))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, relu_hidden.exact(X1, X2), rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_jitted_kernel_errs_by_the_root_of_eps_at_cosine_one_as_it_says(dtype, sign):
    X = unit(np.random.default_rng(0), 200, 6).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = np.asarray(jax.jit(relu_hidden)(jnp.asarray(X), sign * jnp.asarray(X))).diagonal()
    truth = np.full(200, 0.5 if sign > 0 else 0.0)
    assert np.isfinite(found).all()
    assert abs(found - truth).max() <= 2 * np.sqrt(2 * np.finfo(dtype).eps) / (2 * np.pi)


def test_zero_rows_have_kernel_zero_jitted_and_exact():
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    truth = [[0.0, 0.0], [0.0, 0.5]]
    np.testing.assert_allclose(relu_hidden.exact(X), truth, atol=EPS)
    np.testing.assert_allclose(jax.jit(relu_hidden)(jnp.asarray(X), jnp.asarray(X)), truth, atol=1e-4)


def test_a_zero_row_is_at_right_angles_to_everything():
    X = np.array([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(angles(X, X), [[np.pi / 2, np.pi / 2], [np.pi / 2, 0.0]])


def test_angles_lie_between_zero_and_pi_with_both_ends():
    X = unit(np.random.default_rng(0), 50, 3)
    found = angles(X, np.vstack([X, -X]))
    assert found.min() >= 0
    assert found.max() <= np.pi
    np.testing.assert_array_equal(found[:, :50].diagonal(), 0)
    np.testing.assert_array_equal(found[:, 50:].diagonal(), np.pi)


def test_many_near_pairs_are_measured_in_several_parts(monkeypatch):
    X = unit(np.random.default_rng(0), 1, 4) + 1e-6 * np.random.default_rng(1).standard_normal((12, 4))
    at_once = angles(X, X)
    monkeypatch.setattr("offtangent.kernels.angular.PAIRS_AT_ONCE", 7)
    np.testing.assert_array_equal(angles(X, X), at_once)


def test_rectangular_blocks_equal_the_symmetric_matrix():
    X = unit(np.random.default_rng(0), 9, 4)
    whole = relu_hidden.exact(X)
    np.testing.assert_allclose(relu_hidden.exact(X[:4], X[4:]), whole[:4, 4:], rtol=0, atol=2 * EPS)
    np.testing.assert_allclose(relu_hidden.exact(X, X), whole, rtol=0, atol=2 * EPS)


@pytest.mark.parametrize(("n", "d"), [(50, 7), (301, 33)])
def test_the_matrix_of_one_set_is_symmetric_to_the_last_bit(n, d):
    K = relu_hidden.exact(np.random.default_rng(0).standard_normal((n, d)))
    np.testing.assert_array_equal(K, K.T)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 7))
@settings(max_examples=50)
def test_rotating_all_inputs_changes_nothing(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    lengths = np.linalg.norm(X, axis=1)
    change = abs(relu_hidden.exact(X @ Q) - relu_hidden.exact(X)) / np.outer(lengths, lengths)
    assert change.max() <= 30 * EPS


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 5))
@settings(max_examples=50)
def test_the_matrix_is_positive_semidefinite(seed, n, d):
    X = np.random.default_rng(seed).standard_normal((n, d))
    values = np.linalg.eigvalsh(relu_hidden.exact(X))
    assert values[0] >= -4 * n * EPS * values[-1]


def test_x_and_its_opposite_alone_have_smallest_eigenvalue_one_half():
    """V-B10: antiparallel inputs do no harm."""
    x = unit(np.random.default_rng(0), 1, 5)
    np.testing.assert_allclose(np.linalg.eigvalsh(relu_hidden.exact(np.vstack([x, -x]))), [0.5, 0.5], atol=2 * EPS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_exact_refuses_what_is_not_finite(bad):
    with pytest.raises(InputError, match="NaN or infinite"):
        relu_hidden.exact(np.array([[1.0, bad]]))


@pytest.mark.parametrize("n", [5, 6, 7])
def test_tiles_of_any_size_give_the_same_matrix(n, monkeypatch):
    X = unit(np.random.default_rng(0), n, 4)
    X[3] = X[0] + 1e-9
    whole, block = relu_hidden.exact(X), relu_hidden.exact(X, X[:5])
    monkeypatch.setattr("offtangent.kernels.angular.SIDE", 3)
    tiled = relu_hidden.exact(X)
    np.testing.assert_array_equal(tiled, tiled.T)
    np.testing.assert_allclose(tiled, whole, rtol=0, atol=2 * EPS)
    np.testing.assert_allclose(relu_hidden.exact(X, X[:5]), block, rtol=0, atol=2 * EPS)


@pytest.mark.parametrize("kernel", [relu_hidden, arc_cosine(0), gaussian(2.0)], ids=lambda kernel: kernel.name)
def test_diag_is_the_diagonal_of_the_exact_matrix_on_host_and_device(kernel):
    X = np.random.default_rng(0).standard_normal((6, 3))
    X[4] = 0.0
    diagonal = kernel.exact(X).diagonal()
    on_host, on_device = kernel.diag(X), jax.jit(kernel.diag)(jnp.asarray(X, jnp.float32))
    assert isinstance(on_host, np.ndarray)
    np.testing.assert_array_equal(on_host, diagonal)
    assert on_device.dtype == np.float32
    np.testing.assert_allclose(on_device, diagonal, rtol=1e-6)


def test_rows_given_by_direction_and_length_make_the_same_block():
    rng = np.random.default_rng(0)
    X1, X2 = (jnp.asarray(rng.standard_normal((n, 6)), jnp.float32) for n in (5, 4))
    whole = jax.jit(relu_hidden)(X1, X2)
    parts = jax.jit(lambda X1, X2: relu_hidden.of_polar(*polar(X1, jnp), *polar(X2, jnp)))(X1, X2)
    np.testing.assert_array_equal(whole, parts)


def test_kernels_are_equal_by_name_and_parameters_so_that_jit_can_hold_them_fixed():
    assert gaussian(2.0) == gaussian(2.0) != gaussian(3.0)
    assert hash(arc_cosine(1)) == hash(arc_cosine(1))
    assert arc_cosine(1) != arc_cosine(2)
    traced = []

    def diag(kernel, X):
        traced.append(kernel)
        return kernel.diag(X)

    jitted = jax.jit(diag, static_argnums=0)
    for kernel in (gaussian(2.0), gaussian(2.0), gaussian(3.0)):
        jitted(kernel, jnp.ones((2, 2)))
    assert traced == [gaussian(2.0), gaussian(3.0)]


def test_gradients_in_the_inputs_agree_with_differences_and_are_finite_for_parallel_opposite_and_zero_rows():
    X = np.random.default_rng(0).standard_normal((5, 3))
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda X1, X2: relu_hidden(X1, X2).sum()))
        step = 1e-6 * np.random.default_rng(1).standard_normal((2, 3))
        change = relu_hidden.exact(X[:2] + step, X[2:]) - relu_hidden.exact(X[:2] - step, X[2:])
        found = slope(jnp.asarray(X[:2]), jnp.asarray(X[2:]))
        np.testing.assert_allclose((np.asarray(found) * 2 * step).sum(), change.sum(), rtol=1e-6)
        corner = np.vstack([2 * X[0], -X[1], np.zeros(3)])
        assert jnp.isfinite(slope(jnp.asarray(X[:2]), jnp.asarray(corner))).all()
        assert jnp.isfinite(slope(jnp.zeros((2, 3)), jnp.asarray(corner))).all()


def test_a_series_without_a_degree_is_refused():
    with pytest.raises(InputError, match="together"):
        AngularKernel("odd", lambda pair, _: pair.inner, lambda terms: np.zeros(terms))
