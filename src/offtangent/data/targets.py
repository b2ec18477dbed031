"""Targets that are dense in low degrees and sparse in the next one (Nichani, Bai & Lee 2022).

Assumption 1: for x uniform on S^{d−1}(√d),

    f*(x) = f_k(x) + Σ_{i≤R} α_i (β_iᵀx)^{k+1},      E f_k² = 1,  |α_i| ≤ 1,  ‖β_i‖ = 1,

with f_k any polynomial of degree at most k. Here f_k is a sum of ridges Q_j(v_iᵀx/√d), with Q_j the Gegenbauer
polynomials and v_i unit vectors. Every polynomial is one, and by E[Q_j(uᵀx/√d) Q_j(vᵀx/√d)] = Q_j(uᵀv)/B(d, j) every
norm and every degree's energy is exact. The targets of the paper's two figures are here too, as printed and as its code
has them. All is host-level and works in float64.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._checks import (
    PRNGKeyArray,
    check_columns,
    check_count,
    check_key,
    check_numbers,
    require,
    unit_rows,
)
from offtangent._errors import InputError
from offtangent.data.distributions import gaussian, sphere

UNIT = 1e-9  # how far a norm may be from 1
BLOCK = 2**20  # ridges times samples at once
FIGURE_2 = math.sqrt(675.0)  # what the paper's code divides xᵀAx by in every dimension


@dataclass(frozen=True, eq=False)
class DegreeEnergies:
    """E[(P_j f)²] of the parts of a target, P_j the projection on degree j = 0, 1, …, its last one."""

    low: Float[np.ndarray, " degrees"]  # of f_k
    sparse: Float[np.ndarray, " degrees"]  # of the sparse part
    total: Float[np.ndarray, " degrees"]  # of their sum, which need not be the sum of the two


@dataclass(frozen=True, eq=False)
class LowDegreePlusSparse:
    """f_k + Σ α_i (β_iᵀx)^{k+1} of Assumption 1: a function of X (n×d) that gives n numbers in float64.

    As a polynomial it takes inputs of any norm; `energies` and E f_k² are for S^{d−1}(√d). An f_k given as arrays is
    taken as it is, of any norm (the paper's own x₁ − 1 has E f_k² = 2); `random` makes one of norm 1.

    >>> import jax
    >>> square = LowDegreePlusSparse.random(20, degree=1, rank=1, key=jax.random.key(0))
    >>> square.energies().low.round(12), square(np.zeros((3, 20))).shape
    (array([0.5, 0.5, 0. ]), (3,))
    """

    directions: Float[np.ndarray, "ridges d"]  # v_i, unit vectors
    weights: Float[np.ndarray, "degrees ridges"]  # of Q_j(v_iᵀx/√d), j = 0, …, k
    alphas: Float[np.ndarray, " R"]
    betas: Float[np.ndarray, "R d"]

    def __post_init__(self) -> None:
        for name, axes in (("directions", 2), ("weights", 2), ("alphas", 1), ("betas", 2)):
            values = check_numbers(getattr(self, name), name)
            require(values.ndim == axes, f"{name} has shape {values.shape}: expected {axes} dimensions.")
            object.__setattr__(self, name, values)
        require(
            self.directions.shape[1] == self.betas.shape[1],
            f"directions have {self.directions.shape[1]} coordinates and betas {self.betas.shape[1]}.",
        )
        require(
            self.weights.shape[0] >= 1 and self.weights.shape[1] == len(self.directions),
            f"weights have shape {self.weights.shape}: expected a row for each degree 0, …, k and a column for "
            f"each of the {len(self.directions)} directions.",
        )
        require(
            len(self.alphas) == len(self.betas),
            f"{len(self.alphas)} alphas and {len(self.betas)} betas: expected one of each for a term.",
        )
        for name, rows in (("directions", self.directions), ("betas", self.betas)):
            norms = np.linalg.norm(rows, axis=1)
            if not (np.abs(norms - 1) <= UNIT).all():
                worst = int(np.argmax(np.abs(norms - 1)))
                raise InputError(f"row {worst} of {name} has norm {norms[worst]:g}: expected 1. Divide by the norms.")
        if not (np.abs(self.alphas) <= 1).all():
            raise InputError(f"alphas={self.alphas}: Assumption 1 has |α_i| ≤ 1.")
        require(np.isfinite(self.weights).all(), "weights have entries that are NaN or infinite.")

    @classmethod
    def random(
        cls,
        dim: int,
        degree: int,
        rank: int,
        *,
        low_energies: Sequence[float | int] | None = None,
        ridges: int | None = None,
        key: PRNGKeyArray,
    ) -> "LowDegreePlusSparse":
        """One with E f_k² = 1, random unit β_i and α_i = ±1; with rank 0, f_k alone.

        f_k has `ridges` random directions (2·dim unless told, so that it depends on every coordinate and its quadratic
        part has full rank) with Gaussian weights, scaled so that degree j has exactly the energy low_energies[j], which
        sum to 1 (unless told, 1/(degree + 1) each). Time O(ridges² (dim + degree)), memory O(ridges (ridges + dim)).
        """
        import jax

        from offtangent.special.sphere import check_dim

        check_count("dim", dim)
        check_dim(dim)
        check_count("degree", degree, least=0)
        check_count("rank", rank, least=0)
        ridges = 2 * dim if ridges is None else ridges
        check_count("ridges", ridges)
        planted = _planted(low_energies, degree)
        check_key(key)
        first, second = jax.random.split(key)  # so that f_k does not depend on the rank
        drawn = gaussian(ridges, dim + degree + 1, key=first)
        directions, weights = unit_rows(drawn[:, :dim]), drawn[:, dim:].T.copy()
        weights[0] = np.sign(weights[0, 0])  # a constant needs no cancellation
        found = np.array([_inner(w, directions, w, directions, j) for j, w in enumerate(weights)])
        weights *= np.sqrt(planted / found)[:, None]
        if rank == 0:
            return cls(directions, weights, np.zeros(0), np.zeros((0, dim)))
        drawn = gaussian(rank, dim + 1, key=second)
        return cls(directions, weights, np.where(drawn[:, dim] < 0, -1.0, 1.0), unit_rows(drawn[:, :dim]))

    @property
    def dim(self) -> int:
        return self.directions.shape[1]

    @property
    def degree(self) -> int:
        """k, the degree of f_k."""
        return len(self.weights) - 1

    @property
    def rank(self) -> int:
        """R, the number of terms of the sparse part."""
        return len(self.alphas)

    def __call__(self, X: object) -> Float[np.ndarray, " n"]:
        """f*(X). Time O(n (ridges + R)(d + k)), memory O(n + ridges·d) beside X."""
        inputs = check_columns(X, self.dim)
        return self.low(inputs) + self.sparse(inputs)

    def low(self, X: object) -> Float[np.ndarray, " n"]:
        """f_k(X)."""
        from offtangent.special.sphere import gegenbauers

        inputs = check_columns(X, self.dim)
        rows, values = max(BLOCK // (len(self.directions) * len(self.weights)), 1), []
        for start in range(0, len(inputs), rows):
            cosines = inputs[start : start + rows] @ self.directions.T / math.sqrt(self.dim)
            ridges = gegenbauers(self.degree, cosines, dim=self.dim)
            values.append(np.einsum("jni,ji->n", ridges, self.weights))
        return np.concatenate(values)

    def sparse(self, X: object) -> Float[np.ndarray, " n"]:
        """Σ α_i (β_iᵀx)^{k+1} on X."""
        return (check_columns(X, self.dim) @ self.betas.T) ** (self.degree + 1) @ self.alphas

    def energies(self) -> DegreeEnergies:
        """The energies of degree 0, …, k + 1 for x uniform on S^{d−1}(√d), exactly; Σ low = E f_k².

        By t^{k+1} = Σ_j γ_j Q_j. Time O((ridges + R)² (d + k)), memory O((ridges + R)²).
        """
        from offtangent.special.sphere import monomial_coefficients

        power = self.degree + 1
        gammas = monomial_coefficients(power, dim=self.dim)
        low, sparse, cross = np.zeros(power + 1), np.zeros(power + 1), np.zeros(power + 1)
        for j, gamma in enumerate(gammas):
            own = float(gamma) * self.dim ** (power / 2) * self.alphas
            sparse[j] = _inner(own, self.betas, own, self.betas, j)
            if j < power:
                low[j] = _inner(self.weights[j], self.directions, self.weights[j], self.directions, j)
                cross[j] = _inner(self.weights[j], self.directions, own, self.betas, j)
        return DegreeEnergies(low, sparse, np.maximum(low + sparse + 2 * cross, 0.0))


@dataclass(frozen=True, eq=False)
class QuadraticPlusCubic:
    """(xᵀAx − shift)/scale + He₃(βᵀx)/√6 with A = diag(1[i > d/2]), i = 0, …, d − 1: Figure 2's dense plus sparse."""

    beta: Float[np.ndarray, " d"]
    shift: float
    scale: float

    @property
    def dim(self) -> int:
        return len(self.beta)

    @property
    def ones(self) -> int:
        """How many coordinates xᵀAx has: s = tr A."""
        return _ones(self.dim)

    def __call__(self, X: object) -> Float[np.ndarray, " n"]:
        """f*(X). Time O(nd)."""
        inputs = check_columns(X, self.dim)
        return self.low(inputs) + self.sparse(inputs)

    def low(self, X: object) -> Float[np.ndarray, " n"]:
        """(xᵀAx − shift)/scale on X."""
        half = check_columns(X, self.dim)[:, self.dim - self.ones :]
        return ((half**2).sum(axis=1) - self.shift) / self.scale

    def sparse(self, X: object) -> Float[np.ndarray, " n"]:
        """He₃(βᵀx)/√6 on X."""
        z = check_columns(X, self.dim) @ self.beta
        return (z**3 - 3 * z) / math.sqrt(6)

    def energies(self) -> DegreeEnergies:
        """The energies of the Hermite degrees 0, …, 3 for x ~ N(0, I), exactly."""
        mean, spread = (self.ones - self.shift) / self.scale, 2 * self.ones / self.scale**2
        low, sparse = np.array([mean**2, 0.0, spread, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
        return DegreeEnergies(low, sparse, low + sparse)


def sphere_target(dim: int, *, key: PRNGKeyArray) -> LowDegreePlusSparse:
    """Figure 1's target as the text has it, x₁ − 1 + (βᵀx)² for x uniform on S^{d−1}(√d), β a random unit vector.

    Its f_1 = x₁ − 1 has E f_1² = 2, where Assumption 1 asks for 1; the variance of the whole is 1 + 2(d−1)/(d+2).
    """
    beta = _direction(dim, key)
    return LowDegreePlusSparse(np.eye(1, dim), np.array([[-1.0], [math.sqrt(dim)]]), np.ones(1), beta)


def gaussian_target(dim: int, *, key: PRNGKeyArray) -> LowDegreePlusSparse:
    """Draw the target of Figure 1 of Nichani, Bai & Lee (2022), ((βᵀx)² − 1 + βᵀx)/√3, with β a random unit vector.

    It is that of the paper's code, for x ~ N(0, I).

    There it has mean 0 and variance 1; `energies` is, as ever, for the sphere.
    """
    beta = _direction(dim, key)
    weights = np.array([[-1.0], [math.sqrt(dim)]]) / math.sqrt(3)
    return LowDegreePlusSparse(beta, weights, np.full(1, 1 / math.sqrt(3)), beta)


def quadratic_plus_cubic(dim: int, *, normalised: bool, key: PRNGKeyArray) -> QuadraticPlusCubic:
    """Draw the target of Figure 2 of Nichani, Bai & Lee (2022) for x ~ N(0, I), with β a random unit vector.

    As in the code, xᵀAx/√675 + He₃(βᵀx)/√6: neither centred nor, but for d near 50, of size 1. `normalised`, the first
    term is (xᵀAx − s)/√(2s) with s = tr A, of mean 0 and variance 1 in every dimension.

    >>> import jax
    >>> target = quadratic_plus_cubic(50, normalised=False, key=jax.random.key(0))
    >>> target.ones, target.energies().low.round(3)  # E[(xᵀAx)²] = s² + 2s = 624, of 675
    (24, array([0.853, 0.   , 0.071, 0.   ]))
    """
    check_count("dim", dim, least=3)  # below, A = 0
    beta, s = _direction(dim, key)[0], _ones(dim)
    return (
        QuadraticPlusCubic(beta, float(s), math.sqrt(2 * s)) if normalised else QuadraticPlusCubic(beta, 0.0, FIGURE_2)
    )


def _ones(dim: int) -> int:
    return sum(2 * i > dim for i in range(dim))


def _direction(dim: int, key: PRNGKeyArray) -> Float[np.ndarray, "1 d"]:
    check_count("dim", dim, least=2)
    return sphere(1, dim, key=key)


def _inner(
    a: Float[np.ndarray, " r"],
    U: Float[np.ndarray, "r d"],
    b: Float[np.ndarray, " s"],
    V: Float[np.ndarray, "s d"],
    degree: int,
) -> float:
    """E[Σ_i a_i Q_j(u_iᵀx/√d) · Σ_l b_l Q_j(v_lᵀx/√d)] = Σ_il a_i Q_j(u_iᵀv_l) b_l / B(d, j)."""
    from offtangent.special.sphere import gegenbauer, harmonic_dimension

    dim = U.shape[1]
    return float(a @ gegenbauer(degree, U @ V.T, dim=dim) @ b) / harmonic_dimension(dim, degree)


def _planted(low_energies: Sequence[float | int] | None, degree: int) -> Float[np.ndarray, " degrees"]:
    if low_energies is None:
        return np.full(degree + 1, 1 / (degree + 1))
    planted = check_numbers(low_energies, "low_energies")
    if planted.shape != (degree + 1,) or not (planted >= 0).all() or not abs(planted.sum() - 1) <= UNIT:
        raise InputError(
            f"low_energies={low_energies}: expected the energies of degrees 0, …, {degree}, {degree + 1} numbers of at "
            "least 0 whose sum is 1. Divide them by their sum."
        )
    return planted / planted.sum()
