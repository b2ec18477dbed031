"""The small results of one experiment as one JSON file, with all that is needed to trust them.

A run writes one per experiment into DIR/results/. The repository's own `results/` holds those of the `paper`
profiles, made on a GPU; they travel with the package, so every report can show them next to a local run.

A record ends with the sha256 of all its bytes before: one changed digit, or space, is found. Another program that
writes the same JSON anew makes another file, which is refused as well: a record is as the run wrote it. Those of the
first format have none; the checksums of the shipped ones stand in results/meta/checksums.json. A variable of more than
a megabyte stays in its cell's file, and the record names it by the cell's key and the checksum of its numbers.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import offtangent
from offtangent._errors import InputError
from offtangent._files import read_regular, write_whole
from offtangent.lab.codec import array_checksum
from offtangent.lab.experiment import Experiment, fields_of, name_of, rebuild
from offtangent.lab.machinery import uses_jax
from offtangent.lab.naming import record_name
from offtangent.lab.results import Results
from offtangent.lab.runner import Outcome
from offtangent.lab.shipped import Origin, origin_of
from offtangent.lab.store import Store, room_in

FORMAT = 2
LARGE = 1_000_000  # bytes of a variable above which it stays in its cell's file
WARN = 20_000_000  # bytes of a cell's result above which a person is told
MEMBERS = {"format", "experiment", "profile", "complete", "provenance", "cells"}
SUM, END = b', "checksum": "', b'"}\n'


class DamagedRecord(InputError):
    """A record that is not what was written, or whose large variables are not at hand."""


@dataclass(frozen=True)
class Provenance:
    """Where numbers come from."""

    offtangent: str
    commit: str  # of the source, "+" appended where it had been changed; "" when unknown
    python: str
    jax: str  # "" for an experiment that does not use it
    backend: str
    device: str
    date: str
    seconds: float  # of all cells, added up: several may have run at once
    source: str = ""  # fingerprints of an earlier scheme, in shipped records: they say nothing any more
    library: str = ""
    code: str = ""  # fingerprint of the code that made the numbers


@dataclass(frozen=True, eq=False)
class Record:
    """The results of one experiment in one profile."""

    name: str
    provenance: Provenance
    results: Results
    keys: tuple[str, ...] = ()  # of the cells' files, in the results' order, where they are known
    origin: Origin | None = None  # of a shipped record
    checked: bool = True  # whether it is known to be as it was written: those of the first format have no checksum

    @property
    def kinds(self) -> list[str]:
        """The classes of its cells."""
        return sorted({type(cell).__name__ for cell, _ in self.results})

    def stale(self, experiment: Experiment) -> bool:
        """Whether the code that makes these numbers has changed since."""
        code = self.origin.code if self.origin else self.provenance.code
        return code != experiment.fingerprint(*self.kinds).code

    def missing(self, experiment: Experiment) -> int:
        """How many cells the profile has today that these results do not have."""
        today = {name_of(cell) for cell in experiment.cells(self.results.profile)}
        return len(today - {name_of(cell) for cell, _ in self.results})


def record_of(outcome: Outcome) -> Record:
    """An experiment's outcome with its provenance."""
    experiment = outcome.experiment
    jax_version, backend, device = "", "cpu", platform.processor() or platform.machine()
    code = experiment.fingerprint(*{type(cell).__name__ for cell, _ in outcome.results})
    if uses_jax(code):
        import jax

        jax_version, backend, device = jax.__version__, jax.default_backend(), jax.devices()[0].device_kind
    device = f"{device} ({os.cpu_count()} cores)" if backend == "cpu" else device
    provenance = Provenance(
        offtangent.__version__,
        _commit(),
        platform.python_version(),
        jax_version,
        backend,
        device,
        datetime.now(UTC).isoformat(timespec="seconds"),
        round(outcome.seconds, 2),
        code=code.code,
    )
    return Record(experiment.name, provenance, outcome.results, outcome.keys)


