"""Lower and upper bounds for yᵀA⁻¹y that rounding cannot break.

For any x whatever, with the residual r = y − Ax of a positive definite A,

    yᵀA⁻¹y = 2yᵀx − xᵀAx + rᵀA⁻¹r,        0 ≤ rᵀA⁻¹r ≤ ‖r‖²/λ_min(A).

So x may come from anywhere, a solver in float32 too; only the product Ax and a lower bound for λ_min (the `floor`)
have to be trusted. The product comes with a bound ρ of its own error, entry by entry. A bracket is *certified* when
its floor is proven, and *conditional* when the floor is an estimate; it says what it rests on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

from offtangent._checks import check_numbers, require
from offtangent._errors import InputError

EPS = float(np.finfo(np.float64).eps)
LARGEST = 1e100  # of the entries of a right side, and the inverse of the smallest


@dataclass(frozen=True)
class Bracket:
    """lower ≤ yᵀA⁻¹y ≤ upper. `value` is the best guess between them."""

    value: float
    lower: float
    upper: float
    certified: bool  # whether the floor is proven
    floor: float  # the lower bound for λ_min(A) that the upper bound rests on
    rests_on: str  # where the floor comes from, in words
    method: str  # how the solution was found
    iterations: int
    residual: float  # ‖y − Ax‖/‖y‖

    @property
    def width(self) -> float:
        """(upper − lower) / value."""
        return (self.upper - self.lower) / self.value if self.value > 0 else np.inf


@dataclass(frozen=True)
class Floor:
    """A lower bound for λ_min: `value`, whether it is proven, and where it comes from."""

    value: float
    certified: bool
    rests_on: str


def bracket(
    y: Float[np.ndarray, "n"],
    x: Float[np.ndarray, "n"],
    product: Float[np.ndarray, "n"],
    error: Float[np.ndarray, "n"],
    floor: Floor,
    *,
    method: str,
    iterations: int = 0,
    value: float | None = None,
) -> Bracket:
    """The bracket of yᵀA⁻¹y from an approximate solution x, Ax = `product` ± `error`, and λ_min(A) ≥ floor.

    `value` is a better guess than 2yᵀx − xᵀ`product`, if there is one; it is kept where it lies in the bracket.
    """
    rounding = (len(y) + 4) * EPS
    r = y - product
    quadratic = 2 * float(y @ x) - float(x @ product)
    slack = float(np.abs(x) @ error) + rounding * (
        2 * float(np.abs(y) @ np.abs(x)) + float(np.abs(x) @ np.abs(product))
    )
    worst = float(np.linalg.norm(np.abs(r) + error + EPS * (np.abs(y) + np.abs(product)))) * (1 + rounding)
    beyond = worst**2 / floor.value * (1 + 4 * EPS) if floor.value > 0 else np.inf
    lower, upper = max(quadratic - slack, 0.0), quadratic + slack + beyond
    return Bracket(
        value=min(max(quadratic if value is None else value, lower), upper),
        lower=lower,
        upper=upper,
        certified=floor.certified and floor.value > 0,
        floor=floor.value,
        rests_on=floor.rests_on,
        method=method,
        iterations=iterations,
        residual=float(np.linalg.norm(r) / max(np.linalg.norm(y), np.finfo(np.float64).tiny)),
    )


def matrix_product(A: Float[np.ndarray, "n n"], x: Float[np.ndarray, "n *c"]) -> tuple[np.ndarray, np.ndarray]:
    """A x of a stored float64 matrix, and a bound on its rounding error, entry by entry. Time O(n²c)."""
    return A @ x, (len(A) + 1) * EPS * (np.abs(A) @ np.abs(x))


def cholesky_floor(A: Float[np.ndarray, "n n"], factor: tuple[np.ndarray, bool] | None = None) -> Floor:
    """A proven lower bound for λ_min of a stored matrix: A − σI has a Cholesky factor in floating point.

    If the factorisation runs to its end, λ_min(A − σI) ≥ −γ tr(A), γ = (n+2)ε/(1 − (n+2)ε) (Rump 2006). σ is tried
    at nine tenths of an estimate, which inverse iteration on `factor` (the `cholesky_factor` of A) finds, then at less.
    Where none of three trials succeeds, it is a `Floor` of 0 that proves nothing. Time n³/3 for each trial.
    """
    n, trace = len(A), float(np.trace(A))
    gamma = (n + 2) * EPS / (1 - (n + 2) * EPS)
    slack = gamma * trace + 2 * EPS * float(np.abs(A.diagonal()).max())
    factor = cholesky_factor(A, lower=True) if factor is None else factor
    estimate = _smallest(factor, n)
    for share in (0.9, 0.5, 0.1):
        sigma = share * estimate
        if sigma <= slack:
            break
        shifted = A.copy()
        shifted[np.diag_indices(n)] -= sigma
        try:
            scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return Floor(sigma - slack, True, "a Cholesky factor of A − σI, found in floating point (Rump's test)")
    return Floor(0.0, False, f"nothing: λ_min is about {estimate:.2g}, within the rounding {slack:.2g} of the matrix")


def inverse_quadratic(A: Float[np.ndarray, "n n"], y: Float[np.ndarray, "n"]) -> Bracket:
    """yᵀA⁻¹y of a stored symmetric positive definite matrix, bracketed. Time n³, memory 3n².

    >>> found = inverse_quadratic(np.diag([1.0, 0.5]), np.ones(2))
    >>> round(found.value, 12), found.lower <= 3 <= found.upper, found.certified
    (3.0, True, True)
    """
    A = check_numbers(A, "A")
    require(A.ndim == 2 and len(A), f"A has shape {A.shape}: expected a matrix, (n, n).")
    if not np.array_equal(A, A.T):  # NaN is unequal to itself
        raise InputError("A is not symmetric to the last bit, or has NaN: (A + A.T) / 2 is symmetric.")
    require(np.isfinite(A).all(), "A has infinite entries: give finite numbers.")
    y = right_sides(y, len(A))[:, 0]
    factor = factorise(A)
    x = scipy.linalg.cho_solve(factor, y)
    x = x + scipy.linalg.cho_solve(factor, y - A @ x)
    return bracket(y, x, *matrix_product(A, x), cholesky_floor(A, factor), method="cholesky")


def right_sides(b: Any, n: int) -> Float[np.ndarray, "n c"]:
    """Right sides as n rows of float64, or an InputError: another number of rows, NaN, or sizes whose squares fail."""
    b = check_numbers(b, "The right side")
    require(
        b.ndim in (1, 2) and len(b) == n and 0 not in b.shape,
        f"The right side has shape {b.shape}: expected ({n},) or ({n}, k), one row per input.",
    )
    if not np.isfinite(b).all():
        raise InputError(f"The right side has {np.count_nonzero(~np.isfinite(b))} entries that are NaN or infinite.")
    sizes = np.abs(b).max(axis=0)
    if ((sizes > LARGEST) | ((sizes < 1 / LARGEST) & (sizes > 0))).any():
        raise InputError(
            f"The right side has entries of {sizes.max():.2g}: squares over- or underflow. Scale it to about 1."
        )
    return b.reshape(n, -1)


def cholesky_factor(A: Float[np.ndarray, "n n"], *, lower: bool) -> tuple[Float[np.ndarray, "n n"], bool]:
    """SciPy's cho_factor, the same whatever its release: a matrix in Fortran's order, and a plain bool. Time n³/3.

    SciPy 1.18 answers with rows one after another and with array(True). LAPACK then copies the matrix in every solve,
    which makes a solve three times as slow at n = 2500, and a 0-dimensional array is no bool.
    """
    factor, is_lower = scipy.linalg.cho_factor(A, lower=lower)  # noqa: TID251
    return np.asfortranarray(factor), bool(is_lower)


def factorise(A: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, bool]:
    """The lower `cholesky_factor`, or an InputError with the numbers if A is singular to rounding. Time n³/3."""
    try:
        factor = cholesky_factor(A, lower=True)
    except np.linalg.LinAlgError as error:
        raise singular(len(A), f"its Cholesky factorisation breaks down: {error}") from None
    size = np.linalg.norm(A, 1)
    inverse_condition, _ = scipy.linalg.lapack.dpocon(factor[0], size, uplo="L")
    if inverse_condition < EPS:  # rounding can make the last pivots positive by chance
        condition = f"{1 / inverse_condition:.1g}" if inverse_condition > 0 else "infinite"
        raise singular(len(A), f"its condition number is {condition}, beyond {1 / EPS:.1g}, at norm {size:.3g}")
    return factor


def singular(n: int, reason: str) -> InputError:
    """The refusal of a matrix that has no inverse in floating point, with why that is known."""
    return InputError(
        f"The {n} × {n} matrix is singular to rounding ({reason}): A⁻¹ means nothing here. Add a ridge, for "
        "example Gram(kernel, X, ridge=1e-6), or look at the whole curve of ridges with "
        "offtangent.kernels.ridges.regularised(kernel, X, y)."
    )


def _smallest(factor: tuple[np.ndarray, bool], n: int, steps: int = 12) -> float:
    """An estimate of λ_min from above, by inverse iteration."""
    v = np.random.default_rng(0).standard_normal(n)
    estimate = np.inf
    for _ in range(steps):
        v /= np.linalg.norm(v)
        w = scipy.linalg.cho_solve(factor, v, check_finite=False)
        estimate = 1 / float(v @ w)
        v = w
    return estimate
