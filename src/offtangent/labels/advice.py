"""Before training a network beyond its tangent space: what the linear part will learn, what is left, how to set R₃.

Nichani, Bai & Lee (2022), for a user's own samples. From n of them the tangent kernel learns the degrees whose
eigenvalues it can see (`labels.learning_curves`). What it cannot learn is for the quadratic part, which learns a sparse
next degree from few samples, if R₃ keeps the linear part from fitting it by overfitting. Two numbers set R₃:

* the rank r: the directions of all degrees that are learnt by half or more. For n ~ d^k this is the paper's n_k;
* λ₃, on the mean over samples as in eq. (18): the strongest that costs no step size. The mean squared loss with λ₃R₃
  has the curvature 2λ_i along the first r eigenvectors of the Gram matrix over n, and 2(1 + λ₃)λ_i along the others,
  so that gradient descent is stable at rates up to 1/max(λ_1, (1 + λ₃)λ_{r+1}), and

      λ₃ = λ_1/λ_{r+1} − 1.

  Of what the quadratic part has not fitted yet the linear part fits the share 1/(1 + λ₃): below 1 it takes the larger
  one. Theorem 4's λ₃ = m^{1/2} d^{−(k−1)/2} ε_min leaves a constant open; `epsilon` is the ε_min that gives this one.

All of this is for inputs whose directions are uniform. Where they are not, the split is what leaving out one sample at
a time measures, r is where regression on the first eigenvectors generalises best, and λ₃ follows from the Gram matrix
of the samples; so do r and λ₃ where n is too small for any degree, below some 2d.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_labels, check_several, require
from offtangent._errors import InputError
from offtangent.data.preprocessing import unit_norm
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.regression import LeaveOneOut
from offtangent.labels.advice_text import Advice, Cut, Measured
from offtangent.labels.energies import LEAST, EnergyEstimate, degree_energies, departure, generator
from offtangent.labels.learning_curves import KernelCurve, kernel_curve
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.special.activations import Activation
from offtangent.special.sphere import harmonic_dimension, tangent_eigenvalues
from offtangent.theory.nichani.levels import DEGREES, finite_levels
from offtangent.theory.nichani.sphere_covariance import trace_parts
from offtangent.theory.nichani.tangent import TangentFeatures

ROWS = 3000  # samples whose Gram matrix is looked at
HIGHEST = 6  # degree whose energy is estimated
PRECISE = 20  # a degree is estimated where √(2B(d, j)), the error of its energy times n, is at most n over this
CLOSE = 0.01  # ‖p_j‖² of inputs that pass for uniform
REACH = 1e-6  # of the largest level: to a smaller one gradient descent takes more than a million steps
HUGE = 1e70  # labels beyond it, or its inverse, whose fourth powers leave float64
FLOOR = 1e-12  # of the Gram matrix's trace, added to its diagonal against rounding


def advise(
    X: object,
    y: object,
    *,
    width: int,
    activation: str | Activation | Callable[..., Array] = "softplus",
    degree: int | None = None,
    key: Key[Array, ""] | None = None,
) -> Advice:
    """Say what a two-layer network can do with these samples beyond its tangent kernel, and how to train it so.

    For a symmetric network of this width and activation, after Nichani, Bai & Lee (2022): how much of the labels'
    energy each degree of polynomials carries, which share of it the linear part of the network will learn, what is left
    for the quadratic part, and how to set the regulariser R₃ that keeps the linear part from fitting the rest. Its rank
    r counts the directions of all degrees that are learnt by half or more, and its strength is the largest that costs
    no step size,

        λ₃ = λ_1/λ_{r+1} − 1,

    on the mean over samples as in eq. (18), with the eigenvalues of the Gram matrix of the tangent features, predicted
    ones where directions are uniform. Where they are not, or samples are too few for any degree, the eigenvalues are
    measured, and r is the rank at which regression on the first eigenvectors generalises best. Rows are scaled to
    length √d, as the paper's inputs; scaling X, or rotating it, changes nothing but the network's own randomness. Time
    O(n·rows·(d + m) + n·rows²) with rows = min(n, 3000), memory some 3·(degree + 1)·rows² bytes, at least
    8(3·rows² + 2²³).

    Args:
        X: The inputs, at least 20 rows of at least two columns.
        y: The labels, a real number for each row, taken as they are and not centred.
        width: The number m of neurons, an even one.
        activation: The activation, by name or as an `Activation` or a function.
        degree: The degree up to which energies are estimated, at most 40. Without it as far as n samples can tell, from
            2 to 6.
        key: The JAX key that draws the network and the parts of the samples, that of seed 0 by default.

    Returns:
        An `Advice`: `print(advice)` tells it in words, `rank` and `lambda3` set R₃, `linear` and `left` are the
        energies that the linear part explains and leaves.

    Raises:
        InputError: If there are too few samples, or X has one column, if X and y do not fit together, or if all labels
            are the same, or too large or small for float64 to square.

    >>> from offtangent import data
    >>> from offtangent.data.targets import sphere_target
    >>> target = sphere_target(20, key=jax.random.key(0))  # x₁ − 1 + (βᵀx)²
    >>> X = data.sphere(120, 20, key=jax.random.key(1))
    >>> advice = advise(X, target(20**0.5 * X), width=1000)
    >>> advice.rank, advice.degree, round(advice.lambda3)
    (21, 1, 22)
    """
    inputs, labels = check_labels(X, y)
    check_several(inputs)
    n, dim = inputs.shape
    if n < LEAST:
        raise InputError(f"{n} samples: nothing can be said of fewer than {LEAST}.")
    require(dim >= 2, "X has one column: directions need at least two. Add a column of ones, say.")
    if (labels == labels[0]).all():
        raise InputError(f"All {n} labels are {labels[0]:g}: a constant leaves nothing to split. Check the labels.")
    largest = float(np.abs(labels).max())
    if not 1 / HUGE < largest < HUGE:
        raise InputError(f"The largest label is {largest:.3g}: its square leaves float64. Give y / {largest:.3g}.")
    rng = generator(key)
    of_net, of_parts = jax.random.split(jax.random.key(0) if key is None else key)
    Z = dim**0.5 * unit_norm(inputs)
    net = TwoLayer.symmetric(dim=dim, width=width, law="sphere", activation=activation, key=of_net)
    estimate = degree_energies(Z, labels, degree=_degree(degree, n, dim), key=of_parts)
    departures, errors = departure(Z, key=of_parts)
    uniform = bool((departures <= np.maximum(3 * errors, CLOSE)).all())
    rows = rng.permutation(n)[:ROWS]
    gram = TangentFeatures.of(net, Z[rows]).gram()
    curve = _curve(net, estimate, n)
    error, spread = _leave_one_out(gram, labels[rows])
    measured = Measured(error, spread, len(rows), _curve(net, estimate, len(rows)).error)
    return Advice(
        samples=n,
        dim=dim,
        width=width,
        activation=net.activation.name,
        power=float(np.mean(labels**2)),
        estimate=estimate,
        curve=curve,
        measured=measured,
        departures=departures,
        uniform=uniform,
        cut=(_predicted_cut(net, curve) if uniform else None) or _measured_cut(gram, labels[rows]),
    )


def _degree(degree: int | None, n: int, dim: int) -> int:
    if degree is not None:
        check_count("degree", degree, least=0)
        if degree > DEGREES:
            raise InputError(f"degree={degree}: the kernel is expanded up to degree {DEGREES}.")
        return degree
    within = [j for j in range(HIGHEST + 1) if PRECISE * (2 * harmonic_dimension(dim, j)) ** 0.5 <= n]
    return max(2, *within)


def _curve(net: TwoLayer, estimate: EnergyEstimate, n: int) -> KernelCurve:
    """Kernel regression with the tangent kernel, its learnt shares by degree; degrees beyond 40 count as a ridge.

    h neurons have dh directions, to which the degrees come in the order of their eigenvalues. Those that find no room
    share what is left: a part f of the directions, with eigenvalues ξ/f, so that the trace stays; at most f is learnt.
    """
    dim = net.dim
    values = tangent_eigenvalues(net.activation, dim=dim, degree=DEGREES)
    sizes = np.array([float(harmonic_dimension(dim, j)) for j in range(DEGREES + 1)])
    whole, _ = trace_parts(net.activation, dim, 1)
    values = np.where(values * sizes > 1e-20 * whole, values, 0.0)  # else rounding
    tail = max(whole - float(sizes @ values), 0.0)
    room = np.ones(DEGREES + 1)
    order = [j for j in np.argsort(-values) if values[j] > 0]
    free = float(dim * (net.width // 2))
    taken = np.cumsum(sizes[order])
    inside = int(np.searchsorted(taken, free, side="right"))
    if inside < len(order):
        left = free - (taken[inside - 1] if inside else 0.0)
        room[order[inside:]] = max(left, 1.0) / sizes[order[inside:]].sum()
    energies = np.zeros(DEGREES + 1)
    energies[: estimate.degree + 1] = np.maximum(estimate.energies, 0.0)
    # Energies and rest add up to the mean square of the labels; what clipping adds to the ones is not noise as well.
    added = float(energies.sum() - np.sum(estimate.energies))
    noise = max(estimate.rest - added, 0.0)
    found = kernel_curve(values / room, sizes * room, energies, samples=n, tail=tail, noise=noise)
    learnt = room * found.learnt
    return replace(found, learnt=learnt, left=(1 - learnt) ** 2 * energies)


def _leave_one_out(gram: Float[np.ndarray, "n n"], y: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The mean squared error of regression with the network's own tangent kernel, and its standard error."""
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += FLOOR * float(np.trace(gram))
    squares = LeaveOneOut.of(Inverse.of(shifted), y).residuals ** 2
    return float(squares.mean()), float(squares.std(ddof=1) / len(y) ** 0.5)


