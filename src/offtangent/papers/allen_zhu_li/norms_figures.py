"""Figures 1 and 3: errors of SGD's networks against their norms, and the best of each width."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li._norms import Group, groups_of
from offtangent.papers.allen_zhu_li._parity import PAPER, SOLVED
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

SHOWN = 3.0  # errors above it are not drawn
LEAST = 1e-4  # nor training errors below it
COLOURS = ("blue", "orange", "green", "purple", "sky", "grey")


def figures(built: Results, descents: Results) -> list[Figure]:
    found = []
    groups = groups_of(descents)
    for group in groups:
        found += [_scatter(group, "test", built), _scatter(group, "train", built)]
    for dim, samples in dict.fromkeys((group.dim, group.samples) for group in groups):
        found.append(_widths([group for group in groups if (group.dim, group.samples) == (dim, samples)]))
    return found


def _scatter(group: Group, part: str, built: Results) -> Figure:
    plot, all_ = new_plot(), group.networks
    shown = all_[part] <= SHOWN
    for index, width in enumerate(sorted(set(all_["width"]))):
        here = shown & (all_["width"] == width)
        symbol = ("circle", "square")[index // len(COLOURS) % 2]
        points(
            plot,
            all_["norm"][here],
            np.maximum(all_[part][here], LEAST),
            name=f"SGD, m = {width:.0f}",
            colour=COLOURS[index % len(COLOURS)],
            symbol=symbol,
        )
    _hand_built(plot, built)
    name = {"test": "test error", "train": "training error"}[part]
    style(plot, x="‖W‖_F/√d", y=name, log_x=True, log_y=True)
    bound = 2 * math.sqrt(group.dim / group.samples)
    lost = int((~shown).sum()) + sum(data["test"].size for _, data in group.pairs) - len(shown)
    caption = (
        f"Each point a network: all widths, rates, decays, starts and seeds; {group.where}. Left out: {lost} with an "
        f"error above {SHOWN:g}, or lost. The Rademacher bound 2‖W‖_F/√N is {bound:.3g} times what the axis shows. "
        f"Errors below {LEAST:g} are drawn there. Line: the least error of a network on the six coordinates alone."
    )
    return Figure(f"{group.title}: {name} against the norm", caption, plot)


def _hand_built(plot: Any, built: Results) -> None:
    grid = np.linspace(0.3, 0.99, 100)
    line(plot, SOLVED * grid, (1 - grid) ** 2, name="built: 64 corners", colour="vermillion")
    for _, data in built:
        points(
            plot,
            data["norm"].values.ravel(),
            np.maximum(data["error"].values.ravel(), LEAST),
            name="built: trained at d = 6",
            colour="vermillion",
            symbol="cross",
        )
    points(
        plot,
        [norm for _, norm in PAPER],
        [error for error, _ in PAPER],
        name="built: Appendix A.1",
        colour="vermillion",
        symbol="diamond",
    )


def _widths(groups: list[Group]) -> Figure:
    plot = new_plot()
    ends: list[float] = []
    for group, (first, second) in zip(groups, (("blue", "sky"), ("green", "orange")), strict=False):
        all_, more = group.networks, ", more epochs" if group.longer else ""
        widths = np.array(sorted(set(all_["width"])))
        ends += widths.tolist()
        for by, name, colour, symbol in (
            ("test", "by the test error", first, "circle"),
            ("choose", "by samples of its own", second, "square-open"),
        ):
            picked = [np.flatnonzero(all_["width"] == width) for width in widths]
            values = np.array([all_["test"][here[all_[by][here].argmin()]] for here in picked])
            points(plot, widths, values, name=f"best {name}{more}", colour=colour, symbol=symbol)
    span = np.array([min(ends) / 1.2, max(ends) * 1.2])
    first_group = groups[0]
    line(
        plot,
        span,
        np.full(2, first_group.level),
        name=f"{first_group.level:g}, the paper's best",
        colour="grey",
        dash="dash",
    )
    line(plot, span, np.ones(2), name="F = 0", colour="grey", dash="dot")
    style(plot, x="width m", y="test error", log_x=True)
    epochs = "; ".join(f"m = {cell.width}: {cell.epochs}" for group in groups for cell, _ in group.pairs)
    caption = (
        "The best network of each width's grid over all starts and seeds. Epochs with the first rate, and as many with "
        f"a tenth of it: {epochs}."
    )
    return Figure(f"d = {first_group.dim}, N = {first_group.samples}: the best of each grid", caption, plot)
