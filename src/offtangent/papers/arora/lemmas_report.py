"""What the results on the lemmas say: their claims and figures."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.generalisation import rademacher_bound
from offtangent.theory.arora.movement import (
    feature_change_bound,
    flip_probability,
    flip_probability_bound,
    flip_sum_bound,
    kernel_change_bound,
    movement_bound,
)
from offtangent.theory.arora.prescriptions import prescribe
from offtangent.theory.arora.widths import required_width

DELTA = 0.1  # probability of failure where a lemma has no hypothesis on the width
CLOSE = 0.2  # ε of Theorem 4.1, as a part of ‖y‖
EXACT = 1e-10  # relative error of float64 algebra on matrices of condition below 10⁴
CHANGES = {  # name → what it is, its exponent in m, where it is stated
    "furthest": ("max_r ‖w_r(k) − w_r(0)‖", -0.5, "Lemmas 5.3 and C.1"),
    "gram": ("‖H(k) − H(0)‖_F", -0.5, "Lemma C.2"),
    "features": ("‖Z(k) − Z(0)‖_F", -0.25, "Lemma C.2"),
}
FRACTIONS = {-0.5: "−1/2", -0.25: "−1/4"}
COLOURS = ("blue", "vermillion", "green", "purple", "orange")


def inside_claims(results: Results) -> Iterator[Claim]:
    """Lemmas C.1, C.2 and 5.3 where their hypotheses are met, constants taken as one."""
    if len(results) < 2:
        return
    cell = results.pairs[0][0]
    n, delta, scale = cell.samples, cell.delta, cell.scale
    widths = np.array([float(found.width) for _, found in results])
    over = (
        f"n = {n} orthonormal inputs, κ = {scale:g}, {cell.seeds} seeds at each of {len(widths)} widths from "
        f"n⁶/(λ₀⁴κ²δ³) = {widths[0]:.0f} to {widths[-1]:.0f}"
    )

    def bound(name: str, found: xr.Dataset) -> Any:
        radius = float(found.radius)
        return {
            "furthest": 4 * n**0.5 * found.residual / (float(found.width) ** 0.5 * 0.5),
            "gram": kernel_change_bound(n, radius=radius, scale=scale, delta=delta),
            "features": feature_change_bound(n, radius=radius, scale=scale, delta=delta),
            "distance": movement_bound(
                float(found.quadratic), n, float(found.width), scale=scale, smallest=0.5, delta=delta
            ).total,
            "candidates": flip_sum_bound(n, int(found.width), radius=radius, scale=scale, delta=delta),
        }[name]

    stated = {
        "furthest": ("Lemma C.1", "no neuron moves by more than 4√n‖y − u(0)‖/(√m λ₀)"),
        "gram": ("Lemma C.2", "‖H(k) − H(0)‖_F ≤ 4n²R/(√(2π)κδ) for all k"),
        "features": ("Lemma C.2", "‖Z(k) − Z(0)‖_F ≤ √(2nR/(√(2π)κδ)) for all k"),
        "distance": ("Lemma 5.3", "‖W(k) − W(0)‖_F ≤ √(yᵀ(H∞)⁻¹y) + O(nκ/(λ₀δ)) + poly(n, 1/λ₀, 1/δ)/(m^¼κ^½)"),
        "candidates": ("Theorem 4.1, eq. (19)", "Σᵢ |S̄ᵢ| ≤ mn 2R/(√(2π)κδ)"),
    }
    for name, (source, statement) in stated.items():
        ratios = np.concatenate([np.ravel(_sum_over_samples(found[name]) / bound(name, found)) for _, found in results])
        yield Claim.at_least(
            fraction_interval(int((ratios <= 1).sum()), len(ratios)), 1 - delta,
            source=source,
            statement=f"{statement}, with probability at least 1 − δ",
            measured=f"fraction of networks, δ = {delta:g}, {over}",
            note=f"Largest ratio of the two sides: {ratios.max():.3g}.",
        )  # fmt: skip
    for name, (what, exponent, source) in CHANGES.items():
        values = np.stack([_scaled(found, name).values for _, found in results], axis=1)
        slope = slope_interval(widths, values, level=0.99)
        yield _no_slower(slope, exponent, _per(what, exponent), source=source, over=over)
    moved = [bool((found.furthest > found.radius).any()) for _, found in results]
    beyond = sum(int(found.outside.sum()) for (_, found), far in zip(results, moved, strict=True) if not far)
    yield Claim.at_most(
        beyond, 0,
        source="Lemma C.2, eq. (15)",
        statement="no neuron flips on an input outside the events |w_r(0)ᵀxᵢ| ≤ R",
        measured=f"flips outside them, {over}",
        note=f"All flips: {sum(int(found.flips.sum()) for _, found in results)}.",
    )  # fmt: skip
    ratio = [
        found.candidates.mean("sample").values / (float(found.width) * flip_probability(float(found.radius), scale))
        for _, found in results
    ]
    radius = float(results.pairs[0][1].radius)
    yield Claim.includes(
        mean_interval(np.concatenate(ratio), level=0.99), 1,
        source="Lemma C.2, eq. (17)",
        statement="|S̄ᵢ|/m is P(|z| ≤ R) for z ~ N(0, κ²), which is at most 2R/(√(2π)κ)",
        measured=f"|S̄ᵢ|/m over that probability, 99 % interval, {over}",
        note=f"At the smallest width it is {flip_probability(radius, scale):.4f}, and the bound "
        f"{flip_probability_bound(radius, scale):.4f}.",
    )  # fmt: skip


def width_claims(results: Results) -> Iterator[Claim]:
    """Lemmas C.3 and 5.4, which ask for no width, and the others at widths that suffice in practice."""
    table = _table(results)
    if table is None:
        return
    cell = results.pairs[0][0]
    widths, n = table.width.values.astype(float), cell.samples
    over = f"n = {n}, d = {cell.dim}, {cell.seeds} seeds, {len(widths)} widths from {widths[0]:.0f} to {widths[-1]:.0f}"
    kernel = table.kernel.isel(scale=0)  # H(0) does not depend on κ
    yield Claim.at_most(
        float((kernel / table.kernel_bound.isel(scale=0)).max()), 1,
        source="Lemma C.3",
        statement="‖H(0) − H∞‖_F ≤ n √(log(2n²/δ) / 2m) with probability 1 − δ",
        measured=f"largest ratio of the two sides, δ = {DELTA}, {over}",
    )  # fmt: skip
    values = kernel.transpose("seed", "width").values
    slope = slope_interval(widths, values, level=0.99)
    yield _no_slower(slope, -0.5, "‖H(0) − H∞‖_F", source="Lemma C.3", over=over)
    yield from _rademacher(table, n, over)
    smallest = float(table.smallest.values.flat[0])
    for scale in table.scale.values:
        asked = required_width(n, scale=float(scale), smallest=smallest, delta=DELTA)
        far = _by_width(table, "furthest", scale)[:, [0, -1]].mean(axis=0) / scale
        for name, (what, exponent, source) in CHANGES.items():
            values = _scaled(table.sel(scale=scale), name).transpose("seed", "width").values
            why = (
                "The largest of more neurons is larger"
                if name == "furthest"
                else f"Neurons move by up to {far[0]:.2g}κ at the smallest width and {far[1]:.2g}κ at the largest; the "
                "exponents are those of R ≪ κ"
            )
            yield _no_slower(
                slope_interval(widths, values, level=0.99), exponent, _per(what, exponent),
                source=f"{source}, n = {n}, κ = {scale:g}", over=over, inside=False,
                note=f"{why}. With constants one Theorem 3.1 asks for m ≈ {asked:.0e}.",
            )  # fmt: skip
        yield from _distance(table, float(scale), over)


def _rademacher(table: xr.Dataset, n: int, over: str) -> Iterator[Claim]:
    """B E‖Z(0)ε‖/n + 2R Σ|S̄ᵢ|/(n√m) lies above the Rademacher complexity, by the proof's first steps."""
    root = float(table.root.values.flat[0])
    above, linear, below, limits = [], [], [], {False: [], True: []}  # type: ignore[var-annotated]
    for scale in table.scale.values:
        for width in table.width.values:
            here = table.sel(scale=scale, width=width)
            radius = float(here.radius)
            length = (here.sign_length + 3 * here.sign_error).values
            linear.append(root * length / n)
            above.append(linear[-1] + 2 * radius * here.candidates.values / (n * float(width) ** 0.5))
            inside = here.columns.values <= radius
            below.append(np.where(inside, here.reached.values, np.nan))
            for proof, found in limits.items():
                found.append(
                    rademacher_bound(
                        n, int(width), radius=radius, movement=root, scale=float(scale), delta=DELTA, proof=proof
                    )
                )
    for proof, constant in ((False, "2R²√m/κ"), (True, "2√2R²√m/(√πκ)")):
        ratios = np.array([values / limit.total for values, limit in zip(above, limits[proof], strict=True)])
        lowest = np.array([values / limit.total for values, limit in zip(below, limits[proof], strict=True)])
        yield Claim.at_least(
            fraction_interval(int((ratios <= 1).sum()), ratios.size), 1 - DELTA,
            source="Lemma 5.4" + (", proof's constant" if proof else ""),
            statement=f"the Rademacher complexity is at most B/√(2n)(1 + (2log(2/δ)/m)^¼) + {constant} + R√(2log(2/δ))",
            measured=f"fraction of networks where B E‖Z(0)ε‖/n + 2RΣ|S̄ᵢ|/(n√m), which is larger, keeps the bound, "
            f"B² = yᵀ(H∞)⁻¹y, R = 4B/√m, {over}",
            note=f"Largest ratio {ratios.max():.3f}. Networks of the class reach {np.nanmin(lowest):.2g} to "
            f"{np.nanmax(lowest):.2g} of the bound.",
        )  # fmt: skip
    ratios = np.array([values / limit.linear for values, limit in zip(linear, limits[False], strict=True)])
    yield Claim.at_least(
        fraction_interval(int((ratios <= 1).sum()), ratios.size), 1 - DELTA,
        source="Lemma 5.4, first term",
        statement="B E‖Z(0)ε‖/n ≤ B/√(2n)(1 + (2log(2/δ)/m)^¼): what is left when no neuron flips",
        measured=f"fraction of networks, δ = {DELTA}, {over}",
        note=f"Ratio of the two sides from {ratios.min():.3f} to {ratios.max():.3f}.",
    )  # fmt: skip


