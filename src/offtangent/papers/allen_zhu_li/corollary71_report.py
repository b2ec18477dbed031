"""Where the ResNet stands on Theorem 2's data, next to α², α⁴ and the best kernel."""

from functools import lru_cache
from typing import Any

import numpy as np

from offtangent.data.hierarchy import SmoothRidges, polarised_hierarchy
from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import error_interval, ratio_interval, slope_interval
from offtangent.papers.allen_zhu_li import _methods
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.concept import concept_complexity
from offtangent.theory.allen_zhu_li.kernel_limits import corollary71_samples, theorem2_samples

COLOURS = ("blue", "orange", "green", "purple")
LEAST = 3  # α, for a slope

QUARTER = 0.25  # of α²: what Theorem 2 keeps kernels above
FOURTH = 4  # of α: the power that the corollary promises
EQUAL = 1e-9


def claims(learners: Results, promised: Results, stated: Results) -> list[Claim]:
    found = _algorithm1(stated, bool(len(learners) or len(promised)))
    found += [_promise(cell, data) for cell, data in (*promised, *learners)]
    for dim in sorted(learners.values("dim")):
        found += _separation(learners.where(dim=dim))
    return found


def _asked(cell: Any, algorithm: str, largest: float) -> tuple[Hypothesis, ...]:
    """What the corollary asks for: α up to Θ(1), which is Theorem 1's range, d/α⁸ samples, Algorithm 1, a width."""
    source, samples = "Corollary 7.1", corollary71_samples(cell.dim, cell.alpha)
    return (
        Hypothesis("α", cell.alpha, "≤", largest, "Theorem 1: 1/(k p_G 𝔠_s(G)), C* = 1", given=False),
        Hypothesis("training", algorithm, "=", "Algorithm 1", source),
        Hypothesis("samples N", cell.samples, "≥", samples * (1 - EQUAL), f"{source}: d/α⁸", given=False),
        Hypothesis("width m", cell.width, "≥", cell.dim / cell.alpha, f"{source}: M = poly(d, 1/α)", given=False),
    )


@lru_cache
def _largest(degree: int) -> float:
    """1/(k p_G 𝔠_s(G)) of the corollary's target, by its ridges, with C* = 1."""
    found = polarised_hierarchy(degree, tuple(range(degree)), alpha=0.1).composite
    assert isinstance(found, SmoothRidges)
    size = concept_complexity(found)
    return 1 / (size.outputs * size.terms * size.smooth)


def _algorithm1(results: Results, others: bool) -> list[Claim]:
    """How the error of Algorithm 1, as it is stated, falls with α, and what is left where V is held."""
    slope: dict[str, Any] = {
        "source": "Corollary 7.1",
        "statement": "Algorithm 1 on N = d/α⁸ samples has an error of Õ(α⁴): it falls no slower than α⁴",
    }
    needed: dict[str, Any] = {
        "source": "Section 2.1, Algorithm 1",
        "statement": "the second hidden layer is what learns αG(F): with η_v = 0 Algorithm 1 errs by more at the "
        "smallest α",
    }
    alphas = results.values("alpha")
    if len(alphas) < LEAST:
        if not others and not alphas:
            return []
        why = f"Algorithm 1 as it is stated, at {LEAST} α, is not among these cells."
        return [Claim.not_run(reason="size", why=why, profile="paper", **words) for words in (slope, needed)]
    cell, data = min(results, key=lambda pair: float(pair[0].alpha))
    where = f"d = {cell.dim}, k = {cell.degree}, m = {cell.width}, {cell.seeds} seeds"
    sizes = np.array([one.alpha for one, _ in results])
    both, first = results.table("both"), results.table("first")
    listed = "; ".join(
        f"α = {one.alpha:g}, N = {one.samples}: {float(of['both'].mean()) / one.alpha**2:.3g} and "
        f"{float(of['first'].mean()) / one.alpha**2:.3g}"
        for one, of in results
    )
    note = f"Error/α² with both layers and with η_v = 0, where not to learn G costs 1: {listed}."
    power = slope_interval(sizes, first, level=0.99)
    return [
        Claim.at_least(
            slope_interval(sizes, both, level=0.99),
            FOURTH,
            **slope,
            hypotheses=_asked(cell, "Algorithm 1", 1 / float(data["composite"])),
            measured=f"log-log slope in α, 99 % interval, α from {max(alphas):g} to {cell.alpha:g}, {where}",
            note=f"{note} With η_v = 0 the power is {power.value:.3g}. N grows like α⁻⁸ at the same time, as the "
            "corollary has it. η_w = 0.05, a constant of ours.",
        ),
        Claim.at_least(
            ratio_interval(data["first"].values, data["both"].values),
            1.0,
            strict=True,
            **needed,
            measured=f"geometric mean of the error with η_v = 0 over that with both rates, 95 % interval, "
            f"α = {cell.alpha:g}, N = {cell.samples}, {where}",
            note=note,
        ),
    ]


def _promise(cell: Any, data: Any) -> Claim:
    """Figure 2's ResNet, next to what the corollary promises of another algorithm at a far smaller α."""
    return Claim.at_most(
        error_interval(data["resnet"].values / cell.alpha**4),
        1.0,
        source="Corollary 7.1",
        hypotheses=(*_asked(cell, "Figure 2's", _largest(cell.degree)), _methods.settled(bool(data["inside"]))),
        statement=f"d = {cell.dim}, α = {cell.alpha:g}, N = {cell.samples}: the error is Õ(α⁴), its constant "
        "taken as 1",
        measured=f"error/α⁴, all outputs, {_sizes(cell)}",
        note=f"Nothing of αG(F) learnt is {cell.degree / cell.alpha**2:.3g}. {_choice(cell, data)}",
    )


def _separation(results: Results) -> list[Claim]:
    """At the largest N of one dimension."""
    cell, data = max(results, key=lambda pair: int(pair[0].samples))
    name, theirs = min(
        zip(data["kernels"].values, data["kernel"].values, strict=True), key=lambda one: error_interval(one[1]).low
    )
    listed = "; ".join(
        f"N = {one.samples}: {float(of['resnet'].mean()) / one.alpha**2:.3g} and "
        f"{best_kernel(of)[1].mean() / one.alpha**2:.3g}"
        for one, of in results
    )
    head = f"d = {cell.dim}: there is an N at which"
    settled = (_methods.settled(bool(data["inside"])),)
    silent = (
        "Corollary 7.1 speaks of more samples and Theorem 2 of fewer: here it is measured, not proven. Judged at the "
        "largest N of the profile; before, it was the N of the widest ratio, the same in the record."
    )
    return [
        Claim.at_most(
            error_interval(data["resnet"].values / cell.alpha**2),
            QUARTER,
            strict=True,
            source="Abstract",
            hypotheses=settled,
            statement=f"{head} the ResNet's error is below α²/4, where Theorem 2 keeps kernels: N = {cell.samples}",
            measured=f"error/α², all outputs, {_sizes(cell)}",
            note=f"{silent} {_choice(cell, data)} ResNet and best kernel: {listed}.",
        ),
        Claim.at_least(
            error_interval(theirs / cell.alpha**2),
            QUARTER,
            strict=True,
            source="Abstract",
            statement=f"{head} none of six kernels has an error below α²/4: N = {cell.samples}",
            measured=f"error/α² of that of six kernels which reaches lowest, {name}, 95 % interval, {cell.seeds} seeds",
            note=f"Nothing of αG(F) learnt is {cell.degree}. {silent}",
        ),
    ]


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
