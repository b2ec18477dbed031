"""What an experiment is: a module, of a paper or the user's own, with five things in it.

    PROFILES            name → configuration: "smoke", "laptop", "paper"
    cells(config)       independent pieces of work, frozen and hashable, seeds included
    run(cell)           one xarray.Dataset; the same cell gives the same numbers
    claims(results)     what the paper says, what was measured, whether it holds
    draw(results)       figures

and, if it likes, `cost(cell)` (a `Cost`, for forecasts), `datasets(cell)` (names of data sets and paths of files that a
cell reads; their checksums become part of its key), `absent(config)` (data sets it would use but does not find), and
CELLS (the classes of cells by name, where they are not in the module itself).
"""

import dataclasses
import hashlib
import importlib
import importlib.util
import itertools
import json
import math
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import xarray as xr

from offtangent._errors import InputError, a_kind, shown
from offtangent.lab.answers import check_result, claims_of, cost_of, figures_of, names_of
from offtangent.lab.claims import Claim
from offtangent.lab.costs import Cost
from offtangent.lab.fingerprints import Fingerprint, fingerprint
from offtangent.lab.importing import Loaded, load
from offtangent.lab.machinery import checksums, machinery_of
from offtangent.lab.naming import check_name
from offtangent.lab.questions import asking
from offtangent.lab.results import Results
from offtangent.lab.sources import content_of
from offtangent.lab.watches import Watch
from offtangent.report import Figure

MOST_CELLS = 1_000_000  # in a profile: a generator that never ends must not fill the memory
PARTS = ("PROFILES", "cells", "run", "claims", "draw")
DIGITS = 600  # of a whole number in a field: Python itself writes no more than 4300, or what a user has set, out
Cell = Hashable  # a frozen dataclass whose fields are numbers, text, booleans, None and tuples of these


