r"""Theorem 2: kernel methods do not learn the composite signal αG(F), and why.

The target is $H(x) = (x_{i_1}, \dots, x_{i_k}) + \alpha \prod_j x_{i_j} (1, \dots, 1)$ on $\{\pm 1\}^d$ with k = 4 and
α = 0.3: F is linear, and G the product of its k outputs, in each of them. Six correlation kernels of Section 3 learn it
from N samples, each with its best λ in (3.1), chosen on 1000 samples of their own from a grid that is widened until the
best lies inside it. Errors are over all $2^d$ corners, exactly: there is no test set.

Three levels to compare with: α²/4, below which Theorem 2 says that no kernel comes (the sum over outputs); kα²/4, which
its proof shows (each output by itself); kα², what is left when nothing of αG(F) is learnt.

The hypotheses: $N \le O(d^{k/2} / \log^k d)$ with the constant taken as 1 allows 4 samples at d = 20 and 12 at d = 60.
The constants of the proof allow none below d = 35 000: Lemma E.3's limit on N is $(d/(20 k^2 \log^2 d))^{k/2}$, and α ≥
$40/(d/5)^{k/4}$ is above 1 below d = 200. So N = 100 to 4000 lies outside, and is shown as such; inside, d = 100 000
with N = 5 is measured, where nothing can go wrong. What can is how the N up to which no kernel learns grows with d: as
fast as d^{k/2}, which is judged on new seeds, in the two smallest dimensions.

The argument does not need those constants. A solution of (3.1) has $\|u_i\| \le \|u'_i\|$ for any function u′
through the samples; the one of Lemma E.3 can be computed, and for a kernel of ⟨x, x'⟩ λ‖u′‖ is the same for all of
them. Lemma E.2 then bounds the error of output i by $(\alpha - \lambda\|u'_i\|)_+^2$, for every such kernel and
every λ. That is above α²/4 up to about $N = \alpha^2 \binom{d}{k} / 4(1 + \alpha^2)$: 100 samples at d = 20, 1900 at
40, 10 000 at 60.

All of these have one λ_S for all S of a size; `Untied` and `Certified` are about a kernel that has not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from offtangent import data
from offtangent.kernels.coordinates import correlation_regression
from offtangent.kernels.correlation import correlation_kernel
from offtangent.kernels.cube import CubeKernel
from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import (
    _regressions,
    theorem2_figures,
    theorem2_report,
    theorem2_untied,
    theorem2_untied_report,
)
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.papers.allen_zhu_li.theorem2_untied import Certified, Untied
from offtangent.report import Figure
from offtangent.special.boolean import character, corners
from offtangent.theory.allen_zhu_li.kernel_limits import theorem2_samples
from offtangent.theory.allen_zhu_li.kernel_risk import product_risk
from offtangent.theory.allen_zhu_li.memorising import memorise

KERNELS = ("gaussian", "arcsine", "recursive arc-cosine", "fully connected NTK", "ResNet NTK", "u + u⁴")
DEGREE, ALPHA = 4, 0.3
CHOOSING = 1000  # samples that choose λ
TESTS = 30  # in a dimension where errors cannot be had exactly
FRESH = 100  # the first of the seeds that the first record does not have
STRENGTHS = (1e-5, 1e-4, 1e-2)  # λ of the exact checks
MORE = {30: (50, 150, 400), 60: (400,)}  # samples at which λ_min(ΦᵀΦ) is looked at besides


@dataclass(frozen=True)
class Regression:
    """One kernel in one dimension: its error against N."""

    kernel: str
    dim: int
    degree: int
    alpha: float
    samples: tuple[int, ...]
    seeds: int
    first: int = 0  # of the seeds


@dataclass(frozen=True)
class Memorised:
    """The memorising solution u′ of Lemma E.3 against N, for every kernel of ⟨x, x'⟩ at once."""

    dim: int
    degree: int
    alpha: float
    samples: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Enumerated:
    """Proposition E.1 and Lemma E.2 with all 2^d coordinates of u, for all kernels and some λ."""

    dim: int
    degree: int
    alpha: float
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Inside:
    """Theorem 2 and Lemma E.3 where the constants of their proofs allow it: a huge d, a few samples."""

    dim: int
    degree: int
    alpha: float
    samples: int
    seeds: int


Cell = Regression | Memorised | Enumerated | Inside | Untied | Certified


@dataclass(frozen=True)
class Config:
    dims: tuple[int, ...]
    samples: tuple[int, ...]
    seeds: int
    draws: int  # of samples for λ_min(ΦᵀΦ)
    enumerated: tuple[tuple[int, tuple[int, ...]], ...]  # dimension and samples
    inside: tuple[tuple[int, int], ...]
    fresh: tuple[int, ...] = ()  # dimensions that are run with new seeds, to see how N grows with d
    untied: tuple[tuple[tuple[int, tuple[int, ...]], ...], int] = (((8, (60, 120, 240)),), 3)  # d, its N; seeds


