"""Tangent kernels of many samples, a block of rows by a block of columns at a time."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from offtangent._checks import require
from offtangent._errors import InputError
from offtangent.kernels.factors import Factored, Route, gradients
from offtangent.kernels.gradients import Gradients

Form: TypeAlias = Literal["every_pair", "summed", "each_output", "each_leaf"]

AT_ONCE = 1 << 26  # numbers that are held at once: 256 MB in float32
# Numbers of which a CPU's passes make use again and again: what takes more comes from the system afresh, page by page.
REUSED = 1 << 22
FEW = 3  # samples by which one sees whether they know of each other


def matrix(
    f: Callable[..., Any],
    params: PyTree,
    X: PyTree,
    X2: PyTree | None,
    form: Form,
    factored: Factored,
    budget: float | int | None = None,
) -> np.ndarray:
    """Compute the tangent kernel of a network on X and X2; where X2 is None, half of the blocks on X.

    Args:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: The inputs of the rows.
        X2: Those of the columns, None for those of the rows.
        form: Of a pair of samples: the inner products of all outputs' gradients, of each output's by itself, their sum,
            or that sum leaf by leaf.
        factored: The network's backward pass, by which the ways and the sizes of blocks are chosen.
        budget: Bytes that two blocks and what is held of their pairs may take, by default `AT_ONCE` numbers.

    Returns:
        An array with rows and columns first; with "each_leaf" the last axis has the leaves in their order.
    """
    other = X if X2 is None else X2
    shape, k = (length(X), length(other)), factored.program.outputs
    samples = shape[:1] if X2 is None else shape
    apart = form == "each_leaf"
    routes = factored.routes(samples, apart)
    last = {"every_pair": (k, k), "summed": (), "each_output": (k,), "each_leaf": (len(routes),)}[form]
    if all(route.way == "unused" for route in routes):  # what does not depend on its parameters has no gradient
        return np.zeros((*shape, *last), factored.program.dtype)
    rows, columns = _cut(routes, shape, _numbers(factored, budget))
    found = _room(shape, last, factored.program.dtype, form)

    def block_of(inputs: PyTree, part: slice) -> list[Gradients]:
        return _gradients(f, params, take(inputs, part), samples, apart, _passing(routes))

    for i, row in enumerate(rows):
        left = block_of(X, row)
        for j, column in enumerate(columns):
            if X2 is None and j < i:
                continue
            right = left if X2 is None and j == i else block_of(other, column)
            block = np.asarray(_tile(left, right, form))
            del right  # or else it would be held while the next one is made
            if form == "every_pair":  # in memory it stays the matrix of all pairs (sample, output)
                block = block.reshape(row.stop - row.start, k, column.stop - column.start, k).swapaxes(1, 2)
            if form == "each_leaf":
                block = _with_unused(block, routes)
            if block.shape == found.shape:
                return block
            found[row, column] = block
            if X2 is None and j > i:
                turned = np.swapaxes(block, 0, 1)
                found[column, row] = np.swapaxes(turned, 2, 3) if form == "every_pair" else turned
    return found


def _passing(routes: list[Route]) -> int:
    """How many samples go through the network together: on a CPU those whose numbers fit into `REUSED`."""
    if jax.default_backend() != "cpu":
        return AT_ONCE
    return max(1, REUSED // max(1, sum(route.kept + route.passing for route in routes)))


def _gradients(
    f: Callable[..., Any], params: PyTree, X: PyTree, samples: tuple[int, ...], apart: bool, together: int
) -> list[Gradients]:
    """The gradients of a block, so many samples at a time."""
    n = length(X)
    if n <= together:
        return gradients(f, params, X, samples, apart)
    whole: Any = None
    for at in (min(at, n - together) for at in range(0, n, together)):
        part = gradients(f, params, take(X, slice(at, at + together)), samples, apart)
        if whole is None:
            whole = jax.tree.map(lambda leaf: jnp.zeros((n, *leaf.shape[1:]), leaf.dtype), part)
        whole = _put(whole, part, at)
    return list(whole)


@partial(jax.jit, donate_argnums=0)
def _put(whole: list[Gradients], part: list[Gradients], at: Array | int) -> list[Gradients]:
    """Some samples' gradients in their place among those of a block."""
    return jax.tree.map(lambda room, one: jax.lax.dynamic_update_slice_in_dim(room, one, at, 0), whole, part)


def _room(shape: tuple[int, int], last: tuple[int, ...], dtype: Any, form: Form) -> np.ndarray:
    """Room for all blocks, which lie in memory as one block does."""
    if form != "every_pair":
        return np.empty((*shape, *last), dtype)
    return np.empty((shape[0], last[0], shape[1], last[1]), dtype).swapaxes(1, 2)


def _with_unused(block: np.ndarray, routes: list[Route]) -> np.ndarray:
    """What each leaf adds, zero for those that the outputs do not depend on."""
    made = np.zeros((*block.shape[:2], len(routes)), block.dtype)
    made[:, :, [place for place, route in enumerate(routes) if route.way != "unused"]] = block
    return made


