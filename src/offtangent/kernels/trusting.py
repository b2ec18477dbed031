"""A kernel's entries at inputs that are checked already, as those of a Gram matrix are, without checking them again.

The kernels of this house check what they are given at their doors, `exact` and `diag`, and then compute. Those who hold
checked inputs go round the doors by the functions below; a user's own kernel has only the doors.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float


@runtime_checkable
class _Trusting(Protocol):
    """What `exact` and `diag` of a kernel compute once they have checked their inputs."""

    def _exact_of_checked(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None
    ) -> Float[np.ndarray, "p q"]: ...
    def _diag_of_checked(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]: ...


def trusted_exact(
    kernel: Any, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None
) -> Float[np.ndarray, "p q"]:
    """`kernel.exact(X1, X2)`, or that of X1 with itself, of float64 arrays that are checked."""
    if isinstance(kernel, _Trusting):
        return kernel._exact_of_checked(X1, X2)
    return np.asarray(kernel.exact(X1) if X2 is None else kernel.exact(X1, X2))


def trusted_diag(kernel: Any, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """`kernel.diag(X)` in float64, of a float64 array that is checked."""
    if isinstance(kernel, _Trusting):
        return kernel._diag_of_checked(X)
    return np.asarray(kernel.diag(X), np.float64)
