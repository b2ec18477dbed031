"""The feature covariance Σ = E[φ(x)φ(x)ᵀ] of a two-layer network and its eigenvectors, without a matrix of md × md.

Nichani, Bai & Lee (2022), eqs. (4), (14), (15). From N inputs without labels, with the Gram matrix ΦΦᵀ = UΛUᵀ,

    λᵢ(Σ) ≈ Λᵢ/N,      vᵢ = Φᵀuᵢ/√Λᵢ,      f_L(x; Π_{≤r}W) = K(x, X) U_r Λ_r⁻¹ U_rᵀ f_L(X; W).

With the training inputs these vᵢ are the right singular vectors of the feature matrix Φ: V₁ are the first r, V₂ the
others, eq. (4). For inputs uniform on S^{d−1}(√d), Σ itself is known from harmonics (`sphere_covariance`), and its
first eigenvectors from Lanczos. All on the host, NumPy float64; `basis` gives what runs inside a training loop.
"""

import itertools
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from offtangent._checks import check_count, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory.bai_lee.signs import check_weights
from offtangent.theory.nichani.bases import Basis, FeatureBasis
from offtangent.theory.nichani.blocks import Blocks, feature_blocks
from offtangent.theory.nichani.harmonics import DENSE, Harmonics, dense_matrix, leading_eigenpairs
from offtangent.theory.nichani.sphere_covariance import SphereCovariance, series_tail
from offtangent.theory.nichani.tangent import TangentFeatures, fold, unfold


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Σ = ΦᵀΦ/N."""

    features: TangentFeatures
    vectors: Float[np.ndarray, "N r"]  # U
    mix: Float[np.ndarray, "N r"]  # UΛ^(−1/2)

    def apply(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, "d h"]:
        return self.features.adjoint(self.features.outputs(V) / len(self.mix))

    def coordinates(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, " r"]:
        return self.features.outputs(V) @ self.mix

    def combine(self, c: Float[np.ndarray, " r"]) -> Float[np.ndarray, "d h"]:
        return self.features.adjoint(self.mix[:, : len(c)] @ c)

    def images(self, features: TangentFeatures) -> Float[np.ndarray, "n r"]:
        return features.cross(self.features) @ self.mix

    def basis(self, start: int, stop: int) -> Basis:
        linear = self.features.linear()
        return FeatureBasis(linear, jnp.asarray(self.mix[:, start:stop], linear.X.dtype))


Source = Samples | Harmonics  # where Σ comes from: its product and its eigenvectors, on folded weights


@dataclass(frozen=True, eq=False, repr=False)
class FeatureCovariance:
    """The feature covariance of a two-layer network at its initial weights, with its largest eigenpairs.

    Nichani, Bai & Lee (2022), eqs. (13) and (14): the linear part of the network is f_L(x; W) = ⟨φ(x), W⟩ with the
    features φ(x) = vec(m^{-1/2} a_r σ'(w_{0,r}ᵀx) x), the gradient of f at its initial weights, and

        Σ = E[φ(x)φ(x)ᵀ] = Σᵢ λᵢ vᵢvᵢᵀ,      λ₁ ≥ λ₂ ≥ …,      E f_L(x; W)² = wᵀΣw.

    The eigenvectors vᵢ are d × m matrices, as W is; no matrix of md × md is formed. `of_samples` finds them from
    inputs without labels, `of_harmonics` from the uniform law on the sphere. All is NumPy float64, on the host.

    Attributes:
        net: The network.
        values: The r largest eigenvalues λᵢ, the largest first.
        trace: The sum of all md eigenvalues.
        source: Where Σ comes from: its product with weights and its eigenvectors, used by the methods.
        tail: The part of the trace that the harmonic expansion leaves out; zero for samples.
        residuals: ‖Σvᵢ − λᵢvᵢ‖, where eigenpairs were found by iteration.

    >>> import jax
    >>> from offtangent import data
    >>> net = TwoLayer.symmetric(dim=5, width=400, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> X = data.sphere(300, 5, radius=5**0.5, key=jax.random.key(1))
    >>> sigma = FeatureCovariance.of_samples(net, X)
    >>> blocks = sigma.blocks(1)
    >>> blocks.sizes, blocks.second.agrees
    ((6, 14, 1980), True)
    """

    net: TwoLayer
    values: Float[np.ndarray, " r"]
    trace: float
    source: Source
    tail: float = 0.0
    residuals: Float[np.ndarray, " r"] | None = field(default=None)

    @classmethod
    def of_samples(
        cls, net: TwoLayer, X: Float[AnyArray, "N inputs"], *, count: int | None = None
    ) -> "FeatureCovariance":
        """Find Σ = ΦᵀΦ/N and its eigenpairs from N inputs without labels.

        Of the training inputs, the vᵢ are the right singular vectors of the feature matrix, eq. (4). The eigenvalues of
        a sample of the population spread around those of Σ: N should be several times the number of eigenvectors one
        looks at. Time O(N²(d + m) + N³), memory 8(4N² + 2²³) bytes.

        Args:
            net: A two-layer network.
            X: The N inputs, one row each.
            count: How many of the largest eigenpairs are kept, at most N. Without it, all that are larger than
                rounding: at most min(N, dm), and with paired neurons min(N, dm/2).

        Returns:
            The covariance of these inputs.

        Raises:
            InputError: If X does not fit the network, if `count` exceeds N, or if σ' vanishes at all inputs, so that
                Σ is zero.
        """
        features = TangentFeatures.of(net, X)
        n = len(features.X)
        if count is not None:
            check_count("count", count)
            if count > n:
                raise InputError(f"count={count}: {n} inputs give at most {n} eigenpairs. Give more inputs.")
        gram = features.gram()
        trace = float(np.trace(gram)) / n
        spectrum = Spectrum.of(gram, count)
        keep = spectrum.values > n * np.finfo(np.float64).eps * max(spectrum.values[0], 0.0)
        require(keep.any(), "All features are zero at these inputs: σ' vanishes there, and Σ has no directions.")
        values, vectors = spectrum.values[keep], spectrum.vectors[:, keep]
        return cls(net, values / n, trace, Samples(features, vectors, vectors / np.sqrt(values)))

    @classmethod
    def of_harmonics(cls, net: TwoLayer, *, degree: int = 40, count: int | None = None) -> "FeatureCovariance":
        """Find Σ and its eigenpairs for x uniform on S^{d−1}(√d) and W₀ with unit columns, from spherical harmonics.

        The expansion lies below Σ, and every eigenvalue misses at most `tail`, which is 10⁻⁷ of the trace or less at
        degree 40 for smooth activations and some percent for the ReLU: give a higher degree, or use samples. With
        h = m/2 for paired neurons and h = m otherwise, time is O(degree·h²) once and O(dh²) for a product, of which
        Lanczos takes some 2·count + 200 on JAX's default device; memory is four h × h tables twice, and 3·count
        vectors of d·h numbers, in float64.

        Args:
            net: A two-layer network whose initial weights have columns of length one (`law="sphere"`).
            degree: The degree up to which Σ is expanded.
            count: How many of the largest eigenpairs are found. Without it n₁ + d, or all where d·h ≤ 1500.

        Returns:
            The covariance of the uniform law.

        Raises:
            InputError: If the columns of W₀ are not of length one, if `count` exceeds the number of eigenvalues that
                are not zero, or if it ends inside a cluster of eigenvalues, where Lanczos does not converge.
        """
        operator = SphereCovariance.of(net, degree=degree)
        trace, tail = series_tail(net, degree)
        size = operator.start.size
        wanted = polynomial_dimension(net.dim, 1) + net.dim if count is None else count
        check_count("count", wanted)
        if count is not None and count > size:
            raise InputError(f"count={count}: Σ has {size} eigenvalues that are not zero. Give at most {size}.")
        if size <= DENSE or wanted >= size - 1:
            spectrum = Spectrum.of(dense_matrix(operator), min(wanted, size) if count is not None else None)
        else:
            spectrum = leading_eigenpairs(operator, wanted)
        vectors = np.ascontiguousarray(spectrum.vectors.T).reshape(-1, *operator.start.shape)
        source = Harmonics(net, operator, vectors)
        return cls(net, spectrum.values, trace, source, max(tail, 0.0), spectrum.residuals)

    @property
    def known(self) -> int:
        """The number r of eigenpairs that are known."""
        return len(self.values)

    def apply(self, W: Float[AnyArray, "d m"]) -> Float[np.ndarray, "d m"]:
        """Multiply ΣW, in time O(Ndm) for samples and O(dm²) for harmonics.

        Args:
            W: A direction in weight space, d × m.

        Returns:
            The product, d × m.
        """
        return self._unfold(self.source.apply(self._fold(W)))

    def coordinates(self, W: Float[AnyArray, "d m"], r: int | None = None) -> Float[np.ndarray, " r"]:
        """Compute the inner products ⟨vᵢ, W⟩ with the first eigenvectors.

        Args:
            W: A direction in weight space, d × m.
            r: How many eigenvectors are taken, all that are known by default.

        Returns:
            The r inner products.
        """
        return self.source.coordinates(self._fold(W))[: self.check_rank(r)]

    def combine(self, c: Float[AnyArray, " r"]) -> Float[np.ndarray, "d m"]:
        """Add up Σᵢ cᵢvᵢ over the first eigenvectors.

        Args:
            c: The weights, one for each of the first `len(c)` eigenvectors.

        Returns:
            The sum, d × m.
        """
        weights = np.asarray(c, np.float64)
        self.check_rank(len(weights))
        return self._unfold(self.source.combine(weights))

    def project(self, W: Float[AnyArray, "d m"], r: int) -> Float[np.ndarray, "d m"]:
        """Project W on the span of the first r eigenvectors, in time O(Ndm) for samples and O(rdm) for harmonics.

        Args:
            W: A direction in weight space, d × m.
            r: How many eigenvectors span the space.

        Returns:
            Π_{≤r}W, d × m.
        """
        return self.combine(self.coordinates(W, r))

    def split(self, W: Float[AnyArray, "d m"], *ends: int) -> tuple[Float[np.ndarray, "d m"], ...]:
        """Split W into parts that add up to it, one for each run of eigenvectors, and the rest.

        `split(W, *blocks.ends)` are P_{Q₁}W, P_{Q₂}W and P_{Q₃}W; on the training inputs, `split(W, r, known)` are
        the parts in V₁, in V₂ and in the null space of Φ.

        Args:
            W: A direction in weight space, d × m.
            *ends: Where the runs end: the first holds the eigenvectors up to ends[0], the second those from there up
                to ends[1], and so on. They must not fall.

        Returns:
            A part for each end and one for what is left, each d × m.
        """
        if any(b < a for a, b in itertools.pairwise(ends)):
            raise InputError(f"ends={ends}: the ends of the parts must not fall, as in blocks.ends.")
        c = self.coordinates(W, max(ends, default=0))
        parts, start = [], 0
        for end in ends:
            part = np.zeros_like(c)
            part[start:end] = c[start:end]
            parts.append(self.combine(part))
            start = end
        return (*parts, np.asarray(W, np.float64) - sum(parts, start=np.zeros(self.net.W0.shape)))

    def linear(self, X: Float[AnyArray, "n inputs"], W: Float[AnyArray, "d m"]) -> Float[np.ndarray, " n"]:
        """Evaluate the linear part f_L(xᵢ; W) = ⟨φ(xᵢ), W⟩ of the network, in time O(ndm).

        Args:
            X: The n inputs, one row each.
            W: The movement of the weights, d × m.

        Returns:
            A number for each input.
        """
        return TangentFeatures.of(self.net, X).outputs(self._fold(W))

    def images(self, X: Float[AnyArray, "n inputs"], r: int | None = None) -> Float[np.ndarray, "n r"]:
        """Evaluate f_L(xᵢ; vⱼ), the functions that the eigenvectors compute.

        Time O(Nn(d + m) + Nnr) for samples and O(nrdm) for harmonics.

        Args:
            X: The n inputs, one row each.
            r: How many eigenvectors are taken, all that are known by default.

        Returns:
            A matrix n × r, whose column j belongs to eigenvector j.
        """
        return self.source.images(TangentFeatures.of(self.net, X))[:, : self.check_rank(r)]

    def blocks(self, k: int) -> Blocks:
        """Find where the blocks Q₁, Q₂ and Q₃ of a degree end in the spectrum (Section 4.1).

        Args:
            k: The degree, at least 1. Q₁ expresses the polynomials of degree k, Q₂ the next degrees up to 2k.

        Returns:
            The `Blocks`, with predicted and found ends.
        """
        return feature_blocks(self.values, self.net, k, trace=self.trace)

    def basis(self, start: int, stop: int) -> Basis:
        """Give some of the eigenvectors in the dtype of the network, to be used inside jitted functions.

        Args:
            start: How many eigenvectors are left out in front.
            stop: The number of the last one, counted from one.

        Returns:
            A `Basis` of the eigenvectors start + 1, …, stop, which projects weights on them.
        """
        require(0 <= start <= stop, f"start={start}, stop={stop}: expected 0 ≤ start ≤ stop.")
        self.check_rank(stop)
        return self.source.basis(start, stop)

    def _fold(self, W: Float[AnyArray, "d m"]) -> Float[np.ndarray, "d h"]:
        return np.asarray(fold(check_weights(self.net, W), self.net.paired))

    def _unfold(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, "d m"]:
        return np.asarray(unfold(V, self.net.paired))

    def check_rank(self, r: int | None) -> int:
        """Refuse a number of eigenvectors that are not all known.

        Args:
            r: The number, or None for all that are known.

        Returns:
            The number itself, or for None how many are known.

        Raises:
            InputError: If fewer than r eigenvectors are known.
        """
        if r is None:
            return self.known
        check_count("r", r, least=0)
        if r > self.known:
            raise InputError(
                f"r={r}: {self.known} eigenvectors are known. Give of_samples more inputs, or of_harmonics a "
                "larger count."
            )
        return r

    def __repr__(self) -> str:
        known = f"{self.known} eigenvalues, {self.values[0]:.4g} … {self.values[-1]:.4g}"
        return f"FeatureCovariance({type(self.source).__name__.lower()}, d={self.net.dim}, m={self.net.width}, {known})"
