"""The house is in order: rooms import upwards only, JAX stays public, files stay short, importing stays cheap."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import offtangent

PACKAGE = Path(offtangent.__file__).parent
# DESIGN's list: a room imports only from those before it.
ORDER = ["special", "report", "linalg", "data", "networks", "taylor", "kernels", "theory", "training", "labels"]
ORDER += ["regime", "interop", "estimators", "lab", "papers", "cli"]
FILES = sorted(PACKAGE.rglob("*.py"))
PAPERS = ("allen_zhu_li", "arora", "bai_lee", "ge_wang_zhao", "nichani")
# Experiments that are not yet cut along their questions: reports that stand apart, laid out by hand.
LONG_FILES = {
    "papers/arora/fig2.py",
    "papers/arora/fig2_report.py",
    "papers/ge_wang_zhao/landscape.py",
    "papers/ge_wang_zhao/lemmas.py",
    "papers/ge_wang_zhao/lemmas_report.py",
    "papers/nichani/spectrum.py",
}
LONG_FUNCTIONS: set[str] = set()
BY_HAND = {
    "allen_zhu_li": (
        "_layers _methods corollary71 corollary71_report coupling descent existence existence_report fig2 "
        "fig2_report hierarchy_report norms theorem2 "
        "theorem2_report "
    ),
    "arora": "fig1 fig1_report fig2 fig2_report lemmas lemmas_report section6_report",
    "bai_lee": "_learners landscape samples",
    "ge_wang_zhao": (
        "_kept _literal _minima _paths _search landscape landscape_figures landscape_report lemmas "
        "lemmas_figures lemmas_report mnist phases phases_report synthetic synthetic_report "
    ),
    "nichani": (
        "appendix_g directions directions_report fig1 fig2 fig2_report spectrum spectrum_report taylor taylor_report "
    ),
}
# The first is a table, of names.
LAID_OUT_BY_HAND = {"lab/checks.py"} | {
    f"papers/{paper}/{module}.py" for paper, modules in BY_HAND.items() for module in modules.split()
}


def imported(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Every dotted name that a module's imports may bring in, relative ones resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def faults(source: str, module: tuple[str, ...]) -> list[str]:
    """Rooms that `module` (("offtangent", room, ...)) imports against the direction."""
    room = module[1]
    if room not in ORDER:
        return []
    rooms = {name.split(".")[1] for name in imported(source, module[:-1]) if name.startswith("offtangent.")}
    return sorted(r for r in rooms if r in ORDER and ORDER.index(r) > ORDER.index(room))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_from_rooms_above(path: Path) -> None:
    module = ("offtangent", *path.relative_to(PACKAGE).with_suffix("").parts)
    assert faults(path.read_text(), module) == []


@pytest.mark.parametrize(
    "source",
    [
        "import offtangent.lab",
        "from offtangent import lab",
        "from offtangent.lab.store import Store",
        "from ..lab import x",
        "from .. import lab",
        "def f():\n    from offtangent.lab.runner import run",
    ],
)
def test_the_check_finds_every_form_of_a_wrong_import(source: str) -> None:
    assert faults(source, ("offtangent", "kernels", "gram")) == ["lab"]


def trespasses(source: str, module: tuple[str, ...]) -> list[str]:
    """Private names of other rooms that `module` imports; those beside the rooms (`_errors`) are the whole house's."""
    names = [name.split(".") for name in imported(source, module[:-1]) if name.startswith("offtangent.")]
    others = [name for name in names if name[1] in ORDER and name[1] != module[1]]
    return sorted(".".join(name) for name in others if any(part.startswith("_") for part in name[2:]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_private_to_a_room_stays_in_it(path: Path) -> None:
    assert trespasses(path.read_text(), ("offtangent", *path.relative_to(PACKAGE).with_suffix("").parts)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import offtangent.kernels._tiles",
        "from offtangent.kernels import _tiles",
        "from offtangent.kernels._tiles import cut",
        "from offtangent.kernels.tiles import _cut",
        "def f():\n    from ..kernels._tiles import cut",
    ],
)
def test_the_check_finds_every_form_of_a_private_import(source: str) -> None:
    assert len(trespasses(source, ("offtangent", "theory", "labels"))) == 1
    assert trespasses(source, ("offtangent", "kernels", "gram")) == []


def test_every_room_is_one_that_the_design_names() -> None:
    names = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert {name for name in names if not name.startswith("_")} <= set(ORDER)
    assert set(offtangent.ROOMS) <= set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_public_jax_is_used(path: Path) -> None:
    assert not re.search(r"jax\._src|jax\.core\b|jax\.interpreters", path.read_text())


@pytest.mark.parametrize(
    "room",
    [
        "offtangent",
        *(f"offtangent.{room}" for room in ("data", "interop", "kernels", "lab", "labels", "report", "theory", "cli")),
    ],
)
def test_these_load_without_jax(room: str) -> None:
    """`import offtangent` costs next to nothing, and a worker can set its environment before JAX is there."""
    code = f"import sys, {room}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_room_is_named_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"special, report"):
        _ = offtangent.kitchen


def test_every_room_loads_on_first_use() -> None:
    for room in offtangent.ROOMS:
        assert getattr(offtangent, room).__name__ == f"offtangent.{room}"


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("tests/theory/arora/test_widths.py", "theory"),
        ("src/offtangent/theory/arora/widths.py", "theory"),
        ("tests/labels/test_noise.py", "labels"),
        ("tests/test_house.py", "tests"),
    ],
)
def test_dtypes_are_strict_by_room_however_deep_the_folder(path: str, room: str, pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parent / "conftest.py"))
    assert conftest.room_of(Path(__file__).parents[1] / path) == room
    assert (room in conftest.STRICT) == (room != "tests")


