"""Results over a grid of cells as one data set."""

import itertools

import numpy as np
import xarray as xr

from offtangent.lab import Results


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
