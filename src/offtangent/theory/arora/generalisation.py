"""How well the network found by gradient descent does on new data, from the training data alone.

Arora et al. (2019), Section 5. The loss on new data is bounded by the complexity measure of the data,

    √(2 yᵀ(H∞)⁻¹y / n),                                                            (10)

and terms that vanish as n, the width m and 1/κ grow. `generalisation_bound` gives all of them, with the constants of
the proof; where the proof hides one in its O(·), it is one. For inputs of unit length and |y| ≤ 1.
"""

import math
from dataclasses import dataclass
from typing import Protocol, overload, runtime_checkable

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound, check_entries, check_real, require
from offtangent.theory.arora.movement import movement_bound, movement_radius
from offtangent.theory.arora.widths import initial_residual_bound


@runtime_checkable
class Bracketed(Protocol):
    """A number that is known to lie between `lower` and `upper`, such as yᵀH⁻¹y from an iterative solve."""

    @property
    def value(self) -> float: ...
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


@dataclass(frozen=True)
class Complexity:
    """The complexity measure between its bounds; `certified` when those of yᵀH⁻¹y are."""

    value: float
    lower: float
    upper: float
    certified: bool = False


@overload
def complexity(quadratic: float | int, n: int) -> float: ...
@overload
def complexity(quadratic: Bracketed, n: int) -> Complexity: ...
def complexity(quadratic: float | int | Bracketed, n: int) -> float | Complexity:
    """Compute the complexity measure √(2 yᵀ(H∞)⁻¹y / n) of labelled data, eq. (10) of Arora et al. (2019).

    It is the leading term of the bound (9) on the loss that a wide two-layer ReLU network has on new data once gradient
    descent has trained it: labels along large eigenvalues of H∞ are simple, those along small ones are complex. The
    quadratic form itself comes from `Gram.inverse_quadratic`, which may take O(n³); from there on the time is O(1).

    Args:
        quadratic: yᵀ(H∞)⁻¹y, zero or positive: a number, or a bracket with `value`, `lower` and `upper`.
        n: The number of samples.

    Returns:
        A number for a number. For a bracket a `Complexity` between its bounds, which is `certified` if the bracket is.

    Raises:
        InputError: If `quadratic` is negative, as a matrix that is singular to rounding may make it.

    >>> complexity(8.0, 4)
    2.0
    """
    check_bound(n=n)
    if isinstance(quadratic, Bracketed):
        lower = max(float(quadratic.lower), 0.0)  # a lower bound may lie below zero; the truth does not
        low, value, high = (_root(float(q), n) for q in (lower, quadratic.value, quadratic.upper))
        return Complexity(value, low, high, bool(getattr(quadratic, "certified", False)))
    check_real("quadratic", quadratic)
    return _root(float(quadratic), n)


def _root(quadratic: float, n: int) -> float:
    require(
        quadratic >= 0,
        f"yᵀH⁻¹y = {quadratic:g}: it is zero or positive. A matrix that is singular to rounding may give such a "
        "value; add a ridge.",
    )
    return math.sqrt(2 * quadratic / n)


def rademacher_gap_bound(
    rademacher: float, n: int, *, delta: float, lipschitz: float = 1.0, ceiling: float = 1.0
) -> float:
    """2ρ R_S + 3c √(log(2/δ) / 2n), Theorem B.1: how far the loss on new data exceeds that on n samples.

    With probability at least 1 − δ over the samples, for all functions of a class with empirical Rademacher complexity
    R_S at once, and a loss between 0 and c = `ceiling` that is ρ-Lipschitz in the prediction.

    >>> round(rademacher_gap_bound(0.1, 1000, delta=0.05), 4)
    0.3288
    """
    check_bound(delta, n=n, lipschitz=lipschitz, ceiling=ceiling)
    check_real("rademacher", rademacher)
    require(rademacher >= 0, f"rademacher={rademacher:g}: a Rademacher complexity is zero or positive.")
    return 2 * lipschitz * rademacher + 3 * ceiling * math.sqrt(math.log(2 / delta) / (2 * n))


