"""Fourier analysis on the cube {±1}^d: characters, the Walsh transform, Krawtchouk polynomials, spectra of kernels.

The characters χ_S(x) = Π_{j∈S} x_j, S ⊆ [d], are orthonormal under the uniform distribution. Those of one size add up
to a Krawtchouk polynomial of the Hamming distance t between two corners,

    Σ_{|S|=s} χ_S(x) χ_S(x') = K_s(t) = Σ_j (−1)^j C(t, j) C(d − t, s − j),

so a kernel κ(t) has χ_S for eigenfunctions, with eigenvalues that depend on |S| = s alone:

    κ(t) = Σ_s λ_s² K_s(t),      λ_s² = 2^{−d} Σ_t C(d, t) κ(t) K_s(t) / C(d, s).

Allen-Zhu & Li (2019), Proposition E.1. A subset is a row of indices or, where all 2^d are listed, the whole number
whose binary digit j says whether j ∈ S; a corner is listed by the number whose digit j says whether x_j = −1. All is
host-level: exact Python integers, or NumPy float64.
"""

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_count, check_numbers, require
from offtangent._errors import InputError

ENUMERATED = 20  # dimensions up to which all 2^d corners or subsets are listed: 168 MB of corners
SUBSETS = 2_000_000  # of one size that are listed
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 8  # ulps that the values of a kernel are trusted to


def krawtchouk(degree: int, distance: int, *, dim: int) -> int:
    """K_s(t) for the cube {±1}^dim, exactly: the sum of all characters of size s at a corner with t entries −1.

    Time O(s) products of whole numbers, for any dimension.

    >>> [krawtchouk(2, t, dim=4) for t in range(5)]
    [6, 0, -2, 0, 6]
    """
    s, t, d = _whole("degree", degree, 0), _whole("distance", distance, 0), _whole("dim", dim, 1)
    for name, value in (("degree", s), ("distance", t)):
        if value > d:
            raise InputError(f"{name}={value}: on a cube of {d} dimensions it is at most {d}.")
    return sum((-1) ** j * math.comb(t, j) * math.comb(d - t, s - j) for j in range(min(s, t) + 1))


def krawtchouks(dim: int) -> np.ndarray:
    """K_s(t) of all degrees s (rows) and distances t = 0, …, dim (columns), as exact integers (dtype object).

    By (s + 1) K_{s+1} = (d − 2t) K_s − (d − s + 1) K_{s−1}. Time and memory O(dim²) whole numbers.

    >>> krawtchouks(3).tolist()
    [[1, 1, 1, 1], [3, 1, -1, -3], [3, -1, -1, 3], [1, -1, 1, -1]]
    """
    return _table(_whole("dim", dim, 1)).copy()


def krawtchouk_matrix(degree: int, X1: object, X2: object = None) -> Float[np.ndarray, "p q"]:
    """Σ_{|S|=degree} χ_S(x) χ_S(x') for all pairs of rows, without a list of subsets. Time O(pqd), memory O(pq).

    Each entry is the exact whole number, rounded once.

    >>> krawtchouk_matrix(2, np.ones((1, 4)), np.array([[1, 1, -1, -1]]))
    array([[-2.]])
    """
    first = signs(X1)
    distances, dim = hamming(first, X2), first.shape[1]
    found, at = np.unique(distances, return_inverse=True)
    try:
        values = np.array([float(krawtchouk(degree, int(t), dim=dim)) for t in found])
    except OverflowError:
        digits = math.log10(math.comb(dim, degree))
        raise InputError(
            f"degree={degree}: the sum over C({dim}, {degree}) ≈ 10^{digits:.0f} subsets leaves float64. Take a "
            f"degree k and a dimension d with C(d, k) below 1e308, or krawtchouk({degree}, t, dim={dim}), a whole "
            "number for each Hamming distance t."
        ) from None
    return values[at.reshape(distances.shape)]


def hamming(X1: object, X2: object = None) -> Int[np.ndarray, "p q"]:
    """In how many coordinates the signs of two rows differ. The cube may be of any side, {±a}^d. Time O(pqd)."""
    first = signs(X1)
    second = first if X2 is None else signs(X2)
    require(
        first.shape[1] == second.shape[1],
        f"X1 has {first.shape[1]} columns and X2 {second.shape[1]}: expected corners of one cube.",
    )
    return ((first.shape[1] - first @ second.T) / 2).astype(np.int64)  # sums of ±1, exact


