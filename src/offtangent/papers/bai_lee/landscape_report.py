"""What the results on the landscape say: their claims and figures."""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import mean_interval, slope_interval
from offtangent.papers.bai_lee._noisy_xor import BEST, NOISE
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.taylor.curvature import DENSE
from offtangent.theory.bai_lee.bounds import stationary_width
from offtangent.theory.bai_lee.signs import ENUMERATED

GAMMA, EPSILON = 0.25, 0.05  # of Theorem 4
ROUNDING = 1e-9  # of the inequalities' terms, in float64
LEMMAS = {"outputs": "Lemma 10", "loss": "Lemma 12", "gradient": "Lemma 13", "curvature": "Lemma 14"}
SIDES = {
    "outputs": "max_i |f^Q_W(x_i)| ≤ ½ C₂ ρ b²",
    "loss": "|L − L^Q| ≤ δ + ½κ²",
    "gradient": "|⟨∇L − ∇L^Q, W⟩| ≤ κ + (δ + ½κ²) C₂ρb² + 3δ",
    "curvature": "|E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']| ≤ C₁²(ρ + b_∞)⁴b⋆² m^(−1/2) + C₂²ρ²b²b⋆² m⁻¹ + C₃bb⋆² m^(−1/4) + "
    "(δ + ½κ²) C₂ρb⋆²",
}  # fmt: skip
RATES = {
    "loss": "|L − L^Q| = O(m^(−1/4))",
    "gradient": "|⟨∇L − ∇L^Q, W⟩| = O(m^(−1/4))",
    "curvature": "|E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']| = O(m^(−1/4))",
}
WORDS = (
    "κ² = C₁²ρ⁴b²m^(−1/2) and δ = C₃b³m^(−1/4)/6 from Lemma 11, with ρ = max |w_{0,r}ᵀx_i|, b = B_x‖W‖_{2,4}, "
    "b⋆ = B_x‖W⋆‖_{2,4}, b_∞ = B_x‖W‖_{2,∞} and C = (½, 1, 1) for relu³/6: the proof's bounds with their constants."
)
SHOWN = 6  # starts in a figure
COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")


def claims(drawn: Results, widths: Results, trained: Results) -> list[Claim]:
    found: list[Claim] = []
    if len(drawn):
        cells = [cell for cell, _ in drawn]
        sizes = ", ".join(dict.fromkeys(f"({cell.dim}, {cell.width})" for cell in cells))
        count = sum(data["lemma"].size for _, data in drawn)
        losses = " and ".join(drawn.values("loss"))
        where = f"{count} random points, (d, m) = {sizes}, {cells[0].seeds} seeds, {losses} loss"
        found += _inequalities([data for _, data in drawn], where, "at random points")
        found.append(_penalty([data for _, data in drawn], where))
    if len(trained):
        cells = [cell for cell, _ in trained]
        count = sum(data["lemma"].size for _, data in trained)
        sizes = ", ".join(str(width) for width in trained.values("width"))
        where = f"{count} points on the way from {cells[0].count} starts, d = {cells[0].dim}, m = {sizes}"
        found += _inequalities([data for _, data in trained], where, "along training")
    found += _of_widths(widths)
    for width in trained.values("width"):
        found += _of_starts(trained.where(width=width))
    return found


