"""Operators that are never stored, their eigenpairs, solves, and brackets for yᵀA⁻¹y."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.linalg import brackets as brackets
    from offtangent.linalg import conjugate as conjugate
    from offtangent.linalg import factor as factor
    from offtangent.linalg import krylov as krylov
    from offtangent.linalg import memory as memory
    from offtangent.linalg import preconditioner as preconditioner
    from offtangent.linalg import solution as solution
    from offtangent.linalg import stochastic as stochastic
    from offtangent.linalg import stream as stream
    from offtangent.linalg import tiles as tiles
    from offtangent.linalg.spectrum import Spectrum as Spectrum

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "spectrum": "Spectrum",
        },
    )
