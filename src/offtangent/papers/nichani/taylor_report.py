"""What the races between a network and its Taylor models say: their claims and figures."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, ratio_interval
from offtangent.report import Figure, line, new_plot
from offtangent.report.axes import style

COLOURS = {"network": "blue", "linear": "vermillion", "quadratic": "green"}
NAMES = {"network": "network f", "linear": "linear model", "quadratic": "quadratic model"}
PARTS = {"linear part": "f₀ + f_L", "quadratic part": "f_Q alone", "both": "f₀ + f_L + f_Q"}
DATA = {
    ("digits", ()): "Digits 3 and 8",
    ("cifar10", ()): "CIFAR-10, aeroplanes and automobiles",
    ("cifar10", (3, 7)): "CIFAR-10, cats and horses",
}
OWN = ("cifar10", (3, 7))  # the paper's
EPOCHS = 100
SOURCE = "Section 5, Appendix G"
GENERAL = "Section 1.1, after [8]"  # "in a number of standard experimental settings"
STATEMENTS = (
    "the quadratic model's outputs stay closer to the network's than the linear model's",
    "the quadratic model's training loss follows the network's more closely than the linear model's",
    "the quadratic model achieves lower test loss than the linear one",
)


class _Kind:
    """All seeds of one network on one data set, stacked."""

    def __init__(self, results: Results):
        self.cell = results.pairs[0][0]
        self.sets = [data for _, data in results]
        self.seeds = len(results)

    def of(self, name: str, coordinate: str) -> Float[np.ndarray, "s e"]:
        """A quantity of a model (or a part) over epochs, a row for each seed."""
        dim = next(dim for dim in ("model", "part") if coordinate in self.sets[0].coords[dim])
        return np.stack([data[name].sel({dim: coordinate}).values for data in self.sets])

    @property
    def title(self) -> str:
        cell = self.cell
        if cell.network == "mlp":
            what = f"MLP with {cell.depth} hidden layer{'s' if cell.depth > 1 else ''} of {cell.size}"
        else:
            what = f"{cell.depth} convolutions of {cell.size} channels"
        return f"{DATA[cell.data, tuple(cell.classes)]}, {what}"

    @property
    def own(self) -> bool:
        """Whether these are the paper's two classes."""
        return (self.cell.data, tuple(self.cell.classes)) == OWN

    def where(self) -> str:
        cell = self.cell
        shrunk = f" shrunk by {cell.shrink}" if cell.shrink > 1 else ""
        return (
            f"{cell.samples} training and {cell.tests} test images{shrunk}, batches of {cell.batch} {_order(cell)}, "
            f"rate {cell.rate:g}, {cell.epochs} epochs, {self.seeds} seeds"
        )


def _kinds(results: Results) -> list[_Kind]:
    """Every network that at least two seeds have raced."""
    found: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for cell, data in results:
        kind = (cell.data, cell.classes, cell.network, cell.size, cell.depth, cell.shuffle, cell.epochs)
        found.setdefault(kind, []).append((cell, data))
    return [_Kind(Results(results.profile, tuple(pairs))) for pairs in found.values() if len(pairs) > 1]


def claims(results: Results) -> list[Claim]:
    kinds = _kinds(results)
    found = [claim for kind in kinds for claim in _of(kind)]
    if kinds and not any(kind.own for kind in kinds):
        found += [
            Claim.not_run(
                source=SOURCE,
                statement=f"CIFAR-10, cats and horses, batches in one order, {EPOCHS} epochs: {statement}",
                reason="device",
                why="Five networks of 512 channels take a GPU, and all ten classes of CIFAR-10.",
                profile="paper",
            )
            for statement in STATEMENTS
        ]
    return found


def _order(cell: Any) -> str:
    return "shuffled" if cell.shuffle else "in one order"


def _hypotheses(kind: _Kind) -> tuple[Hypothesis, ...]:
    """Of the general statement the kind of network; of the paper's own experiment its settings as well."""
    cell = kind.cell
    network = {"cnn": "convolutional", "mlp": "an MLP"}[cell.network]
    found = (Hypothesis("network", network, "=", "convolutional", "Appendix G"),)
    if not kind.own:
        return found
    return (
        *found,
        Hypothesis("channels", cell.size, "=", 512, "Appendix G, the authors' code"),
        Hypothesis("batches", _order(cell), "=", "in one order", "Appendix G, the authors' code"),
        Hypothesis("epochs", cell.epochs, "≥", EPOCHS, "Appendix G, the authors' code"),
    )


