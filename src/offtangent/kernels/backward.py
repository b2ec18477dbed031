"""The backward pass of any network for one sample, as a flat program in which every weight's gradient can be found.

JAX differentiates first, so that custom rules, checkpoints and vmap need nothing of their own; calls are then written
out in place, in the bodies of loops too. What is left are equations of primitives, and the loops themselves.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from jaxtyping import Array, PyTree

# What only names a part of a program: its equations are those of the program.
CALLS = frozenset(
    (
        "jit",
        "pjit",
        "closed_call",
        "core_call",
        "checkpoint",
        "remat",
        "remat2",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
    )
)

Atom: TypeAlias = Var | Literal


@dataclass(frozen=True, eq=False)
class Backward:
    """The backward pass of one sample: from the outputs' cotangent, the parameters and the input to the gradients.

    Attributes:
        jaxpr: The program. Its inputs are the cotangent, then the floating-point leaves of the parameters, then those
            of the sample; its outputs are the gradients of these leaves.
        consts: The values of its constants.
        outputs: How many outputs the network has.
        dtype: Their dtype.
        names: Where the leaves stand among the parameters.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    outputs: int
    dtype: Any
    names: tuple[str, ...]


def backward_pass(f: Callable[..., Any], params: PyTree, X: PyTree) -> Backward:
    """Trace the backward pass of one sample.

    Args:
        f: The network, a function of parameters and of a batch.
        params: Its parameters.
        X: A batch of inputs, of which only the shapes matter.

    Returns:
        The program.
    """
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    paths, tree = jax.tree_util.tree_flatten_with_path(moving)
    leaves = [leaf for _, leaf in paths]
    sample, form = jax.tree.flatten(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), X))

    def outputs(leaves: list[Array], sample: list[Array]) -> Array:
        batch = jax.tree.unflatten(form, [part[None] for part in sample])
        return jnp.ravel(f(eqx.combine(jax.tree.unflatten(tree, leaves), fixed), batch))

    def gradients(cotangent: Array, leaves: list[Array], sample: list[Array]) -> list[Array]:
        return jax.vjp(lambda moved: outputs(moved, sample), leaves)[1](cotangent)[0]

    found = jax.eval_shape(outputs, leaves, sample)
    nested = jax.make_jaxpr(gradients)(found, leaves, sample)

    def written_out(*arguments: Array) -> list[Array]:
        return list(map(jnp.asarray, read(nested.jaxpr.outvars, evaluate(nested.jaxpr, nested.consts, arguments))))

    flat = jax.make_jaxpr(written_out)(found, *leaves, *sample)
    names = tuple(jax.tree_util.keystr(path) or "params" for path, _ in paths)
    return Backward(flat.jaxpr, flat.consts, math.prod(found.shape), found.dtype, names)


def evaluate(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    arguments: Sequence[Any],
    watched: Mapping[int, Sequence[Var]] | None = None,
) -> dict[Var, Any]:
    """Run a program equation by equation, going into calls and into the bodies of loops.

    Args:
        jaxpr: The program.
        consts: Its constants.
        arguments: Its inputs.
        watched: Variables inside of loops, by the `id` of the loop's equation; they come back stacked over the steps.

    Returns:
        The value of every variable.
    """
    values = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        given = read(equation.invars, values)
        if equation.primitive.name in CALLS:
            inner, own = parts(_called(equation))
            found = read(inner.outvars, evaluate(inner, own, given))
        elif equation.primitive.name == "scan":
            wanted = (watched or {}).get(id(equation), ())
            found, seen = _run_loop(equation, given, wanted)
            values.update(zip(wanted, seen, strict=True))
        else:
            found = equation.primitive.bind(*given, **equation.params)
            found = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, found, strict=True))
    return values


def read(atoms: Sequence[Atom], values: Mapping[Var, Any]) -> list[Any]:
    """The values of variables and literals."""
    return [atom.val if isinstance(atom, Literal) else values[atom] for atom in atoms]


def abstract(atom: Atom) -> Any:
    """The shape and dtype of a variable or literal; JAX's own type for it promises neither."""
    return atom.aval


def parts(program: Any) -> tuple[Jaxpr, Sequence[Any]]:
    """A program and its constants, whether it carries them or not."""
    return (program.jaxpr, program.consts) if hasattr(program, "consts") else (program, ())


def _called(equation: JaxprEqn) -> Any:
    """The program that a call names; each kind keeps it under another word."""
    return next(value for value in equation.params.values() if hasattr(value, "eqns"))


@dataclass(frozen=True)
class Loop:
    """The inputs of a scan, in their order: constants, what is carried on, and what is taken a slice a step."""

    constants: int
    carried: int

    @classmethod
    def of(cls, equation: JaxprEqn) -> "Loop":
        """Tell them apart by their shapes, since not every JAX says: a slice has one axis less than its stack."""
        inner, _ = parts(equation.params["jaxpr"])

        def stacks(outside: Sequence[Atom], inside: Sequence[Atom]) -> int:
            return sum(abstract(a).ndim == abstract(b).ndim + 1 for a, b in zip(outside, inside, strict=True))

        carried = len(inner.outvars) - stacks(equation.outvars, inner.outvars)
        return cls(len(inner.invars) - carried - stacks(equation.invars, inner.invars), carried)


def _run_loop(equation: JaxprEqn, given: list[Any], wanted: Sequence[Var]) -> tuple[list[Any], list[Any]]:
    inner, own = parts(equation.params["jaxpr"])
    loop = Loop.of(equation)
    constants, rest = given[: loop.constants], given[loop.constants :]

    def step(carry: tuple[Any, ...], slices: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values = evaluate(inner, own, [*constants, *carry, *slices])
        found = read(inner.outvars, values)
        return tuple(found[: loop.carried]), (tuple(found[loop.carried :]), tuple(read(wanted, values)))

    carry, (stacked, seen) = jax.lax.scan(
        step,
        tuple(rest[: loop.carried]),
        tuple(rest[loop.carried :]),
        length=equation.params["length"],
        reverse=equation.params["reverse"],
    )
    return [*carry, *stacked], list(seen)


def depending(jaxpr: Jaxpr, first: Sequence[bool]) -> set[Var]:
    """The variables of a program that depend on some of its inputs.

    Args:
        jaxpr: The program.
        first: For every input whether it is one of those.

    Returns:
        Those variables, the inputs among them.
    """
    found = {var for var, is_one in zip(jaxpr.invars, first, strict=True) if is_one}
    for equation in jaxpr.eqns:
        if any(atom in found for atom in equation.invars if not isinstance(atom, Literal)):
            found.update(equation.outvars)
    return found


def depending_in_loop(equation: JaxprEqn, outside: set[Var]) -> set[Var]:
    """The variables of a loop's body that depend, in any step, on what depends outside."""
    inner, _ = parts(equation.params["jaxpr"])
    loop = Loop.of(equation)
    first = [not isinstance(atom, Literal) and atom in outside for atom in equation.invars]
    while True:
        inside = depending(inner, first)
        again = list(first)
        for i, atom in enumerate(inner.outvars[: loop.carried]):
            again[loop.constants + i] |= not isinstance(atom, Literal) and atom in inside
        if again == first:
            return inside
        first = again
