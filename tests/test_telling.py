"""How things are told: whatever brackets a name has, whatever standard output takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from offtangent import _telling
from offtangent.cli import app
from trials import HOW, SOURCE


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    path = tmp_path / "trial.py"
    path.write_text(SOURCE.replace("squares", "≤ squares"))
    return path


def start(*words: str | Path, **more) -> subprocess.CompletedProcess[bytes]:
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.run([sys.executable, "-m", "offtangent", *map(str, words)], timeout=120, check=False, **more)


def test_folders_may_have_brackets_in_their_names(trial: Path, tmp_path: Path) -> None:
    out = tmp_path / "o[" / "b][red]:smile:"
    came = CliRunner().invoke(app, ["run", str(trial), *HOW, "--out", str(out)])
    assert came.exit_code == 0, came.output
    assert str(out / "report.html") in came.output.replace("\n", "")
    assert CliRunner().invoke(app, ["report", str(out), str(trial)]).exit_code == 0


@pytest.mark.parametrize("words", [
    ("[/b]",), ("x" * 5000,), ("x" * 5000 + ".py",), ("arora", "--profile", "[/b]"), ("arora", "--on", "[/b]"),
    ("arora", "--on", "processes:²"), ("arora", "--on", "processes:" + "9" * 5000), ("arora", "--out", "x" * 5000),
], ids=range(8))  # fmt: skip
def test_odd_words_are_refused_with_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    usual = {"--profile": "smoke", "--out": str(tmp_path / "out")}
    rest = [part for name, value in usual.items() if name not in words for part in (name, value)]
    came = CliRunner().invoke(app, ["run", *words, *rest, "--dry-run"])
    assert came.exit_code == 2, came.output
    assert came.output.startswith("offtangent: ")
    assert len(came.output) < 12_000


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_stdout_of_ascii_is_enough(form: tuple[str, ...], trial: Path, tmp_path: Path) -> None:
    came = start("run", trial, *HOW, "--out", tmp_path / "out", *form, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert came.returncode == 0, came.stderr
    assert came.stdout.isascii()
    if form:
        assert json.loads(came.stdout)["claims"][0]["statement"] == "≤ squares are small"
    else:
        assert rb"\u2264 squares" in came.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_full_stdout_is_told_and_costs_nothing_else(form: tuple[str, ...], trial: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        came = start("run", trial, *HOW, "--out", tmp_path / "out", *form, stdout=full)
    assert came.returncode == 1
    assert b"Standard output cannot be written (No space left on device). What was computed is stored." in came.stderr
    assert b"Traceback" not in came.stderr
    assert b"Exception ignored" not in came.stderr
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "out" / "results" / "trial-smoke.json").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("list",), ("--help",), ("run", "--help"), ("--version",), ("run", "--dry-run")])
def test_every_command_tells_of_a_full_stdout(words: tuple[str, ...], trial: Path, tmp_path: Path) -> None:
    rest = (str(trial), *HOW, "--out", str(tmp_path / "out")) if "--dry-run" in words else ()
    with open("/dev/full", "wb") as full:
        came = start(*words, *rest, stdout=full)
    assert came.returncode == 1
    assert came.stderr.splitlines()[-1] == (b"offtangent: Standard output cannot be written (No space left on device).")
    assert b"Traceback" not in came.stderr
    assert b"Exception ignored" not in came.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_stderr_does_not_end_the_work(trial: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        came = start("run", trial, *HOW, "--out", tmp_path / "out", "--json", stderr=full)
    assert json.loads(came.stdout)["computed"] == 2
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.skipif(os.name != "posix", reason="a shell closes it")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_cost_nothing(closed: str, trial: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "offtangent", "run", str(trial), *HOW, "--out", str(tmp_path / "out"), "--json"]
    came = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, timeout=120, check=False)
    assert came.returncode == 0, came.stderr
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_reader_that_has_seen_enough_ends_the_program_quietly(trial: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    came = start("run", trial, *HOW, "--out", tmp_path / "out", "--json", stdout=write)
    os.close(write)
    assert came.returncode == 1
    assert b"Traceback" not in came.stderr


def test_standard_output_is_what_it_was_afterwards() -> None:
    """In a process of its own, whose descriptor 1 is a pipe."""
    code = (
        "import os, sys\nfrom offtangent._telling import own_stdout\nbefore = sys.stdout\nwith own_stdout():\n"
        "    print('ours')\n    os.write(1, b'theirs')\nassert sys.stdout is before\nos.write(1, b'afterwards')"
    )
    came = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert came.stdout.split() == [b"ours", b"afterwards"]
    assert came.stderr == b"theirs"


def test_json_has_no_number_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    _telling.print_json({"value": float("nan")})
    assert json.loads(capsys.readouterr().out) == {"value": "nan"}