def papers_reached(source: str, module: tuple[str, ...]) -> set[str]:
    """The papers' rooms of `theory` that a module imports from, its own not counted."""
    names = [name.split(".") for name in imported(source, module[:-1]) if name.startswith("offtangent.theory.")]
    # What `theory` itself offers is some paper's, too.
    return {name[2] for name in names if name[2] in (*PAPERS, *offtangent.theory.__all__) and name[2] != module[2]}


@pytest.mark.parametrize("path", sorted((PACKAGE / "theory").rglob("*.py")), ids=lambda path: path.stem)
def test_papers_build_on_themselves_and_nichani_et_al_on_bai_and_lee(path: Path) -> None:
    module = ("offtangent", *path.relative_to(PACKAGE).with_suffix("").parts)
    if module[2] not in PAPERS:
        return
    allowed = {"bai_lee"} if module[2] == "nichani" else set()
    assert papers_reached(path.read_text(), module) <= allowed


def test_the_check_finds_an_import_from_another_paper() -> None:
    source = (
        "def f():\n    from offtangent.theory.arora import widths\n    from ..bai_lee.signs import check_net\n"
        "    from offtangent.theory import complexity\n    from offtangent.theory.nichani import blocks"
    )
    assert papers_reached(source, ("offtangent", "theory", "nichani", "joint")) == {"arora", "bai_lee", "complexity"}


def test_the_names_to_hold_in_one_s_head_are_at_most_64() -> None:
    """All that rooms offer, but for the papers, which offer experiments."""
    rooms = {room: importlib.import_module(f"offtangent.{room}").__all__ for room in offtangent.ROOMS}
    heads = [name for room, names in rooms.items() if room != "papers" for name in names]
    assert len(heads) <= 64
    assert len(heads) == len(set(heads)), "a name means one thing in the house"


def test_what_makes_an_object_itself_and_no_other_is_written_once() -> None:
    assert [path.name for path in FILES if "object.__hash__" in path.read_text()] == ["_types.py"]


def test_no_function_hides_behind_its_module_s_name() -> None:
    hidden = []
    for path in FILES:
        tops = ast.parse(path.read_text()).body
        hidden += [
            str(path) for one in tops if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == path.stem
        ]
    assert hidden == []


def lines_of(node: ast.FunctionDef) -> int:
    """How many lines a function takes without its docstring, which may be as long as it has to say."""
    first = node.body[0]
    written = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno
    return (node.end_lineno or 0) - node.lineno + 1 - (written - first.lineno + 1 if written else 0)


def test_functions_stay_short() -> None:
    long = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and lines_of(node) > 60:
                long.add(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert long == LONG_FUNCTIONS


def test_files_stay_short() -> None:
    """The exceptions are written down, and leave the list when they are no longer any."""
    assert {str(path.relative_to(PACKAGE)) for path in FILES if len(path.read_text().splitlines()) > 350} == LONG_FILES


def test_tables_of_numbers_alone_are_laid_out_by_hand() -> None:
    by_hand = {str(path.relative_to(PACKAGE)) for path in FILES if re.search(r"# fmt: (skip|off)", path.read_text())}
    assert by_hand == LAID_OUT_BY_HAND
