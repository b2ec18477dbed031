"""The project's own modules as syntax: what each defines, and what a name in it stands for.

The project is offtangent, everything beside a user's experiment, and whatever else Python would import from outside its
installed packages. Nothing is imported to find out: files are found by name and read as text.
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar, ast.Match)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
        return self.module.body if self.name == "*" else self.module.defined.get(self.name, [])


@dataclass(eq=False)
class Module:
    """One file of the project, read once."""

    name: str
    path: Path
    project: "Project"
    body: list[ast.stmt] = field(default_factory=list)  # without texts, and without what only a type checker sees
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)  # a name may be built in several statements
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # name → module, name in it ("" for the module)
    stars: list[str] = field(default_factory=list)
    for_types: dict[str, tuple[str, str]] = field(default_factory=dict)  # imported under `if TYPE_CHECKING:`
    others: list[ast.stmt] = field(default_factory=list)  # statements that do more than bind names

    def __post_init__(self) -> None:
        self.read(ast.parse(self.path.read_bytes(), str(self.path)).body)

    @cached_property
    def source(self) -> str:
        """The file's checksum, for code that reads sources."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def read(self, statements: list[ast.stmt]) -> None:
        """Take these for the module's content."""
        self.body, self.defined, self.imported, self.stars, self.for_types, self.others = [], {}, {}, [], {}, []
        self._add(statements)

    def _add(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            if is_text(node) or _is_main(node):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in {*names_in(node.test), *_attributes(node.test)}:
                for inner in node.body:
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        self.for_types |= dict(self.bindings(inner))
                self._add(node.orelse)
                continue
            self.body.append(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imported |= dict(self.bindings(node))
                self.stars += [m for n, (m, _) in self.bindings(node) if n == "*"]
                continue
            for name in bound_in([node]):
                self.defined.setdefault(name, []).append(node)
            if not _only_binds(node):
                self.others.append(node)

    def bindings(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, tuple[str, str]]]:
        """The names that an import binds here, each with its module and its name there."""
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

    @cached_property
    def loaded(self) -> list[str]:
        """The modules that loading this one loads: functions import theirs when they are called."""
        top = [node for node in self.body if not isinstance(node, SCOPES)]
        return list(dict.fromkeys(self.imports_in(top)))

    def look_up(self, name: str, seen: frozenset[Any] = frozenset()) -> "Definition | Module | External | None":
        """What a name at the top level stands for here; None for a builtin, or a name that is nowhere."""
        if (self, name) in seen:
            return None
        seen |= {(self, name)}
        if name in self.defined:
            return Definition(self, name)
        if name in self.imported:
            return self.project.follow(*self.imported[name], seen)
        for star in self.stars:
            found = self.project.find(star)
            if found is None:
                return External(f"{star}.{name}")
            if (meaning := found.look_up(name, seen)) is not None:
                return meaning
        return None

    def attribute(self, name: str, seen: frozenset[Any] = frozenset()) -> "Definition | Module | External | None":
        """What `module.name` is: also a module inside the package, or what a lazy table (PEP 562) names."""
        meaning = self.look_up(name, seen)
        if meaning is None and self.is_package:
            meaning = self.project.find(f"{self.name}.{name}")
        if meaning is None and "__getattr__" in self.defined:
            meaning = self._lazy(name, seen)
        if meaning is None and name in self.for_types:
            meaning = self.project.follow(*self.for_types[name], seen)
        return meaning

    def _lazy(self, name: str, seen: frozenset[Any]) -> "Definition | Module | External | None":
        """A table of this module that says where a name lives: name → module, or module → names."""
        for node in (one for statement in self.body for one in ast.walk(statement) if isinstance(one, ast.Dict)):
            for key, value in zip(node.keys, node.values, strict=True):
                there = _texts(value) if _texts(key) == [name] else _texts(key) if name in _texts(value) else []
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

    def follow(self, module: str, name: str, seen: frozenset[Any]) -> "Definition | Module | External | None":
        """What an import of `name` from `module` (of the module itself, for no name) stands for."""
        found = self.find(module)
        if found is None:
            return External(f"{module}.{name}" if name else module)
        return (found.attribute(name, seen) or Definition(found, "*")) if name else found

    def everything(self, module: Module) -> Iterator[Module]:
        """Every module of the project that code in `module` might import by a name made up at run time."""
        root = (
            self.beside if self.beside is not None and module.name.partition(".")[0] != "offtangent" else self.package
        )
        prefix = [] if root == self.beside else ["offtangent"]
        for path in sorted(root.rglob("*.py")):
            parts = [*prefix, *path.relative_to(root).with_suffix("").parts]
            name = ".".join(part for part in parts if part != "__init__")
            if all(part.isidentifier() for part in parts) and (found := self.find(name)):
                yield found

    def _locate(self, name: str) -> Path | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        if parts[0] == "offtangent":
            return _file(self.package, parts[1:])
        if self.beside is not None and (found := _file(self.beside, parts)):
            return found
        root = _elsewhere(parts[0])
        return None if root is None or self.beside is None else _file(root, parts)


def _file(folder: Path, parts: list[str]) -> Path | None:
    inside = folder.joinpath(*parts)
    candidates = [inside / "__init__.py", *([inside.with_name(f"{inside.name}.py")] if parts else [])]
    return next((path for path in candidates if path.is_file()), None)


def _elsewhere(name: str) -> Path | None:
    """The folder from which Python would import a module that is neither its own nor an installed package's."""
    if name in sys.stdlib_module_names or name in sys.builtin_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return None
    return path.parents[1] if path.name == "__init__.py" else path.parent


def content_of(path: Path) -> bytes:
    """A file's checksum; nothing where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a text standing by itself, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def names_in(node: ast.AST) -> list[str]:
    """Every name in a piece of syntax."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def bound_in(statements: list[ast.stmt]) -> list[str]:
    """The names that statements bind in the scope they stand in, not in functions and classes within."""
    bound: dict[str, None] = {}
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound[node.name] = None
                continue
            case ast.Lambda():
                continue
            case ast.Import() | ast.ImportFrom():
                bound |= dict.fromkeys(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bound[node.id] = None
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound[name] = None
            case ast.MatchMapping(rest=str(name)):
                bound[name] = None
        if isinstance(node, COMPREHENSIONS):  # its variables are its own, but for `:=`
            bound |= {n.target.id: None for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
            continue
        waiting += ast.iter_child_nodes(node)
    return list(bound)


def _only_binds(node: ast.stmt) -> bool:
    """Whether loading this statement does nothing but give names their values."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in ast.walk(target)]
        return not any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts)
    return type(node).__name__ == "TypeAlias"


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _attributes(node: ast.AST) -> list[str]:
    return [part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)]


def _texts(node: ast.AST | None) -> list[str]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for part in node.elts for text in _texts(part)]
    return node.value.split() if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
