"""Ge, Wang & Zhao, the phase diagrams and the theorems' own descent, at the smallest size; wrong numbers are found."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import faults
from offtangent.lab import Claim, Results
from offtangent.papers.ge_wang_zhao import _diagram, _judging, _perturbed, phases
from offtangent.papers.ge_wang_zhao._diagram import Diagram
from offtangent.papers.ge_wang_zhao._perturbed import Descent
from offtangent.theory.ge_wang_zhao.capacity import memorisation


@pytest.fixture(scope="module")
def smoke():
    return Results("smoke", tuple((cell, phases.run(cell)) for cell in phases.cells(phases.PROFILES["smoke"])))


def changed(results, theorem, **faults):
    """The verdict on a theorem when numbers of its cells are replaced by fault(data)."""
    pairs = tuple(
        (cell, data.assign({name: fault(data) for name, fault in faults.items()}))
        for cell, data in results.where(Descent, theorem=theorem)
    )
    (claim,) = [one for one in phases.claims(Results("smoke", pairs)) if one.measured]
    return claim


def test_the_theorems_hold_by_their_own_algorithm_and_adam_is_outside(smoke):
    told = [(claim.source, claim.verdict, claim.met) for claim in phases.claims(smoke)]
    assert told == [
        ("Theorem 1", "outside the hypothesis", True),
        ("Lemma 1", "outside the hypothesis", False),
        ("Theorem 1", "holds with constants 1", True),
        ("Theorems 2, 5", "not testable at this size", False),
        ("Theorem 6", "not run here", None),
    ]
    figures = phases.draw(smoke)
    assert len(figures) == 1
    assert len(figures[0].plot.data) == 3
    assert all(phases.cost(cell).flops > 0 for cell, _ in smoke)


def test_features_divided_by_their_length_are_outside_and_the_page_says_so(smoke):
    ((_, data),) = smoke.where(Diagram)
    lengths = {}
    for kind in ("one", "as printed"):
        features = Diagram("features", (6, 8), (4, 9), 30, 3, 100, 2, kind)
        table = data.isel(n=[0, 1], size=[0, 1]).assign_coords(n=[4, 9], size=[6, 8])
        (claim,) = phases.claims(Results("smoke", ((features, 0 * table),)))[:1]
        assert claim.verdict == "outside the hypothesis"
        lengths[kind] = [one.name for one in claim.hypotheses if not one.met]
    assert lengths == {"one": ["algorithm", "features"], "as printed": ["algorithm"]}
    many = Diagram("features", (6, 40), (4, 9), 30, 3, 100, 2)
    (claim,) = phases.claims(Results("smoke", ((many, 0 * table.assign_coords(size=[6, 40])),)))[:1]
    assert "number of features k" in [one.name for one in claim.hypotheses if not one.met]


def test_the_share_at_exactly_the_capacity_is_told(smoke):
    ((cell, data),) = smoke.where(Diagram)
    at = replace(cell, sizes=(2, 14, 16), samples=(20, 21, 22))
    left = 0 * data["left"].values
    left[:, 1, 1], left[:, 2, :] = 1.0, 1.0
    table = data.assign(left=(("seed", "n", "size"), left))
    note = phases.claims(Results("smoke", ((at, table),)))[0].note
    assert "n < C(d + 1, 2): 100 %" in note
    assert "n exactly the most that can be had, C(d + 1, 2) or all polynomials: 50 %" in note
    assert "1 to 4 samples more: 0 %" in note


@pytest.mark.parametrize("theorem", [1, 5])
def test_runs_that_did_not_arrive_are_not_testable_before_the_theorems_number_of_steps(smoke, theorem):
    late = changed(smoke, theorem, left=lambda data: 0 * data["left"] + 0.5)
    assert late.verdict == "not testable at this size"
    assert "steps were taken" in late.note
    after = changed(smoke, theorem, left=lambda data: 0 * data["left"] + 0.5, promised=lambda data: 0 * data["left"])
    assert after.verdict == "fails"


def test_hypotheses_of_theorem_5_are_those_of_the_cell(smoke):
    assert changed(smoke, 5, left=lambda data: 0 * data["left"]).verdict == "holds with constants 1"
    for name, value, unmet in (
        ("lower", 0.0, "proven σ_min of what the quadratic layers see"),
        ("radius", 1.1, "length of x"),
        ("label", 1.1, "size of labels"),
        ("promised", 1.0, "steps"),
    ):
        claim = changed(smoke, 5, **{name: lambda data, value=value: 0 * data["left"] + value})
        assert claim.verdict == "outside the hypothesis"
        assert [one.name for one in claim.hypotheses if not one.met] == [unmet]


def test_a_missed_loss_says_nothing_before_its_time_alone():
    words = {"source": "s", "statement": "t", "measured": "u"}
    missed, nan, reached = (Claim.at_least(value, 1.0, **words) for value in (0.5, np.nan, 1.0))
    judged = [_judging.within(one, steps=10, promised=20).verdict for one in (missed, nan, reached)]
    assert judged == ["not testable at this size", "fails", "holds"]
    assert _judging.within(missed, steps=20, promised=20).verdict == "fails"


def test_the_features_of_theorem_5_are_as_printed_and_have_noise():
    cell = Descent(5, 400, 30, 4, 3, 10, 1)
    X, seen, y = _perturbed.problem(cell, 0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    assert np.abs(y).max() <= 1
    roots = np.cbrt(seen)  # Rx̄
    moved = roots - X @ np.linalg.lstsq(X, roots, rcond=None)[0]  # what X does not explain: R times the noise
    size = np.linalg.norm(np.linalg.lstsq(X, roots, rcond=None)[0], axis=0).mean()
    assert np.std(moved) == pytest.approx(0.05 * size, rel=0.15)
    still = _perturbed.problem(replace(cell, theorem=6), 0)
    exact = np.cbrt(still[1])
    np.testing.assert_allclose(still[0] @ np.linalg.lstsq(still[0], exact, rcond=None)[0], exact, atol=1e-10)


def test_the_rescaled_descent_is_algorithm_1_with_the_rate_of_the_problem():
    """The first steps, by hand: W ← W − η∇f from the perturbation that Algorithm 1 makes at W = 0."""
    cell = Descent(1, 3, 2, 0, 1, 40, 1)
    with jax.enable_x64(True):
        found = phases.run(cell)
        X, _, y = _perturbed.problem(cell, 0)
        from offtangent.networks import QuadraticNet
        from offtangent.theory import QuadraticRisk
        from offtangent.theory.ge_wang_zhao.landscape import interpolant
        from offtangent.training.perturbed import algorithm1

        risk = QuadraticRisk(QuadraticNet(2, 6), jnp.asarray(X), jnp.asarray(y))
        rate = 1 / float(np.linalg.eigvalsh(risk.hessian(jnp.asarray(interpolant(risk.net, X, y))))[-1])
        zero = jnp.zeros((2, 6))
        optimiser = algorithm1(_perturbed.SETTINGS, key=jax.random.key(0))
        shaken, _ = optimiser.update(zero, optimiser.init(zero), zero, value=risk(zero))
        W = rate**0.5 * shaken
        for _ in range(40):
            W = W - rate * risk.gradient(W)
        assert float(found["left"][0]) == pytest.approx(float(risk(W)) / (0.25 * np.mean(y**2)), rel=1e-9)
    assert float(found["steps"][0]) == 40


def test_missing_cells_leave_the_others_standing(smoke):
    only = phases.claims(smoke.where(Diagram))
    assert [claim.verdict for claim in only].count("not run here") == 3
    assert phases.claims(Results("smoke", ())) == []
    assert faults.failing(phases, smoke) == set()


def test_what_is_masked_plays_no_part():
    """A network of 4 neurons, 3 inputs and 5 samples, alone and inside a larger table, ends at the same loss."""
    rng = np.random.default_rng(0)
    W, X, y = rng.standard_normal((1, 1, 3, 4)), rng.standard_normal((1, 5, 3)), rng.standard_normal(5)
    larger, rows = rng.standard_normal((1, 1, 4, 8)), rng.standard_normal((1, 7, 4))
    kept = np.array([[1, 1, 0, 0, 1, 1, 0, 0]])
    larger[..., :3, kept[0] == 1] = W
    rows[:, :5, :3], rows[:, :, 3] = X, 0
    used = np.array([[0.2] * 5 + [0.0] * 2])
    arguments = (
        (W, X, y, np.ones((1, 4)), used[:, :5]),
        (larger, rows, np.append(y, [3.0, 4.0]), kept, used),
    )
    alone, inside = (
        float(phases._train(*(jnp.asarray(part, jnp.float32) for part in one), steps=50)[0, 0]) for one in arguments
    )
    assert alone == pytest.approx(inside, rel=1e-5)
    signs = np.array([1, 1, -1, -1])
    assert alone < 0.25 * np.mean((((X[0] @ W[0, 0]) ** 2) @ signs - y) ** 2)


@pytest.mark.parametrize(("axis", "dim", "power"), [("width", 5, 1), ("dimension", 0, 1), ("features", 3, 2)])
def test_capacities_are_those_of_the_theory(axis, dim, power):
    cell = phases.Diagram(axis, (4, 6), (3, 5), dim, power, steps=3, seeds=1)
    for size in cell.sizes:
        more = {"power": power, "features": size} if axis == "features" else {}
        net = memorisation(5, dim or size, width=_diagram.width(cell, size), **more)
        assert (net.most, net.inputs) == (_diagram.capacity(cell, size), _diagram.inputs(cell, size))
