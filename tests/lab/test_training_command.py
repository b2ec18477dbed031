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


TORCH = """
import torch
import offtangent as ot

def training():
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
    module = torch.nn.Sequential(*layers)
    X = torch.randn(60, 4)
    y = (X[:, 0] * X[:, 1] > 0).long()
    return ot.regime.Training(module.eval(), [], X[:40], y[:40], X_test=X[40:], y_test=y[40:])
"""


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """A module's state dicts along three epochs, batch norm's statistics moving with it."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("torch")
    (folder / "mine.py").write_text(TORCH)
    names: dict = {}
    exec(TORCH, names)
    run = names["training"]()
    module, X, y = run.f.train(), run.X, run.y
    optimiser = torch.optim.SGD(module.parameters(), lr=0.3)
    files = [folder / "start.pt"]
    torch.save(module.state_dict(), files[0])
    for epoch in range(3):
        for _ in range(10):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(module(X), y).backward()
            optimiser.step()
        files.append(folder / f"epoch{epoch}.pt")
        torch.save({"epoch": epoch, "state_dict": module.state_dict()}, files[-1])
    return folder, files, module.eval(), run


def test_state_dicts_of_a_pytorch_module_are_followed(states):
    torch = pytest.importorskip("torch")
    folder, files, module, run = states
    done = offtangent("regime", folder / "mine.py", *files, "--torch", "--out", folder / "out", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["checkpoints"]) == 3
    with torch.no_grad():
        found = (module(run.X_test).argmax(1) == run.y_test).double().mean().item()
    assert told["predictions"][0]["accuracy"] == pytest.approx(found)
    weight = next(one for one in told["movements"] if one["name"] == "0.weight")
    before = torch.load(files[0], weights_only=True)["0.weight"]
    moved = (module[0].weight.detach() - before).norm(dim=1)
    assert weight["width"] == 16
    assert weight["largest"] == pytest.approx(moved.max().item(), rel=1e-4)


def test_state_dicts_in_python_are_those_of_their_files(states):
    from offtangent.interop.trainings import translated
    from offtangent.regime import Training
    from offtangent.regime.course import follow

    torch = pytest.importorskip("torch")
    _, files, module, run = states
    dicts = [torch.load(file, weights_only=True) for file in files]
    by_dict, by_file = (follow(translated(Training(module, given, run.X, run.y))) for given in (dicts, list(files)))
    assert by_dict.summary() == by_file.summary()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "There are no checkpoints"),
        (("start.pt",), "one entry"),
        (("start.pt", "none.pt"), "There is no file"),
        (("start.pt", "mine.py"), "expected the name of a state dict's file"),
    ],
)
def test_states_that_are_missing_or_none_are_told(states, words, message):
    folder, *_ = states
    done = offtangent("regime", folder / "mine.py", *(folder / word for word in words), "--out", folder / "wrong")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
