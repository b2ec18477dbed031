"""What a Gram matrix asks of a kernel, and what solves ask of a matrix that need not be held."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from offtangent.linalg.preconditioner import LowRank
from offtangent.linalg.tiles import SymmetricTiles


@runtime_checkable
class Kernel(Protocol):
    """What a Gram matrix asks of a kernel: a jittable block and diagonal, and an exact block in float64."""

    @property
    def name(self) -> str: ...
    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"], /) -> Float[Array, "p q"]: ...
    def diag(self, X: Any, /) -> Any: ...
    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None, /
    ) -> Float[np.ndarray, "p q"]: ...


class Solvable(Protocol):
    """A matrix K + ridge·I by its rows, its products in low and in high precision, and a likeness of low rank."""

    @property
    def ridge(self) -> float | int: ...
    def __len__(self) -> int: ...
    def dense(self) -> Float[np.ndarray, "n n"]: ...
    def diag(self) -> Float[np.ndarray, "n"]: ...
    def operator(self, dtype: Any = ...) -> Any: ...
    def preconditioner(self, watch: Callable[[str], None] | None) -> LowRank: ...
    def product(self, x: Float[np.ndarray, "n c"], watch: Callable[[str], None] | None) -> Float[np.ndarray, "n c"]: ...


class Shifted(eqx.Module):
    """tiles + ridge·I, a pytree with `@`: what a jitted function should be handed."""

    tiles: SymmetricTiles
    ridge: Float[Array, ""]

    def __matmul__(self, v: Float[Array, "n *c"]) -> Float[Array, "n *c"]:
        return self.tiles @ v + self.ridge * v