def _inequalities(parts: list[xr.Dataset], where: str, when: str) -> list[Claim]:
    def worst(name: str) -> float:
        return max(float((one[name] / one["proven"]).max()) for one in parts)

    broken = sum(int((one["lemma"] < -ROUNDING).sum()) for one in parts)
    tightest = min(float((one["lemma_slack"] / one["lemma_last"]).min()) for one in parts)
    return [
        Claim.at_most(
            broken, 0, source="Lemma 1, eq. (5)",
            statement="E_Σ' ∇²L^Q[W⋆Σ', W⋆Σ'] ≤ ⟨∇L^Q, W⟩ − 2(L^Q − OPT) + (mn)⁻¹ Σ_i Σ_r σ''(w_{0,r}ᵀx_i)² (w_rᵀx_i)² "
            f"(w⋆_rᵀx_i)², {when}",
            measured=f"points at which it is violated, {where}",
            note=f"The smallest slack is {tightest:.2g} of the last term, which has 1/m where B.1 prints 2/m.",
        ),
        Claim.at_most(
            worst("theorem"), 1.0, source="Theorem 2, eq. (7)",
            statement="E_Σ' ∇²L[W⋆Σ', W⋆Σ'] ≤ ⟨∇L, W⟩ − 2(L − OPT) + ε with the ε that Lemmas 1, 12, 13 and 14 add up "
            f"to, at any width, {when}",
            measured=f"largest ε needed over that ε, {where}",
            note=f"(7) holds with ε = 0 at {_share(parts, 'theorem')} of the points and needs "
            f"{_largest(parts, 'theorem')} at most; the proof's ε lies between "
            f"{min(float(one['proven'].min()) for one in parts):.2g} and {_largest(parts, 'proven')}: true, and "
            "far from sharp.",
        ),
        Claim.at_most(
            worst("corollary"), 1.0, source="Corollary 3, eq. (8)",
            statement="the same for L_λ, with − λ‖W‖⁸_{2,4} + Cλ‖W⋆‖⁸_{2,4}, C = 378(14/5)³ ≈ 8298, on the right, "
            f"{when}",
            measured=f"largest ε needed over the ε of Theorem 2, {where}",
            note=f"(8) holds with ε = 0 at {_share(parts, 'corollary')} of the points and needs "
            f"{_largest(parts, 'corollary')} at most.",
        ),
    ]  # fmt: skip


def _share(parts: list[xr.Dataset], name: str) -> str:
    return f"{np.mean(np.concatenate([one[name].values.ravel() for one in parts]) == 0):.0%}".replace("%", " %")


def _largest(parts: list[xr.Dataset], name: str) -> str:
    return f"{max(float(one[name].max()) for one in parts):.2g}"


def _penalty(parts: list[xr.Dataset], where: str) -> Claim:
    attained = min(float(one["penalty_attained"].min()) for one in parts)
    return Claim.at_most(
        max(float(one["penalty"].max()) for one in parts), 1 + ROUNDING, source="Corollary 3, Appendix B.5",
        statement="E_Σ' ∇²P[W⋆Σ', W⋆Σ'] ≤ ⟨∇P, W⟩ − 3P(W) + C P(W⋆) for P = ‖·‖⁸_{2,4}, for all W and W⋆",
        measured=f"largest ratio of the two sides, {where}",
        note=f"C cannot be smaller: with one column of W⋆ and W = √8.4 W⋆ the ratio is {attained:.9f}.",
    )  # fmt: skip


