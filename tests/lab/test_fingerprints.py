"""A change that can change numbers changes the fingerprint; a change that cannot, does not."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from offtangent import lab
from offtangent.lab.fingerprints import PACKAGE, fingerprint

FILES = {
    "experiment.py": '''
        """Title."""
        import json
        from dataclasses import dataclass
        from typing import ClassVar

        import numpy as np
        import offtangent as ot
        import helper
        import registry, fillers
        from package import inner as aliased
        from package.deep import far
        from offtangent.special.hermite_polynomials import hermite

        BASE = 2
        SCALE = BASE
        SCALE = SCALE * 3
        LEFT, RIGHT = 5, 6
        TABLE = {}
        TABLE["a"] = 1
        CAPTION = "about"
        FACTOR = 2.0


        class Mixin:
            shift = 10


        @dataclass(frozen=True)
        class Cell(Mixin):
            """One cell."""
            number: int
            size: int = 3
            bare: float

            @property
            def factor(self):
                return FACTOR


        @dataclass(frozen=True)
        class Other:
            number: int
            weight = 7


        def check(value):
            """Refuse."""
            if value < 0:
                raise ValueError(f"{value} is negative")


        def converted(value):
            if value < 0:
                raise ValueError("negative")
            return float(value)


        def scaled(by):
            def wrap(function):
                return lambda cell: function(cell) * by
            return wrap


        def run(cell: Cell) -> float:
            """Compute."""
            check(cell.number)
            if cell.number > 100:
                raise ValueError(f"at most 100, not {cell.number}")
            assert cell.number < 99, "too large"
            value = converted(cell.number)
            return inner(cell) * SCALE + TABLE["a"] + helper.value(cell) + cell.factor + LEFT + value


        @scaled(by=4)
        def inner(cell, default=8):
            even = [number for number in range(cell.number) if even_number(number)]
            return aliased(cell) + far() + registry.FOUND["one"](cell) + len(even) + default  # a comment


        def even_number(number):
            return number % 2 == 0 or odd_number(number + 11)


        def odd_number(number):
            return number > 12 and even_number(number - 1)


        def claims(results):
            return CAPTION, np, ot, json, hermite, RIGHT


        def draw(results):
            return []
    ''',
    "helper.py": "from package.deep import middle\nHERE = 15\ndef value(cell):\n    return HERE + middle()\n",
    "package/__init__.py": "from .parts import inner\n",
    "package/parts.py": "def inner(cell):\n    return cell.number - 16\ndef unused():\n    return 17\n",
    "package/deep.py": "from . import deeper\ndef far():\n    return deeper.LAST + 18\ndef middle():\n    return 1\n",
    "package/deeper.py": "LAST = 19\nLATER = 20\n",
    "registry.py": (
        "FOUND = {}\ndef known(name):\n    def keep(f):\n        FOUND[name] = f\n        return f\n    return keep\n"
    ),
    "fillers.py": "from registry import known\n@known('one')\ndef one(cell):\n    return 22\n",
}  # fmt: skip


@pytest.fixture
def seen(tmp_path):
    """`seen(file, old, new, kinds)`: the fingerprint after one replacement in one of the files, in a new folder."""

    def write(name="experiment.py", old="", new="", kinds=("Cell",), more=None):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        for file, text in (FILES | (more or {})).items():
            text = textwrap.dedent(text)
            if file == name and old:
                assert text.count(old) == 1, (old, text.count(old))
                text = text.replace(old, new)
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return fingerprint(folder / "experiment.py", kinds)

    return write


COUNTS = [
    ("experiment.py", "inner(cell) * SCALE", "inner(cell) + SCALE"),
    ("experiment.py", "SCALE = SCALE * 3", "SCALE = SCALE * 4"),
    ("experiment.py", "SCALE = SCALE * 3", "SCALE *= 3"),
    ("experiment.py", "BASE = 2\n", "BASE = 3\n"),
    ("experiment.py", "LEFT, RIGHT = 5, 6", "LEFT, RIGHT = 6, 5"),
    ("experiment.py", 'TABLE["a"] = 1', 'TABLE["a"] = 2'),
    ("experiment.py", "TABLE = {}", 'TABLE = {"b": 1}'),
    ("experiment.py", "FACTOR = 2.0", "FACTOR = 3.0"),
    ("experiment.py", "return FACTOR", "return 1 + FACTOR"),
    ("experiment.py", "shift = 10", "shift = 11"),
    ("experiment.py", "class Cell(Mixin)", "class Cell"),
    ("experiment.py", "size: int = 3", "size: int = 4"),
    ("experiment.py", "    bare: float\n", ""),
    ("experiment.py", "size: int = 3", "size: ClassVar[int] = 3"),
    ("experiment.py", "@scaled(by=4)", "@scaled(by=5)"),
    ("experiment.py", "default=8", "default=9"),
    ("experiment.py", "number % 2 == 0", "number % 3 == 0"),
    ("experiment.py", "number > 12", "number > 13"),
    ("experiment.py", "return float(value)", "return float(value) + 1"),
    ("experiment.py", 'CAPTION = "about"', 'CAPTION = "about"\nnp.seterr(all="ignore")'),
    ("experiment.py", 'CAPTION = "about"', 'CAPTION = "about"\nif True:\n    inner = abs'),
    ("helper.py", "HERE = 15", "HERE = 16"),
    ("package/parts.py", "- 16", "+ 16"),
    ("package/deep.py", "return 1\n", "return 2\n"),
    ("package/deep.py", "+ 18", "+ 19"),
    ("package/deeper.py", "LAST = 19", "LAST = 18"),
    ("fillers.py", "return 22", "return 23"),
    ("fillers.py", "'one'", "'two'"),
    ("registry.py", "FOUND[name] = f", "FOUND[name] = len"),
]
LOOP = "for k in (1, 2):\n        if k > cell.number:\n            raise ValueError(k)\n    value = converted("
NOTHING = [
    ("experiment.py", '"""Title."""', '"""Another title."""'),
    ("experiment.py", '    """Compute."""\n', ""),
    ("experiment.py", '    """One cell."""\n', ""),
    ("experiment.py", "  # a comment", ""),
    ("experiment.py", "return inner(cell) * SCALE", "return (inner(cell)\n        * SCALE)"),
    ("experiment.py", "(cell: Cell) -> float", "(cell)"),
    ("experiment.py", "number: int\n    size", "number: float\n    size"),
    ("experiment.py", 'CAPTION = "about"', 'CAPTION = "something else"'),
    ("experiment.py", "return CAPTION, np", "return np"),
    ("experiment.py", "    return []", "    return [1]"),
    ("experiment.py", "LEFT, RIGHT = 5, 6", "LEFT, ELSE = 5, 6"),
    ("experiment.py", "cell.number > 100", "cell.number > 1000"),
    ("experiment.py", "at most 100", "no more than 100"),
    ("experiment.py", "check(cell.number)\n", "pass\n"),
    ("experiment.py", "if value < 0:\n        raise ValueError(f", "if value <= -1:\n        raise TypeError(f"),
    ("experiment.py", "if value < 0:\n        raise ValueError(\"", "if value <= 0:\n        raise ValueError(\""),
    ("experiment.py", '"too large"', '"far too large"'),
    ("experiment.py", "value = converted(", LOOP),
    ("experiment.py", "weight = 7", "weight = 8"),  # of a class that no cell here is of
    ("package/parts.py", "return 17", "return 18"),
    ("package/deeper.py", "LATER = 20", "LATER = 21"),
    ("helper.py", "HERE = 15", "THERE = 1\nHERE = 15"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new"), COUNTS)
def test_what_can_change_a_number_counts(file, old, new, seen):
    assert seen(file, old, new).code != seen().code


@pytest.mark.parametrize(("file", "old", "new"), NOTHING)
def test_what_cannot_change_a_number_does_not_count(file, old, new, seen):
    assert seen(file, old, new).code == seen().code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("even_number(number - 1)", "even_number(number - 1) or globals()['hidden'](number)"),
        ("even_number(number - 1)", "even_number(number - 1) or eval('hidden')(number)"),
        ("even_number(number - 1)", "even_number(number - 1) or vars()['hidden'](number)"),
    ],
)
def test_where_code_cannot_be_followed_the_whole_module_counts(old, new, seen):
    text = textwrap.dedent(FILES["experiment.py"]).replace(old, new) + "\n\ndef hidden(number):\n    return 30\n"
    more = {"experiment.py": text}
    assert seen(more=more).code != seen("experiment.py", "return 30", "return 31", more=more).code


def test_a_module_imported_by_a_name_made_up_at_run_time_counts_with_all_that_lie_beside(seen):
    text = textwrap.dedent(FILES["experiment.py"]).replace(
        "return number > 12 and", "import importlib\n    return importlib.import_module('ex' + 'tra').value or"
    )
    more = {"experiment.py": text, "extra.py": "value = 40\n"}
    assert seen(more=more).code != seen("extra.py", "40", "41", more=more).code


def test_a_subclass_that_its_base_takes_note_of_counts(seen):
    base = "KNOWN = []\nclass Base:\n    def __init_subclass__(cls):\n        KNOWN.append(cls)\n"
    text = textwrap.dedent(FILES["experiment.py"]).replace("number > 12 and", "number > helper.KNOWN[0].value and")
    more = {"experiment.py": text, "helper.py": FILES["helper.py"] + base + "class One(Base):\n    value = 50\n"}
    assert seen(more=more).code != seen("helper.py", "value = 50", "value = 51", more=more).code


def test_a_package_is_followed_through_its_lazy_table(seen):
    lazy = (
        "import importlib\nTABLE = {'inner': 'package.parts', 'other': 'package.others'}\ndef __getattr__(name):\n"
        "    return getattr(importlib.import_module(TABLE[name]), name)\n"
    )
    more = {"package/__init__.py": lazy, "package/others.py": "def other():\n    return 60\n"}
    assert seen(more=more).code == seen().code
    assert seen("package/others.py", "60", "61", more=more).code == seen().code
    assert seen("package/parts.py", "- 16", "+ 16", more=more).code != seen().code


def test_a_module_that_is_moved_keeps_the_hash(seen):
    moved = {
        "experiment.py": FILES["experiment.py"].replace("from package.deep import", "from elsewhere.deep import"),
        "helper.py": FILES["helper.py"].replace("package.deep", "elsewhere.deep"),
        "elsewhere/__init__.py": "",
        "elsewhere/deep.py": FILES["package/deep.py"],
        "elsewhere/deeper.py": FILES["package/deeper.py"],
    }
    assert seen(more=moved).code == seen().code


def test_a_function_that_is_renamed_keeps_the_hash(seen):
    text = FILES["experiment.py"].replace("even_number", "is_even")
    more = {"experiment.py": text, "helper.py": FILES["helper.py"].replace("HERE", "THERE")}
    assert seen(more=more).code == seen().code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from package.deep import far\n", "import package.deep\nfar = package.deep.far\n"),
        ("from package import inner as aliased", "from package.parts import inner as aliased"),
        ("import helper\n", "import helper as other_name\nhelper = None\n"),
    ],
)
def test_another_way_to_import_is_followed_too(old, new, seen):
    text = textwrap.dedent(FILES["experiment.py"]).replace(old, new)
    text = text.replace("helper.value", "other_name.value") if "other_name" in new else text
    more = {"experiment.py": text}
    for file, was, becomes in (("package/deep.py", "+ 18", "+ 19"), ("package/parts.py", "- 16", "+ 16"),
                               ("helper.py", "HERE = 15", "HERE = 16")):  # fmt: skip
        assert seen(file, was, becomes, more=more).code != seen(more=more).code


@pytest.mark.parametrize(
    "way",
    [
        "from offtangent import kernels\ndef run(cell): return kernels.Gram",
        "from offtangent.kernels import Gram\ndef run(cell): return Gram",
        "import offtangent.kernels\ndef run(cell): return offtangent.kernels.Gram",
        "import offtangent as ot\ndef run(cell): return ot.kernels.Gram",
        "def run(cell):\n    import offtangent as ot\n    return ot.kernels.Gram",
        "def run(cell):\n    from offtangent.kernels.gram import Gram\n    return Gram",
    ],
)
def test_the_library_counts_in_the_same_way_however_it_is_named(way, tmp_path):
    """It brings JAX with it, whose version then counts as well."""
    (tmp_path / "experiment.py").write_text(way)
    (tmp_path / "plain.py").write_text("from offtangent.kernels import Gram\ndef run(cell): return Gram")
    got, plain = fingerprint(tmp_path / "experiment.py"), fingerprint(tmp_path / "plain.py")
    assert got.code == plain.code
    assert {"jax", "numpy"} <= got.packages


def test_of_the_library_only_what_is_reached_counts(tmp_path):
    """A whole other library, changed in one place that is reached and in one that is not."""
    (tmp_path / "experiment.py").write_text(
        "import offtangent as ot\ndef run(cell): return ot.special.hermite_polynomials.hermite(1, 2)"
    )
    codes = {}
    for name, old, new in (("as it is", "", ""), ("reached", "def hermite(", "EXTRA = 1\ndef hermite("),
                           ("used", "def hermite(", "@jax.named_call\ndef hermite(")):  # fmt: skip
        package = tmp_path / name / "offtangent"
        shutil.copytree(PACKAGE / "special", package / "special")
        shutil.copy(PACKAGE / "__init__.py", package)
        for other in ("_errors.py", "_lazy.py", "_version.py"):
            shutil.copy(PACKAGE / other, package)
        path = package / "special" / "hermite_polynomials.py"
        text = path.read_text()
        assert not old or text.count(old) == 1
        path.write_text(text.replace(old, new))
        codes[name] = fingerprint(tmp_path / "experiment.py", package=package).code
    assert codes["as it is"] == codes["reached"]
    assert codes["as it is"] != codes["used"]


def test_rooms_that_only_carry_results_bring_nothing_along(tmp_path):
    (tmp_path / "a.py").write_text("from offtangent import lab, report\ndef run(cell): return 1")
    (tmp_path / "b.py").write_text("def run(cell): return 1")
    assert fingerprint(tmp_path / "a.py").code == fingerprint(tmp_path / "b.py").code


def test_what_a_run_uses_of_the_lab_counts(tmp_path):
    (tmp_path / "a.py").write_text("from offtangent import lab\ndef run(cell): return lab.over_seeds")
    (tmp_path / "b.py").write_text("from offtangent import lab\ndef run(cell): return lab.slices.combine")
    assert fingerprint(tmp_path / "a.py").code != fingerprint(tmp_path / "b.py").code


STRANGE = '''
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Cell:
    """Told."""
    a: int = field(default=1)
    b: "list[int]" = ()
async def other(*args, a, b=1, **words): return [x async for x in args]
def run(cell, /, x=1, *, y: int = 2) -> str:
    """Told."""
    global G
    match cell:
        case Cell(a=1) | [1, *_]:
            return f"{cell!r:>{3}}" "text" f"{x=}" + "a" "b"
        case {"k": v, **rest}: return rest
    with open("x") as f, other(): G = lambda *a, k=3: (yield)
    try: del x
    except* ValueError as e: pass
    return f"" if (n := len(cell)) else [*cell, 1_000, 1e3, 0x10, b"x", -0.0, 1j, ..., None]
'''


def test_the_fingerprint_is_the_same_in_every_version_of_python(tmp_path):
    """Known once and for all: results of a machine with another Python must not look stale."""
    path = tmp_path / "fixed.py"
    path.write_text(STRANGE)
    assert fingerprint(path, ["Cell"]).code == "4a3863209c4e9de3"


def test_the_fingerprints_of_all_experiments_are_the_same_in_another_version_of_python(tmp_path):
    """Wherever the machine has one: the lab's syntax needs neither JAX nor NumPy."""
    folders = [Path(one) for one in ("/usr/bin", Path.home() / ".pyenv/versions")]
    candidates = [*folders[0].glob("python3.1[1-9]"), *folders[1].glob("3.1[1-9]*/bin/python")]
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    program = tmp_path / "ask.py"
    program.write_text(OTHER_PYTHON)
    for python in candidates:
        told = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if told.returncode == 0 and told.stdout.strip() != here:
            break
    else:
        pytest.skip("there is no other Python here")
    there = subprocess.run([python, program, PACKAGE], capture_output=True, text=True, check=True).stdout.split()
    own = subprocess.run([sys.executable, program, PACKAGE], capture_output=True, text=True, check=True).stdout.split()
    assert len(own) == 31
    assert there == own


