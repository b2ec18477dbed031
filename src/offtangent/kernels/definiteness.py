"""What a Gram matrix needs to be positive definite, refused where it is missing.

K(X, X) + ridge·I is positive semidefinite for a ridge of zero or more. Without a ridge it is singular by construction
where two inputs are equal, or where k(x, x) = 0.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_inputs, check_real, require
from offtangent._errors import InputError
from offtangent.data.duplicates import merge_checked


def check_ridge(ridge: float | int) -> None:
    """Refuse what is no finite number of zero or more."""
    check_real("ridge", ridge)
    require(0 <= ridge < np.inf, f"ridge={ridge:g}: it must be zero or positive, and finite.")


def check_not_equal(X: object) -> Float[np.ndarray, "n d"]:
    """X, or an InputError where inputs occur twice: their rows of the matrix are equal."""
    array = check_inputs(X)
    groups = merge_checked(array, np.zeros(len(array)), average=False).groups
    if groups:
        first, second = groups[0][:2]
        raise InputError(
            f"Rows {first} and {second} of X (counted from 0) are equal, so the Gram matrix is singular; {len(groups)} "
            f"rows occur more than once. Merge the duplicates into one row each, or add a ridge."
        )
    return array


def check_diagonal(diagonal: Any, positive: bool) -> None:
    """Refuse a diagonal that is not finite or, where it has to be `positive`, has a zero."""
    diagonal = np.asarray(diagonal)
    bad = np.flatnonzero(~np.isfinite(diagonal) | (positive & (diagonal <= 0)))
    if len(bad):
        raise InputError(
            f"k(x, x) is {diagonal[bad[0]]:g} in row {bad[0]} of X (counted from 0): it over- or underflows, or is "
            "zero there and the matrix singular. Scale X to lengths of about 1, drop such rows, or add a ridge."
        )
