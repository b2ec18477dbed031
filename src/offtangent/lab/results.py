"""The results of an experiment's cells, as `claims` and `draw` see them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import xarray as xr

from offtangent._errors import InputError


@dataclass(frozen=True)
class Results:
    """Pairs of a cell and its data set, in the order of `cells(config)`; `complete` says whether all are there."""

    profile: str
    pairs: tuple[tuple[Any, xr.Dataset], ...]
    complete: bool = True

    def __iter__(self) -> Iterator[tuple[Any, xr.Dataset]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def where(self, kind: type | None = None, **fields: Any) -> "Results":
        """The results of the cells of one class and with these fields."""
        chosen = [
            (cell, dataset)
            for cell, dataset in self.pairs
            if (kind is None or type(cell).__name__ == kind.__name__)
            and all(getattr(cell, name) == value for name, value in fields.items())
        ]
        return Results(self.profile, tuple(chosen), self.complete)

    def values(self, field: str) -> list[Any]:
        """The different values of a cell's field, in order of appearance."""
        return list(dict.fromkeys(getattr(cell, field) for cell, _ in self.pairs))

    def combine(self, *fields: str) -> xr.Dataset:
        """One data set in which the named fields of the cells are dimensions; the cells must differ in them alone."""
        if not self.pairs:
            raise InputError("There are no results to combine.")
        parts = [dataset.expand_dims({name: [getattr(cell, name)] for name in fields}) for cell, dataset in self.pairs]
        return xr.combine_by_coords(parts, combine_attrs="drop_conflicts", join="outer", compat="no_conflicts")  # type: ignore[return-value]
