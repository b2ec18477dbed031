"""How labels lie in a spectrum, as far as gradient descent can tell.

All that eq. (8) of Arora et al. (2019) asks of the labels is the energy Σ(vᵢᵀy)² at each eigenvalue. m products with
the matrix give it as well as training can resolve it: Lanczos from y yields m nodes and weights with (Gauss)

    Σ_j w_j (1 − ηθ_j)²ᵏ ≤ ‖y − u(k)‖² ≤ Σ_j w'_j (1 − ηθ'_j)²ᵏ                       for η ≤ 1/λ_max,

and (Gauss-Radau) m + 1 more with one node at zero, since (1 − ηλ)²ᵏ has derivatives of alternating sign in λ (Golub and
Meurant 2010, Section 6.2).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float

from offtangent._errors import InputError
from offtangent.linalg import Spectrum
from offtangent.linalg.krylov import Krylov, Product, lanczos
from offtangent.theory.arora.dynamics import predict_residual, steps_to

CHECKS = (25, 50, 100, 200, 400)  # numbers of products after which the bracket is looked at
CLOSE = 1.02  # upper over lower number of steps that is good enough
MEMORY = 1 << 27  # numbers that Lanczos may keep: 1 GB


@dataclass(frozen=True, eq=False)
class Measure:
    """Energies of the labels at points of the spectrum."""

    values: Float[np.ndarray, " r"]
    energies: Float[np.ndarray, " r"]

    def losses(self, rate: float, steps: np.ndarray) -> Float[np.ndarray, " t"]:
        """‖y − u(k)‖² / ‖y‖² after each number of steps."""
        norms = predict_residual(*self._diagonal, rate=rate, steps=steps).norm
        return np.minimum(norms**2 / self.energies.sum(), 1.0)

    def steps_to(self, loss: float, rate: float) -> int | None:
        """The first step at which the loss is at most `loss` of what it was; None if never."""
        try:
            return steps_to(*self._diagonal, rate=rate, loss=loss)
        except InputError as error:
            if "never reached" in str(error):
                return None
            raise

    @property
    def _diagonal(self) -> tuple[Spectrum, Float[np.ndarray, " r"]]:
        """The same problem in its own eigenbasis: a diagonal matrix and the roots of the energies as labels."""
        kept = np.flatnonzero(self.energies > 0)
        order = kept[np.argsort(-self.values[kept], kind="stable")]
        return Spectrum(self.values[order], np.eye(len(order))), np.sqrt(self.energies[order])


@dataclass(frozen=True, eq=False)
class MeasureBracket:
    """Two measures whose losses lie below and above those of the labels; the same where all eigenpairs are known."""

    lower: Measure
    upper: Measure
    products: int

    def steps_to(self, loss: float, rate: float) -> tuple[int | None, int | None]:
        return self.lower.steps_to(loss, rate), self.upper.steps_to(loss, rate)


def exact_measure(spectrum: Spectrum, Y: Float[np.ndarray, "n k"]) -> MeasureBracket:
    """From all eigenpairs; several columns of labels count together. Time O(n²k)."""
    measure = Measure(_above_rounding(spectrum.values), np.sum((spectrum.vectors.T @ Y) ** 2, axis=1))
    return MeasureBracket(measure, measure, 0)


def lanczos_measure(
    product: Product,
    Y: Float[np.ndarray, "n k"],
    *,
    rate: float,
    loss: float = 0.01,
    watch: Callable[[str], None] | None = None,
) -> MeasureBracket:
    """From products with the matrix, until the steps to `loss` are known to 2 %, or 400 products are done.

    All columns of labels go through one product. Time O(m n²k), memory mnk.
    """
    most = max(2, min(CHECKS[-1], len(Y), MEMORY // Y.size))
    checks = {*(m for m in CHECKS if m < most), most}
    found: MeasureBracket | None = None
    for m, krylov in enumerate(lanczos(product, Y, most), start=1):
        if watch is not None:
            watch(f"predicting training: product {m}")
        if m in checks:
            lower, upper = (_joined(krylov, radau=radau) for radau in (False, True))
            found = MeasureBracket(lower, upper, m)
            few, many = found.steps_to(loss, rate)
            if few is not None and many is not None and many <= max(CLOSE * few, few + 1):
                break
    assert found is not None
    return found


def _joined(krylov: Krylov, *, radau: bool) -> Measure:
    values, energies = [], []
    for column, length in enumerate(krylov.lengths):
        alpha, beta = krylov.tridiagonal(column)
        if radau and beta[-1] > 0:  # else the column ended before: exact
            alpha, beta = np.append(alpha, _node_at_zero(alpha, beta)), np.append(beta, 0.0)
        nodes, vectors = scipy.linalg.eigh_tridiagonal(alpha, beta[:-1])
        values.append(_above_rounding(nodes))
        energies.append(length**2 * vectors[0] ** 2)
    return Measure(np.concatenate(values), np.concatenate(energies))


def _above_rounding(values: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
    """Eigenvalues, with zero for what may be rounding: of labels there 10¹⁵ steps learn nothing."""
    return np.where(values > len(values) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0), values, 0.0)


def _node_at_zero(alpha: Float[np.ndarray, " m"], beta: Float[np.ndarray, " m"]) -> float:
    """The last diagonal entry that gives the tridiagonal matrix an eigenvalue zero: β_m² (T_m⁻¹)_mm."""
    right = np.zeros(len(alpha))
    right[-1] = beta[-1] ** 2
    banded = np.vstack([np.append(0.0, beta[:-1]), alpha, np.append(beta[:-1], 0.0)])
    return float(scipy.linalg.solve_banded((1, 1), banded, right)[-1])