PROFILES = {
    "smoke": Config((12, 24), (60, 160), 2, 3, ((8, (60, 400)),), ((100_000, 5),)),
    "laptop": Config((12, 20, 30, 40, 60), (100, 300, 1000), 3, 10, ((9, (150, 1000)),), ((100_000, 5),)),
    "paper": Config(
        (12, 20, 30, 40, 60), (100, 300, 1000, 2000, 4000), 5, 10,
        ((10, (200, 2000)), (12, (600, 2500))), ((100_000, 5), (300_000, 34)), (12, 20),
        (((12, (500, 700, 850, 1000, 1200, 1500)), (20, (1000, 2000, 3000, 4000, 6000, 8000))), 10),
    ),
}  # fmt: skip


def cells(config: Config) -> list[Cell]:
    few = {dim: int(theorem2_samples(dim, DEGREE)) for dim in config.dims}  # inside Theorem 2, with 1 for its constant
    found: list[Cell] = []
    for dim in reversed(config.dims):
        sizes = (few[dim], *config.samples)
        found += [Regression(kernel, dim, DEGREE, ALPHA, sizes, config.seeds) for kernel in KERNELS]
        found.append(Memorised(dim, DEGREE, ALPHA, tuple(sorted({*sizes, *_more(config, dim)})), config.draws))
    for dim in config.fresh:
        found += [Regression(kernel, dim, DEGREE, ALPHA, config.samples, config.seeds, FRESH) for kernel in KERNELS]
    found += [Enumerated(dim, DEGREE, ALPHA, samples) for dim, samples in config.enumerated]
    found += theorem2_untied.cells(*config.untied)
    return found + [Inside(dim, DEGREE, ALPHA, samples, config.seeds) for dim, samples in config.inside]


def _more(config: Config, dim: int) -> tuple[int, ...]:
    return tuple(n for n in MORE.get(dim, ()) if n <= max(config.samples))


def cost(cell: Cell) -> Cost:
    if isinstance(cell, Untied | Certified):
        return Cost(*theorem2_untied.work(cell))
    if isinstance(cell, Inside):
        rows = cell.samples + TESTS
        return Cost(cell.seeds * len(KERNELS) * 4 * rows * cell.samples * cell.dim, 40 * rows * cell.dim)
    cubes, most = sum(n**3 for n in cell.samples), max(cell.samples)
    if isinstance(cell, Enumerated):
        each = cubes + len(cell.samples) * 2**cell.dim * (most * cell.dim + 40)
        return Cost(len(KERNELS) * len(STRENGTHS) * each, 8 * 2**cell.dim * (most + 20) + 1e7)
    if isinstance(cell, Memorised):
        return Cost(cell.seeds * 2 * cubes, 40 * most**2)
    return Cost(cell.seeds * (10 * cubes / 3 + 100 * sum(n**2 for n in cell.samples)), 60 * most**2)


def run(cell: Cell) -> xr.Dataset:
    if isinstance(cell, Untied | Certified):
        return theorem2_untied.run(cell)
    if isinstance(cell, Regression):
        return _regression(cell)
    if isinstance(cell, Memorised):
        return _memorised(cell)
    return _enumerated(cell) if isinstance(cell, Enumerated) else _inside(cell)


def claims(results: Results) -> list[Claim]:
    return [*theorem2_report.claims(results), *theorem2_untied_report.claims(results)]


def draw(results: Results) -> list[Figure]:
    return theorem2_figures.figures(results)


def _regression(cell: Regression) -> xr.Dataset:
    """Errors, norms and λ of one kernel."""
    table = CubeKernel.of(correlation_kernel(cell.kernel), cell.dim)
    coefficient = table.spectrum.coefficient(cell.degree)
    found: list[dict[str, Any]] = []
    for seed in range(cell.first, cell.first + cell.seeds):
        problem = Product(cell.dim, cell.degree, cell.alpha, seed)
        (X, Y), (C, labels) = problem.sample(max(cell.samples), "train"), problem.sample(CHOOSING, "choose")
        K, to_choose = table.exact(X), table.exact(C, X)
        for n in cell.samples:
            path = _regressions.path(K[:n, :n], Y[:n], to_choose[:, :n], labels)
            risk = product_risk(table, X[:n], path.betas, problem.coordinates, cell.alpha)
            errors, norms = risk.outputs, np.einsum("rnk,rnk->rk", path.betas, K[:n, :n] @ path.betas)
            lacks = np.maximum(cell.alpha - coefficient * np.sqrt(norms), 0.0) ** 2  # Lemma E.2
            at = path.chosen
            found.append(
                {
                    "error": errors[at],
                    "composite": risk.composite[at],
                    "best": errors.sum(axis=1).min(),
                    "ridge": path.ridges[at],
                    "inside": path.inside,
                    "norm": norms[at],
                    "largest": norms.max(axis=0),
                    "slack": ((errors - lacks) / cell.alpha**2).min(),
                }
            )
    return _gathered(found, cell.samples, cell.seeds).assign(coefficient=coefficient)


