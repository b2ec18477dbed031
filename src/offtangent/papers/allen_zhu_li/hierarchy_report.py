"""Which layer has learnt which signal, when, and what becomes of it layer by layer."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, ratio_interval
from offtangent.papers.allen_zhu_li import _methods
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style

HALF = 0.5  # of a signal: the time at which it is learnt
COLOURS = {("first", "F"): "blue", ("rest", "F"): "sky", ("first", "αG(F)"): "orange", ("rest", "αG(F)"): "vermillion"}
NAMES = {"first": "out₁", "rest": "out − out₁"}
AIMS = {"first": "out₁ to F", "rest": "out − out₁ to αG(F)"}
DASHES = {"together": "solid", "together, decay on W": "dot", "layer by layer": "dash"}
BUDGET = (
    "Layer by layer has as many epochs for each layer as together has for both. That with a decay on the first layer "
    "alone came after layer by layer had been seen to do better than one decay for both."
)
OWN = "Layer by layer, each part along the training of its own layer, the first before the second."


def claims(results: Results) -> list[Claim]:
    found = []
    for n in sorted(results.values("samples")):
        ways = {cell.way: (cell, data) for cell, data in results.where(samples=n)}
        if "together" in ways:
            found += _together(*ways["together"])
        if "layer by layer" in ways:
            found += _compared(ways)
    return found + _orders(results.where(way="together"))


def _together(cell: Any, data: Any) -> list[Claim]:
    learnt = data["learnt"].isel(look=-1)
    missed = {part: data["missed"].sel(part=part).isel(look=-1).values for part in ("first", "rest")}
    words: dict[str, Any] = {"source": "Section 2.1"}
    first, rest = learnt.sel(part="first"), learnt.sel(part="rest")
    told = (
        f"Coefficients of F: {_mean(first, 'F')} in out₁, {_mean(rest, 'F')} in the rest; of αG(F): "
        f"{_mean(first, 'αG(F)')} in out₁, {_mean(rest, 'αG(F)')} in the rest. Chosen: {_choice(data)}"
    )
    return [
        *(
            Claim.at_least(
                _range((learnt.sel(part=own) - learnt.sel(part=other)).sel(signal=signal).values), 0.0,
                strict=True, inside=bool(data["inside"]), **words,
                statement=f"the {layer} hidden layer learns {signal}: with every seed more of it is in "
                f"{NAMES[own]} than in {NAMES[other]}",
                measured=f"difference of the two coefficients of {signal}, mean, least and largest, {_where(cell)}",
                note=told if layer == "second" else told + _shared(learnt),
            )
            for layer, own, other, signal in (("first", "first", "rest", "F"), ("second", "rest", "first", "αG(F)"))
        ),
        Claim.at_most(
            ratio_interval(missed["first"], np.ones(cell.seeds)), 1.0,
            strict=True, inside=bool(_inside(cell) and data["inside"]), **words,
            statement="the first hidden layer learns F: out₁ is nearer to F than zero is",
            measured=f"geometric mean of E‖out₁ − F‖²/E‖F‖², {_interval(cell)}",
            note="Nothing holds out₁ at F: the second layer sees it, and can take away what there is besides. So "
            f"E‖out − out₁ − αG(F)‖² is {_listed(missed['rest'])} times E‖αG(F)‖², seed by seed: by Claim D.7 out₁ is "
            "F up to O(α), and the rest may have to make up for that.",
        ),
    ]  # fmt: skip


def _shared(learnt: Any) -> str:
    """Our explanation, where a seed has more of F in the second layer."""
    if float((learnt.sel(part="first") - learnt.sel(part="rest")).sel(signal="F").min()) > 0:
        return ""
    return (
        " Our explanation: the loss sees the sum alone. Theorem 1 keeps V within τ_v, small, so that F must be in out₁;"
        " Figure 2's training does not, and the second layer takes a part of F, too."
    )


def _range(values: Float[np.ndarray, " s"]) -> Interval:
    """The mean, and from the least to the largest: for what is said of every seed."""
    return Interval(float(values.mean()), float(values.min()), float(values.max()))


def _listed(values: Float[np.ndarray, " s"]) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


def _orders(results: Results) -> list[Claim]:
    """Which signal comes first, at each N from which every seed learns half of both."""
    words: dict[str, Any] = {"source": "Section 2.1", "statement": "F is learnt first, αG(F) with its help"}
    times = [
        (cell, [_reached(data, signal) for signal in ("F", "αG(F)")], bool(data["inside"])) for cell, data in results
    ]
    fewer = [cell.samples for cell, reached, _ in times if not np.isfinite(reached).all()]
    note = (
        f"Not every seed learns half of F and half of αG(F) from {', '.join(map(str, fewer))} samples." if fewer else ""
    )
    if fewer and len(fewer) == len(times):
        return [Claim.not_run(reason="size", **words, profile="paper", why=note)]
    return [
        Claim.at_most(
            ratio_interval(*reached), 1.0, strict=True, inside=settled, **words, note=note,
            measured=f"the step at which half of F is learnt over that of αG(F), {_interval(cell)}",
        )
        for cell, reached, settled in times
        if cell.samples not in fewer
    ]  # fmt: skip


def _compared(ways: dict[str, tuple[Any, Any]]) -> list[Claim]:
    cell, after = ways["layer by layer"]
    errors = {way: data["test"].values for way, (_, data) in ways.items()}
    theirs = errors["layer by layer"]
    level = _methods.unlearnt(_methods.target(cell.target, _methods.ALPHA, 1.0))
    left = float(after["alone_missed"].isel(look=-1).mean())
    listed = ", ".join(f"{way} {error.mean():.3f}" for way, error in errors.items())
    chosen = (
        f"{listed}, of which the first layer alone {float(after['alone_test'].mean()):.3f}; kα² = {level:.3g}. "
        f"First layer: {_choice(after, 'alone_')} Its E‖out₁ − F‖² is {left:.3f} of E‖F‖². Second, on it: "
        f"{_choice(after)} The paper has no theorem on this: what the first layer gets wrong could be really hard, or "
        f"perhaps impossible, for the second one to mend. {BUDGET}"
    )
    if "together" not in ways:
        return []
    chosen += f" Together: {_choice(ways['together'][1])}"
    if "together, decay on W" in ways:
        own = ways["together, decay on W"][1]
        first, rest = (_mean(own["learnt"].isel(look=-1).sel(part=part), "F") for part in ("first", "rest"))
        chosen += f" With a decay on W alone: {_choice(own)} Of F, {first} is in out₁ then and {rest} in the rest."
    settled = all(bool(one) for one in (ways["together"][1]["inside"], after["inside"], after["alone_inside"]))
    return [
        Claim.at_most(
            ratio_interval(errors["together"], theirs), 1.0, strict=True, inside=_inside(cell) and settled,
            source="Section 2.1",
            statement="it is crucial that both hidden layers are trained together: layer by layer the error is larger",
            measured="geometric mean of E‖out − y‖² together, with one weight decay, over layer by layer, "
            f"{_interval(cell)}",
            note=chosen + (f" {_why(errors)}" if errors["together"].mean() > theirs.mean() else ""),
        )
    ]  # fmt: skip


def _why(errors: dict[str, Float[np.ndarray, " s"]]) -> str:
    """Our explanation where one decay for both layers is worse than layer by layer."""
    told = (
        "Our explanation: one by one, each layer has a decay of its own; the first, to which αG(F) is noise, takes one "
        "that holds this noise down, so that little is left to mend."
    )
    own = errors.get("together, decay on W")
    if own is None or own.mean() > errors["layer by layer"].mean():
        return told
    return f"{told} With such a decay on the first layer alone, together is better again."


def _inside(cell: Any) -> bool:
    """Whether the setting is the paper's."""
    return bool(cell.target != "small" and cell.epochs >= _methods.EPOCHS)


