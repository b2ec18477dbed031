"""How far the training features' directions V₁ are from the population's Q₁, next to what Davis & Kahan promise.

Nichani, Bai & Lee (2022), Section 1.1: V₁, the first r right singular vectors of Φ, stands in for Q₁, the first r
eigenvectors of Σ. For two covariances Σ̂ and Σ with eigenvalues in falling order, and Θ the spans' principal angles,

    ‖sin Θ(V₁, Q₁)‖ ≤ ‖Σ̂ − Σ‖ / δ,      δ = max(λ_r(Σ̂) − λ_{r+1}(Σ), λ_r(Σ) − λ_{r+1}(Σ̂)),

in operator norm, if δ > 0 (Davis & Kahan 1970): δ separates what is in one span from what is not in the other.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse.linalg
from jaxtyping import Float

from offtangent._checks import check_count, require
from offtangent._errors import InputError
from offtangent.theory.nichani.covariance import FeatureCovariance, Samples, Source


@dataclass(frozen=True)
class Alignment:
    """The spans of the first r eigenvectors of two covariances of one network, compared."""

    rank: int
    sines: Float[np.ndarray, " r"] = field(
        repr=False
    )  # of the principal angles, the largest first; below 10⁻⁸ rounding
    distance: float  # ‖Σ̂ − Σ‖
    gap: float  # δ; not positive where the theorem says nothing

    @property
    def sine(self) -> float:
        """‖sin Θ‖, that of the largest angle."""
        return float(self.sines[0])

    @property
    def bound(self) -> float | None:
        """‖Σ̂ − Σ‖/δ; None where δ is not positive. Above 1 it says nothing."""
        return self.distance / self.gap if self.gap > 0 else None


def alignment(training: FeatureCovariance, population: FeatureCovariance, rank: int) -> Alignment:
    """Principal angles between V₁ and Q₁, and the Davis-Kahan bound; either may come from samples or from harmonics.

    Both must know rank + 1 eigenvalues. The angles come from Gram matrices, time O(nN(d + m)), or from stored vectors,
    O(nrdm); the distance from some thirty products with Σ̂ − Σ, whose slopes are kept: memory 8(n + N)h bytes.

    >>> import jax
    >>> from offtangent import data
    >>> from offtangent.networks import TwoLayer
    >>> net = TwoLayer.symmetric(dim=3, width=50, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> X = data.sphere(500, 3, radius=3**0.5, key=jax.random.key(1))
    >>> found = alignment(FeatureCovariance.of_samples(net, X, count=5), FeatureCovariance.of_harmonics(net), 4)
    >>> bool(found.sine <= found.bound)
    True
    """
    require(
        training.net is population.net or _same(training, population),
        "The two covariances are of different networks: build both from the same net.",
    )
    check_count("rank", rank)
    for name, one in (("training", training), ("population", population)):
        if one.known <= rank:
            raise InputError(
                f"rank={rank}: the {name} covariance knows {one.known} eigenvalues, and rank + 1 are needed."
            )
    hat, true = training.values, population.values
    cosines = np.linalg.svd(_overlap(training.source, population.source)[:rank, :rank], compute_uv=False)
    sines = np.sqrt(np.clip(1 - cosines**2, 0.0, 1.0))[::-1]
    gap = max(hat[rank - 1] - true[rank], true[rank - 1] - hat[rank])
    return Alignment(rank, sines, covariance_distance(training, population), float(gap))


def covariance_distance(one: FeatureCovariance, other: FeatureCovariance) -> float:
    """‖Σ̂ − Σ‖ in operator norm, by Lanczos on products. Time O((n + N)dm) a product, or O(dm²)."""
    first, second = _kept(one.source), _kept(other.source)
    half = one.net.width // 2 if one.net.paired else one.net.width
    shape = one.net.dim, half
    size = shape[0] * shape[1]

    def product(v: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        V = v.reshape(shape)
        return (first.apply(V) - second.apply(V)).ravel()

    if size <= 100:
        return float(np.abs(np.linalg.eigvalsh(np.stack([product(v) for v in np.eye(size)]))).max())
    start = np.random.default_rng(0).standard_normal(size)
    if np.linalg.norm(product(start)) <= 1e-14 * np.linalg.norm(start) * max(one.values[0], other.values[0]):
        return 0.0  # ARPACK refuses a matrix of zeros
    matrix = scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=np.float64)
    found = scipy.sparse.linalg.eigsh(matrix, k=1, which="LM", v0=start, tol=1e-6, return_eigenvectors=False)
    return float(abs(found[0]))


def _overlap(one: Source, other: Source) -> Float[np.ndarray, "r s"]:
    """⟨vᵢ, qⱼ⟩ of all known eigenvectors."""
    if isinstance(one, Samples):
        return one.mix.T @ other.images(one.features)
    if isinstance(other, Samples):
        return one.images(other.features).T @ other.mix
    return np.tensordot(one.vectors, other.vectors, ([1, 2], [1, 2]))


def _kept(source: Source) -> Source:
    return Samples(source.features.held(), source.vectors, source.mix) if isinstance(source, Samples) else source


def _same(one: FeatureCovariance, other: FeatureCovariance) -> bool:
    a, b = one.net, other.net
    return a.W0.shape == b.W0.shape and a.activation == b.activation and bool((a.W0 == b.W0).all() & (a.a == b.a).all())
