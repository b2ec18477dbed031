"""Theorem 4: for m ≳ ε_min⁻⁴ d^{3(k−1)}, small regularised loss means small test loss, with high probability.

    L(Ŵ) ≲ ε_min + √(d^k/n)      for any Ŵ, which may depend on the data, with L_λ(Ŵ) ≤ C ε_min             (32)

Here Ŵ is W⋆, which knows the target, or where perturbed descent from W⋆ ends, with λᵢRᵢ(W⋆) ≈ ε_min; k = 1 and R = 1.
So this is outside the hypothesis, and shown beside `stated`, which has the theorem's λ and starts at W = 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Cost, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.sweeps import Sweep
from offtangent.papers.nichani.constructions import _hypotheses as asked
from offtangent.papers.nichani.constructions._descent import (
    RATES,
    Problem,
    descended,
    descent_cost,
    fourth_strength,
    problems,
    too_large,
    unseen,
)
from offtangent.papers.nichani.constructions._setting import NAMES
from offtangent.report import Figure, finished, line, new_plot, series
from offtangent.theory.nichani.choice import regulariser_choice

SOURCE = "Theorem 4, eq. (32)"
# Of the rate from zero: with this ε_min and few samples λ₃R₃ is steep.
SLOW = 0.25


@dataclass(frozen=True)
class Learned:
    """`steps` of perturbed descent from W⋆ on n = `samples` with ε_min = `epsilon`; with no steps, W⋆ itself."""

    sigma: str
    samples: int
    width: int
    dim: int
    steps: int
    epsilon: float
    tests: int
    seeds: int


@dataclass(frozen=True)
class Config:
    samples: tuple[int, ...]
    sigma: str = "softplus"
    width: int = 256
    dim: int = 8
    steps: int = 200
    epsilon: float = 0.25
    tests: int = 10_000
    seeds: int = 10


PROFILES = {
    "smoke": Config(samples=(16, 100, 640), steps=0, tests=2000, seeds=6),
    "paper": Config(samples=(16, 50, 160, 500, 1600, 5000)),
}


def cells(config: Config) -> Iterator[Learned]:
    for n in config.samples:
        yield Learned(
            config.sigma, n, config.width, config.dim, config.steps, config.epsilon, config.tests, config.seeds
        )


def cost(cell: Learned) -> Cost:
    return descent_cost(seeds=cell.seeds, width=cell.width, dim=cell.dim, samples=cell.samples, steps=cell.steps)


def run(cell: Learned) -> xr.Dataset:
    found = problems(
        cell.seeds, sigma=cell.sigma, width=cell.width, dim=cell.dim, samples=cell.samples, epsilon=cell.epsilon
    )
    last = np.stack([one.star.weights for one in found])
    if cell.steps:
        rate = RATES[cell.sigma] * SLOW
        (last,) = descended(found, jnp.asarray(last, jnp.float32), [cell.steps], rate=rate)
    rows = [
        _one(one, W, unseen(cell.tests, cell.dim, seed)) for seed, (one, W) in enumerate(zip(found, last, strict=True))
    ]
    choice = regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)
    table = {name: ("seed", np.array([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(table).assign(bound=choice.loss_bound(cell.samples), asked=choice.generalising_width)


def claims(results: Results[Learned]) -> Iterator[Claim]:
    for (sigma, width), learned in results.where(Learned).groups("sigma", "width"):
        cell = learned.first
        how = f"{cell.steps} steps from W⋆" if cell.steps else "W⋆ itself"
        about = (
            f"{NAMES[sigma]}, m = {width}, k = 1, d = {cell.dim}, ε_min = {cell.epsilon:g}, {how}, {cell.seeds} seeds, "
            f"{cell.tests} test inputs"
        )
        if sweep := learned.sweep("samples", about, symbol="n", noun="n"):
            yield from _on_samples(sweep)


def _assumed(sweep: Sweep[Learned]) -> tuple[Hypothesis, ...]:
    cell = sweep.cell
    largest = max(too_large(one.seeds, one.dim, one.samples) for one, _ in sweep.results)
    return (
        asked.on_strengths(fourth_strength(cell.sigma, cell.dim)),
        *asked.on_activation(cell.sigma, cell.dim, 1),
        asked.on_labels(largest),
        asked.on_start("W⋆"),
        asked.width_of_theorem_4(cell.width, regulariser_choice(cell.dim, cell.width, 1, cell.epsilon)),
    )


def _on_samples(sweep: Sweep[Learned]) -> Iterator[Claim]:
    cell, hypotheses = sweep.cell, _assumed(sweep)
    yield sweep.worst(
        sweep["test"] / _values(sweep.results, "bound"),
        source=SOURCE,
        statement="L(Ŵ) ≤ ε_min + (d^k/n)^(1/2) for Ŵ with L_λ(Ŵ) ≤ C ε_min, the constant of ≲ as one",
        hypotheses=hypotheses,
        note=f"L_λ(Ŵ) ≤ {sweep['regularised'].max() / cell.epsilon:.2g} ε_min.",
    )
    gap = np.abs(sweep["test"] - sweep["train"])
    yield sweep.slope(
        gap,
        "≤",
        -0.5,
        source=SOURCE,
        statement="|L(Ŵ) − L̂(Ŵ)| = O((d^k/n)^(1/2)) in n, which is the proof's part of (32)",
        hypotheses=hypotheses,
        note=f"Test losses {', '.join(f'{one:.3g}' for one in sweep['test'].mean(axis=0))}; differences "
        f"{', '.join(f'{one:.2g}' for one in gap.mean(axis=0))}.",
    )


def draw(results: Results[Learned]) -> Iterator[Figure]:
    learned = results.where(Learned)
    if len(learned) < 2:
        return
    plot, n, cell = new_plot(), learned.field("samples"), learned.first
    series(plot, n, learned.table("test"), name="test loss L(Ŵ)", colour="blue")
    series(plot, n, learned.table("train"), name="training loss", colour="green")
    line(plot, n, _values(learned, "bound"), name="ε_min + (d^k/n)^(1/2)", colour="grey", dash="dash")
    how = f"{cell.steps} steps of perturbed descent from W⋆" if cell.steps else "Ŵ = W⋆"
    caption = (
        f"{NAMES[cell.sigma]}, m = {cell.width}, d = {cell.dim}, ε_min = {cell.epsilon:g}, {how}, {cell.seeds} seeds "
        "(bars: all of them)."
    )
    yield finished(
        plot,
        "With λᵢRᵢ(W⋆) ≈ ε_min, from W⋆: the test loss next to Theorem 4's bound",
        caption,
        x="samples n",
        y="loss",
    )


def _values(learned: Results[Learned], name: str) -> Float[np.ndarray, " cells"]:
    """What is one number for every n: the right side of (32), and the width that it asks for."""
    return np.array([float(data[name]) for _, data in learned])


def _one(problem: Problem, W: Float[np.ndarray, "d m"], X: Float[np.ndarray, "n d"]) -> dict[str, float]:
    return {
        "regularised": problem.land.loss(W),
        "train": problem.loss(problem.star.X, W),
        "test": problem.loss(X, W),
        "star_test": problem.loss(X, problem.star.weights),
    }
