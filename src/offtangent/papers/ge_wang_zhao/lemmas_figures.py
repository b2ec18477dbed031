"""The figures of Appendix E's lemmas."""

import numpy as np
from jaxtyping import Float

from offtangent.lab import Results
from offtangent.papers.ge_wang_zhao._kept import DELTA, MANY, chances
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.ge_wang_zhao.features import perturbed_singular_floor, spanning_floor

STARTS = {
    "zero": ("x_j = 0", "vermillion"),
    "equal": ("all x_j equal", "orange"),
    "sphere": ("different x_j", "blue"),
}


def figures(perturbed: Results, balls: Results, spans: Results) -> list[Figure]:
    drawn = []
    if len(perturbed):
        drawn += [_noise(perturbed)]
    if len(balls):
        drawn += [_balls(balls)]
    if len(spans):
        drawn += [_spans(spans)]
    return drawn


def _seeds(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def _bars(table: Float[np.ndarray, "s k"]) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
    return table.min(axis=0), table.max(axis=0)


def _noise(results: Results) -> Figure:
    plot, told = new_plot(), []
    for power, symbol in ((1, "circle"), (2, "diamond")):
        floors: dict[float, float] = {}
        for start, (label, colour) in STARTS.items():
            chosen = results.where(power=power, start=start)
            most = max((cell.samples for cell, _ in chosen), default=0)
            chosen = Results("", tuple(one for one in chosen.where(samples=most) if one[0].seeds < MANY))
            if not len(chosen):
                continue
            cell, table = chosen.pairs[0][0], _seeds(chosen, "smallest")
            variances = np.array([one.variance for one, _ in chosen])
            points(plot, variances, table.mean(axis=0), name=f"p = {power}, {label}", colour=colour, symbol=symbol,
                   band=_bars(table))  # fmt: skip
            for v in variances:
                floor = perturbed_singular_floor(most, cell.dim, cell.features, power, variance=float(v), delta=DELTA)
                floors[float(v)] = floor.value or np.nan
            if start == "zero":
                told.append(f"p = {power}: n = {most}, d = {cell.dim}, k = {cell.features}")
        if floors:
            at = np.array(sorted(floors))
            name = f"p = {power}, eq. (4), δ = {DELTA:g}"
            line(plot, at, np.array([floors[v] for v in at]), name=name, colour="grey",
                 dash="dot" if power == 1 else "dash")  # fmt: skip
    style(plot, x="variance v of the noise", y="σ_min(Z)", log_x=True, log_y=True)
    caption = f"{'; '.join(told)}. Bars: all seeds. From x_j = 0, σ_min(Z) is proportional to v^p."
    return Figure("Lemma 13: noise makes tensor squares independent, far above the bound", caption, plot)


def _balls(results: Results) -> Figure:
    plot = new_plot()
    colours = {(11, 1): "blue", (11, 2): "vermillion", (12, 1): "green", (12, 2): "purple"}
    for cell, data in results:
        if cell.size != 1:
            continue
        at, epsilon = chances(cell.draws), data["epsilon"].values
        name = f"Lemma {cell.lemma}, p = {cell.power}, {cell.subspace}"
        symbol = "circle" if cell.subspace == "worst" else "diamond"
        points(plot, epsilon.mean(axis=0), at, name=name, colour=colours[cell.lemma, cell.power], symbol=symbol)
    for (lemma, power), colour in colours.items():
        chosen = results.where(lemma=lemma, power=power, subspace="worst")
        if not len(chosen):
            continue
        epsilon = np.sort(chosen.pairs[0][1]["epsilon"].values.mean(axis=0))
        exponent = 1 / (power if lemma == 11 else 2 * power)
        line(plot, epsilon, power * epsilon**exponent, name=f"Lemma {lemma}, p = {power}: pε^({exponent:g})",
             colour=colour, dash="dot")  # fmt: skip
    style(plot, x="ε", y="probability that the projection is shorter", log_x=True, log_y=True)
    caption = (
        "Subspaces of one dimension. Worst: the span of e₁^⊗p, without shift; random: a random tensor and a random "
        "shift. Dotted: the lemmas with the constant of O(p) as one."
    )
    return Figure("Lemmas 11 and 12: projections of perturbed powers are rarely short", caption, plot)


def _spans(results: Results) -> Figure:
    plot = new_plot()
    for power, colour in ((1, "blue"), (2, "vermillion")):
        chosen = results.where(power=power, ratio=2)
        chosen = Results("", tuple(one for one in chosen if one[0].seeds < MANY))
        if not len(chosen):
            continue
        k, table = np.array([float(cell.features) for cell, _ in chosen]), _seeds(chosen, "rows")
        points(plot, k, table.mean(axis=0), name=f"p = {power}, σ_min(Q)", colour=colour, band=_bars(table))
        floors = [spanning_floor(cell.dim, cell.features, power, delta=DELTA).value or np.nan for cell, _ in chosen]
        line(plot, k, np.array(floors), name=f"p = {power}, Lemma 18, δ = {DELTA:g}", colour=colour, dash="dot")
    style(plot, x="features k = 2pD", y="σ_min(Q)", log_x=True, log_y=True)
    caption = "Dimensions d with D = C(p + d − 1, p); bars: all seeds. Dotted: Lemma 18 with its Ω's constant as one."
    return Figure("Lemma 18: enough features span the symmetric tensors", caption, plot)