def signs(X: object) -> Float[np.ndarray, "n d"]:
    """The signs of corners of a cube {±a}^d, any a > 0, or an InputError."""
    rows = np.asarray(X, np.float64)
    size = np.abs(rows)
    require(
        rows.ndim != 1, f"X has shape {rows.shape}: expected rows, the corners of a cube; for one of them, X[None, :]."
    )
    if bad := int((~np.isfinite(rows)).sum()):
        row = int(np.argwhere(~np.isfinite(rows))[0, 0])
        raise InputError(f"X is NaN or infinite in {bad} of its entries, first in row {row} (counted from 0).")
    require(
        rows.ndim == 2 and rows.size and size.min() > 0 and size.max() <= size.min() * (1 + 1e-9),
        f"X of shape {rows.shape} is no set of corners of a cube: expected rows with all entries ±a, such as "
        "offtangent.data.hypercube(n, dim, key=key) gives them.",
    )
    return np.sign(rows)


def character(subset: Sequence[int] | Int[np.ndarray, " s"], X: object) -> Float[np.ndarray, " n"]:
    """χ_S = Π_{j∈S} x_j of every row, of its signs where the cube is {±a}^d. Time O(n|S|).

    >>> character((0, 2), np.array([[1, 1, -1], [-1, 1, -1]]))
    array([-1.,  1.])
    """
    rows, chosen = signs(X), [_whole("an index of the subset", j, 0) for j in subset]
    if len(set(chosen)) < len(chosen) or any(j >= rows.shape[1] for j in chosen):
        raise InputError(f"subset={tuple(subset)}: expected different indices from 0 to {rows.shape[1] - 1}.")
    return rows[:, chosen].prod(axis=1)


