"""Ge, Wang & Zhao, the synthetic example at the smallest size; wrong numbers are found out."""

from functools import partial

import numpy as np
import pytest

import faults
from offtangent.lab import Results
from offtangent.papers.ge_wang_zhao import _paths, synthetic


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


def test_every_claim_holds_but_practical_settings_which_are_outside(smoke):
    claims = synthetic.claims(smoke)
    outside = [claim for claim in claims if claim.verdict != "holds"]
    assert [claim.source for claim in outside] == ["Theorem 4, practical settings"]
    assert [one.name for one in outside[0].hypotheses if not one.met] == ["t_thres"]
    assert outside[0].met
    identities = [claim.source for claim in claims if claim.kind == "identity"]
    assert identities == ["Section 2.3", "Lemmas 1, 4"]
    assert len(claims) == 8
    assert len(synthetic.draw(smoke)) == 2
    assert all(synthetic.cost(cell).flops > 0 and synthetic.cost(cell).bytes > 0 for cell, _ in smoke)


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("gradient descent", "Figures 2, 5"),
        ("noisy descent", "Section 2.3"),
        ("negative curvature", "Lemma 3"),
        ("closed form", "Theorem 1"),
    ],
)
def test_a_way_that_did_not_arrive_would_be_found_out(smoke, method, source):
    found = changed(smoke, method, loss=lambda data: data["loss"] + 1e-3, bound=lambda _: 1.0)
    assert source in found


def test_descent_that_left_the_saddle_by_itself_would_be_found_out(smoke):
    assert changed(smoke, "from the saddle", loss=lambda data: data["loss"] * 0.99) == {"Section 2.3"}


def test_noise_at_every_step_is_what_leaves_the_saddle(smoke):
    ((_, still),) = smoke.where(method="from the saddle")
    ((_, shaken),) = smoke.where(method="noisy descent")
    assert float(shaken["loss"][0]) == float(still["loss"][0])
    assert float(shaken["loss"][-1]) < 1e-5 * float(still["loss"][-1])
    old = Results("smoke", tuple(pair for pair in smoke if pair[0].method != "noisy descent"))
    (claim,) = [claim for claim in synthetic.claims(old) if claim.verdict == "not run here"]
    assert claim.source == "Section 2.3"


def test_a_loss_above_lemma_1s_bound_and_samples_not_in_general_position_would_be_found_out(smoke):
    assert changed(smoke, "gradient descent", bound=lambda data: data["loss"][-1] / 2) == {"Lemmas 1, 4"}
    assert changed(smoke, "negative curvature", share=lambda _: 0.9) == {"Lemmas 3, 4"}
    pairs = tuple((cell, data.assign(lower=0.0)) for cell, data in smoke)
    outside = [one for one in synthetic.claims(Results("smoke", pairs)) if one.verdict == "outside the hypothesis"]
    assert {one.source for one in outside} == {
        "Theorem 1",
        "Lemma 3",
        "Lemmas 3, 4",
        "Lemmas 1, 4",
        "Theorem 4, practical settings",
    }


def test_samples_are_the_papers():
    X, y = _paths.sample(2000, 5, 0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    assert np.abs(y).max() <= 1
    assert abs(y.var() - 1 / 3) <= 5 * (4 / 45 / len(y)) ** 0.5  # the variance of y² is 4/45
