"""Weights of a translated PyTorch module from a file: a state dict in .pt, or .safetensors.

Neither can run code: .pt is read with `weights_only`, and .safetensors is eight bytes with the length of a header in
JSON, the header and plain numbers, which needs thirty lines here and no other package.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from offtangent._checks import check_finite, require
from offtangent._errors import InputError, a_kind
from offtangent._files import read_regular, shown
from offtangent.interop.arrays import of_numpy, of_tensor
from offtangent.interop.exporting import load_torch
from offtangent.interop.network import TorchNetwork, kind_of

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
PICKLED = (".pt", ".pth", ".bin", ".ckpt")
WITHIN = ("state_dict", "model_state_dict", "model")  # where checkpoints with an optimiser's state keep the weights
SHOWN = 3  # names that a message lists


def read_state(f: Any, path: Any) -> tuple[TorchNetwork, dict[str, Array]]:
    """Read a module's state dict, as the parameters of `from_torch` and a function with its constants.

    Args:
        f: What `from_torch` made of the module.
        path: A .pt file of `torch.save(module.state_dict(), path)`, or of a dictionary that has the state dict under
            "state_dict", "model_state_dict" or "model"; or a .safetensors file; or a state dict itself.

    Returns:
        f with the state's buffers and frozen parameters in place of the module's, and its parameters.

    Raises:
        InputError: If the file cannot be read, holds more than tensors, lacks names of the module, has others or other
            shapes, kinds of numbers that the module's cannot hold, or NaN.
    """
    if not isinstance(f, TorchNetwork):
        raise InputError(f"f is {a_kind(f)}: expected what from_torch gives first.")
    if isinstance(path, Mapping):
        return _put(f, "The state dict", _tensors(path, "The state dict"))
    try:
        file = Path(path)
    except TypeError:
        raise InputError(f"path is {a_kind(path)}: expected the name of a .pt or .safetensors file.") from None
    label = shown(file)
    require(
        file.suffix in (".safetensors", *PICKLED),
        f"path={label}: expected the name of a state dict's file, .safetensors, {', '.join(PICKLED)}.",
    )
    return _put(f, label, _safe(file, label) if file.suffix == ".safetensors" else _pickled(file, label))


def _put(f: TorchNetwork, label: str, tensors: Mapping[str, Array]) -> tuple[TorchNetwork, dict[str, Array]]:
    """Numbers by name in the places that they have in the module."""
    names, kept = f.program.names, f.program.kept
    _check_names(label, set(tensors), names, set(kept))
    found: dict[str, Array] = {}
    for name, numbers in tensors.items():
        place = names[name]
        if place not in kept:
            continue  # a buffer that the output does not depend on
        fitted = _fitted(f"{label} has {name!r}", numbers, kept[place])
        if not np.array_equal(found.setdefault(place, fitted), fitted, equal_nan=True):
            raise InputError(
                f"{label} has other numbers for {name!r} than for {place!r}, which are one parameter in the module: "
                "give a state dict of this module."
            )
    params = {name: found[name] for name in kept if name not in f.constants}
    check_finite(params, f"The parameters in {label}")
    return TorchNetwork({name: found.get(name, one) for name, one in f.constants.items()}, f.program), params


def _check_names(label: str, given: set[str], names: Mapping[str, str], kept: set[str]) -> None:
    """Refuse a file that lacks what the module needs, tied names being one, or that has what the module has not."""
    there = {names[name] for name in given if name in names}
    lacking = sorted({place for place in names.values() if place in kept} - there)
    beyond = sorted(given - set(names))
    if not lacking and not beyond:
        return
    told = [f"lacks {_listed(lacking)}"] * bool(lacking)
    told += [f"has {_listed(beyond)}, which the module has not"] * bool(beyond)
    raise InputError(f"{label} {' and '.join(told)}. Give a state dict of this very module.{_hint(beyond, set(names))}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _hint(beyond: list[str], names: set[str]) -> str:
    """That all names have something before them, as those of a module within another do."""
    for name in beyond[:1]:
        for own in names:
            before = name.removesuffix(own)
            if name.endswith("." + own) and all(one.removeprefix(before) in names for one in beyond):
                return f" Its names begin with {before!r}: save the module within, or take that off the names."
    return ""


def _fitted(what: str, numbers: Array, expected: jax.ShapeDtypeStruct) -> Array:
    """The numbers in the dtype of the module, where it holds them as they are."""
    shape = tuple(expected.shape)
    require(numbers.shape == shape, f"{what} in shape {numbers.shape}: in the module it has shape {shape}.")
    fits = kind_of(numbers.dtype) == kind_of(expected.dtype)
    if fits and kind_of(numbers.dtype) == "f":
        fits = jnp.promote_types(numbers.dtype, expected.dtype) == expected.dtype
    require(
        fits,
        f"{what} in {numbers.dtype}, and the module in {expected.dtype}, which cannot hold it as it is. Convert the "
        "module, module.double() for float64, before from_torch.",
    )
    return numbers.astype(expected.dtype)


def _pickled(file: Path, label: str) -> dict[str, Array]:
    """The tensors of what `torch.save` wrote; nothing else is unpickled."""
    torch = load_torch()
    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{label} cannot be read: {error.strerror or error}.") from None
    except Exception as error:
        raise InputError(
            f"{label} is no state dict ({type(error).__name__}), or holds more than tensors, and such files can run "
            "code. Write it by torch.save(module.state_dict(), path)."
        ) from None
    return _tensors(found, label)


def _tensors(found: Any, label: str) -> dict[str, Array]:
    """The tensors of a state dict, which may lie in a dictionary with an optimiser's state."""
    torch = load_torch()
    for key in WITHIN:
        inner = found.get(key) if isinstance(found, Mapping) else None
        found = inner if isinstance(inner, Mapping) else found
    if not isinstance(found, Mapping):
        raise InputError(
            f"{label} holds {a_kind(found)}: expected a state dict, torch.save(module.state_dict(), path)."
        )
    for name, one in found.items():
        tensor = isinstance(name, str) and isinstance(one, torch.Tensor)
        require(tensor, f"{label} has {a_kind(one)} under {name!r}: expected tensors by name, a state dict.")
    return {name: of_tensor(name, one) for name, one in found.items()}


def _safe(file: Path, label: str) -> dict[str, Array]:
    """The arrays of a .safetensors file, each looked at before it is read."""
    try:
        content = read_regular(file)
    except OSError as error:
        raise InputError(f"{label} cannot be read: {error.strerror or error}.") from None
    end = 8 + int.from_bytes(content[:8], "little")
    try:
        if len(content) < 8 or end > len(content):
            raise ValueError("it ends within its header")
        header = json.loads(content[8:end])
        return {
            name: _array(name, entry, memoryview(content)[end:])
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{label} is no whole .safetensors file: {error}. Write or download it again.") from None


def _array(name: str, entry: Any, numbers: memoryview) -> Array:
    kind, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    require(kind in DTYPES, f"{name!r} has dtype {kind}: expected one of {', '.join(DTYPES)}.")
    brief = kind == "BF16"
    dtype = np.dtype("uint16" if brief else DTYPES[kind]).newbyteorder("<")
    if not 0 <= start <= stop <= len(numbers) or stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name!r} of shape {shape} does not fit its place")
    found = np.frombuffer(numbers[start:stop], dtype).reshape(shape).astype(dtype.newbyteorder("="))
    if brief:  # the first half of a float32's bits
        return jnp.asarray((found.astype(np.uint32) << 16).view(np.float32), jnp.bfloat16)
    return of_numpy(name, found)
