"""The estimators, by scikit-learn's own checks and against its own regression."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from offtangent._errors import InputError
from offtangent.data import preprocess
from offtangent.estimators import NTKClassifier, NTKRegressor
from offtangent.kernels import deep, gaussian, relu_hidden, ridge_regression
from offtangent.kernels.closed_forms import relu_both
from offtangent.kernels.names import KERNELS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
NEW = RNG.standard_normal((9, 5))


@parametrize_with_checks([NTKRegressor(), NTKClassifier()])
def test_scikit_learn_s_own_checks_pass(estimator, check):
    check(estimator)


def test_the_regressor_is_kernel_ridge_regression_on_centred_labels():
    y = X @ RNG.standard_normal((5, 2)) + 7
    ours = NTKRegressor(relu_hidden, ridge=0.3, preprocess="raw", bias=False, unit=False).fit(X, y)
    theirs = KernelRidge(alpha=0.3, kernel="precomputed").fit(relu_hidden.exact(X), y - y.mean(axis=0))
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(relu_hidden.exact(NEW, X)) + y.mean(axis=0), rtol=1e-9)


def test_the_classifier_takes_more_than_two_classes_one_against_the_rest():
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    ours = NTKClassifier(ridge=0.1).fit(X, y)
    Z = preprocess(X, "standardised", bias=True)
    columns = [ridge_regression(relu_hidden, Z, np.where(y == c, 1.0, -1.0), ridge=0.1) for c in "abc"]
    expected = np.stack([column.predict(ours.preprocessing_(NEW)) for column in columns], axis=1)
    np.testing.assert_allclose(ours.decision_function(NEW), expected, rtol=1e-9)
    assert ours.predict(NEW).tolist() == np.array(["a", "b", "c"])[expected.argmax(axis=1)].tolist()


def test_digits_are_read_better_than_by_a_linear_classifier():
    digits, y = load_digits(return_X_y=True)
    ours, linear = (
        cross_val_score(model, digits[:600], y[:600], cv=2).mean() for model in (NTKClassifier(), RidgeClassifier())
    )
    assert ours > linear + 0.02


def test_noisy_labels_get_a_larger_ridge_than_clean_ones():
    clean = X[:, 0]
    noisy = clean + RNG.standard_normal(60)
    assert NTKRegressor().fit(X, noisy).ridge_ > 10 * NTKRegressor().fit(X, clean).ridge_


@pytest.mark.parametrize("kernel", [*KERNELS, gaussian(0.5), deep(2, activation="erf")], ids=str)
def test_every_kernel_by_name_or_as_an_object_fits_and_survives_a_pickle(kernel):
    model = clone(NTKRegressor(kernel=kernel)).fit(X, X[:, 0])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert model.score(X, X[:, 0]) > 0.5


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"kernel": "relu"}, "expected one of 'relu_hidden'"),
        ({"kernel": 3}, "kernel is an int"),
        ({"ridge": -1.0}, "ridge=-1"),
        ({"ridge": "large"}, "a number, or 'auto'"),
        ({"preprocess": "whitened"}, "expected one of 'raw'"),
    ],
)
def test_wrong_settings_are_refused_with_what_is_expected(settings, answer):
    with pytest.raises(InputError, match=answer):
        NTKRegressor(**settings).fit(X, X[:, 0])


def test_one_class_is_refused():
    with pytest.raises(InputError, match="at least two classes"):
        NTKClassifier().fit(X, np.ones(60))


def test_the_same_kernel_by_name_and_as_an_object_is_the_same():
    by_name, as_object = (NTKRegressor(kernel=kernel).fit(X, X[:, 0]) for kernel in ("relu_both", relu_both))
    np.testing.assert_array_equal(by_name.predict(NEW), as_object.predict(NEW))
