"""A record that was changed is found, told, and made again from its cells; large variables stay with their cells."""

import json
import os
import random
import shutil
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from offtangent import lab
from offtangent._errors import InputError
from offtangent._files import own_name
from offtangent.lab import execution, records
from offtangent.lab.records import committed_records, record_of
from offtangent.lab.selection import of_papers


@pytest.fixture
def finished(sweep, store, offtangent):
    """The path of a run's record."""
    assert offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store).status == 0
    return store / "results" / "sweep-smoke.json"


def change_a_digit(path):
    """Another digit in the first number of the data, as an accident or a hand would write it."""
    content = path.read_text()
    place = content.index("[", content.index('"data": [')) + 4
    place = next(i for i in range(place, len(content)) if content[i].isdigit())
    path.write_text(content[:place] + str((int(content[place]) + 1) % 10) + content[place + 1 :])


def test_two_hundred_random_changes_of_a_record_are_all_found(finished, sweep):
    """One byte each, at any place; every second one a digit for a digit."""
    rng, sound = random.Random(20190524), finished.read_bytes()
    digits = [place for place, byte in enumerate(sound) if chr(byte) in string.digits]
    lab.records.read_record(finished, {"sweep": sweep.experiment})
    for number in range(200):
        place = rng.choice(digits) if number % 2 else rng.randrange(len(sound))
        values = [ord(d) for d in string.digits] if number % 2 else range(256)
        value = rng.choice([one for one in values if one != sound[place]])
        finished.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
        with pytest.raises(InputError):
            lab.records.read_record(finished, {"sweep": sweep.experiment})


def test_a_record_of_the_first_format_is_still_read(finished, sweep):
    content = json.loads(finished.read_text()) | {"format": 1}
    del content["checksum"]
    finished.write_text(json.dumps(content))
    assert lab.records.read_record(finished, {"sweep": sweep.experiment}).results.complete


def test_a_record_that_lost_its_checksum_as_a_first_format_would_is_told(finished, sweep, store, offtangent):
    change_a_digit(finished)
    content = json.loads(finished.read_text()) | {"format": 1}
    del content["checksum"]
    finished.write_text(json.dumps(content))
    told = offtangent("report", store, sweep.path)
    assert told.status == 0
    assert "sweep-smoke.json is without a checksum" in told.err
    assert "it cannot be known whether it was changed" in (store / "report.html").read_text()


def test_a_copy_of_a_shipped_record_has_the_checksum_that_was_noted(tmp_path):
    """Of the first format, which has none in the file itself."""
    shipped = next(path for path in committed_records() if path.stem == "arora-fig2-paper")
    known = {one.name: one for one in of_papers("arora")}
    (tmp_path / "results").mkdir()
    copied = Path(shutil.copy(shipped, tmp_path / "results"))
    assert lab.records.read_record(copied, known).checked
    copied.write_text(copied.read_text().replace(", ", ",  ", 1))
    assert not lab.records.read_record(copied, known).checked


def test_a_report_clears_what_dead_writers_left(finished, sweep, store, offtangent):
    left = finished.with_name(f".{own_name(finished.name)}.part")
    left.write_text("half")
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead = left.rename(left.with_name(left.name.replace(f"-{os.getpid()}-", f"-{child.stdout.strip()}-")))
    assert offtangent("report", store, sweep.path).status == 0
    assert not dead.exists()


def test_a_changed_record_is_told_and_made_again_from_the_cells(finished, sweep, store, offtangent, same):
    known = {"sweep": sweep.experiment}
    before = lab.records.read_record(finished, known)
    change_a_digit(finished)
    told = offtangent("report", store, sweep.path)
    assert told.status == 0
    assert "its checksum does not match its content. It was made again from 4 cells" in told.err
    assert same(before.results, lab.records.read_record(finished, known).results)
    assert len(list((store / "damaged").iterdir())) == 1
    assert offtangent("report", store, sweep.path).err == ""


def test_a_changed_record_without_its_cells_is_left_out_with_status_1(finished, sweep, store, offtangent):
    change_a_digit(finished)
    shutil.rmtree(store / "cells")
    told = offtangent("report", store, sweep.path)
    assert told.status == 1
    assert "it is left out" in told.err
    page = (store / "report.html").read_text()
    assert "it is left out" in page
    assert "means are small" not in page


def test_a_changed_shipped_record_is_told_and_left_out(tmp_path, monkeypatch, offtangent):
    shipped = tmp_path / "shipped"
    (source,) = [path for path in committed_records() if path.name == "arora-fig1-paper.json"]
    shutil.copytree(source.parent / "meta", shipped / "meta")
    shutil.copy(source, shipped)
    monkeypatch.setattr(execution, "committed_records", lambda: [shipped / source.name])
    (tmp_path / "run" / "results").mkdir(parents=True)
    shutil.copy(source, tmp_path / "run" / "results")
    assert offtangent("report", tmp_path / "run").status == 0
    change_a_digit(shipped / source.name)
    told = offtangent("report", tmp_path / "run")
    assert told.status == 1
    assert "are not those that were shipped" in told.err
    assert "are not those that were shipped" in (tmp_path / "run" / "report.html").read_text()


def test_every_shipped_record_has_the_checksum_that_was_noted():
    assert [records.shipped_fault(path) for path in committed_records()] == [""] * len(committed_records())


@pytest.fixture
def large(write_sweep, store):
    """A sweep of two cells with 1.6 MB each, and its record."""
    sweep = write_sweep(cells=2, size=200_000)
    outcome = sweep.run(store)
    return sweep, outcome, lab.records.write_record(record_of(outcome), store / "results")


def test_a_large_variable_stays_in_its_cell_and_comes_back_with_the_record(large):
    sweep, outcome, path = large
    assert path.stat().st_size < 5_000
    for (_, came), (_, dataset) in zip(
        lab.records.read_record(path, {"sweep": sweep.experiment}).results, outcome.results, strict=True
    ):
        np.testing.assert_array_equal(came["values"].values, dataset["values"].values)


def test_a_record_whose_large_variables_are_missing_says_where_they_were(large, store, offtangent):
    sweep, _, _ = large
    shutil.rmtree(store / "cells")
    told = offtangent("report", store, sweep.path)
    assert told.status == 1
    assert "'values' of Cell(number=0, size=200000, seconds=0.0) is large and stays in" in told.err


def test_results_of_more_than_twenty_megabytes_are_warned_of(write_sweep, store, offtangent):
    sweep = write_sweep(cells=1, size=2_600_000)
    told = offtangent("run", sweep.path, "--profile", "smoke", "--on", "local", "--out", store)
    assert told.status == 0
    assert "1 of 1 cells have results of more than 20 MB" in told.err
    assert (store / "results" / "sweep-smoke.json").stat().st_size < 5_000
