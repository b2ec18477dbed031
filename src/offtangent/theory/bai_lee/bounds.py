"""What Bai & Lee (2020) promise of randomised networks: widths, sample sizes, the generalisation gap.

Theorems 2, 4 and 6, Sections 5.2 and B.6, eq. (4). Where a proof gives a constant or a logarithm it is the proof's;
constants hidden in O(·) and logarithms hidden in Õ(·) are taken as one, and said so. B_x = `radius` is the length of
the inputs, B_w = `norm` bounds ‖W‖_{2,4}.
"""

import math
from dataclasses import dataclass

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound, check_real, require
from offtangent.theory.bai_lee.penalties import penalty_choice

LARGEST = 707.0  # log of what float64 holds, with room for a sum of four


def initial_norm_bound(dim: int, width: int, *, delta: float) -> float:
    """max_r B_x‖w_{0,r}‖ ≤ √(8(d log 5 + log(m/δ))) with probability at least 1 − δ, eq. (4) with A.3's constants.

    >>> round(initial_norm_bound(10, 1000, delta=0.1), 3)
    14.228
    """
    check_bound(delta, dim=dim, width=width)
    return math.sqrt(8 * (dim * math.log(5) + math.log(width / delta)))


def largest_square_bound(count: float | int) -> float:
    """E max gᵢ² ≤ 4 log(√2 N) over N = `count` standard Gaussians, dependent or not: the Õ(1) of C.2 made explicit.

    By Jensen, E max g² ≤ log(N E e^{λg²})/λ with E e^{λg²} = (1 − 2λ)^{-1/2}, at λ = 1/4.
    """
    check_real("count", count)
    require(count >= 1, f"count={count:g}: expected at least one variable.")
    return 4 * math.log(math.sqrt(2) * count)


@dataclass(frozen=True)
class GeneralisationGap:
    """Theorem 6, part by part: E[L_P(Ŵ) − L(Ŵ)] ≤ total. (Its statement prints the difference the other way round.)"""

    features: float  # 4B_w²·4B_x √(log(2dm)/n) (E max σ''² · E‖n⁻¹Σxxᵀ‖_op)^{1/2}, from Lemmas 5 and 8
    sampling: float  # 2/√n
    remainder: float  # of third order, twice the B_x³B_w³m^{-1/4} of Lemma 12
    linear: float  # of f^L, twice the d²B_x²B_w²m^{-1/2} of Lemma 12

    @property
    def quadratic(self) -> float:
        """The gap of the quadratic model alone, L_P^Q − L^Q: free of the width but for a logarithm."""
        return self.features + self.sampling

    @property
    def coupling(self) -> float:
        """What the network adds to its quadratic part, (19) and (20)."""
        return self.remainder + self.linear

    @property
    def total(self) -> float:
        return self.quadratic + self.coupling


def generalisation_gap(
    n: int,
    dim: int,
    width: float | int,
    *,
    norm: float,
    radius: float = 1.0,
    spread: float = 1.0,
    curvature: float | None = None,
    constants: tuple[float, float, float] = (0.5, 1.0, 1.0),
    delta: float = 0.1,
) -> GeneralisationGap:
    """Theorem 6's bound with the constants and logarithms of its proof.

    `spread` is M_{x,op} (`expected_input_spread`; 1 always holds). `constants` are those of Assumption A, sup|σ'|/t²,
    sup|σ''|/|t| and the Lipschitz constant of σ'', here of relu³/6. `curvature` is E max σ''(w_{0,r}ᵀxᵢ)², measured, or
    by default the bound from the second constant for the m·n values. Lemma 12 gives the two parts of the coupling,

        |L − L^Q| ≤ E|Δ^Q| + ½E(f^L)²,  |Δ^Q| ≤ C₃B_x³B_w³m^{-1/4}/6,  E(f^L)² ≤ C₁²t⁴B_x²B_w²m^{-1/2},

    with t the bound of eq. (4), which holds with probability at least 1 − δ; they are counted twice, for L and for L_P.
    (The lemma's own proof takes the root of E(f^L)² and forgets it in the result: it only gives t²B_xB_wm^{-1/4}. What
    it states follows since E f^L_{WΣ} = 0 and ℓ'' ≤ 1.) An infinite width leaves no bound: log(2dm) grows.

    >>> gap = generalisation_gap(10_000, 10, 10**12, norm=1.0, spread=10**-0.5)
    >>> round(gap.features, 2), gap.sampling, round(gap.remainder, 5), round(gap.linear, 3)
    (3.42, 0.02, 0.00033, 0.034)
    """
    check_bound(delta, n=n, dim=dim, width=width, norm=norm, radius=radius, spread=spread)
    check_not_negative(curvature=0.0 if curvature is None else curvature)
    require(
        not math.isinf(width), "width=inf: Theorem 6's bound grows with log m. Give a finite width, such as 10**12."
    )
    slope, second, lipschitz = constants
    if curvature is None:
        curvature = second**2 * largest_square_bound(float(width) * n)
    largest = initial_norm_bound(dim, int(width), delta=delta)
    feature = 4 * radius * math.sqrt(math.log(2 * dim * width) / n) * math.sqrt(curvature) * radius * spread
    return GeneralisationGap(
        features=4 * norm**2 * feature,
        sampling=2 / math.sqrt(n),
        remainder=2 * lipschitz / 6 * (radius * norm) ** 3 * width**-0.25,
        linear=(slope * largest**2 * radius * norm) ** 2 / math.sqrt(width),
    )


