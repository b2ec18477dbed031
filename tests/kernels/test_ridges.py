"""The curve over ridges against dense solves and mpmath."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import Gram, relu_hidden
from offtangent.kernels.ridges import regularised

RIDGES = np.array([1e-9, 1e-3, 10.0, 1e-6])  # in no order


def rows(kind="different"):
    X = np.random.default_rng(0).standard_normal((8, 3))
    if kind == "duplicated":
        X[4:] = X[:4]
    elif kind == "parallel and zero":
        X[5], X[6], X[7] = 3 * X[2], 0.0, 0.0
    return X


Y = np.random.default_rng(1).standard_normal(8)


@pytest.mark.parametrize("kind", ["different", "duplicated", "parallel and zero"])
def test_at_every_ridge_it_is_the_dense_solve_and_the_bracket_holds_the_truth(kind):
    """At 40 digits on the float64 kernel matrix: what it errs by itself is part of the bracket."""
    found, K = regularised(relu_hidden, rows(kind), Y, RIDGES), relu_hidden.exact(rows(kind))
    np.testing.assert_array_equal(found.ridges, RIDGES)
    with mpmath.workdps(40):
        for ridge, value, low, high in zip(RIDGES, found.values, found.lower, found.upper, strict=True):
            A = mpmath.matrix(K.tolist()) + mpmath.mpf(float(ridge)) * mpmath.eye(8)
            truth = (mpmath.matrix(Y.tolist()).T * mpmath.cholesky_solve(A, mpmath.matrix(Y.tolist())))[0]
            assert mpmath.mpf(float(low)) <= truth <= mpmath.mpf(float(high))
            rounding = np.finfo(float).eps * (10 * 8 + 2 * 3 + 40) * np.trace(K)
            np.testing.assert_allclose(value, float(truth), rtol=2 * rounding / ridge)
            turned = 4 * 10 * 8 * np.finfo(float).eps * np.linalg.norm(Y) * np.sqrt(value / ridge)
            assert high - low <= 4 * rounding / ridge * value + 2 * turned


@pytest.mark.parametrize("share", [-5, 5])
def test_the_bracket_has_room_for_eigenvectors_that_are_not_quite_of_length_one(monkeypatch, share):
    """Off by 5nε, half of what is granted: a large ridge leaves nothing else that could hide it."""
    eigh, eps = Gram.eigh, np.finfo(float).eps

    def longer(H):
        found = eigh(H)
        return replace(found, vectors=found.vectors * (1 + share * 8 * eps))

    monkeypatch.setattr(Gram, "eigh", longer)
    found, K = regularised(relu_hidden, rows(), Y, np.array([1e3, 1e6])), relu_hidden.exact(rows())
    with mpmath.workdps(40):
        y = mpmath.matrix(Y.tolist())
        for ridge, low, high in zip(found.ridges, found.lower, found.upper, strict=True):
            truth = (y.T * mpmath.cholesky_solve(mpmath.matrix(K.tolist()) + float(ridge) * mpmath.eye(8), y))[0]
            assert mpmath.mpf(float(low)) <= truth <= mpmath.mpf(float(high))


def test_it_falls_as_the_ridge_grows():
    found = regularised(relu_hidden, rows("duplicated"), Y)
    assert len(found.ridges) == 13
    assert (np.diff(found.ridges) > 0).all()
    assert (np.diff(found.values) < 0).all()
    assert (found.lower <= found.values).all()
    assert (found.values <= found.upper).all()


def test_its_ridges_are_by_default_in_units_of_the_diagonal():
    small, large = (regularised(relu_hidden, scale * rows(), Y) for scale in (1.0, 100.0))
    np.testing.assert_allclose(large.ridges, 1e4 * small.ridges, rtol=1e-12)
    np.testing.assert_allclose(large.values, 1e-4 * small.values, rtol=1e-6)


def test_a_large_ridge_in_the_list_costs_a_small_one_no_digits():
    alone = regularised(relu_hidden, rows("duplicated"), Y, np.array([1e-9]))
    among = regularised(relu_hidden, rows("duplicated"), Y, np.array([1e-9, 1e6]))
    np.testing.assert_allclose(among.values[0], alone.values[0], rtol=1e-12)


def test_where_the_matrix_can_be_inverted_it_tends_to_the_inverse():
    found = regularised(relu_hidden, rows(), Y, np.array([1e-10]))
    np.testing.assert_allclose(found.values[0], Gram(relu_hidden, rows()).inverse_quadratic(Y).value, rtol=1e-6)


@pytest.mark.parametrize("ridges", [[0.0, 1.0], [-1.0], [np.nan], [np.inf], [], [[1.0]]])
def test_ridges_that_are_not_positive_numbers_are_refused(ridges):
    with pytest.raises((InputError, TypeError), match=r"positive finite|Type-check"):
        regularised(relu_hidden, rows(), Y, np.array(ridges))


@pytest.mark.parametrize("y", [np.ones(7), np.full(8, np.nan)])
def test_labels_that_do_not_fit_are_refused(y):
    with pytest.raises((InputError, TypeError), match=r"shape|NaN|Type-check"):
        regularised(relu_hidden, rows(), y)
