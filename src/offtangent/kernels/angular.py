"""Kernels that see two inputs only through their lengths and the angle between them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_inputs, require
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.kernels.pairs import Pair, pair_of, polar

NEAR = 1e-3  # from 1 − |cos| below this on, it is measured by chords: a product of matrices would lose 4 digits
PAIRS_AT_ONCE = 1 << 16
SIDE = 1024  # of a tile of the exact matrix: what is computed on the way to it stays small

Series = Callable[[int], Float[np.ndarray, " terms"]]


@dataclass(frozen=True)
class AngularKernel:
    """A kernel k(‖x‖, ‖x'‖, θ) that sees two inputs only through their lengths and the angle θ between them.

    `kernels.relu_hidden` is one, the H∞ of Arora et al. (2019), eq. (3): for a two-layer ReLU network of infinite
    width, of which the hidden layer is trained,

        k(x, x') = E_{w ~ N(0, I)}[xᵀx' 1{wᵀx ≥ 0} 1{wᵀx' ≥ 0}] = xᵀx' (π − θ) / 2π

    `kernel(X1, X2)` is jittable, in the dtype of its inputs. `kernel.exact(X1, X2)` works on the host in float64 and is
    accurate to rounding at every angle. `kernel.diag(X)` is the diagonal of either. A kernel with a `degree` α is
    homogeneous, k = (‖x‖‖x'‖)^α g(cos θ). Kernels are equal by name and parameters, and hashable, so that one may be a
    static argument of `jax.jit`.

    Attributes:
        name: What it is called, with its parameters.
        of_pair: `of_pair(pair, xp)` gives its values on a `kernels.pairs.Pair`, written with `xp` = numpy or jax.numpy.
        series: For a homogeneous kernel: `series(terms)` gives the Taylor coefficients of g, a_0, …, a_{terms−1} ≥ 0.
        degree: The degree α of homogeneity, with `series`; None where there is none.

    >>> from offtangent.kernels import relu_hidden
    >>> relu_hidden.exact(np.array([[2.0, 0.0], [1.0, 1.0]])).round(12)  # 4/2, 2/2, and 2 (π − π/4) / 2π
    array([[2.  , 0.75],
           [0.75, 1.  ]])
    >>> relu_hidden.name, relu_hidden.degree
    ('relu_hidden', 1.0)
    """

    name: str
    of_pair: Callable[..., Any] = field(repr=False)
    series: Series | None = field(default=None, repr=False, compare=False)
    degree: float | None = None

    def __post_init__(self) -> None:
        if (self.series is None) != (self.degree is None):
            raise InputError(f"{self.name}: give series and degree together, or neither.")

    def __call__(
        self,
        X1: Float[Array, "p d"],
        X2: Float[Array, "q d"],
        *,
        precision: jax.lax.PrecisionLike = jax.lax.Precision.HIGHEST,
    ) -> Float[Array, "p q"]:
        """Compute K(X1, X2) in the dtype of the inputs; it may be traced. Time O(pqd), memory O(pq).

        Near cosine ±1 the angle carries an error of √(2ε).

        Args:
            X1: p inputs, one a row.
            X2: q inputs, one a row.
            precision: That of the inner products, as `jax.numpy.matmul` takes it.

        Returns:
            k(x, x') of every row of X1 with every row of X2.
        """
        left, right = jnp.shape(X1), jnp.shape(X2)
        require(left[1:] == right[1:], f"X1 has shape {left} and X2 {right}: expected as many columns.")
        return self.of_polar(*polar(X1, jnp), *polar(X2, jnp), precision=precision)

    def of_polar(
        self,
        U: Float[Array, "p d"],
        r: Float[Array, "p 1"],
        V: Float[Array, "q d"],
        s: Float[Array, "q 1"],
        *,
        precision: jax.lax.PrecisionLike = jax.lax.Precision.HIGHEST,
    ) -> Float[Array, "p q"]:
        """Compute K of rows given by directions and lengths, as `pairs.polar` finds them once for many blocks.

        Args:
            U: p directions, of length 1.
            r: Their lengths, as a column.
            V: q directions, of length 1.
            s: Their lengths, as a column.
            precision: That of the inner products, as `jax.numpy.matmul` takes it.

        Returns:
            k of every pair.
        """
        return jnp.asarray(self.of_pair(pair_of(U, r, V, s, precision=precision), jnp))

    def diag(self, X: Float[AnyArray, "n d"]) -> Float[AnyArray, " n"]:
        """Compute k(x, x) of every row, with the angle exactly 0. Time O(nd).

        Args:
            X: The inputs, one a row: of JAX, or of NumPy.

        Returns:
            The diagonal: of JAX in the dtype of X where X is of JAX, else of NumPy in float64.
        """
        if not isinstance(X, jax.Array):
            return self._diag_of_checked(check_inputs(X))
        return self.diag_of_lengths(polar(X, jnp)[1][:, 0])

    def diag_of_lengths(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute k(x, x) of rows of these lengths, with the angle exactly 0. Time O(n).

        Args:
            r: The lengths, of JAX.

        Returns:
            The diagonal.
        """
        return jnp.asarray(self.of_pair(_with_themselves(r, jnp), jnp))

    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None
    ) -> Float[np.ndarray, "p q"]:
        """Compute K(X1, X2) on the host in float64, accurate to rounding at every angle. Time O(pqd), memory pq floats.

        Args:
            X1: p inputs, one a row.
            X2: q inputs, one a row; by default X1, and K is then symmetric to the last bit.

        Returns:
            k(x, x') of every row of X1 with every row of X2.

        Raises:
            InputError: If the inputs are no tables of finite numbers, or differ in their number of columns.
        """
        first = check_inputs(X1)
        second = None if X2 is None else check_inputs(X2)
        if second is not None and second.shape[1] != first.shape[1]:
            raise InputError(
                f"X1 has {first.shape[1]} columns and X2 {second.shape[1]}: a kernel compares inputs of one kind."
            )
        return self._exact_of_checked(first, second)

    def _exact_of_checked(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None
    ) -> Float[np.ndarray, "p q"]:
        U, r = polar(X1, np)
        V, s = (U, r) if X2 is None else polar(X2, np)
        K = np.empty((len(U), len(V)))
        for a, b in itertools.product(range(0, len(U), SIDE), range(0, len(V), SIDE)):
            if X2 is None and b < a:
                continue
            rows, columns = slice(a, a + SIDE), slice(b, b + SIDE)
            minus, plus = _distances(U[rows], V[columns])
            on_diagonal = X2 is None and a == b
            if on_diagonal:  # a row with itself; the cosine of a zero row counts as 0
                zero = r[rows, 0] == 0
                minus[np.diag_indices_from(minus)], plus[np.diag_indices_from(plus)] = zero, 2 - zero
            tile = self._on_host(Pair(r[rows], s[columns].T, minus, plus))
            K[rows, columns] = np.triu(tile) + np.triu(tile, 1).T if on_diagonal else tile
            if X2 is None and not on_diagonal:
                K[columns, rows] = tile.T
        return K

    def _diag_of_checked(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        return self._on_host(_with_themselves(polar(X, np)[1][:, 0], np))

    def _on_host(self, pair: Pair) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.of_pair(pair, np))


def angles(X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "p q"]:
    """The angle between every pair of rows, in [0, π], to an absolute error of a few ε at every angle.

    A zero row has no direction; its angle to anything is given as π/2.
    """
    (U, r), (V, s) = polar(X1, np), polar(X2, np)
    return np.asarray(Pair(r, s.T, *_distances(U, V)).angles(np)[0])


def _with_themselves(r: Any, xp: ModuleType) -> Pair:
    """Every row with itself, by their lengths, at the angle exactly 0."""
    zero = xp.where(r == 0, xp.ones_like(r), xp.zeros_like(r))  # the cosine of a zero row counts as 0
    return Pair(r, r, zero, 2 - zero)


def _distances(U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 − cos and 1 + cos of all unit rows: near 0 from half the squared chord, ‖u ∓ v‖²/2, which keeps all digits."""
    cosine = np.clip(U @ V.T, -1.0, 1.0)
    rows, columns = np.nonzero(np.abs(cosine) > 1 - NEAR)
    minus, plus = 1 - cosine, 1 + cosine
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        i, j = rows[start : start + PAIRS_AT_ONCE], columns[start : start + PAIRS_AT_ONCE]
        sign = np.sign(cosine[i, j])
        near = ((U[i] - sign[:, None] * V[j]) ** 2).sum(axis=1) / 2
        minus[i, j] = np.where(sign > 0, near, 2 - near)
        plus[i, j] = np.where(sign > 0, 2 - near, near)
    return minus, plus


def check_precision(kernel: Any, precision: str) -> None:
    """Refuse a precision of inner products that JAX does not know, or to a kernel that takes none."""
    require(
        isinstance(kernel, AngularKernel),
        f"precision={precision!r}: the kernel {kernel.name} takes none; leave it out.",
    )
    try:
        jax.eval_shape(lambda: jnp.matmul(jnp.ones((1, 1)), jnp.ones((1, 1)), precision=precision))
    except ValueError:
        raise InputError(
            f"precision={precision!r}: JAX knows 'highest', 'high', 'default', 'float32', 'tensorfloat32', 'bfloat16' …"
        ) from None
