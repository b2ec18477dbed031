"""Pivoted Cholesky against the matrix it resembles, and the inverse of likeness plus shift against the dense one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.linalg.preconditioner import low_rank, pivoted_cholesky

EPS = float(np.finfo(np.float32).eps)
N = 40


def with_spectrum(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    A = Q * values @ Q.T
    return (A + A.T) / 2


def factor(A, rank, seed=0, dtype=jnp.float32):
    stored = jnp.asarray(A, dtype)
    F, lack = pivoted_cholesky(lambda at: stored[:, at], A.diagonal(), rank, seed=seed)
    return np.asarray(F, np.float64), lack


def spectrum(rank, smallest):
    values = np.zeros(N)
    values[:rank] = np.geomspace(1, smallest, rank)
    return values


ROUNDING = N * EPS  # n ε, times the trace: what a Cholesky factorisation in float32 may err by (Higham 2002, 10.1)
CASES = [(N, 1e-3), (N, 1e-10), (5, 1e-6)]


@pytest.mark.parametrize(("rank", "smallest", "asked"), [(N, 1e-3, 7), (N, 1e-10, N), (5, 1e-6, N)])
def test_the_rest_is_positive_semidefinite_and_its_diagonal_is_known(rank, smallest, asked):
    A = with_spectrum(spectrum(rank, smallest))
    F, lack = factor(A, asked)
    rest = A - F @ F.T
    assert 1 <= F.shape[1] <= min(asked, rank + 2)  # no more columns than directions, but for rounding
    np.testing.assert_allclose(lack, rest.diagonal(), rtol=0, atol=ROUNDING * np.trace(A))
    assert (lack >= 0).all()
    assert np.linalg.eigvalsh(rest)[0] >= -ROUNDING * np.trace(A)


@pytest.mark.parametrize(("rank", "smallest"), CASES)
def test_at_full_rank_nothing_is_left(rank, smallest):
    """Up to ten times the rounding of float32 in each direction, below which pivots count as noise."""
    A = with_spectrum(spectrum(rank, smallest))
    F, _ = factor(A, N)
    np.testing.assert_allclose(F @ F.T, A, rtol=0, atol=10 * ROUNDING * np.trace(A))


def test_in_float64_it_is_exact_to_float64():
    with jax.enable_x64(True):
        A = with_spectrum(spectrum(N, 1e-3))
        F, lack = factor(A, N, dtype=jnp.float64)
    np.testing.assert_allclose(F @ F.T, A, rtol=0, atol=1e-14)
    np.testing.assert_allclose(lack, 0, atol=1e-14)


def test_pivots_go_where_the_diagonal_is():
    """A block of large entries among tiny ones: ten pivots find all ten."""
    A = np.diag(np.where(np.arange(N) % 4 == 0, 1.0, 1e-9))
    F, lack = factor(A, 10)
    np.testing.assert_allclose(F @ F.T, np.where(A == 1, 1.0, 0.0), atol=1e-5)
    assert lack.max() <= 1e-9


def test_the_same_seed_gives_the_same_factor_and_another_another():
    A = with_spectrum(spectrum(N, 1e-3))
    np.testing.assert_array_equal(factor(A, 7)[0], factor(A, 7)[0])
    assert not np.array_equal(factor(A, 7)[0], factor(A, 7, seed=1)[0])


def test_a_matrix_of_zeros_has_a_factor_without_columns():
    F, lack = factor(np.zeros((N, N)), 5)
    assert F.shape == (N, 0)
    assert not lack.any()
    found = low_rank(jnp.asarray(F, jnp.float32), 0.5).solve(jnp.ones((N, 1)))
    np.testing.assert_array_equal(found, 2 * np.ones((N, 1)))


@pytest.mark.parametrize("columns", [7, 40])
@pytest.mark.parametrize("shift", [1e-3, 1.0])
def test_its_inverse_is_the_dense_inverse(columns, shift):
    rng = np.random.default_rng(columns)
    F, v = rng.standard_normal((N, columns)), rng.standard_normal((N, 3))
    with jax.enable_x64(True):
        found = np.asarray(low_rank(jnp.asarray(F), shift).solve(jnp.asarray(v)))
    expected = np.linalg.solve(F @ F.T + shift * np.eye(N), v)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_a_factor_with_dependent_columns_is_inverted_all_the_same():
    F = np.random.default_rng(0).standard_normal((N, 3))
    F = np.concatenate([F, F, 2 * F[:, :1]], axis=1)
    v = np.random.default_rng(1).standard_normal((N, 1))
    found = low_rank(jnp.asarray(F, jnp.float32), 1.0).solve(jnp.asarray(v, jnp.float32))
    np.testing.assert_allclose(found, np.linalg.solve(F @ F.T + np.eye(N), v), rtol=0, atol=1e-4)
