"""What a kernel says about a labelled data set before anything is trained.

How hard the labels are (the complexity measure of Arora et al. (2019), eq. (10), against the same labels shuffled), how
fast gradient descent will learn them (eq. (8)), how well a label follows from the others, how many are wrong and which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from offtangent._arguments import check_function
from offtangent._checks import check_count, check_directions, check_key, check_labels, check_several, require
from offtangent._errors import InputError
from offtangent.data.duplicates import Merged, merge_checked
from offtangent.data.preprocessing import Preprocessing, check_how, fit_checked
from offtangent.kernels import Gram, named_kernel, relu_hidden
from offtangent.kernels.definiteness import check_ridge
from offtangent.kernels.solvable import Kernel
from offtangent.kernels.solves import Watch
from offtangent.kernels.trusting import trusted_diag
from offtangent.labels.partition import predict_within_parts, random_parts, rows_that_fit
from offtangent.labels.spectrum import Alignment, LabelSpectrum, PredictedCurve, label_spectrum
from offtangent.labels.tasks import Noise, labels_of
from offtangent.theory.arora.generalisation import Complexity

ROWS_IN_ALL = 65_536  # rows whose kernel matrix is solved by iteration, in about half an hour on two cores


@dataclass(frozen=True, eq=False)
class Suspects:
    """Every row of the data, the one whose label is least like its prediction from the others first."""

    rows: Int[np.ndarray, " n"]
    scores: Float[np.ndarray, " n"]  # margin against the label; of numbers, the size of the standardised residual
    predicted: Float[np.ndarray, " n"]  # the class's number in `classes`, or the value, that the others predict
    likely: int  # how many, from the top, are not what is predicted (of numbers: by 3 standard deviations)


@dataclass(frozen=True, eq=False, repr=False)
class LabelAnalysis:
    """All that `analyse` found. `summary()` has the numbers as a dictionary for JSON.

    Attributes:
        n: The number of rows given.
        y: Their labels: classes by number, or values.
        features: The number of columns given.
        classes: The names of the classes, or None where labels are numbers.
        counts: The number of rows of each class.
        merged: Which rows are equal to each other.
        preprocessing: What was done to the inputs.
        kernel: The name of the kernel.
        ridge: What was added to the diagonal of the kernel matrix for spectrum and complexity.
        parts: The numbers of rows of the parts that predictions were made within: one part if there was room.
        rows: The number of rows that spectrum, complexity and curve are of.
        spectrum: The labels in the spectrum of the kernel matrix.
        noise: How many labels are wrong.
        loo_error: The share of rows whose label is not predicted by the others; of numbers, 1 − R².
        suspects: All rows, the one whose label is least like its prediction first.
    """

    n: int
    y: Float[np.ndarray, " n"]
    features: int
    classes: tuple[str, ...] | None
    counts: tuple[int, ...] | None
    merged: Merged
    preprocessing: Preprocessing
    kernel: str
    ridge: float
    parts: tuple[int, ...]
    rows: int
    spectrum: LabelSpectrum
    noise: Noise
    loo_error: float
    suspects: Suspects

    @property
    def complexity(self) -> Complexity:
        """The complexity √(2 yᵀ(H∞)⁻¹y / n) between its bounds; of several classes the root of the mean square."""
        return self.spectrum.complexity

    @property
    def alignment(self) -> Alignment:
        """The share of the labels' energy in the top eigenvectors, next to that of shuffled labels."""
        return self.spectrum.alignment

    @property
    def curve(self) -> PredictedCurve:
        """The loss that gradient descent is predicted to have at each step."""
        return self.spectrum.curve

    @property
    def rank(self) -> float:
        """The share of shuffles that are as simple as the labels or simpler, the labels themselves counted in."""
        shuffled = self.spectrum.shuffled
        return float((1 + np.sum(shuffled <= self.complexity.value)) / (1 + len(shuffled)))

    def __repr__(self) -> str:
        kind = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"LabelAnalysis({self.n} rows, {kind}, complexity {self.complexity.value:.3g})"

    def summary(self) -> dict[str, Any]:
        """Put all numbers into a dictionary for JSON.

        Returns:
            Plain numbers, lists and text by name; None where there is nothing to say.
        """
        estimate, curve, shuffled = self.noise.estimate, self.curve, self.spectrum.shuffled
        low, high = curve.steps_to_1_percent
        by_class = self.spectrum.by_column if self.classes and len(self.classes) > 2 else ()
        return {
            "n": self.n,
            "features": self.features,
            "task": "regression" if self.classes is None else "classification",
            "classes": None if self.classes is None else dict(zip(self.classes, self.counts or (), strict=True)),
            "complexity": _ends(self.complexity),
            "complexity_shuffled": {
                "mean": float(shuffled.mean()),
                "sd": float(shuffled.std(ddof=1)),
                "draws": len(shuffled),
                "rank": self.rank,
            },
            "complexity_by_class": dict(zip(self.classes or (), map(_ends, by_class), strict=True))
            if by_class
            else None,
            "noise": {
                "fraction": estimate.fraction if estimate else None,
                "lower": estimate.lower if estimate else None,
                "upper": estimate.upper if estimate else None,
                "level": estimate.level if estimate else None,
                "assumption": estimate.assumption if estimate else None,
                "doubtful": estimate.doubtful if estimate else None,
                "bound": self.noise.bound,
                "even_bound": self.noise.even_bound,
                "variance_bound": self.noise.variance_bound,
                "bound_level": self.noise.level,
            },
            "steps_to_1_percent": high,
            "steps_to_1_percent_between": [low, high],
            "steps_to_1_percent_shuffled": curve.shuffled_steps,
            "rate": curve.rate,
            "loo_error": self.loo_error,
            "loo_ridge": self.spectrum.ridge,
            "suspects": self.suspects.rows.tolist(),
            "suspects_likely": self.suspects.likely,
            "duplicates": {
                "dropped": self.merged.dropped,
                "groups": len(self.merged.groups),
                "disagreeing": [list(rows) for rows in self.merged.disagreeing],
            },
            "preprocessing": describe(self.preprocessing),
            "kernel": self.kernel,
            "ridge": self.ridge,
            "rows": self.rows,
            "parts": list(self.parts),
        }


