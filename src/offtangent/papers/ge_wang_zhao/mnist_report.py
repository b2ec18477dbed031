"""What the networks that learn images by heart say: claims and the paper's curves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
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
TESTED = 1.21  # the paper's test error


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
    falling, steady = results.only(lambda cell: cell.decay < 1), results.only(lambda cell: cell.decay == 1)
    groups = _grouped(falling)
    fewest = min((epochs for *_, epochs in groups), default=0)
    found = [claim for key in groups if key[2] == fewest for claim in _of(key, groups, positions)]
    found += _three_layers({key: runs for key, runs in groups.items() if key[0] == "features"}, positions)
    if ("noisy", "true", fewest) in groups:
        found += _steady(groups["noisy", "true", fewest], _grouped(steady).get(("noisy", "true", fewest)))
    return found + _general_position(positions, sorted({cell.seed for cell, _ in results}))


def _of(key: Key, groups: dict[Key, Runs], positions: Results) -> list[Claim]:
    judge = {"noisy": _with_noise, "plain": _without_noise}.get(key[0])
    return judge(groups[key], groups, positions) if judge else []


def _told(runs: Runs) -> str:
    """F, and how far off the worst sample is."""
    loss = runs.of("train")
    return (
        f"f = {loss.max():.2g} after {runs.cell.epochs} epochs, the mean square, 4f, is {4 * loss.max():.2g}, f/f(0) "
        f"{(loss / runs.of('start')).max():.2g}; the worst sample is off by {runs.of('worst').max():.2g}"
    )


def _with_noise(runs: Runs, groups: dict[Key, Runs], positions: Results) -> list[Claim]:
    """Figure 7 has a number; Figures 4a and 9 have none, and are judged next to the images without noise."""
    if runs.cell.labels == "random":
        return []
    random = [_told(one) for (*same, _), one in groups.items() if tuple(same) == ("noisy", "random")]
    more = f" With random labels, where the paper has no number: {'; '.join(random)}." if random else ""
    return [
        Claim.at_most(
            4 * float(runs.of("train").max()),
            FITTED,
            source=runs.source,
            note=f"{_position(runs.cell, positions)}{_told(runs)}.{more}",
            statement=f"{runs.head}: the loss falls below 10⁻⁵, with the factor ¼ and without",
            measured=f"largest mean square 4f over all training samples after the last step, {runs.where}",
        )
    ]


def _steady(falling: Runs, steady: Runs | None) -> list[Claim]:
    """The decay of the rate is crucial for high accuracy: without it the paper's 10⁻⁵ is not reached."""
    words: dict[str, Any] = {
        "source": "Appendix A.1",
        "statement": f"{falling.head}: with a rate that does not fall the loss stays above 10⁻⁵, with the factor ¼",
    }
    if steady is None:
        why = "All of these networks were trained with a rate that falls."
        return [Claim.not_run(reason="size", why=why, profile="paper", **words)]
    return [
        Claim.at_least(
            float(steady.of("train").min()),
            FITTED,
            strict=True,
            measured=f"smallest f after the last step, {steady.where}, constant rate",
            note=f"{_told(steady)}; with a rate that falls, f = {falling.of('train').max():.2g}.",
            **words,
        )
    ]


def _three_layers(groups: dict[Key, Runs], positions: Results) -> list[Claim]:
    """All runs together: the training error comes down further than any two layers could bring it."""
    if not groups:
        return []
    ratios = {key: float((runs.of("train") / runs.of("least")).max()) for key, runs in groups.items()}
    told = [f"{runs.cell.labels} labels: {_told(runs)}" for runs in groups.values()]
    first = next(iter(groups.values()))
    for (_, labels, epochs), runs in groups.items():
        true = groups.get(("features", "true", epochs))
        if labels == "random" and true is not None:
            many = runs.of("train").mean() / true.of("train").mean()
            told.append(
                f"after {epochs} epochs random labels have {many:.2g} times the f of true ones, which the paper calls "
                "similar"
            )
    return [
        Claim.at_most(
            float(np.max(list(ratios.values()))),
            1.0,
            strict=True,
            source="Figures 3b, 4b, 8, 10",
            statement="three layers, with noise: the training error comes down further than any two layers on the same "
            f"{first.cell.directions} directions could bring it, with {' and '.join({key[1]: 0 for key in groups})} "
            "labels",
            measured=f"largest f over the least f of any quadratic form of these inputs, all runs, {first.where}",
            note=f"{_position(first.cell, positions)}{'. '.join(told)}.",
        )
    ]


