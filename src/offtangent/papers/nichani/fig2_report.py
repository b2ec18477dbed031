"""What the searches for the smallest n say: how it grows with the dimension, next to the paper's 6d² and d³.

"Roughly scales with d²" has two sides. Where the interval of the slope does not hold 2, the claim fails, and
what is left of it is a claim of its own: that n grows no faster than d².
"""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.claims import Verdict
from offtangent.lab.statistics import Interval, slope_interval
from offtangent.papers.bai_lee.samples_report import needed
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

SHADES = {"code": "blue", "normalised": "vermillion"}
COLOURS = ("blue", "sky", "green", "orange", "vermillion", "purple")
PAPER = 6  # n/d² of the line in the paper's figure
NAMES = {"code": "xᵀAx/√675, as in the code", "normalised": "quadratic of variance 1"}
SOURCE = "Section 5, Figure 2"


class _Target:
    """The searches of one target over dimensions, and the n they found: rows are seeds, columns dimensions."""

    def __init__(self, results: Results, level: float):
        self.results, self.level = results, level
        self.cell = results.pairs[0][0]
        self.name = self.cell.target
        self.dims = np.array([float(cell.dim) for cell, _ in results])
        self.ratios = np.stack([self._ratio(cell, data) for cell, data in results], axis=1)  # n/d²
        self.found = self.ratios * self.dims**2

    def _ratio(self, cell: Any, data: Any) -> Float[np.ndarray, "s"]:
        return needed(np.array(cell.multiples, float), data["test"].values, self.level)

    @property
    def known(self) -> Any:
        """Dimensions at which every seed's n lies between two sizes that were tried."""
        return np.isfinite(self.found).all(axis=0)

    def where(self) -> str:
        cell = self.cell
        return (
            f"d = {', '.join(f'{d:.0f}' for d in self.dims)}, {cell.seeds} seeds, width {cell.width}, "
            f"{cell.steps} steps of rate {cell.rate:g}"
        )

    def means(self) -> Float[np.ndarray, "k"]:
        """n/d², geometric means over seeds."""
        return np.exp(np.log(self.ratios).mean(axis=0))

    def unreached(self) -> str:
        told = []
        for (cell, data), ratios in zip(self.results, self.ratios.T, strict=True):
            if np.isnan(ratios).any():
                told.append(f"d = {cell.dim}: below it from n = {cell.multiples[0]}d² on")
            elif np.isinf(ratios).any():
                last = int(np.flatnonzero(np.isfinite(data["test"].values).all(axis=0))[-1])
                loss, fit = (data[name].values[:, last].mean() for name in ("test", "train"))
                told.append(
                    f"d = {cell.dim}: a test loss of {loss:.3f} at n = {cell.multiples[last]}d², trained to {fit:.3f}"
                )
        return f"Not every seed crosses the level within the sizes tried: {'; '.join(told)}."

    def elsewhere(self) -> str:
        """The slope over the other dimensions, which says nothing of the one where more samples are needed."""
        if self.known.sum() < 3:
            return ""
        slope = slope_interval(self.dims[self.known], self.found[:, self.known])
        dims = ", ".join(f"{d:.0f}" for d in self.dims[self.known])
        return f" Over d = {dims} alone the slope is {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]."


def _targets(results: Results, level: float) -> list[_Target]:
    chosen = (results.where(target=name) for name in results.values("target"))
    return [_Target(one, level) for one in chosen if len(one) >= 3]


def claims(results: Results, level: float) -> list[Claim]:
    return [claim for target in _targets(results, level) for claim in _of(target)]


