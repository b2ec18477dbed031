"""An exported PyTorch module as a list of operations in JAX; what cannot be translated is named with its line."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from offtangent._errors import InputError
from offtangent.interop.exporting import load_torch
from offtangent.interop.network import Dtype, Input, Program, Step, Value
from offtangent.interop.operations import of_sizes, rule_for

# Where and how a tensor lies in memory, which JAX decides by itself.
IGNORED = ("device", "layout", "memory_format", "pin_memory", "non_blocking")
# What makes an array of nothing but sizes, in PyTorch's default dtype where none is given.
MAKING = ("full", "arange", "scalar_tensor", "zeros", "ones", "empty", "empty_strided")
BY_DATA = {
    "aten._local_scalar_dense.default": "it takes a number out of a tensor (item, int, float, bool, if)",
    "aten.nonzero.default": "it asks where a tensor is not zero",
    "aten.masked_select.default": "it selects by a mask",
    "aten.masked_scatter.default": "it writes by a mask",
}


def translate(found: Any, names: Mapping[str, str], trained: Iterable[str], several: bool) -> Program:
    """Translate an exported module into operations of JAX.

    Args:
        found: The `torch.export.ExportedProgram`.
        names: For each name in the state dict, under which name its numbers are kept.
        trained: The names that are leaves of the parameters.
        several: Whether the module takes a tuple of inputs.

    Returns:
        The program, in which nothing is left that the output does not need.

    Raises:
        InputError: If the module draws random numbers, changes its buffers, decides by its data, or has an operation
            without a rule.
    """
    _check_stateless(found)
    output = _output(found)
    live = _live(found.graph, output)
    specs = {spec.arg.name: spec for spec in found.graph_signature.input_specs}
    leaves: dict[str, str] = {}
    held: dict[str, str] = {}
    inputs, steps, missing = [], [], []
    for node in found.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            if spec.kind.name == "USER_INPUT":
                inputs.append(_input(node))
            elif node.name in live:
                kept = names.get(spec.target, spec.target)
                (leaves if kept in trained else held)[node.name] = kept
        elif node.op == "call_function" and node.name in live:
            step = _step(node)
            steps.extend([] if step is None else [step])
            missing.extend([node] if step is None else [])
    _check_none_missing(missing)
    return Program(tuple(steps), leaves, held, tuple(inputs), several, output, names)


def _output(found: Any) -> str:
    specs = [spec for spec in found.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    return specs[0].arg.name


def _live(graph: Any, output: str) -> set[str]:
    """The values that the output needs: checks of sizes and of data, which PyTorch inserts, are none of them."""
    live = {output}
    for node in reversed(graph.nodes):
        if node.name in live:
            live |= {one.name for one in node.all_input_nodes}
    return live


def _check_stateless(found: Any) -> None:
    for spec in found.graph_signature.output_specs:
        if spec.kind.name in ("BUFFER_MUTATION", "PARAMETER_MUTATION"):
            raise InputError(
                f"The module changes its {spec.target!r} whenever it is called; a function of parameters and inputs "
                "does not. Call module.eval() first: batch norm then keeps its running statistics."
            )


def _input(node: Any) -> Input:
    value = node.meta["val"]
    kind = "f" if value.is_floating_point() else "b" if value.dtype is load_torch().bool else "i"
    return Input(node.name, tuple(int(length) for length in value.shape[1:]), kind)


def _step(node: Any) -> Step | None:
    """One operation, or None if there is no rule for it."""
    torch = load_torch()
    name, given = str(node.target), dict(node.kwargs)
    if isinstance(node.target, torch._ops.OpOverload):
        _check_operation(node, name)
        rule = rule_for(name)
        if name.split(".")[1] in MAKING:
            given.setdefault("dtype", node.meta["val"].dtype)
    else:
        rule = rule_for(name) or of_sizes(node.target)
    if rule is None:
        return None
    args = _squeezed(node) if name.startswith("aten.squeeze.") else node.args
    kwargs = {key: _plain(value) for key, value in given.items() if key not in IGNORED}
    return Step(node.name, name, rule, _plain(tuple(args)), kwargs, line_of(node), _made_floating(node))


def _check_operation(node: Any, name: str) -> None:
    """Refuse what is no function of parameters and inputs, and what no program of JAX can be."""
    if load_torch().Tag.nondeterministic_seeded in node.target.tags and "rrelu" not in name:
        raise InputError(
            f"The module draws random numbers ({name}, {line_of(node)}): call module.eval() first, which ends dropout."
        )
    if name in BY_DATA:
        raise InputError(
            f"What the module does depends on its data: {BY_DATA[name]} ({name}, {line_of(node)}). Shapes and "
            "operations have to be the same for all inputs: write torch.where(mask, x, 0) in place of x[mask], "
            "and x.shape[0] for sizes."
        )


def _squeezed(node: Any) -> tuple[Any, ...]:
    """The axes that have length one whatever the batch is: a batch of one keeps its axis."""
    x, axes = node.args
    lengths = x.meta["val"].shape
    several = (axes,) if isinstance(axes, int) else axes
    return x, [axis for axis in several if isinstance(lengths[axis], int) and lengths[axis] == 1]


def _made_floating(node: Any) -> Dtype | None:
    """The dtype of floating-point numbers that are made of none; JAX would choose by its own rules."""
    torch = load_torch()
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return None
    given = [one.meta.get("val") for one in node.all_input_nodes]
    floating = any(
        isinstance(part, torch.Tensor) and part.is_floating_point()
        for one in given
        for part in (one if isinstance(one, tuple | list) else (one,))
    )
    return None if floating else _dtype(value.dtype)


def _dtype(dtype: Any) -> Dtype:
    return Dtype(str(dtype).removeprefix("torch."))


def _plain(given: Any) -> Any:
    """An argument without PyTorch in it."""
    torch = load_torch()
    if isinstance(given, torch.fx.Node):
        return Value(given.name)
    if isinstance(given, torch.dtype):
        return _dtype(given)
    if isinstance(given, tuple | list):
        return tuple(_plain(one) for one in given)
    return given


def line_of(node: Any) -> str:
    """Where in the module an operation comes from: the layer, and the line outside of PyTorch if there is one."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    inside = (os.path.dirname(load_torch().__file__) + os.sep, "torch/")
    own = [frame for frame in frames if not frame[0].startswith(inside)]
    line = f"{own[-1][0]}:{own[-1][1]}" if own else ""
    stack = [entry for key, entry in (node.meta.get("nn_module_stack") or {}).items() if not key.startswith("_empty")]
    path, kind = stack[-1] if stack else ("", "")
    kind = getattr(kind, "__name__", str(kind)).rpartition(".")[2]
    layer = f"in {path or 'the module'}{f', a {kind}' if kind else ''}"
    return f"{line} {layer}".strip()


def _check_none_missing(missing: list[Any]) -> None:
    if not missing:
        return
    lines: dict[str, str] = {}
    for node in missing:
        lines.setdefault(str(node.target), line_of(node))
    told = "; ".join(f"{name} ({line})" for name, line in lines.items())
    first = next(iter(lines))
    raise InputError(
        f"{'Operations are' if len(lines) > 1 else 'An operation is'} not translated to JAX yet: {told}. Write it as a "
        f'function of JAX arrays under @offtangent.interop.operations.register("{first}"), and call from_torch again.'
    )
