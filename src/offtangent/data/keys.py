"""Keys, counts, real numbers and fractions: the arguments that the random functions of this room share."""

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from offtangent._errors import InputError, a_kind

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray as PRNGKeyArray
else:
    PRNGKeyArray = Any  # jaxtyping's own name would import jax, and this room must be light to import


def check_key(key: object) -> None:
    """Refuse what is not one JAX key, of the new (`jax.random.key`) or the old kind (`PRNGKey`)."""
    import jax

    if isinstance(key, jax.Array):
        if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.shape == ():
                return
        elif key.dtype == "uint32" and key.ndim == 1:
            return
    shape = getattr(key, "shape", None)
    given = a_kind(key) + ("" if shape is None else f" of shape {shape}")
    raise InputError(f"key must be one JAX key, and is {given}. Give key=jax.random.key(0), say.")


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Refuse a number of things that is no whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise InputError(f"{name}={value!r}: it must be a whole number of at least {least}.")


def check_real(name: str, value: Any) -> None:
    """Refuse what is not one real number, as text is; NaN and infinity pass. An array of no axes is one number."""
    if isinstance(value, numbers.Real):
        return
    if getattr(value, "shape", None) != () or not hasattr(value, "__float__") or np.iscomplexobj(value):
        hint = " Turn text into a number first: float(...)." if isinstance(value, str) else ""
        told = f" has shape {shape}" if (shape := getattr(value, "shape", ())) else f"={value!r} is {a_kind(value)}"
        raise InputError(f"{name}{told}: expected one real number.{hint}")


def check_fraction(fraction: float | int) -> None:
    """Refuse a fraction outside [0, 1]."""
    check_real("fraction", fraction)
    if not (math.isfinite(fraction) and 0 <= fraction <= 1):
        hint = f" For {fraction:g} percent give {fraction / 100:g}." if 1 < fraction <= 100 else ""
        raise InputError(f"fraction={fraction:g} must lie in [0, 1].{hint}")
