"""Does an activation meet Assumption A of Bai & Lee (2020)? Its three constants, measured.

Section 2: σ is twice continuously differentiable, and for some constant C

    |σ'(t)| ≤ C t²,      |σ''(t)| ≤ C |t|,      |σ''(s) − σ''(t)| ≤ C |s − t|.

Footnote 2: only the last one restricts; "the bounds on derivatives (and specifically their bound near zero) are merely
for technical convenience and can be weakened without hurting the results". Indeed where σ'' is Lipschitz the first two
can fail at zero only, where σ'(0) or σ''(0) is not zero: |σ''(t)| ≤ |σ''(0)| + C|t|.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from offtangent.special.activations import Activation, activation

CORE, CELL = 30.0, 0.01  # where it is looked at closely
NEAR, FAR = 1e-4, 1e6  # nothing is seen closer to zero, or further out
DIVISIONS = 20  # of each cell, in search of jumps of σ' and σ''
STEEPER = 50.0  # what grows so much in cells that shrink by 10⁵ and more has no bound
GROWS = 10**0.25  # from one decade to the next: faster than t^{1/4}, and it has no bound

Curve = Callable[[Float[np.ndarray, " k"]], Float[np.ndarray, " k"]]


@dataclass(frozen=True)
class AssumptionPart:
    """One part of Assumption A: its constant, infinite where there is none, close to zero and further out."""

    name: str
    near_zero: float  # the supremum over |t| ≤ 1
    far_out: float  # over |t| ≥ 1
    at: float  # where the larger of them is found; 0 or ±∞ where it is a limit without bound
    missing: str = ""  # why there is no such derivative

    @property
    def constant(self) -> float:
        """The smallest C."""
        return max(self.near_zero, self.far_out)

    @property
    def holds(self) -> bool:
        return self.constant < np.inf  # false for NaN

    @property
    def fails_at(self) -> str:
        """'zero', 'infinity', both, or the place of a jump; empty where the part holds."""
        if self.holds:
            return ""
        if self.missing or np.isnan(self.constant) or (np.isfinite(self.at) and self.at != 0):
            return f"t = {self.at:.4g}"
        places = {"zero": self.near_zero, "infinity": self.far_out}
        return " and ".join(name for name, value in places.items() if not value < np.inf)

    def __str__(self) -> str:
        if self.holds:
            return f"{self.name}: holds with C = {self.constant:.4g}"
        if np.isnan(self.constant):
            return f"{self.name}: not a number at {self.fails_at}; write σ so that it does not overflow"
        near, far = (f"{value:.4g}" if value < np.inf else "none" for value in (self.near_zero, self.far_out))
        why = f" ({self.missing})" if self.missing else f" (C for |t| ≤ 1: {near}, for |t| ≥ 1: {far})"
        return f"{self.name}: fails at {self.fails_at}{why}"


@dataclass(frozen=True)
class AssumptionA:
    """What of Assumption A an activation meets, on a grid."""

    activation: Activation
    first: AssumptionPart  # sup |σ'(t)|/t²
    second: AssumptionPart  # sup |σ''(t)|/|t|
    lipschitz: AssumptionPart  # of σ''

    @property
    def parts(self) -> tuple[AssumptionPart, ...]:
        return self.first, self.second, self.lipschitz

    @property
    def failures(self) -> tuple[AssumptionPart, ...]:
        return tuple(part for part in self.parts if not part.holds)

    @property
    def holds(self) -> bool:
        return not self.failures

    @property
    def allowed(self) -> bool:
        """Whether the paper's results are meant for it: σ'' is Lipschitz, whatever happens at zero (footnote 2)."""
        return self.lipschitz.holds

    @property
    def constant(self) -> float:
        """The paper's C, the largest of the three."""
        return float(np.max([part.constant for part in self.parts]))

    def __str__(self) -> str:
        if np.isnan(self.constant):
            verdict = "cannot be judged against Assumption A of Bai & Lee:"
        elif self.holds:
            verdict = f"meets Assumption A of Bai & Lee with C = {self.constant:.4g}:"
        elif self.allowed:
            verdict = (
                "does not meet Assumption A of Bai & Lee as written, but footnote 2 allows it: σ'' is Lipschitz, and "
                "the bounds at zero are for convenience and can be weakened:"
            )
        else:
            verdict = "does not meet Assumption A of Bai & Lee, and footnote 2 does not help: σ'' must be Lipschitz:"
        return "\n  ".join([f"{self.activation.name} {verdict}", *map(str, self.parts)])


