from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from offtangent._errors import InputError
from offtangent.lab import Results


@dataclass(frozen=True)
class Width:
    width: int
    seed: int


@dataclass(frozen=True)
class Other:
    width: int


@pytest.fixture
def results():
    pairs = [(Width(w, s), xr.Dataset({"loss": ("t", np.arange(2.0) + 10 * w + s)})) for w in (3, 1) for s in (0, 1)]
    return Results("smoke", (*pairs, (Other(7), xr.Dataset())))


def test_where_keeps_a_class_and_its_fields(results):
    assert [cell for cell, _ in results.where(Width, width=1)] == [Width(1, 0), Width(1, 1)]
    assert [cell for cell, _ in results.where(Other)] == [Other(7)]
    assert len(results.where(Width, width=99)) == 0


def test_a_table_of_no_results_is_refused(results):
    with pytest.raises(InputError, match="no results to make a table of 'loss'"):
        results.where(Width, width=99).table("loss")


def test_values_come_once_in_order_of_appearance(results):
    assert results.values("width") == [3, 1, 7]


def test_combine_puts_every_number_at_its_fields(results):
    combined = results.where(Width).combine("width", "seed")
    assert combined.loss.sizes == {"width": 2, "seed": 2, "t": 2}
    for w in (1, 3):
        for s in (0, 1):
            np.testing.assert_array_equal(combined.loss.sel(width=w, seed=s), np.arange(2.0) + 10 * w + s)


def test_a_missing_cell_leaves_nan_and_no_other_gap(results):
    some = Results("smoke", results.pairs[:3], complete=False)
    combined = some.combine("width", "seed")
    assert np.isnan(combined.loss.sel(width=1, seed=1)).all()
    assert int(np.isnan(combined.loss).sum()) == 2


def test_nothing_cannot_be_combined():
    with pytest.raises(InputError, match="no results"):
        Results("smoke", ()).combine("width")


def test_incomplete_results_stay_so_when_chosen_from(results):
    assert not Results("smoke", results.pairs, complete=False).where(Width).complete


def test_groups_share_their_fields_in_order_of_appearance(results):
    found = [(values, [cell.seed for cell, _ in group]) for values, group in results.where(Width).groups("width")]
    assert found == [((3,), [0, 1]), ((1,), [0, 1])]
    assert [values for values, _ in results.where(Width).groups("seed", "width")] == [(0, 3), (1, 3), (0, 1), (1, 1)]


def test_a_group_of_incomplete_results_is_incomplete(results):
    some = Results("smoke", results.pairs, complete=False)
    assert not any(group.complete for _, group in some.where(Width).groups("width"))


def test_first_is_the_first_cell_and_nothing_has_none(results):
    assert results.first == Width(3, 0)
    with pytest.raises(InputError, match="no results"):
        _ = Results("smoke", ()).first


def test_a_field_and_a_table_have_an_entry_for_every_cell(results):
    widths = results.where(Width)
    np.testing.assert_array_equal(widths.field("width"), [3.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(widths.table("loss"), [[30, 31, 10, 11], [31, 32, 11, 12]])


def test_a_table_is_looked_at_where_it_is_asked_to_be():
    data = xr.Dataset({"size": (("seed", "term"), [[1.0, 2.0], [3.0, 4.0]])}, coords={"term": [1, 2]})
    results = Results("smoke", ((Other(1), data), (Other(2), 10 * data)))
    np.testing.assert_array_equal(results.table("size", term=2), [[2, 20], [4, 40]])
