"""The two factors of a layer's gradient, computed: a batch of samples through the cut backward pass of each."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal as Constant
from jaxtyping import Array, Float, PyTree

from offtangent.kernels.backward import Backward, abstract, backward_pass, evaluate
from offtangent.kernels.gradients import HIGHEST, Gradients, Lookup, Positions, Whole
from offtangent.kernels.uses import Leaf, Use, leaves_of

Way: TypeAlias = Literal["positions", "outer products", "lookup", "gradient", "with its weights", "unused"]


@dataclass(frozen=True)
class Shape:
    """The sizes of a leaf's factors: blocks × positions × (a numbers in, b numbers out)."""

    blocks: int
    positions: int
    inside: int
    outside: int


@dataclass(frozen=True)
class Route:
    """How one leaf's inner products are computed, and what that takes.

    Attributes:
        leaf: The leaf's name among the parameters; its slices have one name.
        size: How many numbers it holds.
        way: "positions" and "lookup" keep the two factors, "outer products" multiplies them for each sample,
            "gradient" has JAX's own gradient; a bias goes "with its weights" where these keep their factors, of which
            one is its gradient; "unused" is a leaf that the outputs do not depend on.
        kept: Numbers that are held of each sample.
        passing: Numbers that are held of each sample while these are computed.
        of_pair: Numbers that are held of each pair of samples while they are multiplied.
    """

    leaf: str
    size: int
    way: Way
    kept: int
    passing: int
    of_pair: int

    @property
    def alone(self) -> bool:
        """Whether the leaf has gradients of its own to multiply."""
        return self.way not in ("unused", "with its weights")


@dataclass(frozen=True, eq=False)
class Factored:
    """The backward pass of a network for one sample, and where its gradients fall into factors.

    Attributes:
        program: The backward pass.
        leaves: The leaves of the parameters, with their uses.
    """

    program: Backward
    leaves: list[Leaf]

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, X: PyTree) -> "Factored":
        """Trace f(params, ·) for one of the inputs, of which only the shapes matter."""
        program = backward_pass(f, params, X)
        return cls(program, leaves_of(program))

    def routes(self, samples: tuple[int, ...], apart: bool = False) -> list[Route]:
        """Choose for every leaf the way that takes the fewest multiplications.

        Args:
            samples: How many inputs there are, on one side or on each of two.
            apart: Whether each leaf is wanted by itself, so that no bias goes with its weights.

        Returns:
            A route for each leaf, or slice of one, in the order of the parameters' leaves.
        """
        found = [_route(leaf, self.program.outputs, samples) for leaf in self.leaves]
        return (
            found
            if apart
            else [_with_weights(*both, found, self.leaves) for both in zip(found, self.leaves, strict=True)]
        )


def _route(leaf: Leaf, k: int, samples: tuple[int, ...]) -> Route:
    if not leaf.uses:
        return Route(leaf.name, leaf.size, "unused", 0, 0, 0)
    shape = _shape(leaf)
    if isinstance(shape, Shape):
        blocks, S, a, b = shape.blocks, shape.positions, shape.inside, shape.outside
        factors, pairs = blocks * S * (a + k * b), samples[0] * samples[-1]
        apart = pairs * blocks * S * S * (a + k * k * (b + 1))
        together = (sum(samples) * S + pairs * k) * k * blocks * a * b
        if apart <= together:
            pair = blocks * (S * S * (1 + k * k) if S > 1 else 1 + k * k)
            return Route(leaf.name, leaf.size, "positions", factors, 0, pair)
        return Route(leaf.name, leaf.size, "outer products", k * leaf.size, factors, k * k)
    if shape == "lookup":
        b = leaf.shape[1]
        S = abstract(leaf.uses[0].factors[1]).size // b
        return Route(leaf.name, leaf.size, "lookup", S * (1 + k * b), 0, S * S * (1 + k * k))
    return Route(leaf.name, leaf.size, "gradient", k * leaf.size, 0, k * k)


def _with_weights(route: Route, leaf: Leaf, routes: list[Route], leaves: list[Leaf]) -> Route:
    """The route of a bias, together with its weights where these act once and keep their factors."""
    if leaf.weights is None or routes[leaf.weights].way != "positions":
        return route
    shape = _shape(leaves[leaf.weights])
    fits = isinstance(shape, Shape) and shape.positions == shape.blocks == 1 and shape.outside == leaf.size
    return Route(leaf.name, leaf.size, "with its weights", 0, 0, 0) if fits else route


def _shape(leaf: Leaf) -> Shape | Literal["lookup"] | None:
    """The sizes of a leaf's factors, where all its uses have the same but for the positions, which then add up."""
    kinds = {use.kind for use in leaf.uses}
    if kinds == {"lookup"} and len(leaf.uses) == 1:
        return "lookup"
    if not kinds <= {"product", "convolution"} or len(kinds) > 1:
        return None
    if len({(use.moves, use.stacked, _orientation(use)) for use in leaf.uses}) > 1:
        return None
    shapes = [_sizes(use, leaf.size) for use in leaf.uses]
    if len({(one.blocks, one.inside, one.outside) for one in shapes}) > 1:
        return None
    if shapes[0].blocks * shapes[0].inside * shapes[0].outside != leaf.size:
        return None
    first = shapes[0]
    return Shape(first.blocks, sum(one.positions for one in shapes), first.inside, first.outside)


