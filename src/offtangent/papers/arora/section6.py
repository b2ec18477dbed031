r"""Theorem 6.1: labels α(βᵀx)ᵖ with p = 1 or even cost at most 3p|α|‖β‖ᵖ, however many there are.

The cost of labels y is $\sqrt{y^T (H^\infty)^{-1} y}$; over $\sqrt{n/2}$ it is the complexity measure (10) that bounds
the error on new data. Section 6: for functions $g(x) = \sum_j \alpha_j (\beta_j^T x)^{p_j}$ with p = 1 or even, the
cost of the labels $y_i = g(x_i)$ is at most $3 \sum_j p_j |\alpha_j| \|\beta_j\|^{p_j}$ for every n, so that they can
be learnt; linear and quadratic functions, cosines and z·arctan(z/2) are among them. Odd powers from 3 on are not: the
power series of $H^\infty$ has no term for them.

Three kinds of cells: Labels draws n inputs on the sphere, labels them in many ways, and measures what they cost and how
well kernel regression (the network of infinite width, trained to the end) does on new inputs; Pairs looks at inputs
that come with their opposites; Order has both sides of Lemma E.1, by which the proof goes from $c_p K^p ⪯ H^\infty$ to
the cost.
"""

import math
from dataclasses import dataclass

import jax
import numpy as np
import scipy.linalg
import xarray as xr
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigsh

from offtangent import data
from offtangent.kernels import Gram, relu_hidden
from offtangent.lab import Claim, Cost, Results
from offtangent.papers.arora import section6_report
from offtangent.report import Figure
from offtangent.theory import generalisation_bound
from offtangent.theory.arora.generalisation import absolute_loss
from offtangent.theory.arora.learnability import Target
from offtangent.theory.arora.order import pseudo_inverse_ratio

EVEN, ODD = (1, 2, 4, 6, 8), (3, 5, 7)  # p = 1 belongs with the even powers
FACTORS = (1.0, 10.0, 100.0)  # of A in xᵀAx
DELTA = 0.1
DENSE = 300  # inputs up to which c_p K^{∘p} ⪯ H∞ is checked for all β at once


@dataclass(frozen=True)
class Labels:
    """A cell: n inputs on the sphere with every kind of label; what each labelling costs, and how well it is learnt."""

    samples: int
    dim: int
    seed: int
    tests: int


@dataclass(frozen=True)
class Pairs:
    """1, 2, ..., dim + 2 pairs of opposite inputs {x, −x}."""

    dim: int
    seed: int


@dataclass(frozen=True)
class Order:
    """Lemma E.1 for c_p K^p and H∞, on inputs of the sphere and on pairs of opposites, where H∞ may be singular."""

    samples: int
    dim: int
    seed: int


@dataclass(frozen=True)
class Config:
    samples: tuple[int, ...]
    dims: tuple[int, ...]
    seeds: int = 10
    tests: int = 1000


PROFILES = {
    "smoke": Config(samples=(30, 100, 300), dims=(5,), tests=300),
    "laptop": Config(samples=(30, 100, 300, 1000, 3000), dims=(5, 20)),
    "paper": Config(samples=(100, 300, 1000, 3000, 10_000), dims=(5, 20, 50)),
}


def cells(config: Config) -> list[Labels | Pairs | Order]:
    labels = [
        Labels(samples, dim, seed, config.tests)
        for samples in config.samples
        for dim in config.dims
        for seed in range(config.seeds)
    ]
    pairs = [Pairs(config.dims[0], seed) for seed in range(config.seeds)]
    return [*labels, *pairs, *(Order(30, config.dims[0], seed) for seed in range(config.seeds))]


def cost(cell: Labels | Pairs | Order) -> Cost:
    """A Cholesky factor of n³/3 on one core at a quarter of a product's speed, and 100 operations for an angle."""
    n = 2 * cell.dim + 4 if isinstance(cell, Pairs) else cell.samples
    extra = cell.tests if isinstance(cell, Labels) else 0
    return Cost(4 * n**3 / 3 + n * (n + extra) * (2 * cell.dim + 300), 8 * n * (5 * n + 3 * extra) + 1e6)


def run(cell: Labels | Pairs | Order) -> xr.Dataset:
    if isinstance(cell, Order):
        return _run_order(cell)
    return _run_labels(cell) if isinstance(cell, Labels) else _run_pairs(cell)


def claims(results: Results) -> list[Claim]:
    return [
        *section6_report.label_claims(results.where(Labels)),
        *section6_report.pair_claims(results.where(Pairs)),
        *section6_report.order_claims(results.where(Order)),
    ]


def draw(results: Results) -> list[Figure]:
    return [
        *section6_report.label_figures(results.where(Labels)),
        *section6_report.pair_figures(results.where(Pairs)),
    ]


def targets(dim: int, seed: int) -> dict[str, Target]:
    """The functions that Section 6 covers, with values of at most one on the sphere and directions of their own."""
    directions = data.sphere(4, dim, key=jax.random.key(1000 + seed))
    beta = directions[0]
    half = data.distributions.gaussian(dim, dim, key=jax.random.key(2000 + seed))
    A = (half + half.T) / np.linalg.norm(half + half.T, 2)
    found = {f"p={p}": Target.power(beta, p) for p in EVEN}
    found["linear"] = Target.linear(directions[1])
    found["quadratic"] = Target.quadratic(A)
    found["cosine"] = Target.cosine(1.5 * directions[2])
    found["arctan"] = Target.arctan(directions[3])
    found["sum"] = (
        Target.linear(0.25 * beta)
        + Target.power(directions[1], 2, coefficient=0.25)
        + Target.power(directions[2], 4, coefficient=-0.25)
        + Target.series(directions[3], [0.0, 0.15, -0.1])
    )
    return found


