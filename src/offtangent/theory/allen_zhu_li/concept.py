"""How complex a target of Allen-Zhu & Li (2019) is: 𝔠_ε, 𝔠_s, and the bounds that follow from them.

Section 4: for a power series φ(z) = Σ c_i z^i,

    𝔠_ε(φ) = Σ_i ((C*)^i + (√(ln(1/ε)/i) C*)^i) |c_i|,        𝔠_s(φ) = C* Σ_i (i + 1)|c_i|,

C* "a sufficiently large constant (e.g. 10⁴)". 𝔠_ε counts neurons, 𝔠_s samples. What each statement needs of C* is
said where it is used; most hold with C* = 1 or 2.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_positive
from offtangent._checks import check_numbers, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.data.hierarchy import GeneralRidges, SmoothRidges

Ridges = SmoothRidges | GeneralRidges


def series_complexity(
    series: Float[np.ndarray, "*ridges orders"], *, epsilon: float, constant: float | int = 1.0
) -> Float[np.ndarray, "*ridges"]:
    """𝔠_ε of each series, `constant` = C*; for i = 0 the second power counts as 1.

    >>> series_complexity(np.array([0.0, 1.0]), epsilon=math.exp(-4.0))  # C* + 2C*
    array(3.)
    """
    _check_epsilon(epsilon)
    check_positive(constant=constant)
    series = _check_series(series)
    orders = np.arange(1, series.shape[-1])
    powers = float(constant) ** orders + (math.sqrt(math.log(1 / epsilon)) / np.sqrt(orders) * constant) ** orders
    return np.asarray(np.abs(series) @ np.concatenate([[2.0], powers]))


def series_smoothness(
    series: Float[np.ndarray, "*ridges orders"], *, constant: float | int = 1.0
) -> Float[np.ndarray, "*ridges"]:
    """𝔠_s of each series, `constant` = C*.

    >>> series_smoothness(np.array([1.0, -2.0]))  # 1 + 2·2
    array(5.)
    """
    check_positive(constant=constant)
    series = _check_series(series)
    return np.asarray(constant * np.abs(series) @ (np.arange(series.shape[-1]) + 1.0))


@dataclass(frozen=True)
class ConceptComplexity:
    """(p, 𝔠_s(F), 𝔠_ε(F)) of Definition B.1, and what it bounds."""

    outputs: int  # k
    terms: int  # p
    smooth: float  # 𝔠_s(F), the largest over its ridges
    size: float  # 𝔠_ε(F), likewise
    constant: float = 1.0  # C*

    @property
    def lipschitz(self) -> float:
        """‖F(x) − F(y)‖ ≤ √k p 𝔠_s(F) ‖x − y‖: Fact B.3, for C* ≥ 1.

        The paper's proof ends with 3p𝔠_s(F); but (x, 1)/‖(x, 1)‖ changes at the rate 1/‖(x, 1)‖ at most, so each ridge
        has slope |φ| + |φ′| ≤ Σ (i + 1)|c_i| at most, and the fact is right as it is stated.
        """
        return math.sqrt(self.outputs) * self.terms * self.smooth

    def bound(self, radius: float | int) -> float:
        """‖F(x)‖ ≤ √k p 𝔠_s(F) ‖(x, 1)‖ for ‖x‖ ≤ radius: Fact B.3, whose ‖x‖ must be ‖(x, 1)‖ (F(0) need not be 0)."""
        _check_radius("radius", radius)
        return self.lipschitz * math.hypot(radius, 1.0)


def concept_complexity(F: Ridges, *, epsilon: float = 0.1, constant: float | int = 1.0) -> ConceptComplexity:
    """The general complexity of F; one of Concept 1 counts as its F′ of Lemma B.2, with twice the ridges.

    >>> import jax
    >>> F = GeneralRidges.random(3, outputs=4, terms=2, series=[0.0, 1.0], key=jax.random.key(0))
    >>> concept_complexity(F).smooth, concept_complexity(F).lipschitz
    (2.0, 8.0)
    """
    if not isinstance(F, SmoothRidges | GeneralRidges):
        raise InputError(
            f"F is {a_kind(F)}: expected data.hierarchy.SmoothRidges or GeneralRidges, whose power series are what "
            "is measured. For a product of coordinates take the ridges of "
            "data.hierarchy.polarised_hierarchy(...).composite."
        )
    general = F.general() if isinstance(F, SmoothRidges) else F
    smooth = series_smoothness(general.series, constant=constant)
    size = series_complexity(general.series, epsilon=epsilon, constant=constant)
    return ConceptComplexity(general.outputs, general.terms, float(smooth.max()), float(size.max()), float(constant))


def composite_bound(composite: ConceptComplexity, base_bound: float | int) -> float:
    """𝔅_{F∘G} ≤ 𝔏_G 𝔅_F + √k p_G 𝔠_s(G), a bound on ‖G(F(x))‖ where ‖F(x)‖ ≤ 𝔅_F = base_bound (Section 5).

    >>> composite_bound(ConceptComplexity(outputs=4, terms=1, smooth=2.0, size=0.0), 1.0)
    8.0
    """
    _check_radius("base_bound", base_bound)
    return composite.lipschitz * base_bound + composite.bound(0.0)


def _check_series(series: object) -> Float[np.ndarray, "*ridges orders"]:
    found = check_numbers(series, "series")
    require(
        found.size and np.isfinite(found).all(),
        f"series of shape {found.shape}: expected finite coefficients c_0, c_1, … of each ridge.",
    )
    return found


def _check_radius(name: str, value: float | int) -> None:
    check_real(name, value)
    require(0 <= value < math.inf, f"{name}={value:g}: it is a length, finite and at least 0.")


def _check_epsilon(epsilon: float) -> None:
    check_real("epsilon", epsilon)
    require(0 < epsilon < 1, f"epsilon={epsilon:g}: 𝔠_ε has ln(1/ε), and ε lies between 0 and 1.")
