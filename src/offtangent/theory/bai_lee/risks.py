"""Networks whose neurons move with random signs, and their risks.

Bai & Lee (2020), Section 3. With Σ = diag(±1) at random, f at W₀ + WΣ keeps its quadratic part f^Q and loses the linear
one in the mean. The risks, for a loss ℓ and ½ in f^Q,

    L̃(W) = n⁻¹ Σᵢ ℓ(yᵢ, f_{W₀+W}(xᵢ)),    L(W) = E_Σ L̃(WΣ),    L^Q(W) = n⁻¹ Σᵢ ℓ(yᵢ, f^Q_W(xᵢ)),

each with λ‖W‖⁸_{2,4} added where a strength λ is given. A neuron has two states, so with its outputs' halves of sum and
difference e_r, o_r in (W₀ ± W)

    f_{W₀+WΣ}(x) = Σ_r e_r(x) + Σ_r Σ_rr o_r(x):

two passes of the network and one matrix product give the outputs for all signs.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, Key

from offtangent._checks import check_labels, check_magnitude, check_real, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_displacement
from offtangent.special.losses import Loss, check_loss, check_loss_labels, logistic
from offtangent.taylor.two_layer import OnInputs, TwoLayerExpansion
from offtangent.theory._results import Average
from offtangent.theory.bai_lee.penalties import penalty
from offtangent.theory.bai_lee.signs import (
    check_dim,
    check_net,
    check_weights,
    choose_signs,
    over_signs,
    quadratic_expansion,
    standard_error,
)


class RandomisedRisk(eqx.Module):
    """The risk of a network whose neurons move with random signs, as a function of its weights W.

    Bai & Lee (2020), Section 3.1, give each column of W an independent fair sign Σ_rr = ±1, so that the linear part
    vanishes in the mean and the quadratic part stays, and minimise

        L_λ(W) = E_Σ L̃(WΣ) + λ‖W‖⁸_{2,4},      L̃(W) = n⁻¹ Σᵢ ℓ(yᵢ, f_{W₀+W}(xᵢ)).

    `RandomisedRisk.of` makes one; `risk(W)` is its value, jittable, with derivatives of every order that the activation
    and the loss have. The signs are drawn once, so that it is one function, the same at every call. A call costs two
    passes of the network and a product of (n × m)·(m × s/2) for s signs; memory O(nm) and at most 2²² outputs, also in
    reverse mode, which recomputes them.

    Attributes:
        net: The two-layer network f, with its initial weights W₀.
        X: The n inputs, in the dtype of the network.
        y: Their labels.
        signs: The diagonals of Σ, one of each pair Σ, −Σ: s/2 rows of m signs.
        strength: λ.
        loss: The loss ℓ(y, z).
        exact: Whether these are all 2^m signs, so that the mean over them is the expectation.

    >>> net = TwoLayer.symmetric(dim=2, width=4, activation="softplus", key=jax.random.key(0))
    >>> risk = RandomisedRisk.of(net, np.eye(2), np.array([1.0, -1.0]), logistic)
    >>> risk.estimate(net.origin)
    Average(value=0.693147..., error=0.0, draws=16)
    """

    net: TwoLayer
    X: Float[Array, "n d"]
    y: Float[Array, " n"]
    signs: Int8[Array, "s m"]
    strength: Float[Array, ""]
    loss: Loss = eqx.field(static=True)
    exact: bool = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        net: TwoLayer,
        X: Float[AnyArray, "n d"],
        y: Float[AnyArray, " labels"],
        loss: Loss = logistic,
        *,
        strength: float = 0.0,
        samples: int | None = None,
        key: Key[Array, ""] | None = None,
    ) -> "RandomisedRisk":
        """Make the risk of a network on labelled samples, with all signs or with some drawn at random.

        Args:
            net: A two-layer network.
            X: The inputs, one row each.
            y: The labels, one for each input; −1 and 1 for the logistic loss and for others that are made for these.
            loss: The loss ℓ(y, z), the logistic one by default.
            strength: λ, the weight of ‖W‖⁸_{2,4}.
            samples: How many signs are drawn, an even number of at least 4: they come in pairs Σ, −Σ. Without it all
                2^m signs are taken, for widths m up to 12.
            key: The JAX key that draws them; it is needed with `samples`.

        Returns:
            The risk as a function of W.

        Raises:
            InputError: If the network has more than 12 neurons and no `samples` are given, if `samples` come without a
                key, if the loss is not made for these labels, or if X, y and the network do not fit together.
        """
        inputs, labels, lam = _check_problem(net, X, y, loss, strength)
        signs = choose_signs(net.width, samples, key)
        return cls(net, inputs, labels, signs, lam, loss, exact=samples is None)

    def __call__(self, W: Float[Array, "d m"]) -> Float[Array, ""]:
        """Evaluate L_λ(W).

        Args:
            W: The movement of the weights, d × m; the network is evaluated at W₀ ± WΣ.

        Returns:
            The mean over samples and signs, and λ‖W‖⁸_{2,4}.
        """
        return jnp.mean(self.by_pair(W)) + self.strength * penalty(W)

    def estimate(self, W: Float[AnyArray, "d m"]) -> Average:
        """Evaluate L_λ(W) on the host, with the standard error that the choice of signs leaves.

        Args:
            W: The movement of the weights, d × m, with finite entries.

        Returns:
            An `Average`: the value, its standard error (zero where all signs were taken), and the number of signs.
        """
        V = jnp.asarray(check_weights(self.net, W), self.X.dtype)
        pairs = np.asarray(_by_pair(self, V), np.float64)
        return Average(
            value=float(pairs.mean()) + float(self.strength * penalty(V)),
            error=0.0 if self.exact else standard_error(pairs),
            draws=2 * len(pairs),
        )

    def by_pair(self, W: Float[Array, "d m"]) -> Float[Array, " s"]:
        """Evaluate ½(L̃(WΣ) + L̃(−WΣ)) for each pair of signs, without the regulariser.

        Args:
            W: The movement of the weights, d × m.

        Returns:
            A number for each row of `signs`.
        """
        even, odd = halves(self.net, self.net.activation, W, self.X)

        @jax.checkpoint
        def pair(signs: Int8[Array, " m"]) -> Float[Array, ""]:
            swing = jnp.matmul(odd, signs.astype(odd.dtype), precision=jax.lax.Precision.HIGHEST)
            both = self.loss(self.y, even + swing) + self.loss(self.y, even - swing)
            return jnp.mean(both) / 2

        return over_signs(pair, self.signs, len(self.X))


@eqx.filter_jit
def _by_pair(risk: RandomisedRisk, W: Float[Array, "d m"]) -> Float[Array, " s"]:
    return risk.by_pair(W)


@eqx.filter_jit
def _coefficients(model: TwoLayerExpansion, X: Float[Array, "n d"]) -> OnInputs:
    return model.on(X)


class CleanRisk(eqx.Module):
    """L^Q(W), the risk of the quadratic part alone, as a function of W; the coefficients are kept.

    Time O(ndm), memory O(nm).
    """

    net: TwoLayer
    model: OnInputs
    y: Float[Array, " n"]
    strength: Float[Array, ""]
    loss: Loss = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        net: TwoLayer,
        X: Float[AnyArray, "n d"],
        y: Float[AnyArray, " labels"],
        loss: Loss = logistic,
        *,
        strength: float = 0.0,
    ) -> "CleanRisk":
        inputs, labels, lam = _check_problem(net, X, y, loss, strength)
        return cls(net, _coefficients(quadratic_expansion(net), inputs), labels, lam, loss)

    def outputs(self, W: Float[Array, "d m"]) -> Float[Array, " n"]:
        """f^Q_W(xᵢ)."""
        return self.model.terms(W)[2]

    def __call__(self, W: Float[Array, "d m"]) -> Float[Array, ""]:
        return jnp.mean(self.loss(self.y, self.outputs(W))) + self.strength * penalty(W)


def empirical_risk(
    f: Any, params: Any, X: Float[Array, "n *d"], y: Float[Array, "n *k"], loss: Loss = logistic
) -> Float[Array, "*k"]:
    """L̃ = n⁻¹ Σᵢ ℓ(yᵢ, f(params, xᵢ)), for any f; k outputs with k labels give k risks. Jittable."""
    return jnp.mean(sample_losses(f, params, X, y, loss), axis=0)


def sample_losses(
    f: Any, params: Any, X: Float[Array, "n *d"], y: Float[Array, "n *k"], loss: Loss = logistic
) -> Float[Array, "n *k"]:
    """ℓ(yᵢ, f(params, xᵢ)) for each sample."""
    check_loss(loss)
    check_loss_labels(loss, y)
    outputs = f(params, X)
    if outputs.shape != y.shape:  # broadcasting would pair every output with every label
        raise InputError(
            f"The outputs have shape {outputs.shape} and the labels {y.shape}: they must be the same. A column of "
            "labels becomes a vector with y[:, 0] or y.ravel()."
        )
    return loss(y, outputs)


def halves(
    net: TwoLayer, sigma: Any, W: Float[Array, "d m"], X: Float[Array, "n d"]
) -> tuple[Float[Array, " n"], Float[Array, "n m"]]:
    """Σ_r e_r and (o_r)_r on each input: halves of sum and difference of m^{-1/2} a_r σ((w₀ᵣ ± wᵣ)ᵀx).

    `sigma` is σ or one of its derivatives. Time O(ndm), memory O(nm).
    """
    check_displacement(net.W0, W)
    scale = net.a / net.width**0.5
    start, moved = X @ net.W0, X @ W
    plus, minus = sigma(start + moved), sigma(start - moved)
    even, odd = (plus + minus) * (scale / 2), (plus - minus) * (scale / 2)
    if net.paired:  # what cancels in each pair should do so before the sum
        half = net.width // 2
        even = even[:, :half] + even[:, half:]
    return jnp.sum(even, axis=1), odd


def _check_problem(net: TwoLayer, X: Any, y: Any, loss: Loss, strength: Any) -> tuple[Array, Array, Array]:
    """Inputs, labels and λ in the network's dtype, or an InputError."""
    check_net(net)
    check_loss(loss)
    inputs, labels = check_labels(X, y)
    check_dim(net, inputs)
    check_loss_labels(loss, labels)
    check_real("strength", strength)
    require(0 <= strength < np.inf, f"strength={strength!r}: λ is zero or positive, and finite.")
    dtype = net.W0.dtype
    check_magnitude(2, dtype=dtype, X=inputs, y=labels)
    return jnp.asarray(inputs, dtype), jnp.asarray(labels, dtype), jnp.asarray(strength, dtype)
