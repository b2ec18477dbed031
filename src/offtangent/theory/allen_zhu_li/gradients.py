"""What happens inside a residual network while it trains: signs that change, and the two sides of Theorem 1's proof.

Allen-Zhu & Li (2019), Section 6.1 and Appendix D. For a `networks.ResNet` and one x,

    D_W = diag(1{(W⁰+W)(x,1) ≥ 0}),      D_{V,W} = diag(1{(V⁰+V)(out₁,1) ≥ 0}),

    f(W′; x) = AD_{V,W}(V⁰+V)(AD_W W′(x,1), 0) + AD_W W′(x,1),    g(V′; x) = AD_{V,W}V′(out₁,1)        (Fact D.4)

    ⟨∇Obj, (−W′, −V′)⟩ = ⟨y − out, f(W′; x) + g(V′; x)⟩,

    Err = f(W⋆−W; x) + g(V⋆−V; x) − (H(x) − out(x)),        Ξ = ⟨∇Obj, (W−W⋆, V−V⋆)⟩.                   (Claim D.6)

All are functions of JAX arrays, for a batch X (n×d): jit, vmap and record them in `training.train`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from offtangent._checks import check_finite, require
from offtangent.networks import ResNet
from offtangent.networks.layers import affine, check_shapes
from offtangent.networks.resnet import Hidden


class Signs(NamedTuple):
    """The diagonals of D_W and D_{V,W}, a row for each sample."""

    first: Bool[Array, "n m"]
    second: Bool[Array, "n m"]


def sign_patterns(net: ResNet, params: Hidden, X: Float[Array, "n d"]) -> Signs:
    """D_W and D_{V,W} on a batch. With V = 0 the second is D_{V⁰,W}. Time O(nm(d + 2k)).

    NaN is refused, where it is known: a jitted one takes it for a negative number.
    """
    out1 = net.first(params, X)  # first of all, since it refuses what does not fit the network
    check_finite(net, "The network's weights")
    check_finite(params, "The parameters")
    check_finite(jnp.asarray(X), "The inputs")
    return Signs(affine(net.W0 + params.W, X) >= 0, affine(net.V0 + params.V, out1) >= 0)


class SignChanges(NamedTuple):
    """How many signs differ from those of the initial weights, for each sample."""

    first: Int[Array, " n"]  # ‖D_W − D_{W⁰}‖₀
    second: Int[Array, " n"]  # ‖D_{V,W} − D_{V⁰,W}‖₀, both at the same out₁


def sign_changes(net: ResNet, params: Hidden, X: Float[Array, "n d"]) -> SignChanges:
    """The left sides of Lemma D.1(a) and (d). NaN is refused, where it is known: a jitted one counts no change."""
    now = sign_patterns(net, params, X)
    first, second = affine(net.W0, X) >= 0, affine(net.V0, net.first(params, X)) >= 0
    return SignChanges(jnp.sum(now.first != first, axis=1), jnp.sum(now.second != second, axis=1))


class Coupling(NamedTuple):
    """The left sides of Lemma D.1 that are norms, for each sample."""

    b: Float[Array, " n"]  # ‖AD_W W⁰(x,1)‖, what is left of the initial first layer
    c: Float[Array, " n"]  # ‖out₁‖
    e: Float[Array, " n"]  # ‖AD_{V,W}V⁰(out₁,1)‖
    f: Float[Array, " n"]  # ‖AD_{V,W}V⁰‖₂
    g: Float[Array, " n"]  # ‖AD_{V,W}(V⁰+V)(out₁,1)‖


def coupling(net: ResNet, params: Hidden, X: Float[Array, "n d"]) -> Coupling:
    """Lemma D.1(b), (c), (e)–(g) at these weights; the lemma bounds them for all weights within τ_w and τ_v."""
    D, out1 = sign_patterns(net, params, X), net.first(params, X)
    rest = net(params, X) - out1
    operators = jnp.einsum("km,nm,jm->nkj", net.A, D.second.astype(net.A.dtype), net.V0)
    return Coupling(
        _norm(_passed(D.first, affine(net.W0, X)) @ net.A.T),
        _norm(out1),
        _norm(_passed(D.second, affine(net.V0, out1)) @ net.A.T),
        jnp.linalg.norm(operators, ord=2, axis=(1, 2)),
        _norm(rest),
    )


def gradient_parts(
    net: ResNet, params: Hidden, X: Float[Array, "n d"], direction: Hidden
) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
    """f(W′; x) and g(V′; x) of Fact D.4 for the direction (W′, V′), written out. Time O(nm(d + k))."""
    check_shapes(direction, (net.W0, net.V0))
    check_finite(direction, "The direction")
    D, out1 = sign_patterns(net, params, X), net.first(params, X)
    through = _passed(D.first, affine(direction.W, X)) @ net.A.T
    V = net.V0 + params.V
    again = _passed(D.second, through @ V[:-1]) @ net.A.T  # the last row of V is the bias, and meets the 0 of (·, 0)
    return again + through, _passed(D.second, affine(direction.V, out1)) @ net.A.T


class DescentPoint(NamedTuple):
    """One point of the proof of Theorem 1, for each sample."""

    gap: Float[Array, " n"]  # ‖H(x) − out(x)‖²
    error: Float[Array, " n"]  # ‖Err‖²
    correlation: Float[Array, " n"]  # Ξ


def descent_parts(
    net: ResNet, params: Hidden, X: Float[Array, "n d"], target: Float[Array, "n k"], star: Hidden
) -> DescentPoint:
    """Gap, error and Ξ at these weights, with labels y = H(x) = target and (W⋆, V⋆) = star.

    Ξ comes from automatic differentiation and Err from Fact D.4's formulas, so that one checks the other in
    Ξ ≥ ½‖H − out‖² − 2‖Err‖².
    """
    out = net(params, X)
    require(target.shape == out.shape, f"target has shape {target.shape}: expected {out.shape}, a row for each sample.")
    check_shapes(star, (net.W0, net.V0))
    check_finite(target, "The target's values")
    kinds = {str(leaf.dtype) for leaf in (*params, *star)}
    require(len(kinds) == 1, f"params and star have dtypes {sorted(kinds)}: expected floats of one precision.")
    step = Hidden(star.W - params.W, star.V - params.V)
    f, g = gradient_parts(net, params, X, step)

    def objective(hidden: Hidden) -> Float[Array, " n"]:
        return 0.5 * jnp.sum((target - net(hidden, X)) ** 2, axis=1)

    correlation = jax.jvp(objective, (params,), (jax.tree.map(jnp.negative, step),))[1]
    return DescentPoint(
        jnp.sum((target - out) ** 2, axis=1), jnp.sum((f + g - (target - out)) ** 2, axis=1), correlation
    )


def _passed(D: Bool[Array, "n m"], values: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """D times the values, for each sample."""
    return jnp.where(D, values, 0)


def _norm(rows: Float[Array, "n k"]) -> Float[Array, " n"]:
    return jnp.linalg.norm(rows, axis=1)
