"""How rich the quadratic model is on given inputs: operator norms of random sums of xxᵀ.

Bai & Lee (2020), Lemmas 5 and 8, Theorem 6. With random signs σᵢ and the feature matrices

    A_r = n⁻¹ Σᵢ σᵢ σ''(w_{0,r}ᵀxᵢ) xᵢxᵢᵀ,

the class F^Q(B_w) = {f^Q_W : ‖W‖_{2,4} ≤ B_w} has a Rademacher complexity of at most B_w² E max_r ‖A_r‖_op / 2. It is
known exactly: ½m^{-1/2} Σ_r a_r w_rᵀA_r w_r is largest when each w_r is a top eigenvector of a_rA_r, and then, over the
lengths, by Cauchy-Schwarz,

    sup_{‖W‖_{2,4} ≤ B_w} n⁻¹ Σᵢ σᵢ f^Q_W(xᵢ) = (B_w²/2) √(m⁻¹ Σ_r [λ_max(a_rA_r)]₊²),

a root mean square over the neurons where the lemma takes their maximum.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._checks import check_bound, check_count, check_inputs, check_magnitude, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.theory._results import Average
from offtangent.theory.bai_lee.expressivity import curvatures

ENUMERATED = 12  # inputs up to which all signs are tried
CHUNK = 2**22  # entries of the tables that one chunk of neurons or inputs takes: 32 MiB


def input_spread(X: Float[AnyArray, "n d"]) -> float:
    """(‖n⁻¹Σxᵢxᵢᵀ‖_op / B_x²)^{1/2} of one sample, B_x its longest row: between 1/√d and 1. Time O(nd min(n, d)).

    M_{x,op} is the root of this number's mean square: `expected_input_spread`.

    >>> round(input_spread(np.eye(4)), 6), round(input_spread(np.ones((5, 4))), 6)  # all directions alike; only one
    (0.5, 1.0)
    """
    inputs = check_inputs(np.asarray(X))
    check_magnitude(2, X=inputs)
    radius = float(np.linalg.norm(inputs, axis=1).max())
    require(radius, "Every row of X is zero: expected inputs of a positive length B_x.")
    return float(np.linalg.norm(inputs / radius, 2)) / math.sqrt(len(inputs))


def expected_input_spread(
    sample: Callable[[Key[Array, ""]], AnyArray], *, draws: int = 32, key: Key[Array, ""]
) -> Average:
    """M_{x,op} = (B_x⁻² E‖n⁻¹Σxᵢxᵢᵀ‖_op)^{1/2} over samples X = sample(key) of n inputs, with its standard error.

    At most 1; about 1/√d for inputs uniform on a sphere or a cube once n is well beyond d (Theorem 6).
    """
    check_count("draws", draws, least=2)
    square = Average.of(np.array([input_spread(sample(each)) ** 2 for each in jax.random.split(key, draws)]))
    root = math.sqrt(square.value)
    return Average(root, square.error / (2 * root), draws)


def sphere_spread_bound(n: int, dim: int) -> float:
    """Bound M_{x,op} of n inputs that are uniform on a sphere: M² ≤ ((1 + √(d/n))² + 1/n)/μ², μ = E‖g‖.

    A matrix G of n Gaussian rows is one of such rows U, times independent lengths of mean μ = √2 Γ((d+1)/2)/Γ(d/2): by
    Jensen's inequality E‖G‖² ≥ μ² E‖U‖². And E‖G‖² ≤ (√n + √d)² + 1 (Davidson and Szarek; the variance of a
    1-Lipschitz function of Gaussians is at most 1). About (1 + √(d/n))/√d.

    Args:
        n: The number of inputs.
        dim: Their dimension d.

    Returns:
        The bound; M_{x,op} is at least 1/√d.

    >>> round(sphere_spread_bound(2000, 100) * 10, 4)
    1.2269
    """
    check_bound(n=n, dim=dim)
    mean = math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    return math.sqrt((1 + math.sqrt(dim / n)) ** 2 + 1 / n) / mean


def widest_gap_weights(
    net: TwoLayer, X: Float[AnyArray, "n d"], signs: Float[AnyArray, " k"], *, norm: float
) -> Float[np.ndarray, "d m"]:
    """Compute the W of ‖W‖_{2,4} = B_w at which n⁻¹ Σᵢ σᵢ f^Q_W(xᵢ) is the largest: the supremum of the module's head.

    Each w_r is the top eigenvector of a_rA_r, with a length of √[λ_max(a_rA_r)]₊ times a constant. With labels σ this
    is what fits them best in the ball, to first order in the loss: with labels without signal, whose risk no W lowers,
    its gap between population and sample is about as wide as Theorem 6's bound is meant for. In float64, on the host.
    Time O(m(nd² + d³)), memory O(m(n + d²)).

    Args:
        net: The network.
        X: The inputs.
        signs: σ, one ±1 for each input.
        norm: B_w.

    Returns:
        The weights; zeros where no A_r has an eigenvalue of the sign of a_r.
    """
    inputs, sigma = check_inputs(np.asarray(X)), np.asarray(signs, np.float64)
    _check_seen(net, inputs)
    check_bound(norm=norm)
    require(
        sigma.shape == (len(inputs),) and (np.abs(sigma) == 1).all(),
        f"signs has shape {sigma.shape}: expected one number ±1 for each of {len(inputs)} inputs.",
    )
    curvature = np.concatenate([values for _, values in curvatures(net, inputs)]) * (sigma / len(inputs))[:, None]
    found = [np.linalg.eigh((inputs.T * column) @ inputs) for column in curvature.T]
    found *= net.width // len(found)  # where the halves of W₀ are the same
    columns = []
    for a, (values, vectors) in zip(np.asarray(net.a, np.float64).tolist(), found, strict=True):
        end = -1 if a > 0 else 0  # the top of a_rA_r
        columns.append(vectors[:, end] * math.sqrt(max(a * values[end], 0.0)))
    W = np.stack(columns, axis=1)
    size = float((np.linalg.norm(W, axis=0) ** 4).sum()) ** 0.25
    return W * (norm / size) if size else W


@dataclass(frozen=True)
class FeatureTerm:
    """Averages over signs of what the feature matrices A_r can add up to."""

    largest: Average  # E_σ max_r ‖A_r‖_op, the feature term of Lemma 5
    typical: Average  # E_σ √(m⁻¹ Σ_r [λ_max(a_rA_r)]₊²)
    n: int

    def complexity(self, norm: float) -> Average:
        """The Rademacher complexity of F^Q(B_w) on these inputs, exactly: B_w²/2 times `typical`."""
        check_bound(norm=norm)
        return Average(norm**2 * self.typical.value / 2, norm**2 * self.typical.error / 2, self.typical.draws)

    def loss_bound(self, norm: float) -> Average:
        """Lemma 5: E_σ sup n⁻¹Σσᵢℓ(yᵢ, f^Q_W(xᵢ)) ≤ 2B_w² E max_r‖A_r‖_op + n^{-1/2}, for ‖W‖_{2,4} ≤ B_w = `norm`.

        (`complexity` is a bound as well: a 1-Lipschitz loss contracts, and a one-sided supremum needs neither the
        factor 2 nor ℓ(y, 0).)
        """
        check_bound(norm=norm)
        value = 2 * norm**2 * self.largest.value + self.n**-0.5
        return Average(value, 2 * norm**2 * self.largest.error, self.largest.draws)


def feature_term(
    net: TwoLayer, X: Float[AnyArray, "n d"], *, draws: int = 64, key: Key[Array, ""] | None = None
) -> FeatureTerm:
    """Lemma 5's feature term on these inputs, and the sharper one that gives the complexity itself.

    All 2ⁿ signs for n ≤ 12, otherwise `draws` random pairs ±σ from `key`, with standard errors. Float64, on the host.
    Time O(m(nd² + d³)) for each pair of signs (half of it for a symmetric network), memory O(nm).
    """
    check_count("draws", draws, least=2)
    inputs = check_inputs(np.asarray(X))
    _check_seen(net, inputs)
    n = len(inputs)
    exact = n <= ENUMERATED
    if exact:
        signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=n - 1)], np.float64)
    else:
        if key is None:
            raise InputError(f"{n} inputs have 2^{n} signs, too many to try: give key=jax.random.key(0), say.")
        signs = np.asarray(jax.random.rademacher(key, (draws, n), int), np.float64)
    curvature = np.concatenate([values for _, values in curvatures(net, inputs)])
    half = curvature.shape[1]
    a = np.asarray(net.a, np.float64)
    largest, typical = [], []
    for sign in signs:
        low, high = np.concatenate(list(_extremes(curvature * (sign[:, None] / n), inputs))).T
        largest.append(max(-low.min(), high.max()))
        # [λ_max]₊² and [λ_min]₋² of every neuron with the sign and size of its a_r, at σ and at −σ
        up, down = np.maximum(high, 0) ** 2, np.maximum(-low, 0) ** 2
        if net.paired:
            typical.append(math.sqrt(float(np.mean(up * a[:half] ** 2 + down * a[half:] ** 2) / 2)))
        else:
            sides = (np.where(a > 0, up, down), np.where(a > 0, down, up))
            typical.append(sum(math.sqrt(float(np.mean(side * a**2))) for side in sides) / 2)
    return FeatureTerm(Average.of(np.array(largest), exact=exact), Average.of(np.array(typical), exact=exact), n)


def _extremes(weights: Float[np.ndarray, "n m"], X: Float[np.ndarray, "n d"]) -> Iterator[Float[np.ndarray, "b 2"]]:
    """The smallest and the largest eigenvalue of Σᵢ weights[i, r] xᵢxᵢᵀ, for chunks of neurons r."""
    n, d = X.shape
    rows, columns = np.tril_indices(d)  # the lower halves are all that eigvalsh reads
    step, size = max(CHUNK // len(rows), 1), max(CHUNK // d**2, 1)
    for start in range(0, weights.shape[1], size):
        part = weights[:, start : start + size].T
        lower = sum(
            part[:, i : i + step] @ (X[i : i + step, rows] * X[i : i + step, columns]) for i in range(0, n, step)
        )
        matrices = np.zeros((len(part), d, d))
        matrices[:, rows, columns] = lower
        yield np.linalg.eigvalsh(matrices)[:, [0, -1]]


@dataclass(frozen=True)
class MatrixRademacher:
    """Two bounds on E max_r ‖Y_r‖_op for Y_r = Σᵢ σᵢA_{r,i} with random signs σᵢ (Bai & Lee 2020, Lemma 8).

    `lemma` is the paper's, and `tropp` a sharper one. Here v(Y) = ‖E Y²‖_op, the matrices are `dim` × `dim`, and r runs
    over `width` of them.
    """

    variance: float  # max_r v(Y_r)
    dim: int
    width: int

    @property
    def lemma(self) -> float:
        """4√(max v · log 2md), Lemma 8."""
        return 4 * math.sqrt(self.variance * math.log(2 * self.width * self.dim))

    @property
    def tropp(self) -> float:
        """√(2 max v · log 2md): Tropp's own bound for the block-diagonal matrix of all Y_r, √8 times smaller."""
        return math.sqrt(2 * self.variance * math.log(2 * self.width * self.dim))


