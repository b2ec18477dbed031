"""What Lemma 3, Corollary 1 and Theorems 3 and 4 say where they were measured: claims and figures."""

import numpy as np
import xarray as xr
from jaxtyping import Bool

from offtangent.lab import Claim, Results, fraction_interval, slope_interval
from offtangent.papers.nichani.constructions_report import (
    COLOURS,
    EPSILON,
    LEVEL,
    ROUNDING,
    SIGMAS,
    sizes,
    slope,
    span,
    table,
)
from offtangent.report import Figure, line, new_plot, points, style


def claims(joint: Results, descents: Results, learned: Results) -> list[Claim]:
    found: list[Claim] = []
    chosen = _with_points(joint)
    if len(chosen) >= 3:
        found += _of_points(chosen)
    for cell, _ in descents:
        found += _of_descent(descents.where(sigma=cell.sigma, width=cell.width))
    if len(learned) >= 3:
        found += _of_learned(learned)
    return found


def _with_points(joint: Results) -> Results:
    return Results(joint.profile, tuple(pair for pair in joint if pair[0].points), joint.complete)


def _of_points(results: Results) -> list[Claim]:
    cell, widths = results.pairs[0][0], sizes(results)
    where = (
        f"{cell.points} random W up to 2‖W⋆‖ and W⋆ with other signs, {cell.seeds} seeds, {span(widths, 'widths')}, "
        f"{SIGMAS[cell.sigma]}, k = {cell.degree}, d = {cell.dim}, n = {cell.samples}"
    )
    needed, allowed = table(results, "needed"), table(results, "allowed")
    return [
        Claim.at_most(
            int((table(results, "proven") < -ROUNDING).sum()), 0, source="Lemma 3, eq. (31)",
            statement="E_S ∇²L_λ(W)[W⋆S, W⋆S] ≤ ⟨∇L_λ(W), W − 2W_L⋆ + W_L⟩ − 2(L_λ(W) − L_λ(W⋆)) + the terms that the "
            "proof bounds, for the quadratic model, at any W and any width",
            measured=f"networks with a point at which it is violated, {where}",
            note=f"The smallest slack is {table(results, 'proven').min():.2g} of all terms together. What is "
            f"added is {allowed.mean(axis=0)[0]:.3g} ε_min at the smallest width and {allowed.mean(axis=0)[-1]:.3g} "
            "ε_min at the largest.",
        ),
        Claim.no_slower(
            **slope(results, "width", table(results, "terms"), where), exponent=-0.25, source="Lemma 3, eq. (31)",
            statement="what is added beside the regularisers' O(ε_min), E_n Σ_r (Df_r[w⋆_r])² + E_n|f_L(P_>W)| + "
            "2E_n|f_L(W_Q S)| + E_n|Q(W, W_L − 2W_L⋆)|, is O(m^(−1/4)) at random W with ‖W‖_(2,4) = O(1)",
        ),
        Claim.at_most(
            float(needed[:, -1].max()), 1.0, source="Lemma 3, eq. (31)",
            statement="(31) for the network itself with ε_min on the right, the constant of ≲ as one",
            measured=f"largest ε needed over ε_min = {EPSILON:g} at the largest width, {where}", inside=False,
            note="The lemma has m ≥ n⁴ d^(26(k+1)/3) ε^(−22/3), and a first-order stationary W. The largest at each "
            f"width: {', '.join(f'{one:.2g}' for one in needed.max(axis=0))}.",
        ),
    ]  # fmt: skip


