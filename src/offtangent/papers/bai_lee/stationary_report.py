"""What the results say of trained networks: Theorem 4, and Corollary 3 on the way.

Both ask for the width of (6), which no computer holds. What remains of Theorem 4 where (8) is measured, the last step
from (8) to (10), follows by algebra and is an identity: whether (8) needs more than ε at Ŵ is what the width decides,
and the note says at which widths it did.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.papers.bai_lee._noisy_xor import BEST, NOISE
from offtangent.taylor.curvature import DENSE
from offtangent.theory.bai_lee.bounds import coupling_width, stationary_width
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.bai_lee.signs import ENUMERATED

GAMMA, EPSILON = 0.25, 0.05  # of Theorem 4
SET = f"γ = {GAMMA:g}, ε = {EPSILON:g}"
ROUNDING = 1e-9  # of the inequalities' terms, in float64

Columns = Mapping[str, np.ndarray]  # the variables of a data set: plain arrays, which are faster to work with


def claims(trained: Results) -> Iterator[Claim]:
    """All of them.

    Args:
        trained: The cells of starts.

    Returns:
        The last step of Theorem 4 at all widths, and then the claims of each width.
    """
    if len(trained):
        yield from _last_step(trained)
    for width in trained.values("width"):
        yield from _of_starts(trained.where(width=width))


def columns(results: Results) -> list[Columns]:
    """The variables of every cell as plain arrays.

    Args:
        results: Some cells.

    Returns:
        A mapping for each cell, in their order.
    """
    return [{str(name): values.values for name, values in data.variables.items()} for _, data in results]


def _last_step(results: Results) -> Iterable[Claim]:
    """B.6 from (8) to (10): given what (8) needs at Ŵ and how stationary Ŵ is, the bounds follow by algebra."""
    parts, cell = columns(results), results.first

    def room(one: Columns) -> Float[np.ndarray, " k"]:
        """What (8) needs at Ŵ, and what Ŵ's gradient and lowest curvature cost in it."""
        return np.asarray(one["corollary"][-1] + one["inexactness"], np.float64)

    def level(one: Columns) -> float:
        return float(2 * GAMMA * one["opt"] + EPSILON)  # Cλ‖W⋆‖⁸

    over = f"{len(parts)} networks, d = {cell.dim}, m = {', '.join(map(str, results.values('width')))}, {SET}"
    needs = "; ".join(
        f"{max(float(one['corollary'][-1].max()) for one in columns(results.where(width=width))):.2g} at m = {width}"
        for width in results.values("width")
    )
    yield Claim.at_most(
        max(float((one["last_loss"] - one["opt"] - (level(one) + room(one)) / 2).max()) for one in parts),
        ROUNDING,
        identity=True,
        source="Theorem 4, eq. (10), last step of B.6",
        statement="where (8) holds at Ŵ with ε', L_λ(Ŵ) ≤ OPT + ½(Cλ‖W⋆‖⁸ + ε' + ‖∇L_λ‖‖Ŵ‖_F + (−λ_min)₊‖W⋆‖_F²), with "
        f"Cλ‖W⋆‖⁸ = 2γ OPT + ε, {SET}",
        measured=f"largest left side less right side, {over}",
        note=f"At a stationary point with ε' ≤ ε this is (10): what is to be shown is (8) at Ŵ, which is measured to "
        f"need at most ε' = {needs}. By (6) the width that ensures it is that of the claims below.",
    )
    yield Claim.at_most(
        max(
            float((level(one) * (one["norm"] / one["norm_star"]) ** 8 / _norm_room(one, level(one), room(one))).max())
            for one in parts
        ),
        1 + ROUNDING,
        identity=True,
        source="Theorem 4, eq. (10), last step of B.6",
        statement="and λ‖Ŵ‖⁸ ≤ 2 OPT + Cλ‖W⋆‖⁸ + ε' + ‖∇L_λ‖‖Ŵ‖_F + (−λ_min)₊‖W⋆‖_F²",
        measured=f"largest ratio of the two sides, {over}",
    )


