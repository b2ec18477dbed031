"""The normal form of a definition: what of its syntax can change a number, as text with references in it.

Left out are texts standing by themselves, comments, layout, annotations, the definition's own name, and statements that
only check and raise. A name of the project becomes a reference to what it stands for, one of another package its full
name, so that neither a moved module nor another way of importing it makes a difference.
"""

import ast
import re
from dataclasses import dataclass, field

from offtangent.lab.checks import Checks
from offtangent.lab.refusals import CATCHERS, LEAVES, goes_on, may_catch_refusals, refuses_input
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External, Meaning, Module
from offtangent.lab.syntax import COMPREHENSIONS, is_text

UNFOLLOWED = frozenset(("globals", "locals", "vars"))
UNFOLLOWED_ATTRIBUTES = frozenset(("__globals__", "__dict__"))
RUNNERS = frozenset(("eval", "exec", "compile", "__import__", "__builtins__", "__loader__", "__spec__"))  # of anything
READERS = ("inspect.", "typing.get_type_hints", "ast.")  # of sources and annotations, which no normal form holds
READ_ATTRIBUTES = frozenset(("__annotations__", "__doc__", "__code__", "__dataclass_fields__"))
IMPORTERS = (
    *("pickle.", "dill.", "cloudpickle.", "joblib.load", "runpy.", "pkgutil.", "subprocess.", "os.system", "os.popen"),
    *("importlib.import_module", "importlib.__import__", "importlib.reload", "importlib.util", "importlib.machinery"),
    *("inspect.getmodule", "inspect.currentframe", "inspect.stack", "inspect.getmembers", "os.exec", "os.spawn"),
    *("sys.modules", "sys._", "gc."),
)
MODULES = frozenset(("sys", "builtins", "importlib", "inspect"))  # passed on, they give all they have
# Bases and decorators for which the types in annotations make no difference.
UNTYPED_BASES = ("equinox.", "typing.", "enum.", "abc.", "collections.abc.", "builtins.", "flax.nnx.", "flax.linen.")
KEPT_TYPES = frozenset(("ClassVar", "InitVar", "KW_ONLY"))


@dataclass(frozen=True)
class Node:
    """A definition in the graph of all that is reached, with what its form keeps that is left out elsewhere."""

    path: str
    name: str
    kept: frozenset[str]


@dataclass
class Form:
    """Pieces of text and references, in order, and the packages that are named."""

    parts: list["str | Node"] = field(default_factory=list)
    externals: set[str] = field(default_factory=set)
    modules: list[Module] = field(default_factory=list)  # that functions import when they are called
    needs: set[str] = field(default_factory=set)  # what all forms have to keep, since this code looks at it

    @property
    def references(self) -> list[Node]:
        return list(dict.fromkeys(part for part in self.parts if isinstance(part, Node)))


