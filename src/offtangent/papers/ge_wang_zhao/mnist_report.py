"""What the networks that learn images by heart say: claims and the paper's curves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.theory.ge_wang_zhao.capacity import admissible_features, memorisation

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
SMALL, TESTED = 0.1, 1.21  # the paper's loss without noise, "~ 0.1", and its test error


@dataclass(frozen=True)
class Runs:
    """One setting, one kind of labels, so many epochs, for all seeds."""

    pairs: tuple[tuple[Any, xr.Dataset], ...]

    @property
    def cell(self) -> Any:
        return self.pairs[0][0]

    @property
    def seeds(self) -> list[int]:
        return [cell.seed for cell, _ in self.pairs]

    def of(self, name: str) -> Float[np.ndarray, " s"]:
        return np.array([float(data[name]) for _, data in self.pairs])

    @property
    def where(self) -> str:
        cell, seeds = self.cell, ", ".join(map(str, self.seeds))
        inputs = f"{cell.features} features of {cell.directions} directions, " if cell.setting == "features" else ""
        told = f"seed{'s' * (len(self.seeds) > 1)} {seeds}"
        return f"{cell.data}, n = {cell.samples}, {inputs}r = {cell.width}, {cell.epochs} epochs, {told}"

    @property
    def head(self) -> str:
        return f"{NAMES[self.cell.setting]}, {self.cell.labels} labels"

    @property
    def source(self) -> str:
        return SOURCES[self.cell.setting, self.cell.labels]


Key = tuple[str, str, int]


def _grouped(results: Results) -> dict[Key, Runs]:
    keys = dict.fromkeys((cell.setting, cell.labels, cell.epochs) for cell, _ in results)
    return {key: Runs(results.where(setting=key[0], labels=key[1], epochs=key[2]).pairs) for key in keys}


def _ratio(above: Runs, below: Runs) -> float | Interval:
    """Of the two f, seed by seed; with an interval where there are several."""
    both = [seed for seed in above.seeds if seed in below.seeds]
    one, other = (np.array([runs.of("train")[runs.seeds.index(seed)] for seed in both]) for runs in (above, below))
    return ratio_interval(one, other) if len(both) > 1 else float(one[0] / other[0])


def claims(results: Results, positions: Results) -> list[Claim]:
    """Of networks and of the samples that they learn."""
    groups = _grouped(results)
    found = [claim for key in groups for claim in _of(key, groups, positions)]
    return found + [claim for cell, data in positions for claim in _general_position(cell, data, positions)]


def _of(key: Key, groups: dict[Key, Runs], positions: Results) -> list[Claim]:
    runs = groups[key]
    loss = runs.of("train")
    note = (
        f"{_position(runs.cell, positions)}The mean square, 4f, is {4 * loss.max():.2g}, f/f(0) "
        f"{(loss / runs.of('start')).max():.2g}; the worst sample is off by {runs.of('worst').max():.2g}."
    )
    judge = {"noisy": _with_noise, "features": _three_layers, "plain": _without_noise}[runs.cell.setting]
    return judge(runs, groups, note) + _for_longer(key, groups)


def _with_noise(runs: Runs, groups: dict[Key, Runs], note: str) -> list[Claim]:  # noqa: ARG001
    return [
        Claim.at_most(
            float(runs.of("train").max()), FITTED, source=runs.source, note=note,
            statement=f"{runs.head}: the loss falls below 10⁻⁵",
            measured=f"largest f over all training samples after the last step, {runs.where}",
        )
    ]  # fmt: skip


def _three_layers(runs: Runs, groups: dict[Key, Runs], note: str) -> list[Claim]:
    loss, least = runs.of("train"), runs.of("least")
    told = f"f = {loss.max():.2g}, and {least.min():.2g} at least for two layers."
    true = groups.get(("features", "true", runs.cell.epochs))
    if runs.cell.labels == "random" and true is not None:
        told += f" With true labels f = {true.of('train').max():.2g}."
    return [
        Claim.at_most(
            float((loss / least).max()), 1.0, strict=True, source=runs.source, note=f"{told} {note}",
            statement=f"{runs.head}: the training error comes down further than any two layers on the same "
            f"{runs.cell.directions} directions could bring it",
            measured=f"largest f over the least f of any quadratic form of these inputs, {runs.where}",
        )
    ]  # fmt: skip


def _without_noise(runs: Runs, groups: dict[Key, Runs], note: str) -> list[Claim]:
    """The loss stays up; next to the same with noise, and to the paper's own numbers."""
    cell, loss = runs.cell, runs.of("train")
    found = []
    if (other := groups.get(("noisy", cell.labels, cell.epochs))) is not None:
        beside = f"f = {loss.max():.2g}, with noise {other.of('train').max():.2g}"
        found.append(
            Claim.at_least(
                _ratio(runs, other), 10.0, source=runs.source,
                statement=f"{runs.head}: the loss stays far above that with noise, here ten times as high",
                measured=f"ratio of the two f, {runs.where}",
                note=f"{beside} ('~ 0.1' and '< 1e-5' in the paper). {note}",
            )
        )  # fmt: skip
    if cell.labels == "random":
        if (true := groups.get(("plain", "true", cell.epochs))) is not None:
            found.append(
                Claim.at_least(
                    _ratio(runs, true), 1.0, strict=True, source="Appendix A.2",
                    statement="without noise random labels are fitted worse than true ones",
                    measured=f"ratio of the two f, {runs.where}",
                    note=f"f = {loss.max():.2g} and {true.of('train').max():.2g}.",
                )
            )  # fmt: skip
        return found
    if cell.data == "mnist":
        found.append(
            Claim.at_most(
                float(np.abs(np.log10(loss / SMALL)).max()), 0.5, source=runs.source,
                statement=f"{runs.head}: the loss falls to ~ 0.1, which is here the nearest power of ten",
                measured=f"largest |log₁₀ f/0.1|, {runs.where}", note=f"f = {loss.min():.2g} to {loss.max():.2g}.",
            )
        )  # fmt: skip
    return found + _tested(runs)


