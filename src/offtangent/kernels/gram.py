"""The Gram matrix of a kernel on given inputs, as an operator.

Spectra and solves work on the host in float64 through the dense matrix; `H @ v` is jittable and keeps nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float, Num

from offtangent._errors import InputError
from offtangent.data.checks import check_inputs, check_not_parallel
from offtangent.linalg import Spectrum


@runtime_checkable
class Kernel(Protocol):
    """What a Gram matrix asks of a kernel: a jittable block, and an exact one in float64."""

    @property
    def name(self) -> str: ...
    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"], /) -> Float[Array, "p q"]: ...
    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None, /
    ) -> Float[np.ndarray, "p q"]: ...


@dataclass(frozen=True, eq=False, repr=False)
class Gram:
    """K(X, X) + `ridge`·I for n inputs.

    Without a ridge, two inputs in the same direction make the matrix singular and are refused by name.

    >>> from offtangent.kernels import relu_hidden
    >>> Gram(relu_hidden, np.eye(2)).dense().round(15)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    kernel: Kernel
    X: Float[np.ndarray, "n d"]
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"The kernel is a {type(self.kernel).__name__}: give Gram(kernel, X) a kernel first, such as "
                "offtangent.kernels.relu_hidden, then the inputs."
            )
        if not 0 <= self.ridge < np.inf:
            raise InputError(f"ridge={self.ridge:g}: it must be zero or positive, and finite.")
        checked = check_inputs(self.X, nonzero=self.ridge == 0)
        if self.ridge == 0:
            check_not_parallel(checked)
        kept = checked.copy()  # what is computed later must be of the inputs given now
        kept.flags.writeable = False
        object.__setattr__(self, "X", kept)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), len(self.X)

    def __repr__(self) -> str:
        return f"Gram({self.kernel.name}, {len(self.X)} inputs in {self.X.shape[1]} dimensions, ridge={self.ridge:g})"

    @cached_property
    def _matrix(self) -> Float[np.ndarray, "n n"]:
        matrix = self.kernel.exact(self.X)
        matrix[np.diag_indices_from(matrix)] += self.ridge
        matrix.flags.writeable = False
        return matrix

    def dense(self) -> Float[np.ndarray, "n n"]:
        """The matrix itself, float64, read-only, computed once and kept. Time O(n²d), memory n² floats."""
        return self._matrix

    def diag(self) -> Float[np.ndarray, "n"]:
        return self._matrix.diagonal()

    def __matmul__(self, v: Num[Array | np.ndarray, "n *k"]) -> Float[Array, "n *k"]:
        """H v in the dtype of v (whole numbers count as floats); may be traced. Time O(n²d): nothing is kept."""
        v = jnp.asarray(v)
        v = v if jnp.issubdtype(v.dtype, jnp.floating) else v.astype(float)
        X = jnp.asarray(self.X, v.dtype)
        product = jnp.matmul(self.kernel(X, X), v, precision=jax.lax.Precision.HIGHEST)
        return product + jnp.asarray(self.ridge, v.dtype) * v

    def eigh(self, k: int | None = None) -> Spectrum:
        """All eigenpairs, or the k largest. Time O(n³)."""
        return Spectrum.of(self._matrix, k)

    def solve(self, b: Float[np.ndarray, "n *k"]) -> Float[np.ndarray, "n *k"]:
        """H⁻¹b by Cholesky. Time n³/3. A matrix that is singular to rounding is refused."""
        try:
            factor = scipy.linalg.cho_factor(self._matrix, lower=True)
        except np.linalg.LinAlgError as error:
            raise self._singular(str(error)) from None
        size = np.linalg.norm(self._matrix, 1)
        inverse_condition, _ = scipy.linalg.lapack.dpocon(factor[0], size, uplo="L")
        if inverse_condition < np.finfo(np.float64).eps:  # rounding can make the last pivots positive by chance
            raise self._singular(f"its condition number is above {1 / np.finfo(np.float64).eps:.1g}")
        return np.asarray(scipy.linalg.cho_solve(factor, np.asarray(b, np.float64)))

    def _singular(self, reason: str) -> InputError:
        return InputError(
            f"The Gram matrix of these {len(self)} inputs is singular to rounding ({reason}). "
            "Add a ridge, for example Gram(kernel, X, ridge=1e-6)."
        )
