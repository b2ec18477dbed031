"""The target of Theorem 2 and Corollary 7.1, and its samples: x in {±1}^d, as Appendix E scales it.

H(x) = (x_{i_1}, …, x_{i_k}) + α Π_j x_{i_j} (1, …, 1), with i_1, …, i_k drawn anew for each seed. Samples for training,
for choosing a regulariser and for testing are three draws; a smaller N has the first rows of a larger one.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent import data

PARTS = ("train", "choose", "test")


@dataclass(frozen=True)
class Product:
    """The target of one seed."""

    dim: int
    degree: int  # k
    alpha: float
    seed: int

    @property
    def coordinates(self) -> tuple[int, ...]:
        """S* = {i_1, …, i_k}."""
        drawn = np.random.default_rng([self.seed, self.dim]).permutation(self.dim)
        return tuple(int(j) for j in drawn[: self.degree])

    @property
    def function(self) -> data.hierarchy.Hierarchy:
        """H = F + αG(F), with `parts` for F and αG(F) alone."""
        base = data.hierarchy.Parities(self.dim, tuple((j,) for j in self.coordinates), np.ones(self.degree))
        every = (tuple(range(self.degree)),) * self.degree
        return data.hierarchy.Hierarchy(
            base, data.hierarchy.Parities(self.degree, every, np.ones(self.degree)), self.alpha
        )

    def sample(self, count: int, part: str) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n k"]]:
        """Inputs and labels of one of the three draws."""
        # not data.hypercube, which compiles a program for each shape: there are many here, all small
        rng = np.random.default_rng([self.seed, self.dim, PARTS.index(part)])
        X = 1.0 - 2.0 * rng.integers(0, 2, (count, self.dim), dtype=np.int8)
        return X, self.function(X)
