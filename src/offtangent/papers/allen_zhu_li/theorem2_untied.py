r"""Theorem 2 and Lemma E.3 for a kernel whose λ_S differ within a size: $K(x, y) = \exp(\sum_j \rho_j x_j y_j)$.

That is the Gaussian kernel with a scale for each coordinate. On the cube λ_S depends on which coordinates S has,
$\lambda_S^2 = \prod_j \cosh\rho_j \prod_{j \in S} \tanh\rho_j$. Here the first coordinates have twice the weight of the
others, and there are as many of them as make at least 0.5 % of the subsets of size k lie among them: these have the
largest λ_S, all of one size, and are the ℋ of Lemma E.3. Errors are over all $2^d$ corners, exactly, as K is a product
over coordinates.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.papers.allen_zhu_li import _regressions
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.theory.allen_zhu_li.memorising import TOP, memorise

HEAVY = 2.0  # the weight of the first coordinates, over that of the others
CHOOSING = 1000  # samples that choose λ
DEGREE, ALPHA = 4, 0.3


@dataclass(frozen=True)
class Untied:
    """The error of this kernel's regression against N in one dimension."""

    dim: int
    degree: int
    alpha: float
    samples: tuple[int, ...]
    seeds: int

    @property
    def kernel(self) -> str:
        return "exp(Σ ρ_j x_j y_j)"

    @property
    def first(self) -> int:
        return 0


@dataclass(frozen=True)
class Certified:
    """λ_min(ΦᵀΦ) on ℋ, the subsets of the first coordinates, where the constants of Lemma E.3's proof allow it."""

    dim: int
    degree: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Weighted:
    """K in d dimensions, with Σ ρ_j = 1."""

    dim: int
    degree: int

    @cached_property
    def first(self) -> int:
        """How many coordinates have the larger weight: the fewest with C(·, k) ≥ 0.5 % of C(d, k)."""
        least, count = TOP * math.comb(self.dim, self.degree), self.degree
        while math.comb(count, self.degree) < least:
            count += 1
        return count

    @cached_property
    def rho(self) -> Float[np.ndarray, " d"]:
        weights = np.where(np.arange(self.dim) < self.first, HEAVY, 1.0)
        return weights / weights.sum()

    def __call__(self, X: Float[np.ndarray, "a d"], Y: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "a b"]:
        return np.exp((X * self.rho) @ Y.T)

    def square(self, subset: tuple[int, ...]) -> float:
        """λ_S²."""
        return float(np.cosh(self.rho).prod() * np.tanh(self.rho[list(subset)]).prod())

    def overlaps(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
        """E_x K(x, a)K(x, b) = Π_j cosh(ρ_j(a_j + b_j)): a factor cosh 2ρ_j for every coordinate that agrees."""
        logs = np.log(np.cosh(2 * self.rho))
        return np.exp(0.5 * (logs.sum() + (X * logs) @ X.T))

    def risk(
        self, X: Float[np.ndarray, "n d"], betas: Float[np.ndarray, "r n k"], problem: Product
    ) -> Float[np.ndarray, "r k"]:
        """E_x (f_i(x) − H_i(x))² of every output of f = Σ_a β_a K(·, x_a), H_i = x_{j_i} + αχ_S."""
        chosen = list(problem.coordinates)
        product = self.square(tuple(chosen)) * X[:, chosen].prod(axis=1)
        linear = np.stack([self.square((j,)) * X[:, j] for j in chosen], axis=1)
        across = linear + problem.alpha * product[:, None]
        quadratic = np.einsum("rak,rak->rk", betas, np.einsum("ab,rbk->rak", self.overlaps(X), betas))
        return quadratic - 2 * np.einsum("rak,ak->rk", betas, across) + 1 + problem.alpha**2


def cells(sizes: tuple[tuple[int, tuple[int, ...]], ...], seeds: int) -> list[Untied | Certified]:
    """Dimensions, each with its numbers of samples, and Lemma E.3 where it speaks."""
    found: list[Untied | Certified] = [Untied(dim, DEGREE, ALPHA, samples, seeds) for dim, samples in sizes]
    return [*found, Certified(100_000, DEGREE, 5, seeds)]


def run(cell: Untied | Certified) -> xr.Dataset:
    """Errors with the λ that is chosen, and with the best in hindsight; or λ_min(ΦᵀΦ)/Λ."""
    kernel = Weighted(cell.dim, cell.degree)
    if isinstance(cell, Certified):
        return _certified(cell, kernel.first)
    found: list[dict[str, Any]] = []
    for seed in range(cell.seeds):
        problem = Product(cell.dim, cell.degree, cell.alpha, seed)
        (X, Y), (C, labels) = problem.sample(max(cell.samples), "train"), problem.sample(CHOOSING, "choose")
        K, to_choose = kernel(X, X), kernel(C, X)
        for n in cell.samples:
            path = _regressions.path(K[:n, :n], Y[:n], to_choose[:, :n], labels)
            errors = kernel.risk(X[:n], path.betas, problem)
            found.append({"error": errors[path.chosen], "best": errors.sum(axis=1).min()})
    shape = (cell.seeds, len(cell.samples))
    error = np.stack([one["error"] for one in found]).reshape(*shape, cell.degree)
    best = np.array([one["best"] for one in found]).reshape(shape)
    return xr.Dataset({"error": (("seed", "n", "output"), error), "best": (("seed", "n"), best)}).assign_coords(
        n=list(cell.samples)
    )


def _certified(cell: Certified, first: int) -> xr.Dataset:
    smallest = np.zeros(cell.seeds)
    for seed in range(cell.seeds):
        X, Y = Product(cell.dim, cell.degree, ALPHA, seed).sample(cell.samples, "train")
        smallest[seed] = memorise(X[:, :first], Y, cell.degree).smallest
    return xr.Dataset({"smallest": ("seed", smallest)})


def work(cell: Untied | Certified) -> tuple[float, float]:
    """Operations and bytes."""
    if isinstance(cell, Certified):
        return 100.0 * cell.seeds * cell.samples**2 * cell.dim, 100.0 * cell.samples * cell.dim
    cubes = sum(n**3 for n in cell.samples)
    return cell.seeds * (8 * cubes / 3 + 100 * sum(n**2 for n in cell.samples)), 60.0 * max(cell.samples) ** 2
