"""What the learning curves say: how many samples each learner needs, and how that grows with the dimension."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import ratio_interval, slope_interval
from offtangent.papers.bai_lee._targets import WRONG, is_xor, level, moment
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.bai_lee.bounds import coupling_width
from offtangent.theory.bai_lee.expressivity import RidgePower, xor_target

NAMES = {"ntk": "NTK", "quadratic": "quadratic model", "randomised": "randomised network", "plain": "plain network"}
COLOURS = {"ntk": "vermillion", "quadratic": "blue", "randomised": "green", "plain": "orange"}
TITLES = {"xor": "2-XOR", "noisy xor": "2-XOR of Wei et al.", "3": "(βᵀx)³", "4": "(βᵀx)⁴"}
OF_FIGURES = {
    **TITLES,
    "xor": "2-XOR with d − 2 spare coordinates",
    "noisy xor": "2-XOR with Wei et al.'s distribution",
}
SIGMA = "σ = relu³/6"
EASIER = 1.5  # times the level, for a learner that does not come down to it: three quarters of degree p, 15 % of signs


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

    def inside(self, learner: str) -> bool:
        """Whether the networks are as wide as (6) asks, for which the randomised one's bounds are: never, so far."""
        if learner != "randomised":
            return True
        return all(self.curve(learner, dim)[0].width >= _asked(self.task, int(dim)) for dim in self.dims[learner])

    def where(self, learners: list[str], dims: Any = None) -> str:
        """The sizes behind a statement about these learners, at all of the first one's dimensions or at these."""
        cells = [self.curve(learner, self.dims[learner][0])[0] for learner in learners]
        widths = [f"{cell.width} neurons ({NAMES[cell.learner]})" for cell in cells if cell.learner != "ntk"]
        chosen = self.dims[learners[0]] if dims is None else dims
        return ", ".join([f"d = {_list(chosen)}", f"{cells[0].seeds} seeds", *widths, SIGMA])

    def sizes(self, learner: str) -> str:
        """The n over the dimensions: geometric means over seeds."""
        means = np.exp(np.log(self.needed[learner]).mean(axis=0))
        return ", ".join(f"{n:.0f}" for n in means)


def _tasks(results: Results) -> list[_Task]:
    """Those with an NTK and a quadratic model at two dimensions or more."""
    each = (_Task(task, results.where(task=task)) for task in TITLES if task in results.values("task"))
    return [task for task in each if all(len(task.dims.get(learner, ())) > 1 for learner in ("ntk", "quadratic"))]


def claims(results: Results) -> list[Claim]:
    return [claim for task in _tasks(results) for claim in _of(task)]


def _of(task: _Task) -> list[Claim]:
    found: list[Claim] = []
    for learner in ("quadratic", "randomised"):
        if not task.known("ntk", learner):
            found += [one for one in [_unknown(task, learner)] if one not in found]  # the NTK's is one for both
        if learner in task.learners:
            found += _compared(task, learner)
    easier = _Task(task.task, task.results, EASIER)
    missed = [learner for learner in task.learners if not task.known(learner) and easier.known(learner, "ntk")]
    for learner in missed:
        found += [*_compared(easier, learner), *_slopes(easier, [learner])]
    return [*found, *_slopes(task, task.learners)]


def _compared(task: _Task, learner: str) -> list[Claim]:
    """Next to the NTK: at the largest dimension that both have, and how that changes with d."""
    dims, ratio = task.against_ntk(learner)
    if not len(dims):
        return []
    means = ", ".join(f"{one:.2f}" for one in np.exp(np.log(ratio).mean(axis=0)))
    wide = "" if learner == "quadratic" else f" {_asked_words(task.task, int(dims[-1]))}"
    said: dict[str, Any] = {"source": "Section 5.2", "inside": task.inside(learner), "strict": True}
    head = f"{task.title}: the {NAMES[learner]}"
    found = [
        Claim.at_most(
            ratio_interval(ratio[:, -1], np.ones(len(ratio))), 1.0, **said,
            statement=f"{head} needs fewer samples than the NTK at d = {dims[-1]:.0f}",
            measured=f"ratio of the n at which {_goal(task)}, 95 % interval, {task.where([learner, 'ntk'], dims[-1:])}",
            note=f"Ratios at d = {_list(dims)}: {means}.{wide}",
        )
    ]  # fmt: skip
    if len(dims) > 1:
        interval, upper = slope_interval(dims, ratio), upper_half(dims)
        within = "within" if interval.low <= -1 <= interval.high else "outside"
        end = slope_interval(dims[upper], ratio[:, upper])
        found.append(
            Claim.at_most(
                interval, 0.0, **said,
                statement=f"{head}'s n over the NTK's falls with d",
                measured=_slope(task, "the ratio of the n", [learner, "ntk"], dims),
                note=f"{'1/d' if is_xor(task.task) else 'p/d'} in the paper's bounds: −1 is {within} the interval. "
                f"Over d = {_list(dims[upper])} alone: {end.value:.3f} [{end.low:.3f}, {end.high:.3f}].{wide}",
            )
        )  # fmt: skip
    return found


