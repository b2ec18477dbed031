"""`lab.execute`, as a script or a notebook calls it: what it returns, and that nothing is asked for or read twice."""

import contextlib
import json

import pytest

from offtangent import lab
from offtangent.lab import store as stores
from offtangent.lab.execution import forecast, report_again
from trials import SOURCE

ASKED = """

import builtins
def claims(results, claims=claims):
    builtins.asked = getattr(builtins, "asked", 0) + 1
    return claims(results)
"""


class Heard:
    """Notes what it hears."""

    def __init__(self):
        self.told, self.back = [], []

    def tell(self, sentence, style="yellow"):
        self.told.append((style, sentence))

    def following(self, _):
        return contextlib.nullcontext(lambda job, done: self.back.append((job.cell, done.error)))


@pytest.fixture
def trial(tmp_path):
    path = tmp_path / "trial.py"
    path.write_text(SOURCE + ASKED)
    return path


@pytest.fixture
def asked(monkeypatch):
    import builtins

    monkeypatch.setattr(builtins, "asked", 0, raising=False)
    return lambda: builtins.asked


def test_claims_are_asked_for_once_and_stored_cells_read_once(trial, tmp_path, asked, monkeypatch):
    heard, read = Heard(), []
    plain = stores.Store.read
    monkeypatch.setattr(stores.Store, "read", lambda self, key: read.append(key) or plain(self, key))
    for computed in (True, False):
        read.clear()
        before = asked()
        run = lab.execute([trial], "smoke", tmp_path / "out", on="local", progress=heard)
        assert asked() == before + 1
        assert (run.computed, run.reused) == ((len(run["trial"]), 0) if computed else (0, len(run["trial"])))
        there = [key for key in read if (tmp_path / "out" / "cells" / key[:2] / f"{key}.npz").exists()]
        assert len(set(read)) == len(run["trial"])
        assert len(there) == (2 if computed else 1) * len(run["trial"])  # a look for what is not there reads nothing
    assert len(heard.back) == len(run["trial"])
    assert [style for style, _ in heard.told] == [""]  # how many cells there are to compute, the first time


def test_one_name_is_taken_for_itself(trial, tmp_path):
    for given in (trial, str(trial)):
        assert [job.cell.i for job in forecast(given, "smoke", tmp_path / "out", on="local").jobs] == [0, 1]
    assert len(lab.execute(str(trial), "smoke", tmp_path / "out", on="local")["trial"]) == 2
    assert report_again(tmp_path / "out", str(trial))[1] == ()


def test_what_comes_back_is_what_the_command_line_prints(trial, tmp_path, capsys):
    from typer.testing import CliRunner

    from offtangent.cli import app

    run = lab.execute([trial], "smoke", tmp_path / "out", on="local")
    assert "cells to compute on local" in capsys.readouterr().err
    words = ["run", str(trial), "--profile", "smoke", "--on", "local", "--out", str(tmp_path / "out"), "--json"]
    printed = json.loads(CliRunner().invoke(app, words).stdout)
    assert [one["statement"] for one in printed["claims"]] == [claim.statement for _, claim in run.claims]
    assert printed["results"] == [str(path) for path in run.records]
    assert printed["report"] == str(run.page)
    assert run.page.is_file()
    assert not run.failures


def test_an_experiment_that_is_not_there_is_named_with_those_that_are(trial, tmp_path):
    run = lab.execute([trial], "smoke", tmp_path / "out", on="local", progress=Heard())
    with pytest.raises(KeyError, match="trial"):
        run["trail"]


def test_the_page_tells_how_to_make_it_again(trial, tmp_path):
    run = lab.execute([trial], "smoke", tmp_path / "o u t", on="local", fresh=True, progress=Heard())
    assert f"offtangent run {trial} --profile smoke" in run.page.read_text()
    assert "--on local --fresh" in run.page.read_text()
    page, left_out = report_again(tmp_path / "o u t", [trial], progress=Heard())
    assert not left_out
    assert "offtangent report" in page.read_text()


def test_a_forecast_runs_nothing(trial, tmp_path):
    todo = forecast([trial], "smoke", tmp_path / "out", on="local")
    assert todo.missing
    assert not list((tmp_path / "out" / "cells").iterdir())
