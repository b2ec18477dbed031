"""What SGD came to on the parity of six, next to networks built by hand: claims and figures."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.papers.allen_zhu_li._parity import PAPER, SOLVED
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.training.grids import Search

LEVELS = {(40, 5000): ("Figure 3(a)", 0.69), (100, 50_000): ("Figure 3(b)", 0.98)}
WIDEST = {(40, 5000): 100_000, (100, 50_000): 50_000}  # the paper's
EPOCHS = 400  # Figure 2's, with the first rate; the paper has none for this search
STEPS = 3000  # with fewer, the networks for d = 6 are not trained to the end
ROUNDING = 1e-9
COMPARABLE = PAPER[-1][1] / PAPER[0][1]  # 1.42: how far apart the hand-built networks are themselves
SHOWN = 3.0  # errors above it are not drawn
LEAST = 1e-4  # nor training errors below it
COLOURS = ("blue", "orange", "green", "purple", "sky", "grey")
TABLES = ("train", "choose", "test", "norm", "gap", "share")


@dataclass(frozen=True, eq=False)
class _Group:
    """All networks of one d and N that were trained no longer than the paper's, or longer."""

    dim: int
    samples: int
    longer: bool
    pairs: tuple[tuple[Any, Any], ...]

    @property
    def level(self) -> float:
        return LEVELS.get((self.dim, self.samples), ("", 0.69))[1]

    @property
    def inside(self) -> bool:
        """Whether this is the paper's setting, some networks with all of Figure 2's epochs among them."""
        setting = (self.dim, self.samples) in LEVELS
        return setting and not self.longer and any(cell.epochs == EPOCHS for cell, _ in self.pairs)

    @property
    def patient(self) -> bool:
        """Whether every width has had Figure 2's epochs."""
        return all(cell.epochs == EPOCHS for cell, _ in self.pairs)

    def judges(self, found: bool) -> bool:
        """Whether this search can say if SGD finds what the paper's did not.

        One network says it, if the search goes up to the paper's largest width; "none" wants all epochs as well.
        """
        whole = self.inside and max(cell.width for cell, _ in self.pairs) >= WIDEST[self.dim, self.samples]
        return whole and (found or self.patient)

    @property
    def source(self) -> str:
        return f"Appendix A.1, {LEVELS.get((self.dim, self.samples), ('Figure 3', 0))[0]}"

    @property
    def title(self) -> str:
        return f"d = {self.dim}, N = {self.samples}" + (", more epochs than Figure 2" if self.longer else "")

    @property
    def where(self) -> str:
        widths = sorted({cell.width for cell, _ in self.pairs})
        epochs = sorted({cell.epochs for cell, _ in self.pairs})
        seeds = sorted({cell.seeds for cell, _ in self.pairs})
        spans = [f"{one[0]}" if len(one) == 1 else f"{one[0]} to {one[-1]}" for one in (widths, epochs, seeds)]
        return f"m = {spans[0]}, twice {spans[1]} epochs, {spans[2]} seed{'s' if seeds[-1] > 1 else ''} a width"

    @cached_property
    def networks(self) -> dict[str, np.ndarray]:
        """Every network that is not lost: its place in the search, and what it came to."""
        columns: dict[str, list[np.ndarray]] = {}
        for cell, data in self.pairs:
            stacked = data[list(TABLES)].stack(network=("rate", "decay", "start", "seed"))
            for name in (*TABLES, "rate", "decay", "start", "seed"):
                columns.setdefault(name, []).append(np.asarray(stacked[name].values, float))
            columns.setdefault("width", []).append(np.full(stacked.sizes["network"], float(cell.width)))
            rates, decays = data["rate"].values, data["decay"].values  # a decay of zero is no edge: there is none below
            edge = np.isin(stacked["rate"], rates[[0, -1]]) | (stacked["decay"].values == decays[-1])
            columns.setdefault("edge", []).append(edge.astype(float))
        joined = {name: np.concatenate(parts) for name, parts in columns.items()}
        kept = np.isfinite(joined["test"]) & np.isfinite(joined["train"]) & np.isfinite(joined["norm"])
        return {name: values[kept] for name, values in joined.items()}

    def told(self, index: int) -> str:
        """One network in words."""
        one = {name: float(values[index]) for name, values in self.networks.items()}
        edge = ", on the edge of its grid" if one["edge"] else ""
        return (
            f"m = {one['width']:.0f}, rate {one['rate']:g}, decay {one['decay']:g}, W from "
            f"N(0, {one['start'] ** 2:.3g}), seed {one['seed']:.0f}{edge}: training error "
            f"{one['train']:.3g}, test error {one['test']:.3g}, ‖W‖_F = {one['norm']:.3g}√d, "
            f"{100 * one['share']:.0f} % of ‖W‖_F² on the six coordinates"
        )

    def nearest(self) -> tuple[float, int] | None:
        """The least norm over that of the hand-built network with the same training error, and who has it."""
        norms = self.networks["norm"]
        return min(((float(norms[index] / norm), index) for _, norm, index in self.fitting()), default=None)

    def fitting(self) -> list[tuple[float, float, int]]:
        """For each of the paper's errors that a network reaches in training: its norm, and who has the least norm."""
        found, all_ = [], self.networks
        for error, norm in PAPER:
            reached = np.flatnonzero(all_["train"] <= error)
            if reached.size:
                found.append((error, norm, int(reached[all_["norm"][reached].argmin()])))
        return found

    def edges(self) -> str:
        """Where the choices lie in their grids."""
        inside = idle = 0
        for _, data in self.pairs:
            table = data["choose"].values
            found = Search(
                tuple(data["rate"].values.tolist()), tuple(data["decay"].values.tolist()), {"choose": table}, "choose"
            )
            inside += found.inside
            idle += bool(not found.inside and table[found.chosen].mean() >= 1)
        return (
            f"Grids whose best, by samples of its own, is inside: {inside} of {len(self.pairs)}; on an edge and no "
            f"better than F = 0: {idle}."
        )


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _groups(descents: Results) -> list[_Group]:
    found = []
    for dim, samples in dict.fromkeys((cell.dim, cell.samples) for cell, _ in descents):
        here = descents.where(dim=dim, samples=samples).pairs
        for longer in (False, True):
            pairs = tuple(pair for pair in here if (pair[0].epochs > EPOCHS) == longer)
            group = _Group(dim, samples, longer, pairs)
            if pairs and group.networks["test"].size:
                found.append(group)
    return found


