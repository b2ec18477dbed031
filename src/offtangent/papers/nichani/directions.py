r"""Section 1.1: where the weights go in training. Goal 1, little in V₂; Goal 2, far in Q₃ and little in Q₂.

$V_1$ and $V_2$ are the first r and the other right singular vectors of the training features (eq. (4)): with $V_2$ the
linear term overfits. $Q_1$, $Q_2$, $Q_3$ are eigenvectors of the feature covariance Σ on the population (eq. (5)):
$Q_1$ the first $n_1$ = d + 1, which fit linear functions; $Q_2$ those of degree 2, in which any movement is felt on
the population; $Q_3$ the rest, in which the weights may go far, and $f_Q$ with them.

Figure 1's problem on the sphere, by perturbed gradient descent (21) from W = 0: without regularisers, with $R_3$, and
with $R_1$ and $R_3$ as in the theorem, where $R_1$ holds movement in $Q_2$ down (on 100 fresh inputs at every step, as
in the authors' code). At some steps W is split into its parts, in Frobenius norm; Σ comes from inputs without labels,
several times as many as $n_2$.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.nichani import _joint, directions_report
from offtangent.report import Figure
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory import FeatureCovariance
from offtangent.theory.nichani.escape import Movement, furthest
from offtangent.theory.nichani.regularisers import R1, RandomisedR1, Stacked
from offtangent.training import train
from offtangent.training.directions import perturbed_descent

NOISE = 0.02  # σ of (21), the Frobenius norm of a step's noise over the rate
RATE = {"softplus": 0.5, "sigmoid": 3.0}
ARMS = {"none": (0.0, 0.0), "R3": (0.0, 10.0), "R1 R3": (1.0, 10.0)}  # λ₁ and λ₃
FRESH = 100  # inputs of R₁ at every step


@dataclass(frozen=True)
class Path:
    """Training without regularisers, with R₃, and with R₁ and R₃, for all seeds at once."""

    sigma: str
    dim: int
    samples: int
    width: int
    steps: int
    unlabelled: int
    tests: int
    seeds: tuple[int, ...]
    precision: str


@dataclass(frozen=True)
class Config:
    dim: int
    width: int
    steps: int
    ratio: int  # inputs without labels over n₂
    tests: int
    sigmas: tuple[str, ...] = ("softplus",)
    seeds: tuple[int, ...] = _joint.SEEDS
    precision: str = "highest"


PROFILES = {
    "smoke": Config(dim=14, width=120, steps=500, ratio=4, tests=600),
    "laptop": Config(dim=20, width=400, steps=1200, ratio=5, tests=2000),
    "paper": Config(
        dim=50, width=4000, steps=6000, ratio=5, tests=4000, sigmas=("softplus", "sigmoid"), precision="tensorfloat32"
    ),
}


def cells(config: Config) -> list[Path]:
    unlabelled = config.ratio * polynomial_dimension(config.dim, 2)
    return [
        Path(
            sigma, config.dim, int(config.dim**1.5), config.width, config.steps, unlabelled, config.tests, config.seeds,
            config.precision,
        )
        for sigma in config.sigmas
    ]  # fmt: skip


def cost(cell: Path) -> Cost:
    networks = len(cell.seeds) * len(ARMS)
    entries = networks * (cell.samples + FRESH) * cell.width
    once = len(cell.seeds) * (9 * cell.unlabelled**3 + cell.unlabelled**2 * cell.width)
    looks = 30 * networks * (2 * cell.unlabelled + cell.tests) * cell.width * 2 * cell.dim
    memory = 4 * (4 * entries + networks * cell.unlabelled * cell.width) + 32 * cell.unlabelled**2
    return Cost(cell.steps * entries * (4 * cell.dim + 20) + once + looks, memory)


class _Looked(eqx.Module):
    """Of each network: ‖P_{Q₁}W‖, ‖P_{Q₂}W‖, ‖P_{Q₃}W‖, ‖P_{V₂}W‖, √m max‖w_r‖ and R₁ on the population."""

    movements: Movement  # one for each seed
    risks: R1

    def __call__(self, W: Float[Array, "s l d m"]) -> Float[Array, "s l 6"]:
        def one(movement: Movement, risk: R1, W: Float[Array, "l d m"]) -> Float[Array, "l 6"]:
            return jnp.concatenate([movement(W), furthest(W)[:, None], risk(W)[:, None]], axis=1)

        return jax.lax.map(lambda part: one(part[0], part[1], part[2]), (self.movements, self.risks, W))


def run(cell: Path) -> xr.Dataset:
    rank = cell.dim + 1
    problems = [
        _joint.problem(
            "sphere", cell.sigma, dim=cell.dim, samples=cell.samples, width=cell.width, tests=cell.tests, seed=seed
        )
        for seed in cell.seeds
    ]
    movements, risks, sizes = [], [], []
    for seed, one in zip(cell.seeds, problems, strict=True):
        X = _joint.inputs("sphere", cell.unlabelled, cell.dim, jax.random.fold_in(jax.random.key(seed), 99))
        covariance = FeatureCovariance.of_samples(one.net, X)
        blocks = covariance.blocks(1)
        movements.append(Movement.of(covariance, blocks, training=one.training, rank=rank))
        risks.append(R1.of(covariance, rank))
        sizes.append((*blocks.sizes, one.training.known - rank))
    on_risk, strengths = zip(*ARMS.values(), strict=True)
    learners = _joint.Learners.of(problems, rank=rank, strengths=strengths, model="joint")
    base = _joint.rates(problems, rank=rank, strengths=strengths, rate=RATE[cell.sigma])
    added = _joint.risk_curvature(problems, rank=rank, fresh=FRESH)[:, None] * np.array(on_risk)
    rate = (1 / (1 / base + 2 * added)).min()
    risk = Stacked.of(*(RandomisedR1.of(one.training, rank, samples=FRESH, law="sphere") for one in problems))
    penalty = (risk, np.array(on_risk, np.float32))
    X, y = _joint.rows(problems)
    at = _joint.looks(cell.steps, 30)
    history = train(
        learners, _joint.begin(problems, count=len(ARMS), scale=0.0), X, y,
        optimiser=perturbed_descent(float(rate), noise=NOISE, regularisers=(penalty,), key=jax.random.key(5)),
        steps=cell.steps, record_at=at, precision=cell.precision,
        record={
            "seen": _joint.Seen.of(problems, learners), "test": _joint.Tested.of(problems, learners),
            "went": _Looked(_joint.stack(movements), _joint.stack(risks)),
            "energies": _joint.Split.of(problems, learners),
        },
    )  # fmt: skip
    seen, test, went, energies = (history.records[name] for name in ("seen", "test", "went", "energies"))
    axes = ("look", "seed", "arm")
    names = ("Q1", "Q2", "Q3", "V2", "furthest", "risk")
    return xr.Dataset(
        {
            "train": (axes, seen[:, 0]),
            "residual": (axes, seen[:, 1]),
            "test": (axes, test.mean(axis=-1)),
            "linear": (axes, energies[..., 0]),  # E f_L² on the population
            "quadratic": (axes, energies[..., 1]),
            **{name: (axes, went[..., k]) for k, name in enumerate(names)},
            "rate": float(rate),
            "size": ("block", np.array(sizes[0])),
        }
    ).assign_coords(look=at, seed=list(cell.seeds), arm=list(ARMS), block=["Q1", "Q2", "Q3", "V2"])


def claims(results: Results) -> list[Claim]:
    return directions_report.claims(results.where(Path))


def draw(results: Results) -> list[Figure]:
    return directions_report.figures(results.where(Path))
