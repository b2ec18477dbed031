"""A change that can change numbers changes the fingerprint; a change that cannot, does not."""

import pytest

from offtangent.lab import fingerprint as module
from offtangent.lab.fingerprint import fingerprint

SOURCE = '''
"""Title."""
import os
import helper
from offtangent import theory
import offtangent as ot

BASE = 2
SCALE = BASE
SCALE = SCALE * 3
TABLE = {}
TABLE["a"] = 1
CAPTION = "about"

def run(cell):
    """Compute."""
    return inner(cell) * SCALE + TABLE["a"] + helper.value

def inner(cell):
    return cell.number  # a comment

def claims(results):
    return theory, CAPTION

def draw(results):
    return []
'''


@pytest.fixture
def change(tmp_path):
    """`change(old, new)`: whether the fingerprint's own part differs after a replacement in the source."""
    (tmp_path / "helper.py").write_text("value = 1\n")

    def differs(old, new):
        assert SOURCE.count(old) == 1
        prints = []
        for i, text in enumerate((SOURCE, SOURCE.replace(old, new))):
            path = tmp_path / f"experiment{i}.py"
            path.write_text(text)
            prints.append(fingerprint(path).source)
        return prints[0] != prints[1]

    return differs


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("inner(cell) *", "inner(cell) +"),
        ("return cell.number", "return cell.number + 1"),
        ("SCALE = SCALE * 3", "SCALE = SCALE * 4"),
        ("BASE = 2", "BASE = 3"),
        ('TABLE["a"] = 1', 'TABLE["a"] = 2'),
        ("TABLE = {}", 'TABLE = {"b": 1}'),
        ('CAPTION = "about"', 'CAPTION = "about"\nos.environ["X"] = "1"'),
        ('CAPTION = "about"', 'CAPTION = "about"\nfrom numpy import *'),
        ('CAPTION = "about"', 'CAPTION = "about"\nif True:\n    inner = abs'),
    ],
)
def test_what_run_reaches_counts(old, new, change):
    assert change(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Title."""', '"""Another title."""'),
        ('    """Compute."""\n', '    """Compute it."""\n'),
        ("  # a comment", ""),
        ("return inner(cell) * SCALE", "return (inner(cell)\n        * SCALE)"),
        ('CAPTION = "about"', 'CAPTION = "something else"'),
        ("return theory, CAPTION", "return []"),
        ("    return []", "    return [1]"),
    ],
)
def test_what_run_does_not_reach_does_not_count(old, new, change):
    assert not change(old, new)


def test_a_module_beside_the_file_counts(tmp_path):
    prints = []
    for name, value in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "experiment.py").write_text(SOURCE)
        (folder / "helper.py").write_text(f"value = {value}\n")
        prints.append(fingerprint(folder / "experiment.py"))
    assert prints[0].source == prints[1].source
    assert prints[0].library != prints[1].library


@pytest.mark.parametrize(
    "way",
    [
        "from offtangent import kernels\ndef run(cell): return kernels.Gram",
        "from offtangent.kernels import Gram\ndef run(cell): return Gram",
        "import offtangent.kernels\ndef run(cell): return offtangent.kernels.Gram",
        "import offtangent as ot\ndef run(cell): return ot.kernels.Gram",
        "import offtangent\ndef run(cell): return offtangent.kernels.Gram",
        "def run(cell):\n    import offtangent as ot\n    return ot.kernels.Gram",
        "import helper\ndef run(cell): return helper.Gram",
    ],
)
def test_a_room_of_the_library_counts_however_it_is_named(way, tmp_path):
    """It brings JAX with it, whose version then counts as well."""
    (tmp_path / "helper.py").write_text("import offtangent as ot\nGram = ot.kernels.Gram\n")
    (tmp_path / "experiment.py").write_text(way)
    (tmp_path / "none.py").write_text("def run(cell): return 1")
    got, none = fingerprint(tmp_path / "experiment.py"), fingerprint(tmp_path / "none.py")
    assert "jax" in got.uses
    assert "jax" not in none.uses
    assert got.library != none.library


@pytest.fixture
def house(tmp_path, monkeypatch):
    """`house(way, **changed)`: the library's part for an experiment that uses a room of two ideas this way."""
    files = {
        "__init__": "", "room/__init__": "from offtangent.room.one import f as g\nfrom offtangent.room.two import h",
        "room/one": "from offtangent.room.below import base\ndef f(): return base()", "room/two": "def h(): return 2",
        "room/below": "def base(): return 1",
    }  # fmt: skip

    def seen(way, **changed):
        for name, text in files.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text + changed.get(name.rpartition("/")[2], ""))
        (tmp_path / "experiment.py").write_text(way)
        forget()
        return fingerprint(tmp_path / "experiment.py").library

    def forget():
        for known in (module._hash_of_file, module._imports_of_file, module._handed_on):
            known.cache_clear()

    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    yield seen
    forget()


def test_of_a_room_those_modules_count_that_define_what_is_used(house):
    by_name = "from offtangent.room import g\ndef run(cell): return g()"
    before = house(by_name)
    assert house(by_name, one="\nx = 1") != before
    assert house(by_name, below="\nx = 1") != before
    assert house(by_name, two="\nx = 1") == before
    for whole in ("import offtangent as ot\ndef run(cell): return ot.room.g()", by_name.replace("g\n", "*\n", 1)):
        assert house(whole, two="\nx = 1") != house(whole)


def test_rooms_that_only_carry_results_do_not_count(tmp_path):
    (tmp_path / "a.py").write_text("from offtangent import lab\ndef run(cell): return lab")
    (tmp_path / "b.py").write_text("from offtangent import report\ndef run(cell): return report")
    assert fingerprint(tmp_path / "a.py").library == fingerprint(tmp_path / "b.py").library


def test_the_fingerprint_is_the_same_in_every_version_of_python(tmp_path):
    """Known once and for all: results of a GPU machine with another Python must not look stale."""
    path = tmp_path / "fixed.py"
    path.write_text('def run(cell):\n    """Told."""\n    return f"{cell!r:>{3}}" if (n := len(cell)) else [*cell]\n')
    assert fingerprint(path).source == "ad0aef8b5e9fd120"


def test_names_that_run_does_not_use_bring_nothing_with_them(tmp_path):
    (tmp_path / "one.py").write_text("from offtangent import kernels\ndef run(cell): return kernels")
    both = "from offtangent import kernels, regime\ndef run(cell): return kernels\ndef claims(results): return regime"
    (tmp_path / "two.py").write_text(both)
    (tmp_path / "three.py").write_text(both.replace("return kernels", "return kernels, regime"))
    one, two, three = (fingerprint(tmp_path / f"{name}.py").library for name in ("one", "two", "three"))
    assert one == two
    assert two != three
