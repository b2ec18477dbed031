r"""Section 6: random scalars with matched moments bring out the k-th term of the Taylor series.

Pairs of neurons start equal, with opposite signs, and move by $z_+ w_\star$ and $z_- w_\star$, with
$E z_+^j = E z_-^j$ for j < k and $E z_+^k = E z_-^k + 1$, and $\|w_\star\| \sim m^{-1/2k}$. Then $f^{(j)}$ falls like
$m^{-j/2k}$ for j < k, $f^{(k)}$ stays of order one, and $f^{(k+1)}$ falls like $m^{-1/2k}$. It dominates in the end,
but gains on $f^{(1)}$ no faster than $m^{1/2k}$: for k = 4 it is not the largest yet at half a million pairs.

One kind of cell: an order k, a number of pairs, and a shift of the nodes on which z± live. Centred nodes (shift 0) have
equal moments of order k + 1 as well, and $f^{(k+1)}$ falls faster, like $m^{-(k+1)/2k}$; a shift of one half shows the
paper's exponent. The activation is exp(z/2): analytic, and none of its derivatives averages to zero.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from offtangent import data
from offtangent.lab import Claim, Cost, Results, over_seeds
from offtangent.lab.statistics import mean_interval
from offtangent.lab.sweeps import Sweep
from offtangent.networks import TwoLayer
from offtangent.report import Figure, finished, new_plot, power, series
from offtangent.special.activations import Activation
from offtangent.theory.bai_lee.orders import (
    extracting_weights,
    matched_moments,
    order_limit,
    pair_terms,
    ridge_columns,
    term_moments,
)

SHIFTS = (0.0, 0.5)
COLOURS = ("vermillion", "blue", "green", "purple", "orange")
ROUNDING = 1e-5  # of a square: the terms come in float32
HIGH = {2: "²", 3: "³", 4: "⁴"}
DRAWN = "the root mean square over inputs and draws of z±"
EXACT = "its mean over z± in closed form, root mean square over inputs"
LENGTH = 4.0  # of β: the longer, the smaller the width at which the k-th order overtakes those below it


def _exponential(z: Array) -> Array:
    return jnp.exp(z / 2)


def _derivative(order: int, z: Array) -> Array:
    return jnp.exp(z / 2) / 2**order


EXPONENTIAL = Activation("exp(z/2)", _exponential, formula=_derivative)


@dataclass(frozen=True)
class Extraction:
    """`seeds` networks of `pairs` pairs of neurons, each with `draws` draws of z± of order k."""

    order: int
    pairs: int
    shift: float
    dim: int
    samples: int
    seeds: int
    draws: int


@dataclass(frozen=True)
class Config:
    pairs: tuple[int, ...]
    orders: tuple[int, ...] = (2, 3, 4)
    shifts: tuple[float, ...] = SHIFTS
    dim: int = 5
    samples: int = 20
    seeds: int = 10
    draws: int = 8


PROFILES = {
    "smoke": Config(pairs=(128, 1024, 8192)),
    "laptop": Config(pairs=(128, 512, 2048, 8192, 32_768), shifts=(0.5,)),
    "paper": Config(pairs=(128, 512, 2048, 8192, 32_768, 131_072, 524_288)),
}


def cells(config: Config) -> list[Extraction]:
    return [
        Extraction(order, pairs, shift, config.dim, config.samples, config.seeds, config.draws)
        for order in config.orders
        for shift in config.shifts
        for pairs in config.pairs
    ]


def cost(cell: Extraction) -> Cost:
    entries, weights = 2 * cell.samples * cell.pairs, 2 * cell.dim * cell.pairs
    flops = cell.seeds * entries * (cell.draws * 2 * (cell.dim + cell.order) + 60 * cell.order)
    return Cost(flops, 4 * entries * (cell.order + 6) + 12 * cell.draws * weights + 1e6)


def run(cell: Extraction) -> xr.Dataset:
    return over_seeds(_one, cell).assign_coords(term=np.arange(1, cell.order + 2))


def claims(results: Results[Extraction]) -> Iterator[Claim]:
    for (order, shift), cells in results.groups("order", "shift"):
        cell, nodes = cells.first, "centred nodes" if shift == 0 else f"nodes shifted by {shift:g}"
        about = f"k = {order}, {nodes}, σ = exp(z/2), n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds"
        sweep = cells.sweep("pairs", about, noun="widths", unit=" pairs")
        if sweep:
            yield from _on_falling(sweep, nodes)
            yield from _on_staying(sweep, nodes)
            yield _on_moments(sweep, nodes)


def _on_falling(sweep: Sweep[Extraction], nodes: str) -> Iterator[Claim]:
    """The terms below and above the k-th, as drawn; and the exact mean of the next one, whose exponent is built in."""
    k, shift = sweep.cell.order, sweep.cell.shift
    law = matched_moments(k, shift=shift)
    for j in range(1, k + 2):
        if j == k:
            continue
        yield sweep.slope(
            sweep.results.table("size", term=j),
            "≤",
            float(law.exponent(j)),
            of=DRAWN,
            source="Section 6.1",
            statement=f"f^({j}) = O(m^({_fraction(law.exponent(j))})) for k = {k}, {nodes}",
        )
    if shift:  # else its mean is zero
        yield sweep.slope(
            sweep.results.table("mean", term=k + 1),
            "=",
            float(law.exponent(k + 1)),
            of=EXACT,
            identity=True,
            source="Section 6.1",
            statement=f"E_z f^({k + 1}) is of order m^({_fraction(law.exponent(k + 1))}) for k = {k}, {nodes}",
            note="The moments of z± and the length m^(−1/2k) of w⋆ make it so, up to the mean over w₀.",
        )


def _on_staying(sweep: Sweep[Extraction], nodes: str) -> Iterator[Claim]:
    """The k-th: as drawn it is bounded and tends to a limit that is not zero, so that it does not fall either."""
    k, size = sweep.cell.order, sweep.results.table
    others = [size("size", term=j).mean(axis=0) for j in range(1, k + 2) if j != k]
    dominance = size("size", term=k).mean(axis=0, keepdims=True) / np.max(others, axis=0)
    yield sweep.slope(
        size("size", term=k),
        "≤",
        0.0,
        of=DRAWN,
        # What does not vary may have an interval of no width.
        pad=1e-9,
        source="Section 6.1",
        statement=f"f^({k}) = O(1) for k = {k}, {nodes}",
        note=f"f^({k}) over the rest, the largest of them: {sweep.ends(dominance)}.",
    )
    yield sweep.slope(
        size("mean", term=k),
        "=",
        0.0,
        of=EXACT,
        pad=1e-9,
        identity=True,
        source="Section 6.1",
        statement=f"E_z f^({k}) neither grows nor falls, for k = {k}, {nodes}",
        note="E z₊^k = E z₋^k + 1 and the length m^(−1/2k) of w⋆ make it so, up to the mean over w₀.",
    )
    yield sweep.slope(
        "distance",
        "<",
        0.0,
        of="the distance, root mean square over inputs and draws of z±",
        source="Section 6.1",
        statement=f"f^({k}) tends to (βᵀx){HIGH[k]} E[σ^({k})(g)]/{k}!, {nodes}",
        note=f"Distance over the limit's size: {sweep.ends(sweep['distance'] / sweep['limit'], '.2g')}.",
    )


def _on_moments(sweep: Sweep[Extraction], nodes: str) -> Claim:
    """The term whose mean square, over the exact one, is the furthest from one in units of its interval."""
    k, found = sweep.cell.order, {}
    for j in range(1, k + 2):
        ratios = (sweep.results.table("size", term=j) / sweep.results.table("expected", term=j)) ** 2
        found[j] = mean_interval(ratios.ravel(), level=1 - 0.001 / (k + 1)).widened(ROUNDING)
    furthest = max(found, key=lambda j: abs(found[j].value - 1) / (found[j].high - found[j].low))
    return Claim.includes(
        found[furthest],
        1.0,
        source="Section 6.1",
        statement=f"every f^(j), j ≤ {k + 1}, has the mean square that the moments of z± give it, for k = {k}, {nodes}",
        measured=f"measured over exact for f^({furthest}), the furthest from 1; 99.9 % interval for all j; "
        f"{sweep.where}",
    )


def draw(results: Results[Extraction]) -> Iterator[Figure]:
    for (order,), cells in results.where(shift=0.5).groups("order"):
        if len(cells) < 2:
            continue
        cell, law, pairs, plot = cells.first, matched_moments(order, shift=0.5), cells.field("pairs"), new_plot()
        for j, colour in zip(range(1, order + 2), COLOURS, strict=False):
            series(plot, pairs, cells.table("size", term=j), name=f"f^({j})", colour=colour)
            exponent, start = law.exponent(j), cells.table("expected", term=j)[:, 0].mean()
            power(plot, pairs, float(exponent), through=start, name=f"m^({_fraction(exponent)})", colour=colour)
        caption = (
            f"σ = exp(z/2), nodes shifted by 1/2, n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds (bars: all of "
            "them). Dotted: the exponents of Section 6.1, from the first exact value."
        )
        title = f"For k = {order}, f^({order}) stays and all others fall"
        yield finished(plot, title, caption, x="pairs of neurons m", y="root mean square over inputs")


def _one(cell: Extraction, key: Key[Array, ""]) -> dict[str, object]:
    law, k = matched_moments(cell.order, shift=cell.shift), cell.order
    of_inputs, of_target, at_width = jax.random.split(key, 3)  # a seed has the same inputs and direction at every width
    of_net, of_draws = jax.random.split(jax.random.fold_in(at_width, cell.pairs))
    net = TwoLayer.symmetric(dim=cell.dim, width=2 * cell.pairs, activation=EXPONENTIAL, key=of_net)
    X = data.sphere(cell.samples, cell.dim, key=of_inputs)
    beta = data.sphere(1, cell.dim, radius=LENGTH, key=of_target)[0]
    stars = ridge_columns(net, beta, k)
    keys = jax.random.split(of_draws, cell.draws)
    moved = jax.vmap(lambda one: extracting_weights(net, stars, law, key=one))(keys)
    with jax.default_matmul_precision("highest"):  # some terms do not vary, and are compared to rounding
        found = pair_terms(net, moved, jnp.asarray(X, net.W0.dtype), k + 1)
    values = np.asarray(found, np.float64)[1:]
    exact = term_moments(net, stars, law, X, k + 1)
    second = (exact.mean**2 + exact.variance)[1:]
    limit = order_limit(EXPONENTIAL, X, beta, k)
    return {
        "size": ("term", np.sqrt(np.mean(values**2, axis=(1, 2)))),
        "expected": ("term", np.sqrt(np.mean(second, axis=1))),
        "mean": ("term", np.sqrt(np.mean(exact.mean[1:] ** 2, axis=1))),
        "limit": math.sqrt(float(np.mean(limit**2))),
        "distance": math.sqrt(float(np.mean((values[k - 1] - limit) ** 2))),
    }


def _fraction(exponent: Fraction) -> str:
    return str(exponent).replace("-", "−")
