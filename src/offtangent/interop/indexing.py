"""PyTorch's operations at chosen places in JAX: tables, gather and scatter, sorting."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.interop.operations import Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)


def _rows_of(table: Any, rows: Any) -> Any:
    """Rows of a table; NaN for those that it does not have, which are told where they are known."""
    try:
        beyond = int(jnp.sum((rows < 0) | (rows >= len(table))))
    except jax.errors.ConcretizationTypeError:
        beyond = 0
    require(not beyond, f"{beyond} of the inputs lie outside of a table of {len(table)} rows, counted from 0.")
    return table.at[rows].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


@rule("aten.embedding.default")
def embedding(table: Any, rows: Any, padding_idx: int = -1, by_frequency: bool = False, sparse: bool = False) -> Any:
    """Rows of a table; that of `padding_idx` has no gradient."""
    del by_frequency, sparse
    found = _rows_of(table, rows)
    return found if padding_idx < 0 else jnp.where((rows == padding_idx)[..., None], lax.stop_gradient(found), found)


@rule("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    table: Any,
    rows: Any,
    offsets: Any,
    by_frequency: bool = False,
    mode: int = 0,
    sparse: bool = False,
    weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Sums (mode 0) or means (1) of rows of a table, over bags that begin at given offsets."""
    del by_frequency, sparse
    require(mode in (0, 1), "EmbeddingBag takes the largest entries: only its modes 'sum' and 'mean' are translated.")
    require(padding_idx < 0, "EmbeddingBag has a padding_idx, which is not translated.")
    bags = len(offsets) - 1 if include_last_offset else len(offsets)
    bag = jnp.searchsorted(offsets[:bags], jnp.arange(len(rows)), side="right") - 1
    found = _rows_of(table, rows)
    found = found if weights is None else found * weights[:, None]
    total = jax.ops.segment_sum(found, bag, bags)
    if mode == 1:
        count = jax.ops.segment_sum(jnp.ones(len(rows), total.dtype), bag, bags)
        total = total / jnp.maximum(count, 1)[:, None]
    return total, None, None, None


def _check_no_mask(indices: Sequence[Any]) -> None:
    if any(one is not None and one.dtype == bool for one in indices):
        raise InputError(
            "A mask selects entries here, and how many is known only with the data: JAX needs shapes beforehand. Write "
            "torch.where(mask, x, 0) in place of x[mask]."
        )


def _places(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if one is None else one for one in indices)


@rule("aten.index.Tensor")
def index(x: Any, indices: Sequence[Any]) -> Any:
    """x[i, j, …], where an index may be absent."""
    _check_no_mask(indices)
    return x[_places(indices)]


