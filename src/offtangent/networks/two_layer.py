"""Two-layer networks of which only the first layer is trained.

    f(W; x) = m^{-1/2} Σ_r a_r σ((w_{0,r} + w_r)ᵀx)

Arora et al. (2019), Section 3.1; Bai & Lee (2020), eq. (1); Nichani, Bai & Lee (2022), Section 2. The
parameters are the *displacement* W from the initialisation W₀, a d × m matrix whose columns are neurons.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from offtangent._checks import check_key, check_real, require
from offtangent._errors import InputError
from offtangent.special import activation as named
from offtangent.special.activations import Activation


class TwoLayer(eqx.Module):
    """A two-layer network at its initialisation, of which only the first layer is trained.

        f(W; x) = m^{-1/2} Σ_r a_r σ((w_{0,r} + w_r)ᵀx)

    Arora et al. (2019), Section 3.1; Bai & Lee (2020), eq. (1); Nichani, Bai & Lee (2022), Section 2. The parameters
    are the *displacement* W from the initial weights W₀, a matrix of d × m whose columns are neurons: `net(W, X)` is
    the output at W₀ + W. Make one with `TwoLayer.gaussian` or `TwoLayer.symmetric`; an instance is a frozen pytree.

    Attributes:
        W0: The initial weights W₀, one column for each neuron.
        a: The output weights, ±1, which are not trained.
        activation: σ, as a `special.activations.Activation`.
        paired: Whether neurons r and r + m/2 start equal, with opposite signs. They are then subtracted pair by pair,
            so that they cancel to the last bit at W = 0.

    >>> net = TwoLayer.symmetric(dim=3, width=8, activation="softplus", key=jax.random.key(0))
    >>> float(abs(net(net.origin, jnp.ones((2, 3)))).max())
    0.0
    """

    W0: Float[Array, "d m"]
    a: Float[Array, "m"]
    activation: Activation = eqx.field(static=True)
    paired: bool = eqx.field(static=True, default=False)  # neurons r and r + m/2 start equal, with opposite signs

    def __check_init__(self) -> None:
        if self.paired:
            check_pairs(self.W0, self.a)

    @classmethod
    def gaussian(
        cls,
        *,
        dim: int,
        width: int,
        scale: float = 1.0,
        activation: str | Activation | Callable[..., Array] = "relu",
        key: Key[Array, ""],
    ) -> "TwoLayer":
        """Draw the initialisation of Arora et al. (2019), eq. (1): w_r ~ N(0, κ²I) and a_r uniform on {−1, +1}.

        Args:
            dim: The number of inputs d.
            width: The number of neurons m.
            scale: The standard deviation κ of the initial weights.
            activation: σ: a name such as "relu", an `Activation`, or a function, as `special.activation` takes them.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number, `scale` not positive and finite, or σ unknown.
        """
        _check_sizes(dim, width)
        check_key(key)
        check_real("scale", scale)
        require(
            0 < scale < math.inf, f"scale={scale:g}: the size κ of the initial weights must be positive and finite."
        )
        weights, signs = jax.random.split(key)
        W0 = scale * jax.random.normal(weights, (dim, width))
        return cls(W0, jax.random.rademacher(signs, (width,), W0.dtype), named(activation))

    @classmethod
    def symmetric(
        cls,
        *,
        dim: int,
        width: int,
        law: Literal["gaussian", "sphere"] = "gaussian",
        radius: float = 1.0,
        activation: str | Activation | Callable[..., Array] = "relu",
        key: Key[Array, ""],
    ) -> "TwoLayer":
        """Draw two equal halves of neurons with signs +1 and −1, so that the network starts at exactly zero.

        The first half is drawn independently and copied: w_{0,r} = w_{0,r+m/2}, with a_r = 1 and a_{r+m/2} = −1.

        Args:
            dim: The number of inputs d.
            width: The number of neurons m, an even number.
            law: "gaussian" draws columns from N(0, B_x⁻²I), so that w₀ᵀx ~ N(0, 1) for inputs of length B_x (Bai & Lee,
                eq. (3)); "sphere" draws them uniformly from the unit sphere (Nichani et al., eqs. (8) and (9)).
            radius: The length B_x of the inputs. It plays no part on the sphere.
            activation: σ: a name such as "relu", an `Activation`, or a function, as `special.activation` takes them.
            key: The JAX key that decides the draw.

        Returns:
            The network.

        Raises:
            InputError: If a size is no positive whole number, `width` odd, `radius` not positive and finite, or `law`
                or σ unknown.
        """
        _check_sizes(dim, width)
        require(
            not width % 2, f"width={width} is odd: a symmetric initialisation has two equal halves. Use {width + 1}."
        )
        check_key(key)
        half = jax.random.normal(key, (dim, width // 2))
        if law == "sphere":
            half = half / jnp.linalg.norm(half, axis=0)
        elif law == "gaussian":
            check_real("radius", radius)
            require(
                0 < radius < math.inf, f"radius={radius:g}: the length B_x of the inputs must be positive and finite."
            )
            half = half / radius
        else:
            raise InputError(f"law={law!r}: the initial columns are 'gaussian' or on the 'sphere'.")
        ones = jnp.ones(width // 2, half.dtype)
        return cls(jnp.hstack([half, half]), jnp.concatenate([ones, -ones]), named(activation), paired=True)

    @property
    def dim(self) -> int:
        """The number of inputs d."""
        return int(self.W0.shape[0])

    @property
    def width(self) -> int:
        """The number of neurons m."""
        return int(self.W0.shape[1])

    @property
    def origin(self) -> Float[Array, "d m"]:
        """The displacement W = 0: the network at its initialisation."""
        return jnp.zeros_like(self.W0)

    def __call__(self, W: Float[Array, "d m"], X: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Evaluate the network at the weights W₀ + W on a batch. Time O(ndm), memory O(nm).

        Args:
            W: The displacement, of the shape of W₀.
            X: The inputs, one a row.

        Returns:
            f(W; x) of every input.

        Raises:
            InputError: If W or X has another shape; broadcasting would move all neurons alike.
        """
        check_displacement(self.W0, W)
        check_batch(self, X)
        V = self.W0 + W
        if self.paired:
            # One product over all neurons rounds the two halves differently, and adds them up in some order: 10⁻⁴
            # instead of 0 at a width of 10⁴. Two products of one shape round alike, and each pair cancels first.
            half = self.width // 2
            plus, minus = self.activation(X @ V[:, :half]), self.activation(X @ V[:, half:])
            return jnp.sum(plus * self.a[:half] + minus * self.a[half:], axis=1) / self.width**0.5
        hidden = self.activation(X @ V)
        # A sum of m terms that nearly cancel: worth full precision, and cheap next to the product above.
        return jnp.matmul(hidden, self.a, precision=jax.lax.Precision.HIGHEST) / self.width**0.5


