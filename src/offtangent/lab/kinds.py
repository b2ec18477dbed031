"""What may become of the objects that names of modules stand for, as far as the statements that bind them tell."""

import ast
from dataclasses import dataclass, field
from enum import IntEnum

from offtangent.lab.checks import IMPURE, PURE_BUILTINS, PURE_METHODS, PURE_PACKAGES
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Module
from offtangent.lab.syntax import FUNCTIONS

CONSTANT_MAKERS = ("typing.", "re.compile", "pathlib.Path", "fractions.Fraction", "collections.namedtuple", "enum.")
WRAPPERS = ("functools.", "jax.", "equinox.")


class Kind(IntEnum):
    """What may become of the object that a name of a module stands for; the worst of its parts."""

    CODE = 0  # a function or a class
    CONSTANT = 1
    TABLE = 2  # a list or a table of constants
    READABLE = 3  # of anything; an array: reading leaves it as it was
    LIVE = 4  # an iterator, a generator of random numbers, an object with a state


@dataclass
class Kinds:
    """Judges names and expressions at the top level of modules; what it has found out it remembers."""

    known: dict[tuple[str, str], Kind] = field(default_factory=dict)

    def kind(self, found: Definition) -> Kind:
        """What may become of what a name at the top level stands for."""
        key = (str(found.module.path), found.name)
        if key not in self.known:
            self.known[key] = Kind.LIVE  # one that is made of itself
            self.known[key] = self._kind(found)
        return self.known[key]

    def _kind(self, found: Definition) -> Kind:
        if len(found.statements) != 1:
            overloaded = all(isinstance(one, ast.FunctionDef) for one in found.statements)
            return Kind.CODE if found.statements and overloaded else Kind.LIVE
        names = Names(found.module)
        match found.statements[0]:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return Kind.CODE
            case ast.Assign(value=value, targets=targets):
                kind = self.kind_of(value, names)
                plain = all(isinstance(one, ast.Name) for one in targets)
                return kind if plain or kind <= Kind.CONSTANT else Kind.LIVE
            case ast.AnnAssign(value=ast.expr() as value, target=ast.Name()):
                return self.kind_of(value, names)
        return Kind.CONSTANT if type(found.statements[0]).__name__ == "TypeAlias" else Kind.LIVE

    def kind_of(self, node: ast.expr, names: Names) -> Kind:
        """What may become of the value of an expression."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda() | ast.Compare():
                return Kind.CONSTANT
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                with names.inside(node):
                    value = node.value if isinstance(node, ast.DictComp) else node.elt
                    return _table(self.kind_of(value, names))
            case ast.List() | ast.Set() | ast.Dict():
                return _table(max([Kind.CONSTANT, *self._parts(node, names)]))
            case ast.Tuple() | ast.UnaryOp() | ast.BinOp() | ast.BoolOp() | ast.IfExp():
                return max([Kind.CONSTANT, *self._parts(node, names)])
            case ast.Name() | ast.Attribute():
                meaning, rest = names.resolve(node)
                if isinstance(meaning, Definition):
                    return max(self.kind(meaning), Kind.READABLE if rest else Kind.CODE)
                local = isinstance(node, ast.Name) and names.is_local(node.id)  # of a comprehension
                return Kind.CONSTANT if isinstance(meaning, External) or local or names.is_builtin(node) else Kind.LIVE
            case ast.Subscript(value=value) | ast.Starred(value=value):
                kind = self.kind_of(value, names)
                return Kind.CONSTANT if kind <= Kind.TABLE else kind
            case ast.Call():
                return self._kind_of_call(node, names)
        return Kind.LIVE

    def _parts(self, node: ast.expr, names: Names) -> list[Kind]:
        return [self.kind_of(one, names) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]

    def _kind_of_call(self, node: ast.Call, names: Names) -> Kind:
        meaning, rest = names.resolve(node.func)
        values = [*node.args, *(word.value for word in node.keywords)]
        given = max([Kind.CONSTANT, *(self.kind_of(one, names) for one in values)])
        if isinstance(meaning, External):
            if meaning.name.startswith(CONSTANT_MAKERS):
                return Kind.CONSTANT
            if meaning.name == "types.MappingProxyType":
                return given
            pure = meaning.name.startswith((*PURE_PACKAGES, *WRAPPERS)) and not meaning.name.startswith(IMPURE)
            return max(Kind.READABLE, given) if pure else Kind.LIVE
        if isinstance(meaning, Definition) and not rest:
            return max([given, *map(_made_of, meaning.statements)])
        if isinstance(node.func, ast.Attribute) and not isinstance(meaning, Module):
            root = self.kind(meaning) if isinstance(meaning, Definition) else self.kind_of(node.func.value, names)
            return max(Kind.READABLE, root) if node.func.attr in PURE_METHODS else Kind.LIVE
        name = node.func.id if isinstance(node.func, ast.Name) and names.is_builtin(node.func) else ""
        if name in ("tuple", "frozenset", "len", "range", "int", "float", "str", "bool", "min", "max", "sum", "round"):
            return Kind.CONSTANT if given <= Kind.TABLE else given
        known = name in PURE_BUILTINS and name not in ("zip", "enumerate", "reversed")
        return max(_table(Kind.CONSTANT), given) if known else Kind.LIVE


def _table(kind: Kind) -> Kind:
    return Kind.TABLE if kind <= Kind.CONSTANT else max(Kind.READABLE, kind)


def _made_of(node: ast.stmt) -> Kind:
    """What may become of an object of this class: of one without methods, only what is written into it."""
    words = [word for one in getattr(node, "decorator_list", []) if isinstance(one, ast.Call) for word in one.keywords]
    if any(word.arg == "frozen" and isinstance(word.value, ast.Constant) and word.value.value for word in words):
        return Kind.CONSTANT
    plain = isinstance(node, ast.ClassDef) and not node.bases and not any(isinstance(m, FUNCTIONS) for m in node.body)
    return Kind.READABLE if plain else Kind.LIVE
