"""The training loop: any objective, any optax optimiser, full batch or minibatch.

Steps run in blocks inside one program, compiled once. Between blocks the host looks for divergence, saves a
checkpoint and reports progress. An objective may return several losses: the gradient is that of their sum. So
to train k networks of one shape at once (seeds, labels), stack them into an f with outputs (n, k): the gradients
do not mix, and every network has its own curve.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from offtangent._checks import check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.special.losses import check_loss, check_loss_labels
from offtangent.training.arguments import check_data, check_finite, check_manner, check_params, check_settings
from offtangent.training.checkpoint import fingerprint, load, save
from offtangent.training.divergence import refuse_divergence, warn_of_a_rise
from offtangent.training.randomised import MeanLoss

BLOCK = 256  # steps between two looks of the host
CHUNK = 16  # steps without a branch: on a GPU every branch makes the host wait for it

Objective = Callable[[Any, Array, Array], Array]


@dataclass(frozen=True)
class Checkpoint:
    """Where the state of a run is kept, and after how many seconds it is written again."""

    path: Path
    seconds: float = 60.0

    def __post_init__(self) -> None:
        given = isinstance(self.path, str | PathLike)
        require(given, f"path is {a_kind(self.path)}: expected the path of a file.")
        object.__setattr__(self, "path", Path(self.path))
        check_real("seconds", self.seconds)
        require(self.seconds >= 0, f"seconds={self.seconds:g}: expected zero or more.")


@dataclass(frozen=True)
class History:
    """What a run left behind. `losses[k]` is the objective before step k (on its batch), the last one after all."""

    losses: Float[np.ndarray, "steps_and_one *k"] = field(repr=False)
    steps: Int[np.ndarray, "t"] = field(repr=False)
    records: Mapping[str, np.ndarray] = field(repr=False)  # name → what was recorded at `steps`, shape (t, ...)
    params: PyTree = field(repr=False)
    state: PyTree = field(repr=False)  # of the optimiser
    resumed_at: int = 0  # the step a checkpoint was taken up at


class _Carry(eqx.Module):
    params: PyTree
    state: PyTree
    records: PyTree


def train(
    objective: Objective,
    params: PyTree,
    X: Float[np.ndarray | Array, "n *d"],
    y: Float[np.ndarray | Array, "n *k"],
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    batch: int | None = None,
    key: Key[Array, ""] | None = None,
    shuffle: bool = True,
    record: Mapping[str, Callable[[Any], Array]] | None = None,
    record_at: Int[np.ndarray, "t"] | None = None,
    checkpoint: Checkpoint | None = None,
    precision: str = "highest",
    progress: Callable[[int, int], None] | None = None,
) -> History:
    """Minimise `objective(params, X, y)` for a number of steps with any optax optimiser.

    Steps run in blocks of 256 inside one program, which is compiled once. The objective may return several losses, of
    several networks that are trained at once: the gradient is that of their sum. A step costs a gradient of the
    objective on its rows; memory holds the data, the parameters, the optimiser's state and what is recorded.

    It warns where the network has `most_samples`, as quadratic ones do, and these are fewer than n. The network is
    looked for at `objective.f`, where `HalfSquares` and `MeanLoss` keep it; an objective that is a plain function
    cannot be looked into, and passes. It also warns where the loss rose to more than ten times the first one and came
    down again, as it does at rates far beyond the stable one; `losses` shows when. Under `training.grids.Bounded`,
    where networks of a grid are expected to be lost, it does not.

    Args:
        objective: What is to be made small, a function of (params, X, y) that returns a number or an array of losses,
            such as `HalfSquares(f)` or `MeanLoss(f, loss)`.
        params: The parameters to start from, a pytree of floating-point arrays, such as `net.origin`.
        X: The inputs, one for each entry of the first axis.
        y: The labels, one row for each input.
        optimiser: An optax optimiser, such as `optax.sgd(0.1)`.
        steps: The number of steps; zero looks at the initial parameters only.
        batch: The number of rows that a step sees, drawn without replacement within an epoch (a rest that does not
            fill a batch is left out until the next shuffle). Without it every step sees all of them.
        key: The JAX key that draws the batches; it is needed with `batch`, where they are shuffled.
        shuffle: Whether the batches of every epoch are drawn anew. If not, they are the rows in their order, the same
            ones in every epoch, and a rest that does not fill a batch is never seen.
        record: Quantities to be recorded, functions of the parameters by name.
        record_at: The steps k before which they are evaluated; `steps` itself is the end.
        checkpoint: A `training.loop.Checkpoint(path)`: the state is written there from time to time, and a later call
            with the same arguments goes on from it with the same numbers.
        precision: The precision of matrix products, by JAX's names: "highest", "tensorfloat32" and others.
        progress: A function that is called after every block with the steps done and the steps in all.

    Returns:
        A `History`: its `losses[k]` is the objective before step k, on that step's rows, and the last one is after all
        steps; `params` are the final parameters, `state` is the optimiser's, and `records` holds what was recorded.

    Raises:
        Diverged: If the loss is lost; the error carries the step and the largest stable learning rate.
        InputError: If the data are not finite or do not fit together, if the objective cannot be evaluated on them or
            is not finite before the first step, or if a checkpoint is damaged or of another run. Each message says
            what to do.

    >>> from offtangent.training import HalfSquares
    >>> X, y = np.array([[1.0], [2.0]]), np.array([2.0, 4.0])
    >>> run = train(HalfSquares(lambda w, X: X @ w), np.zeros(1), X, y, optimiser=optax.sgd(0.1), steps=2)
    >>> run.losses.round(3).tolist(), float(run.params[0])
    ([10.0, 2.5, 0.625], 1.5)
    """
    key = jax.random.key(0) if key is None and not (batch and shuffle) else key  # all rows, or rows in order: no draws
    _check(objective, params, X, y, optimiser, steps, batch, key, record, record_at, checkpoint, precision, progress)
    n = len(X)
    _warn_beyond_capacity(objective, n)
    record = dict(record or {})
    at = np.unique(np.asarray([] if record_at is None else record_at, dtype=np.int64))
    params = jax.tree.map(jnp.asarray, params)
    X, y = (jnp.asarray(rows, jax.tree.leaves(params)[0].dtype) for rows in (X, y))
    check_finite("X", X)
    check_finite("y", y)

    with jax.default_matmul_precision(precision):
        carry = _Carry(params, optimiser.init(params), _buffers(record, params, len(at)))
        losses = np.zeros((steps + 1, *_loss_shape(objective, params, X[:batch], y[:batch])))
        done, print_ = 0, ""
        slots = np.full(steps + 1, -1)
        slots[at] = np.arange(len(at))

        def arguments(done: int) -> tuple[Any, ...]:
            ks = np.arange(done, done + BLOCK)
            slot = np.where(ks <= steps, slots[np.minimum(ks, steps)], -1)
            return objective, optimiser, record, carry, X, y, key, batch, ks, slot, np.asarray(steps), shuffle

        if checkpoint is not None:
            print_ = _identity(arguments(0), steps, at, precision)
            if checkpoint.path.exists():
                carry, losses, done = load(checkpoint.path, print_, carry)
        resumed_at, saved = min(done, steps), time.monotonic()
        while done < steps + 1:  # the last "step" only looks at the final parameters
            carry, block = _block(*arguments(done))
            stop = min(done + BLOCK, steps + 1)
            losses[done:stop] = np.asarray(block)[: stop - done]
            refuse_divergence(losses, done, stop, n // batch if batch else 1, objective, params, X, y)
            done = stop
            if checkpoint is not None and (done > steps or time.monotonic() - saved >= checkpoint.seconds):
                save(checkpoint.path, print_, carry, losses, done)
                saved = time.monotonic()
            if progress is not None:
                progress(min(done, steps), steps)

    warn_of_a_rise(losses, n // batch if batch else 1, objective, params, X, y)
    records = {name: np.asarray(values) for name, values in carry.records.items()}
    return History(losses, at, records, carry.params, carry.state, resumed_at)


def _buffers(record: dict[str, Callable[[Any], Array]], params: PyTree, count: int) -> dict[str, Array]:
    """Room for what is recorded at `count` steps."""
    shapes = eqx.filter_eval_shape(lambda p: {name: f(p) for name, f in record.items()}, params)
    return {name: jnp.zeros((count, *shape.shape), shape.dtype) for name, shape in shapes.items()}


def _identity(arguments: tuple[Any, ...], steps: int, at: Int[np.ndarray, "t"], precision: str) -> str:
    """The fingerprint by which a run knows its own checkpoint.

    The compiled program stands for objective, optimiser (with its rates) and precision.
    """
    objective, optimiser, record, carry, X, y, key, batch, *_ = arguments
    program = _block.lower(*arguments).as_text()  # type: ignore[attr-defined]
    arrays = eqx.filter((objective, optimiser, record), eqx.is_array)
    return fingerprint(program, carry, arrays, (X, y), key, steps, batch, at, sorted(record), precision)


@eqx.filter_jit
def _block(
    objective: Objective,
    optimiser: optax.GradientTransformation,
    record: dict[str, Callable[[Any], Array]],
    carry: _Carry,
    X: Array,
    y: Array,
    key: Array,
    batch: int | None,
    ks: Int[Array | np.ndarray, "b"],
    slots: Int[Array | np.ndarray, "b"],
    steps: Int[Array | np.ndarray, ""],
    shuffle: bool,
) -> tuple[_Carry, Float[Array, "b *k"]]:
    ks, slots, steps = jnp.asarray(ks), jnp.asarray(slots), jnp.asarray(steps)
    part = _batches(key, len(X), batch, ks, steps, shuffle)

    def write(carry: _Carry, slot: Array) -> _Carry:
        values = {name: f(carry.params) for name, f in record.items()}
        records = jax.tree.map(lambda buffer, value: buffer.at[slot].set(value), carry.records, values)
        return eqx.tree_at(lambda c: c.records, carry, records)

    def total(params: PyTree, xs: Array, ys: Array) -> tuple[Array, Array]:
        losses = objective(params, xs, ys)
        return jnp.sum(losses), losses

    def step(carry: _Carry, at: tuple[Array, Array, Array | None]) -> tuple[_Carry, Array]:
        k, slot, rows = at
        if record:
            carry = jax.lax.cond(slot >= 0, write, lambda c, _: c, carry, slot)
        xs, ys = (X, y) if rows is None else (X[rows], y[rows])
        gradient, loss = jax.grad(total, has_aux=True)(carry.params, xs, ys)
        extra = {"value": jnp.sum(loss)} if isinstance(optimiser, optax.GradientTransformationExtraArgs) else {}
        updates, state = optimiser.update(gradient, carry.state, carry.params, **extra)
        moved = optax.apply_updates(carry.params, updates), state
        # The last steps of a chunk may lie beyond the end: they move nothing.
        params, state = jax.tree.map(partial(jnp.where, k < steps), moved, (carry.params, carry.state))
        return _Carry(params, state, carry.records), loss

    def chunk(number: Array, at: tuple[_Carry, Array]) -> tuple[_Carry, Array]:
        carry, losses = at
        inputs = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, number * CHUNK, CHUNK), (ks, slots, part))
        carry, fresh = jax.lax.scan(step, carry, inputs)
        return carry, jax.lax.dynamic_update_slice_in_dim(losses, fresh, number * CHUNK, 0)

    shape = eqx.filter_eval_shape(objective, carry.params, X[:batch], y[:batch])
    losses = jnp.zeros((len(ks), *shape.shape), shape.dtype)
    chunks = (jnp.minimum(steps + 1 - ks[0], len(ks)) + CHUNK - 1) // CHUNK
    return jax.lax.fori_loop(0, chunks, chunk, (carry, losses))


def _batches(
    key: Array, n: int, batch: int | None, ks: Array, steps: Array, shuffled: bool
) -> Int[Array, "b rows"] | None:
    """The rows of every step's batch: a slice of its epoch's shuffle, of those epochs that the steps up to the end see.

    Unless they are shuffled, of the rows as they stand.

    Made before the steps, so that these have no branch for the first one of an epoch.
    """
    if batch is None:
        return None
    per_epoch = n // batch
    if not shuffled:
        return (ks % per_epoch)[:, None] * batch + jnp.arange(batch)
    first = ks[0] // per_epoch
    seen = jnp.minimum(ks[-1], steps) // per_epoch - first + 1

    def shuffle(number: Array, orders: Array) -> Array:
        return orders.at[number].set(jax.random.permutation(jax.random.fold_in(key, first + number), n))

    orders = jax.lax.fori_loop(0, seen, shuffle, jnp.zeros(((len(ks) - 1) // per_epoch + 2, n), jnp.arange(n).dtype))
    inside = (ks % per_epoch)[:, None] * batch + jnp.arange(batch)
    return orders[(ks // per_epoch - first)[:, None], inside]


def _check(
    objective: Objective,
    params: PyTree,
    X: Any,
    y: Any,
    optimiser: optax.GradientTransformation,
    steps: int,
    batch: int | None,
    key: Key[Array, ""] | None,
    record: Mapping[str, Callable[[Any], Array]] | None,
    record_at: Int[np.ndarray, "t"] | None,
    checkpoint: Checkpoint | None,
    precision: str,
    progress: Callable[[int, int], None] | None,
) -> None:
    for name, values in (("X", X), ("y", y)):
        check_data(name, values)
    check_settings(len(X), len(y), steps, batch, key, record, record_at)
    if not isinstance(optimiser, optax.GradientTransformation):
        raise InputError(f"optimiser={optimiser!r} is no optax optimiser; give, for example, optax.sgd(0.1).")
    if isinstance(objective, MeanLoss):
        check_loss(objective.loss)
        check_loss_labels(objective.loss, y)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        raise InputError(f"checkpoint is {a_kind(checkpoint)}: expected training.loop.Checkpoint(path).")
    check_manner(precision, progress)
    check_params(params)


def _warn_beyond_capacity(objective: Objective, n: int) -> None:
    most = getattr(getattr(objective, "f", None), "most_samples", None)
    if most is not None and n > most:
        warnings.warn(
            f"The loss may have no zero: {n} samples are more than the {most} to which this network can give any "
            f"labels. Give {most} at most, or take a larger network: theory.ge_wang_zhao.memorisation says which.",
            stacklevel=3,  # whoever called train
        )


def _loss_shape(objective: Objective, params: PyTree, X: Array, y: Array) -> tuple[int, ...]:
    """The shape of the losses, and a plain word where the objective cannot be called at all."""
    try:
        found = eqx.filter_eval_shape(objective, params, X, y)
        if not isinstance(found, jax.ShapeDtypeStruct):
            raise TypeError(f"it gave {a_kind(found)}, and not a number")
        return found.shape
    except TypeError as error:
        raise InputError(
            f"objective(params, X, y) cannot be evaluated on X of shape {X.shape} and y of shape {y.shape}: "
            f"{str(error).rstrip('.')}. "
            "An objective takes parameters, inputs and labels; HalfSquares(f) makes one from f(params, X)."
        ) from error
