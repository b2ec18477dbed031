"""Faults at the worst moments of a write: death around sync and rename, and a full disk."""

import errno
import os
import subprocess

import pytest

from offtangent import lab
from offtangent._files import write_whole
from offtangent.lab.store import StoreFailed, StoreFull

CELLS = 3


def test_death_around_sync_and_rename_costs_the_unnamed_cell_and_no_other(drive, write_sweep, tmp_path):
    """Of the c-th cell: its file is synced (call 2c - 1), renamed (call c), and its folder is synced (call 2c).

    A death before the rename costs that cell, and a death after it nothing.
    """
    told = drive("faults", write_sweep(cells=CELLS).path, tmp_path / "faults")
    expected = {}
    for cell in range(1, CELLS + 1):
        for point in (f"fsync before {2 * cell - 1}", f"fsync after {2 * cell - 1}", f"replace before {cell}"):
            expected[point] = (cell - 1, cell, CELLS + 1)
        for point in (f"replace after {cell}", f"fsync before {2 * cell}", f"fsync after {2 * cell}"):
            expected[point] = (cell, cell, CELLS)
    assert len(expected) == 6 * CELLS
    assert {point: (t["stored"], t["executed"], t["executions"]) for point, t in told.items()} == expected
    for t in told.values():
        assert t["reused"] == t["stored"]
        assert t["computed"] == CELLS - t["stored"]
        assert t["same"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(function, tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def fail(*_):
        raise OSError(errno.EIO, "no luck")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="no luck"):
        write_whole(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_stops_the_run_and_leaves_the_store_readable(number, sweep, store, monkeypatch):
    """The disk is full from the third sync on: one cell is stored, with its folder."""
    calls, sync = [], os.fsync

    def full(file):
        calls.append(1)
        if len(calls) >= 3:
            raise OSError(number, os.strerror(number))
        sync(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match=r"No space left .* run the same command again") as caught:
            sweep.run(store)
    assert str(store) in str(caught.value)
    assert len(list(store.rglob("*.part"))) == 0
    outcome = sweep.run(store)
    assert (outcome.computed, outcome.reused) == (3, 1)


def test_no_space_for_the_record_is_told_like_no_space_for_a_cell(sweep, store, monkeypatch):
    from offtangent.lab.records import record_of

    record = record_of(sweep.run(store))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match="run the same command again"):
        lab.records.write_record(record, store / "results")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two hundred kilobytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], capture_output=True, text=True, check=False
    ) if os.name == "posix" and os.geteuid() == 0 else None  # fmt: skip
    if mounted is None or mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr if mounted else 'not root'}")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("on", ["local", "processes:2"])
def test_a_full_disk_gives_a_clear_error_and_leaves_the_store_readable(on, write_sweep, small_disk, offtangent):
    """Ten cells of 40 kB do not fit into 200 kB; with room made, the run goes on where it was."""
    sweep = write_sweep(cells=10, size=5_000)
    store = small_disk / "store"
    words = ("run", sweep.path, "--profile", "smoke", "--out", store, "--json")
    told = offtangent(*words, "--on", on)
    assert told.status == 1
    assert "Traceback" not in told.err
    assert f"No space left for results in {store}" in told.err
    assert "run the same command again to go on" in told.err
    files = sweep.files(store, lab.executors.parse_placement(on))
    kept = [cell for cell, file in files.items() if file.exists()]
    assert 0 < len(kept) < 10
    reading = lab.store.Store(store)
    assert all(reading.read(file.stem) is not None for file in files.values() if file.exists())
    assert reading.damaged == []
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    told = offtangent(*words, "--on", on)
    assert told.status == 0
    assert (told.json["computed"], told.json["reused"]) == (10 - len(kept), len(kept))
