"""The three-layer residual network of Allen-Zhu & Li (2019), eq. (2.1), in the limit of infinite width.

    out(x) = m^{−1/2} A (σ(h) + σ(h')),   h = weight·Wx + bias·b₁,   h' = (weight/√m) Uσ(h) + bias·b₂

with σ the ReLU and all of A, W, U, b from N(0, 1): (2.1) in the NTK parametrisation of `deep`. As in the paper, W, U
and the biases are trained for the tangent kernel, and A alone for the conjugate one. (With the paper's own scales, U
from N(0, 1/m), the part of U would be m times the others; and with U = VA, V of m × k, the limit would be random.)

With Σ the covariance of h between two inputs, and E[σσ], E[σ'σ'] the moments under it (primes: those of h'):

    Σ = weight² xᵀx' + bias²,     Σ' = weight² E[σσ] + bias²
    tangent    Θ = E[σ'σ'] Σ (1 + weight² E'[σ'σ']) + E'[σ'σ'] Σ'
    conjugate  E[σσ] + E'[σσ] + E[σ]E'[σ] + E'[σ]E[σ]

since a neuron's h and h' are independent in the limit, but share their entry of A.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from offtangent._arguments import check_not_negative, check_positive
from offtangent._checks import require
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.moments import relu_moments
from offtangent.kernels.pairs import Pair


@dataclass(frozen=True)
class _ResNet:
    weight: float
    bias: float
    tangent: bool

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        first = pair.scaled(self.weight).with_constant(self.bias, xp)
        below = relu_moments(first, xp, slopes=self.tangent)
        second = below.pair.scaled(self.weight).with_constant(self.bias, xp)
        above = relu_moments(second, xp, slopes=self.tangent)
        if self.tangent:
            through = below.slope * first.inner * (1 + self.weight**2 * above.slope)
            return through + above.slope * second.inner
        means = first.r * second.s + second.r * first.s  # E[relu(u)] = r/√2π
        return below.value + above.value + means / (2 * np.pi)


def resnet(*, weight: float | int = 1.0, bias: float | int = 0.0, kind: str = "ntk") -> AngularKernel:
    """The kernel of the three-layer ResNet: tangent ("ntk", hidden weights trained) or conjugate ("nngp", A alone).

    `weight` and `bias` are standard deviations, as in `deep`. Time O(1) an entry beside the inner products.

    >>> resnet().exact(np.eye(2)).round(6)  # ½ + ½·½ + ½·½ on the diagonal
    array([[1.      , 0.047994],
           [0.047994, 1.      ]])
    """
    require(
        kind in ("ntk", "nngp"), f"kind={kind!r}: it is 'ntk' (hidden weights trained) or 'nngp' (the last layer only)."
    )
    check_positive(weight=weight)
    check_not_negative(bias=bias)
    form = _ResNet(float(weight), float(bias), kind == "ntk")
    return AngularKernel(f"resnet(weight={form.weight!r}, bias={form.bias!r}, {kind})", form)
