"""Packages whose names load when they are first used (PEP 562), so that importing one of them costs next to nothing."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any


def lazily(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package that offers names of its modules.

    A type checker sees none of it: the package imports the same names once more under `if TYPE_CHECKING:`.

    Args:
        package: The package's `__name__`.
        names: For each of its modules, without the package's name, what the package offers of it, with spaces between.

    Returns:
        The three, to be assigned in the package's `__init__`. Modules of the package are attributes too, whether
        something has imported them before or not.
    """
    homes = {name: module for module, several in names.items() for name in several.split()}

    def load(name: str) -> Any:
        if name in homes:
            found = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            setattr(sys.modules[package], name, found)  # the next time Python finds it without asking here
            return found
        if not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        near = get_close_matches(name, listed(), n=1)
        hint = f". Did you mean {near[0]}?" if near else f"; it has {', '.join(listed())}"
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    def listed() -> list[str]:
        modules = {one.name for one in pkgutil.iter_modules(sys.modules[package].__path__)}
        return sorted({*homes, *(name for name in modules if not name.startswith("_"))})

    return load, listed, list(homes)
