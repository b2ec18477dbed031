"""Losses ℓ(y, z) of a label and an output.

Derivatives here are in z. Every formula keeps the dtype of z and stays finite far out in the tails. What Bai & Lee's
theorems ask of a loss is in `theory/bai_lee/contract.py`.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from offtangent._errors import InputError, a_kind
from offtangent.special.activations import softplus

Pointwise = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Loss:
    """An elementwise loss ℓ(y, z) of a label y and an output z, with its derivatives in z.

    The module has `logistic` (log(1 + e^{−yz})), `soft_hinge`, `squared` ((y − z)²/2) and `pseudo_huber` (√(1 + (y −
    z)²) − 1) ready made. A loss of one's own is `Loss("mine", function)`. Bai & Lee (2020), Section 2, ask of a loss
    that ℓ(y, 0) ≤ 1 and that it is convex and 1-Lipschitz in z, with second and third derivatives within [−1, 1];
    `theory.bai_lee.contract.loss_contract` looks whether it is. A loss is hashable, so that it can be a static field of
    a module. An evaluation costs O(1) elementwise operations; a derivative of order k up to O(2^k) by nested autodiff.

    Args:
        name: What messages call it.
        function: ℓ(y, z), written in jax.numpy, elementwise.
        labels: The labels for which the contract is to hold.
        signed: Whether ℓ is a function of yz, for labels −1 and +1 and no others.
        formula: `formula(order, y, z)`, the closed form of ∂^order ℓ/∂z^order for order ≥ 1; without it, nested
            autodiff.

    >>> logistic
    Loss(name='logistic', labels=(-1.0, 1.0))
    >>> float(logistic.derivative(1)(1.0, 0.0))
    -0.5
    >>> absolute = Loss("absolute", lambda y, z: jnp.abs(y - z))
    >>> float(absolute(1.0, 3.0)), float(absolute.derivative(1)(1.0, 3.0))
    (2.0, 1.0)
    """

    name: str
    function: Pointwise = field(repr=False)
    labels: tuple[float, ...] = (-1.0, 1.0)  # for which the contract is to hold
    signed: bool = field(default=False, repr=False)  # a function of yz, for labels −1 and +1 and no others
    # formula(order, y, z) is the closed form of the derivative, order ≥ 1; without it, nested autodiff
    formula: Callable[[int, Array, Array], Array] | None = field(default=None, repr=False, compare=False)

    def __call__(self, y: Float[ArrayLike, "*y"], z: Float[ArrayLike, "*z"]) -> Float[Array, "*shape"]:
        """Evaluate ℓ(y, z).

        Args:
            y: The labels.
            z: The outputs; y and z broadcast.

        Returns:
            ℓ of every pair, in the dtype of z.
        """
        try:
            jnp.broadcast_shapes(jnp.shape(y), jnp.shape(z))
        except ValueError:
            raise InputError(f"y has shape {jnp.shape(y)} and z {jnp.shape(z)}: they do not broadcast.") from None
        return self.function(jnp.asarray(y), jnp.asarray(z))

    def derivative(self, order: int) -> Callable[[ArrayLike, ArrayLike], Array]:
        """Make the derivative ∂^order ℓ/∂z^order.

        Args:
            order: Its order, 0 or more.

        Returns:
            An elementwise function of (y, z).

        Raises:
            InputError: If `order` is negative; when the function is called, if this derivative does not exist.
        """
        k = operator.index(order)
        if k < 0:
            raise InputError(f"derivative({k}): the order must be 0 or more.")
        return partial(_derivative, self, k)


def _derivative(loss: Loss, order: int, y: ArrayLike, z: ArrayLike) -> Array:
    labels, outputs = jnp.asarray(y), jnp.asarray(z)
    if order == 0:
        return loss.function(labels, outputs)
    if loss.formula is not None:
        return loss.formula(order, labels, outputs)
    lower = partial(_derivative, loss, order - 1, labels)
    slope: Array = jax.jvp(lower, (outputs,), (jnp.ones_like(outputs),))[1]
    return slope


# --- the catalogue ----------------------------------------------------------------------------------------


def _logistic(y: Array, z: Array) -> Array:
    return softplus(-y * z)


def _logistic_derivative(order: int, y: Array, z: Array) -> Array:
    return (-y) ** order * softplus.derivative(order)(-y * z)


def _soft_hinge(y: Array, z: Array) -> Array:
    t = 1 - y * z
    near = jnp.abs(t) < 1
    inside = jnp.where(near, t, 0)  # the cubes of t far out overflow, and 0·∞ spoils their derivatives
    rounded = jnp.where(inside < 0, (1 + inside) ** 3 / 6, inside + (1 - inside) ** 3 / 6)
    return jnp.where(near, rounded, jnp.where(t < 0, 0, t))


def _soft_hinge_derivative(order: int, y: Array, z: Array) -> Array:
    t = 1 - y * z
    left, right = jnp.clip(1 + t, 0, 1), jnp.clip(1 - t, 0, 1)  # one of them is 1, except where both are
    if order == 1:
        value = jnp.where(t < 0, left**2 / 2, 1 - right**2 / 2)
    elif order == 2:
        value = jnp.minimum(left, right)
    elif order == 3:
        value = jnp.where(jnp.abs(t) < 1, jnp.where(t < 0, 1.0, -1.0), 0.0).astype(t.dtype)
    else:
        raise InputError(f"soft_hinge has derivatives up to order 3 (a step); order {order} was asked for.")
    return (-y) ** order * value


def _squared(y: Array, z: Array) -> Array:
    return 0.5 * (z - y) ** 2


def _squared_derivative(order: int, y: Array, z: Array) -> Array:
    r = z - y
    return r if order == 1 else jnp.full_like(r, 1.0 if order == 2 else 0.0)


def _pseudo_huber(y: Array, z: Array) -> Array:
    r = z - y
    near = jnp.abs(r) < 1e9  # beyond, it is |r| − 1 in float64, and soon r² overflows in float32
    inside = jnp.where(near, r, 0)
    # √(1 + r²) − 1 without cancellation. (Not jnp.hypot: its second derivative is wrong at |r| = 1.)
    return jnp.where(near, inside * (inside / (1 + jnp.sqrt(1 + inside**2))), jnp.abs(r) - 1)


logistic = Loss("logistic", _logistic, signed=True, formula=_logistic_derivative)
"""log(1 + e^{−yz}): ℓ(y, 0) = log 2, |ℓ'| < 1, ℓ'' ≤ 1/4, |ℓ'''| ≤ 1/(6√3). (Divided by log 2, as some do to have
ℓ(y, 0) = 1, it is no longer 1-Lipschitz.)"""
soft_hinge = Loss("soft_hinge", _soft_hinge, signed=True, formula=_soft_hinge_derivative)
"""The hinge max(0, 1 − yz) convolved with the triangular density (1 − |t|)₊: it is the hinge itself for |1 − yz| ≥ 1
and two cubic arcs between; ℓ(y, 0) = 1, ℓ'' = (1 − |1 − yz|)₊ ≤ 1, and |ℓ'''| = 1 between the three points yz = 0, 1, 2
where it jumps. No narrower density is 1-Lipschitz. (The common log(1 + e^{1−yz}) has ℓ(y, 0) = 1.31.)"""
squared = Loss("squared", _squared, formula=_squared_derivative)
"""(y − z)²/2. It breaks the contract: convex with ℓ'' = 1 and ℓ''' = 0, but not Lipschitz. The theorems promise
nothing for it."""
pseudo_huber = Loss("pseudo_huber", _pseudo_huber)
"""√(1 + (y − z)²) − 1, for real labels with |y| ≤ √3: |ℓ'| < 1, ℓ'' ≤ 1, |ℓ'''| ≤ 48/(25√5) = 0.86."""

LOSSES: Mapping[str, Loss] = MappingProxyType({one.name: one for one in (logistic, soft_hinge, squared, pseudo_huber)})


def check_loss(loss: object) -> None:
    """Refuse what is no `Loss`."""
    if not isinstance(loss, Loss):
        given = f"the text {loss!r}" if isinstance(loss, str) else a_kind(loss)
        raise InputError(
            f"loss is {given}: expected a Loss, one of special.{', special.'.join(LOSSES)}, or one of your own, "
            "special.Loss('mine', function) with function(y, z) in jax.numpy."
        )
    shape = (2, 3)
    found = getattr(jax.eval_shape(loss, jnp.ones(shape), jnp.ones(shape)), "shape", None)
    if found != shape:
        raise InputError(
            f"{loss.name} is not elementwise: labels and outputs of shape {shape} gave {found}. A loss is one number "
            "for each pair; their mean over samples is taken elsewhere."
        )


def check_loss_labels(loss: Loss, y: ArrayLike) -> None:
    """Refuse labels other than −1 and +1 for a loss of yz; with 0 for −1 it would have no gradient there."""
    if not loss.signed:
        return
    try:
        labels = np.asarray(y)
    except jax.errors.TracerArrayConversionError:  # inside a jitted function nobody knows
        return
    if not np.isin(labels, (-1, 1)).all():
        kinds = np.unique(labels)
        shown = ", ".join(f"{kind:g}" for kind in kinds[:5]) + (", …" if len(kinds) > 5 else "")
        two = f"np.where(y == {kinds[-1]:g}, 1.0, -1.0)"
        hint = (
            f"Give {two}."
            if len(kinds) == 2
            else "For real labels take special.losses.pseudo_huber or special.losses.squared."
        )
        raise InputError(f"{loss.name} is a loss for the labels −1 and 1, and y has {shown}. {hint}")
