"""Lemma 1: for m ≥ d^{2k} there are, with high probability, weights W_Q at which f_Q is the sparse term.

    max_i |f_Q(x_i; W_Q) − f_sp(x_i)| ≲ d^k/√m      and      ‖W_Q‖⁴_{2,4} ≲ d^{k−1}                        (22)

The exponents are judged where the lemma's width is had: for k = 1 at d = 8 and over d ≤ 128, for k = 2, 3 at small d.

Section 4.1 goes on: column signs S leave f_Q as it is and take f_L away, in the mean over S like m^{−1/2}, as if W_Q
were a random direction u, for which E_μ f_L(x; u)² ≈ ‖u‖²/m.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent.lab import Claim, Cost, Results, over_seeds
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import mean_interval, slope_interval
from offtangent.lab.sweeps import Sweep
from offtangent.networks import TwoLayer
from offtangent.papers.nichani.constructions import _hypotheses as asked
from offtangent.papers.nichani.constructions._setting import (
    COLOURS,
    DRAWS,
    NAMES,
    ROUNDING,
    SIGMAS,
    generator,
    network,
    on_sphere,
)
from offtangent.report import Figure, finished, line, new_plot, series
from offtangent.special.sphere import harmonic_coefficients
from offtangent.theory.bai_lee.expressivity import quadratic_part
from offtangent.theory.nichani.signed import neuron_outputs, sign_energy
from offtangent.theory.nichani.sparse import SphereRidge, express_sparse

# With which probability the bound on the largest error, which is told beside the exponent, may fail.
DELTA = 0.1


@dataclass(frozen=True)
class Sparse:
    """W_Q for R = 2 terms of degree k + 1, and random signs, at one width and dimension; `degree` is k."""

    sigma: str
    degree: int
    width: int
    dim: int
    samples: int
    seeds: int


@dataclass(frozen=True)
class Config:
    """Each σ and k over widths, at one dimension, and over dimensions, at the middle width; `inside`, m ≥ d^(2k).

    `wide` has σ, k, d and widths, `long` σ, k, m and dimensions.
    """

    widths: tuple[int, ...]
    dims: tuple[int, ...]
    kinds: tuple[tuple[str, int], ...] = (
        ("sigmoid", 1),
        ("sigmoid", 2),
        ("sigmoid", 3),
        ("softplus", 1),
        ("softplus", 3),
    )
    dim: int = 8
    samples: int = 30
    seeds: int = 10
    wide: tuple[tuple[str, int, int, tuple[int, ...]], ...] = ()
    long: tuple[tuple[str, int, int, tuple[int, ...]], ...] = ()


WIDE = (("sigmoid", 2, 4, (256, 1024, 4096, 16_384, 65_536)), ("sigmoid", 3, 3, (768, 3072, 12_288, 49_152, 196_608)))
LONG = (("sigmoid", 1, 16_384, (4, 8, 16, 32, 64, 128)), ("sigmoid", 2, 16_384, (3, 4, 6, 8, 11)))
PROFILES = {
    "smoke": Config(
        widths=(64, 512, 4096),
        dims=(5, 20, 80),
        kinds=(("sigmoid", 2),),
        seeds=6,
        wide=(("sigmoid", 2, 4, (256, 2048, 16_384)),),
        long=(("sigmoid", 1, 8192, (5, 20, 80)),),
    ),
    "laptop": Config(
        widths=(128, 400, 1280, 4000, 12_800),
        dims=(5, 16, 50, 160, 500),
        kinds=(("sigmoid", 1), ("sigmoid", 2), ("sigmoid", 3)),
        wide=(("sigmoid", 2, 4, (256, 1024, 4096, 16_384)), ("sigmoid", 3, 3, (768, 3072, 12_288, 49_152))),
        long=(("sigmoid", 1, 8192, (4, 10, 28, 80)), ("sigmoid", 2, 8192, (3, 5, 7, 9))),
    ),
    "paper": Config(
        widths=(128, 512, 2048, 8192, 32_768),
        dims=(5, 16, 50, 160, 500, 1600),
        wide=WIDE,
        long=(*LONG, ("sigmoid", 3, 262_144, (3, 4, 5, 6, 8))),
    ),
}


def cells(config: Config) -> Iterator[Sparse]:
    middle = config.widths[len(config.widths) // 2]
    sizes = [(width, config.dim) for width in config.widths] + [(middle, dim) for dim in config.dims]
    all_of_them = [(sigma, degree, width, dim) for sigma, degree in config.kinds for width, dim in sizes]
    all_of_them += [(sigma, degree, width, dim) for sigma, degree, dim, widths in config.wide for width in widths]
    all_of_them += [(sigma, degree, width, dim) for sigma, degree, width, dims in config.long for dim in dims]
    for kind in dict.fromkeys(all_of_them):
        yield Sparse(*kind, config.samples, config.seeds)


def cost(cell: Sparse) -> Cost:
    entries = cell.samples * cell.width
    flops = cell.seeds * entries * (12 * cell.dim + 8 * DRAWS + 600)
    return Cost(flops + 1e9, 8 * (5 * entries + 3 * cell.dim * cell.width))


def run(cell: Sparse) -> xr.Dataset:
    return over_seeds(_one, cell)


def claims(results: Results[Sparse]) -> Iterator[Claim]:
    sparse = results.where(Sparse)
    for (sigma, degree), cells in sparse.groups("sigma", "degree"):
        cell, name = cells.first, f"{NAMES[sigma]}, k = {degree}"
        for (dim,), wide in cells.groups("dim"):
            about = f"{cell.samples} inputs, d = {dim}, R = 2, {cell.seeds} seeds"
            if sweep := wide.along("width").sweep("width", about):
                yield from _on_widths(sweep, f"{name}, d = {dim}")
        for (width,), long in cells.groups("width"):
            about = f"{cell.samples} inputs, m = {width}, R = 2, {cell.seeds} seeds"
            if sweep := long.along("dim").sweep("dim", about, symbol="d", noun="dimensions"):
                yield from _on_dimensions(sweep, f"{name}, m = {width}")
    if len(sparse):
        yield from _missing(sparse)
        yield from _on_signs(sparse)


def _assumed(sweep: Sweep[Sparse]) -> tuple[Hypothesis, ...]:
    """The lemma's m ≥ d^(2k) at every size, and the assumptions on σ."""
    worst = max((one for one, _ in sweep.results), key=lambda one: one.dim ** (2 * one.degree) / one.width)
    return (
        asked.width_of_lemma_1(worst.width, worst.dim, worst.degree),
        *asked.on_activation(worst.sigma, worst.dim, worst.degree),
    )