@dataclass(frozen=True)
class RademacherBound:
    """The three terms of Lemma 5.4."""

    linear: float  # B/√(2n) (1 + (2 log(2/δ)/m)^{1/4}): the class as if no neuron flipped
    flips: float  # of the neurons that may flip, on average
    fluctuation: float  # R √(2 log(2/δ)): of their number

    @property
    def total(self) -> float:
        return self.linear + self.flips + self.fluctuation


def rademacher_bound(
    n: int, width: float | int, *, radius: float, movement: float, scale: float, delta: float, proof: bool = False
) -> RademacherBound:
    """Lemma 5.4: the empirical Rademacher complexity of all networks near their initialisation is at most

        B/√(2n) (1 + (2 log(2/δ) / m)^{1/4}) + 2R²√m/κ + R √(2 log(2/δ)),

    where each neuron moves by at most R = `radius` and all of them together by B = `movement`. With probability at
    least 1 − δ over the initial weights, for all B at once; R is chosen before they are drawn. With `proof`, the
    second term has the constant that the proof gives, 2√(2/π) = 1.596 instead of 2.

    >>> round(rademacher_bound(100, 10_000, radius=0.0, movement=3.0, scale=1.0, delta=0.1).total, 4)
    0.2453
    """
    check_bound(delta, n=n, width=width, scale=scale)
    check_real("radius", radius)
    check_real("movement", movement)
    require(radius >= 0 and movement >= 0, f"radius={radius:g}, movement={movement:g}: distances are zero or positive.")
    log = math.log(2 / delta)
    constant = 2 * math.sqrt(2 / math.pi) if proof else 2.0
    return RademacherBound(
        linear=movement / math.sqrt(2 * n) * (1 + (2 * log / width) ** 0.25),
        flips=constant * radius**2 * math.sqrt(width) / scale if radius else 0.0,
        fluctuation=radius * math.sqrt(2 * log),
    )