def _run_labels(cell: Labels) -> xr.Dataset:
    n, dim = cell.samples, cell.dim
    X = data.sphere(n + cell.tests, dim, key=jax.random.key(cell.seed))
    covered = targets(dim, cell.seed)
    beta = covered["p=1"].parts[0].direction
    odd = {f"p={p}": (X @ beta) ** p for p in ODD}
    random = data.labels.random_labels(n + cell.tests, key=jax.random.key(3000 + cell.seed))
    values = {name: target(X) for name, target in covered.items()} | odd | {"random": random}
    Y = np.stack(list(values.values()), axis=1)
    train, new = X[:n], X[n:]
    H = Gram(relu_hidden, train).dense()
    factor = scipy.linalg.cholesky(H, lower=True)
    white = scipy.linalg.solve_triangular(factor, Y[:n], lower=True)
    products = white.T @ white  # yᵢᵀH⁻¹yⱼ for all kinds of labels
    weights = scipy.linalg.solve_triangular(factor, white, lower=True, trans=1)
    predictions = relu_hidden.exact(new, train) @ weights
    costs = np.sqrt(np.diag(products))
    smallest = _smallest(factor)
    bounds = [generalisation_bound(float(q), n, smallest=smallest, delta=DELTA, training=0.0).total for q in costs**2]
    A = data.distributions.gaussian(dim, dim, key=jax.random.key(2000 + cell.seed))
    scaled = np.stack([Target.quadratic(f * (A + A.T))(train) for f in FACTORS], axis=1)
    names = list(values)
    together = np.sqrt(costs[:, None] ** 2 + costs**2 + 2 * products)
    np.fill_diagonal(together, 0.0)  # equal labels add up exactly
    found = {
        "cost": ("label", costs),
        "bound": ("label", _of(covered, names, "bound")),
        "proof": ("label", _of(covered, names, "proof")),
        "tightest": ("label", _of(covered, names, "tightest")),
        "test_loss": ("label", absolute_loss(predictions, Y[n:], ceiling=1.0).mean(axis=0)),
        "test_bound": ("label", np.array(bounds)),
        "excess": float((together / (costs[:, None] + costs)).max()),  # of a sum of two over the sum of their costs
        "smallest": smallest,
        "scaled_cost": ("factor", np.linalg.norm(scipy.linalg.solve_triangular(factor, scaled, lower=True), axis=0)),
        "trace_norm": ("factor", np.array([np.linalg.norm(f * (A + A.T), "nuc") for f in FACTORS])),
        "largest": ("power", _largest(factor, train @ train.T) if n <= DENSE else np.full(len(EVEN + ODD), np.nan)),
    }
    return xr.Dataset(found).assign_coords(label=names, factor=list(FACTORS), power=list(EVEN + ODD))


def _of(covered: dict[str, Target], names: list[str], field: str) -> Float[np.ndarray, "k"]:
    return np.array([getattr(covered[name], field) if name in covered else math.nan for name in names])


def _smallest(factor: Float[np.ndarray, "n n"]) -> float:
    """λ_min(H) by Lanczos on H⁻¹, whose largest eigenvalues lie well apart."""

    def inverse(v: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        return np.asarray(scipy.linalg.cho_solve((factor, True), v, check_finite=False))

    return 1 / _top(LinearOperator(factor.shape, matvec=inverse, dtype=np.float64), tol=1e-5)


def _largest(factor: Float[np.ndarray, "n n"], K: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "k"]:
    """λ_max(H⁻¹K^{∘p}), the largest yᵀH⁻¹y that any (βᵀx)^p, or any tensor in place of β^{⊗p}, of length one costs."""
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(K)), lower=True)
    return np.array([_top(inverse @ K**p @ inverse.T, tol=1e-10) for p in EVEN + ODD])


def _top(operator: LinearOperator | Float[np.ndarray, "n n"], *, tol: float) -> float:
    """The largest eigenvalue, by Lanczos."""
    start = np.cos(np.arange(operator.shape[0], dtype=np.float64))  # any vector, as long as it is always the same
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=tol, return_eigenvectors=False)[0])


def _run_pairs(cell: Pairs) -> xr.Dataset:
    X = data.sphere(cell.dim + 2, cell.dim, key=jax.random.key(cell.seed))
    counts = np.arange(1, cell.dim + 3)
    smallest = []
    for count in counts:
        H = Gram(relu_hidden, np.concatenate([X[:count], -X[:count]])).dense()
        smallest.append(np.linalg.eigvalsh(H)[0])
    return xr.Dataset({"smallest": ("pairs", np.array(smallest))}).assign_coords(pairs=counts)


def _run_order(cell: Order) -> xr.Dataset:
    X = data.sphere(cell.samples, cell.dim, key=jax.random.key(cell.seed))
    half = X[: cell.dim + 2]  # from d + 1 pairs of opposites on H∞ is singular
    ratios = [[_order(inputs, p) for p in EVEN] for inputs in (X, np.concatenate([half, -half]))]
    return xr.Dataset({"ratio": (("inputs", "power"), np.array(ratios))}).assign_coords(
        inputs=["sphere", "opposite"], power=list(EVEN)
    )


def _order(X: Float[np.ndarray, "n d"], p: int) -> float:
    """The smallest λ with P_A H∞† P_A ⪯ λA† for A = c_p K^{∘p}."""
    assert relu_hidden.series is not None
    return pseudo_inverse_ratio(relu_hidden.series(p + 1)[p] * (X @ X.T) ** p, Gram(relu_hidden, X).dense())
