"""Convolutional ReLU networks in one dimension in the limit of infinite width: tangent kernel and conjugate kernel.

The network, in the NTK parametrisation of `deep`, with all weights and biases from N(0, 1) and all trained; positions p
and p + o are counted around, modulo d, and o runs over a patch of q positions:

    h¹_p = weight·√(d/q) Σ_o W¹_o x_{p+o} + bias·b¹,     hˡ⁺¹_p = (weight/√(qm)) Σ_o Wˡ⁺¹_o σ(hˡ_{p+o}) + bias·bˡ⁺¹
    f = (weight/√(dm)) Σ_p ⟨v_p, σ(h^depth_p)⟩ + bias·b

The last layer has weights of its own for each position: nothing is pooled. So two inputs only ever meet at the same
position (Arora et al. 2019, "On exact computation with an infinitely wide neural net", Section 4), and with Σ_p the
covariance of h_p between them and A_p, B_p the moments E[σσ], E[σ'σ'] under it:

    Σ¹_p = Θ¹_p = weight² (d/q) Σ_o x_{p+o} x'_{p+o} + bias²
    Σˡ⁺¹_p = (weight²/q) Σ_o A_{p+o} + bias²,     Θˡ⁺¹_p = Σˡ⁺¹_p + (weight²/q) Σ_o B_{p+o} Θˡ_{p+o}
    conjugate  weight² mean_p A_p + bias²,        tangent  weight² mean_p (A_p + B_p Θ_p) + bias²

They see the products x_p x'_p and the squares, each at its place: correlation kernels, but of more than ⟨x, x'⟩ unless
q = d, where they are those of `deep`. With pooling over positions x_p meets other x'_q: no correlation kernel.
"""

import itertools
import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._arguments import check_not_negative, check_positive
from offtangent._checks import check_count, check_inputs, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.kernels.moments import relu_moments
from offtangent.kernels.pairs import Pair

AT_ONCE = 1 << 20  # numbers in a tile of the exact matrix, over all positions


