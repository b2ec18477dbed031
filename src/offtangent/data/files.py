"""A user's own file turned into (X, y): .npz, a pair of .npy, .csv or .parquet. Nothing is ever unpickled."""

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_count, check_labels, check_several, require
from offtangent._errors import InputError, a_kind
from offtangent._files import READ_LIMIT
from offtangent.data._arrays import read_npy, read_npz
from offtangent.data._limit import Limit
from offtangent.data._parquet import read_parquet
from offtangent.data._tables import encode_labels, read_csv

SUFFIXES = (".npz", ".npy", ".csv", ".parquet")


@dataclass(frozen=True)
class UserData:
    """The samples and labels of one file, as `load` returns them; `X, y = load(...)` works too.

    Attributes:
        X: The samples as rows, in float64.
        y: The labels in float64. Text becomes codes 0, 1, …: y = i stands for `classes[i]`.
        features: The names of the columns of X, where the file has any.
        classes: The text that each code stands for, sorted; None where the labels are numbers.
        source: The file.
    """

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]  # text labels as codes 0, 1, …: y = i stands for classes[i]
    features: tuple[str, ...] | None  # names of the columns of X, where the file has any
    classes: tuple[str, ...] | None  # the text of each code, sorted; None where labels are numbers
    source: Path

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.X, self.y))


def load(
    path: str | Path | tuple[str | Path, str | Path],
    *,
    labels: str | int | Path | None = None,
    limit: int = READ_LIMIT,
) -> UserData:
    r"""Load inputs and labels from a user's own file, and check them.

    Everything is returned in float64: only numbers are accepted as inputs, all of them finite, with one label for each
    of n ≥ 2 rows. Labels that are text become codes 0, 1, … in sorted order. Nothing is ever unpickled. Four formats
    are read:

    - `.npz` holds arrays X and y (or x and y, data and labels, data and target).
    - `.npy` holds one array, so that two files are needed: `load((x, y))` or `load(x, labels=y)`.
    - `.csv` has cells that commas, semicolons or tabs divide, with a header or without.
    - `.parquet` is a table like `.csv`; it needs pyarrow.

    Memory: 8 bytes an entry, beside the file's own arrays. A `.csv` is read row by row, about 10⁷ entries in a few
    seconds.

    Args:
        path: The file, or a pair of `.npy` files (inputs, labels).
        labels: Where the labels are. Of a table it is the name of their column or its position, from 0 or from the end
            (−1), by default the last; of an `.npz` the name of their array; beside one `.npy` the second file.
        limit: The most megabytes (10⁶ bytes) of data, unpacked, that are read: a small archive may hold more than the
            memory. A row of a `.csv` may take a 32nd of it.

    Returns:
        The samples `X` and labels `y`, with the names of `features` and `classes`, and the `source`. `X, y = load(...)`
        works too.

    Raises:
        InputError: If the file is missing, damaged, of another format or larger than `limit`, or if an input is no
            finite number. The message names the file, the column or row, and what to do about it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     _ = path.write_text("weight,height,kind\n4,25,cat\n30,60,dog\n5,30,cat\n")
    ...     pets = load(path, labels="kind")
    >>> pets.X.shape, pets.y, pets.features, pets.classes
    ((3, 2), array([0., 1., 0.]), ('weight', 'height'), ('cat', 'dog'))
    """
    check_count("limit", limit)
    bound = Limit(limit)
    if isinstance(path, tuple):
        if labels is not None:
            raise InputError("A pair (inputs, labels) already names the labels: leave out labels=....")
        require(len(path) == 2, f"A tuple of {len(path)} paths: expected two, (inputs, labels).")
        path, labels = path
        if _path(path).suffix.lower() != ".npy":
            raise InputError(f"A pair must be two .npy files, and the first is {path}.")
    source = _existing(path)
    suffix = source.suffix.lower()
    features: tuple[str, ...] | None = None
    X: object
    y: object
    if suffix == ".npz":
        X, y = read_npz(source, None if labels is None else str(labels), bound)
    elif suffix == ".npy":
        if not isinstance(labels, str | Path):
            raise InputError(
                f"{source} holds inputs alone: give a second .npy file with the labels: load((inputs, labels)), or "
                "--label labels.npy."
            )
        X, y = read_npy((source, _existing(labels)), bound)
    elif suffix in (".csv", ".parquet"):
        column = str(labels) if isinstance(labels, Path) else labels
        X, y, features = (read_csv if suffix == ".csv" else read_parquet)(source, column, bound)
    else:
        raise InputError(f"{source} ends in {suffix!r}: expected one of {', '.join(SUFFIXES)}.")
    try:
        coded, classes = encode_labels(y)
        inputs, targets = check_labels(X, coded)
        check_several(inputs)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return UserData(inputs, targets, features, classes, source)


def _path(path: object) -> Path:
    if not isinstance(path, str | PathLike):
        raise InputError(f"path is {a_kind(path)}: expected the path of a file, or a pair of them.")
    return Path(path)


def _existing(path: str | Path) -> Path:
    try:
        source = _path(path).expanduser()
        if not source.exists():
            raise InputError(f"There is no file {source} (looked from {Path.cwd()}).")
        if not source.is_file():
            raise InputError(f"{source} is not a file: expected one that ends in {', '.join(SUFFIXES)}.")
        if source.stat().st_size == 0:
            raise InputError(f"{source} is empty.")
    except (OSError, RuntimeError) as error:  # a name that is too long, a folder without permission, ~nobody
        raise InputError(f"There is no file {path}: {getattr(error, 'strerror', None) or error}.") from None
    return source