def _without_noise(runs: Runs, groups: dict[Key, Runs], positions: Results) -> list[Claim]:
    """The loss stays up; next to the same with noise, and to true labels."""
    cell, loss = runs.cell, runs.of("train")
    found, note = [], f"{_position(cell, positions)}{_told(runs)}."
    if (other := groups.get(("noisy", cell.labels, cell.epochs))) is not None:
        beside = f"f = {loss.min():.2g} to {loss.max():.2g}, with noise {other.of('train').max():.2g}"
        found.append(
            Claim.at_least(
                _ratio(runs, other),
                10.0,
                source=runs.source if cell.labels == "true" else "Appendix A.2, Figures 4a, 9",
                statement=f"{runs.head}: the loss stays far above that with noise, here ten times as high",
                measured=f"ratio of the two f, {runs.where}",
                note=f"{beside} ('~ 0.1' and '< 1e-5' in the paper, for true labels). {note}",
            )
        )
    if cell.labels == "random":
        if (true := groups.get(("plain", "true", cell.epochs))) is not None:
            found.append(
                Claim.at_least(
                    _ratio(runs, true),
                    1.0,
                    strict=True,
                    source="Appendix A.2",
                    statement="without noise random labels are fitted worse than true ones",
                    measured=f"ratio of the two f, {runs.where}",
                    note=f"f = {loss.max():.2g} and {true.of('train').max():.2g}.",
                )
            )
        return found
    tests = runs.of("test")
    return [
        *found,
        Claim.at_most(
            float(tests.max()),
            float(runs.of("guess").min()),
            strict=True,
            source="Appendix A.2",
            statement="without noise the test error is below that of a guess, the variance of the labels",
            measured=f"largest mean squared error on test images next to the variance of their labels, {runs.where}",
            note=f"{tests.min():.3g} to {tests.max():.3g}; {TESTED} in the paper, which does not say for how long it "
            "trains.",
        ),
    ]


def _position(cell: Any, positions: Results) -> str:
    """Whether the samples are in general position, by σ_min and by count."""
    text, found = "", positions.where(setting=cell.setting)
    if len(found):
        seeds = f" (noise of seed{'s' * (len(found) > 1)} {', '.join(str(one.seed) for one, _ in found)})"
        text = f"σ_min of the samples' tensor squares is {'; '.join(_range(data) for _, data in found)}"
        text += f"{seeds if cell.setting != 'plain' else ''}. "
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


def _general_position(positions: Results, trained: list[int]) -> list[Claim]:
    """What noise does to the smallest singular value, and what Theorem 5 asks of the features."""
    found: list[Claim] = []
    bare = [data for _, data in positions.where(setting="plain")]
    for setting, judge in (("noisy", _better), ("features", _of_features)):
        chosen = positions.where(setting=setting)
        if not len(chosen):
            continue
        cell, seeds = chosen.first, [one.seed for one, _ in chosen]
        told = ", ".join(map(str, seeds))
        where = f"{cell.data}, all n = {cell.samples} samples, seed{'s' * (len(seeds) > 1)} {told}"
        without = [seed for seed in trained if seed not in seeds]
        note = "; ".join(
            f"σ_min is {_range(data)}, next to a norm of {float(data['largest']):.3g}" for _, data in chosen
        )
        if without:
            note += f". The noise of seeds {', '.join(map(str, without))}, with which networks were trained, was not "
            note += "looked at"
        found += judge(chosen, bare, where, f"{note}.")
    return found


def _better(chosen: Results, bare: list[xr.Dataset], where: str, note: str) -> list[Claim]:
    if not bare:
        return []
    words: dict[str, Any] = {"source": "Appendix A.2", "statement": "noise makes the smallest singular value better"}
    lower = min(float(data["lower"]) for _, data in chosen)
    least = float(bare[0]["lower"])
    if not lower > 0 and max(float(data["upper"]) for _, data in chosen) > 0:
        why = f"No lower bound was had: {note}"
        return [Claim.not_run(reason="device", why=why, profile="paper, on a GPU", **words)]
    held = " It is positive without noise, too: Theorem 4's condition does not need it." if least > 0 else ""
    return [
        Claim.at_least(
            lower / float(bare[0]["upper"]),
            1.0,
            strict=True,
            measured=f"lower bound of σ_min with noise over the upper one without, the smallest, {where}",
            note=f"{note} Without noise it is {_range(bare[0])}.{held}",
            **words,
        )
    ]


def _of_features(chosen: Results, bare: list[xr.Dataset], where: str, note: str) -> list[Claim]:  # noqa: ARG001
    cell, lower = chosen.first, min(float(data["lower"]) for _, data in chosen)
    words: dict[str, Any] = {"source": "Theorem 5", "statement": f"{NAMES['features']}: σ_min[z_j ⊗ z_j] > 0"}
    if not lower > 0 and max(float(data["upper"]) for _, data in chosen) > 0:
        why = f"No lower bound was had: {note}"
        return [Claim.not_run(reason="device", why=why, profile="paper, on a GPU", **words)]
    most = admissible_features(cell.directions, 2)
    return [
        Claim.at_least(
            lower,
            0.0,
            strict=True,
            note=note,
            measured=f"proven lower bound of σ_min, {where}",
            hypotheses=(Hypothesis("number of features k", cell.features, "≤", most, "Lemma 13"),),
            **words,
        )
    ]


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
