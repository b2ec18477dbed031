"""The rectangular tangent kernel of some inputs against others."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from offtangent._checks import require
from offtangent.kernels.passes import product
from offtangent.kernels.tangent import TangentKernel


@dataclass(frozen=True, eq=False, repr=False)
class TangentCross:
    """K(X1, X2) of a network as an operator: `K @ v` takes what is shaped like f's outputs on X2 to those on X1.

    Attributes:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X1: The inputs of the rows.
        X2: Those of the columns.
        budget: Bytes that two blocks of samples may take, as in `TangentKernel`.
    """

    f: Callable[..., Any]
    params: PyTree
    X1: PyTree
    X2: PyTree
    budget: float | int | None = None

    def __post_init__(self) -> None:
        _ = self._rows, self._columns  # refuses what is no network and no input

    @cached_property
    def _rows(self) -> TangentKernel:
        return TangentKernel(self.f, self.params, self.X1, budget=self.budget)

    @cached_property
    def _columns(self) -> TangentKernel:
        return TangentKernel(self.f, self.params, self.X2, budget=self.budget)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix of all pairs (sample, output)."""
        return self._rows.shape[0], self._columns.shape[0]

    @property
    def T(self) -> "TangentCross":
        """K(X2, X1)."""
        return TangentCross(self.f, self.params, self.X2, self.X1, self.budget)

    def __repr__(self) -> str:
        return f"TangentCross(outputs {self._rows.outputs} × {self._columns.outputs})"

    def __matmul__(self, v: Float[Array | np.ndarray, "p *rest"]) -> Float[Array, "n *rest"]:
        """Compute J(X1)J(X2)ᵀv, in the dtype of f. Time: a pass back for X2 and one forward for X1 a vector.

        Args:
            v: A vector shaped like f's outputs on X2, or many along one more axis.

        Returns:
            The product, shaped like f's outputs on X1.

        Raises:
            InputError: If v has another shape.
        """
        v, outputs = jnp.asarray(v), self._columns.outputs
        require(
            outputs in (v.shape, v.shape[:-1]),
            f"The vector has shape {v.shape}: expected that of the outputs on X2, {outputs}, or one axis more.",
        )
        if v.shape == outputs:
            return product(self.f, self.params, self.X1, self.X2, v)
        return jnp.stack([self @ v[..., i] for i in range(v.shape[-1])], axis=-1)

    def dense(self) -> Float[np.ndarray, "n p *kk"]:
        """Compute the matrix, as `TangentKernel.dense(X2)` does."""
        return self._rows.dense(self.X2)

    def trace(self) -> Float[np.ndarray, "n p"]:
        """Compute the sum over outputs, as `TangentKernel.trace(X2)` does."""
        return self._rows.trace(self.X2)

    def diagonal(self) -> Float[np.ndarray, "n p *k"]:
        """Compute the kernel of each output by itself, as `TangentKernel.diagonal(X2)` does."""
        return self._rows.diagonal(self.X2)

    def by_leaf(self) -> dict[str, Float[np.ndarray, "n p"]]:
        """Compute what each leaf of the parameters adds to `trace`, as `TangentKernel.by_leaf(X2)` does."""
        return self._rows.by_leaf(self.X2)
