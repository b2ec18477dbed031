"""yᵀ(K + λI)⁻¹y as a curve over ridges λ: what remains to be said where K itself is singular or hopeless."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_magnitude, check_numbers, require
from offtangent._errors import InputError, a_kind
from offtangent.kernels.gram import Gram
from offtangent.kernels.solvable import Kernel
from offtangent.kernels.solves import choose
from offtangent.linalg.brackets import EPS


@dataclass(frozen=True)
class RegularisedCurve:
    """yᵀ(K + λI)⁻¹y with a bracket at every ridge λ. It falls in λ, and tends to yᵀK⁻¹y where K can be inverted."""

    ridges: Float[np.ndarray, "t"]
    values: Float[np.ndarray, "t"]
    lower: Float[np.ndarray, "t"]
    upper: Float[np.ndarray, "t"]


def regularised(
    kernel: Any,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n"],
    ridges: Float[np.ndarray, "t"] | None = None,
    *,
    watch: Callable[[str], None] | None = None,
) -> RegularisedCurve:
    """The curve over `ridges`, by default 13 from 10⁻⁸ to 10⁴ times the mean of the diagonal of K.

    Inputs may be parallel, equal or zero. Through one eigendecomposition where it fits (then the bracket is for a
    rounding of 10 n ε λ_max by the eigendecomposition and of (2d + 40)ε tr K by the kernel), else by one iterative
    solve for each ridge on the same tiles.

    >>> from offtangent.kernels import relu_hidden
    >>> twice = np.array([[1.0, 0.0], [1.0, 0.0]])
    >>> regularised(relu_hidden, twice, np.array([1.0, -1.0]), np.array([0.1, 1.0])).values.round(12)
    array([20.,  2.])
    """
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {a_kind(kernel)}: expected one of offtangent.kernels, such as relu_hidden.")
    mean = float(np.mean(np.asarray(kernel.diag(np.asarray(X, np.float64)))))
    ridges = mean * 10.0 ** np.arange(-8, 5) if ridges is None else check_numbers(ridges, "ridges")
    require(
        ridges.ndim == 1 and len(ridges) and ((ridges > 0) & np.isfinite(ridges)).all(),
        "ridges: expected a list of positive finite numbers.",
    )
    H = Gram(kernel, X, float(ridges.min()))  # the smallest: a large one on the diagonal would cost digits
    check_magnitude(3, y=y)
    y = np.asarray(y, np.float64)
    if choose(H, None) == "cholesky":
        return _by_eigenpairs(H, y, ridges)
    found = [H.with_ridge(float(ridge)).inverse_quadratic(y, watch=watch) for ridge in ridges]
    parts = (np.array([getattr(one, name) for one in found]) for name in ("value", "lower", "upper"))
    return RegularisedCurve(ridges, *parts)


def _by_eigenpairs(H: Gram, y: Float[np.ndarray, "n"], ridges: Float[np.ndarray, "t"]) -> RegularisedCurve:
    """A matrix within `rounding` of K has exactly these eigenpairs, but for a turn by 10 n ε, which moves y as much."""
    spectrum, n = H.eigh(), len(H)
    values, energy = spectrum.values - H.ridge, spectrum.energy(y)
    rounding = EPS * (10 * n * float(spectrum.values[0]) + (2 * H.X.shape[1] + 40) * float(H.diag().sum()))
    low, high = ((values + shift)[:, None] + ridges for shift in (rounding, -rounding))
    turn = 10 * n * EPS * np.linalg.norm(y) / np.sqrt(ridges)
    middle = (energy[:, None] / (np.maximum(values, 0.0)[:, None] + ridges)).sum(axis=0)
    lower = (energy[:, None] / low).sum(axis=0)
    # K has no negative eigenvalues: where rounding drowns the ridge, ‖y‖²/λ is what remains.
    upper = (energy[:, None] / np.where(high > 0, high, 1)).sum(axis=0)
    upper = np.minimum(np.where((high > 0).all(axis=0), upper, np.inf), y @ y / ridges * (1 + 10 * n * EPS))
    lower, upper = np.maximum(np.sqrt(lower) - turn, 0) ** 2, (np.sqrt(upper) + turn) ** 2
    return RegularisedCurve(ridges, np.clip(middle, lower, upper), lower, upper)
