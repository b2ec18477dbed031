import builtins
import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from offtangent._errors import InputError
from offtangent.data import load
from offtangent.data._limit import Limit

X = np.array([[1.5, -2.0], [3.0, 4.0], [0.0, 1e-3]])
Y = np.array([1.0, -1.0, 1.0])


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def same(loaded, x=X, y=Y):
    return np.array_equal(loaded.X, x) and np.array_equal(loaded.y, y) and loaded.X.dtype == np.float64


@pytest.mark.parametrize("names", [("X", "y"), ("x", "y"), ("data", "labels"), ("data", "target")])
def test_npz_under_each_known_pair_of_names(tmp_path, names):
    np.savez(tmp_path / "a.npz", **dict(zip(names, (X, Y), strict=True)))
    loaded = load(tmp_path / "a.npz")
    assert same(loaded)
    assert loaded.source == tmp_path / "a.npz"
    assert loaded.features is None
    assert loaded.classes is None


def test_a_result_unpacks_into_inputs_and_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    inputs, labels = load(str(tmp_path / "a.npz"))
    assert np.array_equal(inputs, X)
    assert np.array_equal(labels, Y)


def test_npz_with_the_label_array_named(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, noisy=-Y, y=Y)
    assert same(load(tmp_path / "a.npz", labels="noisy"), y=-Y)


def test_npz_with_other_names_says_which_were_found(tmp_path):
    np.savez(tmp_path / "a.npz", inputs=X, outputs=Y)
    with pytest.raises(InputError, match=r"named inputs, outputs: expected X and y"):
        load(tmp_path / "a.npz")


def test_npy_as_a_pair_and_by_option(tmp_path):
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, X)
    np.save(y, Y)
    assert same(load((x, y)))
    assert same(load(x, labels=str(y)))
    with pytest.raises(InputError, match=r"second \.npy file"):
        load(x)


def test_text_labels_become_codes_with_their_names(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["dog", "cat", "dog"]))
    loaded = load(tmp_path / "a.npz")
    assert loaded.y.tolist() == [1, 0, 1]
    assert loaded.classes == ("cat", "dog")


