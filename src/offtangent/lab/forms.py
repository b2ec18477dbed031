"""The normal form of a definition: what of its syntax can change a number, as text with references in it.

Left out are texts standing by themselves, comments, layout, annotations, the definition's own name, and statements that
only check and raise. A name of the project becomes a reference to what it stands for, one of another package its full
name, so that neither a moved module nor another way of importing it makes a difference.
"""

import ast
from dataclasses import dataclass, field

from offtangent.lab.checks import LEAVES, Checks, goes_on
from offtangent.lab.scopes import Names
from offtangent.lab.sources import COMPREHENSIONS, Definition, External, Module, is_text

UNFOLLOWED = frozenset(("globals", "locals", "vars"))
UNFOLLOWED_ATTRIBUTES = frozenset(("__subclasses__", "__globals__", "__dict__"))
RUNNERS = frozenset(("eval", "exec", "compile", "__import__"))  # of text that may name anything
READERS = ("inspect.", "typing.get_type_hints", "ast.")  # of sources and annotations, which no normal form holds
READ_ATTRIBUTES = frozenset(("__annotations__", "__doc__", "__code__"))
IMPORTERS = (
    "pickle.",
    "dill.",
    "cloudpickle.",
    "joblib.load",
    "importlib.import_module",
    "importlib.util",
    "importlib.machinery",
    "runpy.",
    "pkgutil.",
    "sys.modules",
)
# Bases and decorators for which the types in annotations make no difference.
UNTYPED_BASES = ("equinox.", "typing.", "enum.", "abc.", "collections.abc.", "builtins.", "flax.nnx.", "flax.linen.")
SWALLOWING = ("contextlib.suppress", "contextlib.ExitStack", "contextlib.AsyncExitStack", "unittest.", "pytest.")
KEPT_TYPES = frozenset(("ClassVar", "InitVar", "KW_ONLY"))


@dataclass(frozen=True)
class Node:
    """A definition in the graph of all that is reached; `strict` ones keep their checks, since somebody catches."""

    path: str
    name: str
    strict: bool


@dataclass
class Form:
    """Pieces of text and references, in order, and the packages that are named."""

    parts: list["str | Node"] = field(default_factory=list)
    externals: set[str] = field(default_factory=set)
    modules: list[Module] = field(default_factory=list)  # that functions import when they are called

    @property
    def references(self) -> list[Node]:
        return list(dict.fromkeys(part for part in self.parts if isinstance(part, Node)))


