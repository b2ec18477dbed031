"""The networks of Section 5.2 of Bai & Lee, many at once: every seed, every n and every λ in one program."""

import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int8, Key

from offtangent.networks import TwoLayer
from offtangent.papers.bai_lee._targets import is_xor, measure
from offtangent.special.losses import Loss, logistic, pseudo_huber
from offtangent.taylor.two_layer import OnInputs
from offtangent.theory.bai_lee.signs import flip, quadratic_expansion, random_signs
from offtangent.training import train
from offtangent.training.randomised import add_penalty, fresh_signs

BOUNDS = (2.0, 3.5, math.inf)  # B: λ = B⁻⁸/10 costs a tenth where ‖W‖_{2,4} = B
START = 0.03  # of m^(−1/4), the length of a neuron's movement at the start
RATES = {"quadratic": 0.1, "randomised": 0.1, "plain": 1.0}  # times √m, but for the plain network
SLOWER = {"4": 0.5}  # the rate times √m, for a target with heavier tails
MOMENTUM = 0.9
SIGNS = 16  # under which a randomised network is tested
ENTRIES = 2**31  # of the table samples × neurons of all networks trained at once: 8 GiB, and a few such tables

Rows = tuple[Float[np.ndarray, "_ d"], Float[np.ndarray, " _"]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Inputs and labels of one seed."""

    train: Rows
    choose: Rows
    test: Rows
    key: Key[Array, ""]


def best(
    chosen: Float[np.ndarray, "s n k"], tested: Float[np.ndarray, "s n k"], trained: Float[np.ndarray, "s n k"]
) -> dict[str, Float[np.ndarray, "s n"]]:
    """The regulariser with the least loss on the samples that choose it, and how it did on the others."""
    at = chosen.argmin(axis=2)
    pick = {name: np.take_along_axis(v, at[:, :, None], axis=2)[:, :, 0] for name, v in
            (("test", tested), ("train", trained))}  # fmt: skip
    return {**pick, "regulariser": at.astype(float)}


class _Objective(eqx.Module):
    """The mean losses of all networks, each over its own first rows: shape (seeds, sizes, strengths)."""

    models: OnInputs | TwoLayer  # one for each seed
    shares: Float[Array, "n_sizes n"]  # 1/n for the first n rows
    loss: Loss = eqx.field(static=True)
    learner: str = eqx.field(static=True)

    def __call__(self, W: Float[Array, "s k l d m"], X: Float[Array, "n s d"], y: Float[Array, "n s"]) -> Array:
        def one(W: Array, model: Any, X: Array, y: Array, share: Array) -> Array:
            if self.learner == "quadratic":
                return share @ self.loss(y, model.terms(W)[2])
            ends = (W, -W) if self.learner == "randomised" else (W,)
            return sum((share @ self.loss(y, model(end, X)) for end in ends), start=jnp.zeros(())) / len(ends)

        over_strengths = jax.vmap(one, (0, None, None, None, None))
        over_sizes = jax.vmap(over_strengths, (0, None, None, None, 0))
        return eqx.filter_vmap(over_sizes, in_axes=(0, eqx.if_array(0), 1, 1, None))(W, self.models, X, y, self.shares)


def curve(cell: Any, problems: list[Problem]) -> dict[str, Float[np.ndarray, "s n"]]:
    """Train them all, as many seeds at once as memory has room for; choose λ, test."""
    one = cell.width * max(cell.samples) * len(cell.samples) * len(BOUNDS) * (2 if cell.learner == "randomised" else 1)
    at_once = max(1, ENTRIES // one)
    parts = [_curve(cell, problems[i : i + at_once]) for i in range(0, len(problems), at_once)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _curve(cell: Any, problems: list[Problem]) -> dict[str, Float[np.ndarray, "s n"]]:
    nets = eqx.filter_vmap(lambda key: _network(cell, key))(jnp.stack([one.key for one in problems]))
    X, y = (np.stack(part, axis=1).astype(np.float32) for part in zip(*(one.train for one in problems), strict=True))
    models = nets
    if cell.learner == "quadratic":
        models = eqx.filter_vmap(lambda net, X: quadratic_expansion(net).on(X), in_axes=(eqx.if_array(0), 1))(
            nets, jnp.asarray(X)
        )
    sizes = np.array(cell.samples)
    shares = (np.arange(len(X)) < sizes[:, None]) / sizes[:, None]
    loss = logistic if is_xor(cell.task) else pseudo_huber
    objective = _Objective(models, jnp.asarray(shares, jnp.float32), loss, cell.learner)
    start = jax.vmap(lambda key: _start(cell, key))(jnp.stack([jax.random.fold_in(one.key, 11) for one in problems]))
    history = train(
        objective, start, X, y, optimiser=_optimiser(cell, problems[0].key), steps=cell.steps, precision=cell.precision
    )
    signs = random_signs(cell.width, SIGNS, key=jax.random.key(0)) if cell.learner == "randomised" else None

    def tested(part: list[Rows]) -> Float[np.ndarray, "s n k"]:
        each = (
            _tested(_of(nets, i), history.params[i], jnp.asarray(X), jnp.asarray(y), signs, cell.task, cell.learner)
            for i, (X, y) in enumerate(part)
        )
        return np.stack([np.asarray(values) for values in each])

    return best(tested([one.choose for one in problems]), tested([one.test for one in problems]), history.losses[-1])


def _network(cell: Any, key: Key[Array, ""]) -> TwoLayer:
    return TwoLayer.symmetric(
        dim=cell.dim, width=cell.width, radius=math.sqrt(cell.dim), activation="relu3", key=jax.random.fold_in(key, 10)
    )


def _start(cell: Any, key: Key[Array, ""]) -> Float[Array, "k l d m"]:
    """Next to the saddle W = 0, the same for every n and λ."""
    W = START * cell.width**-0.25 / math.sqrt(cell.dim) * jax.random.normal(key, (cell.dim, cell.width))
    return jnp.broadcast_to(W, (len(cell.samples), len(BOUNDS), *W.shape))


def _optimiser(cell: Any, key: Key[Array, ""]) -> optax.GradientTransformation:
    scale = 1.0 if cell.learner == "plain" else SLOWER.get(cell.task, 1.0) * math.sqrt(cell.width)
    rate = scale * RATES[cell.learner]
    schedule = optax.cosine_decay_schedule(rate, cell.steps)
    strengths = jnp.array([0.0 if math.isinf(bound) else 0.1 * bound**-8 for bound in BOUNDS])
    steps = optax.chain(add_penalty(strengths), optax.sgd(schedule, momentum=MOMENTUM, nesterov=True))
    return fresh_signs(steps, key=jax.random.fold_in(key, 12)) if cell.learner == "randomised" else steps


def _of(nets: TwoLayer, index: int) -> TwoLayer:
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, nets)


@eqx.filter_jit
def _tested(
    net: TwoLayer,
    W: Float[Array, "k l d m"],
    X: Float[Array, "t d"],
    y: Float[Array, "t"],
    signs: Int8[Array, "r m"] | None,
    task: str,
    learner: str,
) -> Float[Array, "k l"]:
    """What each network's test reports; a randomised one's, on average over signs."""
    X, y = X.astype(W.dtype), y.astype(W.dtype)

    def one(W: Float[Array, "d m"]) -> Array:
        if learner == "quadratic":
            return measure(task, y, quadratic_expansion(net).on(X).terms(W)[2])
        if signs is None:
            return measure(task, y, net(W, X))
        both = jnp.concatenate([signs, -signs])
        return jnp.mean(jax.lax.map(lambda sign: measure(task, y, net(flip(W, sign), X)), both))

    flat = jax.lax.map(one, W.reshape(-1, *W.shape[2:]))
    return flat.reshape(W.shape[:2])
