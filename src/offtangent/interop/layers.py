"""PyTorch's convolutions and normalisations in JAX."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from offtangent.interop.operations import Number, Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)


@rule("aten.convolution.default")
def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """A convolution over one, two or three axes, or the transpose of one."""
    if transposed:
        weight = _turned(weight, groups)
        reach = [apart * (length - 1) for apart, length in zip(dilation, weight.shape[2:], strict=True)]
        # Zeros between the inputs take the place of the stride, and padding cuts off what it would have added.
        ends = zip(reach, padding, output_padding, strict=True)
        border = [(full - cut, full - cut + more) for full, cut, more in ends]
        apart, stride = stride, (1,) * len(stride)
    else:
        border, apart = [(width, width) for width in padding], (1,) * len(stride)
    axes = "DHW"[3 - len(stride) :]
    dtype = jnp.promote_types(x.dtype, weight.dtype)
    found = lax.conv_general_dilated(
        x.astype(dtype),
        weight.astype(dtype),
        tuple(stride),
        border,
        lhs_dilation=tuple(apart),
        rhs_dilation=tuple(dilation),
        dimension_numbers=(f"NC{axes}", f"OI{axes}", f"NC{axes}"),
        feature_group_count=groups,
    )
    return found if bias is None else found + _by_channel(bias, found.ndim)


def _turned(weight: Any, groups: int) -> Any:
    """The kernel of the convolution that is the transpose of another: backwards, inputs and outputs exchanged."""
    weight = jnp.flip(weight, tuple(range(2, weight.ndim)))
    inputs, outputs, *rest = weight.shape
    by_group = weight.reshape(groups, inputs // groups, outputs, *rest)
    return by_group.swapaxes(1, 2).reshape(groups * outputs, inputs // groups, *rest)


def _by_channel(values: Any, ndim: int) -> Any:
    """A number for each channel, which is axis 1 of `ndim`."""
    return values.reshape(-1, *(1,) * (ndim - 2))


def _affine(x: Any, scale: Any, shift: Any) -> Any:
    x = x if scale is None else x * scale
    return x if shift is None else x + shift


def _standardised(x: Any, axes: tuple[int, ...], eps: Number) -> tuple[Any, Any, Any]:
    """Give x less its mean and over its spread, with both."""
    mean = jnp.mean(x, axes, keepdims=True)
    spread = lax.rsqrt(jnp.var(x, axes, keepdims=True) + eps)
    return (x - mean) * spread, mean, spread


@rule("aten._native_batch_norm_legit_no_training.default")
def batch_norm(x: Any, scale: Any, shift: Any, mean: Any, variance: Any, momentum: Number, eps: Number) -> Any:
    """Batch norm in evaluation mode, with its running statistics."""
    del momentum
    mean, spread, scale, shift = (
        None if one is None else _by_channel(one, x.ndim) for one in (mean, lax.rsqrt(variance + eps), scale, shift)
    )
    return _affine((x - mean) * spread, scale, shift), None, None


@rule("aten._native_batch_norm_legit.no_stats")
def norm_of_batch(x: Any, scale: Any, shift: Any, training: bool, momentum: Number, eps: Number) -> Any:
    """Batch norm without running statistics, and what instance norm becomes: a channel for each sample's channel."""
    del training, momentum
    found, mean, spread = _standardised(x, (0, *range(2, x.ndim)), eps)
    scale, shift = (None if one is None else _by_channel(one, x.ndim) for one in (scale, shift))
    return _affine(found, scale, shift), mean.reshape(-1), spread.reshape(-1)


@rule("aten.native_layer_norm.default")
def layer_norm(x: Any, shape: Sequence[int], scale: Any, shift: Any, eps: Number) -> Any:
    """Layer norm over the last axes."""
    found, mean, spread = _standardised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return _affine(found, scale, shift), mean, spread


@rule("aten.native_group_norm.default")
def group_norm(
    x: Any, scale: Any, shift: Any, samples: int, channels: int, positions: int, groups: int, eps: float
) -> Any:
    """Layer norm over groups of channels."""
    del samples, channels, positions
    found, mean, spread = _standardised(x.reshape(len(x), groups, -1), (2,), eps)
    scale, shift = (None if one is None else _by_channel(one, x.ndim) for one in (scale, shift))
    return _affine(found.reshape(x.shape), scale, shift), mean[..., 0], spread[..., 0]
