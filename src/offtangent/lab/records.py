"""The small results of one experiment as one JSON file, with all that is needed to trust them.

A run writes one per experiment into DIR/results/. The repository's own `results/` holds those of the `paper`
profiles, made on a GPU; they travel with the package, so every report can show them next to a local run.
"""

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import offtangent
from offtangent._errors import InputError
from offtangent._files import write_whole
from offtangent.lab.experiment import Experiment, fields_of, rebuild
from offtangent.lab.machinery import uses_jax
from offtangent.lab.results import Results
from offtangent.lab.runner import Outcome
from offtangent.lab.store import room_in

FORMAT = 1


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

    @property
    def kinds(self) -> list[str]:
        """The classes of its cells."""
        return sorted({type(cell).__name__ for cell, _ in self.results})

    def stale(self, experiment: Experiment) -> bool:
        """Whether the code that makes these numbers has changed since."""
        return self.provenance.code != experiment.fingerprint(*self.kinds).code

    def missing(self, experiment: Experiment) -> int:
        """How many cells the profile has today that these results do not have."""
        return len(
            {repr(cell) for cell in experiment.cells(self.results.profile)} - {repr(cell) for cell, _ in self.results}
        )


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
        offtangent.__version__, _commit(), platform.python_version(), jax_version, backend, device,
        datetime.now(UTC).isoformat(timespec="seconds"), round(outcome.seconds, 2), code=code.code,
    )  # fmt: skip
    return Record(experiment.name, provenance, outcome.results)


def write_record(record: Record, folder: Path) -> Path:
    """Write DIR/results/<experiment>-<profile>.json and return its path."""
    path = folder / f"{record.name.replace('/', '-')}-{record.results.profile}.json"
    content = {
        "format": FORMAT,
        "experiment": record.name,
        "profile": record.results.profile,
        "complete": record.results.complete,
        "provenance": asdict(record.provenance),
        "cells": [
            {"kind": type(cell).__name__, "fields": fields_of(cell), "data": _to_plain(dataset)}
            for cell, dataset in record.results
        ],
    }
    with room_in(folder.parent):
        write_whole(path, (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return path


def read_record(path: Path, experiments: Mapping[str, Experiment]) -> Record:
    """Read one back. Its experiment is looked up by name among those given: a file never says what code to run."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        name = content["experiment"]
        if content["format"] != FORMAT:
            raise InputError(f"{path} has format {content['format']}; this version reads {FORMAT}.")
        if name not in experiments:
            raise InputError(
                f"{path} holds results of {name!r}, which is none of the papers' experiments. If it is your own, "
                f"name its file too: offtangent report DIR {name}.py"
            )
        pairs = tuple(
            (rebuild(experiments[name], cell["kind"], _tupled(cell["fields"])), _from_plain(cell["data"]))
            for cell in content["cells"]
        )
        results = Results(content["profile"], pairs, content["complete"])
        return Record(name, Provenance(**content["provenance"]), results)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no record of results ({type(error).__name__}: {error}).") from None


def committed_records() -> list[Path]:
    """The records that come with the package: made on a GPU, at the papers' own sizes."""
    package = Path(offtangent.__file__).parent
    for folder in (package / "_results", package.parent.parent / "results"):  # installed; a checkout
        if folder.is_dir():
            return sorted(folder.glob("*.json"))
    return []


def _to_plain(dataset: xr.Dataset) -> dict[str, Any]:
    return {
        str(name): {
            "dims": list(variable.dims),
            "dtype": variable.dtype.str,
            "shape": list(variable.shape),  # which a list cannot tell where it is empty
            "coordinate": name in dataset.coords,
            "data": finite(_shortest(np.asarray(variable.values))),
        }
        for name, variable in dataset.variables.items()
    }


def _shortest(values: np.ndarray) -> Any:
    """The values as lists; those of float32 with the digits that tell them apart, half as many as float64 shows."""
    if values.dtype != np.float32:
        return values.tolist()
    return np.array([float(str(one)) for one in values.ravel()]).reshape(values.shape).tolist()


def _from_plain(plain: dict[str, Any]) -> xr.Dataset:
    variables = {
        name: (v["dims"], values.reshape(v.get("shape", values.shape)))
        for name, v in plain.items()
        for values in [np.array(v["data"], dtype=np.dtype(v["dtype"]))]
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
