"""Powers of βᵀx as averages of random ReLU features, in closed form.

Bai & Lee (2020), Lemma 9. For w₀ ~ N(0, B_x⁻²I) and ‖x‖ = B_x the kernel of the features relu(w₀ᵀx) is, with
u = xᵀx'/B_x²,

    K(u) = (u(π − arccos u) + √(1 − u²)) / 2π = Σ_p c_p u^p,
    c_0 = 1/2π,  c_1 = 1/4,  c_2ℓ = (2ℓ−3)!! / ((2ℓ−2)!! (2ℓ−1)(2ℓ) 2π),  no other odd power,

and c_p = ĉ_p² with ĉ_p = E[relu(g) h_p(g)], h_p the normalised Hermite polynomials. The lemma says that some a(w₀)
gives E[relu(w₀ᵀx) a(w₀)] = α(βᵀx)^p; one Hermite polynomial does,

    a(w₀) = α (B_x‖β‖)^p h_p(B_x⟨w₀, β̂⟩) / ĉ_p,      E[a²] = α² (B_x‖β‖)^{2p} / c_p,

which is the lemma's bound before c_p is rounded down. (Its statement prints B_x^{2(p−1)}d, its proof gives B_x^{2p}.)
It is not the smallest: the features only see the part of a that is homogeneous of degree one in w₀.
"""

import math
import operator
from collections import deque

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_ordinary
from offtangent._checks import check_bound, check_count, check_entries, check_real, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.special.hermite_polynomials import hermite_times

LONGEST = 1e30  # of β; its length is raised to twice the degree
ON_SPHERE = 1e-5  # how far ‖x‖/B_x may be from one: inputs may come in float32

Vector = Float[AnyArray, "d"]


def check_degree(power: int) -> int:
    """The degree p as an int, or an InputError where K(u) has no term u^p: it has those of p = 0, 1, 2, 4, 6, …"""
    check_real("power", power)
    require(hasattr(power, "__index__"), f"power={power!r}: it must be a whole number.")
    p = operator.index(power)
    if p < 0:
        raise InputError(f"degree {p}: it is 0, 1, or an even number from 2 on.")
    if p > 1 and p % 2:
        raise InputError(
            f"degree {p} is odd: Lemma 9 covers 0, 1, 2, 4, 6, … only. relu(z) = z/2 + |z|/2 has no odd Hermite "
            f"coefficient beyond the first, E[relu(g) h_{p}(g)] = 0, so that no a(w₀) of finite E[a²] gives (βᵀx)^{p}."
        )
    return p


def relu_series(power: int) -> float:
    """c_p of K(u) = Σ c_p u^p, to rounding; 0 for odd p from 3 on. Time O(p).

    >>> [round(relu_series(p), 6) for p in range(5)]  # 1/2π, 1/4, 1/4π, 0, 1/48π
    [0.159155, 0.25, 0.079577, 0.0, 0.006631]
    """
    check_count("power", power, least=0)
    p = operator.index(power)
    if p % 2:
        return 0.25 if p == 1 else 0.0
    c = 1 / (2 * math.pi)
    for j in range(0, p, 2):  # c_{j+2}/c_j = (j−1)²/((j+1)(j+2))
        c *= (j - 1) ** 2 / ((j + 1) * (j + 2))
    return c


def relu_series_bound(power: int) -> float:
    """1/(2π(p∨1)³) ≤ c_p, for every p of which there is a term: the step in Lemma 9's proof."""
    return 1 / (2 * math.pi * max(check_degree(power), 1) ** 3)


def relu_hermite(power: int) -> float:
    """ĉ_p = E[relu(g) h_p(g)]: 1/√2π, 1/2, then (−1)^{p/2+1} √c_p for even p, 0 for odd p from 3 on. Time O(p).

    >>> [round(relu_hermite(p), 6) for p in range(5)]
    [0.398942, 0.5, 0.282095, 0.0, -0.081434]
    """
    root = math.sqrt(relu_series(power))
    return -root if power > 2 and power % 4 == 0 else root


