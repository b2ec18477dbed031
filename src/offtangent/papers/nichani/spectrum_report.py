"""What the spectra say: their claims and figures."""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Interval, Results, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points, style

ROUNDING = 1e-9
TENTH = 0.05  # a slope this close to a whole number is that number to one decimal
ENOUGH = 8  # a dimension from which on ξ₂/ξ₃ grows as it does for large d
SECTION = {"source": "Section 4.1"}


def claims(results: Results) -> list[Claim]:
    kinds = _by_kind(results)
    found: list[Claim] = []
    names = list(dict.fromkeys(cell.activation for cell, _ in results))
    for name in names:
        for k in (1, 2):
            for sampled in (True, False):
                chosen = [
                    (cell, data)
                    for cell, data in kinds.get("Blocks", [])
                    if (cell.activation, cell.degree, cell.samples is not None) == (name, k, sampled)
                ]
                found += _blocks(chosen) if chosen else []
        for kind, judge in (("Rest", _rest), ("Angles", _angles), ("Scaling", _scaling), ("Assumptions", _assumptions)):
            for cell, data in kinds.get(kind, []):
                found += judge(cell, data) if cell.activation == name else []
    return found


def _by_kind(results: Results) -> dict[str, list[tuple[Any, xr.Dataset]]]:
    kinds: dict[str, list[tuple[Any, xr.Dataset]]] = {}
    for cell, data in results:
        kinds.setdefault(type(cell).__name__, []).append((cell, data))
    return kinds


def _blocks(pairs: list[tuple[Any, xr.Dataset]]) -> list[Claim]:
    """Of one activation, one k, and one source: samples or the population."""
    cell = pairs[0][0]
    dims = [one.dim for one, _ in pairs]
    source = "from samples" if cell.samples is not None else "of Σ itself, from harmonics"
    sizes = "; ".join(
        f"d = {one.dim}: m = {one.width}" + (f", N = {one.samples}" if one.samples is not None else "")
        for one, _ in pairs
    )
    over = f"{cell.activation}, k = {cell.degree}, {source}, {cell.seeds} networks each, {sizes}"
    missing = [i for i in range(2 * cell.degree + 1) if i not in pairs[0][1]["degree"]]
    note = f"The network does not see degree {missing[0]}: ξ is zero there, and so is the block." if missing else ""
    spreads = max(float((data["predicted_spread"] / data["value"]).max()) for _, data in pairs)
    levels = []
    for degree in pairs[0][1]["degree"].values:
        means = [(one["mean"] / one["predicted"]).values for one in (_of_degree(data, degree) for _, data in pairs)]
        levels.append(mean_interval(np.concatenate(means), level=0.99))
    scatter = np.concatenate([_scatter(data) for _, data in pairs])
    right = [bool((data["break"] == data["end"]).all("level")[at]) for one, data in pairs for at in range(one.seeds)]
    last, shown = pairs[-1]
    found = [
        Claim.at_most(
            max(map(_off_one, levels)), spreads**2, **SECTION,
            statement="B(d, i) eigenvalues around ξ_i for every degree i ≤ 2k: their mean is ξ_i, with the correction of "
            "second order for a finite width and sample",
            measured="|mean/prediction − 1| of the worst degree, the far end of the 99 % interval over networks; allowed "
            f"is the second order in the relative spread of a block, {over}",
            note=f"d = {last.dim}: {_table(shown)}. {note}".strip(),
        ),
        Claim.at_most(
            _off_one(mean_interval(scatter, level=0.99)), spreads, **SECTION,
            statement="the blocks spread around ξ_i as much as their neurons and samples say",
            measured="|scatter/prediction − 1|, scatter the sum of (λ/ξ_i − 1)² over all eigenvalues, the far end of the "
            f"99 % interval over networks; allowed is the next order in the relative spread of a block, {over}",
        ),
        Claim.at_least(
            float(np.mean(right)), 1.0, **SECTION,
            statement="the spectrum breaks where degrees end, and nowhere else: its largest gaps λ_j/λ_{j+1}, as many as "
            f"there are levels, stand after {', '.join(str(int(end)) for end in shown['end'])} eigenvalues at "
            f"d = {last.dim}",
            measured=f"share of the networks in which all of them do, {over}",
            note=_order(shown),
        ),
    ]  # fmt: skip
    if cell.samples is None:
        excess = min(float((data["sum"] / (data["multiplicity"] * data["value"]).sum()).min()) for _, data in pairs)
        found.append(
            Claim.at_least(
                excess, 1 - ROUNDING, source="Section 4.1, Ky Fan",
                statement="Σ_{j≤n_2k} λ_j ≥ Σ_{i≤2k} B(d, i)ξ_i at every width: the trace of a degree does not depend on "
                "the weights",
                measured=f"smallest ratio, {over}",
            )
        )  # fmt: skip
    if cell.degree == 1 and len(pairs) > 2:
        found += _gaps(pairs, dims, over)
    return found


