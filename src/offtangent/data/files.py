"""A user's own file turned into (X, y): .npz, a pair of .npy, .csv or .parquet. Nothing is ever unpickled."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError
from offtangent.data._tables import encode_labels, read_csv, read_parquet
from offtangent.data.checks import check_labels

SUFFIXES = (".npz", ".npy", ".csv", ".parquet")
INPUT_NAMES = ("X", "x", "data")


@dataclass(frozen=True)
class UserData:
    """A file's samples and labels; `X, y = load(...)` works too."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]  # text labels as codes 0, 1, …: y = i stands for classes[i]
    features: tuple[str, ...] | None  # names of the columns of X, where the file has any
    classes: tuple[str, ...] | None  # the text of each code, sorted; None where labels are numbers
    source: Path

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.X, self.y))


def load(path: str | Path | tuple[str | Path, str | Path], *, labels: str | int | Path | None = None) -> UserData:
    """A file's samples as float64, checked: numbers only, all finite, one label for each of n ≥ 2 rows.

    - `.npz`: arrays X and y (or x and y, data and labels, data and target); `labels` may name the labels.
    - `.npy`: two files, `load((x, y))` or `load(x, labels=y)`.
    - `.csv`: comma, semicolon or tab, with a header or without; `labels` is the label column's name or
      position (from 0, or from the end: -1), by default the last.
    - `.parquet`: as .csv; needs pyarrow.

    Text labels become codes 0, 1, … in sorted order. Memory: 8 bytes an entry, beside the file's own arrays;
    a .csv is read row by row, about 10⁷ entries in a few seconds.
    """
    if isinstance(path, tuple):
        if labels is not None:
            raise InputError("A pair (inputs, labels) already names the labels: leave out labels=....")
        path, labels = path
        if Path(path).suffix.lower() != ".npy":
            raise InputError(f"A pair must be two .npy files, and the first is {path}.")
    source = _existing(path)
    suffix = source.suffix.lower()
    features: tuple[str, ...] | None = None
    X: object
    y: object
    if suffix == ".npz":
        X, y = _read_npz(source, labels)
    elif suffix == ".npy":
        X, y = _read_npy_pair(source, labels)
    elif suffix in (".csv", ".parquet"):
        column = str(labels) if isinstance(labels, Path) else labels
        X, y, features = (read_csv if suffix == ".csv" else read_parquet)(source, column)
    else:
        raise InputError(f"{source} ends in {suffix!r}: expected one of {', '.join(SUFFIXES)}.")
    try:
        coded, classes = encode_labels(y)
        inputs, targets = check_labels(X, coded)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return UserData(inputs, targets, features, classes, source)


def _existing(path: str | Path) -> Path:
    source = Path(path).expanduser()
    if not source.exists():
        raise InputError(f"There is no file {source} (looked from {Path.cwd()}).")
    if not source.is_file():
        raise InputError(f"{source} is not a file: expected one that ends in {', '.join(SUFFIXES)}.")
    if source.stat().st_size == 0:
        raise InputError(f"{source} is empty.")
    return source


def _read_npz(source: Path, labels: str | int | Path | None) -> tuple[np.ndarray, np.ndarray]:
    if labels is not None:
        candidates = [(name, str(labels)) for name in INPUT_NAMES]
    else:
        candidates = [("X", "y"), ("x", "y"), ("data", "labels"), ("data", "target")]
    with _opened(source) as file:
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            raise InputError(f"{source} holds a single array and no names: it is an .npy file. Rename it.")
        with content:
            for first, second in candidates:
                if first in content.files and second in content.files:
                    return content[first], content[second]
            found = ", ".join(content.files) or "(none)"
    expected = " or ".join(f"{first} and {second}" for first, second in candidates)
    raise InputError(
        f"{source} holds arrays named {found}: expected {expected}. Save it as np.savez(path, X=..., y=...)."
    )


def _read_npy_pair(source: Path, labels: str | int | Path | None) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(labels, str | Path):
        raise InputError(
            f"{source} holds inputs alone: give a second .npy file with the labels: load((inputs, labels)), or "
            "--label labels.npy."
        )
    arrays = []
    for path in (source, _existing(labels)):
        if path.suffix.lower() != ".npy":
            raise InputError(f"{path} ends in {path.suffix!r}: expected a second .npy file, with the labels.")
        with _opened(path) as file:
            array = np.load(file, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise InputError(f"{path} holds several arrays: it is an .npz file. Rename it.")
        arrays.append(array)
    return arrays[0], arrays[1]


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The open file, closed in any case; every way in which NumPy refuses it becomes an InputError."""
    try:
        with source.open("rb") as file:
            yield file
    except InputError:
        raise
    except (ValueError, EOFError, OSError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error):
            raise InputError(
                f"{source} holds Python objects (an array of dtype object, or a pickle), which could run any "
                "code when read; it is refused. Save numbers: np.savez(path, X=X.astype(float), y=y)."
            ) from None
        raise InputError(f"{source} is damaged, or no {source.suffix} file: {error}.") from None
