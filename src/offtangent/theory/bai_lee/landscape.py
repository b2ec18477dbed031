"""The landscapes of the clean and the randomised risk as measured inequalities: both sides term by term, and the slack.

Bai & Lee (2020), Section 4. Curvature along a comparison matrix W⋆ with random column signs Σ' pays for excess loss:

    E_Σ' ∇²L^Q(W)[W⋆Σ', W⋆Σ'] ≤ ⟨∇L^Q(W), W⟩ − 2(L^Q(W) − OPT) + …                    (5, Lemma 1)
    E_Σ' ∇²L(W)[W⋆Σ', W⋆Σ']   ≤ ⟨∇L(W), W⟩ − 2(L(W) − OPT) + ε                       (7, Theorem 2)
    E_Σ' ∇²L_λ(W)[W⋆Σ', W⋆Σ'] ≤ ⟨∇L_λ(W), W⟩ − 2(L_λ(W) − OPT) − λ‖W‖⁸ + Cλ‖W⋆‖⁸ + ε    (8, Corollary 3)

Since E Σ'_rr Σ'_ss = δ_rs, the mean over Σ' is the sum over columns of the Hessian's diagonal blocks; for a risk
E ℓ(y, f) with f = Σ_r f_r a sum over neurons,

    E_Σ' ∇²[W⋆Σ', W⋆Σ'] = E[ℓ''(y, f) Σ_r (Df_r[w⋆_r])² + ℓ'(y, f) Σ_r D²f_r[w⋆_r, w⋆_r]],

and no sign Σ' is ever drawn. Everything here is float64 on the host.
"""

from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8

from offtangent._arguments import check_ordinary
from offtangent._checks import check_entries, check_magnitude
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.special.losses import Loss
from offtangent.taylor.curvature import Certificate
from offtangent.theory.bai_lee.contract import loss_contract
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT, mean_penalty_hessian, penalty, penalty_choice
from offtangent.theory.bai_lee.risks import CleanRisk, RandomisedRisk, halves
from offtangent.theory.bai_lee.signs import check_weights, in_float64, over_signs, standard_error


@dataclass(frozen=True)
class LandscapeInequality:
    """curvature ≤ descent − 2(loss − opt) + allowance: (5), (7) or (8)."""

    curvature: float  # E_Σ' ∇²L[W⋆Σ', W⋆Σ'], the left side
    descent: float  # ⟨∇L, W⟩
    loss: float  # L(W)
    opt: float
    allowance: float  # what the statement adds besides
    error: float = 0.0  # standard error of the slack over the signs Σ of L; zero where all were taken

    @property
    def right(self) -> float:
        return self.descent - 2 * (self.loss - self.opt) + self.allowance

    @property
    def slack(self) -> float:
        """Right minus left: the inequality holds where it is zero or positive."""
        return self.right - self.curvature

    @property
    def needed(self) -> float:
        """How much more allowance (how large an ε) would make it hold."""
        return max(-self.slack, 0.0)


def clean_landscape(
    risk: CleanRisk, W: Float[AnyArray, "d m"], W_star: Float[AnyArray, "d2 m2"], *, opt: float | None = None
) -> LandscapeInequality:
    """Lemma 1 with its proof's exact last term instead of Õ(dB_x⁴‖W‖²‖W⋆‖²/m), and 1/m where Appendix B.1 prints 2/m:

        (mn)⁻¹ Σᵢ Σ_r a_r² σ''(w₀ᵣᵀxᵢ)² (wᵣᵀxᵢ)² (w⋆ᵣᵀxᵢ)².

    It holds for every W and W⋆, at any width, if ℓ is convex with ℓ'' ≤ 1 and L^Q(W⋆) ≤ OPT; `opt` is L^Q(W⋆) unless
    given. `risk` is taken without its λ. Time O(ndm), memory O(nm).
    """
    _check_problem(risk, CleanRisk, W, W_star)
    check_ordinary(opt=0.0 if opt is None else opt)
    with jax.enable_x64(True):
        terms = _clean_terms(in_float64(risk), _float64(W), _float64(W_star))
        found = {name: float(value) for name, value in terms.items()}
    best = found.pop("best")
    return LandscapeInequality(opt=best if opt is None else opt, **found)


