"""Kernels that see two inputs only through their lengths and the angle between them.

The kernel of a two-layer ReLU network whose first layer is trained, Arora et al. (2019), eq. (3):

    H∞(x, x') = E_{w~N(0,I)} [xᵀx' 1{wᵀx ≥ 0} 1{wᵀx' ≥ 0}] = xᵀx' (π − θ) / 2π,   θ = arccos(cos(x, x'))

The angle is the delicate part: arccos turns a rounding error ε of the cosine into √(2ε) near ±1. `exact`
therefore measures small angles by the chord between the two directions, θ = 2 arcsin(‖x̂ − x̂'‖/2), which
has full relative accuracy, and angles near π by the chord to the opposite direction.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.data.checks import check_inputs

NEAR = 1e-3  # from 1 − |cos| below this on, the angle is measured by chords: arccos would lose 4 digits and more
PAIRS_AT_ONCE = 1 << 16

AnyArray = Array | np.ndarray


@dataclass(frozen=True)
class AngularKernel:
    """A kernel k(‖x‖, ‖x'‖, θ). `of_angle` is written with `xp` = numpy or jax.numpy.

    `kernel(X1, X2)` is jittable, in the dtype of its inputs. `kernel.exact(X1, X2)` works on the host in
    float64 and is accurate to rounding at every angle.
    """

    name: str
    of_angle: Callable[..., AnyArray]

    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"]) -> Float[Array, "p q"]:
        """K(X1, X2). Time O(pqd), memory O(pq). Near cosine ±1 the angle carries an error of √(2ε)."""
        r, s = jnp.linalg.norm(X1, axis=1)[:, None], jnp.linalg.norm(X2, axis=1)[None, :]
        inner = jnp.matmul(X1, X2.T, precision=jax.lax.Precision.HIGHEST)
        scale = r * s
        cosine = jnp.clip(inner / jnp.where(scale > 0, scale, 1), -1, 1)
        return jnp.asarray(self.of_angle(r, s, jnp.arccos(cosine), jnp))

    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None
    ) -> Float[np.ndarray, "p q"]:
        """K(X1, X2), or the symmetric K(X1, X1), in float64. Time O(pqd), memory 3pq floats."""
        X1 = check_inputs(X1)
        symmetric = X2 is None
        X2 = X1 if X2 is None else check_inputs(X2)
        U, r = _polar(X1)
        V, s = (U, r) if symmetric else _polar(X2)
        angle = _angles(U, V)
        if symmetric:
            np.fill_diagonal(angle, 0.0)
        return np.asarray(self.of_angle(r, s.T, angle, np))


def angles(X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "p q"]:
    """The angle between every pair of rows, in [0, π], to an absolute error of a few ε at every angle.

    A zero row has no direction; its angle to anything is given as π/2.
    """
    return _angles(_polar(X1)[0], _polar(X2)[0])


def _angles(U: Float[np.ndarray, "p d"], V: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "p q"]:
    cosine = np.clip(U @ V.T, -1.0, 1.0)
    rows, columns = np.nonzero(np.abs(cosine) > 1 - NEAR)
    signs = np.sign(cosine[rows, columns])
    angle = np.arccos(cosine, out=cosine)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        i, j, sign = rows[part], columns[part], signs[part]
        chord = np.linalg.norm(U[i] - sign[:, None] * V[j], axis=1)
        small = 2 * np.arcsin(np.minimum(chord / 2, 1.0))
        angle[i, j] = np.where(sign > 0, small, np.pi - small)
    return angle


def _polar(X: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n 1"]]:
    """Directions and lengths; a zero row has the direction zero."""
    largest = np.abs(X).max(axis=1, keepdims=True)  # dividing first keeps tiny and huge rows from under- or overflow
    X = X / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1), largest * length


def _relu_hidden(r: AnyArray, s: AnyArray, angle: AnyArray, xp: object) -> AnyArray:
    cos, pi = xp.cos, xp.pi  # type: ignore[attr-defined]
    return r * s * cos(angle) * (pi - angle) / (2 * pi)


relu_hidden = AngularKernel("relu_hidden", _relu_hidden)
