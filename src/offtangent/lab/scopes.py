"""Which names inside a definition are its own, and what the others stand for."""

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from offtangent.lab.sources import Definition, External, Meaning, Module, Target
from offtangent.lab.syntax import COMPREHENSIONS, FUNCTIONS, SCOPES, bound_in, names_in


@dataclass
class Scope:
    """The names of one function, lambda or comprehension; those it imports stand for something of a module."""

    bound: frozenset[str]
    imported: dict[str, Target] = field(default_factory=dict)  # only those that are bound nowhere else
    of_module: frozenset[str] = frozenset()  # declared `global`
    loads: Counter[str] = field(default_factory=Counter)  # how often each name is read, in all of it
    of_class: bool = False  # functions in it do not see its names


@dataclass
class Names:
    """Looks names up from inside the scopes around them, as Python would."""

    module: Module
    scopes: list[Scope] = field(default_factory=list)

    def meaning(self, name: str) -> Meaning:
        """What a name stands for: None for a local variable, a builtin, or what is nowhere to be found."""
        for scope in self._seen():
            if name in scope.of_module:
                break
            if name in scope.imported:
                return self.module.project.follow(*scope.imported[name], frozenset())
            if name in scope.bound:
                return None
        return self.module.look_up(name)

    def is_local(self, name: str) -> bool:
        """Whether a name belongs to a function around it."""
        return any(name in scope.bound for scope in self._seen())

    def _seen(self) -> list[Scope]:
        return [one for one in reversed(self.scopes) if not one.of_class or one is self.scopes[-1]]

    def is_builtin(self, node: ast.expr) -> bool:
        """Whether this is a bare name that neither the module nor a function around it gives a meaning."""
        return isinstance(node, ast.Name) and not self.is_local(node.id) and self.meaning(node.id) is None

    def resolve(self, node: ast.expr) -> tuple[Meaning, list[str]]:
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
        """The scope of a function, a lambda, a comprehension or, for what stands in it directly, a class."""
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
        if isinstance(node, ast.ClassDef):
            return Scope(frozenset(bound_in(node.body)), of_class=True)
        assert isinstance(node, FUNCTIONS)
        own = list(_own(node))
        declared = [name for part in own if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names]
        of_module = frozenset(name for part in own if isinstance(part, ast.Global) for name in part.names)
        times = Counter([*_parameters(node.args), *bound_in(node.body)])
        parts = list(ast.walk(node))
        # What a function inside binds anew may be anything.
        times.update(name for part in parts if isinstance(part, ast.Nonlocal) for name in part.names)
        targets: dict[str, list[Target]] = {}
        for part in own:
            if isinstance(part, ast.Import | ast.ImportFrom):
                for name, target in self.module.bindings(part):
                    targets.setdefault(name, []).append(target)
        imported = {
            name: several[0]
            for name, several in targets.items()
            if len(set(several)) == 1 and times[name] == len(several) and name not in declared
        }
        loads = Counter(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))
        return Scope(frozenset({*times} - {*declared}), imported, of_module, loads)


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The parts of a function that do not lie in functions and classes within."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def _parameters(given: ast.arguments) -> list[str]:
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one.arg for one in every]
