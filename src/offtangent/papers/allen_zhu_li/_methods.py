"""The nine methods of Figure 2: three networks by gradient descent, their tangent and their conjugate kernels.

Networks take the steps of Appendix A: batches of 50, momentum 0.9, weight decay, a rate that falls to a tenth halfway.
Rates and decays are a grid, with all seeds one program, and the grid is widened until the best mean error on samples of
their own lies inside, and then refined around it where asked for: rates in steps of 2 and decays in steps of 3. The
kernels have the closed form of (3.1), with λ chosen on the same samples.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from offtangent.data.hierarchy import Hierarchy, Parities, parity_hierarchy
from offtangent.kernels import empirical_conjugate, empirical_ntk
from offtangent.lab.hypotheses import Hypothesis
from offtangent.networks import FullyConnected, ResNet
from offtangent.networks.resnet import Hidden
from offtangent.papers.allen_zhu_li import _regressions
from offtangent.training import search, train
from offtangent.training.grids import Bounded, Search, grid_sgd, refine
from offtangent.training.loop import History

NETWORKS = ("3resnet", "3layer", "2layer")
KINDS = ("", " (NTK)", " (last)")
METHODS = tuple(network + kind for kind in KINDS for network in NETWORKS)
ALPHA = 0.3
EPOCHS = 400  # the paper's, with the first rate
PAPER_SAMPLES = 1000  # of Figure 2(a), the only N that the paper gives
BATCH = 50
RATES = {"3resnet": (0.08, 0.32, 1.28), "3layer": (0.08, 0.32, 1.28), "2layer": (0.32, 1.28, 5.12)}
DECAYS, COARSE = (0.0, 1e-4, 1e-3, 1e-2), (0.0, 1e-3, 1e-2)  # where the grid is refined, and where it is not
CHOOSING, TESTS = 1000, 2000
AT_ONCE = 1000  # samples on which errors are measured in one go
LOST = 100.0  # times E‖y‖²/2: a loss above it is no longer looked at
TARGETS = ("small", "version 1", "later")


def target(name: str, alpha: float, beta: float) -> Hierarchy:
    """βF + αG(F): the paper's with 8 outputs, that of its later versions with 15, and one of 4 in 16 dimensions."""
    if name != "small":
        return parity_hierarchy(alpha=alpha, beta=beta, later=name == "later")
    base = Parities(16, tuple((2 * i, 2 * i + 1) for i in range(4)), np.ones(4))
    return Hierarchy(base, Parities(4, ((0, 1, 2, 3),) * 4, np.ones(4)), alpha, beta)


