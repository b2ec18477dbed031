r"""Figure 2: the more labels are random, the larger the complexity measure, and the test error with it.

Corollary 5.2: after training on n labels y the probability of a wrong sign is at most

$$\sqrt{2 y^T (H^\infty)^{-1} y / n} \qquad (10)$$

and a term that falls like $n^{-1/2}$. A portion of the labels, of training and of test data alike, is drawn anew from
unif{±1} (Appendix A); the figure follows the measure (10), the test loss $|y - f(x)|$ (ℓ1) and the classification
error as the portion grows from 0 to 1. A draw replaces, as the portion grows, the same rows and then some more, always
by the same coins. Random test labels nobody can know: on average no predictor's error is below half the portion, nor
its ℓ1 loss below the portion; so the error against the true test labels is measured as well.

Two kinds of cells. Regression: $f(x) = k(x, X) (H^\infty)^{-1} y$, a network of infinite width after infinitely many
steps, for all portions from one eigendecomposition. Network: one network of finite width, trained by full-batch
gradient descent at $\eta = 1/\lambda_{\max}$ until its loss is down to a level, or for so many steps (its cap). With
κ = 0.01 plain gradient descent on random labels takes many times the steps of eq. (8) (see Figure 1); so most cells add
Nesterov momentum β, which divides the steps of slow directions by about 1/(1 − β). For an infinitely wide network it
leads to the same function; some cells go without it, to compare.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from offtangent import data
from offtangent.kernels import Gram, relu_hidden
from offtangent.lab import Claim, Cost, Results
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.papers.arora import fig2_report
from offtangent.papers.arora._conditions import NEW
from offtangent.report import Figure
from offtangent.theory import largest_stable_rate, steps_to
from offtangent.theory.arora.generalisation import absolute_loss, zero_one_loss
from offtangent.training import HalfSquares, train

BLOCK = 256  # steps that `train` takes in one go
LOOKS = 16  # at the test data, in every stretch of a run
KEPT = 60  # looks that are stored


@dataclass(frozen=True)
class Regression:
    """The measure and kernel regression on one data set, for every portion and several draws of the noise."""

    data: str
    samples: int  # the first ones of classes 0 and 1, in file order
    tests: int  # likewise of the test images; digits have none, there they are the next ones
    portions: tuple[float, ...]
    draws: int
    first: int = 0  # of the draws


@dataclass(frozen=True)
class Network:
    """One network on one draw of the noise (the draw of that number in a Regression)."""

    data: str
    samples: int
    tests: int
    width: int
    portion: float
    seed: int  # of the noise, the draw of that number, and of the initial weights
    cap: int  # steps after which training ends, wherever it is
    level: float = 0.01  # of the first loss: here training ends
    momentum: float = 0.95  # β
    scale: float = 1e-2  # κ
    precision: str = "highest"


@dataclass(frozen=True)
class Config:
    regressions: tuple[Regression, ...]
    networks: tuple[Network, ...]


def regression(name: str, samples: int, tests: int, portions: tuple[float, ...], draws: int) -> Regression:
    """On draws that were new when the rules of judgement were written."""
    return Regression(name, samples, tests, portions, draws, first=NEW)


def each(portions: tuple[float, ...], seeds: int = 1, **words: Any) -> tuple[Network, ...]:
    """Networks for every portion, on such draws."""
    return tuple(Network(portion=portion, seed=NEW + seed, **words) for portion in portions for seed in range(seeds))


THREE, FIVE = (0.0, 0.5, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0)
ELEVEN = tuple(tenth / 10 for tenth in range(11))
THIRTEEN = tuple(sorted({*FIVE, *ELEVEN}))
PAPER: dict[str, Any] = {"tests": 2000, "width": 10_000, "precision": "tensorfloat32"}
PROFILES = {
    "smoke": Config(
        regressions=(regression("digits", 80, 200, FIVE, draws=20),),
        networks=each(FIVE, 2, data="digits", samples=80, tests=200, width=500, cap=1500, level=0.1),
    ),
    "laptop": Config(
        regressions=(
            regression("digits", 120, 240, FIVE, draws=40),
            regression("mnist", 150, 500, FIVE, draws=20),
            regression("mnist", 1000, 1000, ELEVEN, draws=60),
            regression("cifar10", 100, 500, FIVE, draws=20),
            regression("cifar10", 1000, 1000, ELEVEN, draws=60),
        ),
        networks=(
            *each(FIVE, 3, data="digits", samples=120, tests=240, width=1000, cap=2000, level=0.1),
            *each(THREE, data="digits", samples=120, tests=240, width=1000, cap=12_000, level=0.1, momentum=0.0),
            *each(FIVE, 2, data="mnist", samples=150, tests=500, width=500, cap=500),
            *each(FIVE, 2, data="cifar10", samples=100, tests=500, width=300, cap=500, level=0.1),
        ),
    ),
    # Caps keep the whole below 18 minutes on an H200, where a step takes 0.28 ms (MNIST) or 0.84 ms (CIFAR) at
    # n = 2000, and five times that at n = 10 000.
    "paper": Config(
        regressions=(
            regression("mnist", 2000, 2000, ELEVEN, draws=20),
            regression("mnist", 10_000, 2000, THIRTEEN, draws=20),
            regression("cifar10", 2000, 2000, ELEVEN, draws=20),
            regression("cifar10", 10_000, 2000, THIRTEEN, draws=20),
        ),
        networks=(
            *each(ELEVEN, 2, data="mnist", samples=2000, cap=30_000, **PAPER),
            *each(THREE, data="mnist", samples=2000, cap=20_000, momentum=0.0, **PAPER),
            *each(THREE, data="mnist", samples=10_000, cap=20_000, **PAPER),
            *each(ELEVEN, data="cifar10", samples=2000, cap=60_000, **PAPER),
            *each(THREE, data="cifar10", samples=2000, cap=20_000, momentum=0.0, **PAPER),
            *each(THREE, data="cifar10", samples=10_000, cap=10_000, **PAPER),
        ),
    ),
}


def cells(config: Config) -> list[Regression | Network]:
    """All cells of the data sets found here, those of one kernel matrix together: it is kept from one to the next."""
    missing = absent(config)
    every: list[Regression | Network] = [*config.regressions, *config.networks]
    found = [cell for cell in every if cell.data not in missing]
    problems = list(dict.fromkeys((cell.data, cell.samples, cell.tests) for cell in found))
    return sorted(found, key=lambda cell: problems.index((cell.data, cell.samples, cell.tests)))


def absent(config: Config) -> list[str]:
    return [name for name in dict.fromkeys(cell.data for cell in config.regressions) if not data.fetch.available(name)]


def datasets(cell: Regression | Network) -> tuple[str, ...]:
    return (cell.data,)


def cost(cell: Regression | Network) -> Cost:
    """The eigendecomposition, and for a network 4ndm a step and something elementwise, as if it ran to its cap."""
    n, dim = cell.samples, {"digits": 64, "mnist": 784, "cifar10": 3072}[cell.data]
    flops, held = 12 * n**3, 32 * n**2
    if isinstance(cell, Network):
        return Cost(flops + cell.cap * n * cell.width * (4 * dim + 100), held + 12 * n * cell.width)
    return Cost(flops + 4 * (n + cell.tests) * n * len(cell.portions) * cell.draws, held)


def run(cell: Regression | Network) -> xr.Dataset:
    return _run_network(cell) if isinstance(cell, Network) else _run_regression(cell)


def claims(results: Results) -> list[Claim]:
    return list(fig2_report.claims(results.where(Regression), results.where(Network)))


def draw(results: Results) -> list[Figure]:
    return list(fig2_report.figures(results.where(Regression), results.where(Network)))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Training and test data with the eigenpairs of H∞, and the kernel between the two."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, "n"]
    X_test: Float[np.ndarray, "t d"]
    y_test: Float[np.ndarray, "t"]
    spectrum: Spectrum
    across: Float[np.ndarray, "t n"]

    @property
    def rate(self) -> float:
        """η = 1/λ_max."""
        return 0.5 * largest_stable_rate(self.spectrum)

    def labels(self, portion: float, draw: int) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "t"]]:
        """Training and test labels with a portion of both at random."""
        train_key, test_key = jax.random.split(jax.random.key(draw))
        return (
            data.labels.add_label_noise(self.y, portion, key=train_key).y,
            data.labels.add_label_noise(self.y_test, portion, key=test_key).y,
        )

    def measure(self, targets: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "c"]:
        """√(2 yᵀ(H∞)⁻¹y / n), eq. (10), of every column."""
        return np.sqrt(2 * ((self.spectrum.vectors.T @ targets) ** 2 / self.spectrum.values[:, None]).mean(axis=0))

    def regress(self, targets: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "t c"]:
        """What kernel regression without a ridge says of the test data, for every column of labels."""
        weights = self.spectrum.vectors @ ((self.spectrum.vectors.T @ targets) / self.spectrum.values[:, None])
        return self.across @ weights


@lru_cache(maxsize=1)
def _problem(name: str, samples: int, tests: int) -> _Problem:
    """Time O(n³), memory n² + nt floats."""
    if name == "digits":
        X, y = data.digits(classes=(0, 1), samples=samples + tests)
        X, y, X_test, y_test = X[:samples], y[:samples], X[samples:], y[samples:]
    else:
        load = {"mnist": data.mnist, "cifar10": data.cifar10}[name]
        X, y = load(classes=(0, 1), samples=samples)
        X_test, y_test = load(classes=(0, 1), samples=tests, split="test")
    return _Problem(X, y, X_test, y_test, Gram(relu_hidden, X).eigh(), relu_hidden.exact(X_test, X))


def _scores(
    outputs: Float[np.ndarray, "t c"], noisy: Float[np.ndarray, "t #c"], true: Float[np.ndarray, "t"]
) -> dict[str, Float[np.ndarray, "c"]]:
    """Test losses of every column of outputs; an output of zero has the wrong sign, as in Appendix D.4."""
    noisy, clean = (np.broadcast_to(labels, outputs.shape) for labels in (noisy, true[:, None]))
    absolute, wrong = absolute_loss(outputs, noisy), zero_one_loss(outputs, noisy)
    return {
        "l1": absolute.mean(axis=0),
        "l1_error": absolute.std(axis=0, ddof=1) / len(absolute) ** 0.5,  # standard error over the test data
        "wrong": wrong.mean(axis=0),
        "clean": zero_one_loss(outputs, clean).mean(axis=0),  # against the true test labels
        "excess": (wrong - absolute).max(axis=0),  # of the 0-1 over the ℓ1 loss, the worst sample
    }


def _run_regression(cell: Regression) -> xr.Dataset:
    problem = _problem(cell.data, cell.samples, cell.tests)
    shape, draws = (len(cell.portions), cell.draws), range(cell.first, cell.first + cell.draws)
    drawn = [problem.labels(portion, seed) for portion in cell.portions for seed in draws]
    targets, noisy = (np.stack(columns, axis=1) for columns in zip(*drawn, strict=True))
    scores = _scores(problem.regress(targets), noisy, problem.y_test)
    found = {"measure": problem.measure(targets), **scores}
    values = problem.spectrum.values
    return xr.Dataset(
        {name: (("portion", "draw"), column.reshape(shape)) for name, column in found.items()}
    ).assign(
        expected=("portion", _expected(problem, np.array(cell.portions))),
        largest=values[0],
        smallest=values[-1],
    ).assign_coords(portion=list(cell.portions))  # fmt: skip


def _expected(problem: _Problem, portions: Float[np.ndarray, "p"]) -> Float[np.ndarray, "p"]:
    """The root mean square of the measure over all draws, exactly.

    Of n labels k are drawn anew: two of them both survive with probability q = (n−k)(n−k−1)/(n(n−1)), so the
    mean of yᵀAy is q·y*ᵀAy* + (1 − q)·tr A, with y* the true labels.
    """
    n = len(problem.y)
    fresh = np.round(portions * n)
    both = (n - fresh) * (n - fresh - 1) / (n * (n - 1))
    true = float(problem.measure(problem.y[:, None])[0]) ** 2
    random = 2 * float((1 / problem.spectrum.values).mean())
    return np.sqrt(both * true + (1 - both) * random)


def _run_network(cell: Network) -> xr.Dataset:
    problem = _problem(cell.data, cell.samples, cell.tests)
    targets, noisy = problem.labels(cell.portion, cell.seed)
    net = TwoLayer.gaussian(
        dim=problem.X.shape[1], width=cell.width, scale=cell.scale, key=jax.random.key(1000 + cell.seed)
    )
    path = _descend(cell, problem, net, targets)
    below = np.flatnonzero(path.seen <= cell.level)
    last = int(below[0]) if len(below) else len(path.steps) - 1
    kept = np.unique(np.geomspace(1, last + 1, KEPT).round().astype(int)) - 1
    looks = _scores(path.outputs[kept].T, noisy[:, None], problem.y_test)
    end = {name: column[-1] for name, column in looks.items()}
    limit = _scores(problem.regress(targets[:, None]), noisy[:, None], problem.y_test)
    learnt = path.losses <= cell.level
    return xr.Dataset(
        {
            **end,
            **{f"limit_{name}": column[0] for name, column in limit.items()},
            "measure": problem.measure(targets[:, None])[0],
            "smallest": problem.spectrum.values[-1],
            "loss": path.seen[last],  # of the first one, where the scores are taken
            "steps": path.steps[last],
            "steps_to_level": float(learnt.argmax()) if learnt.any() else np.inf,
            "predicted_steps": float(_predicted_steps(cell, problem, targets)),
            "rate": problem.rate,
            "path_step": ("look", path.steps[kept]),
            "path_loss": ("look", path.seen[kept]),
            **{f"path_{name}": ("look", looks[name]) for name in ("l1", "wrong", "clean")},
        }
    )


def _predicted_steps(cell: Network, problem: _Problem, targets: Float[np.ndarray, "n"]) -> int:
    """The steps an infinitely wide network takes to the level: eq. (8), or its recursion with Nesterov momentum.

    Time O(n) a step.
    """
    spectrum, rate, beta = problem.spectrum, problem.rate, cell.momentum
    if not beta:
        return steps_to(spectrum, targets, rate=rate, loss=cell.level)
    left, pace, speed = spectrum.vectors.T @ targets, rate * spectrum.values, np.zeros(len(targets))
    target, k = cell.level * float(left @ left), 0
    while left @ left > target:
        pull = pace * left
        speed = pull + beta * speed
        left, k = left - (pull + beta * speed), k + 1
    return k


@dataclass(frozen=True)
class _Path:
    losses: Float[np.ndarray, "k"]  # before every step and after the last, as a fraction of the first
    steps: Float[np.ndarray, "l"]  # of the looks
    seen: Float[np.ndarray, "l"]  # losses at the looks
    outputs: Float[np.ndarray, "l t"]  # on the test data


class _Outputs(eqx.Module):
    net: TwoLayer
    X: Float[Array, "t d"]

    def __call__(self, W: Float[Array, "d m"]) -> Float[Array, "t"]:
        return self.net(W, self.X)


@cache
def _optimiser(rate: float, momentum: float) -> optax.GradientTransformation:
    """One object for all networks of one problem, so that they share their compiled program."""
    return optax.sgd(rate, momentum=momentum or None, nesterov=momentum > 0)


def _descend(cell: Network, problem: _Problem, net: TwoLayer, targets: Float[np.ndarray, "n"]) -> _Path:
    """Stretches of training, each a quarter of what went before, with looks at the test data, until the loss is down.

    Momentum starts afresh with every stretch.
    """
    objective, optimiser = HalfSquares(net), _optimiser(problem.rate, cell.momentum)
    X, y = jnp.asarray(problem.X, net.W0.dtype), jnp.asarray(targets, net.W0.dtype)
    record = {"outputs": _Outputs(net, jnp.asarray(problem.X_test, net.W0.dtype))}
    W, done, first = net.origin, 0, np.nan
    losses, steps, outputs = [], [], []
    while True:
        length = min(BLOCK * max(1, done // (4 * BLOCK)) - 1, cell.cap - done)
        at = np.unique(np.linspace(0, length, LOOKS).round().astype(int))
        history = train(
            objective, W, X, y, optimiser=optimiser, steps=length,
            record=record, record_at=at, precision=cell.precision,
        )  # fmt: skip
        first = history.losses[0] if done == 0 else first
        losses.append(history.losses[:-1] / first)
        steps.append((done + at)[:-1])
        outputs.append(history.records["outputs"][:-1])
        W, done = history.params, done + length
        if done >= cell.cap or (history.losses[at] <= cell.level * first).any():
            break
    every = np.append(np.concatenate(losses), history.losses[-1] / first)
    looks = np.append(np.concatenate(steps), done)
    seen = np.concatenate([*outputs, history.records["outputs"][-1:]]).astype(np.float64)
    return _Path(every, looks.astype(float), every[looks], seen)
