"""How strong Nichani, Bai & Lee want their regularisers, how wide the network, and what they then promise.

Theorem 2, Lemma 3, Corollary 1 and Theorem 4, with every constant of ≲ and ≳ taken as one. The widths are out of reach
(d^{10k} in Theorem 2); networks far narrower do what the theorems say.
"""

import math
from dataclasses import dataclass

from offtangent._checks import check_bound, check_count, check_real, require
from offtangent.special.sphere import polynomial_dimension


@dataclass(frozen=True)
class RegulariserSizes:
    """One number for each of R₁, R₂, R₃ and R₄."""

    r1: float
    r2: float
    r3: float
    r4: float


@dataclass(frozen=True)
class SampleNeeds:
    """How many samples Remark 1 compares, for a target of degree k + 1 and rank K; constants and logarithms are one."""

    joint: float  # d^k: Theorem 1
    tangent: float  # d^{k+1}: what the NTK needs, a lower bound
    quadratic: float  # K² d^k: the upper bound of Bai & Lee for the QuadNTK


@dataclass(frozen=True)
class RegulariserChoice:
    """r and λ of Theorem 4 for d, m, k and ε_min, with the theorems' conditions; constants of ≲ are one."""

    dim: int
    width: float
    degree: int
    epsilon: float  # ε_min
    rank: int  # r = n_k

    @property
    def strengths(self) -> RegulariserSizes:
        """λ₁ = λ₃ = m^{1/2} d^{−(k−1)/2} ε_min, λ₂ = ε_min, λ₄ = d^{−2(k−1)} ε_min."""
        sizes, eps = self.sizes, self.epsilon
        return RegulariserSizes(eps / sizes.r1, eps / sizes.r2, eps / sizes.r3, eps / sizes.r4)

    @property
    def sizes(self) -> RegulariserSizes:
        """What R₁ to R₄ are at W⋆, eq. (30): m^{−1/2} d^{(k−1)/2}, 1, the first again, d^{2(k−1)}. So λᵢRᵢ = ε_min."""
        small = self.width**-0.5 * self.dim ** ((self.degree - 1) / 2)
        return RegulariserSizes(small, 1.0, small, float(self.dim) ** (2 * (self.degree - 1)))

    @property
    def expressive_width(self) -> float:
        """The width m of Theorem 2: max(d^{3(k−1)} ε⁻⁴, d^{10k})."""
        return max(self.generalising_width, float(self.dim) ** (10 * self.degree))

    @property
    def generalising_width(self) -> float:
        """The width m of Theorem 4: d^{3(k−1)} ε⁻⁴."""
        return float(self.dim) ** (3 * (self.degree - 1)) * self.epsilon**-4

    @property
    def samples(self) -> float:
        """The number n of samples of Theorem 2: d^k max(ε⁻², log d)."""
        return float(self.dim) ** self.degree * max(self.epsilon**-2, math.log(self.dim))

    def landscape_width(self, samples: int) -> float:
        """The width m of Lemma 3 for n samples: n⁴ d^{26(k+1)/3} ε^{−22/3}."""
        check_count("samples", samples)
        return samples**4 * self.dim ** (26 * (self.degree + 1) / 3) * self.epsilon ** (-22 / 3)

    def loss_bound(self, samples: int) -> float:
        """Theorem 4, eq. (32): the population loss ε_min + √(d^k/n)."""
        check_count("samples", samples)
        return self.epsilon + math.sqrt(float(self.dim) ** self.degree / samples)

    @property
    def gradient(self) -> float:
        """ν = m^{−1/2} of Corollary 1's second-order stationary point."""
        return self.width**-0.5

    @property
    def curvature(self) -> float:
        """γ = m^{−3/4} of the same."""
        return self.width**-0.75


def regulariser_choice(dim: int, width: float | int, degree: int, epsilon: float) -> RegulariserChoice:
    """The rank r = n_k and λ₁, …, λ₄ for inputs of dimension d, width m, degree k and ε_min: Theorem 4.

    >>> choice = regulariser_choice(100, 10_000, 2, 0.1)
    >>> choice.rank, choice.strengths
    (5150, RegulariserSizes(r1=1.0, r2=0.1, r3=1.0, r4=1e-05))
    >>> round(choice.loss_bound(1_000_000), 6)
    0.2
    """
    check_count("dim", dim, least=2)
    check_count("degree", degree)
    check_bound(width=width)
    check_real("epsilon", epsilon)
    require(0 < epsilon <= 1, f"epsilon={epsilon:g}: ε_min is a loss between 0 and 1, and losses are at most 1.")
    return RegulariserChoice(dim, float(width), degree, float(epsilon), polynomial_dimension(dim, degree))


def sample_needs(dim: int, degree: int, rank: int) -> SampleNeeds:
    """Compute d^k, d^{k+1} and K² d^k of Remark 1.

    The first two are what f_L + f_Q and f_L alone need; the third is what is known to be enough for f_Q alone. A dense
    polynomial of degree 2 has rank K = d, and the quadratic term's bound is then d^{k+2}.

    Args:
        dim: The dimension d of the inputs.
        degree: The degree k of the dense part; the target has degree k + 1.
        rank: The rank K of the whole target as a polynomial of degree k + 1, its dense part included.

    Returns:
        The three numbers of samples.

    >>> sample_needs(100, 1, 2)
    SampleNeeds(joint=100.0, tangent=10000.0, quadratic=400.0)
    """
    check_count("dim", dim, least=2)
    check_count("degree", degree)
    check_count("rank", rank)
    joint = float(dim) ** degree
    return SampleNeeds(joint, joint * dim, rank**2 * joint)
