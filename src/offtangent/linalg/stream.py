"""Passes over the tiles of a symmetric matrix in float64, on the host's initiative: products with their error, floors.

Unlike `SymmetricTiles` these passes are not jitted as a whole: they take minutes at n = 60 000, and between two
tiles they can be watched and interrupted.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.linalg.bracket import EPS

SAMPLE = 256  # rows on which the length of the series' head is chosen

Share = Callable[[float], None]  # told the share of the pass that is done
Block = Callable[[Array, Array], tuple[Array, Array]]  # K(X1, X2) and a bound on its error, entry by entry
Diagonal = Callable[[Array], tuple[Array, Array]]


def rows_per_tile() -> int:
    """2048 on a CPU, where a tile should stay near the cache; 8192 on an accelerator, which wants more at once."""
    return 2048 if jax.default_backend() == "cpu" else 8192


class Cut(NamedTuple):
    """n rows in groups of `size`; the last group is filled up with copies of the first row."""

    n: int
    size: int
    groups: int

    @classmethod
    def of(cls, n: int) -> "Cut":
        groups = -(-n // rows_per_tile())
        return cls(n, -(-n // groups), groups)

    def inputs(self, X: Float[np.ndarray, "n d"]) -> Float[Array, "N d"]:
        return jnp.asarray(np.concatenate([X, np.repeat(X[:1], self.size * self.groups - self.n, axis=0)]))

    def zeros_after(self, x: Float[np.ndarray | Array, "n *c"]) -> Float[Array, "N *c"]:
        return jnp.pad(jnp.asarray(x), ((0, self.size * self.groups - self.n), *((0, 0),) * (x.ndim - 1)))

    def pairs(self, watch: Share | None) -> Iterator[tuple[int, int]]:
        """The first rows of the two groups of each tile on and above the diagonal."""
        total = self.groups * (self.groups + 1) // 2
        done = 0
        for i in range(self.groups):
            for j in range(i, self.groups):
                yield i * self.size, j * self.size
                done += 1
                if watch is not None:
                    watch(done / total)


def product_with_error(
    block: Block,
    diagonal: Diagonal,
    X: Float[np.ndarray, "n d"],
    x: Float[np.ndarray, "n c"],
    *,
    watch: Share | None = None,
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, "n c"]]:
    """K(X, X) x in float64 and a bound on its error, entry by entry: that of the kernel and that of the sum.

    Time O(n²(d/2 + 4c)), memory X and a few tiles. `block` and `diagonal` are jittable; they are called in float64.
    """
    cut = Cut.of(len(X))
    # The sum of tiles' sums: its error grows with rows and number of tiles, not with n.
    terms = (cut.size + cut.groups + 3) * EPS
    with jax.enable_x64(True):
        inputs, columns = cut.inputs(np.asarray(X, np.float64)), cut.zeros_after(np.asarray(x, np.float64))
        sums = jnp.zeros_like(columns), jnp.zeros_like(columns)
        for i, j in cut.pairs(watch):
            sums = _add_tile(block, diagonal, cut.size, i == j, inputs, columns, sums, i, j, terms)
            if watch is not None:
                jax.block_until_ready(sums)
        return np.asarray(sums[0][: cut.n]), np.asarray(sums[1][: cut.n])


@partial(jax.jit, static_argnums=(0, 1, 2, 3), donate_argnums=(6,))
def _add_tile(
    block: Block,
    diagonal: Diagonal,
    size: int,
    same: bool,
    X: Array,
    x: Array,
    sums: tuple[Array, Array],
    i: Array | int,
    j: Array | int,
    terms: Array | float,
) -> tuple[Array, Array]:
    """One tile's part of the product and of its error, on both sides of the diagonal."""
    take = partial(jax.lax.dynamic_slice_in_dim, slice_size=size)
    Xi, Xj, xi, xj = take(X, i), take(X, j), take(x, i), take(x, j)
    K, E = block(Xi, Xj)
    if same:
        eye = jnp.eye(size, dtype=bool)
        on, off = diagonal(Xi)
        K, E = jnp.where(eye, on[:, None], K), jnp.where(eye, off[:, None], E)
    E = E + jnp.asarray(terms, K.dtype) * jnp.abs(K)

    def added(total: Array, part: Array, at: Array | int) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(total, take(total, at) + part, at, axis=0)

    product, error = added(sums[0], K @ xj, i), added(sums[1], E @ jnp.abs(xj), i)
    if not same:
        product, error = added(product, K.T @ xi, j), added(error, E.T @ jnp.abs(xi), j)
    return product, error


