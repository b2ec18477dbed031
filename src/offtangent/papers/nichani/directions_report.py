"""What the paths of the weights say: their claims and figures."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import ratio_interval
from offtangent.papers.nichani.fig1_report import SIGMAS
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style

PARTS = {
    "Q1": ("Q₁: linear functions", "blue"),
    "Q2": ("Q₂: felt on the population", "orange"),
    "Q3": ("Q₃: the good directions", "green"),
    "V2": ("V₂: overfits", "vermillion"),
}
TERMS = {"linear": ("E f_L²", "orange"), "quadratic": ("E f_Q²", "blue"), "test": ("test loss", "vermillion")}


ARMS = {"none": "without R₃", "R3": "with R₃", "R1 R3": "with R₁ and R₃"}


def claims(results: Results) -> list[Claim]:
    return [claim for cell, data in results for claim in _of(cell, data)]


def _of(cell: Any, data: xr.Dataset) -> list[Claim]:
    last = data.isel(look=-1)

    def end(name: str, arm: str) -> Float[np.ndarray, " s"]:
        return np.asarray(last[name].sel(arm=arm), np.float64)

    def means(name: str) -> str:
        return ", ".join(f"{words}: {end(name, arm).mean():.3g}" for arm, words in ARMS.items()) + "."

    over = (
        f"{SIGMAS[cell.sigma]}, d = {cell.dim}, n = {cell.samples}, m = {cell.width}, {cell.steps} steps of perturbed "
        f"descent, λ₃ = 10 (and λ₁ = 1), {len(cell.seeds)} seeds, 95 % interval"
    )
    sigma = f"({SIGMAS[cell.sigma]})"

    def changed(
        name: str, statement: str, source: str, *, less: bool, arm: str = "R3", against: str = "none", **words: Any
    ) -> Claim:
        judge = Claim.at_most if less else Claim.at_least
        return judge(
            ratio_interval(end(name, arm), end(name, against)), 1.0, strict=True, source=source,
            statement=f"{statement} {sigma}", measured=f"{ARMS[arm]} over {ARMS[against]}, {over}",
            note=means(name), **words,
        )  # fmt: skip

    def share(arm: str) -> Float[np.ndarray, " s"]:
        """How many times further W went in Q₃ than in Q₂."""
        return end("Q3", arm) / end("Q2", arm)

    return [
        changed("V2", "with R₃ the weights move less in V₂", "Goal 1", less=True),
        changed("Q3", "with R₃ the weights move further in Q₃", "Goal 2", less=False),
        Claim.at_least(
            ratio_interval(share("R3"), share("none")), 1.0, strict=True, source="Goal 2",
            statement=f"R₃ turns the weights from Q₂ to Q₃: ‖P_Q₃W‖/‖P_Q₂W‖ rises {sigma}",
            measured=f"with R₃ over without, {over}",
            note=f"‖P_Q₃W‖/‖P_Q₂W‖: {', '.join(f'{words}: {share(arm).mean():.3g}' for arm, words in ARMS.items())}. "
            f"Dimensions: {_sizes(data)}.",
        ),
        changed("Q2", "with R₁ and R₃ the weights move less in Q₂", "Goal 2", less=True, arm="R1 R3"),
        changed("Q2", "R₁ is what does it: with it they move less in Q₂ than with R₃ alone", "Goal 2", less=True,
                arm="R1 R3", against="R3"),
        changed("Q3", "with R₁ as well the weights still move further in Q₃", "Goal 2", less=False, arm="R1 R3"),
        changed("risk", "with R₁ and R₃ R₁ = E f_L(x; Π_{>r}W)² is less on the population", "Section 5", less=True,
                arm="R1 R3"),
        changed("quadratic", "with R₃ the quadratic term learns what f_L is kept from: E f_Q² rises", "Section 5",
                less=False),
        changed("test", "with R₃ the test loss is less", "Section 5", less=True),
        changed("furthest", "with R₃ neurons move further, in units of m^(−1/2)", "Section 1", less=False),
    ]  # fmt: skip


def _sizes(data: xr.Dataset) -> str:
    sizes = zip(data["block"].values, data["size"].values, strict=True)
    return ", ".join(f"{PARTS[str(name)][0][:2]} {int(size)}" for name, size in sizes)


def figures(results: Results) -> list[Figure]:
    return [figure for cell, data in results for arm in data["arm"].values for figure in _figures(cell, data, str(arm))]


def _figures(cell: Any, data: xr.Dataset, arm: str) -> list[Figure]:
    chosen, how = data.sel(arm=arm), f"({ARMS[arm]}, {SIGMAS[cell.sigma]})"
    where = f"d = {cell.dim}, n = {cell.samples}, m = {cell.width}, {len(cell.seeds)} seeds: mean, standard deviation"
    parts, terms = _plot(chosen, PARTS, "norm of the part of W"), _plot(chosen, TERMS, "mean square")
    return [
        Figure(f"Where the weights go {how}", f"{where}. Dimensions: {_sizes(data)}.", parts),
        Figure(f"What f_L and f_Q learn {how}", f"On test inputs; {where}.", terms),
    ]


def _plot(data: xr.Dataset, names: dict[str, tuple[str, str]], axis: str) -> Any:
    plot = new_plot()
    shown = data.isel(look=data["look"] > 0)
    for name, (label, colour) in names.items():
        mean, spread = shown[name].mean("seed").values, shown[name].std("seed").values
        line(
            plot,
            shown["look"].values.astype(float),
            mean,
            name=label,
            colour=colour,
            band=(mean - spread, mean + spread),
        )
    style(plot, x="step", y=axis, log_x=True)
    return plot
