"""Kernels with a closed form, named after the network whose limit of infinite width they are.

The two-layer network is f(x) = m^{-1/2} Σ_r a_r relu(w_rᵀx), with w_r ~ N(0, I) and a_r = ±1 or N(0, 1). Its tangent
kernel is the sum of what each layer contributes when it is trained:

    relu_hidden  E[xᵀx' 1{wᵀx ≥ 0} 1{wᵀx' ≥ 0}] = xᵀx' (π − θ) / 2π     H∞ of Arora et al. (2019), eq. (3)
    relu_output  E[relu(wᵀx) relu(wᵀx')] = ‖x‖‖x'‖ J_1(θ) / 2π          the conjugate kernel, or NNGP
    relu_both    their sum                                            the neural tangent kernel

With relu³/6 instead of the ReLU, as in Bai & Lee (2020), where σ' = relu²/2, the hidden layer contributes

    relu3_hidden E[xᵀx' σ'(wᵀx) σ'(wᵀx')] = xᵀx' ‖x‖²‖x'‖² J_2(θ) / 8π

J_1(θ) = sin θ + (π − θ) cos θ, J_2(θ) = 3 sin θ cos θ + (π − θ)(1 + 2cos²θ). All are accurate to rounding where the
angle is; relu_output also relative to its own value, which vanishes like (π − θ)³ for opposite inputs.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from offtangent._arguments import check_not_negative, check_positive
from offtangent._checks import check_count, require
from offtangent._errors import shown
from offtangent.kernels import series
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.arcs import arc1, arc2
from offtangent.kernels.moments import erf_moments
from offtangent.kernels.pairs import Pair


def _relu_hidden(pair: Pair, xp: ModuleType) -> Any:
    return pair.inner * pair.angles(xp)[1] / (2 * np.pi)


def _relu_output(pair: Pair, xp: ModuleType) -> Any:
    return pair.r * pair.s * arc1(pair, pair.angles(xp), xp)[0] / (2 * np.pi)


def _relu_both(pair: Pair, xp: ModuleType) -> Any:
    angles = pair.angles(xp)
    return pair.r * pair.s * (pair.cosine * angles[1] + arc1(pair, angles, xp)[0]) / (2 * np.pi)


def _relu3_hidden(pair: Pair, xp: ModuleType) -> Any:
    return pair.inner * (pair.r * pair.s) ** 2 * (arc2(pair, xp) / (8 * np.pi))


def _tensor_square(pair: Pair, xp: ModuleType) -> Any:  # noqa: ARG001
    return pair.inner**2


relu_hidden = AngularKernel("relu_hidden", _relu_hidden, series.relu_hidden, 1.0)
"""The tangent kernel xᵀx' (π − θ) / 2π of a two-layer ReLU network of infinite width whose hidden layer is trained: the
H∞ of Arora et al. (2019), eq. (3). How a kernel is called, `kernels.angular.AngularKernel` says."""
relu_output = AngularKernel("relu_output", _relu_output, series.relu_output, 1.0)
relu_both = AngularKernel("relu_both", _relu_both, series.relu_both, 1.0)
relu3_hidden = AngularKernel("relu3_hidden", _relu3_hidden, series.relu3_hidden, 3.0)
tensor_square = AngularKernel("tensor_square", _tensor_square, series.tensor_square, 2.0)
"""(xᵀx')², the inner product of x ⊗ x and x' ⊗ x': what quadratic networks can tell apart (Ge, Wang & Zhao 2019)."""


@dataclass(frozen=True)
class _ArcCosine:
    order: int

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        if self.order == 0:
            return pair.angles(xp)[1] / np.pi
        if self.order == 1:
            return pair.r * pair.s * (arc1(pair, pair.angles(xp), xp)[0] / np.pi)
        return (pair.r * pair.s) ** 2 * (arc2(pair, xp) / np.pi)

    def series(self, terms: int) -> np.ndarray:
        return series.arc_cosine(self.order, terms)


def arc_cosine(order: int) -> AngularKernel:
    """k_n = (‖x‖‖x'‖)ⁿ J_n(θ) / π, Cho and Saul (2009), eq. (3): 2 E[relu(wᵀx)ⁿ relu(wᵀx')ⁿ], w ~ N(0, I).

    Order 0 is of the step function, order 1 of the ReLU (twice `relu_output`), order 2 of its square.

    >>> arc_cosine(1).exact(np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    check_count("order", order, least=0)
    require(order <= 2, f"arc_cosine(order={shown(order)}): the order is 0, 1 or 2.")
    form = _ArcCosine(int(order))
    return AngularKernel(f"arc_cosine({form.order})", form, form.series, float(form.order))


@dataclass(frozen=True)
class _Gaussian:
    width: float

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        return xp.exp(-pair.scaled(1 / self.width).squared_distance() / 2)


def gaussian(width: float = 1.0) -> AngularKernel:
    """Make the Gaussian kernel k(x, x') = exp(−‖x − x'‖² / 2width²).

    It depends on lengths and angle alone, since ‖x − x'‖² = (‖x‖ − ‖x'‖)² + 2‖x‖‖x'‖(1 − cos θ). Time O(d) an entry.

    Args:
        width: The distance at which k is exp(−1/2).

    Returns:
        The kernel: `kernel(X1, X2)`, `kernel.exact(X1, X2)`, `kernel.diag(X)`.

    Raises:
        InputError: If `width` is not positive and finite.

    >>> gaussian(2.0).exact(np.array([[0.0], [2.0]])).round(6)
    array([[1.      , 0.606531],
           [0.606531, 1.      ]])
    """
    check_positive(width=width)
    return AngularKernel(f"gaussian({float(width)!r})", _Gaussian(float(width)))


@dataclass(frozen=True)
class _ErfOutput:
    weight: float
    bias: float

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        return erf_moments(pair.scaled(self.weight).with_constant(self.bias, xp), xp, slopes=False).value


def erf_output(*, weight: float = 1.0, bias: float = 0.0) -> AngularKernel:
    """The conjugate kernel of one hidden layer of erf, Williams (1997), eq. (11); to rounding at both ends ±1 too.

    It is E[erf(u) erf(u')] = (2/π) arcsin(2k / √((1 + 2q)(1 + 2q'))) for u = weight·wᵀx + bias·b, w ~ N(0, I) and
    b ~ N(0, 1), where k = weight² xᵀx' + bias², and q, q' are k(x, x), k(x', x').

    >>> erf_output().exact(np.array([[1.0]])).round(6)  # (2/π) arcsin(2/3)
    array([[0.464559]])
    """
    check_positive(weight=weight)
    check_not_negative(bias=bias)
    form = _ErfOutput(float(weight), float(bias))
    return AngularKernel(f"erf_output(weight={form.weight!r}, bias={form.bias!r})", form)
