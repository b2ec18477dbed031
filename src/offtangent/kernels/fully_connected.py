"""Fully connected networks of any depth in the limit of infinite width: tangent kernel and conjugate kernel.

The network, in the NTK parametrisation (Jacot et al. 2018), with all W and b drawn from N(0, 1) and all trained:

    h¹ = weight·W¹x + bias·b¹,   hˡ⁺¹ = (weight/√m) Wˡ⁺¹σ(hˡ) + bias·bˡ⁺¹,   l = 1, …, depth,   f = h^{depth+1}

`depth` counts the activations. With `residual`, hˡ is added to hˡ⁺¹ for l < depth: depth − 1 blocks x + Wσ(x) + b
between a first layer and a readout σ, W, b. In neural-tangents' words, without `residual`:

    stax.serial(Dense(m, W_std, b_std), *[Relu(), Dense(m, W_std, b_std)] * (depth − 1), Relu(), Dense(1, W_std, b_std))

with W_std = weight and b_std = bias, except that the first layer here has no factor 1/√d: `deep(...)` of X/√d is
stax's kernel of X.

The recursion, with Σ the covariance of h between two inputs and Θ its tangent kernel:

    Σ¹ = Θ¹ = weight² xᵀx' + bias²
    A = E[σ(u)σ(v)], B = E[σ'(u)σ'(v)],   (u, v) ~ N(0, Σˡ)
    Σˡ⁺¹ = weight² A + bias²  (+ Σˡ),   Θˡ⁺¹ = weight² A + bias² + weight² B Θˡ  (+ Θˡ)

Σˡ is carried as a pair of lengths and the distances 1 ∓ cos, which for the ReLU stay accurate at every angle.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_not_negative, check_positive
from offtangent._checks import check_count, check_inputs, require
from offtangent._errors import InputError
from offtangent.kernels import series
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.expansion import Expansion
from offtangent.kernels.moments import CLOSED, Layer, Moments
from offtangent.kernels.pairs import Pair, polar
from offtangent.special import activation as find_activation
from offtangent.special.activations import Activation, relu

UNROLLED = 6  # depth up to which JAX sees the layers one by one, which runs up to three times as fast


@dataclass(frozen=True)
class _Deep:
    depth: int
    layer: Layer
    weight: float
    bias: float
    residual: bool
    tangent: bool

    def __call__(self, pair: Pair, xp: ModuleType) -> Any:
        pair = pair.scaled(self.weight).with_constant(self.bias, xp)
        state = (pair, pair.inner)
        if xp is np or self.depth <= UNROLLED:
            for _ in range(self.depth - 1):
                state = self._hidden(*state, xp)
        else:  # deeper ones are not compiled layer by layer

            def hidden(state: tuple[Pair, Any], _: None) -> tuple[tuple[Pair, Any], None]:
                return self._hidden(*state, jnp), None

            state = jax.lax.scan(hidden, state, length=self.depth - 1)[0]
        return self._step(*state, False, xp)[1]

    def _hidden(self, pair: Pair, kernel: Any, xp: ModuleType) -> tuple[Pair, Any]:
        moments, kernel = self._step(pair, kernel, self.residual, xp)
        branch = moments.pair.scaled(self.weight).with_constant(self.bias, xp)
        return pair.joined(branch, xp) if self.residual else branch, kernel

    def _step(self, pair: Pair, kernel: Any, skip: bool, xp: ModuleType) -> tuple[Moments, Any]:
        """One application of σ, W and b: the moments of σ, and Θˡ⁺¹ (or, with the readout alone trained, Σˡ⁺¹)."""
        moments = self.layer(pair, xp, slopes=self.tangent)
        value = self.weight**2 * moments.value + self.bias**2
        if self.tangent:
            value = value + kernel * (self.weight**2 * moments.slope + (1 if skip else 0))
        return moments, value

    def remainder(self, lengths: np.ndarray) -> float:
        """The largest over all layers, for inputs of these lengths."""
        if not isinstance(self.layer, Expansion):
            return 0.0
        pair = Pair(lengths, lengths, np.zeros_like(lengths), np.full_like(lengths, 2))
        state, largest = (pair.scaled(self.weight).with_constant(self.bias, np), 0.0), 0.0
        for _ in range(self.depth):
            largest = max(largest, self.layer.remainder(state[0].r, self.tangent))
            state = self._hidden(*state, np)
        return largest

    def series(self, terms: int) -> np.ndarray:
        return series.deep_relu(self.depth, self.weight, self.residual, self.tangent, terms)


def deep(
    depth: int,
    *,
    activation: str | Activation | Callable[..., object] = "relu",
    weight: float = 1.0,
    bias: float = 0.0,
    residual: bool = False,
    kind: str = "ntk",
    terms: int = 128,
) -> AngularKernel:
    """Make the kernel of a fully connected network of infinite width with `depth` hidden layers.

    The network, in the NTK parametrisation (Jacot et al. 2018), has all W and b drawn from N(0, 1):

        h¹ = weight·W¹x + bias·b¹,   hˡ⁺¹ = (weight/√m) Wˡ⁺¹σ(hˡ) + bias·bˡ⁺¹,   l = 1, …, depth,   f = h^{depth+1}

    With Σ the covariance of h between two inputs and Θ its tangent kernel, Σ¹ = Θ¹ = weight² xᵀx' + bias², and

        A = E[σ(u)σ(v)], B = E[σ'(u)σ'(v)],   (u, v) ~ N(0, Σˡ)
        Σˡ⁺¹ = weight² A + bias²  (+ Σˡ),     Θˡ⁺¹ = weight² A + bias² + weight² B Θˡ  (+ Θˡ)

    with the terms in brackets where hˡ is added to hˡ⁺¹. The tangent kernel is the last Θ, the conjugate kernel the
    last Σ. In neural-tangents' words, without `residual`,

        stax.serial(Dense(m, W_std, b_std), *[Relu(), Dense(m, W_std, b_std)] * (depth − 1), Relu(),
                    Dense(1, W_std, b_std))   with W_std = weight, b_std = bias,

    except that the first layer here has no factor 1/√d: `deep(...)` of X/√d is stax's kernel of X. `deep(1)` is
    `closed_forms.relu_both`, and with kind="nngp" `closed_forms.relu_output`.

    relu, erf, gelu and sin are in closed form, at O(depth) operations an entry beside the inner product; any other
    activation goes through Hermite coefficients, at O(depth·terms).

    Args:
        depth: The number of hidden layers, that is of activations.
        activation: σ: a name, an `Activation`, or a function, as `special.activation` takes them.
        weight: The standard deviation of all weights; with the ReLU, √2 keeps the lengths from layer to layer.
        bias: The standard deviation of all biases, 0 for none.
        residual: Whether hˡ is added to hˡ⁺¹ between hidden layers, l < depth.
        kind: "ntk" for the tangent kernel, with all layers trained, or "nngp" for the conjugate one, with the last
            alone.
        terms: The number of Hermite coefficients, where σ has no closed form.

    Returns:
        The kernel: `kernel(X1, X2)`, `kernel.exact(X1, X2)`, `kernel.diag(X)`.

    Raises:
        InputError: If a size is out of range, `kind` or σ unknown, or σ has no derivative and "ntk" asks for it.

    >>> deep(1, weight=2**0.5, kind="nngp").exact(np.eye(2)).round(6)  # 4 E[relu relu]: 2, and 2/π
    array([[2.     , 0.63662],
           [0.63662, 2.     ]])
    """
    check_count("depth", depth)
    layers = operator.index(depth)
    require(kind in ("ntk", "nngp"), f"kind={kind!r}: it is 'ntk' (all layers trained) or 'nngp' (the last one only).")
    check_positive(weight=weight)
    check_not_negative(bias=bias)
    check_count("terms", terms, least=2)
    sigma = find_activation(activation)
    if kind == "ntk":
        sigma.derivative(1)  # a step has none: refuse it here
    layer = CLOSED.get(sigma) or Expansion.of(sigma, operator.index(terms))
    form = _Deep(layers, layer, float(weight), float(bias), residual, kind == "ntk")
    extras = ", residual" if residual else ""
    extras += f", terms={terms}" if sigma not in CLOSED else ""
    name = f"deep({layers}, {sigma.name}, weight={form.weight!r}, bias={form.bias!r}{extras}, {kind})"
    homogeneous = sigma == relu and bias == 0
    return AngularKernel(name, form, form.series if homogeneous else None, 1.0 if homogeneous else None)


def hermite_remainder(kernel: AngularKernel, X: Float[np.ndarray, "n d"]) -> float:
    """Compute the share of a `deep` kernel that its truncated Hermite series leaves out on these inputs.

    It is 0 for activations with a closed form; a kernel that `deep` did not make is refused.

    The largest share of E[σ²] or E[σ'²] beyond the `terms` of the series, over all layers and inputs. The diagonal is
    exact all the same; off it, each layer errs by less than this share of the diagonal, and by far less away from
    cosine ±1. It grows with the lengths: 128 terms of tanh leave 5e-13 at length 1, 3e-6 at 2, 4e-3 at 4.
    """
    if not isinstance(kernel.of_pair, _Deep):
        raise InputError(f"{kernel.name} is no kernel that deep(...) made.")
    return kernel.of_pair.remainder(polar(check_inputs(X), np)[1][:, 0])
