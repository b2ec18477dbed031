"""Smoke results of two commits, compared cell by cell."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # importlib mode leaves the repository's root off the path
from tools import smoke
from tools.smoke import compare_records, compare_verdicts


def record(**cells):
    """A record with one float64 variable in each cell, named by the cell's field."""
    return {
        "experiment": "own",
        "cells": [
            {"kind": "Cell", "fields": {"name": name}, "data": {"y": variable(values)}}
            for name, values in cells.items()
        ],
    }


def variable(values, dtype="<f8"):
    return {"dims": ["i"], "dtype": dtype, "shape": [len(values)], "coordinate": False, "data": values}


def test_equal_cells_are_partners_in_any_order():
    found = compare_records(record(a=[1.0, "nan"], b=[2.0]), record(b=[2.0], a=[1.0, "nan"]))
    assert (found.cells, found.moved, found.only_old, found.only_new) == (2, (), (), ())


def test_the_last_bit_is_seen_and_a_tolerance_forgives_it():
    old, new = record(a=[1.0, 3.0]), record(a=[1.0, 3.0000000000000004])
    (moved,) = compare_records(old, new).moved
    assert (moved.variable, moved.by) == ("y", pytest.approx(1.48e-16, rel=0.01))
    assert not compare_records(old, new, {"float64": 1e-8}).moved


def test_a_tolerance_is_that_of_the_dtype():
    old, new = record(a=[1.0]), record(a=[1.00001])
    assert compare_records(old, new, {"float32": 1e-4, "float64": 1e-8}).moved
    for side in (old, new):
        side["cells"][0]["data"]["y"]["dtype"] = "<f4"
    assert not compare_records(old, new, {"float32": 1e-4, "float64": 1e-8}).moved


def test_the_sign_of_zero_is_seen():
    (moved,) = compare_records(record(a=[0.0]), record(a=[-0.0])).moved
    assert moved.by == 0.0


@pytest.mark.parametrize("values", [["nan"], ["inf"], [1.0, 2.0]])
def test_another_kind_of_result_is_no_matter_of_rounding(values):
    assert compare_records(record(a=[1.0]), record(a=values), {"float64": 1.0}).moved


def test_cells_without_a_partner_are_named():
    found = compare_records(record(a=[1.0], b=[1.0]), record(a=[1.0], c=[1.0]))
    assert (found.cells, found.only_old, found.only_new) == (1, ('Cell {"name": "b"}',), ('Cell {"name": "c"}',))


def test_verdicts_are_compared_in_order():
    claims = [{"experiment": "own", "statement": "same", "verdict": word} for word in ("holds", "fails")]
    (first, second) = compare_verdicts(claims, claims[::-1])
    assert (first.by, second.by) == ("holds → fails", "fails → holds")


@pytest.mark.parametrize(
    ("now", "status", "said"),
    [
        (record(a=[1.0]), 0, "No difference."),
        (record(a=[2.0]), 1, "1 differences."),
        (record(b=[1.0]), 1, "No difference in what was compared; 2 cells without a partner."),
        (record(a=[2.0], b=[1.0]), 1, "1 differences; 1 cells without a partner."),
    ],
)
def test_cells_without_a_partner_are_no_equality(now, status, said, monkeypatch, capsys):
    """What nobody compared is not called the same, and a script sees it by the exit status."""
    sides = iter([record(a=[1.0]), now])

    def run(_source, folder, _selectors):
        (folder / "results").mkdir(parents=True)
        (folder / "results" / "own-smoke.json").write_text(json.dumps(next(sides)))
        return []

    monkeypatch.setattr(smoke, "export", lambda *_: None)
    monkeypatch.setattr(smoke, "run_smoke", run)
    assert smoke.main(["HEAD"]) == status
    assert capsys.readouterr().out.splitlines()[-1] == said
