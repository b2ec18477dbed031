"""The state of a training run as a file: arrays alone (npz without pickle), written whole, checked on return."""

import hashlib
import io
import re
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent._files import write_whole

State = TypeVar("State")


def fingerprint(*parts: Any) -> str:
    """Compute the SHA-256 digest, in hexadecimal, of pytrees of arrays, numbers and text: the same in every process.

    Functions must not be leaves: their addresses differ between processes.
    """
    digest = hashlib.sha256()
    leaves, structure = jax.tree.flatten(parts)
    digest.update(re.sub(r"0x[0-9a-f]+", "", str(structure)).encode())  # where a function lies in memory
    for leaf in leaves:
        if isinstance(leaf, jax.Array | np.ndarray):
            array = _host(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        else:
            digest.update(repr(leaf).encode())
    return digest.hexdigest()


def save(path: Path, print_: str, state: Any, losses: Float[np.ndarray, "k"], done: int) -> None:
    """Write the state after `done` steps. A crash leaves the previous checkpoint in place."""
    leaves = {f"leaf{i}": _host(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, run=np.array(print_), losses=losses, done=np.array(done), **leaves)
    write_whole(path, buffer.getvalue())


def load(path: Path, print_: str, like: State) -> tuple[State, Float[np.ndarray, "k"], int]:
    """The state saved at `path`, in the shape of `like`. Another run's checkpoint, or a damaged one, is refused."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = dict(file)
    except Exception as error:  # zip, zlib and NumPy each have their own
        raise InputError(f"The checkpoint {path} cannot be read ({error}). Remove it to start again.") from None
    require(
        str(arrays.get("run")) == print_,
        f"The checkpoint {path} belongs to another run (other data, parameters or settings). "
        "Use another path, or remove it to start again.",
    )
    leaves, structure = jax.tree.flatten(like)
    restored = [_device(arrays[f"leaf{i}"], leaf) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, restored), arrays["losses"], int(arrays["done"])


def _host(leaf: Array | np.ndarray) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def _device(array: np.ndarray, like: Any) -> Any:
    if isinstance(like, jax.Array) and jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    return jnp.asarray(array, like.dtype)
