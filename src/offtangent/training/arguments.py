"""What training asks of its data, of the parameters to start from and of its settings."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from offtangent._arguments import check_function
from offtangent._checks import check_count, check_key, check_numbers, require
from offtangent._errors import InputError, a_kind


def check_data(name: str, values: object) -> None:
    """Refuse what is no array of real numbers with a row for each sample; arrays of JAX are not copied."""
    array = values if isinstance(values, jax.Array) else check_numbers(values, name)
    require(
        array.ndim != 0 and len(array) and not jnp.iscomplexobj(array),
        f"{name} is of shape {array.shape} and dtype {array.dtype}: expected real numbers, and a row for each of "
        "some samples.",
    )


def check_params(params: PyTree) -> None:
    """Refuse parameters unless they are a pytree of floating-point numbers or arrays of them, one at least."""
    leaves = jax.tree.leaves(params)
    require(
        leaves and all(isinstance(leaf, int | float) or eqx.is_array_like(leaf) for leaf in leaves),
        "params holds no arrays of numbers alone: give the parameters to start from, net.origin, say.",
    )
    require(
        all(jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.inexact) for leaf in leaves),
        "params holds whole numbers, which gradient descent cannot move: give them as floats.",
    )


def check_finite(name: str, values: Float[Array, "n *rest"]) -> None:
    """NaN in the data would look like a training that diverges."""
    sound = np.asarray(jnp.isfinite(values).all(axis=tuple(range(1, values.ndim))))
    if not sound.all():
        rows = np.flatnonzero(~sound)
        raise InputError(
            f"{name} is NaN or infinite in {len(rows)} of its {len(sound)} rows, first in row {rows[0]} (counted from "
            "0). Drop those rows, of X and of y, or fill in what is missing."
        )


def check_settings(
    n: int,
    labels: int,
    steps: int,
    batch: int | None,
    key: Key[Array, ""] | None,
    record: Mapping[str, Callable[[Any], Array]] | None,
    record_at: Int[np.ndarray, "t"] | None,
) -> None:
    """Refuse numbers of rows, steps and batches that do not fit together, and records that cannot be made."""
    require(labels == n, f"{n} inputs but {labels} labels: every input needs one.")
    check_count("steps", steps, least=0)
    if batch is not None:
        check_count("batch", batch)
    if batch is not None and batch > n:
        raise InputError(f"batch={batch}: it must lie between 1 and the {n} rows, or be None for the full batch.")
    if batch is not None and key is None:
        raise InputError("Minibatches are drawn at random: give key=jax.random.key(seed).")
    if key is not None:
        check_key(key)
    if record is not None and not isinstance(record, Mapping):
        raise InputError(f"record is {a_kind(record)}: expected functions of the parameters by name, {{'name': f}}.")
    for name, function in (record or {}).items():
        if not callable(function):
            raise InputError(f"record[{name!r}] is {a_kind(function)}: expected a function of the parameters.")
    if record_at is not None and np.asarray(record_at).dtype.kind not in "iu" and np.size(record_at):
        raise InputError(f"record_at={record_at!r}: expected numbers of steps, whole ones.")
    require(
        record_at is None or np.ndim(record_at) == 1, f"record_at={record_at!r}: expected several steps, [0, 10], say."
    )
    if (record is None) != (record_at is None):
        raise InputError("record (what) and record_at (when) go together: give both or neither.")
    if record_at is not None and len(record_at) and not 0 <= np.min(record_at) <= np.max(record_at) <= steps:
        raise InputError(f"record_at holds steps outside 0..{steps}.")


def check_manner(precision: str, progress: object) -> None:
    """Refuse a precision that JAX does not have, and a progress that cannot be told."""
    try:
        with jax.default_matmul_precision(precision):
            pass
    except ValueError as error:
        raise InputError(f"precision={precision!r} is none of JAX's, such as 'highest': {error}.") from None
    if progress is not None:
        check_function("progress", progress, "of the steps done and the steps in all")
