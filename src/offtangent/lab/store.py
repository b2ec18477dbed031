"""Results on disk: one file a cell, written whole, checked when read.

    DIR/cells/ab/abcdef….npz     results, named by the cell's key
    DIR/damaged/                 files that failed their checksum, set aside

Any number of runs may share a store: a file appears under its name only when complete, and two runs that
compute the same cell write the same result. Below cells/ stand folders and files and nothing else: a pipe, a device,
or a link where a folder belongs, is set aside like a damaged file.
"""

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from offtangent._errors import InputError
from offtangent._files import STALE_AFTER, clear_leftovers, kind_of, read_regular, write_whole
from offtangent.lab.codec import ENDS, Damaged, decode
from offtangent.lab.naming import FILES, FOLDERS


class StoreFailed(OSError):
    """The output folder cannot be used any more. What was stored before is untouched."""


class StoreFull(StoreFailed):
    """The disk is full. What was stored before is untouched and readable."""


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Whatever is written here needs space and leave: where one of them is missing, it is told, with how to go on."""
    try:
        yield
    except StoreFailed:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(
                error.errno,
                f"No space left for results in {folder}. What is stored is complete and readable; free "
                "some space (or move the folder) and run the same command again to go on",
            ) from None
        which = f": {error.filename2 or error.filename}" if error.filename else ""
        raise StoreFailed(
            error.errno,
            f"Results cannot be kept in {folder} ({error.strerror or error}{which}). What is stored is as it was; mend "
            "that (or move the folder) and run the same command again to go on",
        ) from None


def check_output(folder: Path) -> None:
    """Refuse a folder in which something of another kind stands where a run will write."""
    for name in (*FOLDERS, *FILES):
        path = folder / name
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode) and name in FOLDERS:  # to a folder on a larger disk, say
                mode = os.stat(path).st_mode
        except FileNotFoundError:
            if path.is_symlink():
                raise _wrong(path, "a link to nothing", "a folder") from None
            continue
        except NotADirectoryError:
            continue  # of the output folder itself, which `Store.open` will tell
        except OSError as error:
            raise _wrong(path, f"of no use ({error.strerror})", "a folder" if name in FOLDERS else "a file") from None
        if name in FOLDERS and not stat.S_ISDIR(mode):
            raise _wrong(path, kind_of(mode), "a folder")
        if name in FILES and not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):  # a link is replaced, not followed
            raise _wrong(path, kind_of(mode), "a file")


def _wrong(path: Path, found: str, wanted: str) -> InputError:
    return InputError(f"{path} is {found}, where {wanted} belongs. Move it away, or choose another folder with --out.")


@dataclass
class Store:
    """The folder of one or many runs."""

    folder: Path
    damaged: list[str] = field(default_factory=list)  # what was set aside since this object was made, in words
    _looked_at: set[str] = field(default_factory=set)  # folders of cells that are what they should be

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Make the folder if need be, see that it can be written, and clear away what crashed runs left."""
        check_output(folder)
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True)
            probe = folder / f".probe-{secrets.token_hex(4)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"The output folder {folder} cannot be written ({error.strerror}). Choose another with --out."
            ) from None
        clear_away(folder)
        return cls(folder)

    def path(self, key: str) -> Path:
        return self.folder / "cells" / key[:2] / f"{key}.npz"

    def read(self, key: str) -> tuple[xr.Dataset, dict[str, Any]] | None:
        """The stored result, or None. A damaged file is set aside, noted in `damaged`, and counts as absent."""
        if not self._has_folder(key[:2]):
            return None
        path = self.path(key)
        try:
            return _read(path, key)
        except FileNotFoundError:
            return None
        except MemoryError:
            raise InputError(f"{path} does not fit into the memory. Run on a machine that has more of it.") from None
        except (OSError, ValueError, Damaged) as fault:  # a bad sector, a folder in its place, a truncated file
            told = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
            self.set_aside(path, told, key)
            return None

    def write(self, key: str, content: bytes) -> None:
        """Store one encoded result."""
        with room_in(self.folder):
            self._has_folder(key[:2])
            write_whole(self.path(key), content)

    def _has_folder(self, name: str) -> bool:
        """Whether there is a folder for these cells; anything else in its place is set aside."""
        if name in self._looked_at:
            return True
        path = self.folder / "cells" / name
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) and os.access(path, os.R_OK | os.X_OK):
                self._looked_at.add(name)
                return True
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(path, error.strerror) from None
        if stat.S_ISDIR(mode):
            raise _unreadable(path, os.strerror(errno.EACCES))
        self.set_aside(path, f"it is {kind_of(mode)}, where a folder belongs")
        return False

    def set_aside(self, path: Path, fault: str, key: str | None = None) -> None:
        """Move a damaged file out of the way and note it; one that another run has mended meanwhile stays."""
        name = f"{path.name}.{secrets.token_hex(4)}"
        aside = self.folder / "damaged" / name
        with room_in(self.folder):
            aside.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(path, aside)
            except FileNotFoundError:
                return  # another run has already set it aside
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                aside = path.with_name(f"{name}.damaged")  # damaged/ is on another disk: beside it, then
                os.replace(path, aside)
            if key is not None and _is_sound(aside, key):
                os.replace(aside, path)  # another run had already put its own result there
                return
        self.damaged.append(f"{path.name}: {fault}; moved to {aside}")


def _read(path: Path, key: str) -> tuple[xr.Dataset, dict[str, Any]]:
    dataset, about = decode(read_regular(path, ENDS))
    if about.get("key") != key:
        raise Damaged("it is the result of another cell")
    return dataset, about


def _is_sound(path: Path, key: str) -> bool:
    try:
        _read(path, key)
    except (OSError, ValueError, Damaged):
        return False
    return True


def _unreadable(path: Path, why: str | None) -> InputError:
    return InputError(
        f"{path} cannot be read ({why}). Give yourself leave to (chmod u+rwx), or choose another folder with --out."
    )


def clear_away(folder: Path) -> None:
    """Remove what runs left that were killed, and nothing of a run that is alive."""
    for place in (folder, folder / "results", folder / "damaged"):
        clear_leftovers(place)
    with contextlib.suppress(OSError), os.scandir(folder / "cells") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                clear_leftovers(Path(entry.path))
    for mark in [*folder.glob(".run-*"), *folder.glob(".probe-*")]:
        with contextlib.suppress(OSError):  # another run was faster
            if time.time() - mark.stat().st_mtime > STALE_AFTER:
                mark.unlink()