def _of_widths(results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    cell = results.pairs[0][0]
    widths = np.array([float(one.width) for one, _ in results])
    over = (
        f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds, {cell.signs} signs, {len(widths)} widths from "
        f"{widths[0]:.0f} to {widths[-1]:.0f}"
    )
    slope = f"log-log slope in m, 99 % interval, {over}"
    found = []
    for name, lemma in LEMMAS.items():
        ratio = max(float(data[f"{name}_ratio"].max()) for _, data in results)
        found.append(
            Claim.at_most(
                ratio, 1.0, source=lemma, statement=SIDES[name],
                measured=f"largest ratio of the two sides, at W⋆ and at random W of the same norm, {over}",
                note=WORDS if name == "outputs" else "",
            )
        )  # fmt: skip
    found.append(
        Claim.no_slower(
            slope_interval(widths, _table(results, "outputs", "W⋆"), level=0.99), 0.0, source="Lemma 10",
            statement="f^Q_W = O(1) in m at W⋆", measured=slope,
        )
    )  # fmt: skip
    for name, rate in RATES.items():
        for at in ("W⋆", "random"):
            table = _table(results, name, at)
            found.append(
                Claim.no_slower(
                    slope_interval(widths, table, level=0.99), -0.25, source=LEMMAS[name],
                    statement=f"{rate} at {'W⋆' if at == 'W⋆' else 'random W'}",
                    measured=slope, note=_faster(widths, table),
                )
            )  # fmt: skip
    needed = _table(results, "needed", "W⋆")
    asked = float(results.pairs[-1][1]["asked"].mean())
    return [
        *found,
        Claim.no_slower(
            slope_interval(widths, needed, level=0.99), -0.25, source="Theorem 2, eq. (6) and (7)",
            statement="the ε needed in (7) is O(m^(−1/4)): (6) asks for m of order ε⁻⁴", measured=f"at W⋆: {slope}",
            note="At W⋆ convexity leaves no room in (7): needed are Lemma 1's last term, of order m⁻¹, and what L and "
            f"L^Q differ by, of order m^(−1/2). {_faster(widths, needed)} The lemmas' bounds fall with a slope of "
            f"{slope_interval(widths, _table(results, 'proven', 'W⋆')).value:.3f}, since ρ grows with log m.",
        ),
        Claim.at_most(
            mean_interval(needed[:, -1], level=0.99), EPSILON, source="Theorem 2, eq. (7)",
            statement=f"(7) with ε = {EPSILON:g} at W⋆", inside=bool(widths[-1] >= asked),
            measured=f"ε needed at m = {widths[-1]:.0f}, 99 % interval over {cell.seeds} seeds",
            note=f"(6), with the constant of O(·) as one, asks for m ≥ {asked:.1g}.",
        ),
    ]  # fmt: skip


def _faster(widths: Float[np.ndarray, " k"], table: Float[np.ndarray, "s k"]) -> str:
    root = (widths**0.5 * table).mean(axis=0)
    return f"m^(1/2) times it: {root[0]:.3g} at the smallest width, {root[-1]:.3g} at the largest."


def _table(results: Results, name: str, at: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].sel(at=at).values for _, data in results], axis=1)


