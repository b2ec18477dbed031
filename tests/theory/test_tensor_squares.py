"""σ_min of tensor squares against the explicit d² × n matrix, and what cannot be told."""

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.theory import leave_one_out_distances, smallest_singular
from offtangent.theory import tensor_squares as module

RNG = np.random.default_rng(0)


def explicit(X):
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1).T


@pytest.mark.parametrize(("n", "dim"), [(2, 2), (9, 4), (40, 12)])
def test_it_is_the_smallest_singular_value_of_the_tensors(n, dim):
    X = RNG.standard_normal((n, dim))
    found, truth = smallest_singular(X), np.linalg.svd(explicit(X), compute_uv=False)
    assert found.resolved
    assert found.certified
    assert 0.3 * truth[-1] < found.lower <= truth[-1] <= found.upper
    assert found.upper == pytest.approx(truth[-1], rel=1e-6)
    assert found.largest == pytest.approx(truth[0], rel=1e-12)
    assert found.condition == pytest.approx((truth[-1] / truth[0]) ** 2, rel=1e-6)


def test_leave_one_out_distances_are_those_of_least_squares_and_lemma_8_holds():
    X = RNG.standard_normal((12, 5))
    columns = explicit(X)
    for i, distance in enumerate(leave_one_out_distances(X)):
        others = np.delete(columns, i, axis=1)
        left = columns[:, i] - others @ np.linalg.lstsq(others, columns[:, i], rcond=None)[0]
        assert distance == pytest.approx(np.linalg.norm(left), rel=1e-9)
    least, found = leave_one_out_distances(X).min(), smallest_singular(X)
    assert least / 12**0.5 <= found.upper
    assert found.lower <= least


def test_more_samples_than_quadratic_forms_have_none():
    X = RNG.standard_normal((8, 3))
    found = smallest_singular(X)
    assert (found.upper, found.lower) == (0.0, 0.0)
    assert "8 samples, and only 6 independent" in found.rests_on
    assert not leave_one_out_distances(X).any()


def test_nearly_equal_samples_are_below_the_floor_and_said_to_be():
    X = RNG.standard_normal((5, 4))
    X[1] = X[0] + 1e-10 * RNG.standard_normal(4)
    found = smallest_singular(X)
    assert not found.resolved
    assert not found.certified
    assert found.lower == 0.0
    assert np.linalg.svd(explicit(X), compute_uv=False)[-1] < found.upper < 1e-6 * found.largest
    assert "below the floating-point floor" in found.rests_on


@pytest.mark.parametrize("factor", [3.0, -0.5])
def test_multiples_are_named_whatever_their_sign(factor):
    X = RNG.standard_normal((6, 4))
    X[4] = factor * X[1]
    with pytest.raises(InputError, match="Rows 1 and 4 of X"):
        smallest_singular(X)


def test_a_streamed_gram_matrix_gives_the_same_without_a_proof(monkeypatch):
    X = RNG.standard_normal((300, 40))
    stored = smallest_singular(X)
    monkeypatch.setattr(module, "DENSE", 10)
    heard = []
    streamed = smallest_singular(X, watch=heard.append)
    assert streamed.upper == pytest.approx(stored.upper, rel=1e-4)
    assert streamed.largest == pytest.approx(stored.largest, rel=1e-6)
    assert (streamed.lower, streamed.certified, streamed.resolved) == (0.0, False, True)
    assert heard[0] == "power method: product 1"
