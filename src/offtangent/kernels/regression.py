"""Kernel ridge regression, and its leave-one-out predictions without a single refit.

With G = (K + ridge·I)⁻¹ the regression is f(x) = k(x, X)α, α = GY. Leaving out sample i and fitting the others gives

    yᵢ − f₋ᵢ(xᵢ) = αᵢ / Gᵢᵢ

exactly, so that n refits cost one inverse. f₋ᵢ(xᵢ) is linear in the labels of the others, with weights −Gᵢⱼ/Gᵢᵢ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_inputs, check_magnitude, check_numbers, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.kernels.definiteness import check_ridge
from offtangent.kernels.gram import Gram, Method
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.solvable import Kernel
from offtangent.linalg import Spectrum

AT_ONCE = 1 << 24  # entries of the kernel's block in a prediction: 128 MB


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each sample's label is predicted to be from all the others."""

    predictions: Float[np.ndarray, "n *k"]
    residuals: Float[np.ndarray, "n *k"]  # label minus prediction
    precision: Float[np.ndarray, " n"]  # Gᵢᵢ: up to a common factor, one over the variance of residual i
    sensitivity: Float[np.ndarray, " n"]  # √Σ_{j≠i} Gᵢⱼ² / Gᵢᵢ: how unit noise in the others moves prediction i

    @classmethod
    def of(cls, inverse: Inverse, Y: Float[np.ndarray, "n *k"]) -> "LeaveOneOut":
        """From G = (K + ridge·I)⁻¹. Time O(n²k)."""
        columns = Y.reshape(len(Y), -1)
        residuals = ((inverse @ columns) / inverse.diagonal[:, None]).reshape(Y.shape)
        others = np.maximum(inverse.row_squares - inverse.diagonal**2, 0.0)
        return cls(Y - residuals, residuals, inverse.diagonal, np.sqrt(others) / inverse.diagonal)


@dataclass(frozen=True, eq=False, repr=False)
class RidgeRegression:
    """A fitted regression: `predict` for new inputs, `leave_one_out` for the old ones.

    Attributes:
        gram: The kernel matrix of the training inputs, with the ridge.
        Y: The labels.
        coefficients: α.
        residual: ‖Y − (K + ridge·I)α‖ / ‖Y‖ of the worst output.
        method: How α was found.
    """

    gram: Gram  # of the training inputs, with the ridge
    Y: Float[np.ndarray, "n *k"]
    coefficients: Float[np.ndarray, "n *k"]  # α
    residual: float  # ‖Y − (K + ridge·I)α‖ / ‖Y‖ of the worst output
    method: str  # how α was found

    def predict(self, X_new: object) -> Float[np.ndarray, "p *k"]:
        """Predict k(X_new, X)α. Time O(pnd), memory 128 MB beside the inputs.

        Args:
            X_new: p new inputs, one a row.

        Returns:
            f(x) of each of them.

        Raises:
            InputError: If X_new is no table of finite numbers with as many columns as X.
        """
        return expansion(self.gram.kernel, self.gram.X, self.coefficients, X_new)

    @cached_property
    def leave_one_out(self) -> LeaveOneOut:
        """What each label is predicted to be from all the others, in closed form. Time n³, memory 3n² floats, once."""
        return LeaveOneOut.of(Inverse.of(self.gram.dense()), self.Y)

    def __repr__(self) -> str:
        return f"RidgeRegression({self.gram!r}, outputs of shape {self.Y.shape[1:]})"


def ridge_regression(
    kernel: Kernel,
    X: object,
    Y: object,
    *,
    ridge: float | int,
    tolerance: float = 1e-8,
    method: Method | None = None,
) -> RidgeRegression:
    """Fit the function with the least Σ‖yᵢ − f(xᵢ)‖² + ridge·‖f‖² in the space of a kernel.

        f(x) = k(x, X)α,      α = (K + ridge·I)⁻¹Y

    Its leave-one-out predictions need no refit: with G = (K + ridge·I)⁻¹, yᵢ − f₋ᵢ(xᵢ) = αᵢ/Gᵢᵢ exactly. By Cholesky,
    in time n³/3 and memory 3n² floats, up to about 10⁴ inputs; by conjugate gradients on tiles beyond.

    Args:
        kernel: The kernel, such as `kernels.relu_hidden`.
        X: The inputs, one a row.
        Y: One label a row, or several (n × k): all outputs share one factorisation.
        ridge: The ridge, zero or positive. With 0 the function runs through the labels, and inputs that make K singular
            are refused.
        tolerance: ‖Y − (K + ridge·I)α‖/‖Y‖ is to be no larger, where α is found by iteration.
        method: "cholesky" or "conjugate gradients", as in `Gram.solve`; by default chosen by size.

    Returns:
        The regression, with `predict(X_new)`, `leave_one_out` (its `predictions`, `residuals`, …), the `coefficients` α
        and the `residual` reached.

    Raises:
        InputError: If X or Y is no table of finite numbers, they differ in length, or the matrix is singular.

    >>> from offtangent.kernels import relu_hidden
    >>> model = ridge_regression(relu_hidden, np.eye(2), [1.0, -1.0], ridge=0.5)
    >>> model.predict([[2.0, 0.0]]), model.leave_one_out.predictions.round(15)
    (array([1.]), array([0., 0.]))
    """
    inputs = check_inputs(X)
    targets = check_targets(Y, len(inputs))
    check_ridge(ridge)
    gram = Gram(kernel, inputs, ridge=float(ridge))
    solution = gram.solve(targets, tolerance=tolerance, method=method)
    return RidgeRegression(gram, targets, solution.value, solution.residual, solution.method)


