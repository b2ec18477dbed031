"""The inverse of a stored kernel matrix, where its entries themselves are needed and not only a solve."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from jaxtyping import Float

from offtangent.linalg.brackets import factorise


@dataclass(frozen=True, eq=False, repr=False)
class Inverse:
    """G = A⁻¹ of a symmetric positive definite A, as its lower triangle.

    >>> G = Inverse.of(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> G.diagonal.round(4), round(G.trace, 4), G.quadratic(np.array([1.0, -1.0])).round(4)
    (array([0.6667, 0.6667]), 1.3333, array([2.]))
    """

    lower: Float[np.ndarray, "n n"]  # zero above the diagonal

    @classmethod
    def of(cls, matrix: Float[np.ndarray, "n n"]) -> "Inverse":
        """Time n³, memory 2n² floats beside the matrix. A matrix that is singular to rounding is refused."""
        factor, _ = factorise(matrix)
        lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        for column in range(1, len(lower)):
            lower[:column, column] = 0.0  # LAPACK leaves what stood there
        return cls(lower)

    def __len__(self) -> int:
        return len(self.lower)

    def __matmul__(self, v: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
        """G v. Time O(n²c)."""
        product: np.ndarray = scipy.linalg.blas.dsymm(1.0, self.lower, np.asarray(v, np.float64, order="F"), lower=1)
        return product

    def quadratic(self, y: Float[np.ndarray, "n *c"]) -> Float[np.ndarray, " c"]:
        """yᵀGy of one vector or of every column. Time O(n²c)."""
        columns = np.asarray(y, np.float64).reshape(len(self), -1)
        return np.einsum("ij,ij->j", columns, self @ columns)

    @cached_property
    def diagonal(self) -> Float[np.ndarray, " n"]:
        return self.lower.diagonal().copy()

    @cached_property
    def row_squares(self) -> Float[np.ndarray, " n"]:
        """Σⱼ Gᵢⱼ², the diagonal of G². Time O(n²)."""
        below = np.einsum("ij,ij->i", self.lower, self.lower) + np.einsum("ij,ij->j", self.lower, self.lower)
        return below - self.diagonal**2

    @property
    def trace(self) -> float:
        return float(self.diagonal.sum())

    @property
    def squares(self) -> float:
        """Σᵢⱼ Gᵢⱼ² = ‖G‖_F²."""
        return float(self.row_squares.sum())
