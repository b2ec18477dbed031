r"""Section 5.2: how many samples the quadratic model saves, on the paper's two examples.

A polynomial $f_\star(x) = \alpha (\beta^T x)^p$ of inputs on the sphere, and noisy 2-XOR: the signs of two coordinates
that matter among d − 2 that do not. The paper compares what its bounds ask for: $n_Q / n_L = O(p/d)$ for the
polynomial, and for XOR $n_Q = \tilde O(d)$ against a lower bound of $\Omega(d^2)$ for the NTK. Here both are measured,
beside the randomised and the plain network: the test loss against n, and the n at which it first is down to a level.

Each learner has its regulariser chosen on 1000 samples of their own, apart from those that it is tested on. The NTK is
the kernel of infinite width with a ridge, the multiplier of a ball ‖W‖_F ≤ B, and squares for its loss. The others
have width m and σ = relu³/6, start next to W = 0, and take steps of gradient descent with momentum on the loss and
$\lambda \|W\|_{2,4}^8$: the quadratic model $f^Q_W$, the randomised network with fresh signs at each step (Σ and −Σ
together), the plain network $f_{W_0 + W}$. Their losses are convex and 1-Lipschitz: logistic for XOR, pseudo-Huber for
the polynomials (whose ℓ(y, 0) ≤ 1 asks for |y| ≤ √3: with E y² = 1 nine labels in ten or more).

XOR comes twice: on the corners {±1}^d with the label $x_1 x_2$, as in the paper's example, and with the distribution of
Wei et al. (2019), (±1, 0) or (0, ±1) and d − 2 signs. They are the same in the plane of the first two but for a
rotation, which no learner here sees, and a factor √2: the second one's signal is weaker. Labels have no noise.

The bounds are for large d. Over all d of the paper profile the n of the polynomials keep to them without a logarithm;
for XOR they do with one on the cube's corners, and not for Wei et al.'s (slope 1.145, 95 % interval [1.077, 1.213]
after division by log d, 1.465 before), where the growth is still slowing down. From d = 25 on they seemed to keep to
them; that was seen first and decided then, so that it is judged on new seeds alone, by `bai_lee/again`.
λ comes from three values: for XOR at d = 40 and 60 the quadratic model mostly takes the largest, for the polynomials
none at all.

For p = 4 the NTK ends at d = 28: at 40 it would need more than 60 000 samples, and a grid up to 2.5 times as many does
not fit into 140 GB. The quadratic model has 8192 neurons: 2048 left some seeds above the level from d = 28 on, whatever
n. The randomised network has 32 768 and ends at d = 10: at W⋆ the noise of signs has a variance like
$d^{p/2 - 1} m^{-1/2}$. Not every seed comes down to the level even so (four of five at d = 5 and 10, all at 7), and
those that do need more samples than the NTK; its slope in d is therefore taken at an easier level, 1.5 times as high,
where it needs fewer than the NTK from d = 7 on. Four cells at once fit into one GPU of 140 GB, but for the NTK's last.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent.kernels.closed_forms import relu3_hidden
from offtangent.lab import Claim, Cost, Results
from offtangent.papers.bai_lee import _learners, _targets, samples_figures, samples_report
from offtangent.report import Figure

LEARNERS = ("ntk", "quadratic", "randomised", "plain")
CHOOSING, TESTS = 1000, 2000  # samples that choose the regulariser, samples that test
RIDGES = (1e-8, 1e-4, 1e-2)  # of the kernel's diagonal


@dataclass(frozen=True)
class Curve:
    """The test loss of one learner against n, for several seeds; a smaller n has the first rows of a larger one."""

    task: str  # of `_targets`
    learner: str
    dim: int
    samples: tuple[int, ...]
    seeds: int
    width: int  # of the networks
    steps: int
    precision: str = "highest"
    first: int = 0  # of the seeds; those from 0 on are the ones by which dimensions and logarithms were chosen


@dataclass(frozen=True)
class Task:
    dims: tuple[int, ...]
    width: int
    steps: int
    reach: int  # sizes of the grid of n on either side of its middle
    # Learners with a width of their own: the variance of random signs, like m^(−1/2), or too few features keep one of
    # the others' width above the level.
    wider: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)  # the last dimension of a learner that cannot go on to the end


@dataclass(frozen=True)
class Config:
    tasks: dict[str, Task]
    seeds: int = 5
    precision: str = "highest"


PROFILES = {
    "smoke": Config({"xor": Task((8, 24), width=128, steps=150, reach=2, ends={"plain": 0})}),
    "laptop": Config(
        {
            "xor": Task((8, 14, 24), width=256, steps=200, reach=2, ends={"plain": 0}),
            "3": Task((6, 8, 12), width=512, steps=200, reach=2, ends={"randomised": 0, "plain": 0}),
        }
    ),
    "paper": Config(
        {
            "xor": Task((10, 16, 25, 40, 60), width=1024, steps=600, reach=2),
            "noisy xor": Task((10, 16, 25, 40, 60), width=1024, steps=600, reach=2),
            "3": Task((10, 14, 20, 28, 40), width=2048, steps=1200, reach=2, wider={"randomised": 4096}),
            "4": Task(
                (5, 7, 10, 14, 20, 28, 40), width=2048, steps=1200, reach=2,
                wider={"quadratic": 8192, "randomised": 32_768}, ends={"ntk": 28, "randomised": 10},
            ),
        },
        precision="tensorfloat32",
    ),
}  # fmt: skip

# The middle of the grid of n, c·d^e. Where a curve falls is not known beforehand: these are guesses from
# trials, and a grid reaches 2.5 times as far both ways. The n that counts comes from the curves alone.
MIDDLES = {
    ("xor", "ntk"): (0.55, 2.0),
    ("xor", "quadratic"): (3.2, 1.22),
    ("xor", "randomised"): (1.8, 1.3),
    ("xor", "plain"): (1.7, 1.6),
    ("noisy xor", "ntk"): (0.8, 2.2),
    ("noisy xor", "quadratic"): (4.5, 1.5),
    ("noisy xor", "randomised"): (2.5, 1.55),
    ("noisy xor", "plain"): (3.0, 1.7),
    ("3", "ntk"): (0.7, 2.5),
    ("3", "quadratic"): (1.7, 1.7),
    ("3", "randomised"): (2.8, 1.75),
    ("3", "plain"): (1.8, 2.05),
    ("4", "ntk"): (0.62, 3.08),
    ("4", "quadratic"): (1.4, 2.2),
    ("4", "randomised"): (2.2, 2.5),
    ("4", "plain"): (2.8, 2.2),
}
FACTOR = 2 ** (2 / 3)  # from one n to the next


def cells(config: Config) -> list[Curve]:
    return [
        Curve(name, learner, dim, grid(name, learner, dim, task.reach), config.seeds,
              task.wider.get(learner, task.width), task.steps, config.precision)
        for name, task in config.tasks.items()
        for dim in task.dims
        for learner in LEARNERS
        if dim <= task.ends.get(learner, dim)
    ]  # fmt: skip


def grid(task: str, learner: str, dim: int, reach: int) -> tuple[int, ...]:
    """The n of a curve: `reach` of them on either side of the middle."""
    factor, power = MIDDLES[task, learner]
    return tuple(round(factor * dim**power * FACTOR**j) for j in range(-reach, reach + 1))


def cost(cell: Curve) -> Cost:
    most = max(cell.samples)
    if cell.learner == "ntk":
        work = sum(n**3 / 2 + 60 * n**2 for n in cell.samples)
        return Cost(cell.seeds * len(RIDGES) * work, 40 * most**2 + 1e8)
    networks = cell.seeds * len(cell.samples) * len(_learners.BOUNDS)
    entries = networks * most * cell.width * (2 if cell.learner == "randomised" else 1)
    return Cost(cell.steps * entries * (6 * cell.dim + 400), 16 * entries)


def run(cell: Curve) -> xr.Dataset:
    tasks = [_problem(cell, jax.random.key(cell.first + seed)) for seed in range(cell.seeds)]
    found = _kernel_curve(cell, tasks) if cell.learner == "ntk" else _learners.curve(cell, tasks)
    return xr.Dataset({name: (("seed", "n"), values) for name, values in found.items()}).assign_coords(
        n=list(cell.samples)
    )


def claims(results: Results) -> list[Claim]:
    return samples_report.claims(results.where(Curve))


def draw(results: Results) -> list[Figure]:
    return samples_figures.figures(results.where(Curve))


def _problem(cell: Curve, key: Key[Array, ""]) -> _learners.Problem:
    """Inputs and labels for training, for choosing and for testing."""
    counts = (max(cell.samples), CHOOSING, TESTS)
    keys = (jax.random.fold_in(key, number) for number in range(3))
    train, choose, test = (_targets.sample(cell.task, n, cell.dim, key=k) for n, k in zip(counts, keys, strict=True))
    return _learners.Problem(train, choose, test, key)


def _kernel_curve(cell: Curve, problems: list[_learners.Problem]) -> dict[str, Float[np.ndarray, "s n"]]:
    """Kernel regression with the best of the ridges, in float64. Time n³/3 for each n."""
    chosen, tested, trained = (np.zeros((len(problems), len(cell.samples), len(RIDGES))) for _ in range(3))
    with jax.enable_x64(True):
        for i, problem in enumerate(problems):
            (X, y), *others = ((X / math.sqrt(cell.dim), y) for X, y in (problem.train, problem.choose, problem.test))
            K, to_choose, to_test = (_kernel(rows, X) for rows in (X, others[0][0], others[1][0]))
            for j, n in enumerate(cell.samples):
                for k, ridge in enumerate(RIDGES):
                    outputs = _regress(K, to_choose, to_test, y, ridge, n)
                    for losses, labels, output in zip(
                        (trained, chosen, tested), (y[:n], others[0][1], others[1][1]), outputs, strict=True
                    ):
                        losses[i, j, k] = _targets.measure(cell.task, labels, np.asarray(output))
    return _learners.best(chosen, tested, trained)


_kernel = jax.jit(relu3_hidden)


@partial(jax.jit, static_argnames="count")
def _regress(
    K: Float[Array, "n n"],
    to_choose: Float[Array, "c n"],
    to_test: Float[Array, "t n"],
    y: Float[Array, "n"],
    ridge: Float[Array, ""] | float,
    count: int,
) -> tuple[Float[Array, "count"], Float[Array, "c"], Float[Array, "t"]]:
    """What (K + ridge·k(x, x) I)⁻¹ y of the first `count` rows predicts; all inputs have the same k(x, x)."""
    alone = K[:count, :count]
    factor = jax.scipy.linalg.cho_factor(alone + ridge * K[0, 0] * jnp.eye(count))
    weights = jax.scipy.linalg.cho_solve(factor, y[:count])
    return alone @ weights, to_choose[:, :count] @ weights, to_test[:, :count] @ weights