class Trap:
    """An object whose unpickling would be noticed."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_nothing_is_ever_unpickled(tmp_path):
    objects = np.array([Trap(), Trap(), Trap()], dtype=object)
    np.savez(tmp_path / "a.npz", X=X, y=objects)
    np.save(tmp_path / "x.npy", objects)
    (tmp_path / "b.npz").write_bytes(pickle.dumps({"X": 1, "y": 2}))
    for source in (tmp_path / "a.npz", (tmp_path / "x.npy", tmp_path / "x.npy"), tmp_path / "b.npz"):
        with pytest.raises(InputError, match="Python objects"):
            load(source)
    assert not Trap.sprung


def test_a_csv_with_a_header_keeps_its_names(tmp_path):
    loaded = load(written(tmp_path / "a.csv", "height, width,label\n1.5,-2,1\n3,4,-1\n\n0,1e-3,1\n"))
    assert same(loaded)
    assert loaded.features == ("height", "width")


def test_a_csv_without_a_header_loses_no_row(tmp_path):
    loaded = load(written(tmp_path / "a.csv", "1.5,-2,1\n3,4,-1\n0,1e-3,1\n"))
    assert same(loaded)
    assert loaded.features is None


def test_a_csv_without_a_header_may_have_text_labels(tmp_path):
    loaded = load(written(tmp_path / "a.csv", "1.5,-2,b\n3,4,a\n0,1e-3,b\n"))
    assert same(loaded, y=[1, 0, 1])
    assert loaded.classes == ("a", "b")


def test_column_numbers_as_pandas_writes_them_are_a_header(tmp_path):
    loaded = load(written(tmp_path / "a.csv", "0,1,label\n1.5,-2,1\n3,4,-1\n0,1e-3,1\n"))
    assert same(loaded)
    assert loaded.features == ("0", "1")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs_separate_too(tmp_path, mark):
    assert same(load(written(tmp_path / "a.csv", "1.5,-2,1\n3,4,-1\n0,1e-3,1\n".replace(",", mark))))


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    loaded = load(written(tmp_path / "a.csv", "\ufeffa,b,label\r\n1.5,-2,1\r\n3,4,-1\r\n0,1e-3,1\r\n"))
    assert same(loaded)
    assert loaded.features == ("a", "b")


@pytest.mark.parametrize("labels", ["label", 1, -2, "1"])
def test_the_label_column_by_name_or_position(tmp_path, labels):
    loaded = load(written(tmp_path / "a.csv", "a,label,b\n1.5,1,-2\n3,-1,4\n0,1,1e-3\n"), labels=labels)
    assert same(loaded)
    assert loaded.features == ("a", "b")


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2), elements=st.floats(-1e300, 1e300)))
def test_numbers_survive_a_csv_exactly(tmp_path_factory, table):
    path = tmp_path_factory.getbasetemp() / "exact.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.17g")
    assert same(load(path), table[:, :-1], table[:, -1])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "header and no rows"),
        ("1,2,3\n4,5\n", "ragged: line 2 has 2 cells, the first has 3"),
        ("1\n2\n", "one column"),
        ("colour,size,label\nred,1,0\nblue,2,1\n", r"'colour' \('red' in line 2; 2 in all\)"),
        ("a,b,label\n1,2,0\n3,,1\n", r"'b' \(an empty cell in line 3; 1 in all\)"),
        ("a,b,label\n1,2,0\n3,4,\n", "1 rows without a label"),
        ("a,b,label\n1,2,0\n3,4,?\n", r"the first '\?'"),
        ("a,b,label\n1,nan,0\n3,4,1\n", "row 0, column 1"),
        ("abc,2.5,0\n3,4,1\n", "0 .'abc' in line 1"),
        (",a,label\n0,1,0\n1,4,1\n", "index=False"),
        ("a,b,label\n1,2,0\n", "only 1 sample"),
        ('a,b\n"1,2\n3,4\n', "no .csv text file"),
    ],
)
def test_a_faulty_csv_is_refused_with_the_place(tmp_path, text, fault):
    with pytest.raises(InputError, match=fault):
        load(written(tmp_path / "a.csv", text))


@pytest.mark.parametrize(("labels", "fault"), [("c", "no column 'c'. It has a, b"), (2, "2 columns, 0 to 1")])
def test_a_label_column_that_is_not_there_is_refused(tmp_path, labels, fault):
    with pytest.raises(InputError, match=fault):
        load(written(tmp_path / "a.csv", "a,b\n1,2\n3,4\n"), labels=labels)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00\x81,1\n")
    with pytest.raises(InputError, match="UTF-8"):
        load(tmp_path / "a.csv")


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def test_parquet_columns_of_every_numeric_type(tmp_path):
    path = parquet(tmp_path / "a.parquet", a=[1, 2, 3], b=[0.5, 1.5, 2.5], c=[True, False, True], label=[1, -1, 1])
    loaded = load(path)
    assert same(loaded, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])
    assert loaded.features == ("a", "b", "c")


def test_parquet_with_text_labels_in_a_named_column_and_a_stored_index(tmp_path):
    path = parquet(tmp_path / "a.parquet", kind=["b", "a", "b"], x=[1, 2, 3], __index_level_0__=[7, 8, 9])
    loaded = load(path, labels="kind")
    assert same(loaded, [[1], [2], [3]], [1, 0, 1])
    assert loaded.classes == ("a", "b")


def test_parquet_with_text_or_missing_features_names_the_columns(tmp_path):
    path = parquet(tmp_path / "a.parquet", a=["u", "v"], b=[1.0, None], label=[0, 1])
    with pytest.raises(InputError, match=r"'a' \(type string; 2 in all\), 'b' \(missing values; 1 in all\)"):
        load(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path / "a.parquet", "PAR1")
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install \"offtangent\[parquet\]\""):
        load(path)


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.npy"])
@pytest.mark.parametrize("content", [b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00", b"PAR1 broken", b"\0" * 100])
def test_damaged_files_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged|Python objects"):
        load((path, path) if name == "a.npy" else path)


def test_a_truncated_npz_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "a.npz")


def test_files_that_are_missing_folders_or_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="not a file"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"'.txt': expected one of .npz, .npy, .csv, .parquet"):
        load(written(tmp_path / "a.txt", "1,2\n"))


def test_wrong_shapes_are_refused_with_the_file_named(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2, 2)), y=Y)
    with pytest.raises(InputError, match=r"a.npz: X has shape \(3, 2, 2\)"):
        load(tmp_path / "a.npz")


def test_parquet_columns_in_any_order_of_their_names(tmp_path):
    loaded = load(parquet(tmp_path / "a.parquet", y=[1, -1, 1], b=[1, 2, 3], a=[4, 5, 6]), labels="y")
    assert same(loaded, [[1, 4], [2, 5], [3, 6]])
    assert loaded.features == ("b", "a")


@pytest.mark.parametrize("labels", [[[1], [1, 2], [3]], [{"a": 1}, {"a": 2}, {"a": 3}]])
def test_parquet_labels_that_are_lists_or_structures_are_refused(tmp_path, labels):
    with pytest.raises(InputError, match="expected one number or text for each row"):
        load(parquet(tmp_path / "a.parquet", x=[1, 2, 3], label=labels))


def test_parquet_with_two_stored_indices_of_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    names = ["__index_level_0__", "x", "y", "__index_level_0__"]
    columns = [pa.array(values) for values in ([7, 8, 9], [1, 2, 3], [1, -1, 1], [7, 8, 9])]
    pyarrow.parquet.write_table(pa.Table.from_arrays(columns, names=names), tmp_path / "a.parquet")
    assert same(load(tmp_path / "a.parquet"), [[1], [2], [3]])


@pytest.mark.parametrize("labels", ["--1", "---3", "9" * 5000, "-" + "9" * 5000, "-"])
def test_label_columns_that_are_no_positions_are_refused(tmp_path, labels):
    with pytest.raises(InputError, match="has no column '"):
        load(written(tmp_path / "a.csv", "a,b\n1,2\n3,4\n"), labels=labels)


def test_labels_that_float64_would_merge_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([2**60, 2**60 + 1, 2**60]))
    with pytest.raises(InputError, match=r"2 different whole numbers.*only 1 of them"):
        load(tmp_path / "a.npz")
    with pytest.raises(InputError, match="2 different whole numbers"):
        load(written(tmp_path / "a.csv", f"1,{10**17}\n2,{10**17 + 1}\n3,{10**17}\n"))


def test_labels_that_are_bytes_but_no_text_stay_different(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([b"\xfe", b"\xff", b"\xfe"]))
    assert load(tmp_path / "a.npz").classes == ("\\xfe", "\\xff")


def test_blank_labels_of_an_npz_are_refused_as_those_of_a_csv(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["", "b", ""]))
    with pytest.raises(InputError, match="2 rows are without a label"):
        load(tmp_path / "a.npz")


def test_one_long_label_costs_the_others_no_room(tmp_path):
    # As an array of text these would take 4 bytes × 100 000 × 5 000 rows: 2 GB.
    rows = "".join(f"{i},{'xy'[i % 2]}\n" for i in range(5000))
    tracemalloc.start()
    loaded = load(written(tmp_path / "a.csv", rows + f"1,{'z' * 100_000}\n"))
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert len(loaded.classes) == 3


def npy(shape, kind="<f8"):
    """The bytes of an array's file with this head and nothing behind it."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def zipped(path, content, method=zipfile.ZIP_DEFLATED):
    """An .npz whose inputs are these bytes."""
    labels = io.BytesIO()
    np.save(labels, Y)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", labels.getvalue())
    return path