def _distance(table: xr.Dataset, scale: float, over: str) -> Iterator[Claim]:
    here = table.sel(scale=scale)
    root = float(here.root.values.flat[0])
    ratio = (here.distance / root).transpose("seed", "width").values
    apart = np.abs(here.distance / here.coupled - 1).transpose("seed", "width").values
    slope = slope_interval(table.width.values.astype(float), apart)
    yield Claim.at_most(
        slope, 0, strict=True,
        source=f"Lemma 5.3, κ = {scale:g}",
        statement="the wider the network, the closer ‖W(k) − W(0)‖_F comes to what the linearised one moves",
        measured=f"log-log slope in m of |‖W(k) − W(0)‖_F/√((y − u(0))ᵀ(H∞)⁻¹(y − u(0))) − 1|, {over}",
        inside=False,
        note=f"‖W(k) − W(0)‖_F over √(yᵀ(H∞)⁻¹y) = {root:.3g} goes from {ratio[:, 0].mean():.3f} to "
        f"{ratio[:, -1].mean():.3f} on average. Loss left at the end: {float(here.loss.max()):.1g} of the first.",
    )  # fmt: skip


def linearised_claims(results: Results) -> Iterator[Claim]:
    """Section 5.2 is algebra, and holds to rounding."""
    for cell, found in results:
        over = f"n = {cell.samples}, d = {cell.dim}, m = {cell.width}, {cell.seeds} seeds, float64"
        yield Claim.at_most(
            float(found.length.max()), EXACT,
            source="Section 5.2",
            statement="‖W̃(∞)‖_F = √(yᵀH(0)⁻¹y), exactly",
            measured=f"largest relative difference, {over}",
        )  # fmt: skip
        yield Claim.at_most(
            float(found.recursion.max()), EXACT,
            source="Section 5.2, eq. (11)",
            statement="W̃(k) = Z(0) Σ_{t<k} η(I − ηH(0))ᵗ y, exactly",
            measured=f"largest difference from eq. (11) after {cell.steps} steps, over √(yᵀH(0)⁻¹y), {over}",
        )  # fmt: skip


