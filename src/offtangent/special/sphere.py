"""Harmonic analysis on the sphere: what a neuron with a random weight sees of each degree.

Inputs x are uniform on S^{d−1}(√d) and weights w on S^{d−1}(1), so that z = ⟨w, x⟩ = √d t, where the cosine t has the
density ∝ (1 − t²)^{(d−3)/2} on [−1, 1]. The Gegenbauer polynomials Q_k, Q_k(1) = 1, are orthogonal there,
E[Q_j(t) Q_k(t)] = δ_jk / B(d, k) with B(d, k) the number of harmonics of degree k, and (Ghorbani, Mei, Misiakiewicz,
Montanari 2021)

    g(⟨w, x⟩) = Σ_k λ_k(g) B(d, k) Q_k(t),      λ_k(g) = E[g(√d t) Q_k(t)],
    E_w[g(⟨w, x⟩) Q_k(⟨w, β⟩)] = λ_k(g) Q_k(⟨x, β⟩/√d)      for a unit vector β      (Funk–Hecke).

The eigenfunctions of an infinitely wide network's tangent kernel are the harmonics; Nichani, Bai & Lee (2022), Section
4.1, split weight space by its eigenvalues. All is host-level and returns NumPy float64, or exact Python integers.
"""

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from offtangent._checks import check_count, check_entries, require
from offtangent._errors import InputError
from offtangent.special.activations import Activation, activation
from offtangent.special.hermite_polynomials import NODES, WEIGHTS, on_host

TOLERANCE = 1e-13  # of λ_k √B(d, k), relative to √E[g²]
REFINEMENTS = 6  # panels of width 1, 1/2, …, 1/64 in √d·θ

Function = str | Activation | Callable[..., object]


def harmonic_dimension(dim: int, degree: int) -> int:
    """B(d, k): how many linearly independent harmonics of degree k there are on S^{d−1}, exactly.

    >>> [harmonic_dimension(100, k) for k in range(4)], harmonic_dimension(2, 7)
    ([1, 100, 5049, 171600], 2)
    """
    dim, degree = check_dim(dim), check_degree(degree)
    if degree < 2:
        return dim if degree else 1
    return (2 * degree + dim - 2) * math.comb(degree + dim - 3, degree - 1) // degree


def polynomial_dimension(dim: int, degree: int) -> int:
    """n_k = B(d, 0) + … + B(d, k): the polynomials of degree at most k on S^{d−1}, exactly.

    >>> polynomial_dimension(100, 1), polynomial_dimension(100, 2)
    (101, 5150)
    """
    dim, degree = check_dim(dim), check_degree(degree)
    return math.comb(dim + degree - 1, degree) + (math.comb(dim + degree - 2, degree - 1) if degree else 0)


def block_dimensions(dim: int, degree: int) -> tuple[int, int]:
    """(dim Q₁, dim Q₂) of Nichani et al., Section 4.1: n_k, and then Σ_{i=k+1}^{2k} B(d, i); Q₃ is the rest.

    Predicted multiplicities of the feature covariance Σ. They count degrees, in which eigenvalues need not fall.

    >>> block_dimensions(20, 1)
    (21, 209)
    """
    low = polynomial_dimension(dim, degree)
    return low, polynomial_dimension(dim, 2 * degree) - low


def gegenbauer(degree: int, t: Float[ArrayLike, "*shape"], *, dim: int) -> Float[np.ndarray, "*shape"]:
    """Q_k(t) for S^{dim−1}, with Q_k(1) = 1, t the cosine. Time O(degree) an entry, memory O(t.size).

    By (j + d − 2) Q_{j+1} = (2j + d − 2) t Q_j − j Q_{j−1}. For dim = 2 this is Chebyshev's cos(k arccos t), for
    dim = 3 Legendre's.

    >>> gegenbauer(2, np.array([-1.0, 0.0, 1.0]), dim=3)
    array([ 1. , -0.5,  1. ])
    """
    check_entries(t=t)
    *_, last = _polynomials(check_degree(degree), np.asarray(t, dtype=np.float64), check_dim(dim))
    return np.asarray(last)


def gegenbauers(degree: int, t: Float[ArrayLike, "*shape"], *, dim: int) -> Float[np.ndarray, " orders *shape"]:
    """Q_0(t), …, Q_degree(t) along a new first axis, at the cost of the last."""
    check_entries(t=t)
    return np.stack(list(_polynomials(check_degree(degree), np.asarray(t, dtype=np.float64), check_dim(dim))))


def monomial_coefficients(power: int, *, dim: int) -> tuple[Fraction, ...]:
    """γ_0, …, γ_p with t^p = Σ_j γ_j Q_j(t), as exact fractions; none is negative, and their sum is 1.

    So (βᵀx)^p = d^{p/2} Σ_j γ_j Q_j(βᵀx/√d) on ‖x‖ = √d, ‖β‖ = 1. Time O(power²).

    >>> [str(gamma) for gamma in monomial_coefficients(3, dim=4)]  # t³ of Chebyshev's second kind
    ['0', '1/2', '0', '1/2']
    """
    power, dim = check_degree(power, "power"), check_dim(dim)
    gammas = [Fraction(1)]
    for _ in range(power):
        raised = [Fraction(0)] * (len(gammas) + 1)
        for j, gamma in enumerate(gammas):
            up, down = _times_t(j, dim)
            raised[j + 1] += gamma * up
            raised[max(j - 1, 0)] += gamma * down
        gammas = raised
    return tuple(gammas)