def coupling_width(dim: int, *, norm: float, epsilon: float, radius: float = 1.0) -> float:
    """(B_x¹²B_w¹² + d⁴B_x⁴B_w⁴ + d²B_x²⁰B_w²⁰)ε⁻⁴ + d⁵B_x⁸B_w⁸ε⁻²: the width that Theorem 2 asks for, eq. (6).

    The constant of O(·) is one; ε ≤ 1.

    >>> coupling_width(10, norm=1.0, epsilon=1.0)
    110101.0
    """
    check_bound(dim=dim, norm=norm, epsilon=epsilon, radius=radius)
    require(epsilon <= 1, f"epsilon={epsilon:g}: Theorem 2 is about ε in (0, 1].")
    _check_coupling(dim, radius * norm, epsilon)
    b = radius * norm
    return (b**12 + dim**4 * b**4 + dim**2 * b**20) / epsilon**4 + dim**5 * b**8 / epsilon**2


def _check_coupling(dim: int, b: float, epsilon: float) -> None:
    """Refuse what leads to a width beyond float64; each term of the sum is looked at by its logarithm."""
    require(0 < b < math.inf, f"radius·norm={b:g} is beyond float64: give sizes nearer to one.")
    size, d, e = math.log(b), math.log(dim), -math.log(epsilon)
    terms = (12 * size + 4 * e, 4 * (d + size + e), 2 * d + 20 * size + 4 * e, 5 * d + 8 * size + 2 * e, 4 * e, 5 * d)
    largest = max(12 * size, 4 * (d + size), 2 * d + 20 * size, 5 * d + 8 * size, *terms)
    require(largest < LARGEST, f"The width is about 10^{largest / math.log(10):.0f}, beyond float64: none is so wide.")


def localisation_radius(dim: int, width: float | int, *, strength: float, radius: float = 1.0) -> float:
    """B_{w,0} of B.6: no stationary point of L_λ, λ = `strength`, has a larger ‖W‖_{2,4}. Constants in Õ(·) are one.

    λ^{-1/8} + (qdB_x/λ)^{1/7} + (q√dB_x⁵/λ)^{1/3} + (qB_x³/λ)^{1/5} + (q²d^{2.5}B_x⁴/λ)^{1/4} with q = m^{-1/4}, which
    the paper leaves out of the fourth term.
    """
    check_bound(dim=dim, width=width, strength=strength, radius=radius)
    quarter = width**-0.25
    return (
        strength**-0.125
        + (dim * radius * quarter / strength) ** (1 / 7)
        + (math.sqrt(dim) * radius**5 * quarter / strength) ** (1 / 3)
        + (radius**3 * quarter / strength) ** (1 / 5)
        + (dim**2.5 * radius**4 * quarter**2 / strength) ** (1 / 4)
    )


