"""Files that are either there whole or not there at all, and reading that never waits and never fills the memory."""

import contextlib
import errno
import hashlib
import io
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# Megabytes of data that are read of a user's file unless more are asked for: 60 000 rows of 784 float64 take 376.
READ_LIMIT = 512
TEMPORARY = ".part"  # suffix of a file that is still being written
STALE_AFTER = 24 * 3600  # seconds after which a temporary file of an unknown writer belongs to nobody

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader, at any moment and after any crash, finds the old or the new file.

    The bytes go to a temporary file beside it, are synced to the disk, and the file is renamed; then the
    folder is synced, so that the name itself survives a power cut. If anything fails, the temporary file is
    removed and the old file is untouched. Its name tells who writes it, for `clear_leftovers`.
    """
    folder = os.fspath(path.parent)
    temporary = f"{folder}/.{own_name(path.name)}{TEMPORARY}"
    try:
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def read_regular(path: Path | str, ends: Iterable[tuple[bytes, int]] = ()) -> bytearray:
    """The bytes of a file. Raises `OSError` for what is no regular file: a pipe is waited for, a device has no end.

    `ends` are marks and how far from its end the file has one of them: a file without any is refused before it is
    read, for a hole of a terabyte is as quickly made as a small file. Raises `ValueError` then.
    """
    descriptor = os.open(path, os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, f"it is {kind_of(found.st_mode)}, not a file", os.fspath(path))
        if ends and not any(_at(file, found.st_size - before, mark) for mark, before in ends):
            raise ValueError("its end is missing")
        file.seek(0)
        content = bytearray(found.st_size)
        view, got = memoryview(content), 0
        while got < len(content) and (count := file.readinto(view[got:])):
            got += count
        view.release()
        del content[got:]  # it was cut short while we read
        return content


def shown(path: str | Path) -> str:
    r"""A path as text that can be printed and written: names of files may hold bytes that are no text.

    >>> shown("mine.csv"), shown("b\udcff.csv")
    ('mine.csv', 'b�.csv')
    """
    return os.fsencode(path).decode("utf-8", "replace")


def cache_folder() -> Path:
    """offtangent/ in the user's cache folder: $XDG_CACHE_HOME, or ~/.cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "offtangent"


def private_folder(name: str) -> tuple[Path, str]:
    """A folder in the user's cache folder that is the user's alone, made if need be; and what is wrong with it.

    What is read there may be run, so nobody else may write there, nor put another folder in its place or in that of
    one it lies in: where owner or mode are not as they should be, the second result says so, and the folder must not be
    used.
    """
    folder = cache_folder() / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = os.lstat(folder)
    except (OSError, RuntimeError) as error:  # no home, for one
        return folder, f"{folder} cannot be made ({error})"
    if not stat.S_ISDIR(found.st_mode):
        return folder, f"{folder} is {kind_of(found.st_mode)}, not a folder"
    if os.name == "posix" and found.st_uid != os.getuid():
        return folder, f"{folder} belongs to somebody else"
    if os.name == "posix" and found.st_mode & 0o077:
        return folder, f"others may use {folder}; chmod 700 it, or remove it if you do not know what is in it"
    return folder, _replaceable(folder) if os.name == "posix" else ""


def _replaceable(folder: Path) -> str:
    """Why somebody else could replace a folder: by one that it lies in, with links or without; nothing if nobody can.

    In a folder with the sticky bit, such as /tmp, all may write, and each moves only what is theirs.
    """
    for parent in dict.fromkeys([*folder.parents, *folder.resolve().parents]):
        found = parent.stat()
        if found.st_uid not in (0, os.getuid()) and parent != parent.parent:
            return f"{parent}, in which it lies, belongs to somebody else"
        if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            return f"others may write in {parent}, in which it lies; chmod o-w it"
    return ""


def kind_of(mode: int) -> str:
    """What a file's mode says it is, with its article."""
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files in `folder` whose writer is dead, or which are old where nobody here can know that."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(TEMPORARY):
                with contextlib.suppress(OSError):  # another run was faster, or the folder is not ours to clear
                    if is_left_over(Path(entry.path)):
                        os.unlink(entry.path)


def own_name(name: str) -> str:
    """A name that nobody else takes, which tells the process that made it."""
    return f"{name}.{_here()}-{os.getpid()}-{secrets.token_hex(4)}"


def is_left_over(path: Path) -> bool:
    """Whether the process that a name tells is dead, or what it names is old where nobody here can know that."""
    here, _, rest = path.name.removesuffix(TEMPORARY).rpartition(".")[2].partition("-")
    process = rest.partition("-")[0]
    if here == _here() and process.isdecimal() and os.name == "posix":
        return not _is_alive(int(process))
    return time.time() - path.lstat().st_mtime > STALE_AFTER


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # a question, not a signal
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@cache
def _here() -> str:
    """Names the machine since its start, and the container: within, a process has its number to itself."""
    told = [socket.gethostname()]
    with contextlib.suppress(OSError):
        told += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]


_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def _at(file: io.FileIO, place: int, mark: bytes) -> bool:
    if place < 0:
        return False
    file.seek(place)
    return file.read(len(mark)) == mark


def _sync_folder(folder: str) -> None:
    if os.name == "nt":  # Windows cannot open folders, and renames are durable there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
