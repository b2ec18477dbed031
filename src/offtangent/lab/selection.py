"""From what a person types to experiments."""

import difflib
import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from offtangent._errors import InputError
from offtangent._papers import PAPERS
from offtangent.lab.experiment import Experiment, load_experiment


def of_papers(paper: str | None = None) -> list[Experiment]:
    """The experiments of all papers, or of one, in the papers' order."""
    return [
        Experiment(f"{one.name}/{name}", f"offtangent.papers.{one.name}.{name}")
        for one in PAPERS
        for name in one.experiments
        if paper in (None, one.name)
    ]


def select(selectors: Sequence[str], known: Sequence[Experiment]) -> list[Experiment]:
    """The experiments that selectors name, each once: a paper, an experiment, a glob or a file; all, for none."""
    if not selectors:
        return list(known)
    chosen: dict[str, Experiment] = {}
    for selector in selectors:
        if selector.endswith(".py"):
            found = [load_experiment(Path(selector))]
        else:
            patterns = (selector, f"{selector}/*")
            found = [experiment for experiment in known if any(fnmatch(experiment.name, p) for p in patterns)]
        if not found:
            if os.path.isfile(f"{selector}.py"):  # unlike Path.is_file, it has an answer for every name
                raise InputError(f"Nothing is called {selector!r}. Did you mean your own file, '{selector}.py'?")
            names = dict.fromkeys(name for e in known for name in (e.name.partition("/")[0], e.name))
            raise InputError(f"Nothing is called {selector!r}.{_nearest(selector, list(names))}")
        chosen |= {experiment.where: experiment for experiment in found}
    _refuse_namesakes(list(chosen.values()), known)
    return list(chosen.values())


def _refuse_namesakes(chosen: Sequence[Experiment], known: Sequence[Experiment]) -> None:
    """Results are told apart by name, so two files may not share theirs."""
    taken = {experiment.name: experiment.where for experiment in known}
    for experiment in chosen:
        if taken.setdefault(experiment.name, experiment.where) != experiment.where:
            raise InputError(
                f"{experiment.where} and {taken[experiment.name]} are both called {experiment.name!r}. Rename one."
            )


def check_profile(profile: str, experiments: Sequence[Experiment]) -> None:
    """Refuse a profile that one of the experiments does not have."""
    for experiment in experiments:
        if profile not in experiment.profiles:
            has = ", ".join(experiment.profiles)
            hint = _nearest(profile, experiment.profiles, otherwise="")
            raise InputError(f"{experiment.name} has no profile {profile!r}; it has {has}.{hint}")


def _nearest(word: str, words: Sequence[str], otherwise: str = " 'offtangent list' shows what there is.") -> str:
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.4)
    return f" Did you mean {near[0]!r}?" if near else otherwise
