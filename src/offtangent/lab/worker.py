"""What happens on the worker's side."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from offtangent._errors import InputError
from offtangent.lab.codec import encode
from offtangent.lab.compiled import keep_compiled
from offtangent.lab.costs import cores
from offtangent.lab.experiment import Experiment, rebuild
from offtangent.lab.machinery import BLAS_THREADS, JAX_THREADS, ONE, computing_with, deterministic
from offtangent.lab.questions import told
from offtangent.lab.store import Store, StoreFailed, room_in
from offtangent.lab.watches import watching


@dataclass(frozen=True)
class Task:
    """One cell as plain data that survives any wire."""

    name: str
    where: str
    kind: str
    fields: Mapping[str, Any]
    key: str
    machinery: Mapping[str, str]  # code, versions and backend, as the run knows them
    threads: str  # that compute it


@dataclass(frozen=True)
class Done:
    """What came of a task: stored by the worker, or sent back as bytes, or an error with its traceback."""

    key: str
    seconds: float = 0.0
    content: bytes | None = None
    error: str | None = None
    trace: str = ""
    full: bool = False  # the disk is, or the store cannot be written for another reason
    refused: bool = False  # the cell's input was, with a message for a person
    crowded: bool = False  # it ran out of memory, which other workers have a share of
    late: bool = False  # the time of the job it came with was over, before it began or while it ran


JOB_ENDED = "Slurm ended its job at the job's time limit; --timeout SECONDS, for each cell, sets another"


def work(tasks: list[Task], folder: str, token: str) -> list[Done]:
    """Run cells one after another. Where the store is within reach the results go straight there."""
    shared = Store(Path(folder)) if _same_store(Path(folder), token) else None
    done: list[Done] = []
    for task in tasks:
        ended = bool(done) and done[-1].late  # and no time is left
        done.append(replace(done[-1], key=task.key) if ended else _one(task, shared, Path(folder)))
    return done


def load(tasks: list[Task], *_: object) -> None:
    """Import what the cells need, with the arguments of `work`: its time is not theirs. A fault is told by them."""
    for task in tasks:
        quietly = contextlib.suppress(BaseException), contextlib.redirect_stdout(sys.stderr)
        with quietly[0], quietly[1], computing_with(task.threads):
            _check_machinery(_experiment(task.name, task.where), task)


def _one(task: Task, shared: Store | None, folder: Path) -> Done:
    try:
        experiment = _experiment(task.name, task.where)
        with computing_with(task.threads):
            cell = rebuild(experiment, task.kind, task.fields)
            _check_machinery(experiment, task)  # after the file was loaded, which may set JAX's precision
            if "jax" in task.machinery:
                keep_compiled()
            start = time.perf_counter()
            # What a cell prints goes to stderr: stdout may be the run's JSON.
            with contextlib.redirect_stdout(_Unclosed()), watching(experiment.file.parent) as watch:
                dataset = experiment.run(cell)
        seconds = time.perf_counter() - start
        about = {
            "key": task.key,
            "experiment": task.name,
            "cell": [task.kind, dict(task.fields)],
            "seconds": seconds,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "unnamed": experiment.unnamed(watch, cell, folder),
        }
        content = encode(dataset, about)
        if shared is None:
            return Done(task.key, seconds, content)
        shared.write(task.key, content)
        return Done(task.key, seconds)
    except StoreFailed as error:
        return Done(task.key, error=str(error.strerror), full=True)
    except InputError as error:
        return Done(task.key, error=str(error), refused=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a cell that calls sys.exit() must not end the run
        if type(error).__name__ == "UncompletedJobError" and "timed-out" in str(error):  # submitit's, amid the cell
            return Done(task.key, error=JOB_ENDED, late=True)
        return Done(task.key, error=told(error), trace=traceback.format_exc(), crowded=_out_of_memory(error))


class _Unclosed:
    """Standard error, for a cell to print to: one that closes its standard output must not close this."""

    def close(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


_EXPERIMENTS: dict[tuple[str, str], Experiment] = {}


def _experiment(name: str, where: str) -> Experiment:
    """The experiment as its files are now: a worker that lives long must not run what they once were."""
    known = _EXPERIMENTS.get((name, where))
    if known is None or not known.is_current:
        known = _EXPERIMENTS[name, where] = Experiment(name, where)
    return known


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in told(error)  # the host's; a device's, as XLA says


def _check_machinery(experiment: Experiment, task: Task) -> None:
    """A worker that would compute something else than the key says is refused."""
    here, there = dict(experiment.machinery(task.kind)), dict(task.machinery)
    if "jax" in there:  # which took its number of threads when it was imported
        here["threads"], there["threads"] = os.environ.get(JAX_THREADS) or str(cores()), task.threads.partition(",")[0]
    other = [f"{name} {here.get(name)} (the run: {value})" for name, value in there.items() if here.get(name) != value]
    if other:
        raise InputError(
            f"The worker differs from the run in {', '.join(other)}: its numbers would be stored under a wrong name. "
            "Give both the same code, versions and devices, start the workers afresh, and run again."
        )


def _same_store(folder: Path, token: str) -> bool:
    """Whether this machine sees the store of the run, and not another folder of the same name."""
    try:
        return (folder / f".run-{token}").exists()
    except OSError:
        return False


def serve(pipe: Connection) -> None:
    """The life of a worker process: to say that it is there, and to answer calls until the run ends it."""
    _prepare()
    with contextlib.suppress(EOFError, OSError):  # the run is gone
        pipe.send((None, None))
        while True:
            fn, args, kwargs = pipe.recv()
            result, fault = None, None
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                fault = f"{type(error).__name__}: {error}"
            pipe.send((result, fault))


def _prepare() -> None:
    """What a fresh worker process does first: leave Ctrl-C to the run, which ends its workers, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    run = multiprocessing.parent_process()
    assert run is not None

    def end_with_the_run() -> None:
        run.join()  # returns even if the run was killed before we got here
        os._exit(1)

    threading.Thread(target=end_with_the_run, daemon=True).start()


def settings() -> dict[str, str]:
    """The environment of a worker process, of one thread. It is born with it: JAX reads it once, when imported."""
    return dict.fromkeys((JAX_THREADS, *BLAS_THREADS), ONE) | sharing_settings() | deterministic()


def sharing_settings() -> dict[str, str]:
    """The environment of processes that share a GPU, the run's own among them; what a user has set stays.

    None of them takes three quarters of its memory beforehand, as JAX does unless told.
    """
    return {"XLA_PYTHON_CLIENT_PREALLOCATE": os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false")}


@contextlib.contextmanager
def announced(store: Store, token: str) -> Iterator[None]:
    """Mark the store so that workers can tell whether they see it."""
    mark = store.folder / f".run-{token}"
    with room_in(store.folder):
        mark.touch()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have become read-only
            mark.unlink()
