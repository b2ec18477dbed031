"""What an argument must be: a function, an object of one class, a positive number. `_checks` looks at arrays."""

import math
from typing import Any

from offtangent._checks import check_real, require
from offtangent._errors import a_kind


def check_function(name: str, value: object, of: str) -> None:
    """Refuse what is no function; `of` says of what it should be one."""
    require(callable(value), f"{name} is {a_kind(value)}: expected a function {of}.")


def check_kind(name: str, value: object, kind: type | tuple[type, ...], such: str) -> None:
    """Refuse what is no object of this class, or of one of these; `such` says what makes one."""
    require(isinstance(value, kind), f"{name} is {a_kind(value)}: expected one of {such}.")


def check_positive(**sizes: Any) -> None:
    """Refuse what is no positive and finite number."""
    for name, value in sizes.items():
        check_real(name, value)
        require(0 < value < math.inf, f"{name}={value:g}: it must be positive and finite.")