@eqx.filter_jit
def _clean_terms(risk: CleanRisk, W: Float[Array, "d m"], W_star: Float[Array, "d m"]) -> dict[str, Float[Array, ""]]:
    net, X, y = risk.net, risk.model.X, risk.y
    second = net.a * net.activation.derivative(2)(X @ net.W0) / net.width**0.5
    here, there = X @ W, X @ W_star
    f, f_star = (jnp.sum(second * z**2, axis=1) / 2 for z in (here, there))
    slope, bend = (risk.loss.derivative(k)(y, f) for k in (1, 2))
    crossed = jnp.sum((second * here * there) ** 2, axis=1)
    return {
        "curvature": jnp.mean(bend * crossed + slope * 2 * f_star),
        "descent": jnp.mean(slope * 2 * f),
        "loss": jnp.mean(risk.loss(y, f)),
        "best": jnp.mean(risk.loss(y, f_star)),
        "allowance": jnp.mean(crossed),
    }


def randomised_landscape(
    risk: RandomisedRisk,
    W: Float[AnyArray, "d m"],
    W_star: Float[AnyArray, "d2 m2"],
    *,
    opt: float | None = None,
    epsilon: float = 0.0,
) -> LandscapeInequality:
    """Theorem 2, or with the risk's λ > 0 Corollary 3 with C = 378(14/5)³; the mean over Σ is that of the risk's signs.

    With ε = 0, `needed` is the ε for which it holds at this W: it goes to zero with the width. `opt` is L^Q(W⋆) unless
    given. Time O(ndm + snm) for s signs, memory O(nm) and a bounded number of outputs.
    """
    _check_problem(risk, RandomisedRisk, W, W_star)
    check_ordinary(epsilon=epsilon, opt=0.0 if opt is None else opt)
    with jax.enable_x64(True):
        sizes, terms = _randomised_terms(in_float64(risk), _float64(W), _float64(W_star))
        size, size_star, bowl, best = (float(one) for one in sizes)
        pairs = {name: np.asarray(values) for name, values in terms.items()}
        strength = float(risk.strength)
    means = {name: float(values.mean()) for name, values in pairs.items()}
    slacks = pairs["descent"] - 2 * pairs["loss"] - pairs["curvature"]
    return LandscapeInequality(
        curvature=means["curvature"] + strength * bowl,
        descent=means["descent"] + 8 * strength * size,
        loss=means["loss"] + strength * size,
        opt=best if opt is None else opt,
        allowance=epsilon + strength * (LANDSCAPE_CONSTANT * size_star - size),
        error=0.0 if risk.exact else standard_error(slacks),
    )


