"""A training followed along its checkpoints: what is stored, and what it depends on."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.lab.trainings import KeptInFolder
from offtangent.regime import Training, measure_regime
from offtangent.regime.course import follow
from offtangent.regime.measure import Start
from offtangent.regime.measured import Regime, bootstrap

X = jax.random.normal(jax.random.key(0), (20, 3))
Y = np.arange(20) % 3


def f(W, x):
    return jnp.tanh(x @ W["in"]) @ W["out"]


def points(count=3):
    keys = jax.random.split(jax.random.key(1), 4)
    start = {"in": jax.random.normal(keys[0], (3, 5)), "out": jax.random.normal(keys[1], (5, 3))}
    way = {"in": jax.random.normal(keys[2], (3, 5)), "out": jax.random.normal(keys[3], (5, 3))}
    return [jax.tree.map(lambda a, b, k=k: a + 0.1 * k * b, start, way) for k in range(count)]


@pytest.fixture
def run():
    return Training(f, points(), X, Y, X_test=X[:7], y_test=Y[:7], steps=[0, 10, 100])


def test_each_checkpoint_is_what_measuring_it_alone_gives(run):
    found = follow(run)
    assert found.names == ("10", "100")
    for one, params in zip(found.regimes, run.checkpoints[1:], strict=True):
        alone = measure_regime(f, run.checkpoints[0], params, X, Y, held_out=(run.X_test, run.y_test))
        assert one.summary() == alone.summary()


def test_what_is_stored_is_read_again_and_means_the_same(run, tmp_path, monkeypatch):
    first = follow(run, kept=KeptInFolder.open(tmp_path))
    told = []
    monkeypatch.setattr(Start, "measure", lambda *_: told.append(1))
    again = follow(run, kept=KeptInFolder.open(tmp_path))
    assert told == []
    assert json.dumps(again.summary()) == json.dumps(first.summary())


def test_a_run_that_was_ended_goes_on_where_it_was(run, tmp_path, monkeypatch):
    measure, count = Start.measure, [0]

    def ends(self, params):
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt
        return measure(self, params)

    monkeypatch.setattr(Start, "measure", ends)
    with pytest.raises(KeyboardInterrupt):
        follow(run, kept=KeptInFolder.open(tmp_path))
    follow(run, kept=KeptInFolder.open(tmp_path))
    assert count == [3]


def changed(run, what):
    start, middle, end = run.checkpoints
    given = {"X": run.X, "y": run.y, "X_test": run.X_test, "y_test": run.y_test}
    network, options = run.f, {}
    if what == "network":

        def network(W, x):
            return jnp.tanh(1.01 * (x @ W["in"])) @ W["out"]

    elif what == "constant":
        shift = jnp.ones(3) / 100

        def network(W, x):
            return f(W, x) + shift * W["out"].sum()

    elif what == "start":
        start = middle
        middle = run.checkpoints[0]
    elif what == "order":
        options = {"order": 3}
    elif what == "seed":
        options = {"seed": 1, "samples": 10}
    elif what == "labels":
        given["y"] = (np.arange(20) + 1) % 3
    elif what == "held-out labels":
        given["y_test"] = (np.arange(7) + 1) % 3
    return Training(network, [start, middle, end], **given), options


@pytest.mark.parametrize("what", ["network", "constant", "start", "order", "seed", "labels", "held-out labels"])
def test_what_numbers_depend_on_is_measured_again(run, tmp_path, monkeypatch, what):
    follow(run, kept=KeptInFolder.open(tmp_path))
    measure, count = Start.measure, []

    def counted(self, params):
        count.append(1)
        return measure(self, params)

    monkeypatch.setattr(Start, "measure", counted)
    other, options = changed(run, what)
    follow(other, kept=KeptInFolder.open(tmp_path), **options)
    assert len(count) == 2


def test_a_damaged_file_is_measured_again(run, tmp_path):
    first = follow(run, kept=KeptInFolder.open(tmp_path))
    for path in (tmp_path / "cells").rglob("*.npz"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert follow(run, kept=KeptInFolder.open(tmp_path)).summary() == first.summary()
    assert len(list((tmp_path / "damaged").iterdir())) == 2


def test_infinite_numbers_survive_json():
    start = {"in": jnp.zeros((3, 5)), "out": jnp.ones((5, 3))}
    found = follow(Training(f, [start, points()[1]], X)).last
    assert found.movements[0].relative == float("inf")
    assert Regime.read(json.loads(json.dumps(found.summary()))).summary() == found.summary()
    assert Regime.read(json.loads(json.dumps(found.summary()))).movements == found.movements


def test_the_bootstrap_covers_a_known_ratio():
    """Of 200 draws of 80 samples, the interval covers √(E left / E change) = 1/2 in about 95 %: 3 σ is 4.6 points."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(200):
        change = rng.exponential(size=80)
        low, high = bootstrap(change * rng.uniform(0, 0.5, 80), change)
        hits += low <= 0.5 <= high
    assert abs(hits / 200 - 0.95) < 0.06


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"checkpoints": points(1)}, "one entry"),
        ({"checkpoints": []}, "no checkpoints"),
        ({"checkpoints": points()[0]}, "expected a list of parameters"),
        ({"steps": [1, 2]}, "2 entries for 3 checkpoints"),
        ({"X_test": None}, "go together"),
        ({"y": Y[:5]}, "expected a label for each"),
        ({"loss": "hinge"}, "none of"),
        ({"X": X[:0], "y": None}, "no samples"),
        ({"X_test": X[:3], "y_test": [0, 1, 2, 1]}, "expected a label for each"),
        ({"X": {"a": X, "b": X[:2]}}, "first axis"),
        ({"checkpoints": [*points()[:2], {"in": jnp.ones((3, 5))}]}, "another structure"),
        ({"checkpoints": [*points()[:2], {"in": jnp.ones((3, 4)), "out": jnp.ones((5, 3))}]}, r"shape \(3, 4\)"),
        ({"checkpoints": [{"in": jnp.full((3, 5), jnp.nan), "out": jnp.ones((5, 3))}, points()[1]]}, "NaN"),
    ],
)
def test_a_training_that_does_not_fit_together_is_refused(given, message):
    whole = {"checkpoints": points(), "X": X, "y": Y, "X_test": X[:7], "y_test": Y[:7], "steps": None}
    with pytest.raises(InputError, match=message):
        follow(Training(f, **whole | given))


def test_few_samples_are_drawn_with_their_labels(run):
    some = run.drawn(5, seed=3)
    assert len(some.X) == len(some.y) == len(some.X_test) == 5
    for x, y in zip(some.X, some.y, strict=True):
        row = int(np.flatnonzero((np.asarray(X) == np.asarray(x)).all(axis=1))[0])
        assert Y[row] == y
