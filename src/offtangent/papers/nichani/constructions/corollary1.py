"""Corollary 1: a (ν, γ)-second-order stationary point Ŵ of L_λ, ν ≤ m^{−1/2} and γ ≤ m^{−3/4}, has L_λ(Ŵ) ≤ ε_min.

Theorem 3: perturbed descent reaches such a point within poly(m) steps. So, with Theorem 4, it goes from W = 0 to a
small test loss, as Theorem 1 says. Both rest on (31) of Lemma 3, which is looked at along the way. Here k = 1, R = 1.

λ is not the theorem's but such that λᵢRᵢ(W⋆) ≈ ε_min, so that W⋆ is as good a point as the proof needs; the theorem's
λ₄ is 10⁸ times as large. All is outside the hypothesis, then, and shown beside `stated`, which has the theorem's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval
from offtangent.papers.nichani.constructions import _hypotheses as asked
from offtangent.papers.nichani.constructions._descent import (
    RATES,
    Problem,
    arrived,
    descended,
    descent_cost,
    fourth_strength,
    largest_loss,
    problems,
    stationarity,
    told,
    too_large,
    unseen,
)
from offtangent.papers.nichani.constructions._setting import COLOURS, NAMES
from offtangent.report import Figure, finished, line, new_plot
from offtangent.theory.nichani.choice import regulariser_choice

# How many inputs the test losses are taken on.
TESTS = 4000


@dataclass(frozen=True)
class Descents:
    """`seeds` networks from W = 0: `steps` of perturbed descent on L_λ with ε_min = `epsilon`, seen at some `looks`."""

    sigma: str
    width: int
    dim: int
    samples: int
    steps: int
    epsilon: float
    looks: int
    seeds: int


@dataclass(frozen=True)
class Config:
    """The activations with their widths and numbers of steps."""

    runs: tuple[tuple[str, int, int], ...]
    dim: int = 8
    samples: int = 64
    epsilon: float = 0.1
    looks: int = 8
    seeds: int = 10


PROFILES = {
    "smoke": Config(runs=(("softplus", 64, 800),), seeds=2),
    "paper": Config(
        runs=(("softplus", 64, 3000), ("softplus", 256, 3000), ("softplus", 1024, 4500), ("sigmoid", 1024, 2000))
    ),
}


def cells(config: Config) -> Iterator[Descents]:
    for sigma, width, steps in config.runs:
        yield Descents(sigma, width, config.dim, config.samples, steps, config.epsilon, config.looks, config.seeds)


def cost(cell: Descents) -> Cost:
    return descent_cost(seeds=cell.seeds, width=cell.width, dim=cell.dim, samples=cell.samples, steps=cell.steps)


def run(cell: Descents) -> xr.Dataset:
    found = problems(
        cell.seeds, sigma=cell.sigma, width=cell.width, dim=cell.dim, samples=cell.samples, epsilon=cell.epsilon
    )
    looks = np.unique(np.geomspace(1, cell.steps, cell.looks).round().astype(int))
    start = jnp.zeros((cell.seeds, cell.dim, cell.width))
    walked = descended(found, start, looks.tolist(), rate=RATES[cell.sigma])
    path = np.concatenate([np.zeros((1, *start.shape)), walked])
    rows = [_one(one, path[:, seed], seed) for seed, one in enumerate(found)]
    choice = regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    table = xr.concat([xr.Dataset(row) for row in rows], dim="seed").assign_coords(look=[0, *looks])
    return table.assign(
        nu=choice.gradient,
        gamma=choice.curvature,
        asked=choice.landscape_width(cell.samples),
        allowed=choice.loss_bound(cell.samples),
        generalising=choice.generalising_width,
    )


def claims(results: Results[Descents]) -> Iterator[Claim]:
    for cell, data in results.where(Descents):
        where = (
            f"{NAMES[cell.sigma]}, m = {cell.width}, k = 1, d = {cell.dim}, n = {cell.samples}, "
            f"ε_min = {cell.epsilon:g}, {cell.seeds} seeds, {cell.steps} steps"
        )
        yield _on_arriving(cell, data, where)
        yield _on_testing(cell, data, where)
        yield from _on_landscape(cell, data, where)


def _assumed(cell: Descents) -> tuple[Hypothesis, ...]:
    return (
        asked.on_strengths(fourth_strength(cell.sigma, cell.dim)),
        *asked.on_activation(cell.sigma, cell.dim, 1),
        asked.on_labels(too_large(cell.seeds, cell.dim, cell.samples)),
    )


def _on_arriving(cell: Descents, data: xr.Dataset, where: str) -> Claim:
    certified, nu, gamma = _certified(data), float(data["nu"]), float(data["gamma"])
    surely = f"{fraction_interval(int(certified.sum()), certified.size).low:.0%}".replace("%", " %")
    return Claim.at_least(
        float(certified.mean()),
        1.0,
        source="Theorem 3",
        statement="perturbed descent from W = 0 reaches a (ν, γ)-second-order stationary point of L_λ, "
        f"ν = m^(−1/2) = {nu:.3g}, γ = m^(−3/4) = {gamma:.3g}",
        measured=f"fraction of networks certified at the last step, {where}",
        hypotheses=(*_assumed(cell), asked.on_start("W = 0")),
        note=f"{told(data)} All of them: at least {surely} of networks. The "
        "theorem's number of steps is a polynomial of no named degree or constant: no run is as long.",
    )


def _on_testing(cell: Descents, data: xr.Dataset, where: str) -> Claim:
    test, choice = data["test"].values, regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    return Claim.at_most(
        float(test.max()),
        float(data["allowed"]),
        source="Theorems 1, 4",
        statement="from W = 0 to a test loss of at most ε_min + (d^k/n)^(1/2), the constants of ≲ as one",
        measured=f"the largest test loss of the network at Ŵ, {where}",
        hypotheses=(*_assumed(cell), asked.on_start("W = 0"), asked.width_of_theorem_4(cell.width, choice)),
        note=f"In the mean {test.mean():.3g} (training {data['train'].values.mean():.3g}), and "
        f"{data['loss'].values[:, 0].mean():.3g} at W = 0.",
    )


def _on_landscape(cell: Descents, data: xr.Dataset, where: str) -> Iterator[Claim]:
    certified, opt = _certified(data), data["opt"].values.mean()
    choice = regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    hypotheses = (*_assumed(cell), asked.width_of_lemma_3(cell.width, choice, cell.samples))
    last = data["last"].values[certified] if certified.any() else data["last"].values
    yield Claim.at_most(
        float(last.max()),
        cell.epsilon,
        source="Corollary 1",
        statement="L_λ(Ŵ) ≤ ε_min at such a point, the constant of ≲ as one",
        measured=largest_loss(certified, where),
        hypotheses=hypotheses,
        note=f"W⋆ itself has {opt:.3g} in the mean: descent does {'better' if last.mean() < opt else 'worse'}.",
    )
    yield Claim.at_most(
        float(data["needed"].values.max()) / cell.epsilon,
        1.0,
        source="Lemma 3, eq. (31)",
        statement="(31) along training with ε_min on the right, the constant of ≲ as one",
        measured=f"largest ε needed over ε_min, at {data.sizes['look']} looks, {where}",
        hypotheses=hypotheses,
    )


def draw(results: Results[Descents]) -> Iterator[Figure]:
    descents = results.where(Descents)
    if not len(descents):
        return
    plot, cell = new_plot(), descents.first
    for (one, data), colour in zip(descents, COLOURS, strict=False):
        losses, looks = data["loss"].transpose("seed", "look").values, data["look"].values + 1.0
        name, band = f"{NAMES[one.sigma]}, m = {one.width}", (losses.min(axis=0), losses.max(axis=0))
        line(plot, looks, losses.mean(axis=0), name=name, colour=colour, band=band)
        best = np.full(2, float(data["opt"].mean()))
        line(plot, looks[[0, -1]], best, name=f"{name}, at W⋆", colour=colour, dash="dot")
    steps = max(descents.values("steps"))
    line(plot, [1, steps + 1], np.full(2, cell.epsilon), name="ε_min", colour="grey", dash="dash")
    certified = sum(int(_certified(data).sum()) for _, data in descents)
    caption = (
        f"From W = 0, a saddle of f_Q; d = {cell.dim}, n = {cell.samples}, {cell.seeds} seeds (bands: all of them). "
        f"{certified} of {descents.field('seeds').sum():.0f} runs end at a certified second-order stationary point."
    )
    title = "With λᵢRᵢ(W⋆) ≈ ε_min: perturbed descent leaves the saddle and passes below L_λ(W⋆)"
    yield finished(plot, title, caption, x="step + 1", y="L_λ")


def _certified(data: xr.Dataset) -> Bool[np.ndarray, " s"]:
    return arrived(data, nu=float(data["nu"]), gamma=float(data["gamma"]))


def _one(problem: Problem, path: Float[np.ndarray, "t d m"], seed: int) -> dict[str, object]:
    """One network's path: (31) at every look, and what its end is."""
    last, land = path[-1], problem.land
    found = [land.at(W) for W in path]
    point = stationarity(problem, last, seed)
    bound = land.stationary(last, point)
    return {
        "loss": ("look", np.array([each.loss for each in found])),
        "needed": ("look", np.array([each.needed for each in found])),
        "gradient": point.gradient_norm,
        "lowest": point.lowest,
        "last": bound.loss,
        "bound": bound.bound,
        "opt": bound.opt,
        "inexactness": bound.inexactness,
        "train": problem.loss(problem.star.X, last),
        "test": problem.loss(unseen(TESTS, last.shape[0], seed), last),
    }
