"""What lies beside an experiment is its own, as it is now, and is found whenever its code runs."""

import subprocess
import sys
import types

import pytest

from offtangent import lab
from offtangent.lab.worker import work

SOURCE = '''
"""Asks a helper."""
from dataclasses import dataclass
import xarray as xr
{head}

@dataclass(frozen=True)
class Cell:
    number: int

PROFILES = {{"smoke": 2}}

def cells(count):
    return [Cell(number) for number in range(count)]

def run(cell):
    {first}
    return xr.Dataset({{"y": helper.value() + cell.number}})

def claims(results):
    return []

def draw(results):
    return []
'''


@pytest.fixture
def write(tmp_path):
    """`write(folder, value)` writes an experiment of that name with a helper beside it, a package or a file."""

    def make(name, value, *, head="import helper", first="pass", package=False):
        folder = tmp_path / name
        inside = folder / "helper" if package else folder
        inside.mkdir(parents=True, exist_ok=True)
        (inside / ("__init__.py" if package else "helper.py")).write_text(f"def value(): return {value}\n")
        path = folder / f"{name}.py"
        path.write_text(SOURCE.format(head=head, first=first))
        return path

    return make


def numbers(folder, path, on="local"):
    store = lab.store.Store.open(folder)
    plan = lab.runner.plan([lab.experiment.load_experiment(path)], "smoke", store, lab.executors.parse_placement(on))
    (outcome,) = lab.runner.run(plan, store)
    assert not outcome.failures, outcome.failures[0][1].error
    return [dataset["y"].item() for _, dataset in outcome.results], outcome.computed


@pytest.mark.parametrize("on", ["local", "processes:1"])
@pytest.mark.parametrize("package", [False, True])
def test_two_experiments_with_helpers_of_one_name_have_each_its_own(write, store, on, package):
    a, b = write("a", 2.0, package=package), write("b", 5.0, package=package)
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan(
        [lab.experiment.load_experiment(a), lab.experiment.load_experiment(b)],
        "smoke",
        opened,
        lab.executors.parse_placement(on),
    )
    outcomes = lab.runner.run(plan, opened)
    assert [[d["y"].item() for _, d in one.results] for one in outcomes] == [[2.0, 3.0], [5.0, 6.0]]
    assert "helper" not in sys.modules


def test_a_helper_that_changed_is_loaded_again_in_a_living_process(write, store):
    assert numbers(store, write("a", 2.0)) == ([2.0, 3.0], 2)
    assert numbers(store, write("a", 9.0)) == ([9.0, 10.0], 2)
    assert numbers(store, write("a", 9.0)) == ([9.0, 10.0], 0)


def test_a_worker_that_lives_long_asks_the_helper_as_it_is_now(write, store):
    """Both tasks run in this process, as in a Dask worker."""
    for value in (2.0, 7.0):
        opened = lab.store.Store.open(store)
        path = write("a", value)
        job = lab.runner.plan([lab.experiment.load_experiment(path)], "smoke", opened).jobs[0]
        (done,) = work([job.task], str(store), "none")
        assert done.error is None
        opened.write(job.key, done.content)
        assert opened.read(job.key)[0]["y"].item() == value


@pytest.mark.parametrize("on", ["local", "processes:1"])
def test_a_module_beside_is_found_when_run_imports_it(write, store, on, monkeypatch):
    monkeypatch.chdir("/")
    assert numbers(store, write("a", 2.0, head="", first="import helper"), on) == ([2.0, 3.0], 2)


def test_a_module_of_one_s_own_script_stays_what_it_was(write, store, monkeypatch):
    theirs = types.ModuleType("helper")
    theirs.__file__ = "/elsewhere/helper.py"
    monkeypatch.setitem(sys.modules, "helper", theirs)
    assert numbers(store, write("a", 2.0)) == ([2.0, 3.0], 2)
    assert sys.modules["helper"] is theirs


def test_a_file_that_changes_folders_gets_its_results_where_they_belong(write, tmp_path, offtangent, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("a", 2.0, head="import os, helper", first="os.chdir('/')")
    told = offtangent("run", path, "--profile", "smoke", "--on", "local", "--out", "here")
    assert told.status == 0, told.err
    assert (tmp_path / "here" / "report.html").is_file()
    assert len(list((tmp_path / "here").glob("cells/*/*.npz"))) == 2


def test_a_file_may_set_jax_s_precision(write, store):
    head = "import jax, helper\njax.config.update('jax_enable_x64', True)"
    code = f"""
import sys
from pathlib import Path
from offtangent import lab
if __name__ == "__main__":
    store = lab.store.Store.open(Path({str(store)!r}))
    plan = lab.runner.plan([lab.experiment.load_experiment(Path({str(write("a", 2.0, head=head))!r}))], "smoke", store,
                    lab.executors.Placement("processes", "1"))
    (outcome,) = lab.runner.run(plan, store)
    print(outcome.computed, [done.error for _, done in outcome.failures])
"""
    script = store.parent / "script.py"
    script.write_text(code)
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["2", "[]"]


def test_a_file_read_by_a_run_before_is_told_again(write, offtangent):
    first = "Path(__file__).with_name('d').read_text()"
    path = write("a", 2.0, head="import helper\nfrom pathlib import Path", first=first)
    path.with_name("d").write_text("1")
    words = ("run", path, "--profile", "smoke", "--on", "local", "--out", path.parent)
    for computed in (2, 0):
        told = offtangent(*words)
        assert f"{computed} cells computed" in told.out
        assert "a reads d, which datasets(cell) does not name" in told.err
    assert "helper" not in told.err


FIELD = """
import dataclasses
@dataclass(frozen=True)
class Cell:
    number: int
    twice: int = dataclasses.field(init=False, default=0)
"""


@pytest.mark.parametrize(
    "line",
    [
        "class P(dict):\n    def __iter__(self): raise RuntimeError('odd')\nPROFILES = P(smoke=1)",
        "def __getattr__(name): raise RuntimeError('odd')",
        FIELD,
    ],
    ids=["profiles", "getattr", "field"],
)
def test_what_an_experiment_cannot_be_asked_is_told_in_words(line, write, tmp_path, offtangent):
    path = write("a", 2.0)
    text = path.read_text()
    if "getattr" in line:
        text = text.partition("def draw")[0]
    path.write_text(text + "\n" + line + "\n")
    told = offtangent("run", path, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert told.status == 2
    assert "Traceback" not in told.err
