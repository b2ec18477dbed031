"""PyTorch's pooling and interpolation in JAX, over one, two or three axes.

Each axis is done by itself. Means and interpolations are linear: a matrix per axis, or a sum over windows. Of equal
entries in a window the first has the maximum's gradient, as in PyTorch.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from offtangent.interop.operations import Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)


def _each(values: Sequence[int] | int, axes: int) -> tuple[int, ...]:
    """One number for each axis, of which PyTorch may give one for all."""
    several = (values,) if isinstance(values, int) else tuple(values)
    return several * axes if len(several) == 1 else several


def _ends(length: int, window: int, stride: int, padding: int, dilation: int, ceil: bool) -> tuple[int, int]:
    """How many windows fit an axis, and how far the last one reaches beyond its end, padding included.

    With `ceil` a window that begins inside of the axis or of the padding before it counts too, cut off or not.
    """
    reach = dilation * (window - 1) + 1
    room = length + 2 * padding - reach
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= length + padding:
        count -= 1
    return count, (count - 1) * stride + reach - length - padding


def _largest(windows: Sequence[Any]) -> Any:
    """The largest entry over several arrays; of equal ones the first has the gradient, and NaN stays NaN."""
    found = windows[0]
    for other in windows[1:]:
        found = jnp.where((other > found) | (other != other), other, found)
    return found


def _lowest(dtype: Any) -> Any:
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else np.iinfo(dtype).min


@rule(
    "aten.max_pool1d.default",
    "aten.max_pool2d.default",
    "aten.max_pool3d.default",
    "aten.max_pool2d_with_indices.default",
    "aten.max_pool3d_with_indices.default",
)
def max_pool(
    x: Any,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> Any:
    """The largest entry of each window, whose place is not told."""
    axes = len(window) if x.ndim - 2 < len(window) else x.ndim - 2
    window = _each(window, axes)
    steps = _each(stride or window, axes)
    padding, dilation = _each(padding, axes), _each(dilation, axes)
    # The last axis first: then the first of equal entries is the one that PyTorch, row by row, meets first.
    for at in range(axes)[::-1]:
        axis = x.ndim - axes + at
        count, after = _ends(x.shape[axis], window[at], steps[at], padding[at], dilation[at], ceil)
        config = [(0, 0, 0)] * x.ndim
        config[axis] = (padding[at], max(after, 0), 0)
        wide = lax.pad(x, jnp.asarray(_lowest(x.dtype), x.dtype), config)
        starts = [place * dilation[at] for place in range(window[at])]
        last = (count - 1) * steps[at] + 1
        x = _largest([lax.slice_in_dim(wide, start, start + last, steps[at], axis) for start in starts])
    return x, None


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def mean_pool(
    x: Any,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Any:
    """The sum of each window over a given number, or over how many entries lie in it, with those of padding or not."""
    axes = len(window) if x.ndim - 2 < len(window) else x.ndim - 2
    window, padding = _each(window, axes), _each(padding, axes)
    steps = _each(stride or window, axes)
    border, counts = [], []
    for at in range(axes):
        length = x.shape[x.ndim - axes + at]
        count, after = _ends(length, window[at], steps[at], padding[at], 1, ceil)
        border.append((padding[at], max(after, 0)))
        starts = np.arange(count) * steps[at] - padding[at]
        extra = padding[at] if count_include_pad else 0
        counts.append(np.minimum(starts + window[at], length + extra) - np.maximum(starts, -extra))
    lead = (1,) * (x.ndim - axes)
    zero = np.zeros((), x.dtype)
    found = lax.reduce_window(x, zero, lax.add, (*lead, *window), (*lead, *steps), [*[(0, 0)] * len(lead), *border])
    sizes = math.prod(np.ix_(*counts)) if divisor is None else divisor
    return found / jnp.asarray(sizes, x.dtype)


def _cuts(length: int, parts: int) -> list[tuple[int, int]]:
    """Where adaptive pooling cuts an axis into parts, which overlap where it does not divide."""
    return [(place * length // parts, -(-(place + 1) * length // parts)) for place in range(parts)]


def _along(x: Any, axis: int, matrix: Float[np.ndarray, "m n"]) -> Any:
    """A matrix times x along one axis."""
    moved = jnp.matmul(jnp.moveaxis(x, axis, -1), jnp.asarray(matrix.T, x.dtype), precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(moved, -1, axis)


@rule("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_mean_pool(x: Any, sizes: Sequence[int]) -> Any:
    """Means over as many parts of each axis as are asked for."""
    for at, parts in enumerate(sizes):
        axis = x.ndim - len(sizes) + at
        matrix = np.zeros((parts, x.shape[axis]))
        for row, (start, end) in enumerate(_cuts(x.shape[axis], parts)):
            matrix[row, start:end] = 1 / (end - start)
        x = _along(x, axis, matrix)
    return x


@rule("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(x: Any, sizes: Sequence[int]) -> Any:
    """The largest entries over as many parts of each axis as are asked for, whose places are not told."""
    for at in range(len(sizes))[::-1]:
        axis = x.ndim - len(sizes) + at
        parts = [
            _largest([lax.slice_in_dim(x, place, place + 1, axis=axis) for place in range(start, end)])
            for start, end in _cuts(x.shape[axis], sizes[at])
        ]
        x = jnp.concatenate(parts, axis)
    return x, None


def _steps(x: Any, sizes: Sequence[int] | None, factors: Sequence[float] | None) -> list[tuple[int, int, float]]:
    """For each axis how long it is, how long it becomes, and by how much its inputs lie apart on its outputs' grid."""
    axes = len(factors if sizes is None else sizes)  # type: ignore[arg-type]
    found = []
    for at in range(axes):
        length = x.shape[x.ndim - axes + at]
        if sizes is None:
            assert factors is not None
            found.append((length, int(length * factors[at]), 1 / factors[at]))
        else:
            found.append((length, sizes[at], length / sizes[at]))
    return found


@rule("aten.upsample_nearest1d.vec", "aten.upsample_nearest2d.vec", "aten.upsample_nearest3d.vec")
def nearest(x: Any, sizes: Sequence[int] | None, factors: Sequence[float] | None) -> Any:
    """Entries repeated, or left out."""
    steps = _steps(x, sizes, factors)
    for at, (length, new, step) in enumerate(steps):
        places = np.minimum(np.floor(np.arange(new) * step), length - 1).astype(np.int32)
        x = jnp.take(x, jnp.asarray(places), axis=x.ndim - len(steps) + at)
    return x


@rule("aten.upsample_bilinear2d.vec")
def bilinear(x: Any, sizes: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None) -> Any:
    """Entries interpolated between their neighbours, along both axes."""
    steps = _steps(x, sizes, factors)
    for at, (length, new, step) in enumerate(steps):
        if align_corners:
            places = np.arange(new) * ((length - 1) / (new - 1) if new > 1 else 0.0)
        else:
            places = np.maximum((np.arange(new) + 0.5) * step - 0.5, 0)
        below = np.minimum(np.floor(places), length - 1).astype(int)
        above, share, rows = np.minimum(below + 1, length - 1), places - below, np.arange(new)
        matrix = np.zeros((new, length))
        np.add.at(matrix, (rows, below), 1 - share)
        np.add.at(matrix, (rows, above), share)
        x = _along(x, x.ndim - len(steps) + at, matrix)
    return x
