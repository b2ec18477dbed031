"""Nichani, Bai & Lee, Taylor models of a standard network, in its smoke profile; and what would be found out."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import data
from offtangent.lab import Results
from offtangent.lab.claims import Verdict
from offtangent.networks import MLP
from offtangent.papers.nichani import taylor
from offtangent.taylor import expand

TINY = taylor.Race("digits", "mlp", 5, 1, samples=12, tests=6, epochs=5, rate=0.02, seed=3, batch=12)


@pytest.fixture(scope="module")
def smoke():
    cells = taylor.cells(taylor.PROFILES["smoke"])
    return Results("smoke", tuple((cell, taylor.run(cell)) for cell in cells))


def test_the_general_claims_hold_and_the_papers_own_images_are_not_run(smoke):
    claims = taylor.claims(smoke)
    assert [claim.verdict for claim in claims] == [Verdict.HOLDS] * 3 + [Verdict.NOT_RUN] * 3
    assert [claim.source for claim in claims[3:]] == ["Section 5, Appendix G"] * 3


OWN = {"data": "cifar10", "classes": taylor.CATS_AND_HORSES, "size": 512, "depth": 4, "epochs": 100, "shuffle": False}


@pytest.mark.parametrize(
    ("change", "outside"),
    [({}, []), ({"shuffle": True}, ["batches"]), ({"epochs": 50}, ["epochs"]), ({"size": 8}, ["channels"])],
)
def test_the_papers_experiment_is_cats_and_horses_in_one_order_for_a_hundred_epochs(smoke, change, outside):
    pairs = tuple((replace(cell, **(OWN | change)), found) for cell, found in smoke)
    claims = taylor.claims(Results("smoke", pairs))
    assert {claim.source for claim in claims} == {"Section 5, Appendix G"}
    assert [claim.verdict for claim in claims] == [Verdict.OUTSIDE if outside else Verdict.HOLDS] * 3
    assert [one.name for one in claims[0].hypotheses if not one.met] == outside


def test_the_paper_profile_is_the_papers_experiment_with_five_seeds():
    (races,) = [taylor.PROFILES["paper"].races]
    assert [race.seed for race in races] == [0, 1, 2, 3, 4]
    assert all((race.classes, race.shuffle, race.epochs) == ((3, 7), False, 100) for race in races)


def test_unshuffled_batches_are_one_step_after_another_on_the_rows_in_order():
    """Two batches of six: an epoch in order is a step on the first half and one on the second, in NumPy."""
    cell = replace(TINY, batch=6, epochs=1, shuffle=False)
    X, y, X_test, y_test = taylor._problem(cell)
    (W, b), (a, c) = jax.tree.map(np.asarray, MLP(64, 5).init(key=jax.random.key(cell.seed)))
    W, b, a, c = (np.asarray(part, np.float64) for part in (W, b, a[:, 0], c))
    for rows in (slice(0, 6), slice(6, 12)):
        hidden = X[rows] @ W + b
        error = 2 * (np.maximum(hidden, 0) @ a + c - y[rows]) / 6
        back = np.outer(error, a) * (hidden > 0)
        W, b, a, c = (
            W - 0.02 * X[rows].T @ back,
            b - 0.02 * back.sum(0),
            a - 0.02 * np.maximum(hidden, 0).T @ error,
            c - 0.02 * error.sum(),
        )
    loss = np.mean((np.maximum(X_test @ W + b, 0) @ a + c - y_test) ** 2)
    assert float(taylor.run(cell).test.sel(model="network", epoch=1)) == pytest.approx(loss, rel=1e-4)


def test_there_are_figures_and_one_seed_says_nothing(smoke):
    assert len(taylor.draw(smoke)) == 3
    alone = Results("smoke", smoke.pairs[:1], complete=False)
    assert taylor.claims(alone) == taylor.draw(alone) == []
    assert all(taylor.cost(cell).flops > 0 and taylor.cost(cell).bytes > 0 for cell, _ in smoke)


def test_all_three_start_as_one_and_learn(smoke):
    for _, found in smoke:
        first, last = found.test.values[0], found.test.values[-1]
        np.testing.assert_allclose(first, first[0], rtol=1e-5)
        assert (found.distance.values[0] < 1e-6).all()
        assert (last < 0.6).all()
        assert (last[0] < last[1:]).all()


def swapped(results):
    """Every number of the linear model under the quadratic one's name, and the other way round."""
    order = ["network", "quadratic", "linear"]
    return Results(
        "smoke",
        tuple((cell, found.sel(model=order).assign_coords(model=list(taylor.MODELS))) for cell, found in results),
    )


def test_a_quadratic_model_worse_than_the_linear_one_would_be_found_out(smoke):
    assert [claim.verdict for claim in taylor.claims(swapped(smoke))[:3]] == [Verdict.FAILS] * 3


