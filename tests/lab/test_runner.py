"""Plans and runs: what is computed, what is reused, what is reported."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab import runner
from offtangent.lab.codec import decode
from offtangent.lab.progress import TimeLeft
from offtangent.lab.worker import work


def test_a_second_run_computes_nothing(sweep, store, same):
    first = sweep.run(store)
    assert (first.computed, first.reused, sweep.executed) == (4, 0, [0, 1, 2, 3])
    second = sweep.run(store)
    assert (second.computed, second.reused, len(sweep.executed)) == (0, 4, 4)
    assert same(first.results, second.results)
    assert second.seconds == first.seconds  # of the work that was done then


def test_the_longest_cells_of_an_experiment_come_first(sweep, store):
    kept = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", kept)
    costs = (lab.Cost(2.0, 1.0), None, lab.Cost(9.0, 1.0), lab.Cost(5.0, 1.0))
    jobs = tuple(replace(job, cost=cost) for job, cost in zip(plan.jobs, costs, strict=True))
    (outcome,) = runner.run(replace(plan, jobs=jobs), kept)
    assert sweep.executed == [2, 3, 0, 1]
    assert [cell.number for cell, _ in outcome.results] == [0, 1, 2, 3]


def test_experiments_with_long_cells_come_first_and_each_as_a_whole(write_sweep, store):
    """A tail of them would leave workers idle; another order would leave no experiment whole on the way."""
    sweeps = [write_sweep(cells=2, name=name) for name in "abc"]
    plan = lab.runner.plan([sweep.experiment for sweep in sweeps], "smoke", lab.store.Store.open(store))
    costs = {"a": (5.0, 6.0), "b": (1.0, 9.0), "c": (None, None)}
    jobs = []
    for job in plan.jobs:
        flops = costs[job.experiment.name][job.cell.number]
        jobs.append(replace(job, cost=lab.Cost(flops, 1.0) if flops else None))
    found = runner._longest_first(replace(plan, jobs=tuple(jobs)))
    assert " ".join(f"{job.experiment.name}{job.cell.number}" for job in found) == "b1 b0 a1 a0 c0 c1"


@pytest.mark.parametrize(("on", "told"), [("processes:1", "false"), ("local", "None")])
def test_a_run_that_shares_a_gpu_with_its_workers_leaves_its_memory_to_them(
    on, told, sweep, store, offtangent, monkeypatch
):
    """The run's own process asks JAX for its devices, and would have three quarters of the memory from then on."""
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)  # another test's run may have left it here
    noted = sweep.path.with_name("noted")
    note = (
        f"__import__('pathlib').Path({str(noted)!r}).write_text(str(os.environ.get('XLA_PYTHON_CLIENT_PREALLOCATE')))"
    )
    sweep.path.write_text(sweep.path.read_text().replace("def cells(config):", f"def cells(config):\n    {note}"))
    assert offtangent("run", sweep.path, "--profile", "smoke", "--out", store, "--on", on).status == 0
    assert noted.read_text() == told


def test_fresh_computes_everything_again(sweep, store):
    sweep.run(store)
    assert (sweep.run(store, fresh=True).computed, len(sweep.executed)) == (4, 8)


def test_processes_give_the_numbers_of_this_process_in_the_order_of_the_cells(write_sweep, store, same, tmp_path):
    sweep = write_sweep(cells=7, seconds=0.02)
    outcome = sweep.run(store, lab.executors.Placement("processes", "2"))
    assert len(sweep.executed) == 7
    assert len(sweep.executors) <= 2
    assert [cell.number for cell, _ in outcome.results] == list(range(7))
    assert same(outcome.results, sweep.run(tmp_path / "here").results)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raise ValueError('bad luck')", "ValueError: bad luck"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return 7", "returned an int; it must return an xarray.Dataset"),
        ("return xr.Dataset({'x': ('i', np.array([None]))})", "dtype object"),
    ],
)
def test_a_cell_that_fails_is_reported_and_the_others_go_on(fault, words, write_sweep, store):
    outcome = write_sweep(body=f"if cell.number == 1: {fault}").run(store)
    ((job, done),) = outcome.failures
    assert job.cell.number == 1
    assert words in done.error
    assert [cell.number for cell, _ in outcome.results] == [0, 2, 3]
    assert (outcome.computed, outcome.results.complete) == (3, False)


def test_a_failing_cell_in_a_process_is_reported_with_status_1_and_tried_again_next_time(
    write_sweep, store, offtangent
):
    sweep = write_sweep(body="if cell.number == 1: raise SystemExit('bad luck')")
    words = ("run", sweep.path, "--profile", "smoke", "--out", store, "--json")
    told = offtangent(*words, "--on", "processes:1")
    assert told.status == 1
    assert [failure["error"] for failure in told.json["failures"]] == ["SystemExit: bad luck"]
    assert told.json["computed"] == 3
    sweep.forget()
    assert offtangent(*words, "--on", "processes:2").json["reused"] == 3
    assert sweep.executed == [1]


