"""The gradients of samples by one leaf of the parameters, in the form in which their inner products cost least.

Of a layer that acts alike at S positions, with a numbers coming in and b going out, the gradient of output j is
G_j = Σ_s h_s δ_{j,s}ᵀ, a matrix of a × b. Two samples' gradients have the inner product

    ⟨G_j, G'_l⟩ = Σ_{s,t} (h_s · h'_t)(δ_{j,s} · δ'_{l,t}),

which takes S²(a + k²b) multiplications for all k² pairs of outputs, where forming the matrices first takes kSab for
each sample and k²ab for each pair. The bias of a layer that acts once has the gradient δ_j: it adds 1 to h · h'. A
table's rows, looked up, have h_s · h'_t = 1 where both are the same row.
"""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

HIGHEST = jax.lax.Precision.HIGHEST


class Whole(eqx.Module):
    """The gradients themselves."""

    gradients: Float[Array, "n k p"]

    def every_pair(self, other: "Whole") -> Float[Array, "nk ml"]:
        """⟨∂f_j(x), ∂f_l(x')⟩ for all outputs j and l, as a matrix of all pairs (sample, output)."""
        size = self.gradients.shape[-1]
        return _matrix(self.gradients.reshape(-1, size), other.gradients.reshape(-1, size))

    def summed(self, other: "Whole") -> Float[Array, "n m"]:
        """Σ_j ⟨∂f_j(x), ∂f_j(x')⟩."""
        return _matrix(_flat(self.gradients), _flat(other.gradients))

    def each_output(self, other: "Whole") -> Float[Array, "n m k"]:
        """⟨∂f_j(x), ∂f_j(x')⟩ for every output j."""
        return jnp.einsum("nkp,mkp->nmk", self.gradients, other.gradients, precision=HIGHEST)


class Positions(eqx.Module):
    """What came in and what came back at each position, for each of `blocks` blocks of the weight."""

    inputs: Float[Array, "n blocks positions a"]
    cotangents: Float[Array, "n k blocks positions b"]
    biases: int = eqx.field(static=True, default=0)  # leaves beside this one whose gradients are the cotangents

    def every_pair(self, other: "Positions") -> Float[Array, "nk ml"]:
        """⟨∂f_j(x), ∂f_l(x')⟩ for all outputs j and l, as a matrix of all pairs (sample, output)."""
        if self.inputs.shape[2] > 1:
            meet = self._meet(other)
            sides = self.cotangents, other.cotangents
            back = jnp.einsum("nkgsb,mlgtb->gnkmlst", *sides, precision=HIGHEST)
            return _pairs(jnp.einsum("gnmst,gnkmlst->nkml", meet, back, precision=HIGHEST))
        n, k, blocks, _, b = self.cotangents.shape
        m, outputs = other.cotangents.shape[:2]
        total = jnp.zeros(())
        for block in range(blocks):
            meet = _matrix(self.inputs[:, block, 0], other.inputs[:, block, 0]) + self.biases
            left, right = (one.cotangents[:, :, block, 0].reshape(-1, b) for one in (self, other))
            total = total + _pairs(_matrix(left, right).reshape(n, k, m, outputs) * meet[:, None, :, None])
        return total

    def summed(self, other: "Positions") -> Float[Array, "n m"]:
        """Σ_j ⟨∂f_j(x), ∂f_j(x')⟩."""
        if self.inputs.shape[2] > 1:
            back = jnp.einsum("nkgsb,mkgtb->gnmst", self.cotangents, other.cotangents, precision=HIGHEST)
            return jnp.sum(self._meet(other) * back, axis=(0, 3, 4))
        total = jnp.zeros(())
        for block in range(self.inputs.shape[1]):
            left, right = (_flat(one.cotangents[:, :, block]) for one in (self, other))
            meet = _matrix(self.inputs[:, block, 0], other.inputs[:, block, 0]) + self.biases
            total = total + meet * _matrix(left, right)
        return total

    def each_output(self, other: "Positions") -> Float[Array, "n m k"]:
        """⟨∂f_j(x), ∂f_j(x')⟩ for every output j."""
        back = jnp.einsum("nkgsb,mkgtb->nmkgst", self.cotangents, other.cotangents, precision=HIGHEST)
        return jnp.einsum("gnmst,nmkgst->nmk", self._meet(other), back, precision=HIGHEST)

    def _meet(self, other: "Positions") -> Float[Array, "blocks n m positions positions"]:
        return jnp.einsum("ngsa,mgta->gnmst", self.inputs, other.inputs, precision=HIGHEST) + self.biases


class Lookup(eqx.Module):
    """Which rows of a table were looked up, and what came back to each of them."""

    rows: Int[Array, "n positions"]
    cotangents: Float[Array, "n k positions b"]

    def every_pair(self, other: "Lookup") -> Float[Array, "nk ml"]:
        """⟨∂f_j(x), ∂f_l(x')⟩ for all outputs j and l, as a matrix of all pairs (sample, output)."""
        back = jnp.einsum("nksb,mltb->nmklst", self.cotangents, other.cotangents, precision=HIGHEST)
        return _pairs(jnp.einsum("nmst,nmklst->nkml", self._meet(other), back, precision=HIGHEST))

    def summed(self, other: "Lookup") -> Float[Array, "n m"]:
        """Σ_j ⟨∂f_j(x), ∂f_j(x')⟩."""
        back = jnp.einsum("nksb,mktb->nmst", self.cotangents, other.cotangents, precision=HIGHEST)
        return jnp.sum(self._meet(other) * back, axis=(2, 3))

    def each_output(self, other: "Lookup") -> Float[Array, "n m k"]:
        """⟨∂f_j(x), ∂f_j(x')⟩ for every output j."""
        back = jnp.einsum("nksb,mktb->nmkst", self.cotangents, other.cotangents, precision=HIGHEST)
        return jnp.einsum("nmst,nmkst->nmk", self._meet(other), back, precision=HIGHEST)

    def _meet(self, other: "Lookup") -> Float[Array, "n m positions positions"]:
        return (self.rows[:, None, :, None] == other.rows[None, :, None, :]).astype(self.cotangents.dtype)


Gradients: TypeAlias = Whole | Positions | Lookup


def _matrix(left: Float[Array, "n p"], right: Float[Array, "m p"]) -> Float[Array, "n m"]:
    return jax.lax.dot_general(left, right, (((1,), (1,)), ((), ())), precision=HIGHEST)


def _pairs(values: Float[Array, "n k m l"]) -> Float[Array, "nk ml"]:
    return values.reshape(values.shape[0] * values.shape[1], -1)


def _flat(values: Float[Array, "n *rest"]) -> Float[Array, "n _"]:
    return values.reshape(len(values), -1)
