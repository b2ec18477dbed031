"""What the sweeps of λ₃ say: their claims and figures."""

import math
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import mean_interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.special.sphere import harmonic_dimension

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
SMALL = 10  # dimensions at which no statement for large d is judged, and f_Q alone may win
FALL = 3.0  # how many times R₃ and the test loss fall where the effect is said to be large
LARGE = {("sphere", "softplus"): 30, ("gaussian", "sigmoid"): 100}  # from which d on


class _Sweep:
    """The joint model in one setting, and the learners beside it."""

    def __init__(self, results: Results):
        self.cell, self.data = results.where(model="joint").pairs[0]
        self.others = {
            (cell.model, strength): data.sel(strength=strength)
            for cell, data in results
            for strength in cell.strengths
            if cell.model != "joint"
        }
        self.last = self.data.isel(look=-1)
        self.best = float(self.last["choose"].mean("seed").idxmin())  # on other test inputs than those reported

    @property
    def where(self) -> str:
        cell = self.cell
        return (
            f"{self.setting}, d = {cell.dim}, n = {cell.samples}, m = {cell.width}, {cell.steps} steps, "
            f"{len(cell.seeds)} seeds"
        )

    @property
    def setting(self) -> str:
        cell = self.cell
        small = f", d = {cell.dim}" if cell.dim <= SMALL else ""
        return f"{SIGMAS[cell.sigma]}, {NAMES[cell.setting]}{small}" + (", r = d" if cell.rank == cell.dim else "")

    def final(self, name: str, strength: float | None = None) -> Float[np.ndarray, " s"]:
        return np.asarray(self.last[name].sel(strength=self.best if strength is None else strength), np.float64)


def _sweeps(results: Results) -> list[_Sweep]:
    kinds = dict.fromkeys((cell.setting, cell.sigma, cell.rank, cell.dim) for cell, _ in results)
    groups = (results.where(setting=kind[0], sigma=kind[1], rank=kind[2], dim=kind[3]) for kind in kinds)
    return [_Sweep(one) for one in groups if "joint" in one.values("model")]


def claims(results: Results) -> list[Claim]:
    return [claim for sweep in _sweeps(results) for claim in (*_regularised(sweep), *_compared(sweep))]


def _regularised(sweep: _Sweep) -> list[Claim]:
    cell = sweep.cell
    said: dict[str, Any] = {"source": "Figure 1, Section 5", "inside": cell.dim > SMALL}
    large = LARGE.get((cell.setting, cell.sigma), math.inf) <= cell.dim
    limit = FALL if large else 1.0
    by = f", at least {FALL:g} times" if large else ""
    falls = f"from λ₃ = 0 to the best, {sweep.best:g}{by} ({sweep.setting})"
    means = {name: sweep.last[name].mean("seed").values for name in ("train", "residual", "test")}
    table = "; ".join(
        f"λ₃ = {strength:g}: {R:.2g}, {test:.3f}"
        for strength, R, test in zip(cell.strengths, means["residual"], means["test"], strict=True)
    )
    paper = " The paper: near 0.6 for small λ₃, around 0.2 for large." if cell.setting == "gaussian" else ""
    return [
        Claim.at_most(
            float((sweep.last["train"] / sweep.last["size"]).max()), FIT, **said,
            statement=f"the training loss goes to zero for every λ₃ ({sweep.setting})",
            measured=f"largest last training loss over the labels' mean square, next to 1 %, {sweep.where}",
        ),
        Claim.at_least(
            ratio_interval(sweep.final("residual", 0.0), np.maximum(sweep.final("residual"), 1e-12)), limit, **said,
            strict=not large,
            statement=f"R₃ falls {falls}",
            measured=f"ratio of the last R₃, geometric mean over seeds with a 95 % interval, {sweep.where}",
        ),
        Claim.at_least(
            ratio_interval(sweep.final("test", 0.0), sweep.final("test")), limit, **said,
            strict=not large,
            statement=f"the test loss falls {falls}",
            measured=f"ratio of the last test losses, geometric mean over seeds with a 95 % interval, {sweep.where}",
            note=f"R₃ and test loss at {table}. The best λ₃ is chosen on other test inputs.{paper}",
        ),
    ]  # fmt: skip


def _compared(sweep: _Sweep) -> list[Claim]:
    cell, found, best = sweep.cell, [], sweep.final("test")
    said: dict[str, Any] = {"measured": f"ratio of the last test losses, 95 % interval, {sweep.where}"}
    setting = f"({sweep.setting})"
    ends = {key: np.asarray(data["test"].isel(look=-1), np.float64) for key, data in sweep.others.items()}
    linear, quadratic, plain, kept = (ends.get(key) for key in OTHERS)
    if linear is not None:
        found.append(
            Claim.at_least(
                ratio_interval(linear, best), 1.0, strict=True, source="Remark 1", inside=cell.dim > SMALL, **said,
                statement=f"the joint model with the best λ₃ tests lower than f_L alone {setting}",
                note=f"f_L: {linear.mean():.3f}, joint: {best.mean():.3f}.",
            )
        )  # fmt: skip
        if cell.setting == "sphere":
            share = 1 - cell.samples / harmonic_dimension(cell.dim, 2)
            found.append(
                Claim.at_least(
                    mean_interval(linear / sweep.data["top"].values), share, source="Section 1.1",
                    statement="f_L cannot learn the square from n ≪ d² samples: n features hold n/B(d, 2) of its degree"
                    f"-2 part in the mean, and the rest, 1 − {cell.samples}/{harmonic_dimension(cell.dim, 2)}, is lost "
                    f"{setting}",
                    measured=f"test loss of f_L over the energy of degree 2, 95 % interval, {sweep.where}",
                )
            )  # fmt: skip
    if quadratic is not None:
        found.append(
            Claim.at_least(
                ratio_interval(quadratic, best), 1.0, strict=True, inside=False, source="Remark 1", **said,
                statement=f"the joint model with the best λ₃ tests lower than f_Q alone {setting}",
                note=f"f_Q: {quadratic.mean():.3f}, joint: {best.mean():.3f}. Remark 1 compares upper bounds, for "
                f"large d and targets of high rank; here the rank is 2.{EVEN if cell.sigma == 'softplus' else ''}",
            )
        )  # fmt: skip
    if plain is not None and kept is not None:
        found.append(
            Claim.at_least(
                ratio_interval(plain, kept), 1.0, strict=True, source="Theorem 1", inside=cell.dim > SMALL, **said,
                statement=f"λ₃ = 10 lowers the test loss of the network itself, not only of its expansion {setting}",
                note=f"Without: {plain.mean():.3f}, with: {kept.mean():.3f}.",
            )
        )  # fmt: skip
    return found


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