def _of_descent(results: Results) -> list[Claim]:
    cell, data = results.pairs[0]
    asked, nu, gamma = (float(data[name]) for name in ("asked", "nu", "gamma"))
    where = (
        f"{SIGMAS[cell.sigma]}, m = {cell.width}, k = 1, d = {cell.dim}, n = {cell.samples}, ε_min = {cell.epsilon:g}, "
        f"{cell.seeds} seeds, {cell.steps} steps"
    )
    certified = _certified(data)
    last = data["last"].values[certified] if certified.any() else data["last"].values
    return [
        Claim.at_least(
            float(certified.mean()), 1.0, source="Theorem 3", inside=False,
            statement="perturbed descent from W = 0 reaches a (ν, γ)-second-order stationary point of L_λ, "
            f"ν = m^(−1/2) = {nu:.3g}, γ = m^(−3/4) = {gamma:.3g}",
            measured=f"fraction of networks certified at the last step, {where}",
            note=f"Largest ‖∇L_λ‖ {data['gradient'].values.max():.2g}, smallest λ_min at least "
            f"{data['lowest'].values.min():.2g} (Lanczos, δ = 10⁻³). All of them: at least "
            f"{fraction_interval(int(certified.sum()), cell.seeds).low:.0%} of networks.".replace("%", " %")
            + " The theorem's number of steps is a polynomial of no named degree or constant: no run is as long.",
        ),
        Claim.at_most(
            float(data["test"].values.max()), float(data["allowed"]), source="Theorems 1, 4",
            inside=bool(cell.width >= float(data["generalising"])),
            statement="from W = 0 to a test loss of at most ε_min + (d^k/n)^(1/2), the constants of ≲ as one",
            measured=f"the largest test loss of the network at Ŵ, {where}",
            note=f"In the mean {data['test'].values.mean():.3g} (training {data['train'].values.mean():.3g}), and "
            f"{data['loss'].values[:, 0].mean():.3g} at W = 0. Theorem 4's width is {float(data['generalising']):.1g}.",
        ),
        Claim.at_most(
            float(last.max()), cell.epsilon, source="Corollary 1", inside=bool(cell.width >= asked),
            statement="L_λ(Ŵ) ≤ ε_min at such a point, the constant of ≲ as one",
            measured=f"the largest L_λ(Ŵ) of the {int(certified.sum()) or 'runs, none of them'} certified, {where}",
            note=f"Lemma 3's width is {asked:.1g}. W⋆ itself has {data['opt'].values.mean():.3g} in the mean: descent "
            f"does {'better' if last.mean() < data['opt'].values.mean() else 'worse'}.",
        ),
        Claim.at_most(
            float(data["needed"].values.max()) / cell.epsilon, 1.0, source="Lemma 3, eq. (31)",
            inside=bool(cell.width >= asked),
            statement="(31) along training with ε_min on the right, the constant of ≲ as one",
            measured=f"largest ε needed over ε_min, at {data.sizes['look']} looks, {where}",
        ),
    ]  # fmt: skip


def _certified(data: xr.Dataset) -> Bool[np.ndarray, " s"]:
    return (data["gradient"].values <= float(data["nu"])) & (data["lowest"].values >= -float(data["gamma"]))


def _of_learned(results: Results) -> list[Claim]:
    cell, n = results.pairs[0][0], sizes(results, "samples")
    asked = float(results.pairs[0][1]["asked"])
    bound = np.array([float(data["bound"]) for _, data in results])
    how = f"{cell.steps} steps from W⋆" if cell.steps else "W⋆ itself"
    where = (
        f"{SIGMAS[cell.sigma]}, m = {cell.width}, k = 1, d = {cell.dim}, ε_min = {cell.epsilon:g}, {how}, {cell.seeds} "
        f"seeds, {cell.tests} test inputs, {span(n, 'n')}"
    )
    ratio, inside = table(results, "test") / bound, bool(cell.width >= asked)
    level = table(results, "regularised").max() / cell.epsilon
    gap = np.abs(table(results, "test") - table(results, "train"))
    note = f"L_λ(Ŵ) ≤ {level:.2g} ε_min. Theorem 4's width is ε⁻⁴ d^(3(k−1)) = {asked:.3g}."
    return [
        Claim.at_most(
            float(ratio.max()), 1.0, source="Theorem 4, eq. (32)", inside=inside,
            statement="L(Ŵ) ≤ ε_min + (d^k/n)^(1/2) for Ŵ with L_λ(Ŵ) ≤ C ε_min, the constant of ≲ as one",
            measured=f"largest ratio of the two sides, {where}", note=note,
        ),
        Claim.no_slower(
            slope_interval(n, gap, level=LEVEL), -0.5, source="Theorem 4, eq. (32)", inside=inside,
            statement="|L(Ŵ) − L̂(Ŵ)| = O((d^k/n)^(1/2)) in n, which is the proof's part of (32)",
            measured=f"log-log slope in n, 99 % interval, {where}",
            note=f"Test losses {', '.join(f'{one:.3g}' for one in table(results, 'test').mean(axis=0))}; differences "
            f"{', '.join(f'{one:.2g}' for one in gap.mean(axis=0))}.",
        ),
    ]  # fmt: skip


