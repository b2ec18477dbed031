"""Orthonormal directions in weight space, held as combinations of features or one by one; jittable.

`basis.coordinates(W)` are the inner products with the r directions, `basis.combine(c)` their sum with weights c, and
`basis.project(W)` is the projection of W on their span. Axes in front of W are a batch.
"""

import abc
import math

import equinox as eqx
from jaxtyping import Array, Float

from offtangent._types import IdentityHash
from offtangent.theory.nichani.tangent import LinearPart, check_batch_of_weights, fold, unfold


class Basis(IdentityHash, eqx.Module):
    """r orthonormal d × m matrices v₁, …, v_r."""

    @abc.abstractmethod
    def coordinates(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b r"]:
        """⟨vᵢ, W⟩."""

    @abc.abstractmethod
    def combine(self, c: Float[Array, "*b r"]) -> Float[Array, "*b d m"]:
        """Σᵢ cᵢvᵢ."""

    def project(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b d m"]:
        """Σᵢ ⟨vᵢ, W⟩ vᵢ."""
        return self.combine(self.coordinates(W))


class FeatureBasis(Basis):
    """vᵢ = Φᵀcᵢ, combinations of the features of n inputs. A call costs O(ndh + nr); n·h slopes and n·r are held."""

    linear: LinearPart
    mix: Float[Array, "n r"]  # the cᵢ: uᵢ/√Λᵢ for eigenpairs of ΦΦᵀ

    def coordinates(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b r"]:
        return self.linear(W) @ self.mix

    def combine(self, c: Float[Array, "*b r"]) -> Float[Array, "*b d m"]:
        return self.linear.adjoint(c @ self.mix.T)


class StoredBasis(Basis):
    """The vᵢ themselves, folded (`nichani.tangent`). A call costs O(rdh), the memory r·d·h."""

    vectors: Float[Array, "r d h"]
    origin: Float[Array, "d m"]
    paired: bool = eqx.field(static=True)

    def coordinates(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b r"]:
        check_batch_of_weights(self.origin, W)
        V = fold(W, self.paired)
        return V.reshape(*V.shape[:-2], -1) @ self._flat.T

    def combine(self, c: Float[Array, "*b r"]) -> Float[Array, "*b d m"]:
        V = c @ self._flat
        return unfold(V.reshape(*V.shape[:-1], *self.vectors.shape[1:]), self.paired)

    @property
    def _flat(self) -> Float[Array, "r dh"]:
        return self.vectors.reshape(len(self.vectors), math.prod(self.vectors.shape[1:]))  # of none, −1 tells nothing
