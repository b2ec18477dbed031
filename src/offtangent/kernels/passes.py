"""Products with the Jacobian of a network and with its transpose, a block of samples at a time.

Jᵀv is one backward pass, Ju one forward pass, and (JJᵀ + ridge·I)v both: no Jacobian is ever held.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from offtangent.kernels.blocks import length, take

BATCH = 256  # samples that go through the network together


class Passes(eqx.Module):
    """JJᵀ + ridge·I of a network on n inputs as a pytree with `@`: what a jitted function should be handed.

    It takes vectors of all pairs (sample, output), samples first, or several as columns, and gives back their dtype.
    """

    f: Any
    params: PyTree
    X: PyTree
    ridge: Float[Array, ""]

    @eqx.filter_jit
    def __matmul__(self, v: Float[Array, "nk *c"]) -> Float[Array, "nk *c"]:
        columns = v.reshape(len(v), -1).T
        found = jax.lax.map(self._column, columns)
        return found.T.reshape(v.shape)

    def _column(self, v: Float[Array, " nk"]) -> Float[Array, " nk"]:
        """The product of one column; the last block of samples is filled up with copies whose cotangents are zero."""
        n = length(self.X)
        size = min(BATCH, n)
        blocks = -(-n // size)
        rows = jnp.arange(size * blocks) % n
        X = jax.tree.map(lambda leaf: leaf[rows].reshape(blocks, size, *leaf.shape[1:]), self.X)
        filled = jnp.pad(v.reshape(n, -1), ((0, size * blocks - n), (0, 0))).reshape(blocks, size, -1)

        def add(total: PyTree, item: tuple[PyTree, Array]) -> tuple[PyTree, None]:
            part = pull(self.f, self.params, *item)
            return jax.tree.map(jnp.add, total, part), None

        zero = jax.tree.map(jnp.zeros_like, eqx.filter(self.params, eqx.is_inexact_array))
        pulled, _ = jax.lax.scan(add, zero, (X, filled))
        pushed = jax.lax.map(lambda x: push(self.f, self.params, x, pulled), X)
        return pushed.reshape(-1)[: len(v)].astype(v.dtype) + self.ridge.astype(v.dtype) * v


def product(f: Callable[..., Any], params: PyTree, X: PyTree, X2: PyTree, v: Array) -> Array:
    """J(X) J(X2)ᵀ v for v shaped like f's outputs on X2."""
    return pushed(f, params, X, pulled(f, params, X2, v))


def outputs(f: Callable[..., Any], params: PyTree, X: PyTree) -> Array:
    """f(params, X), a block of samples at a time."""
    blocks = (take(X, slice(at, at + BATCH)) for at in range(0, length(X), BATCH))
    return jnp.concatenate([_outputs(f, params, block) for block in blocks])


def pulled(f: Callable[..., Any], params: PyTree, X: PyTree, v: Array) -> PyTree:
    """Jᵀv, an array for each leaf of the parameters, for v shaped like f's outputs."""
    size = min(BATCH, len(v))
    total = None
    for at in range(0, len(v), size):
        part = pull(f, params, take(X, slice(at, at + size)), v[at : at + size])
        total = part if total is None else jax.tree.map(jnp.add, total, part)
    return total


def pushed(f: Callable[..., Any], params: PyTree, X: PyTree, u: PyTree) -> Array:
    """Ju, shaped like f's outputs."""
    return jnp.concatenate([push(f, params, take(X, slice(at, at + BATCH)), u) for at in range(0, length(X), BATCH)])


@eqx.filter_jit
def _outputs(f: Callable[..., Any], params: PyTree, X: PyTree) -> Array:
    return f(params, X)


@eqx.filter_jit
def pull(f: Callable[..., Any], params: PyTree, X: PyTree, v: Array) -> PyTree:
    """Jᵀv of one block of samples."""
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    value, back = jax.vjp(lambda p: f(eqx.combine(p, fixed), X), moving)
    return back(v.astype(value.dtype).reshape(value.shape))[0]


@eqx.filter_jit
def push(f: Callable[..., Any], params: PyTree, X: PyTree, u: PyTree) -> Array:
    """Ju of one block of samples."""
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    return jax.jvp(lambda p: f(eqx.combine(p, fixed), X), (moving,), (u,))[1]