def expansion(
    kernel: Kernel, X: Float[np.ndarray, "n d"], coefficients: Float[np.ndarray, "n *k"], X_new: object
) -> Float[np.ndarray, "p *k"]:
    """Σᵢ αᵢ k(x, xᵢ) at new inputs, a block of rows at a time. Time O(pnd), memory 128 MB beside the inputs."""
    inputs = check_inputs(X_new)
    check_inputs(X)
    check_targets(coefficients, len(X))
    require(
        inputs.shape[1] == X.shape[1],
        f"X_new has {inputs.shape[1]} features, and the regression was fitted on {X.shape[1]}.",
    )
    rows = max(1, AT_ONCE // len(X))
    starts = range(0, len(inputs), rows)
    return np.concatenate([kernel.exact(inputs[start : start + rows], X) @ coefficients for start in starts])


def check_targets(Y: object, n: int) -> Float[np.ndarray, "n *k"]:
    """Y as float64 with one finite row for each of n inputs, of one number or of k, or an InputError."""
    try:
        targets = np.asarray(Y, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Y is no array of numbers: {error}.") from None
    require(
        targets.ndim in (1, 2) and len(targets) == n and 0 not in targets.shape,
        f"Y has shape {targets.shape}: expected ({n},) or ({n}, k), one row for each row of X.",
    )
    if not np.isfinite(targets).all():
        bad = np.argwhere(~np.isfinite(targets))
        raise InputError(f"Y has {len(bad)} entries that are NaN or infinite; the first is in row {bad[0][0]}.")
    check_magnitude(2, Y=targets)
    return targets


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The mean squared leave-one-out residual for each ridge."""

    ridges: Float[np.ndarray, " r"]
    errors: Float[np.ndarray, " r"]

    @property
    def best(self) -> float:
        """The ridge with the smallest error; of several, the largest."""
        return float(self.ridges[np.flatnonzero(self.errors == self.errors.min())[-1]])


def ridge_path(spectrum: Spectrum, Y: Float[np.ndarray, "n *k"], ridges: Sequence[float] | None = None) -> RidgePath:
    """Leave-one-out errors for many ridges from the eigenpairs of K alone: O(n²k) for each, and no new factorisation.

    By default 25 ridges from 10⁻⁶ to 10² times the mean of K's diagonal.

    >>> path = ridge_path(Spectrum.of(np.eye(2)), np.array([1.0, -1.0]), [0.1, 10.0])
    >>> path.errors
    array([1., 1.])
    """
    _check_spectrum(spectrum)
    require(spectrum.complete, "Leave-one-out errors need all eigenpairs: Gram.eigh() without k.")
    V, columns = spectrum.vectors, check_targets(Y, len(spectrum.vectors)).reshape(len(spectrum.vectors), -1)
    values, squares = np.maximum(spectrum.values, 0.0), V**2
    chosen = np.geomspace(1e-6, 1e2, 25) * values.mean() if ridges is None else check_numbers(ridges, "ridges")
    if chosen.ndim != 1 or not len(chosen) or not ((chosen > 0) & np.isfinite(chosen)).all():
        raise InputError(f"ridges={chosen.tolist()}: expected a list, and each must be positive and finite.")
    along = V.T @ columns
    errors = []
    for ridge in chosen:
        gains = 1 / (values + ridge)
        residuals = (V @ (gains[:, None] * along)) / (squares @ gains)[:, None]
        errors.append(float(np.mean(residuals**2)))
    return RidgePath(chosen, np.array(errors))


def _check_spectrum(spectrum: Spectrum) -> None:
    if not isinstance(spectrum, Spectrum):
        raise InputError(f"spectrum is {a_kind(spectrum)}: expected a linalg.Spectrum, such as Gram(kernel, X).eigh().")


def ridge_for_norm(spectrum: Spectrum, Y: Float[np.ndarray, "n *k"], norm: float | int) -> float:
    """The ridge whose regression is the best fit with ‖f‖ ≤ norm in the space of the kernel; zero if all labels fit.

    For a network's linear model f^L_W that norm is the least ‖W‖_F that gives f, so this is the NTK in a ball of
    Frobenius norm. ‖f‖² = Σᵢ λᵢ (vᵢᵀY)²/(λᵢ + ridge)² falls as the ridge grows; its root is found in log ridge.

    >>> float(round(ridge_for_norm(Spectrum.of(np.eye(2)), np.array([3.0, 4.0]), 1.0), 9))  # ‖f‖ = 5/(1 + ridge)
    4.0
    """
    from scipy.optimize import brentq

    _check_spectrum(spectrum)
    check_real("norm", norm)
    require(spectrum.complete, "A ball needs all eigenpairs: Gram.eigh() without k.")
    require(norm > 0, f"norm={norm:g} must be positive.")
    columns = check_targets(Y, len(spectrum.vectors)).reshape(len(spectrum.vectors), -1)
    values = np.maximum(spectrum.values, 0.0)
    energies = ((spectrum.vectors.T @ columns) ** 2).sum(axis=1)
    used = values > len(values) * np.finfo(float).eps * values.max()  # labels outside of the range fit at no norm
    require(used.any(), "The kernel is zero on these inputs: there is no f but zero, and no ridge to choose.")
    values, energies = values[used], energies[used]
    if not energies.any():
        return 0.0

    def excess(log_ridge: float) -> float:
        return float(np.log((values * energies / (values + np.exp(log_ridge)) ** 2).sum()) - 2 * np.log(norm))

    low = np.log(values.min()) - 40.0  # e⁻⁴⁰ of the smallest: no ridge
    if excess(low) <= 0:
        return 0.0
    high = 0.5 * np.log((values * energies).sum()) - np.log(norm)  # λ + ridge ≥ ridge: ‖f‖ ≤ norm at this one
    return float(np.exp(brentq(excess, low, high, xtol=1e-13)))
