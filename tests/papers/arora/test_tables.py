"""Grids of cells as one data set: against xarray's own way of combining them."""

from dataclasses import make_dataclass

import numpy as np
import xarray as xr

from offtangent.lab import Results
from offtangent.papers.arora._tables import OverWidths, stacked

Cell = make_dataclass("Cell", ["width", "scale"], frozen=True)


def grid(widths, scales):
    rng = np.random.default_rng(0)
    return tuple(
        (
            Cell(width, scale),
            xr.Dataset({"error": (("seed", "kind"), rng.standard_normal((3, 2))), "bound": rng.random()}).assign_coords(
                kind=["a", "b"]
            ),
        )
        for width in widths
        for scale in scales
    )


def test_it_is_what_xarray_combines_in_any_order_of_the_cells():
    results = Results("smoke", grid((100, 30, 1000), (1.0, 0.1)))
    xr.testing.assert_identical(
        stacked(results, "width", "scale").transpose("seed", "kind", "width", "scale"),
        results.combine("width", "scale").transpose("seed", "kind", "width", "scale"),
    )


def test_a_width_of_which_a_cell_is_missing_is_left_out_and_one_width_is_no_table():
    pairs = grid((30, 100, 1000), (0.1, 1.0))
    assert stacked(Results("smoke", pairs[1:]), "width", "scale").width.values.tolist() == [100, 1000]
    assert stacked(Results("smoke", pairs[3:]), "width", "scale") is None
    assert stacked(Results("smoke", ()), "width", "scale") is None


def test_a_variable_over_widths_has_a_row_a_seed_and_is_that_of_its_cells():
    Sized = make_dataclass("Sized", ["width", "scale", "samples", "dim", "seeds"], frozen=True)
    rng = np.random.default_rng(1)
    pairs = tuple(
        (Sized(width, scale, 4, 3, 2), xr.Dataset({"far": ("seed", rng.standard_normal(2)), "smallest": 0.25}))
        for width in (10, 100)
        for scale in (0.1, 1.0)
    )
    found = OverWidths.of(Results("smoke", pairs))
    np.testing.assert_array_equal(found.at(1.0, "far"), np.stack([pairs[1][1].far, pairs[3][1].far], axis=1))
    assert (found.widths.tolist(), found.smallest) == ([10.0, 100.0], 0.25)
    assert found.where == "n = 4, d = 3, 2 seeds, 2 widths from 10 to 100"
    assert OverWidths.of(Results("smoke", pairs[:2])) is None
