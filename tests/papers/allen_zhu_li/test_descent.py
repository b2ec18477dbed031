"""Theorem 1 along Algorithm 1: its hypotheses, and wrong numbers that would be found out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import descent

OUTSIDE = "outside the hypothesis"


@pytest.fixture(scope="module")
def descended():
    cells = descent.cells(descent.PROFILES["smoke"])
    return Results("smoke", tuple((cell, descent.run(cell)) for cell in cells))


@pytest.fixture(scope="module")
def inside(descended):
    return descended.where(stated=True, optimum=0.0)


def verdicts(results):
    return {claim.source: str(claim.verdict) for claim in descent.claims(results) if claim.kind == "claim"}


def changed(results, **changes):
    """The sources of the claims that fail, or cannot be told, once variables are put at change(values)."""
    pairs = tuple(
        (cell, data.assign({name: change(data[name]) for name, change in changes.items()})) for cell, data in results
    )
    return {one.source for one in descent.claims(Results("smoke", pairs)) if one.verdict == "fails"}


def test_theorem_1_holds_where_theorem1_says_that_it_applies_and_is_outside_elsewhere(descended):
    """The other cell has ten times the norms of W⋆ and V⋆ for its radii, which are less than the theorem's."""
    within, without = (verdicts(descended.where(stated=stated)) for stated in (True, False))
    assert within["Theorem 1"] == within["eq. (D.3)"] == "holds with constants 1"
    assert without["Theorem 1"] == "outside the hypothesis"
    assert within["Claim D.6"] == without["Claim D.6"] == OUTSIDE
    assert within["Claim D.5"] == "not run here"  # it takes three widths


def test_what_theorem_1_asks_for_is_what_its_formulas_say(descended):
    """α ≤ 1/(10kp𝔠_s(G)), δ ≥ (10αkp𝔠_s(G))⁴(1 + 𝔅_F)², T ≥ (10kp𝔠_s(F))²/min(1, δ²), with 𝔠_s = 2Σ(i + 1)|c_i|."""
    for cell, data in descended:
        claims = descent.claims(Results("smoke", ((cell, data),)))
        (theorem,) = [one for one in claims if one.source.startswith("Theorem 1") and one.value is not None]
        asked = {one.name: one.limit for one in theorem.hypotheses}
        of_f, of_g = (20 * cell.outputs * sum((i + 1) * c for i, c in enumerate(s)) for s in ((0.25, 0.25), (0, 1)))
        alpha, bound = float(data["alpha"][0]), float(data["base_bound"].max())
        assert asked["α"] == pytest.approx(1 / of_g)
        assert asked["δ"] == pytest.approx(cell.optimum + (alpha * of_g) ** 4 * (1 + bound) ** 2)
        assert asked["steps T"] == pytest.approx(of_f**2 / cell.delta**2)


def test_noise_of_the_labels_is_no_error_of_the_network_and_its_risk_is_part_of_delta(descended):
    """OPT = 0.15 in δ = 0.3: the mean of ‖y − out‖² is at least 2 OPT, and the error is that against H."""
    (pair,) = [(cell, data) for cell, data in descended if cell.optimum]
    cell, data = pair
    alone = dict(verdicts(Results("smoke", (pair,))))
    assert alone["Theorem 1, OPT = 0.15"] == "holds with constants 1"
    assert 0 < float(data["mean_gap"].max()) < cell.optimum
    assert float(data["gap"][:, -1].mean()) < float(data["mean_gap"].mean())
    noisy = ((cell, data.assign(mean_gap=data["mean_gap"] + 2 * cell.optimum)),)
    assert verdicts(Results("smoke", noisy))["Theorem 1, OPT = 0.15"] == "fails"
    less = ((replace(cell, optimum=0.3), data),)
    assert verdicts(Results("smoke", less))["Theorem 1, OPT = 0.3"] == OUTSIDE


def test_the_stated_cell_s_radii_hold_w_star_and_v_star_in_a_tenth(inside):
    ((_, data),) = inside.pairs
    assert (data["star_w"] <= data["tau_w"] / 10).all()
    assert (data["star_v"] <= data["tau_v"] / 10).all()


def test_without_the_stated_cells_theorem_1_is_not_run(descended):
    found = [one.verdict for one in descent.claims(descended.where(stated=False)) if one.source == "Theorem 1"]
    assert found == ["not run here", OUTSIDE]


@pytest.mark.parametrize("name", ["alpha", "tau_v"])
def test_radii_outside_table_1_and_a_larger_alpha_are_told_and_nothing_is_judged(inside, name):
    ((cell, data),) = inside.pairs
    found = verdicts(Results("smoke", ((cell, data.assign({name: 3 * data[name]})),)))
    assert found["Theorem 1"] == OUTSIDE


