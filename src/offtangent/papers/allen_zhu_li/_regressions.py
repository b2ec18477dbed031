"""Kernel regression (3.1) over a grid of λ that is widened until the best one lies inside, in float64.

λ is chosen by the error on samples of their own. A best λ at the end of the grid widens it, unless the last step
changed that error by less than a thousandth, or 10⁻⁶ of the labels: then the limit, λ → 0 or f = 0, is reached. Where a
matrix of single precision is no longer positive with so small a ridge, the grid ends. Ridges Nλ are given relative to
the mean of k(x, x).

Solutions come from a factorisation for each λ, n³/3. Labels of one column, as the tangent kernels have, need on a CPU
no more than one Krylov space for all λ, some hundred products of n².
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from offtangent.linalg.brackets import cholesky_factor
from offtangent.linalg.krylov import Krylov, lanczos

AT_ONCE = 4  # ridges in one program
STEP = 10**0.5  # from one ridge to the next
START = 10**-2.5  # the first of two fours
LEAST, MOST = 1e-10, 1e8  # beyond these the grid is not widened
STILL, NOTHING = 1e-3, 1e-6
HOST = 400  # rows up to which it is not worth to compile a program for a device
STEPS, LOOK = 500, 25  # of Lanczos at most, and from one look at its residual to the next
RESIDUAL = 1e-6  # of the labels' norm, at which a solution of Lanczos is taken

_Solver = Callable[[Float[np.ndarray, " r"]], Float[np.ndarray, "r n k"]]  # ridges ↦ (K + ridge·I)⁻¹Y


@dataclass(frozen=True)
class Path:
    """All solutions of a grid, by rising ridge."""

    ridges: Float[np.ndarray, " r"]  # Nλ/k(x, x)
    betas: Float[np.ndarray, "r n k"]
    chosen_by: Float[np.ndarray, " r"]  # E‖f − H‖² over E‖H‖² on the samples that choose; infinite without a solution

    @property
    def chosen(self) -> int:
        return int(self.chosen_by.argmin())

    @property
    def inside(self) -> bool:
        """Whether the choice has a worse neighbour on both sides, or is in the limit."""
        solved = self.chosen_by[np.isfinite(self.chosen_by)]
        return len(solved) > 1 and not any(_open(solved, end) for end in (0, -1))


def path(
    K: Float[np.ndarray, "n n"],
    Y: Float[np.ndarray, "n k"],
    to_choose: Float[np.ndarray, "c n"],
    labels: Float[np.ndarray, "c k"],
) -> Path:
    """The solutions for a grid of λ. `to_choose` is the kernel between the samples that choose and these.

    Time n³/3 for each of eight λ or more.
    """
    size, factors = float(np.trace(K)) / len(K), STEP ** np.arange(AT_ONCE)
    solve = _solver(K, Y)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(first: float, where: int) -> None:
        ridges = first * factors
        betas = solve(ridges * size)
        errors = ((applied(to_choose, betas) - labels) ** 2).sum(axis=(1, 2)) / (labels**2).sum()
        parts.insert(where, (ridges, betas, np.where(np.isfinite(errors), errors, np.inf)))

    add(START, 0)
    add(START * STEP**AT_ONCE, 1)
    while True:
        ridges, betas, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
        if _open(errors, 0) and ridges[0] > LEAST:
            add(ridges[0] / STEP**AT_ONCE, 0)
        elif _open(errors, -1) and ridges[-1] < MOST:
            add(ridges[-1] * STEP, len(parts))
        else:
            return Path(ridges, betas, errors)


def _open(errors: np.ndarray, end: int) -> bool:
    """Whether the best is at this end, and still getting better there."""
    inner = errors[1] if end == 0 else errors[-2]
    return bool(errors.argmin() == end % len(errors) and inner - errors[end] > STILL * errors[end] + NOTHING)


def applied(across: Float[np.ndarray, "c n"], betas: Float[np.ndarray, "r n k"]) -> Float[np.ndarray, "r c k"]:
    """The functions that the solutions are, at other samples, by one pass over their kernel with these."""
    columns = np.moveaxis(betas, 0, 1).reshape(betas.shape[1], -1)
    if betas.shape[1] <= HOST:
        values = across @ columns
    else:
        with jax.enable_x64(True):
            values = np.asarray(_on_device(across) @ columns)
    return np.moveaxis(values.reshape(len(across), len(betas), -1), 1, 0)


def _solver(K: Float[np.ndarray, "n n"], Y: Float[np.ndarray, "n k"]) -> _Solver:
    """Solutions are NaN where a factorisation finds that K + ridge·I is not positive."""
    if len(K) <= HOST:
        return lambda ridges: np.stack([_factorised(K, Y, float(ridge)) for ridge in ridges])
    on_device = _device_solver(K, Y)
    return _krylov_solver(K, Y, on_device) if Y.shape[1] == 1 and jax.default_backend() == "cpu" else on_device


def _factorised(K: Float[np.ndarray, "n n"], Y: Float[np.ndarray, "n k"], ridge: float) -> Float[np.ndarray, "n k"]:
    try:
        factor = cholesky_factor(K + ridge * np.eye(len(K)), lower=False)
    except scipy.linalg.LinAlgError:  # as a device says it
        return np.full(Y.shape, np.nan)
    return np.asarray(scipy.linalg.cho_solve(factor, Y))


def _device_solver(K: Float[np.ndarray, "n n"], Y: Float[np.ndarray, "n k"]) -> _Solver:
    """By factorisations, with K brought to the device once."""
    held: list[Array] = []

    def solve(ridges: Float[np.ndarray, " r"]) -> Float[np.ndarray, "r n k"]:
        with jax.enable_x64(True):
            if not held:
                held.append(_on_device(K))
            return np.asarray(_solve(held[0], jnp.asarray(Y), jnp.asarray(ridges)))

    return solve


def _krylov_solver(K: Float[np.ndarray, "n n"], y: Float[np.ndarray, "n 1"], otherwise: _Solver) -> _Solver:
    """From one Krylov space of y: ‖y‖ Q(T + ridge·I)⁻¹e₁, with the residual β_m|e_mᵀ(T + ridge·I)⁻¹e₁|‖y‖.

    The space grows until the least ridge is solved; where it ends before that, or sees that K + ridge·I is not
    positive, `otherwise` solves. It may not see it: then the residual tells that this is a solution all the same.
    """
    matrix = K.astype(np.float64)
    space = lanczos(lambda v: matrix @ v, y, STEPS)
    known: list[Krylov] = []

    def inverse(ridge: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda t: np.where(t + ridge > 0, 1 / (t + ridge), np.nan)

    def solved(ridge: float) -> bool:
        last = known[-1].coordinates(inverse(ridge))[-1, 0]
        return bool(abs(known[-1].betas[-1, 0] * last) <= RESIDUAL * known[-1].lengths[0])

    def solve(ridges: Float[np.ndarray, " r"]) -> Float[np.ndarray, "r n 1"]:
        while not known or not solved(float(ridges.min())):
            if (longer := next(itertools.islice(space, LOOK - 1, None), None)) is None:
                break
            known[:] = [longer]
        found = np.stack([known[-1].apply(inverse(float(ridge))) for ridge in ridges])
        rest = np.array([not solved(float(ridge)) for ridge in ridges])
        if rest.any():
            found[rest] = otherwise(ridges[rest])
        return found

    return solve


def _on_device(values: Float[np.ndarray, "a b"]) -> Float[Array, "a b"]:
    """In float64, which a float32 becomes there: it travels as it is."""
    return jax.device_put(values).astype(jnp.float64)


@jax.jit
def _solve(K: Float[Array, "n n"], Y: Float[Array, "n k"], ridges: Float[Array, " r"]) -> Float[Array, "r n k"]:
    def one(ridge: Array) -> Array:
        factor = jax.scipy.linalg.cho_factor(K + ridge * jnp.eye(len(K), dtype=K.dtype), lower=True)
        return jax.scipy.linalg.cho_solve(factor, Y)

    return jax.lax.map(one, ridges)
