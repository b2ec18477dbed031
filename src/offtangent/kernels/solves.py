"""How a Gram operator is solved, bracketed and diagonalised: the dense way where it fits, else by iteration."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from jaxtyping import Array, Float

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.pairs import polar
from offtangent.kernels.rounding import DiagonalWithError, OfCosine, WithError
from offtangent.kernels.tilewise import Tilewise
from offtangent.kernels.trusting import trusted_diag, trusted_exact
from offtangent.linalg import Spectrum
from offtangent.linalg.brackets import EPS, Bracket, Floor, bracket, cholesky_floor, factorise, right_sides
from offtangent.linalg.conjugate import conjugate_gradients
from offtangent.linalg.memory import memory_to_spare
from offtangent.linalg.preconditioner import LowRank, low_rank, pivoted_cholesky
from offtangent.linalg.solution import Solution
from offtangent.linalg.stream import product_with_error, series_floor, tile_slices
from offtangent.linalg.tiles import group

if TYPE_CHECKING:
    from offtangent.kernels.gram import Gram
    from offtangent.kernels.solvable import Solvable

# Up to here a Cholesky factorisation in float64, n³/3, beats a pass in float32, a hundred products and two passes in
# float64: MNIST's first 7500 take 20 s on two cores, and 15 000 by iteration 31 s (benchmarks/mnist.py).
DIRECT_ROWS = {"cpu": 10_000, "gpu": 20_000}
DENSE_ROWS = 2000  # up to here all eigenpairs of the dense matrix cost less than to iterate
HOST_THREADS = 4  # that make tiles in float64: each holds some 300 MB
RANK = 1000  # of the preconditioner
TERMS = 257  # of a kernel's power series, for the floor
PASSES = 8  # corrections in float64 before giving up
MOST = 500  # iterations between two corrections
PROBES, PROBED = 4, 1e-5  # random vectors, and the residual to which they are solved, where λ_min is estimated
RANGE = 1e25  # of the diagonal, beyond which float32, whose range is 1e±38, has no room for sums and shifts

Watch = Callable[[str], None]


def exact_matrix(kernel: Any, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    """K(X, X) in float64, accurate to rounding, each symmetric tile made once, a few at a time."""
    matrix = np.empty((len(X), len(X)))

    def fill(at: tuple[slice, slice]) -> None:
        rows, columns = at
        tile = trusted_exact(kernel, X[rows], None if rows == columns else X[columns])
        matrix[rows, columns] = tile
        if rows != columns:
            matrix[columns, rows] = tile.T

    with ThreadPoolExecutor(min(HOST_THREADS, os.cpu_count() or 1)) as pool:  # NumPy leaves the interpreter free
        list(pool.map(fill, tile_slices(len(X))))
    return matrix


def choose(H: "Solvable", method: str | None) -> str:
    """Cholesky where the dense matrix and its factor fit into free memory and n is moderate."""
    if method not in (None, "cholesky", "conjugate gradients"):
        raise InputError(f"method={method!r}: it is 'cholesky', 'conjugate gradients', or None to choose by size.")
    if method is not None:
        return method
    limit = DIRECT_ROWS.get(jax.default_backend(), DIRECT_ROWS["gpu"])
    fits = 24 * len(H) ** 2 <= memory_to_spare(jax.devices("cpu")[:1])
    return "cholesky" if len(H) <= limit and fits else "conjugate gradients"


def exact_product(H: "Gram", x: Float[np.ndarray, "n c"], watch: Watch | None) -> tuple[np.ndarray, np.ndarray]:
    """Hx in float64 with a bound on its error, streamed."""
    told = None if watch is None else lambda share: watch(f"checking in float64: {share:.0%}")
    block, diagonal = WithError(H.kernel), DiagonalWithError(H.kernel)
    product, bound = product_with_error(block, diagonal, H.X, x, watch=told, devices=H.devices)
    shift = H.ridge * x
    return product + shift, bound + 2 * EPS * (np.abs(shift) + np.abs(product))


class Iteration:
    """Conjugate gradients on tiles in float32, corrected in float64 as often as it takes."""

    def __init__(self, H: "Solvable", watch: Watch | None) -> None:
        self.H, self.watch = H, watch
        largest = float(H.diag().max())
        if not 1 / RANGE <= largest <= RANGE:
            raise InputError(
                f"The diagonal of the matrix goes up to {largest:.2g}: products in float32 over- or underflow. Scale X "
                "(and the ridge) so that it is about 1, or take method='cholesky', which works in float64."
            )
        self.tell("computing tiles")
        self.operator = H.operator(np.float32)
        self.preconditioner = H.preconditioner(watch)
        self.iterations, self.ritz = 0, np.inf

    def tell(self, text: str) -> None:
        if self.watch is not None:
            self.watch(text)

    def probe(self) -> None:
        """Solve for random vectors, for their Ritz values: labels may hardly touch what λ_min belongs to."""
        self.correct(np.random.default_rng(1).standard_normal((len(self.H), PROBES)), PROBED)

    def correct(self, r: Float[np.ndarray, "n c"], tolerance: float) -> tuple[Float[np.ndarray, "n c"], bool]:
        """An approximate H⁻¹r, and whether conjugate gradients came as close as they were asked to."""
        sizes = np.maximum(np.linalg.norm(r, axis=0), np.finfo(np.float64).tiny)
        done = self.iterations
        found = conjugate_gradients(
            self.operator,
            jnp.asarray(r / sizes, jnp.float32),
            preconditioner=self.preconditioner,
            tolerance=max(tolerance, 1e-6),
            most=MOST,
            watch=lambda step, residual: self.tell(f"conjugate gradients: step {done + step}, residual {residual:.1e}"),
        )
        self.iterations += found.iterations
        self.ritz = min(self.ritz, found.ritz[0])
        return np.asarray(found.x, np.float64) * sizes, found.converged

    def estimated_floor(self) -> Floor:
        """P⁻¹H has its smallest eigenvalue below its Ritz values; half the smallest of these stands for it.

        Tiles in float32 are off by a matrix of norm about ε√n max H: an eigenvalue near that may as well be zero.
        """
        shift = float(self.preconditioner.shift)
        unseen = 10 * float(np.finfo(np.float32).eps) * len(self.H) ** 0.5 * float(self.H.diag().max())
        if not self.ritz * shift / 2 > unseen:
            return Floor(0.0, False, f"nothing: λ_min is below {unseen:.2g}, where float32 tiles say nothing of it")
        return Floor(
            self.ritz * shift / 2 if np.isfinite(self.ritz) else 0.0,
            False,
            f"an estimate of λ_min: half the smallest Ritz value {self.ritz:.3g} of the preconditioned matrix, times "
            f"the preconditioner's shift {shift:.3g}",
        )


def precondition(H: "Gram", watch: Watch | None) -> LowRank:
    """A preconditioner FFᵀ + sI of conjugate gradients, F by randomly pivoted Cholesky of K.

    The shift s is what F leaves of K's diagonal, on average, and the ridge.
    """
    if watch is not None:
        watch("building the preconditioner")
    n = len(H)
    rows = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1])[:n], H.operator(np.float32).tiles.rows)
    columns = partial(_columns, Tilewise(H.kernel, H.precision), rows)
    F, lack = pivoted_cholesky(columns, trusted_diag(H.kernel, H.X), min(RANK, n // 2 + 1))
    return low_rank(F, max(float(lack.mean()) + H.ridge, float(np.finfo(np.float32).eps) * float(H.diag().max())))


@partial(jax.jit, static_argnums=0)
def _columns(block: Tilewise, rows: Any, at: Array) -> Array:
    return block(rows, group(rows, at))


def solve(H: "Solvable", b: Any, tolerance: float, method: str | None, watch: Watch | None) -> Solution:
    """(K + ridge·I)⁻¹b of a Gram matrix, by Cholesky or conjugate gradients corrected with products in float64."""
    columns, shape = right_sides(b, len(H)), np.shape(b)
    if choose(H, method) == "cholesky":
        factor = factorise(H.dense())
        x = scipy.linalg.cho_solve(factor, columns)
        residual = columns - H.dense() @ x
        x = x + scipy.linalg.cho_solve(factor, residual)
        reached = _worst(columns - H.dense() @ x, columns)
        return Solution(x.reshape(shape), reached, 0, reached <= tolerance, "cholesky")
    run = Iteration(H, watch)
    x, r, reached = np.zeros_like(columns), columns, 1.0
    for _ in range(PASSES):
        step, _ = run.correct(r, tolerance / reached / 2)
        product = H.product(x + step, watch)
        now = _worst(columns - product, columns)
        if not now < reached:  # NaN too
            break
        x, r, reached = x + step, columns - product, now
        if reached <= tolerance:
            break
    return Solution(x.reshape(shape), reached, run.iterations, reached <= tolerance, "conjugate gradients")


def inverse_quadratics(H: "Gram", Y: Any, width: float, method: str | None, watch: Watch | None) -> tuple[Bracket, ...]:
    """A bracket of yᵀH⁻¹y for each column of Y, certified where λ_min is proven from below."""
    Y = right_sides(Y, len(H))
    require(Y.any(axis=0).all(), "y is zero: yᵀH⁻¹y is 0 for any H.")
    if choose(H, method) == "cholesky":
        return _direct(H, Y, watch)
    run = Iteration(H, watch)
    floor = _given(H.kernel, proven_floor(H, watch))
    if not floor.value > 0:
        run.probe()
    x, r, best = np.zeros_like(Y), Y.copy(), dict[int, Bracket]()
    wide = list(range(Y.shape[1]))  # columns whose bracket is not narrow enough yet
    for _ in range(PASSES):
        step, _ = run.correct(r[:, wide], 1e-3)
        tried = x[:, wide] + step
        product, error = exact_product(H, tried, watch)
        trusted = floor if floor.value > 0 else run.estimated_floor()
        better = []
        for i, column in enumerate(wide):
            parts = Y[:, column], tried[:, i], product[:, i], error[:, i]
            found = bracket(*parts, trusted, method="conjugate gradients", iterations=run.iterations)
            if column not in best or found.residual < best[column].residual:
                best[column], x[:, column], r[:, column] = found, tried[:, i], Y[:, column] - product[:, i]
                better.append(column)
        wide = [column for column in better if best[column].width > width]
        if not wide:
            break
    worst = max(found.residual for found in best.values())
    if worst > 0.1:
        raise InputError(
            f"yᵀH⁻¹y cannot be had for these {len(H)} inputs: after {run.iterations} iterations the residual is still "
            f"{worst:.2g} of ‖y‖, and λ_min is about {run.estimated_floor().value:.1g} against λ_max of up to "
            f"{float(np.sum(H.diag())):.2g}. Add a ridge, or look at the whole curve of ridges with "
            "offtangent.kernels.ridges.regularised(kernel, X, y)."
        )
    return tuple(best[column] for column in range(Y.shape[1]))


def _direct(H: "Gram", Y: Float[np.ndarray, "n c"], watch: Watch | None) -> tuple[Bracket, ...]:
    matrix = H.dense()
    factor = factorise(matrix)
    x = scipy.linalg.cho_solve(factor, Y)
    x = x + scipy.linalg.cho_solve(factor, Y - matrix @ x)
    # Between rows that nearly point the same way the dense matrix is right, and the streamed product only says by how
    # much it may be wrong: the value is from the one, the bounds are from the other.
    values = 2 * np.sum(Y * x, axis=0) - np.sum(x * (matrix @ x), axis=0)
    product, error = exact_product(H, np.column_stack([x, np.ones(len(x))]), watch)
    floor = cholesky_floor(matrix, factor)
    value = floor.value - float(error[:, -1].max())  # ‖E‖ is at most the largest sum of a row of |E|
    if floor.certified and value > 0:
        floor = _given(H.kernel, Floor(value, True, floor.rests_on))
    else:
        drowned = "nothing: rounding of the kernel is as large as λ_min"
        floor = Floor(0.0, False, drowned if floor.certified else floor.rests_on)
    return tuple(
        bracket(Y[:, k], x[:, k], product[:, k], error[:, k], floor, method="cholesky", value=float(values[k]))
        for k in range(Y.shape[1])
    )


def _given(kernel: Any, floor: Floor) -> Floor:
    """The rounding error of a kernel that is not of this house is a guess: what rests on it is conditional."""
    if isinstance(kernel, AngularKernel):
        return floor
    return Floor(floor.value, False, f"{floor.rests_on}, if {kernel.name} errs by no more than an inner product")


def proven_floor(H: "Gram", watch: Watch | None) -> Floor:
    """What can be proven of λ_min(H) without factorising it: the ridge, and the tail of the kernel's power series."""
    kernel = H.kernel
    # A row of zeros has no direction: its cosine with itself counts as 0, and the series says nothing of it.
    directed = bool(H.X.any(axis=1).all())
    if isinstance(kernel, AngularKernel) and kernel.series is not None and kernel.degree is not None and directed:
        U, r = polar(H.X, np)
        told = None if watch is None else lambda share: watch(f"bounding λ_min from below: {share:.0%}")
        tail = series_floor(OfCosine(kernel), kernel.series(TERMS), U, watch=told, devices=H.devices)
        tail *= float(r.min()) ** (2 * kernel.degree) * (1 - 1e-12)
        if tail > 0:
            added = f", and the ridge {H.ridge:g}" if H.ridge else ""
            return Floor(tail + H.ridge, True, f"the tail of the kernel's power series, {tail:.3g}{added} (V-B12)")
    if H.ridge > 0:
        return Floor(float(H.ridge), True, f"the ridge {H.ridge:g}: a kernel matrix has no negative eigenvalues")
    return Floor(0.0, False, "nothing")


