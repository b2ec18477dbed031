"""A PyTorch module taken apart by `torch.export`, and what there is to say where that fails.

The decompositions of `torch.export` describe values alone. Three things would change derivatives and are held back:
`x.detach()` and `torch.no_grad()` vanish, operations such as softplus become a choice between two branches of which
one overflows, and tied parameters come once for each of their names.
"""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from offtangent._checks import require
from offtangent._errors import InputError, a_kind

if TYPE_CHECKING:
    import torch

# Operations that are translated as they are: in their parts JAX's derivative is NaN where a branch not taken overflows.
WHOLE = ("softplus", "mish", "celu", "_safe_softmax")


def load_torch() -> Any:
    """PyTorch, or a sentence on how to get it."""
    try:
        import torch
    except ImportError as error:
        raise InputError(f"PyTorch cannot be loaded ({error}): pip install 'offtangent[torch]'.") from None
    return torch


def check_module(module: Any) -> Any:
    """The module itself, within what `torch.compile` puts around it, or a sentence on why it cannot be translated."""
    torch = load_torch()
    if not isinstance(module, torch.nn.Module):
        hint = " Give an instance of it: module()." if isinstance(module, type) else ""
        raise InputError(f"module is {a_kind(module)}: expected a torch.nn.Module.{hint}")
    module = getattr(module, "_orig_mod", module)
    wrapped = isinstance(module, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel)
    require(not wrapped, f"module is {a_kind(module)}: give the module in it, module.module.")
    scripted = isinstance(module, torch.jit.ScriptModule)
    require(not scripted, "module is compiled by TorchScript: give the module that it was made from.")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise InputError(f"The size of {name!r} is not known yet: a lazy module gets it from module(example).")
        require(not tensor.is_meta, f"{name!r} lies on the device 'meta' and has no numbers: load the weights first.")
    trained = any(one.requires_grad for one in module.parameters())
    require(trained, "No parameter of the module requires a gradient: call module.requires_grad_() first.")
    return module


def check_example(example: Any) -> tuple["torch.Tensor", ...]:
    """The example's tensors, of at least two samples: to `torch.export` a batch of one is always one."""
    torch = load_torch()
    several = tuple(example) if isinstance(example, tuple | list) else (example,)
    require(several, "example is empty: expected a tensor, or a tuple of those that the module takes.")
    for one in several:
        if not isinstance(one, torch.Tensor):
            raise InputError(
                f"example is {a_kind(one)}: expected a tensor of PyTorch with a few samples, or a tuple of those that "
                "the module takes; torch.as_tensor(array) makes one."
            )
        require(one.ndim > 0, "example has no axes: expected a batch, whose first axis counts samples.")
    lengths = [len(one) for one in several]
    require(min(lengths) > 0, "example has no samples: expected at least one.")
    require(
        len(set(lengths)) == 1, f"The examples have {lengths} samples: expected as many of each, on the first axis."
    )
    return several if lengths[0] > 1 else tuple(torch.cat([one, one]) for one in several)


def run_module(module: Any, args: tuple["torch.Tensor", ...]) -> "torch.Tensor":
    """What the module returns; its buffers, and PyTorch's random numbers, stay as they are."""
    torch = load_torch()
    buffers = {name: one.clone() for name, one in module.named_buffers()}
    try:
        with _as_written(), torch.no_grad(), torch.random.fork_rng(devices=[]):
            found = torch.func.functional_call(module, buffers, args)
    except Exception as error:
        shapes = ", ".join(f"{tuple(one.shape)} of {str(one.dtype).removeprefix('torch.')}" for one in args)
        raise InputError(
            f"The module fails on an example of shape {shapes}: {type(error).__name__}: {_first_line(error)}. Give an "
            "example that module(example) takes, or a tuple of several tensors."
        ) from error
    if not isinstance(found, torch.Tensor):
        raise InputError(
            f"The module returns {a_kind(found)}: expected one tensor. Wrap it in a module whose forward picks one, "
            "such as return self.net(x)[0]."
        )
    require(
        found.is_floating_point(),
        f"The module returns numbers of dtype {str(found.dtype).removeprefix('torch.')}: expected floating-point ones.",
    )
    return found


