"""What is known of the code of shipped records, and what a page says of it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))  # importlib mode leaves the repository's root off the path
from offtangent import lab
from offtangent.lab.page import _of_code
from offtangent.lab.records import committed_records, read_shipped, record_of
from offtangent.lab.shipped import Comparison, Origin, origin_of
from tools import shipped


def test_all_shipped_records_were_compared_with_the_present_code(capsys):
    """If this fails, code that numbers depend on has changed: python -m tools.shipped, in a commit of its own."""
    assert shipped.main(["--check"]) == 0, capsys.readouterr().out


def test_the_code_of_every_shipped_record_is_known():
    origins = {path.stem: origin_of(path) for path in committed_records()}
    assert len(origins) == 31
    assert [stem for stem, origin in origins.items() if origin is None] == []
    assert [stem for stem, origin in origins.items() if not origin.exact] == []
    kept = {path.stem for path in (shipped.RESULTS / "meta" / "smoke").glob("*.json")}
    changed = {stem.replace("-paper", "-smoke") for stem, origin in origins.items() if origin.compared}
    assert kept >= changed


@pytest.fixture
def record(sweep, store):
    """A record as if it had been shipped."""
    return record_of(sweep.run(store))


def notes(record, sweep, **origin):
    code = sweep.experiment.fingerprint(*record.kinds).code
    told = Origin(**{"commit": "abc", "exact": True, "code": code, "compared": None} | origin)
    return [(note.kind, note.text) for note in _of_code(replace(record, origin=told), sweep.experiment, "again")]


def compared(sweep, **words):
    code = sweep.experiment.fingerprint("Cell").code
    return Comparison(**{"code": code, "cells": 4, "alone": 0, "moved": {}, "verdicts": ()} | words)


def test_of_today_s_code_nothing_is_said(record, sweep):
    assert notes(record, sweep) == []


def test_a_tree_that_had_been_changed_is_said(record, sweep):
    ((kind, text),) = notes(record, sweep, exact=False)
    assert (kind, text) == ("neutral", "The source had been changed after commit abc: its code is not known exactly.")


def test_other_code_with_the_same_numbers_is_said_without_colour(record, sweep):
    ((kind, text),) = notes(record, sweep, code="other", compared=compared(sweep, alone=2))
    assert kind == "neutral"
    assert text == (
        "The code has changed since, its numbers at smoke size have not (4 cells compared, 2 without a partner)."
    )


def test_where_no_cell_could_be_compared_nothing_is_claimed(record, sweep):
    ((kind, text),) = notes(record, sweep, code="other", compared=compared(sweep, cells=0, alone=21))
    assert kind == "neutral"
    assert text == (
        "The code has changed since, and no cell of smoke size could be compared (21 without a partner): "
        "its numbers may differ."
    )


def test_a_verdict_that_changed_is_seen_where_some_cells_have_no_partner(tmp_path, sweep, store, monkeypatch):
    monkeypatch.setitem(shipped.KNOWN, "sweep", sweep.experiment)
    before = record_of(sweep.run(store))
    pairs = tuple((cell, dataset * 100) for cell, dataset in before.results)
    paths = []
    for name, kept in (("a", before.results.pairs[1:]), ("b", pairs)):
        record = replace(before, results=lab.Results("smoke", kept), keys=())
        paths.append(lab.records.write_record(record, tmp_path / name))
    found = shipped.compare(*paths, "code")
    assert (found.cells, found.alone) == (3, 1)
    assert found.moved


def test_a_verdict_that_rests_on_cells_of_one_side_alone_is_not_compared(tmp_path, sweep, store, monkeypatch):
    """The later side has a cell more, on which its claim fails; on what both have, nothing changed."""
    before = record_of(sweep.run(store))
    kept = before.results.pairs[1:]
    more = ((before.results.pairs[0][0], before.results.pairs[0][1] * 1e6), *kept)
    paths = []
    for name, pairs in (("a", kept), ("b", more)):
        record = replace(before, results=lab.Results("smoke", pairs), keys=())
        paths.append(lab.records.write_record(record, tmp_path / name))
    monkeypatch.setitem(shipped.KNOWN, "sweep", sweep.experiment)
    sides = shipped.shared(*(lab.records.read_record(path, shipped.KNOWN).results for path in paths))
    assert [[cell for cell, _ in side] for side in sides] == [[cell for cell, _ in kept]] * 2
    assert not shipped.compare(*paths, "code").verdicts


def test_statements_judged_equally_often_are_compared_in_order():
    def claim(statement, value):
        return lab.Claim.at_most(value, 1.0, source="s", statement=statement, measured="it")

    earlier = [claim("a", 0.5), claim("b", 0.5), claim("b", 0.5), claim("c", 0.5)]
    now = [claim("b", 0.5), claim("b", 2.0), claim("c", 2.0), claim("c", 2.0), claim("a", 0.5)]
    assert shipped.changed_verdicts(earlier, now) == ["b: holds → fails"]


@pytest.mark.parametrize("how", [{"moved": {"mean": "0.3 of itself"}}, {"verdicts": ("a ≤ b: holds → fails",)}])
def test_numbers_or_verdicts_that_moved_are_said_in_colour(record, sweep, how):
    ((kind, text),) = notes(record, sweep, code="other", compared=compared(sweep, **how))
    assert kind == "warn"
    assert "its numbers at smoke size have, too: " in text
    assert ("mean by 0.3 of itself" in text) != ("a ≤ b: holds → fails" in text)


def test_a_comparison_with_another_code_than_today_s_counts_for_nothing(record, sweep):
    for comparison in (None, compared(sweep, code="yesterday")):
        ((kind, text),) = notes(record, sweep, code="other", compared=comparison)
        assert kind == "warn"
        assert text.startswith("Stale: the code that makes these numbers has changed since.")


def test_a_comparison_sees_a_moved_number_and_forgives_rounding(tmp_path, sweep, store, monkeypatch):
    monkeypatch.setitem(shipped.KNOWN, "sweep", sweep.experiment)
    before = record_of(sweep.run(store))
    for factor, moved in ((1 + 1e-10, {}), (1 + 1e-6, {"values": "1e-06 of itself", "mean": "1e-06 of itself"})):
        pairs = tuple((cell, dataset * factor) for cell, dataset in before.results)
        after = replace(before, results=lab.Results("smoke", pairs))
        paths = [lab.records.write_record(one, tmp_path / name) for one, name in ((before, "a"), (after, "b"))]
        found = shipped.compare(*paths, "code")
        assert (found.cells, found.alone, dict(found.moved)) == (4, 0, moved)


def test_a_shipped_record_comes_with_its_origin():
    path = committed_records()[0]
    assert read_shipped(path, shipped.KNOWN).origin == origin_of(path)
