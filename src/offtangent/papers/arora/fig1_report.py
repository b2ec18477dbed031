"""What Figure 1's results on labels say: their claims and figures."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from offtangent import data
from offtangent.lab import Claim, Results
from offtangent.lab.claims import Reason
from offtangent.lab.statistics import mean_interval
from offtangent.papers.arora._conditions import DELTA, theorem_31, theorem_41
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.widths import deviation_bound

OWN = ("mnist", "cifar10")  # the paper's data
OWN_RATE, OWN_SAMPLES = 1e-3, 10_000
NAMES = {"digits": "digits 0/1", "mnist": "MNIST 0/1", "cifar10": "CIFAR-10 airplane/automobile"}
LOOKS = {
    "true": ("true labels", "green"),
    "random": ("random labels", "blue"),
    "worst": ("worst case", "vermillion"),
}


def training_claims(results: Results) -> Iterator[Claim]:
    """Figure 1 (a)-(d), for every data set here; of the paper's two, those that are not here are said not to be."""
    for name in results.values("data"):
        for at, (cell, found) in enumerate(results.where(data=name)):
            yield from _on_one_set(cell, found, again=at > 0)
    for name in OWN:
        here = results.where(data=name)
        if not len(here):
            yield _without(name)
        elif name == "mnist" and not any(_own_rate(found) for _, found in here):
            yield Claim.not_run(
                reason="size",
                source=f"Figure 1, Section 4, {NAMES[name]}, η = 10⁻³",
                statement="true labels reach 10% of the loss before random labels do, at the paper's own rate",
                why="η = 10⁻³ lies below 2/λ_max on the 10 000 images of the paper, and takes its 10 000 neurons.",
                profile="paper",
            )


def _without(name: str) -> Claim:
    reason: Reason = "size" if data.fetch.available(name) else "data"
    why = {
        "size": f"{name} is left out here.",
        "data": f"{name} is not in the data folder: set OFFTANGENT_DATA, or fetch it with "
        f"offtangent.data.download({name!r}).",
    }[reason]
    return Claim.not_run(
        reason=reason,
        source=f"Figure 1, {NAMES[name]}",
        statement="true labels are learnt before random ones, and these before worst-case labels",
        profile="paper, where the data is",
        why=why,
    )


def _own_rate(found: xr.Dataset) -> bool:
    return bool(np.isclose(float(found.rate), OWN_RATE, rtol=1e-6))


def _name(cell: Any, found: xr.Dataset) -> str:
    """The data set, with its size where that is not the paper's, and its rate where that is."""
    size = f", n = {cell.samples}" if cell.data in OWN and cell.samples != OWN_SAMPLES else ""
    return NAMES[cell.data] + size + (", η = 10⁻³" if _own_rate(found) else "")


def _on_one_set(cell: Any, found: xr.Dataset, *, again: bool) -> Iterator[Claim]:
    """The claims of one cell; what training does not enter is said once for each data set."""
    name, n = _name(cell, found), int(found.samples)
    over = f"n = {n}, m = {cell.width}, {cell.seeds} seeds"
    rate, smallest = float(found.rate), float(found.smallest)
    yield _true_before_random(cell, found, over)

    decay = {kind: found.decay.sel(kind=kind).values for kind in LOOKS}
    foreseen = -2 * np.log1p(-rate * smallest)
    yield Claim.at_least(
        mean_interval(decay["random"] - decay["worst"]), 0, strict=True,
        source=f"Figure 1, Section 4, {name}",
        statement="worst-case labels (the eigenvector of λ_min) are learnt more slowly than random ones",
        measured=f"decay rate of the loss, random minus worst-case labels, first {min(cell.steps)} steps, {over}",
        note=f"A step: worst-case {decay['worst'].mean():.3g} (eq. (8): {foreseen:.3g}, "
        f"{foreseen / decay['worst'].mean():.3g} times as fast), random {decay['random'].mean():.3g}, true "
        f"{decay['true'].mean():.3g}.",
    )  # fmt: skip
    if not again:
        yield _aligned(name, found, n)
    has = {"width": cell.width, "scale": cell.scale, "smallest": smallest, "rate": rate}
    yield Claim.at_least(
        float(found.smallest_drop.min()) / (rate * smallest / 2), 1,
        source=f"Theorem 3.1, {name}",
        statement="Φ(k+1) ≤ (1 − ηλ₀/2) Φ(k) at every step",
        measured=f"smallest relative drop a step (mean over {max(1, min(cell.steps) // 20)} steps) over ηλ₀/2, all "
        f"labels, {over}, η = {rate:.3g}",
        hypotheses=theorem_31(n, **has),
    )  # fmt: skip
    apart = float(abs(np.sqrt(2 * found.loss) - np.sqrt(2 * found.predicted)).max())
    bound = deviation_bound(n, cell.width, scale=cell.scale, smallest=smallest, delta=DELTA)
    yield Claim.at_most(
        apart, bound,
        source=f"Theorem 4.1, eq. (8), {name}",
        statement=f"‖y − u(k)‖ follows eq. (8) up to the error term of its proof at δ = {DELTA:g}, constants one",
        measured=f"largest deviation over steps and labels (‖y‖ = {n**0.5:.3g}), {over}",
        hypotheses=theorem_41(n, epsilon=1.0, **has),
        note=f"The largest deviation is {apart / n**0.5:.1%} of ‖y‖; the proof's term is vacuous at this width.",
    )  # fmt: skip


