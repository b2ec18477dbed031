"""Nichani, Bai & Lee: Figure 1, the directions of training and Appendix G, in their smoke profiles."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import lab
from offtangent.lab import Results
from offtangent.lab.records import committed_records, read_record
from offtangent.papers.nichani import _joint, appendix_g, directions, fig1
from offtangent.theory import R3

EXPERIMENTS = {"fig1": fig1, "directions": directions, "appendix_g": appendix_g}
STRENGTHS = (0.0, 3.0)


@pytest.fixture(scope="module")
def smoke():
    return {
        name: Results("smoke", tuple((cell, module.run(cell)) for cell in module.cells(module.PROFILES["smoke"])))
        for name, module in EXPERIMENTS.items()
    }


def shipped(name):
    """The results at the paper's sizes."""
    known = {f"nichani/{name}": lab.experiment.Experiment(f"nichani/{name}", f"offtangent.papers.nichani.{name}")}
    (path,) = (path for path in committed_records() if path.stem == f"nichani-{name}-paper")
    return read_record(path, known).results


@pytest.fixture(scope="module")
def problems():
    sizes = {"dim": 5, "samples": 20, "width": 12, "tests": 40}
    return [_joint.problem("sphere", "softplus", **sizes, seed=seed) for seed in (0, 1)]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_is_met_and_stands_outside_only_by_a_hypothesis(smoke, name):
    claims = EXPERIMENTS[name].claims(smoke[name])
    assert claims
    assert {claim.verdict for claim in claims} <= {"holds", "outside the hypothesis"}
    for claim in claims:
        assert claim.met
        assert (claim.verdict == "outside the hypothesis") == any(not one.met for one in claim.hypotheses)


def test_the_papers_own_setting_leads_and_is_judged():
    claims = fig1.claims(shipped("fig1"))
    own = claims[:5]
    assert all("(sigmoid(z − 1), Gaussian inputs, r = d, d = 100)" in claim.statement for claim in own)
    assert [claim.verdict.value for claim in own] == [
        "holds", "holds", "holds", "holds with constants 1", "outside the hypothesis",
    ]  # fmt: skip
    assert own[2].note.startswith("From 0.490 to 0.149.")
    judged = [claim for claim in claims if claim.source == "Figure 1, Section 5" and claim.verdict == "holds"]
    assert all("softplus" not in claim.statement for claim in judged)
    assert "Theorem 1" not in {claim.source for claim in claims}


def test_remark_1_promises_nothing_over_f_q_alone_where_k_squared_d_to_the_k_samples_are_there():
    (claim, *_) = (claim for claim in fig1.claims(shipped("fig1")) if "f_Q alone" in claim.statement)
    (few,) = (one for one in claim.hypotheses if not one.met)
    assert (few.value, few.relation, few.limit) == (1000, "<", 400.0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_there_are_figures_costs_and_nothing_to_say_of_nothing(smoke, name):
    module = EXPERIMENTS[name]
    assert len(module.draw(smoke[name])) >= 2
    assert module.claims(Results("smoke", (), complete=False)) == []
    assert all(module.cost(cell).flops > 0 and module.cost(cell).bytes > 0 for cell, _ in smoke[name])


def swapped(results, axis="strength"):
    """What was measured with the regulariser and without it, exchanged."""
    turned = (
        (cell, data.isel({axis: slice(None, None, -1)}).assign_coords({axis: data[axis]})) for cell, data in results
    )
    return Results(results.profile, tuple(turned))


def test_a_regulariser_that_harmed_would_be_found_out(smoke):
    failed = {claim.statement[:20] for claim in fig1.claims(swapped(shipped("fig1"))) if claim.verdict == "fails"}
    assert "R₃ falls from λ₃ = 0" in failed
    found = directions.claims(swapped(smoke["directions"], "arm"))
    failed = {claim.statement for claim in found if claim.verdict == "fails"}
    assert "with R₃ the weights move less in V₂ (softplus)" in failed
    assert "with R₁ and R₃ the weights move less in Q₂ (softplus)" in failed


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (1.25, "not testable at this size"), (2.0, "fails")])
def test_not_needed_is_an_equivalence_whose_interval_lies_within_the_margin(smoke, factor, verdict):
    ((cell, data),) = smoke["appendix_g"].pairs
    worse = data.assign(test=data["test"] * (1 + (factor - 1) * (data["strength"] == 0)))
    (claim,) = appendix_g.claims(Results("smoke", ((cell, worse),)))
    assert claim.verdict == verdict


def test_the_margin_that_came_after_the_record_is_judged_on_new_seeds_alone():
    """The same numbers, once as if they were of the seeds that had been seen."""
    record = shipped("appendix_g")
    seen = tuple((replace(cell, seeds=_joint.SEEDS), data) for cell, data in record)
    claims = appendix_g.claims(Results("paper", seen))
    assert {claim.verdict.value for claim in claims} == {"not run here"}
    fresh = appendix_g.claims(record)
    assert {claim.verdict.value for claim in fresh} == {"holds", "outside the hypothesis"}
    assert all(claim.number in old.note for claim, old in zip(fresh, claims, strict=True))
    seeds = {seed for config in appendix_g.PROFILES.values() for seed in config.seeds}
    assert not seeds & set(_joint.SEEDS)


