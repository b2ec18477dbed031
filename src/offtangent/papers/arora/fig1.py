r"""Figure 1: gradient descent learns true labels faster than random ones, and H∞ says why.

A network with m hidden ReLU neurons, initialised at size κ, is trained by gradient descent with rate η on n inputs
with labels y; u(k) are its outputs after k steps and Φ(k) = ½‖y − u(k)‖² its loss. Theorem 4.1, eq. (8): when m is
large and κ small, $\|y-u(k)\|^2$ follows $\sum_i (1-\eta\lambda_i)^{2k} (v_i^T y)^2$, where $\lambda_i$, $v_i$ are the
eigenvalues and eigenvectors of the kernel matrix $H^\infty$. So labels along its top eigenvectors are learnt first.
True labels lie there, random labels lie everywhere, and the eigenvector of $\lambda_{\min} = \lambda_0$ is the worst
label of all.

Three kinds of cells: Training draws the figure on one data set; Widths measures how far a network of finite width
strays from eq. (8) and from $H^\infty$ (Lemma C.3); Inside is small enough (n = 2) to meet the hypotheses of
Theorems 3.1 and 4.1 with all their constants set to one; δ is their probability of failure.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int

from offtangent import data
from offtangent.kernels import Gram, relu_hidden
from offtangent.kernels.finite import tangent_gram
from offtangent.lab import Claim, Cost, Results
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.papers.arora import fig1_report
from offtangent.report import Figure
from offtangent.theory import largest_stable_rate, predict_residual, steps_to, worst_case_labels
from offtangent.theory.arora.widths import required_width
from offtangent.training import HalfSquares, train
from offtangent.training.loop import History

KINDS = ("true", "random", "worst")
SETS = {"digits": data.digits, "mnist": data.mnist, "cifar10": data.cifar10}
TOP = 10  # eigenvectors whose share of the labels is compared
DRAWS = 200  # random label vectors for the share that chance puts into the top eigenvectors
FLOOR = 1e-8  # of the first loss: below it, float32 decides


@dataclass(frozen=True)
class Training:
    """Figure 1 on one data set: the spectrum of H∞, and gradient descent on three kinds of labels."""

    data: str
    samples: int  # the first ones of classes 0 and 1, in file order
    width: int
    seeds: int  # networks, each with random labels of its own
    steps: tuple[int, int, int]  # for true, random and worst-case labels; these are capped, or take for ever
    level: float = 0.1  # labels are learnt when the loss is down to this fraction
    scale: float = 1e-2  # κ
    rate: float = 1.0  # η is the smaller of this and 1/λ_max
    precision: str = "highest"


@dataclass(frozen=True)
class Widths:
    """Random inputs on the sphere, labels ±1: the distance from eq. (8) and from H∞ at one width and one κ."""

    width: int
    scale: float
    samples: int
    dim: int
    seeds: int
    steps: int


@dataclass(frozen=True)
class Inside:
    """Orthonormal inputs (λ₀ = 1/2), so few that the theorems' own width and rate can be used."""

    samples: int
    delta: float
    epsilon: float
    seeds: int
    steps: int


@dataclass(frozen=True)
class Config:
    trainings: tuple[Training, ...]
    widths: tuple[int, ...]
    scales: tuple[float, ...] = (0.01, 0.1, 1.0)
    samples: int = 40
    dim: int = 20
    steps: int = 120
    inside_seeds: int = 10