def enough_claims(results: Results) -> Iterator[Claim]:
    """The widths of the theorems next to those that did."""
    if not len(results):
        return
    cell, found = results.pairs[-1]
    sufficed, asked = _widths(cell, found)
    for theorem, statement in (
        ("3.1", "Φ(k+1) ≤ (1 − ηλ₀/2)Φ(k) at every step"),
        ("4.1", f"‖y − u(k)‖ follows eq. (8) to within {CLOSE:g}‖y‖"),
    ):
        if not np.isfinite(sufficed[theorem]):
            why = f"No width up to {cell.widest} did for n = {cell.samples}."
            yield Claim.not_run(
                reason="size",
                source=f"Theorem {theorem}, the width",
                statement=statement,
                profile="laptop, or paper",
                why=why,
            )
            continue
        yield Claim.at_most(
            sufficed[theorem], asked[theorem],
            source=f"Theorem {theorem}, the width",
            statement=f"{statement}, from the width on that the theorem asks for",
            measured=f"smallest power of two from which on it does in all {cell.seeds} seeds, n = {cell.samples}, "
            f"d = {cell.dim}, κ = {cell.scale:g}, η = 1/λ_max, {cell.steps} steps, δ = {DELTA}",
            inside=False,
            note=f"λ₀ = {float(found.smallest):.3g}. Theorem 5.1, with κ = λ₀δ/n, asks for m ≈ {asked['5.1']:.0e}.",
        )  # fmt: skip


