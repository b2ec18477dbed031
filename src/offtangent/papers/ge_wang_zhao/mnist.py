r"""Figures 3, 4 and 6 to 10: MNIST learnt by heart, with true labels and with random ones.

The labels are the digits as numbers, 0 to 9, true or drawn at random; the loss is $f = \frac{1}{4n}\sum_j \delta_j^2$.
Three settings, all from images of norm 1: two layers on the images as they are, two layers with N(0, 0.01²) added to
every pixel, and three layers on the first 100 principal directions with N(0, 0.05²) added, $z = (Q\bar x)^2$ with
$Q \sim N(0, 0.15^2)^{750 \times 100}$. Theorem 4 asks for samples in general position,
$\sigma_{\min}[x_j \otimes x_j] > 0$, and Theorem 5 for the same of z. It is measured for all images that are learnt,
from above and, with a proof, from below. The images are in general position without noise, too, but only just: 0.07
for 2000 images next to a norm of 20, and 0.0014 for all of them next to 106. With noise it is 60 times as large.

As in Appendix A.1: r = 3000 neurons, Adam with batches of 128 and a rate of 0.003 that is multiplied by 0.3 every 15
epochs, which is a sixth of the 90 that there are here. The paper says neither for how long it trains, nor how it
starts, nor which factor its squared loss has: W(0) has entries 0.1/√d · N(0, 1), and the mean square is 4f, which is
told beside f. Where 90 epochs end near the paper's level, or with three layers, there is a second run of 360, its rate
falling every 60. Others keep their rate, as the paper finds its decay crucial. The principal directions are those of
the images without centring. Next to three layers stands the least f of any quadratic form of the same 100 directions,
which no network of two layers can get below. Curves are the paper's: the loss of a batch every 5 steps, averaged over
the last 20 of these.

On scikit-learn's digits the same at a smaller size, 300 images with 64 pixels: the noise on a pixel is 0.035, the same
share of a typical one; Q's entries have the standard deviation $(3k)^{-1/4}$, which keeps ‖z‖ near 1, as 0.15 does at k
= 750; and the rate starts at 0.01.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from offtangent import data
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import PolynomialNet, QuadraticNet
from offtangent.papers.ge_wang_zhao import mnist_report
from offtangent.report import Figure
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular
from offtangent.training import train
from offtangent.training.loop import History

# The noise on an entry, times the root of their number: 0.01 on 784 pixels, 0.05 in 100 directions.
NOISE = {"plain": 0.0, "noisy": 0.01 * 28, "features": 0.05 * 10}
PAPER_SCALE = 0.15  # of Q's entries
START, DECAY, FALLS, BATCH = 0.1, 0.3, 6, 128
RECORD, AVERAGE = 5, 20  # the paper's curves: every fifth step, means of twenty
POINTS = 150  # of a curve that are kept


@dataclass(frozen=True)
class Memory:
    """One network, one setting, one kind of labels."""

    data: str
    setting: str
    labels: str
    samples: int
    width: int
    directions: int  # principal ones, with three layers
    features: int
    epochs: int
    rate: float
    seed: int
    precision: str
    decay: float = DECAY  # of the rate, five times; 1: it stays


@dataclass(frozen=True)
class Position:
    """σ_min of the samples that the networks of one setting learn."""

    data: str
    setting: str
    samples: int
    directions: int
    features: int
    seed: int


Cell = Memory | Position


@dataclass(frozen=True)
class Config:
    data: str
    samples: int
    width: int
    directions: int
    features: int
    epochs: int
    rate: float
    runs: tuple[tuple[str, str], ...]
    seeds: tuple[int, ...] = (0,)
    precision: str = "highest"
    longer: int = 0  # epochs of a second run, for the first seed
    steady: bool = False  # whether there are runs with a rate that does not fall


STEADY = ("noisy", "true")  # the runs that are also made with a rate that does not fall
LONGER = {("noisy", "random"), ("features", "true"), ("features", "random")}
ALL = tuple((setting, labels) for setting in NOISE for labels in ("true", "random"))
PROFILES = {
    "smoke": Config("digits", 150, 200, 10, 30, 4000, 0.01, (("plain", "true"), ("noisy", "true"))),
    "laptop": Config("digits", 300, 200, 16, 60, 3000, 0.01, ALL),
    "paper": Config("mnist", 60_000, 3000, 100, 750, 90, 0.003, ALL, seeds=(0, 1, 2), longer=360, steady=True),
}


def absent(config: Config) -> list[str]:
    return [] if data.fetch.available(config.data) else [config.data]


def datasets(cell: Cell) -> tuple[str, ...]:
    return (cell.data,)


def cells(config: Config) -> list[Cell]:
    if absent(config):
        return []
    first = config.seeds[0]
    positions = [
        Position(config.data, setting, config.samples, config.directions, config.features, seed)
        for setting in dict(config.runs)
        for seed in (config.seeds if NOISE[setting] else (first,))
    ]
    runs = [(*run, config.epochs, seed) for run in config.runs for seed in config.seeds]
    runs += [(*run, config.longer, first) for run in config.runs if config.longer and run in LONGER]
    trained = [
        Memory(
            config.data, setting, labels, config.samples, config.width, config.directions, config.features,
            epochs, config.rate, seed, config.precision,
        )
        for setting, labels, epochs, seed in runs
    ]  # fmt: skip
    constant = [
        one for one in trained if config.steady and (one.setting, one.labels, one.epochs) == (*STEADY, config.epochs)
    ]
    return [*positions, *trained, *(replace(one, decay=1.0) for one in constant)]


def cost(cell: Cell) -> Cost:
    inputs = cell.features if cell.setting == "features" else 784 if cell.data == "mnist" else 64
    if isinstance(cell, Position):  # two factorisations of the Gram matrix, and moments
        n = cell.samples
        return Cost(2 * n**3 / 3 + 20.0 * n * inputs**2, 4.0 * n**2 + 24 * n * inputs + 1e8)
    steps = cell.epochs * (cell.samples // BATCH)
    weights = inputs * cell.width
    return Cost(steps * (6 * BATCH * weights + 20 * weights), 16 * weights + 8 * cell.samples * inputs + 1e8)


def run(cell: Cell) -> xr.Dataset:
    return _position(cell) if isinstance(cell, Position) else _memory(cell)


def _position(cell: Position) -> xr.Dataset:
    found = smallest_singular(_inputs(cell)[0])
    return xr.Dataset(
        {"upper": found.upper, "lower": found.lower, "floor": found.floor, "largest": found.largest,
         "resolved": found.resolved}
    )  # fmt: skip


def _memory(cell: Memory) -> xr.Dataset:
    (X, y), (X_test, y_test) = _samples(cell)
    net = QuadraticNet(X.shape[1], cell.width)
    history = learn(cell, net, X, y)
    seen = history.losses[:-1:RECORD]
    means = np.convolve(seen, np.full(AVERAGE, 1 / AVERAGE), "valid")
    at = np.unique(np.linspace(0, len(means) - 1, min(POINTS, len(means))).astype(int))
    with jax.default_matmul_precision("highest"):
        outputs, outside = (np.asarray(_outputs(net, history.params, rows)) for rows in (X, X_test))
    return xr.Dataset(
        {
            "loss": ("step", means[at]),
            "train": 0.25 * float(np.mean((outputs - y) ** 2)),
            "worst": float(np.abs(outputs - y).max()),
            "test": float(np.mean((outside - y_test) ** 2)),
            "start": 0.25 * float(np.mean(y**2)),
            "guess": float(np.var(y_test)),
            "least": _least(cell, y),
        }
    ).assign_coords(step=RECORD * (at + AVERAGE - 1))


def _least(cell: Memory, y: Float[np.ndarray, " n"]) -> float:
    """The least f of any quadratic form of the principal directions, for three layers; else NaN. Time O(nd⁴)."""
    if cell.setting != "features":
        return math.nan
    X = _directions(cell)[0]
    first, second = np.triu_indices(X.shape[1])
    with jax.enable_x64(True):
        Q = jnp.linalg.qr(jnp.asarray(X[:, first] * X[:, second]))[0]
        return 0.25 * float(jnp.mean((y - Q @ (Q.T @ y)) ** 2))


def claims(results: Results) -> list[Claim]:
    return mnist_report.claims(results.where(Memory), results.where(Position))


def draw(results: Results) -> list[Figure]:
    return mnist_report.figures(results.where(Memory, decay=DECAY))


def learn(
    cell: Memory,
    net: QuadraticNet,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> History:
    """Adam on batches, its rate falling. A step takes 512dr operations and moves 7dr floats at least."""
    key = jax.random.key(cell.seed)
    start = net.init(scale=START, key=jax.random.fold_in(key, 3))
    steps = cell.epochs * (len(X) // BATCH)
    schedule = optax.exponential_decay(cell.rate, steps // FALLS, cell.decay, staircase=True)

    def objective(W: Array, X: Array, y: Array) -> Array:
        return 0.25 * jnp.mean((net(W, X) - y) ** 2)

    return train(
        objective, start, X, y, optimiser=optax.adam(schedule), steps=steps, batch=BATCH,
        key=jax.random.fold_in(key, 4), precision=cell.precision, progress=progress,
    )  # fmt: skip


@jax.jit
def _block(net: QuadraticNet, W: Array, X: Array) -> Array:
    return net(W, X)


def _outputs(net: QuadraticNet, W: Array, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
    """Ten thousand rows at a time: 120 MB of activations."""
    rows = range(0, len(X), 10_000)
    return np.concatenate([np.asarray(_block(net, W, jnp.asarray(X[i : i + 10_000], W.dtype))) for i in rows])


def _samples(cell: Memory) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training and test inputs, as the quadratic layers see them, and labels. Test labels are true ones."""
    X, y, X_test, y_test = _inputs(cell)
    if cell.labels == "random":
        of_labels = jax.random.fold_in(jax.random.key(cell.seed), 1)
        y = np.asarray(jax.random.randint(of_labels, y.shape, 0, 10), np.float64)
    return (X, y), (X_test, y_test)


