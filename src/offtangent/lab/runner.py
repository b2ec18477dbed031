"""Run the cells that are not stored yet, and collect all of them.

Nothing is lost: a finished cell is a file, a killed run goes on where it was, a dead worker's cells are sent
again, one that does not fit into memory beside others has it to itself in the end, and a cell that raises is reported
while the others go on.
"""

import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field

import xarray as xr

from offtangent.lab.costs import Cost, rate
from offtangent.lab.executors import LOCAL, Placement
from offtangent.lab.experiment import Cell, Experiment, fields_of
from offtangent.lab.machinery import ONE
from offtangent.lab.results import Results
from offtangent.lab.store import Store, StoreFailed
from offtangent.lab.worker import Done, Task, announced, work

ATTEMPTS = 3  # how often a cell is sent whose worker died under it
IN_FLIGHT = {"local": 1, "processes": 2, "dask": 1000, "slurm": 1000}  # chunks a worker may have waiting


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
    return None if stored is None else Found(stored[0], float(stored[1]["seconds"]))


@dataclass
class _Sweep:
    """The state of a run: what waits, what flies, what has come back."""

    waiting: deque[list[Job]]
    flying: dict[Future[list[Done]], list[Job]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    shared: bool = False  # workers have one machine's memory between them

    def room(self, limit: int) -> bool:
        """Whether the next chunk may go out. A cell flies its last attempt alone: then a death is its own fault."""
        if any(self.last(jobs) for jobs in (self.waiting[0], *self.flying.values())):
            return not self.flying
        return len(self.flying) < limit

    def last(self, jobs: list[Job]) -> bool:
        return any(self.attempts.get(job.key, 0) == ATTEMPTS - 1 for job in jobs)


def run(
    plan: Plan,
    store: Store,
    *,
    on_done: Callable[[Job, Done], None] = lambda job, done: None,  # noqa: ARG005
) -> list[Outcome]:
    """Compute what is missing and return every experiment's results, in the plan's order.

    `on_done` is told of every cell that comes back. Raises `StoreFailed` when the store cannot be written, and
    `Interrupted` on Ctrl-C; both leave the store sound.
    """
    placement = plan.placement
    missing = _longest_first(plan)
    count = -(-len(missing) // placement.chunk(len(missing)))
    chunks = [missing[i::count] for i in range(count)]  # long and short cells in each
    sweep = _Sweep(deque(chunks), shared=placement.kind == "processes" and placement.workers > 1)
    token = secrets.token_hex(8)
    try:
        with announced(store, token):
            while sweep.waiting and _sweep(sweep, store, placement, token, on_done):
                pass
    except KeyboardInterrupt:
        kept = sum(job.stored for job in plan.jobs) + sum(done.error is None for done in sweep.done.values())
        raise Interrupted(kept, len(plan.jobs)) from None
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


def _sweep(sweep: _Sweep, store: Store, placement: Placement, token: str, on_done: Callable[[Job, Done], None]) -> bool:
    """Run until nothing waits, or a new pool is wanted: a dead worker has broken this one, or a cell wants it alone."""
    limit = IN_FLIGHT[placement.kind] * placement.workers
    with ExitStack() as stack:
        executor = stack.enter_context(placement.executor())
        used = False
        while sweep.waiting or sweep.flying:
            if used and sweep.shared and not sweep.flying and sweep.last(sweep.waiting[0]):
                return True  # a worker keeps the memory that it once had
            used = True
            try:
                while sweep.waiting and sweep.room(limit):
                    _submit(sweep, executor, store, token)
                settled, _ = wait(sweep.flying, return_when=FIRST_COMPLETED)
                for future in settled:
                    jobs = sweep.flying[future]
                    results = _results(future, jobs)
                    del sweep.flying[future]
                    for job, done in zip(jobs, results, strict=True):
                        _settle(sweep, store, job, done, on_done)
            except BrokenProcessPool:
                _send_again(sweep, store, on_done)
                return True
    return False


def _submit(sweep: _Sweep, executor: Executor, store: Store, token: str) -> None:
    jobs = sweep.waiting[0]
    future = executor.submit(work, [job.task for job in jobs], str(store.folder.resolve()), token)
    sweep.flying[future] = sweep.waiting.popleft()


def _results(future: Future[list[Done]], jobs: list[Job]) -> list[Done]:
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # the executor lost the job: a killed worker, an expired Slurm allocation
        return [Done(job.key, error=f"{type(error).__name__}: {error}") for job in jobs]


def _settle(sweep: _Sweep, store: Store, job: Job, done: Done, on_done: Callable[[Job, Done], None]) -> None:
    if done.full:
        raise StoreFailed(done.error)
    if done.crowded and sweep.shared and not sweep.last([job]):
        sweep.attempts[job.key] = ATTEMPTS - 1
        sweep.waiting.append([job])
        return
    if done.content is not None:
        store.write(job.key, done.content)
    sweep.done[job.key] = done
    on_done(job, done)


def _send_again(sweep: _Sweep, store: Store, on_done: Callable[[Job, Done], None]) -> None:
    """A worker process died (killed, or out of memory): whatever was in flight goes out again, but not for ever."""
    for future, jobs in sweep.flying.items():
        if future.done() and future.exception() is None:  # it was faster than the death
            for job, done in zip(jobs, future.result(), strict=True):
                _settle(sweep, store, job, done, on_done)
            continue
        for job in jobs:
            sweep.attempts[job.key] = sweep.attempts.get(job.key, 0) + 1
            if sweep.attempts[job.key] < ATTEMPTS:
                sweep.waiting.append([job])
            else:
                lost = (
                    f"its worker process died {ATTEMPTS} times; was it out of memory? Try fewer with --on processes:1"
                )
                sweep.done[job.key] = Done(job.key, error=lost)
                on_done(job, sweep.done[job.key])
    sweep.flying.clear()


def _collect(plan: Plan, experiment: Experiment, store: Store, done: dict[str, Done]) -> Outcome:
    jobs = [job for job in plan.jobs if job.experiment is experiment]
    pairs, keys, failures, seconds = [], [], [], 0.0
    for job in jobs:
        came = done.get(job.key)
        if came is not None and came.error is not None:
            failures.append((job, came))
        elif (stored := plan.found.get(job.key) or _find(store, job.key)) is not None:
            pairs.append((job.cell, stored.dataset))
            keys.append(job.key)
            seconds += stored.seconds
        else:
            failures.append((job, Done(job.key, error="its file was damaged or removed during the run; run again")))
    results = Results(plan.profile, tuple(pairs), complete=not failures)
    computed = sum(job.key in done for job in jobs) - sum(job.key in done for job, _ in failures)
    unnamed = dict.fromkeys(path for job in jobs if job.key in done for path in done[job.key].unnamed)
    reused = len(pairs) - computed
    return Outcome(experiment, results, computed, reused, tuple(failures), seconds, tuple(keys), tuple(unnamed))
