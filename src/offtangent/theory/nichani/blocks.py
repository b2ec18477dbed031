"""The three blocks Q₁, Q₂, Q₃ of the feature covariance: where theory expects them, and where the spectrum breaks.

Nichani, Bai & Lee (2022), Sections 1.1 and 4.1. At degree k, Q₁ are the first n_k = B(d,0) + … + B(d,k) eigenvectors
of Σ, which express polynomials of degree k; Q₂ the next B(d,k+1) + … + B(d,2k), of medium eigenvalues Θ(d^{1−i}) for
degrees i; Q₃ the rest, with eigenvalues of 1/m on average. The gap in between is what a regulariser needs to see.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_ordinary
from offtangent._checks import check_count, check_entries, require
from offtangent.networks import TwoLayer
from offtangent.special.sphere import block_dimensions, harmonic_dimension, tangent_eigenvalues
from offtangent.theory.nichani.sphere_covariance import has_unit_columns

ROUNDING = 1e-13
WINDOW = 2  # a gap is looked for between the predicted place divided and multiplied by this


@dataclass(frozen=True)
class Boundary:
    """The end of a block: the number of eigenvalues before it, as predicted and as found; None where unknown."""

    predicted: int
    ratio: float | None  # λ_p/λ_{p+1} at the predicted place p
    found: int | None  # the place between p/2 and 2p with the largest such ratio, among known eigenvalues
    largest: float | None  # that ratio

    @property
    def agrees(self) -> bool:
        """Whether the largest gap near the predicted place is at that place.

        Before Q₂ it need not be: the constant function has an eigenvalue of its own between those of degrees 1 and 2,
        and for small d, or a small λ₁(σ'), the larger gap is in front of it, one place earlier.
        """
        return self.found == self.predicted

    def __str__(self) -> str:
        if self.ratio is None or self.largest is None:
            return f"predicted after {self.predicted} eigenvalues, more than are known"
        where = "the largest nearby" if self.agrees else f"the largest nearby is ×{self.largest:.3g} after {self.found}"
        return f"predicted after {self.predicted} eigenvalues: a gap of ×{self.ratio:.3g} there, {where}"


@dataclass(frozen=True)
class Level:
    """A degree of harmonics and its eigenvalue at infinite width, for inputs uniform on S^{d−1}(√d)."""

    degree: int
    value: float  # ξ
    multiplicity: int  # B(d, degree)


@dataclass(frozen=True)
class Blocks:
    """Q₁, Q₂ and Q₃ of Σ at one degree k. Sizes are those predicted, cut at the eigenvalues known."""

    degree: int
    known: int
    size: int  # md, the dimension of weight space
    first: Boundary  # between Q₁ and Q₂, predicted at n_k
    second: Boundary  # between Q₂ and Q₃, predicted at n_2k
    ranges: tuple[tuple[float, float] | None, ...]  # largest and smallest known eigenvalue of each block
    rest_mean: float | None  # the mean eigenvalue of Q₃, from the trace; None where the end of Q₂ is not known
    levels: tuple[Level, ...]  # degrees 0 to 2k + 1; none where W₀ has no unit columns

    @property
    def ends(self) -> tuple[int, int]:
        """How many eigenvectors come before Q₂ and before Q₃, as predicted, at most those known."""
        return min(self.first.predicted, self.known), min(self.second.predicted, self.known)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Dimensions of Q₁, Q₂ and Q₃; the last holds all that is not known."""
        low, high = self.ends
        return low, high - low, self.size - high

    @property
    def complete(self) -> bool:
        """Whether both predicted ends lie within the eigenvalues known."""
        return self.second.predicted <= self.known

    @property
    def ordered(self) -> bool | None:
        """Whether at infinite width all degrees up to k have larger eigenvalues than those above (up to 2k + 1)."""
        if not self.levels:
            return None
        low = min(level.value for level in self.levels if level.degree <= self.degree)
        return low > max(level.value for level in self.levels if level.degree > self.degree)


def feature_blocks(values: Float[np.ndarray, " r"], net: TwoLayer, degree: int, *, trace: float) -> Blocks:
    """The blocks of a covariance with these largest eigenvalues, in falling order, and this trace. Time O(r)."""
    check_count("degree", degree)
    check_ordinary(trace=trace)
    check_entries(values=values)
    ranked = np.ndim(values) == 1 and len(values) > 0
    require(ranked, f"values has shape {np.shape(values)}: expected the largest eigenvalues, one after the other.")
    low, medium = block_dimensions(net.dim, degree)
    high = low + medium
    size, known = net.dim * net.width, len(values)
    cuts = [0, min(low, known), min(high, known), known]
    ranges = tuple((float(values[a]), float(values[b - 1])) if b > a else None for a, b in itertools.pairwise(cuts))
    rest = float(trace - values[:high].sum()) / (size - high) if high <= known and high < size else None
    return Blocks(
        degree=degree,
        known=known,
        size=size,
        first=_boundary(values, low),
        second=_boundary(values, high),
        ranges=ranges,
        rest_mean=rest,
        levels=_levels(net, 2 * degree + 1),
    )


def _boundary(values: Float[np.ndarray, " r"], predicted: int) -> Boundary:
    above = values[values > ROUNDING * values[0]]  # what is left of zero eigenvalues makes no gap
    ratios = above[:-1] / above[1:]  # ratios[i] ends a block of i + 1
    at = float(ratios[predicted - 1]) if predicted <= len(ratios) else None
    start, stop = max(1, predicted // WINDOW), min(WINDOW * predicted, len(ratios))
    if start > stop:
        return Boundary(predicted, at, None, None)
    best = start + int(np.argmax(ratios[start - 1 : stop]))
    return Boundary(predicted, at, best, float(ratios[best - 1]))


def _levels(net: TwoLayer, degree: int) -> tuple[Level, ...]:
    if not has_unit_columns(net):
        return ()
    found = tangent_eigenvalues(net.activation, dim=net.dim, degree=degree)
    return tuple(Level(k, float(xi), harmonic_dimension(net.dim, k)) for k, xi in enumerate(found))
