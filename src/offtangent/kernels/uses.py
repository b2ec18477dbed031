"""Where a weight's gradient falls into two factors: what entered the layer, and what came back to it.

A layer's backward pass ends in a product of something that knows nothing of the outputs' cotangent, the input of the
layer, with something linear in it. Walking back from the gradient, over sums (a weight used several times), over what
only moves numbers about, and over scalar factors, one comes to that product: of matrices (`dot_general`), a
convolution, or a scatter into the rows of a table. Anything else is kept as the gradient itself.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Var
from jax.extend.core import Literal as Constant

from offtangent.kernels.backward import Atom, Backward, Loop, abstract, depending, depending_in_loop, parts

Kind: TypeAlias = Literal["product", "convolution", "lookup", "whole", "carried"]

Box: TypeAlias = tuple[tuple[int, int], ...]  # of a slice: where it begins and ends along each axis

MOVES = frozenset(("transpose", "reshape", "squeeze", "expand_dims", "copy", "copy_p"))


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a weight: two factors whose product is its gradient there, or that gradient itself.

    Attributes:
        kind: How the factors are multiplied; "whole" where they were not found, "carried" for what a loop brings along.
        factors: The layer's input and what came back to it; of a whole one the gradient.
        equation: That of the product.
        moves: How the product is laid out as the leaf, from the first move on.
        scales: Scalars that multiply it: a variable or a constant, and whether it divides.
        loop: The loop in which the product stands, and whether its steps stand side by side in the leaf.
    """

    kind: Kind
    factors: tuple[Atom, ...] = ()
    equation: JaxprEqn | None = None
    moves: tuple[Any, ...] = ()
    scales: tuple[tuple[Atom | float, bool], ...] = ()
    loop: JaxprEqn | None = None
    stacked: bool = False


