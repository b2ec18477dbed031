"""How far a run is and how long it will still take."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from offtangent.lab.costs import seconds
from offtangent.lab.experiment import name_of
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
    """Counts cells as they come back, weighed by their expected cost, each experiment at its own pace."""

    jobs: Sequence[Job]
    finished: int = 0
    _start: float = field(default_factory=time.monotonic)
    _weights: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # done, by experiment
    _taken: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # seconds, by experiment

    @property
    def total(self) -> int:
        return len(self.jobs)

    def done(self, job: Job, taken: float) -> None:
        """A cell has come back after so many seconds of its worker."""
        self.finished += 1
        self._weights[job.experiment.name] += self._weigh(job)
        self._taken[job.experiment.name] += max(taken, 1e-3)

    @property
    def seconds(self) -> float | None:
        """The time left with as many workers as were busy so far, or None before enough has come back to tell."""
        whole = self._whole
        done, taken = sum(self._weights.values()), sum(self._taken.values())
        if done < SURE * sum(whole.values()):
            return None
        paces = {name: self._taken[name] / weight for name, weight in self._weights.items()}
        left = sum(paces.get(name, taken / done) * max(whole[name] - self._weights.get(name, 0.0), 0) for name in whole)
        return (time.monotonic() - self._start) * left / taken

    @cached_property
    def _whole(self) -> Mapping[str, float]:
        """The weight of all cells, by experiment: counted once, for the time left is told after every cell."""
        whole: dict[str, float] = defaultdict(float)
        for job in self.jobs:
            whole[job.experiment.name] += self._weigh(job)
        return whole

    def __str__(self) -> str:
        return "" if self.seconds is None else f"about {seconds(self.seconds)} left"

    def _weigh(self, job: Job) -> float:
        """Expected seconds plus what every cell pays; the same for all where nothing is counted."""
        return STARTING + (job.seconds or 0.0)


@dataclass
class Shown:
    """Progress on a console, by default on standard error: a bar on a terminal, elsewhere a line now and then."""

    console: Console | None = None

    def __post_init__(self) -> None:
        if self.console is None:
            from rich.console import Console

            # No markup: names of files, and what an experiment says, may hold brackets.
            self.console = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def tell(self, sentence: str, style: str = "yellow") -> None:
        """Print a sentence for a person."""
        assert self.console is not None
        self.console.print(sentence, style=style, soft_wrap=True)

    def following(self, jobs: Sequence[Job]) -> AbstractContextManager[Callable[[Job, Done], None]]:
        """What `run` is to call with every cell."""
        assert self.console is not None
        return shown_progress(jobs, self.console)


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

            def advance(job: Job, done: Done) -> None:
                left.done(job, done.seconds)
                bar.update(task, advance=1, left=str(left))

            yield advance
    else:
        last = -QUIET
        known: set[tuple[str, str]] = set()

        def tell(job: Job, done: Done) -> None:
            nonlocal last
            left.done(job, done.seconds)
            news = done.error is not None and reason(job, done) not in known
            if not news and left.finished < left.total and time.monotonic() - last < QUIET:
                return
            if news:
                known.add(reason(job, done))
            last = time.monotonic()
            how = f"failed: {done.error}" if done.error else seconds(done.seconds)
            which = f"[{left.finished}/{left.total}] {job.experiment.name} {name_of(job.cell)}"
            console.out("; ".join(filter(None, [f"{which}: {how}", str(left)])))

        yield tell


def reason(job: Job, done: Done) -> tuple[str, str]:
    """Why a cell failed, the same for all that failed alike: the kind and the place in the code, or what was said."""
    places = [line for line in done.trace.splitlines() if line.startswith('  File "')]
    kind = (done.error or "").partition(":")[0]
    return job.experiment.name, "\n".join([kind, *places]) if places else (done.error or "")
