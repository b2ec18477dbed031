"""Rectangular blocks against the dense matrix: products, transposes, derivatives, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import relu_hidden
from offtangent.kernels.cross import Cross
from offtangent.linalg import stream

P, Q = 9, 5


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Three groups of rows against two of columns."""
    monkeypatch.setattr(stream, "rows_per_tile", lambda: 3)


def rows(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 4))


def plain(X1, X2):
    inner = X1 @ X2.T
    angle = np.arccos(inner / np.linalg.norm(X1, axis=1)[:, None] / np.linalg.norm(X2, axis=1))
    return inner * (np.pi - angle) / (2 * np.pi)


@pytest.fixture
def K():
    return Cross(relu_hidden, rows(P), rows(Q, 1))


def test_dense_is_the_plain_formula_in_float64(K):
    assert K.shape == (P, Q)
    assert K.dense().dtype == np.float64
    np.testing.assert_allclose(K.dense(), plain(rows(P), rows(Q, 1)), rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", [(Q,), (Q, 2, 2)])
def test_a_product_of_any_shape_is_that_of_the_dense_matrix(K, shape):
    v = np.random.default_rng(2).standard_normal(shape)
    found = K @ v
    assert found.shape == (P, *shape[1:])
    np.testing.assert_allclose(found, np.tensordot(K.dense(), v, 1), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 4)])
def test_any_numbers_of_rows_will_do(p, q):
    K = Cross(relu_hidden, rows(p), rows(q, 1))
    np.testing.assert_allclose(K @ np.ones(q), K.dense() @ np.ones(q), rtol=0, atol=1e-5)


def test_in_float64_a_product_is_accurate_to_float64(K):
    v = np.random.default_rng(2).standard_normal(Q)
    with jax.enable_x64(True):
        found = K @ v
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, K.dense() @ v, rtol=0, atol=1e-13)


def test_the_transpose_is_the_transpose(K):
    assert K.T.shape == (Q, P)
    np.testing.assert_array_equal(K.T.dense(), K.dense().T)
    np.testing.assert_allclose(K.T @ np.ones(P), K.dense().T @ np.ones(P), rtol=0, atol=1e-5)


def test_a_product_can_be_jitted_mapped_and_differentiated_and_stores_no_tiles(monkeypatch):
    """There are 64 of them, of 4 KiB."""
    monkeypatch.setattr(stream, "rows_per_tile", lambda: 32)
    K = Cross(relu_hidden, rows(256), rows(256, 1))
    v = jnp.asarray(np.random.default_rng(2).standard_normal((3, 256)), jnp.float32)
    both = jax.jit(lambda v: (jax.vmap(lambda v: K @ v)(v), jax.grad(lambda v: jnp.sum((K @ v) ** 2))(v[0])))
    compiled = both.lower(v).compile()
    products, gradient = compiled(v)
    np.testing.assert_allclose(products, v @ K.dense().T, rtol=0, atol=1e-4)
    np.testing.assert_allclose(gradient, 2 * K.dense().T @ K.dense() @ v[0], rtol=0, atol=1e-2)
    assert compiled.memory_analysis().temp_size_in_bytes <= 25 * 32 * 32 * 4


def test_whole_numbers_count_as_floats(K):
    np.testing.assert_allclose(K @ np.arange(Q), K.dense() @ np.arange(Q), rtol=0, atol=1e-5)


def test_it_remembers_the_inputs_it_was_given():
    X1, X2 = rows(P), rows(Q, 1)
    K = Cross(relu_hidden, X1, X2)
    X1[0], X2[0] = 0.0, 0.0
    np.testing.assert_allclose(K.dense(), plain(rows(P), rows(Q, 1)), rtol=0, atol=1e-14)


def test_its_repr_is_one_short_line(K):
    assert repr(K) == "Cross(relu_hidden, 9 × 5 inputs)"


@pytest.mark.parametrize("shape", [(P,), (2 * Q,), (), (1, Q)])
def test_a_vector_of_another_length_is_refused(K, shape):
    with pytest.raises((InputError, TypeError), match=r"expected \(5,\)|Type-check"):
        K @ np.ones(shape)


@pytest.mark.parametrize(
    ("X1", "message"),
    [(rows(3)[:, :2], "2 features and X2 has 4"), (rows(3) * np.nan, "NaN"), (rows(3)[0], "2 dimensions")],
)
def test_inputs_that_do_not_fit_are_refused(X1, message):
    with pytest.raises((InputError, TypeError), match=f"{message}|Type-check"):
        Cross(relu_hidden, X1, rows(Q, 1))
