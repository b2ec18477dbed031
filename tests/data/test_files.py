import builtins
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from offtangent._errors import InputError
from offtangent.data import load

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
