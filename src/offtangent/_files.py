"""Files that are either there whole or not there at all."""

import os
import secrets
from pathlib import Path

# Megabytes of data that are read of a user's file unless more are asked for: 60 000 rows of 784 float64 take 376.
READ_LIMIT = 512
TEMPORARY = ".part"  # suffix of a file that is still being written


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, at any moment and after any crash, finds the old or the new file.

    The bytes go to a temporary file beside it, are synced to the disk, and the file is renamed; then the
    folder is synced, so that the name itself survives a power cut. If anything fails, the temporary file is
    removed and the old file is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def shown(path: str | Path) -> str:
    """A path as text that can be printed and written: names of files may hold bytes that are no text.

    >>> shown("mine.csv"), shown("b\udcff.csv")
    ('mine.csv', 'b\ufffd.csv')
    """
    return os.fsencode(path).decode("utf-8", "replace")


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open folders, and renames are durable there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
