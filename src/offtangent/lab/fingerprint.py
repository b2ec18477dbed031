"""What a cell's numbers depend on in the source: a change there makes old results stale, a change elsewhere not.

Of an experiment's own file only the definitions that `run` reaches are hashed, so a new caption or claim does
not throw away a night's results. Of offtangent itself the modules are hashed that define what the experiment imports,
directly or through others, and not the whole rooms that hand them on. Comments, docstrings and layout never matter.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import offtangent

PACKAGE = Path(offtangent.__file__).parent
NOT_NUMBERS = ("lab", "report", "cli")  # rooms that carry and show results, but do not make them


@dataclass(frozen=True)
class Fingerprint:
    """`source` is the experiment's own part, `library` what it uses of offtangent, `uses` the other packages."""

    source: str
    library: str
    uses: frozenset[str]


def fingerprint(path: Path) -> Fingerprint:
    """Hash what the `run` of an experiment's file depends on. Milliseconds; the library's part is cached."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    kept = _reached(tree, "run")
    source = hashlib.sha256("\n".join(_bare(node) for node in kept).encode())
    modules: dict[str, Path] = {}
    uses: set[str] = set()
    waiting = list(_imports(_needed(kept), _package_of(path)))
    while waiting:
        name = waiting.pop()
        found = _locate(name, path.parent)
        if found is None:
            if not name.startswith("offtangent"):
                uses.add(name.partition(".")[0])
        elif name not in modules and name.split(".")[1:2] not in [[room] for room in NOT_NUMBERS]:
            modules[name] = found
            waiting += _imports_of_file(found)
    library = hashlib.sha256("\n".join(f"{name} {_hash_of_file(modules[name])}" for name in sorted(modules)).encode())
    return Fingerprint(source.hexdigest()[:16], library.hexdigest()[:16], frozenset(uses))


def _reached(tree: ast.Module, start: str) -> list[ast.stmt]:
    """The top-level statements that the definition `start` needs, in their order."""
    defined: dict[str, list[ast.stmt]] = {}  # a name may be built in several statements
    waiting: list[ast.stmt] = []
    for node in tree.body:
        names = list(_defines(node))
        for name in names:
            defined.setdefault(name, []).append(node)
        if (not names or "*" in names) and not _is_text(node):
            waiting.append(node)
    waiting += defined.get(start, [])
    reached: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) not in reached:
            reached.add(id(node))
            waiting += [other for name in _names(node) for other in defined.get(name, [])]
    return [node for node in tree.body if id(node) in reached]


def _needed(kept: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements, their imports without the names that no other one uses."""
    used = {name for node in kept if not isinstance(node, ast.ImportFrom) for name in _names(node)} | {"*"}
    return [
        ast.ImportFrom(node.module, [one for one in node.names if (one.asname or one.name) in used], node.level)
        if isinstance(node, ast.ImportFrom)
        else node
        for node in kept
    ]


def _defines(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in ast.walk(target)]
        if not any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts):  # these change something else
            yield from (part.id for part in parts if isinstance(part, ast.Name))


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _bare(part: object) -> str:
    """A piece of syntax as text without docstrings, positions and layout, the same in every version of Python.

    (`ast.dump` is not: versions add fields and omit empty ones.)
    """
    if isinstance(part, list):
        return f"[{' '.join(_bare(item) for item in part)}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = {name: value for name, value in ast.iter_fields(part) if value not in (None, [])}
    fields.pop("kind", None)  # u"" of an old time
    if isinstance(part, ast.JoinedStr):  # Python 3.12 leaves empty pieces of text in f-strings
        fields["values"] = [piece for piece in part.values if getattr(piece, "value", None) != ""]
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        fields["body"] = [statement for statement in part.body if not _is_text(statement)]
    return f"{type(part).__name__}({' '.join(f'{name}={_bare(fields[name])}' for name in sorted(fields))})"


def _imports(nodes: list[ast.stmt], package: tuple[str, ...]) -> Iterator[str]:
    """Every module named by an import, at any depth, relative ones resolved; rooms used as `ot.kernels` too."""
    whole = {alias.asname or alias.name for top in nodes for node in ast.walk(top) if isinstance(node, ast.Import)
             for alias in node.names if alias.name == "offtangent"}  # fmt: skip
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                module = ".".join((*base, *([node.module] if node.module else [])))
                yield from (_source(module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
                yield from (name for name in [f"offtangent.{node.attr}"] if _locate(name, None))


def _source(module: str, name: str) -> str:
    """The module that a name imported from `module` comes from: it may be one itself, and a room hands on its own."""
    if _locate(f"{module}.{name}", None):
        return f"{module}.{name}"
    found = _locate(module, None)
    handed_on = _handed_on(found) if found is not None and found.name == "__init__.py" else {}
    return _source(*handed_on[name]) if name in handed_on else module


@cache
def _handed_on(path: Path) -> dict[str, tuple[str, str]]:
    """What a room offers of its modules: by name, the module and what it is called there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _locate(name: str, beside: Path | None) -> Path | None:
    """The file of a module of offtangent, or of one that lies beside a user's experiment."""
    parts = name.split(".")
    if parts[0] == "offtangent":
        inside = PACKAGE.joinpath(*parts[1:])
        candidates = [inside / "__init__.py", inside.with_suffix(".py")]
    elif beside is not None and len(parts) == 1:
        candidates = [beside / f"{name}.py"]
    else:
        candidates = []
    return next((path for path in candidates if path.is_file()), None)


def _package_of(path: Path) -> tuple[str, ...]:
    try:
        return ("offtangent", *path.parent.relative_to(PACKAGE).parts)
    except ValueError:
        return ()


@cache
def _hash_of_file(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return hashlib.sha256("\n".join(_bare(node) for node in tree.body if not _is_text(node)).encode()).hexdigest()


@cache
def _imports_of_file(path: Path) -> tuple[str, ...]:
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8")).body, _package_of(path)))