def _of_degree(data: xr.Dataset, degree: int) -> xr.Dataset:
    return data.isel(level=int(np.flatnonzero(data["degree"].values == degree)[0]))


def _scatter(data: xr.Dataset) -> Float[np.ndarray, " s"]:
    """Σ (λ/ξ − 1)² over all eigenvalues of each network, over what is predicted of it."""
    count, value = data["multiplicity"], data["value"]
    found = count * (data["spread"] ** 2 + (data["mean"] - value) ** 2) / value**2
    return np.asarray(found.sum("level") / (count * (data["predicted_spread"] / value) ** 2).sum("level"))


def _gaps(pairs: list[tuple[Any, xr.Dataset]], dims: list[int], over: str) -> list[Claim]:
    """λ_min(Λ₁) ≫ λ_max(Λ₂) ≫ λ_max(Λ₃): in the paper's sense, ratios that grow with d."""
    names = {"first": "λ_min(Λ₁) ≫ λ_max(Λ₂)", "second": "λ_min(Λ₂) ≫ λ_max(Λ₃)"}
    sampled = pairs[0][0].samples is not None
    found = []
    for name, statement in names.items():
        if name == "second" and sampled:
            continue  # n ~ d² inputs cannot tell Q₂ from Q₃ better as d grows, as the paper says
        if name == "second" and max(dims) < ENOUGH:
            why = f"For d ≤ {max(dims)} not even the levels at infinite width move apart."
            found.append(Claim.not_testable(source="Section 1.1", statement=statement, profile="laptop", why=why))
            continue
        table = np.stack([data[name].values for _, data in pairs], axis=1)
        means = ", ".join(f"{value:.3g} at d = {dim}" for value, dim in zip(table.mean(axis=0), dims, strict=True))
        found.append(
            Claim.at_least(
                slope_interval(np.array(dims, float), table), 0.0, strict=True, source="Section 1.1",
                statement=f"{statement}: the ratio at the predicted place grows with d",
                measured=f"log-log slope in d, 95 % interval, {over}",
                note=f"Mean ratio {means}.",
            )
        )  # fmt: skip
    return found


def _rest(cell: Any, data: xr.Dataset) -> list[Claim]:
    widths = np.array(cell.widths, float)
    slope = slope_interval(widths, data["mean"].values, level=0.99)
    off = Interval(abs(slope.value + 1), 0.0, max(abs(slope.low + 1), abs(slope.high + 1)))
    taken = math.comb(cell.dim + 1, 2) + cell.dim  # n_2
    scaled = widths * data["mean"].values.mean(axis=0)
    told = widths * data["predicted"].values
    return [
        Claim.at_most(
            off, taken / (cell.dim * widths[0] / 2), **SECTION,
            statement="the entries of Λ₃ are of order 1/m on average",
            measured="distance from −1 of the log-log slope in m of the mean of Λ₃, 99 % interval; allowed is the share "
            f"of the directions that Q₁ and Q₂ take at the smallest width, {cell.activation}, k = 1, d = {cell.dim}, "
            f"N = {cell.samples}, {cell.seeds} networks, {len(widths)} widths from {widths[0]:.0f} to {widths[-1]:.0f}",
            note=f"m times the mean: {scaled[0]:.3g} at the smallest width, {scaled[-1]:.3g} at the largest; predicted "
            f"{told[0]:.3g} and {told[-1]:.3g}. The constant is the energy of σ' beyond degree 2k, not 1.",
        )
    ]  # fmt: skip


