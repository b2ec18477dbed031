"""The phase diagrams, and what they say next to the counting of quadratic forms; Theorems 1, 5 and 6 by descent."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao import _diagram
from offtangent.papers.ge_wang_zhao._judging import DELTA, within
from offtangent.papers.ge_wang_zhao._perturbed import SETTINGS
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.report.figures import tiles
from offtangent.theory.ge_wang_zhao.capacity import admissible_features, least_width, most_samples, theorem_features

AXES = {"width": "neurons r", "dimension": "dimension d", "features": "random features k"}
SOURCES = {1: "Theorem 1", 5: "Theorems 2, 5", 6: "Theorem 6"}
STATEMENTS = {
    1: "perturbed gradient descent fits C(d + 1, 2) samples, the most of them, with r = 2d + 2 neurons",
    5: "perturbed gradient descent fits n samples with k = 2⌈√n⌉ random features (Rx̄)^p of inputs with noise",
    6: "perturbed gradient descent fits n samples with k = O_p(d^p) random features (Rx)^p, without noise",
}
PERTURBED = "perturbed gradient descent"


def _name(cell: Any) -> str:
    more = "" if cell.lengths == "one" else ", features as printed"
    return {
        "width": f"two layers, d = {cell.dim}",
        "dimension": "two layers, r = 2d + 2",
        "features": f"three layers, d = {cell.dim}, p = {cell.power}, r = 2k + 2{more}",
    }[cell.axis]


def _split(cell: Any, data: Any) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "n size"]]:
    """N less capacity, whether the network is wide enough for Lemma 1, and the share of seeds that memorise."""
    extra = np.array([[n - _diagram.capacity(cell, s) for s in cell.sizes] for n in cell.samples])
    wide = np.array([_diagram.width(cell, s) >= least_width(_diagram.inputs(cell, s)) for s in cell.sizes])
    return extra, np.broadcast_to(wide, extra.shape), (data["left"].values <= _diagram.LEVEL).mean(axis=0)


def claims(diagrams: Results, descents: Results) -> list[Claim]:
    """Of the diagrams, which are outside the theorems, and of the theorems' own algorithm."""
    found = [claim for cell, data in diagrams for claim in _of(cell, data)]
    if not len(diagrams) and not len(descents):
        return found
    for theorem, source in SOURCES.items():
        chosen = descents.where(theorem=theorem)
        found += [_of_descent(cell, data) for cell, data in chosen]
        if not len(chosen):
            profile = "laptop" if theorem < 6 else "paper"
            why = "Its own algorithm, on features as printed, is a kind of cell that these results have none of."
            found.append(
                Claim.not_run(source=source, statement=STATEMENTS[theorem], reason="size", why=why, profile=profile)
            )
    return found


def _of_descent(cell: Any, data: Any) -> Claim:
    """The share of data sets whose f comes to 10⁻⁴ f(0), with probability 1 − δ."""
    left, promised = data["left"].values, float(data["promised"].min())
    count, longest = int((left <= _diagram.LEVEL).sum()), float(data["steps"].max())
    inputs = f"d = {cell.dim}" + (f", k = {cell.features}, p = {cell.power}" if cell.features else "")
    late = "" if count == cell.seeds else f" In the others f/f(0) is {np.median(left[left > _diagram.LEVEL]):.2g}."
    claim = Claim.at_least(
        fraction_interval(count, cell.seeds),
        1 - DELTA,
        source=SOURCES[cell.theorem],
        statement=f"{STATEMENTS[cell.theorem]}, with probability 1 − δ, δ = {DELTA:g}: f ≤ ε = 10⁻⁴ f(0)",
        measured=f"share of {cell.seeds} data sets, 95 % interval, n = {cell.samples}, {inputs}, r = {cell.width}, "
        f"at most {cell.steps} steps",
        note=f"Median of {np.median(data['steps']):.3g} steps, the longest {longest:.3g}.{late} Thresholds are those "
        f"of practice (t_thres = {SETTINGS.wait}), γ = 0, and the rate is one over the largest curvature at the "
        "interpolant.",
        hypotheses=_asked(cell, data),
    )
    return within(claim, steps=cell.steps, promised=promised)


def _asked(cell: Any, data: Any) -> tuple[Hypothesis, ...]:
    """What Theorem 1, 5 or 6 asks for, next to what the cell has."""
    source = f"Theorem {cell.theorem}"
    found = [
        Hypothesis("neurons r", cell.width, "≥", least_width(cell.inputs), "Theorem 4"),
        Hypothesis("proven σ_min of what the quadratic layers see", float(data["lower"].min()), ">", 0, "Theorem 4"),
        Hypothesis("samples n", cell.samples, "≤", most_samples(cell.inputs), "Theorem 1"),
    ]
    arrived = data["steps"].values[data["left"].values <= _diagram.LEVEL]
    if arrived.size:
        promised = float(data["promised"].min())
        found.append(Hypothesis("steps", float(arrived.max()), "≤", promised, "Theorem 4", given=False))
    if cell.theorem == 5:
        found += [
            Hypothesis("number of features k", cell.features, "=", theorem_features(cell.samples), source),
            _admissible(cell.dim, cell.power, cell.features),
            Hypothesis("length of x", float(data["radius"].max()), "≤", 1 + 1e-12, source),
            Hypothesis("size of labels", float(data["label"].max()), "≤", 1, source),
        ]
    if cell.theorem == 6:
        spans = cell.power * symmetric_dimension(cell.dim, cell.power)
        found.append(Hypothesis("number of features k", cell.features, ">", spans, "Lemma 18"))
    return tuple(found)


