"""The house is in order: rooms import upwards only, JAX stays public, files stay short, importing stays cheap."""

import ast
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
ORDER += ["regime", "estimators", "lab", "papers", "cli"]
FILES = sorted(PACKAGE.rglob("*.py"))


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


def test_files_stay_short() -> None:
    assert [str(path) for path in FILES if len(path.read_text().splitlines()) > 420] == []


@pytest.mark.parametrize(
    "room",
    ["offtangent", *(f"offtangent.{room}" for room in ("data", "kernels", "lab", "labels", "report", "theory", "cli"))],
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
