"""Which statements only check and raise: they refuse input, and change no number of what they let pass.

A statement is a check if leaving it out changes nothing for input that passes: a condition that changes nothing
guards nothing but raising. A call counts as one only if it stands by itself, and what it calls returns nothing and
changes nothing. When in doubt it is none, so that the error is on the safe side.
"""

import ast
import builtins
from dataclasses import dataclass, field

from offtangent.lab.scopes import Names
from offtangent.lab.sources import SCOPES, Definition, External, is_text

# What code may be asked by raising, instead of being told that its input is refused.
SIGNALS = frozenset((
    "StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt", "SystemExit", "AttributeError",
    "LookupError", "IndexError", "KeyError", "BaseException", "Exception", "ImportError", "OSError",
    "NotImplementedError",
))  # fmt: skip
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
MUTATORS = frozenset((
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "register",
    "remove", "reverse", "setdefault", "sort", "update", "write", "writelines", "__setitem__", "__setattr__", "fill",
    "itemset", "partition", "put", "push", "resize", "setfield", "setflags",
))  # fmt: skip
PURE_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate", "float",
    "format", "frozenset", "getattr", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "len", "list",
    "max", "min", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "tuple", "type", "zip",
))  # fmt: skip
PURE_METHODS = frozenset((
    "all", "any", "argmax", "argmin", "astype", "diagonal", "difference", "dot", "endswith",
    "exists", "format", "intersection", "is_dir", "is_file", "is_integer", "isascii", "isdigit",
    "isdisjoint", "isidentifier", "issubset", "issuperset", "item", "items", "join", "keys", "lower", "lstrip",
    "max", "mean", "min", "partition", "ravel", "reshape", "rpartition", "rsplit", "rstrip", "split", "startswith",
    "strip", "sum", "title", "tolist", "transpose", "union", "upper", "values",
))  # fmt: skip
PURE_PACKAGES = (
    "numpy.", "jax.numpy.", "jax.random.", "jax.tree.leaves", "jax.tree.structure", "jax.dtypes.", "jax.eval_shape",
    "jax.ShapeDtypeStruct", "math.", "operator.", "dataclasses.", "inspect.", "itertools.",
)  # fmt: skip
IMPURE = (
    "numpy.random.", "numpy.copyto", "numpy.fill_diagonal", "numpy.place", "numpy.put", "numpy.save", "numpy.set",
    "numpy.load", "numpy.nditer",
)  # fmt: skip


GOING_THROUGH = frozenset((
    "all", "any", "dict", "enumerate", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple", "zip",
))  # fmt: skip
CHANGING = (*IMPURE, "heapq.", "bisect.insort", "random.shuffle", "operator.setitem", "operator.i", "sys.modules")


