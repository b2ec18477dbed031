"""How far gradient descent moves the weights of a wide network, and which neurons can flip on the way.

Arora et al. (2019), Lemmas 5.3, C.1 and C.2. A neuron r that moves by at most R can change its sign 1{w_rᵀxᵢ ≥ 0} on
an input xᵢ of unit length only in the event

    A_{r,i} = {|w_r(0)ᵀxᵢ| ≤ R},                                                   (15)

which is rare when R is small next to the size κ of the initial weights. S̄ᵢ are the neurons of which A_{r,i} holds.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_bound, check_entries, check_real, require
from offtangent._types import AnyArray


def movement_radius(n: int, width: float | int, *, smallest: float, residual: float) -> float:
    """R = 4√n ‖y − u(0)‖ / (√m λ₀), Lemma C.1: no neuron moves further, under Theorem 3.1's hypotheses.

    `residual` is ‖y − u(0)‖, measured or bounded by `initial_residual_bound`.

    >>> movement_radius(4, 10_000, smallest=0.5, residual=2.0)
    0.32
    """
    check_bound(n=n, width=width, smallest=smallest)
    check_real("residual", residual)
    require(residual >= 0, f"residual={residual:g}: a length is zero or positive.")
    return 4 * math.sqrt(n) * residual / (math.sqrt(width) * smallest)


@dataclass(frozen=True)
class MovementBound:
    """Lemma 5.3's bound on ‖W(k) − W(0)‖_F, term by term."""

    linear: float  # √(yᵀ(H∞)⁻¹y), what the linearised network moves
    kernel: float  # H(0) is not H∞, eq. (38)
    features: float  # Z(k) is not Z(0), eq. (35)
    initial: float  # the output before training, eq. (36): nκ/(λ₀δ)
    trajectory: float  # u(k) is not ũ(k), eq. (36)

    @property
    def of_width(self) -> float:
        """What vanishes as the width goes to infinity, like m^{-1/4}."""
        return self.kernel + self.features + self.trajectory

    @property
    def total(self) -> float:
        return self.linear + self.initial + self.of_width


def movement_bound(
    quadratic: float, n: int, width: float | int, *, scale: float, smallest: float, delta: float
) -> MovementBound:
    """Lemma 5.3 with the terms of its proof, constants in O(·) taken as one: ‖W(k) − W(0)‖_F ≤

        √(yᵀ(H∞)⁻¹y) + n √(√log(n/δ)/√m)/λ₀ + n^{3/2}/√(√m λ₀³κδ^{3/2}) + nκ/(λ₀δ) + n⁴/(√m λ₀³κδ²)

    for all k, with probability at least 1 − δ. An infinite width leaves the first and the fourth.
    """
    check_bound(delta, n=n, width=width, smallest=smallest)
    check_real("quadratic", quadratic)
    check_real("scale", scale)
    require(scale >= 0, f"scale={scale:g}: κ is zero or positive.")
    require(quadratic >= 0, f"yᵀH⁻¹y = {quadratic:g}: it is zero or positive.")
    linear, initial = math.sqrt(quadratic), n * scale / (smallest * delta)
    if math.isinf(width):
        return MovementBound(linear, 0.0, 0.0, initial, 0.0)
    check_bound(scale=scale)
    root = math.sqrt(width)
    return MovementBound(
        linear=linear,
        kernel=n * math.sqrt(math.sqrt(math.log(n / delta)) / root) / smallest,
        features=n**1.5 / math.sqrt(root * smallest**3 * scale * delta**1.5),
        initial=initial,
        trajectory=n**4 / (root * smallest**3 * scale * delta**2),
    )


def flip_probability(radius: float, scale: float) -> float:
    """P(A_{r,i}) = P(|z| ≤ R) for z ~ N(0, κ²), exactly: erf(R / √2κ). It is at most `flip_probability_bound`.

    >>> round(flip_probability(1.0, 1.0), 4)
    0.6827
    """
    check_bound(scale=scale)
    _check_radius(radius)
    return math.erf(radius / (scale * math.sqrt(2)))


