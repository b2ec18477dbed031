"""Held-out predictions, against the losses' definitions."""

import numpy as np
import optax
import pytest
from scipy.special import expit

from offtangent._errors import InputError
from offtangent.regime.scores import Scoring

RNG = np.random.default_rng(0)


def test_classes_are_judged_by_cross_entropy():
    f, y = RNG.normal(size=(20, 3)), RNG.integers(0, 3, 20)
    for labels in (y, np.eye(3)[y], y.astype(float)):
        scoring = Scoring.of(labels, f.shape)
        loss, found = scoring.judge(f)
        assert scoring.loss == "cross-entropy"
        np.testing.assert_allclose(loss, optax.softmax_cross_entropy_with_integer_labels(f, y), rtol=1e-5)
        np.testing.assert_array_equal(found, f.argmax(axis=1) == y)


def test_zero_and_one_for_one_output_are_judged_by_the_logistic_loss():
    f, y = RNG.normal(size=20), RNG.integers(0, 2, 20)
    loss, found = Scoring.of(y, (20,)).judge(f)
    np.testing.assert_allclose(loss, -np.log(np.where(y == 1, expit(f), expit(-f))), rtol=1e-12)
    np.testing.assert_array_equal(found, (f > 0) == (y == 1))


def test_numbers_are_judged_by_their_squares_and_signs_count_as_found():
    f, y = RNG.normal(size=(20, 1)), RNG.normal(size=20)
    loss, found = Scoring.of(y, f.shape).judge(f)
    np.testing.assert_allclose(loss, (f[:, 0] - y) ** 2)
    assert found is None
    loss, found = Scoring.of(np.sign(y), f.shape).judge(f)
    np.testing.assert_array_equal(found, np.sign(f[:, 0]) == np.sign(y))
    loss, found = Scoring.of((y > 0).astype(int), f.shape, "squared").judge(f)
    np.testing.assert_array_equal(found, (f[:, 0] > 0.5) == (y > 0))


def test_a_loss_of_choice_takes_classes_as_ones_among_zeros():
    f, y = RNG.normal(size=(20, 3)), RNG.integers(0, 3, 20)
    loss, found = Scoring.of(y, f.shape, "squared").judge(f)
    np.testing.assert_allclose(loss, ((f - np.eye(3)[y]) ** 2).mean(axis=1))
    np.testing.assert_array_equal(found, f.argmax(axis=1) == y)


def test_models_are_compared_sample_by_sample():
    """Two models that differ on few samples: what is common to them is in no standard error."""
    f, y = RNG.normal(size=(400, 3)), RNG.integers(0, 3, 400)
    other = f.copy()
    other[:8] = np.eye(3)[(y[:8] + 1) % 3] * 10
    network, start, model = Scoring.of(y, f.shape).predictions(f, [0 * f, other])
    right = f.argmax(axis=1) == y
    assert (network.order, start.order, model.order) == (-1, 0, 1)
    assert model.behind == pytest.approx(right[:8].sum() / 400)
    apart = np.where(np.arange(400) < 8, right, 0.0)
    assert model.error == pytest.approx(apart.std(ddof=1) / 20)
    assert network.accuracy - model.accuracy == pytest.approx(model.behind)


@pytest.mark.parametrize(
    ("y", "shape", "loss", "message"),
    [
        (np.arange(5), (4, 3), None, r"have shape \(5,\): expected \(4,\) or \(4, 3\)"),
        (["a"] * 4, (4, 3), None, "np.unique"),
        ([0.0, 1.0, np.nan, 1.0], (4,), None, "NaN or infinite"),
        ([0, 1, 2, 3], (4, 3), None, "a number for each output, or classes"),
        ([0, 1, 2, 1], (4,), "logistic", "0 and 1, or −1 and 1"),
        ([0, 1, 0, 1], (4,), "cross-entropy", "classes 0, 1"),
        ([0, 1, 0, 1], (4,), "hinge", "none of cross-entropy"),
        ([[0], [0, 1], [0], [1]], (4,), None, "equal length"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, shape, loss, message):
    with pytest.raises(InputError, match=message):
        Scoring.of(y, shape, loss)
