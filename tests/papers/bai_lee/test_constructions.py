"""Bai & Lee, the constructions, in their smoke profile; and that wrong numbers would be found out."""

from functools import partial

import pytest

import faults
from offtangent.lab import Results
from offtangent.papers.bai_lee import constructions
from offtangent.papers.bai_lee.constructions import Features, Spread, Target


@pytest.fixture(scope="module")
def smoke():
    cells = constructions.cells(constructions.PROFILES["smoke"])
    return Results("smoke", tuple((cell, constructions.run(cell)) for cell in cells))


failing, changed = partial(faults.failing, constructions), partial(faults.changed, constructions)


def test_every_claim_holds_and_every_construction_has_five_widths(smoke):
    assert {claim.verdict for claim in constructions.claims(smoke)} == {"holds"}
    assert {claim.source for claim in constructions.claims(smoke)} == {
        "Theorem 7", "Theorem 7, footnote 5", "Lemma 9", "Lemma 8", "Lemma 5, Theorem 6", "Theorem 6",
    }  # fmt: skip
    for profile in constructions.PROFILES.values():
        assert len(profile.widths) >= 5
        assert len(profile.feature_widths) >= 5


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    assert len(constructions.draw(smoke)) == 3
    for kind in (Target, Features, Spread):
        less = Results("smoke", tuple(pair for pair in smoke if type(pair[0]) is not kind), complete=False)
        assert 0 < len(constructions.claims(less)) < len(constructions.claims(smoke))
        assert len(constructions.draw(less)) == 2
    assert all(constructions.cost(cell).flops > 0 and constructions.cost(cell).bytes > 0 for cell, _ in smoke)


def test_an_error_that_falls_too_slowly_would_be_found_out(smoke):
    fault = changed(smoke, Target, error=lambda cell, data: data["error"] * cell.width**0.25)
    assert fault == {"Theorem 7", "Theorem 7, footnote 5"}


def test_errors_of_the_wrong_size_would_be_found_out(smoke):
    assert changed(smoke, Target, square=lambda _, data: 4 * data["square"]) == {"Theorem 7"}
    assert changed(smoke, Target, worst=lambda _, data: 10 * data["worst"]) == {"Theorem 7", "Theorem 7, footnote 5"}


def test_features_of_the_wrong_size_would_be_found_out(smoke):
    polynomials = Results("smoke", tuple(pair for pair in smoke if getattr(pair[0], "target", "") not in ("xor", "")))
    fault = changed(polynomials, Target, feature_square=lambda _, data: data["feature_square"] / 4)
    assert fault == {"Lemma 9"}
    assert changed(polynomials, Target, energy_ratio=lambda _, data: 5 * data["energy_ratio"]) == {"Lemma 9"}


def test_a_feature_term_beyond_its_bounds_would_be_found_out(smoke):
    assert changed(smoke, Features, largest=lambda _, data: 10 * data["largest"]) == {"Lemma 8"}
    assert changed(smoke, Features, loss_bound=lambda _, data: 2 * data["theorem"]) == {"Lemma 5, Theorem 6"}
    assert changed(smoke, Features, largest=lambda cell, data: data["lemma"] * cell.width**0.1 / 10) == {"Theorem 6"}


def test_inputs_on_a_line_would_be_found_out(smoke):
    assert changed(smoke, Spread, spread=lambda _, data: 0 * data["spread"] + 1) == {"Theorem 6"}
