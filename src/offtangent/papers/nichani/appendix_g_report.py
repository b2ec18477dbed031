"""What the sweeps of λ₁ say: their claims and figures."""

from typing import Any

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import ratio_interval
from offtangent.papers.nichani.fig1_report import COLOURS, FALL, NAMES, SIGMAS, curve
from offtangent.report import Figure, new_plot
from offtangent.report.axes import style


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
    setting = f"({SIGMAS[cell.sigma]}, {NAMES[cell.setting]})"
    return [
        Claim.at_most(
            ratio_interval(ends[0.0], ends[best]), FALL, strict=True, source="Appendix G",
            statement=f"an explicit R₁ is not needed: no λ₁ lowers the test loss by the factor 3 of R₃ {setting}",
            measured=f"test loss at λ₁ = 0 over that at the best λ₁ > 0, {best:g}, 95 % interval, {_where(cell)}",
            note=f"R₁ on test inputs and test loss at {table}. The best λ₁ is chosen on other test inputs. Without R₁ "
            f"the last training loss is up to {fit:.2g} of the labels' mean square; Figure 1 has that run for longer.",
        ),
    ]  # fmt: skip


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