def _memorised(cell: Memorised) -> xr.Dataset:
    found: list[dict[str, Any]] = []
    for seed in range(cell.seeds):
        X, Y = Product(cell.dim, cell.degree, cell.alpha, seed).sample(max(cell.samples), "train")
        for n in cell.samples:
            held = memorise(X[:n], Y[:n], cell.degree)
            misfit = np.abs(held.predict(X[:n]) - Y[:n]).max() if held.exists else np.nan
            labels = (Y[:n] ** 2).sum(axis=0)
            found.append({"quadratic": held.quadratics, "smallest": held.smallest, "misfit": misfit, "labels": labels})
    return _gathered(found, cell.samples, cell.seeds)


def _gathered(found: list[dict[str, Any]], samples: tuple[int, ...], seeds: int) -> xr.Dataset:
    """Records of (seed, n), in this order, as a data set."""
    stacked = {name: np.stack([np.asarray(one[name], np.float64) for one in found]) for name in found[0]}
    axes = ("seed", "n", "output")
    return xr.Dataset(
        {
            name: (axes[: values.ndim + 1], values.reshape(seeds, len(samples), *values.shape[1:]))
            for name, values in stacked.items()
        }
    ).assign_coords(n=list(samples))


def _enumerated(cell: Enumerated) -> xr.Dataset:
    problem = Product(cell.dim, cell.degree, cell.alpha, 0)
    x = corners(cell.dim)
    truth, number = problem.function(x), sum(1 << j for j in problem.coordinates)
    shape = (len(KERNELS), len(STRENGTHS), len(cell.samples))
    parts = {name: np.zeros(shape) for name in ("function", "norm")}
    outputs = {name: np.zeros((*shape, cell.degree)) for name in ("error", "size")}
    coefficients = np.zeros(len(KERNELS))
    for a, kernel in enumerate(KERNELS):
        table = CubeKernel.of(correlation_kernel(kernel), cell.dim)
        for b, strength in enumerate(STRENGTHS):
            for c, n in enumerate(cell.samples):
                fit = correlation_regression(table, *problem.sample(n, "train"), strength=strength)
                u = fit.coordinates()
                values = u.at_corners()
                parts["function"][a, b, c] = np.abs(values - fit.predict(x / cell.dim**0.5)).max()
                parts["norm"][a, b, c] = abs(u.norms.sum() / fit.norms.sum() - 1)
                outputs["error"][a, b, c] = ((values - truth) ** 2).mean(axis=0)
                outputs["size"][a, b, c] = np.sqrt(u.norms)
                coefficients[a] = u.coefficients[number]
    polarised = data.hierarchy.polarised_hierarchy(cell.dim, problem.coordinates, alpha=cell.alpha)
    gap = np.abs(polarised(x / cell.dim**0.5) * cell.degree**0.5 - truth).max()
    product = np.abs(problem.function.parts(x)[1] - cell.alpha * character(problem.coordinates, x)[:, None]).max()
    axes = ("kernel", "strength", "n")
    return xr.Dataset(
        {name: (axes, values) for name, values in parts.items()}
        | {name: ((*axes, "output"), values) for name, values in outputs.items()}
        | {"coefficient": (("kernel",), coefficients), "polarised": max(gap, product)}
    ).assign_coords(kernel=list(KERNELS), strength=list(STRENGTHS), n=list(cell.samples))


def _inside(cell: Inside) -> xr.Dataset:
    errors = np.zeros((cell.seeds, len(KERNELS), len(STRENGTHS)))
    smallest, floors, n = np.zeros(cell.seeds), np.zeros(cell.seeds), cell.samples
    for seed in range(cell.seeds):
        problem = Product(cell.dim, cell.degree, cell.alpha, seed)
        (X, Y), (T, labels) = problem.sample(n, "train"), problem.sample(TESTS, "test")
        held = memorise(X, Y, cell.degree)
        smallest[seed], floors[seed] = held.smallest, held.floor(cell.alpha).min()
        rows = np.vstack([X, T]) / cell.dim**0.5
        for a, kernel in enumerate(KERNELS):
            K = correlation_kernel(kernel).exact(rows, rows[:n])
            for b, strength in enumerate(STRENGTHS):
                beta = np.linalg.solve(K[:n] + n * strength * np.eye(n), Y)
                errors[seed, a, b] = ((K[n:] @ beta - labels) ** 2).sum(axis=1).mean()
    return xr.Dataset(
        {"error": (("seed", "kernel", "strength"), errors), "smallest": (("seed",), smallest)}
        | {"floor": (("seed",), floors)}
    ).assign_coords(kernel=list(KERNELS), strength=list(STRENGTHS))
