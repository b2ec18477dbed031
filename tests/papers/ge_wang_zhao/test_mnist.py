"""Ge, Wang & Zhao, images learnt by heart: digits at the smallest size; and that wrong numbers would be found out."""

from dataclasses import replace
from functools import partial

import numpy as np
import optax
import pytest

import faults
from offtangent.lab import Results
from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao import mnist


@pytest.fixture(scope="module")
def smoke():
    return Results("smoke", tuple((cell, mnist.run(cell)) for cell in mnist.cells(mnist.PROFILES["smoke"])))


failing = partial(faults.failing, mnist)


def test_noise_lets_the_digits_be_learnt_by_heart(smoke):
    claims = mnist.claims(smoke)
    told = {(claim.source, str(claim.verdict)) for claim in claims}
    held = {(source, "holds") for source in ("Figure 6", "Figures 3a, 7", "Appendix A.2")}
    assert told == {*held, ("Appendix A.1", "not run here")}
    assert len(claims) == 5
    assert len(mnist.draw(smoke)) == 1
    assert all(mnist.cost(cell).flops > 0 and mnist.cost(cell).bytes > 0 for cell, _ in smoke)


def test_a_network_that_did_not_learn_or_did_not_need_noise_would_be_found_out(smoke):
    high = {"train": lambda *_: 1.0, "test": lambda _, data: data["guess"] + 1}
    assert faults.changed(mnist, smoke, mnist.Memory, **high) == {"Figure 6", "Figures 3a, 7", "Appendix A.2"}


def test_a_constant_rate_that_does_as_well_would_be_found_out(smoke):
    ((cell, data),) = smoke.where(mnist.Memory, setting="noisy")
    for loss, failed in ((1e-3, set()), (1e-6, {"Appendix A.1"})):
        steady = (replace(cell, decay=1.0), data.assign(train=loss))
        assert failing(Results("smoke", (*smoke.pairs, steady))) == failed


def test_the_papers_number_is_asked_of_figure_7_alone_and_with_either_factor(smoke):
    """F = 4·10⁻⁶ is below 10⁻⁵, and the mean square 4f is not; with random labels the paper has no number."""
    small = tuple((cell, data) for cell, data in smoke.where(mnist.Memory, setting="noisy", decay=0.3))
    for labels, failed in (("true", {"Figures 3a, 7"}), ("random", set())):
        pairs = tuple((replace(cell, labels=labels), data.assign(train=4e-6)) for cell, data in small)
        assert failing(Results("smoke", pairs)) == failed
    assert failing(Results("smoke", tuple((cell, data.assign(train=2.4e-6)) for cell, data in small))) == set()


def test_samples_that_noise_leaves_where_they_were_would_be_found_out(smoke):
    assert faults.changed(mnist, smoke, mnist.Position, lower=lambda *_: 1e-9) == {"Appendix A.2"}


def test_the_page_says_that_images_are_in_general_position_without_noise(smoke):
    (claim,) = [one for one in mnist.claims(smoke) if "singular" in one.statement]
    assert "positive without noise, too" in claim.note
    zero = tuple(
        (cell, data.assign(lower=0 * data["lower"]) if cell == _plain(smoke) else data) for cell, data in smoke
    )
    (claim,) = [one for one in mnist.claims(Results("smoke", zero)) if "singular" in one.statement]
    assert "positive without noise, too" not in claim.note


def _plain(results):
    return results.where(mnist.Position, setting="plain").first


def test_noise_that_nobody_looked_at_is_told(smoke):
    pairs = tuple((replace(cell, seed=2), data) for cell, data in smoke.where(mnist.Memory)) + tuple(smoke)
    (claim,) = [one for one in mnist.claims(Results("smoke", pairs)) if "singular" in one.statement]
    assert "The noise of seeds 2, with which networks were trained, was not looked at" in claim.note
    several = replace(mnist.PROFILES["smoke"], seeds=(0, 1, 2))
    cells = [cell for cell in mnist.cells(several) if isinstance(cell, mnist.Position)]
    assert [(cell.setting, cell.seed) for cell in cells] == [("plain", 0), *(("noisy", seed) for seed in (0, 1, 2))]


def test_without_a_lower_bound_the_hypothesis_is_not_judged(smoke):
    pairs = tuple((cell, data.assign(lower=0.0) if type(cell) is mnist.Position else data) for cell, data in smoke)
    (claim,) = [one for one in mnist.claims(Results("smoke", pairs)) if "singular" in one.statement]
    assert claim.verdict == "not run here"
    assert "σ_min is at most 0." in claim.note


@pytest.mark.parametrize("setting", ["plain", "noisy", "features"])
def test_the_smallest_singular_value_is_that_of_the_explicit_tensors(setting):
    cell = mnist.Position("digits", setting, 150, 10, 30, 0)
    X, *_ = mnist._inputs(cell)
    truth = np.linalg.svd(np.einsum("ni,nj->nij", X, X).reshape(150, -1), compute_uv=False)
    found = mnist.run(cell)
    assert float(found["lower"]) <= truth[-1] <= float(found["upper"])
    assert float(found["upper"]) == pytest.approx(truth[-1], rel=1e-5)
    assert float(found["largest"]) == pytest.approx(truth[0], rel=1e-9)


def test_three_layers_are_judged_next_to_the_best_that_two_layers_can_do(smoke):
    ((cell, data), *_) = smoke.where(mnist.Memory)
    features = replace(cell, setting="features")
    for loss, failed in ((0.19, set()), (0.2, {"Figures 3b, 4b, 8, 10"})):
        pairs = ((features, data.assign(train=loss, least=0.2)),)
        assert failing(Results("smoke", pairs)) == failed