def claims(built: Results, descents: Results) -> list[Claim]:
    found = [claim for pair in built for claim in _of_built(*pair)]
    groups = _groups(descents)
    for group in groups:
        if not group.longer:  # what more epochs do is told beside these, and in the figures
            patient = [one for one in groups if one.longer and (one.dim, one.samples) == (group.dim, group.samples)]
            found += [*_of_tests(group), _of_norms(group, patient)]
        found.append(_of_bound(group))
    return found


def scaled(data: Any, norm: float) -> Float[np.ndarray, "built penalty"]:
    """The error of each network for d = 6 after W ↦ cW with the best c that keeps ‖W‖_F/√d ≤ norm; F is homogeneous."""
    power, overlap = data["power"].values, data["overlap"].values
    c = np.minimum(norm / data["norm"].values, overlap / power)
    return np.asarray(c**2 * power - 2 * c * overlap + 1)


def _of_built(cell: Any, data: Any) -> list[Claim]:
    dims, widths = (sorted({int(one) for one in data[name].values}) for name in ("dim", "width"))
    sizes = f"{_counted(data.sizes['size'], 'size')}, d in {dims}, m in {widths}"
    least = {norm: (1 - np.minimum(norm / data["exact"].values, 1)).max() ** 2 for _, norm in PAPER}
    listed = "; ".join(f"{norm:g}√d: {least[norm]:.2g} (the paper: {error:g})" for error, norm in PAPER)
    changes = np.stack([data["norm_change"].values, data["output_change"].values])
    copied = np.isfinite(changes).all(axis=0)
    statement = "there are W⋆ with ‖W⋆‖_F ≈ 9.7√d, 12.5√d, 13.8√d and errors of at most 0.12, 0.037, 0.011"
    found = [
        Claim.at_most(
            max(least[norm] / error for error, norm in PAPER), 1.0, source="Appendix A.1",
            statement=f"{statement}, for every d and m",
            measured=f"largest error over the paper's, of the 64 corners as neurons, {sizes}",
            note=f"{listed}. They are the parity itself at {SOLVED:.4g}√d, if 64 divides m.",
        )
    ]  # fmt: skip
    if cell.steps < STEPS:
        found.append(
            Claim.not_run(reason="size",
                source="Appendix A.1, footnote 13", statement=f"{statement}, by training at d = 6", profile="laptop",
                why="The networks are not trained to the end.",
            )
        )  # fmt: skip
    else:
        best = {norm: float(scaled(data, norm).min()) for _, norm in PAPER}
        listed = "; ".join(f"{norm:g}√d: {best[norm]:.2g}" for _, norm in PAPER)
        found.append(
            Claim.at_most(
                max(best[norm] / error for error, norm in PAPER), 1.0, source="Appendix A.1, footnote 13",
                statement=f"{statement}, by training at d = 6",
                measured=f"largest error over the paper's, best of {_counted(data['error'].size, 'network')} scaled to "
                "these norms",
                note=f"{listed}. {_counted(cell.seeds, 'seed')} with {_counted(len(cell.penalties), 'weight decay')} "
                f"each, m = {cell.width}.",
            )
        )  # fmt: skip
    if copied.any():
        found.append(
            Claim.at_most(
                float(changes[:, copied].max()), ROUNDING, source="Appendix A.1, footnote 13",
                statement="padding with zeros and copying neurons keep all outputs and ‖W‖_F/√d",
                measured=f"largest relative change at {_counted(int(copied.sum()), 'size')} (d, m) filled by copies",
            )
        )  # fmt: skip
    return found


