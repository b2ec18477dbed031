"""Cells of `existence` by their class, and their variables as tables: a row a seed, a column a width."""

import numpy as np
from jaxtyping import Float

from offtangent.lab import Results


def kind_of(results: Results, name: str) -> Results:
    return Results(results.profile, tuple(one for one in results if type(one[0]).__name__ == name), results.complete)


def all_of(results: Results, name: str) -> Float[np.ndarray, " k"]:
    return np.concatenate([np.ravel(data[name].values) for _, data in results])


def table_of(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def widths_of(results: Results) -> Float[np.ndarray, " k"]:
    return np.array([float(cell.width) for cell, _ in results])