@dataclass(frozen=True, eq=False)
class Leaf:
    """A leaf of the parameters, or a slice of one that is used by itself, as the row of a bias below its weights.

    Attributes:
        name: The leaf's name among the parameters.
        gradients: The variables that add up to its gradient.
        uses: The uses that add up to it.
        weights: Of a bias, where among the leaves its weights are: what came back to them is its gradient.
    """

    name: str
    gradients: tuple[Atom, ...]
    uses: tuple[Use, ...]
    weights: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its gradient."""
        return tuple(abstract(self.gradients[0]).shape)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def leaves_of(program: Backward) -> list[Leaf]:
    """Every leaf of the parameters with its uses; one that the outputs do not depend on has none.

    A leaf of which several slices without common entries are used is taken apart: inner products of its gradients are
    the sums of theirs.

    Args:
        program: The backward pass of one sample.

    Returns:
        The leaves, or their slices, in the order of the program's outputs.
    """
    jaxpr = program.jaxpr
    linear = depending(jaxpr, [True] + [False] * (len(jaxpr.invars) - 1))
    walk = _Walk(jaxpr, linear)
    found = [
        Leaf(name, variables, tuple(use for one in variables for use in walk.uses(one)))
        for name, gradient in zip(program.names, jaxpr.outvars, strict=True)
        for variables in walk.slices(gradient)
    ]
    came_back = {
        walk.origin(leaf.uses[0].factors[1]): place
        for place, leaf in reversed(list(enumerate(found)))
        if len(leaf.uses) == 1 and leaf.uses[0].kind == "product" and not leaf.uses[0].scales and not leaf.uses[0].loop
    }
    return [
        replace(leaf, weights=came_back.get(walk.origin(leaf.gradients[0])))
        if [use.kind for use in leaf.uses] == ["whole"] and len(leaf.gradients) == 1
        else leaf
        for leaf in found
    ]


class _Walk:
    """Back from a gradient to its products, in one program."""

    def __init__(self, jaxpr: Jaxpr, linear: set[Var], carried: Atom | None = None):
        self.linear, self.carried = linear, carried
        self.maker = {var: equation for equation in jaxpr.eqns for var in equation.outvars}

    def is_linear(self, atom: Atom) -> bool:
        return not isinstance(atom, Constant) and atom in self.linear

    def origin(self, atom: Atom) -> Atom:
        """The variable whose entries, in another order or shape, are those of this one."""
        equation = None if isinstance(atom, Constant) else self.maker.get(atom)
        if equation is None or equation.primitive.name not in (*MOVES, "broadcast_in_dim", "reduce_sum"):
            return atom
        before = abstract(equation.invars[0])
        same = before.size == abstract(atom).size and before.dtype == abstract(atom).dtype
        return self.origin(equation.invars[0]) if same else atom

    def slices(self, gradient: Atom) -> list[tuple[Atom, ...]]:
        """The gradients of a leaf's slices where it is used in slices that are the same or have nothing in common."""
        found: dict[Box, list[Atom]] = {}
        for box, variable in self._addends(gradient):
            found.setdefault(box, []).append(variable)
        if any(_meet(*pair) for pair in itertools.combinations(found, 2)):
            return [(gradient,)]
        return [tuple(variables) for variables in found.values()]

    def _addends(self, atom: Atom) -> Iterator[tuple["Box", Atom]]:
        """What adds up to a gradient, with the slice that each fills: zeros around what came from one are left out."""
        equation = None if isinstance(atom, Constant) else self.maker.get(atom)
        if equation is not None and equation.primitive.name == "add_any":
            for one in equation.invars:
                yield from self._addends(one)
            return
        shape = abstract(atom).shape
        if equation is not None and equation.primitive.name == "pad":
            inside, around = equation.invars
            edges = equation.params["padding_config"]
            plain = all(low >= 0 and high >= 0 and between == 0 for low, high, between in edges)
            if plain and isinstance(around, Constant) and not np.any(around.val):
                yield tuple((int(low), int(n - high)) for n, (low, high, _) in zip(shape, edges, strict=True)), inside
                return
        yield tuple((0, n) for n in shape), atom

    def uses(self, atom: Atom) -> Iterator[Use]:
        """The uses whose sum is this variable, none if it is zero."""
        if isinstance(atom, Constant):
            if np.any(atom.val):
                yield Use("whole", (atom,))
            return
        if atom is self.carried:
            yield Use("carried")
            return
        equation = self.maker.get(atom)
        found = None if equation is None else self._through(equation, atom)
        yield from [Use("whole", (atom,))] if found is None else found

    def _through(self, equation: JaxprEqn, atom: Var) -> list[Use] | None:
        """The uses behind one equation, or None where it is not one to look behind."""
        name, inputs = equation.primitive.name, equation.invars
        shape = abstract(atom).shape
        if name in ("add_any", "add") and all(abstract(one).shape == shape for one in inputs):
            return [use for one in inputs for use in self.uses(one)]
        if name == "broadcast_in_dim" and isinstance(inputs[0], Constant) and not np.any(inputs[0].val):
            return []
        if name == "broadcast_in_dim" and abstract(inputs[0]).size == math.prod(shape):
            return [replace(use, moves=(*use.moves, ("reshape", shape, None))) for use in self.uses(inputs[0])]
        if name in MOVES or (name == "convert_element_type" and abstract(atom).dtype == abstract(inputs[0]).dtype):
            move = (name, shape, equation.params.get("permutation"))
            return [replace(use, moves=(*use.moves, move)) for use in self.uses(inputs[0])]
        if name in ("neg", "mul", "div"):
            return self._scaled(equation, shape)
        if name == "scan":
            return self._from_loop(equation, atom)
        return self._product(equation)

    def _scaled(self, equation: JaxprEqn, shape: Sequence[int]) -> list[Use] | None:
        name, inputs = equation.primitive.name, equation.invars
        scale: tuple[Atom | float, bool]
        if name == "neg":
            value, scale = inputs[0], (-1.0, False)
        elif self.is_linear(inputs[0]) and not self.is_linear(inputs[1]):
            value, scale = inputs[0], (inputs[1], name == "div")
        elif name == "mul" and self.is_linear(inputs[1]) and not self.is_linear(inputs[0]):
            value, scale = inputs[1], (inputs[0], False)
        else:
            return None
        if abstract(value).shape != shape or (not isinstance(scale[0], float) and abstract(scale[0]).shape != ()):
            return None
        return [replace(use, scales=(*use.scales, scale)) for use in self.uses(value)]

    def _product(self, equation: JaxprEqn) -> list[Use] | None:
        """The product itself, with the layer's input first."""
        name, inputs = equation.primitive.name, equation.invars
        linear = [self.is_linear(one) for one in inputs]
        if name == "dot_general" and linear[0] != linear[1]:
            ordered = (inputs[0], inputs[1]) if linear[1] else (inputs[1], inputs[0])
            return [Use("product", ordered, equation)]
        if name == "conv_general_dilated" and linear == [False, True] and equation.params["feature_group_count"] == 1:
            return [Use("convolution", tuple(inputs), equation)]
        if name == "scatter-add" and linear == [False, False, True] and self._is_lookup(equation):
            return [Use("lookup", (inputs[1], inputs[2]), equation)]
        return None

    def _is_lookup(self, equation: JaxprEqn) -> bool:
        """Whether whole rows of a table are added up, from zero: what looking up rows becomes backwards."""
        table, rows, updates = equation.invars
        numbers = equation.params["dimension_numbers"]
        whole_rows = numbers.inserted_window_dims == (0,) and numbers.scatter_dims_to_operand_dims == (0,)
        fits = (
            abstract(table).ndim == 2
            and abstract(rows).shape[-1:] == (1,)
            and abstract(updates).shape[-1:] == abstract(table).shape[1:]
        )
        last = numbers.update_window_dims == (abstract(updates).ndim - 1,)
        return whole_rows and fits and last and not list(self.uses(table))

    def _from_loop(self, equation: JaxprEqn, atom: Var) -> list[Use] | None:
        """Uses in the body of a loop: a weight of all steps, whose gradients add up, or one of each, side by side."""
        place = equation.outvars.index(atom)
        inner, _ = parts(equation.params["jaxpr"])
        loop = Loop.of(equation)
        inside = depending_in_loop(equation, self.linear)
        if place >= loop.carried:
            uses = list(_Walk(inner, inside).uses(inner.outvars[place]))
            if len(uses) != 1 or not _can_leave(uses[0]) or uses[0].kind != "product":
                return None
            return [replace(uses[0], loop=equation, stacked=True)]
        start = loop.constants + place
        uses = list(_Walk(inner, inside, carried=inner.invars[start]).uses(inner.outvars[place]))
        own = [use for use in uses if use.kind != "carried"]
        brought = [use for use in uses if use.kind == "carried"]
        if len(brought) != 1 or brought[0].moves or brought[0].scales:
            return None
        if not all(_can_leave(use) and use.kind == "product" for use in own):
            return None
        return [*self.uses(equation.invars[start]), *(replace(use, loop=equation) for use in own)]


def _meet(one: Box, other: Box) -> bool:
    """Whether two slices have an entry in common."""
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def _can_leave(use: Use) -> bool:
    """Whether a use inside of a loop can be read outside: one that is not in a loop again, scaled by constants only."""
    return use.loop is None and all(isinstance(scale, float | Constant) for scale, _ in use.scales)
