"""Preconditioned conjugate gradients for many right sides at once, on an operator that is only known by its products.

Ours, and not lineax's or SciPy's, for three reasons: all columns share one pass over the matrix (a pass is what
costs), the coefficients of the iteration give the Ritz values of the preconditioned matrix for nothing, and a
long solve can be watched and interrupted between products.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from offtangent.linalg.preconditioner import LowRank


@dataclass(frozen=True)
class Iterates:
    """The result of `conjugate_gradients`: the solution, and how good it is."""

    x: Float[Array, "n c"]
    residual: float  # ‖b − Ax‖/‖b‖ of the worst column, as the recursion has it: rounding may keep the true one above
    iterations: int
    converged: bool
    ritz: tuple[float, float]  # smallest and largest Ritz value of P⁻¹A: they lie inside its spectrum


class _State(eqx.Module):
    x: Array
    r: Array
    z: Array
    p: Array
    rz: Array


@eqx.filter_jit
def _start(b: Array, preconditioner: LowRank | None) -> _State:
    z = b if preconditioner is None else preconditioner.solve(b)
    return _State(jnp.zeros_like(b), b, z, z, jnp.sum(b * z, axis=0))


@eqx.filter_jit
def _step(operator: Any, preconditioner: LowRank | None, state: _State) -> tuple[_State, Array, Array, Array]:
    Ap = operator @ state.p
    curvature = jnp.sum(state.p * Ap, axis=0)
    alpha = jnp.where(curvature > 0, state.rz / jnp.where(curvature > 0, curvature, 1), 0)
    x, r = state.x + alpha * state.p, state.r - alpha * Ap
    z = r if preconditioner is None else preconditioner.solve(r)
    rz = jnp.sum(r * z, axis=0)
    beta = jnp.where(state.rz > 0, rz / jnp.where(state.rz > 0, state.rz, 1), 0)
    return _State(x, r, z, z + beta * state.p, rz), alpha, beta, jnp.linalg.norm(r, axis=0)


def conjugate_gradients(
    operator: Any,
    b: Float[Array, "n c"],
    *,
    preconditioner: LowRank | None = None,
    tolerance: float,
    most: int,
    watch: Callable[[int, float], None] | None = None,
) -> Iterates:
    """Solve A x = b for each column of b to ‖b − Ax‖ ≤ tolerance·‖b‖, in the dtype of b, or stop at `most` steps.

    `operator @ p` is the product. `watch(step, residual)` is called after each step. Stops early when the residual
    has not fallen for 20 steps and half of all: on its way it may rise for long, but then rounding is all there is.
    """
    sizes = np.maximum(np.asarray(jnp.linalg.norm(b, axis=0), np.float64), np.finfo(np.float32).tiny)
    state = _start(b, preconditioner)
    alphas, betas = [], []
    best, best_at, residual, step = np.inf, 0, 1.0, 0
    best_x = state.x
    for step in range(1, most + 1):
        state, alpha, beta, norms = _step(operator, preconditioner, state)
        alphas.append(np.asarray(alpha, np.float64))
        betas.append(np.asarray(beta, np.float64))
        residual = float((np.asarray(norms, np.float64) / sizes).max())
        if watch is not None:
            watch(step, residual)
        if residual < best:
            best, best_at, best_x = residual, step, state.x
        if residual <= tolerance or not np.isfinite(residual) or step - best_at >= max(20, step // 2):
            break
    return Iterates(best_x, best, step, best <= tolerance, _ritz(np.array(alphas), np.array(betas)))


def _ritz(alphas: Float[np.ndarray, "s c"], betas: Float[np.ndarray, "s c"]) -> tuple[float, float]:
    """The ends of the spectra of the Lanczos matrices that conjugate gradients build implicitly."""
    low, high = np.inf, 0.0
    for alpha, beta in zip(alphas.T, betas.T, strict=True):
        good = (alpha > 0) & np.isfinite(alpha)
        steps = len(alpha) if good.all() else int(np.argmin(good))
        if steps == 0:
            continue
        a, b = alpha[:steps], beta[:steps]
        diagonal = 1 / a
        diagonal[1:] += b[: steps - 1] / a[: steps - 1]
        values = scipy.linalg.eigvalsh_tridiagonal(diagonal, np.sqrt(np.maximum(b[: steps - 1], 0)) / a[: steps - 1])
        low, high = min(low, float(values[0])), max(high, float(values[-1]))
    return low, high
