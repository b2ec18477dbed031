"""What can be computed without a network: Example 4.1, Lemma B.2 and Propositions C.1 and C.2."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import numpy as np
import scipy.special
import xarray as xr

from offtangent.data.hierarchy import SmoothRidges
from offtangent.data.preprocessing import unit_norm
from offtangent.lab import Claim, Results
from offtangent.lab.statistics import mean_interval
from offtangent.papers.allen_zhu_li._existence import all_of
from offtangent.theory.allen_zhu_li.concept import series_complexity, series_smoothness
from offtangent.theory.allen_zhu_li.gaussian_matrices import sparse_norm_bound

EXACT = 1e-9
DELTA = 0.1  # with which probability Proposition C.2 may fail
ORDERS = np.arange(41)
FACTORIALS = np.array([float(math.factorial(i)) for i in ORDERS])
EXAMPLES = {
    "e^z − 1": np.where(ORDERS > 0, 1 / FACTORIALS, 0.0),
    "sin": np.where(ORDERS % 2 == 1, (-1.0) ** (ORDERS // 2) / FACTORIALS, 0.0),
    "cos": np.where(ORDERS % 2 == 0, (-1.0) ** (ORDERS // 2) / FACTORIALS, 0.0),
    "½ + z³": np.array([0.5, 0.0, 0.0, 1.0]),
}


@dataclass(frozen=True)
class Sizes:
    """The complexity 𝔠_ε of one series against ε (Example 4.1)."""

    series: str
    epsilons: tuple[float, ...]


@dataclass(frozen=True)
class General:
    """Random maps of Concept 1 and what Lemma B.2 makes of them."""

    outputs: int
    terms: int
    dim: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Lengths:
    """How often a Gaussian vector is longer than Proposition C.1 says, exactly."""

    width: int
    t: tuple[float, ...]


@dataclass(frozen=True)
class Matrices:
    """The longest ‖Mv‖ of s-sparse unit vectors v, by every choice of s columns, which DELTA of the draws exceed."""

    rows: int
    columns: int
    sparsity: int
    draws: int
    seeds: int


Kind = Sizes | General | Lengths | Matrices
SHAPES = ((1, 16, 1), (16, 64, 1), (256, 64, 1), (16, 24, 2), (64, 12, 3), (1, 1, 1), (8, 8, 8), (16, 32, 32))


def cells(seeds: int) -> list[Kind]:
    """The same in every profile, but for the seeds. Of `SHAPES` the last three have s = m: all v."""
    return [
        *(Sizes(name, tuple(10.0**-i for i in range(2, 13, 2))) for name in EXAMPLES),
        General(3, 2, 5, 100, seeds),
        *(Lengths(width, (1.0, 2.0, 4.0, 8.0, 16.0)) for width in (1, 16, 256, 4096)),
        *(Matrices(*shape, 400, seeds) for shape in SHAPES),
    ]


def run(cell: Kind) -> xr.Dataset:
    """𝔠_ε at each ε; how F′ differs from F for each map; tails at each t; the longest ‖Mv‖."""
    if isinstance(cell, Matrices):
        found = [_matrices(cell, seed) for seed in range(cell.seeds)]
        return xr.Dataset({"longest": ("seed", np.array(found))}).assign_coords(seed=np.arange(cell.seeds))
    if isinstance(cell, Sizes):
        return _sizes(cell)
    if isinstance(cell, Lengths):
        return _lengths(cell)
    parts = [_general(cell, seed) for seed in range(cell.seeds)]
    table = {name: ("seed", np.array([part[name] for part in parts])) for name in parts[0]}
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def _sizes(cell: Sizes) -> xr.Dataset:
    sizes = [float(series_complexity(EXAMPLES[cell.series], epsilon=epsilon)) for epsilon in cell.epsilons]
    return xr.Dataset({"size": ("epsilon", np.array(sizes))}, coords={"epsilon": list(cell.epsilons)})


def _general(cell: General, seed: int) -> dict[str, float]:
    series = np.random.default_rng(seed).standard_normal(6).tolist()
    F = SmoothRidges.random(cell.dim, cell.outputs, cell.terms, series, key=jax.random.key(seed))
    X = unit_norm(np.random.default_rng([seed, cell.dim]).standard_normal((cell.samples, cell.dim)))
    found = F.general()
    assert found.terms == 2 * cell.terms
    return {
        "difference": float(np.abs(F(X) - found(X)).max()),
        "smooth": float(series_smoothness(found.series).max() / series_smoothness(np.array(series))),
    }


def _lengths(cell: Lengths) -> xr.Dataset:
    t = np.array(cell.t)
    beyond = cell.width + 2 * np.sqrt(cell.width * t) + 2 * t
    return xr.Dataset({"tail": ("t", scipy.special.gammaincc(cell.width / 2, beyond / 2))}, coords={"t": t})


def _matrices(cell: Matrices, seed: int) -> float:
    rng = np.random.default_rng([seed, cell.rows, cell.columns, cell.sparsity])
    M = rng.standard_normal((cell.draws, cell.rows, cell.columns))
    G = M.transpose(0, 2, 1) @ M
    longest = np.zeros(cell.draws)
    for chosen in itertools.combinations(range(cell.columns), cell.sparsity):
        part = G[:, chosen][:, :, chosen]
        longest = np.maximum(longest, np.linalg.eigvalsh(part)[:, -1])
    return float(np.sqrt(np.quantile(longest, 1 - DELTA)))


def of_sizes(results: Results) -> list[Claim]:
    """Example 4.1: ε𝔠_ε(φ) falls with ε, between every two ε of the grid."""
    powers = {}
    for cell, data in results:
        logs = np.log(data["size"].values)
        powers[cell.series] = np.diff(logs) / -np.diff(np.log(data["epsilon"].values))
    least, most = (float(part) for part in (results.first.epsilons[-1], results.first.epsilons[0]))
    listed = ", ".join(f"{name}: {values[0]:.2g} and {values[-1]:.2g}" for name, values in powers.items())
    return [
        Claim.at_most(
            max(float(values.max()) for values in powers.values()),
            1.0,
            strict=True,
            identity=True,
            source="Example 4.1",
            statement="𝔠_ε(φ) = o(1/ε) for e^z − 1, sin, cos and polynomials, C* = 1: it grows by less than (1/ε)^1",
            measured=f"largest power of 1/ε between neighbouring ε from {most:g} to {least:g}",
            note=f"At the largest and the smallest ε: {listed}. With C* = 10⁴ it sets in at ε that have no name.",
        )
    ]


def of_general(results: Results) -> list[Claim]:
    """Lemma B.2."""
    cell = results.first
    where = f"k = {cell.outputs}, p = {cell.terms}, d = {cell.dim}, {cell.samples} unit vectors, {cell.seeds} maps"
    return [
        Claim.at_most(
            float(all_of(results, "difference").max()),
            EXACT,
            identity=True,
            source="Lemma B.2",
            statement="F′(x) = F(x) for all unit vectors x",
            measured=f"largest difference, {where}",
        ),
        Claim.at_most(
            float(all_of(results, "smooth").max()),
            1.0,
            identity=True,
            source="Lemma B.2",
            statement="F′ of Definition B.1 has 2p ridges and 𝔠_s(F′) ≤ 𝔠_s(F)",
            measured=f"largest ratio of the two sides, {where}",
        ),
    ]


def of_lengths(results: Results) -> list[Claim]:
    """Proposition C.1."""
    cell = results.first
    ratios = np.stack([data["tail"].values / np.exp(-data["t"].values) for _, data in results])
    at = np.unravel_index(int(ratios.argmax()), ratios.shape)
    widths = [one.width for one, _ in results]
    return [
        Claim.at_most(
            float(ratios.max()),
            1.0,
            source="Proposition C.1",
            statement="‖g‖² − m ≥ 2√(mt) + 2t with probability at most e^(−t), g ~ N(0, I) of m dimensions, t ≥ 1",
            measured=f"largest ratio of the two sides, exact, m = {', '.join(map(str, widths))}, t = "
            f"{', '.join(f'{t:g}' for t in cell.t)}; at m = {widths[at[0]]}, t = {cell.t[at[1]]:g}",
        )
    ]


def of_matrices(results: Results) -> list[Claim]:
    """Proposition C.2, its two parts."""
    found = []
    for whole, statement in (
        (True, "‖M‖₂ ≤ √n + √m + t but with probability e^(−t²/2)"),
        (False, "‖Mv‖₂ ≤ (√n + √s + √(2 ln(C(m, s)/δ)))‖v‖₂ for all s-sparse v, which is O(√n + √s log m)"),
    ):
        chosen = [(cell, data) for cell, data in results if (cell.sparsity == cell.columns) == whole]
        if not chosen:
            continue
        ratios = [mean_interval(data["longest"].values / _norm_bound(cell, delta=DELTA)) for cell, data in chosen]
        shapes = ", ".join(f"({cell.rows}, {cell.columns}, {cell.sparsity})" for cell, _ in chosen)
        printed = max(
            float(data["longest"].mean()) / (math.sqrt(cell.rows) + math.sqrt(cell.sparsity) * math.log(cell.columns))
            for cell, data in chosen
            if cell.columns > 1
        )
        found.append(
            Claim.at_most(
                max(ratios, key=lambda ratio: ratio.high),
                1.0,
                source="Proposition C.2",
                statement=f"{statement}, δ = {DELTA:g}",
                measured="what is exceeded with probability δ over the bound, the largest ratio, 95 % interval, by "
                f"every choice of s columns, {results.first.draws} draws and {results.first.seeds} seeds; "
                f"(n, m, s) = {shapes}",
                note="" if whole else f"Of √n + √s ln m, as printed, it is {printed:.2g} at most.",
            )
        )
    return found


def _norm_bound(cell: Matrices, *, delta: float) -> float:
    return sparse_norm_bound(cell.rows, cell.columns, cell.sparsity, delta=delta)


JUDGES: Mapping[str, Callable[[Results], list[Claim]]] = {
    "Sizes": of_sizes,
    "General": of_general,
    "Lengths": of_lengths,
    "Matrices": of_matrices,
}
