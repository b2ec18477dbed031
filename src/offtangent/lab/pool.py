"""Processes of this machine, each of which can be ended and replaced without the others noticing.

A thread for each sends it one call at a time through a pipe and waits for the answer, for the process's death, or for
the time limit.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import SimpleQueue
from typing import Any

from offtangent.lab.worker import serve
from offtangent.lab.workers import TookTooLong, WorkerDied, Workers, environment

LOOK = 1.0  # seconds between looks whether a silent process lives: a child of its own may hold its pipe open


class Processes(Workers):
    """So many spawned processes with an environment of their own; a call may take `timeout` seconds.

    What a call needs is loaded first, by `loading` with the same arguments, and is not in its time.
    """

    def __init__(
        self,
        count: int,
        wanted: Mapping[str, str],
        timeout: float | None = None,
        loading: Callable[..., None] | None = None,
    ):
        self._wanted, self._timeout, self._loading = wanted, timeout, loading
        self._calls: SimpleQueue[tuple[Future[Any], Any] | None] = SimpleQueue()
        self._since: dict[Future[Any], float] = {}
        self._birth = threading.Lock()  # of one at a time: there is one environment to be born with
        self._closed = False
        self._misled: RuntimeError | None = None
        self._living: list[SpawnProcess] = []
        self._threads = [threading.Thread(target=self._lead, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.put((future, (fn, args, kwargs)))
        return future

    def since(self, future: Future[Any]) -> float | None:
        return self._since.get(future)

    def look(self, cells: int) -> None:
        del cells
        if self._misled is not None:
            raise self._misled

    def close(self) -> None:
        """End all processes at once, whatever they do."""
        with self._birth:
            self._closed = True
            for process in self._living:
                process.kill()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _lead(self) -> None:
        """Have one process work, and replace it when it is gone."""
        worker: _Worker | None = None
        while (call := self._calls.get()) is not None and not self._closed:
            future, task = call
            future.set_running_or_notify_cancel()
            try:
                worker = worker or self._bear()
                if self._loading is not None:
                    worker.answer((self._loading, *task[1:]))
                self._since[future] = time.monotonic()
                future.set_result(worker.answer(task, self._timeout))
            except (WorkerDied, TookTooLong) as fate:
                self._bury(worker)
                worker = None
                future.set_exception(fate)
            except Exception as error:
                future.set_exception(error)
            finally:
                self._since.pop(future, None)
        self._bury(worker)

    def _bear(self) -> "_Worker":
        with self._birth:
            if self._closed:
                raise WorkerDied
            try:
                worker = _Worker(self._wanted)
            except RuntimeError as error:  # we are ourselves being born: a script runs without asking for __main__
                self._misled = error
                raise
            self._living.append(worker.process)
        try:
            worker.answer()  # it is there: loading its modules is not the first call's time
        except WorkerDied:
            self._bury(worker)
            raise
        return worker

    def _bury(self, worker: "_Worker | None") -> None:
        if worker is not None:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
            with self._birth:
                self._living.remove(worker.process)


class _Worker:
    """A process and our end of the pipe to it."""

    def __init__(self, wanted: Mapping[str, str]):
        context = SpawnContext()  # fork after JAX has run hangs
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,))
        with _born_with(wanted):
            self.process.start()
        theirs.close()  # or its death would not end the pipe

    def answer(self, call: object = None, timeout: float | None = None) -> Any:
        """Send a call, if there is one, and wait for what it returns."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            if call is not None:
                self.pipe.send(call)
            while not self.pipe.poll(LOOK if end is None else max(min(LOOK, end - time.monotonic()), 0)):
                if end is not None and time.monotonic() >= end:
                    raise TookTooLong(f"it took longer than --timeout {timeout:g} s, and its worker was ended")
                if not self.process.is_alive() and not self.pipe.poll(0):
                    raise WorkerDied
            result, fault = self.pipe.recv()
        except (EOFError, OSError):
            raise WorkerDied from None
        if fault is not None:
            raise RuntimeError(fault)
        return result


@contextmanager
def _born_with(wanted: Mapping[str, str]) -> Iterator[None]:
    """A process started in here has this environment, and Ctrl-C blocked until it ignores it, from its first moment."""
    resource_tracker.ensure_running()  # it would unblock what we block, were it started below
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # in this thread, for good: others get the signal
    with environment(wanted):
        yield