OTHER_PYTHON = """
import sys, types
from pathlib import Path
package = Path(sys.argv[1])
for name, path in (("offtangent", package), ("offtangent.lab", package / "lab")):  # without loading what these load
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__, module.__file__ = [str(path)], str(path / "__init__.py")
from offtangent.lab.fingerprints import fingerprint
papers = package / "papers"
for path in sorted([*papers.glob("*/[a-z]*.py"), *papers.glob("*/[a-z]*/__init__.py")]):  # modules, and those of slices
    text = path.read_text()
    if "\\nPROFILES" in text:
        print(fingerprint(path).code)
"""


def test_names_that_run_does_not_use_bring_nothing_with_them(tmp_path):
    (tmp_path / "one.py").write_text("from offtangent import kernels\ndef run(cell): return kernels.Gram")
    both = "from offtangent import kernels, regime\ndef run(cell): return kernels.Gram\ndef claims(r): return regime"
    (tmp_path / "two.py").write_text(both)
    (tmp_path / "three.py").write_text(
        both.replace("return kernels.Gram", "return kernels.Gram, regime.measure_regime")
    )
    one, two, three = (fingerprint(tmp_path / f"{name}.py").code for name in ("one", "two", "three"))
    assert one == two
    assert two != three


def test_the_versions_of_the_packages_that_are_used_are_part_of_the_key(tmp_path, monkeypatch):
    """SciPy 1.18 computes what 1.17 did not; a third number may change and nothing is computed again."""
    (tmp_path / "experiment.py").write_text(
        "from dataclasses import dataclass\nimport sklearn.svm, scipy.linalg\n\n@dataclass(frozen=True)\nclass Cell:\n"
        "    n: int\nPROFILES = {'smoke': 1}\ndef cells(c): return [Cell(1)]\n"
        "def run(cell): return scipy.linalg.solve, sklearn.svm.SVC\ndef claims(r): return []\ndef draw(r): return []\n"
    )
    experiment = lab.experiment.load_experiment(tmp_path / "experiment.py")
    facts = experiment.machinery("Cell")
    assert set(facts) == {"code", "scipy", "sklearn"}
    assert all(value.count(".") == 1 for name, value in facts.items() if name != "code")
    key = experiment.key(experiment.cells("smoke")[0], "1")
    from offtangent.lab import machinery

    monkeypatch.setattr(machinery, "_release", lambda name: "9.9" if name == "scipy" else facts[name])
    again = lab.experiment.load_experiment(tmp_path / "experiment.py")
    assert again.key(again.cells("smoke")[0], "1") != key
