"""What the quadratic part of a network expresses on the sphere, and the weights that do it, for any activation.

Nichani, Bai & Lee (2022), Lemma 1, for x on S^{d−1}(√d), unit columns w₀ and ‖β‖ = 1. With t^{k−1} = Σ_j γ_j Q_j(t) and
λ_j = λ_j(σ''), Funk and Hecke's formula says E_w[σ''(wᵀx) a(w)] = α(βᵀx)^{k−1} for

    a(w) = α d^{(k−1)/2} Σ_j (γ_j/λ_j) Q_j(wᵀβ),      E[a²] = α² d^{k−1} Σ_j γ_j²/(λ_j² B(d, j)),

and so, as in Theorem 7 of Bai & Lee (`bai_lee.express`, which needs σ'' = relu), f_Q is α(βᵀx)^{k+1} in the mean at

    (w_r, w_{r+m/2}) = 2m^{−1/4} (√[a(w_{0,r})]₊ β, √[a(w_{0,r})]₋ β),      E‖W_Q‖⁴_{2,4} = 8E[a²].

Since γ_j ≥ 0 and Σ_j γ_j = 1, E[a²] ≤ α² d^{k−1}/c with c the smallest λ_j² B(d, j). Assumption 3 says c = Θ(1): this
is Lemma 1's ‖W_Q‖⁴ ≲ d^{k−1}, with its constant. All is on the host in float64.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_bound, check_count, check_inputs, require
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.activations import Activation
from offtangent.special.sphere import (
    gegenbauers,
    harmonic_coefficients,
    harmonic_dimension,
    monomial_coefficients,
)
from offtangent.theory.bai_lee.expressivity import column_norm, quadratic_part
from offtangent.theory.bai_lee.random_features import check_on_sphere
from offtangent.theory.bai_lee.signs import check_net
from offtangent.theory.nichani.sphere_covariance import has_unit_columns

NOTHING = 1e-12  # of √E[σ''²]: ten times the quadrature's tolerance, below which λ_j √B(d, j) cannot be told from zero
UNIT = 1e-9  # how far ‖β‖ may be from one


@dataclass(frozen=True, eq=False)
class SphereRidge:
    """α(βᵀx)^p, p = k + 1 ≥ 2, ‖β‖ = 1, on S^{d−1}(√d), as a network with this activation expresses it.

    >>> cube = SphereRidge(np.eye(1, 20)[0], 3, activation("sigmoid(z - 1)"))
    >>> round(cube.energy / 20, 6) == round(1 / cube.smallest, 6)  # k = 2 has one λ alone
    True
    """

    direction: Float[np.ndarray, " d"]  # β
    power: int  # p = k + 1
    activation: Activation
    coefficient: float = 1.0  # α

    def __post_init__(self) -> None:
        beta = np.array(self.direction, np.float64)
        if beta.ndim != 1 or len(beta) < 2 or not abs(float(np.linalg.norm(beta)) - 1) <= UNIT:
            raise InputError(f"β has shape {beta.shape} and length {np.linalg.norm(beta):g}: expected a unit vector.")
        check_count("power", self.power, least=2)
        if not math.isfinite(self.coefficient):
            raise InputError(f"coefficient={self.coefficient:g}: α is a finite number.")
        object.__setattr__(self, "direction", beta)
        object.__setattr__(self, "activation", activation(self.activation))
        _ = self.amplitudes  # refuses activations that do not see a degree it needs

    def __call__(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        """α(βᵀxᵢ)^p."""
        return self.coefficient * self._along(X) ** self.power

    @property
    def dim(self) -> int:
        return len(self.direction)

    @cached_property
    def amplitudes(self) -> Float[np.ndarray, " k"]:
        """a(w)'s coefficients α d^{(k−1)/2} γ_j/λ_j(σ'') of Q_j(wᵀβ), j = 0, …, k − 1."""
        degree = self.power - 2
        gammas = np.array([float(gamma) for gamma in monomial_coefficients(degree, dim=self.dim)])
        lambdas = np.where(gammas > 0, self._lambdas, 1.0)  # every other one may be zero, and is not needed
        return self.coefficient * self.dim ** (degree / 2) * gammas / lambdas

    def profile(self, t: Float[AnyArray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """a(w) at the cosine t = wᵀβ. Time O(k) an entry."""
        degree = self.power - 2
        return np.tensordot(self.amplitudes, gegenbauers(degree, np.asarray(t), dim=self.dim), 1)

    @property
    def energy(self) -> float:
        """E[a²] = α² d^{k−1} Σ_j γ_j²/(λ_j² B(d, j)): a sum over j, with E Q_j² = 1/B(d, j)."""
        return math.fsum(self.amplitudes**2 / self._dimensions)

    @cached_property
    def smallest(self) -> float:
        """The smallest λ_j(σ'')² B(d, j) of the degrees j = k − 1, k − 3, … in use: c, the constant of Assumption 3."""
        used = slice(self.power % 2, None, 2)
        return float((self._lambdas[used] ** 2 * self._dimensions[used]).min())

    @property
    def energy_bound(self) -> float:
        """α² d^{k−1}/c ≥ E[a²]."""
        return self.coefficient**2 * float(self.dim) ** (self.power - 2) / self.smallest

    def variance(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        """Var_w[σ''(wᵀxᵢ) a(w)], exactly: E[σ''²a²] by Funk and Hecke, with a² = Σ_l δ_l Q_l. Time O(n(d + k))."""
        z = self._along(X)
        degree = 2 * (self.power - 2)
        squares = _squares(self.activation, self.dim, degree)
        root = math.sqrt(self.dim)
        deltas = harmonic_coefficients(lambda z: self.profile(z / root) ** 2, dim=self.dim, degree=degree)
        sizes = np.array([float(harmonic_dimension(self.dim, j)) for j in range(degree + 1)])
        whole = np.tensordot(squares * deltas * sizes, gegenbauers(degree, z / root, dim=self.dim), 1)
        return np.maximum(whole - (self.coefficient * z ** (self.power - 2)) ** 2, 0.0)

    def mean_square_error(self, X: Float[AnyArray, "n inputs"], width: float | int) -> Float[np.ndarray, " n"]:
        """E(f_Q(xᵢ; W_Q) − α(βᵀxᵢ)^p)² over W₀, exactly: (2/m)(βᵀxᵢ)⁴ Var[σ''(w₀ᵀxᵢ)a(w₀)]."""
        check_bound(width=width)
        return 2 / width * self._along(X) ** 4 * self.variance(X)

    @cached_property
    def _lambdas(self) -> Float[np.ndarray, " k"]:
        degree = self.power - 2
        found = _curvature(self.activation, self.dim, degree)
        (energy,) = _squares(self.activation, self.dim, 0)
        for j in range(degree % 2, degree + 1, 2):
            if not abs(found[j]) * math.sqrt(self._dimensions[j]) > NOTHING * math.sqrt(energy):
                raise InputError(
                    f"σ'' of {self.activation.name} has no part of degree {j}, and (βᵀx)^{self.power} needs it: "
                    "Assumption 3 fails. Shift the activation, as in special.activations.shifted(σ, 1.0)."
                )
        return found

    @cached_property
    def _dimensions(self) -> Float[np.ndarray, " k"]:
        return np.array([float(harmonic_dimension(self.dim, j)) for j in range(self.power - 1)])

    def _along(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        inputs = check_inputs(np.asarray(X))
        require(
            inputs.shape[1] == self.dim,
            f"X has {inputs.shape[1]} columns and β {self.dim} entries: they must be equal.",
        )
        return check_on_sphere(inputs, math.sqrt(self.dim)) @ self.direction


@cache
def _curvature(sigma: Activation, dim: int, degree: int) -> Float[np.ndarray, " k"]:
    """λ_j(σ''), j = 0, …, degree."""
    return harmonic_coefficients(sigma, dim=dim, degree=degree, derivative=2)


@cache
def _squares(sigma: Activation, dim: int, degree: int) -> Float[np.ndarray, " k"]:
    """λ_j(σ''²), j = 0, …, degree."""
    second = sigma.derivative(2)
    return harmonic_coefficients(lambda z: second(z) ** 2, dim=dim, degree=degree, kinks=sigma.kinks)


@dataclass(frozen=True, eq=False)
class SparseExpression:
    """Weights W_Q at which the quadratic part of `net` is Σᵢ αᵢ(βᵢᵀx)^{k+1}, up to an error like m^{−1/2}.

    Term i has pairs of neurons of its own, hᵢ of the m/2: so there are no cross terms, and errors are independent.
    """

    net: TwoLayer
    ridges: tuple[SphereRidge, ...]
    pairs: tuple[int, ...]  # hᵢ
    weights: Float[np.ndarray, "d m"]  # W_Q in float64

    @property
    def W(self) -> Float[Array, "d m"]:
        """W_Q in the dtype of the network."""
        return jnp.asarray(self.weights, self.net.W0.dtype)

    @property
    def norm4(self) -> float:
        """‖W_Q‖⁴_{2,4}."""
        return column_norm(self.weights, 4) ** 4

    @property
    def expected_norm4(self) -> float:
        """E‖W_Q‖⁴_{2,4} = Σᵢ (4m/hᵢ) E[aᵢ²]: 8E[a²] for one term, R² times as much for R of one size."""
        parts = zip(self.ridges, self.pairs, strict=True)
        return math.fsum(4 * self.net.width / h * ridge.energy for ridge, h in parts)

    def norm4_bound(self, *, delta: float = 1.0) -> float:
        """Lemma 1's d^{k−1} with its constant: Σᵢ (4m/hᵢ) αᵢ² d^{k−1}/(cδ).

        ‖W_Q‖⁴ is below it with probability at least 1 − δ over W₀, by Markov; δ = 1 bounds its mean.
        """
        require(0 < delta <= 1, f"delta={delta:g}: expected a number in (0, 1], the probability that the bound fails.")
        parts = zip(self.ridges, self.pairs, strict=True)
        return math.fsum(4 * self.net.width / h * ridge.energy_bound for ridge, h in parts) / delta

    def target(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        """f_sp(xᵢ) = Σ αᵢ(βᵢᵀx)^{k+1}."""
        return np.sum([ridge(X) for ridge in self.ridges], axis=0)

    def errors(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        """f_Q(xᵢ; W_Q) − f_sp(xᵢ). Time O(ndm)."""
        return quadratic_part(self.net, self.weights, X) - self.target(X)

    def mean_square_error(self, X: Float[AnyArray, "n inputs"]) -> Float[np.ndarray, " n"]:
        """E(f_Q − f_sp)² over W₀, exactly: the sum over terms, each of width 2hᵢ."""
        parts = zip(self.ridges, self.pairs, strict=True)
        return np.sum([ridge.mean_square_error(X, 2 * h) for ridge, h in parts], axis=0)

    def error_bound(self, X: Float[AnyArray, "n inputs"], *, delta: float) -> float:
        """max_i |f_Q(xᵢ) − f_sp(xᵢ)| ≤ √(Σᵢ E(…)²/δ) with probability at least 1 − δ over W₀: Chebyshev, over all i."""
        check_bound(delta)
        return math.sqrt(float(self.mean_square_error(X).sum()) / delta)


def express_sparse(
    net: TwoLayer, target: LowDegreePlusSparse | SphereRidge | Sequence[SphereRidge]
) -> SparseExpression:
    """W_Q of Lemma 1 for the sparse part of a target, or for ridges of one's own.

    `net` is `TwoLayer.symmetric(law="sphere", ...)` with an activation whose σ'' sees the degrees k − 1, k − 3, …: the
    sigmoid and softplus when shifted, softplus itself for odd k. Pairs of neurons go to the R terms in turn. Time
    O(m(d + k)), memory O(dm), on the host in float64.
    """
    check_net(net)
    if isinstance(target, LowDegreePlusSparse):
        power = target.degree + 1
        terms = zip(target.betas, target.alphas.tolist(), strict=True)
        ridges = tuple(SphereRidge(beta, power, net.activation, alpha) for beta, alpha in terms)
    else:
        ridges = (target,) if isinstance(target, SphereRidge) else tuple(target)
    half = net.width // 2
    _check(net, ridges)
    columns = np.asarray(net.W0, np.float64)[:, :half]
    columns = columns / np.linalg.norm(columns, axis=0)
    weights, pairs = np.zeros((net.dim, net.width)), []
    for i, ridge in enumerate(ridges):
        mine = np.arange(i, half, len(ridges))
        a = ridge.profile(ridge.direction @ columns[:, mine])
        scale = math.sqrt(2 * math.sqrt(net.width) / len(mine))  # 2m^(−1/4) if all m/2 pairs are its own
        weights[:, mine] = scale * np.outer(ridge.direction, np.sqrt(np.maximum(a, 0)))
        weights[:, mine + half] = scale * np.outer(ridge.direction, np.sqrt(np.maximum(-a, 0)))
        pairs.append(len(mine))
    return SparseExpression(net, ridges, tuple(pairs), weights)


def _check(net: TwoLayer, ridges: tuple[SphereRidge, ...]) -> None:
    require(ridges, "There is no term to express: expected a target of rank 1 or more, or a SphereRidge.")
    for ridge in ridges:
        if not isinstance(ridge, SphereRidge):
            raise InputError(f"a target is {a_kind(ridge)}: expected a LowDegreePlusSparse, or SphereRidge(β, p, σ).")
        require(ridge.dim == net.dim, f"β has {ridge.dim} entries and the network takes {net.dim} inputs.")
        require(
            ridge.activation == net.activation,
            f"the ridge is for {ridge.activation.name} and the network has {net.activation.name}: give "
            "SphereRidge(β, p, net.activation).",
        )
    require(
        net.paired and has_unit_columns(net),
        'Lemma 1 needs a symmetric start with unit columns: TwoLayer.symmetric(law="sphere", ...).',
    )
    require(
        net.width // 2 >= len(ridges),
        f"width={net.width} for {len(ridges)} terms: each needs a pair of neurons. Take {2 * len(ridges)} or more.",
    )
