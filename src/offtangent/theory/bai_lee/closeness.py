"""How close the randomised risk L is to the clean risk L^Q: Lemmas 10, 12, 13 and 14, both sides, with constants.

Bai & Lee (2020), Appendices B.2 and B.3. Assumption A: |σ'(t)| ≤ C₁t², |σ''(t)| ≤ C₂|t|, σ'' is C₃-Lipschitz. With
ρ = max_{r,i} |w₀ᵣᵀxᵢ| (Õ(√d) by (4)), b = B_x‖W‖_{2,4}, b⋆ = B_x‖W⋆‖_{2,4}, b_∞ = B_x‖W‖_{2,∞} and

    κ² = C₁²ρ⁴b² m^{-1/2} ≥ E_Σ (f^L_{WΣ})²,    δ = C₃b³ m^{-1/4}/6 ≥ |Δ^Q_{WΣ}|                        (Lemma 11)

the proofs give, at any width,

    |f^Q_W(xᵢ)| ≤ ½C₂ρb²                                                                                (Lemma 10)
    |L − L^Q| ≤ δ + ½κ²                                                                                 (Lemma 12)
    |⟨∇L − ∇L^Q, W⟩| ≤ κ + (δ + ½κ²) C₂ρb² + 3δ                                                         (Lemma 13)
    |E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']| ≤ C₁²(ρ + b_∞)⁴b⋆² m^{-1/2} + C₂²ρ²b²b⋆² m^{-1}
                                        + C₃b b⋆² m^{-1/4} + (δ + ½κ²) C₂ρb⋆²                           (Lemma 14)

Lemma 12's proof bounds E|f^L| by κ and prints κ²; what it states, and what 13 and 14 then use for ℓ' in place of ℓ, is
true since E_Σ f^L_{WΣ} = 0 with |ℓ''|, |ℓ'''| ≤ 1, as done here. f^Q has its ½, which Lemma 10 drops. Lemma 1's last
term and twice Lemma 12, 13 and 14 together are an ε for which Theorem 2 holds at W, at any width.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.theory._results import Sides
from offtangent.theory.bai_lee.landscape import _clean_terms, _randomised_terms, check_contract
from offtangent.theory.bai_lee.risks import CleanRisk, RandomisedRisk
from offtangent.theory.bai_lee.signs import check_weights, in_float64, quadratic_expansion, standard_error

CUBIC = (0.5, 1.0, 1.0)  # C₁, C₂, C₃ of relu³/6


@dataclass(frozen=True)
class Closeness:
    """Lemmas 10, 12, 13, 14 at one W, and what they make of Theorem 2."""

    outputs: Sides  # max_i |f^Q_W(xᵢ)|, Lemma 10
    loss: Sides  # |L − L^Q|, Lemma 12
    gradient: Sides  # |⟨∇L − ∇L^Q, W⟩|, Lemma 13
    curvature: Sides  # |E_Σ' (∇²L − ∇²L^Q)[W⋆Σ', W⋆Σ']|, Lemma 14
    clean: float  # Lemma 1's exact last term

    @property
    def epsilon(self) -> float:
        """Theorem 2 holds at this W with this ε, whatever the width: B.4 without its split into sixths."""
        return self.clean + 2 * self.loss.right + self.gradient.right + self.curvature.right


def risk_closeness(
    risk: RandomisedRisk,
    W: Float[AnyArray, "d m"],
    W_star: Float[AnyArray, "d2 m2"],
    *,
    constants: tuple[float, float, float] | None = None,
) -> Closeness:
    """Lemmas 10, 12, 13 and 14 at W, on the risk's own inputs and signs and without its λ; float64 on the host.

    `constants` are C₁, C₂, C₃ of Assumption A; those of relu³/6 are known, (1/2, 1, 1). B_x is the longest input. With
    drawn signs the left sides carry an error (`Sides.error`), the right sides do not. Time O(ndm + snm) for s signs,
    memory O(nm) and a bounded number of outputs.
    """
    constants = known_constants(risk.net, constants)
    check_contract(risk.loss)
    with jax.enable_x64(True):
        here = jnp.asarray(np.asarray(check_weights(risk.net, W)), jnp.float64)
        there = jnp.asarray(np.asarray(check_weights(risk.net, W_star, "W_star")), jnp.float64)
        clean, pairs, size = _measure(in_float64(risk), here, there)
        still = {name: float(value) for name, value in clean.items()}
        drawn = {name: np.asarray(values) for name, values in pairs.items()}
        sizes = {name: float(value) for name, value in size.items()}
    return closeness_of(risk, still, drawn, sizes, constants)


def closeness_of(
    risk: RandomisedRisk,
    clean: Mapping[str, float],
    pairs: Mapping[str, Float[np.ndarray, " s"]],
    sizes: Mapping[str, float],
    constants: tuple[float, float, float],
) -> Closeness:
    """`Closeness` from what `measure` found at one point."""
    right = _bounds(risk.net.width, sizes, constants)

    def sides(name: str) -> Sides:
        error = 0.0 if risk.exact else standard_error(pairs[name])
        return Sides(abs(float(pairs[name].mean()) - clean[name]), right[name], error)

    return Closeness(
        outputs=Sides(sizes["output"], right["outputs"]),
        loss=sides("loss"),
        gradient=sides("descent"),
        curvature=sides("curvature"),
        clean=clean["allowance"],
    )


def known_constants(net: TwoLayer, constants: tuple[float, float, float] | None) -> tuple[float, float, float]:
    """C₁, C₂, C₃ as given, or those of relu³/6; an InputError for another activation."""
    if constants is None and net.activation.name != "relu3":
        raise InputError(
            f"activation {net.activation.name!r}: the constants of Assumption A are known for relu3 alone. "
            "Give constants=(sup|σ'|/t², sup|σ''|/|t|, Lipschitz constant of σ'')."
        )
    return CUBIC if constants is None else constants


def _bounds(width: int, size: Mapping[str, float], constants: tuple[float, float, float]) -> dict[str, float]:
    """The right sides, from B_x, ρ and the norms."""
    first, second, third = constants
    rho, b, b_star, furthest = size["start"], size["norm"], size["norm_star"], size["furthest"]
    quarter = width**-0.25
    square = (first * rho**2 * b) ** 2 * quarter**2  # κ²
    cubic = third * b**3 * quarter / 6  # δ
    change = cubic + square / 2
    slopes = (first * (rho + furthest) ** 2 * b_star) ** 2 * quarter**2
    crossed = (second * rho * b * b_star) ** 2 / width
    return {
        "outputs": second * rho * b**2 / 2,
        "loss": change,
        "descent": square**0.5 + change * second * rho * b**2 + 3 * cubic,
        "curvature": slopes + crossed + third * b * b_star**2 * quarter + change * second * rho * b_star**2,
    }


def measure(
    risk: RandomisedRisk, W: Float[Array, "d m"], W_star: Float[Array, "d m"]
) -> tuple[dict[str, Float[Array, ""]], dict[str, Float[Array, " s"]], dict[str, Float[Array, ""]]]:
    """The terms of Lemma 1, those of Theorem 2 for each pair of signs, and the sizes in the bounds. Jittable."""
    net, X = risk.net, risk.X
    clean = CleanRisk(net, quadratic_expansion(net).on(X), risk.y, risk.strength, risk.loss)
    powers, pairs = _randomised_terms(risk, W, W_star)
    radius = jnp.max(jnp.linalg.norm(X, axis=1))
    sizes = {
        "output": jnp.max(jnp.abs(clean.outputs(W))),
        "start": jnp.max(jnp.abs(X @ net.W0)),
        "norm": radius * powers[0] ** (1 / 8),
        "norm_star": radius * powers[1] ** (1 / 8),
        "furthest": radius * jnp.max(jnp.linalg.norm(W, axis=0)),
        "power": powers[0],  # ‖W‖⁸
        "power_star": powers[1],
        "power_curvature": powers[2],  # E_Σ' ∇²‖W‖⁸[W⋆Σ', W⋆Σ']
    }
    return _clean_terms(clean, W, W_star), pairs, sizes


_measure = eqx.filter_jit(measure)
