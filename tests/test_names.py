"""What completion and a type checker see of the rooms, whose names load when they are first used."""

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import offtangent

FOUND = pkgutil.walk_packages(offtangent.__path__, "offtangent.")
ROOMS = ["offtangent", *(one.name for one in FOUND if one.ispkg and "papers" not in one.name)]
SOURCE = Path(offtangent.__file__).parents[1]

USER = """
import offtangent as ot
from offtangent import kernels, theory
from offtangent.theory.arora import required_width
reveal_type(theory.complexity(1.0, 2))
reveal_type(required_width(4, scale=1.0, smallest=0.5, delta=0.1))
reveal_type(theory.nichani.R3)
reveal_type(ot.data.hierarchy)
reveal_type(ot.data.hierarchy.Hierarchy)
reveal_type(kernels.relu_hidden)
reveal_type(ot.lab.execute)
"""
WRONG = {
    "from offtangent.theory.arora import requird_width": 'no attribute "requird_width"; maybe "required_width"?',
    "from offtangent.theory import complexty": 'no attribute "complexty"; maybe "complexity"?',
    "theory.complexty": 'no attribute "complexty"; maybe "complexity"?',
    "ot.kernls": 'no attribute "kernls"; maybe "kernels"?',
    "kernels.relu_hiden": 'no attribute "relu_hiden"',
    "ot.lab.exekute": 'no attribute "exekute"',
}


@pytest.mark.parametrize("name", ROOMS)
def test_dir_shows_what_a_room_offers_and_its_modules_and_nothing_else(name):
    room = importlib.import_module(name)
    modules = {found.name for found in pkgutil.iter_modules(room.__path__) if not found.name.startswith("_")}
    if name == "offtangent":
        modules = set(offtangent.ROOMS)
    assert sorted(dir(room)) == sorted({*room.__all__, *modules})
    assert [one for one in dir(room) if not hasattr(room, one)] == []
    shown = [getattr(room, one) for one in dir(room)]
    assert [one for one in shown if inspect.ismodule(one) and not one.__name__.startswith(name)] == []


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says of a user's file, line by line; it comes with the extra `dev`, and .ci/run asks again with it."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("user")
    (folder / "mine.py").write_text(USER + "\n".join(WRONG) + "\n")
    (folder / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n")
    words = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "mine.py"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MYPYPATH": str(SOURCE)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode in (0, 1), done.stderr
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        if at := re.match(r"mine\.py:(\d+): (.*)", line):
            found[int(at[1])] = found.get(int(at[1]), "") + at[2]
    return found


def test_a_type_checker_sees_the_types_of_lazy_names(checked):
    lines = USER.splitlines()
    seen = [checked.get(number + 1, "") for number, line in enumerate(lines) if line.startswith("reveal_type")]
    assert [said for said in seen if "Revealed" not in said or '"Any"' in said or "error" in said] == []
    assert '"float"' in seen[0]


@pytest.mark.parametrize("line", WRONG)
def test_a_type_checker_refuses_misspelt_names(checked, line):
    number = [*USER.splitlines(), *WRONG].index(line) + 1
    assert WRONG[line] in checked.get(number, "")
