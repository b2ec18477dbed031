"""Does an activation meet Assumptions 2 and 3 of Nichani, Bai & Lee (2022)? Their numbers, measured.

Assumption 2 (Section 2.1): σ is twice continuously differentiable, and ‖σ‖∞, ‖σ'‖∞, ‖σ''‖∞ < 1. Read "≤": the paper's
own example, the sigmoid, comes as close to 1 as one likes.

Assumption 3 (their appendix, reconstructed): λ_k(σ')² B(d, k) and λ_k(σ'')² B(d, k) are Θ(1) in the dimension for the
degrees k in use, so that the network sees these degrees at all. For d → ∞ they tend to the squares of the Hermite
coefficients of σ' and σ'', so that the activation meets it where those are not zero. An even σ', as of the sigmoid, has
no odd degree, hence the paper's sigmoid "with generic shift".
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import jax
import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_not_negative
from offtangent.special.activations import Activation, activation
from offtangent.special.hermite_polynomials import hermite_coefficients, hermite_energy
from offtangent.special.sphere import check_degree, check_dim, harmonic_energies
from offtangent.theory.bai_lee.assumptions import FAR, Curve, _curve, _grid, _grows, _missing, _steepest

ROUNDING = 1e-12  # a supremum this far above 1 counts as 1
NOISE = 1e-12  # relative to √E[g²], ten times the quadrature's tolerance: a coefficient below cannot be told from 0


@dataclass(frozen=True)
class BoundPart:
    """One part of Assumption 2: a supremum, infinite where there is none, NaN where the function is no number."""

    name: str
    supremum: float
    at: float  # where it is found; ±∞ where it is the limit far out, or there is none
    missing: str = ""  # why there is no such derivative

    @property
    def holds(self) -> bool:
        """Whether it is below 1, as printed."""
        return self.supremum < 1

    @property
    def allowed(self) -> bool:
        """Whether it is at most 1."""
        return self.supremum <= 1 + ROUNDING

    def __str__(self) -> str:
        if self.missing:
            return f"{self.name}: none ({self.missing})"
        verdict = "holds" if self.holds else "holds with ≤" if self.allowed else "fails"
        return f"{self.name} = {self.supremum:.4g} at t = {self.at:.4g}: {verdict}"


@dataclass(frozen=True)
class BoundedAssumption:
    """What of Assumption 2 of Nichani et al. an activation meets, on a grid."""

    activation: Activation
    value: BoundPart  # ‖σ‖∞
    first: BoundPart  # ‖σ'‖∞
    second: BoundPart  # ‖σ''‖∞

    @property
    def parts(self) -> tuple[BoundPart, ...]:
        return self.value, self.first, self.second

    @property
    def failures(self) -> tuple[BoundPart, ...]:
        return tuple(part for part in self.parts if not part.holds)

    @property
    def holds(self) -> bool:
        """All three are below 1, as printed."""
        return not self.failures

    @property
    def allowed(self) -> bool:
        """All three are at most 1, which is what the paper means: it names the sigmoid, and its supremum is 1."""
        return all(part.allowed for part in self.parts)

    def __str__(self) -> str:
        verdict = "meets" if self.holds else "meets, with ≤ for <," if self.allowed else "does not meet"
        head = f"{self.activation.name} {verdict} Assumption 2 of Nichani, Bai & Lee:"
        return "\n  ".join([head, *map(str, self.parts)])


@dataclass(frozen=True)
class HarmonicPart:
    """One part of Assumption 3: the energy λ_k² B(d, k) of each degree of σ' or σ'', here and in the limit."""

    name: str
    energies: tuple[float, ...]  # for k = 0, …, degree at this dimension
    limits: tuple[float, ...]  # the same for d → ∞, by Hermite coefficients
    floor: float  # what counts as zero
    missing: str = ""  # why there is no such derivative

    @property
    def failures(self) -> tuple[int, ...]:
        """The degrees whose energy is not above the floor, at this dimension or in the limit."""
        return tuple(
            k for k, pair in enumerate(zip(self.energies, self.limits, strict=True)) if min(pair) <= self.floor
        )

    @property
    def smallest(self) -> float:
        """The Θ(1)'s lower constant: the smallest energy here and in the limit, 0 where the derivative is missing."""
        return min((*self.energies, *self.limits), default=0.0)

    @property
    def holds(self) -> bool:
        return not self.missing and not self.failures

    def __str__(self) -> str:
        if self.missing:
            return f"{self.name}: none ({self.missing})"
        numbers = ", ".join(f"{energy:.2g}" if energy > self.floor else "0" for energy in self.energies)
        verdict = "holds" if self.holds else f"fails for k = {', '.join(map(str, self.failures))}"
        return f"{self.name} for k = 0, …, {len(self.energies) - 1}: {numbers}; {verdict}"