@rule("aten.index_put.default")
def with_indexed(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Give x with other numbers, or with something added, at x[i, j, …]; a mask with one number is a choice of two."""
    first = indices[0]
    if len(indices) == 1 and first is not None and first.dtype == bool and values.ndim == 0 and not accumulate:
        return jnp.where(first.reshape(first.shape + (1,) * (x.ndim - first.ndim)), values, x)
    _check_no_mask(indices)
    at = x.at[_places(indices)]
    return at.add(values) if accumulate else at.set(values)


@rule("aten.index_select.default")
def index_select(x: Any, axis: int, places: Any) -> Any:
    """Some places of an axis."""
    return jnp.take(x, places, axis=axis)


@rule("aten.gather.default")
def gather(x: Any, axis: int, places: Any, sparse_grad: bool = False) -> Any:
    """One entry along an axis for each entry of `places`, whose other axes may be shorter than those of x."""
    del sparse_grad
    axis = axis % x.ndim
    kept = tuple(slice(None) if at == axis else slice(length) for at, length in enumerate(places.shape))
    return jnp.take_along_axis(x[kept], places, axis)


def _each_place(x: Any, axis: int, places: Any) -> tuple[Any, ...]:
    """Indices of all axes of x for each entry of `places`, which tells those of one of them."""
    grid = [jnp.arange(length).reshape((-1,) + (1,) * (x.ndim - 1 - at)) for at, length in enumerate(places.shape)]
    grid[axis % x.ndim] = places
    return tuple(grid)


def _cut_to(source: Any, places: Any) -> Any:
    return source[tuple(slice(length) for length in places.shape)]


@rule("aten.scatter.src")
def scatter(x: Any, axis: int, places: Any, source: Any) -> Any:
    """Give x with entries of another array put at places along an axis."""
    return x.at[_each_place(x, axis, places)].set(_cut_to(source, places))


@rule("aten.scatter.value")
def scatter_one(x: Any, axis: int, places: Any, value: Any) -> Any:
    """Give x with one number put at places along an axis."""
    return x.at[_each_place(x, axis, places)].set(value)


@rule("aten.scatter_add.default")
def scatter_add(x: Any, axis: int, places: Any, source: Any) -> Any:
    """Give x with entries of another array added at places along an axis."""
    return x.at[_each_place(x, axis, places)].add(_cut_to(source, places))


@rule("aten.scatter_reduce.two")
def scatter_reduce(x: Any, axis: int, places: Any, source: Any, how: str, include_self: bool = True) -> Any:
    """Give x combined with entries of another array at places along an axis."""
    known = {"sum": "add", "amax": "max", "amin": "min"}
    require(how in known and include_self, f"scatter_reduce with reduce={how!r} is not translated.")
    return getattr(x.at[_each_place(x, axis, places)], known[how])(_cut_to(source, places))


def _taken(x: Any, places: Any, axis: int) -> tuple[Any, Any]:
    return jnp.take_along_axis(x, places, axis), places


@rule("aten.sort.default")
def sort(x: Any, axis: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """The entries along an axis in order, and where they were."""
    return _taken(x, jnp.argsort(x, axis, descending=descending, stable=True), axis)


@rule("aten.sort.stable")
def sort_stably(x: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """The same: ours keeps equal entries in their order anyway."""
    del stable
    return sort(x, dim, descending)


@rule("aten.topk.default")
def top(x: Any, k: int, axis: int = -1, largest: bool = True, ordered: bool = True) -> tuple[Any, Any]:
    """The k largest, or smallest, entries along an axis, and where they were."""
    del ordered
    return _taken(x, lax.slice_in_dim(jnp.argsort(x, axis, descending=largest), 0, k, axis=axis % x.ndim), axis)


@rule("aten.median.dim")
def median(x: Any, axis: int, keepdims: bool = False) -> tuple[Any, Any]:
    """The entry in the middle along an axis, the lower one of two, and where it was."""
    middle = (x.shape[axis] - 1) // 2
    places = lax.slice_in_dim(jnp.argsort(x, axis), middle, middle + 1, axis=axis % x.ndim)
    found = _taken(x, places, axis)
    return found if keepdims else (found[0].squeeze(axis), found[1].squeeze(axis))


def _extreme(x: Any, places: Any, axis: int, keepdims: bool) -> tuple[Any, Any]:
    value, places = _taken(x, places, axis)
    return (value, places) if keepdims else (value.squeeze(axis), places.squeeze(axis))


@rule("aten.max.dim")
def largest(x: Any, axis: int, keepdims: bool = False) -> tuple[Any, Any]:
    """The largest entry along an axis and where it is; of several the first, which alone has the gradient."""
    return _extreme(x, jnp.argmax(x, axis, keepdims=True), axis, keepdims)


@rule("aten.min.dim")
def smallest(x: Any, axis: int, keepdims: bool = False) -> tuple[Any, Any]:
    """The smallest entry along an axis and where it is; of several the first, which alone has the gradient."""
    return _extreme(x, jnp.argmin(x, axis, keepdims=True), axis, keepdims)


@rule("aten.argmax.default")
def place_of_largest(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the largest entry is, along an axis or of all."""
    return jnp.argmax(x, axis, keepdims=keepdims)


@rule("aten.argmin.default")
def place_of_smallest(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the smallest entry is, along an axis or of all."""
    return jnp.argmin(x, axis, keepdims=keepdims)
