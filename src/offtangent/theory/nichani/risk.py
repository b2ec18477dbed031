"""The regularised loss of Nichani, Bai & Lee (2022), eq. (20), as one function of W: L_λ = L̂ + Σᵢ λᵢRᵢ.

L̂ is the mean loss of the network itself, or of its quadratic model f_L + f_Q (eq. 28). Jittable and differentiable, in
the dtype of the network; `taylor.certificate` takes it as it is, and `training.train` needs no more than a wrapper.
"""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_labels
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.special.losses import Loss, check_loss, check_loss_labels, pseudo_huber
from offtangent.taylor.two_layer import OnInputs
from offtangent.theory.bai_lee.penalties import penalty
from offtangent.theory.bai_lee.signs import check_dim, quadratic_expansion
from offtangent.theory.nichani.choice import RegulariserSizes
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.regularisers import R1, R2, R3

BLOCK = 1024
Model = Literal["network", "quadratic"]


class JointRisk(eqx.Module):
    """L_λ(W) on fixed training inputs. A call costs O(ndm) and what R₁, R₂ and R₃ cost.

    >>> import jax
    >>> from offtangent import data
    >>> net = TwoLayer.symmetric(dim=4, width=60, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> X = data.sphere(50, 4, radius=2.0, key=jax.random.key(1))
    >>> sigma = FeatureCovariance.of_samples(net, X)
    >>> risk = JointRisk.of(sigma, X, X[:, 0], rank=5, strengths=RegulariserSizes(1.0, 0.1, 1.0, 0.1))
    >>> risk.parts(net.origin).tolist()[1:]
    [0.0, 0.0, 0.0, 0.0]
    """

    net: TwoLayer
    X: Float[Array, "n d"]
    y: Float[Array, " n"]
    r1: R1
    r2: R2
    r3: R3
    strengths: Float[Array, "4"]  # λ₁, …, λ₄
    expansion: OnInputs | None  # of the quadratic model
    loss: Loss = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        covariance: FeatureCovariance,
        X: Float[AnyArray, "n inputs"],
        y: Float[AnyArray, " n"],
        *,
        rank: int,
        strengths: RegulariserSizes,
        loss: Loss = pseudo_huber,
        model: Model = "network",
    ) -> "JointRisk":
        """`strengths` are λ₁, …, λ₄, as of `regulariser_choice(...)` or `JointExpression.strengths(ε)`."""
        check_loss(loss)
        inputs, labels = check_labels(X, y)
        net = covariance.net
        check_dim(net, inputs)
        check_loss_labels(loss, labels)
        if model not in ("network", "quadratic"):
            raise InputError(f"model={model!r}: L̂ is of the 'network', or of its 'quadratic' model.")
        lams = check_strengths(strengths)
        dtype = net.W0.dtype
        points = jnp.asarray(inputs, dtype)
        return cls(
            net=net,
            X=points,
            y=jnp.asarray(labels, dtype),
            r1=R1.of(covariance, rank),
            r2=R2.of(covariance, rank),
            r3=R3.of(covariance, inputs, rank),
            strengths=jnp.asarray(lams, dtype),
            expansion=_coefficients(net, points) if model == "quadratic" else None,
            loss=loss,
        )

    @property
    def model(self) -> Model:
        return "network" if self.expansion is None else "quadratic"

    def outputs(self, W: Float[Array, "d m"]) -> Float[Array, " n"]:
        """f(xᵢ), or f_L(xᵢ) + f_Q(xᵢ)."""
        return self.net(W, self.X) if self.expansion is None else self.expansion(W)

    def parts(self, W: Float[Array, "d m"]) -> Float[Array, "5"]:
        """L̂, R₁, R₂, R₃, R₄."""
        data = jnp.mean(self.loss(self.y, self.outputs(W)))
        return jnp.stack([data, self.r1(W), self.r2(W), self.r3(W), penalty(W)])

    def __call__(self, W: Float[Array, "d m"]) -> Float[Array, ""]:
        found = self.parts(W)
        return found[0] + jnp.dot(self.strengths, found[1:])


def loss_on_host(
    loss: Loss, y: Float[np.ndarray, " n"], f: Float[np.ndarray, " n"], order: int = 0
) -> Float[np.ndarray, " n"]:
    """ℓ(yᵢ, fᵢ) or one of its derivatives in f, in float64, in blocks of one size: JAX compiles for every new shape."""
    spare = -len(y) % BLOCK
    labels, outputs = (np.pad(part, (0, spare), mode="edge").reshape(-1, BLOCK) for part in (y, f))
    with jax.enable_x64(True):
        parts = [_derivative(loss, order, *map(jnp.asarray, pair)) for pair in zip(labels, outputs, strict=True)]
        return np.concatenate([np.asarray(part) for part in parts])[: len(y)]


@partial(jax.jit, static_argnums=(0, 1))
def _derivative(loss: Loss, order: int, y: Float[Array, " b"], f: Float[Array, " b"]) -> Float[Array, " b"]:
    return loss.derivative(order)(y, f)


def check_strengths(strengths: RegulariserSizes) -> Float[np.ndarray, "4"]:
    """λ₁, …, λ₄ as an array, or an InputError where one is negative or not finite."""
    if not isinstance(strengths, RegulariserSizes):
        raise InputError(
            f"strengths is {a_kind(strengths)}: expected RegulariserSizes(λ₁, λ₂, λ₃, λ₄), as of "
            "regulariser_choice(...).strengths or JointExpression.strengths(ε)."
        )
    lams = np.array([strengths.r1, strengths.r2, strengths.r3, strengths.r4], np.float64)
    if not (np.isfinite(lams) & (lams >= 0)).all():
        raise InputError(f"strengths={strengths}: every λ is zero or positive, and finite.")
    return lams


@eqx.filter_jit
def _coefficients(net: TwoLayer, X: Float[Array, "n d"]) -> OnInputs:
    return quadratic_expansion(net).on(X)