@dataclass(frozen=True)
class HarmonicAssumption:
    """What of Assumption 3 of Nichani et al. an activation meets for the degrees 0, …, degree."""

    activation: Activation
    dim: int
    degree: int
    first: HarmonicPart  # σ'
    second: HarmonicPart  # σ''

    @property
    def parts(self) -> tuple[HarmonicPart, ...]:
        return self.first, self.second

    @property
    def failures(self) -> tuple[HarmonicPart, ...]:
        return tuple(part for part in self.parts if not part.holds)

    @property
    def holds(self) -> bool:
        return not self.failures

    @property
    def smallest(self) -> float:
        return min(part.smallest for part in self.parts)

    def __str__(self) -> str:
        verdict = "meets" if self.holds else "does not meet"
        head = f"{self.activation.name} {verdict} Assumption 3 of Nichani, Bai & Lee up to degree {self.degree}, "
        lines = [head + f"d = {self.dim}:", *map(str, self.parts)]
        alternate = all(b - a > 1 for part in self.parts for a, b in pairwise(part.failures))
        if any(part.failures for part in self.parts) and alternate:  # by symmetry; a polynomial has no more degrees
            lines.append("a shift helps: shifted(activation, 1), say")
        return "\n  ".join(lines)


def bounded_assumption(sigma: str | Activation | Callable[..., object]) -> BoundedAssumption:
    """‖σ‖∞, ‖σ'‖∞ and ‖σ''‖∞ of Assumption 2, in float64.

    On the grid of ``assumption_a`` and zero, refined around the largest value; what still grows by more than 10^{1/4}
    over the last decade before |t| = 10⁶ has no supremum. A grid proves nothing between its points. Time: some 30
    evaluations of three derivatives at 6500 points.

    >>> found = bounded_assumption("sigmoid(1.0)")
    >>> [round(part.supremum, 6) for part in found.parts], found.holds, found.allowed  # 1, 1/4, 1/6√3
    ([1.0, 0.25, 0.096225], False, True)
    """
    found = activation(sigma)
    highest = 2 if found.smooth is None else min(found.smooth, 2)
    with jax.enable_x64(True):
        curves = [_curve(found, order) for order in range(highest + 1)]
        grid = _grid(found.kinks)
        steepest = [_steepest(curve, grid) for curve in curves]
        points, parts = np.union1d(grid, [0.0]), []
        for order, name in enumerate(("‖σ‖∞", "‖σ'‖∞", "‖σ''‖∞")):
            lost = _missing(found, steepest, order) if order else None
            supremum, at = (np.inf, lost.at) if lost else _supremum(curves[order], points)
            parts.append(BoundPart(name, supremum, at, lost.why if lost else ""))
    return BoundedAssumption(found, *parts)


def harmonic_assumption(
    sigma: str | Activation | Callable[..., object], *, dim: int, degree: int, least: float | int = 0.0
) -> HarmonicAssumption:
    """λ_k(σ')² B(d, k) and λ_k(σ'')² B(d, k) of Assumption 3 for k = 0, …, degree, and their limits for d → ∞.

    A degree fails where its energy is at most `least`, or cannot be told from zero: below (1e-12)² of E[σ'²] or
    E[σ''²]. At the cost of two ``harmonic_coefficients`` and two ``hermite_coefficients``.

    >>> [part.failures for part in harmonic_assumption("sigmoid", dim=100, degree=5).parts]
    [(1, 3, 5), (0, 2, 4)]
    >>> harmonic_assumption("sigmoid(z − 1)", dim=100, degree=5).holds
    True
    """
    found, dim, degree = activation(sigma), check_dim(dim), check_degree(degree)
    check_not_negative(least=least)
    parts = []
    for order, name in ((1, "σ'"), (2, "σ''")):
        what = f"λ_k({name})² B(d, k)"
        if found.smooth is not None and order > found.smooth:
            parts.append(HarmonicPart(what, (), (), float(least), f"{name} is no function"))
            continue
        energies = harmonic_energies(found, dim=dim, degree=degree, derivative=order)
        limits = hermite_coefficients(found, order=degree, derivative=order) ** 2
        total = hermite_energy(found, order=0, derivative=order).total
        floor = max(float(least), NOISE**2 * total)
        parts.append(HarmonicPart(what, tuple(energies.tolist()), tuple(limits.tolist()), floor))
    return HarmonicAssumption(found, dim, degree, *parts)


def _supremum(curve: Curve, points: Float[np.ndarray, " k"]) -> tuple[float, float]:
    """The supremum of |curve| and where: between the neighbours of the largest value, again and again."""
    values = np.abs(curve(points))
    if (bad := np.flatnonzero(np.isnan(values))).size:
        return np.nan, float(points[bad[np.abs(points[bad]).argmin()]])
    best = int(np.argmax(values))
    value, at = float(values[best]), float(points[best])
    if value == np.inf or _grows(np.abs(points), values, FAR, 0.1):
        return np.inf, float(np.copysign(np.inf, at))
    if (far := np.abs(points) == FAR).any() and values[far].max() >= (1 - ROUNDING) * value:
        return value, float(np.copysign(np.inf, points[far][np.argmax(values[far])]))
    low, high = float(points[max(best - 1, 0)]), float(points[min(best + 1, len(points) - 1)])
    for _ in range(6):
        t = np.linspace(low, high, 65)
        found = np.abs(curve(t))
        peak = int(np.argmax(found))
        if found[peak] > value:
            value, at = float(found[peak]), float(t[peak])
        low, high = float(t[max(peak - 1, 0)]), float(t[min(peak + 1, 64)])
    return value, at