def _predicted_cut(net: TwoLayer, curve: KernelCurve) -> Cut | None:
    """From the levels of the degrees that are learnt by half and those that are not, with the ends of their blocks.

    None where not even the largest level is learnt, as for n < d, or none is left.
    """
    n, half = curve.samples, net.width // 2
    found = finite_levels(net.activation, dim=net.dim, neurons=half, samples=n, degree=DEGREES)
    levels = sorted((level for level in found if level.present), key=lambda level: -level.value)
    rank, kept = 0, 0
    for level in levels:
        room = rank + level.multiplicity < min(n, net.dim * half)
        if not room or curve.learnt[level.degree] < 0.5 or level.value < REACH * levels[0].value:
            break
        rank, kept = rank + level.multiplicity, kept + 1
    inside, outside = levels[:kept], levels[kept:]
    if not inside or not outside:
        return None
    # a degree with more directions than samples adds a multiple of the identity to the Gram matrix
    added = [level.multiplicity * level.value / n if level.multiplicity > n else 0.0 for level in outside]
    return Cut(
        rank=rank,
        top=max(level.edges[1] for level in inside),
        above=min(level.edges[0] for level in inside),
        below=max(level.edges[1] + sum(added) - own for level, own in zip(outside, added, strict=True)),
    )


def _measured_cut(gram: Float[np.ndarray, "n n"], y: Float[np.ndarray, " n"]) -> Cut:
    """The rank at which regression on the first r eigenvectors of the Gram matrix generalises best.

    By generalised cross-validation, n⁻¹‖y − U_rU_rᵀy‖²/(1 − r/n)² for r ≤ n/2: the smallest r whose value is within
    one standard error of the least, taken as √(2/n) of it.
    """
    n = len(gram)
    spectrum = Spectrum.of(gram)
    ranks = np.arange(1, n // 2 + 1)
    left = float(y @ y) - np.cumsum(spectrum.energy(y))[: len(ranks)]
    score = left / (1 - ranks / n) ** 2
    rank = int(ranks[np.argmax(score <= score.min() * (1 + (2 / n) ** 0.5))])
    floor = FLOOR * float(np.trace(gram))
    top, above, below = (max(float(spectrum.values[at]), floor) / n for at in (0, rank - 1, rank))
    return Cut(rank, top, above, below, measured=True)