def test_the_best_that_two_layers_can_do_is_a_least_squares_fit_of_all_products():
    cell = replace(mnist.cells(mnist.PROFILES["smoke"])[-1], setting="features")
    X, y, *_ = mnist._directions(cell)
    products = (X[:, :, None] * X[:, None]).reshape(len(X), -1)
    left = y - products @ np.linalg.lstsq(products, y, rcond=None)[0]
    assert mnist._least(cell, y) == pytest.approx(0.25 * np.mean(left**2), rel=1e-9)
    assert np.isnan(mnist._least(replace(cell, setting="noisy"), y))


@pytest.mark.parametrize(("source", "scale"), [("mnist", 0.15), ("digits", (3 * 30) ** -0.25)])
def test_the_papers_features_have_the_papers_scale(monkeypatch, source, scale):
    given, gaussian = {}, mnist.PolynomialNet.gaussian

    def noted(**words):
        given.update(words)
        return gaussian(**words)

    monkeypatch.setattr(mnist.PolynomialNet, "gaussian", staticmethod(noted))
    monkeypatch.setattr(mnist, "_directions", lambda _: (np.ones((2, 10)), np.ones(2), np.ones((1, 10)), np.ones(1)))
    mnist._inputs(mnist.Position(source, "features", 2, 10, 30, 0))
    assert given["scale"] == pytest.approx(scale)


def test_several_seeds_are_judged_together_by_their_worst_and_by_an_interval(smoke):
    pairs = [(cell, data) for cell, data in smoke if isinstance(cell, mnist.Memory)]
    several = [(replace(cell, seed=seed), data) for cell, data in pairs for seed in range(3)]
    together = mnist.claims(Results("smoke", tuple(several)))
    assert len(together) == len(mnist.claims(Results("smoke", tuple(pairs))))
    assert any(claim.interval is not None for claim in together)
    several[-1] = (several[-1][0], several[-1][1].assign(train=1.0))
    assert "Figures 3a, 7" in failing(Results("smoke", tuple(several)))


@pytest.mark.parametrize("setting", ["plain", "noisy", "features"])
def test_samples_are_what_the_setting_says(setting):
    cell = replace(mnist.cells(mnist.PROFILES["smoke"])[-1], setting=setting)
    (X, y), (X_test, y_test) = mnist._samples(cell)
    assert X.shape == (150, 30 if setting == "features" else 64)
    assert len(X_test) == len(y_test) == 1797 - 150
    assert set(y) == set(range(10))
    lengths = np.linalg.norm(X, axis=1)
    if setting == "plain":
        np.testing.assert_allclose(lengths, 1.0)
    elif setting == "noisy":  # E‖x + ξ‖² = 1 + 0.28²
        assert np.mean(lengths**2) == pytest.approx(1 + 0.28**2, abs=0.02)
        np.testing.assert_allclose(np.linalg.norm(X_test, axis=1), 1.0)
    else:
        assert (X >= 0).all()
    random = mnist._samples(replace(cell, labels="random"))[0][1]
    assert set(random) <= set(range(10))
    assert (random != y).mean() > 0.7


def test_a_curve_is_the_mean_of_twenty_of_every_fifth_step(smoke):
    ((cell, data), *_) = smoke.where(mnist.Memory)
    steps = data["step"].values
    assert steps[0] == 5 * 19
    assert steps[-1] <= cell.epochs * (cell.samples // 128)
    assert float(data["loss"][-1]) == pytest.approx(float(data["train"]), rel=0.3)


def test_a_second_longer_run_is_told_beside_the_first(smoke):
    longer = replace(mnist.PROFILES["smoke"], runs=(("features", "true"), ("features", "random")), longer=8000)
    cells = [cell for cell in mnist.cells(longer) if isinstance(cell, mnist.Memory)]
    assert [cell.epochs for cell in cells] == [4000, 4000, 8000, 8000]
    ((_, data), *_) = smoke.where(mnist.Memory)
    losses = (1e-6, 11e-6, 1e-7, 2e-7)
    pairs = tuple((cell, data.assign(train=loss, least=0.2)) for cell, loss in zip(cells, losses, strict=True))
    assert len(mnist.draw(Results("smoke", pairs))) == 2
    (claim,) = [one for one in mnist.claims(Results("smoke", pairs)) if one.source == "Figures 3b, 4b, 8, 10"]
    assert claim.value == pytest.approx(11e-6 / 0.2)
    assert "after 4000 epochs random labels have 11 times the f of true ones" in claim.note
    assert "after 8000 epochs random labels have 2 times the f of true ones" in claim.note


def test_a_rate_that_does_not_fall_is_the_schedule_without_decay(monkeypatch):
    constant = mnist.cells(replace(mnist.PROFILES["smoke"], steady=True))[-1]
    assert constant.decay == 1.0
    assert (constant.setting, constant.labels) == ("noisy", "true")
    rates = {}

    def noted(schedule):
        rates[len(rates)] = [float(schedule(step)) for step in (0, 10, 100)]
        return optax.sgd(1e-9)

    monkeypatch.setattr(mnist.optax, "adam", noted)
    X, y = np.ones((128, 64)), np.zeros(128)
    for decay in (1.0, 0.3):
        mnist.learn(replace(constant, decay=decay, epochs=60), QuadraticNet(64, 200), X, y)
    assert rates[0] == pytest.approx([0.01] * 3)
    assert rates[1] == pytest.approx([0.01, 0.003, 0.01 * 0.3**10])