def _missing(sparse: Results[Sparse]) -> Iterator[Claim]:
    """The exponents that need widths which a record made before they were taken does not have."""
    for (degree,), cells in sparse.where(sigma="sigmoid").groups("degree"):
        for field, letter, others in (("width", "m", "dim"), ("dim", "d", "width")):
            swept = [one.along(field) for _, one in cells.groups(others) if len(one) >= 3]
            if not swept or any(all(cell.width >= cell.dim ** (2 * degree) for cell, _ in one) for one in swept):
                continue
            yield Claim.not_run(
                source="Lemma 1, eq. (22)",
                statement=f"max_i |f_Q(x_i; W_Q) − f_sp(x_i)| = O(d^k/√m) over {letter}, at m ≥ d^(2k); "
                f"{NAMES['sigmoid']}, k = {degree}",
                reason="size",
                why=f"No sweep over {letter} has m ≥ d^(2k) throughout.",
                profile="paper" if field == "dim" and degree == 3 else "laptop",
            )


def _on_widths(sweep: Sweep[Sparse], name: str) -> Iterator[Claim]:
    degree = sweep.cell.degree
    yield sweep.slope(
        "error",
        "≤",
        -0.5,
        source="Lemma 1, eq. (22)",
        statement=f"f_Q at W_Q is Σ α_i(β_iᵀx)^{degree + 1} up to an error of O(m^(−1/2)); {name}",
        measured=f"log-log slope in m, 99 % interval, root mean square over {sweep.where}",
        hypotheses=_assumed(sweep),
        note=f"max_i |f_Q(x_i) − f_sp(x_i)| is {sweep['worst'].max():.2f} √(Σ_i E(…)²/δ) or less, which by Chebyshev "
        f"it exceeds with probability δ = {DELTA:g} at most.",
    )
    yield sweep.equals(
        sweep["ratio"].mean(axis=1, keepdims=True),
        1.0,
        of="measured over stated at each input",
        source="Lemma 1",
        statement=f"the error's mean square is Σ_i h_i⁻¹(β_iᵀx)⁴ Var[σ''(w₀ᵀx)a_i(w₀)], by harmonics; {name}",
    )
    yield sweep.equals(
        sweep["norm_mean"].mean(axis=1, keepdims=True),
        1.0,
        of="measured over stated",
        # For k = 1, a(w) is a constant, and the norm is the same for all W₀ but for rounding.
        pad=ROUNDING,
        source="Lemma 1",
        statement=f"E‖W_Q‖⁴_(2,4) = 4 Σ_i (m/h_i) α_i² d^(k−1) Σ_j γ_j²/(λ_j(σ'')² B(d, j)); {name}",
        note=f"‖W_Q‖⁴ = {sweep['norm4'].mean(axis=0)[-1]:.4g} at the largest width.",
    )


