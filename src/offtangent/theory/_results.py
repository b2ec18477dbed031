"""Results that several papers' statements have: an average over random draws, both sides of an inequality."""

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


@dataclass(frozen=True)
class Sides:
    """Both sides of left ≤ right."""

    left: float
    right: float
    error: float = 0.0  # standard error of the left side over the signs; zero where all were taken

    @property
    def ratio(self) -> float:
        """Left over right: at most one where the lemma holds; zero where both are zero."""
        return self.left / self.right if self.right > 0 else float(np.inf if self.left > 0 else 0.0)
