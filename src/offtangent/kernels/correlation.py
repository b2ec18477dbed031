"""Correlation kernels: those that Theorem 2 of Allen-Zhu & Li (2019) is about, and a check that a kernel is one.

Section 3: K(x, y) = 𝒦(x₁y₁, …, x_dy_d, x₁², …, x_d², y₁², …, y_d²) for some function 𝒦. That is to say: changing the
sign of one coordinate of both inputs changes nothing, K(s∘x, s∘y) = K(x, y) for all signs s. Every kernel that sees two
inputs through their lengths and their angle is one, and so are all limits of infinite width in Section 3; convolutional
ones as long as nothing is pooled over positions. A network's tangent kernel at finite width is none: its own weights
tell coordinates and signs apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_count, require
from offtangent._errors import InputError, a_kind
from offtangent.kernels import series
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.closed_forms import gaussian
from offtangent.kernels.convolution import convolutional
from offtangent.kernels.fully_connected import deep
from offtangent.kernels.pairs import Pair
from offtangent.kernels.residual import resnet
from offtangent.kernels.solvable import Kernel
from offtangent.kernels.tangent import TangentKernel

PROBES = 16  # corners whose pairs are tried, besides those they go over to when a sign changes
SAME = 1e-9  # of the diagonal: kernels in float64, with room
LONGEST = 1 + 1e-6  # of inputs of the recursive kernel: 1, with room for float32


def _arcsine(pair: Pair, xp: ModuleType) -> Any:
    angle, rest = pair.angles(xp)
    return (rest - angle) / 2


def _arcsine_series(terms: int) -> Float[np.ndarray, " terms"]:
    coefficients = np.pi * series.arc_cosine(0, terms)
    coefficients[0] = 0.0
    return coefficients


arcsine = AngularKernel("arcsine", _arcsine, _arcsine_series, 0.0)
"""arcsin(⟨x, y⟩/‖x‖‖y‖), Section 3 (2): π/2 times the random features of the sign, and odd."""


@dataclass(frozen=True)
class _LinearPlusPower:
    power: int

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:  # noqa: ARG002
        return pair.inner + pair.inner**self.power


def linear_plus_power(power: int) -> AngularKernel:
    """⟨x, y⟩ + ⟨x, y⟩^power: the kernel with the degrees of F + αG(F) where F is linear and G a product of `power`.

    >>> linear_plus_power(4).exact(np.array([[1.0, 1.0]]))
    array([[18.]])
    """
    check_count("power", power, least=2)
    return AngularKernel(f"linear_plus_power({int(power)})", _LinearPlusPower(int(power)))


@dataclass(frozen=True)
class _Recursive:
    depth: int

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        longest = xp.maximum(pair.r, pair.s)
        if xp is np and not (longest <= LONGEST).all():
            raise InputError(
                f"X has a row of length {longest.max():.6g}: the recursive kernel k ← 1/(2 − k) is for ‖x‖ ≤ 1 (at "
                f"⟨x, y⟩ = 1 + 1/{self.depth} it has a pole). Divide X by np.linalg.norm(X, axis=1).max()."
            )
        value = pair.inner
        for _ in range(self.depth):
            value = 1 / (2 - value)
        return xp.where(longest <= LONGEST, value, np.nan)


def recursive(depth: int) -> AngularKernel:
    """Zhang, Lee & Jordan's recursive kernel, Section 3 (3): k ← 1/(2 − k), `depth` times from ⟨x, y⟩, for ‖x‖ ≤ 1.

    Longer inputs are refused; on JAX arrays, whose values may not be known yet, k is NaN there.

    >>> recursive(2).exact(np.eye(2)).round(6)  # 1 on the diagonal, 1/(2 − 1/2) off it
    array([[1.      , 0.666667],
           [0.666667, 1.      ]])
    """
    check_count("depth", depth)
    return AngularKernel(f"recursive({int(depth)})", _Recursive(int(depth)))


CORRELATION_KERNELS: Mapping[str, Callable[[], Kernel]] = MappingProxyType(
    {
        "gaussian": gaussian,
        "arcsine": lambda: arcsine,
        "recursive": lambda: recursive(3),
        "recursive arc-cosine": lambda: deep(3, weight=2**0.5, kind="nngp"),
        "random features": lambda: deep(1, activation="gelu", kind="nngp"),
        "convolutional conjugate": lambda: convolutional(2, patch=3, weight=2**0.5, kind="nngp"),
        "ResNet conjugate": lambda: resnet(weight=2**0.5, kind="nngp"),
        "fully connected NTK": lambda: deep(2, weight=2**0.5),
        "convolutional NTK": lambda: convolutional(2, patch=3, weight=2**0.5),
        "ResNet NTK": lambda: resnet(weight=2**0.5),
        "u + u²": lambda: linear_plus_power(2),
        "u + u⁴": lambda: linear_plus_power(4),
    }
)
"""The kernels of Section 3 by name, with parameters for inputs of length 1.

