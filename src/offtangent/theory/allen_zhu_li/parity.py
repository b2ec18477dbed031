"""Two-layer ReLU networks of small norm that compute a parity: what Appendix A.1 builds by hand.

Allen-Zhu & Li (2019): F(W; x) = aᵀσ(Wx), a = ±1/√m with as many of each sign, x ∈ {±1/√d}^d, y = Π_{j∈S} √d x_j. The
paper trains W⋆ for d = |S| = 6 and m = 200, pads it with zeros and copies its neurons (`padded_copies`). It need not be
trained. The 2^k neurons w_s = s for the corners s ∈ {±1}^k, with the signs Π_j s_j, give

    Σ_s (Π_j s_j) σ(⟨s, ξ⟩) = 2^k k c_k Π_j ξ_j,     c_k = Σ_t (−1)^t C(k,t) (k − 2t)₊ / (2^k k),

since every other character of the cube cancels. So E(F − y)² = (1 − θ)² at ‖W‖_F = θ√d/(√k|c_k|), 13.06 θ√d for k = 6.

For k = 2, 4 and 6 no network on these k coordinates and of the same norm, with any number of neurons of any directions,
comes closer to the parity: ‖W‖_F ≥ Σ‖w_j‖/√m, and E[Fy] ≤ Σ‖w_j‖/√m times the largest correlation of a single neuron.
That is |c_k|√(k/d), at w = s, by search for these k; for others it has not been looked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_coordinates
from offtangent._checks import check_bound, check_count, check_finite
from offtangent._errors import InputError
from offtangent.special.boolean import ENUMERATED, corners


def parity_correlation(degree: int) -> float:
    """c_k: how much one neuron along a corner, as long as the corner, sees of the parity, over k.

    Zero for odd k > 1, whose parity no ReLU network without biases computes with the signs of corners.

    >>> [parity_correlation(k) for k in (1, 2, 3, 4, 6)]
    [0.5, 0.25, 0.0, -0.0625, 0.03125]
    """
    check_count("degree", degree)
    total = sum((-1) ** t * math.comb(degree, t) * max(degree - 2 * t, 0) for t in range(degree + 1))
    return total / (2**degree * degree)


@dataclass(frozen=True, eq=False)
class LowNormParity:
    """A network that is θ times the parity, on every x."""

    weights: Float[np.ndarray, "d m"]  # neurons are columns; the first half has a = +1/√m, the second −1/√m
    fit: float  # θ

    @property
    def error(self) -> float:
        """E(F − y)² = (1 − θ)², the same at every x."""
        return (1 - self.fit) ** 2

    @property
    def norm(self) -> float:
        """‖W‖_F."""
        return float(np.linalg.norm(self.weights))

    def rademacher(self, samples: int) -> float:
        """2‖W‖_F/√N, which bounds the Rademacher complexity of all networks of this norm (Appendix A.1)."""
        check_bound(samples=samples)
        return 2 * self.norm / math.sqrt(samples)


def low_norm_parity(dim: int, coordinates: Sequence[int], width: int, *, fit: float | int = 1.0) -> LowNormParity:
    """The network above on coordinates S of x ∈ {±1/√d}^d, θ = `fit`; neurons that fill no 2^k copies are zero.

    ‖W‖_F = θ√d/(√k|c_k|) where 2^k divides the width, and √(m/(2^k⌊m/2^k⌋)) times that else. Time and memory O(dm).

    >>> found = low_norm_parity(40, (0, 3, 7, 8, 20, 39), 256)
    >>> round(found.norm / math.sqrt(40), 2), found.error
    (13.06, 0.0)
    """
    k = len(coordinates)
    check_count("dim", dim)
    check_count("width", width)
    check_bound(fit=fit)
    check_coordinates(f"coordinates={tuple(coordinates)}", coordinates, dim)
    seen = parity_correlation(k)
    if seen == 0:
        raise InputError(f"{k} coordinates: a parity of an odd number above 1 is seen by no ReLU without a bias.")
    if k > ENUMERATED:
        raise InputError(
            f"{k} coordinates: this network has a neuron for each of 2^{k} corners, and at most 2^{ENUMERATED} are "
            f"listed (k = {ENUMERATED}). Its norm needs no list: fit·√dim/(√k·|parity_correlation(k)|) = "
            f"{fit * math.sqrt(dim / k) / abs(seen):.4g} where 2^k divides the width. A network with fewer neurons, "
            "trained on the k coordinates, becomes one for dim inputs by padded_copies."
        )
    copies = width // 2**k
    if width % 2 or not copies:
        raise InputError(f"width={width}: it must be even, and at least 2^k = {2**k} for a parity of {k} coordinates.")
    neurons = corners(k).T
    plus = neurons.prod(axis=0) * math.copysign(1.0, seen) > 0
    scale = fit * math.sqrt(dim * width) / (copies * 2**k * k * abs(seen))
    weights = np.zeros((dim, width))
    for start, side in ((0, neurons[:, plus]), (width // 2, neurons[:, ~plus])):
        filled = np.tile(side, copies)
        weights[np.asarray(coordinates)[:, None], np.arange(start, start + filled.shape[1])] = scale * filled
    return LowNormParity(weights, float(fit))


def padded_copies(
    weights: Float[np.ndarray, "k m"], dim: int, coordinates: Sequence[int], copies: int = 1
) -> Float[np.ndarray, "d cm"]:
    """A network for k inputs of ±1/√k as one for d inputs of ±1/√d and with `copies` times the neurons: footnote 13.

    Rows of zeros for the other coordinates, √(d/k) on the weights, 1/√copies on the copies. The outputs and ‖W‖_F/√d
    stay; halves of opposite signs stay halves.
    """
    k, width = weights.shape
    check_count("copies", copies)
    check_coordinates(f"coordinates={tuple(coordinates)}", coordinates, dim)
    if len(coordinates) != k:
        raise InputError(f"{len(coordinates)} coordinates, and a network for {k}: expected one for each of its inputs.")
    check_finite(weights, "The weights")
    if width % 2:
        raise InputError(f"The network has {width} neurons: half of them have the sign +1, half −1.")
    halves = [np.tile(half, copies) for half in np.hsplit(weights, 2)]
    found = np.zeros((dim, copies * width))
    found[list(coordinates)] = math.sqrt(dim / (k * copies)) * np.hstack(halves)
    return found
