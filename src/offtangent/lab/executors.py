"""Where cells run: this process, local processes, a Dask cluster, Slurm. All are `concurrent.futures` executors."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, cast

from offtangent._errors import InputError
from offtangent._files import is_left_over, own_name, private_folder
from offtangent.lab.costs import cores
from offtangent.lab.machinery import ONE, threads
from offtangent.lab.worker import prepare, settings

HELP = "local, processes:N, dask:ADDRESS or slurm:PARTITION"
POLL, LOOK = 0.5, 15.0  # seconds between looks for results of Slurm jobs, and into Slurm's queue


@dataclass(frozen=True)
class Placement:
    """A parsed `--on`: the kind, and its number, address or partition."""

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else self.kind

    @property
    def workers(self) -> int:
        """How many cells run side by side, as far as one can know beforehand."""
        return int(self.detail) if self.kind == "processes" else 1

    @property
    def threads(self) -> str:
        """How many threads compute a cell: one in workers, those of this process in here."""
        return threads() if self.kind == "local" else ONE

    def chunk(self, cells: int) -> int:
        """How many cells to send at a time: a Slurm job pays for its own start, the others do not."""
        return max(1, -(-cells // 32)) if self.kind == "slurm" else 1

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """The executor itself; workers are ended when the block is left."""
        if self.kind == "local":
            yield InProcess()
        elif self.kind == "processes":
            yield from _processes(self.workers)
        elif self.kind == "dask":
            yield from _dask(self.detail)
        else:
            yield from _slurm(self.detail)


LOCAL = Placement("local")


def parse_placement(text: str | None) -> Placement:
    """`--on` as typed; without one, this process on a GPU and one process a core on a CPU."""
    if text is None:
        import jax

        return LOCAL if jax.default_backend() != "cpu" else Placement("processes", str(cores()))
    kind, _, detail = text.partition(":")
    if kind == "processes":
        detail = detail or str(cores())
        if not (detail.isascii() and detail.isdigit() and len(detail) <= 4 and int(detail) >= 1):
            given = text if len(text) <= 40 else f"{text[:40]}…"
            raise InputError(f"--on {given}: processes:N needs a number from 1 to 9999, such as processes:{cores()}.")
    elif kind == "dask" and not detail:
        raise InputError("--on dask: give the scheduler's address, such as dask:tcp://127.0.0.1:8786.")
    elif kind not in ("local", "dask", "slurm") or (kind == "local" and detail):
        raise InputError(f"--on {text}: unknown executor. Choose {HELP}.")
    return Placement(kind, detail)


class InProcess(Executor):
    """Runs each call at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _processes(count: int) -> Iterator[Executor]:
    context = SpawnContext()  # fork after JAX has run hangs
    environment = settings()
    workers: list[_Worker] = []  # the pool forgets those during whose birth Ctrl-C was pressed

    def worker(**words: Any) -> _Worker:
        workers.append(_Worker(environment=environment, **words))
        return workers[-1]

    context.Process = worker  # type: ignore[misc, assignment]
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=prepare)
    try:
        yield pool
    finally:
        born = [process for process in workers if process.pid is not None]
        for process in born:
            process.terminate()
        for process in born:
            process.join(5)
            process.kill()
        pool.shutdown(cancel_futures=True)  # waits for the pool's thread, which must not outlive us


class _Worker(SpawnProcess):
    """Has an environment of its own, and is out of Ctrl-C's reach, from its first moment."""

    def __init__(self, *args: Any, environment: Mapping[str, str], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._environment = environment

    def start(self) -> None:
        with _environment(self._environment), _without_interrupts():
            super().start()


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A Ctrl-C in here comes through afterwards; a process started in here has it blocked."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # it would unblock what we block, were it started below
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))  # other threads may catch it
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--on dask needs dask.distributed: pip install 'offtangent[dask]'.") from None
    _knock(address)
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address} ({error}). Start one with 'dask scheduler'."
        ) from None
    try:
        yield cast(Executor, client.get_executor(pure=False, retries=3))
    finally:
        client.close()