def _angles(cell: Any, data: xr.Dataset) -> list[Claim]:
    sizes = np.array(cell.sizes, float)
    over = (
        f"{cell.activation}, k = 1, d = {cell.dim}, m = {cell.width}, {cell.seeds} networks, {len(sizes)} numbers of "
        f"inputs from {sizes[0]:.0f} to {sizes[-1]:.0f}"
    )
    ratio = (data["sine"] / data["bound"]).values
    useful = data["bound"].values < 1
    means = data["sine"].values.mean(axis=0)
    turned = ", ".join(f"{value:.3f} at n = {n:.0f}" for value, n in zip(means, sizes, strict=True))
    return [
        Claim.at_most(
            float(np.nanmax(ratio)), 1 + ROUNDING, source="Section 1.1, Davis & Kahan",
            statement="‖sin Θ(V₁, Q₁)‖ ≤ ‖Σ̂ − Σ‖/δ for r = n₁",
            measured=f"largest ratio of the two sides where δ > 0, {over}",
            note=f"δ > 0 in {np.isfinite(ratio).mean():.0%} of the runs, and the bound is below 1 in {useful.mean():.0%}.",
        ),
        Claim.includes(
            slope_interval(sizes, data["distance"].values, level=0.99), -0.5, source="Section 1.1",
            statement="‖Σ̂ − Σ‖ falls like n^(−1/2)",
            measured=f"log-log slope in n, 99 % interval, {over}",
        ),
        Claim.no_slower(
            slope_interval(sizes, data["sine"].values, level=0.99), -0.5, source="Section 1.1",
            statement="V₁ turns towards Q₁: ‖sin Θ‖ = O(n^(−1/2))",
            measured=f"log-log slope in n, 99 % interval, {over}",
            note=f"‖sin Θ‖ is {turned}.",
        ),
    ]  # fmt: skip


def _scaling(cell: Any, data: xr.Dataset) -> list[Claim]:
    x = np.log(np.array(cell.dims, float))
    slopes, off, counts = [], 0.0, 0.0
    for i in data["degree"].values:
        one = data.sel(degree=i)
        counts = max(counts, abs(_slope(x, np.log(one["multiplicity"].values)) - i))
        if float(data["limit"][max(i - 1, 0) if i else 1]) < 1e-20:
            continue  # not seen by the network
        slope = _slope(x, np.log(one["value"].values))
        slopes.append(f"{slope:.3f} for i = {i}")
        off = max(off, abs(slope - (1 - i if i else 0)))
    over = f"{cell.activation}, closed form, {len(cell.dims)} dimensions from {cell.dims[0]} to {cell.dims[-1]}"
    return [
        Claim.at_most(
            off, TENTH, **SECTION,
            statement="ξ_i = Θ(d^(1−i)) for i ≥ 1, and Θ(1) for i = 0",
            measured=f"largest distance of a log-log slope in d from its exponent, i ≤ {cell.degree}, {over}",
            note=f"Slopes: {', '.join(slopes)}.",
        ),
        Claim.at_most(
            counts, TENTH, **SECTION,
            statement="multiplicities B(d, i) = Θ(d^i)",
            measured=f"largest distance of a log-log slope in d from its exponent, i ≤ {cell.degree}, {over}",
        ),
    ]  # fmt: skip


def _assumptions(cell: Any, data: xr.Dataset) -> list[Claim]:
    largest = float(data["supremum"].max())
    energies = "; ".join(
        f"{name}: {', '.join(f'{e:.2g}' if seen else '0' for e, seen in zip(data[key].values, data[f'{key}_seen'].values, strict=True))}"
        for name, key in (("σ'", "first"), ("σ''", "second"))
    )
    needed = [("first", i) for i in range(2)] + [("second", 0)]
    smallest = min(float(data[key][i]) if bool(data[f"{key}_seen"][i]) else 0.0 for key, i in needed)
    every = bool(data["first_seen"].all() & data["second_seen"].all())
    return [
        Claim.at_most(
            largest, 1 + ROUNDING, source="Assumption 2", inside=math.isfinite(largest),
            statement="|σ|, |σ'| and |σ''| are at most 1",
            measured=f"largest of the three suprema, {cell.activation}",
            note="" if math.isfinite(largest) else "σ itself has no bound; Σ has only σ' in it.",
        ),
        Claim.at_least(
            smallest, 0.0, strict=True, source="Assumption 3",
            statement="λ_i(σ')²B(d, i) for i ≤ k and λ_i(σ'')²B(d, i) for i ≤ k − 1 are not zero, k = 1",
            measured=f"smallest of them, {cell.activation}, d = {cell.dim}",
            note=f"For i = 0, …, {cell.degree}: {energies}."
            + ("" if every else " Where one is zero, the block of that degree is missing at larger k."),
        ),
    ]  # fmt: skip


