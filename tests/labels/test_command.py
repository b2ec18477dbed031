"""`offtangent labels`: what it prints and writes, what it refuses, and how it exits."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner, Result

from offtangent.cli import app

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["labels", *(str(word) for word in words)])


def told(result: Result) -> str:
    return re.sub(r"\s+", " ", result.output)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    np.savez(tmp_path / "mine.npz", X=X, y=Y)
    return tmp_path / "mine.npz"


def test_it_answers_in_words_and_writes_a_page_and_the_numbers(saved: Path, tmp_path: Path) -> None:
    result = run(saved, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    for words in (
        "40 rows, 3 features, 2 classes",
        "features standardised",
        "complexity",
        "steps to 1 %",
        "assumption",
    ):
        assert words in told(result)
    assert str(tmp_path / "out" / "labels.html") in result.output.replace("\n", "")
    assert "The labels of mine.npz" in (tmp_path / "out" / "labels.html").read_text()
    assert json.loads((tmp_path / "out" / "labels.json").read_text())["n"] == 40


def test_json_has_every_number(saved: Path, tmp_path: Path) -> None:
    result = run(saved, "--json", "--out", tmp_path / "out")
    found = json.loads(result.stdout)
    assert found["n"] == 40
    assert found["complexity"]["lower"] <= found["complexity"]["value"] <= found["complexity"]["upper"]
    assert found["complexity"]["value"] < found["complexity_shuffled"]["mean"]
    assert found["complexity_shuffled"]["sd"] > 0
    assert found["noise"]["lower"] <= found["noise"]["fraction"] <= found["noise"]["upper"]
    assert 0 < found["noise"]["bound"] <= 0.5
    assert found["steps_to_1_percent"] > 0
    assert 0 <= found["loo_error"] <= 1
    assert sorted(found["suspects"]) == list(range(40))
    assert found["report"] == str(tmp_path / "out" / "labels.html")


@pytest.mark.parametrize("label", ["species", "0", "-5"])
def test_the_label_column_of_a_table_by_name_or_position(label: str, tmp_path: Path) -> None:
    flowers = load_iris()
    lines = [
        f"{flowers.target_names[t]},{','.join(map(str, x))}" for x, t in zip(flowers.data, flowers.target, strict=True)
    ]
    (tmp_path / "iris.csv").write_text("species,a,b,c,d\n" + "\n".join(lines) + "\n")
    result = run(tmp_path / "iris.csv", "--label", label, "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["classes"] == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert found["duplicates"]["dropped"] == 1  # the well-known one
    assert found["duplicates"]["disagreeing"] == []
    assert found["loo_error"] < 0.1
    assert set(found["complexity_by_class"]) == set(found["classes"])


def test_numbers_are_a_regression(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=X, y=X[:, 0] + 0.5)
    found = json.loads(run(tmp_path / "mine.npz", "--json", "--out", tmp_path / "out").stdout)
    assert found["task"] == "regression"
    assert found["noise"]["fraction"] is None
    assert 0 < found["noise"]["variance_bound"] <= 1


def test_the_seed_draws_the_shuffles(saved: Path, tmp_path: Path) -> None:
    means = [
        json.loads(run(saved, "--json", "--seed", seed, "--out", tmp_path / "out").stdout)["complexity_shuffled"][
            "mean"
        ]
        for seed in ("0", "0", "1")
    ]
    assert means[0] == means[1] != means[2]


def with_entry(value: float) -> np.ndarray:
    changed = X.copy()
    changed[1, 0] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "options", "answer"),
    [
        (with_entry(np.nan), Y, (), r"NaN.*row 1, column 0"),
        (with_entry(np.inf), Y, (), r"inf in row 1, column 0"),
        (X, np.where(np.arange(40) == 3, np.nan, Y), (), r"label that is NaN.*row 3"),
        (X, Y[:-1], (), r"39 labels and X has 40 rows"),
        (X, np.ones(40), (), r"at least two classes"),
        (X[:1], Y[:1], (), r"only 1 sample"),
        (X[:0], Y[:0], (), r"at least one row"),
        (np.ones((40, 3)), Y, (), r"All 40 rows are equal"),
        (X * (np.arange(40) != 5)[:, None], Y, ("--preprocess", "raw", "--no-bias"), r"zero row.* row 5"),
        (np.vstack([X, 2 * X[:1]]), np.append(Y, 1), ("--preprocess", "raw", "--no-bias"), r"Rows 0 and 40 .*--ridge"),
        (X, Y, ("--task", "sorting"), r"expected one of 'auto'"),
        (X, Y, ("--kernel", "relu"), r"expected one of 'relu_hidden'"),
        (X, Y, ("--ridge", "-1"), r"ridge=-1"),
        (X, Y, ("--preprocess", "whitened"), r"expected one of 'raw'"),
        (X, Y, ("--label", "species"), r"expected X and species"),
        (X, np.arange(40.0), ("--task", "classification"), r"too many for classes"),
        (X, Y, ("--ridge", "1e308"), r"ridge=1e\+308 leaves nothing of a kernel whose entries are 0\.5"),
        (X, Y, ("--seed", str(2**70)), r"Invalid value for '--seed'"),
        (X, Y, ("--seed", str(2**32)), r"Invalid value for '--seed'"),
        (X, Y, ("--limit", "0"), r"Invalid value for '--limit'"),
        (X, Y, ("--rows-at-once", "9"), r"rows_at_once=9.* at least 10"),
        (X, 1.7e308 * Y, ("--task", "regression"), r"further apart than float64 can say"),
        (1.7e308 * np.sign(X), Y, ("--preprocess", "raw", "--ridge", "1"), r"longer than float64 can say"),
    ],
    ids=[
        "nan", "infinite", "nan label", "lengths", "one class", "n=1", "n=0", "all equal", "zero row", "parallel",
        "task", "kernel", "ridge", "preprocess", "label", "too many classes", "huge ridge", "huge seed",
        "seed beyond 32 bits", "limit", "rows at once", "labels too far apart", "rows too long",
    ],
)  # fmt: skip
def test_bad_data_is_refused_without_a_traceback_and_with_2(
    X: np.ndarray, y: np.ndarray, options: tuple[str, ...], answer: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    result = run(tmp_path / "mine.npz", *options, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert re.search(answer, told(result)), result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out" / "labels.html").exists()


def test_parallel_rows_with_a_ridge_are_fine(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=np.vstack([X, 2 * X[:1]]), y=np.append(Y, 1))
    options = ("--preprocess", "raw", "--no-bias", "--ridge", "1e-3", "--out", str(tmp_path / "out"))
    assert run(tmp_path / "mine.npz", *options).exit_code == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.npz", b"no zip"), ("a.csv", b""), ("a.docx", b"x"), ("a.parquet", b"PAR"), ("a.csv", b"a,b\n1,x\n2\n")],
)
def test_an_unreadable_or_wrong_file_is_refused_with_2(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    result = run(tmp_path / name, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert name in told(result).replace(" ", "")
    assert "Traceback" not in result.output


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere.csv", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "There is no file" in told(result)
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_written_is_refused_before_the_work(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run(saved, "--out", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert "cannot be written" in told(result)


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    result = run(saved, "--out", tmp_path / "closed")
    assert result.exit_code == 2
    assert "cannot be written" in told(result)


@pytest.mark.parametrize("label", ["--1", "9" * 5000])
def test_a_label_that_is_no_column_is_refused(label: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n3,4\n")
    result = run(tmp_path / "mine.csv", f"--label={label}", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "has no column" in told(result)


def test_classes_that_short_numbers_would_merge_are_told_apart(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=X, y=np.where(Y > 0, 10_000_001, 10_000_000))
    found = json.loads(run(tmp_path / "mine.npz", "--json", "--out", tmp_path / "out").stdout)
    assert found["classes"] == {"10000000": int(sum(Y < 0)), "10000001": int(sum(Y > 0))}


def test_more_data_than_the_limit_are_refused_and_read_with_a_higher_one(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "mine.npz", X=np.hstack([X, np.zeros((40, 5000))]), y=Y)
    result = run(tmp_path / "mine.npz", "--limit", "1", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "2 MB of data, unpacked: more than the limit of 1 MB" in told(result)
    assert "raise the limit: --limit 2" in told(result)
    assert run(tmp_path / "mine.npz", "--limit", "2", "--out", tmp_path / "out").exit_code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_names_of_files_that_are_no_text_are_shown_all_the_same(saved: Path, tmp_path: Path) -> None:
    odd, folder = (os.fsdecode(os.fsencode(tmp_path / name) + b"\xff") for name in ("mine", "out"))
    saved.rename(f"{odd}.npz")
    result = run(f"{odd}.npz", "--out", folder)
    assert result.exit_code == 0, result.output
    assert "mine\ufffd.npz" in result.output
    assert "mine\ufffd.npz" in (Path(folder) / "labels.html").read_text()


def test_help_has_an_example() -> None:
    assert "Example: offtangent labels mine.csv --label species" in told(run("--help"))