def _orientation(use: Use) -> Any:
    """Which factor comes first in the product; of a convolution where its axes stand."""
    assert use.equation is not None
    if use.kind == "product":
        return use.equation.invars[0] is use.factors[0]
    return str(use.equation.params["dimension_numbers"]), use.equation.params["batch_group_count"]


def _sizes(use: Use, size: int) -> Shape:
    assert use.equation is not None
    given, back = (abstract(factor).shape for factor in use.factors)
    if use.kind == "convolution":
        numbers = use.equation.params["dimension_numbers"]
        groups = use.equation.params["batch_group_count"]
        positions = math.prod(back[axis] for axis in numbers.rhs_spec[1:])
        outside = back[numbers.rhs_spec[0]] // groups
        return Shape(groups, positions, size // (groups * outside), outside)
    (contracted, batched), _ = _axes(use)
    positions, blocks = (math.prod(given[axis] for axis in axes) for axes in (contracted, batched))
    steps = use.loop.params["length"] if use.loop is not None else 1
    inside, outside = (math.prod(shape) // (positions * blocks) for shape in (given, back))
    return Shape(blocks * (steps if use.stacked else 1), positions * (1 if use.stacked else steps), inside, outside)


def _axes(use: Use) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The contracted and the batched axes of both factors of a product, the layer's input first."""
    assert use.equation is not None
    contracted, batched = use.equation.params["dimension_numbers"]
    first = 0 if use.equation.invars[0] is use.factors[0] else 1
    return (contracted[first], batched[first]), (contracted[1 - first], batched[1 - first])


@eqx.filter_jit
def gradients(
    f: Callable[..., Any], params: PyTree, X: PyTree, samples: tuple[int, ...], apart: bool = False
) -> list[Gradients]:
    """The gradients of a batch by every leaf that counts, each in the form of its route.

    Args:
        f: The network.
        params: Its parameters.
        X: The batch.
        samples: How many inputs there are in all, on one side or on each of two, by which the routes are chosen.
        apart: Whether each leaf is wanted by itself.

    Returns:
        The gradients, leaf by leaf, without those that are unused or go with others.
    """
    found = Factored.of(f, params, X)
    program, chosen = found.program, found.routes(samples, apart)
    both = list(zip(found.leaves, chosen, strict=True))
    beside = Counter(leaf.weights for leaf, route in both if route.way == "with its weights")
    biases = [beside[place] for place, (_, route) in enumerate(both) if route.alone]
    used = [(leaf, route.way) for leaf, route in both if route.alone]
    arguments = jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array))
    basis = jnp.eye(program.outputs, dtype=program.dtype)

    def of_sample(sample: list[Array]) -> list[tuple[Array, Array]]:
        def of_output(cotangent: Array) -> list[tuple[Array, Array]]:
            return _factors(program, used, [cotangent, *arguments, *sample])

        return jax.vmap(of_output, out_axes=[(None, 0)] * len(used))(basis)

    made = jax.vmap(of_sample)(jax.tree.leaves(X))
    return [_finished(way, *pair, ones) for (_, way), pair, ones in zip(used, made, biases, strict=True)]


def _finished(way: Way, given: Array, back: Array, biases: int) -> Gradients:
    if way == "gradient":
        return Whole(back.reshape(*back.shape[:2], -1))
    if way == "lookup":
        return Lookup(given, back)
    if way == "positions":
        return Positions(given, back, biases)
    n, k = back.shape[:2]
    if given.shape[1] == 1:  # one block: a product of matrices a sample and output, whose operands stay in the cache
        made = jax.lax.map(
            lambda pair: jax.vmap(lambda one: jnp.matmul(pair[0][0].T, one[0], precision=HIGHEST))(pair[1]),
            (given, back),
        )
    else:
        made = jnp.einsum("ngsa,nkgsb->nkgab", given, back, precision=HIGHEST)
    return Whole(made.reshape(n, k, -1))


def _factors(program: Backward, used: Sequence[tuple[Leaf, Way]], arguments: Sequence[Array]) -> list[tuple[Any, Any]]:
    """Both factors of every leaf for one sample and one output; of a whole gradient nothing, and that."""
    watched: dict[int, list[Any]] = {}
    for leaf, way in used:
        for use in leaf.uses if way != "gradient" else ():
            if use.loop is not None:
                watched.setdefault(id(use.loop), []).extend(use.factors)
    watched = {loop: list(dict.fromkeys(found)) for loop, found in watched.items()}
    values = evaluate(program.jaxpr, program.consts, arguments, watched)

    def value(atom: Any) -> Any:
        return atom.val if isinstance(atom, Constant) else atom if isinstance(atom, float) else values[atom]

    made: list[tuple[Any, Any]] = []
    for leaf, way in used:
        if way == "gradient":
            made.append((jnp.zeros(()), sum(jnp.ravel(value(one)) for one in leaf.gradients)))
            continue
        pairs = [_pair(use, *map(value, use.factors)) for use in leaf.uses]
        scaled = [(given, _times(back, use, value)) for use, (given, back) in zip(leaf.uses, pairs, strict=True)]
        axis = 0 if way == "lookup" else 1
        made.append(tuple(jnp.concatenate(side, axis) for side in zip(*scaled, strict=True)))  # type: ignore[arg-type]
    return made


