"""What the spectra say: their claims."""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, mean_interval, slope_interval
from offtangent.special.sphere import polynomial_dimension

ROUNDING = 1e-9
TENTH = 0.05  # a slope this close to a whole number is that number to one decimal
ENOUGH = 8  # a dimension from which on ξ₂/ξ₃ grows as it does for large d

Pairs = list[tuple[Any, xr.Dataset]]


def claims(results: Results) -> list[Claim]:
    judges = {"Rest": _rest, "Angles": _angles, "Scaling": _scaling, "Assumptions": _assumptions}
    found: list[Claim] = []
    for name in dict.fromkeys(cell.activation for cell, _ in results):
        groups: dict[tuple[int, bool], Pairs] = {}
        others: list[Claim] = []
        for cell, data in results.where(activation=name):
            kind = type(cell).__name__
            if kind == "Blocks":
                groups.setdefault((cell.degree, cell.samples is None), []).append((cell, data))
            else:
                others += judges[kind](cell, data)
        for _, pairs in sorted(groups.items(), key=lambda group: group[0]):
            found += _blocks(pairs)
        found += others
    return found


def _blocks(pairs: Pairs) -> list[Claim]:
    """Of one activation, one k, and one source: samples or the population."""
    cell, shown = pairs[-1]
    over = _over(pairs)
    said: dict[str, Any] = {"source": "Section 4.1"}
    spread = max(float((data["predicted_spread"] / data["value"]).max()) for _, data in pairs)
    right = np.concatenate([(data["break"] == data["end"]).all("level").values for _, data in pairs])
    ends = ", ".join(str(int(end)) for end in shown["end"])
    order = ", ".join(str(int(i)) for i in shown["degree"])
    found = [
        Claim.at_most(
            max(map(_off_one, _levels(pairs))), spread**2, **said,
            statement="B(d, i) eigenvalues around ξ_i for every degree i ≤ 2k: their mean is ξ_i, corrected to second "
            "order for the finite width and sample",
            measured="|mean/prediction − 1| of the worst degree, the far end of the 99 % interval over networks; "
            f"allowed is the second order in the relative spread of a block, {over}",
            note=f"d = {cell.dim}: {_table(shown)}.{_missing(cell.degree, shown)}",
        ),
        Claim.at_least(
            float(right.mean()), 1.0, **said,
            statement="the spectrum breaks where degrees end, and nowhere else: its largest gaps λ_j/λ_{j+1}, as many "
            f"as there are levels, stand after {ends} eigenvalues at d = {cell.dim}",
            measured=f"share of the networks in which all of them do, {over}",
            note=f"In the order of their eigenvalues the degrees are {order}.",
        ),
    ]  # fmt: skip
    if cell.samples is None:
        excess = min(float((data["sum"] / (data["multiplicity"] * data["value"]).sum()).min()) for _, data in pairs)
        found.append(
            Claim.at_least(
                excess, 1 - ROUNDING, source="Section 4.1, Ky Fan",
                statement="Σ_{j≤n_2k} λ_j ≥ Σ_{i≤2k} B(d, i)ξ_i at every width: the trace of a degree's part does not "
                "depend on the weights",
                measured=f"smallest ratio of the two sides, {over}", identity=True,
            )
        )  # fmt: skip
    else:
        scatter = np.concatenate([_scatter(data) for _, data in pairs])
        found.append(
            Claim.at_most(
                _off_one(mean_interval(scatter, level=0.99)), spread, **said,
                statement="the blocks spread around ξ_i as much as their neurons and samples say",
                measured="|scatter/prediction − 1|, scatter the sum of (λ/ξ_i − 1)² over all eigenvalues, the far end "
                f"of the 99 % interval over networks; allowed is the relative spread of a block, {over}",
            )
        )  # fmt: skip
    return found + (_gaps(pairs, over) if cell.degree == 1 and len(pairs) > 2 else [])


