"""How far a run is and how long it will still take."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from offtangent.lab.costs import seconds
from offtangent.lab.runner import Job
from offtangent.lab.worker import Done

if TYPE_CHECKING:
    from rich.console import Console
else:
    Console = Any


STARTING = 3.0  # seconds a cell takes for compilation, as a weight among cells
SURE = 0.02  # of the expected work must be done before the time left is told: first cells mostly compile
QUIET = 1.0  # seconds between two lines where there is no terminal


@dataclass
class TimeLeft:
    """Counts cells as they come back, weighed by their expected cost."""

    jobs: Sequence[Job]
    finished: int = 0
    _start: float = field(default_factory=time.monotonic)
    _weight: float = 0.0

    @property
    def total(self) -> int:
        return len(self.jobs)

    def done(self, job: Job) -> None:
        self.finished += 1
        self._weight += self._weigh(job)

    @property
    def seconds(self) -> float | None:
        """The time left at the pace so far, or None before enough has come back to tell."""
        whole = sum(self._weigh(job) for job in self.jobs)
        if self._weight < SURE * whole:
            return None
        return (time.monotonic() - self._start) * max(whole - self._weight, 0.0) / self._weight

    def __str__(self) -> str:
        return "" if self.seconds is None else f"about {seconds(self.seconds)} left"

    def _weigh(self, job: Job) -> float:
        """Expected seconds plus what every cell pays; the same for all where nothing is counted."""
        return STARTING + (job.seconds or 0.0)


@contextmanager
def shown_progress(jobs: Sequence[Job], console: Console) -> Iterator[Callable[[Job, Done], None]]:
    """What `run` is to call with every cell: a bar with the time left on a terminal, elsewhere a line a cell."""
    left = TimeLeft(jobs)
    if not left.total:
        yield lambda job, done: None  # noqa: ARG005
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        told = TextColumn("{task.fields[left]}")
        with Progress(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            told,
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task("cells", total=left.total, left="")

            def advance(job: Job, done: Done) -> None:  # noqa: ARG001
                left.done(job)
                bar.update(task, advance=1, left=str(left))

            yield advance
    else:
        last = -QUIET

        def tell(job: Job, done: Done) -> None:
            nonlocal last
            left.done(job)
            if not done.error and left.finished < left.total and time.monotonic() - last < QUIET:
                return
            last = time.monotonic()
            how = f"failed: {done.error}" if done.error else seconds(done.seconds)
            which = f"[{left.finished}/{left.total}] {job.experiment.name} {job.cell}"
            console.out("; ".join(filter(None, [f"{which}: {how}", str(left)])))

        yield tell
