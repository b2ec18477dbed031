r"""Figures 2 and 5: a quadratic network learns 300 random samples by heart.

$f(W) = \frac{1}{4n} \sum_j (x_j^T W A W^T x_j - y_j)^2$ with n = 300 samples in d = 100 dimensions and r = 300 neurons;
entries and labels are uniform on [−1, 1], and inputs have norm 1. Theorem 4 asks for $r \ge 2d + 2$ and
$\sigma_{\min}[x_j \otimes x_j] > 0$, which is measured with a proven lower bound. Ways down: gradient descent from a
small W(0), and from W = 0, a saddle which it never leaves; from there with a little noise at every step, by Algorithm 1
with practical settings, and by steps of negative curvature alone (Lemma 3), each to the minimum on its line; and the
interpolant in closed form. Theorem 4's own settings are computed and not run, though the paper says that its example
has them: they give a perturbation 10⁸ steps or more to show its worth. All in float64.

At the end of each path Lemma 1's bound, $f \le nd\|M\|^2 / 4\sigma^2$, is next to f.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao import _paths, synthetic_report
from offtangent.report import Figure
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import theorem4
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular

METHODS = ("gradient descent", "from the saddle", "algorithm 1", "negative curvature", "closed form", "noisy descent")
RATE, START, EPSILON = 5.0, 0.01, 0.1
FEW = 300  # steps of negative curvature, each of which is worth many


@dataclass(frozen=True)
class Fit:
    """One way down, on one data set."""

    method: str
    samples: int
    dim: int
    width: int
    steps: int
    looks: int
    seed: int


@dataclass(frozen=True)
class Config:
    samples: int
    dim: int
    width: int
    steps: int
    looks: int = 60
    seeds: tuple[int, ...] = (0, 1, 2)


PROFILES = {
    "smoke": Config(samples=20, dim=10, width=30, steps=2000, looks=12, seeds=(0,)),
    "laptop": Config(samples=300, dim=100, width=300, steps=2500, looks=40, seeds=(0,)),
    "paper": Config(samples=300, dim=100, width=300, steps=5000, seeds=tuple(range(10))),
}


def cells(config: Config) -> list[Fit]:
    return [
        Fit(
            method, config.samples, config.dim, config.width,
            min(config.steps, FEW) if method == "negative curvature" else config.steps, config.looks, seed,
        )
        for method in METHODS
        for seed in config.seeds
    ]  # fmt: skip


def cost(cell: Fit) -> Cost:
    step = 6.0 * cell.samples * cell.dim * cell.width
    if cell.method == "negative curvature":
        step += 10 * (cell.dim**3 + (cell.width / 2) ** 3)
    steps = 1 if cell.method == "closed form" else cell.steps
    return Cost(steps * step + 4 * cell.samples**3, 8 * (cell.samples * cell.width + cell.samples**2) * 4 + 1e6)


def run(cell: Fit) -> xr.Dataset:
    X, y = _paths.sample(cell.samples, cell.dim, cell.seed)
    singular = smallest_singular(X)
    with jax.enable_x64(True):
        net = QuadraticNet(cell.dim, cell.width)
        risk = QuadraticRisk.of(net, X, y)
        key = jax.random.key(cell.seed)
        small = START * jax.random.normal(key, (cell.dim, cell.width))
        start = small if cell.method == "gradient descent" else jnp.zeros((cell.dim, cell.width))
        looks = np.unique(np.geomspace(1, cell.steps + 1, cell.looks).round().astype(int) - 1)
        path = _paths.follow(cell.method, risk, start, rate=RATE, looks=looks.tolist(), key=key)
        bound = float(risk.bound(path.last, singular.lower))
        gradient = float(jnp.linalg.norm(risk.gradient(path.last)))
        zero = float(risk.loss(jnp.zeros((cell.dim, cell.width))))
    literal = theorem4(
        samples=cell.samples, dim=cell.dim, width=cell.width, smallest=singular.lower, radius=1.0,
        label=float(np.abs(y).max()), start=zero, epsilon=EPSILON,
    )  # fmt: skip
    return xr.Dataset(
        {
            "loss": ("look", path.losses),
            "lowest": ("look", path.lowest),
            "bound": bound,
            "gradient": gradient,
            "zero": zero,
            "upper": singular.upper,
            "lower": singular.lower,
            "share": singular.lower**2 / (cell.samples * cell.dim),
            "returned": path.returned,
            "escapes": path.escapes,
            "wait": float(literal.settings().wait),
            "iterations": literal.iterations,
        }
    ).assign_coords(look=path.looks)


def claims(results: Results) -> list[Claim]:
    return synthetic_report.claims(results.where(Fit))


def draw(results: Results) -> list[Figure]:
    return synthetic_report.figures(results.where(Fit))
