"""From words to a report: plan, run, judge once, write.

The command line types the words and prints what comes back; a notebook or a script calls `execute` itself.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from offtangent._errors import InputError
from offtangent._files import shown
from offtangent._papers import PAPERS
from offtangent.lab.claims import Claim
from offtangent.lab.compiled import keep_compiled
from offtangent.lab.executors import check_timeout, parse_placement
from offtangent.lab.experiment import Experiment
from offtangent.lab.judging import Judged, judge
from offtangent.lab.machinery import deterministic
from offtangent.lab.mending import read_or_remake
from offtangent.lab.naming import record_name
from offtangent.lab.page import Chapter, Exhibit, publish
from offtangent.lab.progress import Shown
from offtangent.lab.records import (
    Record,
    committed_records,
    read_shipped,
    record_of,
    shipped_fault,
    too_large,
    write_record,
)
from offtangent.lab.results import Results
from offtangent.lab.runner import Job, Outcome, Plan, plan, run
from offtangent.lab.selection import check_profile, of_papers, select
from offtangent.lab.store import Store, check_output, clear_away
from offtangent.lab.worker import Done, sharing_settings

PAGE = "report.html"
FOLDER = "offtangent-run"


@runtime_checkable
class Progress(Protocol):
    """What hears of a run while it goes on; `offtangent.lab.progress.Shown` prints it."""

    def tell(self, sentence: str, style: str = "yellow") -> None:
        """Something that a person should know: "" for what is usual, "red" for what is worse than a warning."""

    def following(self, jobs: Sequence[Job]) -> AbstractContextManager[Callable[[Job, Done], None]]:
        """What is to be called with every cell that comes back, while these cells are computed."""


@dataclass(frozen=True)
class Run:
    """What came of a run: each experiment's results and claims, and what was written.

    Attributes:
        profile: The profile that was run.
        outcomes: For each experiment its results, how many cells were computed, and which failed.
        judged: For each experiment, by name, its claims, or why they could not be judged.
        records: The files that hold the results, one for each experiment.
        page: The report; None where plotly, which draws it, is missing.
        damaged: What was found damaged in the output folder and computed again, in words.
    """

    profile: str
    outcomes: tuple[Outcome, ...]
    judged: Mapping[str, Judged]
    records: tuple[Path, ...]
    page: Path | None
    damaged: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Results:
        """The results of one experiment, by its name."""
        found = {outcome.experiment.name: outcome.results for outcome in self.outcomes}
        if name not in found:
            raise KeyError(f"{name!r} is not among {', '.join(found)}")
        return found[name]

    @property
    def claims(self) -> list[tuple[str, Claim]]:
        """All claims, each with the name of its experiment, in their order."""
        return [(name, claim) for name, judged in self.judged.items() for claim in judged.claims]

    @property
    def failures(self) -> list[tuple[Job, Done]]:
        """The cells that could not be computed, each with the reason."""
        return [failure for outcome in self.outcomes for failure in outcome.failures]

    @property
    def computed(self) -> int:
        """How many cells were computed now."""
        return sum(outcome.computed for outcome in self.outcomes)

    @property
    def reused(self) -> int:
        """How many cells were there already."""
        return sum(outcome.reused for outcome in self.outcomes)


def execute(
    selectors: Sequence[str | Path] | str | Path = (),
    profile: str = "laptop",
    folder: str | Path = FOLDER,
    *,
    on: str | None = None,
    fresh: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run experiments, judge their claims once, and write their results and the report: `offtangent run`.

    Cells that are stored in the folder are taken from there, each read and checked once. Whatever happens to the run,
    finished cells are kept, and the same call goes on from them. A script that calls this with worker processes must
    do so under `if __name__ == "__main__":`, for they import it, too.

    Args:
        selectors: Names of papers ("arora") or experiments ("arora/fig1"), globs, or files of your own, one or
            several; by default all experiments of the papers.
        profile: "smoke" (seconds), "laptop" (minutes) or "paper" (a GPU).
        folder: Where results are kept and the report is written.
        on: "local", "processes:N", "dask:ADDRESS" or "slurm:PARTITION"; by default a process a core, and "local" on a
            GPU.
        fresh: Compute everything again, whatever is stored.
        timeout: Seconds after which a cell is ended and counts as failed; on processes and Slurm.
        progress: What hears of the run while it goes on; by default lines, or a bar, on standard error.

    Returns:
        The results, the claims with their verdicts, and the paths of what was written.

    Raises:
        InputError: For a selector, profile, place or folder that cannot be; the message names what can.
        Interrupted: On Ctrl-C, with how many cells are stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = execute("ge_wang_zhao/synthetic", "smoke", folder, on="local")
    >>> run.computed, len(run["ge_wang_zhao/synthetic"]), run.claims[0][1].verdict.value, run.page.name
    (6, 6, 'holds', 'report.html')
    """
    hears = Shown() if progress is None else progress
    todo, store = _prepared(selectors, profile, folder, on=on, fresh=fresh, timeout=timeout)
    for sentence in absences(todo):
        hears.tell(sentence)
    if todo.missing:
        if "jax" in sys.modules and (fault := keep_compiled()):
            hears.tell(fault)
        hears.tell(f"{len(todo.missing)} of {len(todo.jobs)} cells to compute on {todo.placement} …", style="")
    with hears.following(todo.missing) as on_done:
        outcomes = run(todo, store, timeout=timeout, on_done=on_done, tell=hears.tell)
    for sentence in _remarks(store, outcomes):
        hears.tell(sentence)
    records = [record_of(outcome) for outcome in outcomes]
    paths = [write_record(record, store.folder / "results") for record in records]
    judged = {outcome.experiment.name: judge(outcome.experiment, outcome.results) for outcome in outcomes}
    exhibits = [Exhibit(record, judged[record.name]) for record in records]
    words = ["run", *_several(selectors), "--profile", profile, "--out", folder, *(["--on", on] if on else [])]
    words += ["--fresh"] * fresh + ([] if timeout is None else ["--timeout", f"{timeout:g}"])
    facts = {"profile": profile, "executor": str(todo.placement), "command": _command(words)}
    page, _ = _write_page(todo.experiments, exhibits, store.folder, facts, hears)
    return Run(profile, tuple(outcomes), judged, tuple(paths), page, tuple(store.damaged))


