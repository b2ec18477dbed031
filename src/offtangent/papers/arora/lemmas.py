r"""The lemmas behind Theorems 4.1 and 5.1: how far weights move, which neurons flip, and how wide is wide enough.

W(k) are the weights after k steps of gradient descent, H(k) the tangent kernel there, Z(k) its features ($H = Z^T Z$).
The proofs say: no neuron moves by more than R = O(n/(√m λ₀√δ)) (Lemma C.1), so only neurons in the events
$A_{r,i} = \{|w_r(0)^T x_i| \le R\}$ can flip, which are rare; hence H and Z hardly change (Lemma C.2), the whole
movement is about $\sqrt{y^T (H^\infty)^{-1} y}$ (Lemma 5.3), and the networks within such a distance have a small
Rademacher complexity (Lemma 5.4).

Four kinds of cells: Inside is small enough (n = 2 orthonormal inputs) to meet the hypotheses with all their constants
set to one, at widths over two decades; Widths is a larger problem, outside the hypotheses but for Lemmas C.3 and 5.4,
which have none; Linearised checks the sequences of eq. (11) against their closed forms; Enough looks for the smallest
width that does what Theorems 3.1 and 4.1 promise, next to the width that they ask for.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent import data
from offtangent.kernels import Gram, relu_hidden
from offtangent.lab import Claim, Cost, Results
from offtangent.linalg import Spectrum
from offtangent.papers.arora import _conditions, lemmas_inside, lemmas_report
from offtangent.papers.arora._conditions import NEW, SEEN
from offtangent.papers.arora._descent import Networks, active, follow, near_supremum
from offtangent.papers.arora.lemmas_inside import SMALLEST
from offtangent.papers.arora.lemmas_report import MOST
from offtangent.report import Figure
from offtangent.theory import largest_stable_rate
from offtangent.theory.arora.linearised import Features, linearised_distance, linearised_weights
from offtangent.theory.arora.movement import flip_candidates, movement_radius
from offtangent.theory.arora.widths import gram_deviation_bound, initial_residual_bound, required_width

SIGNS = 2000  # random sign vectors for E‖Z(0)ε‖
PAIRS = 4  # pairs ±ε for which a network near the supremum of Lemma 5.4 is built


@dataclass(frozen=True)
class Inside:
    """n orthonormal inputs, κ, width and rate as Theorem 3.1 asks for, constants one; `factor` times its width."""

    factor: int
    samples: int
    scale: float
    delta: float
    seeds: int
    steps: int
    key: int = SEEN  # of the networks


@dataclass(frozen=True)
class Widths:
    """Random inputs on the sphere, labels ±1, one width and one κ."""

    width: int
    scale: float
    samples: int
    dim: int
    seeds: int
    steps: int


@dataclass(frozen=True)
class Linearised:
    """The sequences of eq. (11) in float64."""

    width: int
    samples: int
    dim: int
    steps: int
    seeds: int


@dataclass(frozen=True)
class Enough:
    """Widths 2, 4, 8, ... up to `widest` on n inputs: does the loss contract, does it follow eq. (8)?"""

    samples: int
    dim: int
    scale: float
    widest: int
    seeds: int
    steps: int


@dataclass(frozen=True)
class Config:
    delta: float
    factors: tuple[int, ...]
    widths: tuple[int, ...]
    enough: tuple[int, ...]
    widest: int
    scales: tuple[float, ...] = (0.1, 1.0)
    samples: int = 40
    dim: int = 20
    steps: int = 100
    seeds: int = 10
    certain: tuple[Inside, ...] = ()


ONE = Inside(1, samples=1, scale=1.0, delta=0.1, seeds=40, steps=40)  # 16 000 neurons; 40 networks tell δ = 0.1
TWO = Inside(1, samples=2, scale=1.0, delta=0.1, seeds=40, steps=80)  # 1 024 000
PROFILES = {
    "smoke": Config(
        0.9, (1, 10, 100), (30, 300, 3000), (2, 8), 1024, samples=16, dim=8, steps=60, certain=(ONE,),
    ),
    "laptop": Config(
        0.5, (1, 3, 10, 30, 100), (200, 600, 2000, 6000, 20_000), (2, 4, 8, 16, 32), 2048, certain=(ONE,),
    ),
    "paper": Config(
        0.25, (1, 3, 10, 30, 100), (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
        (2, 4, 8, 16, 32, 64, 128), 16_384, samples=60, dim=30, steps=400, certain=(ONE, TWO),
    ),
}  # fmt: skip


def cells(config: Config) -> list[Inside | Widths | Linearised | Enough]:
    seeds = config.seeds
    inside = [Inside(factor, 2, 1.0, config.delta, seeds, steps=80, key=NEW) for factor in config.factors]
    widths = [
        Widths(width, scale, config.samples, config.dim, seeds, config.steps)
        for width in config.widths
        for scale in config.scales
    ]
    enough = [Enough(n, config.dim, 0.02, config.widest, seeds, steps=60) for n in config.enough]
    return [*inside, *config.certain, *widths, Linearised(100, 20, config.dim, steps=100, seeds=seeds), *enough]


def cost(cell: Inside | Widths | Linearised | Enough) -> Cost:
    """4ndm operations a step and network, and ten elementwise ones, each as dear as ten."""
    n, seeds, steps = cell.samples, cell.seeds, cell.steps
    if isinstance(cell, Inside):
        width, dim = _width(cell), n
    elif isinstance(cell, Enough):
        width, dim = cell.widest * len(_powers_of_two(cell.widest)), cell.dim
    else:
        width, dim = cell.width, cell.dim
    size = seeds * width
    return Cost(steps * size * n * (4 * dim + 100), 4 * size * (6 * n + 4 * dim) + 1e6)


def run(cell: Inside | Widths | Linearised | Enough) -> xr.Dataset:
    if isinstance(cell, Inside):
        return _run_inside(cell)
    if isinstance(cell, Widths):
        return _run_widths(cell)
    return _run_linearised(cell) if isinstance(cell, Linearised) else _run_enough(cell)


def claims(results: Results) -> list[Claim]:
    return [
        *lemmas_inside.claims(results.where(Inside)),
        *lemmas_report.width_claims(results.where(Widths)),
        *lemmas_report.linearised_claims(results.where(Linearised)),
        *lemmas_report.enough_claims(results.where(Enough)),
    ]


def draw(results: Results) -> list[Figure]:
    return [
        *lemmas_report.width_figures(results.where(Widths)),
        *lemmas_inside.figures(results.where(Inside)),
        *lemmas_report.enough_figures(results.where(Enough)),
    ]


def _run_inside(cell: Inside) -> xr.Dataset:
    n, width = cell.samples, _width(cell)
    X, y = np.eye(n), _labels(n)
    nets = Networks.draw(cell.seeds, n, width, cell.scale, key=cell.key)
    bound = initial_residual_bound(n, cell.scale, delta=cell.delta)
    radius = movement_radius(n, width, smallest=SMALLEST, residual=bound)
    spectrum = Spectrum.of(SMALLEST * np.eye(n))
    found = follow(nets, X, y, spectrum, rate=SMALLEST / n**2, steps=cell.steps, radius=radius)
    near = [flip_candidates(W0, X.astype(np.float32), radius) for W0 in nets.W0]
    return xr.Dataset(
        {
            **_over_seeds(found),
            "candidates": (("seed", "sample"), np.array(near, dtype=float)),  # |S̄ᵢ|
            "radius": radius,
            "quadratic": float(y @ y) / SMALLEST,
            "width": float(width),
        }
    )


def _width(cell: Inside) -> int:
    asked = required_width(cell.samples, scale=cell.scale, smallest=SMALLEST, delta=cell.delta)
    return int(np.ceil(cell.factor * asked))


def _run_widths(cell: Widths) -> xr.Dataset:
    n, m = cell.samples, cell.width
    X, y = _inputs(n, cell.dim), _labels(n)
    H = Gram(relu_hidden, X).dense()
    spectrum = Spectrum.of(H)
    smallest = float(spectrum.values[-1])
    nets = Networks.draw(cell.seeds, cell.dim, m, cell.scale)
    inputs, root = X.astype(np.float32), float(np.sqrt(y @ np.linalg.solve(H, y)))
    radius = 4 * root / m**0.5
    rate = 0.5 * largest_stable_rate(spectrum)
    found = follow(nets, X, y, spectrum, rate=rate, steps=cell.steps, radius=radius)
    grams = np.stack([X @ X.T * active(inputs @ W0 >= 0).astype(np.float64) / m for W0 in nets.W0])
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (SIGNS, n))
    lengths = np.sqrt(np.einsum("ki,ski->sk", signs, signs @ grams))
    reached = [near_supremum(W0, a, inputs, signs[:PAIRS], root) for W0, a in zip(nets.W0, nets.a, strict=True)]
    left = (y - found["start"]).T
    return xr.Dataset(
        {
            **_over_seeds(found),
            "kernel": ("seed", np.linalg.norm(grams - H, axis=(1, 2))),
            "kernel_bound": gram_deviation_bound(n, m, delta=_conditions.DELTA),
            "coupled": ("seed", np.sqrt(np.sum(left * np.linalg.solve(H, left), axis=0))),
            "sign_length": ("seed", lengths.mean(axis=1)),  # E‖Z(0)ε‖
            "sign_error": ("seed", lengths.std(axis=1, ddof=1) / SIGNS**0.5),
            "reached": ("seed", np.array([value for value, _ in reached])),  # by networks of Lemma 5.4's class
            "columns": ("seed", np.array([column for _, column in reached])),  # the furthest of their neurons
            "candidates": ("seed", np.array([flip_candidates(W0, inputs, radius).sum() for W0 in nets.W0], float)),
            "root": root,
            "radius": radius,  # R of Lemma 5.4
            "smallest": smallest,
        }
    )


def _run_linearised(cell: Linearised) -> xr.Dataset:
    X, y = _inputs(cell.samples, cell.dim), _labels(cell.samples)
    nets = Networks.draw(cell.seeds, cell.dim, cell.width, 1.0)
    length, recursion = [], []
    for W0, a in zip(nets.W0.astype(np.float64), nets.a.astype(np.float64), strict=True):
        Z = Features(X, (X @ W0 >= 0) * a / cell.width**0.5)
        spectrum = Spectrum.of(Z.gram())
        rate, W = 0.5 * largest_stable_rate(spectrum), np.zeros((cell.dim, cell.width))
        for _ in range(cell.steps):  # eq. (11), step by step
            W = W - rate * (Z @ (Z.adjoint(W) - y))
        root = np.sqrt(y @ np.linalg.solve(Z.gram(), y))
        closed = linearised_weights(Z, y, rate=rate, steps=cell.steps)
        distance = linearised_distance(spectrum, y, rate=rate, steps=np.array([cell.steps]))[0]
        recursion.append(max(np.linalg.norm(W - closed), abs(np.linalg.norm(W) - distance)) / root)
        length.append(abs(np.linalg.norm(linearised_weights(Z, y)) / root - 1))
    return xr.Dataset({"length": ("seed", np.array(length)), "recursion": ("seed", np.array(recursion))})


def _run_enough(cell: Enough) -> xr.Dataset:
    X, y = _inputs(cell.samples, cell.dim), _labels(cell.samples)
    spectrum = Gram(relu_hidden, X).eigh()
    rate = 0.5 * largest_stable_rate(spectrum)
    nets, widths = Networks.draw(cell.seeds, cell.dim, cell.widest, cell.scale), _powers_of_two(cell.widest)
    found = [follow(nets.first(m), X, y, spectrum, rate=rate, steps=cell.steps, width=m) for m in widths]
    return xr.Dataset(
        {
            "worst_ratio": (("width", "seed"), np.stack([one["worst_ratio"] for one in found])),
            "deviation": (("width", "seed"), np.stack([one["deviation"] for one in found])),
            "allowed_ratio": 1 - rate * spectrum.values[-1] / 2,
            "smallest": float(spectrum.values[-1]),
        }
    ).assign_coords(width=widths)


def _inputs(n: int, dim: int) -> Float[np.ndarray, "n d"]:
    """The first of one set of points on the sphere."""
    return data.sphere(MOST, dim, key=jax.random.key(0))[:n]


def _labels(n: int) -> Float[np.ndarray, "n"]:
    return data.labels.random_labels(MOST, key=jax.random.key(1))[:n]


def _powers_of_two(widest: int) -> list[int]:
    return [2**k for k in range(1, int(np.log2(widest)) + 1)]


def _over_seeds(found: dict[str, np.ndarray]) -> dict[str, tuple[str, np.ndarray]]:
    return {name: ("seed", values) for name, values in found.items() if values.ndim == 1}
