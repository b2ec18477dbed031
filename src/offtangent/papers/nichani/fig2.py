r"""Figure 2: how many samples a standard network needs for a dense quadratic plus a sparse cubic, as d grows.

The target is a quadratic plus $He_3(\beta^T x)/\sqrt 6$ for $x \sim N(0, I_d)$, β a random unit vector. The quadratic
is dense: A in its $x^T A x$ has ones at half the coordinates. A kernel needs some $d^3$ samples for the cubic.
"For varying values of d, we train a two-layer neural network to convergence and plot the smallest n such that the test
loss was < 0.1. We observe this minimal n roughly scales with $d^2$."

Two normalisations. "code", as the authors have it, divides $x^T A x$ by $\sqrt{675}$ whatever d is: for d ≤ 50 its
variance is below 0.1, so that a network which learns the mean and the cubic alone is good enough. "normalised" is
$(x^T A x - s)/\sqrt{2s}$ with s = tr A, of variance 1: the level 0.1 is reached only with the quadratic learnt.

One kind of cell: a dimension and a normalisation. Two-layer ReLU networks with biases and standard initialisation take
full-batch steps of gradient descent on the mean squared loss, for n = i·d² with growing i (several at once, for all
seeds, in one program), until for every seed some n has brought the last test loss below 0.1. A smaller n has the first
samples of a larger one.
"""

from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Key, PyTree

from offtangent import data
from offtangent.data.targets import quadratic_plus_cubic
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import MLP
from offtangent.papers.nichani import fig2_report
from offtangent.report import Figure
from offtangent.training import train

LEVEL = 0.1  # of the test loss
TARGETS = ("code", "normalised")


@dataclass(frozen=True)
class Search:
    """Networks of several n, the groups one after the other until every seed has come below the level."""

    dim: int
    target: str
    groups: tuple[tuple[int, ...], ...]  # of i = n/d², growing; those of a group are trained together
    seeds: int
    width: int
    steps: int
    rate: float
    tests: int
    precision: str = "highest"

    @property
    def multiples(self) -> tuple[int, ...]:
        return tuple(i for group in self.groups for i in group)


@dataclass(frozen=True)
class Config:
    dims: tuple[int, ...]
    multiples: tuple[int, ...]  # i = n/d²
    together: int  # rows that the networks of a group have, those that a smaller n leaves unused included
    targets: tuple[str, ...] = TARGETS
    seeds: int = 3
    width: int = 100
    steps: int = 30_000
    rate: float = 0.05
    tests: int = 10_000
    most: int = 200_000  # samples
    precision: str = "highest"


# The paper has all i = 1, …, 20 and one seed. At d = 10 more than 20d² samples can be needed.
PROFILES = {
    "smoke": Config(
        dims=(4, 5, 7), multiples=(6, 16, 48), together=10_000, targets=("normalised",), seeds=4, width=40, steps=1000,
        rate=0.2,
    ),
    "laptop": Config(
        dims=(6, 8, 12), multiples=(4, 8, 12, 16, 24, 36, 54), together=4000, targets=("normalised",), seeds=4,
        steps=2000, rate=0.15,
    ),
    "paper": Config(
        dims=(10, 20, 30, 40, 50, 100), multiples=(2, 4, 6, 8, 11, 15, 20, 28, 40), together=100_000,
        precision="tensorfloat32",
    ),
}  # fmt: skip


def cells(config: Config) -> list[Search]:
    return [
        Search(
            dim, target, _groups(config, dim), config.seeds, config.width, config.steps, config.rate, config.tests,
            config.precision,
        )
        for target in config.targets
        for dim in config.dims
    ]  # fmt: skip


def _groups(config: Config, dim: int) -> tuple[tuple[int, ...], ...]:
    """As many growing multiples together as their rows allow: a small network is a matter of steps, not of rows."""
    groups: list[tuple[int, ...]] = []
    for multiple in config.multiples:
        if multiple * dim**2 > config.most:
            break
        if groups and (len(groups[-1]) + 1) * multiple * dim**2 <= config.together:
            groups[-1] = (*groups[-1], multiple)
        else:
            groups.append((multiple,))
    return tuple(groups)


def cost(cell: Search) -> Cost:
    """As if no group could be left out: two products a step and something elementwise, over all rows of a group."""
    rows = sum(len(group) * max(group) for group in cell.groups) * cell.dim**2 * cell.seeds
    largest = max(len(group) * max(group) for group in cell.groups) * cell.dim**2 * cell.seeds
    held = 12 * largest * cell.width + 12 * cell.seeds * max(cell.multiples) * cell.dim**3
    return Cost(cell.steps * rows * cell.width * (4 * cell.dim + 20), held)


