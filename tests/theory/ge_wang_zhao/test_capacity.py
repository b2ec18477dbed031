"""Counting: what fits, against ranks of real matrices."""

import math
import re

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import PolynomialNet, QuadraticNet
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.capacity import (
    Capacity,
    admissible_features,
    least_width,
    memorisation,
    most_samples,
    theorem_features,
)


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
    (told,) = net.problems
    assert "490 features are more than the 145 of Lemma 13" in told
    assert memorisation(5000, 784, power=1, features=150).problems == ()
    assert least_width(100) == 202
    assert admissible_features(100, 1) == 101 // 4


def test_what_does_not_fit_is_told_with_the_number_that_would():
    (told,) = memorisation(60_000, 100, width=3000).problems
    assert "60000 samples are more than the 5050" in told
    assert "346 or more random features" in told
    assert most_samples(345) < 60_000 <= most_samples(346)
    (narrow,) = memorisation(50, 10, width=20).problems
    assert "20 neurons are fewer than 2d + 2 = 22" in narrow


def test_too_few_polynomials_are_told_as_polynomials():
    told, *_ = memorisation(8, 2, power=1, features=10).problems
    assert "8 samples are more than the 3 that polynomials of degree 2p = 2 in 2 inputs can fit" in told


def test_too_few_features_are_told_as_features():
    told, *_ = memorisation(11, 3, power=2, features=4).problems
    assert "11 samples are more than the 10 that quadratic forms of 4 features can fit" in told


@pytest.mark.parametrize(("samples", "dim", "power", "features"), [(8, 2, 1, 10), (11, 3, 2, 4), (60, 3, 1, 3)])
def test_what_the_remedy_names_is_the_least_that_fits(samples, dim, power, features):
    told, *_ = memorisation(samples, dim, power=power, features=features).problems
    fewest = re.search(r"(\d+) features or more", told)
    lowest = re.search(r"the power (\d+) or a higher one", told)
    k, p = int(fewest[1]) if fewest else features, int(lowest[1]) if lowest else power
    assert memorisation(samples, dim, power=p, features=k).fits
    assert not fewest or not memorisation(samples, dim, power=p, features=k - 1).fits
    assert not lowest or not memorisation(samples, dim, power=p - 1, features=k).fits


def test_one_input_is_helped_by_no_power():
    assert "a column of ones will do" in memorisation(5, 1, power=3).problems[0]


@pytest.mark.parametrize(
    "net",
    [
        QuadraticNet(4, 10),
        PolynomialNet.gaussian(dim=3, features=4, width=10, power=2, key=jax.random.key(0)),
        PolynomialNet.gaussian(dim=2, features=10, width=22, power=1, key=jax.random.key(0)),
    ],
)
def test_a_network_knows_how_many_samples_fit(net):
    assert Capacity.of(net, net.most_samples).fits
    assert not Capacity.of(net, net.most_samples + 1).fits


def test_bad_numbers_are_refused():
    for arguments, text in (
        ({"width": 7}, "width=7 is odd"),
        ({"power": 0}, "power=0"),
        ({"features": 4}, "without a power"),
    ):
        with pytest.raises(InputError, match=text):
            memorisation(10, 4, **arguments)
