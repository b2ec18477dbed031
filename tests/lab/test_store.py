"""Files that are damaged in every way are set aside, reported and computed again; the others are untouched."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from offtangent import _files, lab
from offtangent._errors import InputError
from offtangent.lab.store import STALE_AFTER

DAMAGE = {
    "emptied": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "first half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "npz of elsewhere": lambda path: np.savez(path, x=np.arange(3)),
    "text": lambda path: path.write_text("hello"),
    "folder": lambda path: (path.unlink(), path.mkdir(), (path / "inside").touch()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_set_aside_and_computed_again(damage, sweep, store, same):
    first = sweep.run(store)
    files = sweep.files(store)
    untouched = {number: file.read_bytes() for number, file in files.items() if number != 2}
    DAMAGE[damage](files[2])
    sweep.forget()
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened)
    (again,) = lab.runner.run(plan, opened)
    assert sweep.executed == [2]
    assert (again.computed, again.reused) == (1, 3)
    assert same(again.results, first.results)
    (line,) = opened.damaged
    assert files[2].name in line
    assert len(list((store / "damaged").iterdir())) == 1
    assert {number: file.read_bytes() for number, file in files.items() if number != 2} == untouched
    assert (sweep.run(store).computed, len(sweep.executed)) == (0, 1)


def test_the_result_of_another_cell_under_this_name_is_not_taken(sweep, store):
    sweep.run(store)
    files = sweep.files(store)
    shutil.copyfile(files[1], files[2])
    opened = lab.store.Store(store)
    assert opened.read(files[2].stem) is None
    assert "another cell" in opened.damaged[0]


def test_the_command_reports_damage(sweep, store, offtangent):
    sweep.run(store)
    sweep.files(store)[0].write_bytes(b"")
    told = offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store, "--json")
    assert told.status == 0
    assert (told.json["computed"], told.json["reused"], len(told.json["damaged"])) == (1, 3, 1)
    assert "Damaged and computed again" in told.err


def test_a_file_that_another_run_has_mended_meanwhile_stays(sweep, store, monkeypatch):
    """Between our reading of damaged bytes and our setting them aside, another run stores a sound result."""
    sweep.run(store)
    file = sweep.files(store)[0]
    sound = file.read_bytes()
    file.write_bytes(b"damaged")
    replace = os.replace

    def mended_first(*names):
        monkeypatch.setattr(os, "replace", replace)
        file.write_bytes(sound)
        replace(*names)

    monkeypatch.setattr(os, "replace", mended_first)
    opened = lab.store.Store(store)
    opened.read(file.stem)
    assert file.read_bytes() == sound
    assert opened.damaged == []
    assert opened.read(file.stem) is not None


def test_two_runs_that_set_the_same_file_aside_report_it_once(sweep, store, monkeypatch):
    sweep.run(store)
    file = sweep.files(store)[0]
    file.write_bytes(b"damaged")
    replace = os.replace

    def faster(*names):
        file.unlink()
        replace(*names)

    monkeypatch.setattr(os, "replace", faster)
    opened = lab.store.Store(store)
    assert opened.read(file.stem) is None
    assert opened.damaged == []


def test_only_old_leftovers_of_crashed_runs_are_cleared(store):
    (store / "cells" / "ab").mkdir(parents=True)
    names = ("cells/ab/.x.npz.1-a.part", "cells/ab/.y.npz.2-b.part", ".run-1", ".run-2")
    for name in names:
        (store / name).touch()
    old = time.time() - STALE_AFTER - 1
    for name in names[::2]:
        os.utime(store / name, (old, old))
    lab.store.Store.open(store)
    assert [(store / name).exists() for name in names] == [False, True, False, True]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="Choose another with --out"):
        lab.store.Store.open(tmp_path / "file" / "store")


def test_a_stored_cell_is_decoded_once(sweep, store, monkeypatch):
    from offtangent.lab import store as room

    sweep.run(store)
    decoded, decode = [], room.decode
    monkeypatch.setattr(room, "decode", lambda content: decoded.append(1) or decode(content))
    assert sweep.run(store).reused == 4
    assert len(decoded) == 4


def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_leftovers_of_dead_processes_are_cleared_at_once_and_those_of_living_ones_stay(store):
    places = [store / "cells" / "ab", store / "results", store / "damaged", store]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        for process in (dead(), os.getpid()):
            (place / f".x.{_files._here()}-{process}-0a.part").touch()
        (place / f".x.{'0' * 8}-{dead()}-0a.part").touch()  # of another machine, where it may be alive
    lab.store.Store.open(store)
    for place in places:
        left = sorted(file.name.split("-")[0:2] for file in place.glob(".x.*.part"))
        assert left == sorted([[".x.00000000", left[0][1]], [f".x.{_files._here()}", str(os.getpid())]])
