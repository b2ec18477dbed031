"""Labels that are classes and labels that are numbers: what differs between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from offtangent._checks import require
from offtangent._errors import InputError, a_kind
from offtangent.kernels.inverse import Inverse
from offtangent.labels.noise import (
    BOUND_LEVEL,
    InverseMoments,
    NoiseEstimate,
    noise_bound,
    noise_estimate,
    noise_variance_bound,
)

TASKS = ("auto", "classification", "regression")
FEW = 20  # different whole numbers that count as classes, if nobody says otherwise
OUTLIER = 3.0  # standard deviations from where on a number looks wrong


@dataclass(frozen=True, eq=False)
class Verdict:
    """Labels compared with what is predicted for them."""

    scores: Float[np.ndarray, " n"]  # the larger, the less the label is like the prediction
    margins: Float[np.ndarray, " n"]  # how sure the prediction is
    predicted: Float[np.ndarray, " n"]  # a class's number, or a value
    wrong: Bool[np.ndarray, " n"]
    error: float  # the share of `wrong` labels; of numbers, 1 − R²


@dataclass(frozen=True)
class Noise:
    """How many labels are wrong. Of numbers none is right or wrong: only the noise's variance is bounded."""

    bound: float | None  # on the fraction of wrong labels, from the complexity, whatever the chance of each
    even_bound: float | None  # the same if every label had the same chance to go wrong
    estimate: NoiseEstimate | None  # of the fraction, from the predictions
    variance_bound: float | None  # for numbers: on the share of noise in the variance of the labels
    level: float  # of the bounds


@runtime_checkable
class Labels(Protocol):
    """What an analysis asks of a task."""

    @property
    def values(self) -> Float[np.ndarray, " n"]: ...  # a number for each label
    @property
    def names(self) -> tuple[str, ...] | None: ...
    @property
    def counts(self) -> tuple[int, ...] | None: ...
    def columns(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]: ...
    def quadratic(self, inverse: Inverse, Y: Float[np.ndarray, "m k"]) -> float: ...
    def compare(
        self, values: Float[np.ndarray, " m"], outputs: Float[np.ndarray, "m k"], precision: Float[np.ndarray, " m"]
    ) -> Verdict: ...
    def noise(
        self, quadratic: float, moments: InverseMoments, verdict: Verdict, sensitivity: Float[np.ndarray, " m"]
    ) -> Noise: ...