def analyse(
    X: object,
    y: object,
    *,
    task: str = "auto",
    classes: Sequence[str] | None = None,
    preprocess: str = "standardised",
    unit: bool = True,
    bias: bool = True,
    kernel: Kernel | str = relu_hidden,
    ridge: float | int = 0.0,
    rows_at_once: int | None = None,
    key: Key[Array, ""] | None = None,
    watch: Watch | None = None,
) -> LabelAnalysis:
    """Say all that a kernel knows about the labels y of inputs X, before anything is trained.

    Five things, from the kernel matrix H∞ of an infinitely wide network: how hard the labels are, by the complexity of
    Arora et al. (2019) next to that of the same labels shuffled,

        √(2 yᵀ(H∞)⁻¹y / n),                                                         (10)

    how fast gradient descent will learn them, ‖y − u(k)‖² ≈ Σᵢ (1 − ηλᵢ)²ᵏ(vᵢᵀy)² by eq. (8), how well each label
    follows from the others by kernel ridge regression, how many are wrong, and which. Equal rows are merged first.

    Time O(n³) and memory 5n² floats up to `rows_at_once` rows. Beyond that, leave-one-out predictions and the noise are
    found within random parts of at most that many rows; spectrum, complexity and curve are still of all rows, up to
    65 536 (of more: of a random part), by iteration on tiles.

    Args:
        X: The inputs, one row each.
        y: The labels, a number for each row.
        task: "classification" (labels are classes; more than two are taken one against the rest), "regression" (labels
            are numbers), or "auto": classes if they have names or are at most 20 different whole numbers.
        classes: The names of the labels 0, 1, …, for classes.
        preprocess: What is done to each feature first: "standardised", "centred" or "raw".
        unit: Whether rows are scaled to length one in the end.
        bias: Whether they get one more coordinate before that, the same for all and as long as a typical row.
        kernel: A kernel of `offtangent.kernels`, or the name of one in `kernels.names.KERNELS`.
        ridge: What is added to the diagonal of the kernel matrix for spectrum and complexity; needed where rows point
            the same way, 1e-6 say.
        rows_at_once: How many rows are treated in one piece; 12 000 by default, or what half of the free memory holds.
        key: The JAX key that draws the shuffles and the parts, that of seed 0 by default.
        watch: A function that is told, in words, what is being done.

    Returns:
        A `LabelAnalysis`; its `summary()` has the numbers as a dictionary.

    Raises:
        InputError: If X or y are not finite numbers or do not fit together, if all labels are the same, if there are
            too many different ones for classes, or if the kernel matrix is singular; the message says what to do.

    >>> from offtangent.data import digits
    >>> found = analyse(*digits(classes=(0, 1), samples=60))
    >>> found.loo_error, bool(found.complexity.upper < 1 < 3 < found.spectrum.shuffled.min())
    (0.0, True)
    """
    tell = _listener(watch)
    inputs, given = check_labels(X, y)
    check_several(inputs)
    if rows_at_once is not None:
        check_count("rows_at_once", rows_at_once, least=10)
    check_ridge(ridge)
    check_how(preprocess)
    kernel = named_kernel(kernel)
    labels = labels_of(given, task, classes)
    tell("looking for duplicate rows")
    merged = merge_checked(inputs, labels.values, average=labels.names is None)
    prepared = fit_checked(merged.X, preprocess, unit=unit, bias=bias)
    Z = prepared.of_checked(merged.X)
    _check_rows(Z, merged, ridge, bias)
    _check_kernel(kernel, Z, ridge)
    Y = labels.columns(merged.y)
    rng = _generator(jax.random.key(0) if key is None else key)
    parts = random_parts(len(Z), rows_at_once or rows_that_fit(), rng)
    (together, *_) = random_parts(len(Z), ROWS_IN_ALL, rng)

    spectrum: LabelSpectrum | None = None
    if len(parts) > 1:
        spectrum = label_spectrum(Gram(kernel, Z[together], ridge=ridge), None, Y[together], rng, tell)
    found = predict_within_parts(lambda rows: Gram(kernel, Z[rows], ridge=ridge), Y, labels, parts, spectrum, rng, tell)
    distinct = labels.compare(merged.y, found.outputs, found.precision)
    verdict = labels.compare(labels.values, found.outputs[merged.of_row], found.precision[merged.of_row])
    order = np.argsort(-verdict.scores, kind="stable")
    return LabelAnalysis(
        n=len(inputs),
        y=labels.values,
        features=inputs.shape[1],
        classes=labels.names,
        counts=labels.counts,
        merged=merged,
        preprocessing=prepared,
        kernel=kernel.name,
        ridge=float(ridge),
        parts=tuple(len(rows) for rows in parts),
        rows=len(together),
        spectrum=found.spectrum,
        noise=labels.noise(found.quadratic, found.moments, distinct, found.sensitivity),
        loo_error=verdict.error,
        suspects=Suspects(order, verdict.scores[order], verdict.predicted[order], int(verdict.wrong.sum())),
    )