def _list(dims: Any) -> str:
    return ", ".join(f"{d:.0f}" for d in dims)


def upper_half(dims: Float[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    """Those above the geometric middle of their range, and always the last two.

    >>> upper_half(np.array([10.0, 16.0, 25.0, 40.0, 60.0])), upper_half(np.array([8.0, 24.0]))
    (array([False, False,  True,  True,  True]), array([ True,  True]))
    """
    return (dims >= np.sqrt(dims[0] * dims[-1])) | (np.arange(len(dims)) >= len(dims) - 2)


def _slope(task: _Task, quantity: str, learners: list[str], dims: Any = None) -> str:
    return f"log-log slope in d of {quantity} at which {_goal(task)}, 95 % interval, {task.where(learners, dims)}"


def _goal(task: _Task) -> str:
    if is_xor(task.task):
        return f"{100 * task.times * WRONG:.0f} % of the signs are wrong"
    return f"{'half' if task.times == 1 else 'three quarters'} of the part of degree p is left"


def _slopes(task: _Task, learners: list[str]) -> list[Claim]:
    """How the n grows with d, for each learner, next to the paper's bound where it has one.

    Polynomials: with E f⋆² = 1 on the unit sphere α²‖β‖^{2p} grows like d^p, so n_L = Õ(d^p) and n_Q = Õ(d^{p−1}).
    """
    found = []
    degree = 2 if is_xor(task.task) else int(task.task)
    for learner in learners:
        dims = task.dims[learner]
        if not task.known(learner) or len(dims) < 2:
            continue
        interval = slope_interval(dims, task.needed[learner])
        words: dict[str, Any] = {
            "measured": _slope(task, "the n", [learner]),
            "note": f"n: {task.sizes(learner)}.",
            "source": "Section 5.2",
        }
        head = f"{task.title}: the {NAMES[learner]} needs"
        if learner in ("quadratic", "randomised"):
            power = degree - 1
            upper = upper_half(dims)
            end = slope_interval(dims[upper], task.needed[learner][:, upper] / np.log(dims[upper]))
            whole = slope_interval(dims, task.needed[learner] / np.log(dims))
            words["note"] += (
                " A bound for large d: it is judged where d is above the geometric middle of its range; over all d the "
                f"slope is {whole.value:.3f} [{whole.low:.3f}, {whole.high:.3f}]. Õ leaves the power of the logarithm "
                f"open; one is taken. Without it, over all d: {interval.value:.3f} [{interval.low:.3f}, "
                f"{interval.high:.3f}]."
            )
            words["measured"] = _slope(task, "the n, over log d,", [learner], dims[upper])
            if learner == "randomised":
                words["inside"] = task.inside(learner)
                words["note"] += f" {_asked_words(task.task, int(dims[-1]))}"
            found.append(
                Claim.no_slower(
                    end, power, **words,
                    statement=f"{head} n_Q = Õ(d{'' if power == 1 else f'^{power}'}) samples, with one logarithm of d",
                )
            )  # fmt: skip
        elif learner == "ntk" and is_xor(task.task):
            upper = upper_half(dims)
            end = slope_interval(dims[upper], task.needed[learner][:, upper])
            words["note"] += (
                " A lower bound for d large enough, with no constants: no verdict is drawn. Over d = "
                f"{_list(dims[upper])} alone: {end.value:.3f} [{end.low:.3f}, {end.high:.3f}]."
            )
            found.append(
                Claim.at_least(
                    interval, 2.0, inside=False, **words, statement=f"{head} n_L = Ω(d²) samples (Wei et al., 2019)"
                )
            )
        elif learner == "ntk":
            found.append(Claim.no_slower(interval, degree, **words, statement=f"{head} n_L = Õ(d^{degree}) samples"))
    return found


def _unknown(task: _Task, learner: str) -> Claim:
    """A learner that is left out; or that is above the level at every n of its grid, or at none, and so has no n.

    Or the NTK, where it is the one that has none.
    """
    noise = (
        "the noise of random signs, with a variance like m^(−1/2) at W⋆, asks for a wider network, more steps or more "
        "samples"
    )
    if learner not in task.learners:
        statement = f"{TITLES[task.task]}: the {NAMES[learner]} needs fewer samples than the NTK"
        why = f"It is left out here: {noise}."
        return Claim.not_run(reason="size", source="Section 5.2", statement=statement, profile="paper", why=why)
    who = "ntk" if task.known(learner) else learner
    table = task.needed[who]
    column = int(np.flatnonzero(~np.isfinite(table).all(axis=0))[0])
    cell, data = task.curve(who, task.dims[who][column])
    errors, limit = data["test"].values, level(task.task, cell.dim)
    size = "" if who == "ntk" else f", m = {cell.width}"
    head = f"{TITLES[task.task]}: the {NAMES[who]}{'' if who == 'ntk' else f' with {cell.width} neurons'}"
    words: dict[str, Any] = {"source": "Section 5.2", "inside": False}
    where = f"of {cell.seeds} seeds, next to the level, d = {cell.dim}{size}, {SIGMA}"
    if not np.isinf(table).any():
        return Claim.at_least(
            float(errors[:, 0].min()), limit, strict=True, **words,
            statement=f"{head} is above the level with {cell.samples[0]} samples",
            measured=f"test error, the least {where}",
            note="It is not for every seed: the grid of n starts too late to tell the n that is needed.",
        )  # fmt: skip
    reached = ", ".join(
        f"{count} of {len(table)} at d = {dim:.0f}"
        for dim, count in zip(task.dims[who], (~np.isinf(table)).sum(axis=0), strict=True)
    )
    return Claim.at_most(
        float(errors[:, -1].max()), limit, **words,
        statement=f"{head} comes down to the level with {cell.samples[-1]} samples",
        measured=f"test error, the worst {where}",
        note=f"Seeds that reach the level: {reached}. The training loss here is {_trained(task, data)}."
        + (f" Outside the hypothesis: {noise}. {_asked_words(task.task, cell.dim)}" if who == "randomised" else ""),
    )  # fmt: skip


def _asked_words(task: str, dim: int) -> str:
    return f"(6), its constants as one, asks for m ≥ {_asked(task, dim):.0e} at d = {dim}, even with ε = 1."


def _asked(task: str, dim: int) -> float:
    """The width that (6) asks for where W⋆ is that of Theorem 7 for this target."""
    radius, targets = dim**0.5, list(xor_target(dim))
    if task == "noisy xor":
        first, second = np.eye(dim)[:2]
        targets = [RidgePower(first, 2, 1.0), RidgePower(second, 2, -1.0)]
    if not is_xor(task):
        radius, targets = 1.0, [RidgePower(np.eye(dim)[0], int(task), moment(2 * int(task), dim) ** -0.5)]
    norm = sum(target.expected_norm4(radius) ** 0.25 for target in targets)
    return float(coupling_width(dim, norm=norm, epsilon=1.0, radius=radius))


def _trained(task: _Task, data: Any) -> str:
    """The last training loss, by which one sees whether samples or steps were too few."""
    return f"{data['train'].values[:, -1].mean():.3f} ({'logistic' if is_xor(task.task) else 'pseudo-Huber'} loss)"


def figures(results: Results) -> list[Figure]:
    return [figure for task in _tasks(results) for figure in (_growth(task), _curves(task))]


def _growth(task: _Task) -> Figure:
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
        points(plot, dims[shown], means, name=name, colour=COLOURS[learner],
               band=(seen.min(axis=0), seen.max(axis=0)))  # fmt: skip
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
        f"the {NAMES[learner]} at d = {_list(task.dims[learner][~known])}"
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


def _sizes(task: _Task) -> str:
    """Every network's width, and the seeds."""
    cells = [task.curve(learner, task.dims[learner][0])[0] for learner in task.learners if learner != "ntk"]
    widths = ", ".join(f"{cell.width} neurons ({NAMES[cell.learner]})" for cell in cells)
    return f"{cells[0].seeds} seeds, {widths}, {SIGMA}"


def _curves(task: _Task) -> Figure:
    plot, dim = new_plot(), min(dims[-1] for dims in task.dims.values())  # the last one that all have
    sizes: list[float] = []
    for learner in task.learners:
        cell, data = task.curve(learner, dim)
        errors = data["test"].values
        sizes += [float(n) for n in cell.samples]
        line(plot, np.array(cell.samples, float), errors.mean(axis=0), name=NAMES[learner], colour=COLOURS[learner],
             band=(errors.min(axis=0), errors.max(axis=0)))  # fmt: skip
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
