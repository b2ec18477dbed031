"""What loading a module does besides giving names their values: filling a registry, drawing numbers, patching.

A statement at the top level is quiet if it is known to do no such thing. It may call what other packages have, and
functions and classes of the project that, with all that they mention, keep to themselves: they write to nothing but
what they made or were given, and of the variables of modules they read constants alone, and tables of constants. Lists
and arrays may be read by what is known to do no more. Every other statement is an effect, and so are those that bind a
name more than once, and all that read it meanwhile.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from offtangent.lab.checks import IMPURE, MUTATORS, PURE_BUILTINS, PURE_METHODS, only_reads
from offtangent.lab.kinds import CONSTANT_MAKERS, WRAPPERS, Kind, Kinds
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Module
from offtangent.lab.syntax import COMPREHENSIONS, is_text

# Rooms whose loading does nothing to numbers, and the function that only says where names of a package are.
NOT_NUMBERS = ("lab", "report", "cli", "__main__")
LAZILY = ("offtangent._lazy", "lazily")
NOISY = frozenset(
    ["exec", "eval", "compile", "__import__", "globals", "locals", "vars", "setattr", "delattr", "input", "breakpoint"]
)
NOISY_PACKAGES = (
    *IMPURE,
    *("random.", "importlib.", "runpy.", "sys.", "os.environ.", "os.putenv", "os.chdir", "os.system", "warnings."),
    *("jax.config.", "operator.setitem", "operator.delitem", "heapq.", "bisect.insort", "atexit.", "signal."),
    *("threading.", "multiprocessing.", "subprocess.", "decimal.", "locale.", "builtins.", "torch.", "unittest."),
    *("ctypes.", "contextvars.", "gc."),
)
QUIET_ANYWAY = ("numpy.random.default_rng", "numpy.random.Generator", "os.environ.get", "sys.exit")


@dataclass
class Effects:
    """Judges statements at the top level of modules; what it has found out it remembers."""

    kinds: Kinds = field(default_factory=Kinds)
    looks: dict[tuple[str, str], "frozenset[Definition] | None"] = field(default_factory=dict)

    def of(self, module: Module) -> list[ast.stmt]:
        """The statements of a module that are effects."""
        names = Names(module)
        several = {name: module.binding(name) for name in [*module.defined, *module.imported] if name != "__all__"}
        several = {name: [one for one in found if not _is_overload(one, names)] for name, found in several.items()}
        rebound = {name: found for name, found in several.items() if len(found) > 1}
        binding = {id(node) for found in rebound.values() for node in found}
        others = {id(node) for node in module.others}
        look = Look(self, names, rebound=frozenset(rebound))
        return [
            node
            for node in module.body
            if id(node) in binding | others
            or not (isinstance(node, ast.Import | ast.ImportFrom) or self._is_quiet(look, node))
        ]

    def _is_quiet(self, look: "Look", node: ast.stmt) -> bool:
        look.mentioned.clear()
        return look.quiet(node) and self.keep_to_themselves(look.mentioned)

    def keep_to_themselves(self, found: Iterable[Definition]) -> bool:
        """Whether functions, classes and constants, and all that they mention, write to nothing but their own."""
        waiting = [*found]
        seen = {*waiting}
        while waiting:
            if is_known(one := waiting.pop()):
                continue
            key = (str(one.module.path), one.name)
            if key not in self.looks:
                look = Look(self, Names(one.module), running=True)
                self.looks[key] = frozenset(look.mentioned) if all(map(look.quiet, one.statements)) else None
            if (mentioned := self.looks[key]) is None:
                return False
            waiting += mentioned - seen
            seen |= mentioned
        return True


@dataclass
class Look:
    """Looks through one statement, or, `running`, through all of a function or a class that is used.

    What a call is given may be run, and written to unless the call is known to do no more than read.
    """

    effects: Effects
    names: Names
    running: bool = False
    rebound: frozenset[str] = frozenset()
    mentioned: set[Definition] = field(default_factory=set)

    def quiet(self, node: ast.AST, given: bool = False, writes: bool = False) -> bool:
        """Whether this does nothing but make what is its own."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node)
            case ast.ClassDef():
                return self._class(node)
            case ast.Lambda():
                return self._all(node.args.defaults) and (not (given or self.running) or self._runs(node, [node.body]))
            case ast.Global():
                return False
            case ast.Import() | ast.ImportFrom():
                found = self.names.module.imports_in([node])
                return not self.running or not any(self.names.module.project.find(name) for name in found)
            case ast.Call():
                return self._call(node)
            case ast.Name() | ast.Attribute():
                return self._chain(node, given, writes)
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                return self._reads(value, given, writes) and self.quiet(index)
            case ast.Subscript(value=value, slice=index):
                return self._is_own(node) and self.quiet(value) and self.quiet(index)
            case ast.Starred(value=value):
                return self._reads(value, given, writes)
            case ast.Compare(left=left, comparators=others):
                return self.quiet(left) and all(self._reads(one, writes=False) for one in others)
            case ast.For() | ast.AsyncFor():
                return self._reads(node.iter) and self._all([node.target, *node.body, *node.orelse])
            case ast.AnnAssign(target=target, value=value):
                return self._all([target, value])
            case ast.arg():
                return True
        if isinstance(node, COMPREHENSIONS):
            first, *more = node.generators
            with self.names.inside(node):
                values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                tests = [test for one in node.generators for test in one.ifs]
                quiet = self._all([*values, *tests], given, writes) and all(self._reads(one.iter) for one in more)
            return quiet and self._reads(first.iter)
        return self._all(list(ast.iter_child_nodes(node)), given, writes)

    def _all(self, nodes: Sequence[ast.AST | None], given: bool = False, writes: bool = False) -> bool:
        return all(self.quiet(one, given, writes) for one in nodes if one is not None)

    def _reads(self, node: ast.expr, given: bool = True, writes: bool = True) -> bool:
        """Whether this is quiet where only the parts of what it stands for are taken."""
        meaning, rest = self.names.resolve(node)
        if isinstance(meaning, Definition) and not rest and self.effects.kinds.kind(meaning) is Kind.TABLE:
            self.mentioned.add(meaning)
            return meaning.name not in self.rebound
        return self.quiet(node, given, writes)

    def _runs(self, scope: ast.AST, nodes: Sequence[ast.AST]) -> bool:
        before, self.running = self.running, True
        with self.names.inside(scope):
            quiet = self._all(nodes)
        self.running = before
        return quiet

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        if not self._all(defaults) or not all(map(self._decorates, node.decorator_list)):
            return False
        # A default that can change is kept from call to call.
        fixed = all(self.effects.kinds.kind_of(one, self.names) <= Kind.CONSTANT for one in defaults)
        return not self.running or (fixed and self._runs(node, node.body))

    def _decorates(self, node: ast.expr) -> bool:
        return self._call(node if isinstance(node, ast.Call) else ast.Call(node, [], []))

    def _class(self, node: ast.ClassDef) -> bool:
        if self._is_noted(node) or not all(map(self._decorates, node.decorator_list)):
            return False
        with self.names.inside(node):
            values = [one.value for one in node.body if isinstance(one, ast.Assign | ast.AnnAssign) and one.value]
            fixed = not self.running or all(map(self._is_fixed, values))
            if not fixed or not self._all([one for one in node.body if not is_text(one)]):
                return False
        return self._all([*node.bases, *node.keywords])

    def _is_fixed(self, value: ast.expr) -> bool:
        """Whether a class's variable stays as it is; a field of a dataclass belongs to each object."""
        meaning = self.names.resolve(value.func)[0] if isinstance(value, ast.Call) else None
        is_field = isinstance(meaning, External) and meaning.name.endswith((".field", ".auto"))
        return is_field or self.effects.kinds.kind_of(value, self.names) <= Kind.CONSTANT

    def _is_noted(self, node: ast.ClassDef) -> bool:
        """Whether something of the project hears of a new class: a metaclass, or a base's `__init_subclass__`."""
        words = [word.value for word in node.keywords if word.arg == "metaclass"]
        if any(isinstance(self.names.resolve(word)[0], Definition) for word in words):
            return True
        for base in node.bases:
            meaning, _ = self.names.resolve(base)
            for one in meaning.statements if isinstance(meaning, Definition) else []:
                if not isinstance(one, ast.ClassDef):
                    return self.effects.kinds.kind(meaning) > Kind.CONSTANT  # type: ignore[arg-type]
                hears = any(isinstance(m, ast.FunctionDef) and m.name == "__init_subclass__" for m in ast.walk(one))
                if hears or Look(self.effects, Names(meaning.module))._is_noted(one):  # type: ignore[union-attr]
                    return True
        return False

    def _is_own(self, node: ast.expr) -> bool:
        """Whether what is written to belongs to an object that a function made or was given."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            if isinstance(node, ast.Attribute) and node.attr in ("__class__", "__dict__", "__globals__"):
                return False
            node = node.value
        own = isinstance(node, ast.Name) and node.id not in ("cls", "mcs", "metacls") and self.names.is_local(node.id)
        return self.running and own

    def _chain(self, node: ast.Name | ast.Attribute, given: bool, writes: bool) -> bool:
        """A name, or attributes of one, that is read or written."""
        if not isinstance(node.ctx, ast.Load):
            return isinstance(node, ast.Name) or (self._is_own(node) and self.quiet(node.value))
        meaning, rest = self.names.resolve(node)
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.rebound and not self.names.is_local(root.id):
            return False
        if isinstance(meaning, Definition):
            kind = self.effects.kinds.kind(meaning)
            if kind > Kind.CONSTANT:
                return kind <= Kind.READABLE and not self.running and not writes and not MUTATORS & {*rest}
            if given or rest or self.running:
                self.mentioned.add(meaning)
            return True
        if isinstance(meaning, Module):
            return not given and not self.running
        if isinstance(meaning, External):
            return True
        if isinstance(node, ast.Attribute):
            hidden = node.attr in ("__dict__", "__globals__", "__subclasses__")
            return not hidden and self.quiet(node.value, given, writes)
        return node.id not in NOISY or not self.names.is_builtin(node)

    def _call(self, call: ast.Call) -> bool:
        func = call.func
        meaning, rest = self.names.resolve(func)
        if isinstance(meaning, Definition) and is_known(meaning):
            return True
        reads = isinstance(func, ast.Attribute) and func.attr in (*PURE_METHODS, "get")
        runs = True
        if isinstance(meaning, External):
            if meaning.name.startswith(NOISY_PACKAGES) and meaning.name not in QUIET_ANYWAY:
                return False
            runs = not meaning.name.startswith(WRAPPERS)  # these make of a function another
            reads = only_reads(meaning, call) or meaning.name.startswith((*CONSTANT_MAKERS, "types.MappingProxyType"))
        elif isinstance(meaning, Definition):
            kind = self.effects.kinds.kind(meaning)
            is_class = any(isinstance(one, ast.ClassDef) for one in meaning.statements)
            known = kind <= Kind.CONSTANT and (not rest or (len(rest) == 1 and (is_class or kind is Kind.CONSTANT)))
            if not known and not (rest and reads and self._reads(func.value, True, False)):  # type: ignore[attr-defined]
                return False
            if known and not self.quiet(func, given=True):
                return False
        elif isinstance(meaning, Module) or (isinstance(func, ast.Subscript) and not self.running):
            return False
        elif isinstance(func, ast.Name):
            reads = func.id in PURE_BUILTINS and self.names.is_builtin(func)
            if not (self.running or self.names.is_builtin(func)) or not self.quiet(func, given=True):
                return False
        elif not self.quiet(func.value if isinstance(func, ast.Attribute) else func, given=True, writes=not reads):
            return False
        elif self.names.scopes and not self.running and not reads:
            return False  # of a comprehension's variable, which may stand for anything
        for one in [*call.args, *(word.value for word in call.keywords)]:
            parts = any(one is word.value and word.arg is None for word in call.keywords)
            quiet = self._reads if reads or parts else self.quiet
            if not quiet(one, runs, not reads):
                return False
        return True


def is_known(found: Definition) -> bool:
    """Whether this is of a room that does nothing to numbers, or only says where names are."""
    parts = found.module.name.split(".")
    room = parts[1] if parts[0] == "offtangent" and len(parts) > 1 else ""
    return room in NOT_NUMBERS or (found.module.name, found.name) == LAZILY


def _is_overload(node: ast.stmt, names: Names) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(names.resolve(one)[0] == External("typing.overload") for one in decorators)
