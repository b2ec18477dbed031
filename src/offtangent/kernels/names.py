"""Kernels by name, for those who type them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from offtangent._errors import InputError, a_kind
from offtangent.kernels.closed_forms import (
    arc_cosine,
    erf_output,
    gaussian,
    relu3_hidden,
    relu_both,
    relu_hidden,
    relu_output,
)
from offtangent.kernels.gram import Kernel

KERNELS: Mapping[str, Callable[[], Kernel]] = MappingProxyType(
    {
        "relu_hidden": lambda: relu_hidden,
        "relu_output": lambda: relu_output,
        "relu_both": lambda: relu_both,
        "relu3_hidden": lambda: relu3_hidden,
        "step": lambda: arc_cosine(0),
        "gaussian": gaussian,
        "erf_output": erf_output,
    }
)


def named_kernel(kernel: object) -> Kernel:
    """The kernel of this name, with its parameters as they are by default; a kernel itself is returned as it is.

    >>> named_kernel("relu_both").name
    'relu_both'
    """
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise InputError(f"kernel={kernel!r}: expected one of {', '.join(map(repr, KERNELS))}, or a kernel.")
        return KERNELS[kernel]()
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {a_kind(kernel)}: expected a name, or a kernel of offtangent.kernels.")
    return kernel
