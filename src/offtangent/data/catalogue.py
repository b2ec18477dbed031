"""Which files make up a data set, and where they lie."""

import gzip
import os
import zlib
from pathlib import Path

from offtangent._errors import InputError, a_kind
from offtangent._files import cache_folder

ENVIRONMENT = "OFFTANGENT_DATA"

# Paths under the data folder; each file may also be gzipped, with .gz behind its name.
FILES = {
    "mnist": (
        "mnist/train-images-idx3-ubyte",
        "mnist/train-labels-idx1-ubyte",
        "mnist/t10k-images-idx3-ubyte",
        "mnist/t10k-labels-idx1-ubyte",
    ),
    "cifar10": (
        *(f"cifar10/cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
        "cifar10/cifar-10-batches-bin/test_batch.bin",
    ),
}
NAMES = ("digits", *FILES)  # digits ships with scikit-learn and has no files here


def check_name(name: str) -> None:
    """Refuse the name of a data set that does not exist."""
    if name not in NAMES:
        raise InputError(f"There is no data set {name!r}: expected one of {', '.join(NAMES)}.")


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder given, else $OFFTANGENT_DATA, else offtangent/ in the user's cache folder."""
    chosen = folder or os.environ.get(ENVIRONMENT)
    if chosen:
        if not isinstance(chosen, str | os.PathLike):
            raise InputError(f"folder is {a_kind(chosen)}: expected the path of a folder.")
        return Path(chosen).expanduser()
    return cache_folder()


def find(file: str, folder: Path) -> Path | None:
    """Where a file of the catalogue lies, gzipped or not; None if it is not there."""
    plain = folder / file
    for path in (plain.with_name(plain.name + ".gz"), plain):
        if path.is_file():
            return path
    return None


def locate(name: str, file: str, folder: Path) -> Path:
    """Where a file of the catalogue lies, or an InputError that says how to get it."""
    path = find(file, folder)
    if path is None:
        raise InputError(
            f"{name} is not here: looked for {file} (or {Path(file).name}.gz) in {folder}. Set the variable "
            f"{ENVIRONMENT} to the folder that holds {Path(file).parts[0]}/, or give folder=...; or get the "
            f'originals with offtangent.data.download("{name}") or download=True.'
        )
    return path


def read(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in .gz."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, f"it is no whole gzip file ({error})") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None


def damaged(path: Path, fault: str) -> InputError:
    """The error for a file whose content is wrong."""
    return InputError(
        f"{path} is damaged or of another format: {fault}. Delete it and get the original with "
        "offtangent.data.download."
    )