def _of_starts(results: Results) -> list[Claim]:
    """Theorem 4 at one width. Its hypothesis on the width is that (8) holds at Ŵ with its ε, which is measured."""
    cell = results.pairs[0][0]
    parts = [data for _, data in results]
    signs = "all signs" if cell.width <= ENUMERATED else f"{cell.signs} signs"
    networks = "one network" if len(parts) == 1 else f"each of {len(parts)} networks"
    over = f"m = {cell.width}, d = {cell.dim}, {signs}, {cell.count} starts on {networks}"

    def most(value: Callable[[xr.Dataset], xr.DataArray]) -> float:
        return max(float(value(one).max()) for one in parts)

    how = "of the whole Hessian" if cell.dim * cell.width <= DENSE else "by Lanczos, δ = 10⁻³ each"
    asked = most(lambda one: one["corollary"][-1])
    at_saddle = most(lambda one: one["corollary"][0, 0])
    all_along = most(lambda one: one["corollary"])
    tight = "" if len(parts) == 1 else ", on the network where it is nearest to its own bound"
    saddle = max(parts, key=lambda one: float(_along(one)[0] - one["corollary_right"][0, 0]))
    return [
        Claim.at_most(
            most(lambda one: one["inexactness"]), EPSILON, source="Theorem 4",
            statement="the last points are second-order stationary up to what costs ε in (8): "
            "‖∇L_λ‖ ‖Ŵ‖_F + (−λ_min)₊ ‖W⋆‖_F² ≤ ε",
            measured=f"largest left side, {over}",
            note=f"Largest ‖∇L_λ‖ = {most(lambda one: one['gradient']):.1g}; λ_min at least "
            f"{-most(lambda one: -one['last_lowest']):.2g} ({how}; residuals up to "
            f"{most(lambda one: one['last_residual']):.1g}), against "
            f"{min(float(one['curvature'][0]) for one in parts):.2g} next to W = 0.",
        ),
        Claim.at_most(
            *_nearest(parts, _loss, "loss_bound"), source="Theorem 4, eq. (10)", inside=asked <= EPSILON,
            statement=f"L_λ(Ŵ) ≤ (1 + γ) OPT + ε from every start, γ = {GAMMA:g}, ε = {EPSILON:g}",
            measured=f"largest loss, also on fresh signs and three standard errors up, {over}{tight}",
            note=f"{_story(parts)} {_hypothesis(asked, 'at Ŵ', cell.dim, parts)}",
        ),
        Claim.at_most(
            *_nearest(parts, lambda one: one["norm"] / one["norm_star"], "norm_bound", "norm_star"),
            source="Theorem 4, eq. (10)", inside=asked <= EPSILON,
            statement="‖Ŵ‖_{2,4} ≤ (C(1 + (2 OPT + ε)/(2γ OPT + ε)))^(1/8) ‖W⋆‖_{2,4}, the O(B_{w,⋆}) of B.6",
            measured=f"largest ‖Ŵ‖_{{2,4}}/‖W⋆‖_{{2,4}}, {over}{tight}",
            note=_hypothesis(asked, "at Ŵ", cell.dim, parts),
        ),
        Claim.at_most(
            float(_along(saddle)[0]), float(saddle["corollary_right"][0, 0]) + EPSILON,
            source="Corollary 3 at a saddle", inside=at_saddle <= EPSILON,
            statement="next to W = 0, where ∇L_λ ≈ 0 and L_λ is large, (8) gives a direction of descent: "
            "λ_min ‖W⋆‖_F² ≤ ⟨∇L_λ, W⟩ − 2(L_λ − OPT) − λ‖W‖⁸ + Cλ‖W⋆‖⁸ + ε < 0",
            measured=f"vᵀ∇²L_λv ‖W⋆‖_F² ≥ λ_min ‖W⋆‖_F² in the direction found, {over}{tight}",
            note=_hypothesis(at_saddle, "next to W = 0", cell.dim, parts),
        ),
        Claim.at_most(
            max(float((_along(one) - one["corollary_right"].values[:, 0]).max()) for one in parts), EPSILON,
            source="Corollary 3 along training", inside=all_along <= EPSILON,
            statement="λ_min ‖W⋆‖_F² is at most the right side of (8), from the saddle to Ŵ",
            measured=f"the largest ε this takes, {over}",
            note=_hypothesis(all_along, "at most on the way", cell.dim, parts),
        ),
    ]  # fmt: skip


def _nearest(
    parts: list[xr.Dataset], value: Callable[[xr.Dataset], xr.DataArray], bound: str, unit: str | None = None
) -> tuple[float, float]:
    """A network's largest value and its own bound (in its own unit), for the network where they are the closest."""
    found = [(float(value(one).max()), float(one[bound] / (one[unit] if unit else 1))) for one in parts]
    return max(found, key=lambda pair: pair[0] / pair[1])


def _story(parts: list[xr.Dataset]) -> str:
    """Where each network's starts ended, next to its own OPT and bound."""
    ends = "; ".join(
        f"{f'network {k}: ' if len(parts) > 1 else ''}from losses of {float(one['loss'][0].min()):.3f} to "
        f"{float(one['loss'][0].max()):.3f} to between {float(one['last_loss'].min()):.4f} and "
        f"{float(one['last_loss'].max()):.4f} (on fresh signs {float(one['fresh_loss'].max()):.4f} at most), with "
        f"OPT = {float(one['opt']):.4f} and a bound of {float(one['loss_bound']):.4f}"
        for k, one in enumerate(parts, start=1)
    )
    return f"{ends[0].upper()}{ends[1:]}. No predictor is below H({NOISE:g}) = {BEST:.4f}."


