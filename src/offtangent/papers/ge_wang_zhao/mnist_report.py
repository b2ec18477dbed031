"""What the networks that learn images by heart say: claims and the paper's curves."""

from typing import Any

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Results
from offtangent.report import Figure, line, new_plot, style
from offtangent.theory import memorisation

SOURCES = {
    ("plain", "true"): "Figure 6",
    ("plain", "random"): "Appendix A.2",
    ("noisy", "true"): "Figures 3a, 7",
    ("noisy", "random"): "Figures 4a, 9",
    ("features", "true"): "Figures 3b, 8",
    ("features", "random"): "Figures 4b, 10",
}
NAMES = {
    "plain": "two layers, no noise",
    "noisy": "two layers, with noise",
    "features": "three layers, with noise",
}
COLOURS = {"plain": "vermillion", "noisy": "blue", "features": "green"}
FITTED = 1e-5  # the paper's "very small value (< 1e-5)"
LOW = 0.01  # of f(0): "a very low level", to which the paper gives no number


def _where(cell: Any) -> str:
    inputs = f"{cell.features} features of {cell.directions} directions, " if cell.setting == "features" else ""
    return f"{cell.data}, n = {cell.samples}, {inputs}r = {cell.width}, {cell.epochs} epochs, seed {cell.seed}"


def claims(results: Results) -> list[Claim]:
    return [claim for cell, found in results for claim in _of(cell, found, results)]


def _of(cell: Any, data: xr.Dataset, results: Results) -> list[Claim]:
    loss, start = float(data["train"]), float(data["start"])
    said: dict[str, Any] = {"source": SOURCES[cell.setting, cell.labels]}
    measured = f"f over all training samples after the last step, {_where(cell)}"
    note = f"{_position(cell, data)} The worst sample is off by {float(data['worst']):.2g}."
    head = f"{NAMES[cell.setting]}, {cell.labels} labels"
    if cell.setting == "noisy":
        found = [
            Claim.at_most(
                loss, FITTED, statement=f"{head}: the loss falls below 10⁻⁵", measured=measured, note=note, **said
            )
        ]
    elif cell.setting == "features":
        found = [
            Claim.at_most(
                loss / start, LOW, measured=f"f/f(0), {measured}", note=f"f = {loss:.2g}. {note}", **said,
                statement=f"{head}: the training error comes down to a very low level, here 1 % of f(0)",
            )
        ]  # fmt: skip
    else:
        found = _without_noise(cell, data, results, head, measured, note)
    if (cell.setting, cell.labels) == ("plain", "true"):
        found.append(
            Claim.at_most(
                float(data["test"]), float(data["guess"]), strict=True, source="Appendix A.2",
                statement="without noise the test error is far below that of a guess (1.21 in the paper)",
                measured=f"mean squared error on test images next to the variance of their labels, {_where(cell)}",
            )
        )  # fmt: skip
    return found


def _without_noise(cell: Any, data: xr.Dataset, results: Results, head: str, measured: str, note: str) -> list[Claim]:
    """The loss stays up; next to the same with noise."""
    other = results.where(setting="noisy", labels=cell.labels, seed=cell.seed).pairs
    if not other:
        return []
    beside = float(other[0][1]["train"])
    return [
        Claim.at_least(
            float(data["train"]) / beside, 10.0, source=SOURCES[cell.setting, cell.labels],
            statement=f"{head}: the loss stays far above that with noise, here ten times as high",
            measured=f"ratio of the two f, {measured}",
            note=f"f = {float(data['train']):.2g}, with noise {beside:.2g} ('~ 0.1' and '< 1e-5' in the paper). {note}",
        )
    ]  # fmt: skip


def _position(cell: Any, data: xr.Dataset) -> str:
    """Whether the samples are in general position, by count and by σ_min."""
    count = min(cell.samples, 2000)
    small = float(data["singular"])
    words = f"{small:.1e}" if bool(data["resolved"]) else f"below the floating-point floor {small:.0e}"
    text = f"σ_min of the first {count} samples' tensor squares: {words}."
    if cell.setting == "features":
        fit = memorisation(cell.samples, cell.directions, width=cell.width).most
        text += f" Two layers on {cell.directions} directions would fit {fit} samples at most."
    return text


def figures(results: Results) -> list[Figure]:
    drawn = []
    for labels in ("true", "random"):
        chosen = results.where(labels=labels)
        if not len(chosen):
            continue
        plot = new_plot()
        for cell, data in chosen:
            steps, losses = np.asarray(data["step"], float), np.asarray(data["loss"], float)
            line(plot, steps, losses, name=NAMES[cell.setting], colour=COLOURS[cell.setting])
        style(plot, x="step", y="training loss of a batch", log_y=True)
        cell = chosen.pairs[0][0]
        caption = (
            f"{cell.data}, n = {cell.samples}, r = {cell.width}, {cell.epochs} epochs of Adam; every fifth step, means "
            f"of twenty; the rate falls by 0.3 every {cell.epochs // 6} epochs."
        )
        drawn.append(Figure(f"Learning by heart, {labels} labels", caption, plot))
    return drawn