def _gaps(pairs: Pairs, over: str) -> list[Claim]:
    """λ_min(Λ₁) ≫ λ_max(Λ₂) ≫ λ_max(Λ₃): in the paper's sense, ratios that grow with d."""
    names = {"first": "λ_min(Λ₁) ≫ λ_max(Λ₂)", "second": "λ_min(Λ₂) ≫ λ_max(Λ₃)"}
    if pairs[0][0].samples is not None:
        del names["second"]  # of the order of d² inputs cannot tell Q₂ from Q₃ better as d grows: "Goal #2"
    dims = [cell.dim for cell, _ in pairs]
    found = []
    for name, inequality in names.items():
        statement = f"{inequality}: the ratio at the predicted place grows with d"
        if name == "second" and max(dims) < ENOUGH:
            why = f"For d ≤ {max(dims)} not even the levels at infinite width move apart."
            found.append(
                Claim.not_run(reason="size", source="Section 1.1", statement=statement, profile="laptop", why=why)
            )
            continue
        table = np.stack([data[name].values for _, data in pairs], axis=1)
        means = ", ".join(f"{value:.3g} at d = {dim}" for value, dim in zip(table.mean(axis=0), dims, strict=True))
        found.append(
            Claim.at_least(
                slope_interval(np.array(dims, float), table), 0.0, strict=True, source="Section 1.1",
                statement=statement, measured=f"log-log slope in d, 95 % interval, {over}",
                note=f"Mean ratio {means}.",
            )
        )  # fmt: skip
    return found


