"""What the constructions say: their claims and figures.

What follows from a second moment by Chebyshev's or Markov's inequality is judged at that moment, where it can be wrong.
Degree q = 0 needs no Gaussian: a is a constant, and the bounds on it are equalities.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, mean_interval
from offtangent.lab.sweeps import Sweep
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.bai_lee.complexity import sphere_spread_bound

DELTA = 0.1  # with which probability the bounds may fail
ROUNDING = 1e-9
NAMES = {"2": "(βᵀx)²", "3": "(βᵀx)³", "4": "(βᵀx)⁴", "6": "(βᵀx)⁶", "xor": "2-XOR"}
COLOURS = {"2": "blue", "3": "green", "4": "vermillion", "6": "purple", "xor": "orange"}


def claims(targets: Results, features: Results, spreads: Results) -> Iterator[Claim]:
    """All of them.

    Args:
        targets: The cells of targets expressed at one width.
        features: Those of the feature term.
        spreads: Those of the spread of inputs.

    Returns:
        The claims: of each target, of the feature term, of each law of the inputs.
    """
    for (target,), cells in targets.groups("target"):
        sweep = _sweep(cells)
        if sweep:
            yield from _of_target(target, sweep)
            if target != "xor":
                yield from _of_lemma_9(int(target), sweep)
    features_sweep = _sweep(features)
    if features_sweep:
        yield from _of_features(features_sweep)
    for (law,), cells in spreads.groups("law"):
        if len(cells) >= 3:
            yield from _of_spread(law, cells)


def _sweep(results: Results) -> Sweep[Any] | None:
    if len(results) < 3:
        return None
    cell = results.first
    return results.sweep("width", f"{cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds")


def _said(target: str) -> tuple[dict[str, Any], str]:
    """The source and hypothesis of what is said of a target, and how 2-XOR differs, in words."""
    power, xor = 2 if target == "xor" else int(target), target == "xor"
    odd = Hypothesis("(p − 2) mod 2, but for p = 3", 0 if power == 3 else power % 2, "=", 0, "Theorem 7")
    words: dict[str, Any] = {"source": "Theorem 7, footnote 5" if xor else "Theorem 7", "hypotheses": (odd,)}
    return words, "with random signs between its two parts " if xor else ""


def _of_target(target: str, sweep: Sweep[Any]) -> Iterator[Claim]:
    name, xor = NAMES[target], target == "xor"
    power = 2 if xor else int(target)
    words, said = _said(target)
    yield sweep.slope(
        "error",
        "≤",
        -0.5,
        **words,
        of="the root mean square over inputs",
        statement=f"f^Q at W⋆ {said}is {name} up to an error of O(m^(−1/2))",
        note="max_i |f^Q(x_i) − f⋆(x_i)| > √(Σ_i E(…)²/δ), which Chebyshev's inequality allows in a share of δ = "
        f"{DELTA:g}, in {int((sweep['worst'] > 1).sum())} of {sweep['worst'].size} networks (largest ratio "
        f"{sweep['worst'].max():.2f}).",
    )
    above = (
        f"Above the bound at δ = {DELTA:g}: {int((sweep['norm_ratio'] > 1).sum())} of {sweep['norm_ratio'].size} "
        f"networks. ‖W⋆‖⁴: {sweep['norm4'].mean(axis=0)[-1]:.3g}."
    )
    bound = "32π((p−2)³∨1) α² B_x^(2(p−2)) ‖β‖^(2p)/δ"
    if xor:
        yield sweep.worst(
            "norm_ratio",
            1 + ROUNDING,
            identity=True,
            **words,
            statement=f"{name}: ‖W⋆‖_(2,4) is at most the sum over both parts of ({bound})^(1/4) with "
            f"δ/2 = {DELTA / 2:g} for each δ",
            note=f"{above} For p = 2 the a(w₀) are one constant, and so is ‖W⋆‖.",
        )
        return
    yield Claim.includes(
        mean_interval((sweep["square"] / sweep["expected"]).mean(axis=1), level=0.99),
        1.0,
        **words,
        statement=f"{name}: the error's mean square is (2/m)(βᵀx)⁴ Var[relu(w₀ᵀx)a(w₀)]",
        measured=f"measured over stated, 99 % interval, {sweep.where}",
    )
    yield Claim.at_most(
        _energy(sweep["norm_ratio"] * 2 / DELTA, power - 2),
        1.0,
        **words,
        identity=power == 2,
        statement=f"{name}: E‖W⋆‖⁴_(2,4) ≤ 16π((p−2)³∨1) α² B_x^(2(p−2)) ‖β‖^(2p), so that by Markov's inequality "
        f"‖W⋆‖⁴ ≤ {bound} with probability 1 − δ/2",
        measured=f"mean over bound at the largest width, 99 % interval, {sweep.where}",
        note=above + (" For p = 2 the a(w₀) are one constant, and so is ‖W⋆‖." if power == 2 else ""),
    )


def risk_claims(targets: Results) -> Iterator[Claim]:
    """Theorem 7's own inequality, |L^Q(W⋆) − L(f⋆)| ≤ ε for m ≥ Õ(…ε⁻²): the exponent of ε in m.

    Args:
        targets: The cells of targets expressed at one width.

    Returns:
        A claim for each target.
    """
    for (target,), cells in targets.groups("target"):
        sweep = _sweep(cells)
        if sweep:
            yield _risk(target, sweep)


def _risk(target: str, sweep: Sweep[Any]) -> Claim:
    words, said = _said(target)
    statement = f"L^Q at W⋆ {said}is L of {NAMES[target]} up to an error of O(m^(−1/2)): m ≥ Õ(ε⁻²) neurons for an ε"
    if any("risk" not in data for _, data in sweep.results):
        why = "This record has outputs alone, whose error bounds that of a 1-Lipschitz loss."
        return Claim.not_run(
            source=words["source"],
            statement=statement,
            reason="data",
            why=why,
            profile="smoke, laptop or paper, run anew",
        )
    risks = ", ".join(f"{one:.2g}" for one in np.sqrt((sweep["risk"] ** 2).mean(axis=0)))
    return sweep.slope(
        "risk",
        "≤",
        -0.5,
        **words,
        of="|L^Q(W⋆) − L(f⋆)|, logistic loss, labels sgn f⋆",
        statement=statement,
        note=f"Root mean squares over seeds: {risks}.",
    )


def _energy(ratios: Float[np.ndarray, "s k"], q: int) -> Interval:
    """At the largest width. For q = 0 it is one constant, known to rounding."""
    return mean_interval(ratios[:, -1], level=0.99).widened(0.0 if q else -ROUNDING)


def _of_lemma_9(power: int, sweep: Sweep[Any]) -> Iterator[Claim]:
    q = power - 2
    feature = (sweep["feature_square"] / sweep["feature_expected"]).mean(axis=1)
    yield Claim.includes(
        mean_interval(feature, level=0.99),
        1.0,
        source="Lemma 9",
        statement=f"a mean of relu(w₀ᵀx)a(w₀) over m/2 features is {f'(βᵀx)^{q}' if q else '1'} up to √(2 Var/m)",
        measured=f"mean square over stated, 99 % interval, {sweep.where}",
    )
    yield Claim.at_most(
        _energy(sweep["energy_ratio"], q),
        1.0,
        identity=q == 0,
        source="Lemma 9",
        statement=f"E[a²] ≤ 2π(q∨1)³ α² B_x^(2q) ‖β‖^(2q) for q = {q}",
        measured=f"mean over bound at the largest width, 99 % interval, {sweep.where}",
        note="" if q else "For q = 0 a(w₀) is the constant √(2π), and the bound an equality.",
    )


def _of_features(sweep: Sweep[Any]) -> Iterator[Claim]:
    largest = sweep["largest"]
    yield sweep.worst(
        largest / sweep["tropp"],
        1 + ROUNDING,
        source="Lemma 8, with Tropp's constant",
        statement="E_σ max_r ‖Σ_i σ_i A_(r,i)‖_op ≤ √(2 max_r v_r log 2md), A_(r,i) = n⁻¹σ''(w_(0,r)ᵀx_i) x_i x_iᵀ",
        note=f"The lemma's own 4√(max_r v_r log 2md) is √8 times as much: {(largest / sweep['lemma']).max():.2f}.",
    )
    slack = (sweep["loss_bound"] / sweep["theorem"]).max()
    yield sweep.slope(
        largest / sweep["lemma"],
        "≤",
        0.0,
        of="the feature term over Lemma 8's bound",
        source="Theorem 6",
        statement="the feature term grows at most logarithmically with the width: no faster than Lemma 8's bound",
        note=f"E max_r‖A_r‖: {', '.join(f'{one:.3f}' for one in largest.mean(axis=0))}. Lemma 5's 2B_w² E max_r‖A_r‖ + "
        f"n^(−1/2) is {slack:.2g} of Theorem 6's 4B_w²·4B_x√(log(2dm)/n)(E max σ''² · E‖n⁻¹Σxxᵀ‖_op)^(1/2) + 2/√n "
        "at most, B_w = 1: constants that nothing here could contradict.",
    )


def _of_spread(law: str, results: Results) -> Iterator[Claim]:
    cell, dims = results.first, results.field("dim")
    spread = np.sqrt(dims) * results.table("spread")
    bounds = np.array([d**0.5 * sphere_spread_bound(cell.ratio * int(d), int(d)) for d in dims])
    where = f"{len(dims)} dimensions from {dims[0]:.0f} to {dims[-1]:.0f}, n = {cell.ratio}d, {cell.seeds} seeds"
    enough = Hypothesis("samples n over d", cell.ratio, "≥", 1, "Theorem 6: n ≥ O(K⁴d), with K = 1", given=False)
    listed = ", ".join(f"{one:.3f}" for one in spread.mean(axis=0))
    yield Claim.at_most(
        mean_interval(spread.min(axis=1), level=0.99),
        1.0,
        misprint=True,
        source="Theorem 6, as printed",
        hypotheses=(enough,),
        statement=f"M_(x,op) ≤ κ/√d with κ = 1 for isotropic inputs ({law})",
        measured=f"the smallest √d M_(x,op), 99 % interval, {where}",
        note="The trace of n⁻¹Σxxᵀ is B_x², so that √d M_(x,op) ≥ 1 for every sample: a constant is missing.",
    )
    proof = "by Davidson and Szarek's bound for Gaussian matrices and Jensen's inequality"
    yield Claim.at_most(
        mean_interval((spread / bounds).max(axis=1), level=0.99),
        1.0,
        source="Theorem 6",
        hypotheses=(enough,),
        statement=f"M_(x,op) = O(1/√d) for isotropic inputs ({law}): d M² ≤ (d/μ²)((1 + √(d/n))² + 1/n), μ = E‖g‖ of "
        f"a Gaussian vector, about (1 + √(d/n))² = {(1 + cell.ratio**-0.5) ** 2:.4g}",
        measured=f"the largest ratio of M to its bound, 99 % interval, {where}",
        note=f"√d M: {listed}. It rises to its limit 1 + √(d/n). "
        + (f"The bound is proved, {proof}." if law == "sphere" else f"The bound is proved for the sphere, {proof}."),
    )


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
        widths, table = chosen.field("width"), chosen.table("error")
        points(
            plot,
            widths,
            table.mean(axis=0),
            name=NAMES[target],
            colour=COLOURS[target],
            band=(table.min(axis=0), table.max(axis=0)),
        )
        stated = np.sqrt(chosen.table("expected").mean(axis=0))
        line(plot, widths, stated, name=f"{NAMES[target]}, stated", colour=COLOURS[target], dash="dot")
    style(plot, x="width m", y="|f^Q at W⋆ − f⋆|, root mean square", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = (
        f"{cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds (bars: all of them). Dotted: the exact mean square "
        "over W₀; for 2-XOR, whose parts share W₀, a bound."
    )
    return Figure("Theorem 7: the quadratic part at W⋆ tends to its target like m^(−1/2)", caption, plot)


def _bounds(results: Results) -> Figure:
    plot, widths = new_plot(), results.field("width")
    for name, label, colour in (
        ("largest", "E max_r ‖A_r‖, measured", "blue"),
        ("typical", "root mean square over neurons, [λ_max(a_r A_r)]₊", "green"),
        ("tropp", "Tropp's bound", "orange"),
        ("lemma", "Lemma 8", "vermillion"),
    ):
        table = results.table(name)
        points(plot, widths, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    style(plot, x="width m", y="feature term", log_x=True, log_y=True)
    cell = results.pairs[0][0]
    caption = f"{cell.samples} inputs on the sphere, d = {cell.dim}, {cell.seeds} seeds (bars: all of them)."
    return Figure("Lemmas 5 and 8: the feature term hardly grows with the width", caption, plot)


def _spreads(results: Results) -> Figure:
    plot = new_plot()
    for law, colour in zip(results.values("law"), ("blue", "orange"), strict=False):
        chosen = results.where(law=law)
        dims, table = chosen.field("dim"), chosen.table("spread")
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
