"""Labels in the spectrum of one kernel matrix: alignment, complexity, predicted training, next to shuffled labels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent.kernels import Gram
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.regression import AT_ONCE, ridge_path
from offtangent.kernels.solves import Watch
from offtangent.labels.measure import MeasureBracket, exact_measure, lanczos_measure
from offtangent.linalg import Spectrum
from offtangent.theory.arora.dynamics import largest_stable_rate
from offtangent.theory.arora.generalisation import Complexity, complexity

EIGENPAIRS = 100  # that are found of a large matrix
SMALL = 1500  # rows up to which all eigenpairs are found, and on which the ridge is chosen
SHUFFLES = 100
TOGETHER = 20  # columns, of labels and shuffles, that a large matrix is solved for at once
DONE = 0.01  # of the initial loss, where training counts as finished


@dataclass(frozen=True, eq=False)
class Alignment:
    """The share of the labels' energy within the top 1, 2, …, r eigenvectors, next to the same labels shuffled."""

    share: Float[np.ndarray, " r"]
    shuffled_mean: Float[np.ndarray, " r"]
    shuffled_low: Float[np.ndarray, " r"]  # 5 % and 95 % of the shuffles
    shuffled_high: Float[np.ndarray, " r"]


@dataclass(frozen=True, eq=False)
class PredictedCurve:
    """The loss ‖y − u(k)‖² / ‖y‖² of gradient descent at the rate 1/λ_max, and of shuffled labels."""

    rate: float
    steps: Int[np.ndarray, " t"]
    lower: Float[np.ndarray, " t"]
    upper: Float[np.ndarray, " t"]
    shuffled: Float[np.ndarray, " t"]
    steps_to_1_percent: tuple[int | None, int | None]  # between these; None where it cannot be said
    shuffled_steps: int | None


@dataclass(frozen=True, eq=False)
class LabelSpectrum:
    """What one kernel matrix says about labels."""

    values: Float[np.ndarray, " r"]  # eigenvalues: all, or the largest
    complete: bool
    alignment: Alignment
    complexity: Complexity  # of several columns the root of the mean square
    by_column: tuple[Complexity, ...]
    shuffled: Float[np.ndarray, " s"]  # complexities of shuffled labels
    curve: PredictedCurve
    ridge: float  # with the smallest leave-one-out error


def label_spectrum(
    H: Gram, inverse: Inverse | None, Y: Float[np.ndarray, "n k"], rng: np.random.Generator, tell: Watch
) -> LabelSpectrum:
    """All of it, for the columns of Y together. Time O(n²k) a few hundred times, beside what `Gram` does.

    `inverse` is that of H where it fits into memory. Without it H is never held: it is multiplied with (in float32,
    which is what the predicted curve is then good to) and solved for the labels and fewer shuffles at once.
    """
    n, k = Y.shape
    tell("finding eigenvectors")
    small = n <= SMALL
    spectrum = H.eigh() if small else H.eigh(EIGENPAIRS, watch=tell)
    orders = [rng.permutation(n) for _ in range(SHUFFLES if inverse is not None else max(5, TOGETHER // k - 1))]
    rate = largest_stable_rate(spectrum) / 2
    if small:
        true, other = (exact_measure(spectrum, columns) for columns in (Y, Y[orders[0]]))
        best = ridge_path(spectrum, Y).best
    else:
        true, other = (
            lanczos_measure(_product(H, inverse), columns, rate=rate, loss=DONE, watch=tell)
            for columns in (Y, Y[orders[0]])
        )
        rows = np.sort(rng.choice(n, SMALL, replace=False))
        tell("choosing a ridge")
        best = ridge_path(Gram(H.kernel, H.X[rows], H.ridge).eigh(), Y[rows]).best
    if inverse is None:
        tell("bounding the complexity, of shuffled labels too")
        found = H.inverse_quadratics(np.hstack([Y, *(Y[order] for order in orders)]), watch=tell)
        brackets, values = found[:k], np.array([one.value for one in found[k:]]).reshape(-1, k)
        quadratics = [_mean_square(row) for row in values]
    else:
        tell("bounding the complexity")
        brackets = H.inverse_quadratics(Y, watch=tell)
        tell("comparing with shuffled labels")
        quadratics = list(_shuffled(inverse, Y, orders))
    ends = (_mean_square(np.array([getattr(b, end) for b in brackets])) for end in ("value", "lower", "upper"))
    value, lower, upper = (complexity(end, n) for end in ends)
    return LabelSpectrum(
        values=spectrum.values,
        complete=small,
        alignment=_alignment(spectrum, Y, orders),
        complexity=Complexity(value, lower, upper, all(b.certified for b in brackets)),
        by_column=tuple(complexity(b, n) for b in brackets),
        shuffled=np.array([complexity(quadratic, n) for quadratic in quadratics]),
        curve=_curve(true, other, rate),
        ridge=best,
    )


def _product(H: Gram, inverse: Inverse | None) -> Callable[[np.ndarray], np.ndarray]:
    """V ↦ Hv through the matrix where it fits, else over its tiles in float32."""
    if inverse is not None:
        matrix = H.dense()
        return lambda v: matrix @ v
    return lambda v: np.asarray(H @ v.astype(np.float32), np.float64)


def _shuffled(inverse: Inverse, Y: Float[np.ndarray, "n k"], orders: list[Int[np.ndarray, " n"]]) -> Iterator[float]:
    """The mean over columns of yᵀGy for each order of the rows, as many at a time as fit into 128 MB."""
    n, k = Y.shape
    at_once = max(1, AT_ONCE // Y.size)
    for start in range(0, len(orders), at_once):
        some = orders[start : start + at_once]
        found = inverse.quadratic(np.stack([Y[order] for order in some], axis=1).reshape(n, -1)).reshape(-1, k)
        yield from (_mean_square(quadratics) for quadratics in found)


def _mean_square(quadratics: Float[np.ndarray, " k"]) -> float:
    return float(np.mean(np.maximum(quadratics, 0.0)))


def _alignment(spectrum: Spectrum, Y: Float[np.ndarray, "n k"], orders: list[Int[np.ndarray, " n"]]) -> Alignment:
    top = spectrum.vectors[:, : min(EIGENPAIRS, len(spectrum.values))]
    total = float(np.sum(Y**2))

    def shares(columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " r"]:
        return np.cumsum(np.sum((top.T @ columns) ** 2, axis=1)) / total

    draws = np.array([shares(Y[order]) for order in orders])
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    return Alignment(shares(Y), draws.mean(axis=0), low, high)


def _curve(true: MeasureBracket, other: MeasureBracket, rate: float) -> PredictedCurve:
    ends = (*true.steps_to(DONE, rate), *other.steps_to(DONE, rate))
    last = 3 * max((end for end in ends if end is not None), default=10**6) + 10
    steps = np.unique(np.concatenate([[0], np.geomspace(1, last, 120).astype(np.int64)]))
    lower, upper = (measure.losses(rate, steps) for measure in (true.lower, true.upper))
    return PredictedCurve(
        rate=rate,
        steps=steps,
        lower=np.minimum(lower, upper),  # where they agree, rounding may exchange them
        upper=upper,
        shuffled=other.upper.losses(rate, steps),
        steps_to_1_percent=(ends[0], ends[1]),
        shuffled_steps=ends[3] if ends[3] is not None else ends[2],
    )
