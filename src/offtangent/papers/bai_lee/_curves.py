"""The n at which a learning curve comes down to a level, task by task."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Results
from offtangent.papers.bai_lee._targets import level

NAMES = {"ntk": "NTK", "quadratic": "quadratic model", "randomised": "randomised network", "plain": "plain network"}
TITLES = {"xor": "2-XOR", "noisy xor": "2-XOR of Wei et al.", "3": "(βᵀx)³", "4": "(βᵀx)⁴"}
SIGMA = "σ = relu³/6"


def needed(samples: Float[np.ndarray, "n"], errors: Float[np.ndarray, "s n"], limit: float) -> Float[np.ndarray, "s"]:
    """The n at which each row of errors first is down to the limit, between two sizes by interpolation in log n.

    Infinite where it never is, and NaN where it is from the first size on: then the grid says too little.

    >>> needed(np.array([10.0, 20.0, 40.0]), np.array([[0.4, 0.2, 0.0], [0.4, 0.4, 0.4]]), 0.2)
    array([20., inf])
    """
    found = np.full(len(errors), np.inf)
    for i, row in enumerate(errors):
        below = np.flatnonzero(row <= limit)
        if len(below) and below[0] == 0:
            found[i] = np.nan
        elif len(below):
            j = below[0]
            part = (row[j - 1] - limit) / (row[j - 1] - row[j])
            found[i] = np.exp((1 - part) * np.log(samples[j - 1]) + part * np.log(samples[j]))
    return found


class TaskCurves:
    """The curves of one task, and the n each learner needs: rows are seeds, columns its dimensions."""

    def __init__(self, task: str, results: Results, times: float = 1.0):
        self.task, self.results, self.times = task, results, times  # the last of the level
        self.learners = [learner for learner in NAMES if learner in results.values("learner")]
        self.dims = {
            learner: np.array(sorted(results.where(learner=learner).values("dim")), float) for learner in self.learners
        }
        self.needed = {learner: self._needed(learner) for learner in self.learners}

    def curve(self, learner: str, dim: float) -> tuple[Any, Any]:
        return self.results.where(learner=learner, dim=int(dim)).pairs[0]

    def _needed(self, learner: str) -> Float[np.ndarray, "s k"]:
        columns = []
        for dim in self.dims[learner]:
            cell, data = self.curve(learner, dim)
            limit = self.times * level(self.task, cell.dim)
            columns.append(needed(np.array(cell.samples, float), data["test"].values, limit))
        return np.stack(columns, axis=1)

    @property
    def title(self) -> str:
        return TITLES[self.task] + (", easier level" if self.times > 1 else "")

    def known(self, *learners: str) -> bool:
        return all(learner in self.needed and np.isfinite(self.needed[learner]).all() for learner in learners)

    def against_ntk(self, learner: str) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "s k"]]:
        """The dimensions at which both have an n for every seed, and this learner's n over the NTK's there."""
        dims, ours, theirs = np.intersect1d(self.dims[learner], self.dims["ntk"], return_indices=True)
        mine, yours = self.needed[learner][:, ours], self.needed["ntk"][:, theirs]
        both = np.isfinite(mine).all(axis=0) & np.isfinite(yours).all(axis=0)
        return dims[both], mine[:, both] / yours[:, both]

    def where(self, learners: list[str], dims: Any = None) -> str:
        """The sizes behind a statement about these learners, at all of the first one's dimensions or at these."""
        cells = [self.curve(learner, self.dims[learner][0])[0] for learner in learners]
        widths = [f"{cell.width} neurons ({NAMES[cell.learner]})" for cell in cells if cell.learner != "ntk"]
        chosen = self.dims[learners[0]] if dims is None else dims
        first = cells[0].first
        seeds = f"seeds {first} to {first + cells[0].seeds - 1}" if first else f"{cells[0].seeds} seeds"
        return ", ".join([f"d = {listed(chosen)}", seeds, *widths, SIGMA])

    def sizes(self, learner: str) -> str:
        """The n over the dimensions: geometric means over seeds."""
        means = np.exp(np.log(self.needed[learner]).mean(axis=0))
        return ", ".join(f"{n:.0f}" for n in means)


def tasks(results: Results) -> list[TaskCurves]:
    """Those with an NTK and a quadratic model at two dimensions or more, on the seeds from 0 on.

    Args:
        results: The curves.

    Returns:
        One for each task.
    """
    first = results.only(lambda cell: cell.first == 0)
    each = (TaskCurves(task, first.where(task=task)) for task in TITLES if task in first.values("task"))
    return [task for task in each if all(len(task.dims.get(learner, ())) > 1 for learner in ("ntk", "quadratic"))]


def listed(dims: Any) -> str:
    """Dimensions in words: "10, 16, 25".

    Args:
        dims: The dimensions.

    Returns:
        The words.
    """
    return ", ".join(f"{d:.0f}" for d in dims)
