"""Layers with a bias under an output matrix that is not trained: what residual and fully connected networks share.

Hidden weights hold neurons as columns and the bias as the last row, (inputs + 1) × m; the output matrix A is k × m.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from offtangent._checks import check_count, check_key
from offtangent._errors import InputError


class _Sized(eqx.Module):
    """What the sizes of a network are read from: its first layer and its output matrix."""

    A: eqx.AbstractVar[Float[Array, "k m"]]

    @property
    @abc.abstractmethod
    def entry(self) -> Float[Array, "d1 m"]:
        """The initial weights of the first layer."""

    @property
    def dim(self) -> int:
        """The number of inputs d, without the 1 of the bias."""
        return int(self.entry.shape[-2]) - 1

    @property
    def outputs(self) -> int:
        """The number of outputs k."""
        return int(self.A.shape[-2])

    @property
    def width(self) -> int:
        """The number of neurons m of a hidden layer."""
        return int(self.A.shape[-1])


def affine(W: Float[Array, "d1 m"], X: Float[Array, "n d"]) -> Float[Array, "n m"]:
    """W(x, 1) for each row of X, with the bias in W's last row."""
    return X @ W[:-1] + W[-1]


def combine(A: Float[Array, "k m"], hidden: Float[Array, "n m"]) -> Float[Array, "n k"]:
    """A times the hidden layer, for each row of it."""
    # A sum of m terms that nearly cancel: worth full precision, as in TwoLayer.
    return jnp.matmul(hidden, A.T, precision=jax.lax.Precision.HIGHEST)


def check_sizes(dim: int, outputs: int, width: int, key: Any) -> None:
    """Refuse sizes that are no positive whole numbers, and what is no JAX key."""
    for name, size in (("dim", dim), ("outputs", outputs), ("width", width)):
        check_count(name, size)
    check_key(key)


def check_shapes(params: Any, initial: tuple[Array, ...]) -> None:
    """Refuse displacements of another shape: broadcasting would move all neurons alike."""
    expected = [W.shape for W in initial]
    given = [jnp.shape(W) for W in params]
    if given != expected:
        raise InputError(
            f"The displacements have shapes {given}: expected {expected}, a column for each neuron, the bias in the "
            "last row. At the initialisation they are net.origin."
        )


def check_batch(dim: int, X: Any) -> None:
    """Refuse inputs that are not one row of `dim` numbers each."""
    if jnp.ndim(X) != 2 or jnp.shape(X)[1] != dim:
        raise InputError(
            f"X has shape {jnp.shape(X)}: expected (n, {dim}), a row for each sample. For one sample give X[None, :]."
        )
