"""Draw random edits of code that smoke cells executed, and print which of them the fingerprint sees, as JSON.

What is a check is decided here by a definition of its own, from the shape of statements and the names of functions:
the lab's is under test.
"""

import ast
import itertools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from offtangent.lab import fingerprints as module
from offtangent.lab.fingerprints import PACKAGE, fingerprint
from offtangent.lab.sources import Module

# What numbers do not depend on; `_lazy` only finds names, and the fingerprint reads its tables without running it;
# `_errors` has words for messages.
NOT_NUMBERS = tuple(str(PACKAGE / room) for room in ("lab", "report", "cli.py", "_lazy.py", "_errors.py"))
# Those that warn change no number either.
CHECKING = ("check", "_check", "require", "_require", "refuse", "_refuse", "warn", "_warn", "_positive")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SIMPLE = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Constant)
SIMPLE = (*SIMPLE, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context)


def only_raises(node: ast.stmt) -> bool:
    """Whether this statement does nothing to input that it does not refuse."""
    match node:
        case ast.Raise() | ast.Assert():
            return True
        case ast.If(body=[*before, ast.Raise()], orelse=[]) if all(isinstance(one, ast.Assign) for one in before):
            return True  # with what the message tells
        case ast.If(body=body, orelse=others) | ast.For(body=body, orelse=others):
            return all(map(only_raises, [*body, *others]))
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func).rpartition(".")[2].startswith(CHECKING)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_plain_refusal(node: ast.stmt) -> bool:
    """Whether a statement is `if` with a simple condition and a refusal, and nothing else."""
    if not isinstance(node, ast.If) or node.orelse or [type(one) for one in node.body] != [ast.Raise]:
        return False
    return all(isinstance(one, SIMPLE) and not isinstance(one, ast.In | ast.NotIn) for one in ast.walk(node.test))


def covered(node: ast.AST) -> set[ast.AST]:
    """All that lies in statements that only raise, and in annotations."""
    told = [one.annotation for one in ast.walk(node) if isinstance(one, ast.AnnAssign | ast.arg) and one.annotation]
    told += [one.returns for one in ast.walk(node) if isinstance(one, FUNCTIONS) and one.returns]
    typed = {part for one in told for part in ast.walk(one)}
    return typed | {
        part for one in ast.walk(node) if isinstance(one, ast.stmt) and only_raises(one) for part in ast.walk(one)
    }


def known_as(name: str, source: Module) -> str:
    """A name as `serving` has it: a private one is its file's alone."""
    return f"{source.path}:{name}" if name.startswith("_") and not name.startswith("__") else name


def serving(sources: list[Module]) -> set[str]:
    """The names that are used for more than checks; public ones whoever they belong to."""
    names: set[str] = set()
    uses: dict[str, set[str]] = {}  # in a function, or, under "", elsewhere
    for source in sources:
        hidden = {part for top in source.body for part in covered(top)}
        bodies = {one: one.name for top in source.body for one in ast.walk(top) if isinstance(one, FUNCTIONS)}
        for function, name in [*bodies.items(), *((top, "") for top in source.body if top not in bodies)]:
            user = "" if name.startswith("__") else known_as(name, source)
            for part in ast.walk(function):
                used = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else None
                if used and part not in hidden:
                    uses.setdefault(user, set()).add(known_as(used, source))
    grown = uses.get("", set()) | {"run", "claims", "draw", "cells"}
    while grown - names:
        new = grown - names
        names |= grown
        grown = {used for name in new for used in uses.get(name, ())}
    return names


