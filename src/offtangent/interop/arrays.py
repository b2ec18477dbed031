"""Numbers of PyTorch's tensors and of files as arrays of JAX, none of them rounded in silence."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from offtangent._checks import require
from offtangent.interop.exporting import load_torch

if TYPE_CHECKING:
    import torch

FLOATING = ("float64", "float32", "float16", "bfloat16")
LARGEST = 2**31 - 1  # of 32 bits


def of_tensor(name: str, tensor: "torch.Tensor") -> Array:
    """Copy a tensor into an array of JAX, with the same numbers.

    Args:
        name: What the message calls it.
        tensor: The tensor, on any device.

    Returns:
        The array, in the tensor's dtype; whole numbers of 64 bits become those of 32 where JAX has no others.

    Raises:
        InputError: If JAX cannot hold the numbers as they are.
    """
    torch = load_torch()
    require(tensor.layout is torch.strided, f"{name!r} is a sparse tensor: expected a dense one, to_dense().")
    dtype = str(tensor.dtype).removeprefix("torch.")
    known = dtype in FLOATING or not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)
    require(known, f"{name!r} has dtype {dtype}: expected whole numbers or one of {', '.join(FLOATING)}.")
    tensor = tensor.detach().cpu()
    if dtype == "bfloat16":  # which NumPy lacks
        return jnp.asarray(np.array(tensor.float().numpy()), jnp.bfloat16)
    return of_numpy(name, tensor.numpy())


def of_numpy(name: str, numbers: np.ndarray) -> Array:
    """Copy an array of NumPy into one of JAX, with the same numbers.

    Args:
        name: What the message calls it.
        numbers: The array, which may change later on.

    Returns:
        The array, in the same dtype; whole numbers of 64 bits become those of 32 where JAX has no others.

    Raises:
        InputError: If JAX cannot hold the numbers as they are.
    """
    wide = jax.dtypes.canonicalize_dtype("float64") == jnp.float64
    require(
        wide or numbers.dtype != np.float64,
        f"{name!r} is in float64, which JAX would round: call this, and all that follows, under "
        "jax.enable_x64(True), or convert the module by module.float().",
    )
    within = wide or numbers.dtype.kind not in "iu" or int(np.abs(numbers).max(initial=0)) <= LARGEST
    require(within, f"{name!r} holds whole numbers beyond 32 bits: call this under jax.enable_x64(True).")
    return jnp.asarray(np.array(numbers), jax.dtypes.canonicalize_dtype(numbers.dtype))