def _choice(data: Any, stage: str = "") -> str:
    """Which rate and decay were chosen, whether inside the grid, and what the paper's choice by test error gives."""
    edge = "inside its grid" if bool(data[f"{stage}inside"]) else "on the edge of its grid"
    return (
        f"rate {float(data[f'{stage}rate']):g}, decay {float(data[f'{stage}decay']):g}, {edge}, test error "
        f"{float(data[f'{stage}test'].mean()):.3f}; chosen by the test error, as in the paper: "
        f"{float(data[f'{stage}best'].mean()):.3f}."
    )


def _mean(part: Any, signal: str) -> str:
    return f"{float(part.sel(signal=signal).mean()):.2f}"


def _interval(cell: Any) -> str:
    return f"95 % interval, {_where(cell)}"


def _where(cell: Any) -> str:
    dim, outputs = _methods.sizes(_methods.target(cell.target, _methods.ALPHA, 1.0))
    return (
        f"d = {dim}, k = {outputs}, N = {cell.samples}, m = {cell.width}, {cell.epochs} + {cell.epochs} epochs, "
        f"{cell.seeds} seeds"
    )


def _reached(data: Any, signal: str) -> Float[np.ndarray, " s"]:
    """The first look, counted in steps from 1, at which half of a signal is in the output; infinite where none is."""
    whole = data["learnt"].sel(signal=signal).sum("part").values
    there = whole >= HALF
    return np.where(there.any(axis=1), 1.0 + data["look"].values[there.argmax(axis=1)], np.inf)


