"""The figures of the samples needed: against the dimension, and the learning curves."""

import numpy as np

from offtangent.lab import Results
from offtangent.lab.statistics import slope_interval
from offtangent.papers.bai_lee._curves import NAMES, SIGMA, TITLES, TaskCurves, listed, tasks
from offtangent.papers.bai_lee._targets import is_xor, level
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

COLOURS = {"ntk": "vermillion", "quadratic": "blue", "randomised": "green", "plain": "orange"}
OF_FIGURES = {
    **TITLES,
    "xor": "2-XOR with d − 2 spare coordinates",
    "noisy xor": "2-XOR with Wei et al.'s distribution",
}


def figures(results: Results) -> list[Figure]:
    """Two for each task.

    Args:
        results: The curves.

    Returns:
        The samples needed against d, and the test loss against n at the last dimension that all learners have.
    """
    return [figure for task in tasks(results) for figure in (_growth(task), _curves(task))]


def _growth(task: TaskCurves) -> Figure:
    plot = new_plot()
    for learner in task.learners:
        table, dims = task.needed[learner], task.dims[learner]
        shown = np.isfinite(table).all(axis=0)
        if not shown.any():
            continue
        seen = table[:, shown]
        means = np.exp(np.log(seen).mean(axis=0))
        name = NAMES[learner]
        if shown.all() and min(table.shape) > 1:
            slope = slope_interval(dims, table)
            name += f", slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
        points(plot, dims[shown], means, name=name, colour=COLOURS[learner], band=(seen.min(axis=0), seen.max(axis=0)))
    longest = max(task.dims.values(), key=len)
    known = (
        table[:, 0]
        for learner, table in task.needed.items()
        if task.dims[learner][0] == longest[0] and np.isfinite(table[:, 0]).all()
    )
    first = min((float(np.exp(np.log(column).mean())) for column in known), default=1.0)
    powers = (1, 2) if is_xor(task.task) else (int(task.task) - 1, int(task.task))
    for power, dash in zip(powers, ("dot", "dash"), strict=True):
        name = "d" if power == 1 else f"d^{power}"
        line(plot, longest, first * (longest / longest[0]) ** power, name=name, colour="grey", dash=dash)
    style(plot, x="dimension d", y="samples needed, n", log_x=True, log_y=True)
    goal = (
        "a tenth of the test signs are wrong"
        if is_xor(task.task)
        else "half of what the part of degree p contributes to f⋆ is left"
    )
    missing = [
        f"the {NAMES[learner]} at d = {listed(task.dims[learner][~known])}"
        for learner in task.learners
        if not (known := np.isfinite(task.needed[learner]).all(axis=0)).all()
    ]
    caption = (
        f"The n at which {goal}; {_sizes(task)}; bars: all seeds; slopes with 95 % intervals. Grey lines: powers of d, "
        "from the lowest first point."
    )
    if missing:
        caption += f" Left out, where not every seed came down to the level: {'; '.join(missing)}."
    return Figure(f"{OF_FIGURES[task.task]}: samples needed against the dimension", caption, plot)


def _sizes(task: TaskCurves) -> str:
    """Every network's width, and the seeds."""
    cells = [task.curve(learner, task.dims[learner][0])[0] for learner in task.learners if learner != "ntk"]
    widths = ", ".join(f"{cell.width} neurons ({NAMES[cell.learner]})" for cell in cells)
    return f"{cells[0].seeds} seeds, {widths}, {SIGMA}"


def _curves(task: TaskCurves) -> Figure:
    plot, dim = new_plot(), min(dims[-1] for dims in task.dims.values())  # the last one that all have
    sizes: list[float] = []
    for learner in task.learners:
        cell, data = task.curve(learner, dim)
        errors = data["test"].values
        sizes += [float(n) for n in cell.samples]
        line(
            plot,
            np.array(cell.samples, float),
            errors.mean(axis=0),
            name=NAMES[learner],
            colour=COLOURS[learner],
            band=(errors.min(axis=0), errors.max(axis=0)),
        )
    ends = np.array([min(sizes), max(sizes)])
    line(plot, ends, np.full(2, level(task.task, int(dim))), name="the level", colour="grey", dash="dot")
    style(
        plot,
        x="training samples n",
        y="wrong test signs" if is_xor(task.task) else "test error, squared, over E f⋆²",
        log_x=True,
    )
    cell = task.results.pairs[0][0]
    caption = f"Means over {cell.seeds} seeds (bands: all) at d = {dim:.0f}; regularisers are chosen on other samples."
    return Figure(f"{OF_FIGURES[task.task]}: test loss against n", caption, plot)