@dataclass
class Writer:
    """Writes the normal form of one definition.

    What is kept are "checks" where a handler may take a refusal for an answer, and "annotations" where they are read.
    """

    found: Definition
    kept: frozenset[str]
    checks: Checks
    definitions: dict[Node, Definition]
    by_name: list[ast.stmt] = field(default_factory=list)  # statements of which it matters what they call their values
    form: Form = field(default_factory=Form)

    def __post_init__(self) -> None:
        self.names = Names(self.found.module)
        self.in_class = self.named = self.typed = False

    def write(self, statements: list[ast.stmt]) -> Form:
        """The form of these top-level statements."""
        if self.found.name == "*" and self.found.module.broken:
            self.put(self.found.module.source)
        self.put("{")
        for node in statements:
            self.named = self.found.name == "*" or any(node is one for one in self.by_name)
            self.body([node])
        self.put("}")
        return self.form

    def put(self, text: str) -> None:
        self.form.parts.append(text)

    def refer(self, definition: Definition) -> None:
        node = Node(str(definition.module.path), definition.name, self.kept)
        self.definitions[node] = definition
        self.form.parts.append(node)

    def refer_whole(self, module: Module) -> None:
        self.refer(Definition(module, "*"))

    def body(self, statements: list[ast.stmt]) -> None:
        self.put("{")
        for node in statements:
            if is_text(node) or isinstance(node, ast.Pass):
                continue
            if "checks" in self.kept or not self.checks.is_check(node, self.names):
                self.node(node)
        self.put("}")

    def node(self, part: object) -> None:
        """Write any piece of syntax."""
        if not isinstance(part, ast.AST):
            self.put("[" if isinstance(part, list) else f"{part!r} ")
            for item in part if isinstance(part, list) else ():
                self.node(item)
            self.put("]" if isinstance(part, list) else "")
            return
        special = getattr(self, f"_{type(part).__name__}", None)
        if special is not None:
            special(part)
        elif isinstance(part, COMPREHENSIONS):
            self.node(part.generators[0].iter)  # which is told apart from the comprehension's own variables
            with self.names.inside(part):
                self.fields(part)
        else:
            self.fields(part)

    def fields(self, part: ast.AST) -> None:
        """A piece of syntax by its fields; the same in every version of Python, which add some and omit empty ones."""
        self.put(f"{type(part).__name__}(")
        for name, value in sorted(ast.iter_fields(part)):
            if value in (None, []) or name in ("kind", "ctx", "type_comment"):
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
        elif self.names.scopes or self.in_class or self.named:
            self.put(f"{part.id} ")
        else:  # the value matters, not what the module calls it
            self.put("self " if part.id == self.found.name else "other ")

    def _Attribute(self, part: ast.Attribute) -> None:
        found, chain = {part.attr}, part.value
        while isinstance(chain, ast.Attribute):
            found.add(chain.attr)
            chain = chain.value
        if found & UNFOLLOWED_ATTRIBUTES:
            self.refer_whole(self.found.module)
        if "__subclasses__" in found:
            self._imports_anything()
        if found & READ_ATTRIBUTES:
            self.put(self.found.module.source)
        if found & {*READ_ATTRIBUTES, "type"}:  # as a dataclass's field has it
            self.form.needs.add("annotations")
        if found & {"exception", "submit"}:  # of what another thread raised, somebody may ask or nobody hear
            self.form.needs.add("checks")
        self._chain(part)

    def _chain(self, part: ast.Name | ast.Attribute) -> None:
        meaning, rest = self.names.resolve(part)
        if meaning is not None:
            self._meaning(meaning)
            self.put("".join(f".{name}" for name in rest))
        elif isinstance(part, ast.Attribute):
            self.put("Attribute(")
            self.node(part.value)
            self.put(f".{part.attr})")
        else:
            if self.names.is_builtin(part):
                self._builtin(part.id)
            self.put(f"{part.id} ")

    def _meaning(self, meaning: Meaning) -> None:
        if isinstance(meaning, External):
            self._external(meaning)
        elif isinstance(meaning, Definition):
            self.refer(meaning)
        elif isinstance(meaning, Module):
            self.refer_whole(meaning)
            for name in self.found.module.imports_in(self.found.module.body) if meaning.is_package else ():
                if name.startswith(f"{meaning.name}.") and (inside := meaning.project.find(name)):
                    self.refer_whole(inside)  # the package as a whole has it

    def _external(self, meaning: External) -> None:
        self.form.externals.add(meaning.name)
        self._builtin(meaning.name.removeprefix("builtins."))
        if meaning.name.startswith(IMPORTERS) or meaning.name in MODULES or meaning.name.endswith((".*eval", ".*exec")):
            self._imports_anything()
        if meaning.name.startswith(READERS):
            self.put(self.found.module.source)
            self.form.needs.add("annotations")
        if meaning.name.startswith(CATCHERS) and meaning.name != "warnings.warn":
            self.form.needs.add("checks")
        self.put(f"<{meaning.name}>")

    def _builtin(self, name: str) -> None:
        if name in UNFOLLOWED:  # variables of checks, too
            self.form.needs.add("checks")
            self.refer_whole(self.found.module)
        if name in RUNNERS:
            self._imports_anything()

    def _imports_anything(self) -> None:
        """A module may be imported by a name made up at run time, and catch: all of the project count as they are."""
        module = self.found.module
        self.form.needs.add("checks")
        for found in (module, *module.project.everything(module)):
            self.refer_whole(found)

    def _Import(self, part: ast.Import | ast.ImportFrom) -> None:
        """What an import brings is told where it is used, unless the name is bound in another way as well."""
        module = self.found.module
        for name in module.imports_in([part]):
            if (found := module.project.find(name)) is not None:
                self.form.modules.append(found)
        for name, (where, what) in module.bindings(part):
            own = self.found.name if self.found.name != "*" else ""
            meaning = module.project.follow(where, own if what == "*" else what, frozenset())
            if isinstance(meaning, External):
                self.form.externals.add(meaning.name)
            known = bool(self.names.scopes) and name in self.names.scopes[-1].imported
            if known or (own and name not in (own, "*") and part in module.body):
                continue
            told = name if self.named or self.names.scopes else "self" if name in (own, "*") else "other"
            self.put(f"{told}=")
            self._meaning(meaning)

    _ImportFrom = _Import

    def _FunctionDef(self, part: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorated = [one for one in part.decorator_list if not self._is_known(one)]
        self.put(f"{type(part).__name__}(")
        if (
            self.names.scopes or self.in_class or decorated or self.named
        ):  # a method's name matters, and a registry may go by it
            self.put(f"{part.name} ")
        if part.name.endswith("exit__") and any(isinstance(one, ast.Return) and one.value for one in ast.walk(part)):
            self.form.needs.add("checks")  # its answer may be that an error is forgotten
        self.node(part.decorator_list)
        self._arguments(part.args, typed=bool(decorated) or "annotations" in self.kept)
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
        bases = [one.name for base in part.bases if isinstance(one := self.names.resolve(base)[0], External)]
        typed = "annotations" in self.kept or not all(name.startswith(UNTYPED_BASES) for name in bases)
        self.put(f"ClassDef({part.name} ")
        for group in (part.bases, part.keywords, part.decorator_list):
            self.node(group)
        in_class, self.in_class = self.in_class, True
        typed, self.typed = self.typed, typed
        left_out = "checks" not in self.kept and self.checks.is_checking_method
        self.body([one for one in part.body if not (left_out and left_out(one, part, self.names))])
        self.in_class, self.typed = in_class, typed
        self.put(")")

    def _AnnAssign(self, part: ast.AnnAssign) -> None:
        """A field of a class counts even without a value; its type does where something other than a reader sees it."""
        if part.value is None and not self.in_class:
            return
        self.put("Assign(")
        self.node([part.target])
        if self.in_class:
            told = ast.unparse(part.annotation)  # which may be a text
            self.put(told if self.typed else " ".join(sorted(KEPT_TYPES & {*re.findall(r"\w+", told)})))
        if part.value is not None:
            self.node(part.value)
        self.put(")")

    def _Assign(self, part: ast.Assign) -> None:
        self.put("Assign(")
        self.node(part.targets)
        self.node(part.value)
        self.put(")")

    def _Raise(self, part: ast.Raise) -> None:
        if "checks" not in self.kept and refuses_input(part, self.names):
            self.put("Raise")
        else:
            self.fields(part)

    def _Try(self, part: ast.Try | ast.TryStar) -> None:
        """What goes on after an error depends on where errors are raised: then checks count, wherever they are."""
        catching = [one for one in part.handlers if may_catch_refusals(one.type, self.names)]
        dropped = any(isinstance(one, LEAVES) for last in part.finalbody for one in ast.walk(last))
        if dropped or any(goes_on(one.body, self.names) for one in catching):
            self.form.needs.add("checks")
        self.fields(part)

    _TryStar = _Try

    def _Call(self, part: ast.Call) -> None:
        """`suppress` catches what it names; passed on or called otherwise, who knows."""
        if any(word.arg == "return_exceptions" for word in part.keywords):
            self.form.needs.add("checks")
        suppresses = self.names.resolve(part.func)[0] == External("contextlib.suppress")
        if suppresses and not any(may_catch_refusals(one, self.names) for one in part.args):
            self.form.externals.add("contextlib")
            self.put("suppress")
            self.node(part.args)
        else:
            self.fields(part)

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
