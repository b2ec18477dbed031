"""A data set as bytes: it comes back as it was, or not at all; and bytes never run."""

import hashlib
import io
import json
import os
import zipfile

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from offtangent.lab.codec import Damaged, decode, encode

DTYPES = st.sampled_from(["f4", "f8", ">f8", "f2", "i1", "i4", "i8", "u1", "u8", "?", "c8", "U1", "U7", "S3", "M8[ns]"])
ATTRS = st.dictionaries(
    st.text(max_size=5), st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text(), st.booleans())
)


@st.composite
def datasets(draw):
    """Variables over a few dimensions, of any dtype, with and without coordinates."""
    sizes = draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3))
    variables = {}
    for i in range(draw(st.integers(0, 3))):
        dims = tuple(draw(st.permutations(sorted(sizes)))[: draw(st.integers(0, len(sizes)))])
        shape = tuple(sizes[d] for d in dims)
        dtype = draw(DTYPES)
        text = (
            {"alphabet": st.characters(exclude_characters="\0", exclude_categories=["Cs"])} if dtype[0] == "U" else {}
        )
        elements = hnp.from_dtype(np.dtype(dtype), **text)
        variables[f"x{i}"] = xr.Variable(dims, draw(hnp.arrays(dtype, shape, elements=elements)), draw(ATTRS))
    index = {d: np.arange(n) * 0.5 for d, n in sizes.items() if any(d in v.dims for v in variables.values())}
    kept = [d for d in index if draw(st.booleans())]
    dataset = xr.Dataset(variables, {d: index[d] for d in kept}, draw(ATTRS))
    return dataset.set_coords([name for name in variables if draw(st.booleans())])


@given(datasets(), ATTRS)
def test_a_data_set_comes_back_bit_for_bit(dataset, about):
    came, came_about = decode(encode(dataset, about))
    xr.testing.assert_identical(came, dataset)
    assert came_about == about
    assert set(came.coords) == set(dataset.coords)
    for name in dataset.variables:
        assert came[name].dtype == dataset[name].dtype
        assert came[name].values.tobytes() == dataset[name].values.tobytes()  # NaN payloads and -0.0 as well


EXAMPLE = xr.Dataset(
    {"loss": (("seed", "step"), np.arange(6.0).reshape(2, 3)), "kind": ((), np.array("true"))},
    {"step": [0, 1, 2]},
    {"rate": 0.5},
)
CONTENT = encode(EXAMPLE, {"key": "k"})


def in_the_first_format(dataset, about):
    """As earlier versions wrote it."""
    arrays = {f"v{i}": np.asarray(variable.values) for i, variable in enumerate(dataset.variables.values())}
    told = {
        f"v{i}": {"name": name, "dims": list(v.dims), "coordinate": name in dataset.coords, "attrs": dict(v.attrs)}
        for i, (name, v) in enumerate(dataset.variables.items())
    }
    layout = {"format": 1, "about": about, "attrs": dict(dataset.attrs), "variables": told}
    arrays["about"] = np.frombuffer(json.dumps(layout, sort_keys=True).encode(), np.uint8)
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name}|{arrays[name].dtype.str}|{arrays[name].shape}|".encode() + arrays[name].tobytes())
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, digest=np.frombuffer(digest.digest(), np.uint8), **arrays)
    return buffer.getvalue()


FIRST = in_the_first_format(EXAMPLE, {"key": "k"})


def test_a_file_of_the_first_format_is_still_read():
    came, about = decode(FIRST)
    xr.testing.assert_identical(came, EXAMPLE)
    assert about == {"key": "k"}


def test_numpy_opens_a_file_and_finds_every_variable():
    with np.load(io.BytesIO(CONTENT), allow_pickle=False) as file:
        layout = json.loads(bytes(file["about"]))
        found = {told["name"]: file[f"v{i}"] for i, told in enumerate(layout["variables"])}
    assert set(found) == set(EXAMPLE.variables)
    for name, values in found.items():
        np.testing.assert_array_equal(values, EXAMPLE[name].values)
        assert values.dtype == EXAMPLE[name].dtype
    assert zipfile.ZipFile(io.BytesIO(CONTENT)).testzip() is None


