"""Cells that differ in one field: tables over seeds, and the claims that are judged on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Key

from offtangent.lab.claims import Claim
from offtangent.lab.results import Results
from offtangent.lab.statistics import fraction_interval, mean_interval, ratio_interval, slope_interval

C = TypeVar("C")
Table = Float[np.ndarray, "seeds cells"]
LEVEL = 0.99


@dataclass(frozen=True)
class Sweep(Generic[C]):
    """Results along one field of their cells, from `Results.sweep`.

    Every claim is given in `words`: `source`, `statement` and, if there is something to say, `note`; the statement's
    `hypotheses`, `misprint=True` where it is refuted as printed, `identity=True` where it follows by algebra. What was
    `measured` is put together from what the number is and where it was measured, unless `measured` is given, too.
    Tables are named by their variable or given as numbers, one row a seed and one column a cell.

    Attributes:
        results: The cells and their data sets, in the order of the sizes.
        sizes: The field's values.
        where: What was measured on, in words: "relu, 10 seeds, 5 widths from 64 to 4096".
        symbol: The field's letter in the paper.
        noun: What one of the sizes is called.

    >>> from types import SimpleNamespace as Cell
    >>> rows = [(Cell(width=m), xr.Dataset({"error": ("seed", [m**-0.5, 2 * m**-0.5])})) for m in (16, 64, 256)]
    >>> sweep = Results("smoke", tuple(rows)).sweep("width", "relu, 2 seeds")
    >>> sweep.ends("error")
    '0.375 at the smallest width, 0.0938 at the largest'
    >>> claim = sweep.slope("error", "=", -0.5, pad=1e-9, source="Lemma 1", statement="errors fall like m^(−1/2)")
    >>> claim.verdict.value, claim.measured
    ('holds', 'log-log slope in m, 99 % interval, relu, 2 seeds, 3 widths from 16 to 256')
    """

    results: Results[C]
    sizes: Float[np.ndarray, "cells"]
    where: str
    symbol: str
    noun: str

    def __getitem__(self, name: str) -> Table:
        """A variable of all cells."""
        return self.results.table(name)

    @property
    def cell(self) -> C:
        """The first cell, for the fields that all of them share."""
        return self.results.first

    def slope(
        self,
        values: str | Table,
        relation: Literal["=", "≤", "<"],
        exponent: float,
        *,
        of: str = "",
        level: float = LEVEL,
        pad: float = 0.0,
        **words: Any,
    ) -> Claim:
        """A power of the size: the log-log slope, fitted for each seed, with Student's interval over seeds.

        Args:
            values: The numbers that grow or fall with the size.
            relation: "=" if the interval is to contain the exponent, "≤" if values are O(size^exponent), as
                `Claim.no_slower` judges it, and "<" if all of the interval is to lie below.
            exponent: What the paper says.
            of: What grows or falls, if the statement does not say it.
            level: Of the interval.
            pad: Added to both sides of the interval, for what has none but by rounding.
            **words: Source, statement and more.

        Returns:
            The claim.
        """
        found = slope_interval(self.sizes, self._table(values), level=level).widened(pad)
        said = self._said(f"log-log slope in {self.symbol}{of and ' of '}{of}, {level * 100:g} % interval", words)
        if relation == "≤":
            return Claim.no_slower(found, exponent, **said)
        if relation == "=":
            return Claim.includes(found, exponent, **said)
        return Claim.at_most(found, exponent, strict=True, **said)

    def equals(
        self,
        values: str | Table,
        expected: float,
        *,
        of: str = "",
        level: float = LEVEL,
        pad: float = 0.0,
        **words: Any,
    ) -> Claim:
        """The mean over all seeds and sizes is what the paper says: its interval contains it.

        Args:
            values: The numbers.
            expected: What the paper says of their mean.
            of: What they are.
            level: Of the interval.
            pad: Added to both sides of the interval, for what has none but by rounding.
            **words: Source, statement and more.

        Returns:
            The claim.
        """
        found = mean_interval(np.ravel(self._table(values)), level=level).widened(pad)
        return Claim.includes(found, expected, **self._said(f"{of}, {level * 100:g} % interval", words))

    def worst(
        self,
        values: str | Table,
        limit: float = 1.0,
        *,
        bound: Callable[[C], float] | None = None,
        of: str = "largest ratio of the two sides",
        **words: Any,
    ) -> Claim:
        """No number is above the limit, over all seeds and sizes.

        Args:
            values: The numbers: ratios of the two sides of an inequality, or its left side.
            limit: Of them.
            bound: The right side for each cell, by which they are divided.
            of: What the largest number is.
            **words: Source, statement and more.

        Returns:
            The claim.
        """
        table = self._table(values)
        if bound is not None:
            table = table / np.array([bound(cell) for cell, _ in self.results])
        return Claim.at_most(float(table.max()), limit, **self._said(of, words))

    def share(
        self,
        beyond: Bool[np.ndarray, "seeds cells"],
        limit: float,
        *,
        of: str,
        level: float | None = LEVEL,
        **words: Any,
    ) -> Claim:
        """What happens with probability at most δ happens in no larger a share of the networks.

        Args:
            beyond: Whether it happened, for every seed and size.
            limit: The probability δ.
            of: What the share is of.
            level: Of Clopper and Pearson's interval; None if the share itself is judged.
            **words: Source, statement and more.

        Returns:
            The claim: it holds if all of the interval lies at or below the limit.
        """
        if level is None:
            return Claim.at_most(float(beyond.mean()), limit, **self._said(of, words))
        found = fraction_interval(int(beyond.sum()), beyond.size, level=level)
        return Claim.at_most(found, limit, **self._said(f"{of}, {level * 100:g} % interval", words))

    def ratio(
        self,
        above: str | Table,
        below: str | Table,
        relation: Literal["≤", "≥"],
        limit: float,
        *,
        of: str,
        level: float = LEVEL,
        **words: Any,
    ) -> Claim:
        """One number over another at the largest size, seed by seed: the geometric mean with its interval.

        Args:
            above: The numbers above the line.
            below: Those below it.
            relation: Whether all of the interval is to lie at or below the limit, or at or above it.
            limit: Of the ratio.
            of: What the ratio is.
            level: Of the interval.
            **words: Source, statement and more.

        Returns:
            The claim.
        """
        found = ratio_interval(self._table(above)[:, -1], self._table(below)[:, -1], level=level)
        judge = Claim.at_most if relation == "≤" else Claim.at_least
        said = f"{of} at the largest {self.noun}, {level * 100:g} % interval"
        return judge(found, limit, **self._said(said, words))

    def ends(self, values: str | Table, form: str = ".3g") -> str:
        """The mean over seeds at both ends, in words: "0.5 at the smallest width, 0.1 at the largest".

        Args:
            values: The numbers.
            form: How they are written.

        Returns:
            The words.
        """
        means = self._table(values).mean(axis=0)
        return f"{means[0]:{form}} at the smallest {self.noun}, {means[-1]:{form}} at the largest"

    def _table(self, values: str | Table) -> Table:
        return self[values] if isinstance(values, str) else values

    def _said(self, measured: str, words: Mapping[str, Any]) -> dict[str, Any]:
        return {"measured": f"{measured}, {self.where}", **words}


def over_seeds(one: Callable[[C, Key[Array, ""]], Mapping[str, object]], cell: C) -> xr.Dataset:
    """The result of a cell whose seeds are independent: `one` of each, along the dimension `seed`.

    Args:
        one: Computes the variables of one seed from the cell and that seed's key: numbers, or arrays with their
            dimensions as `xarray.Dataset` takes them.
        cell: A cell; its field `seeds` says how many there are.

    Returns:
        What `one` gave, joined along the dimension and coordinate `seed`.

    >>> from types import SimpleNamespace
    >>> cell = SimpleNamespace(width=100, seeds=3)
    >>> over_seeds(lambda cell, key: {"error": 1 / cell.width}, cell)["error"].values
    array([0.01, 0.01, 0.01])
    """
    import jax

    seeds: int = cell.seeds  # type: ignore[attr-defined]
    parts = [xr.Dataset(one(cell, jax.random.key(seed))) for seed in range(seeds)]
    return xr.concat(parts, dim="seed").assign_coords(seed=np.arange(seeds))
