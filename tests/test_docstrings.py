"""What the API reference shows of the names to hold in one's head: arguments, what comes back, an example."""

import ast
import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import offtangent

# Every room but papers, whose modules are experiments.
ROOMS = [room for room in offtangent.ROOMS if room != "papers"]
HEADS = ("Args:", "Attributes:", "Returns:", "Raises:")


def heads() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for name in importlib.import_module(f"offtangent.{room}").__all__:
            yield room, name


def documented(room: str, name: str) -> Any:
    """What `help(name)` describes: an instance is described by its class."""
    found = getattr(importlib.import_module(f"offtangent.{room}"), name)
    return found if inspect.isroutine(found) or inspect.isclass(found) else type(found)


def parameters(thing: Any) -> list[str]:
    """What a caller may give, and of a dataclass the fields that are its constructor's."""
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        names = list(thing.__members__)
    elif inspect.isclass(thing) and dataclasses.is_dataclass(thing):
        names = [field.name for field in dataclasses.fields(thing) if field.init]
    else:
        names = [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    return [name for name in names if not name.startswith("_")]


def sections(text: str) -> dict[str, str]:
    """The part of a docstring under each head that stands in it, up to the first line that is not indented."""
    found = re.finditer(rf"^({'|'.join(HEADS)})\n((?:[ ]+.*\n?)+)", text, re.MULTILINE)
    return {match[1]: match[2] for match in found}


def unnamed(thing: Any, text: str) -> list[str]:
    """Parameters that no line of Args or Attributes is about."""
    parts = sections(text)
    told = parts.get("Args:", "") + parts.get("Attributes:", "")
    return [name for name in parameters(thing) if not re.search(rf"^    \*{{0,2}}{name}: \S", told, re.MULTILINE)]


def methods(thing: type) -> Iterator[tuple[str, Callable[..., Any] | property]]:
    """What a class of ours lets its users call or read, inherited from our own classes too."""
    for owner in thing.__mro__:
        if not owner.__module__.startswith("offtangent."):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") and name not in ("__call__", "__matmul__"):
                continue
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            cached = getattr(plain, "func", None)
            if isinstance(plain, property) or inspect.isfunction(plain):
                yield name, plain
            elif cached is not None and type(plain).__name__ == "cached_property":
                yield name, property(cached)


@pytest.mark.parametrize(("room", "name"), list(heads()))
def test_a_head_name_tells_its_arguments_what_comes_back_and_an_example(room: str, name: str) -> None:
    thing = documented(room, name)
    text = inspect.getdoc(thing) or ""
    assert unnamed(thing, text) == []
    assert inspect.isclass(thing) or "Returns:" in sections(text)
    assert re.search(r"^>>> ", text, re.MULTILINE)
    assert text.partition("\n")[0].endswith("."), "the first line is no whole sentence"


@pytest.mark.parametrize(("room", "name"), [one for one in heads() if inspect.isclass(documented(*one))])
def test_the_methods_of_a_head_class_tell_their_arguments(room: str, name: str) -> None:
    faults = []
    for method, member in methods(documented(room, name)):
        text = inspect.getdoc(member) or ""
        if not text.partition("\n")[0].endswith("."):
            faults.append(f"{method}: no whole first sentence")
        if isinstance(member, property) or not parameters(member):
            continue
        faults += [f"{method}: {one}" for one in unnamed(member, text)]
        if "Returns:" not in sections(text):
            faults.append(f"{method}: Returns")
    assert faults == []


def test_every_public_function_says_what_it_does() -> None:
    silent = []
    for path in Path(offtangent.__file__).parent.rglob("*.py"):
        if "papers" in path.parts or (path.stem.startswith("_") and path.stem != "__init__"):
            continue  # the papers' functions have the names that an experiment's must have
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node):
                continue
            if not any("overload" in ast.unparse(one) for one in node.decorator_list):
                silent.append(f"{path}: {node.name}")
    assert silent == []


def test_an_argument_that_is_only_mentioned_counts_as_unnamed() -> None:
    def area(width: int, height: int) -> int:
        return width * height

    assert unnamed(area, "The area.\n\nArgs:\n    height: The height, beside the width: both in metres.") == ["width"]
    assert unnamed(area, "Returns:\n    width: so\n    height: so") == ["width", "height"]
