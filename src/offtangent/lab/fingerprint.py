"""What a cell's numbers depend on in the source: a change there makes old results stale, a change elsewhere not.

Content addressing: the hash of a definition is that of its normal form (`forms`), in which every name of the project is
replaced by the hash of what it stands for. What `run` and the cell's class reach counts, at any depth and wherever it
lies; a module that is moved, a function that is renamed, a docstring or a check of input changes nothing. What loading
a module does besides defining names (filling a registry, say) counts with every module that is loaded. Where code
cannot be followed (`globals()`, `eval`, modules imported by a name made up at run time), whole modules count.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import offtangent
from offtangent.lab.checks import CHANGING, MUTATORS, Checks
from offtangent.lab.forms import Form, Node, Writer
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Module, Project, content_of

PACKAGE = Path(offtangent.__file__).parent
COMBINED = ("offtangent.lab.slices", "combine")
NOT_NUMBERS = ("lab", "report", "cli", "__main__")  # rooms whose loading does nothing to numbers


@dataclass(frozen=True)
class Fingerprint:
    """The hash of all code that a cell's numbers depend on, and the other packages which that code names."""

    code: str
    packages: frozenset[str]
    files: Mapping[Path, bytes] = field(default_factory=dict, compare=False, repr=False)  # a user's own, as read


def fingerprint(path: Path, kinds: Iterable[str] = (), *, package: Path = PACKAGE) -> Fingerprint:
    """Hash what `run` in an experiment's file depends on.

    Args:
        path: The experiment's file: a user's own, or one of offtangent's.
        kinds: The names of the classes of its cells; `run` need not name them.
        package: The folder of the offtangent that is meant, for an experiment of an earlier commit.

    Returns:
        The hash, the same on every version of Python, and the names of the packages. A second, at most, for the first
        experiment of a process; what is read of offtangent is kept.
    """
    asked = (path, tuple(sorted(set(kinds))), package)
    known = _KNOWN.get(asked)
    # Users' files are looked at again at every question, since they change under a long run.
    if known is None or any(content_of(file) != content for file, content in known.files.items()):
        known = _KNOWN[asked] = _compute(*asked)
    return known


_KNOWN: dict[tuple[Path, tuple[str, ...], Path], Fingerprint] = {}


def _compute(path: Path, kinds: Sequence[str], package: Path) -> Fingerprint:
    library = _library(package)
    inside = path.is_relative_to(package)
    project = library.project if inside else Project(package, path.parent, library.project)
    graph = library if inside else Graph(project, library, library.checks)
    module = project.read(path)
    homes = {kind: _slice_of(module, kind) for kind in kinds} or {"": module}
    module = next(iter(homes.values())) if len(set(homes.values())) == 1 else module
    roots = [home.look_up("run") or Definition(home, "*") for home in dict.fromkeys(homes.values())]
    roots += [home.look_up(kind) or Definition(home, "*") for kind, home in homes.items() if kind]
    found = graph.fingerprint(module, [one for one in roots if not isinstance(one, External)])
    own = [] if inside else [one.path for one in project.known.values() if one is not None]
    return replace(found, files={file: content_of(file) for file in own})


def _slice_of(module: Module, kind: str) -> Module:
    """Of an experiment that `lab.slices.combine` puts together, the slice that has the class of cells; else itself."""
    for node in module.defined.get("run", []):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = Names(module)
            made, _ = names.resolve(node.value.func)
            if isinstance(made, Definition) and (made.module.name, made.name) == COMBINED:
                slices = [names.resolve(one)[0] for one in node.value.args]
                return next((one for one in slices if isinstance(one, Module) and kind in one.defined), module)
    return module


@cache
def _library(package: Path) -> "Graph":
    return Graph(Project(package))


