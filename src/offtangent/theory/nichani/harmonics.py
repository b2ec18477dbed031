"""The feature covariance Σ of the uniform law on S^{d−1}(√d) by its harmonic expansion, and its first eigenvectors.

Where there are few weights, all eigenpairs are those of the matrix; else Lanczos finds the largest from products with
the `SphereCovariance`. Weights are folded (`theory.nichani.tangent`).
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg
from jaxtyping import Array, Float

from offtangent._errors import InputError
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.theory.nichani.bases import Basis, StoredBasis
from offtangent.theory.nichani.sphere_covariance import SphereCovariance
from offtangent.theory.nichani.tangent import TangentFeatures

DENSE = 1500  # folded weights up to which all eigenpairs are found at once


@dataclass(frozen=True, eq=False, repr=False)
class Harmonics:
    """Σ from its harmonic expansion."""

    net: TwoLayer
    operator: SphereCovariance
    vectors: Float[np.ndarray, "r d h"]

    def apply(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, "d h"]:
        return np.asarray(self.operator(V))

    def coordinates(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, " r"]:
        return self.vectors.reshape(len(self.vectors), -1) @ V.ravel()

    def combine(self, c: Float[np.ndarray, " r"]) -> Float[np.ndarray, "d h"]:
        return np.tensordot(c, self.vectors[: len(c)], 1)

    def images(self, features: TangentFeatures) -> Float[np.ndarray, "n r"]:
        kept = features.held()
        return np.stack([kept.outputs(v) for v in self.vectors], axis=1)

    def basis(self, start: int, stop: int) -> Basis:
        dtype = self.net.W0.dtype
        return StoredBasis(jnp.asarray(self.vectors[start:stop], dtype), self.net.origin, self.net.paired)


def dense_matrix(operator: SphereCovariance) -> Float[np.ndarray, "p p"]:
    """The matrix of the operator, for tiny networks."""
    size = operator.start.size
    columns = np.asarray(operator(np.eye(size).reshape(size, *operator.start.shape)))
    return columns.reshape(size, size)


def leading_eigenpairs(operator: SphereCovariance, count: int) -> Spectrum:
    """The largest eigenpairs by ARPACK, with products on JAX's default device, then Rayleigh-Ritz for the residuals."""
    shape, size = operator.start.shape, operator.start.size
    with jax.enable_x64(True):
        there = operator.on_device(np.dtype(np.float64))

        def product(v: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
            return np.asarray(_product(there, jnp.asarray(v.reshape(shape)))).ravel()

        matrix = scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=np.float64)
        first = np.random.default_rng(0).standard_normal(size)
        try:
            _, vectors = scipy.sparse.linalg.eigsh(matrix, k=count, which="LA", v0=first, tol=1e-11)
        except scipy.sparse.linalg.ArpackNoConvergence as error:
            raise InputError(
                f"Lanczos found {len(error.eigenvalues)} of {count} eigenpairs: count ends inside a cluster of "
                "eigenvalues. Give a count at the end of a block, such as n₁ + d."
            ) from error
        basis = np.linalg.qr(vectors)[0]
        image = np.stack([product(v) for v in basis.T], axis=1)
    return Spectrum.refined(basis, image)


@eqx.filter_jit
def _product(operator: SphereCovariance, V: Float[Array, "d h"]) -> Float[Array, "d h"]:
    return operator(V)
