"""The streamed symmetric product against the dense matrix; who meets whom on the ring; what is kept."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.linalg.tiles import SymmetricTiles, _cut, _global, _ring


def block(X1, X2):
    return (X1 @ X2.T) ** 2 + X1 @ X2.T


def diagonal(X):
    """Not what `block` has on its diagonal: the product must take it from here."""
    return 3 + (X * X).sum(axis=1)


def dense(X):
    X = np.asarray(X, np.float64)
    K = (X @ X.T) ** 2 + X @ X.T
    K[np.diag_indices_from(K)] = 3 + (X * X).sum(axis=1)
    return K


def inputs(n, dtype=np.float32):
    return np.random.default_rng(n).standard_normal((n, 3)).astype(dtype)


def built(n, rows, budget, dtype=np.float32):
    return SymmetricTiles.build(block, diagonal, inputs(n, dtype), budget=budget, rows=rows)


def close(found, expected, n, dtype=np.float32):
    """To the rounding of a sum of n terms."""
    scale = np.abs(expected).max() + 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * n * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize(("n", "rows", "tiles_kept"), [(1, 4, 1), (2, 1, 1), (13, 4, 0), (13, 4, 1), (13, 4, np.inf)])
def test_a_product_is_that_of_the_dense_matrix(n, rows, tiles_kept):
    tiles = built(n, rows, tiles_kept * rows * rows * 4)
    v = np.random.default_rng(1).standard_normal((n, 2)).astype(np.float32)
    close(tiles @ jnp.asarray(v), dense(inputs(n)) @ v, n)


@pytest.mark.parametrize("shape", [(13,), (13, 1, 2)])
def test_one_vector_or_many_of_any_shape(shape):
    v = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found = built(13, 4, 64) @ jnp.asarray(v)
    assert found.shape == shape
    close(found, np.tensordot(dense(inputs(13)), v, 1), 13)


def test_in_float64_it_is_accurate_to_float64():
    with jax.enable_x64(True):
        v = jnp.linspace(-1.0, 1.0, 13)
        found = built(13, 4, 0, np.float64) @ v
        assert found.dtype == np.float64
        close(np.asarray(found), dense(inputs(13, np.float64)) @ np.linspace(-1, 1, 13), 13, np.float64)


def test_a_product_can_be_jitted_mapped_and_differentiated_and_still_stores_no_tiles():
    arrays, rest = eqx.partition(built(512, 32, 4096), eqx.is_array)
    v = jnp.asarray(np.random.default_rng(1).standard_normal((3, 512)), jnp.float32)

    @jax.jit
    def both(arrays, v):
        tiles = eqx.combine(arrays, rest)
        return jax.vmap(lambda v: tiles @ v)(v), jax.grad(lambda v: v @ (tiles @ v))(v[0])

    compiled, K = both.lower(arrays, v).compile(), dense(inputs(512))
    products, gradient = compiled(arrays, v)
    close(products, np.asarray(v) @ K, 512)
    close(gradient, 2 * K @ v[0], 512)
    # 136 tiles of 4 KiB: transposing the loop as it stands would store every one of them.
    assert compiled.memory_analysis().temp_size_in_bytes <= 25 * 32 * 32 * 4


@pytest.mark.parametrize("budget", [63, 64, 640, np.inf])
def test_kept_tiles_stay_within_the_budget_and_fill_it(budget):
    """13 rows in 4 groups of 4: ten tiles of 64 bytes."""
    tiles = built(13, 4, budget)
    assert tiles.kept.nbytes == min(budget // 64 if budget < np.inf else 10, 10) * 64
    assert tiles.everything_kept == (budget >= 640)
    assert tiles.bytes_per_device == tiles.kept.nbytes + 16 * 3 * 4


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("T", [2, 4, 6])
def test_on_the_ring_every_pair_of_groups_meets_exactly_once_and_work_is_equal(k, T):
    met, work = [], np.zeros(k, int)
    for s, turn in enumerate(_ring(k, T)):
        for a, pairs in enumerate(turn):
            table = np.array([pairs] * k, np.int32)
            for i, j, counts in _global(table, s, T)[a]:
                assert counts == 1
                met.append((min(i, j), max(i, j)))
            work[a] += len(pairs)
    assert sorted(met) == [(i, j) for i in range(k * T) for j in range(i, k * T)]
    assert len(set(work)) == 1


@pytest.mark.parametrize("n", [1, 2, 7, 64, 97, 1000])
@pytest.mark.parametrize("k", range(1, 9))
def test_groups_hold_all_rows_none_longer_than_asked_and_shared_ones_are_even(n, k):
    T, b = _cut(n, k, 16)
    assert n <= k * T * b
    assert b <= 16
    assert k == 1 or T % 2 == 0
    assert k * T * (b - 1) < n  # no row of padding too many


@pytest.mark.parametrize("shape", [(12,), (14,), (26,), (), (1, 13)])
def test_a_vector_of_another_length_is_refused(shape):
    with pytest.raises((InputError, TypeError), match=r"expected \(13,\)|Type-check"):
        built(13, 4, 0) @ jnp.ones(shape)


@pytest.mark.parametrize("budget", [-1, np.nan])
def test_a_budget_below_zero_is_refused(budget):
    with pytest.raises(InputError, match="0 or more"):
        built(13, 4, budget)
