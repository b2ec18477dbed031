"""Errors that say that input is refused, and who may take them for an answer."""

import ast
import builtins

from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition, External

# What says that input is refused. Other errors may be a way of answering, such as StopIteration.
REFUSALS = frozenset(("ValueError", "TypeError", "RuntimeError", "AssertionError"))
# Errors of other packages that no refusal is a kind of; of Python's own that is known.
UNRELATED = (
    *("numpy.linalg.LinAlgError", "scipy.linalg.LinAlgError", "scipy.sparse.linalg.Arpack", "json.JSONDecodeError"),
    *("jax.errors.Concretization", "jax.errors.Tracer", "zlib.error", "gzip.BadGzipFile", "http.client.", "urllib."),
)
CATCHERS = (
    *("contextlib.suppress", "contextlib.ExitStack", "contextlib.AsyncExitStack", "unittest.", "pytest.", "warnings."),
    *("threading.Thread", "multiprocessing.", "sys.exc_info", "traceback.", "tenacity.", "backoff.", "retry"),
)
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


def refuses_input(node: ast.Raise, names: Names) -> bool:
    """Whether what is raised says that input is refused, and is no way of answering."""
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return error is not None and _kind_of(error, names) in ("refusal", "own refusal")


def _kind_of(error: ast.expr, names: Names) -> str:
    """What an error's class is: a refusal, one of the project's own, something unrelated, or unknown."""
    meaning, rest = names.resolve(error)
    if isinstance(meaning, Definition) and not rest:  # a class of the project, by what it is a kind of
        statements = meaning.statements
        if len(statements) == 1 and isinstance(kind := statements[0], ast.ClassDef) and not kind.keywords:
            above = Names(meaning.module)
            bases = [base.id if isinstance(base, ast.Name) and above.is_builtin(base) else "" for base in kind.bases]
            if bases and all(base in REFUSALS | {"Exception"} for base in bases):
                return "own refusal"
            wide = REFUSALS | {"", "Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"}
            return "unknown" if not bases or wide & set(bases) else "unrelated"
    elif isinstance(meaning, External):
        return "unrelated" if meaning.name.startswith(UNRELATED) else "unknown"
    elif isinstance(error, ast.Name) and names.is_builtin(error):
        found = getattr(builtins, error.id, None)
        if error.id in REFUSALS:
            return "refusal"
        known = isinstance(found, type) and not issubclass(found, BaseExceptionGroup)
        return "unrelated" if known and error.id not in ("Exception", "BaseException") else "unknown"
    return "unknown"


def may_catch_refusals(caught: ast.expr | None, names: Names) -> bool:
    """Whether an `except` with these classes may take a refusal for an answer."""
    if isinstance(caught, ast.Tuple):
        return any(may_catch_refusals(one, names) for one in caught.elts)
    return caught is None or _kind_of(caught, names) != "unrelated"


def goes_on(body: list[ast.stmt], names: Names) -> bool:
    """Whether code goes on after these statements of a handler, or with an error that is no refusal."""
    parts = [part for one in body for part in ast.walk(one)]
    other = any(isinstance(one, ast.Raise) and one.exc is not None and not refuses_input(one, names) for one in parts)
    return other or any(isinstance(part, LEAVES) for part in parts) or not always_raises(body)


def always_raises(body: list[ast.stmt]) -> bool:
    """Whether a block ends in `raise` on every way through it."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return bool(last.orelse) and always_raises(last.body) and always_raises(last.orelse)
    return isinstance(last, ast.Raise)
