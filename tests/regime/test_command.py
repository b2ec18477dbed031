"""`offtangent regime` as a person runs it."""

import json
import subprocess
import sys

import pytest

FILE = """
import jax, jax.numpy as jnp
import offtangent as ot

def f(W, x):
    return jnp.tanh(x @ W["in"]) @ W["out"]

def training():
    print("this is not JSON")
    keys = jax.random.split(jax.random.key(0), 5)
    W = [{"in": jax.random.normal(k, (3, 5)), "out": jax.random.normal(k, (5, 2))} for k in keys[:2]]
    points = [jax.tree.map(lambda a, b: a + s * b, *W) for s in (0.0, 0.1, 0.5)]
    X = jax.random.normal(keys[2], (30, 3))
    y = (X[:, 0] > 0).astype(int)
    return ot.regime.Training(f, points, X[:20], y[:20], X_test=X[20:], y_test=y[20:], steps=[0, 1, 5])
"""


def offtangent(*words):
    return subprocess.run(
        [sys.executable, "-m", "offtangent", *map(str, words)], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regime")
    (folder / "mine.py").write_text(FILE)
    return folder, offtangent("regime", folder / "mine.py", "--out", folder / "out")


def test_it_answers_and_writes_a_page(done):
    folder, run = done
    assert run.returncode == 0, run.stderr
    assert "Is it lazy?" in run.stdout
    assert "the linearised network" in " ".join(run.stdout.split()) or "linearised network" in run.stdout
    page = (folder / "out/regime.html").read_text()
    assert "Along training" in page
    assert "Held-out samples" in page
    assert json.loads((folder / "out/regime.json").read_text())["samples"] == 20


def test_json_is_json_and_the_second_run_reads_the_first(done):
    folder, _ = done
    stored = {path: path.stat().st_mtime_ns for path in (folder / "out/cells").rglob("*.npz")}
    run = offtangent("regime", folder / "mine.py", "--out", folder / "out", "--json")
    told = json.loads(run.stdout)
    assert [one["step"] for one in told["checkpoints"]] == ["1", "5"]
    assert len(stored) == 2
    assert {path: path.stat().st_mtime_ns for path in (folder / "out/cells").rglob("*.npz")} == stored


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("x = 1", (), "no function training()"),
        ("training = 3", (), "where a function belongs"),
        ("def training(): return 3", (), "gave an int"),
        ("def training(): return 1 / 0", (), "line 1: training() raised ZeroDivisionError"),
        ("import nothing_like_it", (), "raised ModuleNotFoundError"),
        (FILE, ("start.pt",), "There is no file start.pt"),
        (FILE, ("--torch",), "need a PyTorch module"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tmp_path, text, words, message):
    (tmp_path / "mine.py").write_text(text)
    run = offtangent("regime", tmp_path / "mine.py", *words, "--out", tmp_path / "out")
    assert run.returncode == 2
    assert message in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr


def test_files_that_are_none_are_told(tmp_path):
    for words, message in ((("missing.py",), "There is no file"), (("mine.txt",), "no Python file")):
        run = offtangent("regime", *words, "--out", tmp_path)
        assert (run.returncode, message in run.stderr) == (2, True)
