"""Lanczos from several vectors at once: what products with a symmetric matrix tell of its functions of these vectors.

After m products with A from y, the orthonormal basis Q and the tridiagonal T satisfy AQ = QT + β_m q eₘᵀ, and

    f(A) y ≈ ‖y‖ Q f(T) e₁,

exactly so for polynomials f of degree below m. matfree has the same for one vector in JAX; here all columns share each
pass over the matrix, the basis stays orthogonal to rounding in float64, and the iteration can be looked at on its way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float

Product = Callable[[Float[np.ndarray, "n k"]], Float[np.ndarray, "n k"]]


@dataclass(frozen=True, eq=False)
class Krylov:
    """m steps of Lanczos from each of k columns."""

    lengths: Float[np.ndarray, " k"]  # ‖y‖
    basis: Float[np.ndarray, "m n k"]
    alphas: Float[np.ndarray, "m k"]  # the diagonals of T
    betas: Float[np.ndarray, "m k"]  # next to them; the last is β_m; 0 where the space is invariant and Lanczos done

    def tridiagonal(self, column: int) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
        """Diagonal and off-diagonal of T; β_m at the end is 0 where the column's space is whole."""
        alpha, beta = self.alphas[:, column], self.betas[:, column]
        if (beta > 0).all():
            return alpha, beta
        end = int(np.argmin(beta > 0)) + 1
        return alpha[:end], beta[:end]

    def coordinates(self, f: Callable[[np.ndarray], np.ndarray]) -> Float[np.ndarray, "m k"]:
        """‖y‖ f(T) e₁ of every column: f(A)y in the basis. `f` takes an array of Ritz values."""
        found = np.zeros_like(self.alphas)
        for column, length in enumerate(self.lengths):
            alpha, beta = self.tridiagonal(column)
            nodes, vectors = scipy.linalg.eigh_tridiagonal(alpha, beta[:-1])
            found[: len(alpha), column] = length * (vectors @ (f(nodes) * vectors[0]))
        return found

    def apply(self, f: Callable[[np.ndarray], np.ndarray]) -> Float[np.ndarray, "n k"]:
        """f(A)y of every column. Time O(mnk)."""
        return np.einsum("mnk,mk->nk", self.basis, self.coordinates(f))


def lanczos(product: Product, Y: Float[np.ndarray, "n k"], most: int) -> Iterator[Krylov]:
    """One step after the other, up to `most`, each with one product of all columns and two orthogonalisations.

    Time O(n²k + mnk) for the m-th, memory most·nk floats.

    >>> *_, found = lanczos(lambda v: np.diag([1.0, 4.0]) @ v, np.ones((2, 1)), 2)
    >>> found.apply(np.sqrt).round(12).ravel()
    array([1., 2.])
    """
    n, k = Y.shape
    lengths = np.linalg.norm(Y, axis=0)
    basis, alphas, betas = np.empty((most + 1, n, k)), np.zeros((most, k)), np.zeros((most, k))
    basis[0] = Y / np.where(lengths > 0, lengths, 1.0)
    for m in range(most):
        w = product(basis[m])
        alphas[m] = np.einsum("nk,nk->k", basis[m], w)
        for _ in range(2):
            for column in range(k):
                known = basis[: m + 1, :, column]
                w[:, column] -= known.T @ (known @ w[:, column])
        size = np.linalg.norm(w, axis=0)
        whole = size <= 1e-12 * np.abs(alphas[: m + 1]).max(axis=0)
        betas[m] = np.where(whole, 0.0, size)
        basis[m + 1] = np.where(whole, 0.0, w / np.where(whole, 1.0, size))
        yield Krylov(lengths, basis[: m + 1], alphas[: m + 1], betas[: m + 1])