@dataclass
class Writer:
    """Writes the normal form of one definition."""

    found: Definition
    strict: bool
    checks: Checks
    definitions: dict[Node, Definition]
    form: Form = field(default_factory=Form)

    def __post_init__(self) -> None:
        self.names = Names(self.found.module)
        self.in_class = False

    def write(self, statements: list[ast.stmt]) -> Form:
        """The form of these top-level statements."""
        self.body(statements)
        return self.form

    def put(self, text: str) -> None:
        self.form.parts.append(text)

    def refer(self, definition: Definition) -> None:
        node = Node(str(definition.module.path), definition.name, self.strict)
        self.definitions[node] = definition
        self.form.parts.append(node)

    def refer_whole(self, module: Module) -> None:
        self.refer(Definition(module, "*"))

    def body(self, statements: list[ast.stmt]) -> None:
        self.put("{")
        for node in statements:
            if is_text(node) or isinstance(node, ast.Pass | ast.Global | ast.Nonlocal):
                continue
            if self.strict or not self.checks.is_check(node, self.names):
                self.node(node)
        self.put("}")

    def node(self, part: object) -> None:
        """Write any piece of syntax."""
        if not isinstance(part, ast.AST):
            if isinstance(part, list):
                self.put("[")
                for item in part:
                    self.node(item)
                self.put("]")
            else:
                self.put(f"{part!r} ")
            return
        special = getattr(self, f"_{type(part).__name__}", None)
        if special is not None:
            special(part)
        elif isinstance(part, COMPREHENSIONS):
            with self.names.inside(part):
                self.fields(part)
        else:
            self.fields(part)

    def fields(self, part: ast.AST, without: tuple[str, ...] = ()) -> None:
        """A piece of syntax by its fields; the same in every version of Python, which add some and omit empty ones."""
        self.put(f"{type(part).__name__}(")
        for name, value in sorted(ast.iter_fields(part)):
            if value in (None, []) or name in (*without, "kind", "ctx", "type_comment"):
                continue
            self.put(f"{name}=")
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                self.body(value)
            else:
                self.node(value)
        self.put(")")

    def _Name(self, part: ast.Name) -> None:
        if isinstance(part.ctx, ast.Load):
            self._chain(part)
        elif not self.names.scopes and not self.in_class:  # the value matters, not what the module calls it
            self.put("self " if part.id == self.found.name else "other " if self.found.name != "*" else f"{part.id} ")
        else:
            self.put(f"{part.id} ")

    def _Attribute(self, part: ast.Attribute) -> None:
        if part.attr in UNFOLLOWED_ATTRIBUTES:
            self.refer_whole(self.found.module)
        if part.attr in READ_ATTRIBUTES:
            self.put(self.found.module.source)
        self._chain(part)

    def _chain(self, part: ast.Name | ast.Attribute) -> None:
        meaning, rest = self.names.resolve(part)
        if isinstance(meaning, External):
            self.form.externals.add(meaning.name)
            if meaning.name.startswith(IMPORTERS):
                self._imports_anything()
            if meaning.name.startswith(READERS):
                self.put(self.found.module.source)
            self.put(f"<{meaning.name}>")
        elif isinstance(meaning, Module):
            self.refer_whole(meaning)
        elif isinstance(meaning, Definition):
            self.refer(meaning)
            self.put("".join(f".{name}" for name in rest))
        elif isinstance(part, ast.Attribute):
            self.put("Attribute(")
            self.node(part.value)
            self.put(f".{part.attr})")
        else:
            if part.id in UNFOLLOWED and not self.names.is_local(part.id):
                self.refer_whole(self.found.module)
            if part.id in RUNNERS and not self.names.is_local(part.id):
                self._imports_anything()
            self.put(f"{part.id} ")

    def _imports_anything(self) -> None:
        """A module may be imported by a name made up at run time: all of the project's count."""
        module = self.found.module
        for found in (module, *module.project.everything(module)):
            self.refer_whole(found)

    def _Import(self, part: ast.Import | ast.ImportFrom) -> None:
        """What an import inside a function or a compound statement brings is told where it is used."""
        module = self.found.module
        for name in module.imports_in([part]):
            if (found := module.project.find(name)) is not None:
                self.form.modules.append(found)
        for name, (where, what) in module.bindings(part):
            meaning = module.project.follow(where, "" if what == "*" else what, frozenset())
            if isinstance(meaning, External):
                self.form.externals.add(meaning.name)
            if self.names.scopes:
                continue
            self.put(f"{'self' if name == self.found.name else 'other'}=")
            if isinstance(meaning, External):
                self.put(f"<{meaning.name}>")
            elif isinstance(meaning, Module):
                self.refer_whole(meaning)
            elif meaning is not None:
                self.refer(meaning)

    _ImportFrom = _Import

    def _FunctionDef(self, part: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        own = not self.names.scopes and not self.in_class
        decorated = [one for one in part.decorator_list if not self._is_known(one)]
        self.put(f"{type(part).__name__}(")
        if not own or decorated or self.found.name == "*":  # a method's name matters, and a registry may go by it
            self.put(f"{part.name} ")
        self.node(part.decorator_list)
        self._arguments(part.args, typed=bool(decorated))
        in_class, self.in_class = self.in_class, False
        with self.names.inside(part):
            self.body(part.body)
        self.in_class = in_class
        self.put(")")

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, part: ast.Lambda) -> None:
        self.put("Lambda(")
        self._arguments(part.args)
        with self.names.inside(part):
            self.node(part.body)
        self.put(")")

    def _arguments(self, given: ast.arguments, *, typed: bool = False) -> None:
        for group in ("posonlyargs", "args", "kwonlyargs", "vararg", "kwarg"):
            these = getattr(given, group) or []
            self.put(f"{group}(")
            for one in these if isinstance(these, list) else [these]:
                self.put(f"{one.arg} ")
                if typed and one.annotation is not None:
                    self.put(ast.unparse(one.annotation))
            self.put(")")
        self.node(given.defaults)
        self.node(given.kw_defaults)

    def _is_known(self, decorator: ast.expr) -> bool:
        """Whether a decorator is another package's: it goes by what the function does, not by its name or types."""
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        meaning, _ = self.names.resolve(target)
        builtin = isinstance(target, ast.Name) and target.id in ("property", "classmethod", "staticmethod")
        return builtin or (isinstance(meaning, External) and not meaning.name.endswith("register"))

    def _ClassDef(self, part: ast.ClassDef) -> None:
        bases = [self.names.resolve(base)[0] for base in part.bases]
        typed = any(isinstance(one, External) and not one.name.startswith(UNTYPED_BASES) for one in bases)
        self.put(f"ClassDef({part.name} ")
        for group in (part.bases, part.keywords, part.decorator_list):
            self.node(group)
        in_class, self.in_class = self.in_class, True
        typed, self.typed = getattr(self, "typed", False), typed
        self.body(part.body)
        self.in_class, self.typed = in_class, typed
        self.put(")")

    def _AnnAssign(self, part: ast.AnnAssign) -> None:
        """A field of a class counts even without a value; its type does where something other than a reader sees it."""
        if part.value is None and not self.in_class:
            return
        self.put("Assign(")
        self.node(part.target)
        if self.in_class:
            marks = KEPT_TYPES & {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(part.annotation)
                                  if isinstance(n, ast.Name | ast.Attribute)}  # fmt: skip
            self.put(ast.unparse(part.annotation) if self.typed else " ".join(sorted(marks)))
        if part.value is not None:
            self.node(part.value)
        self.put(")")

    def _Assign(self, part: ast.Assign) -> None:
        self.put("Assign(")
        for target in part.targets:
            self.node(target)
        self.node(part.value)
        self.put(")")

    def _Raise(self, part: ast.Raise) -> None:
        if self.strict:
            self.fields(part)
        else:
            self.put("Raise")

    def _Try(self, part: ast.Try | ast.TryStar) -> None:
        """What goes on after an error depends on where errors are raised: checks count inside, and in all it calls."""
        caught = any(goes_on(handler.body) for handler in part.handlers) or any(
            isinstance(one, LEAVES) for last in part.finalbody for one in ast.walk(last)
        )
        before, self.strict = self.strict, self.strict or caught
        self.body(part.body)
        self.strict = before
        self.fields(part, without=("body",))

    _TryStar = _Try

    def _Call(self, part: ast.Call) -> None:
        """A function that catches may call what it is given: there, checks count."""
        meaning, rest = self.names.resolve(part.func)
        functions = isinstance(meaning, Definition) and not rest and not self.checks.is_class(meaning)
        before = self.strict
        self.strict = before or (functions and isinstance(meaning, Definition) and self.checks.swallows(meaning))
        self.fields(part)
        self.strict = before

    def _With(self, part: ast.With | ast.AsyncWith) -> None:
        """A context may swallow what is raised in it: those that are not known to let it through count as catching."""
        self.put(f"{type(part).__name__}(")
        self.node(part.items)
        before, self.strict = self.strict, self.strict or any(map(self._may_swallow, part.items))
        self.body(part.body)
        self.strict = before
        self.put(")")

    _AsyncWith = _With

    def _may_swallow(self, item: ast.withitem) -> bool:
        called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
        meaning, rest = self.names.resolve(called)
        if isinstance(meaning, External):
            return meaning.name.startswith(SWALLOWING)
        if isinstance(meaning, Definition) and not rest:
            return self.checks.swallows(meaning)
        return not (isinstance(called, ast.Name) and called.id == "open")

    def _JoinedStr(self, part: ast.JoinedStr) -> None:
        """Versions of Python cut the plain text of an f-string into different pieces."""
        text = ""
        self.put("JoinedStr(")
        for piece in part.values:
            if isinstance(piece, ast.Constant):
                text += str(piece.value)
                continue
            self.put(repr(text))
            text = ""
            self.node(piece)
        self.put(f"{text!r})")
