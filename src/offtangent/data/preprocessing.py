"""Features centred or standardised, and rows scaled to the unit sphere that the papers assume."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from offtangent._checks import check_inputs, check_nonzero, require, unit_rows
from offtangent._errors import InputError

How = Literal["raw", "centred", "standardised"]


@dataclass(frozen=True)
class Preprocessing:
    """x ↦ (x − mean) / scale per feature, then x/‖x‖ if `unit`: fitted on training data, used on any.

    A positive `bias` is appended as one more coordinate, the same for all rows, after features were centred and divided
    by `scale` and before rows are brought to length 1: different rows then never point the same way, and the row at the
    mean has a direction too. `fit_preprocessing` makes one.
    """

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    unit: bool
    bias: float = 0.0

    def __call__(self, X: object) -> Float[np.ndarray, "n e"]:
        """The same map for new rows. Time and memory O(nd)."""
        array = check_inputs(X)
        require(
            array.shape[1] == len(self.mean),
            f"X has {array.shape[1]} features, and this preprocessing was fitted on {len(self.mean)}.",
        )
        return self.of_checked(array)

    def of_checked(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n e"]:
        """The same map for rows that are checked already, of as many features as it was fitted on."""
        try:
            with np.errstate(over="raise"):  # finite numbers become infinite in no other way
                result: np.ndarray = X - self.mean
                result /= self.scale
        except FloatingPointError:
            raise self._too_large(X) from None
        if self.bias > 0:
            result = np.hstack([result, np.full((len(result), 1), self.bias)])
        if not self.unit:
            return result
        if not self.mean.any():
            check_nonzero(result)
        elif len(zero := np.flatnonzero(~result.any(axis=1))):  # with a bias no row is zero
            raise InputError(
                f"Row {zero[0]} (counted from 0) equals the mean of the features, so it is zero once centred "
                f"and has no direction; {len(zero)} of {len(result)} rows do. Drop them, or give unit=False."
            )
        return unit_rows(result)

    def _too_large(self, X: Float[np.ndarray, "n d"]) -> InputError:
        with np.errstate(over="ignore"):
            row, column = np.argwhere(~np.isfinite((X - self.mean) / self.scale))[0]
        return InputError(
            f"X is {X[row, column]:.3g} in row {row}, column {column} (counted from 0), and beyond float64 once its "
            "feature is centred and scaled. Rescale that feature first."
        )


def fit_preprocessing(X: object, how: str, *, unit: bool = True, bias: bool = False) -> Preprocessing:
    """The means and scales of these rows: 0 and 1 if raw, scale 1 if centred.

    Standardised features have variance 1 (dividing by n). A constant feature becomes exactly zero. With `bias`, the
    added coordinate is as long as the rows are on average (root of the mean square), so that a typical row lies
    half-way between the pole and the equator of the sphere. Time and memory O(nd).

    >>> fit_preprocessing([[1.0, 5.0], [3.0, 5.0]], "standardised", bias=True)([[3.0, 5.0]]).round(3)
    array([[0.707, 0.   , 0.707]])
    """
    check_how(how)
    return fit_checked(check_inputs(X), how, unit=unit, bias=bias)


def fit_checked(array: Float[np.ndarray, "n d"], how: str, *, unit: bool, bias: bool) -> Preprocessing:
    """What `fit_preprocessing` returns, of rows and a way that are checked already."""
    mean, scale = np.zeros(array.shape[1]), np.ones(array.shape[1])
    if how == "raw":
        return Preprocessing(mean, scale, unit, _typical_length(array, mean, scale) if bias else 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        constant = (array == array[0]).all(axis=0)  # not std == 0: the mean of equal numbers may be rounded
        mean = np.where(constant, array[0], array.mean(axis=0))
        if how == "standardised":
            size = np.abs(array - mean).max(axis=0)
            unit_size = np.where((size > 0) & (size < 1e-100), size, 1.0)  # tiny squares would vanish
            deviation = unit_size * np.sqrt(np.mean(((array - mean) / unit_size) ** 2, axis=0))
            scale = np.where(constant | (deviation == 0), 1.0, deviation)
    too_large = np.flatnonzero(~(np.isfinite(mean) & np.isfinite(scale)))
    if len(too_large):
        raise InputError(
            f"The mean or variance of feature {too_large[0]} (counted from 0) is beyond float64: its largest "
            f"entry is {np.abs(array[:, too_large[0]]).max():.3g}. Rescale that feature first."
        )
    return Preprocessing(mean, scale, unit, _typical_length(array, mean, scale) if bias else 0.0)


def _typical_length(
    X: Float[np.ndarray, "n d"], mean: Float[np.ndarray, " d"], scale: Float[np.ndarray, " d"]
) -> float:
    """√(mean ‖z‖²) of the rows z = (x − mean) / scale; 1 if they are all zero."""
    with np.errstate(over="ignore"):
        Z = (X - mean) / scale
    largest = float(np.abs(Z).max())  # dividing first keeps tiny and huge rows from under- or overflow
    if largest == 0:
        return 1.0
    length = largest * float(np.sqrt(np.mean(np.sum((Z / largest) ** 2, axis=1))))
    if not np.isfinite(length):
        raise InputError(
            f"The rows are longer than float64 can say: their largest entry is {np.abs(X).max():.3g}. Divide X by a "
            "constant."
        )
    return length


def preprocess(X: object, how: str, *, unit: bool = True, bias: bool = False) -> Float[np.ndarray, "n e"]:
    """Centre or standardise features by their own statistics, then scale each row to norm 1, as the papers assume.

    The map is x ↦ z = (x − mean)/scale feature by feature, and then z/‖z‖ with `unit`. A constant feature becomes
    exactly zero once centred. Test data must reuse the statistics of the training data: see
    `data.preprocessing.fit_preprocessing`. Time and memory O(nd).

    Args:
        X: The samples as rows.
        how: "raw" leaves the features as they are, "centred" takes their means away, and "standardised" also divides by
            their standard deviations (of n samples, not n − 1).
        unit: Whether each row is scaled to norm 1 in the end.
        bias: Whether to append one more coordinate before the rows are scaled, the same for all: different rows then
            never point the same way. It is as long as the rows are on average (the root of the mean square).

    Returns:
        The new samples as rows, in float64; with `bias` they have one column more than X.

    Raises:
        InputError: If X is no table of finite numbers, `how` is unknown, or a row without a direction would have to be
            scaled, as one is that equals the mean; the message names it.

    >>> preprocess([[1.0, 5.0], [3.0, 5.0]], "standardised")
    array([[-1.,  0.], [ 1.,  0.]])
    >>> preprocess([[3.0, 4.0]], "raw")
    array([[0.6, 0.8]])
    """
    check_how(how)
    array = check_inputs(X)
    return fit_checked(array, how, unit=unit, bias=bias).of_checked(array)


def unit_norm(X: object) -> Float[np.ndarray, "n d"]:
    """Each row divided by its norm; zero rows are refused. Time and memory O(nd).

    >>> unit_norm([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """
    return unit_rows(check_inputs(X, nonzero=True))


def check_how(how: str) -> None:
    """Refuse an unknown way of preprocessing before anything is read."""
    if how not in get_args(How):
        raise InputError(f"preprocess={how!r}: expected one of {', '.join(map(repr, get_args(How)))}.")
