"""What an experiment is: a module, of a paper or the user's own, with five things in it.

    PROFILES            name → configuration: "smoke", "laptop", "paper"
    cells(config)       independent pieces of work, frozen and hashable, seeds included
    run(cell)           one xarray.Dataset; the same cell gives the same numbers
    claims(results)     what the paper says, what was measured, whether it holds
    draw(results)       figures

and, if it likes, `cost(cell)` (a `Cost`, for forecasts) and `datasets(cell)` (names of data sets and paths of files
that a cell reads; their checksums become part of its key), and `absent(config)` (data sets it would use but does not
find).
"""

import dataclasses
import hashlib
import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import xarray as xr

from offtangent._errors import InputError, a_kind
from offtangent.lab.costs import Cost
from offtangent.lab.fingerprint import Fingerprint, fingerprint
from offtangent.lab.machinery import checksums, machinery_of
from offtangent.lab.watching import Watch, watching

if TYPE_CHECKING:
    from offtangent.lab.claims import Claim
    from offtangent.lab.results import Results
    from offtangent.report import Figure

PARTS = ("PROFILES", "cells", "run", "claims", "draw")
Cell = Hashable  # a frozen dataclass whose fields are numbers, text, booleans, None and tuples of these


@dataclass(frozen=True)
class Experiment:
    """An experiment by name and by where it is: a module's dotted name, or the path of a user's file."""

    name: str
    where: str

    @cached_property
    def module(self) -> ModuleType:
        return _import_file(Path(self.where)) if self.where.endswith(".py") else importlib.import_module(self.where)

    @property
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
        return (self.module.__doc__ or self.name).strip().splitlines()[0]

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return "\n".join((self.module.__doc__ or "").strip().splitlines()[1:]).strip()

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(self.module.PROFILES)

    def cells(self, profile: str) -> list[Cell]:
        if profile not in self.module.PROFILES:
            raise InputError(f"{self.name} has no profile {profile!r}; it has {', '.join(self.profiles)}.")
        cells = list(self.module.cells(self.module.PROFILES[profile]))
        for cell in cells:
            fields_of(cell)
        return cells

    def run(self, cell: Cell) -> xr.Dataset:
        result = self.module.run(cell)
        if not isinstance(result, xr.Dataset):
            raise TypeError(f"run({cell!r}) returned {a_kind(result)}; it must return an xarray.Dataset")
        return result

    def claims(self, results: "Results") -> "list[Claim]":
        return list(self.module.claims(results))

    def draw(self, results: "Results") -> "list[Figure]":
        return list(self.module.draw(results))

    def cost(self, cell: Cell) -> Cost | None:
        counted = getattr(self.module, "cost", None)
        return cast(Cost, counted(cell)) if counted else None

    def datasets(self, cell: Cell) -> tuple[str | Path, ...]:
        """The data sets that a cell reads, by their name in `offtangent.data` or as paths of files."""
        named = getattr(self.module, "datasets", None)
        return tuple(named(cell)) if named else ()

    def unnamed(self, watch: Watch, cell: Cell, results: Path) -> tuple[str, ...]:
        """What a cell, or the file as it was imported, has read beside the file and `datasets(cell)` does not name."""
        from offtangent.data.catalogue import NAMES, data_folder

        watch.opened |= _OPENED.get(self.module.__name__, frozenset())
        if not watch.opened:
            return ()
        named = [data_folder() if one in NAMES else self.file.parent / one for one in self.datasets(cell)]
        return tuple(str(path) for path in watch.unnamed(named, results))

    def absent(self, profile: str) -> tuple[str, ...]:
        """Data sets the profile would use and this machine does not have."""
        missing = getattr(self.module, "absent", None)
        return tuple(missing(self.module.PROFILES[profile])) if missing else ()

    def fingerprint(self, *kinds: str) -> Fingerprint:
        """The hash of the code that makes the numbers of these classes of cells."""
        return fingerprint(self.file, kinds)

    @cached_property
    def _machinery(self) -> dict[str, dict[str, str]]:
        return {}

    def machinery(self, kind: str) -> dict[str, str]:
        """What makes the numbers of a class of cells, here: code, versions and, where JAX is used, its device.

        It is what was found when first asked for, as is the module: a file that changes under a run is another one.
        """
        if kind not in self._machinery:
            self._machinery[kind] = machinery_of(self.fingerprint(kind))
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
            facts["data"] = checksums(datasets, self.file.parent)
        return hashlib.sha256(json.dumps(facts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def fields_of(cell: Cell) -> dict[str, Any]:
    """A cell's fields; a cell that could not be named by them is refused."""
    if not _is_frozen_dataclass(cell):
        raise InputError(f"{cell!r} is no cell: a cell is an instance of a frozen dataclass.")
    fields = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cast(Any, cell))}
    for name, value in fields.items():
        if not _is_plain(value):
            raise InputError(
                f"The cell's field {name}={value!r} is {a_kind(value)}: fields are finite numbers, text, "
                "booleans, None, or tuples of these, so that a result can be named by them."
            )
    return fields


def _is_frozen_dataclass(cell: Any) -> bool:
    frozen = getattr(getattr(cell, "__dataclass_params__", None), "frozen", False)
    return dataclasses.is_dataclass(cell) and not isinstance(cell, type) and bool(frozen)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def load_experiment(path: Path) -> Experiment:
    """A user's own experiment from a file, refused with what is missing."""
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    experiment = Experiment(path.stem, str(path))
    check_experiment(experiment)
    return experiment


def check_experiment(experiment: Experiment) -> None:
    """See that a module has the five things, with profiles by name."""
    try:
        module = experiment.module
    except Exception as error:
        raise InputError(f"{experiment.where} cannot be imported: {type(error).__name__}: {error}") from error
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise InputError(
            f"{experiment.where} is no experiment: it lacks {', '.join(missing)}. An experiment has "
            f"{', '.join(PARTS)}; docs/experiments.md shows one."
        )
    if not isinstance(module.PROFILES, Mapping) or not module.PROFILES:
        raise InputError(f"{experiment.where}: PROFILES must map names of profiles to configurations.")


def _import_file(path: Path) -> ModuleType:
    content = path.read_bytes()  # in the name: a worker that lives long must not run what the file once was
    name = f"offtangent_user_{hashlib.sha256(str(path).encode() + content).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    beside = str(path.parent)
    try:
        sys.path.insert(0, beside)
        with watching(path.parent) as watch:
            exec(compile(content, path, "exec"), module.__dict__)  # what was read; its bytecode may be of an older file
        _OPENED[name] = frozenset(watch.opened)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(beside)
    return module


_OPENED: dict[str, frozenset[str]] = {}  # by module: what a user's file opened when it was imported


def rebuild(experiment: Experiment, kind: str, fields: Mapping[str, Any]) -> Cell:
    """A cell from the name of its class and its fields, as a worker or a file gives them."""
    cell_type = getattr(experiment.module, kind, None)
    if not (isinstance(cell_type, type) and dataclasses.is_dataclass(cell_type)):
        raise InputError(f"{experiment.name} has no cells of a class {kind!r}.")
    return cast(Cell, cell_type(**fields))