def _admissible(dim: int, power: int, features: int) -> Hypothesis:
    return Hypothesis("number of features k", features, "≤", admissible_features(dim, power), "Lemma 13")


def _of(cell: Any, data: Any) -> list[Claim]:
    extra, wide, share = _split(cell, data)
    where = f"{_name(cell)}, {cell.seeds} seeds, {cell.steps} steps of Adam"
    features = cell.axis == "features"
    enough = np.array([[not features or theorem_features(n) <= s for s in cell.sizes] for n in cell.samples])
    inside, narrow = wide & (extra <= 0) & enough, ~wide & (extra <= 0)
    most = "C(k + 1, 2)" if features else "C(d + 1, 2)"
    asked = "k ≥ 2⌈√n⌉ features" if features else f"n ≤ {most}"
    source = "Theorem 5" if features else "Theorem 1"
    common = [Hypothesis("algorithm", "Adam", "=", PERTURBED, source)]
    if features:
        common += [
            Hypothesis("features", cell.seen, "=", "(Rx)^p", "Section 2.2"),
            _admissible(cell.dim, cell.power, max(cell.sizes)),
        ]
    found = []
    if inside.any():
        found.append(
            Claim.at_least(
                float(share[inside].mean()),
                1.0,
                source="Theorems 2, 5" if features else source,
                statement=f"with {asked} every wide enough network memorises ({_name(cell)})",
                measured=f"share of networks with f ≤ 10⁻⁴ f(0), {asked}, {where}",
                note=_around(extra, wide, share, most),
                hypotheses=common,
            )
        )
    if narrow.any():
        widest = max(_diagram.width(cell, s) for s, is_wide in zip(cell.sizes, wide[0], strict=True) if not is_wide)
        found.append(
            Claim.at_least(
                float(share[narrow].mean()),
                1.0,
                source="Lemma 1",
                statement=f"networks narrower than 2d + 2 memorise as well ({_name(cell)})",
                measured=f"share of them, n ≤ {most}, {where}",
                note="The lemma says nothing of them.",
                hypotheses=(Hypothesis("neurons r", widest, "≥", least_width(cell.dim), "Lemma 1"),),
            )
        )
    return found


def _around(extra: np.ndarray, wide: Bool[np.ndarray, "n size"], share: Float[np.ndarray, "n size"], most: str) -> str:
    """Shares below the capacity, at it, and beyond, as found; the end of the last was chosen with the first record."""
    told = []
    for name, chosen in (
        (f"n < {most}", wide & (extra < 0)),
        (f"n exactly the most that can be had, {most} or all polynomials", wide & (extra == 0)),
        ("1 to 4 samples more", wide & (extra > 0) & (extra < 5)),
        ("5 or more samples more", wide & (extra >= 5)),
    ):
        if chosen.any():
            told.append(f"{name}: {100 * share[chosen].mean():.0f} %")
    return f"Shares of all wide networks within these steps: {'; '.join(told)}."


def figures(results: Results) -> list[Figure]:
    return [_figure(cell, data) for cell, data in results]


def _figure(cell: Any, data: Any) -> Figure:
    plot, share = new_plot(), _split(cell, data)[2]
    tiles(plot, np.array(cell.sizes), np.array(cell.samples), share, name="share that memorise", colour="blue")
    sizes, top = np.array(cell.sizes, float), max(cell.samples)
    forms = np.array([most_samples(_diagram.inputs(cell, int(s))) for s in sizes], float)
    shown = np.where(forms <= 1.1 * top, forms, np.nan)
    label = "C(k + 1, 2)" if cell.axis == "features" else "C(d + 1, 2)"
    line(plot, sizes, shown, name=f"n = {label}", colour="vermillion")
    if cell.axis == "features":
        polynomials = symmetric_dimension(cell.dim, 2 * cell.power)
        if polynomials <= 1.1 * top:
            line(plot, sizes[[0, -1]], np.full(2, float(polynomials)), name="all polynomials of degree 2p",
                 colour="green", dash="dash")  # fmt: skip
        line(plot, sizes, (sizes / 2) ** 2, name="n = (k/2)², Theorem 5", colour="purple", dash="dot")
        if cell.dim**cell.power <= 1.1 * top:
            line(plot, sizes[[0, -1]], np.full(2, float(cell.dim**cell.power)), name="n = dᵖ, Theorem 2",
                 colour="orange", dash="dot")  # fmt: skip
    if cell.axis == "width":
        line(plot, np.full(2, float(least_width(cell.dim))), np.array([min(cell.samples), top], float),
             name="r = 2d + 2", colour="orange", dash="dash")  # fmt: skip
    style(plot, x=AXES[cell.axis], y="samples n")
    caption = f"f ≤ 10⁻⁴ f(0) after {cell.steps} steps of Adam; {cell.seeds} seeds; random inputs and labels."
    return Figure(f"What is memorised: {_name(cell)}", caption, plot)