def _rest(cell: Any, data: xr.Dataset) -> list[Claim]:
    widths = np.array(cell.widths, float)
    slope = slope_interval(widths, data["mean"].values, level=0.99)
    off = Interval(abs(slope.value + 1), 0.0, max(abs(slope.low + 1), abs(slope.high + 1)))
    taken = polynomial_dimension(cell.dim, 2)
    scaled, told = widths * data["mean"].values.mean(axis=0), widths * data["predicted"].values
    return [
        Claim.at_most(
            off, 2 * taken / (cell.dim * cell.widths[0]), source="Section 4.1",
            statement="the entries of Λ₃ are of order 1/m on average",
            measured="distance from −1 of the log-log slope in m of the mean of Λ₃, 99 % interval; allowed is the "
            "share of the directions that Q₁ and Q₂ take at the smallest width, "
            f"{cell.activation}, k = 1, d = {cell.dim}, N = {cell.samples}, {cell.seeds} networks, {len(widths)} "
            f"widths from {widths[0]:.0f} to {widths[-1]:.0f}",
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
    sine, bound = data["sine"].values, data["bound"].values  # NaN where there is no bound
    known, useful = np.isfinite(bound).mean(), (bound < 1).mean()
    turned = ", ".join(f"{value:.3f} at n = {n:.0f}" for value, n in zip(sine.mean(axis=0), sizes, strict=True))
    slope = f"log-log slope in n, 99 % interval, {over}"
    return [
        Claim.at_most(
            float(np.nanmax(sine / bound)), 1 + ROUNDING, source="Section 1.1, Davis & Kahan",
            statement="‖sin Θ(V₁, Q₁)‖ ≤ ‖Σ̂ − Σ‖/δ for r = n₁",
            measured=f"largest ratio of the two sides where δ > 0, {over}", identity=True,
            note=f"δ > 0 in {known:.0%} of the runs, and the bound is below 1 in {useful:.0%}.",
        ),
        Claim.includes(
            slope_interval(sizes, data["distance"].values, level=0.99), -0.5, source="Section 1.1",
            statement="‖Σ̂ − Σ‖ falls like n^(−1/2)", measured=slope,
        ),
        Claim.no_slower(
            slope_interval(sizes, sine, level=0.99), -0.5, source="Section 1.1",
            statement="V₁ turns towards Q₁: ‖sin Θ‖ = O(n^(−1/2))", measured=slope, note=f"‖sin Θ‖ is {turned}.",
        ),
    ]  # fmt: skip


def _scaling(cell: Any, data: xr.Dataset) -> list[Claim]:
    x = np.log(np.array(cell.dims, float))
    degrees = [int(i) for i in data["degree"].values]
    seen = [i for i in degrees if i == 0 or bool(data["seen"].sel(degree=i - 1))]
    slopes = {i: _slope(x, np.log(data["value"].sel(degree=i).values)) for i in seen}
    counts = {i: _slope(x, np.log(data["multiplicity"].sel(degree=i).values)) for i in degrees}
    over = f"{cell.activation}, closed form, {len(cell.dims)} dimensions from {cell.dims[0]} to {cell.dims[-1]}"
    measured = f"largest distance of a log-log slope in d from its exponent, i ≤ {degrees[-1]}, {over}"
    unseen = [i for i in degrees if i not in seen]
    return [
        Claim.at_most(
            max(abs(slope - min(1 - i, 0)) for i, slope in slopes.items()), TENTH, source="Section 4.1",
            statement="ξ_i = Θ(d^(1−i)) for i ≥ 1, and Θ(1) for i = 0", measured=measured,
            note=f"Slopes: {', '.join(f'{slope:.3f} for i = {i}' for i, slope in slopes.items())}."
            + (f" Degree {unseen[0]} is not seen: λ_i(σ') is zero for i = {unseen[0] - 1}." if unseen else ""),
        ),
        Claim.at_most(
            max(abs(slope - i) for i, slope in counts.items()), TENTH, source="Section 4.1",
            statement="the multiplicities are B(d, i) = Θ(d^i)", measured=measured,
        ),
    ]  # fmt: skip


def _assumptions(cell: Any, data: xr.Dataset) -> list[Claim]:
    largest = float(data["supremum"].max())
    energies = {name: np.where(data[f"{name}_seen"].values, data[name].values, 0.0) for name in ("first", "second")}
    smallest = min(*energies["first"][:2], energies["second"][0])
    told = "; ".join(
        f"{name}: {', '.join(f'{energy:.2g}' for energy in energies[part])}"
        for name, part in (("σ'", "first"), ("σ''", "second"))
    )
    zero = any((values == 0).any() for values in energies.values())
    named = (Hypothesis("activation", cell.activation, "=", "sigmoid(z − 1)", "Section 2.1, the sigmoid with a shift"),)
    return [
        Claim.at_most(
            largest, 1 + ROUNDING, source="Assumption 2", hypotheses=named,
            statement="|σ|, |σ'| and |σ''| are at most 1 (printed: less than 1, which the sigmoid's supremum is not)",
            measured=f"largest of the three suprema, {cell.activation}",
            note="" if math.isfinite(largest) else "σ itself has no bound; Σ has only σ' in it.",
        ),
        Claim.at_least(
            float(smallest), 0.0, strict=True, source="Assumption 3",
            statement="λ_i(σ')²B(d, i) for i ≤ k and λ_i(σ'')²B(d, i) for i ≤ k − 1 are not zero, k = 1",
            measured=f"smallest of them, {cell.activation}, d = {cell.dim}",
            note=f"For i = 0, …, {cell.degree}: {told}."
            + (" Where one is zero, a larger k misses the block of a degree." if zero else ""),
        ),
    ]  # fmt: skip


def _levels(pairs: Pairs) -> list[Interval]:
    """Each degree's mean over its prediction, in all networks."""
    found = []
    for degree in pairs[0][1]["degree"].values:
        ratios = []
        for _, data in pairs:
            one = data.isel(level=int(np.flatnonzero(data["degree"].values == degree)[0]))
            ratios.append((one["mean"] / one["predicted"]).values)
        found.append(mean_interval(np.concatenate(ratios), level=0.99))
    return found


def _scatter(data: xr.Dataset) -> Float[np.ndarray, " s"]:
    """Σ (λ/ξ − 1)² over all eigenvalues of each network, over what is predicted of it."""
    count, value = data["multiplicity"], data["value"]
    found = count * (data["spread"] ** 2 + (data["mean"] - value) ** 2) / value**2
    return np.asarray(found.sum("level") / (count * (data["predicted_spread"] / value) ** 2).sum("level"))


def _over(pairs: Pairs) -> str:
    cell = pairs[0][0]
    source = "of Σ itself, from harmonics" if cell.samples is None else "from samples"
    sizes = "; ".join(
        f"d = {one.dim}: m = {one.width}" + ("" if one.samples is None else f", N = {one.samples}") for one, _ in pairs
    )
    return f"{cell.activation}, k = {cell.degree}, {source}, {cell.seeds} networks each, {sizes}"


def _table(data: xr.Dataset) -> str:
    """Every level's mean next to its prediction and to ξ."""
    rows = []
    for at in range(data.sizes["level"]):
        one = data.isel(level=at)
        mean, told, value = (float(number) for number in (one["mean"].mean(), one["predicted"], one["value"]))
        rows.append(
            f"degree {int(one['degree'])}, {int(one['multiplicity'])} of mean {mean:.4g} (predicted {told:.4g}, "
            f"ξ = {value:.4g})"
        )
    return "; ".join(rows)


def _missing(k: int, data: xr.Dataset) -> str:
    missing = sorted(set(range(2 * k + 1)) - {int(i) for i in data["degree"]})
    names = ", ".join(map(str, missing))
    return f" The network does not see degree {names}: ξ is zero, and its block is missing from Q₂." if missing else ""


def _slope(x: Float[np.ndarray, " k"], y: Float[np.ndarray, " k"]) -> float:
    return float((y - y.mean()) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum())


def _off_one(interval: Interval) -> float:
    return max(abs(interval.low - 1), abs(interval.high - 1))
