"""What the results on the lemmas inside Theorem 3.1's hypotheses say: their claims and figure."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, mean_interval, slope_interval
from offtangent.papers.arora._conditions import DELTA, SEEN, often, theorem_31
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.movement import (
    feature_change_bound,
    flip_probability,
    flip_probability_bound,
    flip_sum_bound,
    kernel_change_bound,
    movement_bound,
    movement_radius,
)

SMALLEST = 0.5  # λ_min(H∞) of orthonormal inputs
CHANGES = {  # name → what it is, its exponent in m, where it is stated
    "furthest": ("max_r ‖w_r(k) − w_r(0)‖", -0.5, "Lemmas 5.3 and C.1"),
    "gram": ("‖H(k) − H(0)‖_F", -0.5, "Lemma C.2"),
    "features": ("‖Z(k) − Z(0)‖_F", -0.25, "Lemma C.2"),
}
FRACTIONS = {-0.5: "−1/2", -0.25: "−1/4"}
COLOURS = ("blue", "vermillion", "green", "purple", "orange")


def claims(results: Results) -> Iterator[Claim]:
    """Lemmas C.1, C.2 and 5.3: exponents and constants over widths, shares at δ = 0.1."""
    yield from (_moves_little(few, n) for (n,), few in results.groups("samples"))
    sweep = results.along("factor")
    if len(sweep) < 2:
        return
    cell = sweep.first
    widths = np.array([float(found.width) for _, found in sweep])
    over = (
        f"n = {cell.samples} orthonormal inputs, κ = {cell.scale:g}, {cell.seeds} seeds at each of {len(widths)} "
        f"widths from {widths[0]:.0f} to {widths[-1]:.0f}"
    )
    hypotheses = _hypotheses(cell, float(widths[0]), cell.delta)
    kept = _kept(sweep)
    for name, (what, exponent, source) in CHANGES.items():
        values = np.stack([scaled(found, name).values for _, found in sweep], axis=1)
        slope = slope_interval(widths, values, level=0.99)
        yield no_slower(
            slope, exponent, per(what, exponent), source=source, over=over, hypotheses=hypotheses, note=kept[name]
        )
    yield _linearised(sweep, widths, over, hypotheses, kept["distance"])
    yield from _flips(sweep, over, kept["candidates"])


def _hypotheses(cell: Any, width: float, delta: float) -> tuple[Hypothesis, ...]:
    rate = SMALLEST / cell.samples**2
    return theorem_31(cell.samples, width=width, scale=cell.scale, smallest=SMALLEST, rate=rate, delta=delta)


def _moves_little(results: Results, n: int) -> Claim:
    """Lemma C.1 at δ = 0.1, on the networks that are wide enough for it."""
    cell = results.first
    wide = [
        (cell, found) for cell, found in results if all(one.met for one in _hypotheses(cell, float(found.width), DELTA))
    ]
    judged = wide or list(results)
    ratios = np.concatenate([(found.furthest / _reach(n, found)).values for _, found in judged])
    smallest = min(float(found.width) for _, found in judged)
    return often(
        int((ratios <= 1).sum()),
        len(ratios),
        source=f"Lemma C.1, n = {n}",
        statement="no neuron moves by more than 4√n‖y − u(0)‖/(√m λ₀), with probability at least 1 − δ",
        measured=f"fraction of networks, δ = {DELTA:g}, {n} orthonormal input{'s' * (n > 1)}, κ = {cell.scale:g}, "
        f"m from {smallest:.0f} on, {len(ratios)} networks",
        hypotheses=_hypotheses(cell, smallest, DELTA),
        note=f"Largest ratio of the two sides: {ratios.max():.3g}.",
    )


def _reach(n: int, found: xr.Dataset) -> xr.DataArray:
    """4√n‖y − u(0)‖/(√m λ₀), of every seed."""
    return found.residual * movement_radius(n, float(found.width), smallest=SMALLEST, residual=1.0)


def _kept(results: Results) -> dict[str, str]:
    """In words: how far each quantity stays below the bound that its lemma or proof gives, at δ = 0.1."""
    n, scale = results.first.samples, results.first.scale
    ratios: dict[str, list[float]] = {}
    for _, found in results:
        radius, width = float(found.radius), float(found.width)
        words: dict[str, float] = {"scale": scale, "delta": DELTA}
        total = movement_bound(float(found.quadratic), n, width, smallest=SMALLEST, **words).total
        limits: dict[str, Any] = {
            "furthest": _reach(n, found),
            "gram": kernel_change_bound(n, radius=radius, **words),
            "features": feature_change_bound(n, radius=radius, **words),
            "distance": total,
            "candidates": flip_sum_bound(n, int(width), radius=radius, **words),
        }
        for name, limit in limits.items():
            values = found[name].sum("sample") if "sample" in found[name].dims else found[name]
            ratios.setdefault(name, []).append(float((values / limit).max()))
    stated = {
        "furthest": "4√n‖y − u(0)‖/(√m λ₀) of Lemma C.1",
        "gram": f"4n²R/(√(2π)κδ) of its proof, at δ = {DELTA:g},",
        "features": f"√(2nR/(√(2π)κδ)) of its proof, at δ = {DELTA:g},",
        "distance": f"√(yᵀ(H∞)⁻¹y) + O(nκ/(λ₀δ)) + poly/(m^¼κ^½), constants one, δ = {DELTA:g},",
        "candidates": f"mn 2R/(√(2π)κδ) of eq. (19), at δ = {DELTA:g},",
    }
    return {
        name: f"The bound {said} is at least {1 / max(ratios[name]):.3g} times larger." for name, said in stated.items()
    }


def _linearised(
    results: Results, widths: np.ndarray, over: str, hypotheses: tuple[Hypothesis, ...], kept: str
) -> Claim:
    """Lemma 5.3 with y − u(0) in place of y, at the end of training: H∞ is λ₀I, so W̃(k) is known to the last step."""
    cell = results.first
    done = 1 - (1 - SMALLEST**2 / cell.samples**2) ** (cell.steps + 1)
    apart = [np.abs(found.distance / (found.residual * done / SMALLEST**0.5) - 1).values for _, found in results]
    slope = slope_interval(widths, np.stack(apart, axis=1), level=0.99)
    said: dict[str, Any] = {
        "source": "Lemma 5.3",
        "statement": "‖W(k) − W(0)‖_F is what the linearised network moves to y − u(0), but for what falls at least as "
        "fast as m^(−1/4)",
    }
    if cell.key == SEEN:
        why = (
            "The rule was written after these networks had been seen, and others decide: on these the exponent is "
            f"{slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}] (99 %)."
        )
        return Claim.not_run(**said, reason="data", why=why, profile="laptop, and in arora/again at paper size")
    return Claim.no_slower(
        slope,
        -0.25,
        **said,
        measured="log-log slope in m of |‖W(k) − W(0)‖_F/‖W̃(k)‖_F − 1| after the last step, 99 % interval (the paper's "
        f"poly/m^¼ is contradicted if all of it is above), {over}",
        hypotheses=hypotheses,
        note=f"It is {np.mean(apart[0]):.2g} at the smallest width and {np.mean(apart[-1]):.2g} at the largest. {kept} "
        "The rule was written after a record; these networks were drawn since.",
    )


def _flips(results: Results, over: str, kept: str) -> Iterator[Claim]:
    """Lemma C.2's events: which neurons flip, and how many may."""
    scale = results.first.scale
    moved = [bool((found.furthest > found.radius).any()) for _, found in results]
    beyond = sum(int(found.outside.sum()) for (_, found), far in zip(results, moved, strict=True) if not far)
    yield Claim.at_most(
        beyond,
        0,
        source="Lemma C.2, eq. (15)",
        statement="no neuron flips on an input outside the events |w_r(0)ᵀxᵢ| ≤ R, if none moves by more than R",
        measured=f"flips outside them, {over}",
        note=f"All flips: {sum(int(found.flips.sum()) for _, found in results)}.",
        identity=True,
    )
    ratio = [
        found.candidates.mean("sample").values / (float(found.width) * flip_probability(float(found.radius), scale))
        for _, found in results
    ]
    radius = float(results.pairs[0][1].radius)
    yield Claim.includes(
        mean_interval(np.concatenate(ratio), level=0.99),
        1,
        source="Lemma C.2, eq. (17)",
        statement="|S̄ᵢ|/m is P(|z| ≤ R) for z ~ N(0, κ²), which is at most 2R/(√(2π)κ)",
        measured=f"|S̄ᵢ|/m over that probability, 99 % interval, {over}",
        note=f"At the smallest width it is {flip_probability(radius, scale):.4f}, and the bound "
        f"{flip_probability_bound(radius, scale):.4f}. {kept}",
    )


