"""Theorem 2: a network has weights W⋆ = W_L + W_Q S of small loss that are small on all four regularisers.

For m ≳ max(d^{3(k−1)} ε_min⁻⁴, d^{10k}) and n ≳ max(d^k ε_min⁻², d^k log d), with high probability,

    L̂^Q(W⋆) ≤ ε_min,                                                                                       (29)
    R₁(W⋆) ≲ m^{−1/2} d^{(k−1)/2},   R₂(W⋆) ≲ 1,   R₃(W⋆) ≲ m^{−1/2} d^{(k−1)/2},   R₄(W⋆) ≲ d^{2(k−1)}.      (30)

Lemma 3 says what such a W⋆ does to the landscape. At a first-order stationary W

    E_S ∇²L_λ(W)[W⋆S, W⋆S] − ⟨∇L_λ(W), W − 2W_L⋆ + W_L⟩ + 2L_λ(W) − 2L_λ(W⋆) ≲ ε_min.                      (31)

It is looked at here where W⋆ is known, at random W and at W⋆ with other signs; `corollary1` does so along training.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from offtangent.lab import Claim, Cost, Results, over_seeds
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.sweeps import Sweep
from offtangent.papers.nichani.constructions import _hypotheses as asked
from offtangent.papers.nichani.constructions._setting import (
    DRAWS,
    NAMES,
    ROUNDING,
    generator,
    network,
    on_sphere,
    planted,
)
from offtangent.report import Figure, finished, line, new_plot, series
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory import FeatureCovariance
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.nichani.choice import regulariser_choice
from offtangent.theory.nichani.joint import JointExpression, express_jointly
from offtangent.theory.nichani.landscape import JointLandscape

# ε_min of Lemma 3.
EPSILON = 0.1


@dataclass(frozen=True)
class Joint:
    """W⋆ at one width, and (31) at `points` random W, if any; Σ comes from `unlabelled` inputs."""

    sigma: str
    degree: int
    width: int
    dim: int
    samples: int
    unlabelled: int
    points: int
    seeds: int


@dataclass(frozen=True)
class Config:
    """For each σ, k and d all widths; of the first of them (31) as well. `inside` has its own widths, m ≥ d^(10k)."""

    widths: tuple[int, ...]
    kinds: tuple[tuple[str, int, int], ...] = (("softplus", 1, 8), ("sigmoid", 1, 8), ("sigmoid", 2, 4))
    points: int = 3
    seeds: int = 10
    inside: tuple[tuple[str, int, int, tuple[int, ...]], ...] = ()


PLANE = ("sigmoid", 1, 2, (1024, 4096, 16_384, 65_536))
PROFILES = {
    "smoke": Config(
        widths=(64, 512, 4096),
        kinds=(("softplus", 1, 6),),
        points=2,
        seeds=6,
        inside=(("sigmoid", 1, 2, (1024, 4096, 16_384)),),
    ),
    "laptop": Config(
        widths=(128, 400, 1280, 4000, 12_800), kinds=(("sigmoid", 1, 8), ("sigmoid", 2, 4)), points=2, inside=(PLANE,)
    ),
    "paper": Config(
        widths=(128, 512, 2048, 8192, 32_768), inside=(PLANE, ("sigmoid", 1, 3, (65_536, 262_144, 1_048_576)))
    ),
}


def cells(config: Config) -> Iterator[Joint]:
    for at, (sigma, degree, dim) in enumerate(config.kinds):
        rank, points = polynomial_dimension(dim, degree), config.points if at == 0 else 0
        for width in config.widths:
            yield Joint(sigma, degree, width, dim, 8 * rank, 15 * rank, points, config.seeds)
    for sigma, degree, dim, widths in config.inside:
        rank = polynomial_dimension(dim, degree)
        for width in widths:
            yield Joint(sigma, degree, width, dim, 8 * rank, 15 * rank, 0, config.seeds)


def cost(cell: Joint) -> Cost:
    inputs, rank = cell.unlabelled + cell.samples, polynomial_dimension(cell.dim, cell.degree)
    flops = inputs * cell.width * (150 + 6 * cell.dim + 2 * rank + 4 * DRAWS + 500 * cell.points)
    flops += cell.unlabelled**2 * cell.width
    return Cost(cell.seeds * flops + 1e9, 8 * 8 * inputs * cell.width)


def run(cell: Joint) -> xr.Dataset:
    return over_seeds(_one, cell)


def claims(results: Results[Joint]) -> Iterator[Claim]:
    joint = results.where(Joint)
    for (sigma, degree, dim), cells in joint.groups("sigma", "degree", "dim"):
        cell, name = cells.first, f"{NAMES[sigma]}, k = {degree}, d = {dim}"
        about = f"d = {cell.dim}, n = {cell.samples}, Σ from {cell.unlabelled} inputs, {cell.seeds} seeds"
        if sweep := cells.sweep("width", about):
            yield from _on_regularisers(sweep, name)
            yield from _on_loss(sweep, name)
            yield from _on_signs(sweep, name)
    if len(joint) and not len(joint.only(lambda one: one.width >= one.dim ** (10 * one.degree))):
        yield Claim.not_run(
            source="Theorem 2",
            statement="(29) and (30) at m ≥ d^(10k); sigmoid(z − 1), k = 1",
            reason="size",
            why="No cell has m ≥ d^(10k).",
            profile="laptop",
        )
    for (sigma, degree), looked in joint.only(_has_points).groups("sigma", "degree"):
        cell = looked.first
        about = f"{cell.points} random W up to 2‖W⋆‖ and W⋆ with other signs, {cell.seeds} seeds"
        unit = f", {NAMES[sigma]}, k = {degree}, d = {cell.dim}, n = {cell.samples}"
        if sweep := looked.sweep("width", about, unit=unit):
            yield from _on_lemma_3(sweep)


def _has_points(cell: Joint) -> bool:
    return cell.points > 0


def _promised(cell: Joint) -> float:
    """The least ε_min that the theorem allows at this m and n: max(m^(−1/4) d^(3(k−1)/4), (d^k/n)^(1/2))."""
    power = cell.degree - 1
    return float(max(cell.width**-0.25 * cell.dim ** (3 * power / 4), (cell.dim**cell.degree / cell.samples) ** 0.5))


def _assumed(sweep: Sweep[Joint]) -> tuple[Hypothesis, ...]:
    """The width and the samples of the theorem for that ε_min, at the smallest width, and the assumptions on σ."""
    cell = min((one for one, _ in sweep.results), key=lambda one: one.width)
    choice = regulariser_choice(cell.dim, cell.width, cell.degree, min(_promised(cell) * (1 + ROUNDING), 1.0))
    return (
        *asked.sizes_of_theorem_2(choice, cell.width, cell.samples),
        *asked.on_activation(cell.sigma, cell.dim, cell.degree),
    )


def _on_regularisers(sweep: Sweep[Joint], name: str) -> Iterator[Claim]:
    for key, label, power in (("r1", "R₁", -0.5), ("r2", "R₂", 0.0), ("r3", "R₃", -0.5), ("r4", "R₄", 0.0)):
        yield sweep.slope(
            key,
            "≤",
            power,
            source="Theorem 2, eq. (30)",
            statement=f"{label}(W⋆) = O({'m^(−1/2)' if power else '1'}) in m; {name}",
            hypotheses=_assumed(sweep),
            note=f"{label} at the widths: {', '.join(f'{one:.3g}' for one in sweep[key].mean(axis=0))}.",
        )


def _on_loss(sweep: Sweep[Joint], name: str) -> Iterator[Claim]:
    ratios = sweep["loss"] / sweep["promised"]
    yield sweep.slope(
        ratios,
        "≤",
        0.0,
        of="L̂^Q(W⋆)/ε_min",
        source="Theorem 2, eq. (29)",
        statement="L̂^Q(W⋆) = O(ε_min) in m, ε_min = max(m^(−1/4) d^(3(k−1)/4), (d^k/n)^(1/2)), the least that m and n "
        f"allow; {name}",
        hypotheses=_assumed(sweep),
        note=f"L̂^Q at the widths: {', '.join(f'{one:.3g}' for one in sweep['loss'].mean(axis=0))}; at most "
        f"{ratios.max():.2g} ε_min.",
    )


def _on_signs(sweep: Sweep[Joint], name: str) -> Iterator[Claim]:
    yield sweep.equals(
        sweep["drawn"].mean(axis=1, keepdims=True),
        1.0,
        of="mean over 16 draws, over that sum",
        source="Theorem 2",
        statement=f"E_μ f_L(W_Q S)² + E_n f_L(W_Q S)² in the mean over signs S is a sum over neurons; {name}",
        note=f"So some S does no worse than the mean; the best of 16 has {sweep['best'].max():.2f} of it or less.",
    )


def _on_lemma_3(sweep: Sweep[Joint]) -> Iterator[Claim]:
    allowed, needed = sweep["allowed"].mean(axis=0), sweep["needed"].max(axis=0)
    cell, choice = sweep.cell, regulariser_choice(sweep.cell.dim, sweep.sizes[-1], sweep.cell.degree, EPSILON)
    yield Claim.at_most(
        int((sweep["proven"] < -ROUNDING).sum()),
        0,
        source="Lemma 3, eq. (31)",
        statement="E_S ∇²L_λ(W)[W⋆S, W⋆S] ≤ ⟨∇L_λ(W), W − 2W_L⋆ + W_L⟩ − 2(L_λ(W) − L_λ(W⋆)) + the terms that the "
        "proof bounds, for the quadratic model, at any W and any width",
        measured=f"networks with a point at which it is violated, {sweep.where}",
        identity=True,
        note=f"The smallest slack is {sweep['proven'].min():.2g} of all terms together. What is added is "
        f"{allowed[0]:.3g} ε_min at the smallest width and {allowed[-1]:.3g} ε_min at the largest.",
    )
    yield sweep.slope(
        "terms",
        "≤",
        -0.25,
        source="Lemma 3, eq. (31)",
        statement="what is added beside the regularisers' O(ε_min), E_n Σ_r (Df_r[w⋆_r])² + E_n|f_L(P_>W)| + "
        "2E_n|f_L(W_Q S)| + E_n|Q(W, W_L − 2W_L⋆)|, is O(m^(−1/4)) at random W with ‖W‖_(2,4) = O(1)",
        hypotheses=asked.on_activation(cell.sigma, cell.dim, cell.degree),
        note="The proof bounds it at every width.",
    )
    yield Claim.at_most(
        float(needed[-1]),
        1.0,
        source="Lemma 3, eq. (31)",
        statement="(31) for the network itself with ε_min on the right, the constant of ≲ as one",
        measured=f"largest ε needed over ε_min = {EPSILON:g} at the largest width, {sweep.where}",
        hypotheses=(
            asked.width_of_lemma_3(sweep.sizes[-1], choice, cell.samples),
            Hypothesis("W", "random, or W⋆ with other signs", "=", "a first-order stationary point", "Lemma 3"),
            *asked.on_activation(cell.sigma, cell.dim, cell.degree),
        ),
        note=f"The largest at each width: {', '.join(f'{one:.2g}' for one in needed)}.",
    )


def draw(results: Results) -> Iterator[Figure]:
    joint = results.where(Joint)
    looked = joint.only(_has_points)
    if len(joint) > 1:
        first = joint.first
        yield _regularisers(joint.where(sigma=first.sigma, degree=first.degree, dim=first.dim))
    if len(looked) > 1:
        yield _allowances(looked)


def _regularisers(joint: Results[Joint]) -> Figure:
    plot, cell, widths = new_plot(), joint.first, joint.field("width")
    for key, label, colour in (("1", "R₁", "blue"), ("2", "R₂", "green"), ("3", "R₃", "vermillion")):
        series(plot, widths, joint.table(f"r{key}"), name=f"{label}(W⋆)", colour=colour)
        mean = joint.table(f"mean{key}").mean(axis=0)
        line(plot, widths, mean, name=f"{label}, mean over S", colour=colour, dash="dot")
    series(plot, widths, joint.table("loss"), name="L̂^Q(W⋆)", colour="purple")
    caption = (
        f"{NAMES[cell.sigma]}, k = {cell.degree}, d = {cell.dim}, n = {cell.samples}, {cell.seeds} seeds (bars: all of "
        f"them). Dotted: exact means over the signs S. R₄ is {joint.table('r4').mean(axis=0)[-1]:.3g} at the largest "
        "width."
    )
    title = "Theorem 2: W⋆ = W_L + W_Q S is small on R₁ and R₃, like m^(−1/2)"
    return finished(plot, title, caption, x="width m", y="R₁, R₂, R₃ and the loss at W⋆")


def _allowances(joint: Results[Joint]) -> Figure:
    plot, cell, widths = new_plot(), joint.first, joint.field("width")
    series(plot, widths, joint.table("allowed"), name="the proof's terms, over ε_min", colour="vermillion")
    series(plot, widths, joint.table("needed"), name="needed by the network, over ε_min", colour="blue")
    terms = joint.table("terms").mean(axis=0) / EPSILON
    line(plot, widths, terms, name="the proof's, without the regularisers", colour="vermillion", dash="dot")
    caption = (
        f"The largest over {cell.points} random W and W⋆ with other signs; {NAMES[cell.sigma]}, d = {cell.dim}, "
        f"{cell.seeds} seeds (bars: all of them), ε_min = {EPSILON:g}."
    )
    title = "Lemma 3: what (31) needs, and what its proof allows, falls with the width"
    return finished(plot, title, caption, x="width m", y="what (31) adds, over ε_min", log="x")


def _one(cell: Joint, key: Key[Array, ""]) -> dict[str, float]:
    of_inputs, of_target, unlabelled, at = jax.random.split(key, 4)
    of_net, of_signs, of_points = jax.random.split(jax.random.fold_in(at, cell.width), 3)
    net = network(cell.sigma, cell.dim, cell.width, key=of_net)
    target = planted(cell.dim, cell.degree, 1, key=of_target)
    rank = polynomial_dimension(cell.dim, cell.degree)
    fresh = on_sphere(cell.unlabelled, cell.dim, key=unlabelled)
    covariance = FeatureCovariance.of_samples(net, fresh, count=rank)
    X = on_sphere(cell.samples, cell.dim, key=of_inputs)
    star = express_jointly(covariance, X, target, draws=DRAWS, key=of_signs)
    sizes, means = star.sizes, star.expected
    found = {
        "loss": star.loss,
        "promised": _promised(cell),
        "r1": sizes.r1,
        "r2": sizes.r2,
        "r3": sizes.r3,
        "r4": sizes.r4,
        "mean1": means.r1,
        "mean2": means.r2,
        "mean3": means.r3,
        "drawn": float(star.drawn.mean()) / star.expected_drawn,
        "best": float(star.drawn.min()) / star.expected_drawn,
        "asked": regulariser_choice(cell.dim, cell.width, cell.degree, EPSILON).expressive_width,
    }
    return found | (_landscape(cell, star, of_points) if cell.points else {})


def _landscape(cell: Joint, star: JointExpression, key: Key[Array, ""]) -> dict[str, float]:
    """(31) at random W up to twice as long as W⋆ and at W⋆ with other signs, and with the proof's own terms."""
    rng = generator(key)
    drawn = rng.standard_normal((cell.points, *star.weights.shape))
    lengths = star.sizes.r4**0.125 * np.geomspace(0.1, 2.0, cell.points)
    drawn *= (lengths / np.array([column_norm(V) for V in drawn]))[:, None, None]
    W = np.concatenate([drawn, [star.weights * rng.choice([-1.0, 1.0], cell.width)]])
    land = JointLandscape.of(star, strengths=star.strengths(EPSILON), model="quadratic")
    proven = [land.proven(V) for V in W]
    network = replace(land, model="network")
    needed = [network.at(V) for V in W]
    sizes = [abs(one.curvature) + abs(one.descent) + 2 * (one.loss + one.opt) + one.allowance for one in proven]
    return {
        "proven": min(one.slack / size for one, size in zip(proven, sizes, strict=True)),
        "terms": max(land.remainder(V) for V in W),
        "allowed": max(one.allowance for one in proven) / EPSILON,
        "needed": max(one.needed for one in needed) / EPSILON,
    }
