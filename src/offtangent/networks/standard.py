"""Standard networks, all of whose layers are trained: a ReLU MLP and a convolutional network.

Nichani, Bai & Lee (2022), Appendix G. An object is an architecture alone, small and hashable; its parameters are a
tuple of layers, so that `taylor.expand(net, params, order)` takes them as they are.

    weights ~ U(±√(1.5 / fan_in)),     biases = 0

is what the authors' code draws, half the variance of He's initialisation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key, require
from offtangent._errors import InputError

SIDE = 3  # of a convolution's window


class Layer(NamedTuple):
    """One affine map: matrices are inputs × outputs, windows height × width × inputs × outputs."""

    weights: Float[Array, "*inputs outputs"]
    bias: Float[Array, " outputs"]


@dataclass(frozen=True)
class MLP:
    """A fully connected ReLU network with biases and one output, all of whose layers are trained.

        f(x) = w_Lᵀh_{L−1} + b_L,    h_l = relu(W_lᵀh_{l−1} + b_l),    h_0 = x,    L = depth + 1

    `depth=1` is the two-layer network of Figure 2 of Nichani, Bai & Lee (2022), Appendix G. An object is an
    architecture alone, small and hashable; its parameters are a tuple of layers, so that `taylor.expand(net, params,
    order)` takes them as they are.

    Args:
        dim: The number of inputs.
        width: The number of neurons of each hidden layer.
        depth: The number of hidden layers.

    Raises:
        InputError: If a size is no positive whole number.

    >>> net = MLP(dim=3, width=8)
    >>> net(net.init(key=jax.random.key(0)), jnp.zeros((2, 3)))
    Array([0., 0.], dtype=float32)
    """

    dim: int
    width: int
    depth: int = 1

    def __post_init__(self) -> None:
        for name in ("dim", "width", "depth"):
            check_count(name, getattr(self, name))

    def init(self, *, key: Key[Array, ""]) -> tuple[Layer, ...]:
        """Draw weights uniformly from ±√(1.5 / fan_in), with biases of zero.

        This is what the authors' code draws: half the variance of He's initialisation. Memory O(dim·width +
        depth·width²).

        Args:
            key: The JAX key that decides the draw.

        Returns:
            A layer (weights, bias) for each affine map, `depth` + 1 of them.
        """
        return _draw([(self.dim, self.width), *[(self.width, self.width)] * (self.depth - 1), (self.width, 1)], key)

    def __call__(self, params: Sequence[Layer], X: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Evaluate the network on a batch. Time O(n·width·(dim + depth·width)), memory O(n·width).

        Args:
            params: The layers, as `init` gives them.
            X: The inputs, one a row.

        Returns:
            f(x) of every input.

        Raises:
            InputError: If X or the number of layers is another than the network's.
        """
        _check_layers(params, self.depth + 1)
        if jnp.ndim(X) != 2 or jnp.shape(X)[1] != self.dim:
            raise InputError(f"X has shape {jnp.shape(X)}: expected (n, {self.dim}), a row for each sample.")
        for layer in params[:-1]:
            X = jax.nn.relu(X @ layer.weights + layer.bias)
        return _output(params[-1], X)


@dataclass(frozen=True)
class ConvNet:
    """`depth` times a 3 × 3 convolution with zeros around, ReLU and 2 × 2 means; then all numbers into one output.

    With `depth=4` and `channels=512` on images of 32 × 32 × 3, that of the paper's Appendix G: the last layer sees
    2 × 2 × 512 numbers.

    >>> net = ConvNet(channels=4, shape=(8, 8, 1), depth=2)
    >>> [layer.weights.shape for layer in net.init(key=jax.random.key(0))]
    [(3, 3, 1, 4), (3, 3, 4, 4), (16, 1)]
    """

    channels: int
    shape: tuple[int, int, int] = (32, 32, 3)  # height, width and colours of an image
    depth: int = 4

    def __post_init__(self) -> None:
        for name in ("channels", "depth"):
            check_count(name, getattr(self, name))
        require(
            hasattr(self.shape, "__len__") and len(self.shape) == 3,
            f"shape={self.shape!r}: give an image's height, width and number of colours.",
        )
        for size in self.shape:
            check_count("shape", size)
        if any(size % 2**self.depth for size in self.shape[:2]):
            raise InputError(
                f"An image of {self.shape[0]} × {self.shape[1]} pixels cannot be halved {self.depth} times. Its sides "
                f"must be multiples of {2**self.depth}: cut or pad it, or take a smaller depth."
            )

    def init(self, *, key: Key[Array, ""]) -> tuple[Layer, ...]:
        """Random parameters. Memory O(depth·channels²)."""
        height, width, colours = self.shape
        windows = [(SIDE, SIDE, before, self.channels) for before in (colours, *[self.channels] * (self.depth - 1))]
        return _draw([*windows, ((height * width >> 2 * self.depth) * self.channels, 1)], key)

    def __call__(self, params: Sequence[Layer], X: Float[Array, "n h w c"]) -> Float[Array, "n"]:
        """The outputs on a batch of images, colours last.

        Time O(n·height·width·(colours·channels + channels²/4)), memory O(n·height·width·channels).
        """
        _check_layers(params, self.depth + 1)
        if jnp.shape(X)[1:] != self.shape:
            raise InputError(
                f"X has shape {jnp.shape(X)}: expected (n, {', '.join(map(str, self.shape))}), an image for each "
                "sample with its colours last. Rows of pixels are reshaped, planes of colours moved to the end."
            )
        for window, bias in params[:-1]:
            X = jax.lax.conv_general_dilated(X, window, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            X = _halved(jax.nn.relu(X + bias))
        return _output(params[-1], X.reshape(len(X), -1))


def _draw(shapes: list[tuple[int, ...]], key: Key[Array, ""]) -> tuple[Layer, ...]:
    """A layer for each shape of weights, whose last number counts outputs and all others the inputs of each."""
    check_key(key)
    layers = []
    for shape, one in zip(shapes, jax.random.split(key, len(shapes)), strict=True):
        limit = math.sqrt(1.5 / math.prod(shape[:-1]))
        layers.append(Layer(jax.random.uniform(one, shape, minval=-limit, maxval=limit), jnp.zeros(shape[-1])))
    return tuple(layers)


def _halved(X: Float[Array, "n h w c"]) -> Float[Array, "n g v c"]:
    """Means over squares of 2 × 2 pixels."""
    n, height, width, channels = X.shape
    return X.reshape(n, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))


def _output(layer: Layer, hidden: Float[Array, "n k"]) -> Float[Array, "n"]:
    return (hidden @ layer.weights + layer.bias)[:, 0]


def _check_layers(params: Any, count: int) -> None:
    require(
        len(params) == count,
        f"The parameters have {len(params)} layers: expected {count}, as net.init(key=...) gives them.",
    )
