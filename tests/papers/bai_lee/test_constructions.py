"""Bai & Lee, the constructions, in their smoke profile; and that wrong numbers would be found out."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import faults
from offtangent.lab import Results
from offtangent.papers.bai_lee import _gaps, constructions
from offtangent.papers.bai_lee.constructions import Features, Gap, Spread, Target


@pytest.fixture(scope="module")
def smoke():
    cells = constructions.cells(constructions.PROFILES["smoke"])
    return Results("smoke", tuple((cell, constructions.run(cell)) for cell in cells))


failing, changed = partial(faults.failing, constructions), partial(faults.changed, constructions)


def test_every_claim_holds_and_every_construction_has_five_widths(smoke):
    found = list(constructions.claims(smoke))
    told = {claim.verdict for claim in found if claim.source != "Theorem 6, as printed"}
    assert told == {"holds", "holds with constants 1", "not run here"}
    assert {claim.verdict for claim in found if claim.source == "Theorem 6, as printed"} == {"refuted as printed"}
    assert {claim.source for claim in found} == {
        "Theorem 7", "Theorem 7, footnote 5", "Lemma 9", "Lemma 8, with Tropp's constant", "Theorem 6",
        "Theorem 6, as printed",
    }  # fmt: skip
    for profile in constructions.PROFILES.values():
        assert len(profile.widths) >= 5
        assert len(profile.feature_widths) >= 5


def test_bounds_on_constants_are_identities_and_no_others(smoke):
    """At degree q = 0, a(w₀) = √(2π) whatever w₀ is: 1 ≤ 1."""
    exact = [claim.statement for claim in constructions.claims(smoke) if claim.kind == "identity"]
    assert len(exact) == 3
    assert exact[0].startswith("(βᵀx)²: E‖W⋆‖⁴")
    assert exact[1].endswith("for q = 0")
    assert exact[2].startswith("2-XOR: ‖W⋆‖")


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    assert len(constructions.draw(smoke)) == 4
    for kind in (Target, Features, Spread, Gap):
        less = Results("smoke", tuple(pair for pair in smoke if type(pair[0]) is not kind), complete=False)
        tested = [claim for claim in constructions.claims(less) if claim.verdict != "not run here"]
        assert 0 < len(tested) < len([claim for claim in constructions.claims(smoke) if claim.value is not None])
        assert len(constructions.draw(less)) == 3
    assert all(constructions.cost(cell).flops > 0 and constructions.cost(cell).bytes > 0 for cell, _ in smoke)


def test_a_record_without_the_gap_says_that_theorem_6_was_not_run(smoke):
    old = Results("paper", tuple(pair for pair in smoke if type(pair[0]) is not Gap))
    missing = [claim for claim in constructions.claims(old) if claim.verdict == "not run here"]
    assert len(missing) == 3
    assert {claim.source for claim in missing} == {"Theorem 6"}


def gaps(field, exponent):
    """Cells over one of the sizes, with a gap like this power of it, and noise of a hundredth."""
    rng = np.random.default_rng(0)
    sizes = {"samples": 8192, "dim": 8, "width": 64}
    for size in (64, 256, 1024, 4096):
        cell = Gap(**(sizes | {field: size}), signs=8, tests=10, seeds=5)
        numbers = {"gap": size**exponent * (1 + 0.01 * rng.standard_normal(5))}
        numbers |= {name: np.ones(5) for name in ("loss", "norm", "spread", "bound", "quadratic_bound")}
        yield cell, xr.Dataset({name: ("seed", values) for name, values in numbers.items()})


@pytest.mark.parametrize(
    ("field", "right", "wrong"), [("samples", -0.5, -0.4), ("width", 0.0, 0.2), ("dim", -0.4, 0.05)]
)
def test_a_gap_with_the_wrong_exponent_in_n_m_or_d_would_be_found_out(field, right, wrong):
    def verdict(exponent):
        found = constructions.claims(Results("smoke", tuple(gaps(field, exponent))))
        return {claim.verdict for claim in found} - {"not run here"}

    assert verdict(right) == {"holds with constants 1" if field == "dim" else "holds"}
    assert verdict(wrong) == {"fails"}


def test_a_gap_at_weights_outside_the_ball_is_outside_the_hypothesis():
    wide = tuple((cell, data.assign(norm=1.1 * data["norm"])) for cell, data in gaps("samples", -0.5))
    assert "outside the hypothesis" in {claim.verdict for claim in constructions.claims(Results("smoke", wide))}


def test_weights_that_know_nothing_of_the_labels_have_no_gap(monkeypatch):
    """The gap is what the choice of Ŵ makes of the sample: with other labels' Ŵ it is noise."""
    cell = Gap(samples=256, dim=5, width=16, signs=8, tests=500, seeds=8)
    right = constructions.run(cell)["gap"].values
    other = _gaps.widest_gap_weights

    def blind(net, X, signs, *, norm):
        return other(net, X, np.random.default_rng(len(X)).permutation(signs), norm=norm)

    monkeypatch.setattr(_gaps, "widest_gap_weights", blind)
    wrong = constructions.run(cell)["gap"].values
    assert right.min() > 0
    assert abs(wrong.mean()) < 3 * wrong.std(ddof=1) / 8**0.5
    assert abs(wrong.mean()) < right.mean() / 3


