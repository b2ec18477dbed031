"""A training read from a user's Python file, and the numbers of its checkpoints kept in a folder."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from offtangent._checks import require
from offtangent._errors import InputError, a_kind
from offtangent.interop.trainings import is_module, translated
from offtangent.lab.codec import encode
from offtangent.lab.fingerprints import fingerprint
from offtangent.lab.importing import load
from offtangent.lab.questions import asking
from offtangent.lab.store import Store
from offtangent.regime import measure
from offtangent.regime.training import Training

HINT = (
    "It takes nothing and returns offtangent.regime.Training(f, [params0, ..., params], X, y); docs/regime.md has one."
)


def read_training(path: Path, states: Sequence[Path] = (), *, torch: bool = False) -> Training:
    """Load a user's file and ask its `training()`.

    Args:
        path: The Python file.
        states: Files with state dicts of a PyTorch module, the start first; none where the file has the checkpoints.
        torch: Whether the network must be a PyTorch module.

    Returns:
        What it gave.

    Raises:
        InputError: If there is no such file or function, if they fail, or give something else.
    """
    require(isinstance(path, Path), f"path is {a_kind(path)}: expected a pathlib.Path.")
    require(path.suffix == ".py", f"{path} is no Python file: expected one whose name ends in .py.")
    path = path.resolve()
    if not os.path.isfile(path):  # unlike Path.is_file, it has an answer for every name
        raise InputError(f"There is no file {path}.")
    with asking(str(path), "importing it"):
        loaded = load(path)
    make = getattr(loaded.module, "training", None)
    require(make is not None, f"{path.name} has no function training(). {HINT}")
    if not callable(make):
        raise InputError(f"{path.name}: training is {a_kind(make)}, where a function belongs. {HINT}")
    with asking(str(path), "training()"), loaded.at_home():
        found = make()
    require(isinstance(found, Training), f"{path.name}: training() gave {a_kind(found)}. {HINT}")
    for state in states:
        require(os.path.isfile(state), f"There is no file {state}.")
    if torch or states:
        require(
            is_module(found.f),
            f"{path.name}: f is {a_kind(found.f)}, where --torch and state dicts need a PyTorch module.",
        )
    return translated(replace(found, checkpoints=list(states)) if states else found)


@dataclass(frozen=True)
class KeptInFolder:
    """Numbers of checkpoints in an output folder, each file whole or absent and with its checksum, as results are.

    Attributes:
        store: The folder.
        code: The hash of our own code that measures, which is part of every key.
    """

    store: Store
    code: str

    @classmethod
    def open(cls, folder: Path) -> "KeptInFolder":
        """Make the folder if need be, and see that it can be written."""
        return cls(Store.open(folder), fingerprint(Path(measure.__file__)).code)

    def read(self, key: str, /) -> Mapping[str, Any] | None:
        """The numbers under a key, or None; what is damaged is set aside."""
        stored = self.store.read(self._whole(key))
        numbers: Mapping[str, Any] | None = None if stored is None else stored[1]["regime"]
        return numbers

    def write(self, key: str, numbers: Mapping[str, Any], /) -> None:
        """Keep numbers under a key."""
        whole = self._whole(key)
        self.store.write(whole, encode(xr.Dataset(), {"key": whole, "regime": dict(numbers)}))

    def _whole(self, key: str) -> str:
        return hashlib.sha256(f"{self.code} {key}".encode()).hexdigest()
