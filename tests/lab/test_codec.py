"""A data set as bytes: it comes back as it was, or not at all; and bytes never run."""

import io
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


def sound_or_damaged(content):
    try:
        came, about = decode(content)
    except Damaged:
        return
    xr.testing.assert_identical(came, EXAMPLE)
    assert about == {"key": "k"}


@pytest.mark.filterwarnings("ignore")  # NumPy may warn of an odd header, before it is found to be damaged
def test_every_byte_changed_is_found_or_harmless():
    """One value for each byte of the file: dates of the zip entries do not matter, all the rest does."""
    values = np.random.default_rng(0).integers(1, 256, len(CONTENT))
    for place, change in enumerate(values.tolist()):
        sound_or_damaged(CONTENT[:place] + bytes([CONTENT[place] ^ change]) + CONTENT[place + 1 :])


@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_several_bytes_changed_are_found_or_harmless(changes):
    content = bytearray(CONTENT)
    for place, value in changes:
        content[place] = value
    sound_or_damaged(bytes(content))


def test_another_compression_than_was_used_is_found():
    """Bytes that say LZMA, BZIP2 or nothing where deflate was used: each fails in its own library's way."""
    entry = CONTENT.index(b"PK\x01\x02")  # the first one of the directory
    for method in (0, 1, 9, 12, 14, 99):
        content = bytearray(CONTENT)
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
    with np.load(io.BytesIO(CONTENT)) as file:
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