@dataclass(eq=False)
class Graph:
    """All definitions that were reached so far, with what each refers to and, once known, its hash."""

    project: Project
    library: "Graph | None" = None
    checks: Checks = field(default_factory=Checks)
    definitions: dict[Node, Definition] = field(default_factory=dict)
    forms: dict[Node, Form] = field(default_factory=dict)
    hashes: dict[Node, str] = field(default_factory=dict)
    doing: dict[str, tuple[Form, ...]] = field(default_factory=dict)  # by module: what loading it does

    def fingerprint(self, start: Module, roots: Sequence[Definition | Module]) -> Fingerprint:
        """The hash of the roots and of what loading all their modules does."""
        form = Form()
        writer = Writer(Definition(start, "*"), False, self.checks, self.definitions, form)
        for root in roots:
            writer.refer(Definition(root, "*") if isinstance(root, Module) else root)
        reached: dict[Node, None] = {}
        forms, seen = [form], set[Path]()
        modules = [start]
        waiting = list(form.references)
        while waiting or modules:
            while modules:
                module = modules.pop()
                if module.path not in seen and not _carries(module):
                    seen.add(module.path)
                    modules += self._loaded(module)
                    for effect in self._effects(module):
                        forms.append(effect)
                        waiting += effect.references
                        modules += effect.modules
            while waiting:
                node = waiting.pop()
                if node not in reached:
                    reached[node] = None
                    one = self._form(node)
                    waiting += one.references
                    modules += [self.definitions[node].module, *one.modules]
        self._hash(reached)
        told = [self._digest(form), *sorted(self._digest(effect) for effect in forms[1:])]
        externals = [name for one in (*forms, *(self.forms[node] for node in reached)) for name in one.externals]
        return Fingerprint(_sha(told)[:16], frozenset(External(name).package for name in externals))

    def _loaded(self, module: Module) -> Iterator[Module]:
        """The modules that loading one loads, and the packages that it lies in."""
        around = module.name.split(".")[:-1]
        for name in [*module.loaded, *(".".join(around[:i]) for i in range(1, len(around) + 1))]:
            if (found := self.project.find(name)) is not None:
                yield found

    def _effects(self, module: Module) -> tuple[Form, ...]:
        """What loading a module does besides giving names their values."""
        key = str(module.path)
        if key not in self.doing:
            names = Names(module)
            these = [node for node in module.body if node in module.others or self._registers(node, names)]
            found = Definition(module, "*")
            forms = [Writer(found, False, self.checks, self.definitions).write([node]) for node in these]
            self.doing[key] = tuple(form for form in forms if form.parts != ["{", "}"])
        return self.doing[key]

    def _registers(self, node: ast.stmt, names: Names) -> bool:
        """Whether a definition makes itself known elsewhere: by its decorator, its base class or a call."""
        if isinstance(node, ast.ClassDef) and any(self._takes_note(base, names) for base in node.bases):
            return True
        if isinstance(node, ast.ClassDef) and any(
            isinstance(names.resolve(word.value)[0], Definition) for word in node.keywords if word.arg == "metaclass"
        ):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            calls: list[ast.expr] = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            called = [part for part in _evaluated(node.value) if isinstance(part, ast.Call)]
            calls = [call.func for call in called if not self._makes(names.resolve(call.func)[0])]
            if any(self._changes(call, names) for call in called):
                return True
        else:
            return False
        for func in calls:
            meaning, rest = names.resolve(func)
            if isinstance(meaning, Module):
                return True
            if isinstance(meaning, Definition) and (
                self._note(rest, node) or (not rest and self.checks.fills(meaning))
            ):
                return True
        return False

    @staticmethod
    def _changes(call: ast.Call, names: Names) -> bool:
        """Whether a call may change something that has a name in a module: `_ = table.append(row)`."""
        if any(word.arg == "out" for word in call.keywords):
            return True
        meaning, rest = names.resolve(call.func)
        if isinstance(meaning, External):
            return meaning.name.startswith(CHANGING)
        return isinstance(meaning, Definition) and bool(rest) and rest[-1] in MUTATORS

    @staticmethod
    def _note(rest: Sequence[str], node: ast.stmt) -> bool:
        """A decorator that is a method of something of the project (`registry.add`) may well keep what it is given."""
        return bool(rest) and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)

    def _takes_note(self, base: ast.expr, names: Names) -> bool:
        meaning, _ = names.resolve(base)
        if not isinstance(meaning, Definition):
            return False
        for node in meaning.statements:
            if isinstance(node, ast.ClassDef):
                if any(isinstance(one, ast.FunctionDef) and one.name == "__init_subclass__" for one in node.body):
                    return True
                if any(self._takes_note(above, Names(meaning.module)) for above in node.bases):
                    return True
        return False

    @staticmethod
    def _makes(meaning: object) -> bool:
        return isinstance(meaning, Definition) and Checks.is_class(meaning)

    def _form(self, node: Node) -> Form:
        if self.library is not None and self.definitions[node].module.project is self.library.project:
            self.library.definitions[node] = self.definitions[node]
            form = self.library._form(node)
            for reference in form.references:
                self.definitions[reference] = self.library.definitions[reference]
            self.forms[node] = form
        if node not in self.forms:
            found = self.definitions[node]
            writer = Writer(found, node.strict, self.checks, self.definitions)
            self.forms[node] = writer.write(found.statements)
        return self.forms[node]

    def _hash(self, nodes: Iterable[Node]) -> None:
        """Hash definitions, those first that others refer to; ones that refer to each other in as many rounds."""
        for group in _components(nodes, lambda node: self.forms[node].references):
            if all(node in self.hashes for node in group):
                continue
            self.hashes |= dict.fromkeys(group, "")
            loop = len(group) > 1 or group[0] in self.forms[group[0]].references
            for _ in range(len(group) + 1 if loop else 1):
                self.hashes |= {node: self._digest(self.forms[node]) for node in group}

    def _digest(self, form: Form) -> str:
        return _sha(f"#{self.hashes[part]}" if isinstance(part, Node) else part for part in form.parts)


def _sha(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _evaluated(value: ast.expr) -> Iterator[ast.AST]:
    """All parts of an expression but the bodies of functions that it only puts into a table."""
    waiting: list[ast.AST] = [value]
    while waiting:
        node = waiting.pop()
        yield node
        table = isinstance(node, ast.Dict | ast.List | ast.Set | ast.Tuple)
        waiting += [one for one in ast.iter_child_nodes(node) if not (table and isinstance(one, ast.Lambda))]


def _carries(module: Module) -> bool:
    parts = module.name.split(".")
    return parts[0] == "offtangent" and len(parts) > 1 and parts[1] in NOT_NUMBERS


def _components(nodes: Iterable[Node], references: Callable[[Node], list[Node]]) -> Iterator[list[Node]]:
    """Tarjan's strongly connected components, those that are referred to first; without recursion."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on: set[Node] = set()
    for start in nodes:
        if start in index:
            continue
        work: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node, work: list[tuple[Node, Iterator[Node]]] = work) -> None:
            index[node] = low[node] = len(index)
            stack.append(node)
            on.add(node)
            work.append((node, iter(references(node))))

        enter(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group: list[Node] = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on.discard(group[-1])
                    yield group
            elif following not in index:
                enter(following)
            elif following in on:
                low[node] = min(low[node], index[following])
