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

from offtangent._checks import check_real, require
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
    """Compute 2/λ_max, the learning rate from which on gradient descent no longer converges.

    The recursion of eq. (7) of Arora et al. (2019), u(k + 1) = u(k) − ηH∞(u(k) − y), multiplies the part of u − y
    along each eigenvector by 1 − ηλᵢ, and all of these are below one in size just where 0 < η < 2/λ_max. At half of
    this rate none of them changes sign. Time O(r).

    Args:
        spectrum: The eigenpairs of H∞, all of them or the largest, as `Gram(kernel, X).eigh()` finds them.

    Returns:
        The rate 2/λ_max itself, which is not stable any more.

    Raises:
        InputError: If the spectrum holds the smallest eigenvalues only, so that λ_max is not known, or if none of its
            eigenvalues is positive.

    >>> largest_stable_rate(Spectrum.of(np.diag([4.0, 1.0])))
    0.5
    """
    if not isinstance(spectrum, Spectrum):
        raise InputError(f"spectrum is {a_kind(spectrum)}: expected a linalg.Spectrum, such as Gram(kernel, X).eigh().")
    require(
        spectrum.which != "smallest" or spectrum.complete,
        "The spectrum holds the smallest eigenvalues only; λ_max is needed: H.eigh(k) finds the largest.",
    )
    largest = float(spectrum.values.max())
    if not largest > 0:
        raise InputError(f"The largest eigenvalue is {largest:g}: gradient descent learns nothing at any rate.")
    return 2.0 / largest


def predict_residual(
    spectrum: Spectrum, y: Float[np.ndarray, "n"], *, rate: float, steps: Int[np.ndarray, "t"]
) -> PredictedResidual:
    """Predict the residual ‖y − u(k)‖ of gradient descent after given numbers of steps, before any training.

    This is the right side of eq. (8) of Arora et al. (2019), without its error ε that vanishes with the width,

        ‖y − u(k)‖ = √(Σᵢ (1 − ηλᵢ)²ᵏ (vᵢᵀy)²) ± ε,

    for r known eigenpairs (λᵢ, vᵢ) of H∞. With r < n, the r largest, the curve is an upper bound, because the part of
    y outside the known eigenvectors is taken as never learnt. In truth it is learnt with eigenvalues between 0 and
    λ_r, and the fastest that these allow gives a lower curve. Time O(nr + tr), memory O(tr).

    Args:
        spectrum: The eigenpairs of H∞, all n or the r largest, as `Gram(kernel, X).eigh()` finds them.
        y: The labels, one for each input.
        rate: The learning rate η, between 0 and 2/λ_max.
        steps: The t numbers of steps k at which the residual is wanted, in any order.

    Returns:
        A `PredictedResidual`: its `norm` is ‖y − u(k)‖ for every k, its `by_direction` holds the squares of which
        that is the root, one for each eigenvector, its `lower` is the lower curve (of a whole spectrum the same as
        `norm`), and its `unknown` is the energy of y outside the known eigenvectors.

    Raises:
        InputError: If gradient descent would diverge at `rate`; the message names a rate that is safe. Also if `y`
            does not fit the spectrum or is not finite, and if `steps` holds anything but whole numbers from zero on.

    >>> two = Spectrum.of(np.diag([1.0, 0.1]))
    >>> predict_residual(two, np.ones(2), rate=1.0, steps=np.array([0, 1, 10])).norm
    array([1.41421356, 0.9       , 0.34867844])
    """
    check_rate(spectrum, rate)
    steps = np.atleast_1d(steps)
    require(steps.dtype.kind in "iu", f"steps has dtype {steps.dtype}: expected whole numbers of gradient steps.")
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
    """Find the first step k at which the predicted loss ‖y − u(k)‖² is at most a given fraction of ‖y‖².

    The loss is that of eq. (8) of Arora et al. (2019), Σᵢ (1 − ηλᵢ)²ᵏ (vᵢᵀy)². It never rises, so that k is found by
    bisection, in time O(nr + r log k). With r < n eigenpairs the answer is an upper bound, as what lies outside the
    known eigenvectors is taken as never learnt.

    Args:
        spectrum: The eigenpairs of H∞, all n or the r largest, as `Gram(kernel, X).eigh()` finds them.
        y: The labels, one for each input.
        rate: The learning rate η, between 0 and 2/λ_max.
        loss: The fraction of the initial loss ‖y‖² that is to be reached, such as 0.01; from 1 on the answer is 0.

    Returns:
        The number of steps.

    Raises:
        InputError: If the loss is never reached, because more than this fraction of ‖y‖² lies outside the known
            eigenvectors or along eigenvalues that are not positive; the message says how much. Also if gradient
            descent would diverge at `rate`, with a safe rate in the message, and if `loss` is not positive.

    >>> steps_to(Spectrum.of(np.diag([1.0, 0.1])), np.array([0.0, 1.0]), rate=1.0, loss=0.1)
    11
    """
    check_rate(spectrum, rate)
    check_real("loss", loss)
    require(loss > 0, f"loss={loss:g}: the target is a positive fraction of the initial loss, such as 0.01.")
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
    """Give the labels that gradient descent learns most slowly: √n times the eigenvector of λ_min.

    Among all labels of one length they keep the largest residual in eq. (8) of Arora et al. (2019), at any number of
    steps and at rates up to 1/λ_max. Their length is √n, that of labels ±1, and of the two signs the one is taken that
    makes their sum zero or positive. Time and memory O(n).

    Args:
        spectrum: All n eigenpairs of H∞, as `Gram(kernel, X).eigh()` finds them.

    Returns:
        The labels, one for each input.

    Raises:
        InputError: If the spectrum is not complete: the eigenvector of the smallest eigenvalue is needed.

    >>> worst_case_labels(Spectrum.of(np.diag([1.0, 0.1])))
    array([0.        , 1.41421356])
    """
    require(
        spectrum.complete,
        f"The worst-case labels need the smallest eigenvalue, and only the {len(spectrum.values)} largest of "
        f"{len(spectrum.vectors)} are known. Use the whole spectrum, Gram.eigh().",
    )
    vector = spectrum.vectors[:, -1]
    sign = 1.0 if vector.sum() >= 0 else -1.0
    return sign * np.sqrt(len(vector)) * vector + 0.0
