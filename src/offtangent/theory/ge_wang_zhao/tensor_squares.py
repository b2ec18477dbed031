"""How far samples are in general position: the singular values of [x₁ ⊗ x₁, …, x_n ⊗ x_n], never formed.

Its Gram matrix is G_ij = (x_iᵀx_j)². Lemma 1 and Theorem 4 of Ge, Wang & Zhao (2019) ask for σ_min = √λ_min(G) > 0,
Theorem 5 for the same of the features z. Two bounds, of different kinds:

    from above    σ_min ≤ ‖Σ_j v_j x_j x_jᵀ‖_F / ‖v‖         for any v; it has the digits of σ, not those of σ²
    from below    λ_min ≥ s − error                        where G − sI has a Cholesky factor, in floating point

The error of the second grows with λ_max, so that σ_min of a large G may be too small to be told from zero: it is then
*below the floating-point floor*. Lemma 8: the leave-one-out distance l = min_i dist(x_i ⊗ x_i, span of the others),
which is min_i (G⁻¹)_ii^{−1/2}, has l/√n ≤ σ_min ≤ l.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from offtangent._checks import check_inputs, check_not_parallel
from offtangent._errors import InputError
from offtangent.kernels import Gram
from offtangent.kernels.closed_forms import tensor_square
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.solves import Watch
from offtangent.linalg.brackets import EPS, cholesky_floor
from offtangent.linalg.factor import TiledFactor, factor_bytes, factor_rows, tiled_cholesky
from offtangent.linalg.memory import memory_to_spare
from offtangent.linalg.preconditioner import pivoted_cholesky
from offtangent.theory.ge_wang_zhao.capacity import most_samples

DENSE = 1000  # up to this n, G is stored and diagonalised
FACTORED = {"cpu": 20_000}  # … factorised tile by tile; on an accelerator memory alone sets the limit
SOME, RANK = 10_000, 1000  # beyond it: rows that an eigenvector may live on, and pivots by which they are chosen
SHARES = (0.99, 0.9, 0.5, 0.1)  # of λ_min, as the Ritz value has it, that are tried as its lower bound


@dataclass(frozen=True)
class SmallestSingular:
    """lower ≤ σ_min ≤ upper of [x_j ⊗ x_j], both with the rounding of their computation.

    Where `upper` is not above `floor`, σ_min cannot be told from zero in float64.
    """

    upper: float
    lower: float
    floor: float  # the root of what rounding may do to λ_min on the way to `lower`
    largest: float  # the norm of [x_j ⊗ x_j]
    method: str  # how `upper` was found
    rests_on: str  # where `lower` comes from, in words

    @property
    def certified(self) -> bool:
        """Whether σ_min > 0 is proven."""
        return self.lower > 0

    @property
    def resolved(self) -> bool:
        """Whether σ_min, by its upper bound, is above the floating-point floor."""
        return self.upper >= self.floor

    @property
    def condition(self) -> float:
        """λ_min/λ_max of G, by the upper bound."""
        return (self.upper / self.largest) ** 2


def smallest_singular(X: object, *, watch: Watch | None = None) -> SmallestSingular:
    """σ_min of the tensor squares of the rows of X.

    Up to 1000 rows by all of G. Beyond, by Cholesky factors that are made from streamed tiles and take n²/2 floats: one
    of G for its lowest eigenvector, one of G − sI for the lower bound; time 2n³/3. Where these do not fit into memory,
    and on a CPU beyond 20 000 rows, by 10 000 rows near the span of the others, and without a lower bound: time
    O(n²d/2 + nd²) and that of 10 000 rows.

    More rows than quadratic forms, C(d + 1, 2), have σ_min = 0; rows that are multiples of each other are refused by
    name.

    >>> found = smallest_singular(np.eye(3))
    >>> round(found.upper, 12), found.certified, 0.9 < found.lower <= 1
    (1.0, True, True)
    """
    inputs = Gram(tensor_square, check_multiples(X)).X  # which refuses what over- or underflows
    scale = 2.0 ** math.frexp(math.sqrt(np.max(np.sum(inputs**2, axis=1))))[1]  # a division that does not round
    found = _smallest(inputs[:, inputs.any(axis=0)] / scale, watch)
    of_scale = {name: getattr(found, name) * scale**2 for name in ("upper", "lower", "floor", "largest")}
    return replace(found, **of_scale)


def leave_one_out_distances(X: object) -> Float[np.ndarray, "n"]:
    """dist(x_i ⊗ x_i, span{x_j ⊗ x_j, j ≠ i}) for every i, Definition 5. Time n³, memory 3n².

    >>> leave_one_out_distances([[1.0, 0.0], [0.0, 2.0]]).round(12)
    array([1., 4.])
    """
    inputs = check_multiples(X)
    if len(inputs) > most_samples(inputs.shape[1]):
        return np.zeros(len(inputs))
    return np.asarray(1 / np.sqrt(Inverse.of(Gram(tensor_square, inputs).dense()).diagonal))


def _smallest(inputs: Float[np.ndarray, "n d"], watch: Watch | None) -> SmallestSingular:
    """Of rows no longer than 1, with no column of zeros."""
    n, dim = inputs.shape
    largest = _largest(inputs, watch)
    if n > most_samples(dim):
        reason = f"{n} samples, and only {most_samples(dim)} independent quadratic forms of {dim} inputs"
        return SmallestSingular(0.0, 0.0, 0.0, largest, "counting", reason)
    kernel = _kernel_error(inputs)
    if n <= DENSE:
        return _stored(inputs, largest, kernel)
    if _fits(n):
        return _factorised(inputs, largest, kernel, watch)
    return _on_some_rows(inputs, largest, kernel, watch)


def _stored(inputs: Float[np.ndarray, "n d"], largest: float, kernel: float) -> SmallestSingular:
    n = len(inputs)
    G = (inputs @ inputs.T) ** 2
    _, vectors = scipy.linalg.eigh(G, subset_by_index=(0, 0), check_finite=False)
    upper = _upper(inputs, vectors[:, 0])
    floor = kernel + (n + 2) * EPS * float(np.trace(G))
    method = "the lowest eigenvector of G"
    if upper**2 <= floor:
        return _unresolved(upper, floor, largest, method)
    try:
        proven = cholesky_floor(G)
    except np.linalg.LinAlgError:
        return _unresolved(upper, floor, largest, method)
    lower = math.sqrt(max(proven.value - kernel, 0.0))
    return SmallestSingular(upper, lower, math.sqrt(floor), largest, method, proven.rests_on)


def _factorised(
    inputs: Float[np.ndarray, "n d"], largest: float, kernel: float, watch: Watch | None
) -> SmallestSingular:
    floor = kernel + _factor_error(inputs)
    upper = _upper(inputs, _lowest(inputs, floor, watch))
    method = "the lowest eigenvector of G, by inverse Lanczos on its Cholesky factor"
    for share in SHARES:
        shift = share * upper**2
        if shift <= floor:
            break
        factor = _factor(inputs, shift, f"factorising G − {share:g}λI", watch)
        if factor is not None and shift > factor.error + kernel:
            lower = math.sqrt(shift - factor.error - kernel)
            proof = "a Cholesky factor of G − sI, and what it leaves of it, measured tile by tile"
            return SmallestSingular(upper, lower, math.sqrt(factor.error + kernel), largest, method, proof)
    return _unresolved(upper, floor, largest, method)


def _on_some_rows(
    inputs: Float[np.ndarray, "n d"], largest: float, kernel: float, watch: Watch | None
) -> SmallestSingular:
    """By the lowest eigenvector of a principal submatrix of G: λ_min of G is at most that of any of these (Cauchy).

    Of rows near the span of the others, by two bounds: the distance of x_i ⊗ x_i from the span of some pivots, and from
    the nearest other row. The eigenvector lives on few rows as a rule: of MNIST's first 6000, half of the rows give
    σ_min to 10 %.
    """
    n = len(inputs)
    if watch is not None:
        watch("choosing rows")
    sizes = np.sum(inputs**2, axis=1) ** 2
    _, lack = pivoted_cholesky(partial(_columns, jnp.asarray(inputs, jnp.float32)), sizes, min(RANK, n // 2))
    apart = np.minimum(lack, sizes * (1 - _nearest(inputs) ** 4))
    rows = np.sort(np.argsort(apart, kind="stable")[:SOME])
    vector = np.zeros(n)
    vector[rows] = _lowest(inputs[rows], kernel + _factor_error(inputs[rows]), watch)
    upper = _upper(inputs, vector)
    floor = kernel + _factor_error(inputs)
    method = f"an eigenvector on {len(rows)} of {n} rows"
    if upper**2 <= floor:
        return _unresolved(upper, floor, largest, method)
    reason = f"nothing: a Cholesky factor of {n} rows takes {factor_bytes(n) / 1e9:.1f} GB, or too long on a CPU"
    return SmallestSingular(upper, 0.0, math.sqrt(floor), largest, method, reason)


def _unresolved(upper: float, floor: float, largest: float, method: str) -> SmallestSingular:
    reason = "nothing: λ_min of G is within its rounding, below the floating-point floor"
    return SmallestSingular(upper, 0.0, math.sqrt(floor), largest, method, reason)


def _fits(n: int) -> bool:
    within = n <= FACTORED.get(jax.default_backend(), n)
    return within and 1.2 * factor_bytes(n) <= memory_to_spare()


def _squares(X1: Array, X2: Array) -> Array:
    return jnp.matmul(X1, X2.T, precision=jax.lax.Precision.HIGHEST) ** 2


@jax.jit
def _columns(X: Array, at: Array) -> Array:
    return _squares(X, X[at])


def _nearest(inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """The largest |cosine| of each row with another, in float32. Time O(n²d/2)."""
    size = factor_rows()
    units = (inputs / np.linalg.norm(inputs, axis=1, keepdims=True)).astype(np.float32)
    groups = [jnp.asarray(units[i : i + size]) for i in range(0, len(units), size)]
    found = [jnp.zeros(len(group), jnp.float32) for group in groups]
    for i in range(len(groups)):
        for j in range(i + 1):
            rows, columns = _cosines(groups[i], groups[j], i == j)
            found[i] = jnp.maximum(found[i], rows)
            found[j] = jnp.maximum(found[j], columns)
    return np.minimum(np.concatenate([np.asarray(part, np.float64) for part in found]), 1.0)


@partial(jax.jit, static_argnums=2)
def _cosines(U: Array, V: Array, same: bool) -> tuple[Array, Array]:
    sizes = jnp.abs(jnp.matmul(U, V.T, precision=jax.lax.Precision.HIGHEST))
    if same:
        sizes = jnp.fill_diagonal(sizes, 0, inplace=False)
    return jnp.max(sizes, axis=1), jnp.max(sizes, axis=0)


def _factor(inputs: Float[np.ndarray, "n d"], shift: float, what: str, watch: Watch | None) -> TiledFactor | None:
    told = None if watch is None else lambda share: watch(f"{what}: {share:.0%}")
    return tiled_cholesky(_squares, inputs, shift, watch=told)


def _lowest(inputs: Float[np.ndarray, "n d"], floor: float, watch: Watch | None) -> Float[np.ndarray, " n"]:
    """A unit vector near the lowest eigenvector of G, which a multiple of I does not change."""
    factor, ridge = None, floor
    while factor is None:
        factor = _factor(inputs, -ridge, "factorising G", watch)
        ridge *= 10
    told = None if watch is None else lambda step: watch(f"inverse Lanczos: step {step}")
    return factor.lowest(watch=told)


def _upper(inputs: Float[np.ndarray, "n d"], v: Float[np.ndarray, " n"]) -> float:
    """‖Σ v_j x_j x_jᵀ‖_F / ‖v‖, and all that rounding may take from it. Time O(nd²)."""
    n, dim = inputs.shape
    found = np.linalg.norm(inputs.T @ (v[:, None] * inputs))
    sizes = np.linalg.norm(np.abs(inputs).T @ (np.abs(v)[:, None] * np.abs(inputs)))
    total = float(found) * (1 + (dim**2 + 4) * EPS) + (n + 4) * EPS * float(sizes)
    return total / float(np.linalg.norm(v)) * (1 + (n + 4) * EPS)


def _kernel_error(inputs: Float[np.ndarray, "n d"]) -> float:
    """What rounding does to G at most, as a matrix: (d + 4)ε times the largest sum of a row of (|x_i|ᵀ|x_j|)²."""
    sizes = np.abs(inputs)
    rows = np.einsum("ij,ij->i", sizes @ (sizes.T @ sizes), sizes)
    return (inputs.shape[1] + 4) * EPS * float(rows.max())


def _factor_error(inputs: Float[np.ndarray, "n d"]) -> float:
    """What rounding does to a factorisation of G at most, before one knows better: |L||L|ᵀ has entries ‖x_i‖²‖x_j‖²."""
    n = len(inputs)
    size = min(n, factor_rows())
    squares = np.sum(inputs**2, axis=1)
    return 2 * (size + -(-n // size) + 4) * EPS * float(squares.max() * squares.sum())


@jax.jit
def _image(X: Array, M: Array) -> Array:
    """Σ_j (x_jᵀMx_j) x_j x_jᵀ."""
    return X.T @ (jnp.sum((X @ M) * X, axis=1)[:, None] * X)


def _largest(inputs: Float[np.ndarray, "n d"], watch: Watch | None) -> float:
    """The norm of [x_j ⊗ x_j]: that of M ↦ Σ_j (x_jᵀMx_j) x_j x_jᵀ, by the power method on the d × d side."""
    n, dim = inputs.shape
    if n <= DENSE:
        return math.sqrt(scipy.linalg.eigvalsh((inputs @ inputs.T) ** 2, subset_by_index=(n - 1, n - 1))[0])
    value = 0.0
    with jax.enable_x64(True):
        X, M = jnp.asarray(inputs), jnp.eye(dim) / math.sqrt(dim)
        for step in range(200):
            if watch is not None:
                watch(f"power method: product {step + 1}")
            image = _image(X, M)
            before, value = value, float(jnp.linalg.norm(image))
            M = image / value
            if value - before <= 1e-6 * value:
                break
    return math.sqrt(value)


def check_multiples(X: object) -> Float[np.ndarray, "n d"]:
    """X, or an InputError that names a row which is a multiple of another, or zero: then σ_min = 0.

    Rows come back with a sign that makes opposite ones equal, which x ⊗ x does not see. Time O(nd + n log n).

    >>> check_multiples([[1.0, -2.0], [3.0, 0.0]]).tolist()
    [[-1.0, 2.0], [3.0, 0.0]]
    """
    inputs = check_inputs(X, nonzero=True)
    at = np.abs(inputs).argmax(axis=1)
    try:
        return check_not_parallel(inputs * np.sign(np.take_along_axis(inputs, at[:, None], axis=1)))
    except InputError as error:
        raise InputError(f"{error} (Up to signs, which x ⊗ x does not see.)") from None
