"""A low-rank likeness of a positive semidefinite matrix, and the inverse of likeness plus shift.

Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2022) reads r columns of A and the diagonal, nothing else:
each pivot is drawn with a chance in proportion to what the diagonal still lacks, in blocks. Then A ≈ F Fᵀ, and

    P = F Fᵀ + σ I,     P⁻¹v = (v − U (s²/(s² + σ)) Uᵀv) / σ,     F = U s Vᵀ.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

BLOCKS = 10  # pivots are drawn in this many lots: fewer read the columns faster, more choose them better


class LowRank(eqx.Module):
    """P = U diag(s²) Uᵀ + σI with orthonormal columns U; `solve` applies its inverse in O(nr)."""

    U: Float[Array, "n r"]
    squares: Float[Array, "r"]
    shift: Float[Array, ""]

    def solve(self, v: Float[Array, "n c"]) -> Float[Array, "n c"]:
        inside = jnp.matmul(self.U.T, v, precision=jax.lax.Precision.HIGHEST)
        share = self.squares / (self.squares + self.shift)
        outside = jnp.matmul(self.U, share[:, None] * inside, precision=jax.lax.Precision.HIGHEST)
        return (v - outside) / self.shift


def pivoted_cholesky(
    columns: Callable[[Int[np.ndarray, "c"]], Float[Array, "n c"]],
    diagonal: Float[np.ndarray, "n"],
    rank: int,
    *,
    seed: int = 0,
) -> tuple[Float[Array, "n r"], Float[np.ndarray, "n"]]:
    """F with F Fᵀ ≈ A, and the diagonal of A − F Fᵀ. Time O(nr²) and r columns of A, memory 2nr.

    `columns(at)` is A[:, at]. The rank may come out smaller than asked for: pivots that add nothing are left out.
    """
    rng = np.random.default_rng(seed)
    lack = np.asarray(diagonal, np.float64).copy()
    floor = len(lack) * np.finfo(np.float32).eps * lack.max()
    pieces: list[Array] = []
    found, lot = 0, max(1, -(-rank // BLOCKS))
    while found < rank and lack.sum() > floor:
        at = _draw(lack, min(lot, rank - found), rng)
        fresh = columns(at)
        for piece in pieces:
            fresh = _deflate(fresh, piece, piece[at])
        piece = _orthogonal(fresh, fresh[at], float(np.max(diagonal)))
        if piece.shape[1] == 0:
            break
        pieces.append(piece)
        found += piece.shape[1]
        lack = np.maximum(lack - np.asarray(jnp.sum(piece**2, axis=1), np.float64), 0.0)
        lack[at] = 0.0
    return jnp.concatenate(pieces or [columns(np.zeros(0, np.int64))], axis=1), lack


def low_rank(F: Float[Array, "n r"], shift: float) -> LowRank:
    """The inverse of F Fᵀ + shift·I, ready to use. Time O(nr²)."""
    squares, V = np.linalg.eigh(np.asarray(_gram(F), np.float64))  # FᵀF = V s² Vᵀ
    good = squares > np.finfo(F.dtype).eps * F.shape[1] * squares.max(initial=0.0)
    squares, V = squares[good], V[:, good]
    vectors = jnp.matmul(F, jnp.asarray(V / np.sqrt(squares), F.dtype), precision=jax.lax.Precision.HIGHEST)
    return LowRank(vectors, jnp.asarray(squares, F.dtype), jnp.asarray(shift, F.dtype))


def _draw(lack: Float[np.ndarray, "n"], count: int, rng: np.random.Generator) -> Int[np.ndarray, "c"]:
    count = min(count, int(np.count_nonzero(lack)))
    return np.sort(rng.choice(len(lack), size=count, replace=False, p=lack / lack.sum()))


@jax.jit
def _deflate(fresh: Array, piece: Array, rows: Array) -> Array:
    return fresh - jnp.matmul(piece, rows.T, precision=jax.lax.Precision.HIGHEST)


def _orthogonal(fresh: Float[Array, "n c"], core: Float[Array, "c c"], scale: float) -> Float[Array, "n _"]:
    """The new columns times core^{-1/2}, less directions where pivots repeat each other or only rounding is left."""
    values, vectors = np.linalg.eigh(np.asarray(core, np.float64))
    good = values > 10 * np.finfo(np.float32).eps * max(len(values) * values[-1], scale)
    root = jnp.asarray(vectors[:, good] / np.sqrt(values[good]), fresh.dtype)
    return jnp.matmul(fresh, root, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def _gram(F: Array) -> Array:
    return jnp.matmul(F.T, F, precision=jax.lax.Precision.HIGHEST)