def _of(target: _Target) -> list[Claim]:
    """Whether n grows more slowly than d³, and whether it roughly scales with d²: two-sided, and from above."""
    head = f"Dense quadratic plus sparse cubic, {NAMES[target.name]}: the smallest n with a test loss below 0.1"
    fewer = f"{head} grows more slowly than d³, the number that a kernel needs"
    roughly = f"{head} roughly scales with d²: the interval of its exponent holds 2"
    above = f"{head} grows no faster than d²"
    if not target.known.all():
        why = target.unreached() + target.elsewhere()
        return [Claim(SOURCE, text, "", Verdict.UNTESTABLE, note=why) for text in (fewer, roughly, above)]
    slope = slope_interval(target.dims, target.found)
    ratios = ", ".join(f"{one:.1f}" for one in target.means())
    note = f"n/d²: {ratios}; in the paper's figure about {PAPER} throughout."
    if target.name == "code":
        sizes = ", ".join(f"{float(data['size']):.3f}" for _, data in target.results)
        note += f" The quadratic's variance is {sizes}: where it is below 0.1, it need not be learnt."
    words: dict[str, Any] = {
        "source": SOURCE,
        "measured": f"log-log slope in d of n, between two sizes tried by interpolation in log n, 95 % interval, "
        f"{target.where()}",
    }
    found = [
        Claim.at_most(slope, 3.0, strict=True, statement=fewer, **words),
        Claim.includes(slope, 2.0, statement=roughly, note=f"{_told(slope)} {note}", **words),
        Claim.no_slower(slope, 2.0, statement=above, note=note, **words),
    ]
    if slope.low <= 2 and slope.high >= 3:
        wide = "The interval is too wide to tell d² from d³."
        return [replace(one, verdict=Verdict.UNTESTABLE, note=f"{wide} {note}") for one in found]
    if slope.low <= 1 and slope.high >= 2:
        wide = "The interval is too wide to tell d from d²."
        found[1] = replace(found[1], verdict=Verdict.UNTESTABLE, note=f"{wide} {note}")
    return found


def _told(slope: Interval) -> str:
    """What was found instead of 2, in words."""
    if slope.low <= 2 <= slope.high:
        return f"Found: d^{slope.value:.2f}."
    than = "more slowly" if slope.high < 2 else "faster"
    return f"Found: n grows {than}, like d^{slope.value:.2f}, [{slope.low:.2f}, {slope.high:.2f}]."


def figures(results: Results, level: float) -> list[Figure]:
    targets = _targets(results, level)
    if not targets:
        return []
    return [_growth(targets), *(_curves(target) for target in targets)]


def _growth(targets: list[_Target]) -> Figure:
    """The paper's own plot."""
    plot = new_plot()
    for target in targets:
        seen = target.found[:, target.known]
        if not seen.size:
            continue
        name = NAMES[target.name]
        if target.known.sum() >= 3:
            slope = slope_interval(target.dims[target.known], seen)
            name += f", slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
        points(plot, target.dims[target.known], np.exp(np.log(seen).mean(axis=0)), name=name,
               colour=SHADES[target.name], band=(seen.min(axis=0), seen.max(axis=0)))  # fmt: skip
    dims = targets[0].dims
    line(plot, dims, PAPER * dims**2, name=f"{PAPER}d²", colour="grey", dash="dot")
    line(plot, dims, dims**3, name="d³", colour="grey", dash="dash")
    style(plot, x="dimension d", y="smallest n with a test loss below 0.1", log_x=True, log_y=True)
    caption = (
        f"Geometric means over seeds (bars: all of them); {targets[0].where()}; slopes with 95 % intervals. Grey: the "
        "two lines of the paper's figure."
    )
    missing = [f"{NAMES[one.name]}: {one.unreached()}" for one in targets if not one.known.all()]
    return Figure("Samples needed for a dense quadratic plus a sparse cubic", " ".join([caption, *missing]), plot)


def _curves(target: _Target) -> Figure:
    plot = new_plot()
    most = max(cell.multiples[-1] for cell, _ in target.results)
    for (cell, data), colour in zip(target.results, COLOURS * 2, strict=False):
        losses = data["test"].values
        seen = np.isfinite(losses).all(axis=0)
        line(plot, np.array(cell.multiples, float)[seen], losses[:, seen].mean(axis=0), name=f"d = {cell.dim}",
             colour=colour, band=(losses[:, seen].min(axis=0), losses[:, seen].max(axis=0)))  # fmt: skip
    ends = np.array([float(target.cell.multiples[0]), float(most)])
    line(plot, ends, np.full(2, target.level), name="the level, 0.1", colour="grey", dash="dot")
    style(plot, x="training samples, n/d²", y="test loss after the last step", log_x=True, log_y=True)
    cell = target.cell
    caption = (
        f"Mean squared error on {cell.tests} test samples, means over {cell.seeds} seeds (bands: all of them). A line "
        "ends once every seed has come below the level. Were n a multiple of d², all would cross it at one place."
    )
    return Figure(f"Test loss against n/d²: {NAMES[target.name]}", caption, plot)
