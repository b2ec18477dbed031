"""The feature covariance Σ = E[φφᵀ] for inputs uniform on the sphere, exactly, from harmonic expansions.

Nichani, Bai & Lee (2022), eq. (14) and Appendix A. For x = √d u, u uniform on the unit sphere, and a unit vector w, the
feature σ'(wᵀx) x is the gradient of σ(wᵀx) in w: along the sphere the spherical gradient of Σ_k λ_k(σ) B Q_k(wᵀu),
along w it is w h(wᵀx) with h(z) = zσ'(z). Harmonics of different degrees in u are orthogonal, so with t = wᵀw',

    G = Σ_k λ_k(σ)² B(d,k) Q_k,   M = Σ_k λ_k(σ) λ_k(h) B(d,k) Q_k,   H = Σ_k λ_k(h)² B(d,k) Q_k,   P_w = I − wwᵀ,
    E[σ'(wᵀx) σ'(w'ᵀx) xxᵀ] = P_w (G'(t) I + G''(t) w'wᵀ) P_w' + M'(t) (P_w w'w'ᵀ + wwᵀP_w') + H(t) ww'ᵀ.

The block of neurons r, s is that times a_r a_s/m. What degrees up to K give is the covariance of φ's projection on
polynomials of degree K: below Σ as a matrix, and short of it in trace by a known amount, the `tail`.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from offtangent._checks import check_count
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.special.activations import Activation
from offtangent.special.sphere import gegenbauers, harmonic_coefficients, harmonic_dimension
from offtangent.theory.bai_lee.signs import check_net
from offtangent.theory.nichani.tangent import folded_scale, folded_start

UNIT = 1e-5  # how far from 1 the length of a column of W₀ may be, in float32
AT_ONCE = 1 << 14  # entries of a table for which all polynomials are held


class SphereCovariance(eqx.Module):
    """Σ on folded weights V (d × h) as an operator: `covariance(V)` is ΣV. NumPy on the host, JAX after `on_device`.

    A product costs three of (d × h)·(h × h); four h × h tables are held. Axes in front of V are a batch.
    """

    start: Float[AnyArray, "d h"]  # W₀, columns of unit length
    slope: Float[AnyArray, "h h"]  # G', with a_r a_s/m in it, as in the other three
    curve: Float[AnyArray, "h h"]  # G''
    mixed: Float[AnyArray, "h h"]  # M'
    radial: Float[AnyArray, "h h"]  # H

    @classmethod
    def of(cls, net: TwoLayer, *, degree: int) -> "SphereCovariance":
        """From harmonics up to `degree`. Time O(degree·h²), once."""
        check_net(net)
        start = folded_start(net)
        lengths = np.linalg.norm(start, axis=0)
        if not has_unit_columns(net):
            raise InputError(
                f"The columns of W₀ have lengths from {lengths.min():.3g} to {lengths.max():.3g}: the harmonic "
                'expansion is for unit vectors. Use TwoLayer.symmetric(law="sphere", ...), or of_samples.'
            )
        start = start / lengths
        tangent, radial = amplitudes(net.activation, net.dim, degree)
        tables = _tables(start, tangent, radial)
        scale = folded_scale(net)
        for table in tables:
            table *= scale
            table *= scale[:, None]
        return cls(start, *tables)

    def __call__(self, V: Float[AnyArray, "*b d h"]) -> Any:
        """ΣV, folded."""
        along = (self.start * V).sum(axis=-2)  # w_sᵀv_s
        across = V - self.start * along[..., None, :]  # P_s v_s
        inner = self.start.T @ across  # w_rᵀP_s v_s
        tangential = across @ self.slope  # the tables are symmetric
        mixed = self.curve * inner + self.mixed * along[..., None, :]
        tangential = tangential + self.start @ mixed.swapaxes(-1, -2)
        tangential = tangential - self.start * (self.start * tangential).sum(axis=-2)[..., None, :]
        radial = (self.mixed * inner).sum(axis=-1) + along @ self.radial
        return tangential + self.start * radial[..., None, :]

    def on_device(self, dtype: jnp.dtype) -> "SphereCovariance":
        """The same with JAX arrays of this dtype, jittable."""
        return jax.tree.map(lambda table: jnp.asarray(table, dtype), self)


def has_unit_columns(net: TwoLayer) -> bool:
    """Whether every column of W₀ has length 1, up to the rounding of float32."""
    return bool(np.abs(np.linalg.norm(folded_start(net), axis=0) - 1).max() <= UNIT)


def amplitudes(
    activation: Activation, dim: int, degree: int
) -> tuple[Float[np.ndarray, " orders"], Float[np.ndarray, " orders"]]:
    """λ_k(σ)√B(d,k) and λ_k(h)√B(d,k), h(z) = zσ'(z), for k = 0, …, degree."""
    check_count("degree", degree)
    slope = activation.derivative(1)
    roots = np.sqrt([float(harmonic_dimension(dim, k)) for k in range(degree + 1)])
    tangent = harmonic_coefficients(activation, dim=dim, degree=degree)
    radial = harmonic_coefficients(lambda z: z * slope(z), dim=dim, degree=degree, kinks=activation.kinks)
    return tangent * roots, radial * roots


