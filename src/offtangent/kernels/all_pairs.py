"""A tangent kernel as the one matrix of all pairs (sample, output), which solves and eigenpairs ask for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from offtangent.kernels.blocks import matrix
from offtangent.kernels.passes import Passes
from offtangent.kernels.solves import RANK, Watch
from offtangent.kernels.tangent import TangentKernel
from offtangent.linalg.preconditioner import LowRank, low_rank, pivoted_cholesky


@dataclass(frozen=True, eq=False)
class AllPairs:
    """A tangent kernel with its ridge, samples first: what `kernels.solves` calls `Solvable`.

    Attributes:
        kernel: The tangent kernel.
    """

    kernel: TangentKernel

    @property
    def ridge(self) -> float | int:
        """The kernel's ridge."""
        return self.kernel.ridge

    def __len__(self) -> int:
        return self.kernel.shape[0]

    @cached_property
    def _matrix(self) -> Float[np.ndarray, "nk nk"]:
        K = self.kernel.dense()
        flat = K if K.ndim == 2 else K.swapaxes(1, 2).reshape(self.kernel.shape)
        return np.asarray(flat, np.float64)

    def dense(self) -> Float[np.ndarray, "nk nk"]:
        """The matrix in float64, computed once in the dtype of f."""
        return self._matrix

    def diag(self) -> Float[np.ndarray, " nk"]:
        """Its diagonal."""
        return np.asarray(self.kernel.diag(), np.float64).ravel()

    def operator(self, dtype: Any = None) -> Passes:
        """Products by passes through the network, in its own dtype; vectors of any come back in theirs."""
        K = self.kernel
        return Passes(K.f, K.params, K.X, jnp.asarray(K.ridge, dtype))

    def product(self, x: Float[np.ndarray, "nk c"], watch: Watch | None = None) -> Float[np.ndarray, "nk c"]:
        """Products in the dtype of f, as float64."""
        if watch is not None:
            watch("checking by passes through the network")
        return np.asarray(self.operator() @ jnp.asarray(x), np.float64)

    def preconditioner(self, watch: Watch | None = None) -> LowRank:
        """FFᵀ + sI, F by randomly pivoted Cholesky of K, s what F leaves of the diagonal, on average, and the ridge."""
        if watch is not None:
            watch("building the preconditioner")
        diagonal = self.diag() - self.ridge
        F, lack = pivoted_cholesky(self._columns, diagonal, min(RANK, len(self) // 2 + 1))
        least = float(np.finfo(np.float32).eps) * float(diagonal.max())
        return low_rank(F, max(float(lack.mean()) + self.ridge, least))

    def _columns(self, at: Int[np.ndarray, " c"]) -> Float[Array, "nk c"]:
        """Some columns of K, by the samples that they belong to."""
        K = self.kernel
        k = len(self) // len(K)
        samples, places = np.unique(np.asarray(at) // k, return_inverse=True)
        if not len(samples):
            return jnp.zeros((len(self), 0), jnp.float32)
        found = matrix(
            K.f, K.params, K.X, jax.tree.map(lambda leaf: leaf[samples], K.X), "every_pair", K._factored, K.budget
        )
        found = found.swapaxes(1, 2).reshape(len(self), -1)
        return jnp.asarray(found[:, places * k + np.asarray(at) % k], jnp.float32)
