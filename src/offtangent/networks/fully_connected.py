"""Fully connected networks, of which only the hidden weights are trained: the peers of the residual one.

Allen-Zhu & Li (2019), Appendix A. The parameters are the *displacement* of each layer's hidden weights from their
initialisation, neurons as columns, the bias as the last row. The output matrix A, k × m, stays.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count
from offtangent.networks.layers import _Sized, affine, check_batch, check_shapes, check_sizes, combine


class FullyConnected(_Sized):
    """A ReLU network without residual links, of which all hidden layers are trained: the peer of `ResNet`.

        out(x) = A σ(W(x, 1))  with two layers,        out(x) = A σ(U(σ(W(x, 1)), 1))  with three

    Allen-Zhu & Li (2019), Appendix A. The parameters are a tuple, a *displacement* from the initialisation for each
    hidden layer, neurons as columns and the bias as the last row. Make one with `FullyConnected.experiment`.

    Attributes:
        hidden0: The initial weights of every hidden layer, (d+1) × m of the first and (m+1) × m of the others.
        A: The output matrix, k × m, which is not trained.

    >>> net = FullyConnected.experiment(dim=3, outputs=2, width=8, layers=3, key=jax.random.key(0))
    >>> net(net.origin, jnp.ones((5, 3))).shape, [W.shape for W in net.origin]
    ((5, 2), [(4, 8), (9, 8)])
    """

    hidden0: tuple[Float[Array, "_ m"], ...]
    A: Float[Array, "k m"]

    @classmethod
    def experiment(
        cls, *, dim: int, outputs: int, width: int, layers: int = 2, key: Key[Array, ""]
    ) -> "FullyConnected":
        """Draw A and the later hidden layers from N(0, 1/m), the first from N(0, 1/d), biases alike.

        Appendix A says no more than that the initialisation is "similar" to that of the residual network.

        Args:
            dim: The number of inputs d.
            outputs: The number of outputs k.
            width: The number of neurons m of each hidden layer.
            layers: The number of layers with the output's, 2 or more.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number, or `layers` below 2.
        """
        check_count("layers", layers, least=2)
        check_sizes(dim, outputs, width, key)
        first, *later, last = jax.random.split(key, layers)
        hidden = [jax.random.normal(first, (dim + 1, width)) / math.sqrt(dim)]
        hidden += [jax.random.normal(one, (width + 1, width)) / math.sqrt(width) for one in later]
        return cls(hidden0=tuple(hidden), A=jax.random.normal(last, (outputs, width)) / math.sqrt(width))

    @property
    def entry(self) -> Float[Array, "d1 m"]:
        """The initial weights of the first layer."""
        return self.hidden0[0]

    @property
    def origin(self) -> tuple[Float[Array, "_ m"], ...]:
        """No displacement: the network at its initialisation."""
        return tuple(jnp.zeros_like(W) for W in self.hidden0)

    def features(self, params: tuple[Float[Array, "_ m"], ...], X: Float[Array, "n d"]) -> Float[Array, "n m"]:
        """Evaluate what A acts on: the last hidden layer.

        Args:
            params: The displacement of each hidden layer.
            X: The inputs, one a row.

        Returns:
            The m numbers of the last hidden layer for every input.
        """
        return self._layers(params, X)[-1]

    def entering(
        self, params: tuple[Float[Array, "_ m"], ...], X: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n _"], ...]:
        """Evaluate what enters each trained layer, without the 1 of its bias.

        Args:
            params: The displacement of each hidden layer.
            X: The inputs, one a row.

        Returns:
            x, and every hidden layer but the last.
        """
        return tuple(self._layers(params, X)[:-1])

    def _layers(self, params: tuple[Float[Array, "_ m"], ...], X: Float[Array, "n d"]) -> list[Float[Array, "n _"]]:
        """The inputs, and each hidden layer."""
        check_shapes(params, self.hidden0)
        check_batch(self.dim, X)
        found = [X]
        for W0, W in zip(self.hidden0, params, strict=True):
            found.append(jax.nn.relu(affine(W0 + W, found[-1])))
        return found

    def __call__(self, params: tuple[Float[Array, "_ m"], ...], X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Evaluate the network on a batch. Time O(nm(d + (layers − 2)m + k)), memory O(nm).

        Args:
            params: The displacement of each hidden layer.
            X: The inputs, one a row.

        Returns:
            out(x) of every input.

        Raises:
            InputError: If a displacement or X has another shape; broadcasting would move all neurons alike.
        """
        return combine(self.A, self.features(params, X))
