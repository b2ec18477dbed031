"""Which neuron each weight belongs to, read off the network: nobody has to say how their library lays weights out.

The gradient of a layer's weights is a product of what entered the layer with what came back to it, for each neuron one
number (`kernels.uses`). So the axes of the second factor count neurons, wherever transposes and reshapes put them: the
columns of a matrix in Flax, the rows in Equinox and PyTorch, the output channels of a convolution, all heads and their
dimensions in an attention layer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int, PyTree

from offtangent.kernels.backward import abstract, backward_pass
from offtangent.kernels.uses import Leaf, Use, leaves_of


@dataclass(frozen=True, eq=False)
class Neurons:
    """The neurons of one array of parameters.

    Attributes:
        name: The array's place among the parameters.
        of_weight: The number of its neuron for each weight, from zero on, in the array's shape.
        count: How many neurons there are.
        is_guess: Whether the network does not tell, so that the last axis was taken.
    """

    name: str
    of_weight: Int[np.ndarray, "*shape"]
    count: int
    is_guess: bool


def neurons_of(f: Callable[..., Any], params: PyTree, X: PyTree) -> list[Neurons]:
    """Find the neurons of every array of a network's parameters.

    Each number of a vector, such as a bias or the scale of a norm, is a neuron's own. An array that is used twice has
    the neurons of its first product; of a table whose rows are looked up, the columns are the neurons, as of the matrix
    that multiplies one-hot rows. Nothing is computed but shapes.

    Args:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: A batch of inputs, of which only the shapes matter.

    Returns:
        The neurons of each floating-point leaf, in the order of the leaves.

    >>> import jax.numpy as jnp
    >>> (rows,) = neurons_of(lambda W, x: jnp.tanh(x @ W.T) @ jnp.ones(3), jnp.ones((3, 2)), jnp.ones((1, 2)))
    >>> rows.count, rows.of_weight.tolist()
    (3, [[0, 0], [1, 1], [2, 2]])
    """
    program = backward_pass(f, params, X)
    slices: dict[str, list[Leaf]] = {}
    for leaf in leaves_of(program):
        slices.setdefault(leaf.name, []).append(leaf)
    shapes = [tuple(abstract(gradient).shape) for gradient in program.jaxpr.outvars]
    return [_of_array(name, shape, slices[name]) for name, shape in zip(program.names, shapes, strict=True)]


def plain_name(place: str) -> str:
    """The place of an array among the parameters without brackets and quotation marks.

    >>> plain_name("['params']['layers_2']['kernel']"), plain_name(".layers[0].weight"), plain_name("params")
    ('params.layers_2.kernel', 'layers.0.weight', 'params')
    """
    return re.sub(r"\['([^']*)'\]|\[(\d+)\]", lambda found: f".{found[1] or found[2]}", place).removeprefix(".")


def _of_array(name: str, shape: tuple[int, ...], slices: list[Leaf]) -> Neurons:
    """The neurons of an array, of which slices may be used apart: the axes that count them are the same in all."""
    known = {axes for leaf in slices if (axes := _axes(leaf)) is not None}
    is_guess = len(shape) > 1 and len(known) != 1
    axes = tuple(range(len(shape) - 1, len(shape))) if is_guess or len(shape) < 2 else known.pop()
    counts = tuple(n if axis in axes else 1 for axis, n in enumerate(shape))
    count = int(np.prod(counts, dtype=int))
    of_weight = np.broadcast_to(np.arange(count, dtype=np.int32).reshape(counts), shape)
    return Neurons(plain_name(name), of_weight, count, is_guess)


def _axes(leaf: Leaf) -> tuple[int, ...] | None:
    """The axes of an array that count neurons, as the first product says in which it is used; None if there is none."""
    for kind in ("product", "convolution", "lookup"):
        for use in leaf.uses:
            found = _laid_out(use, leaf.shape) if use.kind == kind else None
            if found is not None and found.size:
                axes = tuple(a for a in range(found.ndim) if (np.diff(found, axis=a) != 0).any())
                # An axis that is partly of neurons, partly of inputs, tells nothing.
                whole = np.prod([found.shape[a] for a in axes], dtype=int) == len(np.unique(found))
                return axes if whole else None
    return None


def _laid_out(use: Use, shape: tuple[int, ...]) -> Int[np.ndarray, "*shape"] | None:
    """The neurons' numbers in the layout of the product, moved as the product is to become the leaf."""
    assert use.equation is not None
    made = tuple(abstract(use.equation.outvars[0]).shape)
    axes = _counting(use, len(made))
    counts = [made[axis] if axis in axes else 1 for axis in range(len(made))]
    found = np.broadcast_to(np.arange(np.prod(counts, dtype=int), dtype=np.int32).reshape(counts), made)
    for name, after, permutation in use.moves:
        if np.prod(after, dtype=int) != found.size:  # after a loop, whose steps are put together below
            return None
        found = found.transpose(permutation) if name == "transpose" else found.reshape(after)
    if use.stacked:  # the steps of a loop, each with weights of its own, are side by side
        steps = shape[0]
        each = int(found.max(initial=-1)) + 1
        found = found + each * np.arange(steps, dtype=np.int32).reshape(steps, *[1] * (len(shape) - 1))
    return found if found.shape == shape else None


def _counting(use: Use, ndim: int) -> tuple[int, ...]:
    """The axes of the product that come from what came back to the layer, and those of blocks with weights apart."""
    assert use.equation is not None
    if use.kind == "lookup":
        return (ndim - 1,)
    if use.kind == "convolution":
        return (int(use.equation.params["dimension_numbers"].out_spec[1]),)
    contracted, batched = use.equation.params["dimension_numbers"]
    blocks = len(batched[0])
    left = abstract(use.equation.invars[0]).ndim - blocks - len(contracted[0])  # free axes, which come first
    first = use.equation.invars[0] is use.factors[0]
    free = range(blocks + left, ndim) if first else range(blocks, blocks + left)
    return (*range(blocks), *free)
