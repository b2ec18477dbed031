"""An average over random draws."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Average:
    """An average over random draws, with its standard error; 0 where every case was counted."""

    value: float
    error: float
    draws: int

    @classmethod
    def of(cls, values: Float[np.ndarray, "t"], *, exact: bool = False) -> "Average":
        error = 0.0 if exact else float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(float(np.mean(values)), error, len(values))
