"""What Figure 1's results say: its claims and its figures."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.optimize
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.widths import deviation_bound, gram_deviation_bound, initial_output_bound, required_width

DELTA = 0.1  # probability of failure in the bounds
NAMES = {"digits": "digits 0/1", "mnist": "MNIST 0/1", "cifar10": "CIFAR-10 airplane/automobile"}
LOOKS = {
    "true": ("true labels", "green"),
    "random": ("random labels", "blue"),
    "worst": ("worst case", "vermillion"),
}
COLOURS = ("blue", "orange", "purple", "green")


@runtime_checkable
class _Asked(Protocol):
    @property
    def data(self) -> str: ...


def training_claims(results: Results, asked: Sequence[_Asked]) -> Iterator[Claim]:
    """Figure 1 (a)-(d), for every data set the profile asks for."""
    for training in asked:
        found = results.where(data=training.data)
        if len(found):
            yield from _on_one_set(*found.pairs[0], results.profile)
        else:
            yield Claim.not_run(
                reason="data",
                source=f"Figure 1, {NAMES[training.data]}",
                statement="true labels are learnt before random ones, and these before worst-case labels",
                profile=f"{results.profile}, where the data is",
                why=f"{training.data} is not in the data folder: set OFFTANGENT_DATA, or fetch it with "
                f"offtangent.data.download({training.data!r}).",
            )


def _on_one_set(cell: Any, found: xr.Dataset, profile: str) -> Iterator[Claim]:
    name, n = NAMES[cell.data], int(found.samples)
    over = f"n = {n}, m = {cell.width}, {cell.seeds} seeds"
    rate, smallest, largest = (float(found[key]) for key in ("rate", "smallest", "largest"))
    yield _true_before_random(cell, found, over, profile)

    decay = {kind: found.decay.sel(kind=kind).values for kind in LOOKS}
    yield Claim.at_least(
        mean_interval(decay["random"] - decay["worst"]), 0, strict=True,
        source=f"Figure 1, Section 4, {name}",
        statement="worst-case labels (the eigenvector of λ_min) are learnt more slowly than random ones",
        measured=f"decay rate of the loss, random minus worst-case labels, first {min(cell.steps)} steps, {over}",
        note=f"A step: worst-case {decay['worst'].mean():.3g} (eq. (8): {-2 * np.log1p(-rate * smallest):.3g}), "
        f"random {decay['random'].mean():.3g}, true {decay['true'].mean():.3g}.",
    )  # fmt: skip
    share, chance, top = float(found.share.sel(kind="true")[0]), found.chance.values, int(found.top)
    yield Claim.at_least(
        share - chance.max(), 0, strict=True,
        source=f"Figure 1 (b, d), {name}",
        statement=f"true labels lie more in the top {top} eigenvectors of H∞ than random labels do",
        measured=f"share of ‖y‖² there, true labels minus the largest of {len(chance)} draws of random ones, n = {n}",
        note=f"True {share:.3f}, random {chance.mean():.4f} on average (uniform: {top / n:.4f}), at most "
        f"{chance.max():.4f}; λ_max = {largest:.5g}, λ_min = {smallest:.4g}.",
    )  # fmt: skip
    asked = required_width(n, scale=cell.scale, smallest=smallest, delta=DELTA)
    yield Claim.at_least(
        float(found.smallest_drop.min()) / (rate * smallest / 2), 1,
        source=f"Theorem 3.1, {name}",
        statement="Φ(k+1) ≤ (1 − ηλ₀/2) Φ(k) at every step",
        measured=f"smallest relative drop a step (mean over {max(1, min(cell.steps) // 20)} steps) over ηλ₀/2, all "
        f"labels, {over}, η = {rate:.3g}",
        inside=False,
        note=f"With constants one the theorem asks for m ≈ {asked:.0e} and η ≈ {smallest / n**2:.0e}.",
    )  # fmt: skip
    apart = float(abs(np.sqrt(2 * found.loss) - np.sqrt(2 * found.predicted)).max())
    yield Claim.at_most(
        apart, deviation_bound(n, cell.width, scale=cell.scale, smallest=smallest, delta=DELTA),
        source=f"Theorem 4.1, eq. (8), {name}",
        statement="‖y − u(k)‖ follows eq. (8) up to the error term of its proof",
        measured=f"largest deviation over steps and labels (‖y‖ = {n**0.5:.3g}), {over}",
        inside=False,
        note=f"The largest deviation is {apart / n**0.5:.1%} of ‖y‖; the proof's term is vacuous at this width.",
    )  # fmt: skip


def _true_before_random(cell: Any, found: xr.Dataset, over: str, profile: str) -> Claim:
    source = f"Figure 1, Section 4, {NAMES[cell.data]}"
    statement = f"true labels reach {cell.level:.0%} of the loss before random labels do"
    true, random = (found.steps_to_level.sel(kind=kind).values for kind in ("true", "random"))
    caps = [float(found.steps_run.sel(kind=kind)[0]) for kind in ("true", "random")]
    if not (np.isfinite(true).all() or np.isfinite(random).any()):
        why = f"Within {min(caps):.0f} steps no labels got there."
        larger = {"smoke": "laptop", "laptop": "paper"}.get(profile, "paper, with more steps")
        return Claim.not_run(reason="size", source=source, statement=statement, profile=larger, why=why)
    ratio = np.minimum(random, caps[1] + 1) / np.minimum(true, caps[0] + 1)
    foreseen = found.predicted_steps_to_level.mean("seed")
    took = [
        f"{s.mean():.0f}" if np.isfinite(s).all() else f"more than {cap:.0f}"
        for s, cap in zip((true, random), caps, strict=True)
    ]
    capped = "" if np.isfinite(random).all() else ", at least: the runs end before"
    return Claim.at_least(
        mean_interval(ratio), 1, strict=True,
        source=source,
        statement=statement,
        measured=f"steps with random labels over steps with true ones{capped}, {over}",
        note=f"True labels take {took[0]} steps (eq. (8): {float(foreseen.sel(kind='true')):.0f}), "
        f"random ones {took[1]} (eq. (8): {float(foreseen.sel(kind='random')):.0f}).",
    )  # fmt: skip


def width_claims(results: Results) -> Iterator[Claim]:
    """Lemma C.3 and the deviation of Theorem 4.1 as A/√m + B."""
    table = _table(results)
    if table is None:
        return
    cell = results.pairs[0][0]
    widths, n = table.width.values.astype(float), cell.samples
    over = f"n = {n}, d = {cell.dim}, {cell.seeds} seeds, {len(widths)} widths from {widths[0]:.0f} to {widths[-1]:.0f}"
    smallest = float(table.smallest.values.flat[0])
    gram = table.gram.isel(scale=0).transpose("seed", "width").values  # H(0) does not depend on κ
    limits = np.array([gram_deviation_bound(n, int(m), delta=DELTA) for m in widths])
    yield Claim.at_most(
        float((gram / limits).max()), 1,
        source="Lemma C.3",
        statement="‖H(0) − H∞‖_F ≤ n √(log(2n²/δ) / 2m) with probability 1 − δ",
        measured=f"largest ratio of the two sides, δ = {DELTA}, {over}",
        note="The statement prints log(2/δ) inside its O(·); its proof's union bound over n² entries needs log(2n²/δ).",
    )  # fmt: skip
    yield Claim.includes(
        slope_interval(widths, gram, level=0.99), -0.5,
        source="Lemma C.3",
        statement="‖H(0) − H∞‖_F falls like m^(−1/2)",
        measured=f"log-log slope in m, {over}, 99 % interval",
    )  # fmt: skip
    slopes = {float(s): slope_interval(widths, _by_width(table, "subtracted", s)) for s in table.scale.values}
    slowest = max(slopes, key=lambda scale: slopes[scale].high)
    yield Claim.at_most(
        slopes[slowest], 0, strict=True,
        source="Theorem 4.1",
        statement="the wider the network, the closer it follows eq. (8) (without its initial output), for every κ",
        measured=f"largest log-log slope in m of the deviation of u(k) − u(0), at κ = {slowest:g}, {over}",
    )  # fmt: skip
    for scale, slope in slopes.items():
        falling, floor, misfit = _fit(widths, _by_width(table, "deviation", scale))
        asked = required_width(n, scale=scale, smallest=smallest, delta=DELTA, epsilon=1.0)
        far = f"With constants one and ε = 1 the theorem asks for m ≈ {asked:.0e}."
        yield Claim.at_most(
            floor, initial_output_bound(n, scale, delta=DELTA),
            source=f"Theorem 4.1, eq. (29), κ = {scale:g}",
            statement="as A/√m + B, the deviation from eq. (8) has a floor B of at most κ √(n/δ), the bound on u(0)",
            measured=f"B of a least-squares fit with A, B ≥ 0, {over}",
            inside=False,
            note=f"A = {falling.value:.3g} [{falling.low:.3g}, {falling.high:.3g}]; the fit misses the means by up to "
            f"{misfit:.0%}. {far}",
        )  # fmt: skip
        yield Claim.includes(
            slope, -0.5,
            source=f"Theorem 4.1, eq. (30), κ = {scale:g}",
            statement="without the initial output the deviation from eq. (8) falls like m^(−1/2)",
            measured=f"log-log slope in m of the deviation of u(k) − u(0), {over}",
            inside=False,
            note=far,
        )  # fmt: skip


def inside_claims(results: Results) -> Iterator[Claim]:
    """Theorems 3.1 and 4.1 where their hypotheses are met, constants taken as one."""
    for cell, found in results:
        seeds = cell.seeds
        scale = float(found.scale)
        where = f"n = {cell.samples} orthonormal inputs, m = {int(found.width)}, κ = {scale:.3g}, {seeds} seeds"
        contracts = int((found.worst_ratio <= found.allowed_ratio).sum())
        yield Claim.at_least(
            fraction_interval(contracts, seeds), 1 - cell.delta,
            source="Theorem 3.1",
            statement="Φ(k+1) ≤ (1 − ηλ₀/2) Φ(k) at every step, with probability at least 1 − δ",
            measured=f"fraction of seeds, {where}, η = λ₀/n² = {float(found.rate):.3g}, {cell.steps} steps",
            note=f"Largest ratio {float(found.worst_ratio.max()):.4f}, allowed {float(found.allowed_ratio):.4f}.",
        )  # fmt: skip
        close = int((found.deviation <= cell.epsilon).sum())
        yield Claim.at_least(
            fraction_interval(close, seeds), 1 - cell.delta,
            source="Theorem 4.1, eq. (8)",
            statement="‖y − u(k)‖ follows eq. (8) to within ε at every step, with probability at least 1 − δ",
            measured=f"fraction of seeds, {where}, ε = {cell.epsilon:g}",
            note=f"Largest deviation {float(found.deviation.max()):.3f}, mean {float(found.deviation.mean()):.3f}.",
        )  # fmt: skip


def _by_width(table: xr.Dataset, name: str, scale: float) -> Float[np.ndarray, "s w"]:
    return table[name].sel(scale=scale).transpose("seed", "width").values


def _fit(widths: Float[np.ndarray, "w"], values: Float[np.ndarray, "s w"]) -> tuple[Interval, Interval, float]:
    """A and B of A/√m + B, both at least zero, fitted to every seed, with intervals; the misfit to the seeds' means."""
    design = np.stack([widths**-0.5, np.ones_like(widths)], axis=1)
    fits = np.array([scipy.optimize.nnls(design, row)[0] for row in values])
    misfit = np.abs(design @ fits.mean(axis=0) / values.mean(axis=0) - 1).max()
    return mean_interval(fits[:, 0]), mean_interval(fits[:, 1]), float(misfit)


