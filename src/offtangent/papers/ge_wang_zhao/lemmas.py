r"""Appendix E: the lemmas behind Theorems 5 and 6, from symmetric tensors to random features that tell samples apart.

A network with k random features $z_j = (R\bar x_j)^p$ memorises n samples when the tensor squares $z_j \otimes z_j$,
the columns of Z, are linearly independent. The proof that they are, for inputs moved by a little Gaussian noise of
variance v, goes from the norms of symmetric tensors (Lemmas 6, 7) over the variance of Gaussian polynomials (9, 10) and
the chance that they are small (11, 12) to leave-one-out distances (8) and σ_min(Z) (13); without noise it needs more
features than symmetric tensors have dimensions (15 to 19). Lemmas 14 and 20 bound the length of z.

Kinds of cells, all float64 on the host: Tensors (Lemmas 6, 9, 10), Net (7), Distances (8), Ball (11, 12),
Decoupled and Perturbed (13), Outside (σ_min(Z) where Lemma 13 says nothing), Lengths (14, 20), Span (18, 19), and those
of `lemmas_nets`: Smallness and Leading (Propositions 2 and 4), Lowest, Highest and Radial (Lemmas 15, 16 and 17).
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from offtangent.lab import Claim, Cost, Results
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao import lemmas_figures, lemmas_nets, lemmas_report
from offtangent.papers.ge_wang_zhao._kept import HALF, NOISE, chances, kept
from offtangent.papers.ge_wang_zhao._random import full_power, smallest_of, sphere, unit_tensor
from offtangent.papers.ge_wang_zhao.lemmas_nets import Highest, Leading, Lowest, Radial, Smallness
from offtangent.report import Figure
from offtangent.theory.ge_wang_zhao.features import (
    decoupled_subspace,
    feature_norm_bound,
    feature_rows,
    perturbed_feature_norm_bound,
    product_rows,
    squared_features,
)
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular
from offtangent.theory.ge_wang_zhao.tensors import (
    SymmetricTensor,
    decoupled_variance,
    decoupled_variance_floor,
    gaussian_variance,
    gaussian_variance_floor,
    isometric_power,
    log_covering_bound,
    symmetric_product,
)

STARTS = ("zero", "equal", "sphere")  # the inputs before the noise: the worst, one point n times, different ones


@dataclass(frozen=True)
class Tensors:
    """Random tensors of unit length and random shifts, one a seed; variances by formula and from draws."""

    power: int
    dim: int
    draws: int
    seeds: int


@dataclass(frozen=True)
class Net:
    """An ε-separated set of unit tensors, as large as a greedy choice among `points` makes it, for each seed."""

    power: int
    dim: int
    epsilon: float
    points: int
    seeds: int


@dataclass(frozen=True)
class Distances:
    """Σ_min and leave-one-out distance of matrices of one law: gaussian, tensor squares, or one of two extremes."""

    law: str
    columns: int
    seeds: int


@dataclass(frozen=True)
class Ball:
    """How often the projection to a subspace of `size` dimensions is short: Lemma 11, or Lemma 12."""

    lemma: int
    subspace: str  # "worst": the span of e₁^{⊗p}, and no shift; "random": so is the shift
    power: int
    dim: int
    size: int
    draws: int
    seeds: int


@dataclass(frozen=True)
class Decoupled:
    """The dimension of S_(i,j)."""

    power: int
    dim: int
    features: int
    seeds: int


@dataclass(frozen=True)
class Perturbed:
    """Σ_min(Z) for noise of one variance around inputs of one kind."""

    power: int
    dim: int
    features: int
    samples: int
    variance: float
    start: str
    seeds: int


@dataclass(frozen=True)
class Outside:
    """Σ_min(Z) with more features than Lemma 13 allows: a proven lower bound of what was drawn."""

    power: int
    dim: int
    features: int
    samples: int
    variance: float
    scale: float  # of R's entries
    seeds: int


@dataclass(frozen=True)
class Lengths:
    """The longest ‖z_j‖ and the largest coordinate next to Lemma 14's bounds, or, without samples, Lemma 20's."""

    lemma: int
    power: int
    dim: int
    features: int
    samples: int
    delta: float
    seeds: int


@dataclass(frozen=True)
class Span:
    """K = αpD_d^p features: σ_min of Q, of the inputs' tensors of order 2p, and of Z."""

    power: int
    dim: int
    ratio: int  # α
    seeds: int

    @property
    def features(self) -> int:
        return self.ratio * self.power * symmetric_dimension(self.dim, self.power)

    @property
    def samples(self) -> int:
        return max(min(8, symmetric_dimension(self.dim, 2 * self.power) // 2), 1)


OfNets = Smallness | Leading | Lowest | Highest | Radial
Kind = Tensors | Net | Distances | Ball | Decoupled | Perturbed | Outside | Lengths | Span | OfNets


@dataclass(frozen=True)
class Config:
    draws: int  # in a Monte Carlo estimate
    balls: int  # draws of a projection, each of ten times
    many: int  # seeds where a quantile is looked for
    epsilons: tuple[float, ...]
    variances: tuple[float, ...]
    samples: tuple[int, ...]
    spans: dict[int, tuple[int, ...]]  # dimensions by p
    outside: int  # samples at the paper's k = 750
    points: int = 2000
    seeds: int = 10


PROFILES = {
    "smoke": Config(
        4000, 4000, 1000, (1.0, 0.5), (0.001, 0.01, 0.1), (1, 5, 25), {1: (2, 6, 20), 2: (2, 4, 6)}, 60,
        points=300,
    ),
    "laptop": Config(
        20_000, 40_000, 10_000, (1.0, 0.5, 0.25), (0.0001, 0.001, 0.01, 0.1, 1.0), (1, 3, 10, 30, 100),
        {1: (2, 6, 20, 60, 200), 2: (2, 4, 7, 12, 20)}, 400,
    ),
    "paper": Config(
        200_000, 400_000, 100_000, (1.0, 0.5, 0.25, 0.125), (0.0001, 0.001, 0.01, 0.1, 1.0), (1, 3, 10, 30, 100),
        {1: (2, 6, 20, 60, 200, 400), 2: (2, 4, 7, 12, 20, 30)}, 3000, points=8000,
    ),
}  # fmt: skip
BEYOND = 200  # samples of Lemma 2 where Lemma 13 is silent: below C(20 + 1, 2) = 210, and 2√200 > 20
SHAPES = {1: (83, 20), 2: (38, 20)}  # dimension and features, p = 1 and 2: inside Lemma 13 up to n = 100


def cells(config: Config) -> list[Kind]:
    seeds, found = config.seeds, list[Kind]()
    for power in (1, 2):
        dim, features = SHAPES[power]
        found += [Tensors(power, each, config.draws, seeds) for each in (2, 4, 8)]
        found += [Net(power, each, epsilon, config.points, 3) for each in (2, 3) for epsilon in config.epsilons]
        for lemma in (11, 12):
            found.append(Ball(lemma, "worst", power, 3, 1, config.balls, seeds))
            found += [Ball(lemma, "random", power, 4, size, config.balls, seeds) for size in (1, 3)]
        found += [Decoupled(power, each, size, 3) for each in (4, 6) for size in (3, 5)]
        found += [
            Perturbed(power, dim, features, config.samples[-1], variance, start, seeds)
            for start in STARTS
            for variance in config.variances
        ]
        found += [Perturbed(power, dim, features, size, NOISE, "zero", seeds) for size in config.samples]
        found.append(Perturbed(power, 23, 4, 4, NOISE, "zero", config.many))
        found += [Perturbed(power, dim, features, BEYOND, variance, "equal", seeds) for variance in config.variances]
        if power == 1:  # what they speak of is the same for every power
            found += [Lengths(lemma, 1, 1, 1, 1, 0.1, config.many) for lemma in (14, 20)]
        found += [Lengths(lemma, power, 8, 10, 20, 0.001, 1000) for lemma in (14, 20)]
        found += [Span(power, each, 2, seeds) for each in config.spans[power]]
        found += [Span(power, each, power + 2, seeds) for each in config.spans[power][:3]]
        found.append(Span(power, 2, 2, config.many))
    found += [Distances(law, n, seeds) for law in ("gaussian", "squares", "orthonormal", "sum") for n in (2, 8, 32)]
    found += [Outside(2, 10, 25, 200, 1.0, 1.0, 3), Outside(2, 15, 30, 400, 1.0, 1.0, 3)]
    found += lemmas_nets.cells(config.balls, seeds)
    return [*found, Outside(2, 100, 750, config.outside, 0.05**2, 0.15, 3)]


def cost(cell: Kind) -> Cost:
    """Roughly: numbers drawn times what is done with each."""
    if isinstance(cell, OfNets):
        return Cost(*lemmas_nets.work(cell))
    if isinstance(cell, Tensors | Ball):
        size = symmetric_dimension(cell.dim, 2 * cell.power)
        return Cost(50 * cell.seeds * cell.draws * size, 8 * 8 * cell.draws * size + 1e6)
    if isinstance(cell, Net):
        return Cost(2 * cell.seeds * cell.points**2 * 10, 8 * 100 * cell.points + 1e6)
    if isinstance(cell, Distances):
        return Cost(100 * cell.seeds * cell.columns**3 + 1e6, 1e7)
    rows = cell.features * (cell.features + 1) // 2
    n = getattr(cell, "samples", symmetric_dimension(cell.dim, 2 * cell.power))
    if isinstance(cell, Outside):
        return Cost(cell.seeds * (4 * n**3 + n**2 * cell.features), 32 * n**2 + 1e7)
    if isinstance(cell, Span):
        small = symmetric_dimension(cell.dim, cell.power)
        return Cost(cell.seeds * (20 * cell.features * small**2 + 1e5), 32 * cell.features * small + 1e7)
    return Cost(cell.seeds * (20 * rows * n**2 + 1e5), 32 * rows * n + 1e7)


def run(cell: Kind) -> xr.Dataset:
    return kept(cell, drawn(cell))


def drawn(cell: Kind) -> xr.Dataset:
    """Every draw of a cell."""
    one = {
        Tensors: _tensors, Net: _net, Distances: _distances, Ball: _ball, Decoupled: _decoupled,
        Perturbed: _perturbed, Outside: _outside, Lengths: _lengths, Span: _span,
    }.get(type(cell), lemmas_nets.one)  # fmt: skip
    parts = [one(cell, seed) for seed in range(cell.seeds)]  # type: ignore[operator]
    table = {
        name: (("seed", "q") if np.ndim(first) else "seed", np.array([part[name] for part in parts], np.float64))
        for name, first in parts[0].items()
    }
    return xr.Dataset(table).assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> list[Claim]:
    return lemmas_report.claims(results)


def draw(results: Results) -> list[Figure]:
    inside = results.where(Perturbed).only(lambda cell: cell.samples != BEYOND)
    return lemmas_figures.figures(inside, results.where(Ball), results.where(Span))


Part = dict[str, float | Float[np.ndarray, "q"]]


def _tensors(cell: Tensors, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.power, cell.dim])
    M, pair = unit_tensor(rng, cell.dim, cell.power), unit_tensor(rng, cell.dim, 2 * cell.power)
    shift, first, second = rng.standard_normal((3, cell.dim))
    values = M(shift + rng.standard_normal((cell.draws, cell.dim)))
    u, v = (full_power(at + rng.standard_normal((cell.draws, cell.dim)), cell.power) for at in (first, second))
    pairs = np.sum(u @ pair.dense().reshape(u.shape[1], v.shape[1]) * v, axis=1)
    exact, decoupled = gaussian_variance(M, shift), decoupled_variance(pair, first, second)
    floor, floors = gaussian_variance_floor(M), decoupled_variance_floor(pair)
    return {
        "rv": M.rv_norm / M.norm,
        "drawn": float(values.var(ddof=1)) / exact,
        "floor": exact / floor.lemma,
        "sharp": exact / floor.sharp,
        "pair_drawn": float(pairs.var(ddof=1)) / decoupled,
        "pair_floor": decoupled / floors.lemma,
        "pair_sharp": decoupled / floors.sharp,
    }


def _net(cell: Net, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.power, cell.dim, 7])
    size = symmetric_dimension(cell.dim, cell.power)
    net = np.zeros((0, size))
    for point in sphere(rng, cell.points, size):
        if not len(net) or np.linalg.norm(net - point, axis=1).min() > cell.epsilon:
            net = np.vstack([net, point])
    fresh = sphere(rng, 1000, size)
    nearest = np.sqrt(np.maximum(2 - 2 * (fresh @ net.T).max(axis=1), 0))
    return {
        "log_size": math.log(len(net)),
        "log_bound": log_covering_bound(cell.dim, cell.power, cell.epsilon),
        "log_euclidean": log_covering_bound(cell.dim, cell.power, cell.epsilon, euclidean=True),
        "uncovered": float((nearest > cell.epsilon).mean()),
    }


