"""Random signs on the columns of W, and what they do to a network's Taylor terms.

Bai & Lee (2020), Section 3. With Σ = diag(±1), independent and fair, the movement WΣ of a two-layer network keeps its
quadratic part and loses its linear part in the mean: for every x,

    E_Σ f^L_{WΣ} = 0,    E_Σ (f^L_{WΣ})² = m⁻¹ Σ_r a_r² σ'(w₀ᵣᵀx)² (wᵣᵀx)²,    f^Q_{WΣ} = f^Q_W.

So at ‖wᵣ‖ of order m^{-1/4} the linear part is of order m^{-1/4} and the quadratic one of order 1.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, Key

from offtangent._checks import check_count, check_inputs, check_magnitude, require
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_displacement
from offtangent.taylor import expand
from offtangent.taylor.two_layer import TwoLayerExpansion

Module = TypeVar("Module", bound=eqx.Module)
ENUMERATED = 12  # the largest width whose 2^m signs are all taken
CHUNK = 1 << 22  # numbers held at once while signs are gone through


def flip(W: Float[AnyArray, "*b d m"], signs: AnyArray) -> Float[Array, "*b d m"]:
    """WΣ: column r times signs[..., r]. Doing it twice undoes it, exactly. Signs are a vector, not diag(±1)."""
    if jnp.shape(signs)[-1:] != jnp.shape(W)[-1:]:
        raise InputError(
            f"The signs have shape {jnp.shape(signs)} and W has {jnp.shape(W)}: expected one sign for each column of "
            f"W, {jnp.shape(W)[-1:]}."
        )
    _check_signs(signs)
    return jnp.asarray(W) * jnp.asarray(signs)[..., None, :].astype(W.dtype)


def _check_signs(signs: AnyArray) -> None:
    try:
        right = bool(jnp.all(jnp.abs(signs) == 1))
    except jax.errors.ConcretizationTypeError:  # inside a jitted function nobody knows
        return
    require(
        right,
        "The signs hold numbers other than −1 and 1. Σ is given by its diagonal, a vector: np.diag(Sigma) of a "
        "matrix; 2 * bits - 1 of truth values.",
    )


def all_signs(width: int) -> Int8[np.ndarray, "s m"]:
    """Half of the 2^m sign vectors, the first sign being +1; the other half are their opposites.

    >>> all_signs(2)
    array([[ 1,  1], [ 1, -1]], dtype=int8)
    """
    check_count("width", width)
    if not 1 <= width <= ENUMERATED:
        raise InputError(
            f"width={width}: all 2^m signs are enumerated for widths from 1 to {ENUMERATED}. For a wider network draw "
            "them: samples=1000, key=jax.random.key(0)."
        )
    bits = np.arange(2 ** (width - 1))[:, None] >> np.arange(width - 2, -1, -1) & 1
    return np.hstack([np.ones((len(bits), 1), np.int8), (1 - 2 * bits).astype(np.int8)])


def random_signs(width: int, samples: int, *, key: Key[Array, ""]) -> Int8[Array, "s m"]:
    """samples/2 independent sign vectors; each stands for itself and its opposite (antithetic signs Σ, −Σ)."""
    check_count("width", width)
    check_count("samples", samples, least=0)
    if samples < 4 or samples % 2:
        raise InputError(
            f"samples={samples}: signs come in pairs Σ, −Σ, and a standard error needs two pairs. Give an even number, "
            f"{max(4, samples + samples % 2)} or more."
        )
    bits = jax.random.bits(key, (samples // 2, width), jnp.uint8) & 1  # the same in float32 and float64
    return 1 - 2 * bits.astype(jnp.int8)


def choose_signs(width: int, samples: int | None, key: Key[Array, ""] | None) -> Int8[Array, "s m"]:
    """`all_signs` if `samples` is left out, `random_signs` otherwise."""
    if samples is None:
        return jnp.asarray(all_signs(width))
    if key is None:
        raise InputError(f"samples={samples}: signs are drawn at random: give key=jax.random.key(seed).")
    return random_signs(width, samples, key=key)


def over_signs(f: Any, signs: Int8[Array, "s m"], n: int) -> Any:
    """The function f of each row of signs, as many at once as keep n numbers for each within `CHUNK`."""
    return jax.lax.map(f, signs, batch_size=max(1, min(len(signs), CHUNK // n)))


def standard_error(pairs: Float[np.ndarray, " s"]) -> float:
    """The standard error of the mean of independent numbers, of which there are at least two."""
    return float(np.std(pairs, ddof=1) / np.sqrt(len(pairs)))


@dataclass(frozen=True, eq=False)
class SignIdentities:
    """Both sides of the identities on each input, float64 on the host: left over signs, right in closed form."""

    mean: Float[np.ndarray, " n"]  # E_Σ f^L_{WΣ}; the right side is zero
    second_moment: Float[np.ndarray, " n"]  # E_Σ (f^L_{WΣ})²
    second_moment_error: Float[np.ndarray, " n"]  # its standard error; zero where all signs were taken
    second_moment_closed: Float[np.ndarray, " n"]  # m⁻¹ Σ_r a_r² σ'(w₀ᵣᵀx)² (wᵣᵀx)²
    quadratic: Float[np.ndarray, " n"]  # f^Q_W
    quadratic_change: float  # the largest |f^Q_{WΣ} − f^Q_W|
    samples: int
    exact: bool


def sign_identities(
    net: TwoLayer,
    W: Float[AnyArray, "d m"],
    X: Float[AnyArray, "n inputs"],
    *,
    samples: int | None = None,
    key: Key[Array, ""] | None = None,
) -> SignIdentities:
    """E f^L_{WΣ} = 0, E (f^L_{WΣ})² = m⁻¹Σa²σ'²(wᵀx)² and f^Q_{WΣ} = f^Q_W, from the Taylor terms at each WΣ.

    All 2^m signs for m ≤ 12 if `samples` is left out; otherwise that many, in pairs, whose mean of f^L is zero.
    Time O(s·ndm): the terms are computed for all signs afresh.
    """
    inputs = check_inputs(X)
    moved = check_weights(net, W)
    check_dim(net, inputs)
    check_magnitude(6, X=inputs, W=moved)
    half = np.asarray(choose_signs(net.width, samples, key))
    signs = np.concatenate([half, -half])
    with jax.enable_x64(True):
        points, V = jnp.asarray(inputs), jnp.asarray(moved)
        found = _both_sides(in_float64(net), V, points, jnp.asarray(signs))
        linear, quadratic, closed, still = (np.asarray(side) for side in found)
    squares = linear[: len(half)] ** 2  # those of −Σ are the same
    error = np.std(squares, axis=0, ddof=1) / np.sqrt(len(half)) if samples else np.zeros(len(inputs))
    return SignIdentities(
        mean=linear.mean(axis=0),
        second_moment=squares.mean(axis=0),
        second_moment_error=error,
        second_moment_closed=closed,
        quadratic=still,
        quadratic_change=float(np.abs(quadratic - still).max()),
        samples=len(signs),
        exact=samples is None,
    )


@eqx.filter_jit
def _both_sides(
    net: TwoLayer, W: Float[Array, "d m"], X: Float[Array, "n d"], signs: Int8[Array, "s m"]
) -> tuple[Float[Array, "s n"], Float[Array, "s n"], Float[Array, " n"], Float[Array, " n"]]:
    """The linear and quadratic term for all signs, E (f^L)² in closed form, and f^Q without signs."""
    model = quadratic_expansion(net).on(X)
    _, linear, quadratic = over_signs(lambda s: model.terms(flip(W, s)), signs, W.size * len(X))
    slopes = net.a * net.activation.derivative(1)(X @ net.W0) * (X @ W)
    return linear, quadratic, jnp.sum(slopes**2, axis=1) / net.width, model.terms(W)[2]


def quadratic_expansion(net: TwoLayer) -> TwoLayerExpansion:
    """The closed form of f^L and f^Q."""
    model = expand(net, net.origin, 2)
    assert isinstance(model, TwoLayerExpansion)
    return model


def check_net(net: object) -> None:
    """Refuse what is no two-layer network."""
    if not isinstance(net, TwoLayer):
        raise InputError(f"net is {a_kind(net)}: expected a networks.TwoLayer, whose columns of W are neurons.")


def check_weights(net: TwoLayer, W: Any, name: str = "W") -> Float[np.ndarray, "d m"]:
    """W in float64 on the host, or an InputError where it is not finite or not shaped like the network's weights."""
    check_net(net)
    weights = np.asarray(W, np.float64)
    check_displacement(net.W0, weights, name)
    bad = np.count_nonzero(~np.isfinite(weights))
    if bad:
        raise InputError(f"{name} has {bad} entries that are NaN or infinite: give finite weights.")
    return weights


def check_dim(net: TwoLayer, inputs: Float[np.ndarray, "n d"]) -> None:
    """Refuse inputs with another number of columns than the network takes."""
    require(
        inputs.shape[1] == net.dim,
        f"X has {inputs.shape[1]} columns, and the network takes inputs of dimension {net.dim}.",
    )


def in_float64(module: Module) -> Module:
    """The same network or risk with its floating-point numbers in float64; within jax.enable_x64."""

    def wide(leaf: Any) -> Any:
        return jnp.asarray(np.asarray(leaf), jnp.float64) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(wide, module)
