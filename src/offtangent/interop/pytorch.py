"""PyTorch modules as functions f(params, x) of JAX."""

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from offtangent._checks import check_finite, require
from offtangent._errors import InputError
from offtangent.interop.arrays import of_tensor
from offtangent.interop.exporting import check_example, check_module, exported, load_torch, run_module
from offtangent.interop.network import TorchNetwork
from offtangent.interop.translation import translate

if TYPE_CHECKING:
    import torch


def from_torch(module: Any, example: Any) -> tuple[TorchNetwork, dict[str, Array]]:
    """Make a function f(params, x) of JAX, and its parameters, of a PyTorch module in evaluation mode.

    `torch.export` takes the module apart into core ATen operations, and each of these is one of JAX: whatever works for
    f(params, x), such as Taylor terms, tangent kernels, jit and grad, works for the module, for batches of any size.
    What it computes is compared with the module on the example. Loops are unrolled: the steps of a recurrent layer, and
    every length but that of the batch, are those of the example.

    - Parameters are those that require a gradient, one leaf for each storage: tied parameters have the first of their
      names. Buffers, such as the running statistics of batch norm, and frozen parameters are constants of f.
    - Dtypes are the module's: for one in float64 call this, and all that follows, under `jax.enable_x64(True)`.
    - Derivatives are those of PyTorch, also at kinks, behind `detach()` and of what is computed under `no_grad()`.

    Args:
        module: A `torch.nn.Module` after `module.eval()`, which returns one tensor and takes the first axis of its
            inputs as the batch. It is left as it is; the parameters are copies.
        example: A batch of inputs, whose numbers matter little: a tensor, or a tuple of those that the module takes.

    Returns:
        f and its parameters, arrays by name. f takes x as an array, or as a tuple of them.

    Raises:
        InputError: If PyTorch is missing, the module is none, in training mode, lazy or without trained parameters, if
            it does not take the example, cannot be exported for batches of any size, or has an operation that is not
            translated (`interop.operations.register` adds one). The message names the line of the module.

    >>> import torch
    >>> module = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False), torch.nn.Tanh())
    >>> _ = module[0].weight.data.copy_(torch.tensor([[1.0, 2.0]]))
    >>> f, params = from_torch(module.eval(), torch.zeros(3, 2))
    >>> params
    {'0.weight': Array([[1., 2.]], dtype=float32)}
    >>> f(params, jnp.array([[0.0, 0.0], [1.0, -0.5]]))
    Array([[0.],
           [0.]], dtype=float32)
    """
    module, args = check_module(module), check_example(example)
    names, trained, rest = _kept(module)
    params = {name: of_tensor(name, one) for name, one in trained.items()}
    check_finite(params, "The module's parameters")
    expected = run_module(module, args)
    found = exported(module, args)
    program = translate(found, names, trained, isinstance(example, tuple | list))
    rest |= {name: one for name, one in found.constants.items() if isinstance(one, load_torch().Tensor)}
    for name in program.held.values():
        require(name in rest, f"The module holds {name!r}, which is no tensor: that cannot be translated.")
    constants = {name: of_tensor(name, rest[name]) for name in sorted(set(program.held.values()))}
    f = TorchNetwork(constants, replace(program, kept=jax.eval_shape(lambda: params | constants)))
    _check_equal(f, params, args, expected)
    return f, params


def _kept(module: Any) -> tuple[dict[str, str], dict[str, "torch.Tensor"], dict[str, "torch.Tensor"]]:
    """Under which name the numbers of each name in the state dict are kept; the trained ones, and the others."""
    first: dict[Any, str] = {}
    names, tensors = {}, {}
    for name, one in module.named_parameters(remove_duplicate=False):
        place = (one.untyped_storage().data_ptr(), one.storage_offset(), tuple(one.shape), one.stride())
        names[name] = first.setdefault(place if one.numel() else name, name)
        tensors[name] = one
    _check_apart({names[name]: one for name, one in tensors.items()})
    trains = {names[name] for name, one in tensors.items() if one.requires_grad}
    trained = {name: one for name, one in tensors.items() if name in trains}
    rest = {name: one for name, one in tensors.items() if names[name] == name and name not in trains}
    for name, one in module.named_buffers(remove_duplicate=False):
        names[name], rest[name] = name, one
    stored = set(module.state_dict())
    return {name: kept for name, kept in names.items() if name in stored}, trained, rest


def _check_apart(tensors: dict[str, "torch.Tensor"]) -> None:
    """Refuse parameters that share a part of their memory: they cannot be leaves of their own, nor one."""
    spans = []
    for name, one in tensors.items():
        if one.numel():
            size = 1 + sum((length - 1) * step for length, step in zip(one.shape, one.stride(), strict=True))
            start = one.storage_offset()
            spans.append((one.untyped_storage().data_ptr(), start, start + size, name))
    spans.sort()
    for left, right in pairwise(spans):
        if left[0] == right[0] and right[1] < left[2]:
            raise InputError(
                f"The parameters {left[3]!r} and {right[3]!r} share a part of their memory, in different shapes: tie "
                "one parameter under both names, and reshape or transpose it in forward."
            )


def _check_equal(
    f: TorchNetwork, params: dict[str, Array], args: tuple["torch.Tensor", ...], expected: "torch.Tensor"
) -> None:
    """Refuse a translation that computes something else on the example than the module does."""
    inputs = tuple(of_tensor("example", one) for one in args)
    with jax.default_matmul_precision("highest"):
        found = f(params, inputs if f.program.several else inputs[0])
    truth = of_tensor("The module's output", expected)
    same = found.shape == truth.shape
    eps = float(jnp.finfo(truth.dtype).eps)  # type: ignore[no-untyped-call]
    apart = float(jnp.max(jnp.abs(found - truth), initial=0)) if same else float("inf")
    size = float(jnp.max(jnp.abs(truth), initial=0))
    require(
        not apart > 10 * eps**0.5 * size,
        f"On the example, JAX gives an output of shape {found.shape} and PyTorch one of {truth.shape}"
        + (f", which differ by {apart:.2g}" if same else "")
        + ": the module does not always compute the same, or an operation is translated wrongly. A registered one? "
        "Otherwise please report it.",
    )
