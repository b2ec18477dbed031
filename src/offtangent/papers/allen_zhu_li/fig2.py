r"""Figure 2: the three-layer ResNet learns the composite signal αG(F) from samples from which no other method does.

Inputs are uniform on $\{\pm 1\}^{30}$, labels $H = \beta F + \alpha G(F)$ with $F = (x_1 x_2, \dots, x_{15} x_{16})$
and G products of four of F's outputs, α = 0.3. The paper prints two outputs of G; its threshold kα² = 0.72, the error
of one who knows F and nothing of αG(F), counts eight, so each output gets a product (`version 1`). Its later versions
have k = 15 and kα² = 1.35 (`later`). Errors are of the squared norm, without ½.

Nine methods: 3resnet, 3layer and 2layer, of which the hidden weights alone are trained, their tangent kernels at finite
width, (NTK), and their conjugate kernels, (last). Networks take the paper's steps, with rates and decays from a grid
that is widened until the best lies inside; the best is chosen on 1000 samples of its own, and what the paper does, to
choose by the test error, is told beside it. The kernels, which the paper trains by the same steps, have the closed form
of their minimum, with λ chosen on the same samples.

The paper does not give N, m and β of its plots, but "1000 samples" for (a), and runs 400 epochs and 400 more. Its grids
are {1, 2, 5}·10ᵏ. `paper` cuts them to rates in steps of 4 and decays in steps of 10, zero among them, and around the
best of these in steps of 2 and 3; it has three seeds, ten for networks at N = 1000, tangent kernels up to 16 000
unknowns, two N for the later target, and products in TF32. `laptop` runs 40 and 40 with 160 neurons, ten seeds of the
ResNet at N = 1000, whose errors vary most, and of tangent kernels, systems of Nk unknowns, two there and none at
N = 2000; `smoke` has 4 outputs in 16 dimensions, where a three-layer network comes below kα² too, and four of the
methods. What the paper says is judged at its N = 1000, for the later target too, and with its epochs alone; with fewer
the ResNet by itself is judged at the largest N. Nothing is judged by a network on the edge of its grid. Of (b) the text
says nothing: it is drawn, and not judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import _methods, fig2_figures, fig2_report
from offtangent.report import Figure


@dataclass(frozen=True)
class Point:
    """One method at one size, for all seeds."""

    target: str  # of `_methods.TARGETS`
    beta: float
    method: str  # of `_methods.METHODS`
    samples: int
    width: int
    epochs: int  # with the first rate, and as many with a tenth of it
    seeds: int
    precision: str = "highest"
    refined: bool = False  # whether the grid is refined around its best


@dataclass(frozen=True)
class Config:
    target: str
    samples: tuple[int, ...]  # (a)
    width: int
    widths: tuple[int, ...]  # (b), besides that one
    betas: tuple[float, ...]  # (c), besides 1
    middle: int  # the samples of (b) and (c)
    epochs: int
    seeds: int
    unknowns: int  # Nk, to which tangent kernels go
    methods: tuple[str, ...] = _methods.METHODS
    precision: str = "highest"
    refined: bool = False
    closer: Mapping[str, int] = field(default_factory=dict)  # seeds of methods where the paper gives N
    later: tuple[int, ...] = ()  # (a) of the later versions' target


PROFILES = {
    "smoke": Config(
        "small", (400,), 64, (), (), 400, 20, 3, 2000,
        methods=("3resnet", "2layer", "2layer (NTK)", "3resnet (last)"),
    ),
    "laptop": Config(
        "version 1", (250, 1000, 2000), 160, (40, 80), (0.3, 0.6), 2000, 40, 3, 8000,
        closer={"3resnet": 10} | dict.fromkeys((method for method in _methods.METHODS if method.endswith("(NTK)")), 2),
    ),
    "paper": Config(
        "version 1", (500, 1000, 2000, 4000), 1000, (100, 300), (0.15, 0.3), 2000,
        400, 3, 16_000, precision="tensorfloat32", refined=True, closer=dict.fromkeys(_methods.NETWORKS, 10),
        later=(1000, 2000),
    ),
}  # fmt: skip


def cells(config: Config) -> list[Point]:
    found = [(config.target, 1.0, n, config.width, config.methods) for n in config.samples]
    found += [("later", 1.0, n, config.width, config.methods) for n in config.later]
    others = config.methods if config.epochs >= _methods.EPOCHS else ("3resnet",)  # of (b) and (c)
    found += [(config.target, 1.0, config.middle, width, others) for width in config.widths]
    found += [(config.target, beta, config.middle, config.width, others) for beta in config.betas]
    rest = (config.precision, config.refined)
    return [
        Point(target, beta, method, n, width, config.epochs, _seeds(method, target, n, config), *rest)
        for target, beta, n, width, methods in found
        for method in methods
        if _fits(method, target, n, config)
    ]


def _seeds(method: str, target: str, samples: int, config: Config) -> int:
    decides = (target, samples) == (config.target, _methods.PAPER_SAMPLES)
    return config.closer.get(method, config.seeds) if decides else config.seeds


def _fits(method: str, target: str, samples: int, config: Config) -> bool:
    outputs = _methods.sizes(_methods.target(target, _methods.ALPHA, 1.0))[1]
    return not method.endswith("(NTK)") or samples * outputs <= config.unknowns


def cost(cell: Point) -> Cost:
    function = _methods.target(cell.target, _methods.ALPHA, cell.beta)
    (dim, outputs), grid = _methods.sizes(function), 16
    entries = {"3layer": cell.width * (dim + cell.width)}.get(cell.method, cell.width * (dim + 2 * outputs))
    unknowns = cell.samples * (outputs if cell.method.endswith("(NTK)") else 1)
    memory = 40 * unknowns**2 if cell.method.endswith(")") else 16 * grid * cell.seeds * entries
    return Cost(cell.seeds * _methods.flops(cell, function), memory + 1e8)


def run(cell: Point) -> xr.Dataset:
    function = _methods.target(cell.target, _methods.ALPHA, cell.beta)
    problems = [_methods.Problem(function, cell.samples, seed) for seed in range(cell.seeds)]
    if cell.method in _methods.NETWORKS:
        found = _methods.descend(
            cell.method, problems, width=cell.width, epochs=cell.epochs, precision=cell.precision, refined=cell.refined
        )
        tables = {name: (("rate", "decay", "seed"), table) for name, table in found.tables.items()}
        return xr.Dataset(tables).assign_coords(rate=list(found.rates), decay=list(found.decays))
    name, kind = cell.method.split(" ", 1)
    each = [_methods.regress(name, f" {kind}", problem, width=cell.width) for problem in problems]
    return xr.Dataset({key: ("seed", np.array([one[key] for one in each])) for key in each[0]})


def claims(results: Results) -> list[Claim]:
    return fig2_report.claims(results.where(Point))


def draw(results: Results) -> list[Figure]:
    return fig2_figures.figures(results.where(Point))
