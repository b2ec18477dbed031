"""What is kept of a cell's draws: counts, the worst case and quantiles where there are many, every draw where few."""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.theory.ge_wang_zhao.features import perturbed_singular_floor, spanning_floor

DELTA = 0.1  # with which probability Lemmas 13 and 18 may fail, constants as one
NOISE = 0.5  # the variance v in cells that do not vary it
HALF = 0.5  # the ε at which Lemma 11's probability is compared with its exact value
BATCHES = 10  # of seeds, each with quantiles of its own
MANY = 100  # seeds from which on a cell is there for its quantiles


def kept(cell: Any, draws: xr.Dataset) -> xr.Dataset:
    """`below` counts draws under the lemma's floor, `worst` is the smallest ratio to it; `quantiles` are of batches."""
    if "length" in draws:  # Lemmas 14 and 20: how often the bound is exceeded
        found = {f"{name}_beyond": (draws[name] > 1).sum() for name in ("length", "entry")}
        return xr.Dataset(found | {f"{name}_most": draws[name].max() for name in ("length", "entry")})
    if "smallest" in draws:  # Lemma 13
        values, floor = draws["smallest"], perturbed_singular_floor(
            cell.samples, cell.dim, cell.features, cell.power, variance=cell.variance, delta=DELTA
        ).value  # fmt: skip
        extra = {}
    elif "rows" in draws:  # Lemmas 18 and 19
        values, floor = draws["rows"], spanning_floor(cell.dim, cell.features, cell.power, delta=DELTA).value
        extra = {"least": values.min(), "product": (draws["squares"] / (values**2 * draws["inputs"])).min()}
    else:
        return draws
    ratios = values / (floor or math.nan)
    found = {"below": (~(ratios >= 1)).sum(), "worst": ratios.min(skipna=False)} | extra
    if cell.seeds < MANY:
        return draws.assign(found)
    return xr.Dataset(found | {"quantiles": (("batch", "delta"), _quantiles(values.values))})


def chances(draws: int) -> Float[np.ndarray, "q"]:
    """The probabilities at which ε is read off: at least 40 draws lie below it."""
    return np.geomspace(40 / draws, 0.1, 3 if draws < 40_000 else 5)


def deltas(seeds: int) -> Float[np.ndarray, "q"]:
    """The probabilities δ whose quantiles are kept of this many seeds."""
    return np.geomspace(4 / (seeds // BATCHES), 0.4, 3 if seeds < 10_000 else 5)


def _quantiles(values: Float[np.ndarray, "s"]) -> Float[np.ndarray, "b q"]:
    batches = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1)
    return np.quantile(batches, deltas(len(values)), axis=1).T