def _widths(cell: Any, found: xr.Dataset) -> tuple[dict[str, float], dict[str, float]]:
    """The smallest width from which on all seeds do what a theorem says, and what the theorems ask for."""
    n, smallest = cell.samples, float(found.smallest)
    epsilon = CLOSE * n**0.5
    done = {"3.1": found.worst_ratio <= found.allowed_ratio, "4.1": found.deviation <= epsilon}
    sufficed = {}
    for theorem, good in done.items():
        from_here_on = np.logical_and.accumulate(good.all("seed").values[::-1])[::-1]
        sufficed[theorem] = float(found.width.values[from_here_on.argmax()]) if from_here_on.any() else np.inf
    words = {"smallest": smallest, "delta": DELTA}
    asked = {
        "3.1": prescribe("3.1", n, scale=cell.scale, **words).width,
        "4.1": prescribe("4.1", n, epsilon=epsilon, **words).width,
        "5.1": prescribe("5.1", n, **words).width,
    }
    return sufficed, asked


def _scaled(found: xr.Dataset, name: str) -> xr.DataArray:
    """A change over ‖y − u(0)‖ (or its root), to which R is proportional, and which differs from seed to seed."""
    return found[name] / found.residual ** (-2 * CHANGES[name][1])


def _per(what: str, exponent: float) -> str:
    return f"{what} / ‖y − u(0)‖" + ("" if exponent == -0.5 else "^½")


def _no_slower(
    slope: Interval, exponent: float, what: str, *, source: str, over: str, inside: bool = True, note: str = ""
) -> Claim:
    return Claim.no_slower(
        slope, exponent,
        source=source,
        statement=f"{what} falls at least as fast as m^({FRACTIONS[exponent]})",
        measured=f"log-log slope in m, 99 % interval (the paper's O(·) is contradicted if all of it is above), {over}",
        inside=inside,
        note=note,
    )  # fmt: skip


def inside_figures(results: Results) -> Iterator[Figure]:
    """Lemmas C.1 and C.2 against width, with their bounds."""
    if len(results) < 2:
        return
    cell = results.pairs[0][0]
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


