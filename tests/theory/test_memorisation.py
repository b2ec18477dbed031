"""Counting: what fits, against ranks of real matrices."""

import math

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import PolynomialNet
from offtangent.theory import (
    admissible_features,
    least_width,
    memorisation,
    most_samples,
    symmetric_dimension,
    theorem_features,
)
from offtangent.theory.memorisation import warn_beyond_capacity


@pytest.mark.parametrize("dim", [1, 2, 4, 6])
def test_as_many_squares_are_independent_as_there_are_quadratic_forms(dim):
    X = np.random.default_rng(dim).standard_normal((most_samples(dim) + 3, dim))
    assert np.linalg.matrix_rank((X @ X.T) ** 2) == most_samples(dim) == symmetric_dimension(dim, 2)


@pytest.mark.parametrize(("dim", "features", "power"), [(3, 4, 2), (3, 12, 2), (2, 9, 3), (4, 3, 1)])
def test_features_fit_as_many_as_the_rank_of_their_squares(dim, features, power):
    rng = np.random.default_rng(5)
    X, R = rng.standard_normal((200, dim)), rng.standard_normal((features, dim))
    Z = (X @ R.T) ** power
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    rank = np.linalg.matrix_rank((Z @ Z.T) ** 2, tol=1e-11)
    assert memorisation(200, dim, power=power, features=features).most == rank


def test_the_theorems_choices():
    for n in (1, 2, 4, 5, 99, 100, 101, 60_000):
        k = theorem_features(n)
        assert k == 2 * math.ceil(math.sqrt(n))
        assert most_samples(k) > n
    net = memorisation(60_000, 100, power=2)
    assert (net.features, net.width, net.parameters) == (490, 982, 490 * 982)
    assert net.fits
    assert net.wide_enough
    assert net.problems() == []
    assert least_width(100) == 202
    assert admissible_features(100, 1) == 101 // 4


def test_what_does_not_fit_is_told_with_the_number_that_would():
    (told,) = memorisation(60_000, 100, width=3000).problems()
    assert "60000 samples are more than the 5050" in told
    assert "346 or more random features" in told
    assert most_samples(345) < 60_000 <= most_samples(346)
    (narrow,) = memorisation(50, 10, width=20).problems()
    assert "20 neurons are fewer than 2d + 2 = 22" in narrow
    assert "a higher power than 1" in memorisation(60_000, 100, power=1).problems()[0]


def test_a_network_beyond_its_capacity_warns_once_with_the_number_that_would_fit():
    net = PolynomialNet.gaussian(dim=3, features=4, width=10, power=2, key=jax.random.key(0))
    assert not warn_beyond_capacity(net, 10)
    with pytest.warns(UserWarning, match=r"11 samples are more than the 10.*5 features or more") as seen:
        assert warn_beyond_capacity(net, 11)
    assert len(seen) == 1
    assert not warn_beyond_capacity(lambda W, X: X @ W, 11)


def test_bad_numbers_are_refused():
    for arguments, text in (
        ({"width": 7}, "width=7 is odd"),
        ({"power": 0}, "power=0"),
        ({"features": 4}, "without a power"),
    ):
        with pytest.raises(InputError, match=text):
            memorisation(10, 4, **arguments)