@dataclass(frozen=True)
class Experiment:
    """An experiment by name and by where it is: a module's dotted name, or the path of a user's file."""

    name: str
    where: str

    @cached_property
    def module(self) -> ModuleType:
        return self._loaded.module if self._loaded else importlib.import_module(self.where)

    @cached_property
    def _loaded(self) -> Loaded | None:
        """A user's own file, as it was when it was first asked for."""
        return load(Path(self.where)) if self.where.endswith(".py") else None

    @property
    def is_current(self) -> bool:
        """Whether the files that were loaded, and those that the fingerprint was made of, are still the same."""
        same = all(content_of(path) == content for path, content in self._files.items())
        return self._loaded is None or (self._loaded.is_current and same)

    @contextmanager
    def _asking(self, question: str) -> Iterator[None]:
        """Ask the module something: its exceptions become sentences, and its imports come from beside it."""
        with asking(self.where, question), self.at_home():
            yield

    def at_home(self) -> AbstractContextManager[None]:
        """Where code of the module runs: it imports what lies beside it."""
        return self._loaded.at_home() if self._loaded else nullcontext()

    @cached_property
    def file(self) -> Path:
        if self.where.endswith(".py"):
            return Path(self.where)
        spec = importlib.util.find_spec(self.where)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin)

    @property
    def title(self) -> str:
        """The first line of the module's docstring."""
        return (self._docstring or self.name).splitlines()[0]

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return "\n".join(self._docstring.splitlines()[1:]).strip()

    @property
    def _docstring(self) -> str:
        written = self.module.__doc__
        return written.strip() if isinstance(written, str) else ""

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(self.module.PROFILES)

    def cells(self, profile: str) -> list[Cell]:
        """The profile's cells: none of them only where data sets are absent."""
        if profile not in self.module.PROFILES:
            raise InputError(f"{self.name} has no profile {profile!r}; it has {', '.join(self.profiles)}.")
        with self._asking("cells(config)"):
            found = self.module.cells(self.module.PROFILES[profile])
            if isinstance(found, str | dict) or not isinstance(found, Iterable):
                raise InputError(
                    f"{self.name}: cells(config) gave {shown(found)} for the profile {profile!r}: it gives cells in a "
                    "list, or yields them."
                )
            cells = list(itertools.islice(found, MOST_CELLS + 1))
            if len(cells) > MOST_CELLS:
                raise InputError(
                    f"{self.name}: cells(config) gives more than {MOST_CELLS:,} cells for the profile {profile!r}. "
                    "Does it ever end? Let it give fewer, each of them with more to do."
                )
            for cell in cells:
                try:
                    fields = fields_of(cell)
                    if fields_of(rebuild(self, type(cell).__name__, fields)) != fields:
                        raise InputError(f"{name_of(cell)} is another cell when it is made of its fields again.")
                except InputError as error:
                    raise InputError(f"{self.name}: cells(config) gave a wrong one. {error}") from None
        if not cells and not self.absent(profile):
            raise InputError(
                f"{self.name}: cells(config) gave no cell for the profile {profile!r}: nothing to compute."
            )
        return cells

    def run(self, cell: Cell) -> xr.Dataset:
        """A cell's result. What is raised goes to the worker, which tells it with its traceback."""
        with self.at_home():
            result = self.module.run(cell)
        if not isinstance(result, xr.Dataset):
            raise TypeError(f"run({name_of(cell)}) returned {a_kind(result)}; it must return an xarray.Dataset")
        check_result(result)
        return result

    def claims(self, results: Results) -> list[Claim]:
        with self._asking("claims(results)"):
            return claims_of(self.module.claims(results))

    def draw(self, results: Results) -> list[Figure]:
        with self._asking("draw(results)"):
            return figures_of(self.module.draw(results))

    def cost(self, cell: Cell) -> Cost | None:
        counted = getattr(self.module, "cost", None)
        if counted is None:
            return None
        with self._asking(f"cost({name_of(cell)})"):
            return cost_of(counted(cell), f"{self.name}: cost({name_of(cell)})")

    def datasets(self, cell: Cell) -> tuple[str | Path, ...]:
        """The data sets that a cell reads, by their name in `offtangent.data` or as paths of files."""
        named = getattr(self.module, "datasets", None)
        if named is None:
            return ()
        with self._asking(f"datasets({name_of(cell)})"):
            return names_of(named(cell), f"{self.name}: datasets({name_of(cell)})", (str, Path))

    def unnamed(self, watch: Watch, cell: Cell, results: Path) -> tuple[str, ...]:
        """What a cell, or the file as it was imported, has read beside the file and `datasets(cell)` does not name."""
        from offtangent.data.catalogue import NAMES, data_folder

        watch.opened |= self._loaded.opened if self._loaded else set()
        if not watch.opened:
            return ()
        named = [data_folder() if one in NAMES else self.file.parent / one for one in self.datasets(cell)]
        loaded = self._loaded.contents if self._loaded else {}
        return tuple(str(path) for path in watch.unnamed([*named, *loaded], results))

    def absent(self, profile: str) -> tuple[str, ...]:
        """Data sets the profile would use and this machine does not have."""
        missing = getattr(self.module, "absent", None)
        if missing is None:
            return ()
        with self._asking("absent(config)"):
            return names_of(missing(self.module.PROFILES[profile]), f"{self.name}: absent(config)")

    def fingerprint(self, *kinds: str) -> Fingerprint:
        """The hash of the code that makes the numbers of these classes of cells."""
        return fingerprint(self.file, kinds)

    @cached_property
    def _files(self) -> dict[Path, bytes]:
        return {}

    @cached_property
    def _machinery(self) -> dict[str, dict[str, str]]:
        return {}

    def machinery(self, kind: str) -> dict[str, str]:
        """What makes the numbers of a class of cells, here: code, versions and, where JAX is used, its device.

        It is what was found when first asked for, as is the module: a file that changes under a run is another one.
        """
        if kind not in self._machinery:
            with self._asking("reading the code that run reaches"):
                found = self.fingerprint(kind)
                if self._loaded:
                    self._loaded.check(found.files)
                self._files.update(found.files)
                self._machinery[kind] = machinery_of(found)
        return self._machinery[kind]

    def key(self, cell: Cell, threads: str) -> str:
        """Names a cell's result: its fields and all it depends on (code, data, versions, device, precision, threads).

        Args:
            cell: One of the experiment's cells.
            threads: How many threads compute it, as `Placement.threads` says.

        Returns:
            64 hexadecimal digits.
        """
        kind = type(cell).__name__
        facts: dict[str, Any] = {
            "experiment": self.name,
            "cell": [kind, fields_of(cell)],
            "machinery": self.machinery(kind),
            "threads": threads,
        }
        if datasets := self.datasets(cell):
            with self._asking("reading what datasets(cell) names"):
                facts["data"] = checksums(datasets, self.file.parent)
        return hashlib.sha256(json.dumps(facts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def fields_of(cell: Cell) -> dict[str, Any]:
    """A cell's fields; a cell that could not be named by them is refused."""
    if not _is_frozen_dataclass(cell):
        raise InputError(f"{shown(cell)} is no cell: a cell is an instance of a frozen dataclass.")
    fields = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cast(Any, cell))}
    for name, value in fields.items():
        if (fault := _fault(value)) is not None:
            raise InputError(
                f"The cell's field {name}={shown(value)} {fault}: fields are finite numbers, text, "
                "booleans, None, or tuples of these, so that a result can be named by them."
            )
    return fields


