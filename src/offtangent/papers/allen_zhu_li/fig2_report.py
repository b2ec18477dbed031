"""What the nine methods of Figure 2 came to: who is below kα², and where."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, error_interval, ratio_interval
from offtangent.papers.allen_zhu_li import _methods
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.training.grids import Search

COLOURS = {"3resnet": "blue", "3layer": "green", "2layer": "orange"}
SYMBOLS = {"": "circle", " (NTK)": "triangle-up", " (last)": "square"}
DASHES = {"": "solid", " (NTK)": "dash", " (last)": "dot"}
PANELS = {"a": ("samples", "training samples N"), "b": ("width", "width m"), "c": ("beta", "α/β")}


class _Panel:
    """The points of one plot, for one target."""

    def __init__(self, panel: str, target: str, results: Results):
        self.panel, self.target = panel, target
        self.field = PANELS[panel][0]
        self.results = results
        self.function = _methods.target(target, _methods.ALPHA, 1.0)
        self.level = _methods.unlearnt(self.function)
        self.methods = [method for method in _methods.METHODS if method in self.results.values("method")]

    def places(self, method: str) -> list[Any]:
        """Where a method was run: N, m or β."""
        return sorted({getattr(cell, self.field) for cell, _ in self.results.where(method=method)})

    def errors(self, method: str, place: Any) -> Float[np.ndarray, " s"]:
        """The test error of each seed, with what the samples for choosing chose."""
        ((_, found),) = self.results.where(method=method, **{self.field: place}).pairs
        if method not in _methods.NETWORKS:
            return np.asarray(found["test"].values)
        chosen = searched(found)
        return np.asarray(chosen.tables["test"][chosen.chosen])

    def settled(self, method: str, place: Any) -> bool:
        """Whether what was chosen lies inside its grid."""
        ((_, found),) = self.results.where(method=method, **{self.field: place}).pairs
        return searched(found).inside if method in _methods.NETWORKS else bool((found["inside"] == 1).all())

    def others(self, place: Any) -> list[str]:
        return [method for method in self.methods if method != "3resnet" and place in self.places(method)]

    def best_other(self, place: Any) -> str:
        return min(self.others(place), key=lambda method: float(self.errors(method, place).mean()))

    def lowest_other(self, place: Any) -> str:
        """The other method whose interval reaches lowest: if it is not below something, none is."""
        return min(self.others(place), key=lambda method: error_interval(self.errors(method, place)).low)

    def all_settled(self, place: Any) -> bool:
        return all(self.settled(method, place) for method in self.others(place))

    def over(self, method: str, place: Any) -> str:
        """Of which seeds an interval is, and where."""
        symbol = {"samples": "N", "width": "m", "beta": "β"}[self.field]
        return f"95 % interval of {len(self.errors(method, place))} seeds, {symbol} = {place:g}"

    @property
    def where(self) -> str:
        cell = self.results.pairs[0][0]
        dim, outputs = _methods.sizes(self.function)
        width = "" if self.panel == "b" else f"m = {cell.width}, "
        return f"d = {dim}, k = {outputs}, {width}{cell.epochs} + {cell.epochs} epochs"

    @property
    def inside(self) -> bool:
        """Whether the target and the epochs are the paper's."""
        return self.target != "small" and all(cell.epochs >= _methods.EPOCHS for cell, _ in self.results)

    def ratios(self) -> str:
        """The ResNet's error over the best other method's, everywhere, in words."""
        symbol = {"samples": "N", "width": "m", "beta": "β"}[self.field]
        listed = []
        for place in (place for place in self.places("3resnet") if self.others(place)):
            best = self.best_other(place)
            ratio = float(self.errors("3resnet", place).mean() / self.errors(best, place).mean())
            listed.append(f"{symbol} = {place:g}: {ratio:.3g} ({best})")
        return "; ".join(listed)


def searched(found: Any) -> Search:
    """The grid of a network's cell."""
    tables = {name: found[name].values for name in ("train", "choose", "test")}
    return Search(tuple(found["rate"].values.tolist()), tuple(found["decay"].values.tolist()), tables, "choose")


def _panels(results: Results) -> list[_Panel]:
    """(a) at the width with most N; (b) and (c), where there are several widths or β, at that N and that width."""
    found = []
    for target in (target for target in _methods.TARGETS if target in results.values("target")):
        here = results.where(target=target)
        plain = here.where(beta=1.0)
        if not len(plain):
            continue
        width = max(plain.values("width"), key=lambda m: len(plain.where(width=m).values("samples")))
        found.append(_Panel("a", target, plain.where(width=width)))
        for panel, rest in (("b", here.where(beta=1.0)), ("c", here.where(width=width))):
            field = PANELS[panel][0]
            n = max(rest.values("samples"), key=lambda n: len(rest.where(samples=n).values(field)))
            if len(rest.where(samples=n).values(field)) > 1:
                found.append(_Panel(panel, target, rest.where(samples=n)))
    return [one for one in found if "3resnet" in one.methods]


