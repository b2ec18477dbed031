"""Labels that are as hard as labels can be.

Arora et al. (2019), Figure 1: among all labels of a given length, gradient descent is slowest on the
eigenvector of H∞ with the smallest eigenvalue.
"""

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError
from offtangent.linalg import Spectrum


def worst_case_labels(spectrum: Spectrum) -> Float[np.ndarray, "n"]:
    """√n times the eigenvector of λ_min, so that ‖y‖ = √n as for labels ±1. Its sign makes the sum non-negative.

    >>> worst_case_labels(Spectrum.of(np.diag([1.0, 0.1])))
    array([0.        , 1.41421356])
    """
    if not spectrum.complete:
        raise InputError(
            f"The worst-case labels need the smallest eigenvalue, and only the {len(spectrum.values)} largest of "
            f"{len(spectrum.vectors)} are known. Use the whole spectrum, Gram.eigh()."
        )
    vector = spectrum.vectors[:, -1]
    sign = 1.0 if vector.sum() >= 0 else -1.0
    return sign * np.sqrt(len(vector)) * vector + 0.0
