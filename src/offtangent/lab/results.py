"""The results of an experiment's cells, as `claims` and `draw` see them."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, cast, overload

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent._errors import InputError

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default: `Results` alone is of any cells

    from offtangent.lab.sweeps import Sweep

    C = TypeVar("C", default=Any)
else:
    from typing import TypeVar

    C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True)
class Results(Generic[C]):
    """The cells of an experiment, each with its data set, in the order of `cells(config)`.

    `claims(results)` and `draw(results)` of an experiment are given all of them, and choose: `where` those of one
    class or with given fields, `only` those that pass a test, `along` those that differ in one field, `groups` those
    that share fields. `sweep` makes a sweep of them.

    Attributes:
        profile: The profile that was run.
        pairs: Each cell with its data set.
        complete: Whether all cells of the profile are among them: one that failed is not.

    >>> from types import SimpleNamespace as Cell
    >>> cells = [Cell(width=64, sigma="relu"), Cell(width=256, sigma="relu"), Cell(width=64, sigma="tanh")]
    >>> results = Results("smoke", tuple((cell, xr.Dataset({"error": ("seed", [1.0, 3.0])})) for cell in cells))
    >>> [sigma for (sigma,), _ in results.groups("sigma")]
    ['relu', 'tanh']
    >>> results.where(sigma="relu").table("error")
    array([[1., 1.],
           [3., 3.]])
    """

    profile: str
    pairs: tuple[tuple[C, xr.Dataset], ...]
    complete: bool = True

    def __iter__(self) -> Iterator[tuple[C, xr.Dataset]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def first(self) -> C:
        """The first cell, for the fields that all of them share."""
        if not self.pairs:
            raise InputError("There are no results to take the first cell of.")
        return self.pairs[0][0]

    @overload
    def where(self, kind: type[D], **fields: Any) -> "Results[D]": ...
    @overload
    def where(self, kind: None = None, **fields: Any) -> "Results[C]": ...
    def where(self, kind: type | None = None, **fields: Any) -> "Results[Any]":
        """The results of the cells of one class and with these fields.

        Args:
            kind: The class of the cells; by default any.
            **fields: The values that fields of the cells must have.

        Returns:
            Those results, in the same order; maybe none.
        """
        chosen = [
            (cell, dataset)
            for cell, dataset in self.pairs
            if (kind is None or type(cell).__name__ == kind.__name__)
            and all(getattr(cell, name) == value for name, value in fields.items())
        ]
        return Results(self.profile, tuple(chosen), self.complete)

    def only(self, test: Callable[[C], bool]) -> "Results[C]":
        """The results of the cells that pass a test, where `where` cannot say it.

        Args:
            test: Whether a cell is wanted: `lambda cell: cell.draws > 0`.

        Returns:
            Those results, in the same order; maybe none.

        >>> from types import SimpleNamespace as Cell
        >>> results = Results("smoke", tuple((Cell(draws=draws), xr.Dataset()) for draws in (0, 4, 9)))
        >>> results.only(lambda cell: cell.draws > 0).values("draws")
        [4, 9]
        """
        return Results(self.profile, tuple(pair for pair in self.pairs if test(pair[0])), self.complete)

    def along(self, field: str) -> "Results[C]":
        """The most cells that differ in one field and in no other: those of one sweep, where there are several.

        Args:
            field: The name of a field of the cells.

        Returns:
            Their results, the field rising; of as many the first, and none of none.

        >>> from dataclasses import make_dataclass
        >>> Cell = make_dataclass("Cell", ["width", "dim"], frozen=True)
        >>> sizes = [(64, 8), (256, 8), (1024, 8), (256, 20), (256, 5)]  # over widths, and over dimensions at one width
        >>> results = Results("smoke", tuple((Cell(*size), xr.Dataset()) for size in sizes))
        >>> results.along("width").values("width"), results.along("dim").values("dim")
        ([64, 256, 1024], [5, 8, 20])
        """
        if not self.pairs:
            return self
        fixed = [one.name for one in dataclasses.fields(cast(Any, self.first)) if one.name != field]
        longest = max((found.pairs for _, found in self.groups(*fixed)), key=len)
        return Results(self.profile, tuple(sorted(longest, key=lambda pair: getattr(pair[0], field))), self.complete)

    def groups(self, *fields: str) -> Iterator[tuple[tuple[Any, ...], "Results[C]"]]:
        """The results that share these fields, one group after another, in order of appearance.

        Args:
            *fields: The names of fields of the cells.

        Returns:
            The values of the fields, and the results of the cells that have them.
        """
        found = dict.fromkeys(tuple(getattr(cell, name) for name in fields) for cell, _ in self.pairs)
        for values in found:
            yield values, self.where(**dict(zip(fields, values, strict=True)))

    def values(self, field: str) -> list[Any]:
        """The different values of a cell's field.

        Args:
            field: The field's name.

        Returns:
            Its values, each once, in order of appearance.
        """
        return list(dict.fromkeys(getattr(cell, field) for cell, _ in self.pairs))

    def field(self, name: str) -> Float[np.ndarray, "cells"]:
        """A field of every cell, as numbers.

        Args:
            name: The field's name.

        Returns:
            Its values, in the order of the cells.
        """
        return np.array([float(getattr(cell, name)) for cell, _ in self.pairs])

    def table(self, name: str, **at: Any) -> Float[np.ndarray, "seeds cells"]:
        """A variable of every cell, one column a cell and one row a seed.

        Args:
            name: The variable, which has the dimension `seed` alone once `at` is chosen.
            **at: Coordinates at which other dimensions of the variable are looked at.

        Returns:
            The numbers, in the order of the cells; counts and truth values as numbers of double precision.
        """
        if not self.pairs:
            raise InputError(f"There are no results to make a table of {name!r} of.")
        found = np.stack([(data[name].sel(at) if at else data[name]).values for _, data in self.pairs], axis=1)
        return found if np.issubdtype(found.dtype, np.floating) else found.astype(np.float64)

    def sweep(
        self, field: str, about: str, *, symbol: str = "m", noun: str = "", unit: str = "", least: int = 3
    ) -> "Sweep[C] | None":
        """These results as a sweep over one field of the cells: what slopes and bounds are judged on.

        Args:
            field: The field in which the cells differ, in rising order: "width".
            about: What they have in common, in words: "relu, n = 20, 10 seeds".
            symbol: The field's letter in the paper.
            noun: What its values are called, several of them; by default the field's name with an s.
            unit: What is said after its values, with a space before it.
            least: With fewer cells there is no sweep.

        Returns:
            The sweep, or None.
        """
        from offtangent.lab.sweeps import Sweep

        if len(self) < least:
            return None
        sizes, noun = self.field(field), noun or f"{field}s"
        where = f"{about}, {len(sizes)} {noun} from {sizes[0]:.0f} to {sizes[-1]:.0f}{unit}"
        return Sweep(self, sizes, where, symbol, noun.removesuffix("s"))

    def combine(self, *fields: str) -> xr.Dataset:
        """One data set in which the named fields of the cells are dimensions; the cells must differ in them alone.

        Args:
            *fields: The names of the fields.

        Returns:
            The data set, with NaN where no cell has those values.
        """
        if not self.pairs:
            raise InputError("There are no results to combine.")
        parts = [dataset.expand_dims({name: [getattr(cell, name)] for name in fields}) for cell, dataset in self.pairs]
        return xr.combine_by_coords(parts, combine_attrs="drop_conflicts", join="outer", compat="no_conflicts")  # type: ignore[return-value]
