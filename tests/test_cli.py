"""The command line: what it prints, what it refuses, and how it exits."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import offtangent
from offtangent.cli import app
from offtangent.lab import Results
from offtangent.lab.records import Provenance, Record, write_record

EXPERIMENT = '''
"""A trial of my own."""
from dataclasses import dataclass
import numpy as np
import xarray as xr
from offtangent.lab import Claim

@dataclass(frozen=True)
class Cell:
    i: int

PROFILES = {"smoke": 3, "laptop": 4}

def cells(count):
    return [Cell(i) for i in range(count)]

def run(cell):
    return xr.Dataset({"square": cell.i**2})

def claims(results):
    largest = max(float(found.square) for _, found in results)
    yield Claim.at_most(largest, LIMIT, source="arithmetic", statement="squares are small", measured="the largest")

def draw(results):
    return []
'''


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def told(result: Result) -> str:
    """Everything printed, on one line."""
    return re.sub(r"\s+", " ", result.output)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    path = tmp_path / "trial.py"
    path.write_text(EXPERIMENT.replace("LIMIT", "100"))
    return path


def test_version_is_the_package_s() -> None:
    assert run("--version").output.split() == ["offtangent", offtangent.__version__]


@pytest.mark.parametrize("command", ["list", "run", "report", "info", "labels"])
def test_every_command_s_help_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: offtangent {command}" in told(result)


def test_list_names_every_experiment_by_its_selector() -> None:
    assert "arora/fig1" in run("list").output


def test_info_tells_versions_devices_and_data() -> None:
    output = told(run("info"))
    for word in ("jax", "device", "digits found", "OFFTANGENT_DATA"):
        assert word in output


def test_a_user_s_own_experiment_runs_to_a_table_a_page_and_its_path(trial: Path, tmp_path: Path) -> None:
    result = run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "squares are small" in told(result)
    assert "3 cells computed" in told(result)
    assert str(tmp_path / "out" / "report.html") in result.output.replace("\n", "")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "A trial of my own" in page
    assert re.search(r"times add up to \d.* s, though several may have run at once", page)


def test_a_failed_claim_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "trial.py"
    path.write_text(EXPERIMENT.replace("LIMIT", "3"))
    result = run("run", path, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "fails" in result.output


def test_the_report_of_a_user_s_own_experiment_wants_its_file(trial: Path, tmp_path: Path) -> None:
    run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    without = run("report", tmp_path / "out")
    assert without.exit_code == 2
    assert "trial.py" in told(without)
    assert run("report", tmp_path / "out", trial).exit_code == 0


def test_a_report_goes_through_a_paper_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not by the names of files, which put Section 5 before Section 3."""
    origin = Provenance("0", "", "3", "", "cpu", "none", "2026-01-01", 92.0, "", "")
    for name in ("bai_lee/constructions", "bai_lee/coupling"):
        write_record(Record(name, origin, Results("smoke", ())), tmp_path / "results")
    shown: list[str] = []
    monkeypatch.setattr(
        "offtangent.lab.execution._write_page",
        lambda chosen, *_: (tmp_path, shown.extend(one.name for one in chosen) or []),
    )
    assert run("report", tmp_path).exit_code == 0
    assert shown == ["bai_lee/coupling", "bai_lee/constructions"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("run", "aurora/fig1"), "Did you mean 'arora/fig1'?"),
        (("run", "zzz"), "'offtangent list' shows"),
        (("run", "arora", "--profile", "lapdog"), "it has smoke, laptop, paper. Did you mean 'laptop'?"),
        (
            ("run", "arora", "--profile", "smoke", "--on", "cloud"),
            "local, processes:N, dask:ADDRESS or slurm:PARTITION",
        ),
        (("run", "arora", "--profile", "smoke", "--on", "processes:many"), "needs a number"),
        (("run", "arora", "--profile", "smoke", "--on", "dask"), "scheduler's address"),
        (("run", "nowhere.py"), "There is no file"),
        (("report", "nowhere"), "There are no results"),
    ],
)
def test_a_usage_error_says_what_to_do_and_exits_with_2(
    words: tuple[str, ...], answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 2
    assert answer in told(result)
    assert "Traceback" not in result.output


def test_an_unknown_option_exits_with_2() -> None:
    assert run("run", "--fast").exit_code == 2


def test_an_output_folder_that_cannot_be_written_is_refused(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert "cannot be written" in told(result)


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    result = run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "closed")
    assert result.exit_code == 2
    assert "cannot be written" in told(result)


@pytest.mark.parametrize(
    ("content", "answer"),
    [("def cells(config): ...", "it lacks PROFILES, run, claims, draw"), ("import nonsense_xyz", "cannot be imported")],
)
def test_a_file_that_is_no_experiment_is_refused(content: str, answer: str, tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(content)
    result = run("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert answer in told(result)


READER = '''
"""Reads a file and solves with its Gram matrix."""
from dataclasses import dataclass
import numpy as np
import xarray as xr
from offtangent import data
from offtangent._checks import check_labels
from offtangent.kernels import Gram, relu_hidden

@dataclass(frozen=True)
class Cell:
    path: str

PROFILES = {"smoke": "PATH"}

def cells(path):
    return [Cell(path)]

def run(cell):
    X, y = data.load(cell.path)
    X, y = check_labels(X, y, classes=True)
    return xr.Dataset({"quadratic": y @ Gram(relu_hidden, X).solve(y)})

def claims(results):
    return []

def draw(results):
    return []
'''
GOOD = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])
LABELS = np.array([1.0, -1.0, 1.0])


def with_entry(value: float) -> np.ndarray:
    X = GOOD.copy()
    X[1, 0] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "answer"),
    [
        (with_entry(np.nan), LABELS, r"NaN"),
        (with_entry(np.inf), LABELS, r"infinite|inf"),
        (GOOD, LABELS[:2], r"3.*2|2.*3"),
        (GOOD, np.ones(3), r"class"),
        (GOOD[:1], LABELS[:1], r"1 "),
        (with_entry(0.0) * [[1], [0], [1]], LABELS, r"zero"),
        (np.array([[1.0, 2.0], [0.0, 1.0], [2.0, 4.0]]), LABELS, r"0 and 2|rows? 0.*2"),
        (np.zeros((0, 2)), np.zeros(0), r"0 |no |empty"),
    ],
    ids=["nan", "infinite", "lengths", "one class", "n=1", "zero row", "parallel", "n=0"],
)
def test_bad_data_is_refused_without_a_traceback_and_with_2(
    X: np.ndarray, y: np.ndarray, answer: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    path = tmp_path / "reader.py"
    path.write_text(READER.replace("PATH", str(tmp_path / "mine.npz")))
    result = run("run", path, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert re.search(answer, told(result)), result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("name", "content"), [("a.npz", b"no zip"), ("a.csv", b""), ("a.docx", b"x"), ("a.parquet", b"PAR")]
)
def test_an_unreadable_or_wrong_file_is_refused_with_2(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    path = tmp_path / "reader.py"
    path.write_text(READER.replace("PATH", str(tmp_path / name)))
    result = run("run", path, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert name in told(result).replace(" ", "")


def test_good_data_passes_the_same_door(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=GOOD, y=LABELS)
    path = tmp_path / "reader.py"
    path.write_text(READER.replace("PATH", str(tmp_path / "mine.npz")))
    result = run("run", path, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output


def test_when_every_cell_fails_the_reason_is_told_and_the_status_is_1(trial: Path, tmp_path: Path) -> None:
    trial.write_text(
        trial.read_text().replace("return xr.Dataset", "raise RuntimeError('boom')\n    return xr.Dataset")
    )
    result = run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "RuntimeError: boom" in told(result)
    assert "boom" in (tmp_path / "out" / "failures.log").read_text()
    assert "no cell has a result" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("part", ["claims", "draw"])
def test_a_mistake_in_claims_or_draw_is_told_on_the_page(part: str, trial: Path, tmp_path: Path) -> None:
    trial.write_text(trial.read_text() + f"\ndef {part}(results):\n    raise KeyError('oops')\n")
    result = run("run", trial, "--profile", "smoke", "--on", "local", "--out", tmp_path / "out")
    assert result.exit_code == (1 if part == "claims" else 0)
    assert "oops" in (tmp_path / "out" / "report.html").read_text()


def test_data_that_is_not_there_is_named_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFTANGENT_DATA", str(tmp_path / "nowhere"))
    result = run("run", "arora", "--profile", "paper", "--dry-run", "--out", tmp_path / "out")
    assert "leaves out what needs mnist, cifar10" in told(result)
    assert str(tmp_path / "nowhere") in told(result).replace(" ", "")


def test_a_selector_without_its_suffix_suggests_the_file(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trial.parent)
    result = run("run", "trial")
    assert result.exit_code == 2
    assert "'trial.py'" in told(result)


def test_two_files_of_one_name_are_refused(trial: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "trial.py"
    other.parent.mkdir()
    other.write_text(trial.read_text())
    result = run("run", trial, other, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "both called 'trial'" in told(result)
