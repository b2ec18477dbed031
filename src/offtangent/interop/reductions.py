"""PyTorch's sums, means, norms and softmaxes in JAX."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from offtangent.interop.operations import Number, Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)

Axes = Sequence[int] | int | None


def _axes(axes: Axes) -> tuple[int, ...] | None:
    """None and an empty list both mean all axes."""
    if isinstance(axes, int):
        return (axes,)
    return tuple(axes) if axes else None


@rule("aten.sum.dim_IntList", "aten.sum.default")
def total(x: Any, axes: Axes = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The sum over some axes."""
    return jnp.sum(x, _axes(axes), dtype=dtype, keepdims=keepdims)


@rule("aten.mean.dim", "aten.mean.default")
def mean(x: Any, axes: Axes = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The mean over some axes."""
    return jnp.mean(x, _axes(axes), dtype=dtype, keepdims=keepdims)


@rule("aten.prod.dim_int")
def product(x: Any, axis: int, keepdims: bool = False, dtype: Any = None) -> Any:
    """The product along an axis."""
    return jnp.prod(x, axis, dtype=dtype, keepdims=keepdims)


@rule("aten.prod.default")
def product_of_all(x: Any, dtype: Any = None) -> Any:
    """The product of all entries."""
    return jnp.prod(x, dtype=dtype)


@rule("aten.amax.default", "aten.max.default")
def maximum(x: Any, axes: Axes = None, keepdims: bool = False) -> Any:
    """The largest entry over some axes; equal ones share the gradient."""
    return jnp.max(x, _axes(axes), keepdims=keepdims)


@rule("aten.amin.default", "aten.min.default")
def minimum(x: Any, axes: Axes = None, keepdims: bool = False) -> Any:
    """The smallest entry over some axes; equal ones share the gradient."""
    return jnp.min(x, _axes(axes), keepdims=keepdims)


@rule("aten.any.default", "aten.any.dim", "aten.any.dims")
def some(x: Any, axes: Axes = None, keepdims: bool = False) -> Any:
    """Whether any entry is true."""
    return jnp.any(x, _axes(axes), keepdims=keepdims)


@rule("aten.all.default", "aten.all.dim", "aten.all.dims")
def every(x: Any, axes: Axes = None, keepdims: bool = False) -> Any:
    """Whether all entries are true."""
    return jnp.all(x, _axes(axes), keepdims=keepdims)


@rule("aten.var.correction")
def variance(x: Any, axes: Axes = None, correction: Any = None, keepdim: bool = False) -> Any:
    """The variance over some axes, divided by their length less the correction."""
    return jnp.var(x, _axes(axes), ddof=1 if correction is None else correction, keepdims=keepdim)


@rule("aten.var.dim")
def sample_variance(x: Any, axes: Axes, unbiased: bool = True, keepdims: bool = False) -> Any:
    """The variance over some axes, divided by their length less one, or by their length."""
    return variance(x, axes, int(unbiased), keepdims)


@rule("aten.cumsum.default")
def sums(x: Any, axis: int, dtype: Any = None) -> Any:
    """The sums up to each place of an axis."""
    return jnp.cumsum(x, axis, dtype=dtype)


@rule("aten.cumprod.default")
def products_along(x: Any, axis: int, dtype: Any = None) -> Any:
    """The products up to each place of an axis."""
    return jnp.cumprod(x, axis, dtype=dtype)


@rule("aten._softmax.default")
def softmax(x: Any, axis: int, half_to_float: bool = False) -> Any:
    """e^x over its sum along an axis."""
    del half_to_float
    return jax.nn.softmax(x, axis)


@rule("aten._safe_softmax.default")
def softmax_or_zero(x: Any, axis: int, dtype: Any = None) -> Any:
    """The softmax of an attention whose masks may leave nothing: a row of −∞ gives zeros, with no gradient."""
    x = x if dtype is None else x.astype(dtype)
    empty = jnp.all(x == -jnp.inf, axis, keepdims=True)
    return jnp.where(empty, 0, jax.nn.softmax(jnp.where(empty, 0, x), axis))


@rule("aten._log_softmax.default")
def log_softmax(x: Any, axis: int, half_to_float: bool = False) -> Any:
    """Give log softmax along an axis."""
    del half_to_float
    return jax.nn.log_softmax(x, axis)


@rule("aten.linalg_vector_norm.default")
def norm(x: Any, order: Number = 2, axes: Axes = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """(Σ|x|^p)^{1/p}, whose gradient at zero is zero, as PyTorch has it."""
    x = x if dtype is None else x.astype(dtype)
    over, size = _axes(axes), jnp.abs(x)
    if abs(order) == jnp.inf:
        return (maximum if order > 0 else minimum)(size, over, keepdims)
    if order == 0:
        return jnp.sum(x != 0, over, keepdims=keepdims).astype(x.dtype)
    if order == 1:
        return jnp.sum(size, over, keepdims=keepdims)
    powers = x * x if order == 2 else jnp.where(x == 0, 0, jnp.where(x == 0, 1, size) ** order)
    inside = jnp.sum(powers, over, keepdims=keepdims)
    zero = inside == 0
    outside = jnp.where(zero, 1, inside)
    return jnp.where(zero, 0, jnp.sqrt(outside) if order == 2 else outside ** (1 / order))
