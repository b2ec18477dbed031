r"""Corollary 7.1: on the very data on which kernels fail, the three-layer ResNet learns the composite signal.

Theorem 2's target $H(x) = (x_{i_1}, \dots, x_{i_k}) + \alpha \prod_j x_{i_j} (1, \dots, 1)$ on $\{\pm 1\}^d$, k = 4 and
α = 0.3, from the same samples as its six kernels have. The corollary promises an error of Õ(α⁴) from about d/α⁸
samples, 3·10⁵ at d = 20 and 9·10⁵ at 60: the N of the kernels are far fewer and lie outside. There it is measured where
the ResNet stands with N samples, next to α², α⁴ and the best kernel, and whether there is an N at which it is below
Theorem 2's α²/4 and no kernel is.

Inside, the ResNet is trained by itself on d/α⁸ samples: 5120 at d = 20 with α = 0.5, which a laptop can do, and in
`paper` the 304 832 of α = 0.3. The constants of Õ and Θ̃ are taken as 1, and the target is √k times the corollary's.

The ResNet is Figure 2's: rates and decays from a widened grid, chosen on the 1000 samples that choose the kernels' λ.
`paper` refines that grid around its best, and cuts the paper's {1, 2, 5}·10ᵏ to steps of 2 and 3 there.
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import _methods, corollary71_report, theorem2
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.report import Figure
from offtangent.theory.allen_zhu_li.kernel_limits import corollary71_samples


@dataclass(frozen=True)
class Learner:
    """The ResNet and the six kernels of Theorem 2 in one dimension, from N samples."""

    dim: int
    samples: int
    width: int
    epochs: int  # with the first rate, and as many with a tenth of it
    seeds: int
    precision: str = "highest"
    refined: bool = False  # whether the grid is refined around its best
    degree: int = theorem2.DEGREE
    alpha: float = theorem2.ALPHA


@dataclass(frozen=True)
class Promised:
    """The ResNet from as many samples as the corollary asks for, d/α⁸."""

    dim: int
    alpha: float
    samples: int
    width: int
    epochs: int
    seeds: int
    precision: str = "highest"
    refined: bool = False
    degree: int = theorem2.DEGREE


@dataclass(frozen=True)
class Config:
    dims: tuple[int, ...]
    samples: tuple[int, ...]
    width: int
    epochs: int
    seeds: int
    promised: tuple[tuple[int, float, int], ...]  # d, α and epochs
    precision: str = "highest"
    refined: bool = False


PROFILES = {
    "smoke": Config((12,), (400,), 48, 20, 3, ((12, 0.6, 20),)),
    "laptop": Config((20, 40), (300, 1000), 128, 40, 3, ((20, 0.5, 10),)),
    "paper": Config(
        (20, 40, 60), (100, 300, 1000, 2000, 4000), 1000, 400, 3,
        ((20, 0.5, 40), (40, 0.5, 40), (60, 0.5, 40), (20, 0.3, 4)), precision="tensorfloat32", refined=True,
    ),
}  # fmt: skip


def cells(config: Config) -> list[Learner | Promised]:
    rest = (config.precision, config.refined)
    return [
        *(
            Learner(dim, n, config.width, config.epochs, config.seeds, *rest)
            for dim in config.dims
            for n in config.samples
        ),
        *(
            Promised(dim, alpha, math.ceil(corollary71_samples(dim, alpha)), config.width, epochs, config.seeds, *rest)
            for dim, alpha, epochs in config.promised
        ),
    ]


def cost(cell: Learner | Promised) -> Cost:
    grid = len(_methods.RATES["3resnet"]) * len(_methods.DECAYS)
    entries = cell.width * (cell.dim + 3 * cell.degree)
    descent = 2 * cell.epochs * cell.samples * 6 * entries * grid * cell.seeds
    held = 16 * grid * cell.seeds * entries + 8 * cell.samples * cell.seeds * cell.dim
    if isinstance(cell, Promised):
        return Cost(descent, held)
    kernels = theorem2.cost(_regression(cell, theorem2.KERNELS[0]))
    return Cost(descent + len(theorem2.KERNELS) * kernels.flops, held + kernels.bytes)


@dataclass(frozen=True, eq=False)
class _Drawn(_methods.Problem):
    """The samples of Theorem 2's experiment."""

    product: Product

    def rows(self, part: str) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n k"]]:
        counts = {"train": self.samples, "choose": theorem2.CHOOSING, "test": _methods.TESTS}
        return self.product.sample(counts[part], part)


def run(cell: Learner | Promised) -> xr.Dataset:
    products = [Product(cell.dim, cell.degree, cell.alpha, seed) for seed in range(cell.seeds)]
    problems: list[_methods.Problem] = [
        _Drawn(product.function, cell.samples, seed, product) for seed, product in enumerate(products)
    ]
    found = _methods.descend(
        "3resnet", problems, width=cell.width, epochs=cell.epochs, precision=cell.precision, refined=cell.refined
    )
    i, j = found.chosen
    resnet = xr.Dataset(
        {"resnet": ("seed", found.tables["test"][i, j]), "best": ("seed", found.tables["test"][found.best("test")])}
    ).assign(rate=found.rates[i], decay=found.decays[j], inside=found.inside)
    if isinstance(cell, Promised):
        return resnet
    kernels = [
        theorem2.run(_regression(cell, kernel))["error"].sum("output").isel(n=0).values for kernel in theorem2.KERNELS
    ]
    return resnet.assign(kernel=(("kernels", "seed"), np.stack(kernels))).assign_coords(kernels=list(theorem2.KERNELS))


def _regression(cell: Learner, kernel: str) -> theorem2.Regression:
    return theorem2.Regression(kernel, cell.dim, cell.degree, cell.alpha, (cell.samples,), cell.seeds)


def claims(results: Results) -> list[Claim]:
    return corollary71_report.claims(results.where(Learner), results.where(Promised))


def draw(results: Results) -> list[Figure]:
    return corollary71_report.figures(results.where(Learner), results.where(Promised))
