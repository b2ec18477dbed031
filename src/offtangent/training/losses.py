"""Objectives: what turns f(params, x) and labels into a number to be made small."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from offtangent._errors import InputError


class HalfSquares(eqx.Module):
    """Φ = ½ Σᵢ (yᵢ − f(params, xᵢ))², a sum over samples and not a mean: Arora et al. (2019), eq. (2).

    Outputs with k columns give k losses; `train` follows the gradient of their sum.

    >>> float(HalfSquares(lambda slope, X: slope * X[:, 0])(2.0, jnp.array([[1.0], [2.0]]), jnp.array([1.0, 2.0])))
    2.5
    """

    f: Callable[[Any, Array], Array]

    def __call__(self, params: PyTree, X: Float[Array, "n *d"], y: Float[Array, "n *k"]) -> Float[Array, "*k"]:
        outputs = self.f(params, X)
        if outputs.shape != y.shape:  # broadcasting would pair every output with every label
            raise InputError(
                f"The outputs have shape {outputs.shape} and the labels {y.shape}: they must be the same. A column of "
                "labels becomes a vector with y[:, 0] or y.ravel()."
            )
        return 0.5 * jnp.sum((y - outputs) ** 2, axis=0)