def figures(results: Results) -> list[Figure]:
    found = []
    for n in sorted(results.values("samples")):
        here = results.where(samples=n).pairs
        found += [_figure(cell, data) for cell, data in here]
        if here:
            found.append(_distances(here))
    return found


def _figure(cell: Any, data: Any) -> Figure:
    plot = new_plot()
    for (part, signal), colour in COLOURS.items():
        each = _along(data, "learnt", part).sel(signal=signal).values
        line(plot, _epochs(cell, data), each.mean(axis=0), name=f"{signal} in {NAMES[part]}", colour=colour,
             dash="solid" if signal == "F" else "dash", band=(each.min(axis=0), each.max(axis=0)))  # fmt: skip
    style(plot, x="epochs", y="share of the signal that is learnt", log_x=True)
    own = f" {OWN}" if cell.way == "layer by layer" else ""
    caption = (
        f"{_where(cell)}; lines: means over seeds, bands: all. 1: all of a signal is there.{own} Test error at the end "
        f"{float(data['test'].mean()):.3f}."
    )
    return Figure(f"What each part has learnt, trained {cell.way}, N = {cell.samples}", caption, plot)


def _distances(pairs: Any) -> Figure:
    plot = new_plot()
    for cell, data in pairs:
        for part, colour in (("first", "blue"), ("rest", "vermillion")):
            each = _along(data, "missed", part).values
            line(plot, _epochs(cell, data), each.mean(axis=0), name=f"{AIMS[part]}, {cell.way}", colour=colour,
                 dash=DASHES[cell.way],
                 band=(each.min(axis=0), each.max(axis=0)))  # fmt: skip
    style(plot, x="epochs", y="E‖part − signal‖²/E‖signal‖²", log_x=True, log_y=True)
    cell = pairs[0][0]
    caption = (
        f"{_where(cell)}; lines: means over seeds, bands: all. 1: as far as nothing is, 0: the signal alone. {OWN}"
    )
    return Figure(f"How far each part is from its signal, N = {cell.samples}", caption, plot)


def _along(data: Any, name: str, part: str) -> Any:
    """A part along the training of its own layer: layer by layer, out₁ is held while the second one trains."""
    alone = f"alone_{name}"
    return data[alone] if part == "first" and alone in data else data[name].sel(part=part)


def _epochs(cell: Any, data: Any) -> Float[np.ndarray, " t"]:
    return np.asarray((1.0 + data["look"].values) / max(cell.samples // _methods.BATCH, 1))
