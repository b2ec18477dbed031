"""A data set as bytes: an npz file that holds arrays and JSON, never a pickle, and knows its own checksum.

`numpy.load(path)` opens it; the entry `about` is JSON with dimensions, attributes and provenance, and `digest`
is the sha256 over everything else. Reading refuses anything whose digest does not match.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

FORMAT = 1
KINDS = "biufcSUmM"  # of NumPy's dtypes: those an npz file gives back as they were


class Damaged(Exception):
    """A stored file that is not what was written: truncated, altered, or from elsewhere."""


def encode(dataset: xr.Dataset, about: Mapping[str, Any]) -> bytes:
    """The file's content. `about` is anything JSON can hold. Object arrays are refused: they would need a pickle."""
    arrays: dict[str, np.ndarray] = {}
    layout: dict[str, Any] = {
        "format": FORMAT,
        "about": dict(about),
        "attrs": _plain(dataset.attrs),
        "variables": {},
    }
    for name, variable in dataset.variables.items():
        values = np.asarray(variable.values)
        if values.dtype.kind not in KINDS:  # object arrays, and bfloat16 and its like, which npz would forget
            raise TypeError(f"variable {name!r} has dtype {values.dtype}; give it numbers or fixed-width text")
        arrays[f"v{len(arrays)}"] = values
        layout["variables"][f"v{len(arrays) - 1}"] = {
            "name": name,
            "dims": list(variable.dims),
            "coordinate": name in dataset.coords,
            "attrs": _plain(variable.attrs),
        }
    arrays["about"] = np.frombuffer(json.dumps(layout, sort_keys=True).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, digest=np.frombuffer(_digest(arrays), np.uint8), **arrays)
    return buffer.getvalue()


def decode(content: bytes) -> tuple[xr.Dataset, dict[str, Any]]:
    """The data set and its `about`. Raises `Damaged`, and runs no code whatever the bytes are."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        digest = bytes(arrays.pop("digest"))
        if digest != _digest(arrays):
            raise Damaged("the checksum does not match the content")
        layout = json.loads(bytes(arrays.pop("about")))
        if layout["format"] != FORMAT:
            raise Damaged(f"format {layout['format']}, this version reads {FORMAT}")
        variables = {v["name"]: (v["dims"], arrays[k], v["attrs"]) for k, v in layout["variables"].items()}
        coordinates = {v["name"] for v in layout["variables"].values() if v["coordinate"]}
        dataset = xr.Dataset(variables, attrs=layout["attrs"]).set_coords(sorted(coordinates))
        return dataset, layout["about"]
    except Damaged:
        raise
    except Exception as error:  # zip, zlib, lzma, NumPy and JSON each have their own
        raise Damaged(f"{type(error).__name__}: {error}") from None


def _digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{arrays[name].shape}|".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(k): v.item() if isinstance(v, np.generic) else v for k, v in attrs.items()}
