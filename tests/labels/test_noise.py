"""The bound and the estimate of label noise, against planted noise."""

import numpy as np
import pytest
from scipy.special import ndtri

from offtangent._errors import InputError
from offtangent.data import digits, preprocess
from offtangent.kernels import relu_hidden
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.regression import LeaveOneOut
from offtangent.labels.noise import InverseMoments, noise_bound, noise_estimate, noise_variance_bound


def flipped(y, p, rng):
    return np.where(rng.random(y.shape) < p, -y, y)


@pytest.fixture(scope="module")
def easy():
    """Digits 0 and 1: H⁻¹ and true labels of small complexity, where the bound is tight."""
    X, y = digits(classes=(0, 1))
    Z = preprocess(X, "standardised", bias=True)
    return Inverse.of(relu_hidden.exact(Z)), y


def test_the_mean_of_the_quadratic_is_the_formula(easy):
    """E[ỹᵀGỹ] = (1 − 2p)² yᵀGy + 4p(1 − p) tr G, within four standard errors of 400 draws."""
    G, y = easy
    rng, p = np.random.default_rng(0), 0.2
    y = rng.choice([-1.0, 1.0], len(y))  # both terms count
    draws = G.quadratic(np.stack([flipped(y, p, rng) for _ in range(400)], axis=1))
    expected = (1 - 2 * p) ** 2 * G.quadratic(y)[0] + 4 * p * (1 - p) * G.trace
    assert abs(draws.mean() - expected) < 4 * draws.std() / 20


@pytest.mark.parametrize("p", [0.02, 0.1, 0.3, 0.45])
def test_the_bound_holds_as_often_as_it_says_even_where_it_is_tight(easy, p):
    """99 % of 300 draws: at most 9 misses, which more than 1 % have with probability 10⁻³."""
    G, y = easy
    moments, rng = InverseMoments.of(G), np.random.default_rng(1)
    draws = G.quadratic(np.stack([flipped(y, p, rng) for _ in range(300)], axis=1))
    assert sum(noise_bound(draw, moments, even=True) < p for draw in draws) <= 9


def test_the_bound_is_close_on_easy_labels_and_loose_on_hard_ones(easy):
    G, y = easy
    moments, rng = InverseMoments.of(G), np.random.default_rng(2)
    noisy = flipped(y, 0.05, rng)
    assert noise_bound(G.quadratic(y)[0], moments, even=True) < 0.03
    assert 0.05 < noise_bound(G.quadratic(noisy)[0], moments, even=True) < 0.15
    coins = rng.choice([-1.0, 1.0], len(y))
    assert noise_bound(G.quadratic(coins)[0], moments, even=True) == 0.5


def test_the_bound_of_several_classes_holds_wherever_wrong_labels_go():
    X, y = digits(samples=500)
    G = Inverse.of(relu_hidden.exact(preprocess(X, "standardised", bias=True)))
    moments, rng, p = InverseMoments.of(G), np.random.default_rng(3), 0.1
    for spread in (1, 9):  # to the next class, or to any other
        for _ in range(30):
            wrong = np.where(rng.random(500) < p, (y + rng.integers(1, spread + 1, 500)) % 10, y)
            quadratic = G.quadratic((wrong[:, None] == np.arange(10)).astype(float)).sum()
            assert p < noise_bound(quadratic, moments, classes=10, even=True) < 0.5


def test_moments_are_those_of_the_eigenvalues_and_add_up_over_blocks(easy):
    G, _ = easy
    values = np.linalg.eigvalsh(G @ np.eye(len(G)))
    found = InverseMoments.of(G)
    np.testing.assert_allclose([found.trace, found.row_squares.sum()], [values.sum(), (values**2).sum()], rtol=1e-8)
    np.testing.assert_allclose(found.largest, values[-1], rtol=1e-2)
    twice = found + found
    assert (twice.trace, twice.largest) == (2 * found.trace, found.largest)


def test_the_variance_of_noise_in_numbers_is_bounded(easy):
    G, y = easy
    moments, rng = InverseMoments.of(G), np.random.default_rng(4)
    smooth = y + 0.0
    bounds = [
        noise_variance_bound(G.quadratic(smooth + 0.5 * rng.standard_normal(len(y)))[0], moments) for _ in range(100)
    ]
    assert sum(bound < 0.25 for bound in bounds) <= 5
    assert np.median(bounds) < 0.5


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
def test_the_bound_for_uneven_chances_holds_where_one_class_alone_is_noisy(easy, p):
    """99 % of 200 draws, all noise in one class: at most 7 misses, which more than 1 % have with probability 10⁻³."""
    G, y = easy
    moments, rng = InverseMoments.of(G), np.random.default_rng(6)
    draws = G.quadratic(np.stack([np.where(y > 0, flipped(y, p, rng), y) for _ in range(200)], axis=1))
    bounds = np.array([noise_bound(draw, moments) for draw in draws])
    assert (bounds < p * (y > 0).mean()).sum() <= 7
    assert bounds.min() < 0.5