def _hypothesis(needed: float, where: str, dim: int, parts: list[xr.Dataset]) -> str:
    """What stands for the hypothesis on the width, (6), namely what the proof takes from it; and what (6) would ask."""
    width = max(
        stationary_width(dim, norm=float(one["norm_star"]), opt=float(one["opt"]), gamma=GAMMA, epsilon=EPSILON,
                         radius=dim**0.5)
        for one in parts
    )  # fmt: skip
    inside = needed <= EPSILON
    return (
        f"{'Inside' if inside else 'Outside'} the hypothesis as measured, not by width: (8) needs ε = {needed:.3g} "
        f"{where}, {'no more' if inside else 'more'} than {EPSILON:g}. (6), its constants as one, asks for "
        f"m ≥ {width:.0e}."
    )


def _loss(one: xr.Dataset) -> xr.DataArray:
    """L_λ(Ŵ) on the risk's own signs or, three standard errors up, on fresh ones, whichever is larger."""
    return one["last_loss"].clip(min=one["fresh_loss"] + 3 * one["fresh_error"])


def _along(one: xr.Dataset) -> Float[np.ndarray, " t"]:
    """λ_min‖W⋆‖_F², from above, at every look at the start next to the saddle."""
    return np.asarray(one["curvature"] * one["length_star"], np.float64)


def figures(drawn: Results, widths: Results, trained: Results) -> list[Figure]:
    found = [_losses(cell, data) for cell, data in _ends(trained)]
    if len(trained):
        found.append(_curvatures(trained))
    if len(widths) > 1:
        found += [_epsilons(widths), _closeness(widths)]
    if len(drawn):
        found.append(_slacks(drawn))
    return found


def _ends(trained: Results) -> list[tuple[object, xr.Dataset]]:
    """The narrowest and the widest network."""
    first = [(cell, data) for cell, data in trained if cell.seed == 0]
    return first[:1] + first[1:][-1:]


def _losses(cell: object, data: xr.Dataset) -> Figure:
    plot = new_plot()
    steps = data["look"].values + 1.0
    shown = np.unique(np.linspace(0, data.sizes["start"] - 1, SHOWN).round().astype(int))
    for j, k in enumerate(shown):
        size = float(data["start_norm"][k] / data["norm_star"])
        name = f"from {size:.1g} ‖W⋆‖" if k else f"from {size:.1g} ‖W⋆‖, by the saddle"
        line(plot, steps, data["loss"].values[:, k], name=name, colour=COLOURS[j % len(COLOURS)])
    for value, name, dash in (
        (float(data["loss_bound"]), "(1 + γ) OPT + ε", "dash"),
        (float(data["opt"]), "OPT", "dot"),
        (float(data["best"]), "H(q), the best possible", "dashdot"),
    ):
        line(plot, steps[[0, -1]], np.full(2, value), name=name, colour="grey", dash=dash)
    style(plot, x="step + 1 (SGD with fresh signs, then descent)", y="L_λ", log_x=True, log_y=True)
    width, signs = cell.width, "all signs" if cell.width <= ENUMERATED else f"{cell.signs} signs"  # type: ignore[attr-defined]
    caption = (
        f"2-XOR with label noise, d = {cell.dim}, m = {width}, {signs}; {cell.steps} steps of noisy SGD, then descent. "  # type: ignore[attr-defined]
        f"The losses of all {data.sizes['start']} starts end between {float(data['last_loss'].min()):.4f} and "
        f"{float(data['last_loss'].max()):.4f}."
    )
    return Figure(f"From every start to nearly the same loss: m = {width}", caption, plot)