def flip_probability_bound(radius: float, scale: float) -> float:
    """P(A_{r,i}) ≤ 2R / (√(2π) κ), eq. (17)."""
    check_bound(scale=scale)
    _check_radius(radius)
    return 2 * radius / (math.sqrt(2 * math.pi) * scale)


def flip_candidates(W0: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"], radius: float) -> Int[np.ndarray, "n"]:
    """Count the neurons that can flip, for every input: |S̄ᵢ| = #{r : |w_r(0)ᵀxᵢ| ≤ R}, eq. (15).

    R is `radius`, and w_r(0) are the columns of `W0`. Time O(ndm), memory O(nm).

    >>> flip_candidates(np.array([[0.1, -0.2, 3.0]]), np.ones((1, 1)), radius=0.2)
    array([2])
    """
    _check_radius(radius)
    _check_layer(W0, W0, X)
    return np.count_nonzero(np.abs(np.asarray(X) @ np.asarray(W0)) <= radius, axis=1)


def flip_counts(
    W0: Float[AnyArray, "d m"], W: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"]
) -> Int[np.ndarray, "n"]:
    """The number of neurons whose sign 1{wᵀxᵢ ≥ 0} differs between W₀ and W₀ + W, for every input. Time O(ndm).

    Over m and summed for unit inputs, it is ‖Z − Z(0)‖_F².
    """
    _check_layer(W0, W, X)
    inputs, start = np.asarray(X), np.asarray(W0)
    return np.count_nonzero((inputs @ start >= 0) != (inputs @ (start + np.asarray(W)) >= 0), axis=1)


def _check_radius(radius: float) -> None:
    check_real("radius", radius)
    require(radius >= 0, f"radius={radius:g}: a distance is zero or positive.")


def _check_layer(W0: Float[AnyArray, "d m"], W: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"]) -> None:
    """Refuse weights of two shapes, which broadcasting would make alike, inputs of another dimension, and NaN."""
    check_entries(W0=W0, W=W, X=X)
    start, moved, inputs = np.shape(W0), np.shape(W), np.shape(X)
    fits = len(start) == 2 and moved == start and len(inputs) == 2 and inputs[1] == start[0]
    require(fits, f"Shapes W0 {start}, W {moved}, X {inputs}: expected (d, m) twice and (n, d), neurons as columns.")


def flip_sum_bound(n: int, width: int, *, radius: float, scale: float, delta: float) -> float:
    """Σᵢ |S̄ᵢ| ≤ mn 2R / (√(2π) κδ) with probability at least 1 − δ: Theorem 4.1's proof, eq. (19), Markov on (17)."""
    check_bound(delta, n=n, width=width)
    return width * n * flip_probability_bound(radius, scale) / delta


def kernel_change_bound(n: int, *, radius: float, scale: float, delta: float) -> float:
    """‖H(k) − H(0)‖_F ≤ 4n²R / (√(2π) κδ), Lemma C.2, if no neuron moves by more than R = `radius`.

    With probability at least 1 − δ over the initial weights. (The proof adds 2n²/m for neurons that move further, from
    Σ_r P(‖w_r(k) − w_r(0)‖ > R) ≤ δ, where mδ is what follows; conditioned on their not doing so, as here, there is
    nothing to add.)
    """
    check_bound(delta, n=n)
    return 2 * n**2 * flip_probability_bound(radius, scale) / delta


def feature_change_bound(n: int, *, radius: float, scale: float, delta: float) -> float:
    """‖Z(k) − Z(0)‖_F ≤ √(2nR / (√(2π) κδ)), Lemma C.2, under the conditions of `kernel_change_bound`."""
    check_bound(delta, n=n)
    return math.sqrt(n * flip_probability_bound(radius, scale) / delta)