def test_an_error_that_falls_too_slowly_would_be_found_out(smoke):
    fault = changed(smoke, Target, error=lambda cell, data: data["error"] * cell.width**0.25)
    assert fault == {"Theorem 7", "Theorem 7, footnote 5"}


def test_a_risk_that_comes_closer_too_slowly_would_be_found_out_and_an_old_record_has_none(smoke):
    fault = changed(smoke, Target, risk=lambda cell, data: data["risk"] * cell.width**0.4)
    assert fault == {"Theorem 7", "Theorem 7, footnote 5"}
    old = tuple((cell, data.drop_vars("risk", errors="ignore")) for cell, data in smoke)
    missing = [one.source for one in constructions.claims(Results("paper", old)) if one.verdict == "not run here"]
    assert missing.count("Theorem 7") == 4
    assert missing.count("Theorem 7, footnote 5") == 1


def test_the_error_of_the_risk_is_that_of_the_logistic_loss_written_out():
    target, errors = np.array([0.5, -2.0, 1.0]), np.array([0.1, -0.3, 0.2])
    losses = [np.log1p(np.exp(-np.sign(target) * values)).mean() for values in (target + errors, target)]
    assert constructions._risk_error(target, errors) == pytest.approx(abs(losses[0] - losses[1]), rel=1e-12)


def test_errors_of_the_wrong_size_would_be_found_out(smoke):
    assert changed(smoke, Target, square=lambda _, data: 4 * data["square"]) == {"Theorem 7"}
    grown = changed(smoke, Target, norm_ratio=lambda cell, data: data["norm_ratio"] * cell.width / 8192)
    assert grown == {"Theorem 7"}
    told = [claim.note for claim in constructions.claims(smoke) if "Chebyshev" in claim.note]
    assert len(told) == 5
    assert all(" in 0 of 50 networks" in note for note in told)


def test_features_of_the_wrong_size_would_be_found_out(smoke):
    polynomials = Results("smoke", tuple(pair for pair in smoke if getattr(pair[0], "target", "") not in ("xor", "")))
    fault = changed(polynomials, Target, feature_square=lambda _, data: data["feature_square"] / 4)
    assert fault == {"Lemma 9"}
    assert changed(polynomials, Target, energy_ratio=lambda _, data: 5 * data["energy_ratio"]) == {"Lemma 9"}


def test_a_feature_term_beyond_its_bounds_would_be_found_out(smoke):
    assert changed(smoke, Features, largest=lambda _, data: 4 * data["largest"]) == {"Lemma 8, with Tropp's constant"}
    assert changed(smoke, Features, largest=lambda cell, data: data["lemma"] * cell.width**0.1 / 10) == {"Theorem 6"}


def test_inputs_on_a_line_would_be_found_out(smoke):
    assert changed(smoke, Spread, spread=lambda _, data: 0 * data["spread"] + 1) == {"Theorem 6"}