def matrix_rademacher(A: Float[AnyArray, "m n d d"]) -> MatrixRademacher:
    """Lemma 8 for fixed symmetric matrices A_{r,i}: v(Y_r) = ‖Σᵢ A_{r,i}²‖_op. Time O(mnd³).

    >>> round(matrix_rademacher(np.ones((1, 4, 1, 1))).lemma, 4)  # E|σ₁ + … + σ₄| = 1.5 ≤ 4√(4 log 2)
    6.6604
    """
    matrices = np.asarray(A, np.float64)
    require(
        matrices.ndim == 4 and matrices.shape[2] == matrices.shape[3],
        f"A has shape {matrices.shape}: expected (m, n, d, d), a square matrix for each r and i.",
    )
    require(matrices.size, f"A has shape {matrices.shape}: expected at least one matrix.")
    require(np.isfinite(matrices).all(), "A has entries that are NaN or infinite: give finite numbers.")
    check_magnitude(2, A=matrices)
    require(
        np.allclose(matrices, np.swapaxes(matrices, -1, -2), rtol=1e-10, atol=1e-12 * np.abs(matrices).max()),
        "A holds a matrix that is not symmetric, and Lemma 8 is about symmetric ones.",
    )
    squares = np.einsum("rijk,rikl->rjl", matrices, matrices)
    width, _, dim, _ = matrices.shape
    return MatrixRademacher(float(np.linalg.eigvalsh(squares)[:, -1].max()), dim, width)


def _check_seen(net: TwoLayer, inputs: Float[np.ndarray, "n d"]) -> None:
    require(inputs.shape[1] == net.dim, f"X has shape {inputs.shape}: expected (n, {net.dim}) for this network.")
    check_magnitude(6, X=inputs)


def feature_rademacher(net: TwoLayer, X: Float[AnyArray, "n d"]) -> MatrixRademacher:
    """Lemma 8 for the feature matrices: v = max_r ‖n⁻²Σᵢ σ''(w_{0,r}ᵀxᵢ)²‖xᵢ‖²xᵢxᵢᵀ‖_op. Time O(m(nd² + d³)).

    Its `lemma` and its `tropp` bound `feature_term(net, X).largest`.
    """
    inputs = check_inputs(np.asarray(X))
    _check_seen(net, inputs)
    curvature = np.concatenate([values for _, values in curvatures(net, inputs)])
    weights = (curvature * (np.linalg.norm(inputs, axis=1) / len(inputs))[:, None]) ** 2
    return MatrixRademacher(max(float(pair[:, 1].max()) for pair in _extremes(weights, inputs)), net.dim, net.width)
