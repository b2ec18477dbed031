"""What an experiment is and how it runs: cells, executors, the store, claims."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.lab import answers as answers
    from offtangent.lab import checks as checks
    from offtangent.lab import cluster as cluster
    from offtangent.lab import codec as codec
    from offtangent.lab import compiled as compiled
    from offtangent.lab import effects as effects
    from offtangent.lab import executors as executors
    from offtangent.lab import experiment as experiment
    from offtangent.lab import fingerprints as fingerprints
    from offtangent.lab import forms as forms
    from offtangent.lab import hypotheses as hypotheses
    from offtangent.lab import importing as importing
    from offtangent.lab import interrupts as interrupts
    from offtangent.lab import judging as judging
    from offtangent.lab import kinds as kinds
    from offtangent.lab import lateness as lateness
    from offtangent.lab import machinery as machinery
    from offtangent.lab import mending as mending
    from offtangent.lab import naming as naming
    from offtangent.lab import page as page
    from offtangent.lab import pool as pool
    from offtangent.lab import progress as progress
    from offtangent.lab import questions as questions
    from offtangent.lab import records as records
    from offtangent.lab import refusals as refusals
    from offtangent.lab import runner as runner
    from offtangent.lab import scopes as scopes
    from offtangent.lab import selection as selection
    from offtangent.lab import shipped as shipped
    from offtangent.lab import slices as slices
    from offtangent.lab import sources as sources
    from offtangent.lab import statistics as statistics
    from offtangent.lab import store as store
    from offtangent.lab import sweeps as sweeps
    from offtangent.lab import syntax as syntax
    from offtangent.lab import training_command as training_command
    from offtangent.lab import trainings as trainings
    from offtangent.lab import watches as watches
    from offtangent.lab import worker as worker
    from offtangent.lab import workers as workers
    from offtangent.lab.claims import Claim as Claim
    from offtangent.lab.costs import Cost as Cost
    from offtangent.lab.execution import execute as execute
    from offtangent.lab.results import Results as Results
    from offtangent.lab.sweeps import over_seeds as over_seeds

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "claims": "Claim",
            "execution": "execute",
            "results": "Results",
            "costs": "Cost",
            "sweeps": "over_seeds",
        },
    )