def test_rounding_by_threads_is_part_of_the_key(write_sweep, store, monkeypatch):
    """Sums in the run's own process are cut into as many parts as it has threads; workers have one."""
    monkeypatch.setenv("NPROC", "2")
    sweep = write_sweep(cells=1, body="import jax")
    assert [sweep.run(store).reused for _ in range(2)] == [0, 1]
    assert [sweep.run(store, lab.executors.Placement("processes", "1")).reused for _ in range(2)] == [0, 1]
    assert sweep.run(store, lab.executors.Placement("processes", "2")).reused == 1
    monkeypatch.setenv("NPROC", "3")
    assert sweep.run(store).reused == 0


def test_a_worker_with_other_threads_than_the_run_says_refuses_the_cell(sweep, store, monkeypatch):
    """One that imported JAX before it could be told, say."""
    monkeypatch.setenv("NPROC", "7")
    sweep.path.write_text(sweep.path.read_text().replace("    values = ", "    import jax\n    values = "))
    job = lab.runner.plan([lab.experiment.load_experiment(sweep.path)], "smoke", lab.store.Store.open(store)).jobs[0]
    (done,) = work([replace(job.task, threads="1")], str(store), "none")
    assert "threads 7 (the run: 1)" in done.error


def test_a_user_s_own_file_runs_and_is_reported(sweep, store, offtangent):
    told = offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store)
    assert told.status == 0, told.err
    assert "4 cells computed, 0 taken" in told.out
    assert "means are small" in told.out
    page = (store / "report.html").read_text()
    assert "A trivial sweep." in page
    again = offtangent("report", store, sweep.path)
    assert again.status == 0, again.err


def test_a_dry_run_lists_cells_and_runs_none(sweep, store, offtangent):
    sweep.run(store)
    sweep.files(store)[2].unlink()
    told = offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store, "--dry-run", "--json")
    assert [cell["stored"] for cell in told.json] == [True, True, False, True]
    assert len(sweep.executed) == 4
    assert not (store / "report.html").exists()


def test_two_runs_at_once_give_the_same_result(write_sweep, store, start, command, same, tmp_path):
    """Both start on an empty store, and both end well, with all cells."""
    sweep = write_sweep(cells=10, size=2_000, seconds=0.05)
    words = ("run", sweep.path, "--profile", "smoke", "--out", store, "--json")
    runs = [start(*command(*words, "--on", "local")) for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        told = json.loads(out)
        assert told["computed"] + told["reused"] == 10
        assert (told["failures"], told["damaged"]) == ([], [])
    assert 10 <= len(sweep.executed) <= 20
    assert not list(store.rglob("*.part"))
    assert not list(store.glob(".run-*"))
    assert same(sweep.run(store).results, sweep.run(tmp_path / "truth").results)


def test_workers_that_do_not_see_the_store_send_their_results_back(sweep, store, same, tmp_path, monkeypatch):
    @contextmanager
    def unannounced(*_):
        yield

    monkeypatch.setattr(runner, "announced", unannounced)
    outcome = sweep.run(store, lab.executors.Placement("processes", "1"))
    assert outcome.computed == 4
    assert all(file.exists() for file in sweep.files(store, lab.executors.Placement("processes", "1")).values())
    assert same(outcome.results, sweep.run(tmp_path / "here").results)


def test_a_worker_with_another_source_refuses_the_cell(sweep, store):
    """The file changes after the plan was made: its numbers would be stored under the old source's name."""
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened)
    sweep.path.write_text(sweep.path.read_text().replace("default_rng(cell.number)", "default_rng(cell.number + 1)"))
    (outcome,) = lab.runner.run(plan, opened)
    assert len(outcome.failures) == 4
    assert "The worker differs from the run in" in outcome.failures[0][1].error
    assert sweep.executed == []