def _norm_room(one: Columns, level: float, room: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    return LANDSCAPE_CONSTANT * (2 * one["opt"] + level + room)


def _of_starts(results: Results) -> list[Claim]:
    """Theorem 4 and Corollary 3 at one width, next to the width that each asks for."""
    cell, parts = results.first, columns(results)
    signs = "all signs" if cell.width <= ENUMERATED else f"{cell.signs} signs"
    networks = "one network" if len(parts) == 1 else f"each of {len(parts)} networks"
    over = f"m = {cell.width}, d = {cell.dim}, {signs}, {cell.count} starts on {networks}"
    tight = "" if len(parts) == 1 else ", on the network where it is nearest to its own bound"
    saddle = max(parts, key=lambda one: float(_along(one)[0] - one["corollary_right"][0, 0]))
    theorem: dict[str, Any] = {"source": "Theorem 4, eq. (10)", "hypotheses": _of_theorem_4(cell, parts)}
    return [
        Claim.at_most(
            *_nearest((float(_loss(one).max()), float(one["loss_bound"])) for one in parts),
            **theorem,
            statement=f"L_λ(Ŵ) ≤ (1 + γ) OPT + ε from every start, {SET}",
            measured=f"largest loss, also on fresh signs and three standard errors up, {over}{tight}",
            note=f"{_story(parts)} {_certified(cell, parts)}",
        ),
        Claim.at_most(
            *_nearest(
                (float((one["norm"] / one["norm_star"]).max()), float(one["norm_bound"] / one["norm_star"]))
                for one in parts
            ),
            **theorem,
            statement="‖Ŵ‖_{2,4} ≤ (C(1 + (2 OPT + ε)/(2γ OPT + ε)))^(1/8) ‖W⋆‖_{2,4}, the O(B_{w,⋆}) of B.6, "
            f"C = 378(14/5)³, {SET}",
            measured=f"largest ‖Ŵ‖_{{2,4}}/‖W⋆‖_{{2,4}}, {over}{tight}",
        ),
        Claim.at_most(
            float(_along(saddle)[0]),
            float(saddle["corollary_right"][0, 0]) + EPSILON,
            source="Corollary 3 at a saddle",
            hypotheses=_of_corollary_3(cell, parts),
            statement="next to W = 0, where ∇L_λ ≈ 0 and L_λ is large, (8) gives a direction of descent: λ_min ‖W⋆‖_F² "
            f"≤ ⟨∇L_λ, W⟩ − 2(L_λ − OPT) − λ‖W‖⁸ + Cλ‖W⋆‖⁸ + ε < 0, {SET}",
            measured=f"vᵀ∇²L_λv ‖W⋆‖_F² ≥ λ_min ‖W⋆‖_F² in the direction found, {over}{tight}",
            note=f"(8) is measured to need ε = {max(float(one['corollary'][0, 0]) for one in parts):.3g} there.",
        ),
        Claim.at_most(
            max(float((_along(one) - one["corollary_right"][:, 0]).max()) for one in parts),
            EPSILON,
            source="Corollary 3 along training",
            hypotheses=_of_corollary_3(cell, parts),
            statement=f"λ_min ‖W⋆‖_F² is at most the right side of (8), from the saddle to Ŵ, {SET}",
            measured=f"the largest ε this takes, {over}",
            note=f"(8) is measured to need at most ε = {max(float(one['corollary'].max()) for one in parts):.3g}.",
        ),
    ]


def _nearest(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """A network's largest value and its own bound, for the network where they are the closest."""
    return max(pairs, key=lambda pair: pair[0] / pair[1])


def _of_theorem_4(cell: Any, parts: list[Columns]) -> tuple[Hypothesis, ...]:
    """The width of (6) on the ball of B.6; and a Ŵ that is second-order stationary, exactly in the paper."""
    width = max(_theorem_4_width(cell.dim, float(one["norm_star"]), float(one["opt"])) for one in parts)
    inexact = max(float(one["inexactness"].max()) for one in parts)
    return (
        Hypothesis("width m", cell.width, "≥", width, "Theorem 4: (6) on the ball of B.6", given=False),
        Hypothesis("‖∇L_λ‖‖Ŵ‖_F + (−λ_min)₊‖W⋆‖_F²", inexact, "≤", EPSILON, "stationary up to what costs ε in (8)"),
    )


def _of_corollary_3(cell: Any, parts: list[Columns]) -> tuple[Hypothesis, ...]:
    width = max(_corollary_3_width(cell.dim, float(one["norm_star"])) for one in parts)
    return (Hypothesis("width m", cell.width, "≥", width, "Corollary 3: (6) with B_w = B_{w,⋆}", given=False),)


@cache
def _theorem_4_width(dim: int, norm: float, opt: float) -> float:
    return stationary_width(dim, norm=norm, opt=opt, gamma=GAMMA, epsilon=EPSILON, radius=dim**0.5)


@cache
def _corollary_3_width(dim: int, norm: float) -> float:
    return coupling_width(dim, norm=norm, epsilon=EPSILON, radius=dim**0.5)


def _story(parts: list[Columns]) -> str:
    """Where each network's starts ended, next to its own OPT and bound."""
    ends = "; ".join(
        f"{f'network {k}: ' if len(parts) > 1 else ''}from losses of {float(one['loss'][0].min()):.3f} to "
        f"{float(one['loss'][0].max()):.3f} to between {float(one['last_loss'].min()):.4f} and "
        f"{float(one['last_loss'].max()):.4f} (on fresh signs {float(one['fresh_loss'].max()):.4f} at most), with "
        f"OPT = {float(one['opt']):.4f} and a bound of {float(one['loss_bound']):.4f}"
        for k, one in enumerate(parts, start=1)
    )
    return f"{ends[0].upper()}{ends[1:]}. No predictor is below H({NOISE:g}) = {BEST:.4f}."


def _certified(cell: Any, parts: list[Columns]) -> str:
    """How the last points were seen to be stationary."""
    how = "of the whole Hessian" if cell.dim * cell.width <= DENSE else "by Lanczos, δ = 10⁻³ each"
    return (
        f"Largest ‖∇L_λ‖ = {max(float(one['gradient'].max()) for one in parts):.1g}; λ_min at least "
        f"{min(float(one['last_lowest'].min()) for one in parts):.2g} ({how}; residuals up to "
        f"{max(float(one['last_residual'].max()) for one in parts):.1g}), against "
        f"{min(float(one['curvature'][0]) for one in parts):.2g} next to W = 0. (8) is measured to need ε = "
        f"{max(float(one['corollary'][-1].max()) for one in parts):.3g} at Ŵ."
    )


def _loss(one: Columns) -> Float[np.ndarray, " k"]:
    """L_λ(Ŵ) on the risk's own signs or, three standard errors up, on fresh ones, whichever is larger."""
    return np.maximum(one["last_loss"], one["fresh_loss"] + 3 * one["fresh_error"])


def _along(one: Columns) -> Float[np.ndarray, " t"]:
    """λ_min‖W⋆‖_F², from above, at every look at the start next to the saddle."""
    return np.asarray(one["curvature"] * one["length_star"], np.float64)
