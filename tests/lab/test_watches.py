"""What a cell reads and nobody named is noticed and told."""

import os

import pytest

from offtangent.lab.watches import watching

SOURCE = '''
"""Reads files."""
from dataclasses import dataclass
from pathlib import Path
import numpy as np
import xarray as xr

HERE = Path(__file__).parent
{at_import}

@dataclass(frozen=True)
class Cell:
    number: int

PROFILES = {{"smoke": 3}}

def cells(count):
    return [Cell(number) for number in range(count)]

def datasets(cell):
    return {named}

def run(cell):
    return xr.Dataset({{"y": cell.number * np.loadtxt(HERE / "numbers.txt").sum()}})

def claims(results):
    return []

def draw(results):
    return []
'''


@pytest.fixture
def reads(tmp_path, offtangent):
    """Runs an experiment that reads numbers.txt, and perhaps a file when it is imported."""
    (tmp_path / "numbers.txt").write_text("1 2 3")
    (tmp_path / "scale.csv").write_text("4")

    def run(named="()", at_import="", on="local"):
        file = tmp_path / "reading.py"
        file.write_text(SOURCE.format(named=named, at_import=at_import))
        return offtangent("run", file, "--profile", "smoke", "--on", on, "--out", tmp_path / "out", "--fresh").err

    return run


@pytest.mark.parametrize("on", ["local", "processes:2"])
def test_a_file_that_a_cell_reads_unnamed_is_told_once(reads, on):
    told = reads(on=on)
    assert told.count("reads numbers.txt, which datasets(cell) does not name") == 1
    assert "Let datasets(cell) return ('numbers.txt',)" in told


def test_a_file_that_is_read_at_import_is_told_too(reads):
    told = reads('["numbers.txt"]', 'SCALE = (HERE / "scale.csv").read_text()')
    assert "reads scale.csv, which" in told


def test_named_files_are_passed_over(reads):
    assert "does not name" not in reads('["numbers.txt"]')
    assert "does not name" not in reads("[HERE / 'numbers.txt']")


def test_only_reading_below_the_folder_counts_and_only_of_data(tmp_path):
    below, out = tmp_path / "here", tmp_path / "here" / "out"
    for path in (
        below / "read.txt",
        below / "code.pyc",
        below / "site-packages" / "x.txt",
        out / "cells" / "y",
        tmp_path / "z",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    with watching(below) as watch:
        for path in below.rglob("*.*"):
            path.read_text()
        (out / "cells" / "y").read_text()
        (tmp_path / "z").read_text()
        (below / "written.txt").write_text("")
        os.close(os.open(below, os.O_RDONLY))
    (below / "read.txt").read_text()
    assert watch.unnamed([], out) == [below / "read.txt"]
    assert watch.unnamed([below / "read.txt"], out) == []


def test_a_file_read_only_after_the_watch_is_not_seen(tmp_path):
    (tmp_path / "late.txt").write_text("")
    with watching(tmp_path) as watch:
        pass
    (tmp_path / "late.txt").read_text()
    assert not watch.opened
