"""How far samples are in general position: the singular values of [x₁ ⊗ x₁, …, x_n ⊗ x_n], never formed.

Its Gram matrix is G_ij = (x_iᵀx_j)². Theorem 4 of Ge, Wang & Zhao (2019) asks for σ_min = √λ_min(G) > 0, Theorem 5 for
the same of the features z. Lemma 8: the leave-one-out distance l = min_i dist(x_i ⊗ x_i, span of the others), which is
min_i (G⁻¹)_ii^{−1/2}, has l/√n ≤ σ_min ≤ l.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError
from offtangent.data.checks import check_inputs
from offtangent.kernels import Gram, Inverse, tensor_square
from offtangent.kernels.solves import Watch
from offtangent.linalg.bracket import EPS, cholesky_floor
from offtangent.theory.memorisation import most_samples

DENSE = 8000  # up to this n, G is stored and factorised: 512 MB, and n³/3 for each factorisation


@dataclass(frozen=True)
class SmallestSingular:
    """lower ≤ σ_min ≤ upper of [x_j ⊗ x_j]. `upper` comes from a Ritz value, which λ_min never exceeds but by rounding.

    Where λ_min is below what rounding does to G, `resolved` is False and `upper` is that floor: σ_min may be zero.
    """

    upper: float
    lower: float
    certified: bool  # whether `lower` is proven and positive
    resolved: bool
    largest: float  # the norm of [x_j ⊗ x_j]
    rests_on: str  # where `lower` comes from, in words

    @property
    def condition(self) -> float:
        """λ_min/λ_max of G, by the upper bound."""
        return (self.upper / self.largest) ** 2


def smallest_singular(X: object, *, watch: Watch | None = None) -> SmallestSingular:
    """σ_min of the tensor squares of the rows of X.

    Up to 8000 rows from the stored G, with a proven lower bound; beyond, from a streamed G without one. More rows than
    quadratic forms, C(d + 1, 2), have σ_min = 0; so have rows that are multiples of each other, which are named.

    >>> found = smallest_singular(np.eye(3))
    >>> round(found.upper, 12), found.certified, 0.9 < found.lower <= 1
    (1.0, True, True)
    """
    inputs = _folded(X)
    n, dim = inputs.shape
    if n > most_samples(dim):
        reason = f"{n} samples, and only {most_samples(dim)} independent quadratic forms of {dim} inputs"
        return SmallestSingular(0.0, 0.0, False, True, _largest(inputs, watch), reason)
    gram = Gram(tensor_square, inputs)
    if n > DENSE:
        largest = _largest(inputs, watch)
        slack = n * EPS * largest**2
        try:
            low = float(gram.eigh(1, which="smallest", watch=watch).values[-1])
        except InputError:  # singular to rounding
            low = 0.0
        resolved = low > slack
        bound = math.sqrt(max(low, slack))
        return SmallestSingular(bound, 0.0, False, resolved, largest, "nothing: G was not stored")
    G = gram.dense()
    values = np.linalg.eigvalsh(G)
    slack = n * EPS * float(values[-1])
    if values[0] <= slack:
        floor = f"nothing: λ_min of G is below the floating-point floor {slack:.1e}"
        return SmallestSingular(math.sqrt(slack), 0.0, False, False, math.sqrt(values[-1]), floor)
    proven = cholesky_floor(G)
    return SmallestSingular(
        math.sqrt(values[0] + slack), math.sqrt(max(proven.value, 0.0)), proven.certified, True,
        math.sqrt(values[-1]), proven.rests_on,
    )  # fmt: skip


def leave_one_out_distances(X: object) -> Float[np.ndarray, "n"]:
    """dist(x_i ⊗ x_i, span{x_j ⊗ x_j, j ≠ i}) for every i. Time n³, memory 3n².

    >>> leave_one_out_distances([[1.0, 0.0], [0.0, 2.0]]).round(12)
    array([1., 4.])
    """
    inputs = _folded(X)
    if len(inputs) > most_samples(inputs.shape[1]):
        return np.zeros(len(inputs))
    return np.asarray(1 / np.sqrt(Inverse.of(Gram(tensor_square, inputs).dense()).diagonal))


def _largest(inputs: Float[np.ndarray, "n d"], watch: Watch | None) -> float:
    """The norm of [x_j ⊗ x_j]: that of M ↦ Σ_j (x_jᵀMx_j) x_j x_jᵀ, by the power method on the d × d side."""
    n, dim = inputs.shape
    if n <= DENSE:
        return math.sqrt(np.linalg.eigvalsh((inputs @ inputs.T) ** 2)[-1])
    M, value = np.eye(dim) / math.sqrt(dim), 0.0
    for step in range(200):
        if watch is not None:
            watch(f"power method: product {step + 1}")
        image = inputs.T @ (np.einsum("ij,ij->i", inputs @ M, inputs)[:, None] * inputs)
        before, value = value, float(np.linalg.norm(image))
        M = image / value
        if value - before <= 1e-10 * value:
            break
    return math.sqrt(value)


def _folded(X: object) -> Float[np.ndarray, "n d"]:
    """Rows with a sign that makes opposite ones equal: x ⊗ x does not see it. Gram refuses multiples, by name."""
    inputs = check_inputs(X, nonzero=True)
    at = np.abs(inputs).argmax(axis=1)
    return inputs * np.sign(np.take_along_axis(inputs, at[:, None], axis=1))
