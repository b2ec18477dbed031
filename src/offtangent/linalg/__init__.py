"""Operators that are never stored, their eigenpairs, solves, and brackets for yᵀA⁻¹y."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.linalg.spectrum import Spectrum as Spectrum

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "spectrum": "Spectrum",
    },
)
