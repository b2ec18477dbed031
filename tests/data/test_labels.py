import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.data.labels import add_label_noise, flip_labels, random_labels, two_classes

KEY = jax.random.key(3)
NOISES = [add_label_noise, flip_labels]


def test_two_classes_keep_their_order_and_the_first_is_positive():
    X = np.arange(12.0).reshape(6, 2)
    chosen, y = two_classes(X, [3, 1, 2, 1, 3, 2], classes=(1, 3))
    assert np.array_equal(chosen, X[[0, 1, 3, 4]])
    assert y.tolist() == [-1, 1, 1, -1]


@pytest.mark.parametrize("classes", [(1,), (1, 1), (1, 2, 3)])
def test_anything_but_two_different_classes_is_refused(classes):
    with pytest.raises(InputError, match="two different classes"):
        two_classes(np.eye(3), [1, 2, 3], classes)


def test_a_class_that_does_not_occur_is_refused_with_those_that_do():
    with pytest.raises(InputError, match=r"class 9\. The first classes here: 1, 2, 3"):
        two_classes(np.eye(3), [1, 2, 3], (1, 9))


def test_random_labels_are_balanced_within_five_standard_errors():
    y = random_labels(10_000, key=KEY)
    assert set(y) == {-1.0, 1.0}
    assert abs(y.sum()) < 5 * np.sqrt(len(y))


@pytest.mark.parametrize("noise", NOISES)
@settings(max_examples=20)
@given(n=st.sampled_from([1, 10]), fraction=st.floats(0, 1), seed=st.integers(0, 1000))
def test_exactly_the_fraction_is_touched_and_nothing_else_changes(noise, n, fraction, seed):
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    noisy, touched = noise(y, fraction, key=jax.random.key(seed))
    assert touched.sum() == round(fraction * n)
    assert np.array_equal(noisy[~touched], y[~touched])
    assert set(noisy) <= {-1.0, 1.0}


def test_flipped_labels_are_all_negated():
    y = np.ones(10_000)
    noisy, touched = flip_labels(y, 0.3, key=KEY)
    assert np.array_equal(noisy, np.where(touched, -1.0, 1.0))
    assert (y == 1).all()


def test_label_noise_changes_half_of_what_it_touches_within_five_standard_errors():
    noisy, touched = add_label_noise(np.ones(10_000), 0.5, key=KEY)
    assert abs((noisy[touched] == -1).sum() - 2500) < 5 * np.sqrt(5000 / 4)


@pytest.mark.parametrize("noise", NOISES)
def test_touched_rows_are_uniform_over_positions(noise):
    """Each of 10 rows is among 3 chosen with probability 0.3, independently over 100 keys."""
    counts = sum(noise(np.ones(10), 0.3, key=jax.random.key(seed)).touched for seed in range(100))
    assert (np.abs(counts - 30) < 5 * np.sqrt(100 * 0.3 * 0.7)).all()


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_key_gives_the_same_noise(noise):
    first, again, other = (noise(np.ones(10_000), 0.5, key=jax.random.key(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.touched, other.touched)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_fractions_outside_0_1_are_refused(noise, fraction):
    with pytest.raises(InputError, match="fraction"):
        noise(np.ones(4), fraction, key=KEY)


def test_a_percentage_is_answered_with_the_fraction():
    with pytest.raises(InputError, match=r"For 20 percent give 0.2"):
        flip_labels(np.ones(4), 20.0, key=KEY)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("y", [[0, 1], [1.0, np.nan], ["a", "b"], [], [[1, -1]]])
def test_labels_that_are_not_signs_are_refused(noise, y):
    with pytest.raises(InputError):
        noise(y, 0.5, key=KEY)
