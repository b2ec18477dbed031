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
from offtangent.kernels.solvable import Kernel

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
    """Look up a kernel by its name.

    There are relu_hidden (H∞ of Arora et al. 2019, eq. (3)), relu_output, relu_both, relu3_hidden, step, gaussian and
    erf_output, each with its parameters as they are by default.

    Args:
        kernel: The name, or a kernel itself, which is returned as it is.

    Returns:
        The kernel.

    Raises:
        InputError: If there is no such kernel; the message has the names of all.

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
