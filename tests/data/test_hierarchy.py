"""Targets with a hierarchy against their sums written out, and Lemma B.2 on the unit sphere."""

import itertools
import math

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import sphere
from offtangent.data.hierarchy import (
    GeneralRidges,
    Hierarchy,
    Parities,
    SmoothRidges,
    parity_hierarchy,
    polarised_hierarchy,
)

SERIES = [0.3, -1.0, 0.7, 0.5, 0.2, -0.1]


@pytest.fixture(scope="module")
def smooth():
    return SmoothRidges.random(4, outputs=3, terms=2, series=SERIES, key=jax.random.key(0))


@pytest.fixture(scope="module")
def X():
    return sphere(7, 4, key=jax.random.key(1))


def test_a_smooth_map_is_equation_5_2(smooth, X):
    for x, found in zip(X, smooth(X), strict=True):
        for r in range(3):
            ridges = [smooth.directions[r, i] @ x for i in range(2)]
            values = [sum(c * z**j for j, c in enumerate(SERIES)) for z in ridges]
            assert found[r] == pytest.approx(smooth.weights[r] @ values, rel=1e-12)


def test_a_general_map_is_definition_b1(X):
    F = GeneralRidges.random(4, outputs=2, terms=3, series=[0.5, 1.0, 0.0, -0.4], key=jax.random.key(2))
    for x, found in zip(2 * X, F(2 * X), strict=True):
        padded = np.append(x, 1.0)
        for r in range(2):
            z = F.first[r] @ padded / np.linalg.norm(padded)
            values = (0.5 + z - 0.4 * z**3) * (F.second[r] @ padded)
            assert found[r] == pytest.approx(F.weights[r] @ values, rel=1e-12)


def test_lemma_b2_writes_a_smooth_map_as_a_general_one_on_unit_vectors(smooth, X):
    np.testing.assert_allclose(smooth.general()(X), smooth(X), rtol=1e-12, atol=1e-14)
    assert smooth.general().terms == 2 * smooth.terms
    assert abs(smooth.general()(2 * X) - smooth(2 * X)).max() > 0.1  # and only there


def test_weights_and_directions_of_any_size_go_into_the_series(X):
    rng = np.random.default_rng(0)
    a, w, c = 3 * rng.standard_normal((2, 3)), 2 * rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 5))
    F = SmoothRidges.scaled(a, w, c)
    z = np.einsum("nd,kpd->nkp", X, w)
    truth = sum(np.einsum("kp,nkp->nk", a * c[..., j], z**j) for j in range(5))
    np.testing.assert_allclose(F(X), truth, rtol=1e-12, atol=1e-12)


def test_a_hierarchy_is_its_two_parts(smooth, X):
    G = GeneralRidges.random(3, outputs=3, terms=1, series=[0.0, 1.0], key=jax.random.key(3))
    H = Hierarchy(smooth, G, alpha=0.2, beta=0.5)
    base, rest = H.parts(X)
    np.testing.assert_allclose(base, 0.5 * smooth(X))
    np.testing.assert_allclose(rest, 0.2 * G(smooth(X)))
    np.testing.assert_allclose(H(X), base + rest)


@pytest.mark.parametrize(("later", "k", "threshold"), [(False, 8, 0.72), (True, 15, 1.35)])
def test_the_target_of_figure_2_has_the_paper_s_threshold(later, k, threshold):
    """kα²: the error of a learner that has F and nothing of G(F), on every x alike."""
    X = np.where(np.random.default_rng(0).random((50, 30)) < 0.5, -1.0, 1.0)
    base, rest = parity_hierarchy(later=later).parts(X)
    assert base.shape == (50, k)
    np.testing.assert_allclose((rest**2).sum(axis=1), threshold)
    np.testing.assert_array_equal(base[:, 1], X[:, 2] * X[:, 3])
    product = X[:, :8].prod(axis=1)  # y₁y₂y₃y₄
    np.testing.assert_allclose(rest[:, 0], 0.3 * product * (-1 if later else 1))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_polarised_target_is_the_product_on_every_corner(k):
    d = k + 1
    X = np.array(list(itertools.product((-1.0, 1.0), repeat=d))) / math.sqrt(d)
    coordinates = tuple(range(1, k + 1))
    signs = math.sqrt(d) * X[:, 1:]
    truth = (signs + 0.3 * signs.prod(axis=1, keepdims=True)) / math.sqrt(k)
    np.testing.assert_allclose(polarised_hierarchy(d, coordinates, alpha=0.3)(X), truth, atol=1e-12)


def test_directions_of_the_wrong_length_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"expected 0\.7071; SmoothRidges\.scaled"):
        SmoothRidges(np.ones((1, 1)), np.ones((1, 1, 2)), np.ones((1, 1, 2)))


ONE = np.array([[[1.0, 0.0]]])


@pytest.mark.parametrize(
    "ridges", [lambda a, c: SmoothRidges(a, ONE / math.sqrt(2), c), lambda a, c: GeneralRidges(a, ONE, ONE, c)]
)
@pytest.mark.parametrize(
    ("weight", "coefficient", "said"),
    [
        (math.nan, 1.0, "weights hold some that are NaN or infinite"),
        (1.5, 1.0, "weights exceed 1 in size"),
        (1.0, math.inf, "series have coefficients that are NaN or infinite"),
    ],
)
def test_numbers_that_are_none_or_too_large_are_told_apart(ridges, weight, coefficient, said):
    with pytest.raises(InputError, match=said):
        ridges(np.array([[weight]]), np.array([[[0.0, coefficient]]]))


def test_a_product_needs_at_least_one_subset():
    with pytest.raises(InputError, match="subsets is empty"):
        Parities(3, (), np.ones(0))


def test_even_orders_are_refused_by_definition_b1():
    with pytest.raises(InputError, match=r"Lemma B\.2"):
        GeneralRidges.random(3, outputs=1, terms=1, series=[0.0, 1.0, 1.0], key=jax.random.key(0))


def test_a_product_with_too_many_ridges_is_refused_with_the_limit():
    with pytest.raises(InputError, match="k goes from 1 to 12"):
        polarised_hierarchy(20, tuple(range(13)), alpha=0.1)


def test_a_coordinate_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="from 0 to 2"):
        Parities(3, ((0, 3),), np.ones(1))


def test_a_target_of_another_dimension_is_refused(smooth):
    with pytest.raises(InputError, match="expected 4 columns"):
        smooth(np.ones((2, 5)))
