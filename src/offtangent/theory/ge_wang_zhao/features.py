r"""Random features z = (Rx)^p, R Gaussian, and how well their tensor squares are conditioned.

Ge, Wang & Zhao (2019), Appendix E.2 and E.3. Let Q have the rows r_i^{⊗p}, and X̄ the columns x̄_j^{⊗2p}. Then z_j =
Qx̄_j^{⊗p}, and Z = (Q ⊗ Q)X̄ has the columns z_j ⊗ z_j: Theorem 5 rests on σ_min(Z) > 0. Everything here is in isometric
coordinates (`isometric_power`), in which singular values are those of the matrices with d^p or k² rows.

Constants that the paper hides in O(·) and Ω(·) are taken as one.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_bound, check_count, check_inputs, check_real, require
from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.capacity import admissible_features
from offtangent.theory.ge_wang_zhao.monomials import multiplicities
from offtangent.theory.ge_wang_zhao.tensors import isometric_power, multiply, reduced_power

LARGEST = 1e308  # of float64
SIGMA = 0.1  # of the net in Lemma 18's proof


def feature_rows(R: object, power: int) -> Float[np.ndarray, "k D"]:
    """Q, with the rows r_i^{⊗p}: `feature_rows(R, p) @ isometric_power(X, p).T` is (RXᵀ)^p.

    Its smallest singular value is min ‖Qc‖₂ over symmetric c of unit length, where k ≥ D_d^p.

    >>> feature_rows([[1.0, 2.0]], 2) @ isometric_power([[3.0, 1.0]], 2).T  # (3 + 2)²
    array([[25.]])
    """
    return isometric_power(R, power)


def squared_features(R: object, X: object, power: int) -> Float[np.ndarray, "K n"]:
    """Z = (Q ⊗ Q)X̄: the columns z_j ⊗ z_j, z = (Rx)^p, by their C(k + 1, 2) isometric coordinates.

    >>> squared_features([[1.0, 0.0], [0.0, 1.0]], [[2.0, 3.0]], 1).T ** 2  # 2², √2·2·3 and 3², squared
    array([[16., 72., 81.]])
    """
    rows, inputs = check_inputs(R), check_inputs(X)
    check_count("power", power)
    require(
        rows.shape[1] == inputs.shape[1],
        f"R has {rows.shape[1]} columns and X has {inputs.shape[1]}: expected the same dimension.",
    )
    return isometric_power((inputs @ rows.T) ** power, 2).T


def product_rows(X: object, Y: object, power: int) -> Float[np.ndarray, "n D"]:
    """Proj(x^{⊗p} ⊗ y^{⊗p}) onto the symmetric tensors of order 2p, row by row, in isometric coordinates.

    >>> product_rows([[1.0, 0.0]], [[0.0, 1.0]], 1) ** 2  # e₁ ⊗ e₂ + e₂ ⊗ e₁ over two, of length 1/√2
    array([[0. , 0.5, 0. ]])
    """
    left, right = check_inputs(X), check_inputs(Y)
    require(left.shape == right.shape, f"X has shape {left.shape} and Y {right.shape}: expected the same.")
    check_count("power", power)
    dim = left.shape[1]
    weights = multiplicities(dim, power)
    product = multiply(reduced_power(left, power) * weights, reduced_power(right, power) * weights, dim, power, power)
    return product / np.sqrt(multiplicities(dim, 2 * power))


def decoupled_subspace(R: object, power: int, pair: tuple[int, int]) -> Float[np.ndarray, "D columns"]:
    """S_(i,j) = span{Proj(r_l^{⊗p} ⊗ x^{⊗p}): l ≠ i, j} of Lemma 13's proof, by (k − 2)D_d^p columns that span it.

    All rows of Q ⊗ Q but (i, j) lie in it, and it does not depend on r_i, r_j. The proof bounds its dimension by
    kD_d^p C(2p, p), for the ways to place the copies of r_l; but Proj does not see them, and the map that takes
    x^{⊗p} to Proj(r_l^{⊗p} ⊗ x^{⊗p}) is linear: it is at most (k − 2)D_d^p, or (k − 1)D_d^p where i = j.
    """
    rows = check_inputs(R)
    check_count("power", power)
    if not all(0 <= one < len(rows) for one in pair):
        raise InputError(f"pair={pair}: R has the rows 0 to {len(rows) - 1}.")
    dim = rows.shape[1]
    basis = np.eye(symmetric_dimension(dim, power))
    powers = reduced_power(rows, power) * multiplicities(dim, power)
    roots = np.sqrt(multiplicities(dim, 2 * power))
    kept = [
        multiply(np.tile(powers[at], (len(basis), 1)), basis, dim, power, power) / roots
        for at in range(len(rows))
        if at not in pair
    ]
    return np.concatenate([np.zeros((0, len(roots))), *kept]).T


@dataclass(frozen=True)
class SingularFloor:
    """A lower bound on a smallest singular value, or the reason why the lemma gives none."""

    value: float | None
    failure: float  # the probability with which it may be missed, constants as one
    least: float | int  # features that the lemma asks for
    most: float | int  # and allows
    why: str = ""  # it does not apply

    @property
    def applies(self) -> bool:
        return self.value is not None


def most_features(dim: int, power: int) -> int:
    """The largest k for which Lemma 13's proof works when dim S_(i,j) ≤ (k − 1)D_d^p is used, without C(2p, p).

    The paper's own experiment, k = 750 at d = 100 and p = 2, is among them; Lemma 13 as printed stops at 145.

    >>> most_features(100, 2), admissible_features(100, 2)
    (876, 145)
    """
    check_count("dim", dim)
    check_count("power", power)
    return symmetric_dimension(dim, 2 * power) // symmetric_dimension(dim, power) + 1


def perturbed_singular_floor(
    samples: int,
    dim: int,
    features: int,
    power: int,
    *,
    variance: float | int,
    delta: float,
    placings: bool = True,
) -> SingularFloor:
    """Lemma 13, eq. (4): σ_min(Z) ≥ ([D_d^{2p} − kD_d^p C(2p, p)][C(k + 1, 2) − n]/(4p)!³)^{1/4} v^p δ^{4p}/(n^{2p+½}k^{4p}).

    For inputs x_j + N(0, vI) and 2√n ≤ k ≤ D_d^{2p}/(D_d^p C(2p, p)), but with probability O(pδ). `placings=False` takes
    (k − 1)D_d^p for the dimension of S_(i,j) (see `decoupled_subspace`), which allows more features.
    As printed; the proof's own steps give C(k + 1, 2)^{2p+½}, about k^{4p+1}, where (4) has k^{4p}.

    >>> perturbed_singular_floor(25, 30, 10, 2, variance=0.1, delta=0.5).value
    1.757...e-21
    >>> perturbed_singular_floor(60_000, 100, 750, 2, variance=0.0025, delta=0.5).why
    '750 features are more than the 145 that are admissible'
    """  # noqa: E501
    for name, count in (("samples", samples), ("dim", dim), ("features", features), ("power", power)):
        check_count(name, count)
    check_bound(delta, variance=variance)
    large, small = symmetric_dimension(dim, 2 * power), symmetric_dimension(dim, power)
    most = admissible_features(dim, power) if placings else most_features(dim, power)
    taken = features * small * math.comb(2 * power, power) if placings else (features - 1) * small
    least, failure = 2 * math.sqrt(samples), min(power * delta, 1.0)
    why = ""
    if features > most:
        why = f"{features} features are more than the {most} that are admissible"
    elif features < least:
        why = f"{features} features are fewer than 2√n = {least:.4g}"
    if why:
        return SingularFloor(None, failure, least, most, why)
    room = (large - taken) * (math.comb(features + 1, 2) - samples)
    if not room:
        return SingularFloor(0.0, failure, least, most)
    logarithm = (
        (math.log(room) - 3 * math.lgamma(4 * power + 1)) / 4
        + power * math.log(variance)
        + 4 * power * math.log(delta)
        - (2 * power + 0.5) * math.log(samples)
        - 4 * power * math.log(features)
    )
    return SingularFloor(math.exp(logarithm), failure, least, most)


def spanning_floor(dim: int, features: int, power: int, *, delta: float) -> SingularFloor:
    r"""Lemma 18: ‖Qc‖₂ ≥ δ^{1/((α−1)D)} (p^p √p!)^{−α/(α−1)} τ^{−1/(α−1)} for all symmetric c of unit length.

    D = D_d^p, k = αpD with α > 1, and τ² = k(2 ln(Z_σ k/δ))^p with ln Z_σ = D ln(1 + 20√p!), from Lemma 7 at σ = 1/10,
    as the proof has it. The statement puts G₀ p ln p D for the logarithm, which is zero for p = 1.

    >>> spanning_floor(3, 12, 1, delta=0.5).value, spanning_floor(3, 3, 1, delta=0.5).why
    (0.35..., '3 features are not more than pD = 3')
    """
    for name, count in (("dim", dim), ("features", features), ("power", power)):
        check_count(name, count)
    check_bound(delta)
    small = symmetric_dimension(dim, power)
    if features <= power * small:
        why = f"{features} features are not more than pD = {power * small}"
        return SingularFloor(None, delta, power * small + 1, math.inf, why)
    excess = features / (power * small) - 1
    root = math.sqrt(math.factorial(power))
    net = small * math.log1p(2 * root / SIGMA)
    log_tau = (math.log(features) + power * math.log(2 * (net + math.log(features / delta)))) / 2
    logarithm = math.log(delta) / (excess * small) - log_tau / excess
    logarithm -= (excess + 1) / excess * (power * math.log(power) + math.log(root))
    return SingularFloor(math.exp(logarithm), delta, power * small + 1, math.inf)


@dataclass(frozen=True, eq=False)
class NetExpansion:
    """C = Σ_i a_i c_i with c_i in a σ-net, a_1 = 1 and a_{i+1} ≤ σa_i, up to what is left of it."""

    weights: Float[np.ndarray, "t"]  # a_i
    chosen: Int[np.ndarray, "t"]  # which points of the net
    left: float  # ‖c − Σ_i a_i c_i‖


def net_expansion(point: object, net: object, *, terms: int) -> NetExpansion:
    """The expansion of Lemma 17's proof of a unit vector c in a net's rows: c_{i+1} is next to what is left, scaled.

    From it, ‖Qc_i‖ ≤ τ on a σ-net gives ‖Qc‖ ≤ τ/(1 − σ) for all c. Tensors are given in isometric coordinates.

    >>> found = net_expansion([0.6, 0.8], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], terms=2)
    >>> found.weights.round(4), found.chosen, round(found.left, 4)
    (array([1.    , 0.6325]), array([1, 0]), 0.2026)
    """
    points = check_inputs(net)
    check_count("terms", terms)
    sizes = np.linalg.norm(points, axis=1)
    require(np.abs(sizes - 1).max() < 1e-9, "net has rows that are not of length 1: a net is one of the unit sphere.")
    left = np.array(point, np.float64)
    require(
        left.shape == points.shape[1:] and abs(np.linalg.norm(left) - 1) < 1e-9,
        f"point has shape {left.shape}: expected ({points.shape[1]},), a vector of length 1.",
    )
    weights: list[float] = []
    chosen: list[int] = []
    for _ in range(terms):
        weight = float(np.linalg.norm(left))
        if weight == 0:
            break
        require(
            not weights or weight < weights[-1],
            f"No row of net is nearer than 1 to what is left of the point after {len(weights)} terms: a σ-net has "
            "rows within σ < 1 of every unit vector. Give more rows.",
        )
        weights.append(weight)
        chosen.append(int(np.linalg.norm(points - left / weight, axis=1).argmin()))
        left = left - weight * points[chosen[-1]]
    return NetExpansion(np.array(weights), np.array(chosen), float(np.linalg.norm(left)))


def feature_square_floor(dim: int, features: int, power: int, *, smallest: float | int, delta: float) -> SingularFloor:
    """Lemma 19, eq. (5): σ_min(Z) ≥ Δ² σ_min(X), with Lemma 18's Δ and X = [x_j^{⊗2p}]; `smallest` is σ_min(X).

    It rests on σ_min(Z) ≥ σ_min(Q)² σ_min(X), which holds always.

    >>> feature_square_floor(3, 12, 1, smallest=2.0, delta=0.5).value / spanning_floor(3, 12, 1, delta=0.5).value ** 2
    2.0
    """
    check_bound(smallest=smallest)
    found = spanning_floor(dim, features, power, delta=delta)
    if found.value is None:
        return found
    return SingularFloor(found.value**2 * smallest, found.failure, found.least, found.most)


@dataclass(frozen=True)
class NormBound:
    """An upper bound on ‖z_j‖ for all samples, and the probability with which it may be missed."""

    value: float
    failure: float
    coordinate: float  # what no entry of R (nor of the noise, over √v) exceeds then


def feature_norm_bound(dim: int, features: int, power: int, *, radius: float | int, delta: float) -> NormBound:
    """Lemma 20: ‖Qx^{⊗p}‖₂ ≤ √k(2B√(d ln(kdδ^{−1/2})))^p for all ‖x‖ ≤ B, but with probability δ/(√(2π ln(kdδ^{−1/2}))kd).

    >>> feature_norm_bound(1, 2, 1, radius=1.0, delta=0.25)  # √2·2√ln 4
    NormBound(value=3.3302..., failure=0.0423..., coordinate=2.3548...)
    """  # noqa: E501
    check_real("radius", radius)
    return _norm_bound(features, dim, features, power, float(radius), 0.0, delta)


def perturbed_feature_norm_bound(
    samples: int, dim: int, features: int, power: int, *, radius: float | int, variance: float | int, delta: float
) -> NormBound:
    """Lemma 14: ‖Qx̄_j^{⊗p}‖₂ ≤ √k(2(B + 2√(vdL))√(dL))^p for all j, L = ln((k + n)dδ^{−1/2}).

    For x̄_j = x_j + N(0, vI), ‖x_j‖ ≤ B, but with probability δ/(√(2πL)(k + n)d).

    >>> perturbed_feature_norm_bound(1, 1, 1, 1, radius=1.0, variance=0.0001, delta=0.25).value
    2.41...
    """
    check_count("samples", samples)
    check_count("features", features)
    check_bound(variance=variance)
    check_real("radius", radius)
    return _norm_bound(features + samples, dim, features, power, float(radius), float(variance), delta)


def _norm_bound(
    vectors: int, dim: int, features: int, power: int, radius: float, variance: float, delta: float
) -> NormBound:
    for name, count in (("dim", dim), ("features", features), ("power", power)):
        check_count(name, count)
    check_bound(delta, radius=radius)
    logarithm = math.log(vectors * dim) - math.log(delta) / 2
    coordinate = 2 * math.sqrt(logarithm)
    longest = radius + coordinate * math.sqrt(variance * dim)
    factor = longest * coordinate * math.sqrt(dim)
    require(
        math.isfinite(factor) and power * math.log(factor) + math.log(features) / 2 < math.log(LARGEST),
        f"radius={radius:g}, power={power}: the bound is beyond float64. Divide the inputs by their length.",
    )
    value = math.sqrt(features) * (longest * coordinate * math.sqrt(dim)) ** power
    failure = delta / (math.sqrt(2 * math.pi * logarithm) * vectors * dim)
    return NormBound(value, min(failure, 1.0), coordinate)
