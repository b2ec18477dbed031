"""Parquet tables, through pyarrow: a part of the rows at a time, within a limit, and only the columns that count."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.data._limit import Limit
from offtangent.data._tables import Fault, Parts, Texts, label_column, not_numeric, without

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

AT_ONCE = 1 << 22  # entries that are unpacked at a time
INDEX = "__index_level_"  # how pandas begins the name of an index that it stores beside the columns


def read_parquet(path: Path, labels: str | int | None, limit: Limit) -> Parts:
    """A Parquet table, without the index that pandas may have stored beside the columns."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError('Reading .parquet needs pyarrow: pip install "offtangent[parquet]".') from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
        require(metadata.num_rows != 0, f"{path} has columns and no rows.")
        columns = [field for field in schema if not field.name.startswith(INDEX)]
        names = tuple(field.name for field in columns)
        label = label_column(path, names, len(names), labels)
        table = _Table(path, metadata, names, [_plain(field.type) for field in columns], label)
        table.check_label()
        table.check_size(limit)
        # A text that many rows share is then kept once, as it is in the file.
        shared = [names[label]] if table.text else []
        with pyarrow.parquet.ParquetFile(path, read_dictionary=shared) as file:
            return table.read(file, limit)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged, or no .parquet file: {error}.") from None


class _Table:
    """One table while it is read."""

    def __init__(
        self, path: Path, metadata: "pyarrow.parquet.FileMetaData", names: tuple[str, ...], kinds: list[Any], label: int
    ) -> None:
        self.path, self.metadata, self.names, self.kinds, self.label = path, metadata, names, kinds, label
        self.rows: int = metadata.num_rows
        self.text = _is_text(self.kinds[label])

    def check_label(self) -> None:
        kind = self.kinds[self.label]
        if not (self.text or _is_number(kind) or _is_missing(kind)):
            raise InputError(
                f"The labels of {self.path}, in column {self.names[self.label]!r}, are of type {kind}: expected one "
                "number or text for each row. Turn them into such, or name another column (labels=... in Python, "
                "--label on the command line)."
            )

    def check_size(self, limit: Limit) -> None:
        """Numbers take 8 bytes each here; what else is read, the size that the file says it has unpacked."""
        import pyarrow

        groups = range(self.metadata.num_row_groups)
        unpacked = sum(self.metadata.row_group(group).total_byte_size for group in groups)
        kind = self.kinds[self.label]
        width = kind.byte_width if pyarrow.types.is_fixed_size_binary(kind) else 8
        limit.check(self.path, max(unpacked, self.rows * (8 * (len(self.names) - 1) + width)))

    def read(self, file: "pyarrow.parquet.ParquetFile", limit: Limit) -> Parts:
        faults = {
            column: Fault(self.rows, f"type {kind}")
            for column, kind in enumerate(self.kinds)
            if column != self.label and not (_is_number(kind) or _is_missing(kind))
        }
        wanted = list(dict.fromkeys(name for column, name in enumerate(self.names) if column not in faults))
        columns = [column for column, name in enumerate(self.names) if name in wanted]
        X, numbers, texts = np.empty((self.rows, len(self.names) - 1)), list[np.ndarray](), Texts()
        start = missing = 0
        for batch in file.iter_batches(max(1, AT_ONCE // len(columns)), columns=wanted, use_threads=False):
            if start + batch.num_rows > self.rows or batch.schema.names != [self.names[i] for i in columns]:
                raise InputError(
                    f"{self.path} has other rows or columns than it says. Are two columns of the same name? Rename one."
                )
            for column, cells in zip(columns, batch.columns, strict=True):
                if column == self.label:
                    missing += cells.null_count
                    if not missing and self.text:
                        _add(texts, cells)
                        limit.check_so_far(self.path, X.nbytes + texts.size)
                    elif not missing:
                        numbers.append(_numbers(cells))
                elif cells.null_count:
                    faults.setdefault(column, Fault(0, "missing values")).count += cells.null_count
                elif column not in faults:
                    X[start : start + batch.num_rows, column - (column > self.label)] = _numbers(cells)
            start += batch.num_rows
        if faults:
            raise not_numeric(self.path, self.names, faults)
        if missing:
            raise InputError(f"{self.path} has {missing} rows without a label. Drop them.")
        y = texts.objects() if self.text else np.concatenate(numbers)
        return X[:start], y, without(self.names, self.label)


def _add(texts: Texts, cells: "pyarrow.Array") -> None:
    import pyarrow

    coded = cells if pyarrow.types.is_dictionary(cells.type) else cells.dictionary_encode()
    texts.extend(coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False))


def _plain(kind: Any) -> Any:
    """The type of the entries of a column that is kept as a dictionary (pandas: a category), else its own."""
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _is_missing(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_null(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, *binary))


def _numbers(cells: "pyarrow.Array") -> np.ndarray:
    import pyarrow

    if pyarrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pyarrow.types.is_decimal(cells.type):
        cells = cells.cast(pyarrow.float64())
    found: np.ndarray = cells.to_numpy(zero_copy_only=False)
    return found
