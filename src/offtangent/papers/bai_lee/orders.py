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
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from offtangent import data
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import TwoLayer
from offtangent.papers.bai_lee import orders_report
from offtangent.report import Figure
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
    law, k = matched_moments(cell.order, shift=cell.shift), cell.order
    terms = np.arange(1, k + 2)
    rows = []
    for seed in range(cell.seeds):  # a seed has the same inputs and direction at every width
        of_inputs, of_target, at_width = jax.random.split(jax.random.key(seed), 3)
        of_net, of_draws = jax.random.split(jax.random.fold_in(at_width, cell.pairs))
        net = TwoLayer.symmetric(dim=cell.dim, width=2 * cell.pairs, activation=EXPONENTIAL, key=of_net)
        X = data.sphere(cell.samples, cell.dim, key=of_inputs)
        beta = data.sphere(1, cell.dim, radius=LENGTH, key=of_target)[0]
        stars = ridge_columns(net, beta, k)
        keys = jax.random.split(of_draws, cell.draws)
        moved = jax.vmap(lambda key: extracting_weights(net, stars, law, key=key))(keys)  # noqa: B023
        with jax.default_matmul_precision("highest"):  # some terms do not vary, and are compared to rounding
            found = pair_terms(net, moved, jnp.asarray(X, net.W0.dtype), k + 1)
        values = np.asarray(found, np.float64)[1:]
        exact = term_moments(net, stars, law, X, k + 1)
        second = (exact.mean**2 + exact.variance)[1:]
        limit = order_limit(EXPONENTIAL, X, beta, k)
        rows.append(
            xr.Dataset(
                {
                    "size": ("term", np.sqrt(np.mean(values**2, axis=(1, 2)))),
                    "expected": ("term", np.sqrt(np.mean(second, axis=1))),
                    "mean": ("term", np.sqrt(np.mean(exact.mean[1:] ** 2, axis=1))),
                    "limit": math.sqrt(float(np.mean(limit**2))),
                    "distance": math.sqrt(float(np.mean((values[k - 1] - limit) ** 2))),
                }
            )
        )
    return xr.concat(rows, dim="seed").assign_coords(seed=np.arange(cell.seeds), term=terms)


def claims(results: Results) -> list[Claim]:
    return orders_report.claims(results.where(Extraction))


def draw(results: Results) -> list[Figure]:
    return orders_report.figures(results.where(Extraction))
