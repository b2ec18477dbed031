"""Targets with a hierarchy, H = βF + αG(F): sums of smooth ridges, and parities (Allen-Zhu & Li 2019).

    Concept 1        F_r(x) = Σ_i a_{r,i} φ_{r,i}(⟨w_{r,i}, x⟩),                                 ‖w‖ = 1/√2       (5.2)
    Definition B.1   F_r(x) = Σ_i a_{r,i} φ_{r,i}(⟨w_{1,r,i}, (x,1)⟩/‖(x,1)‖) ⟨w_{2,r,i}, (x,1)⟩,  ‖w₁‖ = ‖w₂‖ = 1

with |a| ≤ 1 and power series φ(z) = Σ_j c_j z^j, in Definition B.1 without even orders but the zeroth. On unit vectors
the first is a case of the second (Lemma B.2). Everything is host-level and works in float64; a map takes X (n×d) to
n×k.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._arguments import check_coordinates, check_function
from offtangent._checks import (
    PRNGKeyArray,
    check_columns,
    check_count,
    check_inputs,
    check_key,
    check_numbers,
    check_real,
    require,
    unit_rows,
)
from offtangent._errors import InputError
from offtangent.data.distributions import gaussian

UNIT = 1e-9  # how far a norm may be from what is asked for
MOST_POLARISED = 12  # outputs of a polarised product: its ridges number 2^k

Map = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n k"]]


@dataclass(frozen=True, eq=False)
class SmoothRidges:
    """The maps of Concept 1, eq. (5.2).

    >>> import jax
    >>> F = SmoothRidges.random(5, outputs=2, terms=3, series=[0.0, 1.0, 0.5], key=jax.random.key(0))
    >>> F(np.eye(5)).shape, F.general().terms
    ((5, 2), 6)
    """

    weights: Float[np.ndarray, "k p"]  # a
    directions: Float[np.ndarray, "k p d"]  # w, of norm 1/√2
    series: Float[np.ndarray, "k p orders"]  # c_0, c_1, …

    def __post_init__(self) -> None:
        _as_numbers(self, "weights", "directions", "series")
        _check_parts(self.weights, self.series, self.directions)
        _check_norms("directions", self.directions, math.sqrt(0.5), "SmoothRidges.scaled takes others (footnote 8)")

    @classmethod
    def scaled(
        cls,
        weights: Float[np.ndarray, "k p"],
        directions: Float[np.ndarray, "k p d"],
        series: Float[np.ndarray, "k p orders"],
    ) -> "SmoothRidges":
        """The map with weights and directions of any size, which the series take up: footnote 8.

        A direction of zero is refused: a constant is a series c_0 in any direction.
        """
        weights, directions, series = (
            check_numbers(values, name)
            for name, values in (("weights", weights), ("directions", directions), ("series", series))
        )
        _check_shapes(weights, series, directions)
        norms = np.linalg.norm(directions, axis=2)
        sound = (np.isfinite(norms) & (norms > 0)).all()
        require(sound, "directions hold one of norm 0 or of no finite norm: each needs a direction.")
        scale = math.sqrt(2) * norms
        sizes = np.maximum(np.abs(weights), 1.0)
        powers = scale[..., None] ** np.arange(series.shape[2])
        return cls(weights / sizes, directions / scale[..., None], series * powers * sizes[..., None])

    @classmethod
    def random(
        cls, dim: int, outputs: int, terms: int, series: Sequence[float | int], *, key: PRNGKeyArray
    ) -> "SmoothRidges":
        """Random directions, weights ±1, and one series for all ridges."""
        a, w = _random(dim, outputs, terms, 1, key)
        return cls(a, w[0] * math.sqrt(0.5), _repeated(series, outputs, terms))

    @property
    def dim(self) -> int:
        return self.directions.shape[2]

    @property
    def outputs(self) -> int:
        """The number k of outputs."""
        return self.weights.shape[0]

    @property
    def terms(self) -> int:
        """p, the number of ridges of each output."""
        return self.weights.shape[1]

    def __call__(self, X: object) -> Float[np.ndarray, "n k"]:
        """F(X). Time O(nkp(d + orders))."""
        z = np.einsum("nd,kpd->nkp", check_columns(X, self.dim), self.directions)
        return np.einsum("kp,nkp->nk", self.weights, evaluate_series(self.series, z))

    def general(self) -> "GeneralRidges":
        """F′ of Lemma B.2, of Definition B.1 with 2p ridges, equal to F on unit vectors.

        φ = φ⁺ + zφ⁻ with φ⁺ of the orders 0, 1, 3, 5, … and zφ⁻ of the even ones; the factor z is a second ⟨w, x⟩.
        """
        even = np.arange(self.series.shape[2]) % 2 == 0
        even[0] = False
        plus = np.where(even, 0.0, self.series)
        minus = np.zeros_like(plus)
        minus[..., :-1] = np.where(even, self.series, 0.0)[..., 1:] * math.sqrt(0.5)
        unit = np.concatenate([self.directions * math.sqrt(2), np.zeros((*self.weights.shape, 1))], axis=2)
        last = np.zeros_like(unit)
        last[..., -1] = 1.0
        return GeneralRidges(
            np.concatenate([self.weights, self.weights], axis=1),
            np.concatenate([unit, unit], axis=1),
            np.concatenate([last, unit], axis=1),
            np.concatenate([plus, minus], axis=1),
        )


@dataclass(frozen=True, eq=False)
class GeneralRidges:
    """The maps of Definition B.1, which Concept 2 is made of.

    >>> import jax
    >>> F = GeneralRidges.random(5, outputs=2, terms=3, series=[0.5, 1.0, 0.0, 0.2], key=jax.random.key(0))
    >>> F(np.eye(5)).shape, F.terms
    ((5, 2), 3)
    """

    weights: Float[np.ndarray, "k p"]  # a
    first: Float[np.ndarray, "k p d1"]  # w₁, of norm 1
    second: Float[np.ndarray, "k p d1"]  # w₂, of norm 1
    series: Float[np.ndarray, "k p orders"]  # c_0, c_1, 0, c_3, 0, …

    def __post_init__(self) -> None:
        _as_numbers(self, "weights", "first", "second", "series")
        _check_parts(self.weights, self.series, self.first, self.second)
        _check_norms("first", self.first, 1.0, "divide by the norms")
        _check_norms("second", self.second, 1.0, "divide by the norms")
        require(
            not self.series[..., 2::2].any(),
            "series hold even orders beyond the zeroth: Definition B.1 allows c_0, c_1, c_3, c_5, … only. "
            "SmoothRidges(...).general() writes any series in this form (Lemma B.2).",
        )

    @classmethod
    def random(
        cls, dim: int, outputs: int, terms: int, series: Sequence[float | int], *, key: PRNGKeyArray
    ) -> "GeneralRidges":
        """Random directions, weights ±1, and one series for all ridges."""
        check_count("dim", dim)
        a, w = _random(dim + 1, outputs, terms, 2, key)
        return cls(a, w[0], w[1], _repeated(series, outputs, terms))

    @property
    def dim(self) -> int:
        return self.first.shape[2] - 1

    @property
    def outputs(self) -> int:
        return self.weights.shape[0]

    @property
    def terms(self) -> int:
        return self.weights.shape[1]

    def __call__(self, X: object) -> Float[np.ndarray, "n k"]:
        """F(X). Time O(nkp(d + orders))."""
        inputs = check_columns(X, self.dim)
        padded = np.hstack([inputs, np.ones((len(inputs), 1))])
        unit = padded / np.linalg.norm(padded, axis=1, keepdims=True)
        values = evaluate_series(self.series, np.einsum("nd,kpd->nkp", unit, self.first))
        return np.einsum("kp,nkp,nkp->nk", self.weights, values, np.einsum("nd,kpd->nkp", padded, self.second))


@dataclass(frozen=True, eq=False)
class Parities:
    """Products of coordinates, one a subset: y_r = s_r Π_{j∈S_r} x_j, coordinates counted from 0.

    >>> Parities(3, ((0, 1), (2,)), np.array([1, -1]))(np.array([[1.0, -1.0, 1.0]]))
    array([[-1., -1.]])
    """

    dim: int
    subsets: tuple[tuple[int, ...], ...]
    signs: Int[np.ndarray, " k"] | Float[np.ndarray, " k"]

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        nested = hasattr(self.subsets, "__len__") and all(hasattr(S, "__len__") for S in self.subsets)
        require(nested, f"subsets={self.subsets!r}: expected tuples of coordinates, one for each output.")
        require(len(self.subsets), "subsets is empty: expected at least one, the coordinates of an output.")
        for subset in self.subsets:
            check_coordinates(f"subset {subset}", subset, self.dim)
        fit = np.abs(check_numbers(self.signs, "signs")).tolist() == [1] * len(self.subsets)
        require(fit, f"signs={self.signs}: expected −1 or 1 for each of {len(self.subsets)} subsets.")

    @property
    def outputs(self) -> int:
        return len(self.subsets)

    def __call__(self, X: object) -> Float[np.ndarray, "n k"]:
        """Time O(n Σ|S|)."""
        inputs = check_columns(X, self.dim)
        return np.stack([s * inputs[:, list(S)].prod(axis=1) for S, s in zip(self.subsets, self.signs, strict=True)], 1)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """H = βF + αG(F), eqs. (2.2) and (5.1) with β = 1; a function of X (n×d) that gives n×k."""

    base: Map  # F
    composite: Map  # G
    alpha: float
    beta: float = 1.0  # Figure 2(c) has H = βF + αG(F)

    def __post_init__(self) -> None:
        for name in ("base", "composite"):
            check_function(name, getattr(self, name), "of inputs, as data.hierarchy.Parities is")
        for name in ("alpha", "beta"):
            check_real(name, getattr(self, name))
        finite = 0 <= self.alpha < math.inf and 0 <= self.beta < math.inf
        require(finite, f"alpha={self.alpha:g}, beta={self.beta:g}: both are at least 0 and finite.")
        k, inputs = getattr(self.base, "outputs", None), getattr(self.composite, "dim", None)
        fit = None in (k, inputs) or k == inputs
        require(fit, f"F has {k} outputs and G takes {inputs} inputs: G(F) wants as many.")

    def __call__(self, X: object) -> Float[np.ndarray, "n k"]:
        first, second = self.parts(X)
        return first + second

    def parts(self, X: object) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
        """βF(X) and αG(F(X)): what the two hidden layers have to learn."""
        signal = self.base(check_inputs(X))
        return self.beta * signal, self.alpha * self.composite(signal)


def parity_hierarchy(*, alpha: float = 0.3, beta: float = 1.0, later: bool = False) -> Hierarchy:
    """The target of Figure 2 for x ∈ {−1, 1}^30: F is of degree 2, G of degree 4, and E‖αG(F)‖² = kα².

    F = (x₁x₂, …, x₁₅x₁₆) and G = (y₁y₂y₃y₄ four times, y₅y₆y₇y₈ four times), k = 8. The paper prints the two products
    alone, but its threshold kα² = 0.72 counts eight outputs. `later`, its later versions' F = (x₁x₂, …, x₂₉x₃₀) and
    G_i = (−1)^i y₁y₂y₃y₄, k = 15.

    >>> target = parity_hierarchy()
    >>> float((target.parts(np.ones((1, 30)))[1] ** 2).sum())  # kα²
    0.72
    """
    k = 15 if later else 8
    base = Parities(30, tuple((2 * i, 2 * i + 1) for i in range(k)), np.ones(k))
    if later:
        subsets, signs = ((0, 1, 2, 3),) * k, np.array([(-1) ** i for i in range(1, k + 1)])
    else:
        subsets, signs = ((0, 1, 2, 3),) * 4 + ((4, 5, 6, 7),) * 4, np.ones(k, int)
    return Hierarchy(base, Parities(k, subsets, signs), alpha, beta)


def polarised_hierarchy(dim: int, coordinates: Sequence[int], *, alpha: float) -> Hierarchy:
    """The target of Corollary 7.1 in the form of Concept 1, for x ∈ {±1/√d}^d.

    F_i = √(d/k) x_{j_i} and G_r(z) = k^{k/2}/√k Π_i z_i, written by polarisation as a sum of 2^k ridges of degree k:

        H(x) = k^{−1/2} (√d x_{j_i} + α Π_l √d x_{j_l})_i.

    >>> H = polarised_hierarchy(4, (0, 2), alpha=0.5)
    >>> H(np.full((1, 4), 0.5)) * np.sqrt(2)
    array([[1.5, 1.5]])
    """
    require(hasattr(coordinates, "__len__"), f"coordinates={coordinates!r}: expected several, such as (0, 2).")
    k = len(coordinates)
    check_count("dim", dim)
    if not 1 <= k <= MOST_POLARISED:
        raise InputError(
            f"{k} coordinates: the polarised product has 2^k ridges, and k goes from 1 to {MOST_POLARISED}. The same "
            "product without its ridges is Parities."
        )
    check_coordinates(f"coordinates={tuple(coordinates)}", coordinates, dim)
    chosen = np.eye(dim)[list(coordinates)][:, None]
    base = SmoothRidges.scaled(np.ones((k, 1)), math.sqrt(dim / k) * chosen, np.tile([0.0, 1.0], (k, 1, 1)))
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=k)))
    power = np.zeros((k, 2**k, k + 1))
    power[..., k] = k**k / (math.sqrt(k) * math.factorial(k) * 2**k)
    directions = np.tile(signs / math.sqrt(k), (k, 1, 1))
    composite = SmoothRidges.scaled(np.tile(signs.prod(axis=1), (k, 1)), directions, power)
    return Hierarchy(base, composite, alpha)


def evaluate_series(series: Float[np.ndarray, "k p orders"], z: Float[np.ndarray, "n k p"]) -> np.ndarray:
    """Σ_j c_{r,i,j} z_{r,i}^j for every sample."""
    return np.polynomial.polynomial.polyval(z, np.moveaxis(series, 2, 0), tensor=False)


def _random(
    dim: int, outputs: int, terms: int, count: int, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "k p"], list[Float[np.ndarray, "k p d"]]]:
    """Signs, and so many tables of unit vectors."""
    for name, size in (("dim", dim), ("outputs", outputs), ("terms", terms)):
        check_count(name, size)
    check_key(key)
    drawn = gaussian(outputs * terms, count * dim + 1, key=key)
    signs = np.where(drawn[:, -1] < 0, -1.0, 1.0).reshape(outputs, terms)
    return signs, [unit_rows(drawn[:, i * dim : (i + 1) * dim]).reshape(outputs, terms, dim) for i in range(count)]


def _repeated(series: Sequence[float | int], outputs: int, terms: int) -> Float[np.ndarray, "k p orders"]:
    given = check_numbers(series, "series")
    require(given.ndim == 1, f"series has shape {given.shape}: expected one dimension, the coefficients c_0, c_1, ….")
    return np.tile(given, (outputs, terms, 1))


def _as_numbers(map_: "SmoothRidges | GeneralRidges", *names: str) -> None:
    """Fields as float64 arrays, so that lists will do."""
    for name in names:
        object.__setattr__(map_, name, check_numbers(getattr(map_, name), name))


def _check_shapes(weights: np.ndarray, *tables: np.ndarray) -> None:
    if weights.ndim != 2 or any(t.ndim != 3 or t.shape[:2] != weights.shape for t in tables) or 0 in tables[0].shape:
        given = ", ".join(str(t.shape) for t in tables)
        raise InputError(
            f"weights have shape {weights.shape}, series and directions {given}: expected k × p, k × p × orders and "
            "k × p × d, a ridge for each weight."
        )


def _check_parts(weights: np.ndarray, series: np.ndarray, *directions: np.ndarray) -> None:
    _check_shapes(weights, series, *directions)
    require(np.isfinite(weights).all(), "weights hold some that are NaN or infinite: expected |a| ≤ 1.")
    small = (np.abs(weights) <= 1).all()
    require(small, "weights exceed 1 in size: |a| ≤ 1, and the series take up the rest (footnote 8).")
    require(np.isfinite(series).all(), "series have coefficients that are NaN or infinite.")


def _check_norms(name: str, vectors: np.ndarray, wanted: float, mend: str) -> None:
    norms = np.linalg.norm(vectors, axis=2)
    if not (np.abs(norms - wanted) <= UNIT).all():
        raise InputError(f"{name} have norms from {norms.min():g} to {norms.max():g}: expected {wanted:.4g}; {mend}.")
