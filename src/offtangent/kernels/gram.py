"""The Gram matrix of a kernel on given inputs, as an operator that never has to hold the matrix.

`H @ v` is jittable, in the dtype of v, and streams over tiles. Spectra, solves and brackets are host-level functions
in float64: through the dense matrix where it fits and is faster, else by iterating on tiles in float32 and measuring
the residual in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from offtangent._arguments import check_positive
from offtangent._checks import check_count, check_inputs, check_not_parallel, check_numbers, check_real
from offtangent._errors import InputError, a_kind
from offtangent.kernels import solves
from offtangent.kernels.angular import check_precision
from offtangent.kernels.definiteness import check_diagonal, check_not_equal, check_ridge
from offtangent.kernels.solvable import Kernel, Shifted
from offtangent.kernels.solves import Watch
from offtangent.kernels.tilewise import OnDiagonal, Tilewise, dense_from_tiles
from offtangent.kernels.trusting import trusted_diag
from offtangent.linalg import Spectrum
from offtangent.linalg.brackets import Bracket
from offtangent.linalg.memory import memory_to_spare
from offtangent.linalg.preconditioner import LowRank
from offtangent.linalg.solution import Solution
from offtangent.linalg.tiles import SymmetricTiles, check_length

Method = Literal["cholesky", "conjugate gradients"]


@dataclass(frozen=True, eq=False, repr=False)
class Gram:
    """The matrix K(X, X) + ridge·I of a kernel on n inputs, as an operator that never has to hold it.

    `H @ v` is jittable, in the dtype of v, and streams over tiles, of which as many are kept as the budget allows.
    Spectra (`eigh`), solves (`solve`) and brackets (`inverse_quadratic`) are host-level functions in float64: through
    the dense matrix where it fits and is faster, else by iterating on tiles in float32 and measuring the residual in
    float64. A product takes O(n²) for kept tiles and O(n²d/2) for the others.

    Args:
        kernel: The kernel, such as `kernels.relu_hidden`; anything with `name`, `kernel(X1, X2)`, `diag` and `exact`.
        X: The inputs, one a row. They are copied, and kept as float64.
        ridge: What is added to the diagonal, zero or positive.
        budget: What kept tiles may take on each device, in bytes; with 0 none are kept, and all are computed anew in
            each product. By default a third of the memory that is free.
        devices: The devices that share rows and tiles among them, in products and in what a solve checks in float64; by
            default JAX's first.
        precision: That of the inner products in `H @ v` and inside iterative solves, such as "tensorfloat32" on a GPU;
            by default the highest. What a solve reports is measured in float64 anyhow.

    Raises:
        InputError: If X is no table of finite numbers, or the matrix is singular by construction: without a ridge, two
            equal inputs are refused by name and, for a homogeneous kernel, two in the same direction.

    >>> from offtangent.kernels import relu_hidden
    >>> H = Gram(relu_hidden, np.eye(2))
    >>> H.dense().round(15)
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> H.solve(np.array([1.0, 2.0])).value.round(12)
    array([2., 4.])
    """

    kernel: Kernel
    X: Float[np.ndarray, "n d"]
    ridge: float | int = 0.0
    budget: float | int | None = field(default=None, kw_only=True)
    devices: Sequence[jax.Device] | None = field(default=None, kw_only=True)
    precision: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"The kernel is {a_kind(self.kernel)}: give Gram(kernel, X) a kernel first, such as "
                "offtangent.kernels.relu_hidden, then the inputs."
            )
        check_ridge(self.ridge)
        if self.budget is not None:
            check_real("budget", self.budget)
        if self.budget is not None and not self.budget >= 0:
            raise InputError(f"budget={self.budget}: the memory for kept tiles is a number of bytes, 0 or more.")
        if self.devices is not None and not len(self.devices):
            raise InputError("devices is empty: give jax.devices(), some of them, or None for the first.")
        if self.precision is not None:
            check_precision(self.kernel, self.precision)
        homogeneous = getattr(self.kernel, "degree", None) is not None
        singular = check_not_parallel if homogeneous else check_not_equal
        checked = (check_inputs if self.ridge > 0 else singular)(self.X)
        check_diagonal(trusted_diag(self.kernel, checked), self.ridge == 0)
        kept = checked.copy()  # what is computed later must be of the inputs given now
        kept.flags.writeable = False
        object.__setattr__(self, "X", kept)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix, (n, n)."""
        return len(self.X), len(self.X)

    def __repr__(self) -> str:
        return f"Gram({self.kernel.name}, {len(self.X)} inputs in {self.X.shape[1]} dimensions, ridge={self.ridge:g})"

    def with_ridge(self, ridge: float | int) -> "Gram":
        """Make the same matrix with another ridge; tiles that are kept already are shared.

        Args:
            ridge: The new ridge, in place of the old one.

        Returns:
            The new operator.
        """
        other = replace(self, ridge=ridge)
        object.__setattr__(other, "_operators", self._operators)
        return other

    @cached_property
    def _operators(self) -> dict[str, SymmetricTiles]:
        return {}

    def operator(self, dtype: Any = np.float32) -> Shifted:
        """Make H a pytree with `@`, its tiles kept as far as the budget goes: what a jitted function should be handed.

        It is made once for each dtype.

        Args:
            dtype: That of the tiles, and of the vectors that it takes.

        Returns:
            The operator.

        Raises:
            InputError: If the inputs or the matrix over- or underflow in `dtype`.
        """
        name = str(np.dtype(dtype))
        with jax.enable_x64(name == "float64"):
            if name not in self._operators:
                self._check_range(dtype)
                block = Tilewise(self.kernel, self.precision)
                self._operators[name] = SymmetricTiles.build(
                    block,
                    OnDiagonal(self.kernel),
                    self.X.astype(dtype),
                    budget=memory_to_spare(self.devices) / 3 if self.budget is None else self.budget,
                    devices=self.devices,
                    ready=block.ready,
                )
            with jax.ensure_compile_time_eval():
                return Shifted(self._operators[name], jnp.asarray(self.ridge, dtype))

    def _check_range(self, dtype: Any) -> None:
        largest, entry = float(self.diag().max()), float(np.abs(self.X).max())
        info = np.finfo(dtype if np.dtype(dtype).kind == "f" else np.float32)  # bfloat16 has the range of float32
        if not float(info.tiny) <= largest <= float(info.max) or entry > float(info.max):
            raise InputError(
                f"The diagonal of the matrix goes up to {largest:.2g}, and X to {entry:.2g}: {np.dtype(dtype)} over- "
                "or underflows. Scale X to lengths of about 1, or work in float64."
            )

    def __matmul__(self, v: Num[Array | np.ndarray, "n *k"]) -> Float[Array, "n *k"]:
        """Compute H v in the dtype of v; it may be traced.

        Time O(n²) for kept tiles and O(n²d/2) for the others. To jit a function around it without baking the tiles into
        the program, pass `H.operator()` as an argument.

        Args:
            v: A vector of n entries, or several as columns; whole numbers count as floats.

        Returns:
            The product, shaped like v.
        """
        v = jnp.asarray(v)
        v = v if jnp.issubdtype(v.dtype, jnp.floating) else v.astype(float)
        check_length(v, len(self))
        return self.operator(v.dtype) @ v

    @cached_property
    def _matrix(self) -> Float[np.ndarray, "n n"]:
        matrix = solves.exact_matrix(self.kernel, self.X)
        matrix[np.diag_indices_from(matrix)] += self.ridge
        matrix.flags.writeable = False
        return matrix

    def dense(self, dtype: Any = np.float64) -> Float[np.ndarray, "n n"]:
        """Compute the matrix itself. Time O(n²d/2), memory n² floats.

        In float64 it is accurate to rounding, read-only, computed once and kept. In float32 it is made by the jitted
        kernel, many times faster, anew in each call, and errs by √(2ε) where two inputs are nearly parallel.

        Args:
            dtype: That of the matrix.

        Returns:
            K(X, X) + ridge·I.
        """
        if np.dtype(dtype) == np.float64:
            return self._matrix
        matrix = dense_from_tiles(self.kernel, self.X, self.precision, dtype)
        matrix[np.diag_indices_from(matrix)] = self.diag()
        return matrix

    def product(self, x: Float[np.ndarray, "n c"], watch: Watch | None = None) -> Float[np.ndarray, "n c"]:
        """Compute H x in float64, streamed over tiles of which none is kept. Time O(n²(d/2 + 4c)).

        Args:
            x: c vectors, as columns.
            watch: Called with a line of text as the work proceeds.

        Returns:
            The products, as columns.
        """
        return solves.exact_product(self, x, watch)[0]

    def preconditioner(self, watch: Watch | None = None) -> LowRank:
        """Make a likeness of H of low rank plus a shift, by which conjugate gradients go faster.

        Args:
            watch: Called with a line of text as the work proceeds.

        Returns:
            The likeness, with its inverse.
        """
        return solves.precondition(self, watch)

    def diag(self) -> Float[np.ndarray, "n"]:
        """The diagonal, in float64. Time O(nd) for the first call, whose result is kept."""
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Float[np.ndarray, " n"]:
        found = trusted_diag(self.kernel, self.X) + self.ridge
        found.flags.writeable = False
        return found

    def eigh(
        self, k: int | None = None, *, which: Literal["largest", "smallest"] = "largest", watch: Watch | None = None
    ) -> Spectrum:
        """Compute all eigenpairs, or the k largest or smallest.

        Time O(n³) through the dense matrix where that fits and k is no small part of n; else Lanczos on tiles, and one
        product in float64 that puts the values right.

        Args:
            k: How many eigenpairs are wanted; all by default.
            which: Which k of them, "largest" or "smallest".
            watch: Called with a line of text as the work proceeds.

        Returns:
            The eigenpairs, with the residual of each where they were found by iteration.

        Raises:
            InputError: If k is not between 1 and n, or `which` is neither.
        """
        if k is not None:
            check_count("k", k)
        return solves.eigh(self, k, which, watch)

    def solve(
        self,
        b: Num[np.ndarray | Array, "n *k"],
        *,
        tolerance: float = 1e-6,
        method: Method | None = None,
        watch: Watch | None = None,
    ) -> Solution:
        """Solve Hx = b to ‖b − Hx‖ ≤ tolerance·‖b‖ in float64, for one right side or many at once.

        By Cholesky, n³/3, where the dense matrix fits and n is moderate; else by preconditioned conjugate gradients in
        float32 with refinement in float64.

        Args:
            b: The right side, n entries, or several as columns.
            tolerance: The relative residual wanted of the worst column.
            method: "cholesky" or "conjugate gradients"; by default chosen by size.
            watch: Called with a line of text as the work proceeds.

        Returns:
            The solution's `value` x, its `residual`, whether it `converged`, the `iterations` and the `method`.

        Raises:
            InputError: If the matrix is singular to rounding, or b is not finite or of another length.
        """
        check_positive(tolerance=tolerance)
        check_numbers(b, "b")
        return solves.solve(self, b, tolerance, method, watch)

    def inverse_quadratic(
        self,
        y: Num[np.ndarray | Array, "n"],
        *,
        width: float = 1e-3,
        method: Method | None = None,
        watch: Watch | None = None,
    ) -> Bracket:
        """Bracket yᵀH⁻¹y between a lower and an upper bound that rounding cannot break.

        For any x whatever, with r = y − Hx, yᵀH⁻¹y = 2yᵀx − xᵀHx + rᵀH⁻¹r and 0 ≤ rᵀH⁻¹r ≤ ‖r‖²/λ_min. The bracket is
        certified where a lower bound for λ_min can be proven (by a Cholesky factorisation, a ridge, or the kernel's
        power series), otherwise conditional on an estimate of it; the result says which, and on what it rests.

        Args:
            y: A vector of n entries, such as labels.
            width: (upper − lower)/value is to be no larger, where that can be had.
            method: "cholesky" or "conjugate gradients"; by default chosen by size.
            watch: Called with a line of text as the work proceeds.

        Returns:
            The bracket: `value`, `lower`, `upper`, `certified`, `rests_on`.

        Raises:
            InputError: If y is zero or of another shape, or the matrix is singular to rounding.
        """
        if np.ndim(y) != 1:
            raise InputError(f"y has shape {np.shape(y)}: expected one vector; inverse_quadratics(Y) takes columns.")
        (found,) = solves.inverse_quadratics(self, y, width, method, watch)
        return found

    def inverse_quadratics(
        self,
        Y: Num[np.ndarray | Array, "n c"],
        *,
        width: float = 1e-3,
        method: Method | None = None,
        watch: Watch | None = None,
    ) -> tuple[Bracket, ...]:
        """Bracket yᵀH⁻¹y of every column y of Y, with one factorisation or iteration for all.

        Args:
            Y: The vectors, as columns.
            width: (upper − lower)/value is to be no larger, where that can be had.
            method: "cholesky" or "conjugate gradients"; by default chosen by size.
            watch: Called with a line of text as the work proceeds.

        Returns:
            A bracket for each column, as `inverse_quadratic` has it.

        Raises:
            InputError: If a column is zero, Y of another shape, or the matrix is singular to rounding.
        """
        if np.ndim(Y) != 2:
            raise InputError(f"Y has shape {np.shape(Y)}: expected ({len(self)}, c), one column for each vector.")
        return solves.inverse_quadratics(self, Y, width, method, watch)