def claims(results: Results) -> list[Claim]:
    found = []
    for panel in _panels(results):
        if panel.panel == "a":
            found += _with_a_thousand(panel) + _against_samples(panel)
        if panel.panel == "c":
            found += _against_beta(panel)
    return found


def _against_samples(panel: _Panel) -> list[Claim]:
    """The ResNet below kα², and every other method not, at the N that suits the statement best."""
    places = [n for n in panel.places("3resnet") if panel.others(n)]
    ours = {n: error_interval(panel.errors("3resnet", n)) for n in places}
    below = [n for n in places if ours[n].high < panel.level]
    if not places:
        return []
    first = below[0] if below else places[-1]
    head = f"{_title(panel.target)}: "
    listed = "; ".join(f"N = {n}: {ours[n].value:.3f}" for n in places)
    words: dict[str, Any] = {"source": "Section 6, Figure 2(a)"}
    found = [
        Claim.at_most(
            ours[first], panel.level, strict=True, inside=panel.settled("3resnet", first), **words,
            statement=f"{head}3resnet learns αG(F) to some non-trivial accuracy: its error is below "
            f"kα² = {panel.level:.3g}",
            measured=f"mean of ‖out − y‖², {panel.over('3resnet', first)}, {panel.where}",
            note=f"{listed}. {_choice(panel, '3resnet', first)}",
        )
    ]  # fmt: skip
    if not below:
        return found
    full = max(len(panel.others(n)) for n in below)
    lows = {n: _lowest(panel, n).low for n in below if len(panel.others(n)) == full}
    at = max(lows, key=lows.__getitem__)
    missing = [method for method in _methods.METHODS if method not in (*panel.others(at), "3resnet")]
    only = f"{head}there is an N at which 3resnet is the only method below kα²"
    if missing:
        why = f"{', '.join(missing)}: not run at the N at which 3resnet is below, {below}."
        found.append(Claim.not_run(reason="size", **words, statement=only, profile="paper", why=why))
    if panel.target == "small":  # of which the paper says nothing
        return found
    run = f", of {len(panel.others(at)) + 1} that were run there" if missing else ""
    ratios = {
        method: ratio_interval(panel.errors("3resnet", at), panel.errors(method, at)) for method in panel.others(at)
    }
    closest = max(ratios, key=lambda method: ratios[method].high)
    return [
        *found,
        _no_other(panel, at, statement=only + run, **words),
        Claim.at_most(
            ratios[closest], 1.0, strict=True, **words,
            inside=panel.settled("3resnet", at) and panel.all_settled(at),
            statement=f"{head}at this N, {at}, 3resnet's error is below that of every other method{run}",
            measured=f"geometric mean of its error, {len(panel.errors('3resnet', at))} seeds, over that of the closest "
            f"one, {closest}, {panel.over(closest, at)}, {panel.where}",
            note=f"At every N, its mean error over the best other method's: {panel.ratios()}.",
        ),
    ]  # fmt: skip


def _lowest(panel: _Panel, place: Any) -> Interval:
    return error_interval(panel.errors(panel.lowest_other(place), place))


def _no_other(panel: _Panel, at: Any, **words: Any) -> Claim:
    """No other method is below kα²: judged by the one whose interval reaches lowest, where all choices are settled."""
    lowest = panel.lowest_other(at)
    means = "; ".join(f"{method} {panel.errors(method, at).mean():.3f}" for method in ("3resnet", *panel.others(at)))
    return Claim.at_least(
        _lowest(panel, at), panel.level, inside=panel.all_settled(at), **words,
        measured=f"mean error of the other method that reaches lowest, {lowest}, {panel.over(lowest, at)}, "
        f"{panel.where}",
        note=f"At N = {at}: {means}. {_choice(panel, lowest, at)}",
    )  # fmt: skip


def _with_a_thousand(panel: _Panel) -> list[Claim]:
    """The paper's own number, for the target that it has it for."""
    at = _methods.PAPER_SAMPLES
    if panel.target != "version 1" or at not in panel.places("3resnet") or not panel.others(at):
        return []
    words: dict[str, Any] = {"source": "Section 6, Figure 2(a)"}
    head = f"with {at} samples"
    statements = (f"{head} 3resnet learns αG(F) to some non-trivial accuracy", f"{head} no other method does")
    if not panel.inside:
        why = f"The paper's epochs are {_methods.EPOCHS} and as many again."
        return [Claim.not_run(reason="size", **words, statement=one, profile="paper", why=why) for one in statements]
    return [
        Claim.at_most(
            error_interval(panel.errors("3resnet", at)), panel.level, strict=True, inside=panel.settled("3resnet", at),
            statement=statements[0], measured=f"mean of ‖out − y‖², {panel.over('3resnet', at)}, {panel.where}",
            note=_choice(panel, "3resnet", at), **words,
        ),
        _no_other(panel, at, statement=statements[1], **words),
    ]  # fmt: skip