def _knock(address: str) -> None:
    """Ask whether anybody is at a TCP address at all; Dask itself takes long to give up, and then not quietly."""
    kind, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if kind not in ("", "tcp"):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address} ({error}). Start one with 'dask scheduler'."
        ) from None


def _slurm(partition: str) -> Iterator[Executor]:
    try:
        import submitit
    except ImportError:
        raise InputError("--on slurm needs submitit: pip install 'offtangent[slurm]'.") from None
    logging.getLogger("submitit").setLevel(logging.ERROR)  # it tells of its doubts on stdout, amid --json
    folder = _jobs_folder()
    cluster = "local" if partition == "local" else "slurm"  # submitit's own stand-in, for trying things out
    try:
        engine = submitit.AutoExecutor(folder=str(folder), cluster=cluster)
    except RuntimeError as error:
        raise InputError(f"--on slurm: {error}. Is this a machine from which sbatch works?") from None
    engine.update_parameters(timeout_min=24 * 60, cpus_per_task=1)
    if partition and cluster == "slurm":
        engine.update_parameters(slurm_partition=partition)
    wrapper = Submitted(engine, _queued if cluster == "slurm" else None)
    try:
        yield wrapper
    finally:
        wrapper.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(folder, ignore_errors=True)


def _jobs_folder() -> Path:
    """Where submitit puts jobs, pickled, for the nodes to run: in the user's home, and nobody else's to write in."""
    home, fault = private_folder("slurm")
    if fault:
        raise InputError(f"Jobs for Slurm would be put into a folder that is not yours alone: {fault}.")
    for left in home.iterdir():
        if is_left_over(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = home / own_name("jobs")
    folder.mkdir(mode=0o700)
    return folder


def _queued() -> set[str] | None:
    """The jobs Slurm has in its queue, waiting or running; None where it does not say."""
    try:
        told = subprocess.run(
            ["squeue", "--me", "--noheader", "--format=%A"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(told.stdout.split()) if told.returncode == 0 else None


class Submitted(Executor):
    """submitit's jobs as futures: a thread asks for their state and settles them.

    submitit learns of a job's death from Slurm's accounting, which many small clusters do not have; `queued` then
    tells which jobs are still in the queue. One that is not, twice in a row, and has no result, is lost.
    """

    def __init__(self, engine: Any, queued: Callable[[], set[str] | None] | None = None):
        self._engine, self._queued = engine, queued
        self._jobs: list[tuple[Any, Future[Any]]] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            with _environment(settings()):
                job = self._engine.submit(fn, *args, **kwargs)
        except Exception as error:  # sbatch says no: no cluster, no such partition, no account
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise InputError(f"Slurm does not take the job: {reason}. Try sbatch by hand, or another --on.") from None
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._jobs.append((job, future))
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        return future

    def _watch(self) -> None:
        missed: set[str] = set()
        looked = time.monotonic()
        while not self._closed.wait(POLL):
            with self._lock:
                waiting = [(job, future) for job, future in self._jobs if not future.done()]
            for job, future in waiting:
                try:
                    if job.done():
                        future.set_result(job.result())
                except Exception as error:
                    future.set_exception(error)
            if self._queued is not None and time.monotonic() - looked > LOOK:
                looked, queued = time.monotonic(), self._queued()
                gone = (
                    {job.job_id for job, future in waiting if not future.done()} - queued
                    if queued is not None
                    else set()
                )
                for job, future in waiting:
                    if job.job_id in gone & missed:
                        future.set_exception(RuntimeError(f"Slurm job {job.job_id} left the queue without a result"))
                missed = gone

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:
            for _, future in list(self._jobs):
                future.exception()
        self._closed.set()
        if cancel_futures:
            for job, future in self._jobs:
                if not future.done():
                    job.cancel(check=False)  # it may have ended this very moment
