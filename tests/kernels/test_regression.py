"""Kernel ridge regression against scikit-learn, and leave-one-out against leaving one out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge

from offtangent._errors import InputError
from offtangent.kernels import gaussian, relu_hidden, ridge_regression
from offtangent.kernels import regression as module
from offtangent.kernels.closed_forms import relu_both
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.regression import LeaveOneOut, ridge_for_norm, ridge_path
from offtangent.linalg import Spectrum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((25, 4))
NEW = RNG.standard_normal((13, 4))
ONE, MANY = RNG.standard_normal(25), RNG.standard_normal((25, 3))


@pytest.mark.parametrize("kernel", [relu_hidden, relu_both, gaussian(1.5)], ids=lambda k: k.name)
@pytest.mark.parametrize("Y", [ONE, MANY], ids=["one output", "three outputs"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_predictions_are_those_of_scikit_learn(kernel, Y, ridge):
    theirs = KernelRidge(alpha=ridge, kernel="precomputed").fit(kernel.exact(X), Y).predict(kernel.exact(NEW, X))
    ours = ridge_regression(kernel, X, Y, ridge=ridge)
    assert ours.predict(NEW).shape == (13, *Y.shape[1:])
    np.testing.assert_allclose(ours.predict(NEW), theirs, rtol=1e-9, atol=1e-11)


def test_without_a_ridge_it_runs_through_the_labels():
    np.testing.assert_allclose(ridge_regression(relu_hidden, X, MANY, ridge=0).predict(X), MANY, atol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 1e-2, 10.0])
@pytest.mark.parametrize("Y", [ONE, MANY], ids=["one output", "three outputs"])
def test_leave_one_out_equals_n_refits(ridge, Y):
    found = ridge_regression(relu_hidden, X, Y, ridge=ridge).leave_one_out
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        left = ridge_regression(relu_hidden, X[others], Y[others], ridge=ridge).predict(X[i : i + 1])[0]
        np.testing.assert_allclose(found.predictions[i], left, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.residuals, Y - found.predictions, rtol=1e-12)


def test_the_sensitivity_is_how_far_noise_in_the_others_labels_moves_a_prediction():
    """f₋ᵢ(xᵢ) is linear in y: its weights are found by setting one label at a time to 1."""
    inverse = Inverse.of(relu_hidden.exact(X) + 0.1 * np.eye(25))
    weights = LeaveOneOut.of(inverse, np.eye(25)).predictions
    np.testing.assert_allclose(weights.diagonal(), 0, atol=1e-12)
    sensitivity = LeaveOneOut.of(inverse, ONE).sensitivity
    np.testing.assert_allclose(sensitivity, np.linalg.norm(weights, axis=1), rtol=1e-10)


def test_the_path_has_the_leave_one_out_error_of_each_ridge():
    ridges = [1e-3, 0.1, 5.0]
    path = ridge_path(Spectrum.of(relu_hidden.exact(X)), MANY, ridges)
    errors = [np.mean(ridge_regression(relu_hidden, X, MANY, ridge=r).leave_one_out.residuals ** 2) for r in ridges]
    np.testing.assert_allclose(path.errors, errors, rtol=1e-8)
    assert path.best == ridges[int(np.argmin(errors))]


def test_the_best_ridge_is_small_for_clean_labels_and_large_for_random_ones():
    smooth = X @ RNG.standard_normal(4)
    spectrum = Spectrum.of(relu_hidden.exact(X))
    assert ridge_path(spectrum, smooth).best < 0.01 < 1 < ridge_path(spectrum, RNG.choice([-1.0, 1.0], 25)).best


@pytest.mark.parametrize("norm", [0.05, 0.5])
def test_the_ridge_of_a_ball_gives_the_best_weights_of_that_norm(norm):
    """Against a minimiser that knows nothing of kernels: ‖Φw − y‖² over ‖w‖ ≤ norm."""
    rng = np.random.default_rng(1)
    features, y = rng.standard_normal((6, 9)), rng.standard_normal(6)
    K = features @ features.T
    ridge = ridge_for_norm(Spectrum.of(K), y, norm)
    w = features.T @ np.linalg.solve(K + ridge * np.eye(6), y)
    assert np.linalg.norm(w) == pytest.approx(norm, rel=1e-10)
    inside = {"type": "ineq", "fun": lambda w: norm**2 - w @ w, "jac": lambda w: -2 * w}
    found = minimize(
        lambda w: np.sum((features @ w - y) ** 2), np.zeros(9), constraints=[inside], options={"ftol": 1e-14},
        jac=lambda w: 2 * features.T @ (features @ w - y), method="SLSQP",
    )  # fmt: skip
    np.testing.assert_allclose(found.x, w, atol=1e-5 * norm)


def test_a_ball_that_holds_the_interpolant_needs_no_ridge():
    spectrum = Spectrum.of(relu_hidden.exact(X))
    size = float(np.sqrt(ONE @ np.linalg.solve(relu_hidden.exact(X), ONE)))
    assert ridge_for_norm(spectrum, ONE, 1.001 * size) == 0.0 < ridge_for_norm(spectrum, ONE, 0.999 * size)
    assert ridge_for_norm(spectrum, 0 * ONE, 1.0) == 0.0
    with pytest.raises(InputError, match="norm=0 must be positive"):
        ridge_for_norm(spectrum, ONE, 0)
    with pytest.raises(InputError, match="kernel is zero"):
        ridge_for_norm(Spectrum.of(np.zeros((2, 2))), ONE[:2], 1.0)


def test_a_prediction_does_not_depend_on_how_many_rows_are_done_at_once(monkeypatch):
    model = ridge_regression(relu_hidden, X, MANY, ridge=0.1)
    whole = model.predict(NEW)
    monkeypatch.setattr(module, "AT_ONCE", 50)  # two rows of 25
    np.testing.assert_allclose(model.predict(NEW), whole, rtol=1e-12)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_the_inverse_is_that_of_numpy(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A = A @ A.T + np.eye(n)
    G, Y = np.linalg.inv(A), rng.standard_normal((n, 2))
    ours = Inverse.of(A)
    np.testing.assert_allclose(ours @ Y, G @ Y, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.quadratic(Y), np.einsum("ij,ij->j", Y, G @ Y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.quadratic(Y[:, 0]), Y[:, :1].T @ G @ Y[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.row_squares, (G**2).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose([ours.trace, ours.squares], [np.trace(G), (G**2).sum()], rtol=1e-9)


@pytest.mark.parametrize(
    ("Y", "answer"),
    [
        (ONE[:-1], r"shape \(24,\): expected \(25,\) or \(25, k\)"),
        (np.where(np.arange(25) == 7, np.nan, ONE), "1 entries .* row 7"),
        (["a"] * 25, "no array of numbers"),
        (np.ones((25, 0)), r"shape \(25, 0\)"),
    ],
)
def test_bad_labels_are_refused(Y, answer):
    with pytest.raises(InputError, match=answer):
        ridge_regression(relu_hidden, X, Y, ridge=0.1)


def test_parallel_inputs_need_a_ridge():
    twice = np.vstack([X, 2 * X[:1]])
    with pytest.raises(InputError, match="Rows 0 and 25"):
        ridge_regression(relu_hidden, twice, np.ones(26), ridge=0)
    assert np.isfinite(ridge_regression(relu_hidden, twice, np.ones(26), ridge=1e-3).predict(NEW)).all()


def test_another_number_of_features_is_refused():
    with pytest.raises(InputError, match="fitted on 4"):
        ridge_regression(relu_hidden, X, ONE, ridge=1).predict(NEW[:, :3])


def test_a_truncated_spectrum_has_no_path():
    with pytest.raises(InputError, match="all eigenpairs"):
        ridge_path(Spectrum.of(relu_hidden.exact(X), 3), ONE)
