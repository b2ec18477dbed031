"""What the learning curves say: how many samples each learner needs, and how that grows with the dimension."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results, Verdict, slope_interval
from offtangent.papers.bai_lee._targets import level
from offtangent.report import Figure, line, new_plot, points, style

NAMES = {"ntk": "NTK", "quadratic": "quadratic model", "randomised": "randomised network", "plain": "plain network"}
COLOURS = {"ntk": "vermillion", "quadratic": "blue", "randomised": "green", "plain": "orange"}
TITLES = {"xor": "2-XOR", "3": "(βᵀx)³", "4": "(βᵀx)⁴"}
MEASURES = {"xor": "wrong test signs", "3": "test error, squared, over E f⋆²", "4": "test error, squared, over E f⋆²"}
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


class _Task:
    """The curves of one task, and the n each learner needs: rows are seeds, columns dimensions."""

    def __init__(self, task: str, results: Results):
        self.task, self.results = task, results
        self.dims = np.array(sorted(results.values("dim")), float)
        self.learners = [learner for learner in NAMES if learner in results.values("learner")]
        self.needed = {learner: self._needed(learner) for learner in self.learners}

    def curve(self, learner: str, dim: float) -> tuple[Any, Any]:
        return self.results.where(learner=learner, dim=int(dim)).pairs[0]

    def _needed(self, learner: str) -> Float[np.ndarray, "s k"]:
        columns = []
        for dim in self.dims:
            cell, data = self.curve(learner, dim)
            columns.append(needed(np.array(cell.samples, float), data["test"].values, level(self.task, cell.dim)))
        return np.stack(columns, axis=1)

    def known(self, *learners: str) -> bool:
        return all(learner in self.needed and np.isfinite(self.needed[learner]).all() for learner in learners)

    def where(self) -> str:
        cell = self.results.pairs[0][0]
        return (
            f"d = {', '.join(f'{d:.0f}' for d in self.dims)}, {cell.seeds} seeds, networks of {cell.width} neurons, "
            f"{SIGMA}"
        )

    def sizes(self, learner: str) -> str:
        """The n over the dimensions: geometric means over seeds."""
        means = np.exp(np.log(self.needed[learner]).mean(axis=0))
        return ", ".join(f"{n:.0f}" for n in means)


def _tasks(results: Results) -> list[_Task]:
    complete = (results.where(task=task) for task in TITLES if task in results.values("task"))
    return [
        _Task(task.pairs[0][0].task, task)
        for task in complete
        if len(task) == len(task.values("dim")) * len(task.values("learner"))
        and len(task.values("dim")) > 1
        and "ntk" in task.values("learner")
    ]


def claims(results: Results) -> list[Claim]:
    return [claim for task in _tasks(results) for claim in _of(task)]


def _of(task: _Task) -> list[Claim]:
    title, found = TITLES[task.task], []
    said: dict[str, Any] = {"source": "Section 5.2"}
    goal = "a tenth of the signs are wrong" if task.task == "xor" else "half of the part of degree p is left"
    slope = f"log-log slope in d of the n at which {goal}, 95 % interval, {task.where()}"
    for learner in ("quadratic", "randomised"):
        if not task.known("ntk", learner):
            found.append(_unknown(task, learner))
            continue
        ratio = task.needed[learner] / task.needed["ntk"]
        means = np.exp(np.log(ratio).mean(axis=0))
        found.append(
            Claim.at_most(
                slope_interval(task.dims, ratio), 0.0, strict=True, **said,
                statement=f"{title}: the {NAMES[learner]} needs fewer samples than the NTK, by a factor that falls "
                f"with d (the paper: like {'1/d' if task.task == 'xor' else 'p/d'}, a slope of −1)",
                measured=slope.replace("the n at", "the ratio of the n at"),
                note=f"Ratios: {', '.join(f'{one:.2f}' for one in means)}. n of the {NAMES[learner]}: "
                f"{task.sizes(learner)}; of the NTK: {task.sizes('ntk')}.",
            )
        )  # fmt: skip
    if task.task == "xor":
        found += _xor(task, slope, said)
    return found


def _xor(task: _Task, slope: str, said: dict[str, Any]) -> list[Claim]:
    """Õ(d) and Ω(d²) are about large d, and hide logarithms and constants."""
    small = "Õ(·) and Ω(·) are about large d and hide logarithms, so no verdict is drawn from dimensions this small."
    found = [
        Claim.no_slower(
            slope_interval(task.dims, task.needed[learner]), 1.0, inside=False, **said, measured=slope,
            statement=f"2-XOR: the {NAMES[learner]} needs n_Q = Õ(d) samples",
            note=f"n: {task.sizes(learner)}. {small}",
        )
        for learner in ("quadratic", "randomised")
        if task.known(learner)
    ]  # fmt: skip
    if task.known("ntk"):
        found.append(
            Claim.at_least(
                slope_interval(task.dims, task.needed["ntk"]), 2.0, inside=False, **said, measured=slope,
                statement="2-XOR: the NTK needs n_L = Ω(d²) samples (Wei et al., 2019)",
                note=f"n: {task.sizes('ntk')}. {small}",
            )
        )  # fmt: skip
    return found


def _unknown(task: _Task, learner: str) -> Claim:
    why = "For some seed a curve does not cross the level within its sizes."
    if learner not in task.learners:
        why = "Random signs leave f^L, a noise like m^(−1/2), which keeps networks of this width above the level."
    statement = f"{TITLES[task.task]}: the {NAMES[learner]} needs fewer samples than the NTK"
    if task.results.profile == "paper":
        return Claim("Section 5.2", statement, "", Verdict.UNTESTABLE, note=f"{why} No profile has a wider one.")
    return Claim.not_testable(source="Section 5.2", statement=statement, profile="paper", why=why)


def figures(results: Results) -> list[Figure]:
    return [figure for task in _tasks(results) for figure in (_growth(task), _curves(task))]


def _growth(task: _Task) -> Figure:
    plot = new_plot()
    for learner in task.learners:
        table = task.needed[learner]
        shown = np.isfinite(table).all(axis=0)
        if not shown.any():
            continue
        seen = table[:, shown]
        means = np.exp(np.log(seen).mean(axis=0))
        name = NAMES[learner]
        if shown.all() and len(table) > 1:
            name += f", slope {slope_interval(task.dims, table).value:.2f}"
        points(plot, task.dims[shown], means, name=name, colour=COLOURS[learner],
               band=(seen.min(axis=0), seen.max(axis=0)))  # fmt: skip
    first = min(float(table[np.isfinite(table)].min()) for table in task.needed.values() if np.isfinite(table).any())
    powers = (1, 2) if task.task == "xor" else (int(task.task) - 1, int(task.task))
    for power, dash in zip(powers, ("dot", "dash"), strict=True):
        name = "d" if power == 1 else f"d^{power}"
        line(plot, task.dims, first * (task.dims / task.dims[0]) ** power, name=name, colour="grey", dash=dash)
    style(plot, x="dimension d", y="samples needed, n", log_x=True, log_y=True)
    goal = (
        "a tenth of the test signs are wrong"
        if task.task == "xor"
        else "half of what the part of degree p contributes to f⋆ is left"
    )
    caption = f"The n at which {goal}; {task.where()}; bars: all seeds. Grey lines: powers of d, from the lowest point."
    return Figure(f"{TITLES[task.task]}: samples needed against the dimension", caption, plot)


def _curves(task: _Task) -> Figure:
    plot, dim = new_plot(), task.dims[-1]
    sizes: list[float] = []
    for learner in task.learners:
        cell, data = task.curve(learner, dim)
        errors = data["test"].values
        sizes += [float(n) for n in cell.samples]
        line(plot, np.array(cell.samples, float), errors.mean(axis=0), name=NAMES[learner], colour=COLOURS[learner],
             band=(errors.min(axis=0), errors.max(axis=0)))  # fmt: skip
    ends = np.array([min(sizes), max(sizes)])
    line(plot, ends, np.full(2, level(task.task, int(dim))), name="the level", colour="grey", dash="dot")
    style(plot, x="training samples n", y=MEASURES[task.task], log_x=True)
    cell = task.results.pairs[0][0]
    caption = f"Means over {cell.seeds} seeds (bands: all) at d = {dim:.0f}; regularisers are chosen on other samples."
    return Figure(f"{TITLES[task.task]}: test loss against n", caption, plot)
