"""What a cell's numbers depend on in the source: a change there makes old results stale, a change elsewhere not.

Content addressing: the hash of a definition is that of its normal form (`forms`), in which every name of the project is
replaced by the hash of what it stands for. What `run` and the cell's class reach counts, at any depth and wherever it
lies; a module that is moved, a function that is renamed, a docstring or a check of input changes nothing. What loading
a module does besides defining names (filling a registry, say) counts with every module that is loaded, in order. Where
code cannot be followed (`globals()`, `eval`, modules imported by a name made up at run time), whole modules count; and
where any of the code may catch what a check raises, or reads annotations, all checks and all annotations do.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import offtangent
from offtangent.lab.checks import Checks, all_changing
from offtangent.lab.effects import Effects, is_known
from offtangent.lab.forms import Form, Node, Writer
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Module, Project, content_of
from offtangent.lab.syntax import loaded_by

PACKAGE = Path(offtangent.__file__).parent
COMBINED = ("offtangent.lab.slices", "combine")


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
    module = project.read(path)
    # What is remembered of users' files holds for this time only.
    graph = library if inside else Graph(project, library, Checks(all_changing(_reachable(module))))
    found = graph.fingerprint(*starts(module, kinds))
    own = [] if inside else [one.path for one in project.known.values() if one is not None]
    return replace(found, files={file: content_of(file) for file in own})


def starts(module: Module, kinds: Sequence[str]) -> tuple[Module, list[Definition | Module]]:
    """The module that an experiment's cells are run from, and what is looked at in it: `run`, and their classes."""
    homes = {kind: _slice_of(module, kind) for kind in kinds} or {"": module}
    module = next(iter(homes.values())) if len(set(homes.values())) == 1 else module
    roots = [home.look_up("run") or Definition(home, "*") for home in dict.fromkeys(homes.values())]
    roots += [home.look_up(kind) or Definition(home, "*") for kind, home in homes.items() if kind]
    return module, [one for one in roots if not isinstance(one, External)]


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


def _reachable(module: Module) -> list[Module]:
    """All modules of a user's that loading or running this one may load, as far as imports tell."""
    found = {module.path: module}
    waiting = [module]
    while waiting:
        one = waiting.pop()
        for name in one.imports_in(one.body):
            inner = one.project.find(name)
            if inner is not None and inner.project is module.project and inner.path not in found:
                found[inner.path] = inner
                waiting.append(inner)
    return list(found.values())


@cache
def _library(package: Path) -> "Graph":
    return Graph(Project(package))


@dataclass(eq=False)
class Graph:
    """All definitions that were reached so far, with what each refers to and, once known, its hash."""

    project: Project
    library: "Graph | None" = None
    checks: Checks = field(default_factory=Checks)
    effects: Effects = field(default_factory=Effects)
    definitions: dict[Node, Definition] = field(default_factory=dict)
    forms: dict[Node, Form] = field(default_factory=dict)
    hashes: dict[Node, str] = field(default_factory=dict)
    # By module, and by what is kept in forms: what loading it does, and the modules that it loads meanwhile, in order.
    doing: dict[tuple[Path, frozenset[str]], tuple[Form | Module, ...]] = field(default_factory=dict)
    judged: dict[Path, list[ast.stmt]] = field(default_factory=dict)

    def fingerprint(self, start: Module, roots: Sequence[Definition | Module]) -> Fingerprint:
        """The hash of the roots and of what loading all their modules does."""
        kept: frozenset[str] = frozenset()
        while (needs := kept | (reach := Reach(self, start, roots, kept)).follow()) != kept:
            kept = needs
        self._hash(reach.nodes)
        told = [self._digest(form) for form in reach.forms]
        forms = (*reach.forms, *(self.forms[node] for node in reach.nodes))
        packages = frozenset(External(name).package for form in forms for name in form.externals)
        return Fingerprint(_sha([*sorted(kept), *told])[:16], packages)

    def write(self, found: Definition, kept: frozenset[str], statements: list[ast.stmt]) -> Form:
        """The form of some statements of a module."""
        writer = Writer(found, kept, self.checks, self.definitions, self.of_loading(found.module))
        return writer.write(statements)

    def of_loading(self, module: Module) -> list[ast.stmt]:
        """The statements of a module that do more than give names their values."""
        if module.path not in self.judged:
            self.judged[module.path] = self.effects.of(module)
        return self.judged[module.path]

    def loading(self, module: Module, kept: frozenset[str]) -> tuple[Form | Module, ...]:
        """What loading a module does, in order: the packages around it are loaded first, and its imports in between."""
        key = module.path, kept
        if key not in self.doing:
            around = module.name.split(".")[:-1]
            names = [".".join(around[:i]) for i in range(1, len(around) + 1)]
            found: list[Form | Module | None] = [self.project.find(name) for name in names]
            whole = Definition(module, "*")
            if module.broken:
                found.append(self.write(whole, kept, []))
            for node in module.body:
                imports = loaded_by(node)
                found += [self.project.find(name) for name in module.imports_in(imports)]
                if any(node is one for one in self.of_loading(module)):
                    found.append(self.write(whole, kept, [node]))
            self.doing[key] = tuple(one for one in found if one is not None)
        return self.doing[key]

    def form(self, node: Node) -> Form:
        """The form of a definition; what is of the library is written once for all."""
        if self.library is not None and self.definitions[node].module.project is self.library.project:
            self.library.definitions[node] = self.definitions[node]
            form = self.library.form(node)
            for reference in form.references:
                self.definitions[reference] = self.library.definitions[reference]
            self.forms[node] = form
        if node not in self.forms:
            found = self.definitions[node]
            self.forms[node] = self.write(found, node.kept, found.statements)
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


@dataclass(eq=False)
class Reach:
    """What one experiment reaches, and what loading its modules does, in order."""

    graph: Graph
    start: Module
    roots: Sequence[Definition | Module]
    kept: frozenset[str]
    nodes: dict[Node, None] = field(default_factory=dict)
    forms: list[Form] = field(default_factory=list)

    def follow(self) -> set[str]:
        """Follow all references; if forms must keep more than they do, say what as soon as that is known."""
        graph, form = self.graph, Form()
        writer = Writer(Definition(self.start, "*"), self.kept, graph.checks, graph.definitions, form=form)
        for root in self.roots:
            writer.refer(Definition(root, "*") if isinstance(root, Module) else root)
        self.forms.append(form)
        seen: set[Path] = set()
        waiting: list[Node | Module | Form] = [*reversed(form.references), self.start]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Module):
                if one.path not in seen and not is_known(Definition(one, "*")):
                    seen.add(one.path)
                    waiting += reversed(graph.loading(one, self.kept))
                continue
            if isinstance(one, Form):
                self.forms.append(one)
            elif one in self.nodes:
                continue
            else:
                self.nodes[one] = None
                waiting.append(graph.definitions[one].module)
                one = graph.form(one)
            if one.needs - self.kept:
                return one.needs
            waiting += [*reversed(one.references), *reversed(one.modules)]
        return set()


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
