"""Which statements only check and raise: they refuse input, and change no number of what they let pass.

A statement is a check if leaving it out changes nothing for input that passes: a condition that changes nothing
guards nothing but refusing, by an error of a few kinds that say so. A call counts as one only if it stands by itself,
and what it calls returns nothing and changes nothing. When in doubt it is none, so that the error is on the safe side:
going through something counts as changing it unless it is known to be no iterator, and so does an attribute that is a
method or a property in a class of the user's which does more than look. Where somebody may catch a refusal, no check
is left out at all.
"""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field

from offtangent.lab.refusals import LEAVES, always_raises, refuses_input
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Module
from offtangent.lab.syntax import FUNCTIONS, is_text

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
    "max", "mean", "min", "ravel", "reshape", "rpartition", "rsplit", "rstrip", "split", "startswith",
    "strip", "sum", "title", "tolist", "transpose", "union", "upper", "values",
))  # fmt: skip
PURE_PACKAGES = (
    "numpy.", "jax.numpy.", "jax.random.", "jax.tree.leaves", "jax.tree.structure", "jax.dtypes.", "jax.eval_shape",
    "jax.ShapeDtypeStruct", "math.", "operator.index", "dataclasses.", "equinox.is_", "jax.tree_util.",
)  # fmt: skip
IMPURE = (
    "numpy.random.", "numpy.copyto", "numpy.fill_diagonal", "numpy.place", "numpy.put", "numpy.save", "numpy.set",
    "numpy.load", "numpy.nditer", "numpy.fromiter", "numpy.apply_", "numpy.vectorize", "jax.tree_util.register",
    "math.fsum", "math.prod",
)  # fmt: skip
# Of one array; the next argument is where the result goes.
ONE_ARRAY = frozenset((
    "abs", "absolute", "cbrt", "ceil", "conj", "cos", "cosh", "exp", "exp2", "expm1", "floor", "invert", "isfinite",
    "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not", "negative", "positive", "reciprocal", "rint",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
))  # fmt: skip
GOING_THROUGH = frozenset((
    "all", "any", "dict", "enumerate", "frozenset", "list", "max", "min", "reversed", "set", "sorted", "sum", "tuple",
    "zip",
))  # fmt: skip
FRESH = frozenset(("range", "str", *GOING_THROUGH))  # what these give nobody else has
TABLES = (ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Set, ast.Dict)
DISPLAYS = (*TABLES, ast.ListComp, ast.SetComp, ast.DictComp)
# Methods that looking at an object never calls: it is made, called, gone through or written to.
NOT_LOOKING = frozenset((
    "__init__", "__post_init__", "__new__", "__init_subclass__", "__set_name__", "__class_getitem__", "__call__",
    "__iter__", "__next__", "__enter__", "__exit__", "__setattr__", "__delattr__", "__setitem__", "__delitem__",
    "__del__", "__set__", "__delete__", "__iadd__", "__isub__", "__imul__",
))  # fmt: skip