def _on_dimensions(sweep: Sweep[Sparse], name: str) -> Iterator[Claim]:
    degree, constants = sweep.cell.degree, sweep["constant"][0]
    found = slope_interval(sweep.sizes, sweep["norm4"], level=0.99)
    yield sweep.slope(
        "largest",
        "≤",
        float(degree),
        source="Lemma 1, eq. (22)",
        statement=f"√m max_i |f_Q(x_i) − f_sp(x_i)| = O(d^k); {name}",
        measured=f"log-log slope in d, 99 % interval, max_i |f_Q(x_i) − f_sp(x_i)|, {sweep.where}",
        hypotheses=_assumed(sweep),
    )
    mean, bound = sweep["norm4"] / sweep["norm_mean"], DELTA * sweep["norm_bound"]
    yield sweep.worst(
        mean / bound,
        1 + ROUNDING,
        source="Lemma 1, eq. (22)",
        statement="E‖W_Q‖⁴_(2,4) ≤ 8R² d^(k−1)/c, c the smallest λ_j(σ'')² B(d, j) in use, of which Assumption 3 says "
        f"Θ(1); {name}",
        identity=True,
        note=f"Log-log slope of ‖W_Q‖⁴ in d: {found:.3f}; that of d^(k−1) is {degree - 1}; c goes from "
        f"{constants[0]:.3g} to {constants[-1]:.3g}, to a limit. ‖W_Q‖⁴ is at most "
        f"{(sweep['norm4'] / bound).max():.3g} of the right side; by Markov it exceeds 1/δ = {1 / DELTA:g} of it with "
        f"probability δ at most.",
    )


def _on_signs(sparse: Results[Sparse]) -> Iterator[Claim]:
    cell = sparse.first
    where = f"{len(sparse)} choices of σ, k, d and m, {cell.samples} inputs, {cell.seeds} seeds"
    for name, statement in (
        ("signed_ratio", "E_S E_μ f_L(x; W_Q S)² = m⁻¹ Σ_r (A‖w_r‖² + (B − A)(w_(0,r)ᵀw_r)²), by harmonics"),
        ("random_ratio", "a random direction u has E_μ f_L(x; u)² = ‖u‖² E[σ'²]/m"),
    ):
        yield Claim.includes(
            mean_interval(sparse.table(name).mean(axis=1), level=0.99),
            1.0,
            source="Section 4.1",
            statement=statement,
            measured=f"measured over stated, 99 % interval, {where}",
        )
    yield Claim.at_most(
        sparse.table("flip").max(),
        ROUNDING,
        source="Section 4.1",
        statement="f_Q(x; WS) = f_Q(x; W) for column signs S (printed SW)",
        measured=f"largest change, over the largest |f_Q|, {where}",
        identity=True,
    )
    for (sigma, degree, dim), cells in sparse.groups("sigma", "degree", "dim"):
        wide = cells.along("width")
        if sweep := wide.sweep("width", f"d = {dim}, {wide.first.seeds} seeds"):
            yield sweep.slope(
                "signed",
                "≤",
                -0.5,
                source="Section 4.1",
                statement=f"E_S E_μ f_L(x; W_Q S)² = O(m^(−1/2)); {NAMES[sigma]}, k = {degree}, d = {dim}",
                hypotheses=_assumed(sweep),
            )


