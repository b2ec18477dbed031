"""A tiled Cholesky factor against dense matrices: the factor itself, what it proves, and where it must not prove."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.linalg.factor import factor_bytes, tiled_cholesky

RNG = np.random.default_rng(0)
X = RNG.standard_normal((100, 20))


def squares(X1, X2):
    return (X1 @ X2.T) ** 2


G = squares(X, X)
LOW = np.linalg.eigvalsh(G)[0]


def joined(factor, rows):
    L = np.zeros_like(G)
    for (i, j), tile in factor.tiles.items():
        L[i * rows : i * rows + tile.shape[0], j * rows : j * rows + tile.shape[1]] = tile
    return L


@pytest.mark.parametrize("rows", [100, 32])  # one tile; three and a last one of 4 rows
def test_the_tiles_are_those_of_the_dense_factor(rows):
    found = tiled_cholesky(squares, X, 0.5 * LOW, rows=rows)
    np.testing.assert_allclose(joined(found, rows), np.linalg.cholesky(G - 0.5 * LOW * np.eye(100)), atol=1e-9)
    assert sum(tile.size for tile in found.tiles.values()) * 8 <= factor_bytes(100)


@pytest.mark.parametrize("rows", [100, 32])
def test_what_it_leaves_is_within_its_bound(rows):
    """The product is taken in extended precision, of the tiles as they are."""
    found = tiled_cholesky(squares, X, 0.5 * LOW, rows=rows)
    L = joined(found, rows).astype(np.longdouble)
    left = np.asarray(G.astype(np.longdouble) - 0.5 * LOW * np.eye(100) - L @ L.T, np.float64)
    assert 0 < np.linalg.norm(left, 2) <= found.error < 1e-6 * LOW


@pytest.mark.parametrize("rows", [100, 32])
def test_a_solve_is_that_of_the_dense_matrix(rows):
    b = RNG.standard_normal((100, 3))
    found = tiled_cholesky(squares, X, rows=rows).solve(b)
    np.testing.assert_allclose(found, np.linalg.solve(G, b), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rows", [100, 32])
def test_a_shift_beyond_the_smallest_eigenvalue_has_no_factor(rows):
    assert tiled_cholesky(squares, X, 0.999 * LOW, rows=rows) is not None
    assert tiled_cholesky(squares, X, 1.001 * LOW, rows=rows) is None


def test_the_lowest_vector_is_that_of_the_dense_matrix():
    found = tiled_cholesky(squares, X, rows=32).lowest()
    _, vectors = np.linalg.eigh(G)
    assert abs(found @ vectors[:, 0]) == pytest.approx(1, abs=1e-4)
    assert found @ G @ found == pytest.approx(LOW, rel=1e-5)


def test_an_invariant_space_ends_the_search():
    """Of the identity every vector is an eigenvector, the first one too."""
    heard = []
    found = tiled_cholesky(lambda X1, X2: X1 @ X2.T, np.eye(36), rows=32).lowest(watch=heard.append)
    assert np.linalg.norm(found) == pytest.approx(1)
    assert heard == [1]


def test_a_block_in_error_is_measured_and_not_believed(monkeypatch):
    """A library whose triangular solves were off by 1e-3 would leave that in the bound."""
    honest = jax.scipy.linalg.solve_triangular
    monkeypatch.setattr(jax.scipy.linalg, "solve_triangular", lambda *args, **words: 1.001 * honest(*args, **words))
    found = tiled_cholesky(lambda A, B: squares(A, B) + 0 * jnp.sum(A), X, rows=50)  # another shape: compiled anew
    L = joined(found, 50)
    assert 1e-4 < np.linalg.norm(G - L @ L.T, 2) <= found.error


def test_it_says_how_far_it_is():
    heard = []
    tiled_cholesky(squares, X, rows=32, watch=heard.append)
    np.testing.assert_allclose(heard, [1 - (1 - j / 4) ** 3 for j in range(1, 5)])
