"""What experiments draw again and again."""

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.report import finished, line, new_plot, power, series
from offtangent.report.axes import style
from offtangent.report.measured import grid

X = np.array([64.0, 256.0, 1024.0])
TABLE = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 8.0], [2.0, 9.0, 1.0]])


def test_a_series_is_the_mean_over_seeds_with_bars_from_the_smallest_to_the_largest():
    (drawn,) = series(new_plot(), X, TABLE, name="measured", colour="blue", symbol="square").data
    np.testing.assert_array_equal(drawn.y, [2, 5, 4])
    np.testing.assert_array_equal(drawn.y + drawn.error_y.array, [3, 9, 8])
    np.testing.assert_array_equal(drawn.y - drawn.error_y.arrayminus, [1, 2, 1])
    assert drawn.marker.symbol == "square"


def test_a_vector_is_no_table():
    with pytest.raises(InputError, match=r"shape \(3,\): expected one row a seed"):
        series(new_plot(), X, X, name="measured", colour="blue")


def test_a_power_is_a_straight_line_on_log_axes_through_the_first_point():
    (drawn,) = power(new_plot(), X, -0.25, through=8.0, name="m^(−1/4)").data
    assert drawn.y[0] == 8
    np.testing.assert_allclose(np.diff(np.log(drawn.y)) / np.diff(np.log(X)), -0.25)
    assert drawn.line.dash == "dot"


@pytest.mark.parametrize("x", [[], 1.0, [[1.0, 2.0]]])
def test_a_power_of_what_is_no_vector_of_sizes_is_refused(x):
    with pytest.raises(InputError, match="expected a vector of at least one size"):
        power(new_plot(), x, -0.25, through=8.0, name="m^(−1/4)")


@pytest.mark.parametrize(
    ("log", "x", "y"), [("xy", "log", "log"), ("x", "log", None), ("y", None, "log"), ("", None, None)]
)
def test_a_finished_plot_has_its_words_and_axes(log, x, y):
    plot = series(new_plot(), X, TABLE, name="measured", colour="blue")
    figure = finished(plot, "Title", "Caption.", x="width m", y="error", log=log)
    assert (figure.title, figure.caption) == ("Title", "Caption.")
    assert figure.plot.layout.xaxis.title.text == "width m"
    assert (figure.plot.layout.xaxis.type, figure.plot.layout.yaxis.type) == (x, y)


def test_a_wrong_axis_is_told():
    with pytest.raises(InputError, match='expected "xy"'):
        finished(new_plot(), "", "", x="", y="", log="z")


def panels(count):
    for at in range(count):
        plot = series(new_plot(), X, TABLE + at, name="measured", colour="blue")
        line(plot, X, X, name=f"bound {at}", colour="grey", band=(X - 1, X + 1))
        yield f"panel {at}", style(plot, x=f"x {at}", y="y", log_x=True)


def test_a_grid_has_every_trace_on_its_own_axes_and_each_name_in_the_legend_once():
    whole = grid(list(panels(3)))
    assert len(whole.data) == 9
    assert [trace.xaxis or "x" for trace in whole.data] == ["x"] * 3 + ["x2"] * 3 + ["x3"] * 3
    np.testing.assert_array_equal(whole.data[3].y, [3, 6, 5])
    shown = [trace.name for trace in whole.data if trace.showlegend]
    assert shown == ["measured", "bound 0", "bound 1", "bound 2"]
    assert [note.text for note in whole.layout.annotations] == ["panel 0", "panel 1", "panel 2"]
    assert [axis.title.text for axis in whole.select_xaxes()] == ["x 0", "x 1", "x 2"] + [None] * (
        len(list(whole.select_xaxes())) - 3
    )
    assert {axis.type for axis in list(whole.select_xaxes())[:3]} == {"log"}


def test_the_panels_of_a_grid_stand_beside_and_below_each_other():
    axes = list(grid(list(panels(3))).select_xaxes())
    assert axes[0].domain[1] < axes[1].domain[0]
    assert axes[0].domain == axes[2].domain
    one_row = grid(list(panels(3)), columns=3)
    assert len({axis.domain[0] for axis in one_row.select_xaxes()}) == 3
    assert grid(list(panels(3))).layout.height == 2 * one_row.layout.height


def test_no_panels_are_refused():
    with pytest.raises(InputError, match="0 panels"):
        grid([])
    with pytest.raises(InputError, match="in 0 columns"):
        grid(list(panels(1)), columns=0)
