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
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key
from offtangent._errors import InputError


class QuadraticNet(eqx.Module):
    """The two-layer network with `width` neurons, half of them with the sign +1 and half with −1.

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
        """C(d + 1, 2), as many as quadratic forms: to more samples no W gives any labels."""
        return symmetric_dimension(self.dim, 2)

    @property
    def origin(self) -> Float[Array, "d r"]:
        """W = 0, a saddle of every loss, where Theorem 4 starts."""
        return jnp.zeros((self.dim, self.width))

    def init(self, *, scale: float | int = 1.0, key: Key[Array, ""]) -> Float[Array, "d r"]:
        """Gaussian weights of variance scale²/d."""
        check_key(key)
        return scale / math.sqrt(self.dim) * jax.random.normal(key, (self.dim, self.width))

    def __call__(self, W: Float[Array, "d r"], X: Float[Array, "n inputs"]) -> Float[Array, "n"]:
        """The outputs on a batch. Time O(ndr), memory O(nr)."""
        check_weights(self, W)
        check_batch(self.dim, X)
        squares, half = jnp.square(X @ W), self.width // 2
        return jnp.sum(squares[:, :half] - squares[:, half:], axis=1)


class PolynomialNet(eqx.Module):
    """The three-layer network: `net` of the features z = (Rx)^p, of which R is not trained.

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
        if jnp.ndim(self.R) != 2 or jnp.shape(self.R)[0] != self.net.dim:
            raise InputError(
                f"R has shape {jnp.shape(self.R)}: expected ({self.net.dim}, d), a row for each input of the quadratic "
                "layers."
            )

    @classmethod
    def gaussian(
        cls, *, dim: int, features: int, width: int, power: int, scale: float | int = 1.0, key: Key[Array, ""]
    ) -> "PolynomialNet":
        """Rows of R from N(0, scale² I); `power` is p."""
        check_count("dim", dim)
        check_key(key)
        net = QuadraticNet(features, width)
        return cls(scale * jax.random.normal(key, (features, dim)), power, net)

    @property
    def most_samples(self) -> int:
        """C(k + 1, 2), and no more than there are monomials of degree 2p in d inputs."""
        return min(self.net.most_samples, symmetric_dimension(self.R.shape[1], 2 * self.power))

    @property
    def origin(self) -> Float[Array, "k r"]:
        return self.net.origin

    def init(self, *, scale: float | int = 1.0, key: Key[Array, ""]) -> Float[Array, "k r"]:
        """Gaussian weights of variance scale²/k."""
        return self.net.init(scale=scale, key=key)

    def features(self, X: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """(Rx)^p. Everything that holds for `net` holds on these instead of X."""
        check_batch(self.R.shape[1], X)
        return (X @ self.R.T) ** self.power

    def __call__(self, W: Float[Array, "k r"], X: Float[Array, "n d"]) -> Float[Array, "n"]:
        return self.net(W, self.features(X))


def symmetric_dimension(dim: int, power: int) -> int:
    """D_d^p = C(p + d − 1, p), the dimension of the symmetric tensors of order p: the monomials of that degree."""
    check_count("dim", dim)
    check_count("power", power, least=0)
    return math.comb(power + dim - 1, power)


def check_halves(width: int) -> None:
    """Refuse a number of neurons that has no halves."""
    check_count("width", width)
    if width % 2:
        raise InputError(f"width={width} is odd: half of the neurons have the sign +1, half −1. Use {width + 1}.")


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