def harmonic_coefficients(
    g: Function, *, dim: int, degree: int, derivative: int = 0, kinks: tuple[float, ...] = ()
) -> Float[np.ndarray, " orders"]:
    """λ_k(g) = E[g(√d t) Q_k(t)] for k = 0, …, degree; `derivative` asks for those of g^(derivative).

    g is an activation, its name, one of its derivatives, or any elementwise function of NumPy or JAX arrays; of a
    function's own `kinks` it must be told, those of an activation are known. Quadrature in θ = arcsin t, split at the
    kinks, with 20 nodes a panel; panels are halved until two rules agree in λ_k √B(d, k) to 1e-13 of √E[g²], and it is
    an InputError when they never do. So λ_k has an absolute error of about 1e-13 √(E[g²]/B(d, k)). Time
    O(√dim · degree) for some 100 to 10 000 nodes, memory O(nodes).

    >>> harmonic_coefficients(lambda z: z**2, dim=10, degree=3).round(12) + 0.0  # 1, 0, 2(d−1)/((d+2)(d−1)), 0
    array([1.        , 0.        , 0.16666667, 0.        ])
    >>> float(harmonic_coefficients("relu", dim=3, degree=1, derivative=1)[1])  # E[1{t ≥ 0} t] = 1/4
    0.25...
    """
    dim, degree = check_dim(dim), check_degree(degree)
    roots = np.array([_root_dimension(dim, k) for k in range(degree + 1)])
    return _converged(g, dim, degree, derivative, kinks)[0] / roots


def harmonic_energies(
    g: Function, *, dim: int, degree: int, derivative: int = 0, kinks: tuple[float, ...] = ()
) -> Float[np.ndarray, " orders"]:
    """λ_k(g)² B(d, k): how much of E[g(⟨w, x⟩)²] each degree k = 0, …, degree carries; Assumption 3 is about these.

    At the cost of ``harmonic_coefficients``. The error is about 1e-13 of √E[g²] in the root.

    >>> harmonic_energies("sigmoid(1.0)", dim=100, degree=3, derivative=1).round(4)
    array([0.0316, 0.0028, 0.0006, 0.0004])
    """
    return _converged(g, check_dim(dim), check_degree(degree), derivative, kinks)[0] ** 2


def tangent_eigenvalues(sigma: Function, *, dim: int, degree: int) -> Float[np.ndarray, " orders"]:
    """ξ_0, …, ξ_degree: the tangent kernel's eigenvalues on the harmonics of each degree, at infinite width.

    K(x, x') = ⟨x, x'⟩ E_w[σ'(⟨w, x⟩) σ'(⟨w, x'⟩)] on S^{d−1}(√d), w uniform on the unit sphere, has with λ_k = λ_k(σ')

        ξ_k = d/B(d,k) · [λ²_{k+1} B(d,k+1) (k+1)/(2k+d) + λ²_{k−1} B(d,k−1) (k+d−3)/(2k+d−4)] = Θ(d^{1−k}),

    with multiplicity B(d, k) = ``harmonic_dimension(d, k)``, and Σ_k ξ_k B(d, k) = d E[σ'²]. At the cost of
    ``harmonic_coefficients``; ξ_k B(d, k) has an absolute error of about 1e-13 d E[σ'²], and less where it is small.

    >>> tangent_eigenvalues("sigmoid(1.0)", dim=100, degree=2)
    array([2.7...e-03, 3.1...e-02, 5.5...e-05])
    """
    dim, degree = check_dim(dim), check_degree(degree)
    energy = _converged(sigma, dim, degree + 1, 1, ())[0] ** 2
    values = np.empty(degree + 1)
    for k in range(degree + 1):
        carried = energy[k + 1] * float(_times_t(k + 1, dim)[1])
        if k:
            carried += energy[k - 1] * float(_times_t(k - 1, dim)[0])
        values[k] = dim * carried / _root_dimension(dim, k) ** 2
    return values


def check_dim(dim: int) -> int:
    """A dimension of at least 2."""
    check_count("dim", dim, least=0)
    dim = operator.index(dim)
    require(dim >= 2, f"dim={dim}: the sphere S^(dim−1) needs dim ≥ 2 (for dim = 1 it is two points).")
    return dim


def check_degree(degree: int, name: str = "degree") -> int:
    """A degree of at least 0."""
    check_count(name, degree, least=0)
    degree = operator.index(degree)
    # Spelled as it was, so that results stored before `check_count` stood here keep their keys.
    return degree  # noqa: RET504