def draw(results: Results[Sparse]) -> Iterator[Figure]:
    sparse = results.where(Sparse)
    if len(sparse) < 2:
        return
    plot, cell = new_plot(), sparse.along("width").first
    for ((sigma, degree), cells), colour in zip(sparse.groups("sigma", "degree"), COLOURS, strict=False):
        wide, name = cells.along("width"), f"{NAMES[sigma]}, k = {degree}"
        widths, stated = wide.field("width"), np.sqrt(wide.table("expected").mean(axis=0))
        series(plot, widths, wide.table("error"), name=name, colour=colour)
        line(plot, widths, stated, name=f"{name}, stated", colour=colour, dash="dot")
    caption = (
        f"Two terms (β_iᵀx)^(k+1), {cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds (bars: all of them). "
        "Dotted: the exact mean square over W₀."
    )
    title = "Lemma 1: the quadratic part at W_Q tends to the sparse term like m^(−1/2)"
    yield finished(plot, title, caption, x="width m", y="|f_Q at W_Q − f_sp|, root mean square")


def _one(cell: Sparse, key: Key[Array, ""]) -> dict[str, float]:
    own = jax.random.fold_in(jax.random.fold_in(key, cell.degree), list(SIGMAS).index(cell.sigma))
    # A seed has the same inputs and target at every width.
    of_inputs, of_target, at = jax.random.split(own, 3)
    at = jax.random.fold_in(jax.random.fold_in(at, cell.width), cell.dim)
    of_net, of_signs, of_random = jax.random.split(at, 3)
    net = network(cell.sigma, cell.dim, cell.width, key=of_net)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    ridges = [
        SphereRidge(beta / math.sqrt(cell.dim), cell.degree + 1, net.activation, alpha)
        for beta, alpha in zip(on_sphere(2, cell.dim, key=of_target), (1.0, -1.0), strict=True)
    ]
    found = express_sparse(net, ridges)
    errors, expected = found.errors(X), found.mean_square_error(X)
    signs = generator(of_signs).choice([-1.0, 1.0], (DRAWS, cell.width))
    outputs = quadratic_part(net, found.weights, X)
    flipped = quadratic_part(net, found.weights * signs[0], X)
    moved = neuron_outputs(net, X, found.weights) @ signs.T
    energy = sign_energy(net, found.weights)
    return {
        "error": float(np.sqrt(np.mean(errors**2))),
        "largest": float(np.abs(errors).max()),
        "ratio": float(np.mean(errors**2 / expected)),
        "expected": float(np.mean(expected)),
        "worst": float(np.abs(errors).max() / found.error_bound(X, delta=DELTA)),
        "norm4": found.norm4,
        "norm_mean": found.norm4 / found.expected_norm4,
        "norm_bound": found.norm4_bound(delta=DELTA),
        "constant": found.ridges[0].smallest,
        "flip": float(np.abs(flipped - outputs).max() / np.abs(outputs).max()),
        "signed": energy,
        "signed_ratio": float(np.mean(moved**2)) / energy,
        "random_ratio": _random(net, X, of_random),
    }


def _random(net: TwoLayer, X: Float[np.ndarray, "n d"], key: Key[Array, ""]) -> float:
    """E f_L(x; u)² m/(‖u‖² E[σ'²]) for a random direction u, on fresh inputs."""
    u = generator(key).standard_normal(net.W0.shape)
    slope = net.activation.derivative(1)
    (second,) = harmonic_coefficients(lambda z: slope(z) ** 2, dim=net.dim, degree=0)
    outputs = neuron_outputs(net, X, u).sum(axis=1)
    return float(np.mean(outputs**2) * net.width / (np.sum(u**2) * second))
