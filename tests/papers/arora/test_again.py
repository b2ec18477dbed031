"""Arora et al., the rules that are younger than a record: judged on new seeds, and on the old ones never."""

import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.lab.claims import HELD
from offtangent.papers.arora import again, fig1, fig2, lemmas
from offtangent.papers.arora._conditions import NEW, SEEN
from offtangent.papers.arora._descent import Networks
from offtangent.papers.arora._stacked import networks


@pytest.fixture(scope="module")
def smoke():
    cells = again.cells(again.PROFILES["smoke"])
    return Results("smoke", tuple((cell, again.run(cell)) for cell in cells))


def with_fields(results, kind, **fields):
    """The same numbers as if cells of one class had other fields."""
    pairs = [
        (type(cell)(**(vars(cell) | fields)) if isinstance(cell, kind) else cell, found) for cell, found in results
    ]
    return Results(results.profile, tuple(pairs))


def test_there_is_one_claim_for_each_rule_and_none_fails(smoke):
    found = again.claims(smoke)
    assert {claim.source for claim in found if claim.value is not None} == {"Figure 2, digits 0/1", "Lemma 5.3"}
    assert {claim.verdict for claim in found if claim.value is not None} <= set(HELD)
    assert all(again.cost(cell).flops > 0 for cell, _ in smoke)
    assert len(again.draw(smoke)) == 1


@pytest.mark.parametrize(
    ("kind", "old", "source"),
    [(fig2.Regression, {"first": 0}, "Figure 2, digits 0/1"), (lemmas.Inside, {"key": SEEN}, "Lemma 5.3")],
)
def test_seeds_that_had_been_seen_tell_their_numbers_and_decide_nothing(smoke, kind, old, source):
    (new,), (seen,) = (
        [claim for claim in again.claims(results) if claim.source == source]
        for results in (smoke, with_fields(smoke, kind, **old))
    )
    assert (new.value is not None, seen.verdict) == (True, "not run here")
    assert f"[{new.interval[0]:.2g}" in seen.note or f"[{new.interval[0]:.3f}" in seen.note


@pytest.mark.parametrize(
    ("kind", "change", "source"),
    [
        (fig2.Regression, lambda found, _: {"l1": found.l1[::-1]}, "Figure 2, digits 0/1"),
        (lemmas.Inside, lambda found, at: {"distance": found.distance * (1 + 10.0**at)}, "Lemma 5.3"),
    ],
)
def test_a_trend_that_turned_round_or_a_movement_that_went_astray_would_be_found_out(smoke, kind, change, source):
    pairs = [
        (cell, found.assign(**{name: (values.dims, values.values) for name, values in change(found, at).items()}))
        if isinstance(cell, kind)
        else (cell, found)
        for at, (cell, found) in enumerate(smoke)
    ]
    (claim,) = [one for one in again.claims(Results("smoke", tuple(pairs))) if one.source == source]
    assert claim.verdict == "fails"


def test_networks_of_seeds_that_had_been_seen_are_not_judged():
    """Eleven networks in perfect order, by seed."""
    told = {}
    for seed in (0, NEW):
        cells = [fig2.Network("mnist", 50, 50, 10, portion / 10, seed, cap=1) for portion in range(11)]
        found = [
            xr.Dataset(dict.fromkeys(("measure", "l1", "wrong", "loss", "limit_l1", "smallest"), 0.001 + cell.portion))
            for cell in cells
        ]
        found = [one.assign(measure=1 + one.measure, excess=0.0, l1_error=0.01) for one in found]
        (told[seed],) = again.claims(Results("paper", tuple(zip(cells, found, strict=True))))[:1]
    assert (told[0].verdict, told[NEW].verdict) == ("not run here", "holds")
    assert "Rank correlation with the ℓ1 loss 1.000" in told[0].note


def test_new_keys_draw_other_networks_and_the_old_one_those_of_the_records():
    old, new = (Networks.draw(2, 3, 5, 1.0, key=key).W0 for key in (SEEN, NEW))
    np.testing.assert_array_equal(old, Networks.draw(2, 3, 5, 1.0).W0)
    assert np.abs(old - new).min() > 0
    stacked = [networks(2, 3, 5, 1.0, key=key).W0 for key in (SEEN, NEW)]
    assert float(abs(stacked[0] - stacked[1]).min()) > 0


@pytest.mark.parametrize("name", ["smoke", "laptop", "paper"])
def test_every_profile_has_new_seeds_alone_for_what_was_seen(name):
    for cell in [*again.cells(again.PROFILES[name]), *fig2.cells(fig2.PROFILES[name])]:
        assert (getattr(cell, "first", NEW), getattr(cell, "seed", NEW), getattr(cell, "key", NEW)) >= (NEW, NEW, NEW)
    assert {cell.key for cell in fig1.cells(fig1.PROFILES[name]) if isinstance(cell, fig1.Widths)} == {NEW}
    swept = [cell for cell in lemmas.cells(lemmas.PROFILES[name]) if isinstance(cell, lemmas.Inside)]
    assert {cell.key for cell in swept if cell not in lemmas.PROFILES[name].certain} == {NEW}
