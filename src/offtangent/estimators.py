"""scikit-learn faces of kernel ridge regression with the kernels of wide networks.

    from sklearn.model_selection import cross_val_score
    cross_val_score(NTKClassifier(), X, y)

Inputs are standardised, get a bias coordinate and are put on the unit sphere, unless said otherwise; the ridge is the
one with the smallest leave-one-out error.
"""

from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from offtangent._errors import InputError
from offtangent.data.preprocessing import fit_preprocessing
from offtangent.kernels import named_kernel
from offtangent.kernels.gram import Kernel
from offtangent.kernels.regression import expansion, ridge_path, ridge_regression
from offtangent.linalg import Spectrum

AT_MOST = 2000  # rows on which the ridge is chosen


class _KernelEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    def __init__(
        self,
        kernel: Any = "relu_hidden",
        *,
        ridge: Any = "auto",
        preprocess: Any = "standardised",
        unit: Any = True,
        bias: Any = True,
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.preprocess = preprocess
        self.unit = unit
        self.bias = bias

    def _fit(self, X: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n *k"]) -> None:
        self.kernel_ = named_kernel(self.kernel)
        self.preprocessing_ = fit_preprocessing(X, self.preprocess, unit=self.unit, bias=self.bias)
        self.X_fit_ = self.preprocessing_(X)
        if self.ridge != "auto" and not isinstance(self.ridge, Real):
            raise InputError(f"ridge={self.ridge!r}: expected a number, or 'auto'.")
        self.ridge_ = _best_ridge(self.kernel_, self.X_fit_, Y) if self.ridge == "auto" else self.ridge
        self.dual_coef_ = ridge_regression(self.kernel_, self.X_fit_, Y, ridge=self.ridge_).coefficients

    def _outputs(self, X: object) -> Float[np.ndarray, "p *k"]:
        check_is_fitted(self)
        inputs = validate_data(self, X, reset=False, dtype=np.float64)
        return expansion(self.kernel_, self.X_fit_, self.dual_coef_, self.preprocessing_(inputs))


class NTKRegressor(RegressorMixin, _KernelEstimator):  # type: ignore[misc]
    """Kernel ridge regression; one output or several.

    Parameters: `kernel`, a name in `kernels.names.KERNELS` or any kernel of `offtangent.kernels`; `ridge`, a number or
    "auto"; `preprocess`, "standardised", "centred" or "raw"; `unit` and `bias`, whether rows are put on the unit
    sphere, and with a bias coordinate. Fitted: `kernel_`, `ridge_`, `preprocessing_`, `X_fit_`, `dual_coef_`,
    `intercept_` (the mean of y, to which a large ridge shrinks). Time O(n³), memory 3n² floats.

    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> bool(NTKRegressor().fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.999)
    True
    """

    def fit(self, X: object, y: object) -> "NTKRegressor":
        inputs, targets = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        targets = np.asarray(targets, np.float64)
        self.intercept_ = targets.mean(axis=0)
        self._fit(inputs, targets - self.intercept_)
        return self

    def predict(self, X: object) -> Float[np.ndarray, "p *k"]:
        return self._outputs(X) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class NTKClassifier(ClassifierMixin, _KernelEstimator):  # type: ignore[misc]
    """Kernel ridge regression on labels ±1; more than two classes one against the rest.

    Parameters and fitted attributes are those of NTKRegressor (without `intercept_`), and `classes_`.

    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> NTKClassifier().fit(X, np.where(np.abs(X[:, 0]) > 0.5, "far", "near")).predict([[0.9], [0.1]]).tolist()
    ['far', 'near']
    """

    def fit(self, X: object, y: object) -> "NTKClassifier":
        inputs, given = validate_data(self, X, y, dtype=np.float64)
        given = column_or_1d(given, warn=True)
        check_classification_targets(given)
        self.classes_, codes = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class, {self.classes_[0]!r}: a classifier needs at least two classes.")
        if len(self.classes_) == 2:
            Y = 2.0 * codes - 1
        else:
            Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._fit(inputs, Y)
        return self

    def decision_function(self, X: object) -> Float[np.ndarray, "p *k"]:
        """The regression itself: positive for the second of two classes; a column each for more."""
        return self._outputs(X)

    def predict(self, X: object) -> np.ndarray:
        outputs = self.decision_function(X)
        chosen = (outputs > 0).astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


def _best_ridge(kernel: Kernel, X: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n *k"]) -> float:
    """By leave-one-out error; of many rows on 2000 at random, since the best ridge does not depend on n."""
    if len(X) > AT_MOST:
        rows = np.random.default_rng(0).choice(len(X), AT_MOST, replace=False)
        X, Y = X[rows], Y[rows]
    return ridge_path(Spectrum.of(kernel.exact(X)), Y).best
