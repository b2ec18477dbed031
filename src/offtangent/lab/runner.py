"""Run the cells that are not stored yet, and collect all of them.

Nothing is lost: a finished cell is a file, a killed run goes on where it was, a dead worker's cells are sent
again, one that does not fit into memory beside others has it to itself in the end, and a cell that raises is reported
while the others go on.
"""

import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial

import xarray as xr

from offtangent.lab.costs import Cost, rate
from offtangent.lab.executors import LOCAL, Placement, check_timeout
from offtangent.lab.experiment import Cell, Experiment, fields_of
from offtangent.lab.interrupts import Interrupts
from offtangent.lab.lateness import told_when_late
from offtangent.lab.machinery import ONE
from offtangent.lab.results import Results
from offtangent.lab.store import Store, StoreFailed
from offtangent.lab.worker import Done, Task, announced, work
from offtangent.lab.workers import ClusterLost, TookTooLong, WorkerDied, Workers

ATTEMPTS = 3  # how often a cell is sent whose worker died under it
IN_FLIGHT = {"local": 1, "processes": 2, "dask": 1000, "slurm": 1000}  # chunks a worker may have waiting
POLL = 0.2  # seconds between looks for Ctrl-C and the state of the workers


@dataclass(frozen=True)
class Job:
    """One cell of one experiment, with the key of its result."""

    experiment: Experiment
    cell: Cell
    key: str
    cost: Cost | None
    stored: bool  # there is a sound result already
    threads: str = ONE  # that compute it

    @property
    def seconds(self) -> float | None:
        """The expected time on one worker of this machine, if the experiment counts its work."""
        return None if self.cost is None else self.cost.flops / rate()

    @property
    def task(self) -> Task:
        kind = type(self.cell).__name__
        experiment = self.experiment
        machinery = experiment.machinery(kind)
        return Task(experiment.name, experiment.where, kind, fields_of(self.cell), self.key, machinery, self.threads)


@dataclass(frozen=True)
class Found:
    """A stored result, decoded and sound, and how many seconds it took when it was computed."""

    dataset: xr.Dataset
    seconds: float
    unnamed: tuple[str, ...] = ()  # files it read beside the experiment that `datasets` does not name


@dataclass(frozen=True)
class Plan:
    """All cells of a run."""

    profile: str
    experiments: tuple[Experiment, ...]
    jobs: tuple[Job, ...]
    placement: Placement = LOCAL
    found: Mapping[str, Found] = field(default_factory=dict)  # by key: stored results are read and checked once

    @property
    def missing(self) -> list[Job]:
        return [job for job in self.jobs if not job.stored]


@dataclass(frozen=True)
class Outcome:
    """What came of one experiment."""

    experiment: Experiment
    results: Results
    computed: int
    reused: int
    failures: tuple[tuple[Job, Done], ...] = ()
    seconds: float = 0.0  # of work in cells, now or when they were computed
    keys: tuple[str, ...] = ()  # of the results, in their order
    unnamed: tuple[str, ...] = ()  # files that cells read beside the experiment and `datasets` does not name


class Interrupted(Exception):
    """Ctrl-C. Carries how many cells are stored, of how many."""

    def __init__(self, stored: int, total: int):
        self.stored, self.total = stored, total
        super().__init__(
            f"Interrupted: {stored} of {total} cells are stored. Run the same command again to go on (without --fresh)."
        )


def plan(
    experiments: Sequence[Experiment],
    profile: str,
    store: Store,
    placement: Placement = LOCAL,
    *,
    fresh: bool = False,
) -> Plan:
    """The cells of a profile and which of them are stored (none of them, if `fresh`). Reads every stored file, once."""
    threads = placement.threads
    jobs = []
    found: dict[str, Found] = {}
    for experiment in experiments:
        for cell in experiment.cells(profile):
            key = experiment.key(cell, threads)
            if not fresh and key not in found and (stored := _find(store, key)) is not None:
                found[key] = stored
            jobs.append(Job(experiment, cell, key, experiment.cost(cell), key in found, threads))
    return Plan(profile, tuple(experiments), tuple(jobs), placement, found)


def _find(store: Store, key: str) -> Found | None:
    stored = store.read(key)
    if stored is None:
        return None
    dataset, about = stored
    return Found(dataset, float(about["seconds"]), tuple(about.get("unnamed", ())))