def _times(back: Array, use: Use, value: Callable[[Any], Any]) -> Array:
    for scale, divides in use.scales:
        back = back / value(scale) if divides else back * value(scale)
    return back


def _pair(use: Use, given: Array, back: Array) -> tuple[Array, Array]:
    """Both factors as blocks × positions × numbers; of a lookup the rows, and positions × numbers."""
    if use.kind == "lookup":
        return given.reshape(-1), back.reshape(-1, back.shape[-1])
    if use.kind == "convolution":
        return _patches(use, given, back)
    lead = 0 if use.loop is None else 1
    sides = [_ordered(one, *axes, lead) for one, axes in zip((given, back), _axes(use), strict=True)]
    if use.loop is None:
        return sides[0], sides[1]
    if use.stacked:  # steps × blocks × …: the steps are blocks
        return tuple(one.reshape(-1, *one.shape[2:]) for one in sides)  # type: ignore[return-value]
    turned = (one.swapaxes(0, 1) for one in sides)  # blocks × steps × positions × …: the steps are positions
    return tuple(one.reshape(one.shape[0], -1, one.shape[-1]) for one in turned)  # type: ignore[return-value]


def _ordered(values: Array, contracted: Sequence[int], batched: Sequence[int], lead: int) -> Array:
    free = [axis for axis in range(values.ndim - lead) if axis not in (*contracted, *batched)]
    groups = (tuple(batched), tuple(contracted), tuple(free))
    order = [*range(lead), *(lead + axis for group in groups for axis in group)]
    sizes = [math.prod(values.shape[lead + axis] for axis in group) for group in groups]
    return values.transpose(order).reshape(*values.shape[:lead], *sizes)


def _patches(use: Use, given: Array, back: Array) -> tuple[Array, Array]:
    """The factors of a convolution's gradient: the patch of the input under each position, and what came back there.

    JAX writes that gradient as a convolution of the input with what came back, with samples and channels exchanged,
    strides and dilations too.
    """
    assert use.equation is not None
    told = use.equation.params
    numbers, groups = told["dimension_numbers"], told["batch_group_count"]
    kernel = tuple(abstract(use.equation.outvars[0]).shape[axis] for axis in numbers.out_spec[2:])
    # Samples, space, channels: what lies together in memory for most, and then stays together in the patches.
    given = given.transpose(numbers.lhs_spec[1], *numbers.lhs_spec[2:], numbers.lhs_spec[0])
    back = back.transpose(numbers.rhs_spec[1], *numbers.rhs_spec[2:], numbers.rhs_spec[0])
    low = tuple(before for before, _ in told["padding"])
    steps = (told["rhs_dilation"], told["window_strides"], told["lhs_dilation"])
    cut = _Cut(kernel, back.shape[1:-1], *steps, low)
    patches = jnp.concatenate([cut.of(one) for one in given])
    patches = jnp.moveaxis(patches.reshape(*patches.shape[:2], groups, -1), 2, 0)
    came_back = jnp.moveaxis(back.reshape(-1, groups, back.shape[-1] // groups), 1, 0)
    return patches.reshape(groups, patches.shape[1], -1), came_back


@dataclass(frozen=True)
class _Cut:
    """How patches are cut out of an image of space × channels."""

    kernel: tuple[int, ...]
    positions: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    spread: tuple[int, ...]  # dilation of the image itself
    low: tuple[int, ...]  # padding before it

    def of(self, image: Float[Array, "*space channels"]) -> Float[Array, "positions points channels"]:
        """Every position's patch: all channels at all points of the kernel."""
        steps = list(zip(self.positions, self.strides, self.kernel, self.dilation, strict=True))
        reach = [(n - 1) * stride + (size - 1) * dilation + 1 for n, stride, size, dilation in steps]
        wide = [(n - 1) * by + 1 for n, by in zip(image.shape[:-1], self.spread, strict=True)]
        high = [r - w - low for r, w, low in zip(reach, wide, self.low, strict=True)]
        padding = [(low, up, by - 1) for low, up, by in zip(self.low, high, self.spread, strict=True)]
        image = jax.lax.pad(image, jnp.zeros((), image.dtype), [*padding, (0, 0, 0)])
        channels, pieces = image.shape[-1], []
        for point in np.ndindex(*self.kernel):
            start = [at * dilation for at, dilation in zip(point, self.dilation, strict=True)]
            stop = [s + (n - 1) * stride + 1 for s, n, stride in zip(start, self.positions, self.strides, strict=True)]
            pieces.append(jax.lax.slice(image, [*start, 0], [*stop, channels], [*self.strides, 1]))
        return jnp.concatenate(pieces, axis=-1).reshape(-1, len(pieces), channels)
