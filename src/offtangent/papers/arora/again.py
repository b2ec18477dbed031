"""Rules that were written after a record had been made, judged on networks and draws that nobody had seen by then.

What a rule was chosen by cannot confirm it. Three rules of this paper are younger than the first records of their
numbers: that test errors rise with every step of the portion of random labels, and that networks' rank correlation
exceeds chance's (Figure 2), and how fast the linearised movement is approached (Lemma 5.3). Here they are judged at the
paper's sizes on seeds from 1000 on; `arora/fig1` does the same for the variance in Lemma C.3's proof.
"""

from dataclasses import dataclass

import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.arora import fig2, fig2_report, lemmas, lemmas_inside
from offtangent.papers.arora._conditions import NEW
from offtangent.papers.arora.fig2 import ELEVEN, FIVE, PAPER, THIRTEEN, Network, Regression, each, regression
from offtangent.papers.arora.lemmas import Inside
from offtangent.report import Figure

# The classes are imported by their names: of `fig2.Network` the fingerprint would take all that its module reaches.
Cell = Regression | Network | Inside
CELLS = {kind.__name__: kind for kind in (Regression, Network, Inside)}
JUDGED = ("the measure matches the trend", "‖W(k) − W(0)‖_F is what the linearised network moves")


@dataclass(frozen=True)
class Config:
    figure: fig2.Config
    delta: float
    factors: tuple[int, ...]


def _inside(config: Config) -> list[Inside]:
    return [Inside(factor, 2, 1.0, config.delta, seeds=10, steps=80, key=NEW + 1) for factor in config.factors]


PROFILES = {
    "smoke": Config(
        fig2.Config((Regression("digits", 60, 150, FIVE, draws=30, first=2 * NEW),), ()), 0.9, (1, 10, 100)
    ),
    "laptop": Config(
        fig2.Config((Regression("digits", 120, 240, FIVE, draws=40, first=2 * NEW),), ()), 0.9, (1, 10, 100)
    ),
    # On an H200 about four minutes: a step takes 0.28 ms for MNIST at n = 2000, and 0.42 ms for CIFAR at n = 1000.
    "paper": Config(
        fig2.Config(
            regressions=(
                regression("mnist", 10_000, 2000, THIRTEEN, draws=20),
                regression("cifar10", 10_000, 2000, THIRTEEN, draws=20),
            ),
            networks=(
                *each(ELEVEN, 2, data="mnist", samples=2000, cap=30_000, **PAPER),
                *each(ELEVEN, data="cifar10", samples=1000, cap=30_000, **PAPER),
            ),
        ),
        0.25,
        (1, 3, 10, 30, 100),
    ),
}


def cells(config: Config) -> list[Cell]:
    """Those of Figure 2 whose data are here, and those of Lemma 5.3."""
    return [*fig2.cells(config.figure), *_inside(config)]


def absent(config: Config) -> list[str]:
    return fig2.absent(config.figure)


def datasets(cell: Cell) -> tuple[str, ...]:
    return () if isinstance(cell, Inside) else fig2.datasets(cell)


def cost(cell: Cell) -> Cost:
    return lemmas.cost(cell) if isinstance(cell, Inside) else fig2.cost(cell)


def run(cell: Cell) -> xr.Dataset:
    return lemmas.run(cell) if isinstance(cell, Inside) else fig2.run(cell)


def claims(results: Results) -> list[Claim]:
    """The claims whose rules are younger than a record, and no others."""
    regressions, networks = results.where(Regression), results.where(Network)
    found = [*fig2_report.claims(regressions, networks), *lemmas_inside.claims(results.where(Inside))]
    return [claim for claim in found if claim.statement.startswith(JUDGED)]


def draw(results: Results) -> list[Figure]:
    """Figure 2 as printed, on these draws."""
    return fig2_report.printed(results.where(Regression), results.where(Network))
