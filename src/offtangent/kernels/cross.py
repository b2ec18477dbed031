"""Rectangular blocks K(X₁, X₂), as operators that never have to hold the matrix."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from offtangent._checks import check_inputs, require
from offtangent.kernels.tilewise import Tilewise
from offtangent.linalg.stream import Cut
from offtangent.linalg.tiles import check_length, entries_ready


@dataclass(frozen=True, eq=False, repr=False)
class Cross:
    """K(X₁, X₂) of p inputs against q: what predictions at new points are made with.

    >>> from offtangent.kernels import relu_hidden
    >>> Cross(relu_hidden, np.eye(2), np.array([[0.0, 2.0]])) @ np.ones(1)
    Array([0., 1.], dtype=float32)
    """

    kernel: Any
    X1: Float[np.ndarray, "p d"]
    X2: Float[np.ndarray, "q d"]

    def __post_init__(self) -> None:
        X1, X2 = check_inputs(self.X1), check_inputs(self.X2)
        require(
            X1.shape[1] == X2.shape[1],
            f"X1 has {X1.shape[1]} features and X2 has {X2.shape[1]}: expected the same number.",
        )
        object.__setattr__(self, "X1", X1.copy())  # what is computed later must be of the inputs given now
        object.__setattr__(self, "X2", X2.copy())

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X1), len(self.X2)

    @property
    def T(self) -> "Cross":
        return Cross(self.kernel, self.X2, self.X1)

    def __repr__(self) -> str:
        return f"Cross({self.kernel.name}, {self.shape[0]} × {self.shape[1]} inputs)"

    def dense(self) -> Float[np.ndarray, "p q"]:
        """The matrix itself, float64. Time O(pqd), memory pq floats."""
        return np.asarray(self.kernel.exact(self.X1, self.X2))

    def __matmul__(self, v: Num[Array | np.ndarray, "q *k"]) -> Float[Array, "p *k"]:
        """K v in the dtype of v; may be traced. Time O(pqd), memory X and one tile."""
        v = jnp.asarray(v)
        v = v if jnp.issubdtype(v.dtype, jnp.floating) else v.astype(float)
        check_length(v, self.shape[1])
        rows, columns = Cut.of(len(self.X1)), Cut.of(len(self.X2))
        with jax.ensure_compile_time_eval():
            block = Tilewise(self.kernel)
            known = [
                entries_ready(block.ready, jnp.asarray(cut.filled(X, v.dtype)))
                for cut, X in ((rows, self.X1), (columns, self.X2))
            ]
        width = math.prod(v.shape[1:])
        filled = jnp.pad(v.reshape(len(v), width), ((0, columns.size * columns.groups - columns.n), (0, 0)))
        parts = filled.reshape(columns.groups, columns.size, width)
        found = _product(block, *known, parts).reshape(rows.groups * rows.size, width)
        return found[: rows.n].reshape(rows.n, *v.shape[1:])


@partial(jax.jit, static_argnums=0)
def _product(block: Tilewise, rows: Any, columns: Any, v: Array) -> Array:
    def row(own: Any) -> Array:
        @partial(jax.checkpoint, prevent_cse=False)  # or else a gradient would keep all tiles
        def add(total: Array, item: tuple[Any, Array]) -> tuple[Array, None]:
            met, part = item
            return total + jnp.matmul(block(own, met), part, precision=jax.lax.Precision.HIGHEST), None

        size = len(jax.tree.leaves(own)[0])
        return jax.lax.scan(add, jnp.zeros((size, v.shape[2]), v.dtype), (columns, v))[0]

    return jax.lax.map(row, rows)
