"""The operations of PyTorch's core (ATen) in JAX, by name, and how to add another one.

A rule takes what the operation takes, with JAX's arrays for tensors and its dtypes for PyTorch's, without what says
where and how a tensor lies in memory (`device`, `layout`, `memory_format`, `pin_memory`), which JAX decides by
itself.
"""

import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from offtangent._checks import require
from offtangent._errors import InputError, a_kind

Rule = Callable[..., Any]
Number = float | int
R = TypeVar("R", bound=Rule)


def into(table: dict[str, Rule]) -> Callable[..., Callable[[R], R]]:
    """Make the decorator that puts a rule into a table under one or several names.

    Args:
        table: The rules by the names of their operations.

    Returns:
        A decorator factory: `@rule("aten.mm.default")` above a function puts it there and leaves it as it is.
    """

    def named(*names: str) -> Callable[[R], R]:
        def put(rule: R) -> R:
            table.update(dict.fromkeys(names, rule))
            return rule

        return put

    return named


_REGISTERED: dict[str, Rule] = {}


def register(*names: Any) -> Callable[[R], R]:
    """Register a JAX function for operations of PyTorch, before `from_torch` is called; it goes before our own rule.

        @register("aten.hypot.default")
        def hypot(x, y):
            return jnp.sqrt(x**2 + y**2)

    Args:
        *names: The operations' full names, as the message that misses them has them. Those of custom operators count,
            such as "mine.fused.default".

    Returns:
        A decorator, which leaves the function as it is. The function is differentiated as it stands, so it has to be
        one of JAX, and to give the shape that PyTorch's gives.

    Raises:
        InputError: If a name is none, or what is decorated is no function.
    """
    require(
        names and all(isinstance(name, str) and name.count(".") >= 2 for name in names),
        f"names={names!r}: expected full names of operations, such as 'aten.hypot.default'.",
    )

    def put(rule: Any) -> Any:
        if not callable(rule):
            raise InputError(f"The rule for {names[0]} is {a_kind(rule)}: expected a function of JAX arrays.")
        return into(_REGISTERED)(*names)(rule)

    return put


def rule_for(name: str) -> Rule | None:
    """Find the rule of an operation by its full name: a registered one, or ours, or None."""
    return _REGISTERED.get(name) or ours().get(name)


@cache
def ours() -> Mapping[str, Rule]:
    """All rules that come with offtangent, by the names of their operations."""
    from offtangent.interop import elementwise, indexing, layers, pooling, products, reductions, shapes

    rooms = (elementwise, shapes, indexing, reductions, products, layers, pooling)
    return MappingProxyType({name: rule for room in rooms for name, rule in room.RULES.items()})


def _second(value: Any, place: int) -> Any:
    """One of an operation's several results; those that no rule computes are None."""
    found = value[place]
    require(
        found is not None,
        f"Result {place} of this operation (indices, statistics) is used, and only the first one is translated.",
    )
    return found


# What PyTorch computes of sizes stays arithmetic of whole numbers: in JAX shapes are known.
SIZES: Mapping[str, Rule] = MappingProxyType(
    {
        "sym_float": float,
        "sym_int": int,
        "sym_max": max,
        "sym_min": min,
        "sym_not": operator.not_,
        "sym_ite": lambda which, yes, no: yes if which else no,
        "sym_sum": sum,
        "_sym_sqrt": math.sqrt,
    }
)


def of_sizes(function: Callable[..., Any]) -> Rule | None:
    """The rule of a plain Python function in an exported graph: arithmetic, and taking one of several results."""
    if function is operator.getitem:
        return _second
    if getattr(function, "__module__", "") in ("_operator", "math"):
        return function
    return SIZES.get(getattr(function, "__name__", ""))
