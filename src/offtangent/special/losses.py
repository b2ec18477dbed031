"""Losses ℓ(y, z) of a label and an output, and the contract that Bai & Lee's theorems ask of them.

Bai & Lee (2020), Section 2: ℓ ≥ 0 with ℓ(y, 0) ≤ 1, and z ↦ ℓ(y, z) is convex, 1-Lipschitz and has second and third
derivatives within [−1, 1], for every label y. Derivatives here are in z. Every formula keeps the dtype of z and stays
finite far out in the tails.
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

CORE = 30.0  # where the contract is looked at closely
CELL = 0.005
TAIL = 1e6  # and how far out it is looked at
ROUNDING = 1e-9  # a part may be exceeded by this much: rounding in float64


@dataclass(frozen=True)
class Loss:
    """An elementwise loss ℓ(y, z), with its derivatives in z. Hashable, so it can be a static field of a module.

    A loss of one's own is `Loss("name", function)`, written in jax.numpy; its derivatives come from autodiff.

    >>> logistic
    Loss(name='logistic', labels=(-1.0, 1.0))
    >>> float(logistic(1.0, 0.0)), float(logistic.derivative(1)(1.0, 0.0))
    (0.6931471824645996, -0.5)
    """

    name: str
    function: Pointwise = field(repr=False)
    labels: tuple[float, ...] = (-1.0, 1.0)  # for which the contract is to hold
    signed: bool = field(default=False, repr=False)  # a function of yz, for labels −1 and +1 and no others
    # formula(order, y, z) is the closed form of the derivative, order ≥ 1; without it, nested autodiff
    formula: Callable[[int, Array, Array], Array] | None = field(default=None, repr=False, compare=False)

    def __call__(self, y: Float[ArrayLike, "*y"], z: Float[ArrayLike, "*z"]) -> Float[Array, "*shape"]:
        """ℓ(y, z); y and z broadcast."""
        return self.function(jnp.asarray(y), jnp.asarray(z))

    def derivative(self, order: int) -> Callable[[ArrayLike, ArrayLike], Array]:
        """∂^order ℓ/∂z^order as an elementwise function of (y, z)."""
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
        hint = f"Give {two}." if len(kinds) == 2 else "For real labels take special.pseudo_huber or special.squared."
        raise InputError(f"{loss.name} is a loss for the labels −1 and 1, and y has {shown}. {hint}")


# --- the contract -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContractPart:
    """One part of the contract: its extreme value on the grid, where that is, and by how much it is too far."""

    name: str
    value: float
    excess: float  # beyond the limit; zero or negative where the part holds with room
    label: float
    output: float

    @property
    def holds(self) -> bool:
        return self.excess <= ROUNDING  # false for NaN

    def __str__(self) -> str:
        verdict = "holds" if self.holds else f"fails by {self.excess:.3g}"
        return f"{self.name}: {verdict} (extreme {self.value:.4g} at y = {self.label:g}, z = {self.output:.4g})"


@dataclass(frozen=True)
class Contract:
    """What of Bai & Lee's contract a loss keeps, on a grid of labels and outputs."""

    loss: Loss
    parts: tuple[ContractPart, ...]

    @property
    def failures(self) -> tuple[ContractPart, ...]:
        return tuple(part for part in self.parts if not part.holds)

    @property
    def holds(self) -> bool:
        return not self.failures

    def __str__(self) -> str:
        head = f"{self.loss.name} {'keeps' if self.holds else 'breaks'} the contract of Bai & Lee, Section 2:"
        return "\n  ".join([head, *map(str, self.parts)])


def loss_contract(loss: Loss, *, labels: tuple[float, ...] | None = None) -> Contract:
    """The contract, part by part, for each label (by default the loss's own) and |z| ≤ 10⁶, in float64.

    Besides the derivative of each order, differences of the order below are held against its limit: a kink, which
    autodiff does not see, fails there. A grid proves nothing between its points; it is dense (0.005) for |z| ≤ 30.
    Time and memory O(12 000) for each label.

    >>> loss_contract(squared).failures[0].name
    '1-Lipschitz'
    """
    check_loss(loss)
    tails = np.geomspace(CORE, TAIL, 401)[1:]
    z = np.concatenate([-tails[::-1], np.linspace(-CORE, CORE, round(2 * CORE / CELL) + 1), tails])
    known = loss.labels if labels is None else labels
    if not known or not all(np.isfinite(known)):
        raise InputError(f"labels={known}: give at least one label, all of them finite, such as (-1.0, 1.0).")
    with jax.enable_x64(True):
        found = [_values(loss, jnp.full(z.shape, label), jnp.asarray(z)) for label in known]
    middles, widths = (z[1:] + z[:-1]) / 2, np.diff(z)
    extremes: dict[str, list[tuple[float, float, float, float]]] = {}

    def note(name: str, limit: float, sign: int, label: float, values: np.ndarray, at: np.ndarray) -> None:
        """The value furthest beyond the limit: above it for sign = 1, below it for −1. NaN is beyond everything."""
        beyond = sign * (values - limit)
        j = int(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)))
        extremes.setdefault(name, []).append((float(beyond[j]), float(values[j]), label, float(at[j])))

    for label, derivatives in zip(known, found, strict=True):
        note("non-negative", 0.0, -1, label, derivatives[0], z)
        zero = int(np.argmin(np.abs(z)))
        note("ℓ(y, 0) ≤ 1", 1.0, 1, label, derivatives[0][zero : zero + 1], z[zero : zero + 1])
        for order, name in ((1, "1-Lipschitz"), (2, "|ℓ''| ≤ 1"), (3, "|ℓ'''| ≤ 1")):
            slopes = np.diff(derivatives[order - 1]) / widths
            for values, at in ((derivatives[order], z), (slopes, middles)):
                note(name, 1.0, 1, label, np.abs(values), at)
                if order == 2:
                    note("convex", 0.0, -1, label, values, at)
    worst = {name: max(seen, key=lambda one: np.inf if np.isnan(one[0]) else one[0]) for name, seen in extremes.items()}
    return Contract(loss, tuple(ContractPart(n, value, beyond, y, at) for n, (beyond, value, y, at) in worst.items()))


def _values(loss: Loss, y: Float[Array, " k"], z: Float[Array, " k"]) -> list[Float[np.ndarray, " k"]]:
    """ℓ and its first three derivatives."""
    found = jax.jit(lambda y, z: [loss.derivative(order)(y, z) for order in range(4)])(y, z)
    return [np.asarray(values, np.float64) for values in found]
