"""Bai & Lee, the samples needed, at the smallest size; and that wrong numbers would be found out."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from offtangent.data import sphere
from offtangent.kernels import ridge_regression
from offtangent.kernels.closed_forms import relu3_hidden
from offtangent.lab import Results
from offtangent.papers.bai_lee import _learners, _targets, samples
from offtangent.papers.bai_lee._curves import NAMES, needed

TINY = samples.Curve("xor", "quadratic", 6, (12, 24, 48), seeds=2, width=64, steps=200)


@pytest.fixture(scope="module")
def smoke():
    cells = samples.cells(samples.PROFILES["smoke"])
    return Results("smoke", tuple((cell, samples.run(cell)) for cell in cells))


def claims(results, source):
    return [claim for claim in samples.claims(results) if source in claim.statement]


def test_no_claim_fails_and_curves_fall_to_the_level(smoke):
    assert {claim.verdict for claim in samples.claims(smoke)} == {"holds", "outside the hypothesis", "not run here"}
    assert len(samples.claims(smoke)) == 8
    for cell, data in smoke:
        errors = data["test"].values
        assert (errors[:, 0] > 0.15).all(), cell.learner
        assert (errors[:, -1] < 0.05).all(), cell.learner


def test_there_are_figures_and_an_incomplete_task_says_nothing(smoke):
    assert len(samples.draw(smoke)) == 2
    assert samples.claims(Results("smoke", smoke.pairs[1:], complete=False)) == []
    assert all(samples.cost(cell).flops > 0 and samples.cost(cell).bytes > 0 for cell, _ in smoke)


def test_a_quadratic_model_that_needed_as_many_samples_as_the_ntk_would_be_found_out(smoke):
    of_ntk = {cell.dim: (cell, data) for cell, data in smoke if cell.learner == "ntk"}
    pairs = tuple(
        (replace(cell, samples=of_ntk[cell.dim][0].samples), of_ntk[cell.dim][1])
        if cell.learner == "quadratic"
        else (cell, data)
        for cell, data in smoke
    )
    for text in ("the quadratic model needs fewer", "the quadratic model's n over the NTK's falls"):
        (claim,) = claims(Results("smoke", pairs), text)
        assert claim.verdict == "fails"


def test_a_ratio_that_falls_but_stays_above_one_would_be_found_out(smoke):
    pairs = tuple(
        (replace(cell, samples=tuple(20 * n for n in cell.samples)) if cell.learner == "quadratic" else cell, data)
        for cell, data in smoke
    )
    (above,) = claims(Results("smoke", pairs), "the quadratic model needs fewer samples than the NTK at d = 24")
    (falls,) = claims(Results("smoke", pairs), "the quadratic model's n over the NTK's falls")
    assert (above.verdict, falls.verdict) == ("fails", "holds")


def test_a_curve_that_does_not_reach_the_level_is_not_judged(smoke):
    pairs = tuple((cell, data + 1 if cell.learner == "randomised" else data) for cell, data in smoke)
    assert not claims(Results("smoke", pairs), "the randomised network needs fewer")
    (found,) = claims(Results("smoke", pairs), "the randomised network with 128 neurons comes down to the level")
    assert found.verdict == "outside the hypothesis"
    assert found.value > 1
    assert "Seeds that reach the level: 0 of 5 at d = 8, 0 of 5 at d = 24." in found.note
    assert "eq. (6), even with ε = 1" in found.conditions
    assert samples.draw(Results("smoke", pairs))


def test_a_curve_that_stays_just_above_the_level_has_its_slope_at_an_easier_one(smoke):
    pairs = tuple((cell, np.maximum(data, 0.12) if cell.learner == "randomised" else data) for cell, data in smoke)
    found = claims(Results("smoke", pairs), "2-XOR, easier level: the randomised network")
    assert len(found) == 3
    assert all("15 % of the signs are wrong" in claim.measured for claim in found)
    assert {claim.verdict for claim in found} == {"outside the hypothesis"}
    assert not claims(smoke, "easier level")


def test_an_ntk_that_does_not_reach_the_level_is_named_as_the_one(smoke):
    pairs = tuple((cell, data + 1 if cell.learner == "ntk" else data) for cell, data in smoke)
    missing = [one for one in samples.claims(Results("smoke", pairs)) if one.verdict == "not run here"]
    assert sum("the NTK does not come down to the level with" in claim.note for claim in missing) == 2


def test_a_grid_that_starts_below_the_level_is_owned_up_to(smoke):
    pairs = tuple((cell, data * 0 if cell.learner == "quadratic" else data) for cell, data in smoke)
    (found,) = claims(Results("smoke", pairs), "the quadratic model needs fewer samples")
    assert found.verdict == "not run here"
    assert "128 neurons is not above the level with" in found.note


def with_power(results, learner, power):
    """The same, but for a learner that needs d^power times as many samples."""
    pairs = tuple(
        (replace(cell, samples=tuple(round(n * cell.dim**power) for n in cell.samples)), data)
        if cell.learner == learner
        else (cell, data)
        for cell, data in results
    )
    return Results("smoke", pairs)


@pytest.mark.parametrize("learner", ["quadratic", "randomised"])
def test_an_n_that_grew_like_the_cube_of_d_would_be_found_out(smoke, learner):
    """Over all d, from 8 on, the bound for large d is shown as met or not met; so is a network narrower than (6)."""
    (right,) = claims(smoke, f"the {NAMES[learner]} needs n_Q = Õ(d) samples over all d")
    (wrong,) = claims(with_power(smoke, learner, 2), f"the {NAMES[learner]} needs n_Q = Õ(d) samples over all d")
    assert (right.met, wrong.met) == (True, False)
    assert {right.verdict, wrong.verdict} == {"outside the hypothesis"}
    assert "smallest d = 8, asked ≥ 25" in right.conditions
    assert ("eq. (6)" in right.conditions) == (learner == "randomised")
    assert "Without the logarithm: " in right.note
    assert wrong.value == pytest.approx(right.value + 2, abs=0.01)


def polynomial(power):
    """Curves of (βᵀx)³ that come down at n = d^power for the quadratic model and d³ for the NTK."""
    for learner, grown in (("ntk", 3.0), ("quadratic", power)):
        for dim in (10, 20, 40):
            middle = dim**grown
            sizes = tuple(round(middle * factor) for factor in (0.25, 0.5, 1, 2, 4))
            cell = samples.Curve("3", learner, dim, sizes, seeds=3, width=64, steps=1)
            yield cell, curve_of(sizes, middle, _targets.level("3", dim), seeds=3)


def curve_of(sizes, middle, limit, seeds):
    """Errors that cross the level at n = middle, a little earlier or later for each seed."""
    shift = 1 + 0.02 * np.random.default_rng(0).standard_normal((seeds, 1))
    test = limit * np.sqrt(middle / np.array(sizes)) * shift
    return xr.Dataset(dict.fromkeys(("test", "train"), (("seed", "n"), test)))


def test_polynomials_are_judged_over_all_d_and_without_a_logarithm():
    for power, verdict in ((1.9, "holds"), (2.3, "fails")):
        (found,) = claims(Results("smoke", tuple(polynomial(power))), "the quadratic model needs n_Q = Õ(d^2)")
        assert found.verdict == verdict
        assert "without a logarithm" in found.statement
        assert "d = 10, 20, 40" in found.measured


def xor_again(power, dims, first=5):
    """New seeds of the quadratic model on XOR, whose n is d^power log d."""
    for dim in dims:
        middle = dim**power * np.log(dim)
        sizes = tuple(round(middle * factor) for factor in (0.25, 0.5, 1, 2, 4))
        cell = samples.Curve("xor", "quadratic", dim, sizes, seeds=5, width=64, steps=1, first=first)
        yield cell, curve_of(sizes, middle, 0.1, seeds=5)


def test_the_bound_for_large_d_is_judged_on_new_seeds_and_from_25_on_alone(smoke):
    def told(power, dims):
        pairs = (*smoke.pairs, *xor_again(power, dims))
        (found,) = claims(Results("smoke", pairs), "where d ≥ 25, with one logarithm of d, on new seeds")
        return found

    right = told(0.95, (25, 40, 60))
    assert right.verdict == "holds with constants 1"
    assert "d = 25, 40, 60, seeds 5 to 9" in right.measured
    assert "was chosen after the seeds from 0 on had been seen" in right.note
    assert told(1.15, (25, 40, 60)).verdict == "fails"
    assert told(0.95, (10, 25, 60)).verdict == "outside the hypothesis"
    assert told(1.0, ()).verdict == "not run here"


def test_new_seeds_change_no_other_claim_and_old_ones_have_no_verdict_for_large_d(smoke):
    pairs = (*smoke.pairs, *xor_again(0.95, (25, 40, 60)))
    found = samples.claims(Results("smoke", pairs))
    before = samples.claims(smoke)
    same = [one for one in found if "new seeds" not in one.statement]
    assert [(one.statement, one.value) for one in same] == [
        (one.statement, one.value) for one in before if "new seeds" not in one.statement
    ]
    old = tuple((replace(cell, first=0), data) for cell, data in xor_again(0.95, (25, 40, 60)))
    extended = [pair for pair in smoke if pair[0].learner == "ntk"] + list(old)
    (none,) = claims(Results("smoke", tuple(extended)), "on new seeds")
    assert none.verdict == "not run here"
    assert "which decides nothing" in none.note


@pytest.mark.parametrize("power", [-1.5, 0, 1.5])
def test_the_lower_bound_on_the_ntk_is_shown_and_never_judged(smoke, power):
    (found,) = claims(with_power(smoke, "ntk", power), "the NTK needs n_L = Ω(d²)")
    assert found.verdict == "outside the hypothesis"
    assert "the kernel's activation = relu³/6, asked relu" in found.conditions
    assert found.met == (found.interval[0] >= 2)


def test_needed_interpolates_in_log_n_and_owns_up_to_a_grid_that_is_too_short():
    grid, errors = np.array([10.0, 40.0]), np.array([[0.3, 0.1], [0.3, 0.2], [0.1, 0.0]])
    np.testing.assert_allclose(needed(grid, errors, 0.2), [20.0, 40.0, np.nan])
    assert needed(grid, errors[:1], 0.05) == [np.inf]


@pytest.mark.parametrize("dim", [6, 30])
def test_moments_and_the_part_of_highest_degree_agree_with_a_sample_of_the_sphere(dim):
    u = sphere(400_000, dim, key=jax.random.key(0))[:, 0]
    for power in (3, 4):
        draws = u ** (2 * power)
        assert abs(draws.mean() - _targets.moment(2 * power, dim)) <= 4 * draws.std() / len(u) ** 0.5
        lower = np.stack([u**k for k in range(power)], axis=1)
        scaled = lower / np.linalg.norm(lower, axis=0)
        left = u**power - scaled @ np.linalg.lstsq(scaled, u**power, rcond=None)[0]
        assert (left @ left) / draws.sum() == pytest.approx(_targets.top_share(power, dim), rel=0.05)


@pytest.mark.parametrize("task", ["xor", "noisy xor", "3", "4"])
def test_inputs_have_length_root_d_and_labels_mean_square_one(task):
    X, y = _targets.sample(task, 100_000, 9, key=jax.random.key(3))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 3.0)
    assert abs((y**2).mean() - 1) <= 5 * (y**2).std() / len(y) ** 0.5
    if _targets.is_xor(task):
        turned = (X[:, 0] + X[:, 1]) * (X[:, 0] - X[:, 1]) if task == "noisy xor" else X[:, 0] * X[:, 1]
        assert (np.sign(turned) == y).all()


def test_learners_may_end_at_different_dimensions(smoke):
    """The NTK goes on alone to a third dimension: its slope has three, ratios to it have two, d is said for each."""
    (last,) = ((cell, data) for cell, data in smoke if cell.learner == "ntk" and cell.dim == 24)
    further = (replace(last[0], dim=72, samples=tuple(9 * n for n in last[0].samples)), last[1])
    (ratio,) = claims(Results("smoke", (*smoke.pairs, further)), "the quadratic model's n over")
    assert "d = 8, 24, 5 seeds" in ratio.measured
    (alone,) = claims(Results("smoke", (*smoke.pairs, further)), "the NTK needs")
    assert "d = 8, 24, 72, 5 seeds" in alone.measured
    assert ratio.value == claims(smoke, "the quadratic model's n over")[0].value
    assert samples.draw(Results("smoke", (*smoke.pairs, further)))


@pytest.mark.parametrize("learner", ["randomised", "plain"])
def test_a_network_sees_its_own_first_rows_alone(learner):
    cell = replace(TINY, learner=learner, steps=20)
    whole = [samples._problem(cell, jax.random.key(seed)) for seed in range(2)]
    X, y = whole[0].train
    spoilt = replace(whole[0], train=(X, np.where(np.arange(len(y)) < 24, y, -y)))
    first, second = (_learners.curve(cell, [one, whole[1]])["train"] for one in (whole[0], spoilt))
    np.testing.assert_array_equal(first[0, :2], second[0, :2])
    np.testing.assert_array_equal(first[1], second[1])
    assert first[0, 2] != second[0, 2]


def test_the_kernels_curve_is_ridge_regression():
    cell = replace(TINY, learner="ntk")
    problem = samples._problem(cell, jax.random.key(0))
    found = samples._kernel_curve(cell, [problem])
    (X, y), (X_test, y_test) = problem.train, problem.test
    at = int(found["regulariser"][0, 1])
    ridge = samples.RIDGES[at] * float(relu3_hidden.diag(X[:1])[0])
    outputs = ridge_regression(relu3_hidden, X[:24], y[:24], ridge=ridge).predict(X_test)
    assert abs(np.mean(outputs * y_test <= 0) - found["test"][0, 1]) <= 0.002  # ties, where the output is nothing


def test_the_best_regulariser_is_chosen_on_other_samples_than_the_test():
    chosen, tested = np.array([[[0.3, 0.1]]]), np.array([[[0.0, 0.2]]])
    found = _learners.best(chosen, tested, tested)
    assert found["test"] == [[0.2]]
    assert found["regulariser"] == [[1.0]]