def _root_dimension(dim: int, degree: int) -> float:
    try:
        return math.sqrt(harmonic_dimension(dim, degree))
    except OverflowError:
        raise InputError(
            f"degree={degree} at dim={dim}: B(d, k) is beyond 10^308, and λ_k too small for float64. "
            "Take a lower degree."
        ) from None


def _times_t(degree: int, dim: int) -> tuple[Fraction, Fraction]:
    """(u, v) with t Q_j = u Q_{j+1} + v Q_{j−1}."""
    if degree == 0:  # 0/0 below for dim = 2
        return Fraction(1), Fraction(0)
    total = 2 * degree + dim - 2
    return Fraction(degree + dim - 2, total), Fraction(degree, total)


def _polynomials(degree: int, t: np.ndarray, dim: int) -> Iterator[np.ndarray]:
    before, now = np.zeros_like(t), np.ones_like(t)
    yield now
    for j in range(degree):
        up, down = map(float, _times_t(j, dim))
        before, now = now, (t * now - down * before) / up
        yield now


def _orthonormal(degree: int, t: np.ndarray, start: np.ndarray, dim: int) -> Iterator[np.ndarray]:
    """√B(d, k) Q_k(t)·start for k = 0, …, degree: numbers of moderate size, where B(d, k) may be huge."""
    before, now, last = np.zeros_like(t), start, 0.0
    yield now
    for j in range(degree):
        following = math.sqrt(_times_t(j, dim)[0] * _times_t(j + 1, dim)[1])
        before, now, last = now, (t * now - last * before) / following, following
        yield now


def _understood(
    g: Function, derivative: int, kinks: tuple[float, ...]
) -> tuple[Callable[..., Any], str, tuple[float, ...]]:
    """The function to integrate, what to call it in a message, and where it is not smooth."""
    order = check_degree(derivative, "derivative")
    if callable(g) and not isinstance(g, Activation) and not order:
        known = getattr(g, "kinks", ())
        return g, getattr(g, "__name__", type(g).__name__), (*known, *kinks)
    own = kinks and not isinstance(g, str | Activation)
    sigma = activation(g, smooth=order if own else None, kinks=kinks)
    label = sigma.name if order == 0 else f"the derivative of order {order} of {sigma.name}"
    return sigma.derivative(order), label, sigma.kinks


def _converged(
    g: Function, dim: int, degree: int, derivative: int, kinks: tuple[float, ...]
) -> tuple[np.ndarray, float]:
    """λ_k √B(d, k) and E[g²], from the first rule that agrees with the next coarser one."""
    function, label, places = _understood(g, derivative, kinks)
    coarse, before = _quadrature(function, label, places, dim, degree, 1.0)
    error = math.inf
    for level in range(1, REFINEMENTS + 1):
        fine, energy = _quadrature(function, label, places, dim, degree, 0.5**level)
        error = max(float(np.abs(fine - coarse).max()), abs(math.sqrt(energy) - math.sqrt(before)))
        if error <= TOLERANCE * math.sqrt(energy):
            return fine, energy
        coarse, before = fine, energy
    raise InputError(
        f"the harmonic coefficients of {label} do not converge at dim={dim}: the two finest rules differ by "
        f"{error:.1e}, where {TOLERANCE:g}·√E[g²] = {TOLERANCE * math.sqrt(before):.1e} was wanted. Likely causes: a "
        f"kink or jump that was not named (known: {places or 'none'}; give kinks=(...,)), a function that works in "
        "float32 inside, or one that turns within 1/100."
    )


def _quadrature(
    function: Callable[..., Any], label: str, kinks: tuple[float, ...], dim: int, degree: int, width: float
) -> tuple[np.ndarray, float]:
    """One composite rule in θ, where the density is ∝ cos^{d−2} θ, without a singularity for any d ≥ 2."""
    scale = math.sqrt(dim)
    inside = [math.asin(kink / scale) for kink in kinks if abs(kink) < scale]
    ends = np.union1d(np.linspace(-math.pi / 2, math.pi / 2, math.ceil(math.pi * scale / width) + 1), inside)
    half = np.diff(ends)[:, None] / 2
    theta = (ends[:-1, None] + half * (1 + NODES)).ravel()
    t = np.sin(theta)
    values = on_host(function, scale * t)
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        z = scale * t[bad[0]]
        raise InputError(f"{label} is {values[bad[0]]} at z = {z:g}; it must be finite on [−√dim, √dim] = ±{scale:g}.")
    near = np.abs(t) < 0.7  # each formula where it keeps its digits
    log_cos = np.where(near, 0.5 * np.log1p(-(np.where(near, t, 0.0) ** 2)), np.log(np.cos(theta)))
    root = np.exp((dim - 2) / 2 * log_cos)  # of the density: half in each factor
    weights = (half * WEIGHTS).ravel()
    root /= math.sqrt(weights @ root**2)
    weighted = values * root
    energy = float(weights @ weighted**2)
    weighted = weights * weighted
    return np.array([weighted @ q for q in _orthonormal(degree, t, root, dim)]), energy