def sizes(function: Hierarchy) -> tuple[int, int]:
    """The dimension of the inputs and the number of outputs."""
    assert isinstance(function.base, Parities)
    return function.base.dim, function.base.outputs


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples of one seed for training, for choosing, for testing; nested in N."""

    function: Hierarchy
    samples: int
    seed: int

    def rows(self, part: str) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n k"]]:
        count = {"train": self.samples, "choose": CHOOSING, "test": TESTS}[part]
        rng = np.random.default_rng([self.seed, ("train", "choose", "test").index(part)])
        X = 1.0 - 2.0 * rng.integers(0, 2, (count, sizes(self.function)[0]))
        return X, self.function(X)


def network(name: str, function: Hierarchy, width: int, *, key: Any) -> ResNet | FullyConnected:
    """One of the three, at the initialisation of Appendix A."""
    dim, outputs = sizes(function)
    if name == "3resnet":
        return ResNet.experiment(dim=dim, outputs=outputs, width=width, key=key)
    return FullyConnected.experiment(dim=dim, outputs=outputs, width=width, layers=int(name[0]), key=key)


def distance(outputs: Float[Array, "n k"], labels: Float[Array, "n k"]) -> Float[Array, ""]:
    """The mean of ‖out − y‖²."""
    return jnp.mean(jnp.sum((outputs - labels) ** 2, axis=-1))


class HalfDistances(eqx.Module):
    """½ E‖out − y‖² of stacked networks: axes rate, decay, seed; inputs and labels have the seeds second."""

    nets: ResNet | FullyConnected  # one for each seed

    def __call__(self, params: Any, X: Float[Array, "n s d"], y: Float[Array, "n s k"]) -> Float[Array, "r w s"]:
        return 0.5 * stacked(self.nets, params, X, y)


def stacked(
    nets: ResNet | FullyConnected,
    params: Any,
    X: Float[Array | np.ndarray, "n s d"],
    y: Float[Array | np.ndarray, "n s k"],
) -> Float[Array, "r w s"]:
    """E‖out − y‖² of every network."""

    def one(params: Any, net: Any, X: Array, y: Array) -> Array:
        return distance(net(params, X), y)

    over_seeds = eqx.filter_vmap(one, in_axes=(0, eqx.if_array(0), 1, 1))
    return jax.vmap(jax.vmap(lambda each: over_seeds(each, nets, X, y)))(params)


def descend(
    name: str, problems: list[Problem], *, width: int, epochs: int, precision: str = "highest", refined: bool = False
) -> Search:
    """Train one of the three networks over a widened grid; tables `train`, `choose` and `test` with a seed axis."""
    nets, rows = together(name, problems, width)
    return sweep(
        HalfDistances(nets), eqx.filter_vmap(lambda net: net.origin)(nets), initial(nets), rows["train"],
        lambda params: {part: errors(nets, params, *pair) for part, pair in rows.items()},
        rates=RATES[name], epochs=epochs, precision=precision, refined=refined,
    )  # fmt: skip


def settled(inside: bool) -> Hypothesis:
    """That the rate and the decay chosen lie inside their grid, so that the search was not too narrow."""
    return Hypothesis(
        "rate and decay chosen",
        "inside their grid" if inside else "on its edge",
        "=",
        "inside their grid",
        "Appendix A",
    )


def trained(epochs: int) -> Hypothesis:
    """That there are as many epochs as Figure 2 has."""
    return Hypothesis("epochs with the first rate", epochs, "≥", EPOCHS, "Appendix A")


def steps_of(samples: int, epochs: int) -> int:
    """Steps of the epochs with the first rate and of as many with a tenth of it."""
    return 2 * epochs * (samples // min(BATCH, samples))


def looks_at(steps: int, looks: int) -> Int[np.ndarray, " t"]:
    """From the first step to the end, evenly in the logarithm."""
    return np.unique(np.round(np.geomspace(1, steps + 1, looks)).astype(np.int64) - 1)


def sweep(
    objective: Callable[..., Array],
    start: Any,
    weights: Any,
    rows: tuple[Float[np.ndarray, "n s d"], Float[np.ndarray, "n s k"]],
    measure: Callable[[Any], Mapping[str, Array | np.ndarray]],
    *,
    rates: tuple[float, ...],
    epochs: int,
    precision: str = "highest",
    refined: bool = False,
    spread: Callable[[Float[np.ndarray, "r w"]], Any] = lambda decays: decays,
    record: dict[str, Callable[[Any], Array]] | None = None,
    looks: int = 0,
) -> Search:
    """Train stacked networks, the seeds in front, over a widened grid, chosen by what `measure` calls `choose`.

    `weights` is what the decay acts on besides the displacements, and `spread` gives the decays of their parts, if not
    all have the same. What is recorded has the looks as its last axis.
    `refined`: the rates and decays halfway between the best and its neighbours are tried as well.
    Time: 12·epochs·N times the entries of a network's matrices, for each rate, decay and seed.
    """

    def evaluate(rates: tuple[float, ...], decays: tuple[float, ...]) -> dict[str, np.ndarray]:
        history = trained_grid(
            objective, start, weights, rows, rates, decays, epochs, precision, spread=spread, record=record, looks=looks
        )
        seen = {name: np.moveaxis(values, 0, -1) for name, values in history.records.items()}
        with jax.default_matmul_precision("highest"):
            return {name: np.asarray(table) for name, table in measure(history.params).items()} | seen

    return searched(evaluate, rates, refined)


def searched(
    evaluate: Callable[[tuple[float, ...], tuple[float, ...]], dict[str, np.ndarray]],
    rates: tuple[float, ...],
    refined: bool,
) -> Search:
    """The grid, widened, and refined where asked for, by what `evaluate` calls `choose`."""
    found = search(evaluate, rates, DECAYS if refined else COARSE, by="choose")
    return refine(found, evaluate) if refined else found


def trained_grid(
    objective: Callable[..., Array],
    start: Any,
    weights: Any,
    rows: tuple[Float[np.ndarray, "n s d"], Float[np.ndarray, "n s k"]],
    rates: tuple[float, ...],
    decays: tuple[float, ...],
    epochs: int,
    precision: str,
    *,
    spread: Callable[[Float[np.ndarray, "r w"]], Any] = lambda decays: decays,
    record: dict[str, Callable[[Any], Array]] | None = None,
    looks: int = 0,
) -> History:
    """Train the networks of one grid, as `sweep` has them."""
    X, y = rows
    batch, steps = min(BATCH, len(X)), steps_of(len(X), epochs)
    schedule = optax.piecewise_constant_schedule(1.0, {steps // 2: 0.1})
    bounded = Bounded(objective, LOST * float((y**2).sum(axis=-1).mean()) / 2)
    each_rate, each_decay = np.meshgrid(rates, decays, indexing="ij")
    stacked = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(rates), len(decays), *leaf.shape)), start)
    return train(
        bounded,
        stacked,
        X,
        y,
        steps=steps,
        batch=batch,
        key=jax.random.key(0),
        precision=precision,
        optimiser=grid_sgd(each_rate, spread(each_decay), weights, schedule=schedule),
        record=record,
        record_at=looks_at(steps, looks) if looks else None,
    )


_errors = eqx.filter_jit(stacked)


def errors(
    nets: ResNet | FullyConnected, params: Any, X: Float[np.ndarray, "n s d"], y: Float[np.ndarray, "n s k"]
) -> Float[np.ndarray, "r w s"]:
    """E‖out − y‖² of every network, so many samples at a time: the neurons of all networks and samples are too many."""
    starts = range(0, len(X), AT_ONCE)
    parts = [(X[at : at + AT_ONCE], y[at : at + AT_ONCE]) for at in starts]
    return np.sum([len(part[0]) / len(X) * np.asarray(_errors(nets, params, *part)) for part in parts], axis=0)


def initial(nets: Any) -> Any:
    """W⁽⁰⁾ and the rest, in the form of the displacements: what weight decay acts on besides."""
    return nets.hidden0 if isinstance(nets, FullyConnected) else Hidden(nets.W0, nets.V0)


def together(name: str, problems: list[Problem], width: int) -> tuple[Any, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """The networks of all seeds, and their samples with the seeds as second axis."""
    keys = jnp.stack([jax.random.fold_in(jax.random.key(one.seed), 1) for one in problems])
    nets = eqx.filter_vmap(lambda key: network(name, problems[0].function, width, key=key))(keys)
    rows = {}
    for part in ("train", "choose", "test"):
        X, y = zip(*(one.rows(part) for one in problems), strict=True)
        rows[part] = (np.stack(X, axis=1).astype(np.float32), np.stack(y, axis=1).astype(np.float32))
    return nets, rows


def regress(name: str, kind: str, problem: Problem, *, width: int) -> dict[str, float]:
    """The kernel of one network at its initialisation, in closed form: errors, and whether λ lies inside its grid.

    The tangent kernel couples the outputs: a system of Nk unknowns, time (Nk)³/3 for each λ. The conjugate one has N.
    """
    net: Any = network(name, problem.function, width, key=jax.random.fold_in(jax.random.key(problem.seed), 1))
    (X, Y), (C, to_choose), (T, to_test) = (problem.rows(part) for part in ("train", "choose", "test"))
    pairs = (X,), (C, X), (T, X)
    with jax.default_matmul_precision("highest"):
        if kind == " (last)":
            K, across, further = (empirical_conjugate(net.features, net.origin, *pair) for pair in pairs)
            at_start = [np.zeros_like(one) for one in (Y, to_choose, to_test)]
        else:
            K, across, further = (_matrix(empirical_ntk(net, net.origin, *pair).dense()) for pair in pairs)
            at_start = [np.asarray(net(net.origin, jnp.asarray(one, jnp.float32)), float) for one in (X, C, T)]
    columns = Y.shape[1] if kind == " (last)" else 1
    wanted, chooses = ((y - f).reshape(-1, columns) for y, f in zip((Y, to_choose), at_start, strict=False))
    path = _regressions.path(K, wanted, across, chooses)
    k = sizes(problem.function)[1]
    moved = _regressions.applied(further, path.betas).reshape(len(path.betas), -1, k)
    errors = ((moved + at_start[2] - to_test) ** 2).sum(axis=2).mean(axis=1)
    return {"test": float(errors[path.chosen]), "best": float(errors.min()), "inside": float(path.inside)}


def _matrix(K: Float[np.ndarray, "n p k k"]) -> Float[np.ndarray, "nk pk"]:
    """All pairs (sample, output), samples first."""
    n, p, k, _ = K.shape
    return K.transpose(0, 2, 1, 3).reshape(n * k, p * k)


def unlearnt(function: Hierarchy) -> float:
    """kα²: the error of one who knows βF and nothing of αG(F)."""
    return sizes(function)[1] * function.alpha**2


def flops(cell: Any, function: Hierarchy) -> float | int:
    """Of one network's training, or of one kernel's regression."""
    (d, k), m, n = sizes(function), cell.width, cell.samples
    if cell.method.endswith("(last)"):
        return 4 * n**3 + 2 * (n + CHOOSING + TESTS) * n * m
    if cell.method.endswith("(NTK)"):
        return 4 * (n * k) ** 3 + 2 * (n + CHOOSING + TESTS) * n * k**2 * m
    entries = {"3resnet": m * (d + 3 * k), "3layer": m * (d + m + k), "2layer": m * (d + k)}[cell.method]
    grid = math.prod(len(one) for one in (RATES[cell.method], DECAYS))
    return 2 * cell.epochs * n * 6 * entries * grid