Cho and Saul's arc-cosine kernel put into itself is (up to a factor 2) the conjugate kernel of a deep ReLU network, and
E_w[φ(⟨w, x⟩) φ(⟨w, y⟩)] for any φ is `deep(1, activation=φ, kind="nngp")`. All but the convolutional ones depend on
lengths and angle alone, so that `CubeKernel` has them in any dimension; those two need `cube_coefficients`.
"""


def correlation_kernel(kernel: object) -> Kernel:
    """The correlation kernel of this name; a kernel itself is returned as it is.

    >>> correlation_kernel("u + u⁴").name
    'linear_plus_power(4)'
    """
    if isinstance(kernel, str):
        if kernel not in CORRELATION_KERNELS:
            known = ", ".join(map(repr, CORRELATION_KERNELS))
            raise InputError(f"kernel={kernel!r}: expected one of {known}, or a kernel.")
        return CORRELATION_KERNELS[kernel]()
    require(
        not isinstance(kernel, TangentKernel),
        "A tangent kernel at finite width is no correlation kernel: it depends on the draw of the weights, which "
        "tell coordinates and their signs apart, and not on the products x_j y_j and the squares alone. Take its "
        "limit of infinite width: kernels.residual.resnet() for networks.ResNet, kernels.deep(depth) for fully "
        "connected ones. For a regression with this very kernel take K.with_ridge(ridge).fit(Y).",
    )
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"kernel is {a_kind(kernel)}: expected a name from kernels.correlation.CORRELATION_KERNELS, or a kernel "
            "such as kernels.gaussian(), with all of name, kernel(X1, X2), kernel.diag(X) and kernel.exact(X1, X2)."
        )
    return kernel


def check_correlation(kernel: object, dim: int) -> Kernel:
    """Refuse a kernel that is no correlation kernel on the cube {±1/√dim}^dim; a name is looked up.

    It is tried on 16 corners: its values must be finite, and no eigenvalue of their matrix negative beyond rounding.
    The rest is `check_products`. What passes may still be none elsewhere; what fails is none. Time dim evaluations of a
    16 × 16 block, or one for a kernel of lengths and angle.
    """
    found = check_products(kernel, dim)
    K = _on_probes(found, _probes(dim))
    least = float(np.linalg.eigvalsh(K)[0])
    if least < -PROBES * SAME * np.abs(K).max():
        raise InputError(
            f"{found.name} is not positive definite: its matrix on {PROBES} corners of the cube has the eigenvalue "
            f"{least:.3g}. A kernel is a sum of products of features, and has none below 0: has it lost a sign?"
        )
    return found


def check_products(kernel: object, dim: int) -> Kernel:
    """Refuse a kernel that sees more than the products x_j y_j, on the cube {±1/√dim}^dim; a name is looked up.

    A kernel of lengths and angle sees no more by its form. Any other is tried: on 16 corners, K(x, y) may not change
    when coordinate j of both changes its sign, for each j.
    """
    found = correlation_kernel(kernel)
    check_count("dim", dim)
    if isinstance(found, AngularKernel):
        return found
    X = _probes(dim)
    before = _on_probes(found, X)
    size = float(np.abs(np.diagonal(before)).max())
    for j in range(dim):
        turned = X.copy()
        turned[:, j] *= -1
        after = _on_probes(found, turned)
        off = np.abs(after - before)
        if not off.max() <= SAME * size:
            a, b = np.unravel_index(int(off.argmax()), off.shape)
            raise InputError(
                f"{found.name} is no correlation kernel: k(x, y) goes from {before[a, b]:.6g} to {after[a, b]:.6g} "
                f"when coordinate {j} of both x and y changes its sign. Theorem 2 of Allen-Zhu & Li speaks of kernels "
                "of the products x_j y_j and the squares only: Gaussian, arc-cosine, all that depend on lengths and "
                "angle. For a network's kernel take its limit of infinite width (kernels.deep, "
                "kernels.residual.resnet)."
            )
    return found


def _probes(dim: int) -> Float[np.ndarray, "n d"]:
    return np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, dim)) / np.sqrt(dim)


def _on_probes(kernel: Kernel, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    values = np.asarray(kernel.exact(X))
    if bad := int((~np.isfinite(values)).sum()):
        raise InputError(
            f"{kernel.name} gives {bad} values that are NaN or infinite, of {values.size} between corners of the cube "
            "{±1/√d}^d, d = " + f"{X.shape[1]}: a kernel is finite on every pair of inputs."
        )
    return values
