"""Networks in which the k-th term of the Taylor series dominates.

Bai & Lee (2020), Section 6. A network with m pairs of neurons,

    f(x) = m^{-1/2} Σ_{r≤m} σ((w_{0,r} + w_{+,r})ᵀx) − σ((w_{0,r} + w_{−,r})ᵀx),    w_± = z_± w_⋆,  ‖w_⋆‖ ~ m^{-1/2k},

with random scalars of E z₊^j = E z₋^j for j < k and E z₊^k = E z₋^k + 1, has f^{(j)} = O_p(m^{-j/2k}) for j < k and
f^{(k)} = O(1). Such z_±, explicitly: since Σ_j (−1)^{k−j} C(k,j) j^i is 0 for i < k and k! for i = k, let z₊ be s·j on
the j ∈ {0, …, k} with k − j even and z₋ on those with k − j odd, with chances C(k,j)/2^{k−1}, and s^k = 2^{k−1}/k!.
All nodes may be shifted together: on j − k/2 the laws are symmetric, and the moments of order k + 1 agree as well.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._arguments import check_ordinary
from offtangent._checks import check_count, check_entries, check_finite, check_inputs, check_magnitude, require
from offtangent._errors import InputError
from offtangent._host import on_host
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_displacement
from offtangent.special.activations import Activation
from offtangent.special.hermite_polynomials import hermite_coefficients
from offtangent.taylor import expand
from offtangent.taylor.two_layer import OnInputs, TwoLayerExpansion
from offtangent.theory.bai_lee.signs import check_dim, check_net


@dataclass(frozen=True)
class Law:
    """A random number s·node: nodes and chances are rational, the scale s in general is not."""

    nodes: tuple[Fraction, ...]
    chances: tuple[Fraction, ...]

    def moment(self, j: int) -> Fraction:
        """E[node^j], exactly."""
        check_count("j", j, least=0)
        return sum((chance * node**j for node, chance in zip(self.nodes, self.chances, strict=True)), Fraction(0))


@dataclass(frozen=True)
class MatchedMoments:
    """z₊ and z₋ of order k: moments 0, …, k − 1 agree and those of order k differ by one."""

    order: int  # k
    plus: Law
    minus: Law
    scale_power: Fraction  # s^k

    @property
    def scale(self) -> float:
        """The scale s = (2^{k−1}/k!)^{1/k}."""
        return float(self.scale_power) ** (1 / self.order)

    def node_difference(self, j: int) -> Fraction:
        """(E z₊^j − E z₋^j)/s^j, exactly; times `scale_power` it is 1 for j = k."""
        return self.plus.moment(j) - self.minus.moment(j)

    def difference(self, j: int) -> float:
        """E z₊^j − E z₋^j.

        >>> [matched_moments(3).difference(j) for j in range(5)]
        [0.0, 0.0, 0.0, 1.0, 0.0]
        """
        if j == self.order:
            return float(self.node_difference(j) * self.scale_power)
        return self.scale**j * float(self.node_difference(j))

    def variance(self, j: int) -> float:
        """Var(z₊^j − z₋^j) for independent z₊ and z₋."""
        rational = sum((law.moment(2 * j) - law.moment(j) ** 2 for law in (self.plus, self.minus)), Fraction(0))
        return self.scale ** (2 * j) * float(rational)

    def exponent(self, j: int) -> Fraction:
        """The e in f^{(j)} ~ m^e, for ‖w_⋆‖ ~ m^{-1/2k}: (k − j)/2k where the j-th moments differ, −j/2k where not.

        It assumes that the mean of σ^{(j)}(w₀ᵀx)(w_⋆ᵀx)^j is not zero.

        >>> [str(matched_moments(2, shift=1).exponent(j)) for j in (1, 2, 3)]
        ['-1/4', '0', '-1/4']
        """
        grown = self.order if self.node_difference(j) else 0
        return Fraction(grown - j, 2 * self.order)

    def sample(self, count: int, *, key: Key[Array, ""]) -> tuple[Float[Array, "r"], Float[Array, "r"]]:
        """Independent draws of z₊ and z₋, `count` of each, as JAX arrays. Time and memory O(count·k)."""
        check_count("count", count)
        first, second = jax.random.split(key)
        return self._draw(self.plus, count, first), self._draw(self.minus, count, second)

    def _draw(self, law: Law, count: int, key: Key[Array, ""]) -> Float[Array, "r"]:
        values = jnp.asarray([self.scale * float(node) for node in law.nodes])
        chances = jnp.asarray([float(chance) for chance in law.chances])
        return jax.random.choice(key, values, (count,), p=chances)


def matched_moments(order: int, *, shift: Fraction | float | int = 0) -> MatchedMoments:
    """z_± of order k on the nodes s(j − k/2 + shift): centred ones, or with shift = k/2 those on j = 0, …, k.

    With centred nodes the moments of order k + 1 agree, so that f^{(k+1)} falls like m^{-(k+1)/2k}. With any other
    shift t they differ by s(k + 1)t, and it falls like the paper's m^{-1/2k}. A small shift, such as 1/2, shows that
    too; at t = k/2 the variance of z_±^k is so large (894 for k = 4; 5.3 if centred, 19 for 1/2) that f^{(k)} takes
    widths far beyond 10⁴ to settle.

    >>> matched_moments(2).plus.nodes, matched_moments(2).minus.nodes, matched_moments(2).scale  # z₊ = ±1, z₋ = 0
    ((Fraction(-1, 1), Fraction(1, 1)), (Fraction(0, 1),), 1.0)
    """
    check_count("order", order)
    check_ordinary(shift=shift)
    offset = Fraction(shift) - Fraction(order, 2)

    def law(parity: int) -> Law:
        chosen = [j for j in range(order + 1) if (order - j) % 2 == parity]
        chances = tuple(Fraction(math.comb(order, j), 2 ** (order - 1)) for j in chosen)
        return Law(tuple(j + offset for j in chosen), chances)

    return MatchedMoments(order, law(0), law(1), Fraction(2 ** (order - 1), math.factorial(order)))


def ridge_columns(net: TwoLayer, beta: Float[AnyArray, "d"], order: int) -> Float[Array, "d h"]:
    """w_{⋆,r} = m^{-1/2k} β for each of the m = width/2 pairs: f^{(k)} then tends to `order_limit`. Time O(dm)."""
    check_count("order", order)
    direction = np.asarray(beta, np.float64)
    require(
        direction.shape == (net.dim,),
        f"β has shape {direction.shape}: expected ({net.dim},), one entry for each input.",
    )
    require(np.isfinite(direction).all(), "β has entries that are NaN or infinite: give finite numbers.")
    pairs = net.width // 2
    return jnp.asarray(np.outer(direction, np.ones(pairs)) * pairs ** (-1 / (2 * order)), net.W0.dtype)


def order_limit(
    sigma: str | Activation, X: Float[AnyArray, "n d"], beta: Float[AnyArray, "d"], order: int
) -> Float[np.ndarray, "n"]:
    """The limit of f^{(k)}(x) for `ridge_columns` as the width grows, (βᵀx)^k E[σ^{(k)}(g)]/k!, if ‖x‖ = B_x.

    It is zero where σ^{(k)} is odd (tanh for even k, softplus for odd k ≥ 3): take one without symmetry to see the
    k-th order dominate, such as 'sigmoid(1.0)' for k ≤ 4 or z ↦ exp(z/2) for any k. Time O(nd) and a quadrature.
    """
    check_count("order", order)
    mean = float(hermite_coefficients(sigma, order=0, derivative=order)[0])
    inputs, direction = check_inputs(np.asarray(X)), np.asarray(beta, np.float64)
    if direction.shape != inputs.shape[1:]:
        raise InputError(f"β has shape {direction.shape}: expected {inputs.shape[1:]}, one entry for each column of X.")
    check_entries(beta=direction)
    check_magnitude(2 * order, X=inputs, beta=direction)
    return (inputs @ direction) ** order * mean / math.factorial(order)


def extracting_weights(
    net: TwoLayer, stars: Float[Array, "d h"], law: MatchedMoments, *, key: Key[Array, ""]
) -> Float[Array, "d m"]:
    """W = [z₊w_⋆, z₋w_⋆]: the displacement of a symmetric network whose k-th order term dominates. Time O(dm)."""
    _check_pairs(net, stars)
    check_finite(stars, "stars")
    plus, minus = law.sample(stars.shape[1], key=key)
    return jnp.hstack([stars * plus.astype(stars.dtype), stars * minus.astype(stars.dtype)])


def pair_terms(
    net: TwoLayer, W: Float[Array, "*b d m"], X: Float[Array, "n d"], order: int
) -> tuple[Float[Array, "*b n"], ...]:
    """f^{(0)}, …, f^{(order)} in Section 6's normalisation, m^{-1/2} for m pairs: √2 times those of the network.

    (A `TwoLayer` divides by the root of its width, 2m; no choice of W makes up for it at every order.) Axes of W in
    front are a batch, of draws of z_±, say. Time O(ndm) each, memory O(nm) beside W.
    """
    _check_pairs(net, W[..., : net.width // 2])
    check_displacement(net.W0, W[(0,) * (W.ndim - 2)])
    model = expand(net, net.origin, order)
    assert isinstance(model, TwoLayerExpansion)
    terms = _one_by_one(model.on(X), W.reshape(-1, *W.shape[-2:]))
    return tuple(math.sqrt(2) * term.reshape(*W.shape[:-2], -1) for term in terms)


@eqx.filter_jit
def _one_by_one(model: OnInputs, W: Float[Array, "b d m"]) -> tuple[Float[Array, "b n"], ...]:
    terms: tuple[Array, ...] = jax.lax.map(model.terms, W)
    return terms


@dataclass(frozen=True, eq=False)
class TermMoments:
    """Mean and variance of every f^{(j)}(xᵢ) over z_±, at fixed W₀ and w_⋆."""

    mean: Float[np.ndarray, "terms n"]
    variance: Float[np.ndarray, "terms n"]


def term_moments(
    net: TwoLayer, stars: Float[Array, "d h"], law: MatchedMoments, X: Float[AnyArray, "n d"], order: int
) -> TermMoments:
    """What `pair_terms` of `extracting_weights` is on average over z_±, and how it varies, exactly, in float64.

    E f^{(j)} = (E z₊^j − E z₋^j) m^{-1/2} Σ_r b_r and Var f^{(j)} = Var(z₊^j − z₋^j) m^{-1} Σ_r b_r² with
    b_r = σ^{(j)}(w_{0,r}ᵀx)(w_{⋆,r}ᵀx)^j/j!. Time O(n·m·(d + order)), memory O(nm).
    """
    _check_pairs(net, stars)
    check_finite(stars, "stars")
    check_count("order", order, least=0)
    check_magnitude(4 * order, X=X, stars=stars)
    inputs, pairs = check_inputs(np.asarray(X)), net.width // 2
    check_dim(net, inputs)
    preactivations = inputs @ np.asarray(net.W0, np.float64)[:, :pairs]
    moved = inputs @ np.asarray(stars, np.float64)
    mean, variance = [], []
    for j in range(order + 1):
        b = on_host(net.activation.derivative(j), preactivations) * moved**j / math.factorial(j)
        mean.append(law.difference(j) * b.sum(axis=1) / math.sqrt(pairs))
        variance.append(law.variance(j) * (b**2).sum(axis=1) / pairs)
    return TermMoments(np.stack(mean), np.stack(variance))


def _check_pairs(net: TwoLayer, stars: Float[Array, "*b d h"]) -> None:
    check_net(net)
    require(net.paired, "Section 6 needs pairs of neurons that start equal: take TwoLayer.symmetric(...).")
    if stars.shape[-2:] != (net.dim, net.width // 2):
        raise InputError(
            f"the columns have shape {stars.shape}: expected {(net.dim, net.width // 2)}, one for each pair of neurons."
        )