def eigh(H: "Solvable", k: int | None, which: Literal["largest", "smallest"], watch: Watch | None) -> Spectrum:
    """All eigenpairs of a Gram matrix, or k of them, through the dense matrix or by Lanczos."""
    n = len(H)
    if k is not None and not 1 <= k <= n:
        raise InputError(f"k={k}: a matrix of size {n} has between 1 and {n} eigenpairs.")
    if which not in ("largest", "smallest"):
        raise InputError(f"which={which!r}: it is 'largest' or 'smallest'.")
    if k is None or n <= DENSE_ROWS or 10 * k > n:
        return Spectrum.of(H.dense(), k, which=which)
    if which == "smallest" and choose(H, None) == "cholesky":
        return Spectrum.of(H.dense(), k, which=which)
    start = np.random.default_rng(0).standard_normal(n).astype(np.float32)  # ones would miss what is odd
    if which == "smallest":
        run = Iteration(H, watch)
        inverse = _counted(n, lambda v: run.correct(v[:, None], 1e-4)[0][:, 0], watch, "inverse Lanczos")
        _, vectors = scipy.sparse.linalg.eigsh(inverse, k=k, which="LM", tol=1e-3, v0=start)
    else:
        operator = H.operator(np.float32)
        forward = _counted(n, lambda v: np.asarray(_product(operator, jnp.asarray(v, jnp.float32))), watch, "Lanczos")
        _, vectors = scipy.sparse.linalg.eigsh(forward, k=k, which="LA", tol=1e-5, v0=start)
    vectors, _ = np.linalg.qr(np.asarray(vectors, np.float64))
    return Spectrum.refined(vectors, H.product(vectors, watch), which=which)


@eqx.filter_jit
def _product(operator: Any, v: Array) -> Array:
    return operator @ v


def _counted(n: int, product: Callable[[np.ndarray], np.ndarray], watch: Watch | None, what: str) -> Any:
    count = 0

    def apply(v: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        if watch is not None:
            watch(f"{what}: product {count}")
        return product(v.reshape(n))

    return scipy.sparse.linalg.LinearOperator((n, n), matvec=apply, dtype=np.float32)


def _worst(r: Float[np.ndarray, "n c"], b: Float[np.ndarray, "n c"]) -> float:
    sizes = np.maximum(np.linalg.norm(b, axis=0), np.finfo(np.float64).tiny)
    return float((np.linalg.norm(r, axis=0) / sizes).max())
