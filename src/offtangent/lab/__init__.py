"""What an experiment is and how it runs: cells, executors, the store, claims."""

from offtangent.lab.claims import Claim, Verdict
from offtangent.lab.costs import Cost
from offtangent.lab.executors import Placement, parse_placement
from offtangent.lab.experiment import Experiment, load_experiment, name_of
from offtangent.lab.records import Provenance, Record, read_record, write_record
from offtangent.lab.results import Results
from offtangent.lab.runner import Interrupted, Job, Outcome, Plan, plan, run
from offtangent.lab.selection import check_profile, select
from offtangent.lab.statistics import (
    Interval,
    error_interval,
    fraction_interval,
    mean_interval,
    ratio_interval,
    slope_interval,
)
from offtangent.lab.store import Store

__all__ = [
    "Claim",
    "Cost",
    "Experiment",
    "Interrupted",
    "Interval",
    "Job",
    "Outcome",
    "Placement",
    "Plan",
    "Provenance",
    "Record",
    "Results",
    "Store",
    "Verdict",
    "check_profile",
    "error_interval",
    "fraction_interval",
    "load_experiment",
    "mean_interval",
    "name_of",
    "parse_placement",
    "plan",
    "read_record",
    "run",
    "select",
    "ratio_interval",
    "slope_interval",
    "write_record",
]
