"""What the results on the lemmas at larger sizes say: their claims and figures."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import numpy as np
import xarray as xr

from offtangent import data
from offtangent.kernels import relu_hidden
from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval, mean_interval, slope_interval
from offtangent.papers.arora._conditions import DELTA, theorem_31, theorem_41
from offtangent.papers.arora._tables import OverWidths
from offtangent.papers.arora.lemmas_inside import CHANGES, COLOURS, FRACTIONS, no_slower, per, scaled
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.generalisation import rademacher_bound
from offtangent.theory.arora.prescriptions import prescribe
from offtangent.theory.arora.widths import initial_loss_bound

CLOSE = 0.2  # ε of Theorem 4.1, as a part of ‖y‖
EXACT = 1e-10  # relative error of float64 algebra on matrices of condition below 10⁴
MOST = 128  # inputs on any one sphere


def width_claims(results: Results) -> Iterator[Claim]:
    """Lemmas C.3 and 5.4, which ask for no width, and the others at widths that suffice in practice."""
    found = OverWidths.of(results)
    if found is None:
        return
    cell, table, widths, over = found.cell, found.table, found.widths, found.where
    n = cell.samples
    kernel = table.kernel.isel(scale=0)  # H(0) does not depend on κ
    slope = slope_interval(widths, found.at(table.scale.values[0], "kernel"), level=0.99)
    closest = float((kernel / table.kernel_bound.isel(scale=0)).max())
    yield no_slower(
        slope,
        -0.5,
        "‖H(0) − H∞‖_F",
        source="Lemma C.3",
        over=over,
        note=f"Its bound n√(log(2n²/δ)/2m) at δ = {DELTA:g} is kept by all, with a largest ratio of {closest:.3g}.",
    )
    yield _initial_loss(table, n, over)
    yield from _rademacher(table, n, over)
    has = {"smallest": found.smallest, "rate": _rate(n, cell.dim), "width": float(widths[0])}
    for scale in table.scale.values:
        hypotheses = theorem_31(n, scale=float(scale), **has)
        far = found.at(scale, "furthest")[:, [0, -1]].mean(axis=0) / scale
        for name, (what, exponent, source) in CHANGES.items():
            values = scaled(table.sel(scale=scale), name).transpose("seed", "width").values
            why = (
                "The largest of more neurons is larger"
                if name == "furthest"
                else f"Neurons move by up to {far[0]:.2g}κ at the smallest width and {far[1]:.2g}κ at the largest; the "
                "exponents are those of R ≪ κ"
            )
            yield no_slower(
                slope_interval(widths, values, level=0.99),
                exponent,
                per(what, exponent),
                source=f"{source}, n = {n}, κ = {scale:g}",
                over=over,
                hypotheses=hypotheses,
                note=f"{why}.",
            )
        yield _distance(table, float(scale), over, hypotheses)


def _initial_loss(table: xr.Dataset, n: int, over: str) -> Claim:
    """Theorem 3.1's first part: Markov's inequality on the mean, which asks for no width, at the largest κ."""
    scale = float(table.scale.max())
    losses = table.residual.sel(scale=scale).values.ravel() ** 2 / 2
    limit = initial_loss_bound(n, scale, delta=DELTA)
    kept = int((losses <= limit).sum())
    return Claim.at_most(
        mean_interval(losses, level=0.99),
        limit * DELTA,
        source="Theorem 3.1, Φ(W(0)) = O(n/δ)",
        statement="E Φ(W(0)) ≤ n(1 + κ²)/2, so that Φ(W(0)) ≤ n(1 + κ²)/(2δ) ≤ n/δ with probability at least 1 − δ",
        measured=f"mean of Φ(W(0)) at κ = {scale:g}, 99 % interval, {over}",
        hypotheses=[Hypothesis("initial size κ", scale, "≤", 1, "eq. (1)")],
        note=f"{kept} of {len(losses)} networks are below {limit:g}, the bound at δ = {DELTA:g}; the largest is "
        f"{losses.max():.3g}. The mean is n(2 + κ²)/4 exactly.",
    )


@cache
def _rate(n: int, dim: int) -> float:
    """η = 1/λ_max(H∞) of a Widths cell, whose inputs are the first of one set. Time O(n³)."""
    X = data.sphere(MOST, dim, key=jax.random.key(0))[:n]
    return float(1 / np.linalg.eigvalsh(relu_hidden.exact(X, X))[-1])


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
            statement=f"the Rademacher complexity is at most B/√(2n)(1 + (2log(2/δ)/m)^¼) + {constant} + "
            "R√(2log(2/δ)), with probability at least 1 − δ",
            measured=f"fraction of networks where B E‖Z(0)ε‖/n + 2RΣ|S̄ᵢ|/(n√m), which is larger, keeps the bound, "
            f"B² = yᵀ(H∞)⁻¹y, R = 4B/√m, δ = {DELTA:g}, {over}",
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


def _distance(table: xr.Dataset, scale: float, over: str, hypotheses: tuple[Hypothesis, ...]) -> Claim:
    here = table.sel(scale=scale)
    root = float(here.root.values.flat[0])
    ratio = (here.distance / root).transpose("seed", "width").values
    apart = np.abs(here.distance / here.coupled - 1).transpose("seed", "width").values
    slope = slope_interval(table.width.values.astype(float), apart)
    return Claim.at_most(
        slope,
        0,
        strict=True,
        source=f"Lemma 5.3, κ = {scale:g}",
        statement="the wider the network, the closer ‖W(k) − W(0)‖_F comes to what the linearised one moves",
        measured=f"log-log slope in m of |‖W(k) − W(0)‖_F/√((y − u(0))ᵀ(H∞)⁻¹(y − u(0))) − 1|, {over}",
        hypotheses=hypotheses,
        note=f"‖W(k) − W(0)‖_F over √(yᵀ(H∞)⁻¹y) = {root:.3g} goes from {ratio[:, 0].mean():.3f} to "
        f"{ratio[:, -1].mean():.3f} on average. Loss left at the end: {float(here.loss.max()):.1g} of the first.",
    )


def linearised_claims(results: Results) -> Iterator[Claim]:
    """Section 5.2 is algebra, and holds to rounding."""
    for cell, found in results:
        over = f"n = {cell.samples}, d = {cell.dim}, m = {cell.width}, {cell.seeds} seeds, float64"
        yield Claim.at_most(
            float(found.length.max()), EXACT,
            source="Section 5.2",
            statement="‖W̃(∞)‖_F = √(yᵀH(0)⁻¹y), exactly",
            measured=f"largest relative difference, {over}",
            identity=True,
        )  # fmt: skip
        yield Claim.at_most(
            float(found.recursion.max()), EXACT,
            source="Section 5.2, eq. (11)",
            statement="W̃(k) = Z(0) Σ_{t<k} η(I − ηH(0))ᵗ y, exactly",
            measured=f"largest difference from eq. (11) after {cell.steps} steps, over √(yᵀH(0)⁻¹y), {over}",
            identity=True,
        )  # fmt: skip


def enough_claims(results: Results) -> Iterator[Claim]:
    """The widths of the theorems next to those that did."""
    if not len(results):
        return
    cell, found = results.pairs[-1]
    sufficed, asked = _widths(cell, found)
    hypotheses = _asked(cell, float(found.smallest))
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
            hypotheses=hypotheses[theorem],
            note=f"λ₀ = {float(found.smallest):.3g}. Theorem 5.1, with κ = λ₀δ/n, asks for m ≈ {asked['5.1']:.0e}.",
        )  # fmt: skip


def _asked(cell: Any, smallest: float) -> dict[str, tuple[Hypothesis, ...]]:
    """The theorems' hypotheses at the widest network."""
    n = cell.samples
    has = {"width": cell.widest, "scale": cell.scale, "smallest": smallest, "rate": _rate(n, cell.dim)}
    return {"3.1": theorem_31(n, **has), "4.1": theorem_41(n, epsilon=CLOSE * n**0.5, **has)}


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


def width_figures(results: Results) -> Iterator[Figure]:
    """How far everything moves, against width."""
    found = OverWidths.of(results)
    if found is None:
        return
    cell, table, widths = found.cell, found.table, found.widths
    where = f"n = {cell.samples} points on the sphere in d = {cell.dim}, labels ±1, {cell.seeds} seeds"
    for scale in table.scale.values:
        plot = new_plot()
        shown = {"kernel": ("‖H(0) − H∞‖_F", -0.5, "")} | CHANGES
        for (name, (what, exponent, _)), colour in zip(shown.items(), COLOURS, strict=False):
            values = found.at(scale, name)
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
        values = found.at(scale, "distance")
        bars = (values.min(axis=0), values.max(axis=0))
        points(plot, widths, values.mean(axis=0), name=f"‖W(k) − W(0)‖_F, κ = {scale:g}", colour=colour, band=bars)
        coupled = found.at(scale, "coupled").mean(axis=0)
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