def describe(preprocessing: Preprocessing) -> str:
    """What is done to the inputs, in words."""
    centred, scaled = bool(preprocessing.mean.any()), bool((preprocessing.scale != 1).any())
    parts = ["features standardised" if scaled else "features centred" if centred else "features as they are"]
    if preprocessing.bias > 0:
        parts.append(f"a bias coordinate of {preprocessing.bias:.4g} added")
    if preprocessing.unit:
        parts.append("rows scaled to length one")
    return ", ".join(parts)


def _listener(watch: Watch | None) -> Watch:
    """Who is told of the progress, or nobody."""
    if watch is None:
        return lambda _: None
    check_function("watch", watch, "of text")
    return watch


def _check_rows(Z: Float[np.ndarray, "m d"], merged: Merged, ridge: float, bias: bool) -> None:
    require(len(Z) >= 2, f"All {len(merged.of_row)} rows are equal: there is nothing to tell their labels by.")
    require(
        not (merged.y == merged.y[0]).all(),
        "Once duplicate rows are merged, all labels are the same: expected at least two classes.",
    )
    if ridge == 0:
        try:
            check_directions(Z, merged.first)
        except InputError as error:
            hint = "" if bias else " With a bias coordinate (the default) they do not."
            raise InputError(f"{error} For labels: ridge=1e-6, or --ridge 1e-6.{hint}") from None


def _check_kernel(kernel: Kernel, Z: Float[np.ndarray, "m d"], ridge: float) -> None:
    """Refuse a ridge beside which float64 has no room for the kernel."""
    largest = float(np.max(trusted_diag(kernel, Z)))
    if ridge * np.finfo(np.float64).eps > largest:
        raise InputError(
            f"ridge={ridge:g} leaves nothing of a kernel whose entries are {largest:.3g} at most: float64 has 16 "
            "digits. Give a ridge of the kernel's size or less, such as ridge=1e-6 (--ridge 1e-6)."
        )


def _generator(key: Key[Array, ""]) -> np.random.Generator:
    """Seeded by bits drawn from the key: a small seed itself might be the one that the data were shuffled with."""
    check_key(key)
    return np.random.default_rng([int(word) for word in jax.random.bits(key, (4,), np.uint32)])


def _ends(found: Complexity) -> dict[str, Any]:
    upper = found.upper if np.isfinite(found.upper) else None  # where nothing is known of the smallest eigenvalue
    return {"value": found.value, "lower": found.lower, "upper": upper, "certified": found.certified}
