r"""Section 2.1: the first hidden layer learns F, the second αG(F). Is it crucial that they learn together?

Figure 2's target $H = F + \alpha G(F)$ and its ResNet, $\mathrm{out} = \mathrm{out}_1 + A\sigma(V(\mathrm{out}_1, 1))$.
What a part of the output has learnt of a signal s is its coefficient $E\langle \mathrm{part}, s\rangle / E\|s\|^2$,
which is 1 where all of s is there, with or without anything else; F and αG(F) are orthogonal. How much else there is
tells $E\|\mathrm{part} - s\|^2 / E\|s\|^2$, of $\mathrm{out}_1$ to F and of the rest to αG(F). Both are looked at along
training, over the samples of the test error.

Layer by layer: first the first hidden layer alone, on $\|y - \mathrm{out}_1\|^2$, then the second with the first held.
The paper has no experiment on this, and no theorem: it says that the second layer "could" find it "really hard, or
perhaps impossible" to mend what the first gets wrong. Each way has rates and decays from a widened grid, chosen on
samples of its own, with the choice by test error, as the paper chooses, told beside it. It is judged at equal budgets:
"layer by layer, one budget" has one rate and one decay for both layers, as together has, and half of the epochs for
each. "layer by layer" has a rate and a decay for each layer and as many epochs for each as together has for both, and
"together, decay on W" a decay on the first layer alone: both are shown, and came before the budgets were made equal.

What the network learns differs from seed to seed, and one run of it from another. So what each layer learns is judged
by the mean over seeds, on seeds (from 100 on) that came after the rule; the first record has the seeds from 0 on.
"""

from dataclasses import dataclass

import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import _layers, _methods, hierarchy_figures, hierarchy_report
from offtangent.report import Figure


@dataclass(frozen=True)
class Layers:
    """One way to train the ResNet, for all seeds."""

    way: str  # of `_layers.WAYS`
    target: str
    samples: int
    width: int
    epochs: int  # with the first rate, and as many with a tenth of it
    seeds: int
    looks: int
    precision: str = "highest"
    refined: bool = False  # whether the grids are refined around their best
    first: int = 0  # of the seeds


@dataclass(frozen=True)
class Config:
    target: str
    samples: tuple[int, ...]
    width: int
    epochs: int
    seeds: int
    looks: int = 20
    precision: str = "highest"
    refined: bool = False


PROFILES = {
    "smoke": Config("small", (500,), 64, 20, 3, looks=10),
    "laptop": Config("version 1", (2000,), 160, 40, 3),
    "paper": Config("version 1", (1000, 2000), 1000, 400, 5, precision="tensorfloat32", refined=True),
}
FRESH = 100  # the first of the seeds that the first record does not have


def cells(config: Config) -> list[Layers]:
    sizes = (config.width, config.epochs, config.seeds, config.looks, config.precision, config.refined)
    return [Layers(way, config.target, n, *sizes, FRESH) for n in config.samples for way in _layers.WAYS]


def cost(cell: Layers) -> Cost:
    dim, outputs = _methods.sizes(_methods.target(cell.target, _methods.ALPHA, 1.0))
    networks = cell.seeds * len(_methods.RATES["3resnet"]) * len(_methods.DECAYS)
    entries = cell.width * (dim + 3 * outputs)
    work = 2 * cell.epochs * cell.samples + 2 * cell.looks * _methods.TESTS
    trainings = 2 if cell.way == "layer by layer" else 1  # with one budget each of the two has half of the epochs
    memory = 4 * networks * (4 * entries + _methods.TESTS * cell.width) + 1e8
    return Cost(6 * trainings * networks * entries * work, memory)


def run(cell: Layers) -> xr.Dataset:
    function = _methods.target(cell.target, _methods.ALPHA, 1.0)
    problems = [_methods.Problem(function, cell.samples, seed) for seed in range(cell.first, cell.first + cell.seeds)]
    found = _layers.WAYS[cell.way](
        problems, width=cell.width, epochs=cell.epochs, looks=cell.looks, precision=cell.precision, refined=cell.refined
    )
    last = (
        max(cell.epochs // 2, 1) if cell.way == hierarchy_report.ONE else cell.epochs
    )  # of the stage that is looked at
    steps = _methods.steps_of(cell.samples, last)
    return found.assign_coords(
        part=list(_layers.PARTS), signal=list(_layers.SIGNALS), look=_methods.looks_at(steps, cell.looks)
    )


def claims(results: Results) -> list[Claim]:
    return hierarchy_report.claims(results.where(Layers))


def draw(results: Results) -> list[Figure]:
    return hierarchy_figures.figures(results.where(Layers))
