"""How many labels may be wrong, from the kernel alone.

A hard sample and a wrong label look the same: both disagree with what the others say. So there are two answers.

*An upper bound.* Let labels y ∈ {±1}ⁿ be flipped independently, with probabilities pᵢ, and G be positive definite. Then

    E[ỹᵀGỹ] = Σᵢⱼ (1 − 2pᵢ)yᵢ Gᵢⱼ (1 − 2pⱼ)yⱼ + Σᵢ 4pᵢ(1 − pᵢ)Gᵢᵢ ≥ Σᵢ 4pᵢ(1 − pᵢ)Gᵢᵢ,

whatever y is: noise cannot hide from G = (H∞)⁻¹. If the complexity ỹᵀGỹ is a fraction of tr G (what coin flips would
have), the pᵢ are bounded on average, up to the fluctuation of ỹᵀGỹ, whose variance is known. Hard labels loosen the
bound and cannot break it. Labels that are wrong for a reason can: a cluster of them is no noise but another truth.

*An estimate*, from the leave-one-out predictions that disagree with their labels. Whether label i is wrong has no
influence on prediction i, so that of n predictions of which M are mistaken (against the true label),

    disagreements = wrong labels + (1 − cp) M on average,      c = 2 for two classes,

with a variance of M; of 2M, since mistakes come in pairs (two rows that predict each other are hidden together when
both are wrong). M has two parts. Noise in the others' labels moves prediction i by a known standard deviation, and
turns it with the probability that a normal variable exceeds its margin. The rest are hard samples. How many of these
there are cannot be known: that they are fewer than 2 % is the assumption. More are allowed for where two things come
together: the less sure half of the predictions disagrees with its labels more often than the surer half, and many
predictions lie near the border between classes, where hard samples are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
from jaxtyping import Bool, Float
from scipy.special import ndtr, ndtri

from offtangent._checks import require
from offtangent.kernels.inverse import Inverse

HARD = 0.02  # hard samples that are always allowed for
BOUND_LEVEL = 0.99  # of the upper bound
LEVEL = 0.90  # of the interval
IN_PAIRS = 2.0  # variance of the mistakes' net effect over their number


@dataclass(frozen=True, eq=False)
class InverseMoments:
    """What the fluctuation of ξᵀGξ depends on. A sum is that of the block-diagonal matrix."""

    diagonal: Float[np.ndarray, " n"]
    row_squares: Float[np.ndarray, " n"]  # Σⱼ Gᵢⱼ²
    largest: float  # the largest eigenvalue

    @classmethod
    def of(cls, inverse: Inverse) -> "InverseMoments":
        """Time O(n²)."""
        n = len(inverse)
        if n < 3:
            largest = float(np.linalg.eigvalsh(inverse @ np.eye(n))[-1])
        else:
            product = scipy.sparse.linalg.LinearOperator(
                (n, n), matvec=lambda v: (inverse @ v.reshape(n, 1))[:, 0], dtype=np.float64
            )
            start = np.random.default_rng(0).standard_normal(n)
            largest = float(scipy.sparse.linalg.eigsh(product, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0])
        return cls(inverse.diagonal, inverse.row_squares, largest)

    def __add__(self, other: "InverseMoments") -> "InverseMoments":
        return InverseMoments(
            np.concatenate([self.diagonal, other.diagonal]),
            np.concatenate([self.row_squares, other.row_squares]),
            max(self.largest, other.largest),
        )

    @property
    def trace(self) -> float:
        return float(self.diagonal.sum())

    @property
    def off_diagonal(self) -> Float[np.ndarray, " n"]:
        """Σ_{j≠i} Gᵢⱼ²."""
        return np.maximum(self.row_squares - self.diagonal**2, 0.0)


def noise_bound(
    quadratic: float, moments: InverseMoments, *, classes: int = 2, even: bool = False, level: float = BOUND_LEVEL
) -> float:
    """The largest fraction of random wrong labels, up to one half, that is compatible with the complexity.

    `quadratic` is ỹᵀGỹ of labels ±1; of more than two classes it is the sum over classes, each with the labels 1 and
    0. Each label is wrong independently of the others, with a chance of its own of at most one half; with `even`, all
    with the same chance. Wrong labels of several classes may go to any of the others.

    For a fraction p the quadratic exceeds, with the probability `level` (its distribution taken as normal),

        Σᵢ vᵢGᵢᵢ − z²‖G‖ max v − z sd(ξᵀGξ),      vᵢ = 4pᵢ(1 − pᵢ), of several classes at least 2pᵢ(1 − pᵢ),

    for any true labels: their own part and its product with the noise ξ together are at least −z²‖G‖ max v. Of all
    chances with the mean p, the smallest sum has one half at the 2pn smallest Gᵢᵢ and zero elsewhere, and the variance
    is at most what it is with all of it where G is largest. Time O(n).

    >>> G = InverseMoments(np.ones(100), np.ones(100), largest=0.0)
    >>> round(noise_bound(19.0, G, even=True, level=0.5), 3), round(noise_bound(19.0, G, level=0.5), 3)
    (0.05, 0.095)
    """
    require(classes >= 2, f"classes={classes}: labels can only be wrong among at least two classes.")
    z = float(ndtri(level))
    p = np.linspace(0.0, 0.5, 5001)
    least = (_least_even if even else _least)(p, moments, classes == 2, z)
    compatible = np.flatnonzero(least <= quadratic)
    return float(p[min(int(compatible[-1]) + 1, len(p) - 1)]) if len(compatible) else 0.0


def _least_even(p: Float[np.ndarray, " t"], moments: InverseMoments, two: bool, z: float) -> Float[np.ndarray, " t"]:
    v = 4 * p * (1 - p) if two else 2 * p * (1 - p)
    own = 16 * p * (1 - p) * (1 - 2 * p) ** 2 if two else 4 * p * (1 - p) ** 3
    variance = 2 * v**2 * moments.off_diagonal.sum() + own * np.sum(moments.diagonal**2)
    return v * (moments.trace - z**2 * moments.largest) - z * np.sqrt(variance)


def _least(p: Float[np.ndarray, " t"], moments: InverseMoments, two: bool, z: float) -> Float[np.ndarray, " t"]:
    """Σ vᵢ ≤ 4pn, and var ξᵢ² = 4vᵢ(1 − vᵢ) ≤ min(1, 4vᵢ); of several classes Σ vᵢ ≤ 2pn, and ‖ξᵢ‖² lies in [0, 2]."""
    n, many = len(moments.diagonal), p * len(moments.diagonal)
    smallest = np.sort(moments.diagonal)
    off, own = (np.sort(part)[::-1] for part in (moments.off_diagonal, moments.diagonal**2))

    def of_first(sorted_: Float[np.ndarray, " n"], count: Float[np.ndarray, " t"]) -> Float[np.ndarray, " t"]:
        """The sum of the first so many, parts of one included."""
        return np.interp(np.minimum(count, n), np.arange(n + 1), np.append(0.0, np.cumsum(sorted_)))

    mean = of_first(smallest, 2 * many) * (1.0 if two else 0.5)
    variance = 2 * of_first(off, (4 if two else 2) * many) + of_first(own, (16 if two else 4) * many)
    return mean - np.where(p > 0, z**2 * moments.largest, 0.0) - z * np.sqrt(variance)


def noise_variance_bound(quadratic: float, moments: InverseMoments, *, level: float = BOUND_LEVEL) -> float:
    """The same for numbers instead of classes: the largest variance of independent normal noise in the labels.

    ỹᵀGỹ exceeds v (tr G − z²‖G‖ − z√(2‖G‖_F²)) for noise of variance v. Infinite where that is not positive.
    """
    z = float(ndtri(level))
    unit = moments.trace - z**2 * moments.largest - z * np.sqrt(2 * moments.row_squares.sum())
    return float(quadratic / unit) if unit > 0 else float("inf")


@dataclass(frozen=True)
class NoiseEstimate:
    """The fraction of wrong labels between the ends of a 90 % interval, and what it rests on."""

    fraction: float
    lower: float
    upper: float
    level: float
    hard: float  # the fraction of hard samples that the lower end allows for
    doubtful: bool  # whether the data speak against at most 2 % of hard samples
    turned: float  # the fraction of predictions that noise in the others' labels is expected to turn
    assumption: str


def noise_estimate(
    margins: Float[np.ndarray, " n"],
    sensitivity: Float[np.ndarray, " n"],
    disagrees: Bool[np.ndarray, " n"],
    *,
    classes: int = 2,
    hard: float = HARD,
    level: float = LEVEL,
) -> NoiseEstimate:
    """The fraction of wrong labels from leave-one-out predictions.

    `margins`: how far each prediction is from another class, for labels 1 and 0 the difference of the two largest
    outputs, for a single output of labels ±1 its absolute value. `sensitivity`: `LeaveOneOut.sensitivity`.
    `disagrees`: whether the label is another class than the prediction. Time O(n) a hundred times.
    """
    n, found, z = len(margins), int(disagrees.sum()), float(ndtri((1 + level) / 2))
    c = classes / (classes - 1)  # a mistaken prediction agrees with a wrong label with probability p/(classes − 1)

    def turned(p: float) -> Float[np.ndarray, " n"]:
        """The probability that noise in the others' labels turned each prediction."""
        spread = np.sqrt(_label_variance(p, classes)) * sensitivity
        with np.errstate(divide="ignore", invalid="ignore"):
            return ndtr(-np.where(spread > 0, margins / spread, np.inf))

    sure = np.zeros(n, dtype=bool)
    sure[np.argsort(-margins, kind="stable")[: n // 2]] = True
    above, below = float(disagrees[sure].mean()), float(disagrees[~sure].mean())
    rough = min(above, 0.9 / c)
    apart = turned(rough)
    excess = (below - above) / (1 - c * rough) - float(apart[~sure].mean() - apart[sure].mean())
    error = float(np.sqrt((above * (1 - above) + below * (1 - below)) / (n / 2))) / (1 - c * rough)
    # Hard samples are rarer where predictions are sure, say half as frequent: an excess e in the less sure half then
    # comes with e in the surer one, 1.5e in all.
    allowed = max(hard, min(1.5 * excess, _near_the_border(margins)))

    def least(p: float) -> float:
        mistakes = float(turned(p).sum()) + allowed * n
        return found - 1 - n * p - (1 - c * p) * mistakes - z * float(np.sqrt(IN_PAIRS * mistakes))

    def best(p: float) -> float:
        return found - n * p - (1 - c * p) * (float(turned(p).sum()) + max(excess - error, 0.0) / 2 * n)

    def most(p: float) -> float:
        """Any number of mistakes up to the most: the one that leaves room for the most wrong labels."""
        top = float(np.sqrt(turned(p).sum() + allowed * n))
        spread = z * float(np.sqrt(IN_PAIRS))
        root = min(spread / (2 * max(1 - c * p, 1e-9)), top)  # where −(1 − cp)M + z√(2M) is largest
        return found + 1 - n * p - (1 - c * p) * root**2 + spread * root  # one row, for counts are whole

    lower, fraction, upper = (_root(g) for g in (least, best, most))
    return NoiseEstimate(
        fraction=min(max(fraction, lower), upper),
        lower=lower,
        upper=upper,
        level=level,
        hard=allowed,
        doubtful=(excess - z * error) / 2 > hard,
        turned=float(turned(fraction).mean()),
        assumption=f"Fewer than {allowed:.1%} of the rows are hard (even if all labels were right, the others would "
        "predict them wrongly), labels went wrong at random, in each class with the same chance, below one half.",
    )


def _near_the_border(margins: Float[np.ndarray, " n"]) -> float:
    """The largest share of mistakes among predictions with these margins, if margins have a log-concave density.

    Let g be the density of margins towards the true label, negative for mistakes. What is seen is d(m) = g(m) + g(−m).
    If log g is concave, g(m) g(−m) ≤ g(0)² = d(0)²/4, so that the share e = g(−m)/d(m) of mistakes at m has
    e(1 − e) ≤ (d(0) / 2d(m))². The density is estimated with normal bumps, reflected at zero. Time O(n).
    """
    n = len(margins)
    quarters = np.quantile(margins, [0.25, 0.75])
    width = 0.9 * min(float(margins.std()), float(quarters[1] - quarters[0]) / 1.34) * n**-0.2  # Silverman's rule
    if not width > 0:
        return 0.5
    grid = np.linspace(0.0, float(margins.max()), 200)
    density = np.array([np.exp(-((m - margins) ** 2) / (2 * width**2)).sum() for m in grid])
    density += np.array([np.exp(-((m + margins) ** 2) / (2 * width**2)).sum() for m in grid])
    ratio = np.minimum((density[0] / (2 * np.maximum(density, density.max() * 1e-12))) ** 2, 0.25)
    mistaken = np.minimum.accumulate((1 - np.sqrt(1 - 4 * ratio)) / 2)  # the surer, the rarer
    return float(np.interp(margins, grid, mistaken).mean())


def _label_variance(p: float, classes: int) -> float:
    """The variance of the difference of two classes' labels (1 or 0) in one row, averaged over the true classes."""
    other = p / (classes - 1)
    own = (1 - p) + other - (1 - p - other) ** 2
    return (2 * own + (classes - 2) * 2 * other) / classes


def _root(g: Callable[[float], float]) -> float:
    """Where g falls through zero in [0, ½]; the end where it does not."""
    if g(0.0) <= 0:
        return 0.0
    if g(0.5) >= 0:
        return 0.5
    return float(scipy.optimize.brentq(g, 0.0, 0.5, xtol=1e-6))
