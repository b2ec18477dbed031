"""What the sweeps of λ₃ say: their claims and figures.

The paper's own settings are judged, and lead: that of its code, which made the figure (Gaussian inputs, r = d), and
that of its text (inputs on the sphere, r = n₁ = d + 1), both with sigmoid(z − 1). The others are shown beside them,
outside the hypothesis.
"""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis, unmet
from offtangent.lab.statistics import mean_interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.special.sphere import harmonic_dimension
from offtangent.theory.nichani.choice import sample_needs

COLOURS = ("vermillion", "orange", "purple", "sky", "blue", "green")
NAMES = {"sphere": "sphere", "gaussian": "Gaussian inputs"}
SIGMAS = {"softplus": "softplus", "sigmoid": "sigmoid(z − 1)"}
OTHERS = {
    ("linear", 0.0): ("f_L alone (the NTK)", "orange"),
    ("quadratic", 0.0): ("f_Q alone (QuadNTK)", "purple"),
    ("network", 0.0): ("the network, λ₃ = 0", "sky"),
    ("network", 10.0): ("the network, λ₃ = 10", "green"),
}
EVEN = " With softplus σ'' is even and so is f_Q: alone it can never learn the linear part of the target."
FIT = 0.01  # of the labels' mean square: a training loss that counts as zero
RANK = 2  # K of Remark 1: the targets have two ridges, a linear and a square one
OWN = {"gaussian": (0, "the authors' code: r = d"), "sphere": (1, "Section 5: r = n_1 = d + 1")}  # r − d
PAPER = {
    "gaussian": " The paper's text: near 0.6 for small λ₃, around 0.2 for large; its stored figure, at d = 100, "
    "n = 1000, m = 10 000: 0.50 at λ₃ = 0, then 0.48, 0.34, 0.16, 0.14 and 0.21 at 0.01 to 100.",
    "sphere": "",
}


class _Sweep:
    """The joint model in one setting, and the learners beside it: those without R₃ are the same for every r."""

    def __init__(self, results: Results, beside: Results):
        self.cell, self.data = results.where(model="joint").pairs[0]
        self.others = {
            (cell.model, strength): data.sel(strength=strength)
            for cell, data in beside
            for strength in cell.strengths
            if cell.model != "joint" and (strength == 0 or cell.rank == self.cell.rank)
        }
        self.last = self.data.isel(look=-1)
        self.best = float(self.last["choose"].mean("seed").idxmin())  # on other test inputs than those reported

    @property
    def where(self) -> str:
        cell = self.cell
        return f"{self.setting}, n = {cell.samples}, m = {cell.width}, {cell.steps} steps, {len(cell.seeds)} seeds"

    @property
    def setting(self) -> str:
        cell = self.cell
        r = "d" if cell.rank == cell.dim else f"d + {cell.rank - cell.dim}"
        return f"{SIGMAS[cell.sigma]}, {NAMES[cell.setting]}, r = {r}, d = {cell.dim}"

    @property
    def own(self) -> tuple[Hypothesis, ...]:
        """That this is a setting of the paper: its activation, and the r that goes with its inputs."""
        cell, (more, source) = self.cell, OWN[self.cell.setting]
        return (
            Hypothesis("activation", SIGMAS[cell.sigma], "=", SIGMAS["sigmoid"], "Section 2.1, the authors' code"),
            Hypothesis("rank r that R₃ spares", cell.rank, "=", cell.dim + more, source),
        )

    @property
    def place(self) -> tuple[int, int, int]:
        """The paper's figure first, then its text's setting, then the others; large d first."""
        cell = self.cell
        return len(unmet(self.own)), list(OWN).index(cell.setting), -cell.dim

    def final(self, name: str, strength: float | None = None) -> Float[np.ndarray, " s"]:
        return np.asarray(self.last[name].sel(strength=self.best if strength is None else strength), np.float64)

    def end(self, model: str, strength: float) -> Float[np.ndarray, " s"] | None:
        """The last test losses of another learner, where it was run."""
        found = self.others.get((model, strength))
        return None if found is None else np.asarray(found["test"].isel(look=-1), np.float64)