def _slope(x: Float[np.ndarray, " k"], y: Float[np.ndarray, " k"]) -> float:
    return float((y - y.mean()) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum())


def _off_one(interval: Interval) -> float:
    return max(abs(interval.low - 1), abs(interval.high - 1))


def _table(data: xr.Dataset) -> str:
    """Every level's mean next to its prediction and to ξ."""
    means = data["mean"].mean("seed").values
    rows = zip(data["degree"].values, data["multiplicity"].values, means, data["predicted"].values, data["value"].values, strict=True)  # fmt: skip
    return "; ".join(
        f"degree {i}, {count} eigenvalues, mean {mean:.4g} (predicted {told:.4g}, ξ = {value:.4g})"
        for i, count, mean, told, value in rows
    )


def _order(data: xr.Dataset) -> str:
    degrees = ", ".join(str(int(i)) for i in data["degree"].values)
    return f"In the order of their eigenvalues the degrees are {degrees}."


def figures(results: Results) -> list[Figure]:
    kinds = _by_kind(results)
    drawn = []
    blocks = kinds.get("Blocks", [])
    for name, k in dict.fromkeys((cell.activation, cell.degree) for cell, _ in blocks):
        sampled = [
            pair for pair in blocks if (pair[0].activation, pair[0].degree) == (name, k) and pair[0].samples is not None
        ]
        exact = [pair for pair in blocks if (pair[0].activation, pair[0].degree) == (name, k) and not pair[0].samples]
        drawn += [_spectrum(*pairs[-1]) for pairs in (sampled, exact) if pairs]
    scaling, angles, rest = (kinds.get(kind, []) for kind in ("Scaling", "Angles", "Rest"))
    drawn += [_levels(*scaling[0])] if scaling else []
    drawn += [_turning(angles)] if angles else []
    drawn += [_small(rest)] if rest else []
    return drawn


COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")


def _spectrum(cell: Any, data: xr.Dataset) -> Figure:
    plot = new_plot()
    index, values = data["index"].values.astype(float), data["eigenvalue"].values
    points(plot, index, values, name="eigenvalues", colour="grey")
    start = 0
    for at in np.argsort(data["end"].values):
        count, end = int(data["multiplicity"][at]), int(data["end"][at])
        value, degree = float(data["value"][at]), int(data["degree"][at])
        colour = COLOURS[degree % len(COLOURS)]
        line(plot, [1.0, float(index[-1])], [value, value], name=f"ξ_{degree}", colour=colour, dash="dot")
        ratio = float(data["predicted_spread"][at]) / value
        if count > 1 and ratio > 0:
            places = start + 0.5 + np.linspace(0, count, 60, endpoint=False)
            line(plot, places, value * _marchenko_pastur(ratio**2, 1 - (places - start) / count),
                 name=f"degree {degree}, predicted", colour=colour)  # fmt: skip
        start = end
    bottom, top = float(values.min()), float(values.max())
    for end, label in ((_low(data, cell.degree), "end of Q₁"), (int(data["end"].values[-1]), "end of Q₂")):
        line(plot, [end + 0.5, end + 0.5], [bottom, top], name=label, colour="grey",
             dash="dash" if label.endswith("₁") else "dashdot")  # fmt: skip
    style(plot, x="index", y="eigenvalue of Σ", log_x=True, log_y=True)
    source = f"N = {cell.samples} inputs without labels" if cell.samples is not None else "Σ itself, from harmonics"
    caption = (
        f"One network of width m = {cell.width}, d = {cell.dim}, k = {cell.degree}; {source}. Dotted: the eigenvalue of "
        "each degree at infinite width. Lines through the points: what a finite width and sample make of it, by "
        "Marchenko and Pastur's law; nothing is fitted. Upright: where the blocks are predicted to end."
    )
    where = "in a sample" if cell.samples is not None else "of the population"
    return Figure(f"Three blocks {where}: {cell.activation}, k = {cell.degree}", caption, plot)


