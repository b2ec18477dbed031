"""Results over a grid of cells as one data set."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Results


@dataclass(frozen=True)
class OverWidths:
    """The results of cells over widths and κ as one table, and what the claims on it say of their sizes."""

    cell: Any  # the first
    table: xr.Dataset

    @classmethod
    def of(cls, results: Results) -> "OverWidths | None":
        """None if there are fewer than two widths."""
        table = stacked(results, "width", "scale")
        return None if table is None else cls(results.pairs[0][0], table)

    @property
    def widths(self) -> Float[np.ndarray, "w"]:
        return np.asarray(self.table.width.values, float)

    @property
    def where(self) -> str:
        """The sizes, in words."""
        cell, widths = self.cell, self.widths
        return (
            f"n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds, {len(widths)} widths from {widths[0]:.0f} to "
            f"{widths[-1]:.0f}"
        )

    def at(self, scale: float, name: str) -> Float[np.ndarray, "s w"]:
        """A variable at one κ: a row a seed, a column a width."""
        return np.asarray(self.table[name].sel(scale=scale).transpose("seed", "width").values)

    @property
    def smallest(self) -> float:
        """λ_min(H∞), of all cells."""
        return float(self.table.smallest.values.flat[0])


def stacked(results: Results, *fields: str) -> xr.Dataset | None:
    """The cells' data sets with these fields as their first dimensions, sorted; None if too few are left.

    Values of the first field of which a cell is missing are left out, and with less than two of them there is no
    table. All data sets have the same variables, of the same shapes. (`Results.combine` takes ten times as long.)
    """
    if not len(results):
        return None
    found = {tuple(getattr(cell, name) for name in fields): data.variables for cell, data in results}
    first, *others = (sorted(set(values)) for values in zip(*found, strict=True))
    rest = list(itertools.product(*others))
    first = [value for value in first if all((value, *at) in found for at in rest)]
    if len(first) < 2:
        return None
    example = results.pairs[0][1]
    shape = (len(first), *map(len, others))
    variables = {}
    for name, one in example.data_vars.items():
        values = np.array([found[value, *at][name].values for value in first for at in rest])
        variables[name] = ((*fields, *one.dims), values.reshape(*shape, *one.shape))
    own = {name: example[name].values for name in example.dims if name in example.coords}
    return xr.Dataset(variables, coords={**dict(zip(fields, (first, *others), strict=True)), **own})
