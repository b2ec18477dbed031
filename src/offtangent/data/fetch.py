"""Data sets on disk: are they here, which bytes are they, and how to get the originals.

Downloads come over https from the public homes of the data. A file is put in place only once its published
md5 has been checked, and a set only once all of its files have: nothing half-done is left behind.
"""

import gzip
import hashlib
import http.client
import io
import tarfile
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from offtangent._arguments import check_function
from offtangent._checks import require
from offtangent._errors import InputError
from offtangent._files import write_whole
from offtangent.data.catalogue import ENVIRONMENT, FILES, check_name, data_folder, find, locate, read

Progress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all where known

MOST = 1 << 28  # bytes: no original is larger, packed or not
TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Original:
    """A published file: its md5 (of the unpacked content, for a single .gz), and its mirrors in turn."""

    file: str
    md5: str
    mirrors: tuple[str, ...]


MNIST_HOMES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
MNIST_MD5 = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)
ORIGINALS = {
    "mnist": tuple(
        Original(f"{file}.gz", md5, tuple(f"{home}{PurePosixPath(file).name}.gz" for home in MNIST_HOMES))
        for file, md5 in zip(FILES["mnist"], MNIST_MD5, strict=True)
    ),
    "cifar10": (
        Original(
            "cifar10/cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        ),
    ),
}


def available(name: str, folder: str | Path | None = None) -> bool:
    """Whether all files of a data set are in the data folder; they are not read."""
    check_name(name)
    where = data_folder(folder)
    return all(find(file, where) for file in FILES.get(name, ()))


def checksum(name: str, folder: str | Path | None = None) -> str:
    """The sha256 of a data set: of its files' content, unpacked, in a fixed order; of the arrays for digits.

    The same data gives the same checksum, gzipped or not. The first call reads every file (about a second);
    later ones do so only for files whose size or time of change differs.
    """
    check_name(name)
    if name == "digits":
        return _digits_checksum()
    where = data_folder(folder)
    whole = hashlib.sha256()
    for path in [locate(name, file, where) for file in FILES[name]]:
        stat = path.stat()
        whole.update(_file_digest(path, stat.st_size, stat.st_mtime_ns))
    return whole.hexdigest()


def download(name: str, folder: str | Path | None = None, *, progress: Progress | None = None) -> Path:
    """Download the originals of a data set into the data folder, replacing what is there.

    They come over https from the public homes of the data. A file is put in place only once its published md5 has been
    checked, and a set only once all of its files have: nothing half-done is left behind. MNIST is 12 MB; CIFAR-10 is
    170 MB, and takes 0.4 GB of memory while it is unpacked.

    Args:
        name: The data set, "mnist" or "cifar10".
        folder: The data folder; by default $OFFTANGENT_DATA, else offtangent/ in the user's cache folder.
        progress: Called as `progress(file, done, total)` as bytes arrive; total is None where the server does not say.

    Returns:
        The data folder.

    Raises:
        InputError: If there is no such data set, no network, or no room for the files. The message says what each
            mirror answered, and which files to put where by hand.

    >>> download("digits")
    Traceback (most recent call last):
    offtangent._errors.InputError: digits ships with scikit-learn: there is nothing to download.
    >>> folder = download("mnist")  # doctest: +SKIP
    """
    check_name(name)
    if progress is not None:
        check_function("progress", progress, "of a file, the bytes done and all of them")
    require(name in ORIGINALS, f"{name} ships with scikit-learn: there is nothing to download.")
    where = data_folder(folder)
    contents: dict[str, bytes] = {}
    for original in ORIGINALS[name]:
        packed = _fetch(name, original, where, progress)
        if original.file.endswith(".tar.gz"):
            contents |= _members(packed, FILES[name], PurePosixPath(original.file).parent)
        else:
            contents[original.file] = packed
    for file, content in contents.items():
        try:
            write_whole(where / file, content)
        except OSError as error:
            raise InputError(
                f"Cannot write {where / file}: {error.strerror or error}. Give another folder=..., or set "
                f"{ENVIRONMENT}."
            ) from None
    return where


def _fetch(name: str, original: Original, where: Path, progress: Progress | None) -> bytes:
    """The file from the first mirror that gives it whole and right."""
    faults = []
    for url in original.mirrors:
        try:
            content = _get(url, original.file, progress)
            _check(content, original)
            return content
        except (OSError, EOFError, ValueError, zlib.error, http.client.HTTPException) as error:
            faults.append(f"{url}: {error}")
    raise InputError(
        f"Could not download {original.file}, and nothing was changed.\n  "
        + "\n  ".join(faults)
        + "\nIs there a network? If not, get the files elsewhere and put "
        + f"{', '.join(FILES[name])} into {where}."
    )


def _get(url: str, file: str, progress: Progress | None) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "offtangent"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        content = bytearray()
        while piece := response.read(1 << 20):
            content += piece
            if len(content) > MOST:
                raise ValueError(f"more than {MOST} bytes came, which the original does not have")
            if progress is not None:
                progress(file, len(content), total)
    if total is not None and len(content) != total:
        raise ValueError(f"only {len(content)} of {total} bytes came")
    return bytes(content)


def _check(content: bytes, original: Original) -> None:
    if original.file.endswith(".gz") and not original.file.endswith(".tar.gz"):
        with gzip.open(io.BytesIO(content)) as file:
            content = file.read(MOST)
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != original.md5:
        raise ValueError(f"its md5 is {found}, expected {original.md5}")


def _members(archive: bytes, files: tuple[str, ...], parent: PurePosixPath) -> dict[str, bytes]:
    """The wanted files out of a checked archive; what else is in it, and where it wants to go, is ignored."""
    wanted = {str(PurePosixPath(file).relative_to(parent)): file for file in files}
    contents = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name in wanted and member.isfile() else None
            if stream is not None:
                contents[wanted[member.name]] = stream.read(MOST)
    missing = sorted(set(files) - set(contents))
    if missing:
        raise InputError(f"The archive does not hold {', '.join(missing)}; nothing was changed.")
    return contents


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, changed: int) -> bytes:  # noqa: ARG001  (part of the cache's key)
    return hashlib.sha256(read(path)).digest()


@lru_cache(maxsize=1)
def _digits_checksum() -> str:
    from sklearn.datasets import load_digits

    whole = hashlib.sha256()
    for array in load_digits(return_X_y=True):
        whole.update(array.astype("<f8").tobytes())  # the type of the labels differs between platforms
    return whole.hexdigest()