def _of_tests(group: _Group) -> list[Claim]:
    all_ = group.networks
    best, chosen = int(all_["test"].argmin()), int(all_["choose"].argmin())
    seeds = [all_["test"][all_["seed"] == seed].min() for seed in np.unique(all_["seed"])]
    each = f" The best of each seed: {', '.join(f'{one:.3g}' for one in seeds)}." if len(seeds) > 1 else ""
    statement = f"{group.title}: SGD cannot find a solution with a test error better than {group.level:g}"
    fewer = (
        ""
        if group.patient
        else " Not every width has had Figure 2's epochs: one below would refute it, and none says nothing."
    )
    return [
        Claim.at_least(
            float(all_["test"][best]), group.level, statement=statement, source=group.source,
            inside=group.judges(bool(all_["test"][best] < group.level)),
            measured=f"smallest of {_counted(len(all_['test']), 'test error')}, as the paper chooses, {group.where}",
            note=f"{group.told(best)}.{each} The paper tells neither start nor momentum nor epochs of its search, so "
            f"that ours may be another: it shows what SGD can do, not what they saw. F = 0 has an error of 1.{fewer}",
        ),
        Claim.at_least(
            float(all_["test"][chosen]), group.level, source=group.source,
            statement=f"{statement}, chosen by samples of its own",
            inside=group.judges(bool(all_["test"][chosen] < group.level)),
            measured=f"test error of the network with the smallest error on other samples, {group.where}",
            note=f"{group.told(chosen)}. {group.edges()}",
        ),
    ]  # fmt: skip


def _of_norms(group: _Group, patient: list[_Group]) -> Claim:
    """No network, whatever its epochs, with the training error of a hand-built one and a norm comparable to its own."""
    statement = (
        f"{group.title}: SGD cannot find a solution with small training error and a Frobenius norm comparable to the "
        "hand-built one's"
    )
    nearest = [(*one, of) for of in (group, *patient) if (one := of.nearest()) is not None]
    if not nearest:
        return Claim.not_run(reason="size",
            source=group.source, statement=statement, profile="paper",
            why=f"No network here has a training error of {PAPER[0][0]:g} or less.",
        )  # fmt: skip
    ratio = min(one for one, _, _ in nearest)
    told = " ".join(f"{of.where}: {one:.3g} ({of.told(index)})." for one, index, of in nearest)
    return Claim.at_least(
        ratio, COMPARABLE, strict=True, source=group.source, inside=group.judges(ratio <= COMPARABLE),
        statement=statement,
        measured="smallest ‖W‖_F over the hand-built one's, networks with a training error of at most 0.12, 0.037, "
        "0.011, " + "; ".join(of.where for _, _, of in nearest),
        note="Comparable (Figure 1) is taken by the hand-built networks themselves, whose norms are "
        f"{COMPARABLE:.3g} times apart. {told}",
    )  # fmt: skip


def _of_bound(group: _Group) -> Claim:
    all_ = group.networks
    some = all_["norm"] > 0
    unit = 2 * math.sqrt(group.dim / group.samples)
    fitting = group.fitting()
    trained = f"{unit * all_['norm'][fitting[0][2]]:.3g} for the one by SGD that fits to 0.12, " if fitting else ""
    return Claim.at_most(
        float((all_["gap"][some] / (2 * unit * all_["norm"][some])).max()), 1.0,
        source="Appendix A.1, Rademacher complexity",
        statement=f"{group.title}: the mean of |F − y| is larger on new samples by at most 2 · 2‖W‖_F/√N",
        measured=f"largest ratio of the two sides, {_counted(int(some.sum()), 'network')}, {group.where}",
        note=f"2‖W‖_F/√N is {unit * PAPER[0][1]:.3g} for the hand-built network with 0.12, {trained}"
        f"{unit * all_['norm'].max():.3g} at most. F = 0 has an error of 1.",
    )  # fmt: skip


