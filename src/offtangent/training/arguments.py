"""What training asks of its data and of the parameters to start from."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from offtangent._checks import check_numbers
from offtangent._errors import InputError


def check_data(name: str, values: object) -> None:
    """Refuse what is no array of real numbers with a row for each sample; arrays of JAX are not copied."""
    array = values if isinstance(values, jax.Array) else check_numbers(values, name)
    if array.ndim == 0 or not len(array) or jnp.iscomplexobj(array):
        raise InputError(
            f"{name} is of shape {array.shape} and dtype {array.dtype}: expected real numbers, and a row for each of "
            "some samples."
        )


def check_params(params: PyTree) -> None:
    """Refuse parameters that are no arrays of floating-point numbers."""
    leaves = jax.tree.leaves(params)
    if not leaves or not all(isinstance(leaf, int | float) or eqx.is_array_like(leaf) for leaf in leaves):
        raise InputError("params holds no arrays of numbers alone: give the parameters to start from, net.origin, say.")
    if not all(jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.inexact) for leaf in leaves):
        raise InputError("params holds whole numbers, which gradient descent cannot move: give them as floats.")
