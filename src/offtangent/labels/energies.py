"""How much of the labels' energy each degree of polynomials carries, from samples, without fitting any of them.

For x uniform on S^{d−1}(√d) and y = f(x) + noise, with Q_j the Gegenbauer polynomials and t the cosine of two inputs,

    E[y y' B(d, j) Q_j(t)] = ‖P_j f‖² = E_j        for two independent samples,

so the mean over pairs (a U-statistic) estimates the energy of degree j without bias, whatever the degree and however
few the samples: B(d, j) may exceed n, as long as n ≫ √B(d, j). Its variance falls to almost nothing where f is nearly
known: with any function f̂ = Σ_j f̂_j fitted to other samples, and g = y − f̂(x),

    E_j = ‖f̂_j‖² + 2 E[f̂_j(x) g] + E[g g' B(d, j) Q_j(t)],

again without bias. Here f̂ is kernel regression with the kernel Σ_j e_j Q_j(t), e_j the plain estimates, fitted to one
half of the samples and used on the other, then the other way round. What degrees up to J leave is noise or higher
degrees, E[g²] − Σ_j E[g g' B(d, j) Q_j(t)]. The same mean with y = 1 measures how far the inputs are from uniform.
"""

from dataclasses import dataclass

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float, Key

from offtangent._checks import check_count, check_key, check_labels, check_several
from offtangent._errors import InputError
from offtangent.data.preprocessing import unit_norm
from offtangent.special.sphere import gegenbauers, harmonic_dimension

ROWS = 3000  # samples whose pairs are held at once
FLOOR = 0.01  # of the energy, the least that the kernel of f̂ gives to a degree and to noise
LEAST = 20  # samples


@dataclass(frozen=True, eq=False)
class EnergyEstimate:
    """The energies of degrees 0, …, J and of all the rest, each with its standard error."""

    energies: Float[np.ndarray, " degrees"]  # unbiased: a small one may come out below zero
    errors: Float[np.ndarray, " degrees"]
    rest: float  # noise, and degrees above J
    rest_error: float
    total: float  # E[y²]; the parts add up to it

    @property
    def degree(self) -> int:
        """J."""
        return len(self.energies) - 1