def write_record(record: Record, folder: Path) -> Path:
    """Write DIR/results/<experiment>-<profile>.json and return its path."""
    path = folder / record_name(record.name, record.results.profile)
    head = {
        "format": FORMAT,
        "experiment": record.name,
        "profile": record.results.profile,
        "complete": record.results.complete,
        "provenance": asdict(record.provenance),
    }
    # Cell by cell: all of them as lists would take ten times the memory of the text.
    cells = ", ".join(
        _json(
            {"kind": type(cell).__name__, "fields": fields_of(cell)}
            | ({"key": key} if key and _large(dataset) else {})
            | {"data": _to_plain(dataset, inline=not key)}
        )
        for (cell, dataset), key in zip(record.results, record.keys or ("",) * len(record.results), strict=True)
    )
    content = f'{_json(head)[:-1]}, "cells": [{cells}]'.encode()
    checksum = hashlib.sha256(content).hexdigest().encode()
    with room_in(folder.parent):
        write_whole(path, content + SUM + checksum + END)
    return path


def read_record(path: Path, experiments: Mapping[str, Experiment]) -> Record:
    """Read a record from its file. Its experiment is looked up by name: a file never says what code to run.

    Raises `DamagedRecord` where it is not as it was written, or where large variables are not in DIR/cells.
    """
    try:
        content, checked = _checked(path)
        name = content["experiment"]
        if name not in experiments:
            raise InputError(
                f"{path} holds results of {name!r}, which is none of the papers' experiments. If it is your own, "
                f"name its file too: offtangent report DIR {name}.py"
            )
        store = Store(path.parent.parent)
        pairs = tuple(
            (
                rebuild(experiments[name], cell["kind"], _tupled(cell["fields"])),
                _from_plain(cell["data"] | _from_cell(cell, store, path)),
            )
            for cell in content["cells"]
        )
        keys = tuple(cell.get("key", "") for cell in content["cells"])
        results = Results(content["profile"], pairs, content["complete"])
        return Record(name, Provenance(**content["provenance"]), results, keys, checked=checked)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedRecord(f"{path} is no record of results ({type(error).__name__}: {error}).") from None


def _checked(path: Path) -> tuple[dict[str, Any], bool]:
    """A record's JSON, and whether a checksum, its own or one that came with the package, says that it is unchanged."""
    raw = bytes(read_regular(path, ((b"}", 1), (b"}\n", 2), (b"}\r\n", 3))))
    tail = len(SUM) + 64 + len(END)
    body, rest = raw[:-tail], raw[-tail:]
    summed = rest.startswith(SUM) and rest.endswith(END)
    if summed and rest[len(SUM) : -len(END)] != hashlib.sha256(body).hexdigest().encode():
        raise DamagedRecord(f"{path} is damaged: its checksum does not match its content.")
    content = json.loads(raw)
    if content["format"] not in (1, FORMAT):
        raise InputError(f"{path} has format {content['format']}; this version reads {FORMAT}.")
    # Without a checksum only the first format is taken, and only with what it has: a 2 may have become a 1.
    if not summed and (content["format"] != 1 or not content.keys() <= MEMBERS):
        raise DamagedRecord(f"{path} is damaged: it has lost its checksum.")
    if summed and content["format"] == 1:
        raise DamagedRecord(f"{path} is damaged: it is of a format without a checksum, and has one.")
    return dict(content), summed or hashlib.sha256(raw).hexdigest() in _shipped_checksums()


