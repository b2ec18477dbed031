"""Bai & Lee, 2-XOR on new seeds: what is judged, and that a wrong power of d would be found out."""

import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.papers.bai_lee import again, samples
from offtangent.papers.bai_lee.samples import Curve


def curves(power, first=again.SEEN):
    """The paper profile's cells with curves that come down at n = d^power log d."""
    for cell in again.cells(again.PROFILES["paper"]):
        middle = cell.dim**power * np.log(cell.dim)
        sizes = tuple(round(middle * factor) for factor in (0.25, 0.5, 1, 2, 4))
        shift = 1 + 0.02 * np.random.default_rng(cell.dim).standard_normal((cell.seeds, 1))
        test = 0.1 * np.sqrt(middle / np.array(sizes)) * shift
        yield (
            Curve(**(vars(cell) | {"samples": sizes, "first": first})),
            xr.Dataset(dict.fromkeys(("test", "train"), (("seed", "n"), test))),
        )


@pytest.mark.parametrize(("power", "verdict"), [(0.95, "holds with constants 1"), (1.15, "fails")])
def test_both_distributions_are_judged_by_the_power_of_d(power, verdict):
    results = Results("paper", tuple(curves(power)))
    found = again.claims(results)
    assert [claim.verdict for claim in found] == [verdict, verdict]
    assert all("d = 25, 40, 60, seeds 5 to 14" in claim.measured for claim in found)
    (figure,) = again.draw(results)
    assert len(figure.plot.data) == 4


def test_the_seeds_are_others_than_those_of_the_first_curves():
    cells = again.cells(again.PROFILES["paper"])
    assert {(cell.task, cell.learner, cell.dim) for cell in cells} == {
        (task, "quadratic", dim) for task in ("xor", "noisy xor") for dim in (25, 40, 60)
    }
    seen = [cell for cell in samples.cells(samples.PROFILES["paper"]) if cell.learner == "quadratic"]
    assert {cell.first + cell.seeds for cell in seen} == {cell.first for cell in cells} == {again.SEEN}
    grids = {(cell.task, cell.dim): cell.samples for cell in seen}
    assert all(cell.samples == grids[cell.task, cell.dim] for cell in cells)


def test_a_cell_runs_and_curves_that_never_come_down_are_not_judged():
    tiny = Curve("xor", "quadratic", 6, (12, 24, 48), seeds=2, width=64, steps=5)
    both, second = again.run(tiny), again.run(Curve(**(vars(tiny) | {"first": 1, "seeds": 1})))
    np.testing.assert_array_equal(both["test"].values[1], second["test"].values[0])
    high = Results("paper", tuple((cell, data + 1) for cell, data in curves(1.0)))
    assert [claim.verdict for claim in again.claims(high)] == ["not run here", "not run here"]
    assert again.draw(high) == []
    assert all(again.cost(cell).flops > 0 for cell, _ in high)
