"""Types that every room uses."""

import numpy as np
from jaxtyping import Array

AnyArray = Array | np.ndarray


class IdentityHash:
    """An object is itself and no other, whatever arrays it holds: `jax.jit(model)` asks for a hash and for equality."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__