@pytest.mark.parametrize(
    "content",
    [
        npy((2**70, 3)),
        npy((True, 3)),
        npy((2**40, 3), "<U0"),
        b"\x93NUMPY\x02\x00" + (9000).to_bytes(4, "little") + b"(" * 9000,
        b"hello",
        b"",
    ],
    ids=["huge", "true", "empty entries", "unclosed", "text", "nothing"],
)
def test_archives_with_a_faulty_array_are_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"a.npz (is damaged|holds an array)"):
        load(zipped(tmp_path / "a.npz", content))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_packed_as_numpy_does_not_are_refused(tmp_path, method):
    with pytest.raises(InputError, match="packed in another way"):
        load(zipped(tmp_path / "a.npz", npy((3, 2)) + X.tobytes(), method))


@pytest.mark.parametrize(("place", "value"), [(8, 1), (10, 97), (6, 193)], ids=["encrypted", "method", "version"])
def test_archives_that_are_encrypted_or_of_another_version_are_refused(tmp_path, place, value):
    path = zipped(tmp_path / "a.npz", npy((3, 2)) + X.tobytes())
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + place] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"encrypted|damaged"):
        load(path)


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "~nobody-at-all/a.csv"])
def test_names_that_no_file_can_have_are_refused(name):
    with pytest.raises(InputError, match="There is no file"):
        load(name)