def test_a_worker_that_lives_long_runs_the_file_as_it_is_now(sweep, store, tmp_path, monkeypatch):
    """Both tasks run in this one process, as in a Dask worker. The new file is as long as the old one, and as old."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    old, new = lab.store.Store(tmp_path / "old"), lab.store.Store(tmp_path / "new")
    jobs = [lab.runner.plan([sweep.experiment], "smoke", old).jobs[0]]
    assert work([jobs[0].task], str(store), "none")[0].error is None
    saved = sweep.path.stat().st_mtime
    sweep.path.write_text(sweep.path.read_text().replace("standard_normal", "standard_cauchy"))
    os.utime(sweep.path, (saved, saved))
    jobs.append(lab.runner.plan([sweep.experiment], "smoke", new).jobs[0])
    (done,) = work([jobs[1].task], str(store), "none")
    assert done.error is None
    assert jobs[0].key != jobs[1].key
    np.testing.assert_array_equal(decode(done.content)[0]["values"], np.random.default_rng(0).standard_cauchy(10))


def test_ctrl_c_in_this_process_keeps_what_is_done(write_sweep, store):
    sweep = write_sweep(body=f"if cell.number == 2: os.kill(os.getpid(), {signal.SIGINT}); time.sleep(5)")
    with pytest.raises(lab.runner.Interrupted, match=r"2 of 4 cells are stored\. Run the same command again"):
        sweep.run(store)
    assert [number for number, file in sweep.files(store).items() if file.exists()] == [0, 1]
    assert not list(store.glob(".run-*"))


def test_worker_processes_have_one_thread_even_if_the_script_imports_jax_first(write_sweep, store, tmp_path):
    """A script of a user's own: spawning imports it again in the worker, and JAX with it, which the cell uses."""
    body = """
    import jax.numpy as jnp
    return xr.Dataset({'threads': ((), os.environ['NPROC']), 'total': ((), float(jnp.arange(4.0).sum()))})
    """
    sweep = write_sweep(cells=1, body=body)
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, sys
import jax
from pathlib import Path
from offtangent import lab
if __name__ == "__main__":
    store = lab.store.Store.open(Path({str(store)!r}))
    mine = lab.experiment.load_experiment(Path({str(sweep.path)!r}))
    plan = lab.runner.plan([mine], "smoke", store, lab.executors.Placement("processes", "1"))
    (outcome,) = lab.runner.run(plan, store)
    assert "NPROC" not in os.environ
    found = outcome.results.pairs[0][1]
    print(found["threads"].item(), found["total"].item())
""")
    environment = {name: value for name, value in os.environ.items() if name != "NPROC"}
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert told.stdout.split() == ["1", "6.0"], told.stderr


def test_a_store_that_loses_a_file_during_the_run_says_so(write_sweep, store):
    sweep = write_sweep(cells=2)
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened)
    (outcome,) = lab.runner.run(plan, opened, on_done=lambda job, _: opened.path(job.key).unlink())
    assert len(outcome.failures) == 2
    assert "run again" in outcome.failures[0][1].error


@pytest.mark.parametrize("text", ["processes:0", "processes:x", "dask", "nowhere", "local:3"])
def test_an_executor_that_is_none_is_refused_in_words(text):
    with pytest.raises(InputError, match="--on"):
        lab.executors.parse_placement(text)


def test_without_an_executor_there_is_a_process_a_core():
    """On a CPU, where the tests run."""
    assert lab.executors.parse_placement(None) == lab.executors.Placement(
        "processes", str(len(os.sched_getaffinity(0)))
    )


@pytest.mark.parametrize("text", ["local", "processes:3", "dask:tcp://host:1", "slurm:gpu", "slurm"])
def test_an_executor_reads_as_it_was_typed(text):
    assert str(lab.executors.parse_placement(text)) == text


def test_the_time_left_is_unknown_first_and_nothing_at_the_end(sweep, store):
    jobs = lab.runner.plan([sweep.experiment], "smoke", lab.store.Store.open(store)).missing
    left = TimeLeft(jobs)
    assert (left.total, left.seconds) == (4, None)
    for job in jobs:
        left.done(job, 0.5)
    assert (left.finished, left.seconds) == (4, 0.0)


def test_a_small_cell_before_large_ones_does_not_tell_the_time_left(sweep, store):
    """It mostly compiled; at its pace the others would take for ever."""
    small, *others = lab.runner.plan([sweep.experiment], "smoke", lab.store.Store.open(store)).missing
    jobs = [replace(small, cost=lab.Cost(1.0, 1.0)), *(replace(job, cost=lab.Cost(1e15, 1.0)) for job in others)]
    left = TimeLeft(jobs)
    left.done(jobs[0], 20.0)
    assert (left.seconds, str(left)) == (None, "")
    left.done(jobs[1], 300.0)
    assert str(left).startswith("about ")


def test_each_experiment_has_its_own_pace(sweep, store, monkeypatch):
    """Two of its cells took 1 s each, two of the other's 100 s each: one of each is left, on two workers."""
    first, second, third, *_ = lab.runner.plan([sweep.experiment], "smoke", lab.store.Store.open(store)).missing
    slow = [replace(job, experiment=replace(job.experiment, name="slow")) for job in (first, second, third)]
    left = TimeLeft([first, second, third, *slow])
    for job, taken in ((first, 1.0), (second, 1.0), (slow[0], 100.0), (slow[1], 100.0)):
        left.done(job, taken)
    monkeypatch.setattr("time.monotonic", lambda: left._start + 101.0)
    assert left.seconds == pytest.approx(101 / 2)