def test_the_two_layer_mlp_is_shown_and_not_judged(smoke):
    pairs = tuple((replace(cell, network="mlp"), found) for cell, found in smoke)
    claims = taylor.claims(Results("smoke", pairs))
    assert [claim.verdict for claim in claims[:3]] == [Verdict.OUTSIDE] * 3


def test_a_race_on_full_batches_is_gradient_descent_written_out():
    """The linear model by u ← u − η (2/n) K (u − y), K from the Jacobian; all three after the first step."""
    X, y, X_test, y_test = taylor._problem(TINY)
    net, found = MLP(64, 5), taylor.run(TINY)
    drawn = net.init(key=jax.random.key(3))
    with jax.enable_x64(True):
        start = jax.tree.map(lambda leaf: leaf.astype(np.float64), drawn)
        rows = jnp.asarray(np.concatenate([X, X_test]))
        slopes = jax.jit(jax.jacobian(lambda params: net(params, rows)))(start)
        J = np.concatenate([np.asarray(leaf).reshape(18, -1) for leaf in jax.tree.leaves(slopes)], axis=1)
        u = np.asarray(jax.jit(net)(start, rows))
        step = -0.02 * 2 / 12 * (u[:12] - y)  # of the weights, through the Jacobian
        once = jax.tree.map(lambda leaf, slope: leaf + np.tensordot(step, np.asarray(slope)[:12], 1), start, slopes)
        terms = np.stack(jax.jit(expand(net, start, 2).terms)(once, rows))[:, 12:]
        moved = np.asarray(jax.jit(net)(once, rows))[12:]
    losses = []
    for _ in range(6):
        losses.append([np.mean((u[:12] - y) ** 2), np.mean((u[12:] - y_test) ** 2)])
        u = u - 0.02 * 2 / 12 * J @ (J[:12].T @ (u[:12] - y))
    linear = found.sel(model="linear")
    np.testing.assert_allclose(linear.test, [test for _, test in losses], rtol=1e-3)
    np.testing.assert_allclose(linear.train[1:], [train for train, _ in losses[:5]], rtol=1e-3)  # before each step
    np.testing.assert_allclose(linear.train[0], losses[0][0], rtol=1e-3)

    outputs = np.stack([moved, terms[:2].sum(axis=0), terms.sum(axis=0)])
    np.testing.assert_allclose(found.test[1], ((outputs - y_test) ** 2).mean(axis=1), rtol=1e-4)
    np.testing.assert_array_equal(found.right[1], (outputs * y_test > 0).mean(axis=1))
    away = np.sqrt(((outputs - moved) ** 2).mean(axis=1))
    np.testing.assert_allclose(found.distance[1], away, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(
        found.left_out[1], away[1:], rtol=1e-3, atol=1e-6
    )  # one step: their weights are the same
    parts = np.stack([terms[:2].sum(axis=0), terms[2], terms.sum(axis=0)])
    np.testing.assert_array_equal(found.part_right[1], (parts * y_test > 0).mean(axis=1))


def test_digits_are_standardised_by_the_training_images_and_kept_apart():
    cell = replace(TINY, network="cnn", samples=200, tests=150)
    X, y, X_test, y_test = taylor._problem(cell)
    pixels, labels = data.digits(classes=(3, 8), unit=False)
    assert X.shape == (200, 8, 8, 1)
    assert X_test.shape == (150, 8, 8, 1)
    assert abs(X.mean()) < 1e-12
    assert X.std() == pytest.approx(1)
    back = X_test * pixels[:200].std() + pixels[:200].mean()
    np.testing.assert_allclose(back.reshape(150, 64), pixels[200:350])
    np.testing.assert_array_equal(np.concatenate([y, y_test]), labels[:350])


def test_images_have_their_colours_last_and_shrink_by_means():
    rows = np.random.default_rng(0).standard_normal((2, 3072))
    images = taylor._images(replace(TINY, data="cifar10", shrink=2), rows)
    planes = rows.reshape(2, 3, 32, 32)
    assert images.shape == (2, 16, 16, 3)
    assert images[1, 4, 7, 2] == pytest.approx(planes[1, 2, 8:10, 14:16].mean())


@pytest.mark.skipif(not data.fetch.available("cifar10"), reason="CIFAR-10 is not here")
def test_cifars_colours_are_standardised():
    X, y, X_test, _ = taylor._problem(replace(TINY, data="cifar10", network="cnn", samples=2000, tests=100))
    assert np.abs(X.mean(axis=(0, 1, 2))).max() < 0.5
    assert np.abs(X.std(axis=(0, 1, 2)) - 1).max() < 0.2
    assert set(y) == {-1.0, 1.0}
    assert X_test.shape == (100, 32, 32, 3)


def test_a_race_has_the_same_numbers_where_float64_is_the_default():
    plain = taylor.run(TINY)
    with jax.enable_x64(True):
        assert taylor.run(TINY).identical(plain)