def stationary_width(dim: int, *, norm: float, opt: float, gamma: float, epsilon: float, radius: float = 1.0) -> float:
    """The width that Theorem 4 asks for: eq. (6) on the ball of radius B_{w,0}, in which all stationary points lie.

    λ is that of `penalty_choice`; B_{w,0} falls with the width, so this is the least m ≥ `coupling_width` of
    `localisation_radius` at m itself. Constants in O(·) are one. ε ≤ 1.

    >>> f"{stationary_width(5, norm=2.0, opt=0.1, gamma=1.0, epsilon=0.1):.0e}"
    '3e+26'
    """
    strength = penalty_choice(norm, opt=opt, gamma=gamma, epsilon=epsilon).strength

    def asked(width: float) -> float:
        within = localisation_radius(dim, width, strength=strength, radius=radius)
        return coupling_width(dim, norm=within, epsilon=epsilon, radius=radius)

    low = math.log(asked(1e300))
    high = math.log(asked(math.exp(low)))
    while high - low > 1e-9 * high:  # `asked` falls, the width rises: they meet once
        middle = (low + high) / 2
        low, high = (middle, high) if asked(math.exp(middle)) > math.exp(middle) else (low, middle)
    return math.exp(high)


@dataclass(frozen=True)
class SampleSizes:
    """Samples for a loss of ε, for the quadratic model and for the NTK; constants and logarithms are one."""

    quadratic: float  # n_Q
    linear: float  # n_L

    @property
    def ratio(self) -> float:
        """n_Q/n_L: what the quadratic model saves."""
        return self.quadratic / self.linear


def quadratic_samples(*, norm: float, epsilon: float, radius: float = 1.0, spread: float = 1.0) -> float:
    """n_Q = B_x⁴B_w⁴M_{x,op}²/ε², the n at which the leading term of Theorem 6 is ε."""
    check_bound(norm=norm, epsilon=epsilon, radius=radius, spread=spread)
    return (radius * norm) ** 4 * spread**2 / epsilon**2


def polynomial_samples(
    power: int, dim: int, *, epsilon: float, coefficient: float = 1.0, length: float = 1.0
) -> SampleSizes:
    """For α(βᵀx)^p on isotropic inputs of length one: n_Q = p³α²‖β‖^{2p}/(dε²), n_L = p²α²‖β‖^{2p}/ε², Section 5.2.

    The ratio is p/d. Both are upper bounds, and say nothing on what less than n_L samples cannot do.

    >>> sizes = polynomial_samples(4, 100, epsilon=0.1)
    >>> round(sizes.quadratic, 6), round(sizes.linear, 6), round(sizes.ratio, 6)
    (64.0, 1600.0, 0.04)
    """
    check_bound(dim=dim, epsilon=epsilon, length=length)
    for name, value in (("power", power), ("coefficient", coefficient)):
        check_real(name, value)
        require(math.isfinite(value), f"{name}={value:g}: it must be finite.")
    require(
        power == int(power) and (power == 3 or (power >= 2 and power % 2 == 0)),
        f"power={power:g}: Theorem 7 is about p = 2, 3 and even p ≥ 4; others have no W⋆.",
    )
    reach = [abs(math.log(part or 1.0)) for part in (abs(coefficient), epsilon)] + [power * abs(math.log(length))]
    require(
        2 * sum(reach) < LARGEST, "These labels ask for numbers of samples beyond float64: give sizes nearer to one."
    )
    size = coefficient**2 * length ** (2 * power) / epsilon**2
    return SampleSizes(power**3 * size / dim, power**2 * size)


def xor_samples(dim: int, *, epsilon: float) -> SampleSizes:
    """For noisy 2-XOR on {±1}^d: n_Q = d/ε², n_L = d²/ε²; here n_L is a lower bound (Wei et al. 2019).

    n_Q = B_x⁴B_w⁴M_{x,op}²/ε² with B_x = √d, M_{x,op} = 1/√d and B_w = O(1). (The paper writes it as B_x²B_w²/ε².)

    >>> xor_samples(10, epsilon=1.0)
    SampleSizes(quadratic=10.0, linear=100.0)
    """
    check_bound(dim=dim, epsilon=epsilon)
    return SampleSizes(dim / epsilon**2, dim**2 / epsilon**2)
