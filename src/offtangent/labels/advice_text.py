"""What `labels.advise` returns: the labels split between linear and quadratic part, r, λ₃, and all of it in words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent.labels.energies import EnergyEstimate
from offtangent.labels.learning_curves import KernelCurve

LITTLE = 0.05  # of the labels' energy


@dataclass(frozen=True)
class Measured:
    """The linear part's mean squared error on samples left out one at a time, and its standard error."""

    error: float
    standard_error: float
    samples: int  # that were looked at
    predicted: float  # for so many samples, if inputs are uniform


@dataclass(frozen=True)
class Cut:
    """Where V₁ ends: the rank, the eigenvalues of the Gram matrix over n around it, and what follows for λ₃."""

    rank: int  # r
    top: float  # λ_1
    above: float  # λ_r
    below: float  # λ_{r+1}
    measured: bool = False  # on the samples, not predicted from degrees

    @property
    def gap(self) -> float:
        """λ_r/λ_{r+1}; 1 where the blocks on both sides overlap."""
        return max(self.above / self.below, 1.0)

    @property
    def lambda3(self) -> float:
        """λ_1/λ_{r+1} − 1: R₃ as strong as costs no step size."""
        return max(self.top / self.below - 1, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What `advise` found; `print(advice)` tells it in words. Energies are means of squares, y itself not centred.

    Attributes:
        samples: The number n of samples.
        dim: The dimension d of the inputs.
        width: The number m of neurons.
        activation: The name of the activation.
        power: The mean of y².
        estimate: The energies by degree, for uniform inputs.
        curve: What the tangent kernel is predicted to learn of the degrees 0, …, 40, for uniform inputs.
        measured: The error of the linear part on samples left out one at a time.
        departures: ‖p_j‖² of the inputs' density for j = 1, 2, which is zero for uniform ones.
        uniform: Whether these pass for zero.
        cut: Where the first r directions end, and what follows for λ₃.
    """

    samples: int
    dim: int
    width: int
    activation: str
    power: float
    estimate: EnergyEstimate
    curve: KernelCurve
    measured: Measured
    departures: Float[np.ndarray, " two"]
    uniform: bool
    cut: Cut

    @property
    def learnt(self) -> Float[np.ndarray, " degrees"]:
        """L_j: the share of each degree that the linear part learns from n samples."""
        return self.curve.learnt[: self.estimate.degree + 1]

    @property
    def lacking(self) -> Float[np.ndarray, " degrees"]:
        """(1 − L_j)² E_j: the energy of each degree that the linear part leaves."""
        return (1 - self.learnt) ** 2 * np.maximum(self.estimate.energies, 0.0)

    @property
    def left(self) -> float:
        """The energy that the linear part leaves: Σ_j (1 − L_j)² E_j and the rest; if not uniform, as measured."""
        if not self.uniform:
            return min(self.measured.error, self.power)
        return float(self.lacking.sum()) + max(self.estimate.rest, 0.0)

    @property
    def linear(self) -> float:
        """The energy that the linear part explains from n samples."""
        return max((self.estimate.total if self.uniform else self.power) - self.left, 0.0)

    @property
    def rank(self) -> int:
        """r, for R₁, R₂ and R₃."""
        return self.cut.rank

    @property
    def lambda3(self) -> float:
        """λ₃ on the mean over samples; on their sum it is this divided by n."""
        return self.cut.lambda3

    @property
    def degree(self) -> int:
        """k: all degrees up to it that the network sees are learnt by half or more; −1 if there is none."""
        unlearnt = np.flatnonzero((self.curve.learnt < 0.5) & (self.curve.learnt > 0))
        return int(unlearnt[0]) - 1 if len(unlearnt) else len(self.curve.learnt) - 1

    @property
    def epsilon(self) -> float:
        """The ε_min for which Theorem 4's λ₃ = m^{1/2} d^{−(k−1)/2} ε_min is this one."""
        return self.lambda3 * self.width**-0.5 * self.dim ** ((max(self.degree, 1) - 1) / 2)

    def __str__(self) -> str:
        return " ".join([_inputs(self), *(_degrees(self) if self.uniform else _without_degrees(self)), _settings(self)])

    def __repr__(self) -> str:
        return f"Advice(n={self.samples}, d={self.dim}, m={self.width}, r={self.rank}, λ₃={self.lambda3:.3g})"


def _inputs(advice: Advice) -> str:
    if advice.uniform:
        said = "their directions pass for uniform"
    else:
        first, second = advice.departures
        said = (
            f"their directions are not uniform (the density's parts of degree 1 and 2 are {first:.2g} and "
            f"{second:.2g}, where a uniform one has 0), so what follows is measured, and no degrees are told apart"
        )
    return f"{advice.samples} samples of dimension {advice.dim}, scaled to length √d; {said}."


def _degrees(advice: Advice) -> list[str]:
    found = advice.estimate
    parts = ", ".join(
        f"{energy:.3g} ± {error:.1g} in degree {j}"
        for j, (energy, error) in enumerate(zip(found.energies, found.errors, strict=True))
    )
    shares = ", ".join(f"{share:.0%} of degree {j}" for j, share in enumerate(advice.learnt))
    rest = f"{found.rest:.2g} ± {found.rest_error:.1g} in higher degrees or noise"
    energies = f"Of the labels' energy {found.total:.3g}: {parts}, and {rest}."
    learnt = (
        f"From these samples the tangent kernel of {advice.activation} learns {shares}: {advice.linear:.3g} of the "
        f"energy. {advice.left:.3g} is left, {advice.lacking.sum():.3g} of it in these degrees; the quadratic part "
        "can learn of that what is sparse."
    )
    if advice.left < LITTLE * found.total:
        learnt += " There is little for it to add."
    error = f"Predicted test error of the linear part alone: {advice.curve.error:.3g}{_measured(advice)}."
    return [energies, learnt, error]


def _without_degrees(advice: Advice) -> list[str]:
    explained = f"the linear part explains {advice.linear:.3g}{_measured(advice)}"
    left = f"{advice.left:.3g} is left, for the quadratic part or noise"
    return [f"Of the labels' energy {advice.power:.3g} {explained}; {left}."]


def _measured(advice: Advice) -> str:
    found = advice.measured
    number = f"{found.error:.3g} ± {found.standard_error:.1g} at width {advice.width}"
    if found.samples == advice.samples:
        return f" (leaving out one sample at a time: {number})"
    told = f", where {found.predicted:.3g} is predicted" if advice.uniform else ""
    return f" (leaving out one of {found.samples} samples at a time: {number}{told})"


def _settings(advice: Advice) -> str:
    cut = advice.cut
    why = "by generalised cross-validation, " if cut.measured else ""
    gap = f"where the spectrum has a gap of ×{cut.gap:.3g}" if cut.gap > 1.1 else "where the spectrum has no gap"
    strength = f"λ₃ = {cut.lambda3:.3g} on the mean ({cut.lambda3 / advice.samples:.2g} on the sum)"
    text = f"Suggested: r = {cut.rank}, {why}{gap}, and {strength}, the largest that costs no step size."
    if cut.lambda3 < 1:
        text += " It is below 1: R₃ cannot keep the linear part from fitting the larger share of what is left."
    return text
