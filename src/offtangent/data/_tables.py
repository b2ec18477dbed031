"""Tables (.csv, .parquet) split into numeric feature columns and one label column."""

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError

Parts = tuple[Float[np.ndarray, "n d"], Any, tuple[str, ...] | None]  # X, labels, feature names


@dataclass
class _Fault:
    count: int
    first: str  # "'setosa' in line 2"


def read_csv(path: Path, labels: str | int | None) -> Parts:
    """A text table, read row by row: 8 bytes a cell, and the labels as text.

    The first row is a header if no cell of it is a number, or if its label is text above a number and its
    other cells are column numbers (as pandas writes them).
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _read_csv(path, file, labels)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no .csv text file in UTF-8: {error}.") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None


def _read_csv(path: Path, file: TextIO, labels: str | int | None) -> Parts:
    rows = _csv_rows(file)
    head = [row for row in (next(rows, None), next(rows, None)) if row is not None]
    if not head:
        raise InputError(f"{path} is empty.")
    width = len(head[0][1])
    names = _header([cells for _, cells in head], labels)
    label = _label_column(path, names, width, labels)
    values, texts, faults = array("d"), list[str](), dict[int, _Fault]()
    for line, cells in chain(head[1:] if names else head, rows):
        if len(cells) != width:
            raise InputError(f"{path} is ragged: line {line} has {len(cells)} cells, the first has {width}.")
        texts.append(cells.pop(label))
        try:
            values.extend([float(cell) for cell in cells])
        except ValueError:
            for column, cell in enumerate(cells):
                if _number(cell) is None:
                    what = f"{cell!r}" if cell else "an empty cell"
                    fault = faults.setdefault(column + (column >= label), _Fault(0, f"{what} in line {line}"))
                    fault.count += 1
            values.extend([0.0] * len(cells))
    if not texts:
        raise InputError(f"{path} has a header and no rows.")
    if faults:
        raise _not_numeric(path, names, faults)
    if "" in texts:
        raise InputError(f"{path} has {texts.count('')} rows without a label. Drop them or fill them in.")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(texts), width - 1)
    return X, _as_numbers(path, texts), _without(names, label)


def _csv_rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and stripped cells of the rows that are not blank."""
    start = file.tell()
    first = next((line for line in file.read(1 << 16).splitlines() if line.strip()), "")
    file.seek(start)
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield reader.line_num, cells


def _header(head: list[list[str]], labels: str | int | None) -> tuple[str, ...] | None:
    first = [_number(cell) for cell in head[0]]
    if all(value is None for value in first):
        return tuple(head[0])
    if isinstance(labels, str) and labels in head[0]:
        return tuple(head[0])
    text = [column for column, value in enumerate(first) if value is None]
    if len(head) == 2 and len(text) == 1 and len(head[1]) == len(head[0]):
        numbers = [value for value in first if value is not None]
        counted = numbers in (
            [float(i) for i in range(len(numbers))],
            [float(i + 1) for i in range(len(numbers))],
        )
        if counted and _number(head[1][text[0]]) is not None:
            return tuple(head[0])
    return None


def read_parquet(path: Path, labels: str | int | None) -> Parts:
    """A Parquet table, through pyarrow, without the index that pandas may have stored beside the columns."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError('Reading .parquet needs pyarrow: pip install "offtangent[parquet]".') from None
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged, or no .parquet file: {error}.") from None
    table = table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])
    names = tuple(str(name) for name in table.column_names)
    if table.num_rows == 0:
        raise InputError(f"{path} has columns and no rows.")
    label = _label_column(path, names, len(names), labels)
    X, faults = np.empty((table.num_rows, len(names) - 1)), dict[int, _Fault]()
    for column in (i for i in range(len(names)) if i != label):
        cells = table.column(column)
        kind = cells.type
        numeric = any(is_kind(kind) for is_kind in (pyarrow.types.is_integer, pyarrow.types.is_floating))
        if cells.null_count:
            faults[column] = _Fault(cells.null_count, "missing values")
        elif numeric or pyarrow.types.is_boolean(kind) or pyarrow.types.is_decimal(kind):
            X[:, column - (column > label)] = cells.to_numpy().astype(np.float64)
        else:
            faults[column] = _Fault(table.num_rows, f"type {kind}")
    if faults:
        raise _not_numeric(path, names, faults)
    if table.column(label).null_count:
        raise InputError(f"{path} has {table.column(label).null_count} rows without a label. Drop them.")
    return X, np.asarray(table.column(label).to_pylist()), _without(names, label)


def encode_labels(labels: object) -> tuple[object, tuple[str, ...] | None]:
    """Text labels as codes 0, 1, … of their sorted values, with those values; anything else as it is.

    >>> encode_labels(["dog", "cat", "dog"])
    (array([1., 0., 1.]), ('cat', 'dog'))
    """
    values = np.asarray(labels)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind != "U" or values.ndim != 1:
        return labels, None
    names, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.float64), tuple(str(name) for name in names)


def _label_column(path: Path, names: tuple[str, ...] | None, width: int, labels: str | int | None) -> int:
    """The position of the label column; also refuses tables without features and columns without a name."""
    if width < 2:
        raise InputError(f"{path} has one column: expected features and a label, separated by commas.")
    if names is not None and "" in names:
        raise InputError(
            f"Column {names.index('')} of {path} (counted from 0) has no name: it looks like a row number "
            "rather than a feature. Save without it (pandas: index=False), or give it a name."
        )
    columns = ", ".join(names[:20]) if names else "no names, for the file has no header"
    if isinstance(labels, str):
        found = names.count(labels) if names else 0
        if names is not None and found == 1:
            return names.index(labels)
        if found > 1:
            raise InputError(f"{path} has {found} columns named {labels!r}. Give its position instead of the name.")
        if not labels.lstrip("-").isdecimal():
            raise InputError(f"{path} has no column {labels!r}. It has {columns}.")
    position = -1 if labels is None else int(labels)
    if not -width <= position < width:
        raise InputError(f"There is no column {position} for the labels: {path} has {width} columns, 0 to {width - 1}.")
    return position % width


def _not_numeric(path: Path, names: tuple[str, ...] | None, faults: dict[int, _Fault]) -> InputError:
    shown = [
        f"{names[column]!r} ({fault.first}; {fault.count} in all)" if names else f"{column} ({fault.first})"
        for column, fault in sorted(faults.items())[:5]
    ]
    more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
    return InputError(
        f"{path}: not every cell is a number in {len(faults)} of the feature columns: {', '.join(shown)}"
        f"{more}. Drop the column or turn it into numbers; if it holds the labels, give its name or position "
        "(labels=... in Python, --label on the command line)."
    )


def _as_numbers(path: Path, texts: Sequence[str]) -> Any:
    """Labels as numbers if all are, as text if none is."""
    numbers = [_number(text) for text in texts]
    words = [text for text, number in zip(texts, numbers, strict=True) if number is None]
    if not words:
        return np.array(numbers, dtype=np.float64)
    if len(words) < len(texts):
        raise InputError(
            f"{path} has labels that are numbers and {len(words)} that are text, the first {words[0]!r}: "
            "expected one kind. Drop those rows, or check which column holds the labels."
        )
    return np.array(texts)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _without(names: tuple[str, ...] | None, label: int) -> tuple[str, ...] | None:
    return None if names is None else names[:label] + names[label + 1 :]