def _table(results: Results) -> xr.Dataset | None:
    """All widths and scales in one data set, less the widths of which a cell is missing; None if too few are left."""
    if not len(results):
        return None
    table = results.combine("width", "scale").dropna("width")
    return table if table.sizes["width"] >= 2 else None


def training_figures(results: Results) -> Iterator[Figure]:
    """Figure 1 (a, c) with the prediction over it, and Figure 1 (b, d)."""
    for cell, found in results:
        name = NAMES[cell.data]
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


def width_figures(results: Results) -> Iterator[Figure]:
    """The deviation from eq. (8), and from H∞, against width."""
    table = _table(results)
    if table is None:
        return
    cell = results.pairs[0][0]
    widths = table.width.values.astype(float)
    plot = new_plot()
    for scale, colour in zip(table.scale.values, COLOURS, strict=False):
        raw, subtracted = (_by_width(table, name, scale) for name in ("deviation", "subtracted"))
        bars = (np.quantile(raw, 0.1, axis=0), np.quantile(raw, 0.9, axis=0))
        points(plot, widths, raw.mean(axis=0), name=f"κ = {scale:g}", colour=colour, band=bars)
        falling, floor, _ = _fit(widths, raw)
        line(
            plot, widths, falling.value * widths**-0.5 + floor.value,
            name=f"A/√m + B, κ = {scale:g}", colour=colour, dash="dash",
        )  # fmt: skip
        line(
            plot,
            widths,
            subtracted.mean(axis=0),
            name=f"u(0) subtracted, κ = {scale:g}",
            colour=colour,
            dash="dot",
        )
    style(plot, x="width m", y="largest deviation of ‖y − u(k)‖ from eq. (8)", log_x=True, log_y=True)
    yield Figure(
        "Theorem 4.1 against width",
        f"n = {cell.samples} points on the sphere in d = {cell.dim}, labels ±1 (‖y‖ = {cell.samples**0.5:.3g}), "
        f"{cell.seeds} seeds, bars from the 10th to the 90th percentile. A large κ leaves a floor B, the initial "
        "output; a small κ lets many neurons flip, and the width that cures it grows like $1/\\kappa^2$.",
        plot,
    )
    plot = new_plot()
    gram = table.gram.isel(scale=0).transpose("seed", "width").values
    points(
        plot,
        widths,
        gram.mean(axis=0),
        name="‖H(0) − H∞‖ (Frobenius)",
        colour="blue",
        band=(gram.min(axis=0), gram.max(axis=0)),
    )
    limit = [gram_deviation_bound(cell.samples, int(m), delta=DELTA) for m in widths]
    line(plot, widths, limit, name=f"Lemma C.3, δ = {DELTA}", colour="vermillion", dash="dash")
    style(plot, x="width m", y="distance of H(0) from H∞", log_x=True, log_y=True)
    yield Figure(
        "Lemma C.3: the tangent kernel at initialisation",
        f"Bars: smallest and largest of {cell.seeds} seeds, κ = {float(table.scale[0]):g}; H(0) does not depend on κ.",
        plot,
    )
