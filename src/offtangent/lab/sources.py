"""The project's own modules as syntax: what each defines, and what a name in it stands for.

The project is offtangent, everything beside a user's experiment, and whatever else Python would import from outside its
installed packages. Nothing is imported to find out: files are found by name and read as text.
"""

import ast
import builtins
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from offtangent.lab.syntax import bound_in, is_text, never_run, only_binds, texts_in

INSTALLED = frozenset(("site-packages", "dist-packages"))

Target = tuple[str, str]  # a module, and a name in it, or "" for the module


@dataclass(frozen=True)
class External:
    """Something of an installed package or of Python itself, by its full name."""

    name: str

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class Definition:
    """What a name at the top level of a module stands for; `*` is the module as a whole."""

    module: "Module"
    name: str

    @property
    def statements(self) -> list[ast.stmt]:
        return self.module.body if self.name == "*" else self.module.binding(self.name)


@dataclass(eq=False)
class Module:
    """One file of the project, read once."""

    name: str
    path: Path
    project: "Project"
    body: list[ast.stmt] = field(default_factory=list)  # without texts, and without what only a type checker sees
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)  # a name may be built in several statements
    imported: dict[str, dict[Target, ast.stmt]] = field(default_factory=dict)  # a name may be imported more than once
    stars: dict[str, ast.stmt] = field(default_factory=dict)  # module → where everything in it is imported
    for_types: dict[str, Target] = field(default_factory=dict)  # imported under `if TYPE_CHECKING:`
    others: list[ast.stmt] = field(default_factory=list)  # statements that do more than bind names
    broken: bool = False  # no Python of this version: its bytes count

    def __post_init__(self) -> None:
        if self.path.is_dir():  # a package without `__init__`
            return
        try:
            self.read(ast.parse(self.path.read_bytes(), str(self.path)).body)
        except (SyntaxError, ValueError, OSError):
            self.broken = True

    @cached_property
    def source(self) -> str:
        """The file's checksum, for code that reads sources."""
        return content_of(self.path).hex()

    @cached_property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py" or self.path.is_dir()

    def read(self, statements: list[ast.stmt]) -> None:
        """Take these for the module's content."""
        self.body, self.defined, self.imported, self.stars, self.for_types, self.others = [], {}, {}, {}, {}, []
        self._add(statements)

    def _add(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            if is_text(node):
                continue
            if isinstance(node, ast.If) and (branches := never_run(node)):
                dropped, kept = branches
                for inner in dropped:
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        self.for_types |= dict(self.bindings(inner))
                self._add(kept)
                continue
            self.body.append(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, target in self.bindings(node):
                    if name == "*":
                        self.stars[target[0]] = node
                    else:
                        self.imported.setdefault(name, {})[target] = node
                continue
            for name in dict.fromkeys(bound_in([node])):
                if name == "*":  # tried, or on a condition
                    tried = [one for one in ast.walk(node) if isinstance(one, ast.ImportFrom)]
                    self.stars |= {to[0]: node for one in tried for star, to in self.bindings(one) if star == "*"}
                    continue
                self.defined.setdefault(name, []).append(node)
            if not only_binds(node):
                self.others.append(node)

    def bindings(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Target]]:
        """The names that an import binds here, each with its module and its name there ("" for the module)."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, (whole, "")
            return
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        base = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, (module, alias.name)

    def imports_in(self, nodes: list[ast.stmt]) -> Iterator[str]:
        """Every module that these statements import, at any depth, with the packages around it."""
        for top in nodes:
            for node in ast.walk(top):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    for _, (module, name) in self.bindings(node):
                        yield module
                        yield f"{module}.{name}"

    def look_up(self, name: str, seen: frozenset[Any] = frozenset()) -> "Meaning":
        """What a name at the top level stands for here; None for a builtin, or a name that is nowhere.

        A name that is bound in more ways than one is a definition of its own, made of all of them in their order.
        """
        if (self, name) in seen:
            return None
        seen |= {(self, name)}
        targets = self.imported.get(name, {})
        stars = self._offering(name, seen) if self.stars else []
        if name in self.defined or len(targets) + len(stars) > 1:
            return Definition(self, name)
        if targets:
            return self.project.follow(*next(iter(targets)), seen)
        if not stars:
            return None
        # What an external star brings nobody knows: it may hide a builtin, and is then neither of the two.
        there = f"*{name}" if hasattr(builtins, name) and self.project.find(stars[0]) is None else name
        return self.project.follow(stars[0], there, seen)

    def _offering(self, name: str, seen: frozenset[Any]) -> list[str]:
        """The modules of which everything is imported that may have this name; Python takes the last that has it."""
        found = {star: self.project.find(star) for star in self.stars}
        return [
            star
            for star, module in found.items()
            if module is None
            or module.attribute(name, seen) is not None
            or ("__getattr__" in module.defined and not hasattr(builtins, name))
        ]

    def binding(self, name: str) -> list[ast.stmt]:
        """The statements that bind a name, in order."""
        if name not in self.imported and not self.stars:
            return self.defined.get(name, [])
        stars = [self.stars[star] for star in self._offering(name, frozenset({(self, name)}))]
        these = [*self.defined.get(name, []), *self.imported.get(name, {}).values(), *stars]
        return [node for node in self.body if any(node is one for one in these)]

    def attribute(self, name: str, seen: frozenset[Any] = frozenset()) -> "Meaning":
        """What `module.name` is: also a module inside the package, or what a lazy table (PEP 562) names."""
        meaning = self.look_up(name, seen)
        if meaning is None and self.is_package:
            meaning = self.project.find(f"{self.name}.{name}")
        if meaning is None and "__getattr__" in self.defined:
            meaning = self._lazy(name, seen)
        if meaning is None and name in self.for_types:
            meaning = self.project.follow(*self.for_types[name], seen)
        return meaning

    def _lazy(self, name: str, seen: frozenset[Any]) -> "Meaning":
        """A table of this module that says where a name lives: name → module, or module → names."""
        for node in (one for statement in self.body for one in ast.walk(statement) if isinstance(one, ast.Dict)):
            for key, value in zip(node.keys, node.values, strict=True):
                there = texts_in(value) if texts_in(key) == [name] else texts_in(key) if name in texts_in(value) else []
                for text in there:
                    inside = self.name if text.startswith(".") else ""
                    if found := self.project.find(f"{inside}{text}") or self.project.find(f"{self.name}.{text}"):
                        return found.attribute(name, seen)
        return None


@dataclass(eq=False)
class Project:
    """Where modules of the project lie: offtangent's folder, and the one beside a user's experiment."""

    package: Path
    beside: Path | None = None
    library: "Project | None" = None  # where offtangent's own modules are kept, read once for all experiments
    known: dict[str, Module | None] = field(default_factory=dict)

    def find(self, name: str) -> Module | None:
        """The module of this name, or None if it is none of the project's."""
        if self.library is not None and name.partition(".")[0] == "offtangent":
            return self.library.find(name)
        if name not in self.known:
            path = self._locate(name)
            self.known[name] = None if path is None else Module(name, path, self)
        return self.known[name]

    def read(self, path: Path) -> Module:
        """The module in a file."""
        try:
            inside = path.relative_to(self.package).with_suffix("").parts
        except ValueError:
            return self.known.setdefault("__experiment__", None) or self._keep(Module("__experiment__", path, self))
        name = ".".join(("offtangent", *(part for part in inside if part != "__init__")))
        found = self.find(name)
        assert found is not None
        return found

    def _keep(self, module: Module) -> Module:
        self.known[module.name] = module
        return module

    def follow(self, module: str, name: str, seen: frozenset[Any]) -> "Meaning":
        """What an import of `name` from `module` (of the module itself, for no name) stands for."""
        found = self.find(module)
        if found is None:
            return External(f"{module}.{name}" if name else module)
        return (found.attribute(name, seen) or Definition(found, "*")) if name else found

    def everything(self, module: Module) -> Iterator[Module]:
        """Every module of the project that code in `module` might import by a name made up at run time, or run."""
        ours = self.beside is None or module.name.partition(".")[0] == "offtangent"
        root, prefix = (self.package, ["offtangent"]) if ours or self.beside is None else (self.beside, [])
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root)
            if any(part.startswith(".") or part in INSTALLED for part in inside.parts):
                continue
            parts = [*prefix, *inside.with_suffix("").parts]
            name = ".".join(part for part in parts if part != "__init__")
            if all(part.isidentifier() for part in parts) and (found := self.find(name)):
                yield found
            else:  # a program that another process may run
                yield self.known.get(name) or self._keep(Module(name, path, self))

    def _locate(self, name: str) -> Path | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        if parts[0] == "offtangent":
            return _file(self.package, parts[1:])
        if self.beside is None:
            return None
        first = _file(self.beside, parts[:1])
        root = self.beside if first is not None and first.suffix == ".py" else _elsewhere(parts[0], self.beside)
        return None if root is None else _file(root, parts)


def _file(folder: Path, parts: list[str]) -> Path | None:
    inside = folder.joinpath(*parts)
    candidates = [inside / "__init__.py", *([inside.with_name(f"{inside.name}.py")] if parts else [])]
    found = next((path for path in candidates if path.is_file()), None)
    return inside if found is None and inside.is_dir() else found


def _elsewhere(name: str, beside: Path) -> Path | None:
    """The folder from which Python would import a module that is neither its own nor an installed package's.

    A folder without `__init__` is a package only where there is no other of its name.
    """
    if name in sys.stdlib_module_names or name in sys.builtin_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.origin:
        places = [beside, *(Path(one).parent for one in (spec and spec.submodule_search_locations) or [])]
        return next((place for place in places if (place / name).is_dir() and not INSTALLED & set(place.parts)), None)
    path = Path(spec.origin)
    if path.suffix != ".py" or INSTALLED & set(path.parts):
        return None
    return path.parents[1] if path.name == "__init__.py" else path.parent


Meaning = Definition | Module | External | None


def content_of(path: Path) -> bytes:
    """A file's checksum; nothing where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
