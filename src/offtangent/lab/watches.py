"""Which files beside an experiment a cell reads without naming them.

The content of what `datasets(cell)` names is part of a result's key. A file that is read and not named could change
unnoticed, so its name is told to the user. Python reports every `open` to an audit hook; what a library opens without
Python's help is not seen.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offtangent.lab.naming import FILES, FOLDERS

CODE = (".pyc", ".pyd", ".so", ".dll", ".dylib")  # counts by what is reached of it, not as data


@dataclass(eq=False)
class Watch:
    """The files below a folder that were opened for reading while it lasted."""

    folder: str
    opened: set[str] = field(default_factory=set)

    def unnamed(self, named: Iterable[Path], results: Path) -> list[Path]:
        """Those of them that nobody named, without code, installed packages and the results of the run."""
        ours = (results / name for name in (*FOLDERS, *FILES))
        apart = [place.resolve() for place in (Path(sys.prefix), Path(sys.base_prefix), *ours)]
        # Loading a module opens its source, which counts by what is reached of it; other sources are read as data.
        modules = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        known = {path.resolve() for path in named}
        found = sorted({Path(name).resolve() for name in self.opened})
        return [
            path
            for path in found
            if path not in known
            and path.suffix not in CODE
            and str(path) not in modules
            and path.is_file()
            and not any(path.is_relative_to(place) for place in (*apart, *known))
            and not {"site-packages", "dist-packages"} & set(path.parts)
        ]


_WATCHES: list[Watch] = []
_HOOKED: list[bool] = []  # a hook cannot be taken back: there is one, and it is idle while nobody watches


@contextmanager
def watching(folder: Path) -> Iterator[Watch]:
    """Notice which files below a folder are opened for reading."""
    if not _HOOKED:
        sys.addaudithook(_hear)
        _HOOKED.append(True)
    watch = Watch(os.path.join(os.path.abspath(folder), ""))
    _WATCHES.append(watch)
    try:
        yield watch
    finally:
        _WATCHES.remove(watch)


def _hear(event: str, told: tuple[Any, ...]) -> None:
    if event != "open" or not _WATCHES:
        return
    path, _, flags = told
    writes = flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if isinstance(path, int) or path is None or writes:
        return
    name = os.path.abspath(os.fsdecode(path))
    for watch in tuple(_WATCHES):
        if name.startswith(watch.folder):
            watch.opened.add(name)
