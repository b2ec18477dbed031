"""What a run asks of those who compute its cells: to take calls, and to say how they fare while it waits."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from offtangent.lab.interrupts import Interrupts


class WorkerDied(Exception):
    """The process that had a call in hand is gone."""


class TookTooLong(Exception):
    """A call was ended at its time limit. The message says all there is to say."""


class ClusterLost(Exception):
    """Nobody is there any more to send calls to, nor to get results from."""


class Workers(Executor):
    """An executor that can be asked while one waits for it."""

    def since(self, future: Future[Any]) -> float | None:
        """When a call began, by `time.monotonic`; None where it has not, or where one cannot know."""
        del future
        return None

    def look(self, cells: int) -> str | None:
        """What the user is to hear now, while so many cells wait. Raises `ClusterLost` where waiting is in vain."""
        del cells
        return None


class InProcess(Workers):
    """Runs each call at once, in this process."""

    def __init__(self, interrupts: Interrupts):
        self._interrupts = interrupts

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self._interrupts.expose(fn, *args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """What is started in here is born with these variables."""
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
