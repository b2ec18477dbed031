"""Where W went: in the directions Q₁, Q₂, Q₃ of the population and V₂ of the training set, and how far each neuron.

Nichani, Bai & Lee (2022), Section 1.1. Goal 1: move minimally in V₂. Goal 2: move in Q₃, but minimally in Q₂. A network
in its tangent regime has ‖w_r‖ ~ m^{−1/2} for every neuron; ‖w_r‖ ≫ m^{−1/2} is an escape. What is here is jittable
and keeps the dtype of the network; axes in front of W are a batch. They fit `record=` of `training.train`.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent._checks import check_inputs
from offtangent._errors import InputError
from offtangent._types import AnyArray, IdentityHash
from offtangent.networks import TwoLayer
from offtangent.taylor.two_layer import OnInputs
from offtangent.theory.bai_lee.signs import check_dim, check_net, quadratic_expansion
from offtangent.theory.nichani.bases import Basis
from offtangent.theory.nichani.blocks import Blocks
from offtangent.theory.nichani.covariance import FeatureCovariance


class Movement(IdentityHash, eqx.Module):
    """‖P_{Q₁}W‖, ‖P_{Q₂}W‖, ‖P_{Q₃}W‖ and, with a training covariance, ‖P_{V₂}W‖, in Frobenius norm.

    The first three are orthogonal: their squares add up to ‖W‖². Time O(Ndm) for samples, O((r + s)dm) for harmonics,
    and O(ndm) for V₂.

    >>> import jax
    >>> from offtangent import data
    >>> net = TwoLayer.symmetric(dim=4, width=60, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> sigma = FeatureCovariance.of_samples(net, data.sphere(100, 4, radius=2.0, key=jax.random.key(1)))
    >>> movement = Movement.of(sigma, sigma.blocks(1))
    >>> dict(zip(movement.names, movement(net.origin).tolist()))
    {'Q1': 0.0, 'Q2': 0.0, 'Q3': 0.0}
    """

    NAMES: ClassVar[tuple[str, ...]] = ("Q1", "Q2", "Q3", "V2")

    basis: Basis  # of Q₁ and Q₂
    bad: Basis | None  # of V₂
    first: int = eqx.field(static=True)  # dim Q₁

    @classmethod
    def of(
        cls,
        covariance: FeatureCovariance,
        blocks: Blocks | tuple[int, int],
        *,
        training: FeatureCovariance | None = None,
        rank: int | None = None,
    ) -> "Movement":
        """`blocks`: those of the covariance, or how many eigenvectors come before Q₂ and before Q₃.

        `training` is the covariance of the training inputs; V₂ are its eigenvectors from `rank` on, dim Q₁ if left out.
        """
        low, high = blocks.ends if isinstance(blocks, Blocks) else blocks
        if not 0 <= low <= high:
            raise InputError(f"blocks={(low, high)}: expected the ends of Q₁ and of Q₂, 0 ≤ first ≤ second.")
        after = low if rank is None else rank
        if training is not None and after > training.known:
            raise InputError(f"rank={after}: the training features have {training.known} directions, and V₂ none left.")
        bad = None if training is None else training.basis(after, training.known)
        return cls(covariance.basis(0, high), bad, low)

    @property
    def names(self) -> tuple[str, ...]:
        """What the entries of the result are."""
        return self.NAMES if self.bad is not None else self.NAMES[:3]

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b parts"]:
        c = self.basis.coordinates(W)
        rest = W - self.basis.combine(c)
        found = [
            jnp.linalg.norm(c[..., : self.first], axis=-1),
            jnp.linalg.norm(c[..., self.first :], axis=-1),
            jnp.linalg.norm(rest, axis=(-2, -1)),
        ]
        if self.bad is not None:
            found.append(jnp.linalg.norm(self.bad.coordinates(W), axis=-1))
        return jnp.stack(found, axis=-1)


class Energies(IdentityHash, eqx.Module):
    """n⁻¹Σᵢ f_L(xᵢ; W)² and n⁻¹Σᵢ f_Q(xᵢ; W)² on fixed inputs, fresh ones for the population. Time O(ndm)."""

    model: OnInputs

    @classmethod
    def of(cls, net: TwoLayer, X: Float[AnyArray, "n inputs"]) -> "Energies":
        check_net(net)
        inputs = check_inputs(X)
        check_dim(net, inputs)
        return cls(quadratic_expansion(net).on(jnp.asarray(inputs, net.W0.dtype)))

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b 2"]:
        if W.ndim > 2:
            return eqx.filter_vmap(self.__call__)(W)
        _, linear, quadratic = self.model.terms(W)
        return jnp.stack([jnp.mean(linear**2), jnp.mean(quadratic**2)])


def furthest(W: Float[Array, "*b d m"]) -> Float[Array, "*b"]:
    """√m max_r ‖w_r‖: of order one in the tangent regime, m^{1/4} for the weights of Lemma 1. Time O(dm).

    >>> float(furthest(jnp.array([[0.0, 3.0, 0.0, 0.0], [1.0, 4.0, 0.0, 0.0]])))
    10.0
    """
    if jnp.ndim(W) < 2:
        raise InputError(f"W has shape {jnp.shape(W)}: expected (d, m), neurons are columns.")
    return jnp.linalg.norm(W, axis=-2).max(axis=-1) * W.shape[-1] ** 0.5
