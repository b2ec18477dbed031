"""Lemma E.1: against NumPy's pseudo-inverse, quadratic forms, and matrices in the wrong order."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.kernels import relu_hidden
from offtangent.theory.arora.order import pseudo_inverse_ratio


def semidefinite(rng, size, rank):
    G = rng.standard_normal((size, rank))
    return G @ G.T


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 6))
@settings(max_examples=50)
def test_where_b_is_the_larger_the_lemma_holds_even_where_neither_is_invertible(seed, rank, more):
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, 6, rank)
    assert pseudo_inverse_ratio(A, A + semidefinite(rng, 6, more)) <= 1 + 1e-7


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_it_is_the_least_number_that_numpy_s_pseudo_inverses_allow(rank):
    """λA† − P_A B† P_A has no negative eigenvalue at the number found, and one just below it."""
    rng = np.random.default_rng(rank)
    A, B = semidefinite(rng, 6, rank), semidefinite(rng, 6, 6)
    found = pseudo_inverse_ratio(A, B)
    inverse, basis = np.linalg.pinv(A, rcond=1e-10), scipy.linalg.orth(A)
    projection = basis @ basis.T
    middle = projection @ np.linalg.pinv(B) @ projection

    def least(ratio):
        return np.linalg.eigvalsh(basis.T @ (ratio * inverse - middle) @ basis)[0]

    assert least(found) >= -1e-9 * np.abs(middle).max()
    assert least(0.99 * found) < 0


def test_it_is_what_quadratic_forms_say():
    """The largest vᵀP B†P v / vᵀA†v over many v = A w: below the number, and close to it in two dimensions."""
    rng = np.random.default_rng(0)
    A, B = semidefinite(rng, 2, 2), semidefinite(rng, 2, 2)
    w = rng.standard_normal((2, 20_000))
    v = A @ w
    ratios = np.sum(v * np.linalg.solve(B, v), axis=0) / np.sum(v * w, axis=0)
    assert ratios.max() <= pseudo_inverse_ratio(A, B) * (1 + 1e-9)
    assert ratios.max() >= 0.999 * pseudo_inverse_ratio(A, B)


def test_matrices_in_the_wrong_order_are_found_out():
    assert pseudo_inverse_ratio(np.diag([3.0, 0.0]), np.eye(2)) == pytest.approx(3.0)
    assert pseudo_inverse_ratio(np.zeros((2, 2)), np.eye(2)) == 0.0


def test_the_case_of_theorem_61_is_tight_only_where_the_series_of_the_kernel_has_that_power_alone():
    """K/4 ⪯ H∞ with K of rank 3 among 8 inputs: at most one, and more than one for a coefficient twice as large."""
    X = np.random.default_rng(0).standard_normal((8, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    H = relu_hidden.exact(X, X)
    ratio = pseudo_inverse_ratio(X @ X.T / 4, H)
    assert 0.5 < ratio <= 1 + 1e-9
    assert pseudo_inverse_ratio(X @ X.T / 2, H) == pytest.approx(2 * ratio)


@pytest.mark.parametrize(
    ("A", "B", "match"),
    [
        (np.ones((2, 3)), np.eye(2), "square"),
        (np.eye(2), np.eye(3), "one size"),
        (np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(2), "not symmetric"),
        (np.eye(2), np.diag([1.0, -1.0]), "below zero"),
        (np.diag([1.0, np.nan]), np.eye(2), "NaN"),
    ],
)
def test_what_the_lemma_does_not_speak_of_is_refused(A, B, match):
    with pytest.raises(InputError, match=match):
        pseudo_inverse_ratio(A, B)