def _aligned(name: str, found: xr.Dataset, n: int) -> Claim:
    share, chance, top = float(found.share.sel(kind="true")[0]), found.chance.values, int(found.top)
    return Claim.at_least(
        share - chance.max(), 0, strict=True,
        source=f"Figure 1 (b, d), {name}",
        statement=f"true labels lie more in the top {top} eigenvectors of H∞ than random labels do",
        measured=f"share of ‖y‖² there, true labels minus the largest of {len(chance)} draws of random ones, n = {n}",
        note=f"True {share:.3f}, random {chance.mean():.4f} on average (uniform: {top / n:.4f}), at most "
        f"{chance.max():.4f}; λ_max = {float(found.largest):.5g}, λ_min = {float(found.smallest):.4g}.",
    )  # fmt: skip


def _true_before_random(cell: Any, found: xr.Dataset, over: str) -> Claim:
    source = f"Figure 1, Section 4, {_name(cell, found)}"
    statement = f"true labels reach {cell.level:.0%} of the loss before random labels do"
    true, random = (found.steps_to_level.sel(kind=kind).values for kind in ("true", "random"))
    caps = [float(found.steps_run.sel(kind=kind)[0]) for kind in ("true", "random")]
    if not (np.isfinite(true).all() or np.isfinite(random).any()):
        why = f"Within {min(caps):.0f} steps no labels got there."
        larger = "paper, or in one with more steps"
        return Claim.not_run(reason="size", source=source, statement=statement, profile=larger, why=why)
    ratio = np.minimum(random, caps[1] + 1) / np.minimum(true, caps[0] + 1)
    foreseen = found.predicted_steps_to_level.mean("seed")
    took = [
        f"{s.mean():.0f}" if np.isfinite(s).all() else f"more than {cap:.0f}"
        for s, cap in zip((true, random), caps, strict=True)
    ]
    tenth = (
        ""
        if cell.level <= 0.1
        else " A tenth of the loss, as elsewhere, takes many times the steps: it was not run at this n."
    )
    capped = "" if np.isfinite(random).all() else ", at least: the runs end before"
    return Claim.at_least(
        mean_interval(ratio), 1, strict=True,
        source=source,
        statement=statement,
        measured=f"steps with random labels over steps with true ones{capped}, {over}",
        note=f"True labels take {took[0]} steps (eq. (8): {float(foreseen.sel(kind='true')):.0f}), "
        f"random ones {took[1]} (eq. (8): {float(foreseen.sel(kind='random')):.0f}).{tenth}",
    )  # fmt: skip


def training_figures(results: Results) -> Iterator[Figure]:
    """Figure 1 (a, c) with the prediction over it, and Figure 1 (b, d)."""
    for cell, found in results:
        name = _name(cell, found)
        plot = new_plot()
        for kind, (label, colour) in LOOKS.items():
            known = (found.step.values > 0) & np.isfinite(found.loss.sel(kind=kind)).all("seed").values
            measured = found.loss.sel(kind=kind)[known] / found.loss.sel(kind=kind, step=0)
            predicted = found.predicted.sel(kind=kind)[known] / found.predicted.sel(kind=kind, step=0)
            steps = found.step.values[known]
            line(
                plot, steps, measured.mean("seed").values, name=label, colour=colour,
                band=(measured.min("seed").values, measured.max("seed").values),
            )  # fmt: skip
            line(
                plot,
                steps,
                predicted.mean("seed").values,
                name=f"{label}, eq. (8)",
                colour=colour,
                dash="dash",
            )
        style(plot, x="gradient steps k", y="loss Φ(k) / Φ(0)", log_x=True, log_y=True)
        yield Figure(
            f"True labels first: {name}",
            f"Training loss of a network with m = {cell.width} neurons, κ = {cell.scale:g}, "
            f"η = {float(found.rate):.3g}, on n = {int(found.samples)} images, next to what $H^\\infty$ predicts "
            f"before any training (dashed). "
            f"Bands: {cell.seeds} seeds. The run on worst-case labels is capped at {cell.steps[-1]} steps.",
            plot,
        )
        plot = new_plot()
        line(plot, found["rank"].values, found.eigenvalue.values, name="eigenvalue λᵢ", colour="grey")
        for kind, (label, colour) in LOOKS.items():
            size = np.maximum(found.projection.sel(kind=kind).values, 1e-6 * int(found.samples) ** 0.5)
            points(plot, found["rank"].values, size, name=f"|vᵢᵀy|, {label}", colour=colour)
        style(plot, x="rank i of the eigenvalue", y="eigenvalue, projection", log_x=True, log_y=True)
        yield Figure(
            f"Why: {name}",
            "Eigenvalues of $H^\\infty$ and the projections of the labels on its eigenvectors. True labels lie along "
            "the top ones, random labels everywhere, worst-case labels along the last one alone (values below "
            "$10^{-6}\\|y\\|$ are drawn there).",
            plot,
        )