def test_the_bound_for_uneven_chances_holds_where_they_do_most_harm(easy):
    """Coin flips at the rows of the smallest Gᵢᵢ, which cost the least complexity."""
    G, y = easy
    moments, rng, p = InverseMoments.of(G), np.random.default_rng(7), 0.1
    worst = np.argsort(G.diagonal)[: int(2 * p * len(y))]
    for _ in range(50):
        wrong = y.copy()
        wrong[worst] = rng.choice([-1.0, 1.0], len(worst))
        assert p <= noise_bound(G.quadratic(wrong)[0], moments)


def test_a_bound_needs_two_classes():
    with pytest.raises(InputError, match="at least two classes"):
        noise_bound(1.0, InverseMoments(np.ones(1), np.ones(1), 1.0), classes=1)


def planted(n, p, hard, rng, classes=2):
    """Margins 1, but small for the hard ones, half of which are mistaken; labels wrong with probability p."""
    margins = np.where(rng.random(n) < hard, 0.1, 1.0) * rng.uniform(0.8, 1.2, n)
    mistaken = (margins < 0.5) & (rng.random(n) < 0.5)
    wrong = rng.random(n) < p
    same = rng.random(n) < 1 / (classes - 1)  # a mistaken prediction may be the wrong label itself
    return margins, np.where(wrong & mistaken, ~same, wrong ^ mistaken), wrong.mean()


@pytest.mark.parametrize("p", [0.0, 0.03, 0.2, 0.4])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_interval_covers_what_was_planted(p, classes):
    rng, covered = np.random.default_rng(5), 0
    for _ in range(30):
        margins, disagrees, truth = planted(500, p, 0.03, rng, classes)
        found = noise_estimate(margins, np.full(500, 0.1), disagrees, classes=classes)
        assert found.lower <= found.fraction <= found.upper
        covered += found.lower <= truth <= found.upper
    assert covered >= 27


def test_without_doubtful_predictions_every_disagreement_is_a_wrong_label():
    disagrees = np.arange(1000) % 20 == 0
    found = noise_estimate(np.ones(1000), np.zeros(1000), disagrees)
    assert found.fraction == pytest.approx(0.05, abs=1e-5)
    assert found.upper < 0.055
    assert 0.015 < found.lower < 0.03  # 2 % of hard rows are assumed possible
    assert not found.doubtful
    assert "2.0% of the rows are hard" in found.assumption


def test_hard_data_are_recognised_and_allowed_for():
    """Margins as of N(1, 1): one prediction in six is mistaken, and no label is wrong."""
    margins = 1 + ndtri((np.arange(2000) + 0.5) / 2000)
    found = noise_estimate(np.abs(margins), np.zeros(2000), margins < 0)
    assert found.doubtful
    assert found.lower == 0
    assert found.hard > 0.1


def test_predictions_that_noise_would_turn_are_not_counted_as_wrong_labels():
    """Large sensitivity: with 10 % noise many predictions of margin ½ are turned by the others' noise."""
    rng = np.random.default_rng(6)
    n, p, sensitivity = 4000, 0.1, 0.8
    spread = np.sqrt(4 * p * (1 - p)) * sensitivity
    towards = 0.8 + spread * rng.standard_normal(n)
    wrong = rng.random(n) < p
    found = noise_estimate(np.abs(towards), np.full(n, sensitivity), (towards < 0) ^ wrong)
    assert found.lower <= wrong.mean() <= found.upper
    assert abs(found.fraction - p) < ((towards < 0) ^ wrong).mean() - p


def test_whether_a_label_is_wrong_does_not_move_its_own_prediction(easy):
    """What the estimate rests on: prediction i is the same with label i and without it."""
    G, y = easy
    other = y.copy()
    other[7] *= -1
    predictions = [LeaveOneOut.of(G, labels).predictions for labels in (y, other)]
    assert predictions[0][7] == pytest.approx(predictions[1][7], abs=1e-9)
    assert np.abs(predictions[0] - predictions[1]).max() > 1e-3
