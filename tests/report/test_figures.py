"""Figures in the house style."""

import subprocess
import sys

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.report import line, new_plot, points
from offtangent.report.axes import style
from offtangent.report.figures import PALETTE, tiles

X = np.array([1.0, 10.0, 100.0])


def test_a_line_s_band_runs_there_and_back():
    plot = line(new_plot(), X, X, name="a", colour="blue", band=(X - 1, X + 1))
    band, drawn = plot.data
    np.testing.assert_array_equal(band.y, [2, 11, 101, 99, 9, 0])
    assert band.legendgroup == drawn.legendgroup
    assert not band.showlegend


def test_a_band_leaves_out_what_is_not_finite():
    plot = line(new_plot(), X, X, name="a", colour="blue", band=(np.array([0, np.nan, 99]), X + 1))
    np.testing.assert_array_equal(plot.data[0].x, [1, 100, 100, 1])


def test_tiles_have_a_row_for_each_y_and_go_from_clear_to_the_colour():
    plot = tiles(new_plot(), X, X[:2], np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 0.0]]), name="share", colour="blue")
    (drawn,) = plot.data
    assert np.asarray(drawn.z).shape == (2, 3)
    assert [shade for _, shade in drawn.colorscale] == ["rgba(0, 114, 178, 0.05)", "rgba(0, 114, 178, 0.9)"]
    with pytest.raises(InputError, match=r"z has shape \(3, 2\): expected \(2, 3\)"):
        tiles(new_plot(), X, X[:2], np.zeros((3, 2)), name="share", colour="blue")


def test_error_bars_end_at_the_band():
    plot = points(new_plot(), X, X, name="a", colour="green", band=(X - 1, X + 2))
    np.testing.assert_array_equal(plot.data[0].error_y.arrayminus, [1, 1, 1])
    np.testing.assert_array_equal(plot.data[0].error_y.array, [2, 2, 2])


def test_a_band_below_zero_ends_at_the_smallest_value_of_a_log_axis():
    plot = line(new_plot(), X, X, name="a", colour="blue", band=(X - 5, X + 5))
    style(plot, x="x", y="y", log_y=True)
    assert min(plot.data[0].y) == 1


def test_style_names_axes_and_scales():
    plot = style(line(new_plot(), X, X, name="a", colour="blue"), x="width m", y="loss", log_x=True)
    assert (plot.layout.xaxis.title.text, plot.layout.yaxis.title.text) == ("width m", "loss")
    assert (plot.layout.xaxis.type, plot.layout.yaxis.type) == ("log", None)


def test_style_accepts_a_plot_without_numbers():
    plot = new_plot().add_bar(x=["holds", "fails"], y=[3, 1])
    assert style(plot, x="verdict", y="claims", log_x=True, log_y=True).layout.yaxis.type == "log"


def test_a_colour_outside_the_palette_is_refused_with_the_palette():
    with pytest.raises(InputError, match=", ".join(PALETTE)):
        line(new_plot(), X, X, name="a", colour="yellow")


def test_x_and_y_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"\(3,\) and \(2,\)"):
        points(new_plot(), X, X[:2], name="a", colour="blue")


def test_a_band_the_wrong_way_round_is_refused():
    with pytest.raises(InputError, match="low above high"):
        line(new_plot(), X, X, name="a", colour="blue", band=(X + 1, X - 1))


def test_without_plotly_the_room_opens_and_a_plot_says_what_is_missing():
    program = """
import sys
sys.modules["plotly"] = None
import offtangent.report as report
page = report.page.Page("t", "", [])
assert "<h1>t</h1>" in report.page.render(page)
try:
    report.new_plot()
except ImportError as error:
    assert "pip install" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(("longest", "named"), [(100.0, True), (1000.0, False)])
def test_a_short_log_axis_names_twos_and_fives(longest, named):
    plot = line(new_plot(), np.array([1.0, longest]), np.array([1.0, 2.0]), name="a", colour="blue")
    ticks = style(plot, x="n", y="loss", log_x=True).layout.xaxis.tickvals
    assert (ticks is not None) == named
    assert not named or {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0} <= set(ticks)


@pytest.mark.parametrize(("low", "high"), [(512.0, 4096.0), (0.11, 0.99), (2.1, 11.0), (2e-6, 1.2e-5)])
def test_a_log_axis_of_less_than_a_decade_names_at_least_three_ticks_in_full(low, high):
    plot = line(new_plot(), np.array([low, high]), np.array([1.0, 2.0]), name="a", colour="blue")
    axis = style(plot, x="n", y="loss", log_x=True).layout.xaxis
    assert sum(low <= tick <= high for tick in axis.tickvals) >= 3
    assert len(axis.ticktext) == len(axis.tickvals)


def test_ticks_of_small_numbers_are_named_by_powers_of_ten():
    plot = line(new_plot(), np.array([2e-6, 5e-5]), np.array([1.0, 2.0]), name="a", colour="blue")
    axis = style(plot, x="n", y="loss", log_x=True).layout.xaxis
    named = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert (named[1e-5], named[2e-5]) == ("10<sup>−5</sup>", "2×10<sup>−5</sup>")


def test_error_bars_count_for_the_ticks_of_a_log_axis():
    y = np.array([1.0, 1.5, 2.0])
    plot = points(new_plot(), X, y, name="a", colour="blue", band=(y / 10, 10 * y))
    assert {0.1, 0.5, 1.0, 20.0} <= set(style(plot, x="n", y="loss", log_y=True).layout.yaxis.tickvals)