def pieces(node: ast.AST) -> Iterator[ast.AST]:
    """The pieces of a statement that can be changed: not annotations, not what lies deeper."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.JoinedStr | ast.Lambda):
            continue
        if isinstance(part, ast.Constant) and type(part.value) in (int, float, str):
            yield part
        if isinstance(part, ast.BinOp | ast.Compare) or (
            isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        ):
            yield part
        for name, value in ast.iter_fields(part):
            if name not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                waiting += [one for one in children if isinstance(one, ast.AST) and not isinstance(one, ast.stmt)]


def places(source: Module, lines: set[int], served: set[str]) -> Iterator[tuple[ast.AST, bool, set[int]]]:
    """What can be edited in a file if these lines ran: the place, whether it is in a plain refusal, who runs it."""
    functions = [node for top in source.body for node in ast.walk(top) if isinstance(node, FUNCTIONS)]
    reads: dict[str, set[int]] = {}
    for function in functions:
        ran = {line for line in range(function.lineno, function.end_lineno + 1) if line in lines}
        if known_as(function.name, source) not in served or not ran:
            continue
        hidden = covered(function)
        nested = [one for one in ast.walk(function) if isinstance(one, FUNCTIONS) and one is not function]
        apart = {function} | {one for part in nested for one in ast.walk(part)}
        for statement in (one for one in ast.walk(function) if isinstance(one, ast.stmt) and one not in apart):
            if statement.lineno not in lines:
                continue
            if is_plain_refusal(statement):
                inside = [one for part in (statement.test, statement.body[0]) for one in pieces(part)]
                yield from ((one, True, {statement.lineno}) for one in inside if not isinstance(one, ast.Call))
            if statement not in hidden:
                own = [one for one in pieces(statement) if one.lineno in lines]
                yield from ((one, False, {one.lineno}) for one in own)
                for part in ast.walk(statement):
                    if isinstance(part, ast.Name) and part not in hidden:
                        reads.setdefault(part.id, set()).add(part.lineno)
        if function in source.body:
            defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
            yield from ((one, False, ran) for default in defaults for one in pieces(default))
        for pair in zip(function.body, function.body[1:], strict=False):
            if {one.lineno for one in pair} <= lines and not {*pair} & hidden and isinstance(pair[0], ast.Assign):
                yield ast.Module([*pair], []), False, {pair[0].lineno}
    for statement in source.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else []:
            if isinstance(target, ast.Name) and target.id in reads:
                yield from ((one, False, reads[target.id]) for one in pieces(statement.value))
        if isinstance(statement, ast.ClassDef):
            methods = [one for one in statement.body if isinstance(one, FUNCTIONS)]
            ran = {line for one in methods for line in range(one.lineno, one.end_lineno + 1) if line in lines}
            values = [one.value for one in statement.body if isinstance(one, ast.Assign | ast.AnnAssign) and one.value]
            yield from ((one, False, ran) for value in values for one in pieces(value))


def changed(source: Module, text: str, node: ast.AST) -> str | None:
    """The file's text after one edit; None where there is nothing else to put there."""
    raw = text.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(one: ast.AST) -> tuple[int, int]:
        return starts[one.lineno - 1] + one.col_offset, starts[one.end_lineno - 1] + one.end_col_offset

    if isinstance(node, ast.Module):  # two statements that change places
        (a, b), (c, d) = map(span, node.body)
        return (raw[:a] + raw[c:d] + raw[b:c] + raw[a:b] + raw[d:]).decode()
    start, end = span(node)
    if isinstance(node, ast.Constant):
        new = repr(node.value + ("x" if isinstance(node.value, str) else 1))
    elif isinstance(node, ast.BinOp):
        new = f"(({ast.unparse(node.left)}) {'-' if isinstance(node.op, ast.Add) else '+'} ({ast.unparse(node.right)}))"
    elif isinstance(node, ast.Call):
        start, end = span(node.func)
        others = [one.name for one in source.body if isinstance(one, ast.FunctionDef) and one.name != node.func.id]
        if not others:
            return None
        new = others[0]
    else:
        new = f"(not ({ast.unparse(node)}))"
    return (raw[:start] + new.encode() + raw[end:]).decode()


def code_after(path: Path, text: str, name: str, kinds: list[str]) -> str:
    """The fingerprint of an experiment after one edit; forms of all other files are those that are known."""
    library = module._library(PACKAGE)
    source = library.project.read(path)
    forms = {known: form for known, form in library.forms.items() if known.path != str(path)}
    doing = {key: done for key, done in library.doing.items() if key[0] != path}
    graph = module.Graph(library.project, definitions=dict(library.definitions), forms=forms, doing=doing)
    kept = dict(vars(source))
    try:
        source.read(ast.parse(text).body)
        experiment = library.project.read(PACKAGE / "papers" / f"{name}.py")
        return graph.fingerprint(*module.starts(experiment, sorted(kinds))).code
    finally:
        vars(source).clear()
        vars(source).update(kept)


def main(executed: dict[str, tuple[list[str], dict[str, list[int]]]], edits: int) -> dict[str, list[list[str]]]:
    """By kind of place, the edits in words with what became of them."""
    library = module._library(PACKAGE)
    by_file: dict[str, dict[str, set[int]]] = {}
    codes = {}
    for name, (kinds, lines) in executed.items():
        codes[name] = fingerprint(PACKAGE / "papers" / f"{name}.py", kinds).code
        for path, numbers in lines.items():
            if not path.startswith(NOT_NUMBERS):
                by_file.setdefault(path, {})[name] = set(numbers)
    catching = {name for name, (kinds, _) in executed.items() if _keeps_checks(name, kinds)}
    sources = {path: library.project.read(Path(path)) for path in sorted(by_file)}
    texts = {path: Path(path).read_text() for path in sources}
    served = serving(list(sources.values()))
    drawn: dict[bool, dict[str, list[tuple[str, ast.AST]]]] = {False: {}, True: {}}
    for path, source in sources.items():
        for node, raises, readers in places(source, set().union(*by_file[path].values()), served):
            for name in (name for name, numbers in by_file[path].items() if readers & numbers):
                if not (raises and name in catching):
                    drawn[raises].setdefault(name, []).append((path, node))
    shuffle, told = random.Random(1), {}
    for raises, by_experiment in drawn.items():
        for every in by_experiment.values():
            shuffle.shuffle(every)
        # One of each experiment in turn, so that none is left out.
        rounds = itertools.zip_longest(*([(name, *place) for place in by_experiment[name]] for name in by_experiment))
        found = told["raising" if raises else "executed"] = []
        for name, path, node in filter(None, itertools.chain.from_iterable(rounds)):
            after = changed(sources[path], texts[path], node)
            if after is None or len(found) == edits:
                continue
            what = " ⇄ ".join(map(ast.unparse, node.body)) if isinstance(node, ast.Module) else ast.unparse(node)
            line = node.body[0].lineno if isinstance(node, ast.Module) else node.lineno
            seen = code_after(Path(path), after, name, executed[name][0]) != codes[name]
            where = f"{path}:{line} {what} ({name})"
            found.append([where, type(node).__name__, "seen" if seen else "unseen", name])
    return told


def _keeps_checks(name: str, kinds: list[str]) -> bool:
    """Whether somebody catches refusals in what an experiment reaches: checks count there."""
    library = module._library(PACKAGE)
    experiment = library.project.read(PACKAGE / "papers" / f"{name}.py")
    return "checks" in module.Reach(library, *module.starts(experiment, kinds), frozenset()).follow()


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]))))