def test_a_descent_that_leaves_its_radii_or_does_not_learn_would_be_found_out(inside):
    ((_, data),) = inside.pairs
    untrained = data["gap"].values[:, 0]
    assert changed(inside, norms=lambda x: 20 * x) == {"eq. (D.3)"}
    assert changed(inside, mean_gap=lambda x: x.copy(data=untrained)) == {"Theorem 1"}
    assert changed(inside, slack=lambda x: x - 10) == {"Section 6.1, Fact D.4"}
    assert changed(inside, gradient_v=lambda x: 100 * x) == {"Claim D.5"}


@pytest.mark.parametrize(("power", "verdict"), [(0.0, "holds with constants 1"), (0.2, "fails")])
def test_gradients_that_grow_with_the_width_would_be_found_out(inside, power, verdict):
    ((cell, data),) = inside.pairs
    widths, told = (10_000, 20_000, 40_000), []
    for name in ("gradient_w", "gradient_v", "f"):
        pairs = tuple(
            (replace(cell, width=m), data.assign({name: data[name] * (m / widths[0]) ** power})) for m in widths
        )
        claims = descent.claims(Results("smoke", pairs))
        told.append([one.verdict for one in claims if "for every m:" in one.statement])
    for i, row in enumerate(told):
        assert row[i] == verdict
        assert {*row[:i], *row[i + 1 :]} == {"holds with constants 1"}


def test_claim_d6_is_measured_in_the_units_in_which_it_is_stated(inside):
    """Its right side term by term, seed by seed and moment by moment."""
    ((_, data),) = inside.pairs
    (found,) = [claim for claim in descent.claims(inside) if claim.source == "Claim D.6"]
    L, alpha, tau, tilde = (float(data[name].mean()) for name in ("lipschitz", "alpha", "tau_v", "tilde"))
    B, shares = float(data["base_bound"].max()), []
    for seed in range(data.sizes["seed"]):
        rest = tilde**2 + tau**2 * (1 + B) + alpha * tau * L * (B + 1)
        moments = zip(data["gap"].values[seed], data["error"].values[seed], strict=True)
        shares.append(max(error / ((tau + alpha * L) ** 2 * gap + rest**2) for gap, error in moments))
    assert found.value == pytest.approx(math.exp(np.mean(np.log(shares))), rel=1e-9)


@pytest.mark.parametrize("worse", [0, 1])
def test_of_two_widths_each_claim_is_told_at_the_one_where_it_is_nearest_to_failing(inside, worse):
    """Larger ratios for what is at most one, a smaller slack for what is at least zero, at either width."""
    ((cell, data),) = inside.pairs
    bad = data.assign(
        {name: data[name] * 1.1 for name in ("mean_gap", "norms", "error", "f", "gradient_w", "gradient_v")}
    )
    bad = bad.assign(slack=data["slack"] - 0.1)
    widths = (10_000, 20_000)
    pairs = tuple((replace(cell, width=m), bad if i == worse else data) for i, m in enumerate(widths))
    for claim in descent.claims(Results("smoke", pairs)):
        if claim.value is not None:
            assert f"m = {widths[worse]}," in claim.measured, claim.source


def test_what_is_kept_of_a_descent_are_means_over_samples_and_the_worst_of_all():
    """Three moments and five samples, each quantity by a loop over them."""
    proof = np.random.default_rng(0).uniform(0.5, 2.0, (3, len(descent.PER_SAMPLE), 5))
    found = descent.kept(proof)
    np.testing.assert_allclose(found["error"], [sum(proof[t, 1]) / 5 for t in range(3)])
    slack, far, steep = [], [], []
    for gap, error, xi, base, *_, gradient_v in (proof[t, :, i] for t in range(3) for i in range(5)):
        slack.append((xi - 0.5 * gap + 2 * error) / (gap + error))
        far.append(base - 2 * gap**0.5)
        steep.append(gradient_v / gap**0.5)
    np.testing.assert_allclose([found["slack"], found["far"], found["gradient_v"]], [min(slack), max(far), max(steep)])
    np.testing.assert_allclose([found["b"], found["f"]], [proof[:, 6].max(), proof[:, 7].max()])


def test_a_descent_s_record_does_not_grow_with_its_samples(descended):
    for cell, data in descended:
        assert cell.samples not in dict(data.sizes).values()


def test_there_are_figures_and_every_cell_has_a_cost(descended):
    assert len(descent.draw(descended)) == 2
    assert descent.claims(Results("smoke", ())) == descent.draw(Results("smoke", ())) == []
    for config in descent.PROFILES.values():
        assert all(descent.cost(cell).flops > 0 and descent.cost(cell).bytes > 0 for cell in descent.cells(config))
