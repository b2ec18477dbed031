"""How fast gradient descent will learn these labels, before any training.

Arora et al. (2019), Theorem 4.1: with a wide two-layer ReLU network the residual obeys

    ‖y − u(k)‖² ≈ Σᵢ (1 − ηλᵢ)²ᵏ (vᵢᵀy)²                                        (8)

where (λᵢ, vᵢ) are the eigenpairs of H∞: labels along large eigenvalues are learnt first. The right side is
exactly ‖y − ũ(k)‖² of the linear recursion ũ(k+1) = ũ(k) − ηH∞(ũ(k) − y) from ũ(0) = 0, eq. (7).

Among all labels of a given length, gradient descent is slowest on the eigenvector of H∞ with the smallest eigenvalue:
the worst-case labels of Figure 1.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_real
from offtangent._errors import InputError, a_kind
from offtangent.linalg import Spectrum

FOREVER = 1 << 62  # more steps than anybody takes; (1 − ηλ)²ᵏ is still an ordinary power there


@dataclass(frozen=True)
class PredictedResidual:
    """‖y − u(k)‖ of gradient descent at each number of steps k.

    Of a truncated spectrum the curve is known to lie between `lower` and `upper`, and `norm` is the upper one.
    """

    steps: Int[np.ndarray, "t"]
    norm: Float[np.ndarray, "t"]
    by_direction: Float[np.ndarray, "t r"]  # ξᵢ(k) = (1 − ηλᵢ)²ᵏ (vᵢᵀy)²
    unknown: float  # energy of y outside the known eigenvectors, taken as never learnt
    lower: Float[np.ndarray, "t"]  # the same taken as learnt as fast as the last known direction


def largest_stable_rate(spectrum: Spectrum) -> float:
    """2/λ_max: from this learning rate on gradient descent on ½‖y − u‖² diverges.

    >>> largest_stable_rate(Spectrum.of(np.diag([4.0, 1.0])))
    0.5
    """
    if not isinstance(spectrum, Spectrum):
        raise InputError(f"spectrum is {a_kind(spectrum)}: expected a linalg.Spectrum, such as Gram(kernel, X).eigh().")
    if spectrum.which == "smallest" and not spectrum.complete:
        raise InputError(
            "The spectrum holds the smallest eigenvalues only; λ_max is needed: H.eigh(k) finds the largest."
        )
    largest = float(spectrum.values.max())
    if not largest > 0:
        raise InputError(f"The largest eigenvalue is {largest:g}: gradient descent learns nothing at any rate.")
    return 2.0 / largest


def predict_residual(
    spectrum: Spectrum, y: Float[np.ndarray, "n"], *, rate: float, steps: Int[np.ndarray, "t"]
) -> PredictedResidual:
    """The right side of eq. (8), for r known eigenpairs of H∞.

    With r < n, the r largest, the curve is an upper bound: what lies outside the known eigenvectors is kept. It is
    learnt at a rate between 0 and λ_r, which gives the lower curve. Time O(nr + tr), memory O(tr).

    >>> two = Spectrum.of(np.diag([1.0, 0.1]))
    >>> predict_residual(two, np.ones(2), rate=1.0, steps=np.array([0, 1, 10])).norm
    array([1.41421356, 0.9       , 0.34867844])
    """
    check_rate(spectrum, rate)
    steps = np.atleast_1d(steps)
    if steps.dtype.kind not in "iu":
        raise InputError(f"steps has dtype {steps.dtype}: expected whole numbers of gradient steps.")
    if (steps < 0).any():
        raise InputError(f"steps holds {steps.min()}: numbers of gradient steps are zero or positive.")
    energy = spectrum.energy(y)
    by_direction = energy * _shrink(spectrum, rate) ** (2.0 * steps[:, None])
    unknown = _unknown(spectrum, y, energy)
    known = by_direction.sum(axis=1)
    fastest = max(1 - rate * max(float(spectrum.values[-1]), 0.0), 0.0)  # smallest |1 − ηλ| for 0 ≤ λ ≤ λ_r
    lower = np.sqrt(known + unknown * fastest ** (2.0 * steps))
    return PredictedResidual(steps, np.sqrt(known + unknown), by_direction, unknown, lower)


def steps_to(spectrum: Spectrum, y: Float[np.ndarray, "n"], *, rate: float, loss: float) -> int:
    """The first k at which the predicted loss ‖y − u(k)‖² is at most `loss` times ‖y‖².

    Found by bisection, since the predicted loss never rises: time O(nr + 62r). With r < n eigenpairs the
    answer is an upper bound. Refused if part of y is never learnt: outside the known eigenvectors, or along
    an eigenvalue that is not positive.

    >>> steps_to(Spectrum.of(np.diag([1.0, 0.1])), np.array([0.0, 1.0]), rate=1.0, loss=0.1)
    11
    """
    check_rate(spectrum, rate)
    if not loss > 0:
        raise InputError(f"loss={loss:g}: the target is a positive fraction of the initial loss, such as 0.01.")
    if loss >= 1:  # the energies may sum to a hair more than ‖y‖²
        return 0
    energy = spectrum.energy(y)
    shrink = _shrink(spectrum, rate)
    unknown = _unknown(spectrum, y, energy)
    length = _squared_length(y)
    target = loss * length

    def remaining(k: int) -> float:
        return float((energy * shrink ** (2.0 * k)).sum()) + unknown

    if remaining(0) <= target:
        return 0
    if remaining(FOREVER) > target:
        raise InputError(
            f"A loss of {loss:g} is never reached: {remaining(FOREVER) / length:.3g} of the labels' energy "
            "lies outside the known eigenvectors or along eigenvalues that are not positive."
        )
    low, high = 0, 1
    while remaining(high) > target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if remaining(middle) > target else (low, middle)
    return high


def check_rate(spectrum: Spectrum, rate: float) -> None:
    """Refuse a learning rate at which gradient descent on this spectrum does not converge, and name a safe one."""
    check_real("rate", rate)
    limit = largest_stable_rate(spectrum)
    if not rate > 0:
        raise InputError(
            f"rate={rate:g}: it must be positive and below 2/λ_max = {limit:.3g}. rate={limit / 2:.3g} is safe."
        )
    if not rate < limit:
        raise InputError(
            f"rate={rate:g} would diverge on these inputs: it must lie below 2/λ_max = {limit:.3g}. "
            f"rate={limit / 2:.3g} is safe."
        )


def _shrink(spectrum: Spectrum, rate: float) -> Float[np.ndarray, "r"]:
    """|1 − ηλ|. A Gram matrix has no negative eigenvalues; those of rounding count as zero, or they would grow."""
    return np.abs(1 - rate * np.maximum(spectrum.values, 0.0))


def _squared_length(y: Float[np.ndarray, "n"]) -> float:
    return float(np.sum(np.asarray(y, np.float64) ** 2))


def _unknown(spectrum: Spectrum, y: Float[np.ndarray, "n"], energy: Float[np.ndarray, "r"]) -> float:
    return 0.0 if spectrum.complete else max(_squared_length(y) - float(energy.sum()), 0.0)


def worst_case_labels(spectrum: Spectrum) -> Float[np.ndarray, "n"]:
    """√n times the eigenvector of λ_min, so that ‖y‖ = √n as for labels ±1. Its sign makes the sum non-negative.

    >>> worst_case_labels(Spectrum.of(np.diag([1.0, 0.1])))
    array([0.        , 1.41421356])
    """
    if not spectrum.complete:
        raise InputError(
            f"The worst-case labels need the smallest eigenvalue, and only the {len(spectrum.values)} largest of "
            f"{len(spectrum.vectors)} are known. Use the whole spectrum, Gram.eigh()."
        )
    vector = spectrum.vectors[:, -1]
    sign = 1.0 if vector.sum() >= 0 else -1.0
    return sign * np.sqrt(len(vector)) * vector + 0.0
