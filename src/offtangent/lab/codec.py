"""A data set as bytes: an npz file that holds arrays and JSON, never a pickle, and knows its own checksum.

`numpy.load(path)` opens it. Its first entry, `about`, is JSON with the variables' names, dimensions, attributes and
places in the file, and with provenance. Nothing is compressed, and every array begins at a multiple of 64 bytes, so
that reading is no more than a checksum over the bytes: arrays are views of them. The file ends with the zip archive's
comment, a mark and the sha256 of all that stands before it: one changed byte anywhere is found.

Files of the first format (compressed, with a digest of the arrays as an entry) are still read.
"""

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

FORMAT = 2
KINDS = "biufcSUmM"  # of NumPy's dtypes: those an npz file gives back as they were
MARK = b"offtangent 2 sha256:"
LARGEST = 2**32 - 2**20  # bytes of a file: a zip archive counts in 32 bits

_ENTRY = struct.Struct("<4s5H3L2H")  # what stands before an entry's name, in the file and in the directory at its end
_LISTED = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_JANUARY_1980 = 33  # the first day a zip archive knows
_NUMPY = b"\x93NUMPY\x01\x00"
_TAIL = _END.size + len(MARK) + hashlib.sha256().digest_size
ENDS = ((b"PK\x05\x06", _TAIL), (b"PK\x05\x06", _END.size))  # of either format, and how far from the file's end


class Damaged(Exception):
    """A stored file that is not what was written: truncated, altered, or from elsewhere."""


def encode(dataset: xr.Dataset, about: Mapping[str, Any]) -> bytes:
    """The file's content. `about` is anything JSON can hold. Object arrays are refused: they would need a pickle."""
    arrays: list[np.ndarray] = []
    variables: list[dict[str, Any]] = []
    for name, variable in dataset.variables.items():
        values = np.asarray(variable.values, order="C")
        if values.dtype.kind not in KINDS:  # object arrays, and bfloat16 and its like, which npz would forget
            raise TypeError(f"variable {name!r} has dtype {values.dtype}; give it numbers or fixed-width text")
        arrays.append(values)
        variables.append(
            {
                "name": name,
                "dims": variable.dims,
                "dtype": values.dtype.str,
                "shape": values.shape,
                "coordinate": name in dataset.coords,
                "attrs": _plain(variable.attrs),
            }
        )
    layout = {"format": FORMAT, "about": dict(about), "attrs": _plain(dataset.attrs), "variables": variables}
    text = json.dumps(layout, sort_keys=True).encode()
    parts: list[bytes | memoryview] = []
    listed: list[bytes] = []
    place = 0
    for number, values in enumerate([np.frombuffer(text, np.uint8), *arrays]):
        name = b"about.npy" if number == 0 else b"v%d.npy" % (number - 1)
        header = _header(values.dtype.str, values.shape)
        data = values.reshape(-1).view(np.uint8).data if values.nbytes else memoryview(b"")
        length = len(header) + len(data)
        padding = -(place + _ENTRY.size + len(name) + len(header)) % 64
        check = zlib.crc32(data, zlib.crc32(header))
        facts = (20, 0, 0, 0, _JANUARY_1980, check, length, length, len(name))
        # The padding is an extra field, which has a length of its own in its first four bytes.
        padding += 64 if 0 < padding < 4 else 0
        extra = struct.pack("<2H", 0xFFFF, padding - 4) + bytes(padding - 4) if padding else b""
        parts += [_ENTRY.pack(b"PK\x03\x04", *facts, padding), name, extra, header, data]
        listed += [_LISTED.pack(b"PK\x01\x02", 20, *facts, 0, 0, 0, 0, 0, place), name]
        place += _ENTRY.size + len(name) + padding + length
    directory = b"".join(listed)
    if place + len(directory) > LARGEST:
        raise TypeError(
            f"the result has {place / 1e9:.1f} GB, and one cell's may have {LARGEST / 1e9:.1f}; return what claims and "
            "figures need, or make the cell several"
        )
    count, comment = len(arrays) + 1, len(MARK) + hashlib.sha256().digest_size
    parts += [directory, _END.pack(b"PK\x05\x06", 0, 0, count, count, len(directory), place, comment), MARK]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def decode(content: bytes | bytearray) -> tuple[xr.Dataset, dict[str, Any]]:
    """The data set and its `about`. Raises `Damaged`, and runs no code whatever the bytes are.

    The arrays are views of `content`: they can be written if it is a bytearray.
    """
    try:
        view = memoryview(content)
        digest = hashlib.sha256().digest_size
        if view[-digest - len(MARK) : -digest] != MARK:
            return _decode_first(content)
        if hashlib.sha256(view[:-digest]).digest() != view[-digest:]:
            raise Damaged("the checksum does not match the content")
        place, layout = _about(view)
        if layout["format"] != FORMAT:
            raise Damaged(f"format {layout['format']}, this version reads {FORMAT}")
        found = []
        for number, told in enumerate(layout["variables"]):
            dtype, shape = np.dtype(told["dtype"]), tuple(told["shape"])
            if dtype.kind not in KINDS:
                raise Damaged(f"dtype {dtype}")
            length = len(_header(dtype.str, shape))
            place += _before(view, place, b"v%d.npy" % number) + length
            values = np.ndarray(shape, dtype, content, place)
            place += values.nbytes
            found.append(values if values.flags.aligned else values.copy())
        return _dataset(layout, found), layout["about"]
    except Damaged:
        raise
    except Exception as error:  # struct, NumPy, xarray and JSON each have their own
        raise Damaged(f"{type(error).__name__}: {error}") from None