def test_arrays_read_from_a_file_lie_as_numpy_wants_them_and_can_be_written():
    for variable in decode(bytearray(CONTENT))[0].variables.values():
        assert variable.values.flags.aligned
        assert variable.values.flags.c_contiguous
    decode(bytearray(CONTENT))[0]["loss"].values[0, 0] = 7.0


def test_a_result_beyond_what_a_zip_archive_counts_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("offtangent.lab.codec.LARGEST", 1000)
    with pytest.raises(TypeError, match="return what claims and figures need"):
        encode(xr.Dataset({"x": ("i", np.zeros(1000))}), {})


def sound_or_damaged(content):
    try:
        came, about = decode(content)
    except Damaged:
        return
    xr.testing.assert_identical(came, EXAMPLE)
    assert about == {"key": "k"}


def changed_bytes(content):
    """The content with another value at each of its places in turn."""
    for place, change in enumerate(np.random.default_rng(0).integers(1, 256, len(content)).tolist()):
        yield content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]


def test_every_byte_changed_is_found():
    for content in changed_bytes(CONTENT):
        with pytest.raises(Damaged):
            decode(content)


@pytest.mark.filterwarnings("ignore")  # NumPy may warn of an odd header, before it is found to be damaged
def test_every_byte_changed_in_the_first_format_is_found_or_harmless():
    """Dates of the zip entries do not matter, all the rest does."""
    for content in changed_bytes(FIRST):
        sound_or_damaged(content)


@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_several_bytes_changed_are_found_or_harmless(changes):
    content = bytearray(CONTENT)
    for place, value in changes:
        content[place] = value
    sound_or_damaged(bytes(content))


def test_another_compression_than_was_used_is_found():
    """Bytes that say LZMA, BZIP2 or nothing where deflate was used: each fails in its own library's way."""
    entry = FIRST.index(b"PK\x01\x02")  # the first one of the directory
    for method in (0, 1, 9, 12, 14, 99):
        content = bytearray(FIRST)
        content[entry + 10] = method
        with pytest.raises(Damaged):
            decode(bytes(content))


def test_every_truncation_is_found():
    for length in range(len(CONTENT)):
        with pytest.raises(Damaged):
            decode(CONTENT[:length])


@given(st.binary(max_size=300))
def test_random_bytes_are_found(content):
    with pytest.raises(Damaged):
        decode(content)


class Bomb:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def test_a_pickle_inside_never_runs(tmp_path):
    """A file with an object array, in the place of a variable, of the digest, of the layout."""
    bomb = np.array([Bomb(tmp_path / "mark")], object)
    with np.load(io.BytesIO(FIRST)) as file:
        parts = dict(file)
    for name in parts:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=True, **{**parts, name: bomb})
        with pytest.raises(Damaged):
            decode(buffer.getvalue())
    assert not (tmp_path / "mark").exists()
    buffer.seek(0)
    with np.load(buffer, allow_pickle=True) as file:  # the bomb is real
        file[name]
    assert (tmp_path / "mark").exists()


def test_a_bare_pickle_never_runs(tmp_path):
    import pickle

    with pytest.raises(Damaged):
        decode(pickle.dumps(Bomb(tmp_path / "mark")))
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "header", ["(" * 500, "{'descr': '<f8', 'fortran_order': False, 'shape': (10**30,)}", "'''", "\\"]
)
@pytest.mark.filterwarnings("ignore")
def test_a_malicious_array_header_is_found(header):
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("digest.npy", npy)
    with pytest.raises(Damaged):
        decode(buffer.getvalue())


def test_objects_are_refused():
    with pytest.raises(TypeError, match="'x' has dtype object"):
        encode(xr.Dataset({"x": ("i", np.array([None, 1], object))}), {})


def test_bfloat16_is_refused_since_npz_would_forget_it():
    import ml_dtypes

    with pytest.raises(TypeError, match="'x' has dtype bfloat16"):
        encode(xr.Dataset({"x": ("i", np.zeros(2, ml_dtypes.bfloat16))}), {})