@eqx.filter_jit
def _randomised_terms(
    risk: RandomisedRisk, W: Float[Array, "d m"], W_star: Float[Array, "d m"]
) -> tuple[tuple[Float[Array, ""], ...], dict[str, Float[Array, " s"]]]:
    """‖W‖⁸, ‖W⋆‖⁸, the former's mean Hessian and L^Q(W⋆); and for each of the risk's signs the means of the three terms
    over the data and over Σ, −Σ.
    """
    net, X, y, loss = risk.net, risk.X, risk.y, risk.loss
    first, second = (net.activation.derivative(k) for k in (1, 2))
    here, there = X @ W, X @ W_star
    start = X @ net.W0
    up, down = start + here, start - here

    def split(plus: Array, minus: Array) -> tuple[Array, Array]:
        """Σ_r of the even part, and the odd parts."""
        return jnp.sum(plus + minus, axis=1) / 2, (plus - minus) / 2

    scale = net.a / net.width**0.5
    outputs = halves(net, net.activation, W, X)
    # With signs s: Df_r[w_r] = m^{-1/2} a σ'(u_r) s_r (w_rᵀx), (Df_r[w⋆_r])² and D²f_r[w⋆_r, w⋆_r] at u_r = up or down.
    along = split(scale * first(up) * here, -scale * first(down) * here)
    squares = split((scale * first(up) * there) ** 2, (scale * first(down) * there) ** 2)
    bends = split(scale * second(up) * there**2, scale * second(down) * there**2)

    def pair(signs: Int8[Array, " m"]) -> dict[str, Float[Array, ""]]:
        found = {"curvature": jnp.zeros((), X.dtype), "descent": jnp.zeros((), X.dtype), "loss": jnp.zeros((), X.dtype)}
        for sign in (1, -1):
            s = sign * signs.astype(X.dtype)
            f, slope_along, square, bend = (even + odd @ s for even, odd in (outputs, along, squares, bends))
            slope, second_slope = (loss.derivative(k)(y, f) for k in (1, 2))
            found["curvature"] += jnp.mean(second_slope * square + slope * bend) / 2
            found["descent"] += jnp.mean(slope * slope_along) / 2
            found["loss"] += jnp.mean(loss(y, f)) / 2
        return found

    sizes = *_penalty_terms(W, W_star), _clean_loss(risk, W_star)
    return sizes, over_signs(pair, risk.signs, 8 * len(X))


def _clean_loss(risk: RandomisedRisk, W: Float[Array, "d m"]) -> Float[Array, ""]:
    second = risk.net.a * risk.net.activation.derivative(2)(risk.X @ risk.net.W0)
    f = jnp.sum(second * (risk.X @ W) ** 2, axis=1) / (2 * risk.net.width**0.5)
    return jnp.mean(risk.loss(risk.y, f))


def penalty_landscape(W: Float[AnyArray, "d m"], W_star: Float[AnyArray, "d m"]) -> LandscapeInequality:
    """What ‖W‖⁸_{2,4} alone adds in Corollary 3 (λ = 1): with P = ‖·‖⁸,

        E_Σ' ∇²P(W)[W⋆Σ', W⋆Σ'] ≤ ⟨∇P(W), W⟩ − 2P(W) − P(W) + C P(W⋆).

    It holds for all W and W⋆, without a condition, and C cannot be smaller.
    """
    if jnp.ndim(W) != 2 or jnp.shape(W) != jnp.shape(W_star):
        raise InputError(
            f"W has shape {jnp.shape(W)} and W_star {jnp.shape(W_star)}: expected two matrices of one shape."
        )
    check_entries(W=W, W_star=W_star)
    check_magnitude(8, W=W, W_star=W_star)
    with jax.enable_x64(True):
        size, size_star, curvature = (float(one) for one in _penalty_terms(_float64(W), _float64(W_star)))
    return LandscapeInequality(curvature, 8 * size, size, 0.0, LANDSCAPE_CONSTANT * size_star - size)


@jax.jit
def _penalty_terms(W: Float[Array, "d m"], W_star: Float[Array, "d m"]) -> tuple[Float[Array, ""], ...]:
    return penalty(W), penalty(W_star), mean_penalty_hessian(W, W_star)


@dataclass(frozen=True)
class StationaryBound:
    """Theorem 4 at a point: its loss and its norm, and what they may be at most."""

    loss: float  # L_λ(Ŵ)
    loss_bound: float  # (1 + γ) OPT + ε, plus `inexactness`/2
    norm: float  # ‖Ŵ‖_{2,4}
    norm_bound: float
    inexactness: float  # ‖∇L_λ‖ ‖Ŵ‖_F + (−λ_min)₊ ‖W⋆‖_F²: zero at an exact second-order stationary point
    strength: float  # λ
    error: float  # standard error of the loss

    @property
    def slack(self) -> float:
        """Of the loss."""
        return self.loss_bound - self.loss

    @property
    def norm_slack(self) -> float:
        return self.norm_bound - self.norm


