"""Random edits of code that smoke cells really execute: every one must change the key of its cells."""

import ast
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from offtangent.lab import fingerprint as module
from offtangent.lab.checks import Checks
from offtangent.lab.fingerprint import PACKAGE, fingerprint
from offtangent.lab.scopes import Names
from offtangent.lab.sources import Definition
from offtangent.papers import PAPERS

WATCHER = Path(__file__).with_name("watcher.py")
# What numbers do not depend on; `_lazy` only finds names, and the fingerprint reads its tables without running it.
NOT_NUMBERS = tuple(str(PACKAGE / room) for room in ("lab", "report", "cli.py", "_lazy.py"))
EDITS = 200


pytestmark = pytest.mark.timeout(1200)  # one cell of each class is run under a tracer


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """By experiment, the classes of cells that ran and the lines of the project that were executed meanwhile."""
    found = {}
    for paper in PAPERS:
        path = tmp_path_factory.mktemp("lines") / f"{paper.name}.json"
        subprocess.run([sys.executable, WATCHER, paper.name, path], check=True, timeout=600, capture_output=True)
        found |= json.loads(path.read_text())
    return found


def places(source, lines):
    """What can be edited in a file if these lines were executed: the place, whether only checks see it, who reads it.

    A function that changes nothing is a part of checks where it returns nothing, or is called in checks alone. Of
    module-level values those count that executed lines read which are no checks.
    """
    functions = [node for top in source.body for node in ast.walk(top) if isinstance(node, ast.FunctionDef)]
    checks, covered = Checks(), {}
    for function in functions:
        names = Names(source)
        with names.inside(function):
            inside = [one for one in ast.walk(function) if isinstance(one, ast.stmt)]
            raising = [one for one in inside if isinstance(one, ast.Raise) or checks.is_check(one, names)]
        covered[function] = {line for one in raising for line in range(one.lineno, one.end_lineno + 1)}
    serving = {name for function in functions for one in ast.walk(function) if isinstance(one, ast.Name)
               for name in [one.id] if one.lineno not in covered[function]}  # fmt: skip
    reads = {}
    for function in functions:
        found = Definition(source, function.name)
        private = function.name.startswith("_") and function.name not in serving
        refusing = checks.changes_nothing(found, returns=False) or (
            private and checks.changes_nothing(found, returns=True)
        )
        for statement in (one for one in ast.walk(function) if isinstance(one, ast.stmt) and one.lineno in lines):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and not refusing and node.lineno not in covered[function]:
                    reads.setdefault(node.id, set()).add(node.lineno)
            for one in edits(statement):
                if one.lineno in lines and (one.lineno in covered[function] or not refusing):
                    yield one, one.lineno in covered[function], {one.lineno}
    for statement in source.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else []:
            if isinstance(target, ast.Name) and target.id in reads:
                yield from ((one, False, reads[target.id]) for one in edits(statement.value))


def edits(statement):
    """The pieces of a statement that can be changed: not texts, not annotations, not what lies deeper."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node
        if isinstance(node, ast.BinOp | ast.Compare):
            yield node
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                waiting += [
                    child for child in children if isinstance(child, ast.AST) and not isinstance(child, ast.stmt)
                ]


def changed(text, node):
    """The file's text with one constant or operator changed."""
    lines = text.splitlines(keepends=True)
    start = sum(len(line.encode()) for line in lines[: node.lineno - 1]) + node.col_offset
    end = sum(len(line.encode()) for line in lines[: node.end_lineno - 1]) + node.end_col_offset
    if isinstance(node, ast.Constant):
        new = repr(node.value + 1)
    elif isinstance(node, ast.BinOp):
        new = f"(({ast.unparse(node.left)}) {'-' if isinstance(node.op, ast.Add) else '+'} ({ast.unparse(node.right)}))"
    else:
        new = f"(not ({ast.unparse(node)}))"
    return (text.encode()[:start] + new.encode() + text.encode()[end:]).decode()


@pytest.fixture(scope="module")
def drawn(executed):
    """Random places, all of them and those of checks apart, with the experiments whose cells execute them."""
    by_file = {}
    for name, (_, lines) in executed.items():
        for path, numbers in lines.items():
            if not path.startswith(NOT_NUMBERS):
                by_file.setdefault(path, {})[name] = set(numbers)
    library = module._library(PACKAGE)
    for name, (kinds, _) in executed.items():
        fingerprint(PACKAGE / "papers" / f"{name}.py", kinds)
    caught = {node.path for node in library.definitions if node.strict}  # there checks count: somebody goes on
    semantic, raising = [], []
    for path in sorted(by_file):
        for node, raises, readers in places(library.project.read(Path(path)), set().union(*by_file[path].values())):
            who = [(path, node, name) for name, numbers in by_file[path].items() if readers & numbers]
            if not raises:
                semantic += who
            elif path not in caught:
                raising += who
    shuffle = random.Random(1)
    return shuffle.sample(semantic, EDITS), shuffle.sample(raising, EDITS)


def code_after(path, node, name, kinds):
    """The fingerprint of an experiment after one edit; forms of all other files are those that are known."""
    library = module._library(PACKAGE)
    source = library.project.read(Path(path))
    forms = {known: form for known, form in library.forms.items() if known.path != path}
    graph = module.Graph(library.project, definitions=dict(library.definitions), forms=forms)
    kept = dict(vars(source))
    try:
        source.read(ast.parse(changed(Path(path).read_text(), node)).body)
        experiment = library.project.read(PACKAGE / "papers" / f"{name}.py")
        return graph.fingerprint(experiment, [experiment.look_up(one) for one in ("run", *sorted(kinds))]).code
    finally:
        vars(source).clear()
        vars(source).update(kept)


def codes(edits, executed):
    """Every edit in words, with the fingerprint before and after it."""
    for path, node, name in edits:
        kinds, _ = executed[name]
        before = fingerprint(PACKAGE / "papers" / f"{name}.py", kinds).code
        told = f"{path}:{node.lineno} {ast.unparse(node)} ({name})"
        yield told, before, code_after(path, node, name, kinds)


def test_every_edit_of_executed_code_changes_the_key(executed, drawn):
    unseen = [told for told, before, after in codes(drawn[0], executed) if before == after]
    assert not unseen, "\n".join(unseen)


def test_no_edit_inside_a_statement_that_only_raises_changes_the_key(executed, drawn):
    seen = [told for told, before, after in codes(drawn[1], executed) if before != after]
    assert not seen, "\n".join(seen)
