"""Kernel regression on the cube in two coordinates: β, one vector for each sample, and u, one for each subset.

Allen-Zhu & Li (2019), eq. (3.1), for β = (β₁, …, β_N) ∈ (R^k)^N and a correlation kernel K,

    (1/N) Σ_i ‖Σ_j K(x_i, x_j) β_j − y_i‖² + λ‖β‖_K²,      ‖β‖_K² = Tr(βKβᵀ),

whose solution is β = (K + NλI)⁻¹ y. Proposition E.1: on {±1}^d the kernel is K(x, y) = Σ_S λ_S² χ_S(x) χ_S(y), and the
solution is f(x) = Σ_S λ_S u_S χ_S(x) with u_S = λ_S Σ_j χ_S(x_j) β_j and ‖u‖_F² = ‖β‖_K².
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_real, require
from offtangent._errors import InputError
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.correlation import check_correlation, check_products
from offtangent.kernels.cube import CubeKernel
from offtangent.kernels.regression import RidgeRegression, check_targets, ridge_regression
from offtangent.special.boolean import check_enumerable, corners, signs, subset_sizes, walsh

AT_ONCE = 1 << 16  # corners whose kernel is evaluated together
NEGATIVE = 1e-12  # of k(x, x): below it, a negative λ_S² is more than rounding


def cube_coefficients(kernel: object, dim: int) -> Float[np.ndarray, " subsets"]:
    """λ_S² of a correlation kernel on {±1/√dim}^dim for all 2^dim subsets, numbered as in `special.boolean.walsh`.

    Of a kernel of lengths and angle by Krawtchouk polynomials, of any other as the Walsh transform of K(1, z), z = x∘y;
    both up to dim = 20, where `CubeKernel.of(kernel, dim).spectrum` has the former in any dimension. It is an
    InputError when one is negative: then the kernel is not positive definite. Time O(dim 2^dim).

    >>> cube_coefficients("u + u²", 2).round(12)  # λ_∅² = E u², λ_1² = λ_2² = ½, and u² = ½ + ½x₁y₁x₂y₂
    array([0.5, 0.5, 0.5, 0.5])
    """
    dim = check_enumerable(dim)
    found = check_products(kernel, dim)  # all λ_S² are seen below
    if isinstance(found, AngularKernel):
        found = CubeKernel.of(found, dim)
    if isinstance(found, CubeKernel):
        return found.spectrum.squares[subset_sizes(dim)]
    z = corners(dim) / math.sqrt(dim)
    values = np.concatenate([found.exact(z[:1], z[at : at + AT_ONCE])[0] for at in range(0, len(z), AT_ONCE)])
    squares = walsh(values)
    if squares.min() < -NEGATIVE * np.abs(values).max():
        worst = int(squares.argmin())
        members = tuple(j for j in range(dim) if worst >> j & 1)
        raise InputError(f"λ_S² = {squares[worst]:.3g} for S = {members}: {found.name} is not positive definite.")
    return np.maximum(squares, 0.0)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """f_i(x) = Σ_S λ_S u_{i,S} χ_S(x): all 2^d coefficients, subsets numbered as in `special.boolean.walsh`."""

    coefficients: Float[np.ndarray, " subsets"]  # λ_S ≥ 0
    u: Float[np.ndarray, "subsets k"]

    @property
    def norms(self) -> Float[np.ndarray, " k"]:
        """‖u_i‖² of every output; their sum is ‖u‖_F²."""
        return (self.u**2).sum(axis=0)

    def at_corners(self) -> Float[np.ndarray, "corners k"]:
        """φ(u, x), eq. (E.1), at all corners, in the order of `special.boolean.corners`. Time O(d 2^d k)."""
        return walsh(self.coefficients[:, None] * self.u) * len(self.u)


@dataclass(frozen=True, eq=False)
class CorrelationFit:
    """The minimiser of (3.1)."""

    regression: RidgeRegression
    strength: float  # λ

    @property
    def beta(self) -> Float[np.ndarray, "n k"]:
        return self.regression.coefficients

    def predict(self, X_new: object) -> Float[np.ndarray, "p k"]:
        """𝔎(x) = Σ_j K(x, x_j) β_j at corners, with entries ±1 or ±1/√d as in `correlation_regression`."""
        return self.regression.predict(_unit(X_new))

    @cached_property
    def _on_samples(self) -> Float[np.ndarray, "n k"]:
        ridge = len(self.beta) * self.strength
        return self.regression.gram.dense() @ self.beta - ridge * self.beta

    @property
    def norms(self) -> Float[np.ndarray, " k"]:
        """‖β_i‖_K² = β_iᵀKβ_i of every output; their sum is ‖β‖_K²."""
        return (self.beta * self._on_samples).sum(axis=0)

    @property
    def objective(self) -> float:
        """The value of (3.1)."""
        misfit = self._on_samples - self.regression.Y
        return float((misfit**2).sum() / len(misfit) + self.strength * self.norms.sum())

    def coordinates(self) -> Coordinates:
        """u, by enumeration: up to dim = 20. Time O(d 2^d k), memory 2^d k."""
        X = self.regression.gram.X
        roots = np.sqrt(cube_coefficients(self.regression.gram.kernel, X.shape[1]))
        # Σ_j χ_S(x_j)β_j is the transform of the measure that has β_j at the corner of x_j.
        measure = np.zeros((len(roots), self.beta.shape[1]))
        np.add.at(measure, (signs(X) < 0) @ (1 << np.arange(X.shape[1])), self.beta)
        return Coordinates(roots, roots[:, None] * (walsh(measure) * len(roots)))


def correlation_regression(kernel: object, X: object, Y: object, *, strength: float | int) -> CorrelationFit:
    """Minimise eq. (3.1) of Allen-Zhu & Li (2020) on corners of a cube, with λ = `strength` > 0.

    Only correlation kernels are taken; others are refused.

    X may have entries ±1 or ±1/√d: the kernel sees them at length 1, as in Theorem 2. Time n³/3, memory n².

    >>> X = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> correlation_regression("u + u²", X, np.array([[1.0], [0.0]]), strength=0.5).beta.round(12)  # K = 2I, Nλ = 1
    array([[0.33333333],
           [0.        ]])
    """
    check_real("strength", strength)
    require(
        0 < strength < math.inf, f"strength={strength:g}: λ in (3.1) must be positive and finite; for λ → 0 give 1e-12."
    )
    unit = _unit(X)
    targets = check_targets(Y, len(unit))
    require(
        targets.ndim == 2, f"Y has shape {targets.shape}: expected ({len(unit)}, k); for one output give Y[:, None]."
    )
    found = check_correlation(kernel, unit.shape[1])
    model = ridge_regression(found, unit, targets, ridge=len(unit) * float(strength))
    return CorrelationFit(model, float(strength))


def _unit(X: object) -> Float[np.ndarray, "n d"]:
    """Corners of a cube at length 1, as Theorem 2 has them."""
    corner = signs(X)
    return corner / math.sqrt(corner.shape[1])