def _check_sizes(dim: int, width: int) -> None:
    require(
        not any(isinstance(size, bool) or not hasattr(size, "__index__") or size < 1 for size in (dim, width)),
        f"dim={dim!r}, width={width!r}: a network needs at least one input and one neuron, in whole numbers.",
    )


def check_pairs(W0: Float[Array, "*k d m"], a: Float[Array, "*k m"]) -> None:
    """Refuse halves of neurons that are not equal with opposite signs. Inside a jitted function nobody knows them."""
    half = W0.shape[-1] // 2
    try:
        equal = bool(jnp.array_equal(W0[..., :half], W0[..., half:]) & jnp.array_equal(a[..., :half], -a[..., half:]))
    except jax.errors.ConcretizationTypeError:
        return
    require(
        equal,
        "paired=True: neurons r and r + m/2 must start equal, with opposite signs, and here they do not. "
        "TwoLayer.symmetric draws such a network; of any other leave paired=True out.",
    )


def check_displacement(W0: Float[Array, "d m"], W: Any, name: str = "W") -> None:
    """Refuse a W that is not shaped like W₀. Broadcasting would move all neurons alike."""
    if jnp.shape(W) != W0.shape:
        raise InputError(
            f"{name} has shape {jnp.shape(W)}: expected {W0.shape}, that of W₀, with a column of {W0.shape[0]} "
            f"weights for each of {W0.shape[1]} neurons. At the initialisation it is net.origin."
        )


def check_batch(net: TwoLayer, X: Any) -> None:
    """Refuse inputs that are no batch of the network's dimension."""
    if jnp.ndim(X) != 2 or jnp.shape(X)[1] != net.dim:
        raise InputError(
            f"X has shape {jnp.shape(X)}: expected (n, {net.dim}), a row for each sample. For one sample give "
            "X[None, :]."
        )