def random_feature_weights(
    W0: Float[AnyArray, "d m"], beta: Float[AnyArray, "k"], power: int, *, coefficient: float = 1.0, radius: float = 1.0
) -> Float[np.ndarray, "m"]:
    """a(w₀) of Lemma 9 for every column of W₀ ~ N(0, B_x⁻²I), B_x = `radius`, α = `coefficient`.

    For ‖x‖ = B_x the mean of relu(w₀ᵀx) a(w₀) over w₀ is α(βᵀx)^p; its variance is `random_feature_variance`.
    Time O(m(d + p)), memory O(m).

    >>> random_feature_weights(np.array([[0.0, 1.0, 2.0]]), np.array([3.0]), 1)  # a = 3·w₀/(1/2)
    array([ 0.,  6., 12.])
    """
    p = check_degree(power)
    columns, direction, length = np.asarray(W0, np.float64), *_direction(beta)
    check_ordinary(coefficient=coefficient)
    check_bound(radius=radius)
    check_entries(W0=W0)
    require(
        columns.shape[0] == len(direction),
        f"W0 has {columns.shape[0]} rows and β has {len(direction)} entries: they must be equal.",
    )
    g = radius * (direction @ columns)
    h = deque(hermite_times(p, g, np.ones_like(g)), maxlen=1).pop()
    return coefficient * (radius * length) ** p / relu_hermite(p) * h


def random_feature_energy(beta: Vector, power: int, *, coefficient: float = 1.0, radius: float = 1.0) -> float:
    """E[a²] = α²(B_x‖β‖)^{2p}/c_p for `random_feature_weights`.

    >>> round(random_feature_energy(np.array([1.0, 0.0]), 2) / np.pi, 6)
    4.0
    """
    p, length = check_degree(power), _direction(beta)[1]
    check_ordinary(coefficient=coefficient)
    check_bound(radius=radius)
    return coefficient**2 * (radius * length) ** (2 * p) / relu_series(p)


def random_feature_energy_bound(beta: Vector, power: int, *, coefficient: float = 1.0, radius: float = 1.0) -> float:
    """E[a²] ≤ 2π(p∨1)³ α² B_x^{2p} ‖β‖^{2p}, Lemma 9 as its proof has it."""
    p, length = check_degree(power), _direction(beta)[1]
    check_ordinary(coefficient=coefficient)
    check_bound(radius=radius)
    return coefficient**2 * (radius * length) ** (2 * p) / relu_series_bound(p)


def random_feature_variance(
    X: Float[AnyArray, "n d"], beta: Vector, power: int, *, coefficient: float = 1.0, radius: float = 1.0
) -> Float[np.ndarray, "n"]:
    """Var[relu(w₀ᵀx) a(w₀)] at inputs of length B_x = `radius`, exactly: an average over m features strays by √(Var/m).

    With ρ the cosine of x and β, E[relu(u)² h_p(v)²] = E[u² h_p(v)²]/2 (flip both signs) = (1 + 2pρ²)/2, so that
    Var = E[a²](1 + 2pρ²)/2 − α²(βᵀx)^{2p}. Time O(nd).
    """
    p, inputs = check_degree(power), np.asarray(X, np.float64)
    direction, length = _direction(beta)
    check_entries(X=X)
    check_ordinary(coefficient=coefficient)
    check_on_sphere(inputs, radius)
    require(
        inputs.shape[1] == len(direction),
        f"X has {inputs.shape[1]} columns and β has {len(direction)} entries: they must be equal.",
    )
    z = inputs @ direction
    energy = random_feature_energy(beta, p, coefficient=coefficient, radius=radius)
    return energy * (1 + 2 * p * (z / radius) ** 2) / 2 - coefficient**2 * (length * z) ** (2 * p)


def check_on_sphere(X: Float[np.ndarray, "n d"], radius: float) -> Float[np.ndarray, "n d"]:
    """X, or an InputError where a row's length is not B_x: w₀ᵀx would not be a standard Gaussian."""
    check_bound(radius=radius)
    require(len(X), "X has no rows: expected at least one input.")
    lengths = np.linalg.norm(X, axis=1)
    worst = int(np.abs(lengths - radius).argmax())
    if not abs(lengths[worst] - radius) <= ON_SPHERE * radius:
        raise InputError(
            f"row {worst} of X has length {lengths[worst]:.6g}, and B_x is radius={radius:g}: the theorem is about "
            "inputs on the sphere of that radius. Rescale the rows, or give their length as radius."
        )
    return X


def _direction(beta: Vector) -> tuple[Float[np.ndarray, "d"], float]:
    """β̂ and ‖β‖; a zero vector has no direction and keeps none."""
    vector = np.asarray(beta, np.float64)
    require(
        vector.ndim == 1 and np.isfinite(vector).all(),
        f"β has shape {vector.shape}: it is one vector of finite numbers.",
    )
    length = float(np.linalg.norm(vector))
    require(vector.size, "β is empty: it is one vector of finite numbers.")
    require(length < LONGEST, f"β has a length of {length:.3g}, whose powers are beyond float64. Divide it.")
    return (vector / length if length else vector), length
