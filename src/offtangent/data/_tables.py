"""Tables split into numeric feature columns and one label column: text (.csv), and what .parquet shares with it."""

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jaxtyping import Float

from offtangent._checks import require
from offtangent._errors import InputError, a_kind
from offtangent.data._limit import Limit

Parts = tuple[Float[np.ndarray, "n d"], Any, tuple[str, ...] | None]  # X, labels, feature names


TEXT = 100  # bytes that a text takes in memory beside its characters, about


@dataclass
class Fault:
    """What is wrong with a column."""

    count: int
    first: str  # "'setosa' in line 2"


class Texts:
    """Many texts of few kinds, each kept once."""

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.codes = array("q")
        self.size = 0  # bytes, about

    def append(self, text: str) -> None:
        self.codes.append(self._code(text))
        self.size += self.codes.itemsize

    def extend(self, kinds: Sequence[str | bytes], codes: np.ndarray) -> None:
        """Texts given as `kinds[codes]`."""
        texts = [kind if isinstance(kind, str) else kind.decode("utf-8", "backslashreplace") for kind in kinds]
        known = np.array([self._code(text) for text in texts], np.int64)
        self.codes.frombytes(known[codes].tobytes())
        self.size += len(codes) * self.codes.itemsize

    def _code(self, text: str) -> int:
        if text not in self.kinds:
            self.size += len(text) + TEXT
        return self.kinds.setdefault(text, len(self.kinds))

    def count(self, chosen: Sequence[bool]) -> int:
        """How many texts are of the chosen kinds."""
        return int(np.bincount(self.codes, minlength=len(self.kinds))[np.asarray(chosen)].sum())

    def objects(self) -> np.ndarray:
        """The texts as an array of references: one of text has room for the longest in each entry."""
        return self.spread(list(self.kinds), object)

    def spread(self, values: Sequence[Any], dtype: Any) -> np.ndarray:
        """For each text, the value of its kind."""
        return np.array(values, dtype)[np.frombuffer(self.codes, np.int64)]


def read_csv(path: Path, labels: str | int | None, limit: Limit) -> Parts:
    """A text table, read row by row: 8 bytes a cell, and each different label as text.

    The first row is a header if no cell of it is a number, or if its label is text above a number and its
    other cells are column numbers (as pandas writes them).
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _read_csv(path, file, labels, limit)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no .csv text file in UTF-8: {error}.") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None


def _read_csv(path: Path, file: TextIO, labels: str | int | None, limit: Limit) -> Parts:
    rows = _csv_rows(path, file, limit)
    head = [row for row in (next(rows, None), next(rows, None)) if row is not None]
    require(head, f"{path} is empty.")
    width = len(head[0][1])
    names = _header([cells for _, cells in head], labels)
    label = label_column(path, names, width, labels)
    values, texts, faults = array("d"), Texts(), dict[int, Fault]()
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
                    fault = faults.setdefault(column + (column >= label), Fault(0, f"{what} in line {line}"))
                    fault.count += 1
            values.extend([0.0] * len(cells))
        limit.check_so_far(path, values.itemsize * len(values) + texts.size)
    require(texts.codes, f"{path} has a header and no rows.")
    if faults:
        raise not_numeric(path, names, faults)
    X = np.frombuffer(values, dtype=np.float64).reshape(len(texts.codes), width - 1)
    return X, _as_numbers(path, texts), without(names, label)


def _csv_rows(path: Path, file: TextIO, limit: Limit) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and stripped cells of the rows that are not blank."""
    start = file.tell()
    first = next((line for line in file.read(1 << 16).splitlines() if line.strip()), "")
    file.seek(start)
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    length = 0  # of the row, which may have several lines

    def lines() -> Iterator[str]:
        nonlocal length
        while line := file.readline(limit.row - length + 1):
            length += len(line)
            limit.check_row(path, reader.line_num + 1, length)
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    for row in reader:
        length = 0
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


def encode_labels(labels: object) -> tuple[object, tuple[str, ...] | None]:
    """Text labels as codes 0, 1, … of their sorted values, with those values; anything else as it is.

    >>> encode_labels(["dog", "cat", "dog"])
    (array([1., 0., 1.]), ('cat', 'dog'))
    """
    values = np.asarray(labels)
    if values.dtype.kind == "S":
        # Bytes that are no text stay different from each other.
        values = np.char.decode(values, "utf-8", "backslashreplace")
    if values.ndim != 1 or not (values.dtype.kind == "U" or _all_text(values)):
        return labels, None
    kinds = sorted(set(values.tolist()))
    if kinds and not kinds[0].strip():
        blank = sum(not text.strip() for text in values.tolist())
        raise InputError(f"{blank} rows are without a label. Drop them or fill them in.")
    codes = {kind: code for code, kind in enumerate(kinds)}
    return np.array([codes[text] for text in values.tolist()], np.float64), tuple(kinds)


def _all_text(values: np.ndarray) -> bool:
    return values.dtype.kind == "O" and all(isinstance(value, str) for value in values)


def label_column(path: Path, names: tuple[str, ...] | None, width: int, labels: str | int | None) -> int:
    """The position of the label column; also refuses tables without features and columns without a name."""
    require(width >= 2, f"{path} has one column: expected features and a label, separated by commas.")
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
        if not re.fullmatch(r"-?\d{1,9}", labels):
            shown = repr(labels[:60]) + ("…" if len(labels) > 60 else "")
            raise InputError(f"{path} has no column {shown}. It has {columns}.")
    elif labels is not None and (isinstance(labels, bool) or not hasattr(labels, "__index__")):
        raise InputError(f"labels={labels!r} is {a_kind(labels)}: expected a column's name or position.")
    position = -1 if labels is None else int(labels)
    if not -width <= position < width:
        raise InputError(f"There is no column {position} for the labels: {path} has {width} columns, 0 to {width - 1}.")
    return position % width


def not_numeric(path: Path, names: tuple[str, ...] | None, faults: dict[int, Fault]) -> InputError:
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


def _as_numbers(path: Path, texts: Texts) -> np.ndarray:
    """Labels as numbers if all are, as text if none is."""
    kinds = list(texts.kinds)
    if "" in kinds:
        blank = texts.count([kind == "" for kind in kinds])
        raise InputError(f"{path} has {blank} rows without a label. Drop them or fill them in.")
    numbers = [_number(kind) for kind in kinds]
    words = [number is None for number in numbers]
    if all(words):
        return texts.objects()
    if any(words):
        raise InputError(
            f"{path} has labels that are numbers and {texts.count(words)} that are text, the first "
            f"{kinds[words.index(True)]!r}: expected one kind. Drop those rows, or check which column holds the labels."
        )
    # Whole numbers stay such: float64 may not tell large ones apart, which `check_labels` looks at.
    if all(re.fullmatch(r"[-+]?\d{1,18}", kind) for kind in kinds):
        return texts.spread([int(kind) for kind in kinds], np.int64)
    return texts.spread(numbers, np.float64)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def without(names: tuple[str, ...] | None, label: int) -> tuple[str, ...] | None:
    return None if names is None else names[:label] + names[label + 1 :]
