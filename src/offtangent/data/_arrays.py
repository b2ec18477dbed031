"""NumPy's own files (.npz, .npy), read within a limit. Nothing is ever unpickled."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.data._limit import Limit

INPUT_NAMES = ("X", "x", "data")
SUFFIX = ".npy"  # of the members of an .npz
ENCRYPTED = 0x1  # a flag of a zip file's member
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what np.savez writes; the others unpack without bound


def read_npz(source: Path, labels: str | None, limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and labels of an .npz; `labels` is the name of the latter. Only these two arrays are unpacked."""
    if labels is not None:
        candidates = [(name, labels) for name in INPUT_NAMES]
    else:
        candidates = [("X", "y"), ("x", "y"), ("data", "labels"), ("data", "target")]
    with _opened(source) as file:
        magic = file.read(len(np.lib.format.MAGIC_PREFIX))
        require(
            magic != np.lib.format.MAGIC_PREFIX,
            f"{source} holds a single array and no names: it is an .npy file. Rename it.",
        )
        if magic[:1] == b"\x80":
            raise _pickled(source)
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(SUFFIX): info for info in archive.infolist()}
            for names in candidates:
                if all(name in members for name in names):
                    wanted = [members[name] for name in names]
                    limit.check(source, sum(info.file_size for info in wanted))
                    X, y = (_member(source, archive, info) for info in wanted)
                    return X, y
    found = ", ".join(list(members)[:20]) or "(none)"
    expected = " or ".join(f"{first} and {second}" for first, second in candidates)
    raise InputError(
        f"{source} holds arrays named {found}: expected {expected}. Save it as np.savez(path, X=..., y=...)."
    )


def read_npy(sources: tuple[Path, Path], limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of two .npy files, inputs and labels."""
    limit.check(sources[0], sum(path.stat().st_size for path in sources))
    arrays = []
    for path in sources:
        if path.suffix.lower() != SUFFIX:
            raise InputError(f"{path} ends in {path.suffix!r}: expected a second .npy file, with the labels.")
        with _opened(path) as file:
            if zipfile.is_zipfile(file):
                raise InputError(f"{path} holds several arrays: it is an .npz file. Rename it.")
            file.seek(0)
            arrays.append(_array(path, file))
    return arrays[0], arrays[1]


def _member(source: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array of an archive. zipfile unpacks no more of a member than its entry says, which was checked."""
    if info.flag_bits & ENCRYPTED or info.compress_type not in METHODS:
        raise InputError(
            f"{info.filename} in {source} is encrypted, or packed in another way than NumPy does. Save it with "
            "np.savez or np.savez_compressed."
        )
    with archive.open(info) as file:
        return _array(source, file)


def _array(source: Path, file: Any) -> np.ndarray:
    array = np.lib.format.read_array(file, allow_pickle=False)
    require(
        array.dtype.itemsize != 0,
        f"{source} holds an array of {array.dtype}, whose entries are empty: expected numbers.",
    )
    return array


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The open file, closed in any case; every way in which it is refused becomes an InputError."""
    try:
        with source.open("rb") as file:
            yield file
    except InputError:
        raise
    # Damaged bytes end in errors of a dozen kinds: of zipfile, zlib and tokenize, of overflow, memory, types, keys.
    except Exception as error:
        if "Object arrays" in str(error):
            raise _pickled(source) from None
        told = str(error) or type(error).__name__
        raise InputError(f"{source} is damaged, or no {source.suffix} file: {told[:300]}.") from None


def _pickled(source: Path) -> InputError:
    return InputError(
        f"{source} holds Python objects (an array of dtype object, or a pickle), which could run any code when read; "
        "it is refused. Save numbers: np.savez(path, X=X.astype(float), y=y)."
    )