def stationary_bound(
    risk: RandomisedRisk,
    W: Float[AnyArray, "d m"],
    W_star: Float[AnyArray, "d2 m2"],
    *,
    gamma: float,
    epsilon: float,
    opt: float | None = None,
    point: Certificate | None = None,
) -> StationaryBound:
    """Theorem 4: L_λ(Ŵ) ≤ (1 + γ) OPT + ε and ‖Ŵ‖_{2,4} = O(‖W⋆‖_{2,4}), with the constants of Appendix B.6.

    `risk` must have the λ of `penalty_choice(‖W⋆‖_{2,4}, opt=…, gamma=…, epsilon=…)`. The proof takes Ŵ as exactly
    stationary; `point`, the certificate of `risk` at W, says how far it is from that, and (8) turns that into
    `inexactness`. The theorem wants a width at which (8) holds at Ŵ with this ε; `randomised_landscape` measures it.
    """
    _check_problem(risk, RandomisedRisk, W, W_star)
    check_contract(risk.loss)
    with jax.enable_x64(True):
        sizes, terms = _randomised_terms(in_float64(risk), _float64(W), _float64(W_star))
        size, size_star, _, best = (float(one) for one in sizes)
        losses = np.asarray(terms["loss"])
    norm_star, best = size_star ** (1 / 8), best if opt is None else opt
    lengths = np.linalg.norm(W), np.linalg.norm(W_star)
    choice = penalty_choice(norm_star, opt=best, gamma=gamma, epsilon=epsilon)
    if not np.isclose(float(risk.strength), choice.strength, rtol=1e-5, atol=0):
        raise InputError(
            f"The risk has λ = {float(risk.strength):g}; Theorem 4 with these OPT, γ, ε and W⋆ takes "
            f"λ = {choice.strength:g}. Give RandomisedRisk.of(..., strength={choice.strength!r})."
        )
    inexact = 0.0
    if point is not None:
        inexact = float(point.gradient_norm * lengths[0] + max(-point.lowest, 0.0) * lengths[1] ** 2)
    power = choice.norm_bound**8 + inexact / choice.strength
    return StationaryBound(
        loss=float(losses.mean()) + float(risk.strength) * size,
        loss_bound=choice.loss_bound + inexact / 2,
        norm=size ** (1 / 8),
        norm_bound=power ** (1 / 8),
        inexactness=inexact,
        strength=choice.strength,
        error=0.0 if risk.exact else standard_error(losses),
    )


def _float64(values: AnyArray) -> Float[Array, "..."]:
    return jnp.asarray(np.asarray(values), jnp.float64)


def _check_problem(risk: object, kind: type[CleanRisk] | type[RandomisedRisk], W: AnyArray, W_star: AnyArray) -> None:
    if not isinstance(risk, kind):
        raise InputError(f"risk is {a_kind(risk)}: expected a {kind.__name__}, from {kind.__name__}.of(...).")
    _check_shapes(risk.net, W, W_star)


def _check_shapes(net: TwoLayer, W: AnyArray, W_star: AnyArray) -> None:
    check_weights(net, W)
    check_weights(net, W_star, "W_star")


@cache
def check_contract(loss: Loss) -> None:
    """Refuse a loss that does not meet the conditions of Theorem 4 of Bai & Lee (2020), as `loss_contract` has them."""
    broken = loss_contract(loss).failures
    if broken:
        raise InputError(
            f"{loss.name} is outside Theorem 4, whose losses are convex, 1-Lipschitz and so on: "
            f"{'; '.join(map(str, broken))}. Take logistic or soft_hinge; loss_contract(loss) tells all parts."
        )
