"""The yardstick of the shipped records: it holds today, and sees a changed verdict, order or number."""

import copy
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # importlib mode leaves the repository's root off the path
from tools import judged


@pytest.fixture(scope="module")
def golden():
    return judged.read(judged.GOLDEN)


@pytest.fixture
def changed(golden):
    """Golden claims and figures that a test may alter."""
    return copy.deepcopy(golden)


def is_drawn(item):
    return "trace" in item and isinstance(item.get("y"), list) and isinstance(item["y"][0], float)


def test_the_shipped_records_say_what_the_golden_files_say(capsys):
    assert judged.main([]) == 0, capsys.readouterr().out


def test_every_claim_and_the_arrays_of_every_trace_are_kept(golden):
    claims, figures = golden
    assert len(claims) > 700
    assert all("y" in item for item in figures if "trace" in item)
    assert sum(map(is_drawn, figures)) > 1000


def test_a_changed_verdict_is_found_with_old_and_new(golden, changed):
    changed[0][5]["verdict"] = "fails"
    (found,) = judged.compare(golden[0], changed[0])
    assert (found.field, found.old, found.new, found.rounding) == ("verdict", "holds", "fails", False)
    assert f"{found.item} | verdict | holds → fails" in judged.table([found])


def test_two_claims_in_another_order_are_found(golden, changed):
    claims = changed[0]
    first, second = claims[3], claims[4]
    claims[3:5] = [{**second, "claim": first["claim"]}, {**first, "claim": second["claim"]}]
    found = judged.compare(golden[0], claims)
    assert {d.item for d in found} == {f"{c['experiment']} claim {c['claim']}" for c in (first, second)}
    assert not all(d.rounding for d in found)


def test_a_claim_that_is_gone_is_found(golden, changed):
    del changed[0][-1]
    (found,) = judged.compare(golden[0], changed[0])
    assert (found.field, found.new, found.rounding) == ("all of it", None, False)


@pytest.mark.parametrize(("factor", "rounding"), [(1 + 1e-6, False), (1 + 1e-12, True)])
def test_one_changed_value_of_a_trace_is_found_and_rounding_is_told_apart(golden, changed, factor, rounding):
    figures = changed[1]
    place, trace = next((i, item) for i, item in enumerate(figures) if is_drawn(item) and item["y"][0] != 0)
    figures[place]["y"][0] *= factor
    (found,) = judged.compare(golden[1], figures)
    assert found.item == f"{trace['experiment']} figure {trace['figure']}, trace {trace['trace']}"
    assert (found.field, found.rounding) == ("y", rounding)


def test_a_change_is_exit_status_1_until_the_files_are_renewed(changed, tmp_path, monkeypatch, capsys):
    judged.write(tmp_path, *changed)
    changed[0][0]["note"] = "Another note."
    monkeypatch.setattr(judged, "judged", lambda: changed)
    assert judged.main([], tmp_path) == 1
    assert judged.main(["--renew"], tmp_path) == 0
    assert capsys.readouterr().out.count("→ Another note.") == 2
    assert judged.main([], tmp_path) == 0


def test_renewed_files_are_read_back_as_they_were(golden, tmp_path):
    judged.write(tmp_path, *golden)
    assert judged.read(tmp_path) == golden
    assert all((tmp_path / name).read_bytes() == (judged.GOLDEN / name).read_bytes() for name in judged.FILES)