def exported(module: Any, args: tuple["torch.Tensor", ...]) -> Any:
    """Take a module apart into core ATen operations, for batches of any size.

    Args:
        module: What `check_module` let pass.
        args: What `check_example` made of the example.

    Returns:
        The `torch.export.ExportedProgram`.

    Raises:
        InputError: If `torch.export` cannot follow the module, or only for batches of one size.
    """
    torch = load_torch()
    batch, shapes = torch.export.Dim("batch"), torch.export.ShapesCollection()
    for one in args:
        shapes[one] = {0: batch}
    try:
        with _as_written(), _quietly(), torch.enable_grad():
            found = torch.export.export(module, args, dynamic_shapes=shapes)
            _keep_stops(found.graph_module)
            return found.run_decompositions(_decompositions())
    except InputError:
        raise
    except Exception as error:
        raise InputError(_why(error, len(args[0]))) from error


def _why(error: Exception, samples: int) -> str:
    """What a failure of `torch.export` means for a user's module."""
    said = str(error)
    if "data-dependent" in said or "DataDependent" in type(error).__name__:
        place = re.search(r'File "([^"]+)", line (\d+)', said.partition("The following call raised")[2])
        where = f" ({place[1]}:{place[2]})" if place else ""
        return (
            f"The module decides by its data what it does{where}: which operations run has to be the same for all "
            "inputs. Write torch.where(condition, a, b) for a choice between values."
        )
    if "Constraints violated" in said or "specialized" in said:
        return (
            f"The module holds for batches of {samples} samples alone: somewhere it uses their number as a constant. "
            "Most often that is len(x) or int(x.shape[0]) (write x.shape[0]), x.view(32, -1) (write x.flatten(1)), a "
            "loop over samples, or a batch that is not the first axis (batch_first=True)."
        )
    return (
        f"torch.export cannot follow the module: {type(error).__name__}: {_first_line(error)}. It takes modules whose "
        "forward is made of PyTorch's own operations."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


@contextlib.contextmanager
def _as_written() -> Iterator[None]:
    """Attention as a module writes it: the fused form of PyTorch's layers, for frozen weights, is no core operation."""
    mha = load_torch().backends.mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of `torch.export`, and the pages it prints before it fails; the exception says it all."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        logging.disable(before)


def _decompositions() -> Any:
    torch = load_torch()
    table = torch.export.default_decompositions()
    for name in WHOLE:
        table.pop(getattr(torch.ops.aten, name).default, None)
    # A core operation, which PyTorch can take further apart.
    table.update(torch._decomp.get_decompositions([torch.ops.aten.grid_sampler_2d.default]))
    return table


@cache
def _stop() -> Any:
    """An operation of our own through which no gradient goes: `detach` is none in a graph of values."""
    torch = load_torch()
    made = torch.library.custom_op(
        "offtangent::stop_gradient", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    made.register_fake(torch.empty_like)
    return torch.ops.offtangent.stop_gradient.default


def _keep_stops(part: Any, within: bool = False) -> None:
    """Put our own operation in the place of `detach`, and behind what is computed under `torch.no_grad()`."""
    aten, higher = load_torch().ops.aten, load_torch().ops.higher_order
    for node in list(part.graph.nodes):
        if node.target in (aten.detach.default, aten.detach_.default):
            node.target = _stop()
        if node.op != "get_attr" or not hasattr(inner := getattr(part, node.target), "graph"):
            continue
        switches = [user for user in node.users if user.target is higher.wrap_with_set_grad_enabled]
        stops = any(not user.args[0] for user in switches)
        if within and any(user.args[0] for user in switches):
            raise InputError("The module turns gradients on again within torch.no_grad(), which is not translated.")
        _keep_stops(inner, within or stops)
        if stops:
            _stop_outputs(inner.graph)


def _stop_outputs(graph: Any) -> None:
    output = next(node for node in graph.nodes if node.op == "output")
    stopped = []
    for node in output.args[0]:
        value = getattr(node, "meta", {}).get("val")
        if not isinstance(value, load_torch().Tensor) or not value.is_floating_point():
            stopped.append(node)
            continue
        with graph.inserting_before(output):
            made = graph.call_function(_stop(), (node,))
        made.meta = dict(node.meta)
        stopped.append(made)
    output.args = (tuple(stopped),)
