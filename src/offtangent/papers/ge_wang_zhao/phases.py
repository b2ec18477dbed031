r"""A figure that the paper lacks: which networks memorise how many samples, with the theory's lines drawn in.

Random labels on random inputs of norm 1; a network counts as having memorised them when training brings f below
10⁻⁴ f(0). Diagrams: n against the width r at a fixed dimension; n against the dimension d with r = 2d + 2; and n
against the number k of random features $(r_i^T \bar x)^p$, p = 2 and 3, with r = 2k + 2, of inputs with N(0, 0.05²) on
every entry. In few dimensions features meet the end of all polynomials; Lemma 13 and with it Theorem 5 need more, d =
30, and go to k = 14 and 16 there. Lines: $n = \binom{d+1}{2}$ (with k for d), beyond which labels exist that no
quadratic form has; r = 2d + 2; $n = (k/2)^2$, for which Theorem 5 asks for k features; and the number $D_d^{2p}$ of
polynomials of degree 2p, which features cannot get beyond.

All networks of a diagram are trained in one program: fewer samples, neurons or inputs are masked. Adam, with a rate
that falls to zero; near the line σ_min is small and training is slow, so what is shown there is what this many steps
do. In most diagrams what the quadratic layers see is divided by its length, which the paper does not do; others have
(Rx)^p as printed, which is far worse conditioned. The theorems are about neither: Theorems 1, 5 and 6 are judged by
perturbed gradient descent on x, (Rx̄)^p and (Rx)^p as printed, with new data for each run, at exactly C(d + 1, 2)
samples, with k = 2⌈√n⌉ features inside Lemma 13, and with k = 2pD_d^p of them. How many steps they get, $10^6$ and
60 000 in `smoke`, was chosen by when the first tries arrived, in tasks that need most of them: it lies far below what
Theorem 4 allows, and a task that takes more is not testable here, and does not fail.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao import phases_report
from offtangent.papers.ge_wang_zhao._diagram import Diagram, inputs, width
from offtangent.papers.ge_wang_zhao._perturbed import Descent, descend
from offtangent.report import Figure
from offtangent.theory.ge_wang_zhao.capacity import theorem_features

RATE, START = 0.03, 0.3
NOISE = 0.05  # on an entry of what features are made of, as in the paper's own experiment


@dataclass(frozen=True)
class Config:
    diagrams: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int, int], ...]
    steps: int
    seeds: int
    printed: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int, int], ...] = ()  # features not divided
    full: tuple[int, ...] = ()  # dimensions of Theorem 1, with C(d + 1, 2) samples
    noisy: tuple[tuple[int, int], ...] = ()  # n and p of Theorem 5, in 30 dimensions
    still: tuple[tuple[int, int, int], ...] = ()  # n, d and p of Theorem 6
    descents: int = 100  # data sets of each: 36 without a failure give an interval above 1 − δ, and 100 with 4
    most: int = 1_000_000  # steps of perturbed gradient descent


def _spread(most: int, count: int) -> tuple[int, ...]:
    return tuple(int(n) for n in np.unique(np.linspace(most / count, most, count).round()))


PROFILES = {
    "smoke": Config(
        (("width", (2, 6, 14), (6, 12, 30), 6, 1),), steps=1500, seeds=2,
        full=(2,), noisy=((2, 2),), descents=40, most=60_000,
    ),
    "laptop": Config(
        (
            ("width", (2, 4, 6, 10, 14, 18), _spread(40, 8), 6, 1),
            ("dimension", (2, 3, 4, 6, 8), _spread(48, 8), 0, 1),
            ("features", (2, 3, 4, 6, 8, 10), _spread(48, 8), 4, 2),
            ("features", (2, 3, 4, 6, 8), _spread(40, 8), 3, 3),
            ("features", (4, 6, 8, 10), _spread(40, 8), 30, 2),
        ),
        steps=2000, seeds=3,
        printed=(("features", (4, 6, 8), _spread(24, 4), 30, 3),),
        full=(2,), noisy=((2, 2),),
    ),
    "paper": Config(
        (
            ("width", (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28), _spread(64, 16), 8, 1),
            ("dimension", tuple(range(2, 14)), _spread(112, 16), 0, 1),
            ("features", (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14), _spread(56, 14), 4, 2),
            ("features", (2, 3, 4, 5, 6, 7, 8, 9, 10), _spread(42, 14), 3, 3),
            ("features", (4, 6, 8, 10, 12, 14), _spread(84, 14), 30, 2),
            ("features", (4, 6, 8, 10, 12, 14, 16), _spread(84, 14), 30, 3),
        ),
        steps=20_000, seeds=10,
        printed=(
            ("features", (4, 6, 8, 10, 12, 14), _spread(84, 14), 30, 2),
            ("features", (4, 6, 8, 10, 12, 14, 16), _spread(84, 14), 30, 3),
        ),
        full=(2, 3), noisy=((2, 2), (5, 2), (2, 3)), still=((2, 2, 2), (4, 2, 2)), most=1_000_000,
    ),
}  # fmt: skip


Kind = Diagram | Descent
DIM = 30  # of Theorem 5, where Lemma 13 allows 14 features of power 2 and 16 of power 3
ALPHA = 2  # of Theorem 6, with k = αpD_d^p


def cells(config: Config) -> list[Kind]:
    found: list[Kind] = [Diagram(*diagram, config.steps, config.seeds) for diagram in config.diagrams]
    found += [Diagram(*diagram, config.steps, config.seeds, "as printed") for diagram in config.printed]
    tasks = [(1, symmetric_dimension(dim, 2), dim, 0, 1) for dim in config.full]
    tasks += [(5, n, DIM, theorem_features(n), power) for n, power in config.noisy]
    tasks += [(6, n, dim, ALPHA * p * symmetric_dimension(dim, p), p) for n, dim, p in config.still]
    return found + [Descent(*task, steps=config.most, seeds=config.descents) for task in tasks]


def cost(cell: Kind) -> Cost:
    if isinstance(cell, Descent):  # a step takes some 5 µs, of which a few per cent of the seeds take all
        return Cost(cell.seeds * cell.steps * 5e4, 1e7)
    widest, most = max(width(cell, size) for size in cell.sizes), max(inputs(cell, size) for size in cell.sizes)
    networks = len(cell.sizes) * len(cell.samples) * cell.seeds
    entries = networks * max(cell.samples) * widest
    return Cost(cell.steps * 6 * entries * most, 16 * entries + 1e6)


def run(cell: Kind) -> xr.Dataset:
    if isinstance(cell, Descent):
        with jax.enable_x64(True):
            return descend(cell)
    found = [_seed(cell, seed) for seed in range(cell.seeds)]
    return xr.Dataset({"left": (("seed", "n", "size"), np.stack(found))}).assign_coords(
        n=list(cell.samples), size=list(cell.sizes)
    )


def claims(results: Results) -> list[Claim]:
    return phases_report.claims(results.where(Diagram), results.where(Descent))


def draw(results: Results) -> list[Figure]:
    return phases_report.figures(results.where(Diagram))


def _seed(cell: Diagram, seed: int) -> Float[np.ndarray, "n size"]:
    """The last f/f(0) of every network of one seed; they share their samples."""
    rng = np.random.default_rng(seed)
    most, widest = max(inputs(cell, s) for s in cell.sizes), max(width(cell, s) for s in cell.sizes)
    rows = max(cell.samples)
    X = np.zeros((len(cell.sizes), rows, most))
    raw, weights = rng.standard_normal((rows, max(most, cell.dim))), rng.standard_normal((most, max(most, cell.dim)))
    noise = NOISE * np.random.default_rng([seed, 1]).standard_normal((rows, cell.dim))
    for i, size in enumerate(cell.sizes):
        seen = raw[:, : cell.dim] if cell.axis != "dimension" else raw[:, :size]
        if cell.axis == "features":
            seen = seen / np.linalg.norm(seen, axis=1, keepdims=True) + noise
            seen = (seen @ weights[:size, : cell.dim].T) ** cell.power
        lengths = np.linalg.norm(seen, axis=1, keepdims=True) if cell.lengths == "one" else 1.0
        X[i, :, : seen.shape[1]] = seen / lengths
    y = rng.uniform(-1, 1, rows)
    half = np.arange(widest // 2)
    kept = np.array([np.tile(half < width(cell, size) // 2, 2) for size in cell.sizes], float)
    used = (np.arange(rows) < np.array(cell.samples)[:, None]) / np.array(cell.samples)[:, None]
    start = START * rng.standard_normal((len(cell.samples), len(cell.sizes), most, widest)) / np.sqrt(most)
    last = _train(*(jnp.asarray(part, jnp.float32) for part in (start, X, y, kept, used)), cell.steps)
    return np.asarray(last, np.float64) / (0.25 * used @ y**2)[:, None]


@partial(jax.jit, static_argnames="steps")
def _train(
    W: Float[Array, "n size d r"],
    X: Float[Array, "size rows d"],
    y: Float[Array, "rows"],
    kept: Float[Array, "size r"],
    used: Float[Array, "n rows"],
    steps: int,
) -> Float[Array, "n size"]:
    half = W.shape[-1] // 2

    def losses(W: Array) -> Array:
        squares = jnp.einsum("srd,nsdm->nsrm", X, W, precision="highest") ** 2 * kept[:, None, :]
        outputs = squares[..., :half].sum(-1) - squares[..., half:].sum(-1)
        return 0.25 * jnp.einsum("nsr,nr->ns", (outputs - y) ** 2, used)

    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))

    def step(_: Any, carry: tuple[Array, optax.OptState]) -> tuple[Array, optax.OptState]:
        W, state = carry
        updates, state = optimiser.update(jax.grad(lambda W: losses(W).sum())(W), state)
        return optax.apply_updates(W, updates), state

    return losses(jax.lax.fori_loop(0, steps, step, (W, optimiser.init(W)))[0])
