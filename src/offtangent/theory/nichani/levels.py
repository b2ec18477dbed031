"""What a finite width and a finite sample make of the tangent kernel's eigenvalues, degree by degree.

At infinite width, and for inputs uniform on S^{d−1}(√d), the feature covariance Σ of Nichani, Bai & Lee (2022), eq.
(5), has the eigenvalue ξ_j of `special.sphere.tangent_eigenvalues` B(d, j) times. With h independent neurons, and from
N inputs, it is a mean of h, and of N, independent terms, and two things are exact: the trace of its part of degree j is
B(d, j)ξ_j for any weights on the unit sphere, and the mean of the part is ξ_j I. What is left is second order, with
T_jl the overlap of the degrees j and l in one neuron and τ_j = B(d, j)ξ_j:

    λ̄_j ≈ ξ_j + B(d, j)⁻¹ Σ_{l≠j} (T_jl/h + τ_jτ_l/N)/(ξ_j − ξ_l),
    s_j² ≈ (T_jj/B(d, j) − ξ_j²)/h + (B(d, j) − 1)ξ_j²/N,

the mean of a block's eigenvalues and their variance. A neuron's part of degree j is, as a matrix on its own weights,
α_j along w and β_j across it (`sphere_covariance`), so that T_jl = α_jα_l + (d − 1)β_jβ_l and τ_j = α_j +
(d − 1)β_j. The ends of a block are those of Marchenko and Pastur, ξ_j(1 ± s_j/ξ_j)². None of this is in the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from offtangent._checks import check_count
from offtangent._errors import InputError
from offtangent.special.activations import Activation, activation
from offtangent.special.sphere import check_dim, harmonic_dimension
from offtangent.theory.nichani.sphere_covariance import amplitudes

DEGREES = 40  # that take part in the sums over l
NOTHING = 1e-20  # of the trace: an energy τ_j below is rounding


@dataclass(frozen=True)
class FiniteLevel:
    """One degree's eigenvalues at infinite width, and what is expected of them at a finite one and in a sample."""

    degree: int
    multiplicity: int  # B(d, degree)
    value: float  # ξ, at infinite width
    mean: float  # of the block's eigenvalues
    spread: float  # their standard deviation

    @property
    def edges(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of the block; of one eigenvalue, its mean twice."""
        if self.multiplicity == 1 or self.value == 0:
            return self.mean, self.mean
        ratio = self.spread / self.value
        return self.value * max(1 - ratio, 0.0) ** 2, self.value * (1 + ratio) ** 2

    @property
    def present(self) -> bool:
        """Whether the network sees this degree at all: not where ξ is zero."""
        return self.value > 0


def finite_levels(
    sigma: str | Activation | Callable[..., object],
    *,
    dim: int,
    neurons: int,
    samples: int | None = None,
    degree: int,
) -> tuple[FiniteLevel, ...]:
    """The levels of degrees 0, …, degree for h = `neurons` independent neurons, from N inputs or (None) the population.

    A symmetric initialisation of width m has m/2 independent neurons. Good to second order: B(d, j) must be well below
    d·h and N, and neighbouring levels apart. Time that of two ``harmonic_coefficients`` of degree 40.

    >>> constant, linear, square = finite_levels("softplus", dim=20, neurons=1000, samples=2000, degree=2)
    >>> square.multiplicity, round(square.mean / square.value, 3), round(square.spread / square.value, 3)
    (209, 0.99, 0.337)
    """
    dim = check_dim(dim)
    check_count("neurons", neurons)
    check_count("degree", degree, least=0)
    if degree > DEGREES:
        raise InputError(f"degree={degree}: levels are known up to degree {DEGREES}.")
    if samples is not None:
        check_count("samples", samples)
    tangent, radial = amplitudes(activation(sigma), dim, DEGREES)
    k = np.arange(DEGREES + 1)
    sizes = np.array([float(harmonic_dimension(dim, int(j))) for j in k])
    along, across = radial**2, tangent**2 * k * (k + dim - 2) / (dim - 1)
    energy = along + (dim - 1) * across
    seen = energy > NOTHING * energy.sum()
    along, across, energy = (np.where(seen, part, 0.0) for part in (along, across, energy))
    values = energy / sizes
    overlap = np.outer(along, along) + (dim - 1) * np.outer(across, across)
    coupling = overlap / neurons
    variance = (np.diag(overlap) / sizes - values**2) / neurons
    if samples is not None:
        coupling += np.outer(energy, energy) / samples
        variance += (sizes - 1) * values**2 / samples
    found = []
    for j in range(degree + 1):
        apart = values[j] - values
        shift = sum(c / gap for c, gap in zip(coupling[j], apart, strict=True) if gap != 0) / sizes[j]
        found.append(
            FiniteLevel(
                j,
                harmonic_dimension(dim, j),
                float(values[j]),
                float(values[j] + shift),
                float(np.sqrt(max(variance[j], 0.0))),
            )
        )
    return tuple(found)
