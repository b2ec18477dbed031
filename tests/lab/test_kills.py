"""Runs killed with SIGKILL at random moments: nothing that was finished is lost."""

import os
import signal

import pytest

from offtangent import lab

KILLS = 100


def test_a_hundred_kills_lose_no_finished_cell(drive, write_sweep, tmp_path):
    """Each kill costs at most the one cell that was running; the driver compares the numbers bit for bit."""
    sweep = write_sweep(cells=20, size=3000, seconds=0.003)
    told = drive("kills", sweep.path, tmp_path / "killed", KILLS)
    print(told)
    assert told["kills"] >= KILLS
    assert told["finished_cells_run_again"] == 0
    assert told["recomputed"] <= told["kills"]
    assert told["cut_short_in_a_write"] > 0  # some kills came between the first byte and the rename


def test_killed_runs_leave_no_worker_and_lose_no_finished_cell(drive, write_sweep, tmp_path):
    """With two workers a kill costs at most the two cells that were running.

    The kills come within 1.1 s of work altogether, and two workers need 1.4 s: none may find the run at its end.
    """
    sweep = write_sweep(cells=24, size=3000, seconds=0.12)
    told = drive("pools", sweep.path, tmp_path / "killed", 4)
    print(told)
    assert told["finished_cells_run_again"] == 0
    assert told["recomputed"] <= 2 * told["kills"]


def test_the_cells_of_a_killed_worker_are_sent_again(write_sweep, store, same, tmp_path):
    """The first cell 3 kills its own worker process, once."""
    mark = tmp_path / "killed"
    body = f"""
    if cell.number == 3 and not os.path.exists({str(mark)!r}):
        open({str(mark)!r}, "w").close()
        os.kill(os.getpid(), {signal.SIGKILL})
    """
    sweep = write_sweep(cells=8, seconds=0.1, body=body)
    outcome = sweep.run(store, lab.executors.Placement("processes", "2"))
    assert mark.exists()
    assert (outcome.computed, outcome.reused, outcome.failures) == (8, 0, ())
    assert len(sweep.executed) <= 8 + 2  # what the two workers had in hand
    assert same(outcome.results, sweep.run(tmp_path / "truth").results)


def test_a_cell_that_always_kills_its_worker_is_reported_and_takes_no_other_with_it(write_sweep, store):
    """The others are slow, so that they are in flight whenever it strikes."""
    body = """
    if cell.number == 1:
        os._exit(1)
    time.sleep(0.2)
    """
    outcome = write_sweep(cells=4, body=body).run(store, lab.executors.Placement("processes", "2"))
    ((job, done),) = outcome.failures
    assert job.cell.number == 1
    assert "died 3 times" in done.error
    assert [cell.number for cell, _ in outcome.results] == [0, 2, 3]
    assert not outcome.results.complete


FULL = {"host": "MemoryError()", "device": "RuntimeError('RESOURCE_EXHAUSTED: Out of memory while trying to allocate')"}


@pytest.mark.parametrize("full", FULL)
def test_a_cell_that_does_not_fit_beside_others_is_tried_by_itself_with_fresh_workers(
    write_sweep, store, tmp_path, full
):
    mark = tmp_path / "full"
    body = f"""
    if cell.number == 1 and not os.path.exists({str(mark)!r}):
        open({str(mark)!r}, "w").close()
        raise {FULL[full]}
    """
    sweep = write_sweep(cells=5, seconds=0.1, body=body)
    outcome = sweep.run(store, lab.executors.Placement("processes", "2"))
    assert (outcome.computed, outcome.failures) == (5, ())
    assert (sweep.executed.count(1), sweep.executed[-1]) == (2, 1)
    *before, last = sweep.processes
    assert last not in before


def test_a_cell_that_does_not_fit_at_all_is_reported(write_sweep, store):
    body = "if cell.number == 1: raise MemoryError('too large')"
    sweep = write_sweep(cells=3, body=body)
    ((_, done),) = sweep.run(store, lab.executors.Placement("processes", "2")).failures
    assert done.error == "MemoryError: too large"
    assert sweep.executed.count(1) == 2
    sweep.forget()
    ((_, done),) = sweep.run(store, lab.executors.Placement("local")).failures  # where nobody else has a share
    assert sweep.executed.count(1) == 1


@pytest.mark.parametrize("moment", ["birth", "work"])
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(
    moment, write_sweep, store, start, command, offtangent, until, session
):
    """SIGINT to the whole session, as a terminal sends it, while workers are born and while they work."""
    sweep = write_sweep(cells=12, seconds=0.1)
    words = ("run", sweep.path, "--profile", "smoke", "--out", store)
    process = start(*command(*words, "--on", "processes:2"))
    if moment == "birth":
        until(lambda: len(session(process.pid)) > 1)
    else:
        until(lambda: list(store.glob("cells/*/[!.]*.npz")))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "of 12 cells are stored. Run the same command again to go on" in err
    until(lambda: not session(process.pid), 10)
    stored, executed = len(list(store.glob("cells/*/[!.]*.npz"))), len(sweep.executed)
    assert executed - stored <= 2  # what the two workers had in hand
    if moment == "work":
        assert 0 < stored < 12
        told = offtangent(*words, "--on", "processes:2", "--json")
        assert told.status == 0
        assert (told.json["computed"], told.json["reused"]) == (12 - stored, stored)
        assert len(sweep.executed) == executed + 12 - stored
