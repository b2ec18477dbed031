"""What the nine methods of Figure 2 came to: who is below kα², and where."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import error_interval, ratio_interval
from offtangent.papers.allen_zhu_li import _methods
from offtangent.training.grids import Search

PANELS = {"a": ("samples", "training samples N"), "b": ("width", "width m"), "c": ("beta", "α/β")}


class Panel:
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
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """That the target and the epochs are the paper's."""
        words = "the paper's" if self.target != "small" else "a smaller one"
        return (
            Hypothesis("target", words, "=", "the paper's", "Figure 2"),
            _methods.trained(min(cell.epochs for cell, _ in self.results)),
        )

    def grids(self, *methods: str, place: Any) -> tuple[Hypothesis, ...]:
        """That what was chosen for these methods lies inside their grids."""
        return (_methods.settled(all(self.settled(method, place) for method in methods)),)

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


def panels(results: Results) -> list[Panel]:
    """(a) at the width with most N; (b) and (c), where there are several widths or β, at that N and that width."""
    found = []
    for target in (target for target in _methods.TARGETS if target in results.values("target")):
        here = results.where(target=target)
        plain = here.where(beta=1.0)
        if not len(plain):
            continue
        width = max(plain.values("width"), key=lambda m: len(plain.where(width=m).values("samples")))
        found.append(Panel("a", target, plain.where(width=width)))
        for panel, rest in (("b", here.where(beta=1.0)), ("c", here.where(width=width))):
            field = PANELS[panel][0]
            n = max(rest.values("samples"), key=lambda n: len(rest.where(samples=n).values(field)))
            if len(rest.where(samples=n).values(field)) > 1:
                found.append(Panel(panel, target, rest.where(samples=n)))
    return [one for one in found if "3resnet" in one.methods]


def claims(results: Results) -> list[Claim]:
    found = []
    for panel in panels(results):
        if panel.panel == "a":
            found += _against_samples(panel)
        if panel.panel == "c":
            found += _against_beta(panel)
    return found


def _against_samples(panel: Panel) -> list[Claim]:
    """At the paper's N: the ResNet is below kα², every other method is not, and errs by more.

    With fewer epochs than the paper's the ResNet alone is judged, at the largest N of the profile: more would not hurt.
    """
    places = [n for n in panel.places("3resnet") if panel.others(n)]
    if not places:
        return []
    whole = all(cell.epochs >= _methods.EPOCHS for cell, _ in panel.results)
    at = _methods.PAPER_SAMPLES if whole and _methods.PAPER_SAMPLES in places else places[-1]
    head, listed = f"{titled(panel.target)}, {at} samples: ", _listed(panel, places)
    words: dict[str, Any] = {"source": "Section 6, Figure 2(a)"}
    only, better = f"{head}no other method does", f"{head}3resnet's error is below that of every other method"
    found = [
        Claim.at_most(
            error_interval(panel.errors("3resnet", at)),
            panel.level,
            strict=True,
            hypotheses=panel.grids("3resnet", place=at),
            statement=f"{head}3resnet learns αG(F) to some non-trivial accuracy: its error is below "
            f"kα² = {panel.level:.3g}",
            measured=f"mean of ‖out − y‖², {panel.over('3resnet', at)}, {panel.where}",
            note=f"{listed}. {_choice(panel, '3resnet', at)}",
            **words,
        )
    ]
    if panel.target == "small":  # of which the paper says nothing
        return found
    if whole:
        return found + _others(panel, at, only, better)
    kernels = [method for method in panel.others(at) if method not in _methods.NETWORKS]
    if kernels:
        statement = f"{head}no kernel of those that were run here ({', '.join(kernels)}) does"
        found.append(_no_other(panel, at, kernels, statement=statement, **words))
    why = f"The paper's epochs are {_methods.EPOCHS} and as many again."
    return found + [
        Claim.not_run(reason="size", statement=one, profile="paper", why=why, **words) for one in (only, better)
    ]


def _others(panel: Panel, at: Any, only: str, better: str) -> list[Claim]:
    """With the paper's epochs: no other method is below kα², and none errs by less than the ResNet."""
    words: dict[str, Any] = {"source": "Section 6, Figure 2(a)"}
    missing = [method for method in _methods.METHODS if method not in (*panel.others(at), "3resnet")]
    if missing:
        why = f"{', '.join(missing)}: not run at this N."
        return [
            Claim.not_run(reason="size", statement=one, profile="paper", why=why, **words) for one in (only, better)
        ]
    ratios = {
        method: ratio_interval(panel.errors("3resnet", at), panel.errors(method, at)) for method in panel.others(at)
    }
    closest = max(ratios, key=lambda method: ratios[method].high)
    return [
        _no_other(panel, at, panel.others(at), statement=only, **words),
        Claim.at_most(
            ratios[closest],
            1.0,
            strict=True,
            hypotheses=(*panel.hypotheses, *panel.grids("3resnet", *panel.others(at), place=at)),
            statement=better,
            measured=f"geometric mean of its error, {len(panel.errors('3resnet', at))} seeds, over that of the closest "
            f"one, {closest}, {panel.over(closest, at)}, {panel.where}",
            note=f"At every N, its mean error over the best other method's: {panel.ratios()}.",
            **words,
        ),
    ]


def _listed(panel: Panel, places: list[Any]) -> str:
    return "; ".join(f"N = {n}: {panel.errors('3resnet', n).mean():.3f}" for n in places)


def _no_other(panel: Panel, at: Any, methods: list[str], **words: Any) -> Claim:
    """No other method is below kα²: judged by the one whose interval reaches lowest, where all choices are settled.

    Kernels are at their minimum, so that the paper's epochs are asked of networks alone.
    """
    lowest = min(methods, key=lambda method: error_interval(panel.errors(method, at)).low)
    means = "; ".join(f"{method} {panel.errors(method, at).mean():.3f}" for method in ("3resnet", *methods))
    asked = panel.hypotheses if any(method in _methods.NETWORKS for method in methods) else panel.hypotheses[:1]
    return Claim.at_least(
        error_interval(panel.errors(lowest, at)),
        panel.level,
        hypotheses=(*asked, *panel.grids(*methods, place=at)),
        measured=f"mean error of the other method that reaches lowest, {lowest}, {panel.over(lowest, at)}, "
        f"{panel.where}, kα² = {panel.level:.3g}",
        note=f"At N = {at}: {means}. {_choice(panel, lowest, at)}",
        **words,
    )


def _choice(panel: Panel, method: str, place: Any) -> str:
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


def _against_beta(panel: Panel) -> list[Claim]:
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
            source="Section 6, Figure 2(c)",
            hypotheses=(*panel.hypotheses, *panel.grids("3resnet", place=worst)),
            statement=f"{titled(panel.target)}: 3resnet learns αG(F) as long as α/β ≤ 1",
            measured=f"mean error at the worst β, {panel.over('3resnet', worst)}, N = {cell.samples}, {panel.where}",
            note=f"{listed}.",
        )
    ]  # fmt: skip


def titled(target: str) -> str:
    return {"small": "Small target", "version 1": "Eight outputs", "later": "Fifteen outputs"}[target]