def _tested(runs: Runs) -> list[Claim]:
    tests = runs.of("test")
    found = [
        Claim.at_most(
            float(tests.max()), float(runs.of("guess").min()), strict=True, source="Appendix A.2",
            statement="without noise the test error is below that of a guess (1.21 in the paper)",
            measured=f"largest mean squared error on test images next to the variance of their labels, {runs.where}",
        )
    ]  # fmt: skip
    if runs.cell.data == "mnist":
        found.append(
            Claim.at_most(
                float(np.abs(tests / TESTED - 1).max()), 0.1, source="Appendix A.2",
                statement="without noise the test error is 1.21, here within a tenth of it",
                measured=f"largest relative distance from 1.21, {runs.where}",
                note=f"{tests.min():.3g} to {tests.max():.3g}; the paper does not say for how long it trains.",
            )
        )  # fmt: skip
    return found


def _for_longer(key: Key, groups: dict[Key, Runs]) -> list[Claim]:
    """Next to the same with fewer epochs."""
    runs = groups[key]
    fewer = [one for (*same, epochs), one in groups.items() if (*same,) == key[:2] and epochs < key[2]]
    return [
        Claim.at_most(
            _ratio(runs, one), 1.0, strict=True, source=runs.source,
            statement=f"{runs.head}: the loss goes on falling with longer training",
            measured=f"f after {runs.cell.epochs} epochs over f after {one.cell.epochs}, {runs.where}",
            note=f"f = {runs.of('train').max():.2g} after {runs.cell.epochs} epochs.",
        )
        for one in fewer
    ]  # fmt: skip


def _position(cell: Any, positions: Results) -> str:
    """Whether the samples are in general position, by σ_min and by count."""
    text = ""
    for _, data in positions.where(setting=cell.setting):
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
    statement = f"{NAMES[cell.setting]}: σ_min[{letter}_j ⊗ {letter}_j] > 0"
    where = f"{cell.data}, all n = {cell.samples} samples, seed {cell.seed}"
    note = f"σ_min is {_range(data)}, next to a norm of {float(data['largest']):.3g}."
    bare = [found for _, found in positions.where(setting="plain")]
    if cell.setting == "noisy" and bare:
        note += f" Without noise it is {_range(bare[0])}."
    admitted = True
    if cell.setting == "features":
        most = admissible_features(cell.directions, 2)
        admitted = cell.features <= most
        note += f" Lemma 13, on which the theorem rests, speaks of k ≤ {most} features of {cell.directions} inputs."
    if upper > 0 and not lower > 0:
        why = f"No lower bound was had: {note}"
        return [Claim.not_run(reason="device", source=source, statement=statement, why=why, profile="paper, on a GPU")]
    found = [
        Claim.at_least(
            lower, 0.0, strict=True, source=source, statement=statement, note=note, inside=admitted,
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
        chosen = [(cell, data) for cell, data in results.where(labels=labels) if cell.seed == results.pairs[0][0].seed]
        if not chosen:
            continue
        plot = new_plot()
        fewest = min(cell.epochs for cell, _ in chosen)
        for cell, data in chosen:
            steps, losses = np.asarray(data["step"], float), np.asarray(data["loss"], float)
            longer = cell.epochs > fewest
            name = f"{NAMES[cell.setting]}, {cell.epochs} epochs" if longer else NAMES[cell.setting]
            line(plot, steps, losses, name=name, colour=COLOURS[cell.setting], dash="dash" if longer else None)
        ends = np.array([0.0, max(float(data["step"].max()) for _, data in chosen)])
        for name, level in (("f(0)", float(chosen[0][1]["start"])), ("10⁻⁵", FITTED)):
            line(plot, ends, np.full(2, level), name=name, colour="grey", dash="dot")
        style(plot, x="step", y="training loss of a batch", log_y=True)
        cell = chosen[0][0]
        caption = (
            f"{cell.data}, n = {cell.samples}, r = {cell.width}, {fewest} epochs of Adam, seed {cell.seed}; every "
            f"fifth step, means of twenty; the rate is multiplied by 0.3 every {fewest // 6} epochs."
        )
        drawn.append(Figure(f"Learning by heart, {labels} labels", caption, plot))
    return drawn
