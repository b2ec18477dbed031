"""The figures of the worst displacements: signs turned, norms of the second layer, outputs of the first."""

import math
from fractions import Fraction

import numpy as np

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li._coupling import SIGMA_V, limit_b
from offtangent.papers.allen_zhu_li.coupling_slopes import along, table_of
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.worst_signs import flip_fraction


def figures(flips: Results, first: Results, second: Results) -> list[Figure]:
    found = []
    if len(flips) >= 2:
        found.append(_signs(flips))
    if len(second) >= 2:
        found += _operators(second) + _at_the_edge(second)
    if len(along(first, "width")) >= 2:
        found.append(_outputs(first))
    return found


def _signs(results: Results) -> Figure:
    most = max(cell.width for cell, _ in results)
    pairs = sorted((one for one in results if one[0].width == most), key=lambda one: float(one[0].delta))
    deltas = np.array([cell.delta for cell, _ in pairs])
    grid = np.geomspace(deltas[0], 1, 60)
    plot = new_plot()
    line(plot, grid, [flip_fraction(float(one)) for one in grid], name="worst g′, exact", colour="blue")
    line(plot, grid, np.arctan(grid) / math.pi, name="random g′, exact", colour="green")
    line(plot, grid, (6 / math.pi) ** (1 / 3) * grid ** (2 / 3), name="1.241 δ^(2/3)", colour="grey", dash="dot")
    points(plot, deltas, table_of(pairs, "share").mean(axis=0), name="worst g′", colour="vermillion")
    points(plot, deltas, table_of(pairs, "random_share").mean(axis=0), name="random g′", colour="orange")
    style(plot, x="length δ of g′", y="share of signs turned", log_x=True, log_y=True)
    caption = f"g ~ N(0, I/m), m = {most}, mean of {pairs[0][0].seeds} seeds."
    return Figure("A displacement that knows the signs turns δ^(2/3) of them, a random one δ", caption, plot)


def _operators(results: Results) -> list[Figure]:
    pairs = along(results, "radius")
    if len(pairs) < 2:
        return []
    ratios = np.array([cell.ratio for cell, _ in pairs])
    plot = new_plot()
    for name, label, colour in (
        ("f", "(f) ‖ADV⁰‖₂, worst V", "vermillion"),
        ("e", "(e) ‖ADV⁰z‖, worst V", "blue"),
        ("g", "(g) ‖AD(V⁰+V)z‖, worst V", "green"),
        ("random_f", "(f), random V", "orange"),
    ):
        table = table_of(pairs, name)
        points(plot, ratios, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    tau = SIGMA_V * ratios
    for label, values, dash in (
        ("(f) as printed, (e): τ_v(τ_v/σ_v)^(1/3)", tau * ratios ** (1 / 3), "dot"),
        ("(f) corrected: τ_v^(2/3)σ_v^(1/3)", tau ** (2 / 3) * SIGMA_V ** (1 / 3), "dash"),
    ):
        line(plot, ratios, values, name=label, colour="grey", dash=dash)
    style(plot, x="τ_v/σ_v, from the smallest the lemma allows", y=f"norm, σ_v = {SIGMA_V:g}", log_x=True, log_y=True)
    cell = pairs[0][0]
    caption = (
        f"m = {cell.width}, k = {cell.outputs}, z = (out₁, 1)/‖·‖ at the W that makes out₁ largest; mean of "
        f"{cell.seeds} seeds, bars from the smallest to the largest."
    )
    return [Figure("What is left of the initial second layer: small along z, not in other directions", caption, plot)]


def _at_the_edge(results: Results) -> list[Figure]:
    pairs = along(results, "edge")
    if len(pairs) < 2:
        return []
    widths, cell = np.array([float(cell.width) for cell, _ in pairs]), pairs[0][0]
    plot = new_plot()
    for name, label, colour, exponent, dash in (
        ("d", "(d) share of turned signs", "orange", None, ""),
        ("f", "(f) ‖ADV⁰‖₂", "vermillion", -1 / 4, "dash"),
        ("g", "(g) ‖AD(V⁰+V)z‖", "green", -3 / 8, "dashdot"),
        ("e", "(e) ‖ADV⁰z‖", "blue", -1 / 2, "dot"),
    ):
        table = table_of(pairs, name)
        mean, band = table.mean(axis=0), (table.min(axis=0), table.max(axis=0))
        points(plot, widths, mean, name=f"{label}, worst V", colour=colour, band=band)
        if exponent is not None:
            told = f"m^({Fraction(exponent)})".replace("-", "−")
            line(plot, widths, mean[0] * (widths / widths[0]) ** exponent, name=told, colour="grey", dash=dash)
    style(plot, x="width m", y=f"share; norm, σ_v = {SIGMA_V:g}", log_x=True, log_y=True)
    caption = (
        f"τ_v = σ_v(k/m)^(3/8), k = {cell.outputs}: (d) and (f), corrected, allow m^(−1/4), (g) m^(−3/8), (e) m^(−1/2),"
        f" which is also what (f) prints. Mean of {cell.seeds} seeds, bars from the smallest to the largest."
    )
    return [
        Figure("At the smallest τ_v the initial second layer fades along z, and more slowly across it", caption, plot)
    ]


def _outputs(results: Results) -> Figure:
    pairs = along(results, "width")
    widths = np.array([float(cell.width) for cell, _ in pairs])
    plot = new_plot()
    for name, label, colour in (
        ("b", "(b) ‖AD_W W⁰(x,1)‖, worst W", "blue"),
        ("random_b", "(b), random W", "sky"),
        ("c", "(c) ‖out₁‖, worst W", "vermillion"),
        ("random_c", "(c), random W", "orange"),
    ):
        table = table_of(pairs, name)
        points(plot, widths, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    line(plot, widths, [limit_b(cell) for cell, _ in pairs], name="limit of (b)", colour="grey", dash="dot")
    style(plot, x="width m", y=f"norm, τ_w = {pairs[0][0].tau:g}", log_x=True, log_y=True)
    caption = f"k = {pairs[0][0].outputs}, ‖x‖ = 1, mean of {pairs[0][0].seeds} seeds, bars from least to largest."
    return Figure("The initial first layer fades like m^(−1/8), also under the worst displacement", caption, plot)
