import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from offtangent._checks import check_directions, check_inputs, check_labels, check_not_parallel, check_several
from offtangent._errors import InputError

matrices = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(-1e9, 1e9))
SAME = 1e-12


@given(matrices)
def test_finite_matrices_pass_unchanged(X):
    assert np.array_equal(check_inputs(X), X)


@given(matrices, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_a_bad_entry_is_named_by_row_and_column(X, bad, data):
    row = data.draw(st.integers(0, X.shape[0] - 1))
    column = data.draw(st.integers(0, X.shape[1] - 1))
    X = X.copy()
    X[row, column] = bad
    with pytest.raises(InputError, match=f"1 entry .* row {row}, column {column} "):
        check_inputs(X)


def test_all_bad_entries_are_counted():
    with pytest.raises(InputError, match=r"3 entries .* in 2 rows; the first is nan in row 1, column 0"):
        check_inputs([[1, 2], [np.nan, np.inf], [0, np.nan]])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float32])
def test_every_kind_of_real_number_becomes_float64(dtype):
    X = check_inputs(np.ones((2, 3), dtype=dtype))
    assert X.dtype == np.float64
    assert (X == 1).all()


@pytest.mark.parametrize(
    ("X", "fault"),
    [
        (np.ones(3), r"X\[:, None\]"),
        (np.ones((2, 2, 2)), r"X.reshape\(len\(X\), -1\)"),
        (np.ones((0, 3)), r"shape \(0, 3\)"),
        (np.ones((3, 0)), r"shape \(3, 0\)"),
        ([["a"]], "Turn text into numbers"),
        (np.ones((2, 2)) * 1j, "real part"),
        ([[1, 2], [3]], "rows of equal length"),
        (np.array([[None]]), "dtype object"),
        (None, "dtype object"),
        (1.0, "table of numbers"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_with_a_remedy(X, fault):
    with pytest.raises(InputError, match=fault):
        check_inputs(X)


def test_zero_rows_are_named_only_where_asked():
    X = [[1.0, 0.0], [0.0, 0.0], [0.0, -0.0]]
    assert len(check_inputs(X)) == 3
    with pytest.raises(InputError, match="2 zero rows, the first is row 1"):
        check_inputs(X, nonzero=True)


@given(matrices.filter(lambda X: len(X) > 1))
def test_one_finite_label_a_row_passes(X):
    inputs, labels = check_labels(X, X[:, 0].tolist())
    assert np.array_equal(inputs, X)
    assert np.array_equal(labels, X[:, 0])


@pytest.mark.parametrize(
    ("y", "fault"),
    [
        ([1, 2], "2 labels and X has 3 rows"),
        ([1, 2, 3, 4], "4 labels and X has 3 rows.*transposed"),
        ([[1], [2], [3]], r"y.ravel\(\)"),
        ([1, np.nan, np.inf], "2 labels that are NaN or infinite; the first is nan in row 1"),
        (["a", "b", "c"], "dtype <U1"),
    ],
)
def test_wrong_labels_are_refused_with_a_remedy(y, fault):
    with pytest.raises(InputError, match=fault):
        check_labels(np.ones((3, 4)), y)


def test_one_sample_is_refused():
    with pytest.raises(InputError, match="only 1 sample"):
        check_several(check_labels([[1.0]], [1.0])[0])


def test_a_single_class_is_refused_only_where_classes_are_asked():
    X = np.ones((3, 2))
    assert check_labels(X, [5, 5, 5])[1].tolist() == [5, 5, 5]
    with pytest.raises(InputError, match="All 3 labels are 5"):
        check_labels(X, [5, 5, 5], classes=True)
    check_labels(X, [5, 5, 6], classes=True)


def brute_force_pairs(X):
    """Every pair (i, j), i < j, whose unit vectors agree: the definition, with O(n²) comparisons."""
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    return [(i, j) for i in range(len(X)) for j in range(i + 1, len(X)) if np.linalg.norm(units[i] - units[j]) <= SAME]


small_integers = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-2, 2))


@settings(max_examples=200)
@given(small_integers.filter(lambda X: X.any(axis=1).all()))
def test_parallel_rows_are_found_named_and_counted_as_brute_force_does(X):
    pairs = brute_force_pairs(X)
    if not pairs:
        assert np.array_equal(check_not_parallel(X), X)
        return
    with pytest.raises(InputError, match=rf"Rows {pairs[0][0]} and {pairs[0][1]} of X") as refused:
        check_not_parallel(X)
    assert ("is 1 such pair" if len(pairs) == 1 else f"are {len(pairs)} such pairs") in str(refused.value)


@given(st.floats(1e-300, 1e300), st.integers(0, 2**32 - 1))
def test_any_positive_multiple_is_parallel_and_any_negative_one_is_not(factor, seed):
    x = np.random.default_rng(seed).uniform(0.5, 2.0, size=5)
    check_not_parallel([x, -factor * x])
    with pytest.raises(InputError, match="Rows 0 and 1"):
        check_not_parallel([x, factor * x])


def test_directions_that_differ_by_more_than_rounding_pass():
    check_not_parallel([[1.0, 0.0], [1.0, 1e-11]])
    with pytest.raises(InputError, match="ridge"):
        check_not_parallel([[1.0, 0.0], [1.0, 1e-13]])


def test_ten_thousand_rows_of_784_with_one_far_duplicate():
    X = np.random.default_rng(0).standard_normal((10_000, 784))
    X[9_000] = 3 * X[17]
    with pytest.raises(InputError, match=r"Rows 17 and 9000 .*row 9000 is 3 times.*is 1 such pair"):
        check_not_parallel(X)


def test_zero_rows_have_no_direction():
    with pytest.raises(InputError, match="1 zero row,"):
        check_not_parallel([[0.0, 0.0], [1.0, 0.0]])


def test_parallel_rows_are_named_by_the_numbers_given():
    with pytest.raises(InputError, match="Rows 10 and 40 of X"):
        check_directions(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), np.array([10, 20, 40]))
