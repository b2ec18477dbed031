"""R₁, R₂ and R₃ of WS for column signs S: at any signs from one table, and in the mean over all signs exactly.

Nichani, Bai & Lee (2022), Section 4.1. f_L is a sum over neurons, so f_L(x; WS) = Σ_r s_r f_r(x) with f_r(x) =
m^{−1/2} a_r σ'(w_{0,r}ᵀx) xᵀw_r, and the three regularisers are quadratic forms: the means of their squares over
independent signs have no cross terms,

    E_S f_L(x; WS)² = Σ_r f_r(x)²,      E_S R(WS) = Σ_r w_rᵀA_rr w_r   for R(W) = wᵀAw,

where A_rr are the d × d blocks of A. On S^{d−1}(√d), with unit w₀, those of Σ itself are m⁻¹(A(I − w₀w₀ᵀ) + B w₀w₀ᵀ),
B = E[z²σ'(z)²] and (d − 1)A + B = d E[σ'²]: a sufficiently random direction u has E_μ f_L(u)² ≈ ‖u‖² E[σ'²]/m. All on
the host, in float64.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int8

from offtangent._checks import require
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.special.sphere import harmonic_coefficients
from offtangent.theory.bai_lee.signs import check_weights
from offtangent.theory.nichani.covariance import FeatureCovariance, Samples
from offtangent.theory.nichani.sphere_covariance import has_unit_columns
from offtangent.theory.nichani.tangent import ROOT, TangentFeatures, fold, unfold


@dataclass(frozen=True)
class SignMeans:
    """E_S of R₁, R₂ and R₃ at WS."""

    r1: float
    r2: float
    r3: float


@dataclass(frozen=True, eq=False, repr=False)
class SignedRegularisers:
    """R₁, R₂, R₃ of WS as functions of the signs S, for one W, one covariance, r eigenvectors and n training inputs."""

    covariance: FeatureCovariance
    weights: Float[np.ndarray, "d m"]
    coordinates: Float[np.ndarray, "r m"]  # ⟨vⱼ, w_r⟩, neuron by neuron
    outputs: Float[np.ndarray, "n m"]  # f_r(xᵢ) on the training inputs
    images: Float[np.ndarray, "n r"]  # f_L(xᵢ; vⱼ)
    beyond: Float[np.ndarray, "N m"] | None  # f_r − f_L(·; Π_{≤r}…) on the covariance's own inputs, if it has any

    @classmethod
    def of(
        cls, covariance: FeatureCovariance, X: Float[AnyArray, "n inputs"], W: Float[AnyArray, "d m"], *, rank: int
    ) -> "SignedRegularisers":
        """Time O((n + N)m(d + r)), memory 8(n + N + r)m bytes; for harmonics without the N, and O(rdm)."""
        net, weights = covariance.net, check_weights(covariance.net, W)
        r, source = covariance.check_rank(rank), covariance.source
        outputs = neuron_outputs(net, X, weights)
        if isinstance(source, Samples):
            own = neuron_outputs(net, source.features.X, weights)
            U = source.vectors[:, :r]
            inner = U.T @ own
            coordinates = inner / np.sqrt(len(own) * covariance.values[:r])[:, None]
            own -= U @ inner
            return cls(covariance, weights, coordinates, outputs, covariance.images(X, r), own)
        directions = np.asarray(unfold(source.vectors[:r], net.paired))
        coordinates = np.einsum("rdm,dm->rm", directions, weights)
        return cls(covariance, weights, coordinates, outputs, covariance.images(X, r), None)

    @property
    def values(self) -> Float[np.ndarray, " r"]:
        return self.covariance.values[: len(self.coordinates)]

    def r1(self, signs: Float[AnyArray, "s m"] | Int8[AnyArray, "s m"]) -> Float[np.ndarray, " s"]:
        """R₁(WS) for each row of signs. Time O(Nm) a row, or O(dm²) for harmonics."""
        rows = self._rows(signs)
        if self.beyond is not None:
            return np.mean((rows @ self.beyond.T) ** 2, axis=1)
        folded = fold(self.weights * rows[:, None, :], self.covariance.net.paired)
        whole = np.array([float(np.vdot(V, self.covariance.source.apply(V))) for V in folded])
        return whole - self.r2(signs)

    def r2(
        self, signs: Float[AnyArray, "s m"] | Int8[AnyArray, "s m"], *, start: Float[np.ndarray, " r"] | None = None
    ) -> Float[np.ndarray, " s"]:
        """R₂(W_L + WS), where W_L = Σⱼ startⱼ vⱼ. (R₁ and R₃ do not see such a W_L.)"""
        found = self._rows(signs) @ self.coordinates.T
        return (found if start is None else found + start) ** 2 @ self.values

    def r3(self, signs: Float[AnyArray, "s m"] | Int8[AnyArray, "s m"]) -> Float[np.ndarray, " s"]:
        """R₃(WS). Time O(nm) a row."""
        rows = self._rows(signs)
        return np.mean((rows @ self.outputs.T - rows @ self.coordinates.T @ self.images.T) ** 2, axis=1)

    def linear(self, signs: Float[AnyArray, "s m"] | Int8[AnyArray, "s m"]) -> Float[np.ndarray, "s n"]:
        """f_L(xᵢ; WS) on the training inputs."""
        return self._rows(signs) @ self.outputs.T

    def means(self) -> SignMeans:
        """E_S R₁(WS), E_S R₂(WS), E_S R₃(WS), exactly. Time O((n + N + r)m), or O(dm) instead of N for harmonics."""
        second = float(self.values @ np.sum(self.coordinates**2, axis=1))
        if self.beyond is not None:
            first = float(np.sum(self.beyond**2)) / len(self.beyond)
        else:
            first = sign_energy(self.covariance.net, self.weights) - second
        third = float(np.sum((self.outputs - self.images @ self.coordinates) ** 2)) / len(self.outputs)
        return SignMeans(first, second, third)

    def _rows(self, signs: AnyArray) -> Float[np.ndarray, "s m"]:
        rows = np.asarray(signs, np.float64)
        require(
            rows.ndim == 2 and rows.shape[1] == self.weights.shape[1] and (np.abs(rows) == 1).all(),
            f"signs have shape {rows.shape}: expected rows of {self.weights.shape[1]} numbers, each −1 or 1.",
        )
        return rows


def neuron_outputs(
    net: TwoLayer, X: Float[AnyArray, "n inputs"], W: Float[np.ndarray, "d m"]
) -> Float[np.ndarray, "n m"]:
    """f_r(xᵢ) = m^{−1/2} a_r σ'(w_{0,r}ᵀxᵢ) xᵢᵀw_r: the neurons' parts of f_L. Time O(ndm), memory O(nm)."""
    features = TangentFeatures.of(net, X, keep=True)
    slopes, moved = features.kept, features.X @ W
    assert slopes is not None
    if not net.paired:
        return np.asarray(slopes * moved)
    half = net.width // 2
    moved[:, :half] *= ROOT * slopes
    moved[:, half:] *= -ROOT * slopes
    return moved


def sign_energy(net: TwoLayer, W: Float[AnyArray, "d m"]) -> float:
    """E_S E_μ f_L(x; WS)² for x uniform on S^{d−1}(√d), exactly: m⁻¹ Σ_r (A‖w_r‖² + (B − A)(w_{0,r}ᵀw_r)²).

    For unit columns of W₀ and any activation with σ'. Time O(dm).

    >>> import jax
    >>> net = TwoLayer.symmetric(dim=4, width=6, law="sphere", activation=lambda z: 3.0 * z, key=jax.random.key(0))
    >>> round(sign_energy(net, np.ones((4, 6))), 6)  # σ' = 3: 9‖W‖²/m
    36.0
    """
    moved = check_weights(net, W)
    require(
        has_unit_columns(net), 'W₀ must have columns of length 1, as TwoLayer.symmetric(law="sphere", ...) makes them.'
    )
    slope, kinks = net.activation.derivative(1), net.activation.kinks
    (second,) = harmonic_coefficients(lambda z: slope(z) ** 2, dim=net.dim, degree=0, kinks=kinks)
    (along,) = harmonic_coefficients(lambda z: (z * slope(z)) ** 2, dim=net.dim, degree=0, kinks=kinks)
    across = (net.dim * second - along) / (net.dim - 1)
    start = np.asarray(net.W0, np.float64)
    inner = np.sum(start / np.linalg.norm(start, axis=0) * moved, axis=0)
    scale = np.asarray(net.a, np.float64) ** 2 / net.width
    return math.fsum(scale * (across * np.sum(moved**2, axis=0) + (along - across) * inner**2))
