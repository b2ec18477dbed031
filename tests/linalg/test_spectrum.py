"""Eigenpairs against known spectra and dense eigh, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.linalg import Spectrum


def with_spectrum(values, seed=0):
    """A symmetric matrix with these eigenvalues, and its eigenvectors as columns."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return Q * values @ Q.T, Q


@pytest.mark.parametrize("k", [None, 1, 2, 4])
def test_a_known_spectrum_is_found_the_largest_first(k):
    A, Q = with_spectrum(np.array([5.0, 2.0, 0.5, -1.0]))
    found = Spectrum.of(A, k)
    np.testing.assert_allclose(found.values, np.array([5.0, 2.0, 0.5, -1.0])[:k], rtol=1e-13)
    np.testing.assert_allclose(abs(found.vectors.T @ Q[:, :k]), np.eye(4)[:k, :k], atol=1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.data())
@settings(max_examples=50)
def test_the_k_largest_are_those_of_dense_eigh_with_orthonormal_vectors(seed, n, data):
    k = data.draw(st.integers(1, n))
    A = np.random.default_rng(seed).standard_normal((n, n))
    A = A + A.T
    found = Spectrum.of(A, k)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[::-1][:k], rtol=0, atol=1e-12 * n)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(A @ found.vectors, found.vectors * found.values, atol=1e-12 * n)
    assert found.complete == (k == n)


def test_an_eigenvalue_of_full_multiplicity_still_has_orthonormal_vectors():
    found = Spectrum.of(np.full((4, 4), 0.0) + 3 * np.eye(4), 2)
    np.testing.assert_allclose(found.values, [3, 3])
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-15)


def test_float32_matrices_are_treated_in_float64():
    found = Spectrum.of(np.eye(3, dtype=np.float32))
    assert found.values.dtype == found.vectors.dtype == np.float64


def test_the_matrix_itself_is_left_alone():
    A, _ = with_spectrum(np.array([3.0, 2.0, 1.0]))
    before = A.copy()
    Spectrum.of(A)
    Spectrum.of(A, 1)
    np.testing.assert_array_equal(A, before)


def test_energy_is_the_squared_projection_and_sums_to_the_squared_length():
    A, Q = with_spectrum(np.array([3.0, 2.0, 1.0]))
    y = 2 * Q[:, 0] - 3 * Q[:, 2]
    np.testing.assert_allclose(Spectrum.of(A).energy(y), [4, 0, 9], atol=1e-13)
    np.testing.assert_allclose(Spectrum.of(A).energy(y).sum(), y @ y, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("top", "expected"), [(0, 0.0), (1, 4 / 13), (2, 4 / 13), (3, 1.0)])
def test_share_is_the_fraction_of_energy_in_the_top_directions(top, expected, dtype):
    y = np.array([2.0, 0.0, -3.0], dtype)
    assert Spectrum.of(np.diag([3.0, 2.0, 1.0])).share(y, top) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("k", [0, -1, 4])
def test_a_number_of_eigenpairs_that_is_not_there_is_refused(k):
    with pytest.raises(InputError, match=f"k={k}: .* between 1 and 3"):
        Spectrum.of(np.eye(3), k)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_is_refused(bad):
    A = np.eye(3)
    A[2, 0] = bad
    with pytest.raises(InputError, match="NaN or infinite"):
        Spectrum.of(A)


@pytest.mark.parametrize("top", [-1, 3])
def test_a_share_beyond_the_known_eigenvectors_is_refused(top):
    with pytest.raises(InputError, match=f"top={top}: 2 eigenvectors are known"):
        Spectrum.of(np.eye(3), 2).share(np.ones(3), top)


def test_the_share_of_nothing_is_refused_and_not_nan():
    with pytest.raises(InputError, match="y is zero"):
        Spectrum.of(np.eye(3)).share(np.zeros(3), 1)


@pytest.mark.parametrize("y", [np.ones(3), np.array([1.0, np.nan]), np.ones((2, 1))])
def test_labels_of_another_shape_or_with_nan_are_refused(y):
    spectrum = Spectrum.of(np.eye(2))
    with pytest.raises((InputError, TypeError), match=r"y has|Type-check"):
        spectrum.energy(y)


def test_its_repr_is_one_short_line():
    assert repr(Spectrum.of(np.diag([2.0, 1.0]))) == "Spectrum(2 of 2 eigenpairs, 2 … 1)"
