"""The claims of an experiment, asked for once."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from offtangent._errors import InputError
from offtangent.lab.claims import Claim
from offtangent.lab.experiment import Experiment
from offtangent.lab.questions import told
from offtangent.lab.results import Results


@dataclass(frozen=True)
class Judged:
    """The claims of an experiment, or why its `claims` could not be asked."""

    claims: Sequence[Claim]
    error: str = ""
    trace: str = ""


def judge(experiment: Experiment, results: Results) -> Judged:
    """Ask an experiment for its claims. Its own mistakes are told, not raised: the other experiments go on."""
    if not len(results):
        return Judged((), "no cell has a result")
    try:
        return Judged(experiment.claims(results))
    except Exception as error:
        return Judged((), what_it_said(error), traceback.format_exc())


def what_it_said(error: Exception) -> str:
    """An exception in words: our own refusals are sentences already."""
    return str(error) if isinstance(error, InputError) else told(error)