def figures(built: Results, descents: Results) -> list[Figure]:
    found = []
    groups = _groups(descents)
    for group in groups:
        found += [_scatter(group, "test", built), _scatter(group, "train", built)]
    for dim, samples in dict.fromkeys((group.dim, group.samples) for group in groups):
        found.append(_widths([group for group in groups if (group.dim, group.samples) == (dim, samples)]))
    return found


def _scatter(group: _Group, part: str, built: Results) -> Figure:
    plot, all_ = new_plot(), group.networks
    shown = all_[part] <= SHOWN
    for index, width in enumerate(sorted(set(all_["width"]))):
        here = shown & (all_["width"] == width)
        symbol = ("circle", "square")[index // len(COLOURS) % 2]
        points(plot, all_["norm"][here], np.maximum(all_[part][here], LEAST), name=f"SGD, m = {width:.0f}",
               colour=COLOURS[index % len(COLOURS)], symbol=symbol)  # fmt: skip
    _hand_built(plot, built)
    name = {"test": "test error", "train": "training error"}[part]
    style(plot, x="‖W‖_F/√d", y=name, log_x=True, log_y=True)
    bound = 2 * math.sqrt(group.dim / group.samples)
    lost = int((~shown).sum()) + sum(data["test"].size for _, data in group.pairs) - len(shown)
    caption = (
        f"Each point a network: all widths, rates, decays, starts and seeds; {group.where}. Left out: {lost} with an "
        f"error above {SHOWN:g}, or lost. The Rademacher bound 2‖W‖_F/√N is {bound:.3g} times what the axis shows. "
        f"Errors below {LEAST:g} are drawn there. Line: the least error of a network on the six coordinates alone."
    )
    return Figure(f"{group.title}: {name} against the norm", caption, plot)


def _hand_built(plot: Any, built: Results) -> None:
    grid = np.linspace(0.3, 0.99, 100)
    line(plot, SOLVED * grid, (1 - grid) ** 2, name="built: 64 corners", colour="vermillion")
    for _, data in built:
        points(plot, data["norm"].values.ravel(), np.maximum(data["error"].values.ravel(), LEAST),
               name="built: trained at d = 6", colour="vermillion", symbol="cross")  # fmt: skip
    points(plot, [norm for _, norm in PAPER], [error for error, _ in PAPER], name="built: Appendix A.1",
           colour="vermillion", symbol="diamond")  # fmt: skip


def _widths(groups: list[_Group]) -> Figure:
    plot = new_plot()
    ends: list[float] = []
    for group, (first, second) in zip(groups, (("blue", "sky"), ("green", "orange")), strict=False):
        all_, more = group.networks, ", more epochs" if group.longer else ""
        widths = np.array(sorted(set(all_["width"])))
        ends += widths.tolist()
        for by, name, colour, symbol in (
            ("test", "by the test error", first, "circle"),
            ("choose", "by samples of its own", second, "square-open"),
        ):
            picked = [np.flatnonzero(all_["width"] == width) for width in widths]
            values = np.array([all_["test"][here[all_[by][here].argmin()]] for here in picked])
            points(plot, widths, values, name=f"best {name}{more}", colour=colour, symbol=symbol)
    span = np.array([min(ends) / 1.2, max(ends) * 1.2])
    first_group = groups[0]
    line(plot, span, np.full(2, first_group.level), name=f"{first_group.level:g}, the paper's best", colour="grey",
         dash="dash")  # fmt: skip
    line(plot, span, np.ones(2), name="F = 0", colour="grey", dash="dot")
    style(plot, x="width m", y="test error", log_x=True)
    epochs = "; ".join(f"m = {cell.width}: {cell.epochs}" for group in groups for cell, _ in group.pairs)
    caption = (
        "The best network of each width's grid over all starts and seeds. Epochs with the first rate, and as many with "
        f"a tenth of it: {epochs}."
    )
    return Figure(f"d = {first_group.dim}, N = {first_group.samples}: the best of each grid", caption, plot)