def subsets(dim: int, degree: int) -> Int[np.ndarray, "subsets degree"]:
    """All C(dim, degree) subsets of one size, a row each.

    >>> subsets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    d, s = _whole("dim", dim, 1), _whole("degree", degree, 0)
    if s > d:
        raise InputError(f"degree={s}: a set of {d} has subsets of 0 to {d}.")
    count = math.comb(d, s)
    if count > SUBSETS:
        raise InputError(
            f"{count} subsets of {s} among {d}: at most {SUBSETS} are listed. For sums over all of them take "
            "krawtchouk_matrix, which needs no list; for a few, draw subsets at random."
        )
    return np.array(list(itertools.combinations(range(d), s)), np.int64).reshape(count, s)


def corners(dim: int) -> Float[np.ndarray, "corners d"]:
    """All 2^dim corners of {±1}^dim; number m has −1 where the binary digits of m are 1.

    >>> corners(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    d = check_enumerable(dim)
    return 1.0 - 2.0 * (np.arange(2**d)[:, None] >> np.arange(d) & 1)


def subset_sizes(dim: int) -> Int[np.ndarray, " subsets"]:
    """|S| of the subset of each number 0, …, 2^dim − 1, in the order of `walsh`."""
    d = check_enumerable(dim)
    sizes = np.zeros(1, np.int64)
    for _ in range(d):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes


def walsh(values: Float[np.ndarray, "corners *k"]) -> Float[np.ndarray, "subsets *k"]:
    """The Fourier coefficients E[f(x) χ_S(x)] of a function given at all corners, in the order of `corners`.

    The inverse, from coefficients to values, is 2^d times the same. Time O(d 2^d) a column, memory twice the values.

    >>> walsh(np.array([1.0, -1.0, -1.0, 1.0]))  # x₁x₂
    array([0., 0., 0., 1.])
    """
    found = np.array(values, np.float64)
    require(np.isfinite(found).all(), "values has entries that are NaN or infinite: give finite numbers.")
    d = (len(found) - 1).bit_length()
    require(
        len(found) == 2**d, f"{len(found)} values: expected one for each corner, a power of 2, in the order of corners."
    )
    for j in range(d):
        pairs = found.reshape(-1, 2, 2**j, *found.shape[1:])
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(found.shape)
    return found / 2**d


@dataclass(frozen=True, eq=False)
class CubeSpectrum:
    """λ_s² of a kernel κ(t) on a cube, s = 0, …, d: the eigenvalue of each of the C(d, s) characters of size s."""

    squares: Float[np.ndarray, " degrees"]
    rounding: Float[np.ndarray, " degrees"]  # how far an error of 8 ulps in κ can move each

    @property
    def dim(self) -> int:
        return len(self.squares) - 1

    @property
    def multiplicities(self) -> Float[np.ndarray, " degrees"]:
        """C(d, s)."""
        return np.array([float(math.comb(self.dim, s)) for s in range(self.dim + 1)])

    @property
    def energies(self) -> Float[np.ndarray, " degrees"]:
        """λ_s² C(d, s): how much of κ(0) = k(x, x) each degree carries."""
        return self.squares * self.multiplicities

    def coefficient(self, degree: int) -> float:
        """λ_s ≥ 0 of one degree; what rounding cannot tell from zero is zero."""
        s = _whole("degree", degree, 0)
        if s > self.dim:
            raise InputError(f"degree={s}: on a cube of {self.dim} dimensions it is from 0 to {self.dim}.")
        square = float(self.squares[s])
        return math.sqrt(square) if square > self.rounding[s] else 0.0


def cube_spectrum(values: Float[np.ndarray, " distances"]) -> CubeSpectrum:
    """The spectrum of κ(0), …, κ(d), the kernel at each Hamming distance.

    Summed exactly, in whole numbers: all that is lost is what rounding did to κ, at most 8ε max|κ| C(d, s)^{−1/2} of
    λ_s². It is an InputError when a λ_s² is negative beyond that: then κ is no kernel. Time O(d²) whole numbers.

    >>> cube_spectrum(np.array([4.0, 2.0, 0.0, -2.0, -4.0])).squares  # ⟨x, x'⟩ on {±1}⁴
    array([0., 1., 0., 0., 0.])
    """
    kappa = np.asarray(values, np.float64)
    require(
        kappa.ndim == 1 and len(kappa) >= 2 and np.isfinite(kappa).all(),
        f"values of shape {kappa.shape}: expected κ at distances 0, …, d, finite numbers.",
    )
    d = len(kappa) - 1
    table, weights = _table(d), [math.comb(d, t) for t in range(d + 1)]
    exact = [w * Fraction(float(k)) for w, k in zip(weights, kappa, strict=True)]
    squares, rounding = np.zeros(d + 1), np.zeros(d + 1)
    for s in range(d + 1):
        total = 2**d * weights[s]
        squares[s] = float(sum(map(operator.mul, exact, table[s].tolist()), Fraction(0)) / total)
        spread = sum((abs(w) * abs(k) for w, k in zip(exact, table[s].tolist(), strict=True)), Fraction(0)) / total
        rounding[s] = ROUNDING * EPS * float(spread)
    if (squares < -rounding).any():
        worst = int(np.argmin(squares + rounding))
        raise InputError(
            f"λ² = {squares[worst]:.3g} for the characters of size {worst}: a negative eigenvalue. These values are of "
            "no positive definite kernel."
        )
    return CubeSpectrum(np.maximum(squares, 0.0), rounding)


def cube_values(squares: Float[np.ndarray, " degrees"]) -> Float[np.ndarray, " distances"]:
    """κ(t) = Σ_s λ_s² K_s(t) at t = 0, …, d: the inverse of `cube_spectrum`. Time O(d²).

    >>> cube_values(np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    array([ 4.,  2.,  0., -2., -4.])
    """
    known = check_numbers(squares, "squares")
    require(known.ndim == 1 and len(known) > 1, f"squares has shape {known.shape}: expected λ_0², …, λ_d², d ≥ 1.")
    require(np.isfinite(known).all(), "squares has entries that are NaN or infinite: give finite numbers.")
    weights = [Fraction(float(square)) for square in squares]
    table = _table(len(weights) - 1)
    return np.array([float(sum(map(operator.mul, weights, column), Fraction(0))) for column in table.T.tolist()])


def check_enumerable(dim: int) -> int:
    """Refuse a dimension whose 2^d corners or subsets are too many to list."""
    d = _whole("dim", dim, 1)
    if d > ENUMERATED:
        raise InputError(
            f"dim={d}: exact enumeration lists 2^{d} corners or subsets, and goes up to dim={ENUMERATED}. For a kernel "
            "that depends on ⟨x, x'⟩ alone take cube_spectrum, which needs d + 1 values in any dimension; for another "
            "one, estimate λ_S² = E[k(x, x') χ_S(x) χ_S(x')] for the subsets S of interest from random corners."
        )
    return d


@cache
def _table(dim: int) -> np.ndarray:
    table = np.empty((dim + 1, dim + 1), object)
    for t in range(dim + 1):
        before, now = 0, 1
        for s in range(dim + 1):
            table[s, t] = now
            before, now = now, ((dim - 2 * t) * now - (dim - s + 1) * before) // (s + 1)
    table.flags.writeable = False
    return table


def _whole(name: str, value: Any, least: int) -> int:
    check_count(name, value, least=least)
    return operator.index(value)
