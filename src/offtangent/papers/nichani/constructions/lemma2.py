"""Lemma 2: for m ≥ d^{10k} there are, with high probability, weights W_L at which f_L is a polynomial of degree k.

    vec(W_L) ∈ span(P_{≤k}),      E_n(f_L(x; W_L) − f_k(x))² ≲ d^k/n      and      ‖W_L‖_F² ≲ d^{k−1}        (23)

P_{≤k} projects on the first n_k eigenvectors of the feature covariance Σ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from offtangent.lab import Claim, Cost, Results, Sweep, over_seeds
from offtangent.lab.statistics import slope_interval
from offtangent.papers.nichani.constructions._setting import COLOURS, NAMES, network, on_sphere, planted
from offtangent.report import Figure, finished, line, new_plot, series
from offtangent.special.sphere import polynomial_dimension, tangent_eigenvalues
from offtangent.theory import FeatureCovariance
from offtangent.theory.nichani.joint import express_low_degree

# The degree up to which Σ is expanded, at d ≤ 5; the rest is 10⁻¹⁵ of the trace.
HARMONICS = 16
SOURCE = "Lemma 2, eq. (23)"


@dataclass(frozen=True)
class Dense:
    """W_L for a polynomial of degree k from n samples; Σ by harmonics, or from `unlabelled` inputs where there are."""

    sigma: str
    degree: int
    dim: int
    samples: int
    width: int
    unlabelled: int
    seeds: int


@dataclass(frozen=True)
class Config:
    """For some σ, k and d pairs of n and m that grow together, and for some σ and k dimensions at one width."""

    grown: tuple[tuple[str, int, int, tuple[tuple[int, int], ...]], ...]
    dims: tuple[tuple[str, int, tuple[int, ...]], ...]
    width: int = 1024
    seeds: int = 10


PROFILES = {
    "smoke": Config(
        grown=(("softplus", 1, 5, ((24, 8), (155, 96), (1000, 1000))),),
        dims=(("sigmoid", 1, (4, 12, 36)),),
        seeds=6,
    ),
    "laptop": Config(
        grown=(
            ("softplus", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2048))),
            ("sigmoid", 2, 4, ((28, 8), (89, 30), (280, 112), (885, 756), (2800, 1600))),
        ),
        dims=(("sigmoid", 1, (3, 8, 20, 50, 120)), ("sigmoid", 2, (3, 5, 8, 11, 14))),
    ),
    "paper": Config(
        grown=(
            ("softplus", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2560))),
            ("sigmoid", 1, 5, ((24, 8), (76, 34), (240, 144), (759, 608), (2400, 2560))),
            ("softplus", 2, 4, ((28, 8), (89, 34), (280, 144), (885, 756), (2800, 3200))),
            ("sigmoid", 2, 4, ((28, 8), (89, 34), (280, 144), (885, 756), (2800, 3200))),
        ),
        dims=(
            ("softplus", 1, (3, 10, 30, 100, 300)),
            ("sigmoid", 1, (3, 10, 30, 100, 300)),
            ("sigmoid", 2, (3, 5, 9, 15, 25)),
        ),
    ),
}


def cells(config: Config) -> Iterator[Dense]:
    for sigma, degree, dim, sizes in config.grown:
        for samples, width in sizes:
            yield Dense(sigma, degree, dim, samples, width, 0, config.seeds)
    for sigma, degree, dims in config.dims:
        for dim in dims:
            rank = polynomial_dimension(dim, degree)
            yield Dense(sigma, degree, dim, 4 * rank, config.width, 6 * rank, config.seeds)


def cost(cell: Dense) -> Cost:
    half, n, N = cell.width / 2, cell.samples, cell.unlabelled
    if N:
        work = N**2 * (2 * half + N) + (N + n) * half * 200
        return Cost(cell.seeds * work + 5e8, 8 * (4 * N**2 + (N + n) * half))
    rank = polynomial_dimension(cell.dim, cell.degree)
    work = half**2 * (60 * HARMONICS + 500 * cell.dim) + n * half * (80 + 4 * rank * cell.dim)
    return Cost(cell.seeds * work, 80 * half**2 + 8 * n * half)


def run(cell: Dense) -> xr.Dataset:
    return over_seeds(_one, cell)


def claims(results: Results) -> Iterator[Claim]:
    for (sigma, degree), cells in results.where(Dense).groups("sigma", "degree"):
        seeds, name = cells.first.seeds, f"{NAMES[sigma]}, k = {degree}"
        for (dim,), grown in cells.where(unlabelled=0).groups("dim"):
            m = grown.field("width")
            unit = f", m from {m[0]:.0f} to {m[-1]:.0f}, Σ by harmonics"
            if sweep := grown.sweep("samples", f"d = {dim}, {seeds} seeds", symbol="n", noun="n", unit=unit):
                yield from _on_samples(sweep, name)
        for (width,), long in cells.only(lambda cell: cell.unlabelled > 0).groups("width"):
            about = f"m = {width}, n = 4n_k, Σ from 6n_k inputs, {seeds} seeds"
            if sweep := long.sweep("dim", about, symbol="d", noun="dimensions"):
                yield from _on_dimensions(sweep, name)


def _on_samples(sweep: Sweep[Dense], name: str) -> Iterator[Claim]:
    n, m, ratios = sweep.sizes, sweep.results.field("width"), sweep["ratio"].mean(axis=0, keepdims=True)
    needed = float(sweep.cell.dim) ** (10 * sweep.cell.degree)
    power = np.log(m[-1] / m[0]) / np.log(n[-1] / n[0])
    yield sweep.slope(
        "error",
        "≤",
        -1.0,
        source=SOURCE,
        statement=f"E_n(f_L(x; W_L) − f_k(x))² falls at least like 1/n if the width grows with n; {name}",
        measured=f"log-log slope in n, {sweep.where}",
        note=f"At a fixed width the error has a floor of O(1/m); here m grows like n^{power:.2f}.",
    )
    yield sweep.worst(
        ratios,
        of="largest ratio of the two sides over n, mean over seeds",
        source=SOURCE,
        statement=f"E_n(f_L(x; W_L) − f_k(x))² ≤ d^k/n, the constant of ≲ as one; {name}",
        inside=bool(m.min() >= needed),
        note=f"The lemma has m ≥ d^(10k) = {needed:.1g}. Ratios: {', '.join(f'{one:.2g}' for one in ratios[0])}.",
    )


def _on_dimensions(sweep: Sweep[Dense], name: str) -> Iterator[Claim]:
    degree, dims = sweep.cell.degree, sweep.sizes
    said = f"Log-log slope of ‖W_L‖_F² in d: {slope_interval(dims, sweep['norm2'], level=0.99):.3f}."
    statement = f"‖W_L‖_F² = O(1/min_(j≤k) ξ_j), and Assumption 3 says 1/min ξ_j = Θ(d^(k−1)); {name}"
    if dims[-1] >= 100 * dims[0] or sweep.results.profile == "smoke":
        yield sweep.slope("scaled", "≤", 0.0, source=SOURCE, statement=statement, note=said)
    elif degree == 1:
        # For k = 2, n_k grows like d², and two decades of d are out of reach in every profile.
        few = f"{len(dims)} dimensions from {dims[0]:.0f} to {dims[-1]:.0f} are less than two decades."
        yield Claim.not_run(reason="size", source=SOURCE, statement=statement, profile="paper", why=f"{few} {said}")
    ends = sweep["norm2"].mean(axis=0)
    yield sweep.worst(
        sweep["scaled"].mean(axis=0, keepdims=True),
        of="largest ratio of the two sides over d, mean over seeds",
        source=SOURCE,
        statement=f"‖W_L‖_F² ≤ 1/min_(j≤k) ξ_j, what an infinite width gives for E f_k² = 1; {name}",
        inside=bool(sweep.cell.width >= float(dims.min()) ** (10 * degree)),
        note=f"{said} The lemma has m ≥ d^(10k). ‖W_L‖_F² from {ends[0]:.4g} to {ends[-1]:.4g}.",
    )


def draw(results: Results) -> Iterator[Figure]:
    dense = results.where(Dense)
    if len(dense) < 2:
        return
    plot, said = new_plot(), []
    for ((sigma, degree), cells), colour in zip(dense.groups("sigma", "degree"), COLOURS, strict=False):
        grown = cells.where(unlabelled=0)
        if len(grown) < 2:
            continue
        dim, n, m = grown.first.dim, grown.field("samples"), grown.field("width")
        name = f"{NAMES[sigma]}, k = {degree}, d = {dim}"
        series(plot, n, grown.table("error"), name=name, colour=colour)
        line(plot, n, dim**degree / n, name=f"d^k/n, k = {degree}", colour=colour, dash="dot")
        said.append(f"m from {m[0]:.0f} to {m[-1]:.0f} for {name}")
    caption = f"The width grows with n: {'; '.join(said)}. {dense.first.seeds} seeds (bars: all of them)."
    title = "Lemma 2: the linear part at W_L fits a dense polynomial, better than d^k/n"
    yield finished(plot, title, caption, x="samples n", y="E_n(f_L at W_L − f_k)²")


def _one(cell: Dense, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, unlabelled, at = jax.random.split(key, 4)
    net = network(cell.sigma, cell.dim, cell.width, key=jax.random.fold_in(at, cell.width))
    target = planted(cell.dim, cell.degree, 0, key=of_target)
    rank = polynomial_dimension(cell.dim, cell.degree)
    if cell.unlabelled:
        fresh = on_sphere(cell.unlabelled, cell.dim, key=unlabelled)
        covariance = FeatureCovariance.of_samples(net, fresh, count=rank)
    else:
        covariance = FeatureCovariance.of_harmonics(net, degree=HARMONICS, count=rank)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    found = express_low_degree(covariance, X, target.low(X), rank=rank)
    smallest = float(tangent_eigenvalues(net.activation, dim=cell.dim, degree=cell.degree).min())
    return {
        "error": found.error,
        "ratio": found.error * cell.samples / cell.dim**cell.degree,
        "norm2": found.norm2,
        "scaled": found.norm2 * smallest,
    }
