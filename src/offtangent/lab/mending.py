"""A damaged record is made again from its cells, where they are still there."""

from collections.abc import Mapping
from pathlib import Path

from offtangent.lab.executors import LOCAL, Placement
from offtangent.lab.experiment import Experiment
from offtangent.lab.naming import record_name
from offtangent.lab.records import DamagedRecord, Record, read_record, record_of, unchecked, write_record
from offtangent.lab.results import Results
from offtangent.lab.runner import Outcome, plan
from offtangent.lab.store import Store


def read_or_remake(path: Path, experiments: Mapping[str, Experiment]) -> tuple[Record | None, str]:
    """The record at DIR/results/NAME.json, and what a person must be told.

    One that is damaged is set aside and made again from DIR/cells, under the experiments' present keys. Where none of
    its cells are there, it is None. One of the first format is told, which has no checksum.
    """
    try:
        record = read_record(path, experiments)
        return record, "" if record.checked else unchecked(path)
    except DamagedRecord as fault:
        found = next(
            (
                (experiment, profile)
                for experiment in experiments.values()
                for profile in experiment.profiles
                if record_name(experiment.name, profile) == path.name
            ),
            None,
        )
        store = Store(path.parent.parent)
        outcome = None if found is None else _from_cells(*found, store)
        if outcome is None:
            return None, f"{fault} Its cells are not there for the present code: it is left out. Run it again."
        store.set_aside(path, "set aside")
        record = record_of(outcome)
        write_record(record, path.parent)
        return record, f"{fault} It was made again from {len(outcome.results)} cells. {'. '.join(store.damaged)}."


def _from_cells(experiment: Experiment, profile: str, store: Store) -> Outcome | None:
    """What the store has of a profile, of workers or of the run's own process; None where it has nothing."""
    plans = [plan([experiment], profile, store, placement) for placement in (Placement("processes", "1"), LOCAL)]
    todo = max(plans, key=lambda one: len(one.found))
    there = [job for job in todo.jobs if job.stored]
    if not there:
        return None
    pairs = tuple((job.cell, todo.found[job.key].dataset) for job in there)
    seconds = sum(todo.found[job.key].seconds for job in there)
    results = Results(profile, pairs, complete=len(there) == len(todo.jobs))
    return Outcome(experiment, results, 0, len(there), seconds=seconds, keys=tuple(job.key for job in there))
