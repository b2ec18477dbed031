"""What the results on higher orders say: their claims and figures."""

from fractions import Fraction

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results, mean_interval, slope_interval
from offtangent.lab.statistics import Interval
from offtangent.report import Figure, line, new_plot, points, style
from offtangent.theory.bai_lee.orders import matched_moments

COLOURS = ("vermillion", "blue", "green", "purple", "orange")
ROUNDING = 1e-5  # of a square: the terms come in float32
HIGH = {"1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵"}


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for order in results.values("order"):
        for shift in results.where(order=order).values("shift"):
            found += _of_law(order, shift, results.where(order=order, shift=shift))
    return found


def _of_law(order: int, shift: float, results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    law, cell = matched_moments(order, shift=shift), results.pairs[0][0]
    pairs = np.array([float(one.pairs) for one, _ in results])
    nodes = "centred nodes" if shift == 0 else f"nodes shifted by {shift:g}"
    over = (
        f"k = {order}, {nodes}, σ = exp(z/2), n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds, {len(pairs)} "
        f"widths from {pairs[0]:.0f} to {pairs[-1]:.0f} pairs"
    )
    drawn = f"log-log slope in m of the root mean square over inputs and draws of z±, 99 % interval, {over}"
    exact = (
        f"log-log slope in m of its mean over z± in closed form, root mean square over inputs, 99 % interval, {over}"
    )
    claims = []
    for j in range(1, order + 2):
        if j == order:
            continue
        exponent = float(law.exponent(j))
        if j == order + 1 and shift:  # a mean and a fluctuation that falls faster: the mean alone has the exponent
            table, what, measured = _table(results, "mean", j), f"E_z f^({j})", exact
        else:
            table, what, measured = _table(results, "size", j), f"f^({j})", drawn
        claims.append(
            Claim.no_slower(
                slope_interval(pairs, table, level=0.99), exponent,
                source="Section 6.1",
                statement=f"{what} = O(m^({_fraction(law.exponent(j))})) for k = {order}, {nodes}",
                measured=measured,
            )
        )  # fmt: skip
    stays = slope_interval(pairs, _table(results, "mean", order), level=0.99)
    furthest, ratio = _furthest(results, order)
    return [
        *claims,
        Claim.includes(
            _widened(stays, 1e-9), 0.0,
            source="Section 6.1",
            statement=f"f^({order}) = O(1), neither growing nor falling, for k = {order}, {nodes}",
            measured=exact,
            note=f"f^({order}) over the rest, {_dominance(results, order)}.",
        ),
        Claim.at_most(
            slope_interval(pairs, _rows(results, "distance"), level=0.99), 0.0, strict=True,
            source="Section 6.1",
            statement=f"f^({order}) tends to (βᵀx){HIGH[str(order)]} E[σ^({order})(g)]/{order}!, {nodes}",
            measured="log-log slope in m of the distance, root mean square over inputs and draws of z±, 99 % interval, "
            f"{over}",
            note=f"Distance over the limit's size: {_relative(results)}.",
        ),
        Claim.includes(
            ratio, 1.0,
            source="Section 6.1",
            statement=f"every f^(j), j ≤ {order + 1}, has the mean square that the moments of z± give it, for "
            f"k = {order}, {nodes}",
            measured=f"measured over exact for f^({furthest}), the furthest from 1; 99.9 % interval for all j; {over}",
        ),
    ]  # fmt: skip


def _furthest(results: Results, order: int) -> tuple[int, Interval]:
    """The term whose mean square, over the exact one, is the furthest from one in units of its interval."""
    found = {}
    for j in range(1, order + 2):
        ratios = (_table(results, "size", j) / _table(results, "expected", j)) ** 2
        found[j] = _widened(mean_interval(ratios.ravel(), level=1 - 0.001 / (order + 1)), ROUNDING)
    furthest = max(found, key=lambda j: abs(found[j].value - 1) / (found[j].high - found[j].low))
    return furthest, found[furthest]


def _widened(interval: Interval, by: float) -> Interval:
    """What is exact to rounding may have an interval of no width."""
    return Interval(interval.value, interval.low - by, interval.high + by)


def _table(results: Results, name: str, term: int) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].sel(term=term).values for _, data in results], axis=1)


def _rows(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def _dominance(results: Results, order: int) -> str:
    first, last = (results.pairs[i][1]["size"].mean("seed") for i in (0, -1))
    values = [float(one.sel(term=order) / one.drop_sel(term=order).max()) for one in (first, last)]
    return f"the largest of them: {values[0]:.3g} at the smallest width, {values[1]:.3g} at the largest"


def _relative(results: Results) -> str:
    values = [float((data["distance"] / data["limit"]).mean()) for _, data in (results.pairs[0], results.pairs[-1])]
    return f"{values[0]:.2g} at the smallest width, {values[1]:.2g} at the largest"


def _fraction(exponent: Fraction) -> str:
    return str(exponent).replace("-", "−")


def figures(results: Results) -> list[Figure]:
    drawn = []
    for order in results.values("order"):
        chosen = results.where(order=order, shift=0.5)
        if len(chosen) < 2:
            continue
        pairs = np.array([float(one.pairs) for one, _ in chosen])
        law, plot = matched_moments(order, shift=0.5), new_plot()
        for j in range(1, order + 2):
            table, colour = _table(chosen, "size", j), COLOURS[j - 1]
            exponent = float(law.exponent(j))
            low, high = table.min(axis=0), table.max(axis=0)
            points(plot, pairs, table.mean(axis=0), name=f"f^({j})", colour=colour, band=(low, high))
            start = float(_table(chosen, "expected", j)[:, 0].mean())
            trend = start * (pairs / pairs[0]) ** exponent
            line(plot, pairs, trend, name=f"m^({_fraction(law.exponent(j))})", colour=colour, dash="dot")
        style(plot, x="pairs of neurons m", y="root mean square over inputs", log_x=True, log_y=True)
        cell = chosen.pairs[0][0]
        caption = (
            f"σ = exp(z/2), nodes shifted by 1/2, n = {cell.samples}, d = {cell.dim}, {cell.seeds} seeds (bars: all of "
            "them). Dotted: the exponents of Section 6.1, from the first exact value."
        )
        drawn.append(Figure(f"For k = {order}, f^({order}) stays and all others fall", caption, plot))
    return drawn
