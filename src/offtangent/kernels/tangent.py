"""The tangent kernel of a network at its own width and weights, as an operator and as a matrix in several forms."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from offtangent._checks import check_count, check_finite, check_numbers, check_real, require
from offtangent._errors import InputError
from offtangent.kernels import solves
from offtangent.kernels.blocks import Form, arrays, check_apart, diagonal, matrix
from offtangent.kernels.definiteness import check_ridge
from offtangent.kernels.factors import Factored, Way
from offtangent.kernels.passes import product
from offtangent.kernels.solves import Watch
from offtangent.linalg import Spectrum
from offtangent.linalg.solution import Solution
from offtangent.taylor.checks import check_function, check_outputs, check_some

if TYPE_CHECKING:
    from offtangent.kernels.projection import Projection
    from offtangent.kernels.tangent_moments import TangentMoments
    from offtangent.kernels.tangent_regression import TangentRegression

Method = Literal["cholesky", "conjugate gradients"]


@dataclass(frozen=True, eq=False, repr=False)
class TangentKernel:
    """The tangent kernel of f at `params` on inputs X, plus a ridge: an operator, and the matrix in several forms.

    Its rows are all pairs (sample, output), nk of them. `K @ v` takes and gives arrays shaped like f's outputs, (n,) or
    (n, k), or with one more axis for many vectors. The ridge counts wherever K is taken as this one matrix: in `@`,
    `dense()`, `diag`, `eigh` and `solve`; blocks against other inputs and sums over outputs or leaves are without it.

    Attributes:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: The inputs.
        ridge: What is added to the diagonal, zero or positive.
        budget: Bytes that two blocks of samples may take while they are multiplied, beside the result; by default
            2²⁶ numbers, 256 MB in float32. One sample's gradients are held in any case.
    """

    f: Callable[..., Any]
    params: PyTree
    X: PyTree
    ridge: float | int = 0.0
    budget: float | int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_function(self.f)
        check_some(self.params)
        check_finite(self.params, "The parameters")
        check_finite(self.X, "The inputs")
        check_outputs(self.f, self.params, self.X)
        check_ridge(self.ridge)
        if self.budget is not None:
            check_real("budget", self.budget)
            require(self.budget > 0, f"budget={self.budget}: the memory for blocks is a positive number of bytes.")

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The shape of f's outputs on X: (n,) or (n, k)."""
        return tuple(eqx.filter_eval_shape(self.f, self.params, self.X).shape)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of all pairs (sample, output), (nk, nk)."""
        size = int(np.prod(self.outputs))
        return size, size

    @cached_property
    def _factored(self) -> Factored:
        check_apart(self.f, self.params, self.X)
        return Factored.of(self.f, self.params, self.X)

    def __len__(self) -> int:
        return self.outputs[0]

    def __repr__(self) -> str:
        return f"TangentKernel({_count(self.params)} parameters, outputs {self.outputs}, ridge={self.ridge:g})"

    def with_ridge(self, ridge: float | int) -> "TangentKernel":
        """Make the same kernel with another ridge; the network is not looked at again.

        Args:
            ridge: The new ridge, in place of the old one.

        Returns:
            The new kernel.
        """
        other = replace(self, ridge=ridge)
        if "_factored" in self.__dict__:
            object.__setattr__(other, "_factored", self._factored)
        return other

    def __matmul__(self, v: Float[Array | np.ndarray, "n *rest"]) -> Float[Array, "n *rest"]:
        """Compute J(Jᵀv) + ridge·v, in the dtype of f. Time: two passes through the network a vector.

        Args:
            v: A vector shaped like f's outputs, or many along one more axis.

        Returns:
            The product, shaped like v.
        """
        v = jnp.asarray(v)
        if v.shape == self.outputs:
            found = product(self.f, self.params, self.X, self.X, v)
            return found + jnp.asarray(self.ridge, found.dtype) * v.astype(found.dtype) if self.ridge else found
        if v.shape[:-1] == self.outputs:
            return jnp.stack([self @ v[..., i] for i in range(v.shape[-1])], axis=-1)
        raise InputError(
            f"The vector has shape {v.shape}: expected that of the outputs, {self.outputs}, or one axis more."
        )

    def dense(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *kk"]:
        """Compute K(X, X2).

        Time O(npk²(a + b)) for a layer of a inputs and b outputs that acts once, where its Jacobians would take
        O(npk²ab), and k passes a sample through the network.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p) for one output, an array of (n, p, k, k) for k of them. In memory it is the matrix of all
            pairs (sample, output), samples first.
        """
        return _matrix(self, X2, "every_pair")

    def trace(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p"]:
        """Compute Σ_j ⟨∂f_j(x), ∂f_j(x')⟩, the trace of each k × k block, in the time of `dense` at most.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p).
        """
        return _matrix(self, X2, "summed")

    def diagonal(self, X2: PyTree | None = None) -> Float[np.ndarray, "n p *k"]:
        """Compute ⟨∂f_j(x), ∂f_j(x')⟩ for each output j: the kernel of each output by itself, in that time, too.

        Args:
            X2: Other inputs, by default X.

        Returns:
            An array of (n, p, k), or (n, p) where there is one output and no axis for it.
        """
        return _matrix(self, X2, "each_output")

    def by_leaf(self, X2: PyTree | None = None) -> dict[str, Float[np.ndarray, "n p"]]:
        """Compute what each leaf of the parameters adds to `trace`: how much of the kernel each layer carries.

        Args:
            X2: Other inputs, by default X.

        Returns:
            A matrix of (n, p) for each leaf, by the leaf's place among the parameters; they add up to `trace(X2)`.
        """
        parts = _matrix(self, X2, "each_leaf")
        found: dict[str, np.ndarray] = {}
        for place, route in enumerate(self._factored.routes((len(self),))):  # slices of a leaf have its name
            part = parts[:, :, place]
            found[route.leaf] = found[route.leaf] + part if route.leaf in found else part
        return found

    def diag(self) -> Float[np.ndarray, "n *k"]:
        """Compute ‖∂f_j(x)‖² + ridge for every sample and output, in time and memory that do not grow like n²."""
        found = diagonal(self.f, self.params, self.X, self._factored, self.budget) + self.ridge
        return found.reshape(self.outputs)

    @property
    def ways(self) -> dict[str, Way]:
        """How inner products of gradients are computed, leaf by leaf, for all inputs against all.

        "positions" and "lookup" keep what entered the layer and what came back to it, "outer products" multiplies the
        two for each sample, "gradient" is JAX's own gradient, and "unused" a leaf on which the outputs do not depend.
        A bias goes "with its weights" where one of their factors is its gradient. Of a leaf that is used in slices, as
        weights above a row of biases, it is the way of the largest.
        """
        routes = sorted(self._factored.routes((len(self),)), key=lambda route: route.size)
        last = {route.leaf: route.way for route in routes}
        return {name: last[name] for name in self._factored.program.names}

    def eigh(
        self, k: int | None = None, *, which: Literal["largest", "smallest"] = "largest", watch: Watch | None = None
    ) -> Spectrum:
        """Compute all eigenpairs, or the k largest or smallest, of the matrix of all pairs (sample, output).

        Time O((nk)³) through the dense matrix where that fits and k is no small part of it; else Lanczos by products.

        Args:
            k: How many eigenpairs are wanted; all by default.
            which: Which k of them, "largest" or "smallest".
            watch: Called with a line of text as the work proceeds.

        Returns:
            The eigenpairs; `vectors.reshape(*K.outputs, -1)` are shaped like outputs.

        Raises:
            InputError: If k is not between 1 and nk, or `which` is neither.
        """
        if k is not None:
            check_count("k", k)
        return solves.eigh(self._flat, k, which, watch)

    def solve(
        self,
        b: Float[np.ndarray | Array, "n *rest"],
        *,
        tolerance: float = 1e-6,
        method: Method | None = None,
        watch: Watch | None = None,
    ) -> Solution:
        """Solve (K + ridge·I)x = b to ‖b − (K + ridge·I)x‖ ≤ tolerance·‖b‖, for one right side or many at once.

        By Cholesky of the dense matrix in float64 where it fits and is moderate; else by preconditioned conjugate
        gradients, corrected by products in the dtype of f.

        Args:
            b: The right side, shaped like f's outputs, or many along one more axis.
            tolerance: The relative residual wanted of the worst right side.
            method: "cholesky" or "conjugate gradients"; by default chosen by size.
            watch: Called with a line of text as the work proceeds.

        Returns:
            The solution's `value` x, shaped like b, its `residual`, whether it `converged`, `iterations` and `method`.

        Raises:
            InputError: If the matrix is singular to rounding, or b is not finite or of another shape.
        """
        check_real("tolerance", tolerance)
        given = check_numbers(b, "b")
        require(
            given.shape == self.outputs or given.shape[:-1] == self.outputs,
            f"b has shape {given.shape}: expected that of the outputs, {self.outputs}, or one axis more.",
        )
        columns = given.reshape(self.shape[0], *given.shape[len(self.outputs) :])
        found = solves.solve(self._flat, columns, tolerance, method, watch)
        return replace(found, value=found.value.reshape(given.shape))

    def fit(self, Y: object, *, tolerance: float = 1e-6, method: Method | None = None) -> "TangentRegression":
        """Fit labels by ridge regression with this kernel: the linearised network, trained to the end.

            f(x) + k(x, X)α,      α = (K + ridge·I)⁻¹(Y − f(X)),

        minimises Σ‖y − f_lin(θ; x)‖² + ridge·‖θ − params‖² over all θ, f_lin being f's first-order expansion.

        Args:
            Y: Labels, shaped like f's outputs.
            tolerance: As in `solve`.
            method: As in `solve`.

        Returns:
            The regression, with `predict(X_new)`, `leave_one_out`, the `coefficients` α, the `displacement` θ − params
            and the `residual` reached.

        Raises:
            InputError: If Y has another shape or is not finite, or the matrix is singular to rounding.
        """
        from offtangent.kernels.tangent_regression import TangentRegression

        return TangentRegression.of(self, Y, tolerance, method)

    def moments(self, Y: object = None, *, products: int = 60, key: Key[Array, ""]) -> "TangentMoments":
        """Estimate trace, Frobenius norm and effective rank of K, without the ridge, by Hutch++ and without the matrix.

        Args:
            Y: Labels shaped like f's outputs; with them the alignment ⟨K, YYᵀ⟩/(‖K‖_F ‖Y‖²) is estimated, too.
            products: How many products with K may be taken, at least 6; each is two passes through the network.
            key: The JAX key that decides the random signs.

        Returns:
            `trace`, `frobenius`, `effective_rank` and `alignment`, each a `value` with its standard `error`.

        Raises:
            InputError: If `products` is too small, `key` no key, or Y is zero, not finite or of another shape.
        """
        from offtangent.kernels.tangent_moments import TangentMoments

        return TangentMoments.of(self, Y, products, key)

    def project(self, rank: int, *, key: Key[Array, ""]) -> "Projection":
        """Project the gradients onto random directions, of which the inner products estimate K: for any n and P.

        Time: `rank` forward passes through the network, memory nk·rank floats.

        Args:
            rank: The number of directions.
            key: The JAX key that decides them.

        Returns:
            The projection, with its `features`, `dense()` and `error()`, the standard error of each entry.

        Raises:
            InputError: If `rank` is no positive whole number, or `key` no key.
        """
        from offtangent.kernels.projection import Projection

        return Projection.of(self, rank, key)

    @cached_property
    def _flat(self) -> Any:
        from offtangent.kernels.all_pairs import AllPairs

        return AllPairs(self)


def _matrix(K: TangentKernel, X2: PyTree | None, form: Form) -> np.ndarray:
    """The kernel in one of its forms, read-only; with one output there is no axis for it."""
    other = K.X if X2 is None else arrays(X2)
    if X2 is not None:
        check_finite(other, "The inputs")
        check_outputs(K.f, K.params, other)
    found = matrix(K.f, K.params, K.X, None if X2 is None else other, form, K._factored, K.budget)
    if form == "every_pair" and X2 is None and K.ridge:
        found = found if found.flags.writeable else found.copy()
        np.einsum("iijj->ij", found)[...] += K.ridge
    single = len(K.outputs) == 1
    found = found[:, :, 0, 0] if form == "every_pair" and single else found
    found = found[:, :, 0] if form == "each_output" and single else found
    found.flags.writeable = False
    return found


def shaped(values: object, name: str, K: TangentKernel) -> Float[np.ndarray, "n *k"]:
    """Finite numbers in float64, shaped like f's outputs, or an InputError."""
    found = check_numbers(values, name)
    require(
        found.shape == K.outputs,
        f"{name} has shape {found.shape}: expected that of the network's outputs, {K.outputs}.",
    )
    require(np.isfinite(found).all(), f"{name} has entries that are NaN or infinite: give finite numbers.")
    return found


def _count(params: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array)))
