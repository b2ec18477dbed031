"""The nine methods of Figure 2, next to the same done by hand: one network, one step, one ridge after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.papers.allen_zhu_li import _methods, _regressions
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.training.grids import Search

SMALL = _methods.target("small", 0.3, 1.0)
RATES, DECAYS = (0.1, 0.4), (0.0, 0.02)
PARTS = ("train", "choose", "test")


def single(name, problem, width):
    """The network of a seed."""
    return _methods.network(name, problem.function, width, key=jax.random.fold_in(jax.random.key(problem.seed), 1))


def error(net, params, X, y):
    """E‖out − y‖² over some samples."""
    return jnp.mean(jnp.sum((net(params, X) - y) ** 2, axis=1))


@jax.jit
def by_hand(net, params, speed, rate, decay, X, y):
    """A step of ½ E‖out − y‖² by a full batch: momentum 0.9, a decay of all weights."""
    gradient = jax.grad(lambda params: 0.5 * error(net, params, X, y))(params)
    initial = _methods.initial(net)
    speed = jax.tree.map(lambda v, g, w0, w: 0.9 * v + g + decay * (w0 + w), speed, gradient, initial, params)
    return jax.tree.map(lambda w, v: w - rate * v, params, speed), speed


@pytest.mark.parametrize("name", _methods.NETWORKS)
def test_every_network_of_a_grid_is_the_one_trained_by_hand(name, monkeypatch):
    """With 50 samples a batch is all of them, and 4 + 4 epochs are 8 steps: a tenth of the rate from halfway on."""
    monkeypatch.setattr(_methods, "search", lambda evaluate, *_, by: Search(RATES, DECAYS, evaluate(RATES, DECAYS), by))
    problems = [_methods.Problem(SMALL, 50, seed) for seed in range(2)]
    found = _methods.descend(name, problems, width=6, epochs=4)
    measured = jax.jit(error)
    for seed, problem in enumerate(problems):
        net = single(name, problem, 6)
        rows = {part: [jnp.asarray(one, jnp.float32) for one in problem.rows(part)] for part in PARTS}
        for i, rate in enumerate(RATES):
            for j, decay in enumerate(DECAYS):
                params = speed = net.origin
                for step in range(8):
                    slow = 1.0 if step < 4 else 0.1
                    params, speed = by_hand(net, params, speed, rate * slow, decay, *rows["train"])
                for part in PARTS:
                    expected = float(measured(net, params, *rows[part]))
                    assert found.tables[part][i, j, seed] == pytest.approx(expected, rel=1e-4)


def test_errors_in_parts_are_those_of_all_samples_at_once():
    problems = [_methods.Problem(SMALL, 2300, seed) for seed in range(2)]
    nets, rows = _methods.together("2layer", problems, 4)
    origin = jax.tree.map(lambda leaf: jnp.zeros((1, 1, *leaf.shape)), _methods.initial(nets))
    whole = _methods.stacked(nets, origin, *(jnp.asarray(one) for one in rows["train"]))
    np.testing.assert_allclose(_methods.errors(nets, origin, *rows["train"]), whole, rtol=1e-5)


def test_batches_are_of_50_and_epochs_as_many_as_asked_for_twice(monkeypatch):
    asked = []

    def train(*arguments, **words):
        asked.append(words)
        return _methods_train(*arguments, **words)

    _methods_train = _methods.train
    monkeypatch.setattr(_methods, "train", train)
    monkeypatch.setattr(
        _methods, "search", lambda evaluate, *_, by: Search((0.1,), (0.0,), evaluate((0.1,), (0.0,)), by)
    )
    _methods.descend("2layer", [_methods.Problem(SMALL, 120, 0)], width=4, epochs=3)
    ((batch, steps),) = [(words["batch"], words["steps"]) for words in asked]
    assert (batch, steps) == (50, 3 * 2 + 3 * 2)  # two batches an epoch, and 20 samples that wait for the next shuffle


@pytest.mark.parametrize("draw", [_methods.Problem(SMALL, 500, 0).rows, lambda part: of_product(part)])
def test_samples_for_training_choosing_and_testing_are_three_draws(draw):
    """Of 2^16 or 2^30 corners 3500 draws share a few at the most; the same draw would share them all."""
    drawn = {part: {row.tobytes() for row in np.asarray(draw(part)[0], float)} for part in PARTS}
    for one, other in (("train", "choose"), ("train", "test"), ("choose", "test")):
        assert len(drawn[one] & drawn[other]) < 0.1 * len(drawn[one])


def of_product(part):
    return Product(30, 4, 0.3, 0).sample(500, part)


def test_1000_samples_choose_and_2000_others_test_with_labels_of_the_target():
    problem = _methods.Problem(SMALL, 50, 3)
    for part, count in (("train", 50), ("choose", 1000), ("test", 2000)):
        X, y = problem.rows(part)
        F = np.stack([X[:, 2 * i] * X[:, 2 * i + 1] for i in range(4)], axis=1)
        assert len(X) == count
        np.testing.assert_allclose(y, F + 0.3 * F.prod(axis=1, keepdims=True))


@pytest.mark.parametrize("name", _methods.NETWORKS)
@pytest.mark.parametrize("kind", [" (NTK)", " (last)"])
def test_a_kernel_s_errors_are_those_of_ridge_regression_on_its_features_from_the_network_s_start(
    name, kind, monkeypatch
):
    """(NTK): labels less f₀, on all derivatives, added to f₀. (last): labels, on what A acts on."""
    paths = []
    original = _regressions.path
    monkeypatch.setattr(_regressions, "path", lambda *args: paths.append((args[0], original(*args))) or paths[-1][1])
    problem = _methods.Problem(SMALL, 10, 1)
    told = _methods.regress(name, kind, problem, width=5)
    ((K, path),) = paths
    net = single(name, problem, 5)
    parts = {part: _features(net, kind, *problem.rows(part)) for part in PARTS}
    (J, start, Y), (C, at_c, to_choose), (T, at_t, to_test) = parts.values()
    errors = []
    for ridge in path.ridges * np.trace(K) / len(K):
        theta = np.linalg.solve(J.T @ J + ridge * np.eye(J.shape[1]), J.T @ (Y - start))
        errors.append([((M @ theta + f - y) ** 2).sum() for M, f, y in ((C, at_c, to_choose), (T, at_t, to_test))])
    errors = np.array(errors) / [1000, 2000]
    chosen = errors[:, 0].argmin()
    assert told["test"] == pytest.approx(errors[chosen, 1], rel=1e-3)
    assert told["best"] == pytest.approx(errors[:, 1].min(), rel=1e-3)


def _features(net, kind, X, Y):
    """Features as rows, what is there before training, and labels: of every output by itself for (NTK)."""
    inputs = jnp.asarray(X, jnp.float32)
    if kind == " (last)":
        features = np.asarray(net.features(net.origin, inputs), float)
        return features / np.sqrt(_scale(net, inputs)), np.zeros_like(Y), Y
    derivatives = jax.jit(jax.jacfwd(lambda params: net(params, inputs).ravel()))(net.origin)
    rows = [np.asarray(leaf, float).reshape(Y.size, -1) for leaf in jax.tree.leaves(derivatives)]
    return np.concatenate(rows, axis=1), np.asarray(net(net.origin, inputs), float).reshape(-1, 1), Y.reshape(-1, 1)


def _scale(net, inputs):
    """What the conjugate kernel divides by."""
    features = np.asarray(net.features(net.origin, inputs[:1]), float)
    return float((features**2).sum() / _methods.empirical_conjugate(net.features, net.origin, inputs[:1])[0, 0])
