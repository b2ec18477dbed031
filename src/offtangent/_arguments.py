"""What an argument must be: a function, an object of one class, a positive number. `_checks` looks at arrays."""

import math
from collections.abc import Sequence
from typing import Any

from offtangent._checks import check_count, check_real, require
from offtangent._errors import InputError, a_kind


def check_function(name: str, value: object, of: str) -> None:
    """Refuse what is no function; `of` says of what it should be one."""
    check_no_torch(name, value)
    require(callable(value), f"{name} is {a_kind(value)}: expected a function {of}.")


def check_no_torch(name: str, value: object) -> None:
    """Refuse a module of PyTorch, which can be called and is no function of JAX; PyTorch is not loaded for it."""
    # By name: looking into `sys.modules` would make every module count for whatever is checked here.
    if ("torch.nn.modules.module", "Module") in [(base.__module__, base.__name__) for base in type(value).__mro__]:
        raise InputError(
            f"{name} is a module of PyTorch ({type(value).__name__}): f, params = "
            "offtangent.interop.from_torch(module, example) makes of it a function of JAX and its parameters."
        )


def check_kind(name: str, value: object, kind: type | tuple[type, ...], such: str) -> None:
    """Refuse what is no object of this class, or of one of these; `such` says what makes one."""
    require(isinstance(value, kind), f"{name} is {a_kind(value)}: expected one of {such}.")


def check_positive(**sizes: Any) -> None:
    """Refuse what is no positive and finite number."""
    for name, value in sizes.items():
        check_real(name, value)
        require(0 < value < math.inf, f"{name}={float(value):g}: it must be positive and finite.")


def check_not_negative(**sizes: Any) -> None:
    """Refuse what is no finite number, or negative."""
    for name, value in sizes.items():
        check_real(name, value)
        require(0 <= value < math.inf, f"{name}={float(value):g}: it must be finite, and zero or positive.")


def check_ordinary(**values: Any) -> None:
    """Refuse what is no finite number."""
    for name, value in values.items():
        check_real(name, value)
        require(math.isfinite(value), f"{name}={float(value):g}: it must be finite.")


def check_coordinates(given: str, chosen: Sequence[int], dim: int) -> None:
    """Refuse what is no set of coordinates; `given` is how the message calls it."""
    check_count("dim", dim)
    if len(set(chosen)) != len(chosen) or not all(hasattr(j, "__index__") and 0 <= j < dim for j in chosen):
        raise InputError(f"{given}: expected different coordinates, whole numbers from 0 to {dim - 1}.")
