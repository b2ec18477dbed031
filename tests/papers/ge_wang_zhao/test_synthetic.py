"""Ge, Wang & Zhao, the synthetic example and the phase diagram at the smallest size; wrong numbers are found out."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import faults
from offtangent.lab import Results
from offtangent.papers.ge_wang_zhao import _diagram, _paths, phases, synthetic
from offtangent.theory.ge_wang_zhao.capacity import memorisation


@pytest.fixture(scope="module")
def smoke():
    cells = synthetic.cells(synthetic.PROFILES["smoke"])
    return Results("smoke", tuple((cell, synthetic.run(cell)) for cell in cells))


failing = partial(faults.failing, synthetic)


def changed(results, method, **faults):
    pairs = tuple(
        (cell, data.assign({name: fault(data) for name, fault in faults.items()}) if cell.method == method else data)
        for cell, data in results
    )
    return failing(Results("smoke", pairs))


def test_every_claim_holds_and_there_are_figures(smoke):
    claims = synthetic.claims(smoke)
    assert {claim.verdict for claim in claims} == {"holds"}
    assert len(claims) == 8
    assert len(synthetic.draw(smoke)) == 2
    assert all(synthetic.cost(cell).flops > 0 and synthetic.cost(cell).bytes > 0 for cell, _ in smoke)


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("gradient descent", "Figures 2, 5"),
        ("algorithm 1", "Theorem 4"),
        ("negative curvature", "Lemma 3"),
        ("closed form", "Theorem 1"),
    ],
)
def test_a_way_that_did_not_arrive_would_be_found_out(smoke, method, source):
    found = changed(smoke, method, loss=lambda data: data["loss"] + 1e-3, bound=lambda _: 1.0)
    assert source in found


def test_descent_that_left_the_saddle_by_itself_would_be_found_out(smoke):
    assert changed(smoke, "from the saddle", loss=lambda data: data["loss"] * 0.99) == {"Section 2.3"}


def test_a_loss_above_lemma_1s_bound_and_samples_not_in_general_position_would_be_found_out(smoke):
    assert changed(smoke, "gradient descent", bound=lambda data: data["loss"][-1] / 2) == {"Lemmas 1, 4"}
    assert changed(smoke, "closed form", lower=lambda _: 0.0) == {"Theorem 4"}
    assert changed(smoke, "negative curvature", share=lambda _: 0.9) == {"Lemmas 3, 4"}


def test_samples_are_the_papers():
    X, y = _paths.sample(2000, 5, 0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    assert np.abs(y).max() <= 1
    assert abs(y.var() - 1 / 3) <= 5 * (4 / 45 / len(y)) ** 0.5  # the variance of y² is 4/45


@pytest.fixture(scope="module")
def diagram():
    (cell,) = phases.cells(phases.PROFILES["smoke"])
    return Results("smoke", ((cell, phases.run(cell)),))


def test_the_phase_diagram_agrees_with_counting(diagram):
    verdicts = [claim.verdict for claim in phases.claims(diagram)]
    assert verdicts == ["holds", "holds", "outside the hypothesis"]
    (figure,) = phases.draw(diagram)
    assert len(figure.plot.data) == 3
    ((cell, _),) = diagram.pairs
    assert phases.cost(cell).flops > 0


@pytest.mark.parametrize(("value", "failed"), [(1.0, "Theorem 1"), (0.0, "Section 4")])
def test_networks_that_memorised_nothing_or_everything_would_be_found_out(diagram, value, failed):
    ((cell, data),) = diagram.pairs
    wrong = Results("smoke", ((cell, data.assign(left=0 * data["left"] + value)),))
    assert {claim.source for claim in phases.claims(wrong) if claim.verdict == "fails"} == {failed}


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
