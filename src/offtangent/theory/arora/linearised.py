"""The network that never leaves its tangent space: predictions and weights in closed form.

Arora et al. (2019), Sections 4.1 and 5.2. Z(0) holds the gradients of the outputs at the initial weights, H(0) =
Z(0)ᵀZ(0). The sequences

    ũ(k+1) = ũ(k) − ηH(ũ(k) − y),                       ũ(0) = 0                   (7)
    W̃(k+1) = W̃(k) − ηZ(0)(Z(0)ᵀW̃(k) − y),               W̃(0) = 0                  (11)

have the closed forms ũ(k) = y − (I − ηH)ᵏy and W̃(k) = Z(0)T_k y with T_k = (I − (I − ηH(0))ᵏ)H(0)⁻¹, and so
W̃(∞) = Z(0)H(0)⁻¹y, of length √(yᵀH(0)⁻¹y).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_entries, check_inputs, check_magnitude, require
from offtangent._errors import InputError
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_displacement
from offtangent.theory.arora.dynamics import check_rate


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Z at some weights, as an operator: `Z @ v` is Σᵢ vᵢ ∂u_i/∂W, d × m. Never stored as a md × n matrix."""

    X: Float[np.ndarray, "n d"]
    slopes: Float[np.ndarray, "n m"]  # a_r σ'(w_rᵀxᵢ) / √m

    @classmethod
    def of(cls, net: TwoLayer, X: Float[np.ndarray, "n d"], W: Float[np.ndarray, "d m"] | None = None) -> "Features":
        """Those of a two-layer network at W₀ + W, by default at its initialisation, in float64. Memory O(nm)."""
        inputs = check_inputs(X)
        require(inputs.shape[1] == net.dim, f"X has shape {inputs.shape}: expected (n, {net.dim}) for this network.")
        if W is not None:
            check_displacement(net.W0, W)
            check_entries(W=np.asarray(W))
        weights = np.asarray(net.W0, np.float64) + (0.0 if W is None else np.asarray(W, np.float64))
        with jax.enable_x64(True):
            derivative = net.activation.derivative(1)(jnp.asarray(inputs @ weights, jnp.float64))
            return cls(inputs, np.asarray(derivative) * np.asarray(net.a, np.float64) / net.width**0.5)

    def __matmul__(self, v: Float[np.ndarray, "n"]) -> Float[np.ndarray, "d m"]:
        """Z v. Time O(ndm)."""
        return self.X.T @ (np.asarray(v, np.float64)[:, None] * self.slopes)

    def adjoint(self, W: Float[np.ndarray, "d m"]) -> Float[np.ndarray, "n"]:
        """Zᵀ W: the change of the outputs, to first order, when the weights change by W. Time O(ndm)."""
        return np.sum((self.X @ np.asarray(W, np.float64)) * self.slopes, axis=1)

    def gram(self) -> Float[np.ndarray, "n n"]:
        """H = ZᵀZ. Time O(n²(d + m))."""
        return (self.X @ self.X.T) * (self.slopes @ self.slopes.T)


def linearised_outputs(
    spectrum: Spectrum, y: Float[np.ndarray, "n"], *, rate: float, steps: Int[np.ndarray, "t"]
) -> Float[np.ndarray, "t n"]:
    """ũ(k) of eq. (7) at every k in `steps`. Time O(tnr). What lies outside r known eigenvectors stays at zero.

    >>> linearised_outputs(Spectrum.of(np.diag([1.0, 0.5])), np.ones(2), rate=1.0, steps=np.array([0, 1, 2]))
    array([[0.  , 0.  ], [1.  , 0.5 ], [1.  , 0.75]])
    """
    check_rate(spectrum, rate)
    _check_labels(len(spectrum.vectors), y)
    _check_steps(steps)
    learnt = np.maximum(spectrum.values, 0.0) * _sums(spectrum.values, rate, steps)
    return (learnt * (spectrum.vectors.T @ np.asarray(y, np.float64))) @ spectrum.vectors.T


def linearised_distance(
    spectrum: Spectrum, y: Float[np.ndarray, "n"], *, rate: float, steps: Int[np.ndarray, "t"]
) -> Float[np.ndarray, "t"]:
    """‖W̃(k)‖_F = √(yᵀ T_k H T_k y), which rises to √(yᵀH⁻¹y). Time O(nr + tr).

    With the spectrum of H(0) it is exact; with that of H∞, the limit of infinite width.
    """
    check_rate(spectrum, rate)
    _check_labels(len(spectrum.vectors), y)
    _check_steps(steps)
    weights = np.maximum(spectrum.values, 0.0) * spectrum.energy(y)
    return np.sqrt((_sums(spectrum.values, rate, steps) ** 2 * weights).sum(axis=1))


def linearised_weights(
    features: Features, y: Float[np.ndarray, "n"], *, rate: float | None = None, steps: int | None = None
) -> Float[np.ndarray, "d m"]:
    """W̃(k) of eq. (11) after `steps` steps of size `rate`, or without both the limit W̃(∞) = Z(0)H(0)⁻¹y.

    Time O(n²(d + m) + n³ + ndm). The limit exists when H(0) is positive definite.
    """
    _check_labels(len(features.X), y)
    spectrum = Spectrum.of(features.gram())
    projections = spectrum.vectors.T @ np.asarray(y, np.float64)
    if (rate is None) != (steps is None):
        raise InputError("rate and steps go together: give both for W̃(k), or neither for its limit.")
    if rate is not None and steps is not None:
        check_rate(spectrum, rate)
        _check_steps(np.array([steps]))
        sums = _sums(spectrum.values, rate, np.array([steps]))[0]
    else:
        smallest, largest = spectrum.values[-1], spectrum.values[0]
        if not smallest > len(spectrum.values) * np.finfo(np.float64).eps * largest:
            raise InputError(
                f"H(0) is singular to rounding (eigenvalues from {smallest:.3g} to {largest:.3g}): the sequence need "
                "not fit these labels. Use a wider network, or drop repeated inputs."
            )
        sums = 1 / spectrum.values
    return features @ (spectrum.vectors @ (sums * projections))


def _check_labels(count: int, y: Float[np.ndarray, "n"]) -> None:
    check_entries(y=np.asarray(y))
    require(np.shape(y) == (count,), f"y has shape {np.shape(y)}: expected ({count},), one label for each input.")
    check_magnitude(3, y=y)


def _check_steps(steps: Int[np.ndarray, "t"]) -> None:
    kind = np.asarray(steps).dtype.kind
    whole = np.ndim(steps) == 1 and kind in "iu"
    require(whole, f"steps={steps!r}: expected a vector of whole numbers of gradient steps, such as np.array([0, 5]).")


def _sums(values: Float[np.ndarray, "r"], rate: float, steps: Int[np.ndarray, "t"]) -> Float[np.ndarray, "t r"]:
    """η Σ_{t<k} (1 − ηλ)ᵗ = (1 − (1 − ηλ)ᵏ)/λ, without cancellation where ηλ is small; ηk where λ is zero."""
    k = np.asarray(steps)[:, None]
    if (k < 0).any():
        raise InputError(f"steps holds {k.min()}: numbers of gradient steps are zero or positive.")
    values = np.maximum(values, 0.0)  # those of rounding
    product = rate * values
    with np.errstate(divide="ignore", invalid="ignore"):
        small = -np.expm1(k * np.log1p(-np.minimum(product, 0.5)))
        large = 1 - (1 - product) ** k
        return np.where(values > 0, np.where(product < 0.5, small, large) / values, rate * k.astype(np.float64))
