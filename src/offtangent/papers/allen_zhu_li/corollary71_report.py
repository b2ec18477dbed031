"""Where the ResNet stands on Theorem 2's data, next to α², α⁴ and the best kernel."""

from typing import Any

import numpy as np

from offtangent.lab import Claim, Results, mean_interval, ratio_interval
from offtangent.report import Figure, line, new_plot, style
from offtangent.theory import corollary71_samples

COLOURS = ("blue", "orange", "green", "purple")


def claims(results: Results) -> list[Claim]:
    found = []
    for cell, data in results:
        where = f"d = {cell.dim}, N = {cell.samples}"
        sizes = f"m = {cell.width}, {cell.epochs} + {cell.epochs} epochs, {cell.seeds} seeds"
        asked = corollary71_samples(cell.dim, cell.alpha)
        name, theirs = best_kernel(data)
        ours = mean_interval(data["resnet"].values / cell.alpha**2)
        note = (
            f"The corollary asks for about d/α⁸ = {asked:.1e} samples. Rate {float(data['rate']):g}, decay "
            f"{float(data['decay']):g}, {'inside' if bool(data['inside']) else 'on the edge of'} its grid; chosen by "
            f"the test error, as the paper does: {float(data['best'].mean()) / cell.alpha**4:.3g}."
        )
        found += [
            Claim.at_most(
                mean_interval(data["resnet"].values / cell.alpha**4), 1.0, source="Corollary 7.1", note=note,
                inside=bool(cell.samples >= asked),
                statement=f"{where}: the ResNet's error is Õ(α⁴), the constant taken as 1",
                measured=f"error/α⁴, all outputs, 95 % interval, {sizes}",
            ),
            Claim.at_most(
                ratio_interval(data["resnet"].values, theirs), 1.0, strict=True,
                source="Corollary 7.1 and Theorem 2", inside=bool(ours.high < cell.degree or cell.samples >= asked),
                statement=f"{where}: the ResNet's error is below that of every kernel",
                measured=f"its error over that of the best of six kernels, {name}, 95 % interval, {sizes}",
                note=f"Error/α²: ResNet {ours.value:.3g}, {name} {theirs.mean() / cell.alpha**2:.3g}; nothing of αG(F) "
                f"learnt is {cell.degree}. Judged where the ResNet is below that: it has learnt some of αG(F).",
            ),
        ]  # fmt: skip
    return found


def best_kernel(data: Any) -> tuple[str, np.ndarray]:
    """The kernel with the least mean error, and its errors."""
    at = int(data["kernel"].mean("seed").values.argmin())
    return str(data["kernels"].values[at]), np.asarray(data["kernel"].values[at])


def figures(results: Results) -> list[Figure]:
    dims = sorted(results.values("dim"))
    if all(len(results.where(dim=dim).pairs) < 2 for dim in dims):
        return []
    plot, every = new_plot(), []
    for dim, colour in zip(dims, COLOURS, strict=False):
        here = sorted(results.where(dim=dim).pairs, key=lambda pair: pair[0].samples)
        sizes = np.array([cell.samples for cell, _ in here], float)
        every += sizes.tolist()
        alpha = here[0][0].alpha
        ours = np.stack([data["resnet"].values for _, data in here]) / alpha**2
        theirs = np.stack([best_kernel(data)[1] for _, data in here]) / alpha**2
        for errors, name, dash in ((ours, "ResNet", "solid"), (theirs, "best kernel", "dash")):
            line(plot, sizes, errors.mean(axis=1), name=f"{name}, d = {dim}", colour=colour, dash=dash,
                 band=(errors.min(axis=1), errors.max(axis=1)))  # fmt: skip
    cell = results.pairs[0][0]
    ends = np.array([min(every), max(every)])
    line(plot, ends, np.full(2, float(cell.degree)), name="nothing of αG(F) learnt", colour="grey", dash="dash")
    line(plot, ends, np.full(2, cell.alpha**2), name="α⁴", colour="grey", dash="dot")
    style(plot, x="samples N", y="error/α², sum over outputs", log_x=True, log_y=True)
    caption = (
        f"k = {cell.degree}, α = {cell.alpha:g}, m = {cell.width}, {cell.epochs} + {cell.epochs} epochs; means over "
        f"{cell.seeds} seeds, bands: all. The corollary asks for d/α⁸ samples."
    )
    return [Figure("The ResNet and the best of six kernels on F + αG(F)", caption, plot)]