def figures(joint: Results, descents: Results, learned: Results) -> list[Figure]:
    drawn = []
    chosen = _with_points(joint)
    if len(chosen) > 1:
        drawn += [_allowances(chosen)]
    if len(descents):
        drawn += [_paths(descents)]
    if len(learned) > 1:
        drawn += [_losses(learned)]
    return drawn


def _allowances(results: Results) -> Figure:
    plot, widths, cell = new_plot(), sizes(results), results.pairs[0][0]
    for name, label, colour in (
        ("allowed", "the proof's terms, over ε_min", "vermillion"),
        ("needed", "needed by the network, over ε_min", "blue"),
    ):
        values = table(results, name)
        points(plot, widths, values.mean(axis=0), name=label, colour=colour,
               band=(values.min(axis=0), values.max(axis=0)))  # fmt: skip
    terms = table(results, "terms").mean(axis=0) / EPSILON
    line(plot, widths, terms, name="the proof's, without the regularisers", colour="vermillion", dash="dot")
    style(plot, x="width m", y="what (31) adds, over ε_min", log_x=True)
    caption = (
        f"The largest over {cell.points} random W and W⋆ with other signs; {SIGMAS[cell.sigma]}, d = {cell.dim}, "
        f"{cell.seeds} seeds (bars: all of them), ε_min = {EPSILON:g}."
    )
    return Figure("Lemma 3: what (31) needs, and what its proof allows, falls with the width", caption, plot)


def _paths(results: Results) -> Figure:
    plot = new_plot()
    for (cell, data), colour in zip(results, COLOURS, strict=False):
        values, looks = data["loss"].transpose("seed", "look").values, data["look"].values + 1.0
        name = f"{SIGMAS[cell.sigma]}, m = {cell.width}"
        line(plot, looks, values.mean(axis=0), name=name, colour=colour,
             band=(values.min(axis=0), values.max(axis=0)))  # fmt: skip
        best = np.full(2, float(data["opt"].mean()))
        line(plot, looks[[0, -1]], best, name=f"{name}, at W⋆", colour=colour, dash="dot")
    cell, steps = results.pairs[0][0], max(one.steps for one, _ in results)
    line(plot, [1, steps + 1], np.full(2, cell.epsilon), name="ε_min", colour="grey", dash="dash")
    style(plot, x="step + 1", y="L_λ", log_x=True, log_y=True)
    certified = sum(int(_certified(data).sum()) for _, data in results)
    caption = (
        f"From W = 0, a saddle of f_Q; d = {cell.dim}, n = {cell.samples}, {cell.seeds} seeds (bands: all of them). "
        f"{certified} of {sum(one.seeds for one, _ in results)} runs end at a certified second-order stationary point."
    )
    return Figure("Theorem 3, Corollary 1: perturbed descent leaves the saddle and passes below L_λ(W⋆)", caption, plot)


def _losses(results: Results) -> Figure:
    plot, n, cell = new_plot(), sizes(results, "samples"), results.pairs[0][0]
    for name, label, colour in (("test", "test loss L(Ŵ)", "blue"), ("train", "training loss", "green")):
        values = table(results, name)
        points(plot, n, values.mean(axis=0), name=label, colour=colour,
               band=(values.min(axis=0), values.max(axis=0)))  # fmt: skip
    bound = np.array([float(data["bound"]) for _, data in results])
    line(plot, n, bound, name="ε_min + (d^k/n)^(1/2)", colour="grey", dash="dash")
    style(plot, x="samples n", y="loss", log_x=True, log_y=True)
    how = f"{cell.steps} steps of perturbed descent from W⋆" if cell.steps else "Ŵ = W⋆"
    caption = (
        f"{SIGMAS[cell.sigma]}, m = {cell.width}, d = {cell.dim}, ε_min = {cell.epsilon:g}, {how}, {cell.seeds} seeds "
        "(bars: all of them)."
    )
    return Figure("Theorem 4: the test loss stays below its bound", caption, plot)
