"""Objectives: what turns f(params, x) and labels into a number to be made small."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from offtangent._arguments import check_function
from offtangent._errors import InputError


class HalfSquares(eqx.Module):
    """Half the sum of squared residuals as an objective for `train`.

    It is eq. (2) of Arora et al. (2019),

        Φ = ½ Σᵢ (yᵢ − f(params, xᵢ))²,

    a sum over samples and not a mean, so that √(2Φ) is the residual ‖y − u‖ that `theory.predict_residual` predicts.
    Outputs with k columns give k losses; `train` follows the gradient of their sum. The cost is that of f.

    Args:
        f: A function f(params, X) of a batch X, whose outputs have the shape of the labels; networks are such.

    >>> float(HalfSquares(lambda slope, X: slope * X[:, 0])(2.0, jnp.array([[1.0], [2.0]]), jnp.array([1.0, 2.0])))
    2.5
    """

    f: Callable[[Any, Array], Array]

    def __check_init__(self) -> None:
        check_function("f", self.f, "f(params, X), such as a network")

    def __call__(self, params: PyTree, X: Float[Array, "n *d"], y: Float[Array, "n *k"]) -> Float[Array, "*k"]:
        """Evaluate Φ on a batch.

        Args:
            params: The parameters of f.
            X: The inputs.
            y: The labels, of the shape of the outputs.

        Returns:
            One loss, or one for each of k columns.

        Raises:
            InputError: If outputs and labels differ in shape, as those of a column and of a vector do.
        """
        outputs = self.f(params, X)
        if outputs.shape != y.shape:  # broadcasting would pair every output with every label
            raise InputError(
                f"The outputs have shape {outputs.shape} and the labels {y.shape}: they must be the same. A column of "
                "labels becomes a vector with y[:, 0] or y.ravel()."
            )
        return 0.5 * jnp.sum((y - outputs) ** 2, axis=0)
