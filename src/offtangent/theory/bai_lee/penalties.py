"""The regulariser ‖W‖⁸_{2,4} of Bai & Lee, its derivatives, and how strong Theorem 4 wants it.

    ‖W‖⁸_{2,4} = S²,   S = Σ_r ‖w_r‖⁴,   ∇ = 8 S ‖w_r‖² w_r   (column r),
    ∇²[V, V] = 8 S Σ_r (‖w_r‖²‖v_r‖² + 2⟨w_r, v_r⟩²) + 32 (Σ_r ‖w_r‖²⟨w_r, v_r⟩)².

(Appendix B.5 prints another factor ‖W‖⁴_{2,4} on the last term; the degree in W, 6, says no.) The functions of W are
jittable and keep its dtype; leading axes are a batch of matrices. Time and memory O(dm).
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound, check_inexact
from offtangent._errors import InputError
from offtangent._types import AnyArray

LANDSCAPE_CONSTANT = 378 * (14 / 5) ** 3
"""C ≈ 8297.9 of Corollary 3: Appendix B.5 with α = 5/14. It is attained (m = 1, w ∥ w⋆, ‖w‖² = 8.4‖w⋆‖²)."""


def penalty(W: Float[AnyArray, "*b d m"]) -> Float[Array, "*b"]:
    """‖W‖⁸_{2,4}, a polynomial and smooth everywhere.

    >>> float(penalty(jnp.array([[1.0, 1.0], [1.0, 0.0]])))
    25.0
    """
    return jnp.sum(_squares(W) ** 2, axis=-1) ** 2


def penalty_gradient(W: Float[AnyArray, "*b d m"]) -> Float[Array, "*b d m"]:
    """Column r is 8 S ‖w_r‖² w_r; its product with W is 8 ‖W‖⁸_{2,4}."""
    squares = _squares(W)
    total = jnp.sum(squares**2, axis=-1, keepdims=True)
    return (8 * total * squares)[..., None, :] * jnp.asarray(W)


def penalty_hessian(W: Float[AnyArray, "*b d m"], V: Float[AnyArray, "*b d m"]) -> Float[Array, "*b"]:
    """The second derivative of ‖W‖⁸_{2,4} along V, twice: ∇²‖W‖⁸_{2,4}[V, V]. Time O(dm)."""
    pairs, inner = _hessian_parts(W, V)
    return pairs + 32 * jnp.sum(inner, axis=-1) ** 2


def mean_penalty_hessian(W: Float[AnyArray, "*b d m"], V: Float[AnyArray, "*b d m"]) -> Float[Array, "*b"]:
    """E_Σ' ∇²‖W‖⁸_{2,4}[VΣ', VΣ'] over column signs: the square of the sum becomes the sum of squares."""
    pairs, inner = _hessian_parts(W, V)
    return pairs + 32 * jnp.sum(inner**2, axis=-1)


def _squares(W: Float[AnyArray, "*b d m"]) -> Float[Array, "*b m"]:
    if jnp.ndim(W) < 2:
        raise InputError(f"W has shape {jnp.shape(W)}: ‖W‖_(2,4) is of a matrix (d, m), neurons are columns.")
    check_inexact(W=W)
    return jnp.sum(jnp.asarray(W) ** 2, axis=-2)


def _hessian_parts(
    W: Float[AnyArray, "*b d m"], V: Float[AnyArray, "*b d m"]
) -> tuple[Float[Array, "*b"], Float[Array, "*b m"]]:
    """8 S Σ_r (‖w_r‖²‖v_r‖² + 2⟨w_r, v_r⟩²), and ‖w_r‖²⟨w_r, v_r⟩."""
    if jnp.shape(W) != jnp.shape(V):
        raise InputError(
            f"W has shape {jnp.shape(W)} and V {jnp.shape(V)}: expected the same, a direction in weight space."
        )
    w, v = _squares(W), _squares(V)
    inner = jnp.sum(jnp.asarray(W) * jnp.asarray(V), axis=-2)
    return 8 * jnp.sum(w**2, axis=-1) * jnp.sum(w * v + 2 * inner**2, axis=-1), w * inner


@dataclass(frozen=True)
class PenaltyChoice:
    """λ of Theorem 4, given ‖W⋆‖_{2,4} ≤ B⋆ and L^Q(W⋆) ≤ OPT, and what the theorem then promises."""

    strength: float  # λ = (2γ OPT + ε) / (C B⋆⁸)
    loss_bound: float  # (1 + γ) OPT + ε, on L_λ(Ŵ)
    norm_bound: float  # B⋆ (C (1 + (2 OPT + ε)/(2γ OPT + ε)))^{1/8}, on ‖Ŵ‖_{2,4}


def penalty_choice(norm: float, *, opt: float, gamma: float, epsilon: float) -> PenaltyChoice:
    """λ = λ₀ B⋆⁻⁸ with λ₀ = (2γ OPT + ε)/C: Appendix B.6, with the constant C of Corollary 3.

    A second-order stationary point Ŵ of L_λ then has L_λ(Ŵ) ≤ (1 + γ) OPT + ε and the norm below, if the network is
    wide enough for Corollary 3 to hold at Ŵ with this ε.

    >>> choice = penalty_choice(1.0, opt=0.1, gamma=1.0, epsilon=0.05)
    >>> round(choice.strength * LANDSCAPE_CONSTANT, 6), round(choice.loss_bound, 6), round(choice.norm_bound, 4)
    (0.25, 0.25, 3.369)
    """
    check_bound(norm=norm, gamma=gamma, epsilon=epsilon)
    check_not_negative(opt=opt)
    level = 2 * gamma * opt + epsilon
    return PenaltyChoice(
        strength=level / (LANDSCAPE_CONSTANT * norm**8),
        loss_bound=(1 + gamma) * opt + epsilon,
        norm_bound=norm * (LANDSCAPE_CONSTANT * (1 + (2 * opt + epsilon) / level)) ** (1 / 8),
    )
