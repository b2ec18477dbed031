"""The pseudo-inverse reverses the order of matrices, on the subspace of the smaller one.

Arora et al. (2019), Lemma E.1: for symmetric B ⪰ A ⪰ 0, with P_A the projection onto the range of A,

    P_A B† P_A ⪯ A†.

Theorem 6.1 takes it for A = c_p K^{∘p}, whose rank is often smaller than the number of inputs, and B = H∞.
"""

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_entries, require

ROUNDING = 1e-11  # eigenvalues below this part of the largest are zero


def pseudo_inverse_ratio(A: object, B: object) -> float:
    """Compute the smallest λ with P_A B† P_A ⪯ λA†, which Lemma E.1 says is at most one where B ⪰ A.

    It is the largest eigenvalue of A^{1/2} B† A^{1/2}. Eigenvalues below 10⁻¹¹ of a matrix's largest count as zero.
    Time O(n³).

    Args:
        A: A symmetric matrix without negative eigenvalues.
        B: Another of the same size. Where B ⪰ A does not hold, the result says how far the conclusion is from true.

    Returns:
        The number λ, zero if A is.

    Raises:
        InputError: If the matrices are not square, symmetric, finite, or of one size, or have negative eigenvalues.

    >>> pseudo_inverse_ratio(np.diag([1.0, 0.0]), np.diag([4.0, 3.0]))
    0.25
    """
    values, vectors = _eigenpairs(A, "A")
    others, across = _eigenpairs(B, "B")
    require(len(others) == len(values), f"A has {len(values)} rows and B {len(others)}: expected two of one size.")
    products = (vectors * np.sqrt(values)).T @ across[:, others > 0] / np.sqrt(others[others > 0])
    return float(np.linalg.norm(products, 2) ** 2) if products.size else 0.0


def _eigenpairs(matrix: object, name: str) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n n"]]:
    """Eigenvalues and eigenvectors, what is zero but for rounding set to zero."""
    check_entries(**{name: matrix})
    given = np.asarray(matrix, np.float64)
    square = given.ndim == 2 and given.shape[0] == given.shape[1] and given.size > 0
    require(square, f"{name} has shape {given.shape}: expected a square matrix.")
    symmetric = np.abs(given - given.T).max() <= ROUNDING * np.abs(given).max()
    require(symmetric, f"{name} is not symmetric: Lemma E.1 speaks of symmetric matrices. Give ({name} + {name}ᵀ)/2.")
    values, vectors = np.linalg.eigh(given)
    limit = ROUNDING * np.abs(values).max()
    require(values[0] >= -limit, f"{name} has the eigenvalue {values[0]:.3g}: expected none below zero.")
    return np.where(values > limit, values, 0.0), vectors