def assumption_a(sigma: str | Activation | Callable[..., object]) -> AssumptionA:
    """The three constants of Assumption A for an activation, or for a function of one's own by autodiff; in float64.

    Suprema are taken on a grid (0.01 for |t| ≤ 30, geometric from 10⁻⁴ to 10⁶) and refined around the largest value. A
    ratio that grows by more than 10^{1/4} over the last decade towards zero or infinity has no bound there. Jumps and
    kinks that autodiff does not see are found by dividing every cell of the grid twenty times: there a difference
    quotient grows without bound. A grid proves nothing between its points. Time: some 30 evaluations of three
    derivatives at 6500 points.

    >>> assumption_a("relu3").constant
    1.0
    >>> [part.fails_at for part in assumption_a("softplus").parts], assumption_a("softplus").allowed
    (['zero', 'zero', ''], True)
    """
    found = activation(sigma)
    highest = 3 if found.smooth is None else min(found.smooth, 3)
    with jax.enable_x64(True):
        curves = [_curve(found, order) for order in range(highest + 1)]
        points = _grid(found.kinks)
        steepest = [_steepest(curve, points) for curve in curves[:3]]
        ratios = []
        for order, name in ((1, "|σ'(t)| ≤ C t²"), (2, "|σ''(t)| ≤ C |t|")):
            lost = _missing(found, steepest, order)
            ratios.append(lost.part(name) if lost else _ratio(name, curves[order], 3 - order, points))
        lost, name = _missing(found, steepest, 2), "σ'' is C-Lipschitz"
        last = lost.part(name) if lost else _lipschitz(name, curves, steepest[2], points)
    return AssumptionA(found, ratios[0], ratios[1], last)


@dataclass(frozen=True)
class _Missing:
    why: str
    at: float

    def part(self, name: str) -> AssumptionPart:
        return AssumptionPart(name, np.inf, np.inf, self.at, self.why)


def _missing(sigma: Activation, steepest: list["_Steepest"], order: int) -> _Missing | None:
    """Why σ has no derivative of this order: it says so, or one of a lower order jumps."""
    for k in range(1, order + 1):
        lower, this = "σ" + "'" * (k - 1), "σ" + "'" * k
        if k >= len(steepest):
            return _Missing(f"{this} is no function", sigma.kinks[0] if sigma.kinks else np.nan)
        if steepest[k - 1].unbounded:
            return _Missing(f"{lower} jumps, so that {this} is no function", steepest[k - 1].at)
    return None


