"""Bai & Lee, the landscape, in its smoke profile; and that wrong numbers would be found out."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from offtangent.lab import Results
from offtangent.lab.hypotheses import unmet
from offtangent.papers.bai_lee import landscape
from offtangent.papers.bai_lee._noisy_xor import BEST, LOSSES, NOISE, noisy_xor
from offtangent.papers.bai_lee._starts import starts
from offtangent.theory.bai_lee.contract import loss_contract
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.landscape import clean_landscape
from offtangent.theory.bai_lee.risks import CleanRisk


@pytest.fixture(scope="module")
def smoke():
    cells = landscape.cells(landscape.PROFILES["smoke"])
    return Results("smoke", tuple((cell, landscape.run(cell)) for cell in cells))


def failing(results):
    return {claim.source for claim in landscape.claims(results) if claim.verdict == "fails"}


def changed(results, kind, **faults):
    """The sources of the claims that fail when numbers of one kind of cell are replaced."""
    pairs = tuple(
        (
            cell,
            data.assign({name: fault(cell, data) for name, fault in faults.items()})
            if isinstance(cell, kind)
            else data,
        )
        for cell, data in results
    )
    return failing(Results("smoke", pairs))


def test_exponents_hold_and_theorems_that_ask_for_the_width_of_equation_6_are_outside(smoke):
    found = [claim for claim in landscape.claims(smoke) if claim.kind == "claim"]
    told = {claim.source: claim.verdict for claim in found if claim.hypotheses}
    assert set(told) == {
        "Theorem 2, eq. (7)", "Theorem 4, eq. (10)", "Corollary 3 at a saddle", "Corollary 3 along training",
    }  # fmt: skip
    assert set(told.values()) == {"outside the hypothesis"}
    assert {claim.verdict for claim in found if not claim.hypotheses} == {"holds"}
    assert all("slope" in claim.measured for claim in found if not claim.hypotheses)


def test_what_is_true_of_every_w_is_an_identity(smoke):
    exact = [claim for claim in landscape.claims(smoke) if claim.kind == "identity"]
    assert {claim.source for claim in exact} == {
        "Lemma 1, eq. (5)", "Theorem 2, eq. (7)", "Corollary 3, eq. (8)", "Corollary 3, Appendix B.5", "Lemma 10",
        "Lemma 12", "Lemma 13", "Lemma 14", "Theorem 4, eq. (10), last step of B.6",
    }  # fmt: skip
    assert {claim.verdict for claim in exact} == {"holds"}


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    assert len(landscape.draw(smoke)) == 5
    for kind in (landscape.Points, landscape.Widths, landscape.Starts):
        rest = tuple(pair for pair in smoke if not isinstance(pair[0], kind))
        less = Results("smoke", rest, complete=False)
        assert 0 < len(landscape.claims(less)) < len(landscape.claims(smoke))
        assert landscape.draw(less)


def test_every_cell_says_what_it_costs(smoke):
    assert all(landscape.cost(cell).flops > 0 and landscape.cost(cell).bytes > 0 for cell, _ in smoke)


def test_lemma_1_with_half_its_last_term_would_be_found_false(smoke):
    """Next to W⋆ the soft hinge has ℓ'' near one, and the lemma little room."""
    fault = changed(smoke, landscape.Points, lemma=lambda _, data: data["lemma_slack"] - data["lemma_last"] / 2)
    assert fault == {"Lemma 1, eq. (5)"}


def test_a_curvature_with_the_wrong_sign_would_be_found_out(smoke):
    """At the saddle (8) asks for a negative one."""
    pairs = tuple(
        (cell, data.assign(curvature=-data["curvature"]) if isinstance(cell, landscape.Starts) else data)
        for cell, data in smoke
    )
    missed = [claim for claim in landscape.claims(Results("smoke", pairs)) if claim.met is False]
    assert {claim.source for claim in missed} == {"Corollary 3 at a saddle", "Corollary 3 along training"}


def test_half_the_constant_of_corollary_3_would_be_found_too_small(smoke):
    assert changed(smoke, landscape.Points, penalty=lambda _, data: 2 * data["penalty"]) == {
        "Corollary 3, Appendix B.5"
    }


@pytest.mark.parametrize(("name", "lemma"), [("loss", "12"), ("gradient", "13"), ("curvature", "14")])
def test_a_difference_that_did_not_fall_would_be_found_out(smoke, name, lemma):
    fault = changed(smoke, landscape.Widths, **{name: lambda cell, data: data[name] * cell.width**0.5})
    assert fault == {f"Lemma {lemma}"}


def test_an_epsilon_that_did_not_fall_would_be_found_out(smoke):
    fault = changed(smoke, landscape.Widths, needed=lambda cell, data: data["needed"] * cell.width**0.75)
    assert fault == {"Theorem 2, eq. (7)"}


def test_a_start_that_stayed_at_the_saddle_would_be_found_out(smoke):
    """Its loss is log 2, which neither (8) nor the certificate allows at a stationary point."""
    stuck = changed(smoke, landscape.Starts, last_loss=lambda _, data: data["loss"].isel(look=0))
    assert stuck == {"Theorem 4, eq. (10), last step of B.6"}


def test_a_point_that_is_not_stationary_is_outside_theorem_4(smoke):
    pairs = tuple(
        (cell, data.assign(inexactness=0.1 + data["inexactness"]) if isinstance(cell, landscape.Starts) else data)
        for cell, data in smoke
    )
    for claim in landscape.claims(Results("smoke", pairs)):
        if claim.source == "Theorem 4, eq. (10)":
            assert len(unmet(claim.hypotheses)) == 2
            assert "stationary" in claim.conditions


def test_theorem_4_is_judged_at_the_width_that_it_asks_for_and_at_no_smaller_one(smoke):
    (pair,) = smoke.where(landscape.Starts).pairs
    for power, verdict in ((30, "outside the hypothesis"), (50, "holds with constants 1")):
        found = shown([(replace(pair[0], width=10**power), pair[1])])
        assert found.verdict == verdict
        assert "asked ≥" in found.conditions


def test_every_network_is_held_against_its_own_bound(smoke):
    """A second network with a larger OPT may have larger losses; what is shown is a loss next to its own bound."""
    ((cell, data),) = smoke.where(landscape.Starts).pairs
    other = data.assign(
        {name: data[name] + 0.3 for name in ("last_loss", "fresh_loss", "loss_bound")} | {"opt": data["opt"] + 0.24}
    )
    found = shown([(cell, data), (replace(cell, seed=1), other)])
    assert found.met
    assert found.value == pytest.approx(float(other["fresh_loss"].max() + 3 * other["fresh_error"].max()), abs=0.01)
    assert found.expected == f"≤ {float(other['loss_bound']):.4g}"
    for one in (data, other):
        assert f"OPT = {float(one['opt']):.4f}" in found.note
        assert f"{float(one['last_loss'].max()):.4f}" in found.note
    assert not shown([(cell, data), (replace(cell, seed=1), other.assign(loss_bound=data["opt"]))]).met


def shown(pairs):
    """The claim on the losses from every start."""
    return next(one for one in landscape.claims(Results("smoke", tuple(pairs))) if "from every start" in one.statement)


def test_what_8_needs_at_the_last_points_is_told_with_their_last_step(smoke):
    ((cell, data),) = smoke.where(landscape.Starts).pairs
    (step, _) = [one for one in landscape.claims(smoke) if "last step" in one.source]
    assert f"{float(data['corollary'][-1].max()):.2g} at m = {cell.width}" in step.note


def test_no_predictor_is_better_than_the_entropy_and_opt_is_the_clean_risk():
    problem = noisy_xor(3, 256, key=jax.random.key(0))
    outputs = np.linspace(-4, 4, 4001)
    loss = problem.loss
    assert float(loss(1.0, outputs).min()) == pytest.approx(BEST, abs=1e-6)
    assert outputs[int(loss(1.0, outputs).argmin())] == pytest.approx(np.log(1 / NOISE - 1), abs=2e-3)
    risk = CleanRisk.of(problem.net, problem.X, problem.y, loss)
    assert problem.opt == pytest.approx(clean_landscape(risk, problem.W_star, problem.W_star).opt, rel=1e-12)
    assert BEST < problem.opt < 1.1 * BEST
    assert problem.norm**4 == pytest.approx(8 * np.pi * np.log(1 / NOISE - 1) ** 2)


@pytest.mark.parametrize("name", LOSSES)
def test_the_losses_keep_the_papers_contract(name):
    assert loss_contract(LOSSES[name]).holds


def test_starts_reach_from_the_saddle_to_three_times_the_norm():
    problem = noisy_xor(3, 16, key=jax.random.key(0))
    sizes = [column_norm(W) / problem.norm for W in starts(problem, 5, seed=0)]
    np.testing.assert_allclose(sizes, [1e-3, *np.geomspace(1e-3, 3.0, 4)], rtol=1e-12)
