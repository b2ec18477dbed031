"""Ge, Wang & Zhao, the lemmas of Appendix E, in their smoke profile; and that wrong numbers would be found out."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import faults
from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval
from offtangent.papers.ge_wang_zhao import _judging, _kept, lemmas
from offtangent.papers.ge_wang_zhao.lemmas import (
    Ball,
    Decoupled,
    Distances,
    Highest,
    Leading,
    Lengths,
    Lowest,
    Net,
    Outside,
    Perturbed,
    Radial,
    Smallness,
    Span,
    Tensors,
)
from offtangent.theory.ge_wang_zhao.features import perturbed_singular_floor

KINDS = (
    Tensors,
    Net,
    Distances,
    Ball,
    Decoupled,
    Perturbed,
    Outside,
    Lengths,
    Span,
    Smallness,
    Leading,
    Lowest,
    Highest,
    Radial,
)


@pytest.fixture(scope="module")
def drawn():
    """Every draw, before counts and quantiles are made of them."""
    cells = lemmas.cells(lemmas.PROFILES["smoke"])
    return tuple((cell, lemmas.drawn(cell)) for cell in cells)


def kept(pairs):
    return Results("smoke", tuple((cell, _kept.kept(cell, draws)) for cell, draws in pairs))


@pytest.fixture(scope="module")
def smoke(drawn):
    return kept(drawn)


failing = partial(faults.failing, lemmas)


def changed(draws, kind, /, **faults):
    """The sources of the claims that fail when draws of one kind of cell are replaced."""
    pairs = tuple(
        (cell, data.assign({name: fault(cell, data[name]) for name, fault in faults.items() if name in data}))
        if type(cell) is kind
        else (cell, data)
        for cell, data in draws
    )
    return failing(kept(pairs))


def test_no_claim_fails_and_every_lemma_has_one(smoke):
    claims = lemmas.claims(smoke)
    assert {str(claim.verdict) for claim in claims} == {
        "holds",
        "holds with constants 1",
        "not testable at this size",
        "outside the hypothesis",
        "refuted as printed",
    }
    numbers = {int(claim.source.split()[1].strip(",")) for claim in claims if claim.source.startswith("Lemma")}
    assert numbers == {2, *range(6, 21)}
    outside = [claim for claim in claims if claim.verdict == "outside the hypothesis"]
    assert any("k = 750 (as in the paper's MNIST experiment" in claim.statement for claim in outside)
    assert all(claim.met for claim in outside)
    assert [claim.source for claim in claims if claim.verdict == "refuted as printed"] == [
        "Lemma 16, proof",
        "Lemma 18, as printed",
    ]


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    everything = lemmas.claims(smoke)
    assert len(lemmas.draw(smoke)) == 3
    for kind in KINDS:
        less = Results("smoke", tuple(pair for pair in smoke if type(pair[0]) is not kind), complete=False)
        assert 0 < len(lemmas.claims(less)) < len(everything)
        assert len(lemmas.draw(less)) == (2 if kind in (Perturbed, Ball, Span) else 3)
    assert lemmas.claims(Results("smoke", ())) == []
    assert lemmas.draw(Results("smoke", ())) == []
    assert all(lemmas.cost(cell).flops > 0 and lemmas.cost(cell).bytes > 0 for cell, _ in smoke)


def test_every_profile_stays_inside_lemma_13_with_sizes_enough_for_its_slopes():
    for name, profile in lemmas.PROFILES.items():
        for cell in lemmas.cells(profile):
            if isinstance(cell, Perturbed) and cell.samples == lemmas.BEYOND:
                assert cell.features < 2 * cell.samples**0.5
                assert cell.features * (cell.features + 1) / 2 > cell.samples
            elif isinstance(cell, Perturbed):
                floor = perturbed_singular_floor(
                    cell.samples, cell.dim, cell.features, cell.power, variance=cell.variance, delta=0.1
                )
                assert floor.value > 0
        wide = 3 if name == "smoke" else 5
        assert min(len(profile.variances), len(profile.samples), *map(len, profile.spans.values())) >= wide
        assert profile.seeds >= 10


def test_a_run_keeps_what_the_claims_need_and_not_every_draw(drawn, smoke):
    for (cell, draws), (_, data) in zip(drawn, smoke, strict=True):
        if cell.seeds >= _kept.MANY:
            assert data.nbytes <= 1000 < draws.nbytes
        else:
            assert set(draws.data_vars) <= set(data.data_vars)
    ((cell, draws),) = [pair for pair in drawn if pair[0] == Perturbed(1, 23, 4, 4, 0.5, "zero", 1000)]
    again = lemmas.run(cell)
    floor = perturbed_singular_floor(4, 23, 4, 1, variance=0.5, delta=0.1).value
    assert float(again["worst"]) == pytest.approx(min(draws["smallest"].values) / floor)
    middle = np.quantile(draws["smallest"].values[:100], 0.4)
    assert float(again["quantiles"][0, -1]) == pytest.approx(middle)


def test_draws_below_the_floor_or_not_a_number_are_counted(drawn):
    ((cell, draws),) = [pair for pair in drawn if pair[0] == Span(1, 2, 2, 1000)]
    low = draws["rows"].copy()
    low[:7], low[7:9] = 0.0, np.nan
    found = _kept.kept(cell, draws.assign(rows=low))
    assert int(found["below"]) == 9
    assert np.isnan(found["worst"])


def test_norms_and_variances_that_are_wrong_would_be_found_out(drawn):
    assert changed(drawn, Tensors, rv=lambda _, x: x / 2) == {"Lemma 6"}
    assert changed(drawn, Tensors, rv=lambda _, x: 1.5 * x) == {"Lemma 7, proof"}
    assert changed(drawn, Tensors, floor=lambda _, x: x / 3) == {"Lemma 9"}
    assert changed(drawn, Tensors, drawn=lambda _, x: 1.1 * x) == {"Proposition 5"}
    assert changed(drawn, Tensors, pair_floor=lambda _, x: x / 1000) == {"Lemma 10"}
    assert changed(drawn, Tensors, pair_drawn=lambda _, x: 1.2 * x) == {"Lemma 10, left side"}


def test_nets_that_are_too_large_and_distances_out_of_range_would_be_found_out(drawn):
    assert changed(drawn, Net, log_size=lambda _, x: x + 2) == {"Lemma 7", "Proposition 1"}
    ((cell, draws),) = [pair for pair in drawn if pair[0] == Net(2, 2, 1.0, 300, 3)]
    middle = (draws["log_bound"] + draws["log_euclidean"]) / 2  # beyond the one bound and not the other
    assert failing(kept([(cell, draws.assign(log_size=middle))])) == {"Proposition 1"}
    assert changed(drawn, Distances, ratio=lambda _, x: 1.01 * x) == {"Lemma 8"}
    assert changed(drawn, Distances, ratio=lambda _, x: 0.99 * x) == {"Lemma 8"}


def test_projections_that_are_short_too_often_would_be_found_out(drawn):
    assert changed(drawn, Ball, epsilon=lambda _, x: x**1.2) == {"Lemma 11"}
    assert changed(drawn, Ball, epsilon=lambda cell, x: x**6 if cell.lemma == 12 else x) == {"Lemma 12"}
    assert changed(drawn, Ball, below=lambda _, x: np.floor(1.1 * x)) == {"Lemma 11"}
    assert changed(drawn, Ball, variance=lambda _, x: x / 10_000) == {"Lemma 11, proof"}


def test_subspaces_that_are_too_large_would_be_found_out(drawn):
    assert changed(drawn, Decoupled, dimension=lambda _, x: 1.5 * x) == {"Lemma 13, sharpened"}


def test_singular_values_of_the_wrong_size_or_scaling_would_be_found_out(drawn):
    assert changed(drawn, Perturbed, smallest=lambda cell, x: x * cell.variance**2) == {"Lemma 13, v", "Lemma 2, v"}
    assert changed(drawn, Perturbed, smallest=lambda cell, x: x / cell.samples**6) == {"Lemma 13, n"}
    assert changed(drawn, Perturbed, smallest=lambda cell, x: x**20 if cell.seeds > 100 else x) >= {"Lemma 13, δ"}


def test_dependent_tensors_outside_the_hypothesis_are_shown_as_such(smoke):
    pairs = tuple((cell, data.assign(lower=0 * data["lower"])) for cell, data in smoke.where(Outside))
    claims = lemmas.claims(Results("smoke", pairs))
    assert {(str(claim.verdict), claim.met) for claim in claims} == {("outside the hypothesis", False)}


def test_features_that_are_too_long_would_be_found_out(drawn):
    assert changed(drawn, Lengths, length=lambda _, x: 2000 * x) == {"Lemma 14", "Lemma 20"}
    assert changed(drawn, Lengths, entry=lambda _, x: 1.6 * x) == {"Lemma 14", "Lemma 20"}


def test_rows_that_do_not_span_would_be_found_out(drawn):
    assert changed(drawn, Span, squares=lambda _, x: x / 10_000) == {"Lemma 19, proof"}
    assert changed(drawn, Span, squares=lambda cell, x: x / cell.features**4) >= {"Lemma 19, end"}
    assert "Lemma 18, k" in changed(drawn, Span, rows=lambda cell, x: x / cell.features**3)
    assert "Lemma 18, δ" in changed(drawn, Span, rows=lambda _, x: x**4)


def test_what_is_small_or_large_too_often_would_be_found_out(drawn):
    assert changed(drawn, Smallness, epsilon=lambda cell, x: x * cell.chance) == {"Proposition 2, eq. (3)"}
    assert changed(drawn, Lowest, low=lambda cell, x: x * cell.chance**2) == {"Lemma 15"}
    assert changed(drawn, Highest, high=lambda _, x: 1.5 * x) == {"Lemma 16"}
    assert changed(drawn, Highest, beyond=lambda _, x: 2 * x) == {"Lemma 17"}
    assert changed(drawn, Leading, apart=lambda _, x: x + 1e-6) == {"Proposition 4"}


def test_the_tail_that_the_proof_of_lemma_16_prints_is_refuted_by_its_growth_alone(drawn):
    level = [(cell, data) for cell, data in drawn if type(cell) is Radial]
    flat = [(cell, data.assign(ratio=data["ratio"] / data["ratio"].mean())) for cell, data in level]
    (claim,) = lemmas.claims(kept(flat))
    assert "refuted" not in str(claim.verdict) or claim.interval[0] < 0 < claim.interval[1]


def test_nets_that_no_choice_could_make_too_large_are_not_judged(smoke):
    """A bound above the number of points that a set is chosen among cannot be exceeded."""
    pairs = tuple((replace(cell, points=10), data) for cell, data in smoke.where(Net))
    judged = [claim for claim in lemmas.claims(Results("smoke", pairs)) if claim.source == "Lemma 7"]
    assert [claim.measured.endswith("below 10: d = 2, ε = 1") for claim in judged] == [True]
    assert "p = 1" in judged[0].statement


def test_probabilities_at_a_large_delta_are_not_judged(smoke):
    pairs = tuple((replace(cell, delta=0.9), data) for cell, data in smoke.where(Lengths))
    assert {str(claim.verdict) for claim in lemmas.claims(Results("smoke", pairs))} == {"not run here"}


def test_a_probability_whose_interval_holds_its_bound_is_not_testable():
    words = {"source": "s", "statement": "t", "measured": "u"}
    for low, high, verdict in ((0.1, 0.2, "holds"), (0.2, 0.4, "not testable at this size"), (0.35, 0.4, "fails")):
        claim = Claim.at_most(Interval((low + high) / 2, low, high), 0.3, **words)
        assert _judging.told_apart(claim, 0.3).verdict == verdict


def test_lemma_2_is_judged_where_lemma_13_is_silent(smoke):
    claims = [claim for claim in lemmas.claims(smoke) if claim.source == "Lemma 2, v"]
    assert [str(claim.verdict) for claim in claims] == ["holds with constants 1"] * 2
    assert all("n = 200" in claim.measured for claim in claims)
    old = Results("smoke", tuple(pair for pair in smoke.where(Perturbed) if pair[0].samples != lemmas.BEYOND))
    told = [str(claim.verdict) for claim in lemmas.claims(old) if claim.source == "Lemma 2, v"]
    assert told == ["not run here"] * 2


def test_lemma_13_asks_for_features_between_its_two_numbers(smoke):
    pairs = tuple((replace(cell, dim=20), data) for cell, data in smoke.where(Perturbed, power=2))
    claims = lemmas.claims(Results("smoke", pairs))
    outside = {claim.source for claim in claims if claim.verdict == "outside the hypothesis"}
    assert {"Lemma 13, v", "Lemma 13, n"} <= outside
