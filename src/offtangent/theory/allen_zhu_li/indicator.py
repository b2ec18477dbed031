"""Smooth functions from indicators of random half-spaces, and the weights that make a ReLU layer express them.

Allen-Zhu & Li (2019), Appendix F. For w ~ N(0, I), unit vectors x and w⋆, and odd i,

    E[1{⟨w, x⟩ ≥ 0} He_i(⟨w, w⋆⟩)] = p′_i ⟨w⋆, x⟩^i,      p′_i = (−1)^{(i−1)/2} (i − 2)!!/√(2π)             (Claim F.3)

so that φ(z) = c_0 + Σ_{odd i} c_i z^i is the mean of 1{⟨w, x⟩ ≥ 0} h(⟨w, w⋆⟩) with

    h(t) = 2c_0 + Σ_{odd i} (c_i/p′_i) He_i(clip(t, ±B_i)),      B_i = 100√i + 10√ln(1/ε)                    (Lemma F.2)

The paper claims |p′_i| ≥ (i − 1)!!/4, which is wrong from i = 3 on; the lemma stands with these p′_i. Host-level, in
float64.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_bound, check_count, check_numbers, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.data.hierarchy import GeneralRidges
from offtangent.networks import ResNet
from offtangent.special.hermite_polynomials import hermite_times

HIGHEST_MOMENT = 301  # p′_303 is beyond float64
HIGHEST_ORDER = 99  # of φ: beyond, He_i and its slope at the clip B_i overflow
CHANCE = 6  # standard errors by which the size of drawn weights may miss σ
REACH, PANELS, NODES = 20.0, 40, 12  # quadrature over the half-line: what lies beyond 20 is below 1e-80


def indicator_moment(order: int) -> float:
    """p′_i of Claim F.3, exactly, for odd i; for i = 0 it is ½.

    >>> [round(indicator_moment(i) * math.sqrt(2 * math.pi), 12) for i in (1, 3, 5, 7)]
    [1.0, -1.0, 3.0, -15.0]
    """
    check_count("order", order, least=0)
    if order == 0:
        return 0.5
    require(order % 2 != 0, f"order={order}: for even i > 0 the mean of 1{{⟨w, x⟩ ≥ 0}} He_i is zero; give an odd i.")
    if order > HIGHEST_MOMENT:
        raise InputError(f"order={order}: p′_i leaves float64 beyond i = {HIGHEST_MOMENT}; give a lower order.")
    return (-1) ** ((order - 1) // 2) * math.prod(range(order - 2, 0, -2)) / math.sqrt(2 * math.pi)


@dataclass(frozen=True, eq=False)
class IndicatorFunction:
    """The function h of Lemma F.2 for a series φ = c_0 + c_1 z + c_3 z³ + …, of orders up to 99.

    >>> h = IndicatorFunction(np.array([0.5, 1.0]))
    >>> h(np.array([0.0, 1.0])) - 1.0  # 2c_0 + √(2π) t
    array([0.        , 2.50662827])
    """

    series: Float[np.ndarray, " orders"]
    epsilon: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", check_numbers(self.series, "series"))
        if self.series.ndim != 1 or not self.series.size or not np.isfinite(self.series).all():
            raise InputError(f"series={self.series}: expected finite coefficients c_0, c_1, …")
        _check_orders(self.series)
        require(
            not self.series[2::2].any(),
            "series has even orders beyond the zeroth: h exists for c_0, c_1, c_3, c_5, … (Lemma F.2).",
        )
        check_real("epsilon", self.epsilon)
        if not 0 < self.epsilon < 1:
            raise InputError(f"epsilon={self.epsilon:g}: it must lie between 0 and 1.")

    @property
    def orders(self) -> tuple[int, ...]:
        """The odd orders that φ has."""
        return tuple(i for i in range(1, len(self.series), 2) if self.series[i])

    def clip(self, order: int) -> float:
        """B_i of Claim F.4, beyond which He_i is kept constant."""
        return 100 * math.sqrt(order) + 10 * math.sqrt(math.log(1 / self.epsilon))

    def __call__(self, t: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """h(t). Time O(t.size · orders²)."""
        total = np.full(np.shape(t), 2 * self.series[0])
        for i in self.orders:
            inside = np.clip(t, -self.clip(i), self.clip(i))
            *_, last = hermite_times(i, inside, np.ones_like(inside))
            total = total + self.series[i] / indicator_moment(i) * math.sqrt(math.factorial(i)) * last
        return total

    @property
    def energy(self) -> float:
        """E[h(g)²] = 4c_0² + 2π Σ c_i² i!/((i − 2)!!)² for standard Gaussian g.

        Without the clipping, which it would take a g beyond 100 to see. At most 𝔠_s(φ)² for C* ≥ 2, with equality for
        constants; among odd powers z³ asks for the most, C* ≥ √(12π)/4 = 1.535.
        """
        odd = [self.series[i] ** 2 * math.factorial(i) / indicator_moment(i) ** 2 for i in self.orders]
        return float(4 * self.series[0] ** 2 + sum(odd))

    @property
    def bound(self) -> float:
        """An upper bound on |h|: each term is largest at its own clip, which lies beyond all zeros of He_i."""
        total = 2 * abs(float(self.series[0]))
        for i in self.orders:
            *_, last = hermite_times(i, self.clip(i), 1.0)
            total += abs(float(self.series[i]) / indicator_moment(i)) * math.sqrt(math.factorial(i)) * last
        return total

    @property
    def lipschitz(self) -> float:
        """An upper bound on |h′|, likewise: the derivative of He_i is i He_{i−1}."""
        total = 0.0
        for i in self.orders:
            *_, last = hermite_times(i - 1, self.clip(i), 1.0)
            size = i * math.sqrt(math.factorial(i - 1)) * last
            total += abs(float(self.series[i]) / indicator_moment(i)) * size
        return total


def indicator_mean(h: IndicatorFunction, cosines: Float[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
    """E[1{⟨w, x⟩ ≥ 0} h(⟨w, w⋆⟩)] at ⟨w⋆, x⟩ = each cosine, the left side of Lemma F.2, by quadrature.

    With ⟨w, x⟩ = α and ⟨w, w⋆⟩ = αz + √(1−z²)β: over α ≥ 0 by Gauss–Legendre on panels, over β by Gauss–Hermite. To
    about 1e-12 of √E[h²]; h is clipped, but only beyond 100, where no point of the quadrature counts. Time
    O(500 · orders² · cosines.size).

    >>> indicator_mean(IndicatorFunction(np.array([0.1, 1.0, 0.0, -0.5])), np.array([0.5]))  # 0.1 + 0.5 − 0.5/8
    array([0.5375])
    """
    values = check_numbers(cosines, "cosines")
    require(values.ndim == 1, f"cosines has shape {values.shape}: expected a vector, such as np.array([0.5]).")
    require((np.abs(values) <= 1).all(), "cosines lie in [−1, 1].")
    x, w = np.polynomial.legendre.leggauss(NODES)
    ends = np.linspace(0.0, REACH, PANELS + 1)
    half = (ends[1] - ends[0]) / 2
    alpha = (ends[:-1, None] + half * (1 + x)).ravel()
    outer = np.tile(half * w, PANELS) * np.exp(-(alpha**2) / 2) / math.sqrt(2 * math.pi)
    beta, inner = np.polynomial.hermite_e.hermegauss(len(h.series) // 2 + 1)
    z = np.asarray(cosines, np.float64)[:, None, None]
    t = alpha[:, None] * z + np.sqrt(1 - z**2) * beta
    return np.einsum("cab,a,b->c", h(t), outer, inner / inner.sum())


def existence_weights(
    F: GeneralRidges,
    A: Float[Array | np.ndarray, "k m"],
    W0: Float[Array | np.ndarray, "d1 m"],
    *,
    scale: float | int,
    epsilon: float = 1e-3,
) -> Float[np.ndarray, "d1 m"]:
    """W⋆ of Lemma F.1, eq. (F.3), with Σ_j A_{rj} 1{⟨w⁰_j, (x,1)⟩ ≥ 0} ⟨w⋆_j, (x,1)⟩ ≈ F_r(x) for every x.

        w⋆_j = Σ_r A_{rj} Σ_i a_{r,i} h^{(r,i)}(⟨w⁰_j, w_{1,r,i}⟩/scale) w_{2,r,i}

    for A with entries of N(0, 1/m) and W⁰ with entries of N(0, scale²), both as in `ResNet`. (The lemma has a from
    N(0, 1), and its W⋆ is this one over √m.) Time O(mkp(d + orders²)), memory O(m(d + k)).
    """
    _check_general(F)
    check_bound(scale=scale)
    outer, inner = check_numbers(A, "A"), check_numbers(W0, "W0")
    _check_layers("F", F, outer.shape, "W0", inner.shape)
    for name, weights in (("A", outer), ("W0", inner)):
        if not np.isfinite(weights).all():
            raise InputError(
                f"{name} has entries that are NaN or infinite: expected the weights a network starts from."
            )
    _check_drawn("scale", scale, "W0", inner, 1.0)
    found = np.zeros_like(inner)
    for r in range(F.outputs):
        for i in range(F.terms):
            h = IndicatorFunction(F.series[r, i], epsilon)
            found += F.second[r, i][:, None] * (outer[r] * F.weights[r, i] * h(F.first[r, i] @ inner / scale))
    return found


def existence_norm(F: GeneralRidges) -> float:
    """√E‖W⋆‖_F² over A and W⁰, exactly and for every width: √Σ_r E‖Σ_i a_{r,i} h^{(r,i)}(⟨w, w_{1,r,i}⟩) w_{2,r,i}‖².

    By E[He_i(⟨w, u⟩) He_j(⟨w, v⟩)] = δ_ij i! ⟨u, v⟩^i. At large m the Frobenius norm of `existence_weights` is close to
    it. Time O(kp² orders).
    """
    _check_general(F)
    _check_orders(F.series)
    orders = range(F.series.shape[2])
    factors = np.array([math.sqrt(math.factorial(i)) / indicator_moment(i) if i % 2 or not i else 0.0 for i in orders])
    total = 0.0
    for a, u, v, c in zip(F.weights, F.first, F.second, F.series, strict=True):
        terms = a[:, None] * c * factors
        powers = np.clip(u @ u.T, -1, 1)[..., None] ** np.array(orders)
        total += float(np.einsum("ij,lj,ilj,il->", terms, terms, powers, v @ v.T))
    return math.sqrt(total)


def existence_hidden(
    net: ResNet,
    base: GeneralRidges,
    composite: GeneralRidges,
    *,
    alpha: float,
    sigma_w: float,
    sigma_v: float,
    epsilon: float = 1e-3,
) -> tuple[Float[np.ndarray, "d1 m"], Float[np.ndarray, "k1 m"]]:
    """W⋆ and V⋆ of Lemma D.2 for a network of `ResNet.theory`, in float64.

    AD_{W⁰}W⋆(x,1) ≈ F(x) and AD_{V⁰}V⋆(z,1) ≈ αG(z). `Hidden(*map(jnp.asarray, …))` makes parameters of them. σ_w and
    σ_v are those the network was drawn with, and are refused where W⁰ or V⁰ is of another size than chance allows.
    """
    _check_general(base)
    _check_general(composite)
    _check_layers("base", base, net.A.shape, "W0", net.W0.shape)
    _check_layers("composite", composite, net.A.shape, "V0", net.V0.shape)
    check_real("alpha", alpha)
    require(
        0 < alpha < 1,
        f"alpha={alpha:g}: Lemma D.2 is about α in (0, 1), and so is Theorem 1. The V⋆ of G itself, to scale at "
        "will, is existence_weights(composite, net.A, net.V0, scale=sigma_v / sqrt(net.width)).",
    )
    for name, value in (("sigma_w", sigma_w), ("sigma_v", sigma_v)):
        check_real(name, value)
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value:g}: it is the one that the network was drawn with, positive and finite.")
    root = math.sqrt(net.width)
    _check_drawn("sigma_w", sigma_w, "net.W0", net.W0, 1.0)
    _check_drawn("sigma_v", sigma_v, "net.V0", net.V0, root)
    W = existence_weights(base, net.A, net.W0, scale=sigma_w, epsilon=epsilon)
    V = existence_weights(composite, net.A, net.V0, scale=sigma_v / root, epsilon=epsilon)
    return W, alpha * V


def _check_drawn(name: str, sigma: float, layer: str, weights: Float[Array | np.ndarray, "_ m"], times: float) -> None:
    """Refuse a σ that weights from N(0, (σ/times)²) are not of: a sample's size misses it by σ/√(2 · count) or so."""
    found = times * float(np.sqrt(np.mean(np.square(np.asarray(weights, np.float64)))))
    if not abs(found - sigma) <= CHANCE * sigma / math.sqrt(2 * weights.size):
        raise InputError(
            f"{name}={sigma:g}: the {weights.size} entries of {layer} say {name} = {found:.4g}, more than {CHANCE} "
            f"standard errors away. Give the {name} that they were drawn with."
        )


def _check_general(F: object) -> None:
    if not isinstance(F, GeneralRidges):
        raise InputError(
            f"F is {a_kind(F)}: expected data.hierarchy.GeneralRidges, the maps of Definition B.1. "
            "SmoothRidges(...).general() is one (Lemma B.2)."
        )


def _check_layers(name: str, F: GeneralRidges, A: tuple[int, ...], layer: str, weights: tuple[int, ...]) -> None:
    if len(weights) != 2 or (F.outputs, weights[1]) != A or weights[0] != F.dim + 1:
        raise InputError(
            f"A has shape {A} and {layer} {weights}: {name} has {F.outputs} outputs and {F.dim} inputs, so that "
            f"({F.outputs}, m) and ({F.dim + 1}, m) were expected."
        )


def _check_orders(series: Float[np.ndarray, "*ridges orders"]) -> None:
    if (highest := series.shape[-1] - 1) > HIGHEST_ORDER:
        raise InputError(
            f"series goes up to order {highest}: h leaves float64 beyond order {HIGHEST_ORDER}. Cut the series there."
        )
