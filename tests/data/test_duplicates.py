import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.data.duplicates import merge_duplicates

X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0], [3.0, 4.0], [1.0, 2.0]])


def test_equal_rows_become_one_in_the_order_of_their_first_occurrence():
    merged = merge_duplicates(X, [0, 1, 0, 2, 1, 0])
    assert merged.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert merged.y.tolist() == [0, 1, 2]
    assert merged.first.tolist() == [0, 1, 3]
    assert merged.of_row.tolist() == [0, 1, 0, 2, 1, 0]
    assert merged.groups == ((0, 2, 5), (1, 4))
    assert merged.disagreeing == ()
    assert merged.dropped == 3


def test_labels_that_disagree_are_reported_and_the_majority_wins():
    merged = merge_duplicates(X, [7, 1, 8, 2, 1, 8])
    assert merged.disagreeing == ((0, 2, 5),)
    assert merged.y[0] == 8


def test_a_tie_goes_to_the_label_that_occurs_first():
    assert merge_duplicates(X[:3], [4, 0, 3]).y[0] == 4


def test_numbers_are_averaged():
    assert merge_duplicates(X, [1.0, 0, 2.0, 0, 0, 6.0], average=True).y[0] == 3


def test_zero_and_minus_zero_are_equal():
    assert merge_duplicates([[0.0, 1.0], [-0.0, 1.0]], [0, 1]).groups == ((0, 1),)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=30))
def test_every_row_leads_to_an_equal_row(rows):
    given_rows = np.array(rows, dtype=float)[:, None]
    merged = merge_duplicates(given_rows, np.zeros(len(rows)))
    assert np.array_equal(merged.X[merged.of_row], given_rows)
    assert len(np.unique(merged.X)) == len(merged.X)
    assert merged.dropped == len(rows) - len(set(rows))


def test_rows_and_labels_must_match():
    with pytest.raises(InputError, match="3 labels and X has 6 rows"):
        merge_duplicates(X, [1, 2, 3])
