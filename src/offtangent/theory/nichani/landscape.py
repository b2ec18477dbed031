"""The landscape of the regularised loss L_λ as a measured inequality, and what it says at a stationary point.

Nichani, Bai & Lee (2022), Lemma 3 and Corollary 1. With W⋆ of Theorem 2, W_L⋆ its part in the span of the first n_k
eigenvectors of Σ, W_L = P_{≤k}W, and signs S on the columns of W⋆ (printed SW⋆),

    E_S ∇²L_λ(W)[W⋆S, W⋆S] ≤ ⟨∇L_λ(W), W − 2W_L⋆ + W_L⟩ − 2(L_λ(W) − L_λ(W⋆)) + O(ε_min).      (31)

The mean over S has no cross terms between neurons: for f = Σ_r f_r

    E_S ∇²L̂[W⋆S, W⋆S] = E_n[ℓ''(y, f) Σ_r (Df_r[w⋆_r])² + ℓ'(y, f) Σ_r D²f_r[w⋆_r, w⋆_r]],
    E_S ∇²Rᵢ[W⋆S, W⋆S] = 2 E_S Rᵢ(W⋆S) for i = 1, 2, 3 (`signed_regularisers`), `mean_penalty_hessian` for R₄,

and no sign is drawn. For the quadratic model the proof's own terms in place of O(ε_min) make (31) true at every W and
every width (`JointLandscape.proven`). All on the host, in float64.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float

from offtangent._checks import require
from offtangent._errors import InputError, a_kind
from offtangent._host import on_host
from offtangent._types import AnyArray
from offtangent.special.losses import Loss
from offtangent.taylor.curvature import Certificate
from offtangent.theory.bai_lee.contract import loss_contract
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.landscape import LandscapeInequality
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.bai_lee.signs import check_weights
from offtangent.theory.nichani.bilinear import FeatureForms, FeatureImage
from offtangent.theory.nichani.choice import RegulariserSizes
from offtangent.theory.nichani.joint import JointExpression
from offtangent.theory.nichani.risk import Model, check_strengths, loss_on_host


@dataclass(frozen=True)
class JointStationary:
    """Corollary 1 at a point: L_λ(Ŵ) ≤ L_λ(W⋆) + ½(inexactness + ε of (31) there)."""

    loss: float  # L_λ(Ŵ)
    opt: float  # L_λ(W⋆)
    inexactness: float  # ‖∇L_λ‖ ‖Ŵ − 2W_L⋆ + W_L‖_F + (−λ_min)₊ ‖W⋆‖_F²: zero at an exact second-order point
    epsilon: float  # what (31) needs at Ŵ

    @property
    def bound(self) -> float:
        return self.opt + (self.inexactness + self.epsilon) / 2

    @property
    def slack(self) -> float:
        return self.bound - self.loss


@dataclass(frozen=True, eq=False, repr=False)
class JointLandscape:
    """(31) for one W⋆, its training inputs and labels, and λ₁, …, λ₄, at any W. `of` makes it."""

    star: JointExpression
    quadratic: Float[np.ndarray, "3"]  # λ₁, λ₂, λ₃
    top: float  # λ₄
    model: Model  # whose loss L̂ is
    forms: FeatureForms
    scale: Float[np.ndarray, " m"]  # a_r/√m
    start: Float[np.ndarray, "n m"]  # w_{0,r}ᵀxᵢ
    first: Float[np.ndarray, "n m"]  # a_r σ'/√m there
    second: Float[np.ndarray, "n m"]  # a_r σ''/√m
    along: Float[np.ndarray, "n m"]  # w⋆_rᵀxᵢ
    images: tuple[FeatureImage, FeatureImage]  # of W⋆ and of W_L⋆
    means: Float[np.ndarray, "3"]  # E_S Rᵢ(W⋆S)

    @classmethod
    def of(cls, star: JointExpression, *, strengths: RegulariserSizes, model: Model = "network") -> "JointLandscape":
        """L̂ is the loss of the network, or of its quadratic model f_L + f_Q. Time O((n + N)dm), memory O((n + N)m)."""
        if not isinstance(star, JointExpression):
            raise InputError(f"star is {a_kind(star)}: expected W⋆ from express_jointly(...).")
        if model not in ("network", "quadratic"):
            raise InputError(f"model={model!r}: L̂ is of the 'network', or of its 'quadratic' model.")
        *quadratic, top = check_strengths(strengths).tolist()
        net, means = star.covariance.net, star.flipped()
        scale = np.asarray(net.a, np.float64) / net.width**0.5
        start = star.X @ np.asarray(net.W0, np.float64)
        first, second = (scale * on_host(net.activation.derivative(k), start) for k in (1, 2))
        forms = FeatureForms.of(star.covariance, star.X, star.rank)
        images = forms.image(star.weights), forms.image(star.linear.weights)
        return cls(
            star=star,
            quadratic=np.array(quadratic),
            top=top,
            model=model,
            forms=forms,
            scale=scale,
            start=start,
            first=first,
            second=second,
            along=star.X @ star.weights,
            images=images,
            means=np.array([means.r1, means.r2, means.r3]),
        )

    @cached_property
    def opt(self) -> float:
        """L_λ(W⋆)."""
        return self.loss(self.star.weights)

    def loss(self, W: Float[AnyArray, "d m"]) -> float:
        """L_λ(W). Time O((n + N)dm)."""
        point = check_weights(self.star.covariance.net, W)
        return self._value(point, self.forms.image(point), self._outputs(self.star.X @ point))

    def at(self, W: Float[AnyArray, "d m"], *, epsilon: float = 0.0) -> LandscapeInequality:
        """(31) at W with `epsilon` for what it adds; with 0, `needed` is the ε it needs.

        `descent` is ⟨∇L_λ(W), W − 2W_L⋆ + W_L⟩ and `opt` is L_λ(W⋆). Time O((n + N)dm).
        """
        return self._inequality(self._place(W), epsilon)

    def proven(self, W: Float[AnyArray, "d m"]) -> LandscapeInequality:
        """(31) at W for the quadratic model, with the terms that its proof bounds in place of O(ε_min): always true.

        For 0 ≤ ℓ'' ≤ 1 and |ℓ'| ≤ 1 they are `remainder` and, with U = W_L − 2W_L⋆,

            2λ₁(E_S R₁(W⋆S) − R₁(W⋆)) + 2λ₂(E_S R₂(W⋆S) − R₂(W⋆) + R₂(W_L⋆)) + 2λ₃(E_S R₃(W⋆S) − R₃(W⋆))
            + λ₄((C − 2)R₄(W⋆) − R₄(W) − ⟨∇R₄(W), U⟩),      C = 378(14/5)³ (Bai & Lee, Corollary 3).
        """
        _check_contract(self.star.criterion)
        place, (whole, low) = self._place(W), self.images
        own = self.forms.of_pair(whole, whole)
        own[1] -= self.forms.of_pair(low, low)[1]
        top = (LANDSCAPE_CONSTANT - 2) * _penalty(self.star.weights) - _penalty(place.W)
        top -= float(np.vdot(_penalty_gradient(place.W), place.step))
        room = 2 * float(self.quadratic @ (self.means - own)) + self.top * top
        return self._inequality(place, self._remainder(place) + room)

    def remainder(self, W: Float[AnyArray, "d m"]) -> float:
        """What the proof of (31) adds beside the regularisers' terms, for the quadratic model:

            E_n Σ_r (Df_r[w⋆_r])² + E_n|f_L(P_{>k}W)| + 2E_n|f_L(W⋆ − W_L⋆)| + E_n|Q(W, U)|,

        where Df_r[w⋆_r] = m^{−1/2} a_r(σ' + σ'' w_rᵀx) w⋆_rᵀx, Q(W, U) = m^{−1/2} Σ_r a_r σ''(w_{0,r}ᵀx)(w_rᵀx)(u_rᵀx).
        """
        return self._remainder(self._place(W))

    def stationary(self, W: Float[AnyArray, "d m"], point: Certificate) -> JointStationary:
        """What (31) says of the loss at Ŵ, given the certificate of L_λ there (`JointRisk`).

        Corollary 1 with all of its constants: E_S ∇²[W⋆S, W⋆S] ≥ λ_min‖W⋆‖_F², and Cauchy and Schwarz for the gradient.
        """
        place = self._place(W)
        here, length = self._inequality(place, 0.0), float(np.linalg.norm(place.W + place.step))
        bend = max(-point.lowest, 0.0) * float(np.sum(self.star.weights**2))
        return JointStationary(here.loss, here.opt, point.gradient_norm * length + bend, here.needed)

    def _place(self, W: Float[AnyArray, "d m"]) -> "_Place":
        net, star = self.star.covariance.net, self.star
        point = check_weights(net, W)
        image, moved = self.forms.image(point), star.X @ point
        step = star.covariance.combine(image.coordinates) - 2 * star.linear.weights
        if self.model == "network":
            derivatives = (net.activation.derivative(k) for k in (1, 2))
            tilt, curve = (self.scale * on_host(one, self.start + moved) for one in derivatives)
        else:
            tilt, curve = self.first + self.second * moved, self.second
        return _Place(point, image, moved, step, tilt, curve)

    def _inequality(self, place: "_Place", allowance: float) -> LandscapeInequality:
        star, W, f = self.star, place.W, self._outputs(place.moved)
        ahead = W + place.step
        slope, bend = (loss_on_host(star.criterion, star.y, f, k) for k in (1, 2))
        crossed = np.sum((place.tilt * self.along) ** 2, axis=1)
        curvature = float(np.mean(bend * crossed + slope * np.sum(place.curve * self.along**2, axis=1)))
        descent = float(np.mean(slope * np.sum(place.tilt * (star.X @ ahead), axis=1)))
        towards = self.forms.of_pair(self.forms.image(ahead), place.image)
        return LandscapeInequality(
            curvature=curvature
            + 2 * float(self.quadratic @ self.means)
            + self.top * _mean_penalty_hessian(W, star.weights),
            descent=descent
            + 2 * float(self.quadratic @ towards)
            + self.top * float(np.vdot(_penalty_gradient(W), ahead)),
            loss=self._value(W, place.image, f),
            opt=self.opt,
            allowance=allowance,
        )

    def _remainder(self, place: "_Place") -> float:
        require(
            self.model == "quadratic",
            "The proof's terms are for the quadratic model: give JointLandscape.of model='quadratic'.",
        )
        whole, low = self.images
        crossed = np.sum((place.tilt * self.along) ** 2, axis=1)
        mixed = np.sum(self.second * place.moved * (self.star.X @ place.step), axis=1)
        return float(
            np.mean(crossed + np.abs(place.image.stray) + 2 * np.abs(whole.linear - low.linear) + np.abs(mixed))
        )

    def _outputs(self, moved: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
        if self.model == "network":
            return np.asarray(on_host(self.star.covariance.net.activation, self.start + moved) @ self.scale)
        return np.sum((self.first + self.second * moved / 2) * moved, axis=1)

    def _value(self, W: Float[np.ndarray, "d m"], image: FeatureImage, f: Float[np.ndarray, " n"]) -> float:
        data = float(np.mean(loss_on_host(self.star.criterion, self.star.y, f)))
        return data + float(self.quadratic @ self.forms.of_pair(image, image)) + self.top * _penalty(W)


@dataclass(frozen=True, eq=False)
class _Place:
    """One W: its image, w_rᵀxᵢ, U = W_L − 2W_L⋆, and the first and second derivatives of the neurons there."""

    W: Float[np.ndarray, "d m"]
    image: FeatureImage
    moved: Float[np.ndarray, "n m"]
    step: Float[np.ndarray, "d m"]
    tilt: Float[np.ndarray, "n m"]
    curve: Float[np.ndarray, "n m"]


# `bai_lee.penalties` has these for JAX, which would compile them for every width.


def _penalty(W: Float[np.ndarray, "d m"]) -> float:
    return column_norm(W, 4) ** 8


def _penalty_gradient(W: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "d m"]:
    squares = np.sum(W**2, axis=0)
    return 8 * float(squares @ squares) * squares * W


def _mean_penalty_hessian(W: Float[np.ndarray, "d m"], V: Float[np.ndarray, "d m"]) -> float:
    w, v, inner = np.sum(W**2, axis=0), np.sum(V**2, axis=0), np.sum(W * V, axis=0)
    return float(8 * (w @ w) * np.sum(w * v + 2 * inner**2) + 32 * np.sum((w * inner) ** 2))


@cache
def _check_contract(loss: Loss) -> None:
    broken = loss_contract(loss, own_label=True).failures
    if broken:
        raise InputError(
            f"{loss.name} breaks the proof's contract: {'; '.join(map(str, broken))}. Take special.losses.pseudo_huber."
        )
