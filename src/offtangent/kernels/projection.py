"""A network's gradients along a few random directions: the tangent kernel where n·P is too large for anything else.

With R of P × r independent standard normal numbers, Φ = JR/√r has E ΦΦᵀ = JJᵀ = K, and entry by entry

    Var (ΦΦᵀ)_ij = (K_ij² + K_ii K_jj)/r.

A column of Φ is one forward pass along one direction, which is drawn when its turn comes and never kept.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from offtangent._checks import check_count, check_finite, check_key
from offtangent.kernels.blocks import arrays
from offtangent.kernels.passes import pushed
from offtangent.kernels.tangent import TangentKernel
from offtangent.taylor.checks import check_outputs


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """The gradients of all samples and outputs, projected onto the same random directions.

    Attributes:
        kernel: The tangent kernel that is estimated, without its ridge.
        key: The JAX key that decides the directions.
        features: Φ, shaped like f's outputs with one more axis for the directions; K ≈ ΦΦᵀ.
    """

    kernel: TangentKernel
    key: Key[Array, ""]
    features: Float[np.ndarray, "n *k_and_rank"]

    @classmethod
    def of(cls, K: TangentKernel, rank: int, key: Key[Array, ""]) -> "Projection":
        """Project, as `TangentKernel.project` has it."""
        check_count("rank", rank)
        check_key(key)
        return cls(K, key, _features(K, K.X, rank, key))

    @property
    def rank(self) -> int:
        """The number of directions."""
        return int(self.features.shape[-1])

    def of_inputs(self, X2: PyTree) -> Float[np.ndarray, "p *k_and_rank"]:
        """Project the gradients of other inputs onto the same directions: `features` of a predictor on new data.

        Args:
            X2: The inputs, in the form of X.

        Returns:
            Their features.

        Raises:
            InputError: If f fails on X2, or if there are NaN among it.
        """
        given = arrays(X2)
        check_finite(given, "The inputs")
        check_outputs(self.kernel.f, self.kernel.params, given)
        return _features(self.kernel, given, self.rank, self.key)

    def dense(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *kk"]:
        """Estimate K(X, X2), without bias. Time O(npk²r).

        Args:
            X2: Other inputs, by default X.

        Returns:
            An array of the shape of `TangentKernel.dense`.
        """
        other = self.features if X2 is None else self.of_inputs(X2)
        return _products(self.features, other)

    def error(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *kk"]:
        """Estimate the standard error of each entry of `dense`, √((K_ij² + K_ii K_jj)/r), from the features themselves.

        Args:
            X2: Other inputs, by default X.

        Returns:
            An array of the shape of `dense(X2)`.
        """
        other = self.features if X2 is None else self.of_inputs(X2)
        sizes = [np.sum(one**2, axis=-1)[..., None] for one in (self.features, other)]
        return np.sqrt((_products(self.features, other) ** 2 + _products(*sizes)) / self.rank)

    def __repr__(self) -> str:
        return f"Projection({self.kernel!r} on {self.rank} directions)"


def _features(K: TangentKernel, X: PyTree, rank: int, key: Key[Array, ""]) -> np.ndarray:
    columns = []
    for one in jax.random.split(key, rank):
        along = pushed(K.f, K.params, X, _direction(K.params, one))
        columns.append(np.asarray(along) / np.sqrt(along.dtype.type(rank)))
    return np.stack(columns, axis=-1)


@eqx.filter_jit
def _direction(params: PyTree, key: Key[Array, ""]) -> PyTree:
    leaves, tree = jax.tree.flatten(eqx.filter(params, eqx.is_inexact_array))
    keys = jax.random.split(key, len(leaves))
    drawn: list[Array] = [
        jax.random.normal(one, leaf.shape, leaf.dtype) for one, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, drawn)


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Inner products over the last axis of all samples with all, outputs last."""
    return np.asarray(np.einsum("nkr,mlr->nmkl" if left.ndim == 3 else "nr,mr->nm", left, right, optimize=True))
