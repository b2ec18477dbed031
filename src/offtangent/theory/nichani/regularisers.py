"""The regularisers R₁ to R₄ that send a network in good directions, and how strong the theorems want them.

Nichani, Bai & Lee (2022), eqs. (16)-(19) and their other forms (24)-(27), with Π_{≤r} the projection on the first r
eigenvectors of the feature covariance Σ:

    R₁(W) = wᵀΣ_{>r}w = E_μ f_L(x; Π_{>r}W)²        R₂(W) = wᵀΣ_{≤r}w = E_μ f_L(x; Π_{≤r}W)²
    R₃(W) = E_n f_L(x; Π_{>r}W)²                    R₄(W) = ‖W‖⁸_{2,4}

μ is what the `FeatureCovariance` was made of, E_n the mean over training inputs. Each is an equinox module: `R(W)` is
jittable and differentiable, in the dtype of the network, and axes in front of W are a batch, one value for each.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key, require
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray, IdentityHash
from offtangent.networks import TwoLayer
from offtangent.theory.bai_lee.penalties import penalty
from offtangent.theory.nichani.bases import Basis
from offtangent.theory.nichani.covariance import FeatureCovariance, Samples
from offtangent.theory.nichani.sphere_covariance import SphereCovariance
from offtangent.theory.nichani.tangent import LinearPart, TangentFeatures, fold


class Regulariser(IdentityHash, eqx.Module):
    """A non-negative function of W."""

    @property
    def randomised(self) -> bool:
        """Whether it draws fresh inputs, and takes a key as well as W."""
        return False


class SampleResidual(Regulariser):
    """n⁻¹‖(I − UUᵀ) f_L(X; W)‖² for orthonormal columns U. Time O(ndm + nr), memory n(h + r)."""

    linear: LinearPart
    vectors: Float[Array, "n r"]

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        return self.of_linear(self.linear(W))

    def of_linear(self, f: Float[Array, "*b n"]) -> Float[Array, "*b"]:
        """The same from f = f_L(X; W), for a loss that has computed it already. Time O(nr)."""
        left = f - (f @ self.vectors) @ self.vectors.T
        return jnp.mean(left**2, axis=-1)


class OperatorResidual(Regulariser):
    """vᵀΣv for v = W − Π_{≤r}W, with Σ from harmonics. Time O(dm² + rdm), memory four h × h tables and rdh."""

    operator: SphereCovariance
    basis: Basis
    paired: bool = eqx.field(static=True)

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        V = fold(W - self.basis.project(W), self.paired)
        return jnp.sum(V * self.operator(V), axis=(-2, -1))


class R1(Regulariser):
    """R₁, eqs. (16) and (24): what Π_{>r}W does to the linear term on the population. It holds movement in Q₂ down."""

    residual: SampleResidual | OperatorResidual

    @classmethod
    def of(cls, covariance: FeatureCovariance, rank: int) -> "R1":
        """Costs and memory as of `SampleResidual` on the N inputs, or of `OperatorResidual`."""
        _check_covariance(covariance)
        check_count("rank", rank, least=0)
        source, dtype = covariance.source, covariance.net.W0.dtype
        if isinstance(source, Samples):
            vectors = source.vectors[:, : covariance.check_rank(rank)]
            return cls(SampleResidual(source.features.linear(), jnp.asarray(vectors, dtype)))
        basis = covariance.basis(0, rank)
        return cls(OperatorResidual(source.operator.on_device(dtype), basis, covariance.net.paired))

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        return self.residual(W)


class R2(Regulariser):
    """R₂ = Σ_{i≤r} λᵢ⟨vᵢ, W⟩², eqs. (17) and (25): the size of the linear term in Q₁. Time as of `basis`."""

    basis: Basis
    values: Float[Array, " r"]

    @classmethod
    def of(cls, covariance: FeatureCovariance, rank: int) -> "R2":
        _check_covariance(covariance)
        check_count("rank", rank, least=0)
        basis = covariance.basis(0, rank)
        return cls(basis, jnp.asarray(covariance.values[:rank], covariance.net.W0.dtype))

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        return self.basis.coordinates(W) ** 2 @ self.values


class R3(Regulariser):
    """The regulariser R₃, which keeps a network from fitting the training labels with bad directions of its kernel.

    Nichani, Bai & Lee (2022), eqs. (18) and (26): with Π_{>r}W the part of the weights off the first r eigenvectors of
    the feature covariance, and the mean over the n training inputs,

        R₃(W) = E_n f_L(x; Π_{>r}W)²,

    so that moving in the directions V₂, in which the linear part f_L can only interpolate, costs what it changes there.
    `R3.empirical` is the form of the paper's experiments, `R3.of` that of its theorems. Either is a function of W:
    jittable, differentiable, in the dtype of the network; axes in front of W are a batch, with one value for each.

    Attributes:
        linear: The linear part f_L on the training inputs, as a function of W.
        images: f_L(xᵢ; vⱼ), the functions of the first r eigenvectors on the training inputs.
        basis: The first r eigenvectors themselves.

    >>> from offtangent import data
    >>> net = TwoLayer.symmetric(dim=5, width=40, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> X = data.sphere(30, 5, radius=5**0.5, key=jax.random.key(1))
    >>> R = R3.empirical(net, X, rank=6)
    >>> float(R(net.origin))
    0.0
    """

    linear: LinearPart
    images: Float[Array, "n r"]
    basis: Basis

    @staticmethod
    def empirical(net: TwoLayer, X: Float[AnyArray, "n inputs"], rank: int) -> SampleResidual:
        """Make R₃ with the training features' own directions V₁ in place of the population's Q₁.

        This is n⁻¹‖(I − U_rU_rᵀ) f_L(X; W)‖² with the first r eigenvectors U_r of ΦΦᵀ, which the paper's experiments
        use: Π_{>r} is I − V₁V₁ᵀ, and ΦV₁V₁ᵀ = U_rU_rᵀΦ exactly. Time O(n²(d + m) + n³) once, then O(ndm + nr) for a
        value; memory n(h + r) numbers, with h = m/2 for paired neurons and h = m otherwise.

        Args:
            net: A two-layer network.
            X: The training inputs, one row each.
            rank: r, at most n; `labels.advise` suggests one.

        Returns:
            R₃ as a function of W. Its `of_linear(f)` takes f_L(X; W) instead, where a loss has computed it already.

        Raises:
            InputError: If there are no r singular vectors, or X does not fit the network.
        """
        found = FeatureCovariance.of_samples(net, X, count=_count(rank, len(X)))
        assert isinstance(found.source, Samples)
        vectors = found.source.vectors[:, : found.check_rank(rank)]
        return SampleResidual(found.source.features.linear(), jnp.asarray(vectors, net.W0.dtype))

    @classmethod
    def of(cls, covariance: FeatureCovariance, X: Float[AnyArray, "n inputs"], rank: int) -> "R3":
        """Make R₃ with the projection Π_{>r} of the population, or of any inputs that a covariance was made of.

        A value takes time O((n + N)dm + (n + N)r) with a covariance of N samples, O(ndm + rdm) with one of harmonics.

        Args:
            covariance: The feature covariance whose first r eigenvectors go free.
            X: The training inputs, one row each.
            rank: r, at most the number of eigenvectors known.

        Returns:
            R₃ as a function of W.

        Raises:
            InputError: If `covariance` is none, or fewer than r of its eigenvectors are known.
        """
        _check_covariance(covariance)
        check_count("rank", rank, least=0)
        basis = covariance.basis(0, rank)
        linear = TangentFeatures.of(covariance.net, X).linear()
        return cls(linear, jnp.asarray(covariance.images(X, rank), linear.X.dtype), basis)

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        """Evaluate R₃(W).

        Args:
            W: The movement of the weights, d × m; axes in front are a batch.

        Returns:
            A number for each W of the batch.
        """
        left = self.linear(W) - self.basis.coordinates(W) @ self.images.T
        return jnp.mean(left**2, axis=-1)


class R4(Regulariser):
    """R₄ = ‖W‖⁸_{2,4}, eqs. (19) and (27): `theory.bai_lee.penalty`. Time and memory O(dm)."""

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
        return penalty(W)


class RandomisedR1(Regulariser):
    """R₁ on a few fresh inputs, R(W, key): in the mean over keys it is E f_L(x; Π_{>r}W)².

    Π is any covariance's: the training features' own in the paper's Appendix G, with 100 inputs a step. All W of a
    batch see the same inputs. Time O(Ndm) for the projection on features of N inputs, O(rdm) for harmonics, and
    O(samples·dm).
    """

    net: TwoLayer
    basis: Basis
    samples: int = eqx.field(static=True)
    law: Literal["sphere", "gaussian"] = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        covariance: FeatureCovariance,
        rank: int,
        *,
        samples: int = 100,
        law: Literal["sphere", "gaussian"] = "sphere",
    ) -> "RandomisedR1":
        """`law`: uniform on S^{d−1}(√d), or N(0, I)."""
        check_count("samples", samples)
        if law not in ("sphere", "gaussian"):
            raise InputError(f"law={law!r}: fresh inputs are on the 'sphere' of radius √d or 'gaussian'.")
        return cls(covariance.net, covariance.basis(0, rank), samples, law)

    @property
    def randomised(self) -> bool:
        return True

    def __call__(self, W: Float[Array, "*b d m"], key: Key[Array, ""]) -> Float[Array, "*b"]:
        net = self.net
        half = net.width // 2 if net.paired else net.width
        X = jax.random.normal(key, (self.samples, net.dim), W.dtype)
        if self.law == "sphere":
            X = X * (net.dim**0.5 / jnp.linalg.norm(X, axis=1, keepdims=True))
        scale = net.a[:half] * ((2 if net.paired else 1) / net.width) ** 0.5
        slopes = net.activation.derivative(1)(X @ net.W0[:, :half]) * scale
        linear = LinearPart(X, slopes, net.origin, net.paired)
        return jnp.mean(linear(W - self.basis.project(W)) ** 2, axis=-1)


class Stacked(Regulariser):
    """Regularisers of one shape, one for each seed, say, on a stack of weights: R_i has entry i of the first axis."""

    each: Regulariser  # with a first axis on every array

    @classmethod
    def of(cls, *parts: Regulariser) -> "Stacked":
        require(
            parts and len({str(jax.tree.map(jnp.shape, part)) for part in parts}) <= 1,
            "Stacked.of needs regularisers of one kind, of networks of one width and activation.",
        )
        return cls(jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts))

    @property
    def randomised(self) -> bool:
        return self.each.randomised

    def __call__(self, W: Float[Array, "k *b d m"], key: Key[Array, ""] | None = None) -> Float[Array, "k *b"]:
        if not self.randomised:
            return eqx.filter_vmap(lambda R, W: R(W))(self.each, W)
        check_key(key)
        assert key is not None
        return eqx.filter_vmap(lambda R, W, key: R(W, key))(self.each, W, jax.random.split(key, len(W)))


def _check_covariance(covariance: object) -> None:
    if not isinstance(covariance, FeatureCovariance):
        raise InputError(
            f"covariance is {a_kind(covariance)}: expected a FeatureCovariance, such as "
            "FeatureCovariance.of_samples(net, X) of inputs without labels."
        )


def _count(rank: int, n: int) -> int:
    check_count("rank", rank, least=0)
    require(rank <= n, f"rank={rank}: {n} training inputs have at most {n} singular vectors.")
    return max(rank, 1)
