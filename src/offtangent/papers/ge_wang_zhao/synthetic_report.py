"""What the ways down say: claims, the loss and the curvature along them."""

from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style

NAMES = {
    "gradient descent": ("gradient descent, small W(0)", "blue"),
    "from the saddle": ("gradient descent from W = 0", "grey"),
    "algorithm 1": ("Algorithm 1 from W = 0", "green"),
    "negative curvature": ("negative curvature from W = 0", "vermillion"),
}
ZERO = 1e-5  # of f(0): a loss that counts as zero
EXACT = 1e-20  # of f(0): zero to rounding, in float64


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for method in results.values("method"):
        found += _of(method, results.where(method=method))
    return [*found, *_landscape(results)]


def _where(cell: Any, results: Results) -> str:
    count = len(results.values("seed"))
    return f"n = {cell.samples}, d = {cell.dim}, r = {cell.width}, {count} data {'set' if count == 1 else 'sets'}"


def _ends(results: Results, name: str) -> np.ndarray:
    """Of each run: its last value, or the only one."""
    return np.array([float(np.asarray(data[name]).reshape(-1)[-1]) for _, data in results])


def _of(method: str, results: Results) -> list[Claim]:
    cell, zero = results.pairs[0][0], _ends(results, "zero")
    last, where = _ends(results, "loss"), _where(cell, results)
    said: dict[str, Any] = {"measured": f"largest f/f(0) after {cell.steps} steps, {where}"}
    if method == "gradient descent":
        return [
            Claim.at_most(
                float((last / zero).max()), ZERO, source="Figures 2, 5", **said,
                statement="gradient descent from a small start learns the samples by heart: f goes to 0",
            )
        ]  # fmt: skip
    if method == "from the saddle":
        return [
            Claim.at_least(
                float((last / zero).min()), 1.0, source="Section 2.3", measured=f"smallest f/f(0), {where}",
                statement="gradient descent from W = 0 stays there: ∇f = MWA = 0, an identity",
                note=f"λ_min(∇²f) = −‖M‖ is {_ends(results, 'lowest').max():.2g} there: it has a way down.",
            )
        ]  # fmt: skip
    if method == "algorithm 1":
        returned = int(_ends(results, "returned").sum())
        return [
            Claim.at_most(
                float((last / zero).max()), ZERO, source="Theorem 4", **said,
                statement="Algorithm 1 leaves the saddle at W = 0 and learns the samples by heart (practical settings)",
                note=f"{returned} of {len(results)} runs returned a point by themselves; perturbations that gained: "
                f"{_ends(results, 'escapes').min():.0f} or more in each. Theorem 4's own settings wait "
                f"{_ends(results, 'wait').max():.1g} steps after each, and bound the number of iterations by "
                f"{_ends(results, 'iterations').max():.1g}, its constant as one.",
            )
        ]  # fmt: skip
    if method == "negative curvature":
        return [*_curvature(results, last, zero, said)]
    return [
        Claim.at_most(
            float((last / zero).max()), EXACT, source="Theorem 1", measured=f"largest f/f(0), {where}",
            statement="an interpolant exists, in closed form, whatever the labels",
        )
    ]  # fmt: skip


def _curvature(results: Results, last: np.ndarray, zero: np.ndarray, said: dict[str, Any]) -> list[Claim]:
    """Each step gains its share, as far as rounding allows to see it."""
    excess = []
    for _, data in results:
        losses, steps = data["loss"].values, data["look"].values
        seen = losses > EXACT * losses[0]
        allowed = losses[:-1] * (1 - float(data["share"])) ** np.diff(steps)
        excess += list((losses[1:] / allowed)[seen[1:]])
    return [
        Claim.at_most(
            float((last / zero).max()), ZERO, source="Lemma 3", **said,
            statement="steps along Lemma 3's direction alone, never along the gradient, learn the samples by heart",
        ),
        Claim.at_most(
            float(max(excess)), 1.0, source="Lemmas 3, 4",
            statement="each such step lowers f by the fraction σ²/(ndB⁴) or more",
            measured=f"largest f over what that allows, from look to look, {said['measured'].split('steps, ')[1]}",
            note=f"σ²/(ndB⁴) is {_ends(results, 'share').min():.1e}: f falls far faster.",
        ),
    ]  # fmt: skip


def _landscape(results: Results) -> list[Claim]:
    cell = results.pairs[0][0]
    where = _where(cell, results)
    kept = Results(results.profile, tuple(pair for pair in results if pair[0].method != "closed form"))
    found = [
        Claim.at_least(
            float(_ends(results, "lower").min()), 0.0, strict=True, source="Theorem 4",
            statement="the samples are in general position: σ_min[x_j ⊗ x_j] > 0",
            measured=f"proven lower bound, the smallest, {where}",
            note=f"Upper bounds from {_ends(results, 'upper').min():.3g} to {_ends(results, 'upper').max():.3g}.",
        )
    ]  # fmt: skip
    if len(kept):
        ratio = _ends(kept, "loss") / np.maximum(_ends(kept, "bound"), np.finfo(float).tiny)
        found.append(
            Claim.at_most(
                float(ratio.max()), 1.0, source="Lemmas 1, 4", statement="f ≤ nd‖M‖²/4σ² where a path ends",
                measured=f"largest f over the bound with the proven σ, {where}, all ways down",
            )
        )  # fmt: skip
    return found


def figures(results: Results) -> list[Figure]:
    drawn = []
    for name, axis, title in (
        ("loss", "f", "Ways down the loss"),
        ("lowest", "−λ_min(∇²f) = ‖M‖", "How far from a minimum the curvature is"),
    ):
        plot = new_plot()
        for method, (label, colour) in NAMES.items():
            chosen = results.where(method=method).pairs
            if not chosen:
                continue
            values = np.abs(np.stack([data[name].values for _, data in chosen]))
            shown = np.maximum(values, 1e-30)
            middle = np.exp(np.log(shown).mean(axis=0))
            line(plot, chosen[0][1]["look"].values + 1.0, middle, name=label, colour=colour,
                 band=(shown.min(axis=0), shown.max(axis=0)))  # fmt: skip
        style(plot, x="step + 1", y=axis, log_x=True, log_y=True)
        cell = results.pairs[0][0]
        count = len(results.values("seed"))
        caption = (
            f"n = {cell.samples}, d = {cell.dim}, r = {cell.width}; {count} data {'set' if count == 1 else 'sets'} "
            "(bands: all). Below 10⁻³⁰ is rounding."
        )
        drawn.append(Figure(title, caption, plot))
    return drawn
