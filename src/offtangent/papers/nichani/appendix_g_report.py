"""What the sweeps of λ₁ say: their claims and figures.

"Not needed" is a test of equivalence from one side: all of the interval of the gain by the best λ₁ lies below `MARGIN`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Results
from offtangent.lab.claims import Verdict
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import ratio_interval
from offtangent.papers.nichani import _joint
from offtangent.papers.nichani.fig1_report import COLOURS, NAMES, SIGMAS, curve
from offtangent.report import Figure, new_plot
from offtangent.report.axes import style

# A gain of the test loss up to which R₁ is not needed: the usual margin of equivalence, 0.8 to 1.25.
MARGIN = 1.25


def claims(results: Results) -> list[Claim]:
    return [claim for cell, data in results for claim in _of(cell, data)]


def _where(cell: Any) -> str:
    return (
        f"{NAMES[cell.setting]}, {SIGMAS[cell.sigma]}, λ₃ = 10, d = {cell.dim}, n = {cell.samples}, m = {cell.width}, "
        f"{cell.steps} steps, {len(cell.seeds)} seeds"
    )


def _of(cell: Any, data: xr.Dataset) -> list[Claim]:
    last = data.isel(look=-1)
    used = last.sel(strength=[strength for strength in cell.strengths if strength > 0])
    best = float(used["choose"].mean("seed").idxmin())
    ends = {strength: np.asarray(last["test"].sel(strength=strength), np.float64) for strength in (0.0, best)}
    table = "; ".join(
        f"λ₁ = {strength:g}: {float(last['risk'].sel(strength=strength).mean()):.2g}, "
        f"{float(last['test'].sel(strength=strength).mean()):.3f}"
        for strength in cell.strengths
    )
    fit = float((last["train"].sel(strength=0.0) / last["size"]).max())
    statement = (
        f"an explicit R₁ is not needed: no λ₁ lowers the test loss by more than a factor of {MARGIN:g} "
        f"({SIGMAS[cell.sigma]}, {NAMES[cell.setting]})"
    )
    gain = ratio_interval(ends[0.0], ends[best])
    note = (
        f"R₁ on test inputs and test loss at {table}. The best λ₁ is chosen on other test inputs. Without R₁ the last "
        f"training loss is up to {fit:.2g} of the labels' mean square; Figure 1 has that run for longer."
    )
    if set(cell.seeds) & set(_joint.SEEDS):
        why = (
            "The margin was set after these seeds had been seen, so that it is judged on new ones. Here the test loss "
            f"at λ₁ = 0 over that at the best λ₁ > 0, {best:g}, is {gain.value:.4g} [{gain.low:.4g}, {gain.high:.4g}]. "
            f"{note}"
        )
        return [Claim.not_run(source="Appendix G", statement=statement, reason="data", why=why, profile="laptop")]
    claim = Claim.at_most(
        gain,
        MARGIN,
        source="Appendix G",
        statement=statement,
        measured=f"test loss at λ₁ = 0 over that at the best λ₁ > 0, {best:g}, 95 % interval, {_where(cell)}",
        hypotheses=(Hypothesis("activation", SIGMAS[cell.sigma], "=", SIGMAS["sigmoid"], "Section 2.1"),),
        note=note,
    )
    if claim.verdict is Verdict.FAILS and gain.low <= MARGIN < gain.high:
        return [replace(claim, verdict=Verdict.UNTESTABLE, note=f"The interval holds the margin. {note}")]
    return [claim]


def figures(results: Results) -> list[Figure]:
    drawn = []
    for cell, data in results:
        for name, axis, title in (
            ("test", "test loss", "The test loss hardly needs R₁"),
            ("risk", "R₁ on test inputs", "What λ₁ holds down"),
        ):
            plot = new_plot()
            for k, strength in enumerate(cell.strengths):
                curve(
                    plot, data[name].sel(strength=strength), cell.dim, f"λ₁ = {strength:g}", COLOURS[k % len(COLOURS)]
                )
            style(plot, x=f"log_d t, d = {cell.dim}", y=axis)
            caption = f"{_where(cell)}; mean over seeds, band: one standard deviation."
            drawn.append(Figure(f"{title}: {SIGMAS[cell.sigma]}, {NAMES[cell.setting]}", caption, plot))
    return drawn