def _curvatures(trained: Results) -> Figure:
    plot, shown = new_plot(), [(cell, data) for cell, data in trained if cell.seed == 0]
    for k, (cell, data) in enumerate(shown):
        colour = COLOURS[k % len(COLOURS)]
        line(plot, data["look"].values + 1.0, _along(data), name=f"λ_min ‖W⋆‖², m = {cell.width}", colour=colour)
    cell, data = shown[-1]
    bound = data["corollary_right"].values[:, 0] + EPSILON
    line(plot, data["look"].values + 1.0, bound, name=f"(8), right side, m = {cell.width}", colour="grey", dash="dash")
    style(plot, x="step + 1 (SGD with fresh signs, then descent)", y="smallest curvature times ‖W⋆‖²", log_x=True)
    caption = (
        f"The start at 10⁻³ ‖W⋆‖. Corollary 3 with ε = {EPSILON:g} bounds λ_min ‖W⋆‖² from above by the dashed line: "
        "where the loss is high and the gradient small, some curvature must be negative."
    )
    return Figure("W = 0 is a saddle; training leaves it, and the smallest curvature rises to zero", caption, plot)


def _epsilons(results: Results) -> Figure:
    widths, plot = np.array([float(cell.width) for cell, _ in results]), new_plot()
    for name, label, colour in (("proven", "proven: Lemmas 1, 12, 13, 14", "blue"), ("needed", "needed", "vermillion")):
        table = _table(results, name, "W⋆")
        points(plot, widths, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    first = float(_table(results, "needed", "W⋆")[:, 0].mean())
    for power, dash in ((-0.25, "dot"), (-0.5, "dash")):
        trend = first * (widths / widths[0]) ** power
        line(plot, widths, trend, name=f"m^(−1/{round(-1 / power)})", colour="grey", dash=dash)
    style(plot, x="width m", y="ε of Theorem 2 at W⋆", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds (bars: all of them), {cell.signs} signs."
    return Figure("The ε that Theorem 2 needs goes to zero, faster than the proof has it", caption, plot)


def _closeness(results: Results) -> Figure:
    widths, plot = np.array([float(cell.width) for cell, _ in results]), new_plot()
    labels = {"loss": "value (12)", "gradient": "gradient along W (13)", "curvature": "Hessian along W⋆Σ' (14)"}
    for (name, label), colour in zip(labels.items(), COLOURS, strict=False):
        for at, symbol in (("W⋆", "circle"), ("random", "circle-open")):
            table = _table(results, name, at)
            band = (table.min(axis=0), table.max(axis=0))
            where = f"{label}, {at if at == 'W⋆' else 'random W'}"
            points(plot, widths, table.mean(axis=0), name=where, colour=colour, symbol=symbol, band=band)
    first = float(_table(results, "curvature", "W⋆")[:, 0].mean())
    for power, name, dash in ((-0.25, "m^(−1/4), the lemmas", "dot"), (-0.5, "m^(−1/2)", "dash")):
        line(plot, widths, first * (widths / widths[0]) ** power, name=name, colour="grey", dash=dash)
    style(plot, x="width m", y="difference between L and L^Q", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"2-XOR with label noise, d = {cell.dim}, {cell.seeds} seeds (bars: all of them), {cell.signs} signs. Random W "
        "have the norm of W⋆."
    )
    return Figure("The landscapes of L and L^Q come together like m^(−1/2)", caption, plot)


def _slacks(drawn: Results) -> Figure:
    plot = new_plot()
    names = ("W anywhere", "W next to W⋆Σ", "W and W⋆ anywhere")
    for kind, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        chosen = [(data["kind"].values == kind, data) for _, data in drawn]
        x, y = (np.concatenate([_picked(data, of, rows) for rows, data in chosen]) for of in ("size", "lemma"))
        points(plot, x, y, name=name, colour=colour)
    style(plot, x="‖W‖ / ‖W⋆‖ (2,4-norms)", y="slack of (5) over its terms", log_x=True)
    caption = (
        "Right less left side of Lemma 1, divided by the sum of all terms' sizes; below zero the lemma would be "
        f"violated. {math.prod(drawn.pairs[0][1]['lemma'].shape)} points for each size and loss."
    )
    return Figure("Lemma 1 is never violated, and nearly attained next to W⋆", caption, plot)


def _picked(data: xr.Dataset, name: str, rows: Bool[np.ndarray, "s p"]) -> Float[np.ndarray, " k"]:
    return np.asarray(data[name].values[rows], np.float64)