def test_r3_lies_between_the_ends_of_the_spectrum_of_v2_times_the_movement_in_it(smoke):
    """R₃ = Σ_{i>r} λᵢ⟨vᵢ, W⟩² and ‖P_{V₂}W‖² = Σ_{i>r} ⟨vᵢ, W⟩², which are computed apart."""
    ((cell, data),) = smoke["directions"].pairs
    assert int(data["size"].values[:3].sum()) == cell.dim * cell.width
    sizes = {"dim": cell.dim, "samples": cell.samples, "width": cell.width, "tests": 2}
    for seed in cell.seeds:
        values = _joint.problem("sphere", cell.sigma, **sizes, seed=seed).training.values[cell.dim + 1 :]
        one = data.sel(seed=seed)
        moved, residual = one["V2"].values ** 2, one["residual"].values
        assert (residual <= values[0] * moved * 1.001 + 1e-9).all()
        assert (residual >= values[-1] * moved * 0.999 - 1e-9).all()


def test_one_step_is_the_papers(problems):
    """P5: the gradient written out by hand, in float64, against the program's."""
    learners = _joint.Learners.of(problems, rank=6, strengths=STRENGTHS, model="joint")
    X, y = _joint.rows(problems)
    W = 0.3 * jax.random.normal(jax.random.key(1), (2, 2, 5, 12))
    with jax.default_matmul_precision("highest"):
        slope = jax.jit(jax.grad(lambda W: jnp.sum(learners(W, jnp.asarray(X), jnp.asarray(y)))))(W)
    for i, one in enumerate(problems):
        W0 = np.asarray(one.net.W0, np.float64)[:, :6]
        s1, s2 = (np.asarray(one.net.activation.derivative(k)(one.X @ W0), np.float64) for k in (1, 2))
        U = one.vectors[:, :6]
        for j, strength in enumerate(STRENGTHS):
            plus, minus = np.asarray(W[i, j], np.float64)[:, :6], np.asarray(W[i, j], np.float64)[:, 6:]
            P, Q = one.X @ plus, one.X @ minus
            linear, quadratic = (s1 * (P - Q)).sum(axis=1), (s2 * (P**2 - Q**2)).sum(axis=1) / 2
            linear, quadratic = linear / 12**0.5, quadratic / 12**0.5
            r, q = linear + quadratic - one.y, linear - U @ (U.T @ linear)
            B = s1 * (2 / 20 * (r + strength * q) / 12**0.5)[:, None]
            C = s2 * (2 / 20 * r / 12**0.5)[:, None]
            by_hand = np.hstack([one.X.T @ (B + C * P), -one.X.T @ (B + C * Q)])
            np.testing.assert_allclose(np.asarray(slope[i, j]), by_hand, atol=2e-5 * np.abs(by_hand).max())


def test_r3_is_the_librarys(problems):
    learners = _joint.Learners.of(problems, rank=6, strengths=STRENGTHS, model="joint")
    W = jax.random.normal(jax.random.key(2), (2, 2, 5, 12))
    residual = _joint.Seen.of(problems, learners)(W)[1]
    for i, one in enumerate(problems):
        np.testing.assert_allclose(residual[i], R3.empirical(one.net, one.X, 6)(W[i]), rtol=1e-4)


@pytest.mark.parametrize("model", ["joint", "linear", "quadratic", "network"])
def test_the_test_loss_is_that_of_the_model_on_each_half(problems, model):
    learners = _joint.Learners.of(problems, rank=6, strengths=STRENGTHS, model=model)
    W = 0.5 * jax.random.normal(jax.random.key(3), (2, 2, 5, 12))
    found = _joint.Tested.of(problems, learners)(W)
    from offtangent.taylor import expand

    for i, one in enumerate(problems):
        X = jnp.asarray(one.X_test, jnp.float32)
        _, linear, quadratic = expand(one.net, one.net.origin, 2).terms(W[i, 1], X)
        f = {"joint": linear + quadratic, "linear": linear, "quadratic": quadratic, "network": one.net(W[i, 1], X)}
        squares = (np.asarray(f[model], np.float64) - one.y_test) ** 2
        np.testing.assert_allclose(found[i, 1], [squares[:20].mean(), squares[20:].mean()], rtol=1e-4)


def test_the_rate_is_half_of_the_largest_stable_one_of_the_linear_part(problems):
    """Against the dense Hessian of the regularised loss at W = 0, where f_Q adds nothing."""
    found = _joint.rates(problems, rank=6, strengths=STRENGTHS, rate=1e9)
    learners = _joint.Learners.of(problems[:1], rank=6, strengths=STRENGTHS, model="linear")
    X, y = _joint.rows(problems[:1])

    def losses(w):
        return learners(jnp.broadcast_to(w.reshape(5, 12), (1, 2, 5, 12)), jnp.asarray(X), jnp.asarray(y))[0]

    top = np.linalg.eigvalsh(np.asarray(jax.jit(jax.hessian(losses))(jnp.zeros(60)), np.float64))[:, -1]
    np.testing.assert_allclose(found[0], 1 / top, rtol=1e-3)


def test_looks_start_at_zero_and_end_at_the_last_step():
    at = _joint.looks(600, 60)
    assert (at[0], at[-1]) == (0, 600)
    assert (np.diff(at) > 0).all()
