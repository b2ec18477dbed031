"""The phase diagrams, and what they say next to the counting of quadratic forms."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao import _diagram
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style
from offtangent.report.figures import tiles
from offtangent.theory.ge_wang_zhao.capacity import admissible_features, least_width, most_samples, theorem_features

EXTRA = 5
AXES = {"width": "neurons r", "dimension": "dimension d", "features": "random features k"}


def _name(cell: Any) -> str:
    return {
        "width": f"two layers, d = {cell.dim}",
        "dimension": "two layers, r = 2d + 2",
        "features": f"three layers, d = {cell.dim}, p = {cell.power}, r = 2k + 2",
    }[cell.axis]


def _split(cell: Any, data: Any) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "n size"]]:
    """N over capacity, whether the network is wide enough for Lemma 1, and the share of seeds that memorise."""
    over = np.array([[n / _diagram.capacity(cell, s) for s in cell.sizes] for n in cell.samples])
    wide = np.array([_diagram.width(cell, s) >= least_width(_diagram.inputs(cell, s)) for s in cell.sizes])
    return over, np.broadcast_to(wide, over.shape), (data["left"].values <= _diagram.LEVEL).mean(axis=0)


def claims(results: Results) -> list[Claim]:
    return [claim for cell, data in results for claim in _of(cell, data)]


def _of(cell: Any, data: Any) -> list[Claim]:
    over, wide, share = _split(cell, data)
    where = f"{_name(cell)}, {cell.seeds} seeds, {cell.steps} steps of Adam"
    # q samples beyond leave q directions of the labels unfitted: by chance less than ε of them with (nε)^(q/2) or so.
    extra = np.array([[n - _diagram.capacity(cell, s) for s in cell.sizes] for n in cell.samples])
    features = cell.axis == "features"
    half = np.array([[not features or theorem_features(n) <= s for s in cell.sizes] for n in cell.samples])
    inside, beyond = wide & (over <= 0.5) & half, extra >= EXTRA
    near = wide & (over > 0.5) & (over <= 1)
    admitted = not features or max(cell.sizes) <= admissible_features(cell.dim, cell.power)
    asked = "k ≥ 2⌈√n⌉ features" if features else "n ≤ half the quadratic forms"
    found = []
    if inside.any():
        found.append(
            Claim.at_least(
                float(share[inside].mean()), 1.0, source="Theorems 2, 5" if features else "Theorem 1", inside=admitted,
                statement=f"with {asked} every wide enough network memorises ({_name(cell)})",
                measured=f"share of networks with f ≤ 10⁻⁴ f(0), {asked}, {where}",
                note="" if not near.any() else f"Between half and all of it: {share[near].mean():.0%} within these "
                f"steps; σ_min is small there.{_admitted(cell)}".replace("%", " %"),
            )
        )  # fmt: skip
    if beyond.any():
        found.append(
            Claim.at_most(
                float(share[beyond].max()), 0.0, source="Section 4",
                statement=f"{EXTRA} samples more than there are polynomials, or still more, are memorised by none "
                f"({_name(cell)})",
                measured=f"largest share of seeds with f ≤ 10⁻⁴ f(0), {where}",
            )
        )  # fmt: skip
    narrow = ~wide & (over <= 0.5)
    if narrow.any():
        found.append(
            Claim.at_least(
                float(share[narrow].mean()), 1.0, source="Lemma 1", inside=False,
                statement=f"networks narrower than 2d + 2 memorise as well ({_name(cell)})",
                measured=f"share of them, n ≤ half the quadratic forms, {where}",
                note="The lemma says nothing of them.",
            )
        )  # fmt: skip
    return found


def _admitted(cell: Any) -> str:
    if cell.axis != "features":
        return ""
    return f" Lemma 13 speaks of k ≤ {admissible_features(cell.dim, cell.power)} features at this d and p."


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
