"""PyTorch's products of matrices and other linear algebra in JAX.

Their precision on a GPU is JAX's: `jax.default_matmul_precision("highest")` is what PyTorch does by default.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from offtangent.interop.operations import Number, Rule, into
from offtangent.interop.reductions import norm

RULES: dict[str, Rule] = {}
rule = into(RULES)


@rule("aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default", "aten.dot.default")
def product(x: Any, y: Any) -> Any:
    """The product of two matrices, or of two stacks of them."""
    return jnp.matmul(x, y)


@rule("aten.addmm.default", "aten.baddbmm.default")
def plus_product(c: Any, x: Any, y: Any, beta: Number = 1, alpha: Number = 1) -> Any:
    """βc + α xy."""
    found = jnp.matmul(x, y)
    found = found if alpha == 1 else alpha * found
    return found + (c if beta == 1 else beta * c)


@rule("aten._trilinear.default")
def trilinear(
    x: Any,
    y: Any,
    z: Any,
    new_x: Sequence[int],
    new_y: Sequence[int],
    new_z: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Any:
    """Σ xyz over some axes, each with axes of length one where it has none."""
    del unroll
    axes = "abcdefgh"[: x.ndim + len(new_x)]
    names = ["".join(axis for at, axis in enumerate(axes) if at not in new) for new in (new_x, new_y, new_z)]
    kept = "".join(axis for at, axis in enumerate(axes) if at not in summed)
    return jnp.einsum(f"{','.join(names)}->{kept}", x, y, z)


@rule("aten._cdist_forward.default")
def distances(x: Any, y: Any, order: Number, mode: int | None = None) -> Any:
    """‖x_i − y_j‖_p, whose gradient where two points meet is zero."""
    del mode
    return norm(x[..., :, None, :] - y[..., None, :, :], order, -1)


@rule("aten._linalg_det.default")
def determinant(x: Any) -> tuple[Any, None, None]:
    """The determinant; its factors are not kept."""
    return jnp.linalg.det(x), None, None


@rule("aten.linalg_inv_ex.default")
def inverse(x: Any, check_errors: bool = False) -> tuple[Any, None]:
    """The inverse."""
    del check_errors
    return jnp.linalg.inv(x), None


@rule("aten.linalg_cholesky_ex.default")
def cholesky(x: Any, upper: bool = False, check_errors: bool = False) -> tuple[Any, None]:
    """The Cholesky factor."""
    del check_errors
    return jnp.linalg.cholesky(x, upper=upper), None


@rule("aten.linalg_matrix_exp.default")
def exponential(x: Any) -> Any:
    """The exponential of a matrix."""
    return jax.scipy.linalg.expm(x)
