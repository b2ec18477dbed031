r"""Figure 1: with R₃ large enough the quadratic term learns the high-degree part, and the test error falls.

The joint model $f_L + f_Q$ is trained on $f_\star(x) = x_1 - 1 + (\beta^T x)^2$ from $n = d^{1.5}$ samples, too few
for the linear term to learn the square. Without a regulariser it fits it all the same, in directions $V_2$ of its
training features that do not generalise; with $\lambda_3 R_3$ these cost, and $f_Q$, which can learn a sparse square,
has to do it.

The paper's own setting, which made its figure and leads the page, is that of the authors' code: sigmoid(z − 1), inputs
N(0, I), the target $((\beta^T x)^2 - 1 + \beta^T x)/\sqrt 3$ of unit variance, and $R_3$ spares the first r = d
singular vectors, which leaves the constant function out. The text has inputs uniform on $S^{d-1}(\sqrt d)$ and r =
$n_1$ = d + 1. Both are judged. Softplus, and the text's r with the code's inputs, stand beside them, outside the
hypothesis. Plain gradient descent on mean squares, as in their code (the theorem's is perturbed); on the sphere it
starts at W(0) with entries 0.01·N(0, 1), beside the saddle of $f_Q$ at zero. $\lambda_3$ is on the mean over samples:
their legend's 0, 10⁻⁵, …, 10⁻¹ on the sum are 0, 10⁻², …, 10² at n = 1000. Where $\lambda_3$ would make a rate
unstable, it is lowered.

Beside it, on the same samples: $f_L$ alone (the NTK), $f_Q$ alone (which starts at W(0) ≠ 0 in both settings), and the
network itself without and with $R_3$.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.nichani import _joint, fig1_report
from offtangent.report import Figure
from offtangent.training import train

START = 0.01  # of the entries of W(0), where it is not zero
OTHERS = {"linear": (0.0,), "quadratic": (0.0,), "network": (0.0, 10.0)}  # the other learners, and their λ₃


@dataclass(frozen=True)
class Sweep:
    """One learner in one setting, for all seeds and λ₃ at once."""

    setting: str
    sigma: str
    model: str
    dim: int
    samples: int
    width: int
    steps: int
    rate: float
    rank: int
    strengths: tuple[float, ...]
    tests: int
    seeds: tuple[int, ...]
    precision: str


@dataclass(frozen=True)
class Config:
    dim: int
    width: int
    steps: int
    tests: int
    settings: tuple[tuple[str, str, float, int], ...]  # setting, activation, learning rate, r − d
    others: tuple[str, ...] = tuple(OTHERS)
    strengths: tuple[float, ...] = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)  # λ₃, on the mean
    seeds: tuple[int, ...] = _joint.SEEDS
    beside: int = 1  # how many of the settings have the other learners as well
    small: int | None = None  # a dimension at which the authors' setting is run as well: f_Q alone may win there
    precision: str = "highest"


PROFILES = {
    "smoke": Config(
        dim=20, width=200, steps=600, tests=1000, settings=(("sphere", "softplus", 0.5, 1),), others=("linear",),
        strengths=(0.0, 10.0),
    ),
    "laptop": Config(
        dim=30, width=600, steps=1500, tests=2000,
        settings=(("gaussian", "sigmoid", 4.0, 0), ("sphere", "sigmoid", 6.0, 1)), others=("linear", "quadratic"),
        strengths=(0.0, 1.0, 10.0),
    ),
    "paper": Config(
        dim=100, width=10_000, steps=20_000, tests=10_000,
        settings=(
            ("sphere", "softplus", 0.5, 1), ("gaussian", "sigmoid", 1.0, 1), ("sphere", "sigmoid", 3.0, 1),
            ("gaussian", "softplus", 0.5, 1), ("gaussian", "sigmoid", 1.0, 0),
        ),
        beside=3, small=10, precision="tensorfloat32",
    ),
}  # fmt: skip


def cells(config: Config) -> list[Sweep]:
    joint, others = {"joint": config.strengths}, {name: OTHERS[name] for name in config.others}
    found = [
        Sweep(
            setting, sigma, model, config.dim, int(config.dim**1.5), config.width, config.steps, rate,
            config.dim + more, strengths, config.tests, config.seeds, config.precision,
        )
        for k, (setting, sigma, rate, more) in enumerate(config.settings)
        for model, strengths in (joint | others if k < config.beside else joint).items()
    ]  # fmt: skip
    if config.small is not None:
        d, n = config.small, int(config.small**1.5)
        found += [
            Sweep(
                "gaussian", "sigmoid", model, d, n, 300, 3000, 1.0, d + 1, strengths, config.tests, config.seeds,
                config.precision,
            )
            for model, strengths in (joint | others).items()
        ]  # fmt: skip
    return found


def cost(cell: Sweep) -> Cost:
    networks = len(cell.seeds) * len(cell.strengths)
    entries = networks * cell.samples * cell.width
    return Cost(cell.steps * entries * (4 * cell.dim + 20), 4 * entries * 4 + 12 * networks * cell.dim * cell.width)


def run(cell: Sweep) -> xr.Dataset:
    problems = [
        _joint.problem(
            cell.setting, cell.sigma, dim=cell.dim, samples=cell.samples, width=cell.width, tests=cell.tests, seed=seed
        )
        for seed in cell.seeds
    ]
    learners = _joint.Learners.of(problems, rank=cell.rank, strengths=cell.strengths, model=cell.model)
    scale = START if cell.setting == "sphere" or cell.model == "quadratic" else 0.0
    each = _joint.rates(problems, rank=cell.rank, strengths=cell.strengths, rate=cell.rate)
    X, y = _joint.rows(problems)
    at = _joint.looks(cell.steps, 60)
    history = train(
        learners, _joint.begin(problems, count=len(cell.strengths), scale=scale), X, y,
        optimiser=_joint.descent(each), steps=cell.steps, precision=cell.precision, record_at=at,
        record={"seen": _joint.Seen.of(problems, learners), "test": _joint.Tested.of(problems, learners)},
    )  # fmt: skip
    seen, test = history.records["seen"], history.records["test"]
    axes = ("look", "seed", "strength")
    return xr.Dataset(
        {
            "train": (axes, seen[:, 0]),
            "residual": (axes, seen[:, 1]),  # R₃
            "linear": (axes, seen[:, 2]),  # n⁻¹‖f_L‖²
            "choose": (axes, test[..., 0]),  # test loss on the first half of the test inputs
            "test": (axes, test[..., 1]),  # and on the second
            "rate": (("seed", "strength"), each),
            "size": ("seed", [float(np.mean(one.y**2)) for one in problems]),
            "top": ("seed", [float(one.target.energies().total[-1]) for one in problems]),  # of degree 2, on the sphere
        }
    ).assign_coords(look=at, seed=list(cell.seeds), strength=list(cell.strengths))


def claims(results: Results) -> list[Claim]:
    return fig1_report.claims(results.where(Sweep))


def draw(results: Results) -> list[Figure]:
    return fig1_report.figures(results.where(Sweep))
