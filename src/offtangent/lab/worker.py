"""What happens on the worker's side. Nothing here imports JAX before `prepare` has set its environment."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from offtangent.lab.codec import encode
from offtangent.lab.experiment import Experiment, rebuild
from offtangent.lab.store import Store, StoreFull


@dataclass(frozen=True)
class Task:
    """One cell as plain data that survives any wire."""

    name: str
    where: str
    kind: str
    fields: Mapping[str, Any]
    key: str


@dataclass(frozen=True)
class Done:
    """What came of a task: stored by the worker, or sent back as bytes, or an error with its traceback."""

    key: str
    seconds: float = 0.0
    content: bytes | None = None
    error: str | None = None
    trace: str = ""
    full: bool = False


def work(tasks: list[Task], folder: str, token: str) -> list[Done]:
    """Run cells one after another. Where the store is within reach the results go straight there."""
    shared = Store(Path(folder)) if _same_store(Path(folder), token) else None
    return [_one(task, shared) for task in tasks]


def _one(task: Task, shared: Store | None) -> Done:
    start = time.perf_counter()
    try:
        experiment = Experiment(task.name, task.where)
        dataset = experiment.run(rebuild(experiment, task.kind, task.fields))
        seconds = time.perf_counter() - start
        about = {
            "key": task.key,
            "experiment": task.name,
            "cell": [task.kind, dict(task.fields)],
            "seconds": seconds,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        content = encode(dataset, about)
        if shared is None:
            return Done(task.key, seconds, content)
        shared.write(task.key, content)
        return Done(task.key, seconds)
    except StoreFull as error:
        return Done(task.key, error=str(error.strerror), full=True)
    except Exception as error:
        return Done(task.key, error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())


def _same_store(folder: Path, token: str) -> bool:
    """Whether this machine sees the store of the run, and not another folder of the same name."""
    try:
        return (folder / f".run-{token}").exists()
    except OSError:
        return False


def prepare(compiled: str | None, threads: int | None) -> None:
    """Set up a fresh worker process, before JAX is imported: its threads, its compilation cache, its end."""
    assert "jax" not in sys.modules, "a worker must be prepared before JAX is imported"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then ends its workers
    if threads is not None:
        os.environ["NPROC"] = str(threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(threads)
    if compiled is not None:
        os.environ.update(cache_settings(compiled))
    _end_with_parent()


def cache_settings(compiled: str) -> dict[str, str]:
    """The environment that turns JAX's persistent compilation cache on."""
    return {"JAX_COMPILATION_CACHE_DIR": compiled, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2"}


def _end_with_parent() -> None:
    """A worker whose run was killed does not linger."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def announced(store: Store, token: str) -> Iterator[None]:
    """Mark the store so that workers can tell whether they see it."""
    mark = store.folder / f".run-{token}"
    mark.touch()
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)