@dataclass
class Checks:
    """Judges statements; what it has found out of functions it remembers.

    `changing` has the names of methods and properties that do more than look, in classes whose objects may be checked.
    """

    changing: frozenset[str] = frozenset()
    pure: dict[tuple[str, str, bool], bool] = field(default_factory=dict)

    def is_check(self, node: ast.stmt, names: Names) -> bool:
        """Whether a statement only checks and raises."""
        match node:
            case ast.Assert():
                return self.is_pure(node.test, names)
            case ast.If():
                branches = (branch for branch in (node.body, node.orelse) if branch)
                return self.is_pure(node.test, names) and all(self._only_raises(one, names) for one in branches)
            case ast.For(orelse=[]):
                kept = self._is_private(node.target, node, names)
                return kept and self._is_pure_to_go_through(node.iter, names) and self._only_raises(node.body, names)
            case ast.Expr(value=ast.Call() as call):
                given = [*call.args, *(word.value for word in call.keywords)]
                return self._called(call, names, returns=False) and all(self.is_pure(one, names) for one in given)
        return False

    def is_checking_method(self, node: ast.stmt, kind: ast.ClassDef, names: Names) -> bool:
        """Whether this is a `__post_init__` that only checks: without it, none would be there."""
        if not isinstance(node, ast.FunctionDef) or node.name != "__post_init__" or kind.bases or node.decorator_list:
            return False
        with names.inside(node):
            return all(is_text(one) or isinstance(one, ast.Pass) or self.is_check(one, names) for one in node.body)

    def _only_raises(self, body: list[ast.stmt], names: Names) -> bool:
        if all(self.is_check(one, names) or is_text(one) or isinstance(one, ast.Pass) for one in body):
            return True
        parts = [part for one in body for part in ast.walk(one)]
        refuses = all(refuses_input(part, names) for part in parts if isinstance(part, ast.Raise))
        return refuses and always_raises(body) and not any(isinstance(part, LEAVES) for part in parts)

    def _is_private(self, target: ast.expr, loop: ast.stmt, names: Names) -> bool:
        """Whether a loop's variables are read in the loop alone; names of a comprehension may hide one that is not."""
        if not names.scopes:
            return False
        own = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
        reads = [part.id for part in ast.walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
        return _is_plain(target) and all(reads.count(name) == names.scopes[-1].loads[name] for name in own)

    def is_pure(self, node: ast.expr, names: Names, *, walrus: bool = False) -> bool:
        """Whether evaluating an expression changes nothing."""
        if any(name.startswith("__") for name in self.changing):
            return False  # operators, too, may do more than look
        for part in ast.walk(node):
            if isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) or (
                isinstance(part, ast.NamedExpr) and not walrus
            ):
                return False
            if isinstance(part, ast.Attribute) and part.attr in self.changing:
                return False
            if isinstance(part, ast.Call) and not self._called(part, names, returns=True):
                return False
            if not all(self._is_steady(one, names) for one in _gone_through(part)):
                return False
        return True

    def _is_pure_to_go_through(self, node: ast.expr, names: Names, *, walrus: bool = False) -> bool:
        return self._is_steady(node, names) and self.is_pure(node, names, walrus=walrus)

    def _is_steady(self, node: ast.expr, names: Names) -> bool:
        """Whether going through this leaves it as it was: it is known to be no iterator that somebody else has."""
        match node:
            case ast.Attribute(attr="shape"):
                return True
            case ast.Call(func=ast.Name(id=name)) if names.is_builtin(node.func):
                return name in FRESH
            case ast.Call(func=ast.Attribute(attr=name)) if names.resolve(node.func)[0] is None:
                return name in PURE_METHODS
            case ast.Call():
                meaning, _ = names.resolve(node.func)
                return isinstance(meaning, External) and meaning.name.startswith(PURE_PACKAGES)
            case ast.Name():
                meaning = names.meaning(node.id)
                made = meaning.statements if isinstance(meaning, Definition) else []
                value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign | ast.AnnAssign) else None
                return isinstance(value, DISPLAYS)
        return isinstance(node, DISPLAYS)

    def _called(self, call: ast.Call, names: Names, *, returns: bool) -> bool:
        """Whether a call changes nothing and, unless it may, returns nothing."""
        if any(word.arg in (None, "key") for word in call.keywords):
            return False
        meaning, rest = names.resolve(call.func)
        if isinstance(meaning, Definition) and not rest:
            return self.changes_nothing(meaning, returns=returns)
        if not returns and isinstance(meaning, External) and meaning.name == "warnings.warn":
            return True  # which is said, and changes no number
        if not returns or isinstance(meaning, Definition | Module) or not self._looks(call, names):
            return False
        if isinstance(meaning, External):
            return only_reads(meaning, call)
        if isinstance(call.func, ast.Name):
            return call.func.id in PURE_BUILTINS and names.is_builtin(call.func) and hasattr(builtins, call.func.id)
        return isinstance(call.func, ast.Attribute) and call.func.attr in PURE_METHODS

    def _looks(self, call: ast.Call, names: Names) -> bool:
        """Whether what is given to something pure does no more than look either, if that calls it or asks for it."""
        for one in call.args:
            meaning, rest = names.resolve(one)
            function = isinstance(meaning, Definition) and any(isinstance(m, FUNCTIONS) for m in meaning.statements)
            if (
                isinstance(meaning, Definition)
                and function
                and (rest or not self.changes_nothing(meaning, returns=True))
            ):
                return False
            if isinstance(one, ast.Attribute) and one.attr in MUTATORS:
                return False
        if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr") and self.changing:
            return (
                len(call.args) > 1
                and isinstance(asked := call.args[1], ast.Constant)
                and asked.value not in self.changing
            )
        return True

    def changes_nothing(self, found: Definition, *, returns: bool) -> bool:
        """Whether a function of the project changes nothing and, unless it may, returns nothing."""
        known = (str(found.module.path), found.name, returns)
        if known not in self.pure:
            self.pure[known] = False  # one that calls itself is not looked through
            statements = found.statements
            if len(statements) == 1 and isinstance(node := statements[0], ast.FunctionDef) and not node.decorator_list:
                self.pure[known] = self._only_looks(node, Names(found.module), returns)
        return self.pure[known]

    def _only_looks(self, function: ast.FunctionDef, names: Names, returns: bool) -> bool:
        with names.inside(function):
            return self._harmless(function.body, names, returns)

    def _harmless(self, body: list[ast.stmt], names: Names, returns: bool) -> bool:
        return all(self._harmless_one(node, names, returns) for node in body)

    def _harmless_one(self, node: ast.stmt, names: Names, returns: bool) -> bool:
        match node:
            case ast.Pass() | ast.Break() | ast.Continue():
                return True
            case ast.Raise():
                return refuses_input(node, names)
            case ast.Import() | ast.ImportFrom():  # loading a module may do anything
                return not any(names.module.project.find(name) for name in names.module.imports_in([node]))
            case ast.Return(value=value):
                nothing = value is None or (isinstance(value, ast.Constant) and value.value is None)
                return nothing or (returns and value is not None and self.is_pure(value, names, walrus=True))
            case ast.Assign(targets=targets, value=value):
                several = any(isinstance(one, ast.Tuple | ast.List) for one in targets)
                plain = all(map(_is_plain, targets)) and (not several or self._is_steady(value, names))
                return plain and self.is_pure(value, names, walrus=True)
            case ast.AnnAssign(target=target, value=value):
                return _is_plain(target) and (value is None or self.is_pure(value, names, walrus=True))
            case ast.If():
                inner = [*node.body, *node.orelse]
                return self.is_pure(node.test, names, walrus=True) and self._harmless(inner, names, returns)
            case ast.For():
                inner = [*node.body, *node.orelse]
                plain = _is_plain(node.target) and self._is_pure_to_go_through(node.iter, names, walrus=True)
                return plain and self._harmless(inner, names, returns)
            case ast.Try():
                handlers = [one for handler in node.handlers for one in handler.body]
                return self._harmless([*node.body, *handlers, *node.orelse, *node.finalbody], names, returns)
        return is_text(node) or self.is_check(node, names)

    def does_more(self, method: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> bool:
        """Whether a method or a property may do more than look: it writes, uses something up, or calls what may."""
        called = [one.func if isinstance(one, ast.Call) else one for one in method.decorator_list]
        known = all(isinstance(names.resolve(one)[0], External) or names.is_builtin(one) for one in called)
        with names.inside(method):
            return not known or any(self._writes(part, names) for part in ast.walk(method))

    def _writes(self, part: ast.AST, names: Names) -> bool:
        match part:
            case ast.Attribute(ctx=ast.Load(), attr=name):
                return name in MUTATORS or name in self.changing
            case ast.Attribute() | ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom():
                return True
            case ast.Subscript(ctx=context):
                return not isinstance(context, ast.Load)
            case ast.Call(func=ast.Name(id="next" | "setattr" | "delattr")):
                return True
            case ast.Call(func=func) if isinstance(found := names.resolve(func)[0], Definition):
                made = any(isinstance(one, ast.ClassDef) for one in found.statements)
                return not made and not self.changes_nothing(found, returns=True)
            case ast.For(iter=one):
                return not self._is_steady(one, names)
        return not all(self._is_steady(one, names) for one in _gone_through(part))


def only_reads(meaning: External, call: ast.Call) -> bool:
    """Whether something of another package, called in this way, changes nothing that it is given."""
    if not meaning.name.startswith(PURE_PACKAGES) or meaning.name.startswith(IMPURE) or meaning.name.endswith(".at"):
        return False
    into = len(call.args) > (1 if meaning.name.rpartition(".")[2] in ONE_ARRAY else 2) and not isinstance(
        call.args[-1], ast.Constant
    )
    written = meaning.name.startswith("numpy.") and into and meaning.name != "numpy.where"
    return "*" not in meaning.name and not written and all(word.arg != "out" for word in call.keywords)


def _gone_through(part: ast.AST) -> list[ast.expr]:
    """What evaluating this goes through from end to end."""
    match part:
        case ast.comprehension(iter=one):
            return [one]
        case ast.Call(func=ast.Name(id=name), args=[one]) if name in GOING_THROUGH:
            return [] if isinstance(one, ast.GeneratorExp) else [one]
        case ast.Call(func=ast.Name(id="zip" | "dict"), args=given):
            return list(given)
        case ast.Call(func=ast.Name(id="enumerate" | "sum"), args=[one, *_]):
            return [one]
        case ast.Call(func=ast.Attribute(attr="join" | "union" | "intersection" | "difference" | "isdisjoint"
                                         | "issubset" | "issuperset"), args=given):  # fmt: skip
            return [one for one in given if not isinstance(one, ast.GeneratorExp)]
        case ast.Compare(ops=ops, comparators=given):
            return [one for op, one in zip(ops, given, strict=True) if isinstance(op, ast.In | ast.NotIn)]
        case ast.Starred(value=one):
            return [one]
    return []


def _is_plain(target: ast.expr) -> bool:
    return not any(isinstance(part, ast.Attribute | ast.Subscript) for part in ast.walk(target))


def all_changing(modules: Sequence[Module]) -> frozenset[str]:
    """The names of methods and properties in the modules' classes that do more than look, as far as is known.

    A table that makes what it does not have counts as one whose `[]` does.
    """
    syntax = [(Names(module), part) for module in modules for top in module.body for part in ast.walk(top)]
    tables = [part for _, part in syntax if isinstance(part, ast.alias | ast.Attribute)]
    growing = any("defaultdict" in (getattr(one, "name", ""), getattr(one, "attr", "")) for one in tables)
    found = frozenset({"__missing__"} if growing else ())
    parts = [(names, one) for names, kind in syntax if isinstance(kind, ast.ClassDef) for one in kind.body]
    methods = [(names, one) for names, one in parts if isinstance(one, FUNCTIONS) and one.name not in NOT_LOOKING]
    while True:
        checks = Checks(found)
        more = found | {one.name for names, one in methods if checks.does_more(one, names)}
        if more == found:
            return found
        found = more