@dataclass(frozen=True, eq=False)
class Classes:
    """Two classes are one column of labels −1 and +1; more are a column each, one against the rest."""

    values: Float[np.ndarray, " n"]  # 0, 1, …
    names: tuple[str, ...]
    counts: tuple[int, ...]

    def columns(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        if len(self.names) == 2:
            return (2 * values - 1)[:, None]
        return np.where(values[:, None] == np.arange(len(self.names)), 1.0, -1.0)

    def quadratic(self, inverse: Inverse, Y: Float[np.ndarray, "m k"]) -> float:
        """ỹᵀGỹ as `noise_bound` wants it: of ±1, or of 1 and 0 for several classes."""
        return float(inverse.quadratic(Y if Y.shape[1] == 1 else (Y + 1) / 2).sum())

    def compare(
        self, values: Float[np.ndarray, " m"], outputs: Float[np.ndarray, "m k"], precision: Float[np.ndarray, " m"]
    ) -> Verdict:
        del precision
        if outputs.shape[1] == 1:
            f = outputs[:, 0]
            predicted, margins, scores = (f > 0).astype(np.float64), np.abs(f), (1 - 2 * values) * f
        else:
            top = np.argmax(outputs, axis=1)
            own = values.astype(np.int64)
            at = np.arange(len(outputs))
            others = outputs.copy()
            others[at, own] = -np.inf
            scores = (others.max(axis=1) - outputs[at, own]) / 2  # of labels ±1 differences are twice those of 1 and 0
            others[at, own] = outputs[at, own]
            others[at, top] = -np.inf
            predicted, margins = top.astype(np.float64), (outputs[at, top] - others.max(axis=1)) / 2
        wrong = predicted != values
        return Verdict(scores, margins, predicted, wrong, float(wrong.mean()))

    def noise(
        self, quadratic: float, moments: InverseMoments, verdict: Verdict, sensitivity: Float[np.ndarray, " m"]
    ) -> Noise:
        count = len(self.names)
        estimate = noise_estimate(verdict.margins, sensitivity, verdict.wrong, classes=count)
        bound, even = (noise_bound(quadratic, moments, classes=count, even=even) for even in (False, True))
        return Noise(bound, even, estimate, None, BOUND_LEVEL)


@dataclass(frozen=True, eq=False)
class Numbers:
    """One column, shifted and scaled to mean zero and variance one."""

    values: Float[np.ndarray, " n"]
    mean: float
    deviation: float
    names: None = None
    counts: None = None

    def columns(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        return ((values - self.mean) / self.deviation)[:, None]

    def quadratic(self, inverse: Inverse, Y: Float[np.ndarray, "m k"]) -> float:
        return float(inverse.quadratic(Y).sum())

    def compare(
        self, values: Float[np.ndarray, " m"], outputs: Float[np.ndarray, "m k"], precision: Float[np.ndarray, " m"]
    ) -> Verdict:
        """Residuals in units of their own standard deviation: Gᵢᵢ^{-1/2} times a common one, found from the median."""
        labels = self.columns(values)[:, 0]
        residuals = labels - outputs[:, 0]
        scaled = residuals * np.sqrt(precision)
        unit = float(np.median(np.abs(scaled))) / 0.6745 or float(np.sqrt(np.mean(scaled**2))) or 1.0
        scores = np.abs(scaled) / unit
        predicted = self.mean + self.deviation * outputs[:, 0]
        error = float(np.sum(residuals**2) / np.sum((labels - labels.mean()) ** 2))
        return Verdict(scores, scores, predicted, scores > OUTLIER, error)

    def noise(
        self, quadratic: float, moments: InverseMoments, verdict: Verdict, sensitivity: Float[np.ndarray, " m"]
    ) -> Noise:
        del verdict, sensitivity
        return Noise(None, None, None, min(noise_variance_bound(quadratic, moments), 1.0), BOUND_LEVEL)


def labels_of(y: Float[np.ndarray, " n"], task: str, names: Sequence[str] | None) -> Classes | Numbers:
    """Labels as classes or as numbers; "auto" takes at most 20 different whole numbers, and names, as classes."""
    if task not in TASKS:
        raise InputError(f"task={task!r}: expected one of {', '.join(map(repr, TASKS))}.")
    found, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(found) < 2:
        raise InputError(
            f"All {len(y)} labels are {found[0] if names is None else names[0]}: expected at least two classes. Take "
            "samples of another class too, or check which column holds the labels."
        )
    whole = len(found) <= FEW and bool((found == np.round(found)).all())
    if task == "regression" or (task == "auto" and names is None and not whole):
        if names is not None:
            raise InputError(f"The labels are names ({', '.join(names[:5])} …), not numbers: no regression on them.")
        if found[-1] / 2 - found[0] / 2 > np.finfo(np.float64).max / 2:
            raise InputError(
                f"The labels lie between {found[0]:.3g} and {found[-1]:.3g}, further apart than float64 can say. "
                "Divide them by a constant."
            )
        unit = float(np.abs(y).max())  # squares of very large or small numbers would over- or underflow
        return Numbers(y, unit * float((y / unit).mean()), unit * float((y / unit).std()))
    require(
        2 * len(found) <= len(y) or len(found) <= 2,
        f"There are {len(found)} different labels in {len(y)} rows: too many for classes. If they are numbers, "
        "say task='regression' (--task regression).",
    )
    if names is not None:
        _check_names(names, found)
        shown = tuple(str(names[int(code)]) for code in found) if len(names) > found.max() else None
        if shown is None:
            raise InputError(f"classes has {len(names)} names, and the largest label is {found.max():g}.")
    else:
        shown = _told_apart(found + 0.0)  # −0 is 0
    return Classes(codes.ravel().astype(np.float64), shown, tuple(int(count) for count in counts))


def _told_apart(values: Float[np.ndarray, " c"]) -> tuple[str, ...]:
    """Different numbers as different texts, which are short where that is enough."""
    short = tuple(f"{value:g}" for value in values)
    return short if len(set(short)) == len(short) else tuple(f"{value:.17g}" for value in values)


def _check_names(names: Sequence[str], found: Float[np.ndarray, " c"]) -> None:
    """Refuse what does not name the labels 0, 1, …: labels of another kind, and names that two of them share."""
    if not isinstance(names, Sequence | np.ndarray):
        raise InputError(f"classes is {a_kind(names)}: expected the names of labels 0, 1, … in a list.")
    if found[0] < 0 or (found != np.round(found)).any():
        raise InputError(
            f"classes names labels 0, 1, …, and y has {found[0]:g} and {found[-1]:g}. Number the classes: "
            "np.unique(y, return_inverse=True)."
        )
    require(
        len({str(name) for name in names}) >= len(names),
        "classes has two equal names: expected a different one for each label.",
    )