def name_of(cell: Cell) -> str:
    """A cell as text, from its fields: its own `__repr__` may be anything."""
    fields = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cast(Any, cell))}
    return f"{type(cell).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"


def _is_frozen_dataclass(cell: Any) -> bool:
    frozen = getattr(getattr(cell, "__dataclass_params__", None), "frozen", False)
    return dataclasses.is_dataclass(cell) and not isinstance(cell, type) and bool(frozen)


def _fault(value: object) -> str | None:
    """Why a field cannot name a result, if so.

    Of Python's own classes, subclasses are refused as well: a worker would need a user's module to know an `IntEnum`
    again, and a file gives back the plain number.
    """
    if isinstance(value, tuple) and type(value) is tuple:
        return next((fault for fault in map(_fault, value) if fault is not None), None)
    if type(value) is int and abs(value) >= 10**DIGITS:
        return f"has a whole number of more than {DIGITS} digits"
    if type(value) is float and not math.isfinite(value):
        return "is a float that is not finite"
    if type(value) is str and not value.isascii() and value.encode("utf-8", "ignore").decode() != value:
        return "is text that UTF-8 cannot write"
    if value is None or type(value) in (bool, int, float, str):
        return None
    if isinstance(value, np.generic):
        return f"is NumPy's {type(value).__name__}, not a plain value (give .item() of it)"
    plain = next((kind.__name__ for kind in (int, float, str, tuple) if isinstance(value, kind)), None)
    return f"is {a_kind(value)}" + (f", not a plain {plain} (give {plain}(…) of it)" if plain else "")


def load_experiment(path: Path) -> Experiment:
    """A user's own experiment from a file, refused with what is missing."""
    with asking(str(path), "finding the file"):
        path = path.resolve()
    if not os.path.isfile(path):  # unlike Path.is_file, it has an answer for every name
        raise InputError(f"There is no file {path}.")
    check_name(path.stem, f"The experiment in {path}")
    experiment = Experiment(path.stem, str(path))
    check_experiment(experiment)
    return experiment


def check_experiment(experiment: Experiment) -> None:
    """See that a module has the five things, with profiles by name."""
    try:
        with asking(experiment.where, "importing it"):
            module = experiment.module
    except InputError as error:
        raise InputError(f"{experiment.where} cannot be imported. {error}") from error
    with asking(experiment.where, "looking for what an experiment has"):
        _check_parts(experiment, module)
        for profile in module.PROFILES:
            check_name(profile, f"{experiment.where}: a profile")


def _check_parts(experiment: Experiment, module: ModuleType) -> None:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise InputError(
            f"{experiment.where} is no experiment: it lacks {', '.join(missing)}. An experiment has "
            f"{', '.join(PARTS)}; docs/experiments.md shows one."
        )
    for part in (*PARTS[1:], "cost", "datasets", "absent"):
        if hasattr(module, part) and not callable(getattr(module, part)):
            raise InputError(
                f"{experiment.where}: {part} is {a_kind(getattr(module, part))}, where a function belongs."
            )
    if not isinstance(module.PROFILES, Mapping) or not module.PROFILES:
        raise InputError(f"{experiment.where}: PROFILES must map names of profiles to configurations.")


def rebuild(experiment: Experiment, kind: str, fields: Mapping[str, Any]) -> Cell:
    """A cell from the name of its class and its fields, as a worker or a file gives them."""
    module = experiment.module
    cell_type = getattr(module, kind, None) or getattr(module, "CELLS", {}).get(kind)
    if not (isinstance(cell_type, type) and dataclasses.is_dataclass(cell_type)):
        raise InputError(f"{experiment.name} has no cells of a class {kind!r}.")
    try:
        return cast(Cell, cell_type(**fields))
    except TypeError as error:  # a field that __init__ does not take
        raise InputError(f"A cell of the class {kind!r} cannot be made of its fields: {error}.") from None
