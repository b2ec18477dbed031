r"""Nets of symmetric tensors, and how small and how large ‖Qc‖₂ becomes on one.

Ge, Wang & Zhao (2019), Proposition 2 and Lemmas 15 to 17, which Lemma 18 puts together. Q has the rows r_i^{⊗p}, i ≤ k,
r_i ~ N(0, I) in R^d; the c are symmetric tensors of unit length in isometric coordinates, in which they are the unit
sphere of R^D, D = D_d^p. Each lemma is a union bound over a net of Z of them, solved here for what fails with a
probability of at most δ.

Constants that the paper hides in O(·) are taken as one; where they are not hidden, nothing is.
"""

import itertools
import math

import numpy as np
import scipy.special
from jaxtyping import Float

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound, check_count, require

MOST_POINTS = 1_000_000  # of a net


def anticoncentration(power: int, epsilon: float | int) -> float:
    """Proposition 2, eq. (3): Pr(|f(x) − t| ≤ ε) ≤ pε^{1/p} for every t, its O(p) taken as p.

    Args:
        power: The degree p of the polynomial f, whose variance at x ~ N(0, I) is 1 or more.
        epsilon: How near to t.

    Returns:
        The bound, at most 1.

    >>> anticoncentration(2, 0.01), anticoncentration(2, 9.0)
    (0.2, 1.0)
    """
    check_count("power", power)
    check_bound(epsilon=epsilon)
    return min(power * float(epsilon) ** (1 / power), 1.0)


def net_floor(size: int, features: int, power: int, *, delta: float) -> float:
    """Lemma 15: ‖Qc‖₂ ≥ η/√p! for all c of a net, where it fails with probability δ = Z(Cpη^{1/p})^k.

    Args:
        size: The number Z of unit tensors in the net; any finite set will do.
        features: The number k of rows of Q.
        power: The order p of the tensors.
        delta: The probability δ with which it may fail, the constant C taken as 1.

    Returns:
        η/√p! with η = ((δ/Z)^{1/k}/p)^p.

    >>> round(net_floor(1, 1, 1, delta=0.1), 12), round(net_floor(4, 2, 1, delta=0.04), 12)
    (0.1, 0.1)
    """
    for name, count in (("size", size), ("features", features), ("power", power)):
        check_count(name, count)
    check_bound(delta)
    logarithm = power * (math.log(delta / size) / features - math.log(power))
    return math.exp(logarithm - math.lgamma(power + 1) / 2)


def net_ceiling(size: int, dim: int, features: int, power: int, *, delta: float, radius: float | int = 0.0) -> float:
    r"""Lemmas 16 and 17: ‖Qc‖₂ ≤ τ for all c of a net, and τ/(1 − σ) for all c, but with probability δ.

    Some row has |⟨c, r_i^{⊗p}⟩| > τ/√k where it fails, and then ‖r_i‖₂ > (τ/√k)^{1/p}: δ = Z k Pr(χ_d > (τ/√k)^{1/p}).
    The paper bounds this probability by that of one coordinate, t^{−1/p}e^{−t^{2/p}/2} with t = τ/√k, which is too
    small by a factor that grows with d; with the law of ‖r‖₂ itself there is no constant to choose.

    Args:
        size: The number Z of unit tensors in the net.
        dim: The dimension d of the rows r_i.
        features: The number k of them.
        power: The order p of the tensors.
        delta: The probability δ with which it may fail.
        radius: The σ of a σ-net, for Lemma 17's bound on all unit tensors; 0 for Lemma 16's on the net alone.

    Returns:
        τ/(1 − σ).

    >>> round(net_ceiling(1, 2, 1, 1, delta=0.01), 6)  # √(2 ln 100): ‖r‖₂² is exponential in two dimensions
    3.034854
    >>> round(net_ceiling(1, 2, 1, 1, delta=0.01, radius=0.5), 6)
    6.069709
    """
    for name, count in (("size", size), ("dim", dim), ("features", features), ("power", power)):
        check_count(name, count)
    check_bound(delta)
    check_not_negative(radius=radius)
    require(radius < 1, f"radius={radius:g}: expected the σ of a σ-net, 0 or more and below 1.")
    square = 2 * float(scipy.special.gammainccinv(dim / 2, min(delta / (size * features), 1.0)))
    require(
        square > 0 and power * math.log(square) / 2 < math.log(np.finfo(float).max) - math.log(features),
        f"dim={dim}, power={power}, delta={delta:g}: the bound is beyond float64.",
    )
    return math.sqrt(features) * square ** (power / 2) / (1 - radius)


def sphere_net(dim: int, radius: float | int) -> Float[np.ndarray, "Z D"]:
    """Build a σ-net of the unit sphere: every unit vector is within `radius` of one of its rows.

    Proposition 1 says how small one can be; this one is written down. Its rows are the middles of small cubes that tile
    the faces of [−1, 1]^D, divided by their length: nothing on a face is further than h√(D − 1)/2 from the middle of
    its cube of side h, and to divide by a length of at least one brings no two points further apart. So
    Z = 2D⌈√(D − 1)/σ⌉^{D−1}. Time and memory O(ZD).

    Args:
        dim: The dimension D of the space.
        radius: The largest distance σ.

    Returns:
        The net, unit vectors as rows.

    >>> sphere_net(1, 0.5), len(sphere_net(2, 0.5)), len(sphere_net(3, 0.5))
    (array([[ 1.], [-1.]]), 8, 54)
    """
    check_count("dim", dim)
    check_bound(radius=radius)
    side = max(math.ceil(math.sqrt(dim - 1) / radius), 1)
    require(
        2 * dim * side ** (dim - 1) <= MOST_POINTS,
        f"dim={dim}, radius={radius:g}: the net would have more than {MOST_POINTS:,} points. Take a larger radius.",
    )
    middles = (2 * np.arange(side) + 1) / side - 1
    face = np.array(list(itertools.product(middles, repeat=dim - 1)))
    points = np.concatenate([np.insert(face, axis, sign, axis=1) for axis in range(dim) for sign in (1.0, -1.0)])
    return points / np.linalg.norm(points, axis=1, keepdims=True)
