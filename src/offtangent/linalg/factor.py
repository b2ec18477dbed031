"""A Cholesky factorisation tile by tile, of a matrix that is never stored, with a proven bound on what it leaves.

    S_ij = A_ij − Σ_{k<j} L_ik L_jkᵀ,        S_jj = L_jj L_jjᵀ,        L_ij = S_ij L_jj⁻ᵀ        for i > j

Tiles A_ij = K(Xᵢ, Xⱼ) are made when their turn comes, and of L the lower half is kept. How a library solves with a
triangle matters little, since what it leaves is measured: R_ij = S_ij − L_ij L_jjᵀ. With b rows in a tile and t tiles
in a row, the sums that make R have an error of (b + t + 4)ε (|A| + |L||L|ᵀ) at most, entry by entry, whatever the order
within a product of tiles, and the norm of a symmetric matrix is at most the largest sum of a row. So

    ‖A − σI − LLᵀ‖ ≤ max_i Σ_j (|R| + (b + t + 4)ε (|A| + |L||L|ᵀ))_ij = error,        λ_min(A) ≥ σ − error,

because LLᵀ has no negative eigenvalues. A is the matrix as the kernel's tiles give it in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from offtangent.linalg.brackets import EPS
from offtangent.linalg.krylov import lanczos
from offtangent.linalg.stream import Share

MARGIN = 1.001  # for the rounding of the sums of moduli themselves
LANCZOS, SETTLED = 60, 1e-6  # steps at most, and the relative change of a Ritz value that ends them

Block = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False, repr=False)
class TiledFactor:
    """L with A − `shift`·I = LLᵀ + R and ‖R‖ ≤ `error`."""

    tiles: dict[tuple[int, int], Float[Array, "p q"]]
    shift: float
    error: float

    @property
    def groups(self) -> int:
        return max(i for i, _ in self.tiles) + 1

    def solve(self, b: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
        """(LLᵀ)⁻¹b in float64. Time O(n²c)."""
        with jax.enable_x64(True):
            ends = np.cumsum([self.tiles[j, j].shape[0] for j in range(self.groups)])[:-1]
            parts: list[Any] = [jnp.asarray(part) for part in np.split(np.asarray(b, np.float64), ends)]
            for j in range(self.groups):
                parts[j] = _triangle(self.tiles[j, j], parts[j], False)
                for i in range(j + 1, self.groups):
                    parts[i] = _less(parts[i], self.tiles[i, j], parts[j], False)
            for j in reversed(range(self.groups)):
                for i in range(j + 1, self.groups):
                    parts[j] = _less(parts[j], self.tiles[i, j], parts[i], True)
                parts[j] = _triangle(self.tiles[j, j], parts[j], True)
            return np.concatenate([np.asarray(part) for part in parts])

    def lowest(self, *, watch: Callable[[int], None] | None = None) -> Float[np.ndarray, " n"]:
        """A unit vector near the eigenvector of LLᵀ's smallest eigenvalue: Lanczos with (LLᵀ)⁻¹, from a random start.

        It ends when the Ritz value has settled. `watch` is told the number of each step. Time O(n²) a step.
        """
        n = sum(self.tiles[j, j].shape[0] for j in range(self.groups))
        start = np.random.default_rng(0).standard_normal((n, 1))
        before, weights, found = np.inf, np.ones(1), None
        for step, found in enumerate(lanczos(self.solve, start, min(LANCZOS, n)), 1):
            alpha, beta = found.tridiagonal(0)
            values, vectors = scipy.linalg.eigh_tridiagonal(alpha, beta[:-1])
            before, change, weights = values[-1], abs(before / values[-1] - 1), vectors[:, -1]
            if watch is not None:
                watch(step)
            if change <= SETTLED or not beta[-1] > 0:
                break
        assert found is not None
        vector = weights @ found.basis[: len(weights), :, 0]
        return np.asarray(vector / np.linalg.norm(vector))


def factor_rows() -> int:
    """Of a tile: a larger one would widen the bound, a smaller one leave the device idle."""
    return 1024 if jax.default_backend() == "cpu" else 2048


def factor_bytes(n: int) -> float:
    """What a factorisation of n rows needs at once: the lower half of L, and a few tiles at work."""
    size = min(n, factor_rows())
    return 8.0 * (n * (n + size) / 2 + 6 * size**2)


def tiled_cholesky(
    block: Block,
    X: Float[np.ndarray, "n d"],
    shift: float = 0.0,
    *,
    rows: int | None = None,
    watch: Share | None = None,
) -> TiledFactor | None:
    """The factor of K(X, X) − `shift`·I, or None where a pivot is not positive. Time n³/3, memory n²/2 floats.

    `block(X1, X2)` is a jittable K(X1, X2), called in float64 on tiles on and below the diagonal, of so many `rows`. On
    JAX's default device.

    >>> found = tiled_cholesky(lambda X1, X2: X1 @ X2.T, np.diag([2.0, 1.0]), 0.75)
    >>> found.solve(np.ones((2, 1))).ravel().round(12), found.error < 1e-13
    (array([0.30769231, 4.        ]), True)
    """
    n = len(X)
    size = min(n, factor_rows() if rows is None else rows)
    with jax.enable_x64(True):
        groups = [jnp.asarray(X[i : i + size], jnp.float64) for i in range(0, n, size)]
        count = len(groups)
        tiles: dict[tuple[int, int], Array] = {}
        left = [jnp.zeros(len(group)) for group in groups]  # sums over the rows of |R|
        sizes = [jnp.zeros(len(group)) for group in groups]  # … of |A|
        for j in range(count):
            for i in range(j, count):
                S, rows, columns = _made(block, i == j, groups[i], groups[j], shift)
                sizes[i] = sizes[i] + rows
                sizes[j] = sizes[j] + columns
                for k in range(j):
                    S = _subtracted(S, tiles[i, k], tiles[j, k])
                tiles[i, j], rows, columns = _pivot(S) if i == j else _under(S, tiles[j, j])
                left[i] = left[i] + rows
                left[j] = left[j] + columns
            if not bool(jnp.isfinite(left[j]).all()):
                return None
            if watch is not None:
                watch(1 - (1 - (j + 1) / count) ** 3)
        ones = [jnp.ones(len(group)) for group in groups]
        down = [sum(_moduli(tiles[i, j], ones[i], True) for i in range(j, count)) for j in range(count)]
        sizes = [sizes[i] + sum(_moduli(tiles[i, j], down[j], False) for j in range(i + 1)) for i in range(count)]
        rounding = (size + count + 4) * EPS
        error = max(float(jnp.max(R + rounding * A)) for R, A in zip(left, sizes, strict=True))
    return TiledFactor(tiles, shift, MARGIN * error)


@partial(jax.jit, static_argnums=(0, 1))
def _made(block: Block, same: bool, X1: Array, X2: Array, shift: Array | float) -> tuple[Array, Array, Array]:
    """A tile of A − σI, and the sums of |A| over its rows and, off the diagonal, over its columns."""
    tile = block(X1, X2)
    sizes = jnp.abs(tile)
    if not same:
        return tile, jnp.sum(sizes, axis=1), jnp.sum(sizes, axis=0)
    tile = _symmetric(tile)
    return tile - shift * jnp.eye(len(tile)), jnp.sum(_symmetric(sizes), axis=1), jnp.zeros(len(tile))


@partial(jax.jit, donate_argnums=0)
def _subtracted(S: Array, L1: Array, L2: Array) -> Array:
    return S - L1 @ L2.T


@jax.jit
def _pivot(S: Array) -> tuple[Array, Array, Array]:
    S = _symmetric(S)
    L = jnp.linalg.cholesky(S, symmetrize_input=False)
    return L, jnp.sum(_symmetric(jnp.abs(S - L @ L.T)), axis=1), jnp.zeros(len(S))


@jax.jit
def _under(S: Array, pivot: Array) -> tuple[Array, Array, Array]:
    L = jax.scipy.linalg.solve_triangular(pivot, S.T, lower=True).T
    R = jnp.abs(S - L @ pivot.T)
    return L, jnp.sum(R, axis=1), jnp.sum(R, axis=0)


def _symmetric(S: Array) -> Array:
    """The lower half, on both sides: two products that should be each other's transpose may round differently."""
    return jnp.tril(S) + jnp.tril(S, -1).T


@partial(jax.jit, static_argnums=2)
def _moduli(L: Array, sums: Array, transposed: bool) -> Array:
    return jnp.abs(L.T if transposed else L) @ sums


@partial(jax.jit, static_argnums=3)
def _less(b: Array, L: Array, x: Array, transposed: bool) -> Array:
    return b - (L.T if transposed else L) @ x


@partial(jax.jit, static_argnums=2)
def _triangle(L: Array, b: Array, transposed: bool) -> Array:
    return jax.scipy.linalg.solve_triangular(L, b, lower=True, trans=int(transposed))