def _inputs(cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What the quadratic layers see, and true labels; for training, and to test on."""
    X, y, X_test, y_test = _directions(cell)
    if cell.setting == "features":
        scale = PAPER_SCALE if cell.data == "mnist" else (3 * cell.features) ** -0.25
        of_features = jax.random.fold_in(jax.random.key(cell.seed), 2)
        net = PolynomialNet.gaussian(
            dim=cell.directions, features=cell.features, width=2, power=2, scale=scale, key=of_features
        )
        R = np.asarray(net.R, np.float64)
        X, X_test = (X @ R.T) ** 2, (X_test @ R.T) ** 2
    return X, y, X_test, y_test


def _directions(cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images, or their principal directions, and true labels; the noise is on those for training alone."""
    if cell.data == "mnist":
        train_set, test_set = (data.mnist(split=split) for split in ("train", "test"))
        (X, y), (X_test, y_test) = tuple(train_set), tuple(test_set)
    else:
        X, y = data.digits()
        order = np.asarray(jax.random.permutation(jax.random.key(0), len(X)))  # neighbours are by one hand
        X, y = X[order], y[order]
        X_test, y_test = X[cell.samples :], y[cell.samples :]
    X, y = X[: cell.samples], y[: cell.samples]
    if cell.setting == "features":
        _, vectors = np.linalg.eigh(X.T @ X)
        top = vectors[:, : -cell.directions - 1 : -1]
        X, X_test = X @ top, X_test @ top
    of_noise = jax.random.fold_in(jax.random.key(cell.seed), 0)
    return (
        data.distributions.smooth_inputs(X, NOISE[cell.setting] / math.sqrt(X.shape[1]), key=of_noise),
        y,
        X_test,
        y_test,
    )
