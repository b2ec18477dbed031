"""The tangent features of a two-layer network, on the host and on the device, never as an n × md matrix.

Nichani, Bai & Lee (2022), eqs. (2), (3), (13). With φ(x) = vec(m^{-1/2} a_r σ'(w_{0,r}ᵀx) x) the linear term is
f_L(x; W) = ⟨φ(x), W⟩, and Φ has the rows φ(xᵢ). Products with Φ and its Gram matrix need the slopes S alone,

    ΦW = (S ∘ XW)1,      Φᵀc = Xᵀ diag(c) S,      ΦΦᵀ = (XXᵀ) ∘ (SSᵀ),      S_ir = m^{-1/2} a_r σ'(w_{0,r}ᵀxᵢ).

Where neurons r and r + m/2 start equal with opposite signs, φ = (ψ, −ψ): what the two halves share is in the null space
of Φ, and all is said by the folded weights (W₊ − W₋)/√2, of d × m/2, with features √2 ψ. Folding is an isometry there.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_inputs
from offtangent._host import on_host
from offtangent._types import AnyArray, IdentityHash
from offtangent.networks import TwoLayer
from offtangent.networks.two_layer import check_displacement
from offtangent.special.activations import Elementwise
from offtangent.theory.bai_lee.signs import check_dim, check_net

AT_ONCE = 1 << 23  # slopes that the host holds at once

ROOT = 0.5**0.5


def fold(W: Float[AnyArray, "*b d m"], paired: bool) -> Any:
    """(W₊ − W₋)/√2 where neurons come in pairs, else W: of NumPy's arrays or JAX's, as given."""
    if not paired:
        return W
    half = W.shape[-1] // 2
    return (W[..., :half] - W[..., half:]) * ROOT


def unfold(V: Float[AnyArray, "*b d h"], paired: bool) -> Any:
    """(V, −V)/√2 where neurons come in pairs, else V: the transpose of `fold`, and its inverse from the right."""
    if not paired:
        return V
    part: Any = V * ROOT
    joined = np.concatenate if isinstance(part, np.ndarray) else jnp.concatenate
    return joined([part, -part], axis=-1)


def folded_scale(net: TwoLayer) -> Float[np.ndarray, " h"]:
    """a_r/√m of each folded neuron, times √2 where it stands for a pair."""
    scale = np.asarray(net.a, np.float64) / net.width**0.5
    return scale[: net.width // 2] * 2**0.5 if net.paired else scale


def folded_start(net: TwoLayer) -> Float[np.ndarray, "d h"]:
    """W₀ in float64, one half of it where the other is the same."""
    W0 = np.asarray(net.W0, np.float64)
    return W0[:, : net.width // 2] if net.paired else W0


class LinearPart(IdentityHash, eqx.Module):
    """f_L on fixed inputs, as a function of W: jittable, in the dtype of the network, axes in front of W are a batch.

    A call costs one product of (n × d)·(d × h), h = m/2 for paired neurons and m otherwise; it holds n·h slopes.
    """

    X: Float[Array, "n d"]
    slopes: Float[Array, "n h"]
    origin: Float[Array, "d m"]
    paired: bool = eqx.field(static=True)

    def __call__(self, W: Float[Array, "*b d m"]) -> Float[Array, "*b n"]:
        check_batch_of_weights(self.origin, W)
        return jnp.sum(self.slopes * (self.X @ fold(W, self.paired)), axis=-1)

    def adjoint(self, c: Float[Array, "*b n"]) -> Float[Array, "*b d m"]:
        """Φᵀc = Σᵢ cᵢ φ(xᵢ), as d × m matrices."""
        return unfold(self.X.T @ (c[..., None] * self.slopes), self.paired)


def check_batch_of_weights(origin: Float[Array, "d m"], W: Any) -> None:
    """Refuse weights whose last two axes are not those of W₀."""
    if jnp.ndim(W) < 2 or jnp.shape(W)[-2:] != origin.shape:
        check_displacement(origin, W)


@dataclass(frozen=True, eq=False, repr=False)
class TangentFeatures:
    """Φ on n inputs as an operator on the host, in float64. Slopes are recomputed block by block: memory O(n·block)."""

    net: TwoLayer
    X: Float[np.ndarray, "n d"]
    start: Float[np.ndarray, "d h"]
    scale: Float[np.ndarray, " h"]
    kept: Float[np.ndarray, "n h"] | None = None

    @classmethod
    def of(cls, net: TwoLayer, X: Float[AnyArray, "n inputs"], *, keep: bool = False) -> "TangentFeatures":
        """Those at the initialisation; with `keep`, the n·h slopes are held in memory."""
        check_net(net)
        inputs = check_inputs(X)
        check_dim(net, inputs)
        found = cls(net, inputs, folded_start(net), folded_scale(net))
        return found.held() if keep else found

    def held(self) -> "TangentFeatures":
        """The same with its slopes kept, for many products. Memory 8·n·h bytes."""
        whole = self.kept if self.kept is not None else self._slopes(slice(None))
        return TangentFeatures(self.net, self.X, self.start, self.scale, whole)

    def _slopes(self, part: slice) -> Float[np.ndarray, "n b"]:
        if self.kept is not None:
            return self.kept[:, part]
        return on_host(self._derivative, self.X @ self.start[:, part]) * self.scale[part]

    @property
    def _derivative(self) -> Elementwise:
        return self.net.activation.derivative(1)

    def _parts(self) -> list[slice]:
        block = max(1, AT_ONCE // len(self.X))
        return [slice(at, at + block) for at in range(0, len(self.scale), block)]

    def gram(self) -> Float[np.ndarray, "n n"]:
        """ΦΦᵀ. Time O(n²(d + m)), memory n² and a block."""
        total = np.zeros((len(self.X), len(self.X)))
        for part in self._parts():
            slopes = self._slopes(part)
            total += slopes @ slopes.T
        total *= self.X @ self.X.T
        return total

    def cross(self, other: "TangentFeatures") -> Float[np.ndarray, "n k"]:
        """K(X, X') = ΦΦ'ᵀ for other inputs of the same network. Time O(nk(d + m))."""
        total = np.zeros((len(self.X), len(other.X)))
        for part in min(self._parts(), other._parts(), key=lambda parts: parts[0].stop):
            total += self._slopes(part) @ other._slopes(part).T
        total *= self.X @ other.X.T
        return total

    def outputs(self, V: Float[np.ndarray, "d h"]) -> Float[np.ndarray, " n"]:
        """Φ times folded weights: f_L(xᵢ). Time O(ndh)."""
        total = np.zeros(len(self.X))
        for part in self._parts():
            total += np.einsum("nh,nh->n", self._slopes(part), self.X @ V[:, part])
        return total

    def adjoint(self, c: Float[np.ndarray, " n"]) -> Float[np.ndarray, "d h"]:
        """Φᵀc, folded. Time O(ndh)."""
        return np.concatenate([self.X.T @ (c[:, None] * self._slopes(part)) for part in self._parts()], axis=1)

    def trace(self) -> float:
        """Σᵢ ‖φ(xᵢ)‖². Time O(ndh)."""
        lengths = np.einsum("nd,nd->n", self.X, self.X)
        return sum(float(lengths @ np.einsum("nh,nh->n", s, s)) for s in map(self._slopes, self._parts()))

    def linear(self) -> LinearPart:
        """The same on the device, in the dtype of the network."""
        dtype = self.net.W0.dtype
        slopes = self.kept if self.kept is not None else self._slopes(slice(None))
        return LinearPart(jnp.asarray(self.X, dtype), jnp.asarray(slopes, dtype), self.net.origin, self.net.paired)
