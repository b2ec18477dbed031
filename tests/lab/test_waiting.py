"""What a run does while it waits: it ends cells that take too long, and tells of those that take far longer."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from offtangent import lab
from offtangent.lab import experiment, lateness


def test_a_cell_over_the_time_limit_is_ended_and_takes_no_other_with_it(write_sweep, store, offtangent):
    """The others that are in flight, one of them longer than what is left of the limit, run once each."""
    sweep = write_sweep(cells=6, body="time.sleep({1: 100, 5: 5}.get(cell.number, 0))")
    words = ("run", sweep.path, "--profile", "smoke", "--out", store, "--json")
    told = offtangent(*words, "--on", "processes:2", "--timeout", "8")
    assert told.status == 1
    (failure,) = told.json["failures"]
    assert "number=1" in failure["cell"]
    assert failure["error"] == "it took longer than --timeout 8 s, and its worker was ended"
    assert told.json["computed"] == 5
    assert sorted(sweep.executed) == list(range(6))


def test_the_worker_of_a_cell_over_the_time_limit_is_replaced(write_sweep, store):
    """The only one: what comes after runs in another process."""
    sweep = write_sweep(cells=3, body="if cell.number == 0: time.sleep(100)")
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, lab.executors.Placement("processes", "1"))
    (outcome,) = lab.runner.run(plan, opened, timeout=4.0)
    assert [job.cell.number for job, _ in outcome.failures] == [0]
    assert sweep.executed == [0, 1, 2]
    assert sweep.processes[1] == sweep.processes[2] != sweep.processes[0]


def test_the_time_that_an_experiment_takes_to_load_is_not_its_cells(write_sweep, store):
    """Loading takes two seconds in every worker, a cell none, and the limit is one second."""
    sweep = write_sweep(cells=4)
    sweep.path.write_text(sweep.path.read_text() + "\n\ntime.sleep(2)\n")
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, lab.executors.Placement("processes", "2"))
    (outcome,) = lab.runner.run(plan, opened, timeout=1.0)
    assert not outcome.failures
    assert sorted(sweep.executed) == [0, 1, 2, 3]
    assert all(opened.read(job.key)[1]["seconds"] < 1 for job in plan.jobs)


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none_is_refused_in_words(timeout, sweep, store, offtangent):
    told = offtangent("run", sweep.path, "--profile", "smoke", "--out", store, "--on", "processes:1",
                      f"--timeout={timeout}")  # fmt: skip
    assert told.status == 2
    assert "give a positive number of seconds" in told.err


@pytest.mark.parametrize("on", ["local", "dask:tcp://127.0.0.1:9"])
def test_where_no_cell_can_be_ended_a_time_limit_is_refused_and_processes_are_named(on, sweep, store, offtangent):
    told = offtangent("run", sweep.path, "--profile", "smoke", "--out", store, "--on", on, "--timeout", "60")
    assert told.status == 2
    assert "Use --on processes:" in told.err.replace("\n", " ")
    assert not sweep.executed


@pytest.mark.parametrize(
    "placement", [lab.executors.Placement("local"), lab.executors.Placement("processes", "2")], ids=str
)
def test_a_cell_that_runs_far_longer_than_expected_is_told_once(placement, write_sweep, store, monkeypatch):
    for name, value in (("TIMES", 2.0), ("MORE", 0.5), ("EVERY", 0.1)):
        monkeypatch.setattr(lateness, name, value)
    sweep = write_sweep(cells=3, body="if cell.number == 1: time.sleep(2)")
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, placement)
    jobs = tuple(replace(job, cost=lab.Cost(1.0, 1.0) if job.cell.number == 1 else None) for job in plan.jobs)
    told = []
    lab.runner.run(replace(plan, jobs=jobs), opened, tell=told.append)
    (sentence,) = told
    assert sentence.startswith("sweep Cell(number=1, size=10, seconds=0.0): expected 0.0 s, running for ")


def test_cells_without_end_are_refused_in_words(sweep, store, offtangent, monkeypatch):
    monkeypatch.setattr(experiment, "MOST_CELLS", 1000)
    endless = "return (Cell(number, size, seconds) for number in __import__('itertools').count())"
    text = sweep.path.read_text()
    sweep.path.write_text(text.replace("return [Cell(number, size, seconds) for number in range(count)]", endless))
    told = offtangent("run", sweep.path, "--profile", "smoke", "--out", store, "--on", "local")
    assert told.status == 2
    assert "sweep: cells(config) gives more than 1,000 cells for the profile 'smoke'" in told.err.replace("\n", " ")


def test_a_worker_s_own_child_that_lives_on_does_not_hide_its_death(write_sweep, store, tmp_path):
    """It holds the worker's end of the pipe open."""
    mark = tmp_path / "died"
    body = f"""
    if cell.number == 1 and not os.path.exists({str(mark)!r}):
        open({str(mark)!r}, "w").close()
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        os._exit(1)
    """
    start = time.monotonic()
    outcome = write_sweep(cells=2, body=body).run(store, lab.executors.Placement("processes", "1"))
    assert (outcome.computed, outcome.failures) == (2, ())
    assert time.monotonic() - start < 18


def test_a_script_that_does_not_ask_whether_it_is_main_does_not_go_on_in_its_workers(write_sweep, store, tmp_path):
    """They import it, and would run it; Python's message tells its author what to do."""
    sweep = write_sweep(cells=1)
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(f"""
from pathlib import Path
from offtangent import lab
store = lab.store.Store.open(Path({str(store)!r}))
mine = lab.experiment.load_experiment(Path({str(sweep.path)!r}))
plan = lab.runner.plan([mine], "smoke", store, lab.executors.Placement("processes", "1"))
(outcome,) = lab.runner.run(plan, store)
with open({str(log)!r}, "a") as file:
    file.write(outcome.failures[0][1].error)
""")
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert "bootstrapping phase" in told.stderr
    assert log.read_text().startswith("its worker process died 3 times")
