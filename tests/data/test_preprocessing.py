from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler, normalize

from offtangent._errors import InputError
from offtangent.data import preprocess
from offtangent.data.preprocessing import fit_preprocessing, unit_norm

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4)) * [1, 10, 0.1, 5] + [3, -2, 0, 100]


def test_raw_without_unit_changes_nothing():
    assert np.array_equal(preprocess(X, "raw", unit=False), X)


def test_centred_features_have_mean_zero_and_keep_their_spread():
    Z = preprocess(X, "centred", unit=False)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(Z.std(axis=0), X.std(axis=0), rtol=1e-12)


def test_standardised_features_are_those_of_scikit_learn():
    np.testing.assert_allclose(
        preprocess(X, "standardised", unit=False), StandardScaler().fit_transform(X), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("how", ["raw", "centred", "standardised"])
def test_unit_rows_are_those_of_scikit_learn(how):
    np.testing.assert_allclose(preprocess(X, how), normalize(preprocess(X, how, unit=False)), rtol=1e-13)


def test_test_data_reuses_the_statistics_of_the_training_data():
    new = RNG.standard_normal((7, 4))
    fitted = fit_preprocessing(X, "standardised", unit=False)
    np.testing.assert_allclose(fitted(new), StandardScaler().fit(X).transform(new), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("how", ["centred", "standardised"])
@given(st.floats(-1e6, 1e6), st.integers(2, 20))
def test_a_constant_feature_becomes_exactly_zero(how, value, n):
    Z = preprocess(np.column_stack([np.full(n, value), np.arange(n)]), how, unit=False)
    assert (Z[:, 0] == 0).all()
    assert np.isfinite(Z).all()


@given(arrays(np.float64, (3, 4), elements=st.floats(1e-300, 1e300)))
def test_rows_of_any_size_get_norm_one(rows):
    np.testing.assert_allclose(np.linalg.norm(unit_norm(rows), axis=1), 1, rtol=1e-14)


def test_a_zero_row_cannot_have_norm_one():
    with pytest.raises(InputError, match="row 1"):
        unit_norm([[1.0], [0.0]])


def test_a_row_equal_to_the_mean_is_named():
    with pytest.raises(InputError, match=r"Row 1 .* equals the mean"):
        preprocess([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], "centred")


def test_an_unknown_way_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="'raw', 'centred', 'standardised'"):
        preprocess(X, "whitened")


def test_features_beyond_float64_are_named():
    with pytest.raises(InputError, match="feature 1"):
        preprocess([[1.0, 1e308], [2.0, -1e308]], "standardised", unit=False)


def test_another_number_of_features_is_refused():
    with pytest.raises(InputError, match="fitted on 4"):
        fit_preprocessing(X, "centred")(X[:, :3])


def test_a_bias_is_as_long_as_a_typical_row_and_comes_before_the_scaling():
    Z = preprocess(X, "standardised", unit=False)
    with_bias = preprocess(X, "standardised", unit=False, bias=True)
    np.testing.assert_allclose(with_bias[:, :-1], Z)
    np.testing.assert_allclose(with_bias[:, -1], np.sqrt(np.mean(np.sum(Z**2, axis=1))))
    np.testing.assert_allclose(preprocess(X, "standardised", bias=True), normalize(with_bias), rtol=1e-13)


def test_with_a_bias_no_two_different_rows_point_the_same_way_and_the_mean_has_a_direction():
    rows = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    Z = preprocess(rows, "centred", bias=True)
    assert (np.abs(Z @ Z.T - np.eye(3)) < 1 - 1e-3)[~np.eye(3, dtype=bool)].all()
    assert len(preprocess([[0.0], [0.0]], "raw", bias=True)) == 2


@pytest.mark.parametrize("size", [1e-250, 1.0, 1e250])
def test_the_unit_of_the_features_does_not_matter(size):
    for how in ("raw", "standardised"):
        if how == "raw" or size < 1e100:
            np.testing.assert_allclose(preprocess(size * X, how, bias=True), preprocess(X, how, bias=True), rtol=1e-9)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("how", ["centred", "standardised"])
def test_a_new_row_that_leaves_float64_once_it_is_prepared_is_named(how, unit):
    rows = [[-8e307, 0.0], [-8.5e307, 1.0]] if how == "centred" else [[1e-9, 0.0], [0.0, 1.0]]
    fitted = fit_preprocessing(rows, how)
    with pytest.raises(InputError, match=r"1e\+308 in row 1, column 0 .*Rescale"):
        replace(fitted, unit=unit)([[1.0, 1.0], [1e308, 0.0]])
