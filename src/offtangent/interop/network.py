"""A translated PyTorch module: a list of operations, run in JAX without PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import require
from offtangent._errors import InputError, a_kind
from offtangent._types import IdentityHash
from offtangent.interop.operations import Rule

KINDS = {"f": "floating-point numbers", "i": "whole numbers, such as token ids", "b": "truth values"}


@dataclass(frozen=True)
class Value:
    """What another step, a parameter, a constant or an input is, by name."""

    name: str


@dataclass(frozen=True)
class Dtype:
    """A dtype by NumPy's name; without 64-bit numbers in JAX it is the one of 32 bits."""

    name: str

    def now(self) -> Any:
        """What JAX makes of it."""
        return jax.dtypes.canonicalize_dtype(self.name)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation.

    Attributes:
        name: What its result is called by later steps.
        operation: The operation's full name in PyTorch.
        rule: What it is in JAX.
        args: What it takes, with a `Value` for each tensor or size and a `Dtype` for each dtype.
        kwargs: What it takes by name.
        line: Where in the module it comes from.
        dtype: The dtype of floating-point numbers that it makes of whole ones; of floating-point numbers it keeps the
            dtype that they have.
    """

    name: str
    operation: str
    rule: Rule
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    line: str
    dtype: Dtype | None


@dataclass(frozen=True)
class Input:
    """An input of the module: one sample's shape, and of which kind its numbers are."""

    name: str
    shape: tuple[int, ...]
    kind: str


@dataclass(frozen=True, eq=False)
class Program:
    """What a module computes.

    Attributes:
        steps: The operations in their order.
        leaves: The leaf of the parameters for each value that is one.
        held: The constant for each value that is one.
        inputs: The inputs.
        several: Whether the module takes a tuple of inputs, not a single one.
        output: The value that is returned.
        names: For each name in the module's state dict, under which name its numbers are kept: tied parameters have the
            first of theirs.
        kept: The shape and the dtype of each leaf and of each constant.
    """

    steps: tuple[Step, ...]
    leaves: Mapping[str, str]
    held: Mapping[str, str]
    inputs: tuple[Input, ...]
    several: bool
    output: str
    names: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, jax.ShapeDtypeStruct] = field(default_factory=dict)


class TorchNetwork(IdentityHash, eqx.Module):
    """A PyTorch module as a function f(params, x) of JAX; `interop.from_torch` makes it.

    A pytree, whose leaves are the constants.

    Attributes:
        constants: What is not trained, by its name in the module: buffers, such as the running statistics of batch
            norm, and parameters that require no gradient.
        program: What the module computes.
    """

    constants: dict[str, Array]
    program: Program = eqx.field(static=True)

    def __call__(self, params: Any, x: Any) -> Float[Array, "n *k"]:
        """Run the module, in evaluation mode, on a batch of any size.

        Args:
            params: The parameters by name, as `from_torch` gives them.
            x: A batch shaped like the example, or a tuple of them; its first axis counts samples.

        Returns:
            What the module returns for it.

        Raises:
            InputError: If parameters are missing or have another shape, or if x is no batch of such inputs.
        """
        _check_params(self.program, params)
        values = {value: params[leaf] for value, leaf in self.program.leaves.items()}
        values |= {value: self.constants[name] for value, name in self.program.held.items()}
        values |= _inputs(self.program, x)
        for step in self.program.steps:
            values[step.name] = _run(step, values)
        return values[self.program.output]

    def __repr__(self) -> str:
        return f"TorchNetwork({len(self.program.kept) - len(self.constants)} arrays of parameters)"


def _run(step: Step, values: Mapping[str, Any]) -> Any:
    try:
        found = step.rule(
            *_filled(step.args, values), **{key: _filled(one, values) for key, one in step.kwargs.items()}
        )
    except InputError as error:
        raise InputError(f"{error} It is {step.operation}, {step.line}.") from None
    except Exception as error:
        told = f"{type(error).__name__}: {str(error).rstrip('.')}"
        raise InputError(f"The operation {step.operation} fails in JAX, {step.line}: {told}.") from error
    return found if step.dtype is None else found.astype(step.dtype.now())


def _filled(given: Any, values: Mapping[str, Any]) -> Any:
    """An argument with the values in place of their names."""
    if isinstance(given, Value):
        return values[given.name]
    if isinstance(given, tuple):
        return [_filled(one, values) for one in given]
    return given.now() if isinstance(given, Dtype) else given


def _check_params(program: Program, params: Any) -> None:
    if not isinstance(params, Mapping):
        raise InputError(
            f"The parameters are {a_kind(params)}: expected the dictionary that from_torch gives, arrays by name."
        )
    for leaf in program.leaves.values():
        require(leaf in params, f"The parameters lack {leaf!r}: expected all that from_torch gives.")
        found, expected = tuple(np.shape(params[leaf])), tuple(program.kept[leaf].shape)
        require(found == expected, f"The parameter {leaf!r} has shape {found}: in the module it has shape {expected}.")


def _inputs(program: Program, x: Any) -> dict[str, Any]:
    """The inputs by name, as JAX arrays that fit the module."""
    several = isinstance(x, tuple | list)
    count = len(program.inputs)
    if several != program.several or (several and len(x) != count):
        expected = f"a tuple of {count} arrays" if program.several else "one array"
        raise InputError(f"x is {f'{a_kind(x)} of {len(x)}' if several else a_kind(x)}: the module takes {expected}.")
    found = {one.name: _input(one, given) for one, given in zip(program.inputs, x if several else (x,), strict=True)}
    lengths = {len(one) for one in found.values()}
    require(len(lengths) <= 1, f"The inputs have different numbers of samples: {sorted(lengths)}.")
    return found


def _input(expected: Input, given: Any) -> Any:
    if type(given).__module__.partition(".")[0] == "torch":
        raise InputError("x is a tensor of PyTorch: give x.numpy(), or x.detach().cpu().numpy().")
    try:
        x = jnp.asarray(given)
    except (TypeError, ValueError):
        raise InputError(f"x is {a_kind(given)}: expected an array of numbers.") from None
    if x.shape[1:] != expected.shape or x.ndim == 0:
        shown = ", ".join(map(str, expected.shape))
        raise InputError(
            f"x has shape {x.shape}: expected (n, {shown}), as in the example; only the number of samples is free."
        )
    kind = kind_of(x.dtype)
    if kind != expected.kind:
        like = {"f": ".astype('float32')", "i": ".astype('int32')", "b": " != 0"}[expected.kind]
        raise InputError(f"x has dtype {x.dtype}: the module takes {KINDS[expected.kind]}. Give x{like}.")
    return x


def kind_of(dtype: Any) -> str:
    """Of which kind numbers are: "f" floating-point, "i" whole, "b" truth values.

    >>> kind_of("float32"), kind_of("uint8"), kind_of(bool)
    ('f', 'i', 'b')
    """
    if jnp.issubdtype(dtype, jnp.floating):
        return "f"
    return "b" if jnp.issubdtype(dtype, jnp.bool_) else "i"