def _curve(sigma: Activation, order: int) -> Curve:
    function = jax.jit(sigma.derivative(order))

    def values(t: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        return np.asarray(function(jnp.asarray(t)), np.float64)

    return values


def _grid(kinks: tuple[float, ...]) -> Float[np.ndarray, " k"]:
    steps = round(CORE / CELL)
    half = np.concatenate([np.geomspace(NEAR, CELL, 61)[:-1], CELL * np.arange(1, steps), np.geomspace(CORE, FAR, 451)])
    return np.unique(np.concatenate([-half, half, [kink for kink in kinks if NEAR <= abs(kink) <= FAR]]))


def _ratio(name: str, derivative: Curve, power: int, points: Float[np.ndarray, " k"]) -> AssumptionPart:
    """|derivative(t)|/|t|^power at its largest, near zero and far out, with what happens at the two ends."""

    def ratio(t: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        return np.abs(derivative(t)) / np.abs(t) ** power

    return _suprema(name, ratio, points)


def _lipschitz(name: str, curves: list[Curve], steep: "_Steepest", points: Float[np.ndarray, " k"]) -> AssumptionPart:
    """Lip(σ''): the largest |σ'''| where it exists; difference quotients see jumps as well."""
    if steep.unbounded:
        near = abs(steep.at) <= 1
        return AssumptionPart(name, np.inf if near else 0.0, 0.0 if near else np.inf, steep.at, "σ'' jumps or bends")
    if len(curves) > 3:
        third = curves[3]
        return _suprema(name, lambda t: np.abs(third(t)), points)
    near_zero, far_out = steep.within(1.0)
    return AssumptionPart(name, near_zero, far_out, steep.at)


def _suprema(name: str, ratio: Curve, points: Float[np.ndarray, " k"]) -> AssumptionPart:
    values = ratio(points)
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        return AssumptionPart(name, np.nan, np.nan, float(points[bad[np.abs(points[bad]).argmin()]]))
    size = np.abs(points)
    near, at_near = _refined(ratio, points, values, size <= 1)
    far, at_far = _refined(ratio, points, values, size >= 1)
    if _grows(size, values, NEAR, 10.0):
        near, at_near = np.inf, 0.0
    if np.isinf(values[size >= 1]).any() or _grows(size, values, FAR, 0.1):
        far, at_far = np.inf, float(np.copysign(np.inf, points[np.argmax(np.where(size >= FAR / 10, values, -1))]))
    return AssumptionPart(name, near, far, at_near if near >= far else at_far)


def _grows(size: Float[np.ndarray, " k"], values: Float[np.ndarray, " k"], end: float, decade: float) -> bool:
    """Whether the values grow from the last but one decade to the last, on the way to `end`."""
    bounds = np.sort([end, end * decade, end * decade**2])
    low, high = (float(values[(size >= a) & (size <= b)].max()) for a, b in pairwise(bounds))
    last, before = (low, high) if decade > 1 else (high, low)
    return last > GROWS * before


def _refined(
    ratio: Curve, points: Float[np.ndarray, " k"], values: Float[np.ndarray, " k"], where: np.ndarray
) -> tuple[float, float]:
    """The largest value among the chosen points, and then between the neighbours of where it is, again and again."""
    best = int(np.argmax(np.where(where, values, -1)))
    value, at = float(values[best]), float(points[best])
    neighbours = [i for i in (best - 1, best + 1) if 0 <= i < len(points) and where[i]]
    low, high = (float(points[i]) for i in (min([best, *neighbours]), max([best, *neighbours])))
    for _ in range(6):
        if low * high <= 0:  # zero itself is no point
            break
        t = np.linspace(low, high, 65)
        found = ratio(t)
        peak = int(np.argmax(found))
        if found[peak] > value:
            value, at = float(found[peak]), float(t[peak])
        low, high = float(t[max(peak - 1, 0)]), float(t[min(peak + 1, 64)])
    return np.inf if value > STEEPER * float(values[best]) else value, at


@dataclass(frozen=True, eq=False)
class _Steepest:
    """Difference quotients in ever smaller cells, each time the part of a cell over which the function moves more."""

    unbounded: bool
    at: float
    places: Float[np.ndarray, " k"]
    quotients: Float[np.ndarray, " k"]

    def within(self, size: float) -> tuple[float, float]:
        inside = np.abs(self.places) <= size
        return float(self.quotients[inside].max()), float(self.quotients[~inside].max())


def _steepest(curve: Curve, points: Float[np.ndarray, " k"]) -> _Steepest:
    low, high = points[:-1], points[1:]
    f_low, f_high = curve(low), curve(high)
    with np.errstate(all="ignore"):
        before = np.abs(f_high - f_low) / (high - low)
        for _ in range(DIVISIONS):
            middle = low + 0.45 * (high - low)  # not zero itself, where autodiff of |t|^p gives NaN
            f_middle = curve(middle)
            left = np.abs(f_middle - f_low) >= np.abs(f_high - f_middle)
            low, f_low = np.where(left, low, middle), np.where(left, f_low, f_middle)
            high, f_high = np.where(left, middle, high), np.where(left, f_middle, f_high)
        after = np.abs(f_high - f_low) / (high - low)
        noise = 1e-14 * np.maximum(np.abs(f_low), np.abs(f_high)) / (high - low)  # of rounding, with room
    ok = np.isfinite(before) & np.isfinite(after) & np.isfinite(noise)
    core = ok & (np.abs(points[:-1]) <= CORE)
    usual = float(before[core].max(initial=0.0))
    excess = np.where(core, after - STEEPER * usual - noise, -np.inf)
    worst = int(np.argmax(excess))
    unbounded = bool(excess[worst] > 0)
    largest = int(np.argmax(np.where(ok, after, -1)))
    at = round(float(low[worst if unbounded else largest]), 6) + 0.0  # −0.0 becomes 0.0
    return _Steepest(unbounded, at, low, np.where(ok, after, 0.0))
