"""Which layer has learnt which signal, when, and what becomes of it layer by layer."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results, mean_interval, ratio_interval
from offtangent.papers.allen_zhu_li import _methods
from offtangent.report import Figure, line, new_plot, style

HALF = 0.5  # of a signal: when it counts as learnt
COLOURS = {("first", "F"): "blue", ("rest", "F"): "sky", ("first", "αG(F)"): "orange", ("rest", "αG(F)"): "vermillion"}
NAMES = {"first": "out₁", "rest": "out − out₁"}


def claims(results: Results) -> list[Claim]:
    found = []
    for n in sorted(results.values("samples")):
        together = results.where(samples=n, way="together").pairs
        if together:
            found += _together(*together[0])
        after = results.where(samples=n, way="layer by layer").pairs
        if together and after:
            found += _compared(together[0], after[0])
    return found


def _together(cell: Any, data: Any) -> list[Claim]:
    first, rest = (data["learnt"].sel(part=part).isel(look=-1) for part in ("first", "rest"))
    words: dict[str, Any] = {"source": "Section 2.1"}
    told = (
        f"F: {_mean(first, 'F')} in out₁, {_mean(rest, 'F')} in the rest; αG(F): {_mean(first, 'αG(F)')} in out₁, "
        f"{_mean(rest, 'αG(F)')} in the rest. Rate {float(data['rate']):g}, decay {float(data['decay']):g}."
    )
    reached = [_reached(data, signal) for signal in ("F", "αG(F)")]
    statement = "F is learnt first, αG(F) with its help"
    if np.isfinite(reached).all():
        order = Claim.at_most(
            ratio_interval(*reached), 1.0, strict=True, **words, statement=statement,
            measured=f"the step at which half of F is learnt over that of αG(F), 95 % interval, {_where(cell)}",
        )  # fmt: skip
    else:
        order = Claim.not_testable(
            **words, statement=f"{statement} (N = {cell.samples})", profile="paper",
            why=f"Not every seed learns half of F and half of αG(F) from {cell.samples} samples.",
        )  # fmt: skip
    return [
        Claim.at_least(
            mean_interval((first.sel(signal="F") - first.sel(signal="αG(F)")).values), 0.0, strict=True, **words,
            statement="the first hidden layer learns F, rather than αG(F)",
            measured=f"what out₁ has learnt of F less what it has of αG(F), 95 % interval, {_where(cell)}",
            note=told,
        ),
        Claim.at_least(
            mean_interval((rest - first).sel(signal="αG(F)").values), 0.0, strict=True, **words,
            statement="the second hidden layer learns αG(F)",
            measured=f"what the rest has learnt of αG(F) less what out₁ has, 95 % interval, {_where(cell)}",
            note=told,
        ),
        order,
    ]  # fmt: skip


def _compared(together: tuple[Any, Any], after: tuple[Any, Any]) -> list[Claim]:
    cell, ours = together[0], together[1]["test"].values
    theirs, alone = after[1]["test"].values, after[1]["alone"].values
    level = _methods.unlearnt(_methods.target(cell.target, _methods.ALPHA, 1.0))
    note = (
        f"Together {ours.mean():.3f}, layer by layer {theirs.mean():.3f}, of which the first layer alone "
        f"{alone.mean():.3f}; kα² = {level:.3g}. The paper gives a reason and no theorem: what the first layer gets "
        "wrong could be out of the second one's reach."
    )
    inside = cell.target != "small" and cell.epochs >= _methods.EPOCHS
    words: dict[str, Any] = {"source": "Section 2.1", "note": note, "inside": inside}
    return [
        Claim.at_most(
            ratio_interval(ours, theirs), 1.0, strict=True, **words,
            statement="it is crucial that both hidden layers are trained together: layer by layer the error is larger",
            measured=f"E‖out − y‖² together over layer by layer, 95 % interval, {_where(cell)}",
        ),
        Claim.at_least(
            mean_interval(theirs), level, **words,
            statement="layer by layer αG(F) is not learnt: the error stays at kα² or above",
            measured=f"E‖out − y‖², 95 % interval, {_where(cell)}",
        ),
    ]  # fmt: skip


def _mean(part: Any, signal: str) -> str:
    return f"{float(part.sel(signal=signal).mean()):.2f}"


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
    return [_figure(cell, data) for cell, data in results]


def _figure(cell: Any, data: Any) -> Figure:
    plot = new_plot()
    per_epoch = max(cell.samples // _methods.BATCH, 1)
    epochs = (1.0 + data["look"].values) / per_epoch
    for (part, signal), colour in COLOURS.items():
        each = data["learnt"].sel(part=part, signal=signal).values
        line(plot, epochs, each.mean(axis=0), name=f"{signal} in {NAMES[part]}", colour=colour,
             dash="solid" if signal == "F" else "dash", band=(each.min(axis=0), each.max(axis=0)))  # fmt: skip
    style(plot, x="epochs", y="share of the signal that is learnt", log_x=True)
    second = "" if cell.way == "together" else " of the second layer, on a first one that is trained and held"
    caption = (
        f"Training{second}: {_where(cell)}; lines: means over seeds, bands: all. 1: all of a signal is there. Test "
        f"error at the end {float(data['test'].mean()):.3f}."
    )
    return Figure(f"What each part has learnt, trained {cell.way}, N = {cell.samples}", caption, plot)
