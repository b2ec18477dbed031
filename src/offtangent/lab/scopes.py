"""Which names inside a definition are its own, and what the others stand for."""

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from offtangent.lab.sources import COMPREHENSIONS, Definition, External, Module, bound_in, names_in


@dataclass
class Scope:
    """The names of one function, lambda or comprehension; those it imports stand for something of a module."""

    bound: frozenset[str]
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    loads: Counter[str] = field(default_factory=Counter)  # how often each name is read, in all of it
    spent: frozenset[str] = frozenset()  # names of what may be an iterator, which a look uses up


@dataclass
class Names:
    """Looks names up from inside the scopes around them, as Python would."""

    module: Module
    scopes: list[Scope] = field(default_factory=list)

    def meaning(self, name: str) -> Definition | Module | External | None:
        """What a name stands for: None for a local variable, a builtin, or what is nowhere to be found."""
        for scope in reversed(self.scopes):
            if name in scope.imported:
                return self.module.project.follow(*scope.imported[name], frozenset())
            if name in scope.bound:
                return None
        return self.module.look_up(name)

    def is_local(self, name: str) -> bool:
        """Whether a name belongs to a function around it."""
        return any(name in scope.bound for scope in self.scopes)

    def is_used_up(self, node: ast.expr) -> bool:
        """Whether going through this may leave nothing of it: it may be an iterator."""
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "iter"
        for scope in reversed(self.scopes):
            if node.id in scope.bound:
                return node.id in scope.spent
        return False

    def resolve(self, node: ast.expr) -> tuple[Definition | Module | External | None, list[str]]:
        """What a name, or a chain of attributes on one, stands for, and the attributes that are left over."""
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None, chain
        meaning = self.meaning(node.id)
        while chain and isinstance(meaning, Module):
            meaning = meaning.attribute(chain.pop(0)) or Definition(meaning, "*")
        if isinstance(meaning, External):
            return External(".".join([meaning.name, *chain])), []
        return meaning, chain

    @contextmanager
    def inside(self, node: ast.AST) -> Iterator[None]:
        """The scope of a function, a lambda or a comprehension."""
        self.scopes.append(self._scope(node))
        try:
            yield
        finally:
            self.scopes.pop()

    def _scope(self, node: ast.AST) -> Scope:
        if isinstance(node, COMPREHENSIONS):
            return Scope(frozenset(name for part in node.generators for name in names_in(part.target)))
        if isinstance(node, ast.Lambda):
            return Scope(frozenset(_parameters(node.args)))
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        parts = list(ast.walk(node))
        elsewhere = {name for part in parts if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
        imported = {
            name: target
            for part in parts
            if isinstance(part, ast.Import | ast.ImportFrom)
            for name, target in self.module.bindings(part)
        }
        loads = Counter(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))
        bound = frozenset({*_parameters(node.args), *bound_in(node.body)} - elsewhere)
        return Scope(bound, imported, loads, frozenset(_iterators(node)))


ITERATORS = ("Iterator", "Iterable", "Generator", "Any", "object")
MAKERS = frozenset(("iter", "map", "filter", "zip", "enumerate", "reversed", "open"))


def _iterators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The names in a function that may stand for iterators: by their annotation, or by what they are given."""
    for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        if one.annotation is None or any(word in ast.unparse(one.annotation) for word in ITERATORS):
            yield one.arg
    for part in ast.walk(node):
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.NamedExpr) and part.value is not None:
            made = isinstance(part.value, ast.Call) and isinstance(part.value.func, ast.Name)
            if isinstance(part.value, ast.GeneratorExp) or (made and part.value.func.id in MAKERS):  # type: ignore[attr-defined]
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                yield from (name for target in targets for name in names_in(target))


def _parameters(given: ast.arguments) -> list[str]:
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one.arg for one in every]