def large(tmp_path, kind):
    """A file of a few kilobytes that holds 8 MB of numbers."""
    numbers, labels = np.zeros((100_000, 10)), np.arange(100_000) % 2
    path = tmp_path / f"a.{kind}"
    if kind == "npz":
        np.savez_compressed(path, X=numbers, y=labels)
    elif kind == "parquet":
        parquet(path, **{f"c{i}": column for i, column in enumerate(numbers.T)}, y=labels)
    else:
        np.savetxt(path, np.c_[numbers, labels], fmt="%d", delimiter=",")
    return path


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_more_data_than_the_limit_are_refused_with_how_to_raise_it(tmp_path, kind):
    path = large(tmp_path, kind)
    with pytest.raises(InputError, match=r"limit of 3 MB.*--limit \d+ on the command line, limit=\d+ in Python"):
        load(path, limit=3)
    assert load(path, limit=10).X.shape == (100_000, 10)


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_a_limit_beyond_what_a_file_can_hold_is_none(tmp_path, kind):
    assert load(large(tmp_path, kind), limit=10**30).X.shape == (100_000, 10)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_refused_data_are_not_unpacked(tmp_path, kind):
    path = large(tmp_path, kind)
    tracemalloc.start()
    with pytest.raises(InputError, match="limit"):
        load(path, limit=3)
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


@pytest.mark.parametrize("row", ["1," * 40_000, '"x\n",' * 10_000], ids=["a line", "many lines"])
def test_a_row_of_text_beyond_its_share_of_the_limit_is_refused(tmp_path, row):
    path = written(tmp_path / "a.csv", f"1,2\n3,4\n{row}1\n")
    with pytest.raises(InputError, match=r"a row of more than 0\.03125 million characters.*--limit 4"):
        load(path, limit=1)


def test_mnist_as_float64_is_within_the_limit(tmp_path):
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (60_000, 784)})
        file.truncate(file.tell() + 60_000 * 784 * 8)
    Limit().check(path, path.stat().st_size)


def test_shared_texts_of_a_parquet_are_kept_once(tmp_path):
    path = parquet(tmp_path / "a.parquet", x=np.arange(5000.0), label=[f"{i % 2}" * 10_000 for i in range(5000)])
    assert len(load(path, limit=1).classes) == 2