def forecast(
    selectors: Sequence[str | Path] | str | Path = (),
    profile: str = "laptop",
    folder: str | Path = FOLDER,
    *,
    on: str | None = None,
    fresh: bool = False,
    timeout: float | None = None,
) -> Plan:
    """The cells that `execute` would compute with the same arguments, with their expected time and memory."""
    return _prepared(selectors, profile, folder, on=on, fresh=fresh, timeout=timeout)[0]


def report_again(
    folder: str | Path, selectors: Sequence[str | Path] | str | Path = (), *, progress: Progress | None = None
) -> tuple[Path | None, tuple[str, ...]]:
    """Write the report of an earlier run again, from its records and those that come with the package.

    Args:
        folder: The output folder of the run.
        selectors: The files of your own experiments, if the run had any.
        progress: What hears of damaged records; by default standard error.

    Returns:
        The page, None where plotly is missing, and what had to be left out of it, in words.
    """
    hears, folder, selectors = Shown() if progress is None else progress, Path(folder), _several(selectors)
    own = select(selectors, of_papers()) if selectors else []
    known = {experiment.name: experiment for experiment in [*of_papers(), *own]}
    check_output(folder)
    clear_away(folder)
    paths = sorted((folder / "results").glob("*.json"))
    if not paths:
        raise InputError(f"There are no results in {folder / 'results'}. Make some with: offtangent run --out {folder}")
    read = [read_or_remake(path, known) for path in paths]
    for record, fault in read:
        if fault:
            hears.tell(fault, style="yellow" if record else "red")
    records = [record for record, _ in read if record is not None]
    lost = [fault for record, fault in read if record is None]
    names = {record.name for record in records}
    # As their papers go, not by the names of files.
    these = [experiment for experiment in known.values() if experiment.name in names]
    exhibits = [Exhibit(record, judge(known[record.name], record.results)) for record in records]
    facts = {"command": _command(["report", folder, *selectors])}
    page, altered = _write_page(these, exhibits, folder, facts, hears, lost)
    return page, (*lost, *altered)


def absences(todo: Plan) -> Iterator[str]:
    """For each experiment that leaves something out for want of data, how to get it."""
    from offtangent.data.catalogue import data_folder

    for experiment in todo.experiments:
        if absent := experiment.absent(todo.profile):
            fetched = " and ".join(f"offtangent.data.download({one!r})" for one in absent)
            yield (
                f"{experiment.name} leaves out what needs {', '.join(absent)}: not found in {data_folder()}. Set "
                f"OFFTANGENT_DATA to the folder that has it, or fetch it with {fetched}."
            )