def _sweeps(results: Results) -> list[_Sweep]:
    found = []
    for (setting, sigma, dim), beside in results.groups("setting", "sigma", "dim"):
        ranks = beside.where(model="joint").values("rank")
        found += [_Sweep(results.where(setting=setting, sigma=sigma, dim=dim, rank=r), beside) for r in ranks]
    return sorted(found, key=lambda sweep: sweep.place)


def claims(results: Results) -> list[Claim]:
    return [claim for sweep in _sweeps(results) for claim in (*_regularised(sweep), *_compared(sweep))]


def _regularised(sweep: _Sweep) -> list[Claim]:
    cell = sweep.cell
    said: dict[str, Any] = {"source": "Figure 1, Section 5", "hypotheses": sweep.own}
    falls = f"from λ₃ = 0 to the best, {sweep.best:g} ({sweep.setting})"
    means = {name: sweep.last[name].mean("seed").values for name in ("train", "residual", "test")}
    table = "; ".join(
        f"λ₃ = {strength:g}: {R:.2g}, {test:.3f}"
        for strength, R, test in zip(cell.strengths, means["residual"], means["test"], strict=True)
    )
    return [
        Claim.at_most(
            float((sweep.last["train"] / sweep.last["size"]).max()),
            FIT,
            statement="near zero training error for every λ₃, that is at most 1 % of the labels' mean square "
            f"({sweep.setting})",
            measured=f"largest last training loss over the labels' mean square, {sweep.where}",
            **said,
        ),
        Claim.at_least(
            ratio_interval(sweep.final("residual", 0.0), np.maximum(sweep.final("residual"), 1e-12)),
            1.0,
            strict=True,
            statement=f"R₃ falls {falls}",
            measured=f"ratio of the last R₃, geometric mean over seeds with a 95 % interval, {sweep.where}",
            **said,
        ),
        Claim.at_least(
            ratio_interval(sweep.final("test", 0.0), sweep.final("test")),
            1.0,
            strict=True,
            statement=f"the test loss falls {falls}",
            measured=f"ratio of the last test losses, geometric mean over seeds with a 95 % interval, {sweep.where}",
            note=f"From {sweep.final('test', 0.0).mean():.3f} to {sweep.final('test').mean():.3f}. R₃ and test loss at "
            f"{table}. The best λ₃ is chosen on other test inputs.{PAPER[cell.setting]}{_network(sweep)}",
            **said,
        ),
    ]


def _network(sweep: _Sweep) -> str:
    """What R₃ does to the network itself, of which Figure 1 says nothing."""
    plain, kept = sweep.end("network", 0.0), sweep.end("network", 10.0)
    if plain is None or kept is None:
        return ""
    return f" The network itself, by the same descent: {plain.mean():.3f} without R₃, {kept.mean():.3f} with λ₃ = 10."


def _compared(sweep: _Sweep) -> list[Claim]:
    cell, found, best = sweep.cell, [], sweep.final("test")
    said: dict[str, Any] = {
        "source": "Remark 1",
        "measured": f"ratio of the last test losses, 95 % interval, {sweep.where}",
    }
    setting, needs = f"({sweep.setting})", sample_needs(cell.dim, 1, RANK)
    linear, quadratic = sweep.end("linear", 0.0), sweep.end("quadratic", 0.0)
    enough = Hypothesis("samples n", cell.samples, "≥", needs.joint, "Remark 1: d^k, k = 1", given=False)
    if linear is not None:
        few = Hypothesis("samples n", cell.samples, "<", needs.tangent, "Remark 1: d^(k+1) for the NTK", given=False)
        found.append(
            Claim.at_least(
                ratio_interval(linear, best),
                1.0,
                strict=True,
                statement=f"the joint model with the best λ₃ tests lower than f_L alone {setting}",
                hypotheses=(*sweep.own, enough, few),
                note=f"f_L: {linear.mean():.3f}, joint: {best.mean():.3f}.",
                **said,
            )
        )
        if cell.setting == "sphere":
            found.append(_on_degree_2(sweep, linear))
    if quadratic is not None:
        source = f"Remark 1: K² d^k, with which the QuadNTK does as well, K = {RANK}"
        few = Hypothesis("samples n", cell.samples, "<", needs.quadratic, source, given=False)
        found.append(
            Claim.at_least(
                ratio_interval(quadratic, best),
                1.0,
                strict=True,
                statement=f"the joint model with the best λ₃ tests lower than f_Q alone {setting}",
                hypotheses=(*sweep.own, enough, few),
                note=f"f_Q: {quadratic.mean():.3f}, joint: {best.mean():.3f}. Remark 1 compares upper bounds, for "
                f"targets of high rank.{EVEN if cell.sigma == 'softplus' else ''}",
                **said,
            )
        )
    return found


