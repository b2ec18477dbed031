"""Output folders with something odd in them: a sentence and a status, no traceback, no waiting."""

import errno
import os

import pytest

from offtangent import lab

ODD = {
    "file": lambda path: path.touch(),
    "pipe": os.mkfifo,
    "dangling link": lambda path: path.symlink_to(path.parent / "nowhere"),
    "loop": lambda path: path.symlink_to(path),
    "link to elsewhere": lambda path: ((path.parents[2] / "else").mkdir(), path.symlink_to(path.parents[2] / "else")),
}


@pytest.fixture
def run(sweep, store, offtangent):
    return lambda: offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store)


@pytest.mark.parametrize("kind", ODD)
def test_something_else_in_the_place_of_a_folder_of_cells_is_set_aside(kind, sweep, store, run):
    file = sweep.files(store)[1]
    file.parent.parent.mkdir(parents=True)
    ODD[kind](file.parent)
    told = run()
    assert told.status == 0, told.err
    assert "where a folder belongs" in told.err
    assert file.is_file()
    assert not file.parent.is_symlink()


@pytest.mark.parametrize(("name", "kind"), [
    *((name, kind) for name in ("cells", "damaged", "results") for kind in ("file", "pipe", "dangling link", "loop")),
    ("report.html", "pipe"), ("report.html", "folder"), ("failures.log", "folder"),
])  # fmt: skip
def test_a_part_of_the_folder_of_the_wrong_kind_is_refused_before_anything_is_computed(
    name, kind, sweep, store, run, offtangent
):
    store.mkdir()
    {**ODD, "folder": os.mkdir}[kind](store / name)
    told = run()
    assert told.status == 2
    assert f"{store / name} is " in told.err
    assert "Move it away" in told.err
    assert sweep.executed == []
    assert offtangent("report", store, sweep.path).status == 2


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device", "loop", "hole of a terabyte"])
def test_what_has_no_end_in_the_place_of_a_cell_is_set_aside_and_not_waited_for(kind, sweep, store, run):
    run()
    file = sweep.files(store)[1]
    file.unlink()
    if kind == "hole of a terabyte":
        with file.open("wb") as hole:
            hole.truncate(2**40)
    elif kind == "device":
        if os.geteuid():
            pytest.skip("only root makes devices")
        os.mknod(file, 0o020666, os.makedev(1, 5))
    else:
        {**ODD, "link to a device": lambda path: path.symlink_to("/dev/zero")}[kind](file)
    told = run()
    assert told.status == 0, told.err
    assert "Damaged and computed again" in told.err
    assert file.is_file()


def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(sweep, store, run, offtangent):
    run()
    path = store / "results" / "sweep-smoke.json"
    path.unlink()
    os.mkfifo(path)
    told = offtangent("report", store, sweep.path)
    assert told.status == 0
    assert "named pipe" in told.err
    assert "made again from 4 cells" in told.err


def test_damaged_files_are_set_aside_beside_them_where_the_folder_is_on_another_disk(sweep, store, run, monkeypatch):
    run()
    file = sweep.files(store)[1]
    file.write_bytes(b"damaged")
    replace = os.replace

    def other_disk(source, target):
        if os.path.basename(os.path.dirname(target)) == "damaged":
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source), None, str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", other_disk)
    told = run()
    assert told.status == 0, told.err
    assert len(list(file.parent.glob("*.damaged"))) == 1
    assert lab.store.Store(store).read(file.stem) is not None


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EIO])
def test_a_folder_that_cannot_be_written_midway_ends_the_run_with_a_sentence(number, store, run, monkeypatch):
    calls, sync = [], os.fsync

    def read_only(file):
        calls.append(1)
        if len(calls) >= 3:
            raise OSError(number, os.strerror(number))
        sync(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", read_only)
        told = run()
    assert told.status == 1
    assert f"Results cannot be kept in {store} ({os.strerror(number)})" in told.err
    assert "run the same command again to go on" in told.err
    assert "3 of 4 cells" in run().err


def test_a_folder_of_cells_that_may_not_be_read_is_told(store, run, monkeypatch):
    run()
    access, cells = os.access, str(store / "cells" / "")
    # As for somebody who is not root, who may read anything.
    monkeypatch.setattr(os, "access", lambda path, how: not str(path).startswith(cells) and access(path, how))
    told = run()
    assert told.status == 2
    assert "cannot be read (Permission denied)" in told.err
