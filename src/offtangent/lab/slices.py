"""An experiment of several questions, cut along them: each slice is a module with cells, claims and figures of its own.

A slice has what an experiment has (`offtangent.lab.experiment`). The experiment is a package, whose `__init__` puts
its slices together with `combine`; a cell's result depends on its own slice alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import xarray as xr

from offtangent._errors import InputError
from offtangent.lab.claims import Claim
from offtangent.lab.costs import Cost
from offtangent.lab.experiment import Cell
from offtangent.lab.results import Results
from offtangent.report import Figure


class Combined(NamedTuple):
    """What an experiment's package has to define, in the order in which `combine` gives it."""

    profiles: Mapping[str, tuple[Any, ...]]
    classes: Mapping[str, type]
    cells: Any
    run: Any
    claims: Any
    draw: Any
    cost: Any


def combine(*slices: ModuleType) -> Combined:
    """Put the slices of an experiment together: every cell goes to the slice that has its class.

    Args:
        *slices: Modules, each with PROFILES, cells, run, claims and draw, and with cost if it likes. A slice need not
            have every profile. Two slices may not use one name for classes of cells.

    Returns:
        What the package is to define, in this order: PROFILES, CELLS, cells, run, claims, draw, cost.

    Raises:
        InputError: If two slices have classes of one name.

    >>> from offtangent.papers.nichani.constructions import lemma1, lemma2
    >>> PROFILES, CELLS, cells, run, claims, draw, cost = combine(lemma1, lemma2)
    >>> list(CELLS), len(list(cells(PROFILES["smoke"])))
    (['Sparse', 'Dense'], 18)
    """
    names = list(dict.fromkeys(name for one in slices for name in one.PROFILES))
    homes: dict[str, tuple[ModuleType, type]] = {}
    for one in slices:
        configs = {type(config) for config in one.PROFILES.values()}
        for name, kind in vars(one).items():
            # Every slice may call its configuration Config: cells alone are found by name.
            if _is_own_dataclass(kind, one) and kind not in configs:
                if name in homes:
                    raise InputError(
                        f"Two slices, {homes[name][0].__name__} and {one.__name__}, have cells of a class {name}: "
                        "records name cells by their class, so give one of them another name."
                    )
                homes[name] = (one, kind)

    def home(cell: Cell) -> ModuleType:
        return homes[type(cell).__name__][0]

    def cells(config: tuple[Any, ...]) -> Iterator[Cell]:
        for one, part in zip(slices, config, strict=True):
            if part is not None:
                yield from one.cells(part)

    def run(cell: Cell) -> xr.Dataset:
        return home(cell).run(cell)

    def claims(results: Results[Any]) -> Iterator[Claim]:
        for one in slices:
            yield from one.claims(results)

    def draw(results: Results[Any]) -> Iterator[Figure]:
        for one in slices:
            yield from one.draw(results)

    def cost(cell: Cell) -> Cost | None:
        counted = getattr(home(cell), "cost", None)
        return None if counted is None else counted(cell)

    profiles = {name: tuple(one.PROFILES.get(name) for one in slices) for name in names}
    classes = {name: kind for name, (_, kind) in homes.items()}
    return Combined(MappingProxyType(profiles), MappingProxyType(classes), cells, run, claims, draw, cost)


def _is_own_dataclass(thing: object, module: ModuleType) -> bool:
    return isinstance(thing, type) and is_dataclass(thing) and thing.__module__ == module.__name__
