"""What a solve returns."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Solution:
    """x with Ax ≈ b, and how good it is. `np.asarray(solution)` is x."""

    value: Float[np.ndarray, "n *k"]
    residual: float  # ‖b − Ax‖/‖b‖ of the worst column, measured in float64
    iterations: int  # products with the matrix in lower precision; 0 for a direct solve
    converged: bool  # whether the residual is within the tolerance asked for
    method: str

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype, copy=copy)  # type: ignore[call-overload]
