r"""Appendix G: the quadratic Taylor model of a standard network follows it where its linearisation falls behind.

Around its random initialisation $\theta_0$ a network has the linear model $f_0 + f_L$ (its NTK) and the quadratic one
$f_0 + f_L + f_Q$, with $f_L = Df(\theta_0)[\theta - \theta_0]$ and $f_Q = \frac12 D^2f(\theta_0)[\theta - \theta_0]^2$.
"For a standard architecture and data distribution, the quadratic Taylor expansion better approximates the optimization
dynamics and achieves lower test loss than the linearization (NTK) does."

One kind of cell: a data set, a network and a seed. The network and both models start at $\theta_0$ and take the same
steps of stochastic gradient descent, on the same batches of the mean squared loss with labels ±1. After every epoch
they are tested; along the network's own path its linear and quadratic terms are tested as well.

The authors train 4 convolutions of 512 channels on 10 000 images of cats and horses, at a rate of 0.005, for 100 epochs
of batches of 64 in one order, once; `paper` does so with five seeds. (It takes all ten classes of CIFAR-10. The shipped
record is of an earlier `paper`: aeroplanes and automobiles, shuffled batches, 50 epochs, two seeds.) The other profiles
have few channels and few images: 8 × 8 digits in one order, and at `laptop` aeroplanes and automobiles of 16 × 16. The
speed in function space is the rate times the number of channels. Theirs is 2.56; the small profiles go at about 1,
beyond which networks this narrow die. A two-layer MLP runs beside the digits' convolutions: it is wide for its task,
moves little, and both of its models stay close.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Key, PyTree

from offtangent import data
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import MLP
from offtangent.networks.standard import ConvNet
from offtangent.papers.nichani import taylor_report
from offtangent.report import Figure
from offtangent.taylor import expand
from offtangent.taylor.expansion import TaylorModel
from offtangent.training import train

MODELS = ("network", "linear", "quadratic")
PARTS = ("linear part", "quadratic part", "both")
CLASSES = {"digits": (3, 8), "cifar10": (0, 1)}  # of digits, two that are hard to tell apart
CATS_AND_HORSES = (3, 7)
COLOURS = {"cifar10": ((125.307, 122.950, 113.865), (62.993, 62.089, 66.705))}  # means and deviations, as in the code
SHAPES = {"digits": (8, 8, 1), "cifar10": (32, 32, 3)}
TEST_ROWS = 250  # images tested at once


@dataclass(frozen=True)
class Race:
    """One network and its two Taylor models on one data set."""

    data: str
    network: str  # "cnn" or "mlp"
    size: int  # channels, or width
    depth: int  # convolutions, or hidden layers
    samples: int
    tests: int
    epochs: int
    rate: float
    seed: int  # of the initialisation and of the batches
    batch: int = 64
    shrink: int = 1  # by this factor, every side of an image
    precision: str = "highest"
    shuffle: bool = True  # of the batches, in every epoch
    classes: tuple[int, ...] = ()  # the first is +1; by default those of CLASSES


@dataclass(frozen=True)
class Config:
    races: tuple[Race, ...]


def _seeds(seeds: int, **words: Any) -> tuple[Race, ...]:
    return tuple(Race(seed=seed, **words) for seed in range(seeds))


DIGITS: dict[str, Any] = {"data": "digits", "samples": 200, "tests": 150, "batch": 50, "shuffle": False}
PROFILES = {
    "smoke": Config(races=_seeds(5, network="cnn", size=8, depth=2, rate=0.1, epochs=20, **DIGITS)),
    "laptop": Config(
        races=(
            *_seeds(5, network="cnn", size=16, depth=2, rate=0.06, epochs=40, **DIGITS),
            *_seeds(5, network="mlp", size=100, depth=1, rate=0.02, epochs=40, **DIGITS),
            *_seeds(
                3, data="cifar10", network="cnn", size=8, depth=4, rate=0.1, epochs=14, samples=320, tests=300,
                batch=32, shrink=2,
            ),
        )
    ),
    "paper": Config(
        races=_seeds(
            5, data="cifar10", network="cnn", size=512, depth=4, rate=0.005, epochs=100, samples=10_000, tests=2000,
            precision="tensorfloat32", shuffle=False, classes=CATS_AND_HORSES,
        )
    ),
}  # fmt: skip


def cells(config: Config) -> list[Race]:
    missing = absent(config)
    return [cell for cell in config.races if cell.data not in missing]


def absent(config: Config) -> list[str]:
    return [name for name in dict.fromkeys(cell.data for cell in config.races) if not data.fetch.available(name)]


def datasets(cell: Race) -> tuple[str, ...]:
    return (cell.data,)


def cost(cell: Race) -> Cost:
    """A gradient is three evaluations, of f one, of the linear model two and of the quadratic one four."""
    height, width, colours = _shape(cell)
    if cell.network == "mlp":
        numbers, products = cell.size, height * width * colours * cell.size
    else:
        sides = [height * width // 4**k for k in range(cell.depth)]
        numbers = sum(sides) * cell.size
        products = 9 * cell.size * (sides[0] * colours + sum(sides[1:]) * cell.size)
    once = 2 * products + 20 * numbers
    looks = (cell.epochs + 1) * cell.tests * 11
    return Cost((21 * cell.epochs * cell.samples + looks) * once, 4 * numbers * (30 * cell.batch + 8 * TEST_ROWS))


def run(cell: Race) -> xr.Dataset:
    X, y, X_test, y_test = _problem(cell)
    net = _network(cell)
    per_epoch = cell.samples // cell.batch
    # A race is run in float32, also where the caller's default is float64: it draws the same network then.
    with jax.enable_x64(False):
        start = _start(net, jax.random.key(cell.seed))
        models = _Models(net, expand(net, start, 1), expand(net, start, 2))
        history = train(
            _Objective(models), (start,) * len(MODELS), X, y,
            optimiser=_optimiser(cell.rate), steps=cell.epochs * per_epoch, batch=cell.batch,
            key=jax.random.fold_in(jax.random.key(cell.seed), 1), shuffle=cell.shuffle, precision=cell.precision,
            record={"outputs": _Tests(models, jnp.asarray(X_test, jnp.float32))},
            record_at=np.arange(cell.epochs + 1) * per_epoch,
        )  # fmt: skip
    seen = history.records["outputs"].astype(np.float64)  # epoch, test image, three outputs and three terms
    outputs, terms = seen[..., :3], seen[..., 3:]
    polynomials = np.cumsum(terms, axis=-1)[..., 1:]
    parts = np.stack([polynomials[..., 0], terms[..., 2], polynomials[..., 1]], axis=-1)
    trained = history.losses[:-1].reshape(cell.epochs, per_epoch, len(MODELS)).mean(axis=1)
    return xr.Dataset(
        {
            "train": (("epoch", "model"), np.concatenate([history.losses[:1], trained])),  # means over an epoch's steps
            "test": (("epoch", "model"), ((outputs - y_test[:, None]) ** 2).mean(axis=1)),
            "right": (("epoch", "model"), (outputs * y_test[:, None] > 0).mean(axis=1)),
            "distance": (("epoch", "model"), _rms(outputs - outputs[..., :1])),  # of its outputs to the network's
            "part_right": (("epoch", "part"), (parts * y_test[:, None] > 0).mean(axis=1)),
            "part_size": (("epoch", "part"), _rms(np.concatenate([terms[..., 1:], polynomials[..., 1:]], axis=-1))),
            "left_out": (("epoch", "order"), _rms(outputs[..., :1] - polynomials)),  # of f at its own parameters
        }
    ).assign_coords(model=list(MODELS), part=list(PARTS), order=[1, 2], epoch=np.arange(cell.epochs + 1))


def claims(results: Results) -> list[Claim]:
    return taylor_report.claims(results.where(Race))


def draw(results: Results) -> list[Figure]:
    return taylor_report.figures(results.where(Race))


class _Models(eqx.Module):
    """A network and its Taylor models around one start."""

    network: MLP | ConvNet
    linear: TaylorModel
    quadratic: TaylorModel

    def __call__(self, params: PyTree, X: Float[Array, "n *d"]) -> Float[Array, "n 3"]:
        """The outputs of all three, each at its own parameters."""
        models = (self.network, self.linear, self.quadratic)
        return jnp.stack([model(one, X) for model, one in zip(models, params, strict=True)], axis=1)


class _Objective(eqx.Module):
    models: _Models

    def __call__(self, params: PyTree, X: Float[Array, "n *d"], y: Float[Array, "n"]) -> Float[Array, "3"]:
        return jnp.mean((self.models(params, X) - y[:, None]) ** 2, axis=0)


class _Tests(eqx.Module):
    """On every test image the three outputs, and at the network's parameters the terms f₀, f_L and f_Q.

    One program gives the terms at all three parameters: the linear model is f₀ + f_L at its own, the quadratic the sum.
    """

    models: _Models
    X: Float[Array, "t *d"]

    def __call__(self, params: PyTree) -> Float[Array, "t 6"]:
        each = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)

        def one(x: Array) -> Array:
            output = self.models.network(params[0], x[None])
            terms = jax.lax.map(lambda at: jnp.concatenate(self.models.quadratic.terms(at, x[None])), each)
            return jnp.concatenate([output, terms[1, :2].sum()[None], terms[2].sum()[None], terms[0]])

        return jax.lax.map(one, self.X, batch_size=TEST_ROWS)


@eqx.filter_jit
def _start(net: MLP | ConvNet, key: Key[Array, ""]) -> PyTree:
    return net.init(key=key)


@cache
def _optimiser(rate: float) -> optax.GradientTransformation:
    """One object for all seeds, so that they share their compiled program."""
    return optax.sgd(rate)


def _network(cell: Race) -> MLP | ConvNet:
    shape = _shape(cell)
    return (
        MLP(int(np.prod(shape)), cell.size, cell.depth)
        if cell.network == "mlp"
        else ConvNet(cell.size, shape, cell.depth)
    )


def _shape(cell: Race) -> tuple[int, int, int]:
    height, width, colours = SHAPES[cell.data]
    return height // cell.shrink, width // cell.shrink, colours


Split = tuple[Float[np.ndarray, "n *d"], Float[np.ndarray, "n"], Float[np.ndarray, "t *d"], Float[np.ndarray, "t"]]


def _problem(cell: Race) -> Split:
    """Training and test images, every colour standardised, as the network takes them: colours last, or in rows."""
    classes, count = cell.classes or CLASSES[cell.data], cell.samples
    if cell.data == "digits":
        X, y = data.digits(classes=classes, samples=count + cell.tests, unit=False)
        X, y, X_test, y_test = X[:count], y[:count], X[count:], y[count:]
    else:
        X, y = data.cifar10(classes=classes, samples=count, unit=False)
        X_test, y_test = data.cifar10(classes=classes, samples=cell.tests, unit=False, split="test")
    mean, deviation = COLOURS.get(cell.data, (X.mean(), X.std()))
    X, X_test = ((_images(cell, rows) - mean) / deviation for rows in (X, X_test))
    if cell.network == "mlp":
        X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    return X, y, X_test, y_test


def _images(cell: Race, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n h w c"]:
    """Planes of colours to images with colours last, and means over squares of `shrink` pixels a side."""
    (height, width, colours), by = _shape(cell), cell.shrink
    planes = rows.reshape(len(rows), colours, height, by, width, by)
    return np.moveaxis(planes.mean(axis=(3, 5)), 1, -1)


def _rms(values: Float[np.ndarray, "e t k"]) -> Float[np.ndarray, "e k"]:
    return np.sqrt((values**2).mean(axis=1))