@dataclass(frozen=True)
class GeneralisationBound:
    """Theorem 5.1, term by term; with labels ±1 it bounds the classification error too (Corollary 5.2)."""

    measure: float  # √(2 yᵀ(H∞)⁻¹y / n), eq. (10)
    training: float  # the loss on the training data
    rounding: float  # 2/√(2n): B goes up to the next whole number
    initial: float  # the output before training, Lemma 5.3's nκ/(λ₀δ)
    movement: float  # the rest of Lemma 5.3, which falls like m^{-1/4}
    features: float  # (2 log(10/δ)/m)^{1/4} of Lemma 5.4
    flips: float  # 2R²√m/κ of Lemma 5.4
    fluctuation: float  # R √(2 log(10/δ)) of Lemma 5.4
    sampling: float  # 3 √(log(6N/δ) / 2n) of Theorem B.1, for the N classes with B = 1, ..., N at once
    classes: int  # N

    @property
    def total(self) -> float:
        """The bound on the loss on new data."""
        return self.measure + self.training + self.rounding + self.initial + self.of_width + self.sampling

    @property
    def of_width(self) -> float:
        """What vanishes as the width goes to infinity."""
        return self.movement + self.features + self.flips + self.fluctuation

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: the loss is at most one anyway."""
        return self.total >= 1


def generalisation_bound(
    quadratic: float | int | Bracketed,
    n: int,
    *,
    smallest: float,
    delta: float,
    width: float | int = math.inf,
    scale: float = 0.0,
    training: float | None = None,
) -> GeneralisationBound:
    """Bound the loss on new data by all the terms of Theorem 5.1 of Arora et al. (2019), with its proof's constants.

    The theorem says that a wide two-layer ReLU network, trained by gradient descent, has with probability at least
    1 − δ over samples and initial weights the loss

        L_D ≤ √(2 yᵀ(H∞)⁻¹y / n) + O(√(log(n/(λ₀δ)) / n))                          (9)

    on new data, for every loss between 0 and 1 that is 1-Lipschitz in the prediction; for labels ±1 the same bounds the
    classification error (Corollary 5.2). The split of δ is the proof's: a third for λ₀, a third for the initialisation
    (with log(10/δ) in Lemma 5.4), a third for the samples, shared among the N = ⌈√(n/λ₀) + …⌉ values of B. Lemma 5.3's
    movement and the initial residual are taken at δ itself, as in the paper, whose O(·) hides their share. Where the
    proof hides a constant in its O(·), it is one. Time O(1).

    Args:
        quadratic: yᵀ(H∞)⁻¹y, a number or a bracket, of which the upper end is taken.
        n: The number of samples.
        smallest: λ₀, a lower bound on the smallest eigenvalue of H∞.
        delta: The probability δ with which the bound may fail, between 0 and 1.
        width: The number m of neurons. In the limit of infinite width, the default, only the terms in n are left.
        scale: The size κ of the initial weights, positive where the width is finite; its limit, the default, is zero.
        training: The loss on the training data; without it, the 1/√n that the proof reaches.

    Returns:
        A `GeneralisationBound`: its `total` is the bound, its fields are the terms of which that is the sum, and
        `vacuous` says whether it is one or more, where it says nothing.

    Raises:
        InputError: If a size is not positive, or `delta` does not lie between 0 and 1.

    >>> bound = generalisation_bound(25.0, 10_000, smallest=0.1, delta=0.1)
    >>> bound.measure, round(bound.total, 3)
    (0.0707..., 0.161)
    """
    check_bound(delta, n=n, width=width, smallest=smallest)
    given = quadratic.upper if isinstance(quadratic, Bracketed) else quadratic
    check_not_negative(
        quadratic=given, n=n, smallest=smallest, scale=scale, training=0.0 if training is None else training
    )
    if math.isfinite(width):
        check_bound(scale=scale)
    upper = float(given)
    moved = movement_bound(upper, n, width, scale=scale, smallest=smallest, delta=delta)
    classes = math.ceil(math.sqrt(n / smallest) + moved.initial + moved.of_width)
    log = math.log(10 / delta)
    residual = initial_residual_bound(n, scale, delta=delta)
    radius = movement_radius(n, width, smallest=smallest, residual=residual)
    per_movement = 2 / math.sqrt(2 * n)
    return GeneralisationBound(
        measure=complexity(upper, n),
        training=1 / math.sqrt(n) if training is None else training,
        rounding=per_movement,
        initial=per_movement * moved.initial,
        movement=per_movement * moved.of_width,
        features=per_movement * (moved.total + 1) * (2 * log / width) ** 0.25,
        flips=4 * radius**2 * math.sqrt(width) / scale if radius else 0.0,
        fluctuation=2 * radius * math.sqrt(2 * log),
        sampling=3 * math.sqrt(math.log(6 * classes / delta) / (2 * n)),
        classes=classes,
    )


Numbers = Float[np.ndarray, "*shape"]


def ramp_loss(u: Numbers, y: Numbers) -> Numbers:
    """1 where uy ≤ 0, 1 − uy up to uy = 1, 0 beyond: between the 0-1 loss and the ℓ1 loss, for labels ±1."""
    _check_outputs(u, y, signs=True)
    return np.clip(1 - np.asarray(u) * np.asarray(y), 0.0, 1.0)


def zero_one_loss(u: Numbers, y: Numbers) -> Numbers:
    """1 where uy ≤ 0, else 0, for labels ±1: an output of zero is wrong."""
    _check_outputs(u, y, signs=True)
    return (np.asarray(u) * np.asarray(y) <= 0).astype(np.float64)


def absolute_loss(u: Numbers, y: Numbers, *, ceiling: float = math.inf) -> Numbers:
    """|u − y|, the paper's ℓ1 loss. Theorem 5.1 speaks of losses in [0, 1]: `ceiling=1` makes it one of them."""
    _check_outputs(u, y)
    check_real("ceiling", ceiling)
    require(ceiling > 0, f"ceiling={ceiling:g}: the largest loss is positive, and may be infinite.")
    return np.minimum(np.abs(np.asarray(u) - np.asarray(y)), ceiling)


def _check_outputs(u: Numbers, y: Numbers, *, signs: bool = False) -> None:
    """Refuse outputs and labels that are not finite or of two shapes, and with `signs` other labels than −1 and 1."""
    check_entries(u=u, y=y)
    given, labels = np.shape(u), np.shape(y)
    require(given == labels, f"u has shape {given} and y {labels}: expected one label for each output, in one shape.")
    right = not signs or bool(np.isin(y, (-1, 1)).all())
    require(right, "y has other labels than −1 and 1, for which this loss is. Give np.where(y > 0, 1.0, -1.0).")
