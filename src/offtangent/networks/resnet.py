"""The three-layer residual network, of which only the hidden weights are trained.

Allen-Zhu & Li (2019). The parameters are the *displacement* of the hidden weights from their initialisation, neurons as
columns, the bias as the last row: W is (d+1) × m, V is (k+1) × m, U is (m+1) × m. The output matrix A, k × m, stays.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_real
from offtangent._errors import InputError
from offtangent.networks.layers import _Sized, affine, check_batch, check_shapes, check_sizes, combine


class Hidden(NamedTuple):
    """The displacements that a `ResNet` trains."""

    W: Float[Array, "d1 m"]
    V: Float[Array, "k1 m"]


class DirectHidden(NamedTuple):
    """The displacements that a `DirectResNet` trains."""

    W: Float[Array, "d1 m"]
    U: Float[Array, "m1 m"]


class ResNet(_Sized):
    """The three-layer residual network that Theorem 1 of Allen-Zhu & Li (2019) trains, at its initialisation.

        out₁(x) = A σ((W⁽⁰⁾ + W)(x, 1)),    out(x) = out₁(x) + A σ((V⁽⁰⁾ + V)(out₁(x), 1))      Section 6

    with σ the ReLU. It is the network of eq. (2.1), out(x) = A(σ(Wx + b₁) + σ(Uσ(Wx + b₁) + b₂)), with U = VA. The
    parameters are the *displacements* `Hidden(W, V)` of the hidden weights from their initialisation, neurons as
    columns and the bias as the last row; A stays as it is. Make one with `ResNet.theory` or `ResNet.experiment`.

    Attributes:
        W0: The initial weights of the first layer, (d+1) × m.
        V0: The initial weights of the second layer, (k+1) × m.
        A: The output matrix, k × m, which is not trained.

    >>> net = ResNet.experiment(dim=3, outputs=2, width=8, key=jax.random.key(0))
    >>> net(net.origin, jnp.ones((5, 3))).shape, net.origin.V.shape
    ((5, 2), (3, 8))
    """

    W0: Float[Array, "d1 m"]
    V0: Float[Array, "k1 m"]
    A: Float[Array, "k m"]

    @classmethod
    def theory(
        cls,
        *,
        dim: int,
        outputs: int,
        width: int,
        sigma_v: float | int,
        sigma_w: float | int | None = None,
        key: Key[Array, ""],
    ) -> "ResNet":
        """Draw the initialisation of Section 6: A from N(0, 1/m), W⁽⁰⁾ from N(0, σ_w²) and V⁽⁰⁾ from N(0, σ_v²/m).

        Args:
            dim: The number of inputs d.
            outputs: The number of outputs k.
            width: The number of neurons m of each hidden layer.
            sigma_v: σ_v. Table 1 has 1/τ_v², which depends on the target.
            sigma_w: σ_w, by default the m^{−1/8} of Table 1.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number, or a σ not positive and finite.
        """
        check_sizes(dim, outputs, width, key)
        sigma_w = width**-0.125 if sigma_w is None else sigma_w
        for name, scale in (("sigma_w", sigma_w), ("sigma_v", sigma_v)):
            check_real(name, scale)
            if not 0 < scale < math.inf:
                raise InputError(f"{name}={scale:g}: the size of the initial weights must be positive and finite.")
        return cls(*_draw(dim, outputs, width, outputs, sigma_w, sigma_v / math.sqrt(width), key))

    @classmethod
    def experiment(cls, *, dim: int, outputs: int, width: int, key: Key[Array, ""]) -> "ResNet":
        """Draw the initialisation of Appendix A: A and V⁽⁰⁾ from N(0, 1/m), W⁽⁰⁾ from N(0, 1/d), biases alike.

        The paper prints N(1, 1/m), with which outputs are of size 10⁵ and more, where it wants them of size 1.

        Args:
            dim: The number of inputs d.
            outputs: The number of outputs k.
            width: The number of neurons m of each hidden layer.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number.
        """
        check_sizes(dim, outputs, width, key)
        return cls(*_draw(dim, outputs, width, outputs, 1 / math.sqrt(dim), 1 / math.sqrt(width), key))

    @property
    def entry(self) -> Float[Array, "d1 m"]:
        """The initial weights W⁽⁰⁾ of the first layer."""
        return self.W0

    @property
    def origin(self) -> Hidden:
        """The displacements W = V = 0: the network at its initialisation."""
        return Hidden(jnp.zeros_like(self.W0), jnp.zeros_like(self.V0))

    def first(self, params: Hidden, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Evaluate out₁, what the residual link carries, on a batch. Time O(nm(d + k)).

        Args:
            params: The displacements W and V.
            X: The inputs, one a row.

        Returns:
            out₁(x) of every input.
        """
        return combine(self.A, self._layers(params, X)[0])

    def features(self, params: Hidden, X: Float[Array, "n d"]) -> Float[Array, "n m"]:
        """Evaluate what A acts on: out = A · features, with U = VA held where it is. Time O(nm(d + 2k)).

        With another output matrix on these features a network is what the paper calls "(last)".

        Args:
            params: The displacements W and V.
            X: The inputs, one a row.

        Returns:
            The sum of both hidden layers for every input.
        """
        first, second = self._layers(params, X)
        return first + second

    def __call__(self, params: Hidden, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Evaluate the network on a batch. Time O(nm(d + 2k)), memory O(nm).

        Args:
            params: The displacements W and V.
            X: The inputs, one a row.

        Returns:
            out(x) of every input.

        Raises:
            InputError: If a displacement or X has another shape; broadcasting would move all neurons alike.
        """
        return combine(self.A, self.features(params, X))

    def entering(self, params: Hidden, X: Float[Array, "n d"]) -> tuple[Float[Array, "n d"], Float[Array, "n k"]]:
        """Evaluate what enters each trained layer, without the 1 of its bias.

        Args:
            params: The displacements W and V.
            X: The inputs, one a row.

        Returns:
            x, and out₁(x).
        """
        return X, self.first(params, X)

    def direct(self, params: Hidden) -> "DirectResNet":
        """Write the same function in the form (2.1), with U⁽⁰⁾ = (V⁽⁰⁾ + V)A. Time O(m²k), memory O(m²).

        Args:
            params: The displacements W and V at which the new network starts.

        Returns:
            The network whose U is itself trained.
        """
        check_shapes(params, (self.W0, self.V0))
        V = self.V0 + params.V
        U = jnp.matmul(self.A.T, V[:-1], precision=jax.lax.Precision.HIGHEST)
        return DirectResNet(self.W0 + params.W, jnp.vstack([U, V[-1:]]), self.A)

    def _layers(self, params: Hidden, X: Float[Array, "n d"]) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        check_shapes(params, (self.W0, self.V0))
        check_batch(self.dim, X)
        first = jax.nn.relu(affine(self.W0 + params.W, X))
        return first, jax.nn.relu(affine(self.V0 + params.V, combine(self.A, first)))


class DirectResNet(_Sized):
    """The residual network as (2.1) has it, with U itself trained.

    >>> net = DirectResNet.experiment(dim=3, outputs=2, width=8, key=jax.random.key(0))
    >>> net(net.origin, jnp.ones((5, 3))).shape, net.origin.U.shape
    ((5, 2), (9, 8))
    """

    W0: Float[Array, "d1 m"]
    U0: Float[Array, "m1 m"]
    A: Float[Array, "k m"]

    @classmethod
    def experiment(cls, *, dim: int, outputs: int, width: int, key: Key[Array, ""]) -> "DirectResNet":
        """A and U⁽⁰⁾ from N(0, 1/m), W⁽⁰⁾ from N(0, 1/d), biases alike; theory's is `ResNet.theory(…).direct(…)`."""
        check_sizes(dim, outputs, width, key)
        return cls(*_draw(dim, outputs, width, width, 1 / math.sqrt(dim), 1 / math.sqrt(width), key))

    @property
    def entry(self) -> Float[Array, "d1 m"]:
        return self.W0

    @property
    def origin(self) -> DirectHidden:
        """W = U = 0: the network at its initialisation."""
        return DirectHidden(jnp.zeros_like(self.W0), jnp.zeros_like(self.U0))

    def features(self, params: DirectHidden, X: Float[Array, "n d"]) -> Float[Array, "n m"]:
        """What A acts on."""
        check_shapes(params, (self.W0, self.U0))
        check_batch(self.dim, X)
        first = jax.nn.relu(affine(self.W0 + params.W, X))
        return first + jax.nn.relu(affine(self.U0 + params.U, first))

    def __call__(self, params: DirectHidden, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """The outputs on a batch. Time O(nm(d + m + k)), memory O(nm + m²)."""
        return combine(self.A, self.features(params, X))


def _draw(
    dim: int, outputs: int, width: int, inner: int, first: float, second: float, key: Key[Array, ""]
) -> tuple[Array, Array, Array]:
    """Gaussian weights of both hidden layers, the second with `inner` inputs and a bias, and A from N(0, 1/m)."""
    keys = jax.random.split(key, 3)
    return (
        first * jax.random.normal(keys[0], (dim + 1, width)),
        second * jax.random.normal(keys[1], (inner + 1, width)),
        jax.random.normal(keys[2], (outputs, width)) / math.sqrt(width),
    )