def scaled(found: xr.Dataset, name: str) -> xr.DataArray:
    """A change over ‖y − u(0)‖ (or its root), to which R is proportional, and which differs from seed to seed."""
    return found[name] / found.residual ** (-2 * CHANGES[name][1])


def per(what: str, exponent: float) -> str:
    """The same in words."""
    return f"{what} / ‖y − u(0)‖" + ("" if exponent == -0.5 else "^½")


def no_slower(
    slope: Interval,
    exponent: float,
    what: str,
    *,
    source: str,
    over: str,
    hypotheses: Iterable[Hypothesis] = (),
    note: str = "",
) -> Claim:
    """Claim that something falls at least as fast as a power of the width."""
    return Claim.no_slower(
        slope,
        exponent,
        source=source,
        statement=f"{what} falls at least as fast as m^({FRACTIONS[exponent]})",
        measured=f"log-log slope in m, 99 % interval (the paper's O(·) is contradicted if all of it is above), {over}",
        hypotheses=hypotheses,
        note=note,
    )


def figures(results: Results) -> Iterator[Figure]:
    """Lemmas C.1 and C.2 against width, with their bounds."""
    results = results.along("factor")
    if len(results) < 2:
        return
    cell = results.first
    n, widths = cell.samples, np.array([float(found.width) for _, found in results])
    radii = np.array([float(found.radius) for _, found in results])
    words = {"scale": cell.scale, "delta": cell.delta}
    limits = {
        "furthest": radii,
        "gram": np.array([kernel_change_bound(n, radius=r, **words) for r in radii]),
        "features": np.array([feature_change_bound(n, radius=r, **words) for r in radii]),
    }
    plot = new_plot()
    for (name, (what, _, _)), colour in zip(CHANGES.items(), COLOURS, strict=False):
        values = np.stack([found[name].values for _, found in results], axis=1)
        bars = (values.min(axis=0), values.max(axis=0))
        points(plot, widths, values.mean(axis=0), name=what, colour=colour, band=bars)
        line(plot, widths, limits[name], name=f"{what}, bound", colour=colour, dash="dash")
    style(plot, x="width m", y="largest change over all steps", log_x=True, log_y=True)
    yield Figure(
        "Lemmas C.1 and C.2 inside their hypotheses",
        f"n = {n} orthonormal inputs, κ = {cell.scale:g}, η = λ₀/n², widths from Theorem 3.1's own on (constants one, "
        f"δ = {cell.delta:g}). Dashed: the bounds with the proof's constants. Bars: {cell.seeds} seeds.",
        plot,
    )