@dataclass(frozen=True)
class ConvolutionalKernel:
    """A kernel of pairs of positions, as `convolutional` makes it: a `Kernel`."""

    name: str
    depth: int
    patch: int
    weight: float
    bias: float
    tangent: bool

    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"]) -> Float[Array, "p q"]:
        """K(X1, X2), jittable. Time O(pqd · patch · depth), memory O(pqd)."""
        return jnp.asarray(self._of(X1[:, None], X2[None], jnp))

    def diag(self, X: Float[AnyArray, "n d"]) -> Float[AnyArray, " n"]:
        """k(x, x) of every row. JAX in, JAX out; NumPy in, NumPy float64 out."""
        if isinstance(X, jax.Array):
            return jnp.asarray(self._of(X, X, jnp))
        return self._diag_of_checked(check_inputs(X))

    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None
    ) -> Float[np.ndarray, "p q"]:
        """K(X1, X2), or the symmetric K(X1, X1), in float64 and accurate at every angle. Memory pq floats."""
        return self._exact_of_checked(check_inputs(X1), None if X2 is None else check_inputs(X2))

    def _diag_of_checked(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        return np.asarray(self._of(X, X, np))

    def _exact_of_checked(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None
    ) -> Float[np.ndarray, "p q"]:
        first, second = X1, X1 if X2 is None else X2
        K = np.empty((len(first), len(second)))
        columns = max(1, AT_ONCE // first.shape[1])
        rows = max(1, columns // len(second))
        for a, b in itertools.product(range(0, len(first), rows), range(0, len(second), columns)):
            K[a : a + rows, b : b + columns] = self._of(first[a : a + rows, None], second[None, b : b + columns], np)
        return K

    def _of(self, x: Any, y: Any, xp: ModuleType) -> Any:
        dim = x.shape[-1]
        if dim != y.shape[-1]:
            raise InputError(f"Inputs of {dim} and of {y.shape[-1]} positions: both need the same number.")
        if dim < self.patch:
            raise InputError(f"Inputs have {dim} positions: a patch of {self.patch} does not fit into them.")
        sign = xp.sign(x) * xp.sign(y)
        pair = Pair(xp.abs(x), xp.abs(y), 1 - sign, 1 + sign)  # of one number each: the cosine is its sign
        pair = self._convolved(pair, self.weight * math.sqrt(dim), xp)
        kernel = pair.inner
        for _ in range(self.depth - 1):
            moments = relu_moments(pair, xp, slopes=self.tangent)
            pair = self._convolved(moments.pair, self.weight, xp)
            if self.tangent:
                kernel = pair.inner + self.weight**2 * sum(self._moved(moments.slope * kernel, xp)) / self.patch
        moments = relu_moments(pair, xp, slopes=self.tangent)
        value = moments.value + moments.slope * kernel if self.tangent else moments.value
        return self.weight**2 * value.mean(axis=-1) + self.bias**2

    def _convolved(self, pair: Pair, factor: float, xp: ModuleType) -> Pair:
        """What a layer makes of its patches: joined end to end, scaled, with the bias as one more coordinate."""
        first, *others = (Pair(*parts) for parts in zip(*(self._moved(part, xp) for part in pair), strict=True))
        for other in others:
            first = first.joined(other, xp)
        return first.scaled(factor / math.sqrt(self.patch)).with_constant(self.bias, xp)

    def _moved(self, values: Any, xp: ModuleType) -> list[Any]:
        return [xp.roll(values, -offset, axis=-1) for offset in range(self.patch)]


def convolutional(
    depth: int, *, patch: int, weight: float | int = 1.0, bias: float | int = 0.0, kind: str = "ntk"
) -> ConvolutionalKernel:
    """Make the kernel of a one-dimensional convolutional ReLU network of infinite width with `depth` hidden layers.

    The positions are the d coordinates of an input, around a circle; each neuron sees `patch` of them, and nothing is
    pooled in the end (Arora et al. 2019, "On exact computation with an infinitely wide neural net", Section 4). With
    Σ_p the covariance at position p between two inputs, A_p and B_p the moments E[σσ] and E[σ'σ'] under it, o over a
    patch of q,

        Σ¹_p = Θ¹_p = weight² (d/q) Σ_o x_{p+o} x'_{p+o} + bias²
        Σˡ⁺¹_p = (weight²/q) Σ_o A_{p+o} + bias²,     Θˡ⁺¹_p = Σˡ⁺¹_p + (weight²/q) Σ_o B_{p+o} Θˡ_{p+o}
        conjugate  weight² mean_p A_p + bias²,        tangent  weight² mean_p (A_p + B_p Θ_p) + bias²

    With a patch of all d positions they are the kernels of `deep`. Time O(d · patch · depth) an entry.

    Args:
        depth: The number of hidden layers, that is of activations.
        patch: The number q of positions that a neuron sees, no more than an input has.
        weight: The standard deviation of all weights, as in `deep`.
        bias: The standard deviation of all biases, 0 for none.
        kind: "ntk" for the tangent kernel, with all layers trained, or "nngp" for the conjugate one, with the last
            alone.

    Returns:
        The kernel: `kernel(X1, X2)`, `kernel.exact(X1, X2)`, `kernel.diag(X)`.

    Raises:
        InputError: If a size is out of range or `kind` unknown; when the kernel is called, if inputs have fewer
            positions than a patch.

    >>> convolutional(1, patch=2, kind="nngp").exact(np.eye(2)).round(6)  # one patch is all: that of deep(1)
    array([[0.5     , 0.159155],
           [0.159155, 0.5     ]])
    """
    check_count("depth", depth)
    check_count("patch", patch)
    require(kind in ("ntk", "nngp"), f"kind={kind!r}: it is 'ntk' (all layers trained) or 'nngp' (the last one only).")
    check_positive(weight=weight)
    check_not_negative(bias=bias)
    name = f"convolutional({int(depth)}, patch={int(patch)}, weight={float(weight)!r}, bias={float(bias)!r}, {kind})"
    return ConvolutionalKernel(name, int(depth), int(patch), float(weight), float(bias), kind == "ntk")