def _distances(cell: Distances, seed: int) -> Part:
    n = cell.columns
    rng = np.random.default_rng([seed, n])
    if cell.law == "gaussian":
        M = rng.standard_normal((n + 2, n))
    elif cell.law == "squares":
        M = isometric_power(sphere(rng, n, n), 2).T
    elif cell.law == "orthonormal":
        M = np.linalg.qr(rng.standard_normal((n, n)))[0]
    else:  # the sum of the columns is short, and nothing else: σ_min is near its lower limit
        M = np.eye(n) - (1 - 1e-3) / n
    return {"ratio": smallest_of(M) * float(np.linalg.norm(np.linalg.pinv(M), axis=1).max())}  # l = 1/‖row of M⁺‖


def _ball(cell: Ball, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.lemma, cell.power, cell.size, len(cell.subspace)])
    order = cell.power if cell.lemma == 11 else 2 * cell.power
    size, still = symmetric_dimension(cell.dim, order), cell.subspace == "worst"
    basis = np.eye(size)[:1] if still else np.linalg.qr(rng.standard_normal((size, cell.size)))[0].T
    first, second = (np.zeros((2, cell.dim)) if still else sphere(rng, 2, cell.dim))[:, None]
    x = first + math.sqrt(NOISE) * rng.standard_normal((cell.draws, cell.dim))
    extra: Part = {}
    if cell.lemma == 11:
        images, unit = isometric_power(x, cell.power), (cell.size / math.factorial(order * 2)) ** 0.25
        squares = [symmetric_product(m, m) for m in (SymmetricTensor.from_isometric(b, cell.dim, order) for b in basis)]
        g = SymmetricTensor(np.sum([one.coefficients for one in squares], axis=0), cell.dim, 2 * order)
        variance = gaussian_variance(g, first[0] / math.sqrt(NOISE))
        extra["variance"] = variance * math.factorial(2 * order) / cell.size
    else:
        y = second + math.sqrt(NOISE) * rng.standard_normal((cell.draws, cell.dim))
        images, unit = product_rows(x, y, cell.power), (cell.size / math.factorial(order * 2) ** 2) ** 0.25
    short = np.linalg.norm(images @ basis.T, axis=1) / (unit * NOISE ** (order / 2))
    at = chances(cell.draws)
    return {"epsilon": np.quantile(short, at), "below": float((short < HALF).sum())} | extra


