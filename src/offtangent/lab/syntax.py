"""Small questions to syntax, whatever its names stand for."""

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a text standing by itself, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def names_in(node: ast.AST) -> list[str]:
    """Every name in a piece of syntax."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def bound_in(statements: list[ast.stmt]) -> list[str]:
    """The names that statements bind in the scope they stand in, not in functions and classes within.

    Each is told as often as it is bound.
    """
    bound: list[str] = []
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.append(node.name)
                continue
            case ast.Lambda():
                continue
            case ast.Import() | ast.ImportFrom():
                bound += [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bound.append(node.id)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.append(name)
            case ast.MatchMapping(rest=str(name)):
                bound.append(name)
        if isinstance(node, COMPREHENSIONS):  # its variables are its own, but for `:=`
            bound += [n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            continue
        waiting += ast.iter_child_nodes(node)
    return bound


def only_binds(node: ast.stmt) -> bool:
    """Whether loading this statement does nothing but give names their values."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in ast.walk(target)]
        return not any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts)
    return type(node).__name__ == "TypeAlias"


def never_run(node: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
    """Of `if TYPE_CHECKING:`, `if not TYPE_CHECKING:` and the program's own part, what is not run here, and what is."""
    test = ast.unparse(node.test)
    if test in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'"):
        return node.body, node.orelse
    return (node.orelse, node.body) if test in ("not TYPE_CHECKING", "not typing.TYPE_CHECKING") else None


def texts_in(node: ast.AST | None) -> list[str]:
    """The words of a text, or of all texts in a tuple, list or set; nothing for other syntax."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for part in node.elts for text in texts_in(part)]
    return node.value.split() if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def loaded_by(node: ast.AST) -> list[ast.stmt]:
    """The imports among this statement and those in it that run when a module is loaded: not those of functions."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [node]
    inside = () if isinstance(node, FUNCTIONS) else ast.iter_child_nodes(node)
    blocks = (one for one in inside if isinstance(one, ast.stmt | ast.ExceptHandler | ast.match_case))
    return [found for one in blocks for found in loaded_by(one)]
