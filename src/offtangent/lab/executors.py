"""Where cells run: this process, local processes, a Dask cluster, Slurm. All are `concurrent.futures` executors."""

import logging
import math
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offtangent._errors import InputError
from offtangent._files import is_left_over, own_name, private_folder
from offtangent.lab.cluster import connected
from offtangent.lab.costs import cores
from offtangent.lab.interrupts import Interrupts
from offtangent.lab.machinery import ONE, threads
from offtangent.lab.pool import Processes
from offtangent.lab.worker import JOB_ENDED, load, settings
from offtangent.lab.workers import InProcess, TookTooLong, Workers, environment

HELP = "local, processes:N, dask:ADDRESS or slurm:PARTITION"
POLL, LOOK = 0.5, 15.0  # seconds between looks for results of Slurm jobs, and into Slurm's queue
DAY = 24 * 60  # minutes that a Slurm job may take unless another limit is set
MARGIN = 1  # minutes more than its cells may take: a job has to start, and Slurm warns up to a minute early
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}


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

    def executor(
        self, interrupts: Interrupts | None = None, *, timeout: float | None = None, chunk: int = 1
    ) -> AbstractContextManager[Workers]:
        """The executor itself, for calls with so many cells; workers are ended when the block is left."""
        if self.kind == "local":
            return nullcontext(InProcess(interrupts or Interrupts()))
        if self.kind == "processes":
            return _processes(self.workers, timeout)
        if self.kind == "dask":
            return connected(self.detail)
        return _slurm(self.detail, DAY if timeout is None else math.ceil(timeout * chunk / 60))


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


def check_timeout(timeout: float | None, placement: Placement) -> None:
    """Refuse a `--timeout` that is no time, or that nobody could keep."""
    if timeout is None:
        return
    if not (math.isfinite(timeout) and timeout > 0):
        raise InputError(f"--timeout {timeout:g}: give a positive number of seconds that a cell may take, such as 600.")
    if placement.kind in ("local", "dask"):
        raise InputError(
            f"--timeout {timeout:g}: a cell cannot be ended on {placement} without ending others with it. Use "
            f"--on processes:{cores()}, where each has a process of its own, or --on slurm:PARTITION."
        )


@contextmanager
def _processes(count: int, timeout: float | None) -> Iterator[Workers]:
    pool = Processes(count, settings(), timeout, load)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _slurm(partition: str, minutes: int) -> Iterator[Workers]:
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
    engine.update_parameters(timeout_min=minutes + MARGIN, cpus_per_task=1)
    if minutes < DAY:
        engine.update_parameters(slurm_signal_delay_s=1)  # not a minute and a half early
    if partition and cluster == "slurm":
        engine.update_parameters(slurm_partition=partition)
    wrapper = Submitted(engine, _queue if cluster == "slurm" else None)
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


def _queue() -> dict[str, tuple[str, float]] | None:
    """The state of each job that Slurm still knows, and for how many seconds it runs; None where it does not say."""
    words = ["squeue", "--me", "--states=all", "--noheader", "--format=%A %T %M"]
    try:
        told = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.split() for line in told.stdout.splitlines()]
    return {line[0]: (line[1], _seconds(line[2])) for line in lines if len(line) == 3} if not told.returncode else None


def _seconds(clock: str) -> float:
    """Of Slurm's d-hh:mm:ss, whose larger parts may be missing.

    >>> _seconds("0:07"), _seconds("1-00:00:01"), _seconds("INVALID")
    (7.0, 86401.0, 0.0)
    """
    days, _, rest = clock.rpartition("-")
    parts = [days or "0", *["0"] * (2 - rest.count(":")), *rest.split(":")]
    if not all(part.isdigit() for part in parts):
        return 0.0
    return float(sum(int(part) * size for part, size in zip(parts, (86400, 3600, 60, 1), strict=True)))


class Submitted(Workers):
    """submitit's jobs as futures: a thread asks for their state and settles them.

    submitit learns of a job's death from Slurm's accounting, which many small clusters do not have; `queue` then
    tells which jobs are still in the queue. One that is not, twice in a row, and has no result, is lost.
    """

    def __init__(self, engine: Any, queue: Callable[[], Mapping[str, tuple[str, float]] | None] | None = None):
        self._engine, self._queue = engine, queue
        self._jobs: list[tuple[Any, Future[Any]]] = []
        self._since: dict[Future[Any], float] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            with environment(settings()):
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

    def since(self, future: Future[Any]) -> float | None:
        return self._since.get(future)

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
                    future.set_exception(TookTooLong(JOB_ENDED) if "timed-out" in str(error) else error)
            if self._queue is not None and time.monotonic() - looked > LOOK:
                looked, queue = time.monotonic(), self._queue()
                if queue is not None:
                    missed = self._compare([pair for pair in waiting if not pair[1].done()], queue, missed)

    def _compare(
        self, waiting: list[tuple[Any, Future[Any]]], queue: Mapping[str, tuple[str, float]], missed: set[str]
    ) -> set[str]:
        """Note which jobs run, give those up that were missed before, and return those that are missed now."""
        now = set()
        for job, future in waiting:
            state, ran = queue.get(job.job_id, ("gone", 0.0))
            if state == "RUNNING":
                self._since.setdefault(future, time.monotonic() - ran)
            if state != "gone" and state not in ENDED:
                continue
            now.add(job.job_id)
            if job.job_id in missed:
                lost = RuntimeError(f"Slurm job {job.job_id} left the queue without a result ({state.lower()})")
                future.set_exception(TookTooLong(JOB_ENDED) if state == "TIMEOUT" else lost)
        return now

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:
            for _, future in list(self._jobs):
                future.exception()
        self._closed.set()
        if cancel_futures:
            for job, future in self._jobs:
                if not future.done():
                    job.cancel(check=False)  # it may have ended this very moment
