"""Intervals against scipy.stats and against their own promise: how often they cover the truth."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, ratio_interval, slope_interval


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(0.5, 0.999))
def test_the_mean_has_students_interval(samples, level):
    x = np.array(samples)
    got = mean_interval(x, level=level)
    sem = x.std(ddof=1) / np.sqrt(len(x))
    expected = x.mean() + scipy.stats.t(len(x) - 1).ppf([(1 - level) / 2, (1 + level) / 2]) * sem
    np.testing.assert_allclose([got.low, got.high], expected, rtol=1e-9, atol=1e-6)
    assert got.value == pytest.approx(x.mean())


def test_one_seed_has_no_interval():
    with pytest.raises(InputError, match="at least two"):
        mean_interval(np.array([1.0]))


def test_a_ratio_of_as_many_seeds_has_students_interval_of_its_logarithms():
    rng = np.random.default_rng(0)
    above, below = rng.lognormal(size=7), rng.lognormal(size=7)
    expected = mean_interval(np.log(above / below))
    got = ratio_interval(above, below)
    np.testing.assert_allclose(np.log([got.value, got.low, got.high]), [expected.value, expected.low, expected.high])


@pytest.mark.parametrize(("many", "few"), [(10, 3), (2, 5), (4, 20)])
def test_a_ratio_of_more_seeds_to_fewer_has_welchs_interval(many, few):
    rng = np.random.default_rng(many)
    above, below = rng.lognormal(0.0, 0.3, many), rng.lognormal(1.0, 0.05, few)
    expected = scipy.stats.ttest_ind(np.log(above), np.log(below), equal_var=False).confidence_interval(0.9)
    got = ratio_interval(above, below, level=0.9)
    np.testing.assert_allclose(np.log([got.low, got.high]), [expected.low, expected.high], rtol=1e-9)
    assert np.log(got.value) == pytest.approx(np.log(above).mean() - np.log(below).mean())


def test_a_ratio_to_one_seed_has_no_interval():
    with pytest.raises(InputError, match="at least two"):
        ratio_interval(np.array([1.0, 2.0]), np.array([1.0]))


def test_seeds_that_agree_have_an_interval_of_no_width():
    got = ratio_interval(np.array([2.0, 2.0, 2.0]), np.array([1.0, 1.0]))
    assert (got.low, got.value, got.high) == pytest.approx((2.0, 2.0, 2.0))


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_a_fraction_has_clopper_and_pearsons_interval(counts, level):
    got = fraction_interval(*counts, level=level)
    expected = scipy.stats.binomtest(*counts).proportion_ci(level, "exact")
    np.testing.assert_allclose([got.low, got.high], [expected.low, expected.high], atol=1e-12)
    assert got.value == counts[0] / counts[1]


@pytest.mark.parametrize("counts", [(0, 0), (3, 2), (-1, 2)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InputError):
        fraction_interval(*counts)


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_a_power_law_has_its_exponent_and_no_width(slope, factor):
    sizes = np.array([1.0, 10.0, 100.0])
    got = slope_interval(sizes, np.stack([factor * sizes**slope, sizes**slope]))
    assert got.value == pytest.approx(slope, abs=1e-9)
    assert got.high - got.low < 1e-9


def test_the_interval_of_a_noisy_slope_covers_the_truth_as_often_as_it_says():
    """Of 400 intervals at 80 %, 320 ± 4·8 should cover."""
    rng = np.random.default_rng(0)
    sizes = np.array([10.0, 30.0, 100.0, 300.0, 1000.0])
    draws = np.exp(0.3 * rng.standard_normal((400, 10, 5))) * sizes**-0.5
    covered = sum(i.low <= -0.5 <= i.high for i in (slope_interval(sizes, draw, level=0.8) for draw in draws))
    assert abs(covered - 320) < 4 * np.sqrt(400 * 0.8 * 0.2)


def test_a_widened_interval_has_the_same_value():
    assert Interval(1.0, 0.5, 2.0).widened(0.25) == Interval(1.0, 0.25, 2.25)