def _shipped_checksums() -> set[str]:
    """Those of the records that came with the package."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return {*json.loads(read_regular(committed_records()[0].parent / "meta" / "checksums.json")).values()}
    return set()


def _from_cell(cell: Mapping[str, Any], store: Store, path: Path) -> dict[str, Any]:
    """The large variables of a cell, from its file."""
    named = {name: told for name, told in cell["data"].items() if "checksum" in told}
    if not named:
        return {}
    stored = store.read(cell["key"])
    if stored is None:
        raise DamagedRecord(
            f"{path}: {', '.join(map(repr, named))} of {cell['kind']}({_told(cell['fields'])}) is large and stays in "
            f"{store.path(cell['key'])}, which is not there or not sound. Bring the folder cells/ along, or run again."
        )
    values = {name: np.asarray(stored[0].variables[name].values) for name in named}
    other = [name for name, told in named.items() if array_checksum(values[name]) != told["checksum"]]
    if other:
        raise DamagedRecord(f"{path}: {', '.join(other)} in {store.path(cell['key'])} has other numbers. Run again.")
    return {name: told | {"data": values[name]} for name, told in named.items()}


def _told(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def _large(dataset: xr.Dataset) -> bool:
    return any(variable.nbytes > LARGE for variable in dataset.variables.values())


def too_large(results: Results) -> str:
    """What a person is told of cells with more than 20 MB of results; nothing where there are none."""
    found = [(dataset.nbytes, cell) for cell, dataset in results if dataset.nbytes > WARN]
    if not found:
        return ""
    size, cell = max(found, key=lambda one: one[0])
    return (
        f"{len(found)} of {len(results)} cells have results of more than {WARN / 1e6:.0f} MB ({name_of(cell)}: "
        f"{size / 1e6:.0f} MB). They stay in cells/, without which no report can be written: let run return what "
        "claims and figures need."
    )


def read_shipped(path: Path, experiments: Mapping[str, Experiment]) -> Record:
    """A record that came with the package, with what is known of the code that made it."""
    return replace(read_record(path, experiments), origin=origin_of(path))


def unchecked(path: Path) -> str:
    """What a person is told of a record that nothing vouches for."""
    return f"{path} is without a checksum, as the first format was: it cannot be known whether it was changed."


def shipped_fault(path: Path) -> str:
    """What is wrong with the file of a shipped record; nothing where it has the checksum that came with it."""
    meta = path.parent / "meta" / "checksums.json"
    try:
        known = json.loads(read_regular(meta))
        content = read_regular(path)
    except (OSError, ValueError) as error:
        return f"The shipped results {path} cannot be checked ({error}): they are left out."
    if known.get(path.name) == hashlib.sha256(content).hexdigest():
        return ""
    return f"The shipped results {path} are not those that were shipped, by the checksum in {meta}: they are left out."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def committed_records() -> list[Path]:
    """The records that come with the package: made on a GPU, at the papers' own sizes."""
    package = Path(offtangent.__file__).parent
    for folder in (package / "_results", package.parent.parent / "results"):  # installed; a checkout
        if folder.is_dir():
            return sorted(folder.glob("*.json"))
    return []


def _to_plain(dataset: xr.Dataset, *, inline: bool = True) -> dict[str, Any]:
    coordinates = set(dataset.coords)
    return {
        str(name): {
            "dims": list(variable.dims),
            "dtype": variable.dtype.str,
            "shape": list(variable.shape),  # which a list cannot tell where it is empty
            "coordinate": name in coordinates,
        }
        | (
            {"data": _shortest(np.asarray(variable.values))}
            if inline or variable.nbytes <= LARGE
            else {"checksum": array_checksum(np.asarray(variable.values))}
        )
        for name, variable in dataset.variables.items()
    }


def _shortest(values: np.ndarray) -> Any:
    """The values as lists; those of float32 with the digits that tell them apart, half as many as float64 shows."""
    if values.dtype == np.float32:
        values = np.array([float(str(one)) for one in values.ravel()]).reshape(values.shape)
    if values.dtype.kind in "mM":  # of most units tolist makes dates, which JSON has not
        values = values.astype("i8")
    listed = values.tolist()
    return (
        listed
        if values.dtype.kind in "biu" or (values.dtype.kind == "f" and np.isfinite(values).all())
        else finite(listed)
    )


def _from_plain(plain: dict[str, Any]) -> xr.Dataset:
    variables = {
        name: (v["dims"], values.reshape(v.get("shape", values.shape)))
        for name, v in plain.items()
        for values in [np.asarray(v["data"], dtype=np.dtype(v["dtype"]))]
    }
    return xr.Dataset(variables).set_coords([name for name, v in plain.items() if v["coordinate"]])


def finite(value: Any) -> Any:
    """JSON has no NaN or infinity: they become text, which NumPy reads back as the number."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tupled(fields: dict[str, Any]) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        return tuple(convert(part) for part in value) if isinstance(value, list) else value

    return {name: convert(value) for name, value in fields.items()}


def _commit() -> str:
    """The commit of the source: OFFTANGENT_COMMIT where the checkout is not at hand, else git's word, else nothing."""
    if given := os.environ.get("OFFTANGENT_COMMIT"):
        return given
    root = Path(offtangent.__file__).parents[2]
    if not (root / ".git").exists():
        return ""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--", "src").strip()
        return git("rev-parse", "--short=12", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