def _decoupled(cell: Decoupled, seed: int) -> Part:
    R = np.random.default_rng([seed, cell.power, cell.dim]).standard_normal((cell.features, cell.dim))
    return {"dimension": float(np.linalg.matrix_rank(decoupled_subspace(R, cell.power, (0, 1))))}


def _perturbed(cell: Perturbed, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.power, cell.samples])  # the same R and noise at every variance
    R, noise = rng.standard_normal((cell.features, cell.dim)), rng.standard_normal((cell.samples, cell.dim))
    X = np.zeros_like(noise)
    if cell.start != "zero":
        X = sphere(rng, 1 if cell.start == "equal" else cell.samples, cell.dim)
    return {"smallest": smallest_of(squared_features(R, X + math.sqrt(cell.variance) * noise, cell.power))}


def _outside(cell: Outside, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.dim])
    R = cell.scale * rng.standard_normal((cell.features, cell.dim))
    noise = math.sqrt(cell.variance) * rng.standard_normal((cell.samples, cell.dim))
    found = smallest_singular(((sphere(rng, cell.samples, cell.dim) + noise) @ R.T) ** cell.power)
    return {"lower": found.lower, "upper": found.upper, "largest": found.largest}


def _lengths(cell: Lengths, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.lemma, cell.power, cell.dim])
    R, X = rng.standard_normal((cell.features, cell.dim)), sphere(rng, cell.samples, cell.dim)
    entries = np.abs(R).max()
    if cell.lemma == 20:
        bound = feature_norm_bound(cell.dim, cell.features, cell.power, radius=1.0, delta=cell.delta)
    else:
        noise = rng.standard_normal(X.shape)
        entries, X = max(entries, np.abs(noise).max()), X + math.sqrt(NOISE) * noise
        bound = perturbed_feature_norm_bound(
            cell.samples, cell.dim, cell.features, cell.power, radius=1.0, variance=NOISE, delta=cell.delta
        )
    longest = np.linalg.norm((X @ R.T) ** cell.power, axis=1).max()
    return {"length": float(longest / bound.value), "entry": float(entries / bound.coordinate)}


def _span(cell: Span, seed: int) -> Part:
    rng = np.random.default_rng([seed, cell.power, cell.dim, cell.ratio])
    R, X = rng.standard_normal((cell.features, cell.dim)), sphere(rng, cell.samples, cell.dim)
    z = (X @ R.T) ** cell.power
    return {
        "rows": smallest_of(feature_rows(R, cell.power)),
        "inputs": math.sqrt(np.linalg.eigvalsh((X @ X.T) ** (2 * cell.power))[0]),
        "squares": math.sqrt(np.linalg.eigvalsh((z @ z.T) ** 2)[0]),
    }