def _of(kind: _Kind) -> list[Claim]:
    said: dict[str, Any] = {"source": SOURCE if kind.own else GENERAL, "hypotheses": _hypotheses(kind)}
    over = f"quadratic over linear, geometric mean and 95 % interval over seeds, {kind.where()}"
    away = {name: kind.of("distance", name).mean(axis=1) for name in ("linear", "quadratic")}
    apart = {
        name: np.abs(kind.of("train", name) - kind.of("train", "network")).mean(axis=1)
        for name in ("linear", "quadratic")
    }
    last = {name: kind.of("test", name)[:, -1] for name in NAMES}
    lowest = {name: kind.of("test", name).min(axis=1).mean() for name in NAMES}
    right = {name: kind.of("right", name)[:, -1].mean() for name in NAMES}

    def three(values: Any) -> str:
        return ", ".join(f"{NAMES[name]} {np.mean(values[name]):.3f}" for name in NAMES if name in values)

    return [
        Claim.at_most(
            _ratio(away), 1.0, strict=True, **said,
            statement=f"{kind.title}: {STATEMENTS[0]}",
            measured=f"Distance of test outputs (root mean square), mean over epochs: {over}",
            note=f"Distances: {three(away)}.",
        ),
        Claim.at_most(
            _ratio(apart), 1.0, strict=True, **said,
            statement=f"{kind.title}: {STATEMENTS[1]}",
            measured=f"Difference of training losses, mean over epochs: {over}",
            note=f"Differences: {three(apart)}.",
        ),
        Claim.at_most(
            _ratio(last), 1.0, strict=True, **said,
            statement=f"{kind.title}: {STATEMENTS[2]}",
            measured=f"Mean squared error after the last epoch: {over}",
            note=f"Test losses: {three(last)}; lowest of all epochs: {three(lowest)}. Correct signs: {three(right)}.",
        ),
    ]  # fmt: skip


def _ratio(values: Any) -> Interval:
    """The quadratic model's numbers over the linear one's."""
    return ratio_interval(values["quadratic"], values["linear"])


def figures(results: Results) -> list[Figure]:
    return [figure for kind in _kinds(results) for figure in (_losses(kind), _distances(kind), _parts(kind))]


def _band(values: Float[np.ndarray, "s e"]) -> tuple[Float[np.ndarray, "e"], Float[np.ndarray, "e"]]:
    return values.min(axis=0), values.max(axis=0)


def _losses(kind: _Kind) -> Figure:
    """The paper's own plot."""
    plot, epochs = new_plot(), np.arange(kind.cell.epochs + 1.0)
    for name, colour in COLOURS.items():
        tested, trained = kind.of("test", name), kind.of("train", name)
        line(plot, epochs, tested.mean(axis=0), name=f"{NAMES[name]}, test", colour=colour, band=_band(tested))
        line(plot, epochs, trained.mean(axis=0), name=f"{NAMES[name]}, training", colour=colour, dash="dot")
    style(plot, x="epoch", y="mean squared error")
    caption = (
        f"Means over seeds (bands: all of them, of the test loss); training losses are means over an epoch's batches. "
        f"{kind.where()}."
    )
    return Figure(f"A network and its Taylor models: {kind.title}", caption, plot)


def _distances(kind: _Kind) -> Figure:
    plot, epochs = new_plot(), np.arange(1.0, kind.cell.epochs + 1)
    for name in ("linear", "quadratic"):
        away = kind.of("distance", name)[:, 1:]
        line(plot, epochs, away.mean(axis=0), name=f"{NAMES[name]}, trained by itself", colour=COLOURS[name],
             band=_band(away))  # fmt: skip
    for order, name in ((1, "linear"), (2, "quadratic")):
        left = np.stack([data["left_out"].sel(order=order).values for data in kind.sets])[:, 1:]
        line(plot, epochs, left.mean(axis=0), name=f"Taylor polynomial of order {order} at the network's weights",
             colour=COLOURS[name], dash="dot")  # fmt: skip
    style(plot, x="epoch", y="distance to the network's test outputs", log_y=True)
    caption = f"Root mean square over test images, means over seeds (bands: all of them). {kind.where()}."
    return Figure(f"How far each model is from the network: {kind.title}", caption, plot)


def _parts(kind: _Kind) -> Figure:
    plot, epochs = new_plot(), np.arange(1.0, kind.cell.epochs + 1)  # at the start f_L = f_Q = 0
    own = kind.of("right", "network")[:, 1:]
    line(plot, epochs, own.mean(axis=0), name=NAMES["network"], colour="blue", band=_band(own))
    for (name, label), colour in zip(PARTS.items(), ("vermillion", "purple", "green"), strict=True):
        values = kind.of("part_right", name)[:, 1:]
        line(plot, epochs, values.mean(axis=0), name=label, colour=colour, band=_band(values))
    style(plot, x="epoch", y="correct test signs")
    caption = (
        "Along the network's own path, at its weights: what the terms of its Taylor series say of the test images. "
        f"Means over seeds (bands: all of them). {kind.where()}."
    )
    return Figure(f"Which terms carry the network: {kind.title}", caption, plot)