def trace_parts(activation: Activation, dim: int, degree: int) -> tuple[float, Float[np.ndarray, " orders"]]:
    """E‖σ'(wᵀx) x‖² = d E[σ'²], and what each degree of x carries of it: λ_k(σ)²B k(k+d−2) + λ_k(h)²B."""
    tangent, radial = amplitudes(activation, dim, degree)
    k = np.arange(degree + 1)
    slope = activation.derivative(1)
    (second,) = harmonic_coefficients(lambda z: slope(z) ** 2, dim=dim, degree=0, kinks=activation.kinks)
    return dim * float(second), tangent**2 * k * (k + dim - 2) + radial**2


def _tables(
    start: Float[np.ndarray, "d h"], tangent: Float[np.ndarray, " orders"], radial: Float[np.ndarray, " orders"]
) -> list[Float[np.ndarray, "h h"]]:
    """G', G'', M' and H at all pairs of columns: Q_k' = k(k+d−2)/(d−1) Q_{k−1}, the latter in dimension d + 2."""
    dim, h = start.shape
    k = np.arange(len(tangent))
    first = (k * (k + dim - 2) / (dim - 1))[1:]
    second = (first * (k[1:] - 1) * (k[1:] + dim - 1) / (dim + 1))[1:]
    tables = [np.empty((h, h)) for _ in range(4)]
    block = max(1, AT_ONCE // h)
    for at in range(0, h, block):
        rows = slice(at, min(at + block, h))
        cosines = np.clip(start[:, rows].T @ start[:, at:], -1.0, 1.0)
        once = gegenbauers(len(first) - 1, cosines, dim=dim + 2)
        values = [
            np.tensordot(tangent[1:] ** 2 * first, once, 1),
            np.zeros_like(cosines),
            np.tensordot(tangent[1:] * radial[1:] * first, once, 1),
            np.tensordot(radial**2, gegenbauers(len(k) - 1, cosines, dim=dim), 1),
        ]
        if len(second):
            values[1] = np.tensordot(tangent[2:] ** 2 * second, gegenbauers(len(second) - 1, cosines, dim=dim + 4), 1)
        for table, value in zip(tables, values, strict=True):
            table[rows, at:] = value
            table[at:, rows] = value.T
    return tables


def series_tail(net: TwoLayer, degree: int) -> tuple[float, float]:
    """The trace of Σ, and the part of it that degrees beyond `degree` carry; rounding may leave it at −10⁻¹⁵."""
    whole, parts = trace_parts(net.activation, net.dim, degree)
    scale = float(np.sum(folded_scale(net) ** 2))
    return scale * whole, scale * (whole - math.fsum(parts))
