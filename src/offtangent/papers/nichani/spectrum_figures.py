"""Spectra drawn: eigenvalues against their index, with the levels and the ends that are predicted."""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Results
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")
LOW, HIGH = "₀₁₂₃₄₅₆₇₈₉", ("⁰", "⁻¹", "⁻²", "⁻³", "⁻⁴", "⁻⁵")


def figures(results: Results) -> list[Figure]:
    kinds: dict[str, list[tuple[Any, xr.Dataset]]] = {}
    for cell, data in results:
        kinds.setdefault(type(cell).__name__, []).append((cell, data))
    drawn = []
    blocks: dict[tuple[str, int, bool], tuple[Any, xr.Dataset]] = {}
    for cell, data in kinds.get("Blocks", []):
        blocks[cell.activation, cell.degree, cell.samples is None] = cell, data  # the largest dimension comes last
    drawn += [_spectrum(*pair) for pair in blocks.values()]
    scaling, angles, rest = (kinds.get(kind, []) for kind in ("Scaling", "Angles", "Rest"))
    drawn += [_levels(*scaling[0])] if scaling else []
    drawn += [_turning(angles)] if angles else []
    drawn += [_small(rest)] if rest else []
    return drawn


def _spectrum(cell: Any, data: xr.Dataset) -> Figure:
    plot = new_plot()
    index, values = data["index"].values.astype(float), data["eigenvalue"].values
    points(plot, index, values, name="eigenvalues", colour="grey")
    start = 0
    for at in range(data.sizes["level"]):
        one = data.isel(level=at)
        count, value, degree = int(one["multiplicity"]), float(one["value"]), int(one["degree"])
        colour, name = COLOURS[degree % len(COLOURS)], f"ξ{LOW[degree]}"
        line(plot, [1.0, float(index[-1])], [value, value], name=name, colour=colour, dash="dot")
        ratio = float(one["predicted_spread"]) / value
        if count > 1 and ratio > 0:
            place = np.unique(np.linspace(1, count, 60).astype(int))
            law = value * marchenko_pastur(ratio**2, 1 - (place - 0.5) / count)
            line(plot, start + place, law, name=f"degree {degree}, predicted", colour=colour)
        start = int(one["end"])
    low = int(data["multiplicity"].values[data["degree"].values <= cell.degree].sum())
    ends = {"end of Q₁": (low, "dash"), "end of Q₂": (start, "dashdot")}
    for label, (end, dash) in ends.items():
        upright = [float(values.min()), float(values.max())]
        line(plot, [end + 0.5, end + 0.5], upright, name=label, colour="grey", dash=dash)
    style(plot, x="index", y="eigenvalue of Σ", log_x=True, log_y=True)
    source = f"N = {cell.samples} inputs without labels" if cell.samples is not None else "Σ itself, from harmonics"
    caption = (
        f"One network of width m = {cell.width}, d = {cell.dim}, k = {cell.degree}; {source}. Dotted: the eigenvalue "
        "of each degree at infinite width. Lines through the points: what a finite width and sample make of it, by "
        "Marchenko and Pastur's law; nothing is fitted. Upright: where the blocks are predicted to end."
    )
    where = "in a sample" if cell.samples is not None else "of the population"
    return Figure(f"Three blocks {where}: {cell.activation}, k = {cell.degree}", caption, plot)


def marchenko_pastur(ratio: float, levels: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
    """Quantiles of the law of Marchenko and Pastur with mean 1 and variance `ratio` < 1.

    Its density is ∝ √((b − x)(x − a))/x on [a, b]; with x = (a + b)/2 − (b − a)/2 cos φ it is ∝ sin²φ/x dφ.
    """
    a, b = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    angle = np.linspace(0, np.pi, 2001)
    x = (a + b) / 2 - (b - a) / 2 * np.cos(angle)
    density = np.sin(angle) ** 2 / x
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.interp(levels, mass / mass[-1], x)


def _levels(cell: Any, data: xr.Dataset) -> Figure:
    plot = new_plot()
    dims = np.array(cell.dims, float)
    for i in data["degree"].values:
        values = data["value"].sel(degree=i).values
        colour, exponent = COLOURS[i % len(COLOURS)], min(1 - int(i), 0)
        points(plot, dims, values, name=f"ξ{LOW[i]}", colour=colour)
        guide = values[-1] * (dims / dims[-1]) ** exponent
        line(plot, dims, guide, name=f"ξ{LOW[i]} ∝ d{HIGH[-exponent]}", colour=colour, dash="dot")
    style(plot, x="dimension d", y="eigenvalue", log_x=True, log_y=True)
    caption = "Eigenvalues of the tangent kernel at infinite width, in closed form; dotted: Section 4.1's exponents."
    return Figure(f"Each degree's eigenvalue against the dimension: {cell.activation}", caption, plot)


def _turning(pairs: list[tuple[Any, xr.Dataset]]) -> Figure:
    plot = new_plot()
    for (cell, data), (first, second) in zip(pairs, (("blue", "sky"), ("vermillion", "orange")), strict=False):
        sizes = np.array(cell.sizes, float)
        sine, bound = data["sine"].values, data["bound"].values
        band = sine.min(axis=0), sine.max(axis=0)
        points(plot, sizes, sine.mean(axis=0), name=f"‖sin Θ(V₁, Q₁)‖, {cell.activation}", colour=first, band=band)
        known = np.isfinite(bound).all(axis=0)
        name = f"Davis and Kahan, {cell.activation}"
        line(plot, sizes[known], bound[:, known].mean(axis=0), name=name, colour=second, dash="dash")
    cell = pairs[0][0]
    style(plot, x="training inputs n", y="sine of the largest angle", log_x=True, log_y=True)
    caption = (
        f"d = {cell.dim}, m = {cell.width}, r = n₁ = {cell.dim + 1}; means of {cell.seeds} networks, bars: all of "
        "them. The bound is drawn where every network has one."
    )
    return Figure("The training features' directions turn towards the population's", caption, plot)


def _small(pairs: list[tuple[Any, xr.Dataset]]) -> Figure:
    plot = new_plot()
    for (cell, data), colour in zip(pairs, ("blue", "vermillion"), strict=False):
        widths, means = np.array(cell.widths, float), data["mean"].values
        band = means.min(axis=0), means.max(axis=0)
        points(plot, widths, means.mean(axis=0), name=cell.activation, colour=colour, band=band)
        line(plot, widths, data["predicted"].values, name=f"predicted, {cell.activation}", colour=colour, dash="dot")
    cell = pairs[0][0]
    style(plot, x="width m", y="mean of Λ₃", log_x=True, log_y=True)
    caption = f"d = {cell.dim}, k = 1, N = {cell.samples} inputs, {cell.seeds} networks (bars: all of them)."
    return Figure("The small eigenvalues are 1/m on average, up to a constant", caption, plot)
