"""Rows in random parts of a size that fits into memory, and what the rows of each part say about each other."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int

from offtangent._errors import InputError
from offtangent.kernels import Gram
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.regression import LeaveOneOut
from offtangent.kernels.solves import Watch
from offtangent.labels.noise import InverseMoments
from offtangent.labels.spectrum import LabelSpectrum, label_spectrum
from offtangent.labels.tasks import Labels
from offtangent.linalg.memory import memory_to_spare

ROWS_AT_ONCE = 12_000  # rows whose kernel matrix is inverted in one piece, if there is the memory for it
COPIES = 5  # of the matrix, at most, at any time


def rows_that_fit() -> int:
    """Rows whose matrix half of the free memory holds as often as it takes."""
    free = memory_to_spare(jax.devices("cpu")[:1]) / 2
    return max(10, min(ROWS_AT_ONCE, int((free / (8 * COPIES)) ** 0.5)))


def random_parts(n: int, most: int, rng: np.random.Generator) -> list[Int[np.ndarray, " m"]]:
    """All rows in one part, or random parts of nearly equal size."""
    if n <= most:
        return [np.arange(n)]
    return [np.sort(rows) for rows in np.array_split(rng.permutation(n), -(-n // most))]


@dataclass(frozen=True, eq=False)
class WithinParts:
    """What the rows of each part say about each other: sums over the parts, and a number for each row and column."""

    spectrum: LabelSpectrum
    moments: InverseMoments
    quadratic: float
    outputs: Float[np.ndarray, "m k"]
    precision: Float[np.ndarray, " m"]
    sensitivity: Float[np.ndarray, " m"]


def predict_within_parts(
    gram: Callable[[Int[np.ndarray, " rows"]], Gram],
    Y: Float[np.ndarray, "m k"],
    labels: Labels,
    parts: list[Int[np.ndarray, " rows"]],
    spectrum: LabelSpectrum | None,
    rng: np.random.Generator,
    tell: Watch,
) -> WithinParts:
    """Predict every row from the others of its part; `spectrum`, where it is not known yet, is that of the first."""
    moments, quadratic = InverseMoments(np.zeros(0), np.zeros(0), 0.0), 0.0
    outputs, precision, sensitivity = np.empty_like(Y), np.empty(len(Y)), np.empty(len(Y))
    for number, rows in enumerate(parts):
        where = "" if len(parts) == 1 else f", part {number + 1} of {len(parts)}"
        tell(f"computing the kernel of {len(rows)} rows{where}")
        H = gram(rows)
        matrix = H.dense()
        tell(f"inverting it{where}")
        inverse = _inverse(matrix)
        moments, quadratic = moments + InverseMoments.of(inverse), quadratic + labels.quadratic(inverse, Y[rows])
        if spectrum is None:
            spectrum = label_spectrum(H, inverse, Y[rows], rng, tell)
        del inverse
        tell(f"leaving out one row at a time{where}")
        shifted = matrix.copy()
        shifted[np.diag_indices_from(shifted)] += spectrum.ridge
        del H, matrix  # large, and not needed any more
        left = LeaveOneOut.of(_inverse(shifted), Y[rows])
        outputs[rows], precision[rows], sensitivity[rows] = left.predictions, left.precision, left.sensitivity
        del shifted, left
    assert spectrum is not None
    return WithinParts(spectrum, moments, quadratic, outputs, precision, sensitivity)


def _inverse(matrix: Float[np.ndarray, "n n"]) -> Inverse:
    try:
        return Inverse.of(matrix)
    except InputError as error:
        raise InputError(f"{error} For labels: ridge=1e-6, or --ridge 1e-6.") from None
