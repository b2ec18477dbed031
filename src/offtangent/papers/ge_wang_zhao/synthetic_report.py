"""What the ways down say: claims, the loss and the curvature along them."""

from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.papers.ge_wang_zhao._paths import NOISE, PRACTICAL
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples

NAMES = {
    "gradient descent": ("gradient descent, small W(0)", "blue"),
    "from the saddle": ("gradient descent from W = 0", "grey"),
    "noisy descent": ("with noise at every step, from W = 0", "orange"),
    "algorithm 1": ("Algorithm 1 from W = 0", "green"),
    "negative curvature": ("negative curvature from W = 0", "vermillion"),
}
ZERO = 1e-5  # of f(0): a loss that counts as zero
NOISY = "gradient descent with a little noise at every step leaves the saddle at W = 0: f ≤ 10⁻⁵ f(0)"
EXACT = 1e-20  # of f(0): zero to rounding, in float64


def claims(results: Results) -> list[Claim]:
    """Of each way down, and of the bound where they end."""
    found: list[Claim] = []
    for method in results.values("method"):
        found += _of(method, results.where(method=method))
    if len(results) and not len(results.where(method="noisy descent")):
        why = "Noise at every step is a way down that these results do not have."
        found.append(Claim.not_run(source="Section 2.3", statement=NOISY, reason="size", why=why, profile="smoke"))
    return [*found, *_landscape(results)]


def _asked(results: Results) -> tuple[Hypothesis, ...]:
    """What Theorems 1 and 4 and Lemma 1 ask of the samples and of the network."""
    cell = results.first
    return (
        Hypothesis("neurons r", cell.width, "≥", least_width(cell.dim), "Theorem 4"),
        Hypothesis("samples n", cell.samples, "≤", most_samples(cell.dim), "Theorem 1"),
        Hypothesis("proven σ_min[x_j ⊗ x_j]", float(_ends(results, "lower").min()), ">", 0, "Theorem 4"),
    )


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
        upper = _ends(results, "upper")
        return [
            Claim.at_most(
                float((last / zero).max()),
                ZERO,
                source="Figures 2, 5",
                **said,
                statement="gradient descent from a small start learns the samples by heart: f goes to 0, here below "
                "10⁻⁵ f(0)",
                note="The paper says that it has Theorem 4's parameters; these ask for 10²⁰ steps, and here the rate "
                f"is {PRACTICAL.rate:g}. σ_min[x_j ⊗ x_j] is between {_ends(results, 'lower').min():.3g} and "
                f"{upper.max():.3g}.",
            )
        ]
    if method == "noisy descent":
        return [
            Claim.at_most(
                float((last / zero).max()),
                ZERO,
                source="Section 2.3",
                statement=NOISY,
                **said,
                note=f"Noise of length {NOISE:g}. The paper has it in words, as one of many algorithms that find "
                "second-order stationary points.",
            )
        ]
    if method == "from the saddle":
        return [
            Claim.at_least(
                float((last / zero).min()),
                1.0,
                source="Section 2.3",
                measured=f"smallest f/f(0), {where}",
                statement="gradient descent from W = 0 stays there: ∇f = MWA = 0, an identity",
                note=f"λ_min(∇²f) = −‖M‖ is {_ends(results, 'lowest').max():.2g} there: it has a way down.",
                identity=True,
            )
        ]
    return _beyond(method, results, last, zero, said)


def _beyond(method: str, results: Results, last: np.ndarray, zero: np.ndarray, said: dict[str, Any]) -> list[Claim]:
    """What looks at more than the gradient: Algorithm 1, negative curvature, the closed form."""
    if method == "algorithm 1":
        returned = int(_ends(results, "returned").sum())
        return [
            Claim.at_most(
                float((last / zero).max()),
                ZERO,
                source="Theorem 4, practical settings",
                **said,
                statement="Algorithm 1 leaves the saddle at W = 0 and learns the samples by heart, f ≤ 10⁻⁵ f(0), with "
                "thresholds of practice",
                note=f"{returned} of {len(results)} runs returned a point by themselves, none of which is certified to "
                f"be second-order stationary; perturbations that gained: {_ends(results, 'escapes').min():.0f} or more "
                f"in each. The theorem bounds the number of iterations by {_ends(results, 'iterations').max():.1g}, "
                "its constant as one.",
                hypotheses=(
                    *_asked(results),
                    Hypothesis("t_thres", PRACTICAL.wait, "≥", float(_ends(results, "wait").min()), "Theorem 4"),
                ),
            )
        ]
    if method == "negative curvature":
        return [*_curvature(results, last, zero, said)]
    return [
        Claim.at_most(
            float((last / zero).max()),
            EXACT,
            source="Theorem 1",
            measured=f"largest f/f(0), {_where(results.first, results)}",
            statement="an interpolant exists, in closed form, whatever the labels",
            hypotheses=_asked(results),
        )
    ]


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
            statement="steps along Lemma 3's direction alone, never along the gradient, learn the samples by heart: "
            "f ≤ 10⁻⁵ f(0)", hypotheses=_asked(results),
        ),
        Claim.at_most(
            float(max(excess)), 1.0, source="Lemmas 3, 4",
            statement="each such step lowers f by the fraction σ²/(ndB⁴) or more", hypotheses=_asked(results),
            measured=f"largest f over what that allows, from look to look, {said['measured'].split('steps, ')[1]}",
            note=f"σ²/(ndB⁴) is {_ends(results, 'share').min():.1e}: f falls far faster.",
        ),
    ]  # fmt: skip


def _landscape(results: Results) -> list[Claim]:
    """The bound of Lemmas 1 and 4, which is true of every W."""
    kept = Results(results.profile, tuple(pair for pair in results if pair[0].method != "closed form"))
    if not len(kept):
        return []
    ratio = _ends(kept, "loss") / np.maximum(_ends(kept, "bound"), np.finfo(float).tiny)
    return [
        Claim.at_most(
            float(ratio.max()),
            1.0,
            source="Lemmas 1, 4",
            statement="f ≤ nd‖M‖²/4σ² where a path ends, as at every W",
            measured=f"largest f over the bound with the proven σ, {_where(kept.first, kept)}, all ways down",
            hypotheses=_asked(kept),
            identity=True,
        )
    ]


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