def array_checksum(values: np.ndarray) -> str:
    """The sha256 of an array's dtype, shape and numbers, in hexadecimal digits."""
    digest = hashlib.sha256(f"{values.dtype.str}|{values.shape}|".encode())
    digest.update(np.asarray(values, order="C").reshape(-1).view(np.uint8).data if values.nbytes else b"")
    return digest.hexdigest()


@lru_cache(1024)
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """What stands before an array's numbers in the format of NumPy, whose length is a multiple of 64."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode()
    text += b" " * (-(len(_NUMPY) + 2 + len(text) + 1) % 64) + b"\n"
    return _NUMPY + struct.pack("<H", len(text)) + text


def _before(view: memoryview, place: int, name: bytes) -> int:
    """How many bytes an entry has before its array's header."""
    mark, *_, named, padding = _ENTRY.unpack_from(view, place)
    if mark != b"PK\x03\x04" or view[place + _ENTRY.size : place + _ENTRY.size + named] != name:
        raise Damaged("an entry is not where it belongs")
    return int(_ENTRY.size + named + padding)


def _about(view: memoryview) -> tuple[int, dict[str, Any]]:
    """Where the first entry ends, and its JSON."""
    place = _before(view, 0, b"about.npy")
    (header,) = struct.unpack_from("<H", view, place + len(_NUMPY))
    length = _ENTRY.unpack_from(view, 0)[8]
    end = place + length
    return end, json.loads(bytes(view[place + len(_NUMPY) + 2 + header : end]))


def _dataset(layout: dict[str, Any], arrays: list[np.ndarray]) -> xr.Dataset:
    told = layout["variables"]
    variables = {v["name"]: (v["dims"], values, v["attrs"]) for v, values in zip(told, arrays, strict=True)}
    dataset = xr.Dataset(variables, attrs=layout["attrs"])
    coordinates = sorted(v["name"] for v in told if v["coordinate"] and v["name"] not in dataset.coords)
    return dataset.set_coords(coordinates) if coordinates else dataset


def _decode_first(content: bytes | bytearray) -> tuple[xr.Dataset, dict[str, Any]]:
    """A file of the first format."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if bytes(arrays.pop("digest")) != _first_digest(arrays):
        raise Damaged("the checksum does not match the content")
    layout = json.loads(bytes(arrays.pop("about")))
    if layout["format"] != 1:
        raise Damaged(f"format {layout['format']}, this version reads 1 and {FORMAT}")
    names = list(layout["variables"])
    layout["variables"] = [layout["variables"][name] for name in names]
    return _dataset(layout, [arrays[name] for name in names]), layout["about"]


def _first_digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{arrays[name].shape}|".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(k): v.item() if isinstance(v, np.generic) else v for k, v in attrs.items()}