def degree_energies(X: object, y: object, *, degree: int, key: Key[Array, ""] | None = None) -> EnergyEstimate:
    """E_0, …, E_degree and the rest, for inputs whose directions are uniform; their lengths play no part.

    On more than 3000 samples, means over random parts of at most that many. `key` (of seed 0 by default) draws the
    parts and halves. Time O(n·rows·(d + degree) + n·rows²) with rows = min(n, 3000), memory 3·(degree + 1)·rows² bytes
    and more.

    >>> from offtangent.data.targets import LowDegreePlusSparse
    >>> from offtangent.data import sphere
    >>> target = LowDegreePlusSparse.random(5, degree=1, rank=1, key=jax.random.key(0))
    >>> X = sphere(400, 5, key=jax.random.key(1))
    >>> found = degree_energies(X, target(5**0.5 * X), degree=2)
    >>> bool((abs(found.energies - target.energies().total) < 0.02).all())
    True
    """
    inputs, labels = check_labels(X, y)
    check_several(inputs)
    check_count("degree", degree, least=0)
    if len(inputs) < LEAST:
        raise InputError(f"{len(inputs)} samples: energies are estimated from at least {LEAST}.")
    rng = generator(key)
    units = unit_norm(inputs)
    order = rng.permutation(len(units))
    halves = []
    for rows in np.array_split(order, -(-len(units) // ROWS)):
        first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        halves += [
            _half(units[fit], labels[fit], units[use], labels[use], degree)
            for fit, use in ((first, second), (second, first))
        ]
    table = np.array(halves)  # halves × (degree + 2) × (value, error)
    values, errors = table[..., 0].mean(axis=0), np.sqrt((table[..., 1] ** 2).sum(axis=0)) / len(table)
    return EnergyEstimate(values[:-1], errors[:-1], float(values[-1]), float(errors[-1]), float(values.sum()))


def departure(
    X: object, *, degree: int = 2, key: Key[Array, ""] | None = None
) -> tuple[Float[np.ndarray, " degrees"], Float[np.ndarray, " degrees"]]:
    """How far the inputs' directions are from uniform in the degrees 1, …, degree, and the standard errors.

    ‖p_j‖² for the part of degree j of their density p (1 if uniform): zero where the mean (j = 1) or the covariance
    (j = 2) are those of the uniform law. An unbiased estimate from at most 3000 rows. Time and memory as above.
    """
    check_count("degree", degree)
    units = unit_norm(X)
    rows = generator(key).permutation(len(units))[:ROWS]
    Q = gegenbauers(degree, np.clip(units[rows] @ units[rows].T, -1.0, 1.0), dim=units.shape[1])
    ones, zeros = np.ones(len(rows)), np.zeros(len(rows))
    sizes = [float(harmonic_dimension(units.shape[1], j)) for j in range(1, degree + 1)]
    found = np.array([_pairs(zeros, ones, size * q) for size, q in zip(sizes, Q[1:], strict=True)])
    return found[:, 0], found[:, 1]


def generator(key: Key[Array, ""] | None) -> np.random.Generator:
    """NumPy's, seeded by bits drawn from the key, or from that of seed 0."""
    key = jax.random.key(0) if key is None else key
    check_key(key)
    return np.random.default_rng([int(word) for word in jax.random.bits(key, (4,), np.uint32)])


def _half(
    fit: Float[np.ndarray, "a d"],
    seen: Float[np.ndarray, " a"],
    use: Float[np.ndarray, "b d"],
    labels: Float[np.ndarray, " b"],
    degree: int,
) -> list[tuple[float, float]]:
    """(value, error) of each degree and of the rest, on one half, with f̂ of the other."""
    dim = fit.shape[1]
    sizes = np.array([float(harmonic_dimension(dim, j)) for j in range(degree + 1)])
    within = gegenbauers(degree, np.clip(fit @ fit.T, -1.0, 1.0), dim=dim)
    zeros, total = np.zeros(len(seen)), float(np.mean(seen**2))
    plain = np.array([_pairs(zeros, seen, size * q)[0] for size, q in zip(sizes, within, strict=True)])
    prior = np.maximum(plain, FLOOR * total)
    kernel = np.tensordot(prior, within, 1)
    kernel[np.diag_indices_from(kernel)] += max(total - prior.sum(), FLOOR * total)
    c = scipy.linalg.solve(kernel, seen, assume_a="pos")
    across = gegenbauers(degree, np.clip(use @ fit.T, -1.0, 1.0), dim=dim)
    parts = prior[:, None] * (across @ c)  # f̂_j
    known = prior**2 * (within @ c @ c) / sizes  # ‖f̂_j‖²
    del within, across, kernel
    g = labels - parts.sum(axis=0)
    there = gegenbauers(degree, np.clip(use @ use.T, -1.0, 1.0), dim=dim)
    there *= sizes[:, None, None]
    found = []
    for j in range(degree + 1):
        value, error = _pairs(parts[j] * g, g, there[j])
        found.append((float(known[j]) + value, error))
    return [*found, _pairs(g**2 / 2, g, -there.sum(axis=0))]


def _pairs(
    a: Float[np.ndarray, " n"], g: Float[np.ndarray, " n"], weights: Float[np.ndarray, "n n"]
) -> tuple[float, float]:
    """The mean of h_il = a_i + a_l + g_i g_l w_il over pairs i ≠ l, and its standard error (Hoeffding 1948).

    Var = (4(n − 2)ζ₁ + 2ζ₂)/(n(n − 1)), with ζ₂ = Var h and ζ₁ that of its mean over one argument, which is estimated
    from the rows' means less what ζ₂ puts into them.
    """
    n = len(g)
    h = g[:, None] * weights * g + a[:, None] + a
    np.fill_diagonal(h, 0.0)
    rows = h.sum(axis=1) / (n - 1)
    mean = float(rows.mean())
    second = max(float(np.einsum("ij,ij->", h, h)) / (n * (n - 1)) - mean**2, 0.0)
    first = max((float(rows.var(ddof=1)) - second / (n - 1)) * (n - 1) / (n - 2), 0.0)
    return mean, float(np.sqrt((4 * (n - 2) * first + 2 * second) / (n * (n - 1))))
