"""Operators that are never stored, their eigenpairs, solves, and brackets for yᵀA⁻¹y."""

from offtangent.linalg.bracket import Bracket, inverse_quadratic
from offtangent.linalg.conjugate import conjugate_gradients
from offtangent.linalg.factor import TiledFactor, tiled_cholesky
from offtangent.linalg.preconditioner import LowRank, low_rank, pivoted_cholesky
from offtangent.linalg.solution import Solution
from offtangent.linalg.spectrum import Spectrum
from offtangent.linalg.tiles import SymmetricTiles

__all__ = [
    "Bracket",
    "LowRank",
    "Solution",
    "Spectrum",
    "SymmetricTiles",
    "TiledFactor",
    "conjugate_gradients",
    "inverse_quadratic",
    "low_rank",
    "pivoted_cholesky",
    "tiled_cholesky",
]
