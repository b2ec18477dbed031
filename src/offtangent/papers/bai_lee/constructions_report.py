"""What the constructions say: their claims and figures."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style

DELTA = 0.1  # with which probability the bounds may fail
ROUNDING = 1e-9
NAMES = {"2": "(βᵀx)²", "3": "(βᵀx)³", "4": "(βᵀx)⁴", "6": "(βᵀx)⁶", "xor": "2-XOR"}
COLOURS = {"2": "blue", "3": "green", "4": "vermillion", "6": "purple", "xor": "orange"}


def claims(targets: Results, features: Results, spreads: Results) -> list[Claim]:
    found: list[Claim] = []
    for target in targets.values("target"):
        found += _of_target(target, targets.where(target=target))
    if len(features) > 1:
        found += _of_features(features)
    for law in spreads.values("law"):
        found += _of_spread(law, spreads.where(law=law))
    return found


def _table(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def _sizes(results: Results, name: str = "width") -> Float[np.ndarray, "k"]:
    return np.array([float(getattr(cell, name)) for cell, _ in results])


def _where(results: Results) -> str:
    cell, widths = results.pairs[0][0], _sizes(results)
    return (
        f"{cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds, {len(widths)} widths from {widths[0]:.0f} to "
        f"{widths[-1]:.0f}"
    )


def _of_target(target: str, results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    widths, name = _sizes(results), NAMES[target]
    where = _where(results)
    slope = f"log-log slope in m of the root mean square over inputs, 99 % interval, {where}"
    source = "Theorem 7, footnote 5" if target == "xor" else "Theorem 7"
    ratio = (_table(results, "square") / _table(results, "expected")).mean(axis=1)
    said = "with random signs between its two parts " if target == "xor" else ""
    found = [
        Claim.no_slower(
            slope_interval(widths, _table(results, "error"), level=0.99), -0.5, source=source,
            statement=f"f^Q at W⋆ {said}is {name} up to an error of O(m^(−1/2))", measured=slope,
        ),
        Claim.at_most(
            float((_table(results, "worst") > 1).mean()), DELTA, source=source,
            statement=f"{name}: max_i |f^Q(x_i) − f⋆(x_i)| ≤ √(Σ_i E(…)²/δ) with probability 1 − δ, δ = 0.1",
            measured=f"fraction of networks beyond it, {where}",
            note=f"Largest ratio of the two sides: {_table(results, 'worst').max():.2f}.",
        ),
        Claim.at_most(
            float((_table(results, "norm_ratio") > 1).mean()), DELTA / 2, source=source,
            statement=f"{name}: ‖W⋆‖⁴_(2,4) ≤ 32π((p−2)³∨1) α² B_x^(2(p−2)) ‖β‖^(2p)/δ with probability 1 − δ/2"
            + (", of both parts together by the triangle inequality" if target == "xor" else ""),
            measured=f"fraction of networks beyond it, δ = 0.1, {where}",
            note=f"Largest ratio of the two sides: {_table(results, 'norm_ratio').max():.3f}; ‖W⋆‖⁴ "
            f"{_table(results, 'norm4').mean(axis=0)[-1]:.3g} at the largest width.",
        ),
    ]  # fmt: skip
    if target == "xor":
        return found
    feature = (_table(results, "feature_square") / _table(results, "feature_expected")).mean(axis=1)
    degree = f"(βᵀx)^{int(target) - 2}" if target != "2" else "1"
    return [
        *found,
        Claim.includes(
            mean_interval(ratio, level=0.99), 1.0, source="Theorem 7",
            statement=f"{name}: the error's mean square is (2/m)(βᵀx)⁴ Var[relu(w₀ᵀx)a(w₀)]",
            measured=f"measured over stated, 99 % interval, {where}",
        ),
        Claim.includes(
            mean_interval(feature, level=0.99), 1.0, source="Lemma 9",
            statement=f"a mean of relu(w₀ᵀx)a(w₀) over m/2 features is {degree} up to √(2 Var/m)",
            measured=f"mean square over stated, 99 % interval, {where}",
        ),
        Claim.at_most(
            float(_table(results, "energy_ratio").mean(axis=0)[-1]), 1.0, source="Lemma 9",
            statement=f"E[a²] ≤ 2π(q∨1)³ α² B_x^(2q) ‖β‖^(2q) for q = {int(target) - 2}",
            measured=f"ratio of the two sides at the largest width, {where}",
        ),
    ]  # fmt: skip


def _of_features(results: Results) -> list[Claim]:
    widths = _sizes(results)
    where = _where(results)
    said: dict[str, Any] = {"measured": f"largest ratio of the two sides, {where}"}
    largest, lemma = _table(results, "largest"), _table(results, "lemma")
    return [
        Claim.at_most(
            float((largest / lemma).max()), 1 + ROUNDING, source="Lemma 8",
            statement="E_σ max_r ‖Σ_i σ_i A_(r,i)‖_op ≤ 4√(max_r v_r log 2md), A_(r,i) = n⁻¹σ''(w_(0,r)ᵀx_i) x_i x_iᵀ",
            note=f"Tropp's own constant, √2, does as well: {(largest / _table(results, 'tropp')).max():.2f}.", **said,
        ),
        Claim.at_most(
            float((_table(results, "loss_bound") / _table(results, "theorem")).max()), 1 + ROUNDING,
            source="Lemma 5, Theorem 6",
            statement="2B_w² E max_r‖A_r‖_op + n^(−1/2) is at most Theorem 6's 4B_w²·4B_x√(log(2dm)/n)"
            "(E max σ''² · E‖n⁻¹Σxxᵀ‖_op)^(1/2) + 2/√n, B_w = 1", **said,
        ),
        Claim.no_slower(
            slope_interval(widths, largest / lemma, level=0.99), 0.0, source="Theorem 6",
            statement="the feature term grows at most logarithmically with the width: no faster than Lemma 8's bound",
            measured=f"log-log slope in m of their ratio, 99 % interval, {where}",
            note=f"E max_r‖A_r‖: {', '.join(f'{one:.3f}' for one in largest.mean(axis=0))}.",
        ),
    ]  # fmt: skip


def _of_spread(law: str, results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    cell, dims = results.pairs[0][0], _sizes(results, "dim")
    spread = _table(results, "spread")
    slope = slope_interval(dims, spread, level=0.99)
    return [
        Claim.at_most(
            mean_interval((np.sqrt(dims) * spread).max(axis=1), level=0.99), 1 + cell.ratio**-0.5, source="Theorem 6",
            statement=f"M_(x,op) = O(1/√d) for isotropic inputs ({law}): √d M_(x,op) ≤ 1 + √(d/n)",
            measured=f"the largest over {len(dims)} dimensions from {dims[0]:.0f} to {dims[-1]:.0f}, 99 % interval, "
            f"n = {cell.ratio}d, {cell.seeds} seeds",
            note=f"√d M: {', '.join(f'{one:.3f}' for one in (np.sqrt(dims) * spread).mean(axis=0))}. "
            f"Log-log slope {slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}], not −1/2: √d M rises to its limit. "
            "1 + √(d/n) is the limit of the largest singular value (for Gaussian inputs a bound: Davidson, Szarek).",
        )
    ]  # fmt: skip


def figures(targets: Results, features: Results, spreads: Results) -> list[Figure]:
    drawn = []
    if len(targets) > 1:
        drawn += [_errors(targets)]
    if len(features) > 1:
        drawn += [_bounds(features)]
    if len(spreads) > 1:
        drawn += [_spreads(spreads)]
    return drawn


def _errors(results: Results) -> Figure:
    plot = new_plot()
    for target in results.values("target"):
        chosen = results.where(target=target)
        widths, table = _sizes(chosen), _table(chosen, "error")
        points(plot, widths, table.mean(axis=0), name=NAMES[target], colour=COLOURS[target],
               band=(table.min(axis=0), table.max(axis=0)))  # fmt: skip
        stated = np.sqrt(_table(chosen, "expected").mean(axis=0))
        line(plot, widths, stated, name=f"{NAMES[target]}, stated", colour=COLOURS[target], dash="dot")
    style(plot, x="width m", y="|f^Q at W⋆ − f⋆|, root mean square", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"{cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds (bars: all of them). Dotted: the exact mean square "
        "over W₀; for 2-XOR, whose parts share W₀, a bound."
    )
    return Figure("Theorem 7: the quadratic part at W⋆ tends to its target like m^(−1/2)", caption, plot)


def _bounds(results: Results) -> Figure:
    plot, widths = new_plot(), _sizes(results)
    for name, label, colour in (
        ("largest", "E max_r ‖A_r‖, measured", "blue"),
        ("typical", "root mean square over neurons, [λ_max(a_r A_r)]₊", "green"),
        ("tropp", "Tropp's bound", "orange"),
        ("lemma", "Lemma 8", "vermillion"),
    ):
        table = _table(results, name)
        points(plot, widths, table.mean(axis=0), name=label, colour=colour,
               band=(table.min(axis=0), table.max(axis=0)))  # fmt: skip
    style(plot, x="width m", y="feature term", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"{cell.samples} inputs on the sphere, d = {cell.dim}, {cell.seeds} seeds (bars: all of them)."
    return Figure("Lemmas 5 and 8: the feature term hardly grows with the width", caption, plot)


def _spreads(results: Results) -> Figure:
    plot = new_plot()
    for law, colour in zip(results.values("law"), ("blue", "orange"), strict=False):
        chosen = results.where(law=law)
        dims, table = _sizes(chosen, "dim"), _table(chosen, "spread")
        points(plot, dims, table.mean(axis=0), name=law, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    dims = np.array(sorted(results.values("dim")), float)
    line(plot, dims, dims**-0.5, name="1/√d", colour="grey", dash="dot")
    edge = 1 + results.pairs[0][0].ratio ** -0.5
    line(plot, dims, edge * dims**-0.5, name="(1 + √(d/n))/√d", colour="grey", dash="dash")
    style(plot, x="dimension d", y="M_(x,op)", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"n = {cell.ratio}d inputs, {cell.seeds} seeds. Inputs on a line would have M_(x,op) = 1, whatever d, by "
        "definition: the mean of xxᵀ is then B_x² times a projection."
    )
    return Figure("Theorem 6: isotropic inputs have M_(x,op) near 1/√d", caption, plot)
