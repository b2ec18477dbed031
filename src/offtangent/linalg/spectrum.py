"""Eigenpairs of a symmetric matrix, and what the rest of the house asks of them."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from offtangent._errors import InputError


@dataclass(frozen=True, repr=False)
class Spectrum:
    """r eigenpairs of an n × n symmetric matrix, the largest eigenvalue first.

    >>> Spectrum.of(np.array([[2.0, 1.0], [1.0, 2.0]])).values
    array([3., 1.])
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
        """All eigenpairs, or the k largest or smallest, of a dense symmetric matrix.

        Time O(n³), memory 3n² floats; on a GPU when JAX's default device is one.
        """
        n = matrix.shape[0]
        if k is not None and not 1 <= k <= n:
            raise InputError(f"k={k}: a matrix of size {n} has between 1 and {n} eigenpairs.")
        if not np.isfinite(matrix).all():
            raise InputError("The matrix has NaN or infinite entries; its spectrum is undefined.")
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
        """The best eigenpairs within an orthonormal basis Q, given AQ (Rayleigh-Ritz), with their residuals.

        Each value lies within its residual of an eigenvalue of A, and, where that one stands apart, within the
        residual squared over the gap. Time O(nr²).
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
        """(vᵢᵀy)², what each known eigenvector holds of y."""
        y = np.asarray(y, np.float64)
        if y.shape != (len(self.vectors),):
            raise InputError(
                f"y has shape {y.shape}; the matrix has {len(self.vectors)} rows, so ({len(self.vectors)},)."
            )
        if not np.isfinite(y).all():
            raise InputError(f"y has {np.count_nonzero(~np.isfinite(y))} entries that are NaN or infinite.")
        return (self.vectors.T @ y) ** 2

    def __repr__(self) -> str:
        ends = f"{self.values[0]:.4g} … {self.values[-1]:.4g}"
        return f"Spectrum({len(self.values)} of {len(self.vectors)} eigenpairs, {ends})"

    def share(self, y: Float[np.ndarray, "n"], top: int) -> float:
        """The fraction of ‖y‖² in the span of the `top` largest eigenvectors."""
        if not 0 <= top <= len(self.values):
            raise InputError(f"top={top}: {len(self.values)} eigenvectors are known.")
        y = np.asarray(y, np.float64)
        if not y.any():
            raise InputError("y is zero: it has no energy to share out.")
        return float(self.energy(y)[:top].sum() / (y @ y))