def _choice(panel: _Panel, method: str, place: Any) -> str:
    """Which rate and decay were chosen, whether inside the grid, and what the paper's choice by test error gives."""
    ((_, data),) = panel.results.where(method=method, **{panel.field: place}).pairs
    if method not in _methods.NETWORKS:
        inside = "inside their grids" if bool((data["inside"] == 1).all()) else "not all inside their grids"
        return f"{method}: λ {inside}; chosen by the test error: {float(data['best'].mean()):.3f}."
    found = searched(data)
    (i, j), paper = found.chosen, found.best("test")
    edge = "inside its grid" if found.inside else "on the edge of its grid"
    return (
        f"{method}: rate {found.rates[i]:g}, decay {found.decays[j]:g}, {edge}; chosen by the test error, as in the "
        f"paper: {found.tables['test'][paper].mean():.3f}."
    )


def _against_beta(panel: _Panel) -> list[Claim]:
    betas = [beta for beta in panel.places("3resnet") if beta >= _methods.ALPHA]
    if not betas:
        return []
    worst = max(betas, key=lambda beta: float(panel.errors("3resnet", beta).mean()))
    listed = "; ".join(
        f"α/β = {_methods.ALPHA / beta:.3g}: {panel.errors('3resnet', beta).mean():.3f}"
        for beta in panel.places("3resnet")
    )
    cell = panel.results.pairs[0][0]
    return [
        Claim.at_most(
            error_interval(panel.errors("3resnet", worst)), panel.level, strict=True,
            source="Section 6, Figure 2(c)", inside=panel.inside and panel.settled("3resnet", worst),
            statement=f"{_title(panel.target)}: 3resnet learns αG(F) as long as α/β ≤ 1",
            measured=f"mean error at the worst β, {panel.over('3resnet', worst)}, N = {cell.samples}, {panel.where}",
            note=f"{listed}.",
        )
    ]  # fmt: skip


def _title(target: str) -> str:
    return {"small": "Small target", "version 1": "Eight outputs", "later": "Fifteen outputs"}[target]


def figures(results: Results) -> list[Figure]:
    least = {"a": 2, "b": 3, "c": 3}  # two points are no curve, but two N tell who comes first
    return [_figure(panel) for panel in _panels(results) if len(panel.places("3resnet")) >= least[panel.panel]]


def _figure(panel: _Panel) -> Figure:
    plot = new_plot()
    every: list[float] = []
    for method in panel.methods:
        network, _, kind = method.partition(" ")
        places = panel.places(method)
        if len(places) < 2 and panel.panel != "a":
            continue
        errors = [panel.errors(method, place) for place in places]
        means, lowest, highest = (np.array([f(one) for one in errors]) for f in (np.mean, np.min, np.max))
        x = np.array([_shown(panel, place) for place in places])
        order = x.argsort()
        every += x.tolist()
        looks: dict[str, Any] = {"name": method, "colour": COLOURS[network]}
        looks["band"] = (lowest[order], highest[order])
        looks["symbol"] = SYMBOLS[f" {kind}" if kind else ""]
        if len(places) < 2:
            points(plot, x, means, **looks)
        else:
            line(plot, x[order], means[order], dash=DASHES[f" {kind}" if kind else ""], **looks)
    ends = np.array([min(every), max(every)])
    line(plot, ends, np.full(2, panel.level), name="kα²", colour="grey")
    style(plot, x=PANELS[panel.panel][1], y="test error, E‖out − y‖²", log_x=True, log_y=True)
    cell = panel.results.pairs[0][0]
    samples = "" if panel.panel == "a" else f", N = {cell.samples}"
    caption = (
        f"{panel.where}{samples}; lines: means over seeds, bands: all seeds. kα²: the error of one who knows F and "
        "nothing of αG(F)."
    )
    if panel.panel == "b" and any(len(panel.places(method)) > 1 for method in panel.methods if method != "3resnet"):
        caption += f" 3resnet's error over the best other method's: {panel.ratios()}."
    short = [method for method in panel.methods if len(panel.places(method)) < len(panel.places("3resnet"))]
    if short and panel.panel == "a":
        caption += f" {', '.join(short)}: not run everywhere."
    kind = {"a": "samples", "b": "the width", "c": "α/β"}[panel.panel]
    return Figure(f"Figure 2({panel.panel}), {_title(panel.target).lower()}: test error against {kind}", caption, plot)


def _shown(panel: _Panel, place: Any) -> float:
    return _methods.ALPHA / place if panel.panel == "c" else float(place)
