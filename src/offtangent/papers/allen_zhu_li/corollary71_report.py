"""Where the ResNet stands on Theorem 2's data, next to α², α⁴ and the best kernel."""

from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import error_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.kernel_limits import corollary71_samples, theorem2_samples

COLOURS = ("blue", "orange", "green", "purple")


QUARTER = 0.25  # of α²: what Theorem 2 keeps kernels above


def claims(learners: Results, promised: Results) -> list[Claim]:
    found = [_promise(cell, data) for cell, data in (*promised, *learners)]
    for dim in sorted(learners.values("dim")):
        found += _separation(learners.where(dim=dim))
    return found


def _promise(cell: Any, data: Any) -> Claim:
    """Judged where there are as many samples as the corollary asks for."""
    asked = corollary71_samples(cell.dim, cell.alpha)
    return Claim.at_most(
        error_interval(data["resnet"].values / cell.alpha**4), 1.0, source="Corollary 7.1",
        inside=bool(cell.samples >= asked and data["inside"]),
        statement=f"d = {cell.dim}, α = {cell.alpha:g}, N = {cell.samples}: the ResNet's error, by Figure 2's "
        f"training in place of Algorithm 1 and with m = {cell.width} for an M that is not given, is Õ(α⁴), the "
        "constant taken as 1",
        measured=f"error/α⁴, all outputs, {_sizes(cell)}",
        note=f"The corollary asks for about d/α⁸ = {asked:.3g} samples. Nothing of αG(F) learnt is "
        f"{cell.degree / cell.alpha**2:.3g}. {_choice(cell, data)}",
    )  # fmt: skip


def _separation(results: Results) -> list[Claim]:
    """At the N, of one dimension, at which the best kernel's error is most times the ResNet's."""
    cell, data = max(results, key=lambda pair: float(best_kernel(pair[1])[1].mean() / pair[1]["resnet"].mean()))
    name, theirs = min(
        zip(data["kernels"].values, data["kernel"].values, strict=True), key=lambda one: error_interval(one[1]).low
    )
    listed = "; ".join(
        f"N = {one.samples}: {float(of['resnet'].mean()) / one.alpha**2:.3g} and "
        f"{best_kernel(of)[1].mean() / one.alpha**2:.3g}"
        for one, of in results
    )
    head = f"d = {cell.dim}: there is an N, such as {cell.samples}, at which"
    words: dict[str, Any] = {"source": "Abstract", "inside": bool(data["inside"])}
    silent = "Corollary 7.1 speaks of more samples and Theorem 2 of fewer: here it is measured, not proven."
    return [
        Claim.at_most(
            error_interval(data["resnet"].values / cell.alpha**2), QUARTER, strict=True, **words,
            statement=f"{head} the ResNet's error is below α²/4, where Theorem 2 keeps kernels",
            measured=f"error/α², all outputs, {_sizes(cell)}",
            note=f"{silent} {_choice(cell, data)} ResNet and best kernel: {listed}.",
        ),
        Claim.at_least(
            error_interval(theirs / cell.alpha**2), QUARTER, strict=True, **words,
            statement=f"{head} no kernel's error is below α²/4",
            measured=f"error/α² of that of six kernels which reaches lowest, {name}, 95 % interval, {cell.seeds} seeds",
            note=f"Nothing of αG(F) learnt is {cell.degree}. {silent}",
        ),
    ]  # fmt: skip


def _sizes(cell: Any) -> str:
    return f"95 % interval, m = {cell.width}, {cell.epochs} + {cell.epochs} epochs, {cell.seeds} seeds"


def _choice(cell: Any, data: Any) -> str:
    """Which rate and decay were chosen, whether inside the grid, and what the paper's choice by test error gives."""
    edge = "inside" if bool(data["inside"]) else "on the edge of"
    return (
        f"Rate {float(data['rate']):g}, decay {float(data['decay']):g}, {edge} its grid; chosen by the test error, as "
        f"the paper does: {float(data['best'].mean()) / cell.alpha**4:.3g} α⁴."
    )


def best_kernel(data: Any) -> tuple[str, np.ndarray]:
    """The kernel with the least mean error, and its errors."""
    at = int(data["kernel"].mean("seed").values.argmin())
    return str(data["kernels"].values[at]), np.asarray(data["kernel"].values[at])


def figures(learners: Results, promised: Results) -> list[Figure]:
    dims = sorted(learners.values("dim"))
    if all(len(learners.where(dim=dim).pairs) < 2 for dim in dims):
        return []
    plot, every, heights = new_plot(), [], []
    cell = learners.pairs[0][0]
    for dim, colour in zip(dims, COLOURS, strict=False):
        here = sorted(learners.where(dim=dim).pairs, key=lambda pair: pair[0].samples)
        sizes = np.array([one.samples for one, _ in here], float)
        ours = [data["resnet"].values / cell.alpha**2 for _, data in here]
        theirs = [best_kernel(data)[1] / cell.alpha**2 for _, data in here]
        for errors, name, dash in ((ours, "ResNet", "solid"), (theirs, "best kernel", "dash")):
            line(plot, sizes, [one.mean() for one in errors], name=f"{name}, d = {dim}", colour=colour, dash=dash,
                 symbol="circle", band=([one.min() for one in errors], [one.max() for one in errors]))  # fmt: skip
        for one, data in promised.where(dim=dim, alpha=cell.alpha):
            errors = data["resnet"].values / cell.alpha**2
            points(plot, [one.samples], [errors.mean()], name=f"ResNet from d/α⁸, d = {dim}", colour=colour,
                   symbol="star", band=([errors.min()], [errors.max()]))  # fmt: skip
            heights += errors.tolist()
        every += [*sizes.tolist(), corollary71_samples(dim, cell.alpha)]
        heights += np.concatenate([*ours, *theirs]).tolist()
    ends, span = (np.array([min(one), max(one)]) for one in (every, heights))
    for dim, colour in zip(dims, COLOURS, strict=False):
        asked = np.full(2, corollary71_samples(dim, cell.alpha))
        line(plot, asked, span, name=f"d/α⁸, d = {dim}", colour=colour, dash="dot")
    for level, name, dash in (
        (float(cell.degree), "nothing of αG(F) learnt", "dashdot"),
        (QUARTER, "α²/4, Theorem 2", "solid"),
        (cell.alpha**2, "α⁴", "dot"),
    ):
        line(plot, ends, np.full(2, level), name=name, colour="grey", dash=dash)
    style(plot, x="samples N", y="error/α², sum over outputs", log_x=True, log_y=True)
    caption = (
        f"k = {cell.degree}, α = {cell.alpha:g}, m = {cell.width}, {cell.epochs} + {cell.epochs} epochs; means over "
        f"{cell.seeds} seeds, bands: all. Vertical: the samples that the corollary asks for; Theorem 2 allows "
        f"{theorem2_samples(max(dims), cell.degree):.0f} at the most."
    )
    return [Figure("The ResNet and the best of six kernels on F + αG(F)", caption, plot)]