@dataclass
class _Sweep:
    """The state of a run: what waits, what flies, what has come back."""

    store: Store
    placement: Placement
    waiting: deque[list[Job]]
    on_done: Callable[[Job, Done], None]
    tell: Callable[[str], None]
    interrupts: Interrupts = field(default_factory=Interrupts)
    timeout: float | None = None
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    flying: dict[Future[list[Done]], list[Job]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    before: frozenset[str] = frozenset()  # keys with a file from before the run, which computes them afresh
    sent: tuple[list[Job], float] | None = None  # just now, and when: in this process cells run while they are sent

    @property
    def shared(self) -> bool:
        """Whether workers have one machine's memory between them."""
        return self.placement.kind == "processes" and self.placement.workers > 1

    @property
    def cells(self) -> int:
        """How many have not come back."""
        return sum(map(len, self.waiting)) + sum(map(len, self.flying.values()))

    def arrived(self, job: Job) -> bool:
        """Whether there is a result of this run: a worker may have stored one and not lived to tell."""
        done = self.done.get(job.key)
        return (done is not None and done.error is None) or (
            job.key not in self.before and self.store.path(job.key).exists()
        )

    def room(self) -> bool:
        """Whether the next chunk may go out. A cell flies its last attempt alone: then a death is its own fault."""
        if any(self.last(jobs) for jobs in (self.waiting[0], *self.flying.values())):
            return not self.flying
        return len(self.flying) < IN_FLIGHT[self.placement.kind] * self.placement.workers

    def last(self, jobs: list[Job]) -> bool:
        return any(self.attempts.get(job.key, 0) == ATTEMPTS - 1 for job in jobs)

    def running(self, workers: Workers, longer: float) -> Iterator[tuple[str, float | None, float]]:
        """What runs for longer than so many seconds, as far as one knows: its name, expected and actual time."""
        flying = [(jobs, workers.since(future)) for future, jobs in list(self.flying.items())]
        for jobs, since in [*flying, *filter(None, [self.sent])]:
            if since is not None and (ran := time.monotonic() - since) > longer:
                expected = [job.seconds for job in jobs]
                name = f"{jobs[0].experiment.name} {jobs[0].cell}" + (f" and {len(jobs) - 1} more" if jobs[1:] else "")
                yield name, None if None in expected else sum(filter(None, expected)), ran


def run(
    plan: Plan,
    store: Store,
    *,
    timeout: float | None = None,
    on_done: Callable[[Job, Done], None] = lambda job, done: None,  # noqa: ARG005
    tell: Callable[[str], None] = lambda told: print(told, file=sys.stderr),
) -> list[Outcome]:
    """Compute what is missing and return every experiment's results, in the plan's order.

    A cell that takes longer than `timeout` seconds is ended, and is a failure. `on_done` is told of every cell that
    comes back; `tell` gets sentences for the user, from other threads too. Raises `StoreFailed` when the store cannot
    be written, `ClusterLost` when the workers are out of reach, and `Interrupted` on Ctrl-C; all leave the store sound.
    """
    placement = plan.placement
    check_timeout(timeout, placement)
    missing = _longest_first(plan)
    count = -(-len(missing) // placement.chunk(len(missing)))
    chunks = [missing[i::count] for i in range(count)]  # long and short cells in each
    before = frozenset(job.key for job in missing if store.path(job.key).exists())
    sweep = _Sweep(store, placement, deque(chunks), on_done, tell, timeout=timeout, before=before)

    def kept() -> int:
        return sum(job.stored or sweep.arrived(job) for job in plan.jobs)

    try:
        with sweep.interrupts, announced(store, sweep.token):
            while sweep.waiting and _fly(sweep):
                pass
    except KeyboardInterrupt:
        raise Interrupted(kept(), len(plan.jobs)) from None
    except ClusterLost as error:
        raise ClusterLost(
            f"{error} {kept()} of {len(plan.jobs)} cells are stored. Run the same command again to go on."
        ) from None
    return [_collect(plan, experiment, store, sweep.done) for experiment in plan.experiments]


def _longest_first(plan: Plan) -> list[Job]:
    """What is missing, experiment by experiment, those with the longest cells first, and so in each of them.

    Then workers end together, and a run that is ended early has whole experiments to show.
    """
    work = {job.key: job.cost.flops if job.cost else 0.0 for job in plan.missing}
    longest: dict[str, float] = {}
    for job in plan.missing:
        longest[job.experiment.name] = max(work[job.key], longest.get(job.experiment.name, 0.0))
    names = [experiment.name for experiment in plan.experiments]
    return sorted(
        plan.missing,
        key=lambda job: (-longest[job.experiment.name], names.index(job.experiment.name), -work[job.key]),
    )


def _fly(sweep: _Sweep) -> bool:
    """Run until nothing waits, or fresh workers are wanted: a worker keeps the memory that it once had."""
    chunk = max(map(len, sweep.waiting))
    with (
        sweep.placement.executor(sweep.interrupts, timeout=sweep.timeout, chunk=chunk) as workers,
        told_when_late(partial(sweep.running, workers), sweep.tell),
    ):
        used = False
        while sweep.waiting or sweep.flying:
            if used and sweep.shared and not sweep.flying and sweep.last(sweep.waiting[0]):
                return True
            used = True
            while sweep.waiting and sweep.room():
                sweep.interrupts.look()
                _submit(sweep, workers)
            settled, _ = wait(sweep.flying, POLL, return_when=FIRST_COMPLETED)
            for future in settled:
                if not future.cancelled():  # as only a lost cluster's are
                    _settle(sweep, sweep.flying.pop(future), future)
            sweep.interrupts.look()
            if told := workers.look(sweep.cells):
                sweep.tell(told)
    return False


def _submit(sweep: _Sweep, workers: Workers) -> None:
    jobs = sweep.waiting[0]
    sweep.sent = (jobs, time.monotonic())
    future = workers.submit(work, [job.task for job in jobs], str(sweep.store.folder.resolve()), sweep.token)
    sweep.sent = None
    sweep.flying[future] = sweep.waiting.popleft()


def _settle(sweep: _Sweep, jobs: list[Job], future: Future[list[Done]]) -> None:
    """See what came of a chunk of cells."""
    try:
        results = future.result()
    except WorkerDied:
        _send_again(sweep, jobs)
        return
    except TookTooLong as error:
        results = [Done(job.key, error=None if sweep.arrived(job) else str(error)) for job in jobs]
    except Exception as error:  # the executor lost the job: a killed worker, an expired Slurm allocation
        results = [Done(job.key, error=f"{type(error).__name__}: {error}") for job in jobs]
    for job, done in zip(jobs, results, strict=True):
        if done.full:
            raise StoreFailed(done.error)
        if done.crowded and sweep.shared and not sweep.last([job]):
            sweep.attempts[job.key] = ATTEMPTS - 1
            sweep.waiting.append([job])
            continue
        if done.content is not None:
            sweep.store.write(job.key, done.content)
        _note(sweep, job, done)


def _send_again(sweep: _Sweep, jobs: list[Job]) -> None:
    """A worker process died (killed, or out of memory): what it had in hand goes out again, but not for ever."""
    for job in jobs:
        sweep.attempts[job.key] = sweep.attempts.get(job.key, 0) + 1
        if sweep.attempts[job.key] < ATTEMPTS:
            sweep.waiting.append([job])
        else:
            lost = f"its worker process died {ATTEMPTS} times; was it out of memory? Try fewer with --on processes:1"
            _note(sweep, job, Done(job.key, error=lost))


def _note(sweep: _Sweep, job: Job, done: Done) -> None:
    sweep.done[job.key] = done
    sweep.on_done(job, done)


def _collect(plan: Plan, experiment: Experiment, store: Store, done: dict[str, Done]) -> Outcome:
    jobs = [job for job in plan.jobs if job.experiment is experiment]
    pairs, keys, failures, seconds, unnamed = [], [], [], 0.0, dict[str, None]()
    for job in jobs:
        came = done.get(job.key)
        if came is not None and came.error is not None:
            failures.append((job, came))
        elif (stored := plan.found.get(job.key) or _find(store, job.key)) is not None:
            pairs.append((job.cell, stored.dataset))
            keys.append(job.key)
            seconds += stored.seconds
            unnamed |= dict.fromkeys(stored.unnamed)
        else:
            failures.append((job, Done(job.key, error="its file was damaged or removed during the run; run again")))
    results = Results(plan.profile, tuple(pairs), complete=not failures)
    computed = sum(job.key in done for job in jobs) - sum(job.key in done for job, _ in failures)
    reused = len(pairs) - computed
    return Outcome(experiment, results, computed, reused, tuple(failures), seconds, tuple(keys), tuple(unnamed))
