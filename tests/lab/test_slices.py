"""An experiment put together of two slices, in a user's own files."""

import textwrap

import pytest

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab import Results
from offtangent.lab.experiment import load_experiment, rebuild
from offtangent.lab.fingerprints import PACKAGE, fingerprint

SLICE = '''
"""{title}"""
from dataclasses import dataclass
import numpy as np
import xarray as xr
from offtangent.lab import Claim, Cost, over_seeds
from offtangent.report import finished, new_plot, series

@dataclass(frozen=True)
class {name}:
    size: int
    seeds: int = 2

PROFILES = {profiles}

def cells(sizes):
    return [{name}(size) for size in sizes]

def run(cell):
    return over_seeds(lambda cell, key: {{"value": cell.size * {factor}}}, cell)

def claims(results):
    for cell, data in results.where({name}):
        yield Claim.at_most(float(data["value"].max()), 100, source="{name}", statement="small", measured="it")

def draw(results):
    mine = results.where({name})
    if mine:
        plot = series(new_plot(), mine.field("size"), mine.table("value"), name="{name}", colour="blue")
        yield finished(plot, "{name}", "Drawn.", x="size", y="value", log="")
'''
WHOLE = '''
"""Two questions."""
from offtangent.lab.slices import combine
import first, second
PROFILES, CELLS, cells, run, claims, draw, cost = combine(first, second)
'''


def write(folder, **slices):
    folder.mkdir(exist_ok=True)
    (folder / "whole.py").write_text(textwrap.dedent(WHOLE))
    given = {
        "first": {"title": "One.", "name": "One", "profiles": '{"smoke": (1, 2)}', "factor": 2},
        "second": {"title": "Two.", "name": "Two", "profiles": '{"smoke": (3,), "paper": (9,)}', "factor": 3},
    }
    for name, words in given.items():
        (folder / f"{name}.py").write_text(SLICE.format(**words | slices.get(name, {})))
    with (folder / "second.py").open("a") as file:
        file.write("\ndef cost(cell):\n    return Cost(5.0 * cell.size, 1.0)\n")
    return folder / "whole.py"


@pytest.fixture
def whole(tmp_path):
    return load_experiment(write(tmp_path / "mine"))


def test_every_cell_goes_to_its_slice(whole):
    cells = whole.cells("smoke")
    assert [type(cell).__name__ for cell in cells] == ["One", "One", "Two"]
    assert [float(whole.run(cell)["value"][0]) for cell in cells] == [2, 4, 9]


def test_a_slice_need_not_have_every_profile(whole):
    assert whole.profiles == ("smoke", "paper")
    assert [cell.size for cell in whole.cells("paper")] == [9]


def test_claims_and_figures_come_slice_by_slice(whole):
    results = Results("smoke", tuple((cell, whole.run(cell)) for cell in whole.cells("smoke")))
    assert [claim.source for claim in whole.claims(results)] == ["One", "One", "Two"]
    assert [figure.title for figure in whole.draw(results)] == ["One", "Two"]


def test_only_slices_that_know_what_a_cell_costs_say_so(whole):
    one, _, two = whole.cells("smoke")
    assert whole.cost(one) is None
    assert whole.cost(two) == lab.Cost(15.0, 1.0)


def test_cells_are_found_by_their_names(whole):
    assert rebuild(whole, "Two", {"size": 7, "seeds": 2}) == type(whole.cells("smoke")[2])(7, 2)
    with pytest.raises(InputError, match="no cells of a class 'Three'"):
        rebuild(whole, "Three", {})


def test_two_slices_with_one_name_for_their_cells_are_refused(tmp_path):
    with pytest.raises(InputError, match="first and second, have cells of a class One"):
        load_experiment(write(tmp_path / "mine", second={"name": "One"}))


def test_a_result_depends_on_its_own_slice_alone(tmp_path):
    """What is changed in the second slice makes the cells of the first no staler, and the other way round."""
    before, after = write(tmp_path / "before"), write(tmp_path / "after", second={"factor": 4})
    assert fingerprint(before, ["One"]).code == fingerprint(after, ["One"]).code
    assert fingerprint(before, ["Two"]).code != fingerprint(after, ["Two"]).code
    assert fingerprint(before, ["One", "Two"]).code != fingerprint(after, ["One", "Two"]).code
    assert fingerprint(before, ["One"]).code != fingerprint(before, ["Two"]).code


def test_the_library_s_own_slices_depend_on_themselves_alone():
    path = PACKAGE / "papers" / "nichani" / "constructions" / "__init__.py"
    codes = {kind: fingerprint(path, [kind]) for kind in ("Sparse", "Dense", "Joint", "Descents", "Learned")}
    assert len({code.code for code in codes.values()}) == 5
    assert codes["Sparse"].code == fingerprint(path.with_name("lemma1.py"), ["Sparse"]).code
