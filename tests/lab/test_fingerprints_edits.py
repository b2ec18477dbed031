"""Edits of every kind that change a number, in fingerprints.txt: each must change the fingerprint."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from offtangent.lab.fingerprints import fingerprint

HEAD = "from dataclasses import dataclass, field\n"
CELL = "@dataclass(frozen=True)\nclass Cell:\n    n: int = 3\n"
EDIT = re.compile("«(.*?)→(.*?)»", re.DOTALL)


def cases():
    """By name, the text of each file of a case, with its edit in it."""
    found = {}
    for line in Path(__file__).with_name("fingerprints.txt").read_text().splitlines(keepends=True):
        if line.startswith("== "):
            name, file = line[3:].strip(), "experiment.py"
            assert name not in found, name
            found[name] = {file: ""}
        elif line.startswith("-- "):
            file = line[3:].strip()
            found[name][file] = ""
        elif found and not line.startswith("#### "):
            found[name][file] += line
    return found


CASES = cases()


def write(folder, files, which):
    """Lay out a case as it is before its edit, 1, or after it, 2."""
    for name, text in files.items():
        text = EDIT.sub(lambda edit: edit.group(which), text)
        if name == "experiment.py":
            text = HEAD + ("" if "class Cell" in text else CELL) + text
        path = folder / str(which) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / str(which) / "experiment.py"


@pytest.mark.parametrize("name", CASES)
def test_an_edit_that_changes_a_number_is_seen(name, tmp_path):
    before, after = (fingerprint(write(tmp_path, CASES[name], which), ("Cell",)).code for which in (1, 2))
    assert before != after


def test_the_edits_do_change_numbers(tmp_path):
    """One of each kind is run; that all do was seen once."""
    program = "import experiment; print(repr(experiment.run(experiment.Cell())))"
    for name in list(CASES)[::25]:
        values = []
        for which in (1, 2):
            folder = write(tmp_path / name, CASES[name], which).parent
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
            )
            values.append(done.stdout)
        assert values[0] != values[1], name


STAYS = {
    "another profile": (
        "SMOKE = Cell(1)\nWIDTHS = [1, 2]\nPROFILES = {'smoke': (SMOKE, *WIDTHS)}\ndef run(cell): return cell.n",
        ("SMOKE, *WIDTHS", "Cell(2), *WIDTHS"),
    ),
    "another profile, made of a table": (
        "WORDS = {'n': 4}\nPROFILES = {'smoke': [Cell(**WORDS) for _ in range(2)]}\ndef run(cell): return cell.n",
        ("range(2)", "range(3)"),
    ),
    "another array that only claims read": (
        "import numpy as np\nGRID = np.linspace(0, 1, 5)\nENDS = GRID[0], np.max(GRID)\ndef run(cell): return cell.n",
        ("GRID[0]", "GRID[1]"),
    ),
    "another text": (
        "NAMES = ['a', 'b']\nABOUT = ', '.join(NAMES).title()\ndef run(cell): return cell.n",
        ("', '", "' and '"),
    ),
    "a number that only claims draw": (
        "import functools\n@functools.cache\ndef table(n): return [n]\nROWS = table(3)\ndef run(cell): return cell.n",
        ("table(3)", "table(4)"),
    ),
    "another handler of something unrelated": (
        "def run(cell):\n    try: return {}[cell.n]\n    except KeyError: pass\n    if cell.n > 9: raise ValueError",
        ("> 9", "> 8"),
    ),
    "a handler that refuses in its turn": (
        "def run(cell):\n    try: n = int(cell.n)\n    except ValueError as e: raise TypeError\n    assert n < 9",
        ("< 9", "< 8"),
    ),
    "a check of a shape": (
        "def run(cell):\n    X = cell.n\n    if any(n < 1 for n in X.shape): raise ValueError\n    return X",
        ("n < 1", "n < 2"),
    ),
    "a __post_init__ that only checks": (
        "@dataclass\nclass Cell:\n    n: int = 3\n    m: int = 4\ndef run(cell): return cell.n",
        ("    m: int = 4\n", "    m: int = 4\n    def __post_init__(self):\n        if self.n < 0: raise ValueError\n"),
    ),
    "a file that is no Python, unchanged": (
        "import importlib\ndef run(cell): return importlib.import_module('old')",
        ("", ""),
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_an_edit_that_changes_no_number_is_not_seen(name, tmp_path):
    text, (old, new) = STAYS[name]
    assert old in text
    (tmp_path / "old.py").write_text("print 'of another Python'")
    codes = []
    for which in (text, text.replace(old, new, 1)):
        (tmp_path / "experiment.py").write_text(HEAD + ("" if "class Cell" in which else CELL) + which)
        codes.append(fingerprint(tmp_path / "experiment.py", ("Cell",)).code)
    assert codes[0] == codes[1]
