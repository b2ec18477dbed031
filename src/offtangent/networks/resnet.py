"""The three-layer residual network and its fully connected peers, of which only the hidden weights are trained.

Allen-Zhu & Li (2019). The parameters are the *displacement* of the hidden weights from their initialisation, neurons as
columns, the bias as the last row: W is (d+1) × m, V is (k+1) × m, U is (m+1) × m. The output matrix A, k × m, stays.
"""

import abc
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key, check_real
from offtangent._errors import InputError


class Hidden(NamedTuple):
    """The displacements that a `ResNet` trains."""

    W: Float[Array, "d1 m"]
    V: Float[Array, "k1 m"]


class DirectHidden(NamedTuple):
    """The displacements that a `DirectResNet` trains."""

    W: Float[Array, "d1 m"]
    U: Float[Array, "m1 m"]


class _Sized(eqx.Module):
    """What the sizes of a network are read from: its first layer and its output matrix."""

    A: eqx.AbstractVar[Float[Array, "k m"]]

    @property
    @abc.abstractmethod
    def entry(self) -> Float[Array, "d1 m"]:
        """The initial weights of the first layer."""

    @property
    def dim(self) -> int:
        """The number of inputs d, without the 1 of the bias."""
        return int(self.entry.shape[-2]) - 1

    @property
    def outputs(self) -> int:
        """The number of outputs k."""
        return int(self.A.shape[-2])

    @property
    def width(self) -> int:
        """The number of neurons m of a hidden layer."""
        return int(self.A.shape[-1])


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
        _check_sizes(dim, outputs, width, key)
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
        _check_sizes(dim, outputs, width, key)
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
        return _combine(self.A, self._layers(params, X)[0])

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
        return _combine(self.A, self.features(params, X))

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
        _check_shapes(params, (self.W0, self.V0))
        V = self.V0 + params.V
        U = jnp.matmul(self.A.T, V[:-1], precision=jax.lax.Precision.HIGHEST)
        return DirectResNet(self.W0 + params.W, jnp.vstack([U, V[-1:]]), self.A)

    def _layers(self, params: Hidden, X: Float[Array, "n d"]) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        _check_shapes(params, (self.W0, self.V0))
        _check_batch(self.dim, X)
        first = jax.nn.relu(affine(self.W0 + params.W, X))
        return first, jax.nn.relu(affine(self.V0 + params.V, _combine(self.A, first)))


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
        _check_sizes(dim, outputs, width, key)
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
        _check_shapes(params, (self.W0, self.U0))
        _check_batch(self.dim, X)
        first = jax.nn.relu(affine(self.W0 + params.W, X))
        return first + jax.nn.relu(affine(self.U0 + params.U, first))

    def __call__(self, params: DirectHidden, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """The outputs on a batch. Time O(nm(d + m + k)), memory O(nm + m²)."""
        return _combine(self.A, self.features(params, X))


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
        _check_sizes(dim, outputs, width, key)
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
        _check_shapes(params, self.hidden0)
        _check_batch(self.dim, X)
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
        return _combine(self.A, self.features(params, X))


def affine(W: Float[Array, "d1 m"], X: Float[Array, "n d"]) -> Float[Array, "n m"]:
    """W(x, 1) for each row of X, with the bias in W's last row."""
    return X @ W[:-1] + W[-1]


def _combine(A: Float[Array, "k m"], hidden: Float[Array, "n m"]) -> Float[Array, "n k"]:
    # A sum of m terms that nearly cancel: worth full precision, as in TwoLayer.
    return jnp.matmul(hidden, A.T, precision=jax.lax.Precision.HIGHEST)


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


def _check_sizes(dim: int, outputs: int, width: int, key: Any) -> None:
    for name, size in (("dim", dim), ("outputs", outputs), ("width", width)):
        check_count(name, size)
    check_key(key)


def _check_shapes(params: Any, initial: tuple[Array, ...]) -> None:
    """Refuse displacements of another shape: broadcasting would move all neurons alike."""
    expected = [W.shape for W in initial]
    given = [jnp.shape(W) for W in params]
    if given != expected:
        raise InputError(
            f"The displacements have shapes {given}: expected {expected}, a column for each neuron, the bias in the "
            "last row. At the initialisation they are net.origin."
        )


def _check_batch(dim: int, X: Any) -> None:
    if jnp.ndim(X) != 2 or jnp.shape(X)[1] != dim:
        raise InputError(
            f"X has shape {jnp.shape(X)}: expected (n, {dim}), a row for each sample. For one sample give X[None, :]."
        )
