"""The contract that Bai & Lee's theorems ask of a loss, looked at part by part.

Bai & Lee (2020), Section 2: ℓ ≥ 0 with ℓ(y, 0) ≤ 1, and z ↦ ℓ(y, z) is convex, 1-Lipschitz and has second and third
derivatives within [−1, 1], for every label y.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._errors import InputError
from offtangent.special.losses import Loss, check_loss

CORE = 30.0  # where the contract is looked at closely
CELL = 0.005
TAIL = 1e6  # and how far out it is looked at
ROUNDING = 1e-9  # a part may be exceeded by this much: rounding in float64


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


def loss_contract(loss: Loss, *, labels: tuple[float, ...] | None = None, own_label: bool = False) -> Contract:
    """The contract, part by part, for each label (by default the loss's own) and |z| ≤ 10⁶, in float64.

    Besides the derivative of each order, differences of the order below are held against its limit: a kink, which
    autodiff does not see, fails there. A grid proves nothing between its points; it is dense (0.005) for |z| ≤ 30.
    With `own_label`, ℓ(y, y) = 0 is asked too, as Nichani, Bai & Lee (2022), Section 2.1, do: of logistic and
    soft_hinge, which have no least value at y = ±1, it is not true. Time and memory O(12 000) for each label.

    >>> from offtangent.special.losses import squared
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
        if own_label:
            with jax.enable_x64(True):
                own = np.asarray(loss(label, label), np.float64).reshape(1)
            note("ℓ(y, y) = 0", 0.0, 1, label, own, np.array([label]))
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
