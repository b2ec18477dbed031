"""PyTorch's views of a tensor in JAX: shapes, slices, parts, and putting them together again."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from offtangent.interop.operations import Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)


@rule("aten.sym_size.int")
def size(x: Any, axis: int) -> int:
    """The length of one axis, a plain number: in JAX shapes are known."""
    return x.shape[axis]


@rule("aten.sym_numel.default")
def numel(x: Any) -> int:
    """How many numbers there are."""
    return x.size


@rule("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.view_copy.default")
def view(x: Any, shape: Sequence[int]) -> Any:
    """The same numbers in another shape."""
    return x.reshape(tuple(int(length) for length in shape))


@rule("aten.permute.default")
def permute(x: Any, axes: Sequence[int]) -> Any:
    """Axes in another order."""
    return jnp.transpose(x, tuple(axes))


@rule("aten.unsqueeze.default")
def unsqueeze(x: Any, axis: int) -> Any:
    """One more axis, of length one."""
    return jnp.expand_dims(x, axis)


@rule("aten.squeeze.dims", "aten.squeeze.dim")
def squeeze(x: Any, axes: Sequence[int] | int) -> Any:
    """Without those of the axes that have length one; `exporting` has left out the batch's."""
    several = (axes,) if isinstance(axes, int) else axes
    return jnp.squeeze(x, tuple(axis for axis in several if x.shape[axis] == 1))


@rule("aten.expand.default")
def expand(x: Any, shape: Sequence[int], implicit: bool = False) -> Any:
    """Give x repeated along axes of length one, without copies; −1 keeps a length."""
    del implicit
    new = len(shape) - x.ndim
    lengths = [x.shape[at - new] if length == -1 else int(length) for at, length in enumerate(shape)]
    return jnp.broadcast_to(x, tuple(lengths))


@rule("aten.repeat.default")
def repeat(x: Any, times: Sequence[int]) -> Any:
    """Give x beside itself, so many times along each axis."""
    return jnp.tile(x, tuple(int(number) for number in times))


@rule("aten.flip.default")
def flip(x: Any, axes: Sequence[int]) -> Any:
    """Give x backwards along some axes."""
    return jnp.flip(x, tuple(axes))


@rule("aten.diagonal.default")
def diagonal(x: Any, offset: int = 0, first: int = 0, second: int = 1) -> Any:
    """The diagonals of two axes, along a new last one."""
    return jnp.diagonal(x, offset, first, second)


def _within(x: Any, axis: int, start: int | None, end: int | None, step: int) -> tuple[slice, ...]:
    """The slice of one axis; PyTorch writes "to the end" as the largest whole number."""
    cut = slice(start, None if end is None or end >= x.shape[axis] else end, step)
    return (*(slice(None),) * (axis % x.ndim), cut)


@rule("aten.slice.Tensor")
def cut(x: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """A slice of one axis."""
    return x[_within(x, axis, start, end, step)]


@rule("aten.slice_scatter.default")
def with_cut(
    x: Any, source: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Give x with other numbers in a slice of one axis."""
    return x.at[_within(x, axis, start, end, step)].set(source)


@rule("aten.select.int")
def select(x: Any, axis: int, place: int) -> Any:
    """One place of an axis."""
    return lax.index_in_dim(x, place, axis, keepdims=False)


@rule("aten.select_scatter.default")
def with_selected(x: Any, source: Any, axis: int, place: int) -> Any:
    """Give x with other numbers at one place of an axis."""
    return x.at[(*(slice(None),) * (axis % x.ndim), place)].set(source)


@rule("aten.cat.default")
def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    """Arrays one after the other; PyTorch lets empty ones without axes pass."""
    return jnp.concatenate([part for part in parts if part.shape != (0,)] or parts[:1], axis)


@rule("aten.stack.default")
def stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Arrays beside each other along a new axis."""
    return jnp.stack(list(parts), axis)


@rule("aten.split_with_sizes.default")
def split(x: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Parts of these lengths."""
    edges = [0, *np.cumsum(sizes).tolist()]
    return [lax.slice_in_dim(x, start, end, axis=axis % x.ndim) for start, end in pairwise(edges)]


@rule("aten.unfold.default")
def windows(x: Any, axis: int, length: int, step: int) -> Any:
    """Windows along an axis, which overlap where step < length; their places come last."""
    axis = axis % x.ndim
    starts = np.arange(0, x.shape[axis] - length + 1, step)
    taken = jnp.take(x, jnp.asarray(starts[:, None] + np.arange(length)), axis=axis)
    return jnp.moveaxis(taken, axis + 1, -1)


@rule("aten.constant_pad_nd.default")
def pad(x: Any, widths: Sequence[int], value: Any = 0) -> Any:
    """Give x with a border of one number, or cut where widths are negative; these begin with the last axis."""
    pairs = [(int(low), int(high), 0) for low, high in zip(widths[::2], widths[1::2], strict=True)]
    config = [(0, 0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    return lax.pad(x, jnp.asarray(value, x.dtype), config)
