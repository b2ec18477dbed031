"""What is judged on a sweep, on tables whose powers, means and shares are planted."""

from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results, over_seeds
from offtangent.lab.hypotheses import Hypothesis

WORDS = {"source": "Lemma 1", "statement": "as the paper says"}
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Width:
    width: int
    seeds: int = 10


@pytest.fixture
def sweep():
    """Errors that fall like m^(-1/2), with a noise of a few per cent in each seed."""
    pairs = []
    for width in (64, 256, 1024, 4096):
        noise = 1 + 0.02 * RNG.standard_normal(10)
        pairs.append((Width(width), xr.Dataset({"error": ("seed", width**-0.5 * noise), "one": ("seed", noise)})))
    return Results("smoke", tuple(pairs)).sweep("width", "d = 6, 10 seeds")


def test_a_sweep_says_where_and_has_its_tables(sweep):
    assert sweep.where == "d = 6, 10 seeds, 4 widths from 64 to 4096"
    assert sweep.sizes.tolist() == [64, 256, 1024, 4096]
    assert sweep.cell == Width(64)
    assert sweep["error"].shape == (10, 4)
    np.testing.assert_array_equal(sweep["error"][:, 1], sweep.results.pairs[1][1]["error"])


def test_too_few_sizes_are_no_sweep(sweep):
    two = Results("smoke", sweep.results.pairs[:2])
    assert two.sweep("width", "") is None
    assert two.sweep("width", "", least=2).where == ", 2 widths from 64 to 256"


@pytest.mark.parametrize(
    ("relation", "exponent", "verdict"),
    [
        ("=", -0.5, "holds"),
        ("=", -0.4, "fails"),
        ("=", -0.6, "fails"),
        ("≤", -0.5, "holds"),
        ("≤", -0.4, "holds"),
        ("≤", -0.6, "fails"),
        ("<", 0.0, "holds"),
        ("<", -0.6, "fails"),
    ],
)
def test_a_slope_is_compared_with_the_exponent_by_its_whole_interval(sweep, relation, exponent, verdict):
    claim = sweep.slope("error", relation, exponent, **WORDS)
    assert claim.verdict == verdict
    truth = np.polyfit(np.log(sweep.sizes), np.log(sweep["error"]).mean(axis=0), 1)[0]
    assert claim.value == pytest.approx(truth)
    assert claim.measured == f"log-log slope in m, 99 % interval, {sweep.where}"


def test_the_inequality_is_strict_at_the_interval_s_upper_end(sweep):
    exact = np.outer(np.ones(10), sweep.sizes)
    assert sweep.slope(exact, "<", 1.0, pad=1e-9, **WORDS).verdict == "fails"
    assert sweep.slope(exact, "<", 1.1, **WORDS).verdict == "holds"


def test_a_mean_is_compared_with_what_is_expected(sweep):
    assert sweep.equals("one", 1.0, of="the noise", **WORDS).verdict == "holds"
    claim = sweep.equals("one", 1.1, of="the noise", **WORDS)
    assert claim.verdict == "fails"
    assert claim.measured == f"the noise, 99 % interval, {sweep.where}"
    assert claim.value == pytest.approx(sweep["one"].mean())


def test_rounding_is_forgiven_where_it_is_said_how_much(sweep):
    exact = np.full((10, 4), 1 + 1e-12)
    assert sweep.equals(exact, 1.0, **WORDS).verdict == "fails"
    assert sweep.equals(exact, 1.0, pad=1e-9, **WORDS).verdict == "holds"


def test_the_worst_number_is_judged_and_divided_by_each_cell_s_bound(sweep):
    table = np.zeros((10, 4))
    table[3, 2] = 2.5
    assert sweep.worst(table, **WORDS).verdict == "fails"
    assert sweep.worst(table, 2.5, **WORDS).verdict == "holds"
    claim = sweep.worst(table, bound=lambda cell: cell.width, **WORDS)
    assert claim.value == pytest.approx(2.5 / 1024)


@pytest.mark.parametrize(
    ("count", "level", "verdict"),
    [(0, 0.99, "fails"), (0, 0.95, "holds"), (4, 0.99, "fails"), (4, None, "holds"), (5, None, "fails")],
)
def test_a_share_holds_when_all_of_its_interval_lies_below_the_limit(sweep, count, level, verdict):
    """None of 40 leaves an upper end of 1 − 0.005^(1/40) = 0.124 at 99 %, and of 0.088 at 95 %."""
    beyond = np.arange(40).reshape(10, 4) < count
    claim = sweep.share(beyond, 0.1, of="networks beyond the bound", level=level, **WORDS)
    assert claim.verdict == verdict
    assert claim.value == count / 40


@pytest.mark.parametrize(
    ("relation", "limit", "verdict"),
    [("≤", 2.5, "holds"), ("≤", 1.5, "fails"), ("≥", 1.5, "holds"), ("≥", 2.5, "fails")],
)
def test_a_ratio_is_that_at_the_largest_size(sweep, relation, limit, verdict):
    above = sweep["one"].copy()
    above[:, -1] *= 2
    claim = sweep.ratio(above, "one", relation, limit, of="it over the other", **WORDS)
    assert claim.verdict == verdict
    assert claim.value == pytest.approx(2)
    assert "at the largest width" in claim.measured


def test_the_caller_s_words_come_before_those_put_together(sweep):
    claim = sweep.worst(
        "one", 0.5, measured="mine", hypotheses=(Hypothesis("m", 1, "≥", 2, "Theorem 1"),), note="so", **WORDS
    )
    assert (claim.measured, claim.verdict, claim.note) == ("mine", "outside the hypothesis", "so")


def test_ends_are_means_over_seeds(sweep):
    table = np.outer([1.0, 3.0], [1.0, 1.0, 1.0, 0.25])
    assert sweep.ends(table) == "2 at the smallest width, 0.5 at the largest"


def test_over_seeds_gives_each_its_own_key_and_joins_what_they_give():
    import jax

    def one(cell, key):
        return {"drawn": float(jax.random.normal(key)), "curve": ("step", np.arange(3.0) * cell.width)}

    found = over_seeds(one, Width(5, seeds=3))
    assert found.sizes == {"seed": 3, "step": 3}
    np.testing.assert_array_equal(found.seed, [0, 1, 2])
    np.testing.assert_array_equal(found.curve, np.tile([0.0, 5.0, 10.0], (3, 1)))
    np.testing.assert_array_equal(found.drawn, [float(jax.random.normal(jax.random.key(s))) for s in range(3)])
