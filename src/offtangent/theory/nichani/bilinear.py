"""R₁, R₂ and R₃ as bilinear forms on the host: what `theory.nichani.regularisers` are the squares of, in float64.

With P = Π_{≤r} on the first r eigenvectors of a feature covariance Σ and x₁, …, x_n the training inputs,

    R₁(V, W) = ⟨V, Σ(I − P)W⟩,      R₂(V, W) = ⟨V, ΣPW⟩,      R₃(V, W) = E_n f_L(x; (I − P)V) f_L(x; (I − P)W).

∇Rᵢ(W) in the direction V is 2Rᵢ(V, W). What is needed of features is computed once and kept.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._types import AnyArray
from offtangent.theory.bai_lee.signs import check_weights
from offtangent.theory.nichani.covariance import FeatureCovariance, Samples
from offtangent.theory.nichani.tangent import TangentFeatures, fold


@dataclass(frozen=True, eq=False, repr=False)
class FeatureImage:
    """What the forms need to know of one W: coordinates, f_L on the training inputs, and beyond the span of P."""

    folded: Float[np.ndarray, "d h"]
    coordinates: Float[np.ndarray, " r"]  # ⟨vⱼ, W⟩
    linear: Float[np.ndarray, " n"]  # f_L(xᵢ; W)
    stray: Float[np.ndarray, " n"]  # f_L(xᵢ; (I − P)W)
    beyond: Float[np.ndarray, " N"] | None  # the same on the covariance's own inputs, if it has any


@dataclass(frozen=True, eq=False, repr=False)
class FeatureForms:
    """The three forms for one covariance, rank r and n training inputs."""

    covariance: FeatureCovariance
    training: TangentFeatures
    own: TangentFeatures | None  # of the covariance's N inputs, if it has any
    images: Float[np.ndarray, "n r"]  # f_L(xᵢ; vⱼ)

    @classmethod
    def of(cls, covariance: FeatureCovariance, X: Float[AnyArray, "n inputs"], rank: int) -> "FeatureForms":
        """Memory 8(n + N)h bytes for the slopes, and that of `covariance.images`."""
        source = covariance.source
        own = source.features.held() if isinstance(source, Samples) else None
        return cls(covariance, TangentFeatures.of(covariance.net, X, keep=True), own, covariance.images(X, rank))

    @property
    def values(self) -> Float[np.ndarray, " r"]:
        return self.covariance.values[: self.images.shape[1]]

    def image(self, W: Float[AnyArray, "d m"]) -> FeatureImage:
        """Time O((n + N)dh), or O(ndh + rdh) for harmonics."""
        net, source, r = self.covariance.net, self.covariance.source, self.images.shape[1]
        V = np.asarray(fold(check_weights(net, W), net.paired))
        linear, beyond = self.training.outputs(V), None
        if self.own is not None and isinstance(source, Samples):
            outputs, U = self.own.outputs(V), source.vectors[:, :r]
            inner = outputs @ U
            coordinates, beyond = inner / np.sqrt(len(U) * self.values), outputs - U @ inner
        else:
            coordinates = source.coordinates(V)[:r]
        return FeatureImage(V, coordinates, linear, linear - self.images @ coordinates, beyond)

    def of_pair(self, one: FeatureImage, other: FeatureImage) -> Float[np.ndarray, "3"]:
        """R₁, R₂ and R₃ of two images. Time O(n + N + r), or O(dh²) for harmonics."""
        second = float(self.values @ (one.coordinates * other.coordinates))
        if one.beyond is not None and other.beyond is not None:
            first = float(np.mean(one.beyond * other.beyond))
        else:
            first = float(np.vdot(one.folded, self.covariance.source.apply(other.folded))) - second
        return np.array([first, second, float(np.mean(one.stray * other.stray))])