def _low(data: xr.Dataset, k: int) -> int:
    """How many eigenvalues the degrees up to k have."""
    return int(data["multiplicity"].values[data["degree"].values <= k].sum())


def _marchenko_pastur(ratio: float, levels: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
    """Quantiles of the eigenvalues of a sample covariance, with variance `ratio` < 1 around a mean of 1."""
    a, b = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    angle = np.linspace(0, np.pi, 2000)
    x = (a + b) / 2 - (b - a) / 2 * np.cos(angle)
    mass = np.cumsum((np.sin(angle) ** 2) / x)
    return np.interp(levels, mass / mass[-1], x)


def _levels(cell: Any, data: xr.Dataset) -> Figure:
    plot = new_plot()
    dims = np.array(cell.dims, float)
    for i in data["degree"].values:
        values = data["value"].sel(degree=i).values
        colour = COLOURS[int(i) % len(COLOURS)]
        points(plot, dims, values, name=f"ξ_{i}", colour=colour)
        guide = values[-1] * (dims / dims[-1]) ** (1 - i if i else 0)
        line(plot, dims, guide, name=f"d^{1 - i if i else 0}", colour=colour, dash="dot")
    style(plot, x="dimension d", y="eigenvalue", log_x=True, log_y=True)
    caption = "Eigenvalues of the tangent kernel at infinite width in closed form; dotted: the exponents of Section 4.1."
    return Figure(f"Each degree's eigenvalue against the dimension: {cell.activation}", caption, plot)


def _turning(pairs: list[tuple[Any, xr.Dataset]]) -> Figure:
    plot = new_plot()
    for (cell, data), (first, second) in zip(pairs, (("blue", "sky"), ("vermillion", "orange")), strict=False):
        sizes = np.array(cell.sizes, float)
        sine = data["sine"].values
        points(plot, sizes, sine.mean(axis=0), name=f"‖sin Θ(V₁, Q₁)‖, {cell.activation}", colour=first,
               band=(sine.min(axis=0), sine.max(axis=0)))  # fmt: skip
        bound = data["bound"].values
        known = np.isfinite(bound).all(axis=0)
        line(plot, sizes[known], bound[:, known].mean(axis=0), name=f"Davis and Kahan, {cell.activation}",
             colour=second, dash="dash")  # fmt: skip
    cell = pairs[0][0]
    style(plot, x="training inputs n", y="sine of the largest angle", log_x=True, log_y=True)
    caption = (
        f"d = {cell.dim}, m = {cell.width}, r = n₁ = {cell.dim + 1}; means of {cell.seeds} networks, bars: all of them. "
        "The bound is drawn where every network has one."
    )
    return Figure("The training features' directions turn towards the population's", caption, plot)


def _small(pairs: list[tuple[Any, xr.Dataset]]) -> Figure:
    plot = new_plot()
    for (cell, data), colour in zip(pairs, ("blue", "vermillion"), strict=False):
        widths = np.array(cell.widths, float)
        means = data["mean"].values
        points(plot, widths, means.mean(axis=0), name=cell.activation, colour=colour,
               band=(means.min(axis=0), means.max(axis=0)))  # fmt: skip
        line(plot, widths, data["predicted"].values, name=f"predicted, {cell.activation}", colour=colour, dash="dot")
    cell = pairs[0][0]
    style(plot, x="width m", y="mean of Λ₃", log_x=True, log_y=True)
    caption = f"d = {cell.dim}, k = 1, N = {cell.samples} inputs, {cell.seeds} networks (bars: all of them)."
    return Figure("The small eigenvalues are 1/m on average, up to a constant", caption, plot)
