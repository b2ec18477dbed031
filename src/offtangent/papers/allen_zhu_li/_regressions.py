"""Kernel regression (3.1) over a grid of λ that is widened until the best one lies inside, in float64.

λ is chosen by the error on samples of their own. A best λ at the end of the grid widens it, unless the last step
changed that error by less than a thousandth, or 10⁻⁶ of the labels: then the limit, λ → 0 or f = 0, is reached. Where a
matrix of single precision is no longer positive with so small a ridge, the grid ends. Ridges Nλ are given relative to
the mean of k(x, x).
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

AT_ONCE = 4  # ridges in one program
STEP = 10**0.5  # from one ridge to the next
START = 10**-2.5  # the first of two fours
LEAST, MOST = 1e-10, 1e8  # beyond these the grid is not widened
STILL, NOTHING = 1e-3, 1e-6
HOST = 400  # rows up to which it is not worth to compile a program for a device


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
        return not any(_open(solved, end) for end in (0, -1))


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


def _solver(
    K: Float[np.ndarray, "n n"], Y: Float[np.ndarray, "n k"]
) -> Callable[[Float[np.ndarray, " r"]], Float[np.ndarray, "r n k"]]:
    """Give ridges ↦ (K + ridge·I)⁻¹Y, NaN where that matrix is not positive, with K brought to the device once."""
    if len(K) <= HOST:

        def one(ridge: float) -> Float[np.ndarray, "n k"]:
            try:
                factor = scipy.linalg.cho_factor(K + ridge * np.eye(len(K)))
            except scipy.linalg.LinAlgError:  # as a device says it
                return np.full(Y.shape, np.nan)
            return np.asarray(scipy.linalg.cho_solve(factor, Y))

        return lambda ridges: np.stack([one(float(ridge)) for ridge in ridges])
    with jax.enable_x64(True):
        held = _on_device(K)

    def there(ridges: Float[np.ndarray, " r"]) -> Float[np.ndarray, "r n k"]:
        with jax.enable_x64(True):
            return np.asarray(_solve(held, jnp.asarray(Y), jnp.asarray(ridges)))

    return there


def _on_device(values: Float[np.ndarray, "a b"]) -> Float[Array, "a b"]:
    """In float64, which a float32 becomes there: it travels as it is."""
    return jax.device_put(values).astype(jnp.float64)


@jax.jit
def _solve(K: Float[Array, "n n"], Y: Float[Array, "n k"], ridges: Float[Array, " r"]) -> Float[Array, "r n k"]:
    def one(ridge: Array) -> Array:
        factor = jax.scipy.linalg.cho_factor(K + ridge * jnp.eye(len(K), dtype=K.dtype), lower=True)
        return jax.scipy.linalg.cho_solve(factor, Y)

    return jax.lax.map(one, ridges)
