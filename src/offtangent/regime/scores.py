"""How well a network predicts held-out labels, and how well each of its Taylor polynomials would have."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._checks import require
from offtangent._errors import InputError

LOSSES = ("cross-entropy", "logistic", "squared")


@dataclass(frozen=True)
class Prediction:
    """What one model makes of held-out samples.

    Attributes:
        order: The order k of the model, the sum of f^{(0)} to f^{(k)}; -1 for the network itself.
        loss: Its mean loss.
        accuracy: The fraction of labels it finds; None where labels are no classes.
        behind: How far it is behind the network: in accuracy, or in loss where there are no classes.
        error: The standard error of that, over samples, each compared with itself.
    """

    order: int
    loss: float
    accuracy: float | None
    behind: float
    error: float

    @property
    def is_as_good(self) -> bool:
        """Whether nothing on these samples says that it predicts worse: it is behind by two standard errors at most."""
        return self.behind <= 2 * self.error


@dataclass(frozen=True, eq=False)
class Scoring:
    """Held-out labels and the loss by which outputs are judged.

    Attributes:
        labels: Classes, (n,) whole numbers from zero on; for the logistic loss −1 and 1; numbers, (n, k), otherwise.
        loss: "cross-entropy", "logistic" or "squared".
        is_class: Whether an accuracy makes sense.
    """

    labels: np.ndarray
    loss: str
    is_class: bool

    @classmethod
    def of(cls, y: object, outputs: tuple[int, ...], loss: str | None = None) -> "Scoring":
        """Read labels, and choose the loss that fits them.

        Whole numbers for k ≥ 2 outputs are classes, and so are rows of zeros with a single one: cross-entropy. For one
        output, 0 and 1 are classes told apart by its sign: the logistic loss. All else is judged by the squared error;
        −1 and 1 for one output, too, and then signs count as found.

        Args:
            y: The labels, (n,) or (n, k).
            outputs: The shape of the network's outputs on these samples, (n,) or (n, k).
            loss: One of the three, where it is not the one that fits.

        Returns:
            How outputs are judged.

        Raises:
            InputError: If labels do not fit the outputs, or the loss does not fit them.
        """
        require(loss in (None, *LOSSES), f"loss={loss!r} is none of {', '.join(LOSSES)}.")
        labels = _read(y, outputs)
        k = outputs[1] if len(outputs) == 2 else 1
        fits = _fitting(labels, k)
        chosen = loss or fits
        if chosen == "cross-entropy":
            require(k > 1 and fits == "cross-entropy", _unfit(chosen, labels, outputs, "classes 0, 1, …, k − 1"))
            classes = labels.argmax(axis=1) if labels.ndim == 2 else labels
            return cls(classes.astype(int), chosen, True)
        two = set(np.unique(labels)) <= {0, 1} or set(np.unique(labels)) <= {-1, 1}
        if chosen == "logistic":
            require(k == 1 and two, _unfit(chosen, labels, outputs, "0 and 1, or −1 and 1, for one output"))
            return cls(np.where(labels.reshape(-1) > 0, 1.0, -1.0), chosen, True)
        if k > 1 and labels.ndim == 1:
            require(fits == "cross-entropy", _unfit(chosen, labels, outputs, "a number for each output, or classes"))
            labels = np.eye(k)[labels.astype(int)]
        values = labels.reshape(len(labels), k).astype(np.float64)
        return cls(values, "squared", fits == "cross-entropy" if k > 1 else two)

    def judge(self, f: Float[np.ndarray, "n *k"]) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"] | None]:
        """The loss of each sample, and whether its label was found."""
        outputs = np.asarray(f, np.float64).reshape(len(self.labels), -1)
        if self.loss == "cross-entropy":
            shifted = outputs - outputs.max(axis=1, keepdims=True)
            loss = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(shifted)), self.labels]
            return loss, (outputs.argmax(axis=1) == self.labels).astype(float)
        if self.loss == "logistic":
            margins = self.labels * outputs[:, 0]
            return np.logaddexp(0, -margins), (margins > 0).astype(float)
        loss = np.square(outputs - self.labels).mean(axis=1)
        if not self.is_class:
            return loss, None
        if outputs.shape[1] > 1:
            return loss, (outputs.argmax(axis=1) == self.labels.argmax(axis=1)).astype(float)
        middle = 0.5 if (self.labels == 0).any() else 0.0
        return loss, ((outputs[:, 0] > middle) == (self.labels[:, 0] > middle)).astype(float)

    def predictions(
        self, network: Float[np.ndarray, "n *k"], models: list[Float[np.ndarray, "n *k"]]
    ) -> tuple[Prediction, ...]:
        """Judge a network and its Taylor polynomials, of orders 0, 1, …, on the same samples."""
        loss, found = self.judge(network)
        told = [Prediction(-1, float(loss.mean()), None if found is None else float(found.mean()), 0.0, 0.0)]
        for order, model in enumerate(models):
            own, right = self.judge(model)
            apart = own - loss if found is None or right is None else found - right
            error = float(apart.std(ddof=1) / len(apart) ** 0.5) if len(apart) > 1 else float("inf")
            accuracy = None if right is None else float(right.mean())
            told.append(Prediction(order, float(own.mean()), accuracy, float(apart.mean()), error))
        return tuple(told)


def _read(y: object, outputs: tuple[int, ...]) -> np.ndarray:
    try:
        labels = np.asarray(y)
    except ValueError as error:  # ragged lists
        raise InputError(f"The held-out labels are no array: {error}. Give rows of equal length.") from None
    wanted = f"({outputs[0]},)" + (f" or {outputs}" if len(outputs) == 2 else "")
    require(
        labels.shape in ((outputs[0],), outputs, (outputs[0], 1)) and (labels.ndim == 1 or labels.shape[1:] != ()),
        f"The held-out labels have shape {labels.shape}: expected {wanted}, a label for each held-out sample.",
    )
    require(
        labels.dtype.kind in "buif",
        f"The held-out labels have dtype {labels.dtype}: expected numbers; np.unique(y, return_inverse=True)[1] makes "
        "some.",
    )
    require(np.isfinite(labels).all(), "Some held-out labels are NaN or infinite: drop those samples.")
    k = outputs[1] if len(outputs) == 2 else 1
    return labels.reshape(-1) if labels.ndim == 2 and (k == 1 or labels.shape[1] == 1) else labels


def _fitting(labels: np.ndarray, k: int) -> str:
    if k == 1:
        return "logistic" if labels.dtype.kind in "bui" and set(np.unique(labels)) <= {0, 1} else "squared"
    if labels.ndim == 2:
        one_hot = set(np.unique(labels)) <= {0, 1} and (labels.sum(axis=1) == 1).all()
        return "cross-entropy" if one_hot else "squared"
    whole = (labels == np.round(labels)).all() and labels.min(initial=0) >= 0 and labels.max(initial=0) < k
    return "cross-entropy" if whole else "squared"


def _unfit(loss: str, labels: np.ndarray, outputs: tuple[int, ...], wanted: str) -> str:
    return (
        f"The held-out labels (shape {labels.shape}, from {labels.min():g} to {labels.max():g}) do not go with outputs "
        f"of shape {outputs} and the {loss} loss: expected {wanted}."
    )
