"""What kernel regression will learn from n samples, from the kernel's eigenvalues alone.

With eigenvalues λᵢ of the kernel's operator, and a target with coefficients vᵢ in its eigenfunctions, plus noise of
variance σ² (Canatar, Bordelon & Pehlevan 2021; Simon, Dickens, Karkada & DeWeese 2023),

    n = Σᵢ λᵢ/(λᵢ + κ) + δ/κ,      Lᵢ = λᵢ/(λᵢ + κ),      test error ≈ (Σᵢ (1 − Lᵢ)² vᵢ² + σ²) · n/(n − Σᵢ Lᵢ²).

δ is the ridge on the Gram matrix, κ the eigenvalue down to which n samples see, and Lᵢ the share of direction i that is
learnt. Eigenvalues far below κ act together like a ridge of the size of their sum. On the sphere λᵢ = ξ_j for all
B(d, j) harmonics of degree j, so a degree is learnt as a whole, when n passes n_j: this is why n ~ d^k samples teach
the tangent kernel the degrees up to k and no more (Nichani, Bai & Lee 2022, Section 1.1).
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.optimize
from jaxtyping import Float

from offtangent._checks import check_count, check_numbers, check_real, require


@dataclass(frozen=True, eq=False)
class KernelCurve:
    """What is predicted of kernel regression from n samples."""

    samples: int
    kappa: float  # κ
    learnt: Float[np.ndarray, " levels"]  # L, for each level
    overfitting: float  # n/(n − Σ L²): what the part that is not learnt costs above its own energy
    left: Float[np.ndarray, " levels"] = field(repr=False)  # (1 − L)² times the level's energy
    noise: float

    @property
    def error(self) -> float:
        """The mean squared error on fresh samples, with their noise."""
        return float(self.left.sum() + self.noise) * self.overfitting


def kernel_curve(
    values: Float[np.ndarray, " levels"],
    multiplicities: Float[np.ndarray, " levels"],
    energies: Float[np.ndarray, " levels"],
    *,
    samples: int,
    tail: float | int = 0.0,
    ridge: float | int = 0.0,
    noise: float | int = 0.0,
) -> KernelCurve:
    """The prediction for eigenvalues λ_j of given multiplicities, on which the target has these energies.

    `tail` is the sum of all further eigenvalues, which must be far below κ; what the target has there counts as noise.
    Time O(levels).

    >>> curve = kernel_curve(np.array([1.0]), np.array([100.0]), np.array([1.0]), samples=50)
    >>> round(float(curve.learnt[0]), 6), round(curve.error, 6)  # half of the directions are seen
    (0.5, 0.5)
    """
    check_count("samples", samples)
    values, sizes, energies = (
        _levels(name, given)
        for name, given in (("values", values), ("multiplicities", multiplicities), ("energies", energies))
    )
    for name, number in (("tail", tail), ("ridge", ridge), ("noise", noise)):
        check_real(name, number)
        require(0 <= number < np.inf, f"{name}={number:g}: it must be finite and at least 0.")
    extra = float(tail) + float(ridge)
    require(values.any(), "values are all zero: expected a positive eigenvalue.")
    require(
        len(values) == len(sizes) == len(energies),
        f"{len(values)} eigenvalues, {len(sizes)} multiplicities and {len(energies)} energies given.",
    )
    seen = values > 0
    if extra == 0 and sizes[seen].sum() <= samples:
        kappa, learnt = 0.0, seen.astype(np.float64)
    else:

        def excess(log_kappa: float) -> float:
            kappa = np.exp(log_kappa)
            return float(sizes @ (values / (values + kappa)) + extra / kappa - samples)

        whole = float(sizes @ values) + extra  # κ ≤ whole/n, and there the excess is negative
        high = np.log(whole / samples)
        low = high - 1.0
        while excess(low) <= 0:
            low -= 10.0
        kappa = float(np.exp(scipy.optimize.brentq(excess, low, high, xtol=1e-12)))
        learnt = values / (values + kappa)
    spent = float(sizes @ learnt**2)
    overfitting = samples / (samples - spent) if spent < samples else np.inf
    return KernelCurve(samples, kappa, learnt, overfitting, (1 - learnt) ** 2 * energies, float(noise))


def _levels(name: str, given: object) -> Float[np.ndarray, " levels"]:
    """A number for each level."""
    numbers = check_numbers(given, name)
    require(numbers.ndim == 1, f"{name} has shape {numbers.shape}: expected one dimension, a number for each level.")
    sound = np.isfinite(numbers).all() and (numbers >= 0).all()
    require(sound, f"{name} must be finite and at least 0, and they lie from {numbers.min(initial=0)} on.")
    return numbers
