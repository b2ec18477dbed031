"""Nichani, Bai & Lee, Figure 2, in its smoke profile; and that wrong numbers would be found out."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.lab.claims import Verdict
from offtangent.networks import MLP
from offtangent.papers.nichani import fig2

TINY = fig2.Search(3, "normalised", ((2, 5),), seeds=2, width=6, steps=12, rate=0.05, tests=40)


@pytest.fixture(scope="module")
def smoke():
    cells = fig2.cells(fig2.PROFILES["smoke"])
    return Results("smoke", tuple((cell, fig2.run(cell)) for cell in cells))


def test_no_claim_fails_and_curves_fall_through_the_level(smoke):
    verdicts = [claim.verdict for claim in fig2.claims(smoke)]
    assert set(verdicts) <= {Verdict.HOLDS, Verdict.UNTESTABLE}
    assert len(verdicts) == 3
    for _, data in smoke:
        losses = data["test"].values
        assert (losses[:, 0] > fig2.LEVEL).all()
        assert (losses[:, -1] < fig2.LEVEL).all()


def test_there_are_figures_and_too_few_dimensions_say_nothing(smoke):
    assert len(fig2.draw(smoke)) == 2
    less = Results("smoke", smoke.pairs[1:], complete=False)
    assert fig2.claims(less) == fig2.draw(less) == []
    assert all(fig2.cost(cell).flops > 0 and fig2.cost(cell).bytes > 0 for cell, _ in smoke)


@pytest.mark.parametrize("target", fig2.TARGETS)
def test_training_is_gradient_descent_on_the_first_rows_and_the_loss_that_of_the_target(target):
    """Written out in NumPy: each network by itself, from its own start, on its own n = 2d² samples."""
    cell = replace(TINY, target=target, groups=((2,),))
    problems = [fig2._problem(cell, seed) for seed in range(2)]
    trained, tested = fig2._fit(cell, (2,), problems)
    for seed, one in enumerate(problems):
        (W, b), (a, c) = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), MLP(3, 6).init(key=one.key))
        a, n = a[:, 0], len(one.y)
        assert n == 18
        for _ in range(cell.steps):
            hidden = one.X @ W + b
            active = np.maximum(hidden, 0)
            error = 2 * (active @ a + c - one.y) / n
            back = np.outer(error, a) * (hidden > 0)
            W, b, a, c = (
                W - 0.05 * one.X.T @ back,
                b - 0.05 * back.sum(0),
                a - 0.05 * active.T @ error,
                c - 0.05 * error.sum(),
            )
        for X, y, found in ((one.X, one.y, trained), (one.X_test, one.y_test, tested)):
            loss = np.mean((np.maximum(X @ W + b, 0) @ a + c - y) ** 2)
            assert found[seed, 0] == pytest.approx(loss, rel=1e-4)


def test_a_network_trained_with_a_larger_n_beside_it_is_the_one_trained_alone():
    problems = [fig2._problem(TINY, seed) for seed in range(2)]
    short = [replace(one, X=one.X[:18], y=one.y[:18]) for one in problems]
    for both, alone in zip(fig2._fit(TINY, (2, 5), problems), fig2._fit(TINY, (2,), short), strict=True):
        np.testing.assert_allclose(both[:, :1], alone, rtol=1e-4)
        assert (np.abs(both[:, 1] / both[:, 0] - 1) > 1e-3).all()


def test_the_target_has_the_variance_it_is_named_after():
    large = replace(TINY, dim=50, tests=20_000)
    for target, quadratic in (("normalised", 1.0), ("code", 48 / 675)):
        problem = fig2._problem(replace(large, target=target), 0)
        assert problem.size == pytest.approx(quadratic)
        assert problem.y_test.var() == pytest.approx(quadratic + 1, abs=0.2)


def test_the_search_stops_once_every_seed_is_below_the_level(monkeypatch):
    cell = replace(TINY, groups=((1, 2), (3,), (4,)))
    tested = {(1, 2): [[0.3, 0.05], [0.3, 0.2]], (3,): [[0.5], [0.02]], (4,): [[0.0], [0.0]]}
    seen = []

    def fit(_, group, __):
        seen.append(group)
        return np.zeros((2, len(group))), np.array(tested[group])

    monkeypatch.setattr(fig2, "_fit", fit)
    found = fig2.run(cell)
    assert seen == [(1, 2), (3,)]
    np.testing.assert_array_equal(found.test, [[0.3, 0.05, 0.5, np.nan], [0.3, 0.2, 0.02, np.nan]])


def test_groups_grow_keep_every_size_and_stay_within_their_rows():
    config = fig2.PROFILES["paper"]
    for cell in fig2.cells(config):
        allowed = [i for i in config.multiples if i * cell.dim**2 <= config.most]
        assert list(cell.multiples) == allowed
        for group in cell.groups:
            assert len(group) == 1 or len(group) * group[-1] * cell.dim**2 <= config.together


def invented(power, *, tilt=0.0):
    """Curves that cross the level at n = 15d²·(d/10)^(power − 2), with a power `tilt` less or more for two seeds."""
    multiples = tuple(range(1, 400, 3))
    pairs = []
    for dim in (10, 20, 40, 100):
        cell = replace(TINY, dim=dim, target="code", groups=(multiples,), seeds=3)
        crossing = 15 * (dim / 10) ** (power - 2 + tilt * np.array([-1.0, 0.0, 1.0]))
        test = fig2.LEVEL * (crossing[:, None] / np.array(multiples)) ** 0.5
        data = {"test": (("seed", "multiple"), test), "train": (("seed", "multiple"), test / 2), "size": 0.01}
        pairs.append((cell, xr.Dataset(data)))
    return Results("paper", tuple(pairs))


WORDS = {"H": Verdict.HOLDS, "F": Verdict.FAILS}


@pytest.mark.parametrize(("power", "verdicts"), [(1.5, "HFH"), (2.0, "HHH"), (2.5, "HFF"), (3.2, "FFF")])
def test_each_power_of_d_gets_its_verdicts(power, verdicts):
    """Slower than d³, roughly d², which has two sides, and no faster than d²."""
    claims = fig2.claims(invented(power, tilt=0.02))
    assert claims[0].value == pytest.approx(power, abs=0.02)
    assert [claim.verdict for claim in claims] == [WORDS[one] for one in verdicts]


def test_what_was_found_instead_of_the_square_is_said():
    roughly = fig2.claims(invented(1.5, tilt=0.02))[1]
    assert f"n grows more slowly, like d^{roughly.value:.2f}, [1.4" in roughly.note


def test_a_slope_that_could_be_either_is_not_judged():
    assert {claim.verdict for claim in fig2.claims(invented(2.5, tilt=0.4))} == {Verdict.UNTESTABLE}
    low = fig2.claims(invented(1.5, tilt=0.5))
    assert [claim.verdict for claim in low] == [Verdict.HOLDS, Verdict.UNTESTABLE, Verdict.HOLDS]


def test_a_level_that_is_crossed_at_two_dimensions_alone_is_not_judged():
    results = invented(2.0)
    high = Results("paper", tuple((cell, data + 1 if cell.dim >= 40 else data) for cell, data in results))
    low = Results("laptop", tuple((cell, data / 10 if cell.dim >= 40 else data) for cell, data in results))
    for found, text in ((high, "d = 100: a test loss of 1."), (low, "d = 100: below it from n = 1d² on")):
        claims = fig2.claims(found)
        assert {claim.verdict for claim in claims} == {Verdict.UNTESTABLE}
        assert all(text in claim.note for claim in claims)
        assert text in fig2.draw(found)[0].caption


def test_one_dimension_where_the_level_is_not_crossed_leaves_the_claim_open_and_the_slope_of_the_others_told():
    results = Results("paper", tuple((cell, data + (cell.dim == 100)) for cell, data in invented(2.0, tilt=0.02)))
    for claim in fig2.claims(results):
        assert claim.verdict == Verdict.UNTESTABLE
        assert "d = 100: a test loss of 1." in claim.note
        assert "Over d = 10, 20, 40 alone the slope is 2.00" in claim.note