def series_floor(
    g: Callable[[Array], Array],
    coefficients: Float[np.ndarray, "terms"],
    directions: Float[np.ndarray, "n d"],
    *,
    watch: Share | None = None,
) -> float:
    """A proven lower bound for λ_min of g(UUᵀ), for g(u) = Σ a_l u^l with all a_l ≥ 0 and unit rows U.

    The powers up to L sum to a positive semidefinite matrix (Schur), so with the tail T_L = g − Σ_{l ≤ L} a_l u^l

        λ_min ≥ min_i (T_L(1) − Σ_{j≠i} T_L(|u_ij|))

    by Gershgorin, for any L: the best of 1, 2, 4, … on a sample of rows is taken. Cosines are made larger by their
    rounding error, which makes the sums larger. May come out negative: then it says nothing. Time O(n²(d/2 + L)),
    memory a few tiles; a sample that is negative already ends it.
    """
    n, d = directions.shape
    coefficients = np.asarray(coefficients, np.float64)
    margin = (2 * d + 8) * EPS
    slack = 16 * EPS * n * float(coefficients.sum() + 1)
    sample = np.sort(np.random.default_rng(0).choice(n, size=min(n, SAMPLE), replace=False))
    cut = Cut.of(n)
    take = partial(jax.lax.dynamic_slice_in_dim, slice_size=cut.size)
    with jax.enable_x64(True):
        U, counts = cut.inputs(directions), cut.zeros_after(np.ones(n))
        pilot = {}
        for k in range((len(coefficients) - 1).bit_length()):
            head = tuple(coefficients[: 2**k + 1])
            sums = sum(
                _tail_sums(g, head, U[sample], take(U, start), take(counts, start), margin)
                for start in range(0, cut.groups * cut.size, cut.size)
            )
            top = float(_tail(g, head, jnp.ones((), jnp.float64)))
            pilot[head] = top - float(jnp.max(sums) - top)
        head, found = max(pilot.items(), key=lambda item: item[1])
        if found <= slack:
            return found - slack
        top = float(_tail(g, head, jnp.ones((), jnp.float64)))
        sums = jnp.zeros_like(counts)
        for i, j in cut.pairs(watch):
            sums = _add_tail_sums(g, head, cut.size, i == j, U, counts, sums, i, j, margin)
            if watch is not None:
                sums.block_until_ready()
        return top - float((sums[:n] - top).max()) - slack


def _tail(g: Callable[[Array], Array], head: tuple[float, ...], u: Array) -> Array:
    """T_L(u) = g(u) − Σ_{l ≤ L} a_l u^l, by Horner's rule; zero coefficients cost nothing in between."""
    total = jnp.full_like(u, head[-1])
    square, step = u * u, 1
    for coefficient in head[-2::-1]:
        if coefficient == 0 and step == 1:
            step = 2
            continue
        total = total * (square if step == 2 else u) + coefficient
        step = 1
    return g(u) - (total * u if step == 2 else total)


def _tails(g: Callable[[Array], Array], head: tuple[float, ...], U: Array, V: Array, margin: Array | float) -> Array:
    return jnp.abs(_tail(g, head, jnp.minimum(jnp.abs(U @ V.T) + margin, 1.0)))


@partial(jax.jit, static_argnums=(0, 1))
def _tail_sums(
    g: Callable[[Array], Array], head: tuple[float, ...], U: Array, V: Array, counts: Array, margin: Array | float
) -> Array:
    """Σ_j T_L(|u_ij|) over the rows of V that count; a row that meets itself counts T_L(1)."""
    return _tails(g, head, U, V, margin) @ counts


@partial(jax.jit, static_argnums=(0, 1, 2, 3), donate_argnums=(6,))
def _add_tail_sums(
    g: Callable[[Array], Array],
    head: tuple[float, ...],
    size: int,
    same: bool,
    U: Array,
    counts: Array,
    sums: Array,
    i: Array | int,
    j: Array | int,
    margin: Array | float,
) -> Array:
    take = partial(jax.lax.dynamic_slice_in_dim, slice_size=size)
    tails = _tails(g, head, take(U, i), take(U, j), margin)
    put = jax.lax.dynamic_update_slice_in_dim
    sums = put(sums, take(sums, i) + tails @ take(counts, j), i, axis=0)
    return sums if same else put(sums, take(sums, j) + take(counts, i) @ tails, j, axis=0)


def tile_slices(n: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the tiles on and above the diagonal of an n × n matrix, for the host."""
    size = rows_per_tile()
    starts = range(0, n, size)
    return [(slice(i, min(i + size, n)), slice(j, min(j + size, n))) for i in starts for j in starts if j >= i]
