"""Worst-case labels: no other labels of their length are learnt more slowly."""

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import Gram, relu_hidden
from offtangent.linalg import Spectrum
from offtangent.theory import largest_stable_rate, predict_residual, worst_case_labels


@pytest.fixture(scope="module")
def spectrum():
    X = np.random.default_rng(0).standard_normal((9, 4))
    return Gram(relu_hidden, X / np.linalg.norm(X, axis=1, keepdims=True)).eigh()


def test_no_labels_of_their_length_are_learnt_more_slowly(spectrum):
    """Against 300 random labels and all eigenvectors, at every step of the predicted curve."""
    rate, steps = largest_stable_rate(spectrum) / 2, np.array([1, 10, 100, 1000])
    others = np.random.default_rng(0).standard_normal((300, 9))
    others = 3 * np.vstack([others / np.linalg.norm(others, axis=1, keepdims=True), spectrum.vectors.T])
    slowest = predict_residual(spectrum, worst_case_labels(spectrum), rate=rate, steps=steps).norm
    for y in others:
        assert (predict_residual(spectrum, y, rate=rate, steps=steps).norm <= slowest * (1 + 1e-12)).all()


def test_they_are_an_eigenvector_of_length_root_n_with_a_sum_that_is_not_negative(spectrum):
    y = worst_case_labels(spectrum)
    H = spectrum.vectors * spectrum.values @ spectrum.vectors.T
    np.testing.assert_allclose(np.linalg.norm(y), 3, rtol=1e-14)
    np.testing.assert_allclose(H @ y, spectrum.values[-1] * y, atol=1e-14)
    assert y.sum() >= 0


def test_flipping_the_eigenvector_changes_nothing(spectrum):
    flipped = Spectrum(spectrum.values, -spectrum.vectors)
    np.testing.assert_array_equal(worst_case_labels(flipped), worst_case_labels(spectrum))


def test_a_truncated_spectrum_is_refused(spectrum):
    part = Spectrum(spectrum.values[:4], spectrum.vectors[:, :4])
    with pytest.raises(InputError, match=r"4 largest of 9 .* Gram.eigh\(\)"):
        worst_case_labels(part)
