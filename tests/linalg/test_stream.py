"""Streamed float64 products against extended precision, and the floor of V-B12 against its formula, written out."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.linalg import stream
from offtangent.linalg.stream import Cut, product_with_error, series_floor, tile_slices

ROWS, N, D = 7, 20, 4  # three groups of 7


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(stream, "rows_per_tile", lambda: ROWS)


def noise(X1, X2):
    """Symmetric, of either sign, and different at every entry."""
    return 1e-6 * jnp.sin(1e3 * (X1.sum(axis=1)[:, None] + X2.sum(axis=1)))


def noisy(X1, X2):
    return X1 @ X2.T + noise(X1, X2), jnp.abs(noise(X1, X2)) * 1.0001


def clean(X1, X2):
    return X1 @ X2.T, 3 * D * stream.EPS * jnp.abs(X1) @ jnp.abs(X2).T


def diagonal(X):
    return 1 + (X * X).sum(axis=1), 3 * D * stream.EPS * (1 + (X * X).sum(axis=1))


def inputs(columns=2):
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)), rng.standard_normal((N, columns)) * 10.0 ** rng.integers(-6, 6, (N, 1))


def exact(X, x):
    """K(X, X) x with the diagonal as above, in extended precision."""
    X, x = X.astype(np.longdouble), x.astype(np.longdouble)
    return X @ X.T @ x + x


@pytest.mark.parametrize("block", [clean, noisy])
def test_a_product_errs_by_no_more_than_its_bound(block):
    X, x = inputs()
    product, bound = product_with_error(block, diagonal, X, x)
    assert product.dtype == bound.dtype == np.float64
    assert (np.abs(product - exact(X, x)) <= bound).all()


def test_the_bound_is_that_of_the_kernel_and_of_the_sum():
    """(7 rows + 3 groups + 3) ε for the sum and 12 ε for the kernel, with as much again to spare: 50 ε Σ|K||x|."""
    X, x = inputs()
    _, bound = product_with_error(clean, diagonal, X, x)
    assert (bound <= 50 * stream.EPS * (np.abs(X) @ np.abs(X).T + np.eye(N)) @ np.abs(x)).all()


def test_a_kernel_that_hides_its_error_would_be_noticed_here():
    X, x = inputs()
    product, _ = product_with_error(noisy, diagonal, X, x)
    _, bound = product_with_error(clean, diagonal, X, x)
    assert (np.abs(product - exact(X, x)) > bound).any()


def test_the_pass_can_be_watched_and_tells_its_share():
    told = []
    product_with_error(clean, diagonal, *inputs(), watch=told.append)
    np.testing.assert_allclose(told, np.arange(1, 7) / 6)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 13, 14, 15])
def test_slices_cover_the_upper_triangle_once(n):
    covered = np.zeros((n, n), int)
    for rows, columns in tile_slices(n):
        covered[rows, columns] += 1
    assert (covered[np.triu_indices(n)] == 1).all()
    cut = Cut.of(n)
    assert n <= cut.size * cut.groups < n + cut.groups
    assert cut.size <= ROWS


def exponential(u):
    return jnp.exp(u)


def hidden(u):
    return u * (np.pi - jnp.arccos(u)) / (2 * np.pi)


def hidden_coefficients(terms):
    """SPEC B5: u/4 + (1/2π) Σ_{k≥1} ((2k−3)!!/(2k−2)!!) u^{2k}/(2k−1)."""
    found = np.zeros(terms)
    found[1] = 0.25
    for k in range(1, (terms + 1) // 2):
        odd, even = math.prod(range(1, 2 * k - 2, 2)), math.prod(range(2, 2 * k - 1, 2))
        found[2 * k] = odd / even / (2 * k - 1) / (2 * math.pi)
    return found


KERNELS = {
    "exponential": (exponential, np.exp, np.array([1 / math.factorial(k) for k in range(5)])),
    "hidden": (hidden, lambda u: u * (np.pi - np.arccos(u)) / (2 * np.pi), hidden_coefficients(9)),
}


def directions(kind):
    rng = np.random.default_rng(3)
    U = rng.standard_normal((N, 3 * N))
    if kind == "in pairs":
        U[1::2] = U[::2] + 0.1 * U[1::2]
    elif kind == "in a cluster":
        U = U[0] + 0.5 * U
    elif kind == "antiparallel":
        U[1::2] = -U[::2]
    elif kind == "in few dimensions":
        U[:, D:] = 0
    return U / np.linalg.norm(U, axis=1, keepdims=True)


def by_the_book(g, coefficients, U, head):
    """min_i (T_L(1) − Σ_{j≠i} T_L(|u_ij|)), with T_L = g less the powers up to L = `head`."""
    u = np.minimum(np.abs(U @ U.T), 1.0)
    np.fill_diagonal(u, 1.0)
    T = g(u) - sum(a * u**power for power, a in enumerate(coefficients[: head + 1]))
    return (2 * T.diagonal() - np.abs(T).sum(axis=1)).min()


@pytest.mark.parametrize("kind", ["in general", "in pairs", "in a cluster", "antiparallel", "in few dimensions"])
@pytest.mark.parametrize(("name", "sample"), [("exponential", 256), ("hidden", 5)])
def test_the_floor_is_that_of_the_formula_and_below_the_smallest_eigenvalue(name, kind, sample, monkeypatch):
    monkeypatch.setattr(stream, "SAMPLE", sample)
    traced, g, coefficients = KERNELS[name]
    U = directions(kind)
    found = series_floor(traced, coefficients, U)
    assert found <= np.linalg.eigvalsh(g(np.clip(U @ U.T, -1, 1)))[0]
    formula = {L: by_the_book(g, coefficients, U, L) for L in range(1, len(coefficients))}
    doubling = [formula[2**k] for k in range(6) if 2**k in formula]
    assert found <= max(*formula.values(), 0.0)
    if found > 0:  # else it says nothing, and may stop early
        assert min(abs(found - value) for value in doubling) <= 1e-12
        assert sample < N or abs(found - max(doubling)) <= 1e-12
    else:
        assert max(doubling) <= 1e-12 or sample < N
    assert found > 0 or kind not in ("in general", "in pairs")


def test_the_floor_can_be_watched_and_leaves_the_users_precision_alone():
    told = []
    series_floor(exponential, KERNELS["exponential"][2], directions("in general"), watch=told.append)
    np.testing.assert_allclose(told, np.arange(1, 1 + len(told)) / len(told))
    assert len(told) == 6
    assert jnp.ones(1).dtype == np.float32
    assert not jax.config.jax_enable_x64