def _several(selectors: Sequence[str | Path] | str | Path) -> list[str]:
    """The selectors as texts; a single one would be taken for its letters."""
    return [str(one) for one in ([selectors] if isinstance(selectors, str | Path) else selectors)]


def _prepared(
    selectors: Sequence[str | Path] | str | Path,
    profile: str,
    folder: str | Path,
    *,
    on: str | None,
    fresh: bool,
    timeout: float | None,
) -> tuple[Plan, Store]:
    folder = Path(os.path.abspath(folder))  # whatever folder a user's file changes to
    experiments = select(_several(selectors), of_papers())
    check_profile(profile, experiments)
    store = Store.open(folder)
    # Dask's workers have the environment that they were started with. Where JAX was loaded it may be too late in here.
    if "jax" not in sys.modules and not (on or "").startswith("dask"):
        os.environ.update(deterministic())
    placement = parse_placement(on)
    check_timeout(timeout, placement)
    if placement.kind in ("processes", "slurm"):
        os.environ.update(deterministic())  # as the workers have it: it is part of their results' keys
    if placement.kind == "processes":
        os.environ.update(sharing_settings())  # before JAX looks for a GPU in here, too
    return plan(experiments, profile, store, placement, fresh=fresh), store


def _remarks(store: Store, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What a person should know of the cells that came back."""
    yield from (f"Damaged and computed again: {line}" for line in store.damaged)
    for outcome in outcomes:
        if told_size := too_large(outcome.results):
            yield f"{outcome.experiment.name}: {told_size}"
        if outcome.unnamed:
            beside = [os.path.relpath(path, outcome.experiment.file.parent) for path in outcome.unnamed]
            named = ", ".join(beside[:3]) + (f" and {len(beside) - 3} more" if len(beside) > 3 else "")
            yield (
                f"{outcome.experiment.name} reads {named}, which datasets(cell) does not name: should it change, old "
                f"results would be taken for new ones. Let datasets(cell) return {tuple(beside[:3])!r}, or all that a "
                "cell reads."
            )


def _command(words: Sequence[object]) -> str:
    """What to type in a shell for the same."""
    return "offtangent " + " ".join(shown(shlex.quote(str(word))) for word in words)


def _write_page(
    experiments: Sequence[Experiment],
    exhibits: Sequence[Exhibit],
    folder: Path,
    facts: Mapping[str, str],
    hears: Progress,
    lost: Sequence[str] = (),
) -> tuple[Path | None, list[str]]:
    """The report of these results, next to those that come with the package; and what is wrong with the latter.

    `lost` tells of records that are left out. There is no page where plotly is missing.
    """
    shipped, faults = _shipped(experiments)
    for fault in faults:
        hears.tell(fault, style="red")
    told = {**facts, "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
    chapters = _chapters(experiments, [*exhibits, *shipped])
    try:
        page = publish(chapters, folder / PAGE, told, [*lost, *faults], partial(hears.tell, style="red"))
        return page.resolve(), faults
    except ImportError as error:
        hears.tell(f"No report was written: {error}. Elsewhere: offtangent report {shown(folder)}")
        return None, faults


def _shipped(experiments: Sequence[Experiment]) -> tuple[list[Exhibit], list[str]]:
    """What came with the package for these experiments, and what of it is not as it was shipped."""
    known = {experiment.name: experiment for experiment in experiments}
    wanted = {record_name(experiment.name, profile) for experiment in experiments for profile in experiment.profiles}
    paths = [path for path in committed_records() if path.name in wanted]
    faults = {path: shipped_fault(path) for path in paths}
    records: list[Record] = [read_shipped(path, known) for path in paths if not faults[path]]
    exhibits = [Exhibit(record, judge(known[record.name], record.results), shipped=True) for record in records]
    return exhibits, [fault for fault in faults.values() if fault]


def _chapters(experiments: Sequence[Experiment], exhibits: Sequence[Exhibit]) -> list[Chapter]:
    """By papers, and by a user's own files, which may be called like a paper."""
    groups: dict[tuple[str, bool], list[Experiment]] = {}
    for experiment in experiments:
        name, inside, _ = experiment.name.partition("/")
        groups.setdefault((name, not inside), []).append(experiment)
    chapters = []
    for (name, own), group in groups.items():
        paper = None if own else next((p for p in PAPERS if p.name == name), None)
        title = f"{paper.authors} ({paper.year})" if paper else name
        entries = tuple((e, [one for one in exhibits if one.record.name == e.name]) for e in group)
        chapters.append(Chapter(name, title, paper.title if paper else "", entries))
    return chapters
