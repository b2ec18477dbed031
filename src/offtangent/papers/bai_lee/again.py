"""2-XOR's n_Q = Õ(d) at large d, on seeds that were drawn after it had been decided what large means.

The first seeds of `bai_lee/samples` showed that the n of the quadratic model keeps to Õ(d) from d = 25 on, after
division by one logarithm of d. What showed a rule cannot confirm it: here the same curves are drawn for ten other
seeds, and these alone are judged.
"""

from dataclasses import dataclass

import xarray as xr

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.bai_lee import samples, samples_report
from offtangent.papers.bai_lee._curves import SIGMA, TITLES, TaskCurves
from offtangent.papers.bai_lee.samples import Curve
from offtangent.report import Figure, finished, new_plot, power, series

COLOURS = {"xor": "blue", "noisy xor": "vermillion"}
SEEN = 5  # seeds of `bai_lee/samples`


@dataclass(frozen=True)
class Config:
    tasks: tuple[str, ...]
    dims: tuple[int, ...]
    seeds: int
    width: int
    steps: int
    precision: str = "highest"


PROFILES = {
    "smoke": Config(("xor",), (25, 40), seeds=3, width=64, steps=120),
    "laptop": Config(("xor",), (25, 40), seeds=3, width=64, steps=120),
    "paper": Config(tuple(COLOURS), (25, 40, 60), seeds=10, width=1024, steps=600, precision="tensorfloat32"),
}


def cells(config: Config) -> list[Curve]:
    return [
        Curve(
            task,
            "quadratic",
            dim,
            samples.grid(task, "quadratic", dim, reach=2),
            config.seeds,
            config.width,
            config.steps,
            config.precision,
            first=SEEN,
        )
        for task in config.tasks
        for dim in config.dims
    ]


def cost(cell: Curve) -> Cost:
    return samples.cost(cell)


def run(cell: Curve) -> xr.Dataset:
    return samples.run(cell)


def claims(results: Results) -> list[Claim]:
    """One for each distribution of 2-XOR."""
    return [claim for task in _tasks(results) for claim in samples_report.on_new_seeds(task, task)]


def draw(results: Results) -> list[Figure]:
    """The n that the quadratic model needs, against d."""
    plot = new_plot()
    for task in _tasks(results):
        table = task.needed["quadratic"]
        if task.known("quadratic"):
            dims = task.dims["quadratic"]
            series(plot, dims, table, name=TITLES[task.task], colour=COLOURS[task.task])
            power(plot, dims, 1.0, through=float(table[:, 0].mean()), name=f"{TITLES[task.task]}, d")
    if not plot.data:
        return []
    cell = results.first
    caption = f"{cell.seeds} seeds from {cell.first} on (bars: all of them), {cell.width} neurons, {SIGMA}."
    return [finished(plot, "2-XOR on new seeds", caption, x="dimension d", y="samples n")]


def _tasks(results: Results) -> list[TaskCurves]:
    return [TaskCurves(name, results.where(task=name)) for name in results.values("task")]
