"""The Gram operator against plain NumPy, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from foreign import Linear
from offtangent._errors import InputError
from offtangent.kernels import Gram, gaussian, relu_hidden
from offtangent.kernels.solvable import Kernel


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((7, 4))


def plain(X, ridge=0.0):
    """H∞ + ridge·I, written out with loops."""
    n = len(X)
    H = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            inner, scale = X[i] @ X[j], np.linalg.norm(X[i]) * np.linalg.norm(X[j])
            angle = 0.0 if i == j else np.arccos(inner / scale)
            H[i, j] = inner * (np.pi - angle) / (2 * np.pi) + ridge * (i == j)
    return H


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_dense_and_diag_equal_the_plain_matrix(X, ridge):
    H = Gram(relu_hidden, X, ridge)
    np.testing.assert_allclose(H.dense(), plain(X, ridge), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(H.diag(), plain(X, ridge).diagonal(), rtol=1e-14)
    assert len(H) == 7


def test_dense_is_float64_read_only_and_computed_once(X):
    H = Gram(relu_hidden, X.astype(np.float32))
    assert H.dense().dtype == np.float64
    assert H.dense() is H.dense()
    with pytest.raises(ValueError, match="read-only"):
        H.dense()[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        H.diag()[0] = 1


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 3)])
def test_products_equal_the_plain_matrix_times_it(X, shape, ridge):
    """Away from cosine ±1; the diagonal of the jitted kernel carries √(2ε) = 5e-4 in float32, 2e-8 in float64."""
    v = np.random.default_rng(1).standard_normal(shape)
    with jax.enable_x64(True):
        H = Gram(relu_hidden, X, ridge)
        found = H @ jnp.asarray(v)
        jitted = jax.jit(lambda v: H @ v)(jnp.asarray(v))
    assert found.dtype == jitted.dtype == np.float64
    np.testing.assert_allclose(found, plain(X, ridge) @ v, rtol=0, atol=1e-6)
    np.testing.assert_allclose(jitted, plain(X, ridge) @ v, rtol=0, atol=1e-6)


def test_a_product_keeps_the_dtype_of_its_vector(X):
    v = np.ones(7, np.float32)
    found = Gram(relu_hidden, X, 0.5) @ v
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, plain(X, 0.5) @ v, rtol=0, atol=1e-2)


def test_a_product_can_be_differentiated(X):
    H = Gram(relu_hidden, X)
    gradient = jax.grad(lambda v: v @ (H @ v))(jnp.ones(7))
    np.testing.assert_allclose(gradient, 2 * plain(X) @ np.ones(7), rtol=0, atol=1e-2)


@pytest.mark.parametrize("k", [None, 1, 3, 7])
def test_eigh_gives_the_largest_eigenpairs(X, k):
    found = Gram(relu_hidden, X, 0.1).eigh(k)
    values = np.linalg.eigvalsh(plain(X, 0.1))[::-1]
    np.testing.assert_allclose(found.values, values[:k], rtol=1e-12)
    np.testing.assert_allclose(plain(X, 0.1) @ found.vectors, found.vectors * found.values, atol=1e-12)


@pytest.mark.parametrize("shape", [(7,), (7, 2)])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_solve_inverts_the_plain_matrix(X, shape, ridge):
    b = np.random.default_rng(1).standard_normal(shape)
    np.testing.assert_allclose(
        Gram(relu_hidden, X, ridge).solve(b).value, np.linalg.solve(plain(X, ridge), b), rtol=1e-10
    )


def test_one_input_is_enough():
    H = Gram(relu_hidden, np.array([[3.0, 4.0]]))
    assert H.dense().tolist() == [[12.5]]
    assert H.eigh().values.tolist() == [12.5]
    np.testing.assert_allclose(H.solve(np.array([25.0])), [2.0], rtol=1e-15)


def test_two_inputs_in_one_direction_are_refused_by_name(X):
    X[5] = 2.5 * X[2]
    with pytest.raises(InputError, match=r"Rows 2 and 5 .*ridge"):
        Gram(relu_hidden, X)


def test_a_ridge_admits_parallel_and_zero_rows(X):
    X[5], X[6] = 2.5 * X[2], 0.0
    H = Gram(relu_hidden, X, ridge=1e-3)
    b = np.ones(7)
    np.testing.assert_allclose(H.dense() @ H.solve(b), b, rtol=1e-10)


def test_a_zero_row_is_refused_by_name(X):
    X[3] = 0.0
    with pytest.raises(InputError, match=r"zero row.*row 3"):
        Gram(relu_hidden, X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_is_refused_by_name(X, bad):
    X[4, 1] = bad
    with pytest.raises(InputError, match="row 4, column 1"):
        Gram(relu_hidden, X, ridge=1.0)


@pytest.mark.parametrize("ridge", [-1e-9, np.nan])
def test_a_ridge_below_zero_is_refused(X, ridge):
    with pytest.raises(InputError, match="zero or positive"):
        Gram(relu_hidden, X, ridge)


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_singular_to_rounding_is_refused_with_a_remedy(seed):
    """More than d antiparallel pairs in d dimensions, V-B10: the pivots that rounding leaves have either sign."""
    half = np.random.default_rng(seed).standard_normal((4, 2))
    H = Gram(relu_hidden, np.vstack([half, -half]))
    assert abs(np.linalg.eigvalsh(H.dense())[0]) < 1e-14
    with pytest.raises(InputError, match=r"singular to rounding.*ridge=1e-6"):
        H.solve(np.ones(8))


def test_any_kernel_of_that_shape_will_do(X):
    assert isinstance(Linear(), Kernel)
    np.testing.assert_allclose(Gram(Linear(), X, 1.0).dense(), X @ X.T + np.eye(7), rtol=1e-15)


def test_a_product_with_whole_numbers_is_that_with_the_same_floats(X):
    H = Gram(relu_hidden, X)
    np.testing.assert_allclose(H @ np.arange(7), H.dense() @ np.arange(7.0), rtol=1e-5)


@pytest.mark.parametrize("arguments", [("relu_hidden", np.eye(2)), (np.eye(2), relu_hidden)])
def test_what_is_no_kernel_is_refused_with_an_example(arguments):
    with pytest.raises((InputError, TypeError), match=r"relu_hidden|Type-check"):
        Gram(*arguments)


def test_used_first_while_a_function_is_traced_it_serves_afterwards_too(X):
    """Tiles are made on first use: none may be left behind as a tracer."""
    H, v, expected = Gram(relu_hidden, X), jnp.ones(7), plain(X) @ np.ones(7)

    @jax.jit
    def looped(v):
        return jax.lax.fori_loop(0, 2, lambda _, w: w + H @ v, jnp.zeros_like(v))

    np.testing.assert_allclose(looped(v), 2 * expected, rtol=0, atol=1e-2)
    np.testing.assert_allclose(H @ v, expected, rtol=0, atol=1e-2)
    assert np.isfinite(np.asarray(H.operator().tiles.kept)).all()  # a tracer has no values


def test_another_ridge_shares_the_tiles(X):
    H = Gram(relu_hidden, X)
    other = H.with_ridge(0.5)
    assert other.ridge == 0.5
    assert other.operator().tiles is H.operator().tiles
    np.testing.assert_allclose(other @ np.ones(7), plain(X, 0.5) @ np.ones(7), rtol=0, atol=1e-2)
    np.testing.assert_allclose(other.dense(), plain(X, 0.5), rtol=1e-13, atol=1e-15)


def test_a_ridge_that_made_duplicates_possible_cannot_be_taken_away(X):
    X[5] = X[2]
    with pytest.raises(InputError, match="Rows 2 and 5"):
        Gram(relu_hidden, X, 1.0).with_ridge(0)


@pytest.mark.parametrize(("budget", "kept"), [(None, 1), (np.inf, 1), (4 * 7 * 7, 1), (4 * 7 * 7 - 1, 0), (0, 0)])
def test_tiles_are_kept_as_far_as_the_budget_goes(X, budget, kept):
    assert Gram(relu_hidden, X, budget=budget).operator().tiles.kept.shape[1] == kept


@pytest.mark.parametrize("options", [{"budget": -1}, {"budget": np.nan}, {"devices": []}])
def test_a_budget_below_zero_and_no_devices_are_refused(X, options):
    with pytest.raises(InputError, match=r"0 or more|devices is empty"):
        Gram(relu_hidden, X, **options)


def test_the_precision_of_inner_products_can_be_lowered_and_an_unknown_one_is_refused(X):
    low = Gram(relu_hidden, X, precision="default") @ np.ones(7, np.float32)
    np.testing.assert_allclose(low, plain(X) @ np.ones(7), rtol=0, atol=0.1)
    with pytest.raises(ValueError, match="highest"):
        Gram(relu_hidden, X, precision="utmost") @ np.ones(7, np.float32)


def test_a_user_with_float64_switched_on_gets_the_same_results(X):
    y = np.random.default_rng(1).standard_normal(7)
    H = Gram(relu_hidden, X)
    expected = H.inverse_quadratic(y)
    with jax.enable_x64(True):
        H = Gram(relu_hidden, X)
        found = H.inverse_quadratic(y)
        single, double = H @ np.ones(7, np.float32), H @ np.ones(7)
        assert jax.config.jax_enable_x64
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(np.asarray(double), plain(X) @ np.ones(7), rtol=0, atol=1e-6)
    np.testing.assert_allclose([found.lower, found.upper], [expected.lower, expected.upper], rtol=1e-14)


@pytest.mark.parametrize("shape", [(6,), (14,), (), (1, 7)])
def test_a_vector_of_another_length_is_refused_and_not_reshaped(X, shape):
    with pytest.raises((InputError, TypeError), match=r"expected \(7,\)|Type-check"):
        Gram(relu_hidden, X) @ jnp.ones(shape)


def test_in_float32_the_dense_matrix_is_symmetric_and_right_to_float32(X):
    found = Gram(relu_hidden, X, 0.3).dense(np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, plain(X, 0.3), rtol=0, atol=1e-5)


def test_a_kernel_that_is_not_homogeneous_takes_parallel_rows_and_zero():
    """A Gaussian on a line tells 0, 1 and 2 apart."""
    line = np.array([[0.0], [1.0], [2.0]])
    dense = np.exp(-((line - line.T) ** 2) / 2)
    found = Gram(gaussian(), line).inverse_quadratic(np.ones(3))
    assert found.certified
    np.testing.assert_allclose(found.value, np.ones(3) @ np.linalg.solve(dense, np.ones(3)), rtol=1e-12)
    with pytest.raises(InputError, match=r"Rows 1 and 3 .* equal.*ridge"):
        Gram(gaussian(), line[[0, 1, 2, 1]])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_diagonal_beyond_float64_is_refused_by_name(X, scale):
    with pytest.raises(InputError, match=r"k\(x, x\) is .* in row 0 .*Scale X"):
        Gram(relu_hidden, scale * X)


def test_a_matrix_of_several_tiles_is_the_plain_one(monkeypatch):
    monkeypatch.setattr("offtangent.linalg.stream.rows_per_tile", lambda: 4)
    monkeypatch.setattr("offtangent.kernels.tilewise.SIDES", {jax.default_backend(): 4})
    X = np.random.default_rng(0).standard_normal((9, 4))
    np.testing.assert_allclose(Gram(relu_hidden, X, 0.1).dense(), plain(X, 0.1), rtol=1e-13, atol=1e-15)
    single = Gram(relu_hidden, X, 0.1).dense(np.float32)
    np.testing.assert_array_equal(single, single.T)
    np.testing.assert_allclose(single, plain(X, 0.1), rtol=0, atol=1e-5)
