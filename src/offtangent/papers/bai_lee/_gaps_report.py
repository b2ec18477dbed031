"""What the measured gap of Theorem 6 says."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.sweeps import Sweep
from offtangent.papers.bai_lee._gaps import DELTA, NORM
from offtangent.report import Figure, finished, new_plot, power, series

SOURCE = "Theorem 6"
STATEMENTS = {
    "samples": "E[L_P(Ŵ) − L(Ŵ)] = Õ(n^(−1/2)) for a Ŵ that depends on the data",
    "width": "E[L_P(Ŵ) − L(Ŵ)] grows with the width no faster than √log(2dm)",
    "dim": "E[L_P(Ŵ) − L(Ŵ)] falls with d at the same n, B_x and B_w where inputs are isotropic",
}
ROUNDING = 1e-9


def claims(gaps: Results) -> Iterator[Claim]:
    """Theorem 6 by its exponents in n, m and d.

    Args:
        gaps: The cells of the gap; none in records from before there were any.

    Returns:
        A claim for each of the three.
    """
    for field, statement in STATEMENTS.items():
        sweep = _sweep(gaps, field)
        if sweep is None:
            why = "This record has no three sizes of it."
            yield Claim.not_run(source=SOURCE, statement=statement, reason="size", why=why, profile="laptop")
        else:
            yield _of(field, sweep, statement)


def _sweep(gaps: Results, field: str) -> Sweep[Any] | None:
    if not len(gaps):
        return None
    cells, fixed = gaps.along(field), {"samples": "n", "dim": "d", "width": "m"}
    cell = cells.first
    about = ", ".join(f"{letter} = {getattr(cell, name)}" for name, letter in fixed.items() if name != field)
    of_labels = "labels without signal and the Ŵ that fits them best, logistic loss, the sphere, B_x = B_w = 1"
    return cells.sweep(
        field,
        f"{of_labels}, {about}, {cell.seeds} seeds",
        symbol=fixed[field],
        noun={"samples": "sizes of the sample", "dim": "dimensions", "width": "widths"}[field],
    )


def _of(field: str, sweep: Sweep[Any], statement: str) -> Claim:
    gap = sweep["gap"]
    norm = Hypothesis("‖Ŵ‖_{2,4}", float(sweep["norm"].max()), "≤", NORM + ROUNDING, "Theorem 6, B_w = 1")
    words: dict[str, Any] = {"source": SOURCE, "statement": statement, "hypotheses": (norm,)}
    if field == "dim":
        ratio = sweep.cell.samples / float(sweep.sizes[-1])
        words["hypotheses"] = (norm, Hypothesis("n/d at the largest d", ratio, "≥", 1.0, "n ≥ O(K⁴d)", given=False))
    sizes = f"L_P − L: {', '.join(f'{one:.2g}' for one in gap.mean(axis=0))}."
    if field == "samples":
        bounds = (sweep[name].mean(axis=0)[-1] for name in ("quadratic_bound", "bound"))
        free, whole = (f"{one:.3g}" for one in bounds)
        note = (
            f"{sizes} The bound with its proof's constants, and δ = {DELTA:g} in (4), is {free} at the largest n, and "
            f"{whole} with what the width adds: more than any gap of a loss that is about log 2. It could not be "
            "contradicted; its exponents can. (The statement prints L − L_P.)"
        )
        return sweep.slope("gap", "≤", -0.5, of="L_P − L", note=note, **words)
    if field == "width":
        scaled = gap / np.sqrt(np.log(2 * sweep.cell.dim * sweep.sizes))
        return sweep.slope(scaled, "≤", 0.0, of="(L_P − L)/√log(2dm)", note=sizes, **words)
    note = (
        f"{sizes} √d M_(x,op): {', '.join(f'{one:.3g}' for one in sweep['spread'].mean(axis=0))}. In the bound "
        "M_(x,op) = O(1/√d) gains at most d^(−1/2), and inputs on a line would gain nothing."
    )
    return sweep.slope("gap", "<", 0.0, of="L_P − L", note=note, **words)


def figure(gaps: Results) -> Figure:
    """The gap against n.

    Args:
        gaps: The cells of the gap.

    Returns:
        The figure, with n^(−1/2) from its first point.
    """
    cells, plot = gaps.along("samples"), new_plot()
    sizes, table, cell = cells.field("samples"), cells.table("gap"), cells.first
    series(plot, sizes, table, name="L_P(Ŵ) − L(Ŵ)", colour="blue")
    power(plot, sizes, -0.5, through=table[:, 0].mean(), name="n^(−1/2)")
    caption = (
        f"Labels without signal, Ŵ that fits them best with ‖W‖_(2,4) ≤ 1; d = {cell.dim}, m = {cell.width}, "
        f"{cell.seeds} seeds (bars: all of them)."
    )
    title = "Theorem 6: the risk of what fits noise falls back like n^(−1/2)"
    return finished(plot, title, caption, x="samples n", y="L_P − L")