def _on_degree_2(sweep: _Sweep, linear: Float[np.ndarray, " s"]) -> Claim:
    cell, count = sweep.cell, harmonic_dimension(sweep.cell.dim, 2)
    return Claim.at_least(
        mean_interval(linear / sweep.data["top"].values),
        1 - cell.samples / count,
        source="Section 1.1",
        statement="f_L cannot learn the square from n ≪ d² samples: n features hold n/B(d, 2) of its degree-2 part in "
        f"the mean, and the rest, 1 − {cell.samples}/{count}, is lost ({sweep.setting})",
        measured=f"test loss of f_L over the energy of degree 2, 95 % interval, {sweep.where}",
    )


def figures(results: Results) -> list[Figure]:
    drawn = []
    for sweep in _sweeps(results):
        where = sweep.setting
        drawn += [
            _curves(sweep, "test", f"The test loss for each λ₃: {where}", "test loss"),
            _curves(sweep, "residual", f"R₃ is what λ₃ holds down: {where}", "n R₃ = ‖(I − UUᵀ) f_L(X)‖²"),
            _curves(sweep, "train", f"Every λ₃ fits its training set: {where}", "training loss"),
        ]
        if sweep.others:
            drawn.append(_beside(sweep, where))
    return drawn


def _curves(sweep: _Sweep, name: str, title: str, axis: str) -> Figure:
    plot, cell = new_plot(), sweep.cell
    scale = cell.samples if name == "residual" else 1
    for k, strength in enumerate(cell.strengths):
        label = f"λ₃ = {strength:g}" + (f" ({strength / cell.samples:.1g} on the sum)" if strength else "")
        curve(plot, sweep.data[name].sel(strength=strength) * scale, cell.dim, label, COLOURS[k % len(COLOURS)])
    style(plot, x=f"log_d t, d = {cell.dim}", y=axis)
    caption = f"{sweep.where}; mean over seeds, band: one standard deviation. λ₃ is on the mean over samples."
    return Figure(title, caption[0].upper() + caption[1:], plot)


def _beside(sweep: _Sweep, where: str) -> Figure:
    plot, cell = new_plot(), sweep.cell
    best = sweep.data["test"].sel(strength=sweep.best)
    curve(plot, best, cell.dim, f"f_L + f_Q, λ₃ = {sweep.best:g}", "blue")
    curve(plot, sweep.data["test"].sel(strength=0.0), cell.dim, "f_L + f_Q, λ₃ = 0", "vermillion")
    for key, (label, colour) in OTHERS.items():
        if key in sweep.others:
            curve(plot, sweep.others[key]["test"], cell.dim, label, colour)
    style(plot, x=f"log_d t, d = {cell.dim}", y="test loss")
    caption = f"{sweep.where}; mean over seeds, band: one standard deviation."
    return Figure(f"The joint model beside its two terms and the network: {where}", caption, plot)


def curve(plot: Any, values: xr.DataArray, dim: int, name: str, colour: str) -> None:
    """A curve against log_d t, from the first step on."""
    shown = values.isel(look=values["look"] > 0)
    mean, spread = shown.mean("seed").values, shown.std("seed").values
    time = np.log(shown["look"].values) / math.log(dim)
    line(plot, time, mean, name=name, colour=colour, band=(mean - spread, mean + spread))