@dataclass
class Checks:
    """Judges statements; what it has found out of functions it remembers."""

    pure: dict[tuple[str, str, bool], bool] = field(default_factory=dict)
    filling: dict[tuple[str, str], bool] = field(default_factory=dict)

    def is_check(self, node: ast.stmt, names: Names) -> bool:
        """Whether a statement only checks and raises."""
        match node:
            case ast.Assert():
                return self.is_pure(node.test, names)
            case ast.If():
                branches = (branch for branch in (node.body, node.orelse) if branch)
                return self.is_pure(node.test, names) and all(self._only_raises(one, names) for one in branches)
            case ast.For(orelse=[]) if not names.is_used_up(node.iter):
                kept = self._is_private(node.target, node, names)
                return kept and self.is_pure(node.iter, names) and self._only_raises(node.body, names)
            case ast.Expr(value=ast.Call() as call):
                given = [*call.args, *(word.value for word in call.keywords)]
                return self._called(call, names, returns=False) and all(self.is_pure(one, names) for one in given)
        return False

    def _only_raises(self, body: list[ast.stmt], names: Names) -> bool:
        if all(self.is_check(one, names) or is_text(one) or isinstance(one, ast.Pass) for one in body):
            return True
        parts = [part for one in body for part in ast.walk(one)]
        refuses = all(self._refuses(part, names) for part in parts if isinstance(part, ast.Raise))
        return refuses and _always_raises(body) and not any(isinstance(part, LEAVES) for part in parts)

    @staticmethod
    def _refuses(node: ast.Raise, names: Names) -> bool:
        """Whether what is raised says that input is refused, and is no way of answering."""
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if error is None:
            return False
        meaning, rest = names.resolve(error)
        if isinstance(meaning, Definition) and not rest:  # a class of the project, by what it is a kind of
            bases = [base for one in meaning.statements if isinstance(one, ast.ClassDef) for base in one.bases]
            above = Names(meaning.module)
            return bool(bases) and all(
                isinstance(base, ast.Name) and above.meaning(base.id) is None and base.id not in SIGNALS - {"Exception"}
                for base in bases
            )
        builtin = meaning is None and isinstance(error, ast.Name) and not names.is_local(error.id)
        return builtin and isinstance(error, ast.Name) and error.id not in SIGNALS

    def _is_private(self, target: ast.expr, loop: ast.stmt, names: Names) -> bool:
        """Whether a loop's variables are read in the loop alone; names of a comprehension may hide one that is not."""
        if not names.scopes:
            return False
        own = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
        reads = [part.id for part in ast.walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        return all(reads.count(name) == names.scopes[-1].loads[name] for name in own)

    def is_pure(self, node: ast.expr, names: Names, *, walrus: bool = False) -> bool:
        """Whether evaluating an expression changes nothing."""
        for part in ast.walk(node):
            if isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) or (
                isinstance(part, ast.NamedExpr) and not walrus
            ):
                return False
            if isinstance(part, ast.Call) and not self._called(part, names, returns=True):
                return False
            if any(map(names.is_used_up, _gone_through(part))):
                return False
        return True

    def _called(self, call: ast.Call, names: Names, *, returns: bool) -> bool:
        """Whether a call changes nothing and, unless it may, returns nothing."""
        if any(word.arg in (None, "out") for word in call.keywords):
            return False
        meaning, rest = names.resolve(call.func)
        if isinstance(meaning, Definition) and not rest:
            return self.changes_nothing(meaning, returns=returns)
        if not returns and isinstance(meaning, External) and meaning.name == "warnings.warn":
            return True  # which is said, and changes no number
        if not returns or isinstance(meaning, Definition):
            return False
        if isinstance(meaning, External):
            return meaning.name.startswith(PURE_PACKAGES) and not meaning.name.startswith(IMPURE)
        if isinstance(call.func, ast.Name):
            name = call.func.id
            return name in PURE_BUILTINS and not names.is_local(name) and hasattr(builtins, name)
        return isinstance(call.func, ast.Attribute) and call.func.attr in PURE_METHODS

    def changes_nothing(self, found: Definition, *, returns: bool) -> bool:
        """Whether a function of the project changes nothing and, unless it may, returns nothing."""
        known = (str(found.module.path), found.name, returns)
        if known not in self.pure:
            self.pure[known] = False  # one that calls itself is not looked through
            statements = found.statements
            if len(statements) == 1 and isinstance(node := statements[0], ast.FunctionDef) and not node.decorator_list:
                names = Names(found.module)
                with names.inside(node):
                    self.pure[known] = self._harmless(node.body, names, returns)
        return self.pure[known]

    def _harmless(self, body: list[ast.stmt], names: Names, returns: bool) -> bool:
        return all(self._harmless_one(node, names, returns) for node in body)

    def _harmless_one(self, node: ast.stmt, names: Names, returns: bool) -> bool:
        match node:
            case ast.Pass() | ast.Raise() | ast.Import() | ast.ImportFrom() | ast.Break() | ast.Continue():
                return True
            case ast.Return(value=value):
                nothing = value is None or (isinstance(value, ast.Constant) and value.value is None)
                return nothing or (returns and value is not None and self.is_pure(value, names, walrus=True))
            case ast.Assign(targets=targets, value=value):
                return all(map(_is_plain, targets)) and self.is_pure(value, names, walrus=True)
            case ast.AnnAssign(target=target, value=value):
                return _is_plain(target) and (value is None or self.is_pure(value, names, walrus=True))
            case ast.If():
                inner = [*node.body, *node.orelse]
                return self.is_pure(node.test, names, walrus=True) and self._harmless(inner, names, returns)
            case ast.For() if not names.is_used_up(node.iter):
                inner = [*node.body, *node.orelse]
                plain = _is_plain(node.target) and self.is_pure(node.iter, names, walrus=True)
                return plain and self._harmless(inner, names, returns)
            case ast.Try():
                handlers = [one for handler in node.handlers for one in handler.body]
                return self._harmless([*node.body, *handlers, *node.orelse, *node.finalbody], names, returns)
        return is_text(node) or self.is_check(node, names)

    @staticmethod
    def is_class(found: Definition) -> bool:
        """Whether a name stands for a class of the project."""
        return any(isinstance(one, ast.ClassDef) for one in found.statements)

    def swallows(self, found: Definition) -> bool:
        """Whether something of the project may drop what is raised in its block, or by a function it is given.

        It does if it catches, or if its `__exit__` answers.
        """
        parts = [part for one in found.statements for part in ast.walk(one)]
        handlers = [one for part in parts if isinstance(part, ast.Try | ast.TryStar) for one in part.handlers]
        if any(goes_on(one.body) for one in handlers):
            return True
        exits = [one for one in parts if isinstance(one, ast.FunctionDef) and one.name in ("__exit__", "__aexit__")]
        if self.is_class(found) and not exits:
            return True  # inherited from who knows where
        return any(isinstance(part, ast.Return) and part.value is not None for one in exits for part in ast.walk(one))

    def fills(self, found: Definition) -> bool:
        """Whether calling something of the project may change what is not its own, such as a registry."""
        known = (str(found.module.path), found.name)
        if known not in self.filling:
            self.filling[known] = False
            functions = [node for node in found.statements if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            self.filling[known] = len(functions) != len(found.statements) or any(
                self._fills(node, Names(found.module)) for node in functions
            )
        return self.filling[known]

    def _filling_function(self, found: Definition) -> bool:
        return not any(isinstance(one, ast.ClassDef) for one in found.statements) and self.fills(found)

    def _fills(self, function: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> bool:
        with names.inside(function):
            own = set(names.scopes[-1].bound)
            for node in ast.walk(function):
                if isinstance(node, SCOPES) and node is not function:  # what is inside has names of its own
                    own |= names._scope(node).bound if not isinstance(node, ast.ClassDef) else set()
            for node in ast.walk(function):
                if isinstance(node, ast.Global):
                    return True
                if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                    if _root(node) not in own:
                        return True
                elif isinstance(node, ast.Call):
                    if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                        if _root(node.func) not in own:
                            return True
                    elif isinstance(node.func, ast.Name | ast.Attribute):
                        meaning, rest = names.resolve(node.func)
                        if isinstance(meaning, Definition) and not rest and self._filling_function(meaning):
                            return True
        return False


def _always_raises(body: list[ast.stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_raises(last.body) and _always_raises(last.orelse)
    return isinstance(last, ast.Raise)


def _gone_through(part: ast.AST) -> list[ast.expr]:
    """What evaluating this goes through from end to end."""
    match part:
        case ast.comprehension(iter=one):
            return [one]
        case ast.Call(func=ast.Name(id=name), args=given) if name in GOING_THROUGH:
            return [one.value if isinstance(one, ast.Starred) else one for one in given]
        case ast.Compare(ops=ops, comparators=given):
            return [one for op, one in zip(ops, given, strict=True) if isinstance(op, ast.In | ast.NotIn)]
        case ast.Starred(value=one):
            return [one]
    return []


def goes_on(body: list[ast.stmt]) -> bool:
    """Whether code goes on after these statements of a handler, on some way through them."""
    inside = any(isinstance(part, LEAVES) for one in body for part in ast.walk(one))
    return inside or not _always_raises(body)


def _is_plain(target: ast.expr) -> bool:
    return not any(isinstance(part, ast.Attribute | ast.Subscript) for part in ast.walk(target))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
