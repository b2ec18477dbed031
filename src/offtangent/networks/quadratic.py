"""Networks that memorise with few neurons: quadratic activations, and random polynomial features before them.

    two layers    f(W; x) = Σ_i a_i (w_iᵀx)² = xᵀWAWᵀx,    a = (1, …, 1, −1, …, −1)
    three layers  the same of z = (r_1ᵀx, …, r_kᵀx)^p, with R fixed

Ge, Wang & Zhao (2019), Section 2.2. The parameters are W itself, a d × r matrix (k × r with three layers) whose columns
are neurons; signs and R stay as they are.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._arguments import check_kind, check_positive
from offtangent._checks import check_count, check_finite, check_inexact, check_key, require
from offtangent._errors import InputError, a_kind


class QuadraticNet(eqx.Module):
    """The two-layer network with quadratic activation, half of whose neurons have the sign +1 and half −1.

        f(W; x) = Σ_i a_i (w_iᵀx)² = xᵀWAWᵀx,    a = (1, …, 1, −1, …, −1),    A = diag(a)

    Ge, Wang & Zhao (2019), Section 2.2. The parameters are W itself, a d × r matrix whose columns are neurons; the
    signs stay as they are. An object is an architecture alone: it holds no weights.

    Args:
        dim: The number of inputs d.
        width: The number of neurons r, an even number. Theorem 4 asks for at least 2d + 2.

    Raises:
        InputError: If a size is no positive whole number, or `width` is odd.

    >>> net = QuadraticNet(dim=2, width=2)
    >>> net(jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([[3.0, 2.0]]))  # 3² − 2²
    Array([5.], dtype=float32)
    """

    dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_halves(self.width)

    @property
    def most_samples(self) -> int:
        """C(d + 1, 2), as many as quadratic forms: on more samples no W gives any labels."""
        return symmetric_dimension(self.dim, 2)

    @property
    def origin(self) -> Float[Array, "d r"]:
        """W = 0, a saddle of every loss, where Theorem 4 starts."""
        return jnp.zeros((self.dim, self.width))

    def init(self, *, scale: float | int = 1.0, key: Key[Array, ""]) -> Float[Array, "d r"]:
        """Draw Gaussian weights of variance scale²/d.

        Args:
            scale: The length of a typical column of W.
            key: The JAX key that decides the draw.

        Returns:
            W, of d × r.
        """
        check_key(key)
        return scale / math.sqrt(self.dim) * jax.random.normal(key, (self.dim, self.width))

    def __call__(self, W: Float[Array, "d r"], X: Float[Array, "n inputs"]) -> Float[Array, "n"]:
        """Evaluate the network on a batch. Time O(ndr), memory O(nr).

        Args:
            W: The weights, one column for each neuron.
            X: The inputs, one a row.

        Returns:
            f(W; x) of every input.

        Raises:
            InputError: If W or X has another shape than `dim` and `width` say.
        """
        check_weights(self, W)
        check_batch(self.dim, X)
        check_inexact(W=W, X=X)
        squares, half = jnp.square(X @ W), self.width // 2
        return jnp.sum(squares[:, :half] - squares[:, half:], axis=1)


class PolynomialNet(eqx.Module):
    """The three-layer network: a quadratic one on random polynomial features z = (Rx)^p, of which R is not trained.

        f(W; x) = Σ_i a_i (w_iᵀz)²,    z = ((r_1ᵀx)^p, …, (r_kᵀx)^p)

    Ge, Wang & Zhao (2019), Section 2.2. The parameters are W, a k × r matrix whose columns are neurons. Make one with
    `PolynomialNet.gaussian`, or with an R of your own.

    Attributes:
        R: The fixed weights of the first layer, one row for each of k features.
        power: The power p.
        net: The two quadratic layers, with k inputs.

    >>> net = PolynomialNet.gaussian(dim=3, features=4, width=10, power=2, key=jax.random.key(0))
    >>> X = jnp.ones((5, 3))
    >>> net(net.origin, X).shape, net.features(X).shape
    ((5,), (5, 4))
    """

    R: Float[Array, "k d"]
    power: int = eqx.field(static=True)
    net: QuadraticNet

    def __post_init__(self) -> None:
        check_count("power", self.power)
        check_kind("net", self.net, QuadraticNet, "networks.QuadraticNet(dim, width)")
        kind = getattr(self.R, "dtype", np.dtype(object))
        if not (jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)):
            raise InputError(f"R is {a_kind(self.R)} of dtype {kind}: expected an array of real numbers.")
        if jnp.ndim(self.R) != 2 or jnp.shape(self.R)[0] != self.net.dim:
            raise InputError(
                f"R has shape {jnp.shape(self.R)}: expected ({self.net.dim}, d), a row for each input of the quadratic "
                "layers."
            )
        check_finite(self.R, "The features R")

    @classmethod
    def gaussian(
        cls, *, dim: int, features: int, width: int, power: int, scale: float | int = 1.0, key: Key[Array, ""]
    ) -> "PolynomialNet":
        """Draw the rows of R from N(0, scale² I).

        Args:
            dim: The number of inputs d.
            features: The number of features k.
            width: The number of neurons r of the second layer, an even number.
            power: The power p.
            scale: The standard deviation of the entries of R.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number, or `width` is odd.
        """
        check_count("dim", dim)
        check_key(key)
        check_positive(scale=scale)
        net = QuadraticNet(features, width)
        return cls(scale * jax.random.normal(key, (features, dim)), power, net)

    @property
    def most_samples(self) -> int:
        """C(k + 1, 2), and no more than there are monomials of degree 2p in d inputs: to more no W gives any labels."""
        return min(self.net.most_samples, symmetric_dimension(self.R.shape[1], 2 * self.power))

    @property
    def origin(self) -> Float[Array, "k r"]:
        """W = 0, a saddle of every loss, where Theorem 4 starts."""
        return self.net.origin

    def init(self, *, scale: float | int = 1.0, key: Key[Array, ""]) -> Float[Array, "k r"]:
        """Draw Gaussian weights of variance scale²/k.

        Args:
            scale: The length of a typical column of W.
            key: The JAX key that decides the draw.

        Returns:
            W, of k × r.
        """
        return self.net.init(scale=scale, key=key)

    def features(self, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """Evaluate the features (Rx)^p. Everything that holds for `net` holds on these instead of X. Time O(ndk).

        Args:
            X: The inputs, one a row.

        Returns:
            z, k numbers for every input.
        """
        check_batch(self.R.shape[1], X)
        check_inexact(R=self.R, X=X)
        return (X @ self.R.T) ** self.power

    def __call__(self, W: Float[Array, "k r"], X: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Evaluate the network on a batch. Time O(nk(d + r)), memory O(n(k + r)).

        Args:
            W: The weights of the second layer, one column for each neuron.
            X: The inputs, one a row.

        Returns:
            f(W; x) of every input.

        Raises:
            InputError: If W or X has another shape than the network's.
        """
        return self.net(W, self.features(X))


def symmetric_dimension(dim: int, power: int) -> int:
    """D_d^p = C(p + d − 1, p), the dimension of the symmetric tensors of order p: the monomials of that degree."""
    check_count("dim", dim)
    check_count("power", power, least=0)
    return math.comb(power + dim - 1, power)


def check_halves(width: int) -> None:
    """Refuse a number of neurons that has no halves."""
    check_count("width", width)
    require(not width % 2, f"width={width} is odd: half of the neurons have the sign +1, half −1. Use {width + 1}.")


def check_weights(net: QuadraticNet, W: Array) -> None:
    """Refuse a W of another shape."""
    if jnp.shape(W) != (net.dim, net.width):
        raise InputError(
            f"W has shape {jnp.shape(W)}: expected ({net.dim}, {net.width}), a column for each neuron. Start from "
            "net.init(key=...)."
        )


def check_batch(dim: int, X: Array) -> None:
    """Refuse inputs that are no batch of this dimension."""
    if jnp.ndim(X) != 2 or jnp.shape(X)[1] != dim:
        raise InputError(f"X has shape {jnp.shape(X)}: expected (n, {dim}), a row for each sample.")
