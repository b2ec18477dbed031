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
from offtangent.kernels.regression import expansion, ridge_path, ridge_regression
from offtangent.kernels.solvable import Kernel
from offtangent.linalg import Spectrum

__all__ = ["NTKClassifier", "NTKRegressor"]


def __dir__() -> list[str]:
    return __all__


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
    """Regression with the kernel of a wide network, as a scikit-learn estimator; one output or several.

    It predicts ȳ + Σᵢ αᵢ K(x, xᵢ) with α = (K + ρI)⁻¹(y − ȳ), which is what gradient descent on the squared loss of
    an infinitely wide network comes to as the ridge ρ goes to zero. Time O(n³) and memory 3n² floats for n samples.

    Args:
        kernel: A kernel of `offtangent.kernels`, or the name of one in `kernels.names.KERNELS`.
        ridge: The ridge ρ, zero or positive, or "auto" for the one with the smallest leave-one-out error, of 25 (on
            2000 rows at random where there are more).
        preprocess: What is done to each feature first: "standardised", "centred" or "raw".
        unit: Whether rows are scaled to length one in the end.
        bias: Whether rows get one more coordinate before that, the same for all and as long as a typical row.

    Attributes:
        kernel_: The kernel itself.
        ridge_: The ridge ρ that was used.
        preprocessing_: What is done to inputs, fitted on the training data.
        X_fit_: The training inputs after it.
        dual_coef_: α.
        intercept_: ȳ, the mean of the training targets, to which a large ridge shrinks.

    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> bool(NTKRegressor().fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.999)
    True
    """

    def fit(self, X: object, y: object) -> "NTKRegressor":
        """Fit the regression to training data.

        Args:
            X: The inputs, one row each.
            y: The targets: a number for each row, or a row of numbers.

        Returns:
            The estimator itself.

        Raises:
            InputError: If a parameter has no such value, or a kernel matrix without a ridge is singular.
        """
        inputs, targets = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        targets = np.asarray(targets, np.float64)
        self.intercept_ = targets.mean(axis=0)
        self._fit(inputs, targets - self.intercept_)
        return self

    def predict(self, X: object) -> Float[np.ndarray, "p *k"]:
        """Predict the targets of new inputs, in time O(pnd) for p of them.

        Args:
            X: The inputs, one row each, with the features of the training data.

        Returns:
            The predictions, shaped like the targets.
        """
        return self._outputs(X) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class NTKClassifier(ClassifierMixin, _KernelEstimator):  # type: ignore[misc]
    """Classification with the kernel of a wide network, as a scikit-learn estimator.

    It is kernel ridge regression on the labels ±1, of more than two classes one against the rest: the class is told by
    the sign, or the largest, of Σᵢ αᵢ K(x, xᵢ) with α = (K + ρI)⁻¹Y. Time O(n³) and memory 3n² floats for n samples.

    Args:
        kernel: A kernel of `offtangent.kernels`, or the name of one in `kernels.names.KERNELS`.
        ridge: The ridge ρ, zero or positive, or "auto" for the one with the smallest leave-one-out error, of 25 (on
            2000 rows at random where there are more).
        preprocess: What is done to each feature first: "standardised", "centred" or "raw".
        unit: Whether rows are scaled to length one in the end.
        bias: Whether rows get one more coordinate before that, the same for all and as long as a typical row.

    Attributes:
        classes_: The labels that y has, sorted.
        kernel_: The kernel itself.
        ridge_: The ridge ρ that was used.
        preprocessing_: What is done to inputs, fitted on the training data.
        X_fit_: The training inputs after it.
        dual_coef_: α; of more than two classes a column for each.

    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> NTKClassifier().fit(X, np.where(np.abs(X[:, 0]) > 0.5, "far", "near")).predict([[0.9], [0.1]]).tolist()
    ['far', 'near']
    """

    def fit(self, X: object, y: object) -> "NTKClassifier":
        """Fit the classifier to training data.

        Args:
            X: The inputs, one row each.
            y: The labels, numbers or text, of at least two classes.

        Returns:
            The estimator itself.

        Raises:
            InputError: If there is one class, a parameter has no such value, or a kernel matrix without a ridge is
                singular.
        """
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
        """Evaluate the regression itself, whose sign or largest column is the class.

        Args:
            X: The inputs, one row each, with the features of the training data.

        Returns:
            A number for each row, positive for the second of two classes; of more classes a column for each.
        """
        return self._outputs(X)

    def predict(self, X: object) -> np.ndarray:
        """Predict the classes of new inputs, in time O(pnd) for p of them.

        Args:
            X: The inputs, one row each, with the features of the training data.

        Returns:
            The labels, one for each row.
        """
        outputs = self.decision_function(X)
        chosen = (outputs > 0).astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


def _best_ridge(kernel: Kernel, X: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n *k"]) -> float:
    """By leave-one-out error; of many rows on 2000 at random, since the best ridge does not depend on n."""
    if len(X) > AT_MOST:
        rows = np.random.default_rng(0).choice(len(X), AT_MOST, replace=False)
        X, Y = X[rows], Y[rows]
    return ridge_path(Spectrum.of(kernel.exact(X)), Y).best
