"""Theorems 1, 3 and 4 and Corollary 1 as they are stated: their λ, their start, their assumptions.

λ₁ = λ₃ = m^{1/2} d^{−(k−1)/2} ε_min, λ₂ = ε_min, λ₄ = d^{−2(k−1)} ε_min; perturbed descent (21) from W = 0; the paper's
sigmoid(z − 1); a target that meets Assumption 1 and has ℓ(y, 0) ≤ 1 on the whole sphere. Here k = 1, R = 1.

What may be expected. (30) says R₄(W⋆) ≲ 1, and with the sigmoid R₄(W⋆) is about 10⁶: λ₄R₄ keeps f_Q from the sparse
term at any width. A second-order stationary point is found soon, and its L_λ is near ε_min, not below it; Lemma 3's
width, which is what Corollary 1 asks for, is out of reach. Theorem 4 asks for no more than m ≥ ε_min⁻⁴ and a point with
L_λ(Ŵ) ≤ C ε_min, which is to be had.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.lab.claims import Verdict
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval
from offtangent.lab.sweeps import Sweep
from offtangent.papers.nichani.constructions import _hypotheses as asked
from offtangent.papers.nichani.constructions._descent import (
    Problem,
    arrived,
    descended,
    descent_cost,
    largest_loss,
    problems,
    stationarity,
    told,
    unseen,
)
from offtangent.papers.nichani.constructions._setting import MOST, NAMES
from offtangent.report import Figure, finished, line, new_plot, series
from offtangent.theory.nichani.choice import RegulariserChoice, regulariser_choice

# η, half of what stays stable at every size of the profiles.
RATE = 2.0
# With which probability Theorem 3 may fail, for its 1/poly(d).
DELTA = 0.1


@dataclass(frozen=True)
class Stated:
    """`seeds` networks from W = 0: `steps` of perturbed descent on L_λ with Theorem 4's λ for ε_min = `epsilon`.

    Where it ends is `certified` by the Hessian, or not: Theorem 4 does not ask for it.
    """

    sigma: str
    width: int
    dim: int
    samples: int
    steps: int
    epsilon: float
    tests: int
    seeds: int
    certified: bool


@dataclass(frozen=True)
class Config:
    """Widths with their ε_min and numbers of seeds at one n, certified, and numbers of samples at one width."""

    runs: tuple[tuple[int, float, int], ...]
    samples: tuple[int, ...]
    width: int = 256
    epsilon: float = 0.25
    sigma: str = "sigmoid"
    dim: int = 4
    few: int = 64
    steps: int = 400
    tests: int = 10_000
    seeds: int = 10


PROFILES = {
    "smoke": Config(runs=((64, 0.25, 4),), samples=(16, 64, 256), steps=150, tests=2000, seeds=4),
    "laptop": Config(runs=((64, 0.25, 40),), samples=(16, 128, 1024), steps=200, tests=4000, seeds=6),
    "paper": Config(
        runs=((64, 0.25, 40), (256, 0.25, 40), (2048, 0.15, 40), (10_240, 0.1, 10)), samples=(16, 64, 256, 1024, 4096)
    ),
}


def cells(config: Config) -> Iterator[Stated]:
    sizes = [(width, config.few, epsilon, seeds, True) for width, epsilon, seeds in config.runs]
    sizes += [(config.width, n, config.epsilon, config.seeds, False) for n in config.samples]
    for width, n, epsilon, seeds, certified in sizes:
        yield Stated(config.sigma, width, config.dim, n, config.steps, epsilon, config.tests, seeds, certified)


def cost(cell: Stated) -> Cost:
    return descent_cost(seeds=cell.seeds, width=cell.width, dim=cell.dim, samples=cell.samples, steps=cell.steps)


def run(cell: Stated) -> xr.Dataset:
    found = problems(
        cell.seeds,
        sigma=cell.sigma,
        width=cell.width,
        dim=cell.dim,
        samples=cell.samples,
        epsilon=cell.epsilon,
        stated=True,
    )
    (last,) = descended(found, jnp.zeros((cell.seeds, cell.dim, cell.width)), [cell.steps], rate=RATE)
    rows = [_one(cell, one, last[seed], seed) for seed, one in enumerate(found)]
    return xr.Dataset({name: ("seed", np.array([row[name] for row in rows])) for name in rows[0]})


def claims(results: Results[Stated]) -> Iterator[Claim]:
    stated = results.where(Stated)
    for cell, data in stated.where(certified=True):
        where = (
            f"{NAMES[cell.sigma]}, m = {cell.width}, k = 1, d = {cell.dim}, n = {cell.samples}, "
            f"ε_min = {cell.epsilon:g}, {cell.seeds} seeds, {cell.steps} steps of rate {RATE:g}"
        )
        yield _on_arriving(cell, data, where)
        yield _on_loss(cell, data, where)
        yield _on_learning(cell, data, where)
    for (width, epsilon), swept in stated.where(certified=False).groups("width", "epsilon"):
        cell = swept.first
        about = f"m = {width}, k = 1, d = {cell.dim}, ε_min = {epsilon:g}, {cell.steps} steps, {cell.seeds} seeds"
        if sweep := swept.sweep("samples", f"{NAMES[cell.sigma]}, {about}", symbol="n", noun="n"):
            yield from _on_samples(sweep)
    if not len(stated):
        yield from _missing()


def _missing() -> Iterator[Claim]:
    """What a record that was made before this slice says of it."""
    for source, statement in (
        ("Theorem 3", "perturbed descent from W = 0 reaches a (ν, γ)-second-order stationary point"),
        ("Corollary 1", "L_λ(Ŵ) ≤ ε_min at such a point"),
        ("Theorem 1", "from W = 0 to a test loss of at most ε"),
        ("Theorem 4, eq. (32)", "L(Ŵ) ≤ ε_min + (d^k/n)^(1/2) for Ŵ with L_λ(Ŵ) ≤ C ε_min"),
    ):
        yield Claim.not_run(
            source=source,
            statement=f"{statement}, with the theorem's λ, sigmoid(z − 1) and ℓ(y, 0) ≤ 1",
            reason="data",
            why="This record was made before these cells were.",
            profile="laptop",
        )


def draw(results: Results[Stated]) -> Iterator[Figure]:
    learned = results.where(Stated, certified=False)
    if len(learned) < 2:
        return
    plot, n, cell = new_plot(), learned.field("samples"), learned.first
    for name, label, colour in (
        ("start", "L_λ at W = 0", "sky"),
        ("regularised", "L_λ(Ŵ)", "purple"),
        ("test", "test loss L(Ŵ)", "blue"),
        ("train", "training loss", "green"),
    ):
        series(plot, n, learned.table(name), name=label, colour=colour)
    bounds = np.array([_choice(one).loss_bound(one.samples) for one, _ in learned])
    line(plot, n, bounds, name="ε_min + (d^k/n)^(1/2)", colour="grey", dash="dash")
    line(plot, n, np.full(len(n), cell.epsilon), name="ε_min", colour="grey", dash="dot")
    caption = (
        f"{NAMES[cell.sigma]}, m = {cell.width}, d = {cell.dim}, ε_min = {cell.epsilon:g}, {cell.steps} steps from "
        f"W = 0, {cell.seeds} seeds (bars: all of them)."
    )
    yield finished(plot, "Theorem 4 with its own λ: what descent from W = 0 learns", caption, x="samples n", y="loss")


def _choice(cell: Stated) -> RegulariserChoice:
    return regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)


def _assumed(cell: Stated, data: xr.Dataset) -> tuple[Hypothesis, ...]:
    """What all of them ask for: Assumptions 2 and 3, bounded losses, λ."""
    ratio = data["strength"].values
    return (
        *asked.on_activation(cell.sigma, cell.dim, 1),
        asked.on_labels(float(data["beyond"].max())),
        asked.on_strengths(float(ratio.flat[np.abs(ratio - 1).argmax()])),
    )


def _certified(cell: Stated, data: xr.Dataset) -> Bool[np.ndarray, " s"]:
    choice = _choice(cell)
    return arrived(data, nu=choice.gradient, gamma=choice.curvature)


def _on_arriving(cell: Stated, data: xr.Dataset, where: str) -> Claim:
    choice, which = _choice(cell), _certified(cell, data)
    share = fraction_interval(int(which.sum()), which.size)
    claim = Claim.at_least(
        share,
        1 - DELTA,
        source="Theorem 3",
        statement=f"with probability 1 − 1/poly(d), read 1 − δ, δ = {DELTA:g}, perturbed descent from W = 0 reaches a "
        f"(ν, γ)-second-order stationary point of L_λ, ν = m^(−1/2) = {choice.gradient:.3g}, γ = m^(−3/4) = "
        f"{choice.curvature:.3g}, within poly(m) steps: here {cell.steps}; m = {cell.width}, n = {cell.samples}",
        measured=f"fraction of networks certified at the last step, 95 % interval, {where}",
        hypotheses=(*_assumed(cell, data), asked.on_start("W = 0")),
        note=told(data),
    )
    if claim.verdict is Verdict.FAILS and share.high >= 1 - DELTA:
        few = f"{cell.seeds} networks are too few to tell; 36, all of them certified, would do."
        return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{few} {claim.note}")
    return claim


def _on_loss(cell: Stated, data: xr.Dataset, where: str) -> Claim:
    choice, which = _choice(cell), _certified(cell, data)
    chosen = data["regularised"].values[which] if which.any() else data["regularised"].values
    width = asked.width_of_lemma_3(cell.width, choice, cell.samples)
    return Claim.at_most(
        float(chosen.max()),
        cell.epsilon,
        source="Corollary 1",
        statement=f"L_λ(Ŵ) ≤ ε_min = {cell.epsilon:g} at such a point; m = {cell.width}, n = {cell.samples}",
        measured=largest_loss(which, where),
        hypotheses=(*_assumed(cell, data), width),
        note=f"Expected from m = {float(width.limit):.2g} on. At W = 0 L_λ is {data['start'].values.mean():.3g}; "
        f"at W⋆ of Theorem 2 it is {data['star'].values.mean():.2g}, as R₄(W⋆) = {data['top'].values.mean():.2g}, and "
        f"(30) says ≲ 1. (31) needs {data['needed'].values.max() / cell.epsilon:.2g} ε_min at Ŵ.",
    )


def _on_learning(cell: Stated, data: xr.Dataset, where: str) -> Claim:
    choice = _choice(cell)
    samples = Hypothesis(
        "samples n", cell.samples, "≥", choice.samples, "Theorem 1: d^k poly(R) max(ε⁻², log d)", given=False
    )
    width = replace(
        asked.width_of_lemma_3(cell.width, choice, cell.samples),
        source="Theorem 1: poly(n, d, R, 1/ε), for which its proof's largest, Lemma 3's, is taken",
        given=False,
    )
    return Claim.at_most(
        float(data["test"].values.max()),
        cell.epsilon,
        source="Theorem 1",
        statement=f"from W = 0 to a test loss of at most ε = {cell.epsilon:g}; m = {cell.width}, n = {cell.samples}",
        measured=f"the largest test loss of the network at Ŵ, {cell.tests} test inputs, {where}",
        hypotheses=(*_assumed(cell, data), asked.on_start("W = 0"), samples, width),
        note=f"In the mean {data['test'].values.mean():.3g} (training {data['train'].values.mean():.3g}), and "
        f"{data['start'].values.mean():.3g} at W = 0.",
    )


def _on_samples(sweep: Sweep[Stated]) -> Iterator[Claim]:
    cell, choice = sweep.cell, _choice(sweep.cell)
    largest = float(sweep["regularised"].max())
    worst = [data for _, data in sweep.results]
    hypotheses = (
        *_assumed(cell, xr.concat(worst, dim="cell")),
        asked.width_of_theorem_4(cell.width, choice),
        Hypothesis(
            "largest L_λ(Ŵ)", largest, "≤", cell.epsilon, f"Theorem 4: C ε_min, ε_min = {cell.epsilon:g}", given=False
        ),
    )
    yield sweep.worst(
        "test",
        bound=lambda one: _choice(one).loss_bound(one.samples),
        source="Theorem 4, eq. (32)",
        statement=f"L(Ŵ) ≤ ε_min + (d^k/n)^(1/2), ε_min = {cell.epsilon:g}, for Ŵ with L_λ(Ŵ) ≤ C ε_min, the "
        "constants of ≲ as one",
        hypotheses=(*hypotheses, asked.hidden("Theorem 4, eq. (32)")),
        note=f"At W = 0 the loss is {sweep['start'].mean():.3g}. Test losses over n: "
        f"{', '.join(f'{one:.3g}' for one in sweep['test'].mean(axis=0))}.",
    )
    gap = np.abs(sweep["test"] - sweep["train"])
    yield sweep.slope(
        gap,
        "≤",
        -0.5,
        source="Theorem 4, eq. (32)",
        statement="|L(Ŵ) − L̂(Ŵ)| = O((d^k/n)^(1/2)) in n, which is the proof's part of (32)",
        hypotheses=hypotheses,
        note=f"Differences {', '.join(f'{one:.2g}' for one in gap.mean(axis=0))}.",
    )


def _one(cell: Stated, problem: Problem, W: Float[np.ndarray, "d m"], seed: int) -> dict[str, float]:
    star, land, X = problem.star, problem.land, unseen(cell.tests, cell.dim, seed)
    here = land.at(W)
    labels = np.concatenate([star.y, problem.target(X)])
    found = {}
    if cell.certified:
        point = stationarity(problem, W, seed)
        found = {"gradient": point.gradient_norm, "lowest": point.lowest}
    return found | {
        "regularised": here.loss,
        "needed": here.needed,
        "start": land.loss(np.zeros_like(W)),
        "star": here.opt,
        "top": star.sizes.r4,
        "strength": problem.strengths.r4 / _choice(cell).strengths.r4,
        "beyond": float(np.mean(np.abs(labels) > MOST)),
        "train": problem.loss(star.X, W),
        "test": problem.loss(X, W),
    }
