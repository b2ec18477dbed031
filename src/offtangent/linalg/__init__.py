"""Spectra of symmetric matrices, in float64 on the host."""

from offtangent.linalg.spectrum import Spectrum

__all__ = ["Spectrum"]
