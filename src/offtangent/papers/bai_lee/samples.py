r"""Section 5.2: how many samples the quadratic model saves, on the paper's two examples.

A polynomial $f_\star(x) = \alpha (\beta^T x)^p$ of inputs on the sphere, and 2-XOR, $f_\star(x) = x_1 x_2$ of inputs
$x \in \{\pm 1\}^d$. The paper compares what its bounds ask for: $n_Q / n_L = O(p/d)$ for the polynomial, and for XOR
$n_Q = \tilde O(d)$ against a lower bound of $\Omega(d^2)$ for the NTK. Here both are measured, beside the randomised
and the plain network: the test loss against n, and the n at which it first is down to a level.

Each learner has its regulariser chosen on 1000 samples of their own, apart from those that it is tested on. The NTK is
the kernel of infinite width with a ridge. The others have width m and σ = relu³/6, start next to W = 0, and take steps
of gradient descent with momentum on the loss and $\lambda \|W\|_{2,4}^8$: the quadratic model $f^Q_W$, the randomised
network with fresh signs at each step (Σ and −Σ together), the plain network $f_{W_0 + W}$. Their losses are convex and
1-Lipschitz: logistic for XOR, pseudo-Huber for the polynomials (whose ℓ(y, 0) ≤ 1 asks for |y| ≤ √3: with E y² = 1 nine
labels in ten or more).

XOR is "noisy" by its other d − 2 coordinates, which are spare; its labels have no noise. The distribution of Wei et al.
(2019), with (±1, 0) and (0, ±1) for the first two, is this one turned by 45° in their plane and shortened there by √2:
nothing here sees a rotation.

For p = 4 the dimensions end at 14. At d = 40 the NTK alone would need about $0.5 \cdot 40^{3.2} \approx 67\,000$
samples, and the randomised network more than 10⁵ neurons: at W⋆ the noise of signs has a variance like
$d^{p/2 - 1} m^{-1/2}$, and at d = 10 not every seed comes down to the level with 16 384 of them.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, Key

from offtangent import data
from offtangent.kernels import relu3_hidden
from offtangent.lab import Claim, Cost, Results
from offtangent.papers.bai_lee import _learners, _targets, samples_report
from offtangent.report import Figure

LEARNERS = ("ntk", "quadratic", "randomised", "plain")
CHOOSING, TESTS = 1000, 2000  # samples that choose the regulariser, samples that test
RIDGES = (1e-8, 1e-4, 1e-2)  # of the kernel's diagonal


@dataclass(frozen=True)
class Curve:
    """The test loss of one learner against n, for several seeds; a smaller n has the first rows of a larger one."""

    task: str  # "xor", or the degree: "3", "4"
    learner: str
    dim: int
    samples: tuple[int, ...]
    seeds: int
    width: int  # of the networks
    steps: int
    precision: str = "highest"


@dataclass(frozen=True)
class Task:
    dims: tuple[int, ...]
    width: int
    steps: int
    reach: int  # sizes of the grid of n on either side of its middle
    # The width of the randomised network: the variance of random signs, like m^(−1/2), keeps one of the others' width
    # above the level of some polynomials. None: a width that would do is too much here.
    signed: int | None


@dataclass(frozen=True)
class Config:
    tasks: dict[str, Task]
    seeds: int = 5
    precision: str = "highest"


PROFILES = {
    "smoke": Config({"xor": Task((8, 24), width=128, steps=150, reach=2, signed=128)}),
    "laptop": Config(
        {
            "xor": Task((8, 14, 24), width=256, steps=200, reach=2, signed=256),
            "3": Task((6, 8, 12), width=512, steps=200, reach=2, signed=None),
        }
    ),
    "paper": Config(
        {
            "xor": Task((10, 16, 25, 40, 60), width=1024, steps=600, reach=2, signed=1024),
            "3": Task((10, 14, 20, 28, 40), width=2048, steps=1200, reach=2, signed=4096),
            "4": Task((7, 10, 14), width=2048, steps=1200, reach=3, signed=16_384),
        },
        precision="tensorfloat32",
    ),
}

# The middle of the grid of n, c·d^e. Where a curve falls is not known beforehand: these are guesses from
# trials, and a grid reaches 2.5 (or 4) times as far both ways. The n that counts comes from the curves alone.
MIDDLES = {
    ("xor", "ntk"): (0.55, 2.0),
    ("xor", "quadratic"): (3.2, 1.22),
    ("xor", "randomised"): (1.8, 1.3),
    ("xor", "plain"): (1.7, 1.6),
    ("3", "ntk"): (0.7, 2.5),
    ("3", "quadratic"): (1.7, 1.7),
    ("3", "randomised"): (2.8, 1.75),
    ("3", "plain"): (1.8, 2.05),
    ("4", "ntk"): (0.5, 3.2),
    ("4", "quadratic"): (1.4, 2.2),
    ("4", "randomised"): (1.5, 2.5),
    ("4", "plain"): (0.5, 2.9),
}
FACTOR = 2 ** (2 / 3)  # from one n to the next


def cells(config: Config) -> list[Curve]:
    return [
        Curve(name, learner, dim, _grid(name, learner, dim, task.reach), config.seeds, width, task.steps,
              config.precision)
        for name, task in config.tasks.items()
        for dim in task.dims
        for learner in LEARNERS
        if (width := task.signed if learner == "randomised" else task.width) is not None
    ]  # fmt: skip


def _grid(task: str, learner: str, dim: int, reach: int) -> tuple[int, ...]:
    factor, power = MIDDLES[task, learner]
    return tuple(round(factor * dim**power * FACTOR**j) for j in range(-reach, reach + 1))


def cost(cell: Curve) -> Cost:
    most = max(cell.samples)
    if cell.learner == "ntk":
        return Cost(cell.seeds * len(cell.samples) * len(RIDGES) * (most**3 / 2 + 60 * most**2), 40 * most**2 + 1e8)
    networks = cell.seeds * len(cell.samples) * len(_learners.BOUNDS)
    entries = networks * most * cell.width * (2 if cell.learner == "randomised" else 1)
    return Cost(cell.steps * entries * (6 * cell.dim + 400), 16 * entries)


def run(cell: Curve) -> xr.Dataset:
    tasks = [_problem(cell, jax.random.key(seed)) for seed in range(cell.seeds)]
    found = _kernel_curve(cell, tasks) if cell.learner == "ntk" else _learners.curve(cell, tasks)
    return xr.Dataset({name: (("seed", "n"), values) for name, values in found.items()}).assign_coords(
        n=list(cell.samples)
    )


def claims(results: Results) -> list[Claim]:
    return samples_report.claims(results.where(Curve))


def draw(results: Results) -> list[Figure]:
    return samples_report.figures(results.where(Curve))


def _problem(cell: Curve, key: Key[Array, ""]) -> _learners.Problem:
    """Inputs of length √d and their labels, of unit mean square: for training, for choosing and for testing."""
    parts = {}
    for number, (name, count) in enumerate({"train": max(cell.samples), "choose": CHOOSING, "test": TESTS}.items()):
        of_inputs = jax.random.fold_in(key, number)
        X = (data.hypercube if cell.task == "xor" else data.sphere)(count, cell.dim, key=of_inputs)
        X = X * math.sqrt(cell.dim) / np.linalg.norm(X, axis=1, keepdims=True)
        parts[name] = (X, X[:, 0] * X[:, 1] if cell.task == "xor" else X[:, 0] ** int(cell.task))
    if cell.task != "xor":
        size = math.sqrt(_targets.moment(2 * int(cell.task), cell.dim))
        parts = {name: (X, y / (cell.dim ** (int(cell.task) / 2) * size)) for name, (X, y) in parts.items()}
    return _learners.Problem(parts["train"], parts["choose"], parts["test"], key)


def _kernel_curve(cell: Curve, problems: list[_learners.Problem]) -> dict[str, Float[np.ndarray, "s n"]]:
    """Kernel regression with the best of the ridges, in float64. Time n³/3 for each, n the largest; one program."""
    chosen, tested, trained = (np.zeros((len(problems), len(cell.samples), len(RIDGES))) for _ in range(3))
    with jax.enable_x64(True):
        for i, problem in enumerate(problems):
            (X, y), *others = (
                (jnp.asarray(X) / math.sqrt(cell.dim), jnp.asarray(y))
                for X, y in (problem.train, problem.choose, problem.test)
            )
            K, to_choose, to_test = (_kernel(rows, X) for rows in (X, others[0][0], others[1][0]))
            for j, n in enumerate(cell.samples):
                for k, ridge in enumerate(RIDGES):
                    weights = _regress(K, y, n, ridge)
                    chosen[i, j, k] = _targets.measure(cell.task, others[0][1], to_choose @ weights)
                    tested[i, j, k] = _targets.measure(cell.task, others[1][1], to_test @ weights)
                    trained[i, j, k] = _targets.measure(cell.task, y[:n], (K @ weights)[:n])
    return _learners.best(chosen, tested, trained)


_kernel = jax.jit(relu3_hidden)


@jax.jit
def _regress(
    K: Float[Array, "n n"], y: Float[Array, "n"], count: Int[Array, ""] | int, ridge: Float[Array, ""] | float
) -> Float[Array, "n"]:
    """(K + ridge·k(x, x) I)⁻¹ y of the first `count` rows, and zeros; all inputs have the same k(x, x)."""
    used = jnp.arange(len(K)) < count
    alone = jnp.where(used[:, None] & used, K, 0.0) + jnp.diag(jnp.where(used, ridge * K[0, 0], K[0, 0]))
    factor = jax.scipy.linalg.cho_factor(alone)
    return jax.scipy.linalg.cho_solve(factor, jnp.where(used, y, 0.0))