PAPER: dict[str, Any] = {"rate": 1e-3, "precision": "tensorfloat32"}
PROFILES = {
    "smoke": Config(
        trainings=(
            Training("digits", samples=360, width=2000, seeds=3, steps=(60, 60, 40)),
            Training("mnist", samples=200, width=300, seeds=3, steps=(30, 30, 20)),
        ),
        widths=(100, 600, 4000),
        scales=(0.01, 1.0),
        samples=20,
        dim=10,
        steps=60,
        inside_seeds=2,
    ),
    "laptop": Config(
        trainings=(
            Training("digits", samples=360, width=2000, seeds=3, steps=(300, 1000, 300)),
            Training("mnist", samples=400, width=2000, seeds=3, steps=(40, 100, 40)),
        ),
        widths=(100, 316, 1000, 3162, 10_000),
        scales=(0.01, 1.0),
    ),
    "paper": Config(
        trainings=(
            Training("mnist", 10_000, 10_000, seeds=2, steps=(5000, 42_000, 2000), **PAPER),
            # On CIFAR a tenth of the loss would take 4·10⁴ steps with true labels, 10⁵ with random ones: half must do.
            Training("cifar10", 10_000, 10_000, seeds=2, steps=(10_000, 10_000, 1000), level=0.5, **PAPER),
        ),
        widths=(1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
        samples=60,
        dim=30,
        steps=400,
        inside_seeds=20,
    ),
}


def cells(config: Config) -> list[Training | Widths | Inside]:
    """All cells; a data set that is not on this machine is left out, and its claims say so."""
    found = [training for training in config.trainings if training.data not in absent(config)]
    widths = [
        Widths(width, scale, config.samples, config.dim, seeds=10, steps=config.steps)
        for width in config.widths
        for scale in config.scales
    ]
    return [*found, *widths, Inside(samples=2, delta=0.9, epsilon=0.3, seeds=config.inside_seeds, steps=40)]


def absent(config: Config) -> list[str]:
    return [training.data for training in config.trainings if not data.fetch.available(training.data)]


def datasets(cell: Training | Widths | Inside) -> tuple[str, ...]:
    return (cell.data,) if isinstance(cell, Training) else ()


def cost(cell: Training | Widths | Inside) -> Cost:
    """Four matrix products of n × d × m a step would be 8ndm; here the input needs no gradient, so 4ndm, twice over
    for what is elementwise.
    """
    if isinstance(cell, Training):
        dim = {"digits": 64, "mnist": 784, "cifar10": 3072}[cell.data]
        size = cell.samples * cell.width * cell.seeds
        return Cost(sum(cell.steps) * size * (4 * dim + 100) + 12 * cell.samples**3, 12 * size + 32 * cell.samples**2)
    width = cell.width if isinstance(cell, Widths) else _prescribed(cell)[0]
    dim = cell.dim if isinstance(cell, Widths) else cell.samples
    size = cell.samples * width * cell.seeds
    return Cost(2 * cell.steps * size * (4 * dim + 100), 16 * size)


def run(cell: Training | Widths | Inside) -> xr.Dataset:
    if isinstance(cell, Training):
        return _run_training(cell)
    return _run_widths(cell) if isinstance(cell, Widths) else _run_inside(cell)


def claims(results: Results) -> list[Claim]:
    config = PROFILES[results.profile]
    return [
        *fig1_report.training_claims(results.where(Training), config.trainings),
        *fig1_report.width_claims(results.where(Widths)),
        *fig1_report.inside_claims(results.where(Inside)),
    ]


def draw(results: Results) -> list[Figure]:
    return [
        *fig1_report.training_figures(results.where(Training)),
        *fig1_report.width_figures(results.where(Widths)),
    ]


def _run_training(cell: Training) -> xr.Dataset:
    X, y = SETS[cell.data](classes=(0, 1), samples=cell.samples)
    n = len(y)
    spectrum = Gram(relu_hidden, X).eigh()
    rate = min(cell.rate, 0.5 * largest_stable_rate(spectrum))
    labels = (
        np.tile(y[:, None], cell.seeds),
        _random_labels(n, cell.seeds),
        np.tile(worst_case_labels(spectrum)[:, None], cell.seeds),
    )
    nets = _networks(cell.seeds, X.shape[1], cell.width, cell.scale)
    optimiser = optax.sgd(rate)
    shown = np.concatenate([[0], np.unique(np.geomspace(1, max(cell.steps), 150).round().astype(int))])
    rank = np.unique(np.geomspace(1, n, 300).round().astype(int))
    kinds = []
    for targets, steps in zip(labels, cell.steps, strict=True):
        history = _descend(nets, X, targets, optimiser, steps, cell.precision)
        curves = _curves(cell, history, spectrum, targets, rate, shown)
        curves["projection"] = ("rank", np.sqrt(spectrum.energy(targets[:, 0]))[rank - 1])
        curves["share"] = ("seed", _shares(spectrum, targets))
        kinds.append(xr.Dataset(curves))
    return xr.concat(kinds, "kind").assign(
        eigenvalue=("rank", spectrum.values[rank - 1]),
        largest=spectrum.values[0],
        smallest=spectrum.values[-1],
        rate=rate,
        chance=("draw", _shares(spectrum, _random_labels(n, DRAWS, first=1000))),
        samples=n,
        top=TOP,
    ).assign_coords(kind=list(KINDS), step=shown, rank=rank)  # fmt: skip


def _curves(
    cell: Training,
    history: History,
    spectrum: Spectrum,
    targets: Float[np.ndarray, "n s"],
    rate: float,
    shown: Int[np.ndarray, "t"],
) -> dict[str, tuple[str | tuple[str, str], np.ndarray]]:
    """The measured and the predicted loss at the steps shown, and what the claims need of all steps."""
    losses, common = history.losses, min(cell.steps)
    reached = (shown < len(losses))[:, None]
    predicted = [predict_residual(spectrum, column, rate=rate, steps=shown).norm ** 2 / 2 for column in targets.T]
    foreseen = [steps_to(spectrum, column, rate=rate, loss=cell.level) for column in targets.T]
    learnt = losses <= cell.level * losses[0]
    stretch = max(1, common // 20)  # one step's drop would be lost in float32 where λ₀ is small
    live = losses[stretch:] > FLOOR * losses[0]
    drop = 1 - (losses[stretch:] / losses[:-stretch]) ** (1 / stretch)
    return {
        "loss": (("step", "seed"), np.where(reached, losses[np.minimum(shown, len(losses) - 1)], np.nan)),
        "predicted": (("step", "seed"), np.where(reached, np.stack(predicted, axis=1), np.nan)),
        "steps_to_level": ("seed", np.where(learnt.any(axis=0), learnt.argmax(axis=0), np.inf)),
        "predicted_steps_to_level": ("seed", np.array(foreseen, dtype=float)),
        "smallest_drop": ("seed", np.where(live, drop, np.inf).min(axis=0)),  # a step, on average over a stretch
        "decay": ("seed", -np.log(losses[common] / losses[0]) / common),  # a step, over a stretch common to all
        "steps_run": ("seed", np.full(targets.shape[1], len(losses) - 1.0)),
    }


def _run_widths(cell: Widths) -> xr.Dataset:
    X = data.sphere(cell.samples, cell.dim, key=jax.random.key(0))
    y = data.labels.random_labels(cell.samples, key=jax.random.key(1))
    H = Gram(relu_hidden, X)
    spectrum = H.eigh()
    rate = 0.5 * largest_stable_rate(spectrum)
    nets = _networks(cell.seeds, cell.dim, cell.width, cell.scale)
    predicted = predict_residual(spectrum, y, rate=rate, steps=np.arange(cell.steps + 1)).norm
    start = _outputs(nets, X)
    optimiser = optax.sgd(rate)  # one object, so that both runs share their compiled program
    found = {}
    for name, targets in {"raw": np.tile(y[:, None], cell.seeds), "subtracted": y[:, None] + start}.items():
        losses = _descend(nets, X, targets, optimiser, cell.steps, "highest").losses
        found[name] = np.abs(np.sqrt(2 * losses) - predicted[:, None]).max(axis=0)
    finite = _tangent_grams(nets, X)
    return xr.Dataset(
        {
            "deviation": ("seed", found["raw"]),
            "subtracted": ("seed", found["subtracted"]),  # the same with the initial output taken away
            "start": ("seed", np.linalg.norm(start, axis=0)),
            "gram": ("seed", np.linalg.norm(finite - H.dense(), axis=(1, 2))),
            "smallest": spectrum.values[-1],
        }
    )


def _run_inside(cell: Inside) -> xr.Dataset:
    width, scale, rate = _prescribed(cell)
    X = np.eye(cell.samples)
    y = data.labels.random_labels(cell.samples, key=jax.random.key(1))
    spectrum = Gram(relu_hidden, X).eigh()
    nets = _networks(cell.seeds, cell.samples, width, scale)
    losses = _descend(nets, X, np.tile(y[:, None], cell.seeds), optax.sgd(rate), cell.steps, "highest").losses
    predicted = predict_residual(spectrum, y, rate=rate, steps=np.arange(cell.steps + 1)).norm
    live = losses[:-1] > FLOOR * losses[0]
    return xr.Dataset(
        {
            "deviation": ("seed", np.abs(np.sqrt(2 * losses) - predicted[:, None]).max(axis=0)),
            "worst_ratio": ("seed", np.where(live, losses[1:] / losses[:-1], 0.0).max(axis=0)),
            "allowed_ratio": 1 - rate * spectrum.values[-1] / 2,
            "width": width,
            "scale": scale,
            "rate": rate,
        }
    )


def _prescribed(cell: Inside) -> tuple[int, float, float]:
    """Width, κ and rate of Theorem 4.1 (which asks for more than Theorem 3.1) with constants one."""
    smallest = 0.5  # of H∞ = I/2
    scale = cell.epsilon * cell.delta / cell.samples**0.5
    width = required_width(cell.samples, scale=scale, smallest=smallest, delta=cell.delta, epsilon=cell.epsilon)
    return int(np.ceil(width)), scale, smallest / cell.samples**2


def _shares(spectrum: Spectrum, labels: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "c"]:
    return np.array([spectrum.share(column, TOP) for column in labels.T])


def _random_labels(n: int, count: int, first: int = 0) -> Float[np.ndarray, "n c"]:
    return np.stack([data.labels.random_labels(n, key=jax.random.key(first + seed)) for seed in range(count)], axis=1)


def _networks(seeds: int, dim: int, width: int, scale: float) -> TwoLayer:
    """`seeds` networks of one shape, stacked."""
    keys = jax.random.split(jax.random.key(2), seeds)
    return eqx.filter_vmap(lambda key: TwoLayer.gaussian(dim=dim, width=width, scale=scale, key=key))(keys)


class _Stacked(eqx.Module):
    """Stacked networks as one f(W, X) with a column of outputs for each."""

    nets: TwoLayer

    def __call__(self, W: Float[Array, "s d m"], X: Float[Array, "n d"]) -> Float[Array, "n s"]:
        return eqx.filter_vmap(lambda net, w: net(w, X), out_axes=1)(self.nets, W)


def _descend(
    nets: TwoLayer,
    X: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n s"],
    optimiser: optax.GradientTransformation,
    steps: int,
    precision: str,
) -> History:
    origin = jax.numpy.zeros_like(nets.W0)
    return train(HalfSquares(_Stacked(nets)), origin, X, targets, optimiser=optimiser, steps=steps, precision=precision)


def _outputs(nets: TwoLayer, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n s"]:
    with jax.default_matmul_precision("highest"):
        return np.asarray(
            _Stacked(nets)(jax.numpy.zeros_like(nets.W0), jax.numpy.asarray(X, nets.W0.dtype)), np.float64
        )


def _tangent_grams(nets: TwoLayer, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "s n n"]:
    inputs = jax.numpy.asarray(X, nets.W0.dtype)
    return np.asarray(eqx.filter_vmap(lambda net: tangent_gram(net, net.origin, inputs))(nets), np.float64)