def run(cell: Search) -> xr.Dataset:
    problems = [_problem(cell, seed) for seed in range(cell.seeds)]
    train_loss, test_loss = (np.full((cell.seeds, len(cell.multiples)), np.nan) for _ in range(2))
    done = 0
    for group in cell.groups:
        here = slice(done, done + len(group))
        train_loss[:, here], test_loss[:, here] = _fit(cell, group, problems)
        done += len(group)
        if (test_loss[:, :done] < LEVEL).any(axis=1).all():
            break
    return xr.Dataset({"train": (("seed", "multiple"), train_loss), "test": (("seed", "multiple"), test_loss)}).assign(
        size=problems[0].size
    ).assign_coords(multiple=list(cell.multiples))  # fmt: skip


def claims(results: Results) -> list[Claim]:
    return fig2_report.claims(results.where(Search), LEVEL)


def draw(results: Results) -> list[Figure]:
    return fig2_report.figures(results.where(Search), LEVEL)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Training and test samples of one seed, and the key of its networks."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, "n"]
    X_test: Float[np.ndarray, "t d"]
    y_test: Float[np.ndarray, "t"]
    size: float  # the variance of the quadratic part
    key: Key[Array, ""]


def _problem(cell: Search, seed: int) -> _Problem:
    of_target, of_inputs, of_tests, of_net = jax.random.split(jax.random.key(seed), 4)
    target = quadratic_plus_cubic(cell.dim, normalised=cell.target == "normalised", key=of_target)
    X = data.distributions.gaussian(max(cell.multiples) * cell.dim**2, cell.dim, key=of_inputs)
    X_test = data.distributions.gaussian(cell.tests, cell.dim, key=of_tests)
    return _Problem(X, target(X), X_test, target(X_test), float(target.energies().low[2]), of_net)


class _Objective(eqx.Module):
    """The mean squared losses of all networks, each over its own first rows: shape (seeds, sizes)."""

    net: MLP = eqx.field(static=True)
    shares: Float[Array, "sizes n"]  # 1/n for the first n rows

    def __call__(self, params: PyTree, X: Float[Array, "n s d"], y: Float[Array, "n s"]) -> Float[Array, "s sizes"]:
        def one(params: PyTree, X: Array, y: Array, share: Array) -> Array:
            return share @ (self.net(params, X) - y) ** 2

        over_sizes = jax.vmap(one, (0, None, None, 0))
        return jax.vmap(over_sizes, (0, 1, 1, None))(params, X, y, self.shares)


@cache
def _optimiser(rate: float) -> optax.GradientTransformation:
    """One object for all cells, so that those of one shape share their compiled program."""
    return optax.sgd(rate)


def _fit(
    cell: Search, group: tuple[int, ...], problems: list[_Problem]
) -> tuple[Float[np.ndarray, "s sizes"], Float[np.ndarray, "s sizes"]]:
    """The last training and test losses of all seeds and these n."""
    sizes = np.array(group) * cell.dim**2
    net = MLP(cell.dim, cell.width)
    X = np.stack([one.X[: sizes[-1]] for one in problems], axis=1)
    y = np.stack([one.y[: sizes[-1]] for one in problems], axis=1)
    shares = (np.arange(sizes[-1]) < sizes[:, None]) / sizes[:, None]
    start = _start(net, jnp.stack([one.key for one in problems]), len(group))
    history = train(
        _Objective(net, jnp.asarray(shares, jnp.float32)), start, X, y,
        optimiser=_optimiser(cell.rate), steps=cell.steps, precision=cell.precision,
    )  # fmt: skip
    X_test, y_test = (
        np.stack(part).astype(np.float32) for part in zip(*((one.X_test, one.y_test) for one in problems), strict=True)
    )
    return history.losses[-1], np.asarray(_test_losses(net, history.params, X_test, y_test))


@eqx.filter_jit
def _start(net: MLP, keys: Key[Array, " s"], sizes: int) -> PyTree:
    """The same for all sizes of a seed."""
    drawn = jax.vmap(lambda key: net.init(key=key))(keys)
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], sizes, axis=1), drawn)


@eqx.filter_jit
def _test_losses(
    net: MLP, params: PyTree, X: Float[np.ndarray | Array, "s t d"], y: Float[np.ndarray | Array, "s t"]
) -> Float[Array, "s sizes"]:
    def of_seed(seed: tuple[PyTree, Array, Array]) -> Array:
        params, X, y = seed
        return jax.lax.map(lambda one: jnp.mean((net(one, X) - y) ** 2), params)

    return jax.lax.map(of_seed, (params, X, y))
