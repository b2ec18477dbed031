"""Random tensors and points, and their powers written out."""

import numpy as np
from jaxtyping import Float

from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.tensors import SymmetricTensor


def unit_tensor(rng: np.random.Generator, dim: int, power: int) -> SymmetricTensor:
    values = rng.standard_normal(symmetric_dimension(dim, power))
    return SymmetricTensor.from_isometric(values / np.linalg.norm(values), dim, power)


def sphere(rng: np.random.Generator, n: int, dim: int) -> Float[np.ndarray, "n d"]:
    points = rng.standard_normal((n, dim))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def full_power(X: Float[np.ndarray, "n d"], power: int) -> Float[np.ndarray, "n entries"]:
    """X^{⊗p} with all its entries, p = 1 or 2."""
    return X if power == 1 else (X[:, :, None] * X[:, None]).reshape(len(X), -1)


def smallest_of(matrix: Float[np.ndarray, "m n"]) -> float:
    """The smallest singular value of a matrix with no more columns than rows."""
    return float(np.linalg.svd(matrix, compute_uv=False)[-1])
