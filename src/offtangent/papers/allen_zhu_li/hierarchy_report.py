"""Which layer has learnt which signal, when, and what becomes of it layer by layer."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.claims import Verdict
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import mean_interval, ratio_interval
from offtangent.papers.allen_zhu_li import _methods

HALF = 0.5  # of a signal: the time at which it is learnt
NAMES = {"first": "out₁", "rest": "out − out₁"}
ONE = "layer by layer, one budget"
LATER = (
    "The rule, the mean over seeds with its interval, came after the first record; before, every seed had to do it, "
    "and in an earlier run one did not."
)


def claims(results: Results) -> list[Claim]:
    found = []
    for n in sorted(results.values("samples")):
        ways = {cell.way: (cell, data) for cell, data in results.where(samples=n)}
        if "together" in ways:
            found += _together(*ways["together"])
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
            _learnt_in(cell, data, (layer, own, other, signal), told)
            for layer, own, other, signal in (("first", "first", "rest", "F"), ("second", "rest", "first", "αG(F)"))
        ),
        Claim.at_most(
            ratio_interval(missed["first"], np.ones(cell.seeds)), 1.0,
            strict=True, hypotheses=(*_paper(cell), _settled(data)), **words,
            statement="the first hidden layer learns F: out₁ is nearer to F than zero is",
            measured=f"geometric mean of E‖out₁ − F‖²/E‖F‖², {_interval(cell)}",
            note="Nothing holds out₁ at F: the second layer sees it, and can take away what there is besides. So "
            f"E‖out − out₁ − αG(F)‖² is {_listed(missed['rest'])} times E‖αG(F)‖², seed by seed: by Claim D.7 out₁ is "
            "F up to O(α), and the rest may have to make up for that.",
        ),
    ]  # fmt: skip


def _learnt_in(cell: Any, data: Any, parts: tuple[str, str, str, str], told: str) -> Claim:
    """That more of a signal is in its own part than in the other, by the mean over seeds that are new to the rule."""
    layer, own, other, signal = parts
    learnt = data["learnt"].isel(look=-1)
    values = (learnt.sel(part=own) - learnt.sel(part=other)).sel(signal=signal).values
    statement = (
        f"the {layer} hidden layer learns {signal}: more of it is in {NAMES[own]} than in {NAMES[other]}, in the mean "
        "over seeds"
    )
    note = f"Seed by seed: {_listed(values)}. {LATER} {told}" + (_shared(learnt) if layer == "first" else "")
    if not cell.first:
        why = f"It takes new seeds. {where_of(cell)}. {note}"
        return Claim.not_run(source="Section 2.1", statement=statement, reason="data", why=why, profile="paper")
    claim = Claim.at_least(
        mean_interval(values),
        0.0,
        strict=True,
        source="Section 2.1",
        statement=statement,
        measured=f"difference of the two coefficients of {signal}, mean, {_interval(cell)}",
        hypotheses=(_paper(cell)[0], _settled(data)),
        note=note,
    )
    return _decided(claim, 0.0)


def _decided(claim: Claim, limit: float) -> Claim:
    """The claim, not testable at this size where its interval holds the limit: then it tells neither way."""
    if (
        claim.verdict is not Verdict.FAILS
        or claim.interval is None
        or not claim.interval[0] < limit < claim.interval[1]
    ):
        return claim
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"The interval is too wide to tell. {claim.note}")


def _shared(learnt: Any) -> str:
    """Our explanation, where a seed has more of F in the second layer."""
    if float((learnt.sel(part="first") - learnt.sel(part="rest")).sel(signal="F").min()) > 0:
        return ""
    return (
        " Our explanation: the loss sees the sum alone. Theorem 1 keeps V within τ_v, small, so that F must be in out₁;"
        " Figure 2's training does not, and the second layer takes a part of F, too."
    )


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
            ratio_interval(*reached), 1.0, strict=True, hypotheses=(_methods.settled(settled),), **words, note=note,
            measured=f"the step at which half of F is learnt over that of αG(F), {_interval(cell)}",
        )
        for cell, reached, settled in times
        if cell.samples not in fewer
    ]  # fmt: skip


def _compared(ways: dict[str, tuple[Any, Any]]) -> list[Claim]:
    """Together against one by one with the same budget: one rate, one decay, and as many epochs in all."""
    cell, together = ways["together"]
    errors = {way: data["test"].values for way, (_, data) in ways.items()}
    level = _methods.unlearnt(_methods.target(cell.target, _methods.ALPHA, 1.0))
    listed = ", ".join(f"{way} {error.mean():.3f}" for way, error in errors.items())
    told = f"Errors: {listed}; kα² = {level:.3g}. Together: {_choice(together)}"
    if "layer by layer" in ways:
        told += f" {_unequal(ways)}"
    words: dict[str, Any] = {
        "source": "Section 2.1",
        "statement": "it is crucial that both hidden layers are trained together: layer by layer, with one rate, one "
        "decay and as many epochs in all, the error is larger",
    }
    said = "The paper has no theorem on this: the second layer could find it really hard, or perhaps impossible."
    if ONE not in ways:
        why = f"It takes layer-wise training with an equal budget, {where_of(cell)}. {told} {said}"
        return [Claim.not_run(reason="size", why=why, profile="paper", **words)]
    apart = ways[ONE][1]
    claim = Claim.at_most(
        ratio_interval(errors["together"], errors[ONE]),
        1.0,
        strict=True,
        hypotheses=(*_paper(cell), _settled(together), _settled(apart)),
        measured=f"geometric mean of E‖out − y‖² together over one by one, {_interval(cell)}",
        note=f"{told} {ONE.capitalize()}: {_choice(apart)} {said}",
        **words,
    )
    return [_decided(claim, 1.0)]


def _unequal(ways: dict[str, tuple[Any, Any]]) -> str:
    """What more to choose from does: a rate and a decay for each layer, and all epochs for each."""
    _, after = ways["layer by layer"]
    left = float(after["alone_missed"].isel(look=-1).mean())
    told = (
        "Layer by layer with a rate and a decay for each layer and twice the epochs, which is no fair comparison: the "
        f"first layer alone {float(after['alone_test'].mean()):.3f}, {_choice(after, 'alone_')} its E‖out₁ − F‖² is "
        f"{left:.3f} of E‖F‖²; the second on it: {_choice(after)}"
    )
    if "together, decay on W" in ways:
        own = ways["together, decay on W"][1]
        first, rest = (_mean(own["learnt"].isel(look=-1).sel(part=part), "F") for part in ("first", "rest"))
        told += (
            f" Together with a decay on W alone, which came after that had been seen: {_choice(own)} Of F, {first} is "
            f"in out₁ then and {rest} in the rest."
        )
    return told


def _paper(cell: Any) -> tuple[Hypothesis, ...]:
    """That the target and the epochs are Figure 2's."""
    words = "Figure 2's" if cell.target != "small" else "a smaller one"
    return Hypothesis("target", words, "=", "Figure 2's", "Figure 2"), _methods.trained(cell.epochs)


def _settled(data: Any) -> Hypothesis:
    return _methods.settled(bool(data["inside"]))


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
    return f"95 % interval, {where_of(cell)}"


def where_of(cell: Any) -> str:
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
