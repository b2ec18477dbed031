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


def claims(results: Results, positions: Results) -> list[Claim]:
    """Of networks and of the samples that they learn."""
    found = [claim for cell, data in results for claim in _of(cell, data, results, positions)]
    return found + [claim for cell, data in positions for claim in _general_position(cell, data, positions)]


def _of(cell: Any, data: xr.Dataset, results: Results, positions: Results) -> list[Claim]:
    loss, start = float(data["train"]), float(data["start"])
    said: dict[str, Any] = {"source": SOURCES[cell.setting, cell.labels]}
    measured = f"f over all training samples after the last step, {_where(cell)}"
    note = f"{_position(cell, positions)}The worst sample is off by {float(data['worst']):.2g}."
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
        found += _for_longer(cell, data, results, head)
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


def _for_longer(cell: Any, data: xr.Dataset, results: Results, head: str) -> list[Claim]:
    """The same from fewer epochs."""
    others = results.where(setting=cell.setting, labels=cell.labels, seed=cell.seed).pairs
    fewer = [(float(found["train"]), other.epochs) for other, found in others if other.epochs < cell.epochs]
    return [
        Claim.at_most(
            float(data["train"]) / loss, 1.0, strict=True, source=SOURCES[cell.setting, cell.labels],
            statement=f"{head}: the loss goes on falling with longer training",
            measured=f"f after {cell.epochs} epochs over f after {epochs}, {_where(cell)}",
            note=f"f = {float(data['train']):.2g} after {cell.epochs} epochs, {loss:.2g} after {epochs}.",
        )
        for loss, epochs in fewer
    ]  # fmt: skip


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


def _position(cell: Any, positions: Results) -> str:
    """Whether the samples are in general position, by σ_min and by count."""
    text = ""
    for _, data in positions.where(setting=cell.setting, seed=cell.seed):
        text = f"σ_min of the samples' tensor squares is {_range(data)}. "
    if cell.setting == "features":
        fit = memorisation(cell.samples, cell.directions, width=cell.width).most
        text += f"Two layers on {cell.directions} directions would fit {fit} samples at most. "
    return text


def _range(data: xr.Dataset) -> str:
    lower, upper = float(data["lower"]), float(data["upper"])
    if lower > 0:
        return f"between {lower:.4g} and {upper:.4g}"
    if bool(data["resolved"]):
        return f"at most {upper:.4g}"
    return f"at most {upper:.2g}, below the floating-point floor {float(data['floor']):.2g}"


def _general_position(cell: Any, data: xr.Dataset, positions: Results) -> list[Claim]:
    """The hypothesis of Theorem 4, and of Theorem 5 on features; and what noise does to it."""
    if cell.setting == "plain":
        return []
    lower, upper = float(data["lower"]), float(data["upper"])
    letter, source = ("z", "Theorem 5") if cell.setting == "features" else ("x", "Theorem 4")
    statement = f"{NAMES[cell.setting]}: $\\sigma_{{\\min}}[{letter}_j \\otimes {letter}_j] > 0$"
    where = f"{cell.data}, all n = {cell.samples} samples, seed {cell.seed}"
    note = f"σ_min is {_range(data)}, next to a norm of {float(data['largest']):.3g}."
    bare = [found for _, found in positions.where(setting="plain", seed=cell.seed)]
    if cell.setting == "noisy" and bare:
        note += f" Without noise it is {_range(bare[0])}."
    if upper > 0 and not lower > 0:
        why = f"No lower bound was had: {note}"
        return [Claim.not_testable(source=source, statement=statement, why=why, profile="paper, on a GPU")]
    found = [
        Claim.at_least(
            lower, 0.0, strict=True, source=source, statement=statement, note=note,
            measured=f"proven lower bound of σ_min, {where}",
        )
    ]  # fmt: skip
    if cell.setting == "noisy" and bare:
        found.append(
            Claim.at_least(
                lower / float(bare[0]["upper"]), 1.0, strict=True, source="Appendix A.2",
                statement="noise makes the smallest singular value better",
                measured=f"lower bound of σ_min with noise over the upper one without, {where}",
            )
        )  # fmt: skip
    return found


def figures(results: Results) -> list[Figure]:
    drawn = []
    for labels in ("true", "random"):
        chosen = results.where(labels=labels)
        if not len(chosen):
            continue
        plot = new_plot()
        fewest = min(cell.epochs for cell, _ in chosen)
        for cell, data in chosen:
            steps, losses = np.asarray(data["step"], float), np.asarray(data["loss"], float)
            longer = cell.epochs > fewest
            name = f"{NAMES[cell.setting]}, {cell.epochs} epochs" if longer else NAMES[cell.setting]
            line(plot, steps, losses, name=name, colour=COLOURS[cell.setting], dash="dash" if longer else None)
        style(plot, x="step", y="training loss of a batch", log_y=True)
        cell = chosen.pairs[0][0]
        caption = (
            f"{cell.data}, n = {cell.samples}, r = {cell.width}, {fewest} epochs of Adam; every fifth step, means "
            f"of twenty; the rate falls by 0.3 six times, every {fewest // 6} epochs."
        )
        drawn.append(Figure(f"Learning by heart, {labels} labels", caption, plot))
    return drawn
