"""Raising may be a way of answering, and a look at something may change it: such conditions count."""

import pytest

from offtangent.lab.fingerprints import fingerprint

HEAD = """
import contextlib, heapq, pickle
import numpy as np

def swallow(f, x):
    try:
        return f(x)
    except ValueError:
        return 0

class Mine(Exception):
    pass

class Signal(StopIteration):
    pass
"""
CASES = {
    "an iterator's end": """
class Steps:
    def __next__(self):
        if self.n > 2.0:
            raise StopIteration
        return 1
def run(cell): return sum(Steps())
""",
    "a signal of one's own": "def run(cell):\n    if cell.n > 2.0:\n        raise Signal\n    return 1\n",
    "what hasattr asks": """
class Thing:
    def __getattr__(self, name):
        if self.n > 2.0:
            raise AttributeError(name)
        return 1
def run(cell): return hasattr(Thing(), "a")
""",
    "a sequence's end": """
class Row:
    def __getitem__(self, i):
        if i > 2.0:
            raise IndexError
        return i
def run(cell): return list(Row())
""",
    "a suppressing context": """
def run(cell):
    y = 0
    with contextlib.suppress(ValueError):
        if cell.n > 2.0:
            raise ValueError
        y = 1
    return y
""",
    "a context of one's own that swallows": """
class Calm:
    def __enter__(self): return self
    def __exit__(self, *told): return True
def run(cell):
    with Calm():
        if cell.n > 2.0:
            raise ValueError
        return 1
""",
    "a callee in a suppressing context": """
def ask(x):
    if x > 2.0:
        raise ValueError
    return 1
def run(cell):
    with contextlib.suppress(ValueError):
        return ask(cell.n)
""",
    "a handler that goes on halfway": """
def ask(x):
    if x > 2.0:
        raise ValueError
    return 1
def run(cell):
    try:
        return ask(cell.n)
    except ValueError:
        if cell.ok:
            return 5
        raise
""",
    "a return in finally": """
def run(cell):
    try:
        if cell.n > 2.0:
            raise ValueError
    finally:
        return 1
""",
    "a function of the project that catches what it calls": """
def ask(x):
    if x > 2.0:
        raise ValueError
    return 1
def run(cell): return swallow(ask, cell.n)
""",
    "a check that uses an iterator up": """
def run(cell):
    g = iter(cell.values)
    if any(v > 2.0 for v in g):
        raise ValueError
    return next(g)
""",
    "a check that asks a queue": """
def run(cell):
    if cell.q.get() > 2.0:
        raise ValueError
    return cell.q.get()
""",
    "a value appended by an assigned expression": "D = []\n_ = D.append(2.0)\ndef run(cell): return D\n",
    "a value written out by an assigned expression": """
A = np.ones(2)
B = np.add(A, 2.0, out=A)
def run(cell): return A
""",
    "a heap filled by an assigned expression": "L = []\n_ = heapq.heappush(L, 2.0)\ndef run(cell): return L\n",
}


def code(tmp_path, source):
    path = tmp_path / "experiment.py"
    path.write_text(HEAD + source)
    return fingerprint(path).code


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_a_condition_that_answers_by_raising_counts(source, tmp_path):
    assert "2.0" in source
    assert code(tmp_path, source) != code(tmp_path, source.replace("2.0", "3.0"))


@pytest.mark.parametrize("error", ["ValueError", "TypeError('no')", "Mine", "RuntimeError('no')"])
def test_a_condition_that_refuses_does_not(error, tmp_path):
    source = (
        f"def run(cell: int):\n    if cell > 2.0:\n        raise {error}\n    with open('x') as f:\n        return f\n"
    )
    assert code(tmp_path, source) == code(tmp_path, source.replace("2.0", "3.0"))


@pytest.mark.parametrize("way", ["__import__('he' + 'lper').f(cell)", "eval('f')(cell)", "pickle.loads(cell.text)"])
def test_where_anything_may_be_named_all_that_lies_beside_counts(way, tmp_path):
    found = []
    for value in (1.0, 2.0):
        (tmp_path / "helper.py").write_text(f"def f(x): return {value}\n")
        found.append(code(tmp_path, f"def run(cell): return {way}\n"))
    assert found[0] != found[1]


@pytest.mark.parametrize("way", ["inspect.getsource(f)", "f.__doc__", "f.__annotations__"])
def test_code_that_reads_sources_depends_on_all_of_their_text(way, tmp_path):
    source = f"import inspect\ndef f(x: 1):\n    '''One.'''\ndef run(cell): return {way}\n"
    assert code(tmp_path, source) != code(tmp_path, source.replace("One", "Two"))
