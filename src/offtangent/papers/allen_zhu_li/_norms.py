"""All networks of one d and N of Figure 3, as tables: what they came to, and what the search can say."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from offtangent.lab import Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.papers.allen_zhu_li._parity import PAPER
from offtangent.training.grids import Search

LEVELS = {(40, 5000): ("Figure 3(a)", 0.69), (100, 50_000): ("Figure 3(b)", 0.98)}
WIDEST = {(40, 5000): 100_000, (100, 50_000): 50_000}  # the paper's
EPOCHS = 400  # Figure 2's, with the first rate; the paper has none for this search
TABLES = ("train", "choose", "test", "norm", "gap", "share")


@dataclass(frozen=True, eq=False)
class Group:
    """All networks of one d and N that were trained no longer than the paper's, or longer, from one first seed on."""

    dim: int
    samples: int
    longer: bool
    first: int  # of the seeds: those of the first record begin at 0
    pairs: tuple[tuple[Any, Any], ...]

    @property
    def level(self) -> float:
        return LEVELS.get((self.dim, self.samples), ("", 0.69))[1]

    @property
    def patient(self) -> bool:
        """Whether every width has had Figure 2's epochs."""
        return all(cell.epochs == EPOCHS for cell, _ in self.pairs)

    def hypotheses(self, found: bool) -> tuple[Hypothesis, ...]:
        """Whether this search can say if SGD finds what the paper's did not.

        One network says it, if the search goes up to the paper's largest width; "none" wants all epochs as well.
        """
        setting = (self.dim, self.samples)
        known = "; ".join(f"d = {dim}, N = {n}" for dim, n in LEVELS)
        mine = f"d = {self.dim}, N = {self.samples}"
        epochs = [cell.epochs for cell, _ in self.pairs]
        return (
            Hypothesis("setting", mine, "=", mine if setting in LEVELS else known, "Appendix A.1"),
            Hypothesis(
                "largest width m",
                max(cell.width for cell, _ in self.pairs),
                "≥",
                WIDEST.get(setting, 50_000),
                "Appendix A.1",
            ),
            Hypothesis(
                "epochs with the first rate, the most at a width"
                if found
                else "epochs with the first rate, the fewest at a width",
                max(epochs) if found else min(epochs),
                "≥",
                EPOCHS,
                "Appendix A",
            ),
        )

    @property
    def source(self) -> str:
        return f"Appendix A.1, {LEVELS.get((self.dim, self.samples), ('Figure 3', 0))[0]}"

    @property
    def title(self) -> str:
        return (
            f"d = {self.dim}, N = {self.samples}"
            + (", more epochs than Figure 2" if self.longer else "")
            + (f", seeds from {self.first} on" if self.first else "")
        )

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

    def nearest(self, *, inner: bool = False) -> tuple[float, int] | None:
        """The least norm over that of the hand-built network with the same training error, and who has it.

        `inner`: of the networks that are not on an edge of their grids.
        """
        norms = self.networks["norm"]
        return min(((float(norms[index] / norm), index) for _, norm, index in self.fitting(inner)), default=None)

    def fitting(self, inner: bool = False) -> list[tuple[float, float, int]]:
        """For each of the paper's errors that a network reaches in training: its norm, and who has the least norm."""
        found, all_ = [], self.networks
        for error, norm in PAPER:
            reached = np.flatnonzero((all_["train"] <= error) & ~(inner & (all_["edge"] > 0)))
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


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def groups_of(descents: Results) -> list[Group]:
    found = []
    for dim, samples in dict.fromkeys((cell.dim, cell.samples) for cell, _ in descents):
        here = descents.where(dim=dim, samples=samples).pairs
        for longer, first in itertools.product((False, True), sorted({cell.first for cell, _ in here})):
            pairs = tuple(pair for pair in here if (pair[0].epochs > EPOCHS, pair[0].first) == (longer, first))
            group = Group(dim, samples, longer, first, pairs)
            if pairs and group.networks["test"].size:
                found.append(group)
    return found
