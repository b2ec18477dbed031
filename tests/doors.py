"""Walk the public functions of some rooms, and give each parameter wrongly: `python tests/doors.py linalg data …`.

What came of it is printed as JSON, for tests/test_doors.py.
"""

import importlib
import inspect
import json
import pkgutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import odd_calls
from door_calls import INSTEAD, calls

UPPER = ("theory", "kernels", "special")  # whose table is tests/odd_calls.py


def modules(room: str) -> Iterator[ModuleType]:
    """A room, and every module in it whose name is public."""
    package = importlib.import_module(f"offtangent.{room}")
    yield package
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def walked(room: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, class and other constructor of a class that is defined in the room."""
    for module in modules(room):
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__ or not callable(thing):
                continue
            full = f"{module.__name__}.{name}".removeprefix("offtangent.")
            yield full, thing
            for method, made in vars(thing).items() if inspect.isclass(thing) else ():
                if isinstance(made, classmethod | staticmethod) and not method.startswith("_"):
                    yield f"{full}.{method}", getattr(thing, method)


def answer(name: str, function: Callable[..., Any], words: dict[str, Any]) -> tuple[str, str]:
    """What a call comes to: "a result" or the kind of error, and its text."""
    rest = {
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL
    }
    positional = [value for word, value in words.items() if word in rest]
    named = {word: value for word, value in words.items() if word not in rest}
    try:
        return "a result", repr(INSTEAD.get(name, function)(*positional, **named))[:200]
    except Exception as error:
        return type(error).__name__, str(error)


def main(rooms: list[str]) -> None:
    warnings.simplefilter("ignore")
    functions = dict(found for room in rooms for found in walked(room))
    valid, bad = [], []
    with tempfile.TemporaryDirectory() as folder:
        table = calls(Path(folder))
        known = [name for name in table if name in functions]
        for name, words in ((name, table[name]) for name in known):
            good = {parameter: arg.good for parameter, arg in words.items()}
            valid.append((name, *answer(name, functions[name], good)))
            for parameter, arg in words.items():
                for what, value in arg.bad.items():
                    told = answer(name, functions[name], {**good, parameter: value})
                    bad.append((name, parameter, what, arg.says, *told))
    parameters = {name: sorted(inspect.signature(functions[name]).parameters) for name in known}
    given = {name: list(words) for name, words in table.items()}
    upper = sorted({name for room in UPPER for name, _ in walked(room)})
    odd = {name.partition("(")[0].split(".")[-1] for name in odd_calls.calls()}
    tried = [name for name in upper if name.split(".")[-1] in odd]
    found = {
        "walked": list(functions),
        "parameters": parameters,
        "given": given,
        "valid": valid,
        "bad": bad,
        "upper": upper,
        "tried": tried,
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
