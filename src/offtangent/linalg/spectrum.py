"""Eigenpairs of a symmetric matrix, and what the rest of the house asks of them."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from offtangent._checks import check_numbers, require
from offtangent._errors import InputError

LOPSIDED = 1e-3  # of the largest entry: more than rounding, in float32 too, makes of a symmetric matrix


@dataclass(frozen=True, repr=False)
class Spectrum:
    """Eigenpairs of an n × n symmetric matrix A, the largest eigenvalue first: Avᵢ = λᵢvᵢ.

    There may be fewer than n of them, at one end of the spectrum. `Spectrum.of(matrix)` and `Gram.eigh` make one. What
    depends on eigenvectors that are not known, the functions that take a spectrum say.

    Attributes:
        values: The r eigenvalues λᵢ, in float64, falling.
        vectors: The eigenvectors vᵢ as orthonormal columns, n × r.
        residuals: ‖Avᵢ − λᵢvᵢ‖ of each, where eigenpairs were found by iteration, else None: some eigenvalue of A lies
            as near to λᵢ as that.
        which: The end of the spectrum that they are, "largest" or "smallest", if they are not all.

    >>> spectrum = Spectrum.of(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> spectrum.values
    array([3., 1.])
    >>> spectrum.energy(np.array([1.0, 1.0])).round(12)  # (1, 1) lies along the first
    array([2., 0.])
    """

    values: Float[np.ndarray, "r"]
    vectors: Float[np.ndarray, "n r"]  # orthonormal columns
    residuals: Float[np.ndarray, "r"] | None = None  # ‖Av − λv‖, where eigenpairs were found by iteration
    which: Literal["largest", "smallest"] = "largest"  # the end of the spectrum that they are, if not all

    @classmethod
    def of(
        cls,
        matrix: Float[np.ndarray, "n n"],
        k: int | None = None,
        *,
        which: Literal["largest", "smallest"] = "largest",
    ) -> "Spectrum":
        """Compute all eigenpairs, or the k largest or smallest, of a dense symmetric matrix.

        Time O(n³), memory 3n² floats; on a GPU when JAX's default device is one.

        Args:
            matrix: The matrix, in float64 or what becomes it.
            k: How many eigenpairs are wanted; all by default.
            which: Which k of them, "largest" or "smallest".

        Returns:
            The eigenpairs in float64.

        Raises:
            InputError: If the matrix is not square, not symmetric or has NaN or infinite entries, if `k` is not between
                1 and n, or if there is no such end.
        """
        matrix = check_numbers(matrix, "matrix")
        _check_symmetric(matrix)
        n = len(matrix)
        if k is not None and (isinstance(k, bool) or not hasattr(k, "__index__") or not 1 <= k <= n):
            raise InputError(f"k={k!r}: a matrix of size {n} has between 1 and {n} eigenpairs.")
        require(which in ("largest", "smallest"), f"which={which!r}: expected 'largest' or 'smallest'.")
        if jax.default_backend() != "cpu":
            with jax.enable_x64(True):
                found = jnp.linalg.eigh(jnp.asarray(matrix, jnp.float64))
                values, vectors = np.asarray(found[0]), np.asarray(found[1])
            part = slice(n - (k or n), n) if which == "largest" else slice(0, k or n)
            values, vectors = values[part], vectors[:, part]
        else:
            wanted = None if k is None else (n - k, n - 1) if which == "largest" else (0, k - 1)
            driver = "evd" if k is None else "evr"
            values, vectors = scipy.linalg.eigh(
                np.asarray(matrix, np.float64), subset_by_index=wanted, driver=driver, check_finite=False
            )
        return cls(np.ascontiguousarray(values[::-1]), np.ascontiguousarray(vectors[:, ::-1]), which=which)

    @classmethod
    def refined(
        cls,
        basis: Float[np.ndarray, "n r"],
        product: Float[np.ndarray, "n r"],
        *,
        which: Literal["largest", "smallest"] = "largest",
    ) -> "Spectrum":
        """Compute the best eigenpairs within a subspace, with their residuals (Rayleigh–Ritz). Time O(nr²).

        Each value lies within its residual of an eigenvalue of A, and, where that one stands apart, within the residual
        squared over the gap.

        Args:
            basis: An orthonormal basis Q of the subspace, as columns.
            product: AQ.
            which: The end of the spectrum that the subspace is near to, "largest" or "smallest".

        Returns:
            The r eigenpairs of the subspace.
        """
        core = basis.T @ product
        values, turn = scipy.linalg.eigh((core + core.T) / 2)
        values, turn = values[::-1], turn[:, ::-1]
        vectors = basis @ turn
        residuals = np.linalg.norm(product @ turn - vectors * values, axis=0)
        return cls(np.ascontiguousarray(values), np.ascontiguousarray(vectors), residuals, which)

    @property
    def complete(self) -> bool:
        """Whether all n eigenpairs are known."""
        return len(self.values) == len(self.vectors)

    def energy(self, y: Float[np.ndarray, "n"]) -> Float[np.ndarray, "r"]:
        """Compute (vᵢᵀy)², what each known eigenvector holds of y. Time O(nr).

        Args:
            y: A vector of n entries, such as labels.

        Returns:
            The r energies; with all eigenpairs they add up to ‖y‖².

        Raises:
            InputError: If y has another length or entries that are NaN or infinite.
        """
        y = np.asarray(y, np.float64)
        require(
            y.shape == (len(self.vectors),),
            f"y has shape {y.shape}; the matrix has {len(self.vectors)} rows, so ({len(self.vectors)},).",
        )
        if not np.isfinite(y).all():
            raise InputError(f"y has {np.count_nonzero(~np.isfinite(y))} entries that are NaN or infinite.")
        return (self.vectors.T @ y) ** 2

    def __repr__(self) -> str:
        ends = f"{self.values[0]:.4g} … {self.values[-1]:.4g}"
        return f"Spectrum({len(self.values)} of {len(self.vectors)} eigenpairs, {ends})"

    def share(self, y: Float[np.ndarray, "n"], top: int) -> float:
        """Compute the fraction of ‖y‖² in the span of the first eigenvectors. Time O(nr).

        Args:
            y: A vector of n entries, such as labels; not zero.
            top: How many of the known eigenvectors, those with the largest eigenvalues.

        Returns:
            Σ_{i ≤ top} (vᵢᵀy)² / ‖y‖², between 0 and 1.

        Raises:
            InputError: If y is zero or of another length, or fewer than `top` eigenvectors are known.
        """
        require(0 <= top <= len(self.values), f"top={top}: {len(self.values)} eigenvectors are known.")
        y = np.asarray(y, np.float64)
        require(y.any(), "y is zero: it has no energy to share out.")
        return float(self.energy(y)[:top].sum() / (y @ y))


def _check_symmetric(matrix: Float[np.ndarray, "..."]) -> None:
    """Refuse what is no symmetric matrix of finite numbers; LAPACK would read one half of it and not say so."""
    require(
        matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and len(matrix),
        f"The matrix has shape {matrix.shape}: expected a square one, (n, n).",
    )
    require(np.isfinite(matrix).all(), "The matrix has NaN or infinite entries; its spectrum is undefined.")
    apart, largest = float(np.abs(matrix - matrix.T).max()), float(np.abs(matrix).max())
    if apart > LOPSIDED * largest:
        raise InputError(f"The matrix is not symmetric: A and A.T differ by up to {apart:.2g}. Give (A + A.T) / 2.")