def diagonal(
    f: Callable[..., Any], params: PyTree, X: PyTree, factored: Factored, budget: float | int | None = None
) -> np.ndarray:
    """Compute ‖∂f_j(x)‖² for every sample and output j, without any pair of samples.

    Args:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: The inputs.
        factored: The network's backward pass.
        budget: Bytes that a block may take, by default `AT_ONCE` numbers.

    Returns:
        An array of (n, k).
    """
    routes, n = factored.routes((1,)), length(X)
    if all(route.way == "unused" for route in routes):
        return np.zeros((n, factored.program.outputs), factored.program.dtype)
    # What is held of a pair is held here of each sample, which meets itself alone.
    each = sum(route.kept + route.passing for route in routes) + max(route.of_pair for route in routes)
    rows = max(1, min(n, _passing(routes), int(_numbers(factored, budget) // each)))
    starts = [min(at, n - rows) for at in range(0, n, rows)]
    found = np.empty((n, factored.program.outputs), factored.program.dtype)
    for at in starts:
        block = slice(at, at + rows)
        found[block] = np.asarray(_squares(gradients(f, params, take(X, block), (1,))))
    return found


@eqx.filter_jit
def _squares(made: list[Gradients]) -> Array:
    def of_sample(one: Gradients) -> Array:
        alone = jax.tree.map(lambda leaf: leaf[None], one)
        return alone.each_output(alone)[0, 0]

    parts = [jax.lax.map(of_sample, one) for one in made]
    return sum(parts[1:], start=parts[0])


def _numbers(factored: Factored, budget: float | int | None) -> float | int:
    """How many numbers may be held at once."""
    return AT_ONCE if budget is None else budget / jnp.dtype(factored.program.dtype).itemsize


def _cut(chosen: list[Route], samples: tuple[int, int], numbers: float | int) -> tuple[list[slice], list[slice]]:
    """Blocks of rows and of columns: two of them, and what is held of their pairs, take so many numbers at most.

    The blocks of a side have one size, so that nothing is compiled for a rest: the last one begins earlier instead.
    """
    each = max(1, sum(2 * route.kept + route.passing for route in chosen))
    pair = max(1, max(route.of_pair for route in chosen))
    size = max(1, int((math.sqrt(each**2 + 4 * pair * numbers) - each) / (2 * pair)))
    sides = []
    for n in samples:
        count = -(-n // min(size, n))
        rows = -(-n // count)
        sides.append([slice(min(at, n - rows), min(at, n - rows) + rows) for at in range(0, n, rows)])
    return sides[0], sides[1]


@eqx.filter_jit
def _tile(left: list[Gradients], right: list[Gradients], form: Form) -> Array:
    """The inner products of two blocks of samples, added up over the leaves.

    A program of its own: made together with the gradients, XLA would compute these in the order of the products.
    """
    parts = [getattr(one, "summed" if form == "each_leaf" else form)(two) for one, two in zip(left, right, strict=True)]
    return jnp.stack(parts, axis=-1) if form == "each_leaf" else sum(parts[1:], start=parts[0])


def check_apart(f: Callable[..., Any], params: PyTree, X: PyTree) -> None:
    """Refuse a network whose output for one sample depends on the others: it has no gradient of that sample."""
    few = take(X, slice(0, FEW))
    together, alone = (run(f, params, few) for run in (_together, _alone))
    apart, size = (float(jnp.max(jnp.abs(one))) for one in (together - alone, together))
    require(
        not apart > 10 * float(jnp.finfo(together.dtype).eps) ** 0.5 * size,  # type: ignore[no-untyped-call]
        f"f(params, x) gives a sample another output by itself than among {len(together)} (by {apart:.2g}): a tangent "
        "kernel is of functions of one sample. Put batch norm and dropout into evaluation mode, as docs/taylor.md has "
        "it.",
    )


@eqx.filter_jit
def _together(f: Callable[..., Any], params: PyTree, X: PyTree) -> Array:
    return f(params, X)


@eqx.filter_jit
def _alone(f: Callable[..., Any], params: PyTree, X: PyTree) -> Array:
    return jax.vmap(lambda x: f(params, jax.tree.map(lambda leaf: leaf[None], x))[0])(X)


def take(X: PyTree, rows: slice) -> PyTree:
    """Some of the samples."""
    if rows.start == 0 and rows.stop >= length(X):  # all of them: nothing to copy
        return X
    return jax.tree.map(lambda leaf: leaf[rows], X)


def length(X: PyTree) -> int:
    """How many samples there are."""
    return int(jax.tree.leaves(X)[0].shape[0])


def arrays(X: PyTree) -> PyTree:
    """Inputs as JAX's arrays, or an InputError."""
    try:
        return jax.tree.map(jnp.asarray, X)
    except (TypeError, ValueError) as error:
        raise InputError(f"The inputs are no arrays of numbers: {error}") from error
