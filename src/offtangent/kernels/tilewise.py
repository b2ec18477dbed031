"""A kernel tile by tile: what it needs to know of each row is found once, and serves in every tile that the row meets.

For a kernel of lengths and angles these are directions and lengths, as `pairs.polar` finds them; a tile then is one
product of matrices and a function of each entry. Of any other kernel they are the rows themselves.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.pairs import polar
from offtangent.linalg.stream import Cut
from offtangent.linalg.tiles import entries_ready

SIDES = {"cpu": 512}  # of a tile that is copied to the host: on a CPU 1 MiB in float32, which stays in the cache
SIDE = 4096  # on an accelerator, which wants more at once

Rows = Any  # a pytree of arrays, with an entry for each row


@dataclass(frozen=True)
class Ready:
    """`ready(X)`: what the kernel needs to know of each row of X. Hashable: a static argument of jitted functions."""

    kernel: Any

    def __call__(self, X: Float[Array, "p d"]) -> Rows:
        return polar(X, jnp) if isinstance(self.kernel, AngularKernel) else X


@dataclass(frozen=True)
class Tilewise:
    """`block(rows, columns)`: K between rows that are ready, with the precision of their inner products; hashable."""

    kernel: Any
    precision: str | None = None

    @property
    def ready(self) -> Ready:
        return Ready(self.kernel)

    def __call__(self, rows: Rows, columns: Rows) -> Float[Array, "p q"]:
        if isinstance(self.kernel, AngularKernel):
            return self.kernel.of_polar(*rows, *columns, precision=self.precision or jax.lax.Precision.HIGHEST)
        return jnp.asarray(self.kernel(rows, columns))  # which takes no precision: `check_precision` refuses it


@dataclass(frozen=True)
class OnDiagonal:
    """`diagonal(rows)`: k(x, x) of rows that are ready; hashable, and equal for equal kernels: methods are not."""

    kernel: Any

    def __call__(self, rows: Rows) -> Float[Array, " p"]:
        if isinstance(self.kernel, AngularKernel):
            return self.kernel.diag_of_lengths(rows[1][:, 0])
        return jnp.asarray(self.kernel.diag(rows))


def dense_from_tiles(
    kernel: Any, X: Float[np.ndarray, "n d"], precision: str | None, dtype: Any
) -> Float[np.ndarray, "n n"]:
    """K(X, X) in `dtype` by jitted tiles, each made once and copied twice; one is made while another is copied.

    Symmetric to the last bit. Time O(n²d/2), memory n² entries and a few tiles. XLA turns a tile round some ten times
    as fast as NumPy, in a program of its own, but slower where it is fused with what makes the tile.
    """
    block, cut = Tilewise(kernel, precision), Cut.of(len(X), SIDES.get(jax.default_backend(), SIDE))
    filled = cut.filled(X, dtype)
    rows = [entries_ready(block.ready, jnp.asarray(group)) for group in filled]
    matrix = np.empty((cut.n, cut.n), dtype)
    below = np.tri(cut.size, k=-1, dtype=bool)
    at = [slice(i * cut.size, min((i + 1) * cut.size, cut.n)) for i in range(cut.groups)]

    def copy(i: int, j: int, tile: Array, turned: Array) -> None:
        p, q = at[i].stop - at[i].start, at[j].stop - at[j].start
        matrix[at[i], at[j]] = np.asarray(tile)[:p, :q]
        if i != j:
            matrix[at[j], at[i]] = np.asarray(turned)[:q, :p]
        else:  # the two sides of the diagonal round differently
            np.copyto(matrix[at[i], at[i]], np.asarray(turned)[:p, :p], where=below[:p, :p])

    waiting: deque[tuple[int, int, Array, Array]] = deque()
    for i in range(cut.groups):
        for j in range(i, cut.groups):
            tile = _tile(block, rows[i], rows[j])
            waiting.append((i, j, tile, _turned(tile)))
            if len(waiting) > 1:
                copy(*waiting.popleft())
    for made in waiting:
        copy(*made)
    return matrix


@partial(jax.jit, static_argnums=0)
def _tile(block: Tilewise, rows: Rows, columns: Rows) -> Float[Array, "p q"]:
    return block(rows, columns)


@jax.jit
def _turned(tile: Float[Array, "p q"]) -> Float[Array, "q p"]:
    return tile.T