def width_figures(results: Results) -> Iterator[Figure]:
    """How far everything moves, against width."""
    table = _table(results)
    if table is None:
        return
    cell, widths = results.pairs[0][0], table.width.values.astype(float)
    where = f"n = {cell.samples} points on the sphere in d = {cell.dim}, labels ±1, {cell.seeds} seeds"
    for scale in table.scale.values:
        plot = new_plot()
        shown = {"kernel": ("‖H(0) − H∞‖_F", -0.5, "")} | CHANGES
        for (name, (what, exponent, _)), colour in zip(shown.items(), COLOURS, strict=False):
            values = _by_width(table, name, scale)
            bars = (values.min(axis=0), values.max(axis=0))
            points(plot, widths, values.mean(axis=0), name=what, colour=colour, band=bars)
            guide = values.mean(axis=0)[-1] * (widths / widths[-1]) ** exponent
            line(plot, widths, guide, name=f"{what}, m^({FRACTIONS[exponent]})", colour=colour, dash="dot")
        style(plot, x="width m", y="largest change over all steps", log_x=True, log_y=True)
        yield Figure(
            f"What changes in training, κ = {scale:g}",
            f"{where}. Dotted: the exponents of Lemmas C.1-C.3, through the widest network. Bars: smallest and "
            "largest seed.",
            plot,
        )
    plot = new_plot()
    root = float(table.root.values.flat[0])
    for scale, colour in zip(table.scale.values, COLOURS, strict=False):
        values = _by_width(table, "distance", scale)
        bars = (values.min(axis=0), values.max(axis=0))
        points(plot, widths, values.mean(axis=0), name=f"‖W(k) − W(0)‖_F, κ = {scale:g}", colour=colour, band=bars)
        coupled = _by_width(table, "coupled", scale).mean(axis=0)
        line(plot, widths, coupled, name=f"u(0) taken into account, κ = {scale:g}", colour=colour, dash="dash")
    line(plot, widths, np.full(len(widths), root), name="√(yᵀ(H∞)⁻¹y)", colour="grey")
    style(plot, x="width m", y="distance from the initial weights", log_x=True)
    yield Figure(
        "Lemma 5.3: all neurons together",
        f"{where}. The wider the network, the closer its movement comes to that of the linearised one (grey). A large "
        "κ starts with an output u(0) that has to be unlearnt (dashed: y − u(0) in place of y).",
        plot,
    )


def enough_figures(results: Results) -> Iterator[Figure]:
    """Widths asked for and widths that sufficed, against n."""
    if len(results) < 2:
        return
    n = np.array([cell.samples for cell, _ in results], dtype=float)
    found = [_widths(cell, dataset) for cell, dataset in results]
    cell, plot = results.pairs[0][0], new_plot()
    for theorem, colour in (("3.1", "blue"), ("4.1", "vermillion"), ("5.1", "green")):
        line(plot, n, [asked[theorem] for _, asked in found], name=f"Theorem {theorem} asks for", colour=colour)
        if theorem in found[0][0]:
            did = np.array([sufficed[theorem] for sufficed, _ in found])
            name = f"sufficed for Theorem {theorem}"
            points(plot, n, np.where(np.isfinite(did), did, np.nan), name=name, colour=colour)
    style(plot, x="samples n", y="width m", log_x=True, log_y=True)
    yield Figure(
        "How wide is wide enough",
        f"Lines: the widths of the theorems with constants one, δ = {DELTA}. Points: the smallest power of two from "
        f"which on all {cell.seeds} networks did what the theorem says (3.1: the loss contracts at every step; 4.1: it "
        f"follows eq. (8) to within {CLOSE:g}‖y‖), κ = {cell.scale:g}, d = {cell.dim}, η = 1/λ_max; none where no "
        f"width up to {cell.widest} did.",
        plot,
    )


def _sum_over_samples(values: xr.DataArray) -> Float[np.ndarray, "s"]:
    return (values.sum("sample") if "sample" in values.dims else values).values


def _by_width(table: xr.Dataset, name: str, scale: float) -> Float[np.ndarray, "s w"]:
    return table[name].sel(scale=scale).transpose("seed", "width").values


def _table(results: Results) -> xr.Dataset | None:
    """All widths and scales in one data set, less the widths of which a cell is missing; None if too few are left."""
    if not len(results):
        return None
    table = results.combine("width", "scale").dropna("width")
    return table if table.sizes["width"] >= 2 else None
