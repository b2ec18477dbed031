"""Results on disk: one file a cell, written whole, checked when read.

    DIR/cells/ab/abcdef….npz     results, named by the cell's key
    DIR/damaged/                 files that failed their checksum, set aside
    DIR/compiled/                JAX's compilation cache

Any number of runs may share a store: a file appears under its name only when complete, and two runs that
compute the same cell write the same result.
"""

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from offtangent._errors import InputError
from offtangent._files import TEMPORARY, write_whole
from offtangent.lab.codec import Damaged, decode

STALE_AFTER = 24 * 3600  # seconds after which a temporary file belongs to nobody


class StoreFull(OSError):
    """The disk is full. What was stored before is untouched and readable."""


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Whatever is written here needs space: a full disk is told as such, with how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreFull(
            error.errno,
            f"No space left for results in {folder}. What is stored is complete and readable; free "
            "some space (or move the folder) and run the same command again to go on",
        ) from None


@dataclass
class Store:
    """The folder of one or many runs."""

    folder: Path
    damaged: list[str] = field(default_factory=list)  # what was set aside since this object was made, in words

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Make the folder if need be, see that it can be written, and clear away what crashed runs left."""
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True)
            probe = folder / f".probe-{secrets.token_hex(4)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"The output folder {folder} cannot be written ({error.strerror}). Choose another with --out."
            ) from None
        for left in [*(folder / "cells").glob(f"*/.*{TEMPORARY}"), *folder.glob(".run-*"), *folder.glob(".probe-*")]:
            try:
                if time.time() - left.stat().st_mtime > STALE_AFTER:
                    left.unlink(missing_ok=True)
            except FileNotFoundError:
                pass  # another run was faster
        return cls(folder)

    @property
    def compiled(self) -> Path:
        return self.folder / "compiled"

    def path(self, key: str) -> Path:
        return self.folder / "cells" / key[:2] / f"{key}.npz"

    def read(self, key: str) -> tuple[xr.Dataset, dict[str, Any]] | None:
        """The stored result, or None. A damaged file is set aside, noted in `damaged`, and counts as absent."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:  # a bad sector, a folder in its place
            self._set_aside(path, str(error))
            return None
        try:
            dataset, about = decode(content)
            if about.get("key") != key:
                raise Damaged("it is the result of another cell")
            return dataset, about
        except Damaged as fault:
            self._set_aside(path, str(fault), content)
            return None

    def write(self, key: str, content: bytes) -> None:
        """Store one encoded result."""
        with room_in(self.folder):
            write_whole(self.path(key), content)

    def _set_aside(self, path: Path, fault: str, content: bytes | None = None) -> None:
        aside = self.folder / "damaged" / f"{path.name}.{secrets.token_hex(4)}"
        with room_in(self.folder):
            aside.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(path, aside)
            except FileNotFoundError:
                return  # another run has already set it aside
        if content is not None and aside.read_bytes() != content:
            os.replace(aside, path)  # another run had already put its own result there
            return
        self.damaged.append(f"{path.name}: {fault}; moved to {aside}")
