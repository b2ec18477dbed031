"""Mistakes in an experiment of one's own: a sentence and a status, no traceback, and nothing computed is lost."""

import json
import os

import pytest

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab.experiment import DIGITS, fields_of
from trials import HOW, SOURCE, function

RAISES = [("raise KeyError('x')", "raised KeyError: 'x'"), ("raise SystemExit(0)", "raised SystemExit: 0")]
RAISES += [("raise type('Odd', (BaseException,), {})('x')", "raised Odd: x")]
RAISES += [("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "raised Mute")]


@pytest.mark.parametrize(("name", "body", "answer"), [
    *((name, body, answer) for name in ("cells", "cost", "datasets", "absent") for body, answer in RAISES),
    ("cells", "return None", "gave None for the profile 'smoke': it gives cells in a list"),
    ("cells", "return []", "gave no cell for the profile 'smoke'"),
    ("cells", "yield Cell(1); raise ValueError('midway')", "raised ValueError: midway"),
    ("cells", "raise GeneratorExit", "raised GeneratorExit"),
    ("cells", "return [1]", "1 is no cell"),
    ("cost", "return 3", "gave 3: it gives a Cost(flops, bytes) of finite numbers"),
    ("cost", "return Cost(float('nan'), 1)", "of finite numbers"),
    ("cost", "return Cost(1, float('inf'))", "of finite numbers"),
    ("cost", "return Cost(10**400, 1)", "of finite numbers"),
    ("cost", "return Cost(-1, 1)", "neither of them negative"),
    ("cost", "return made(Cost, flops='a', bytes=1)", "of finite numbers"),
    ("cost", "return made(Cost, flops=1, bytes=None)", "of finite numbers"),
    ("datasets", "return 'digits'", "gave 'digits': it gives names of data sets, or paths of files, in a tuple"),
    ("datasets", "return [1]", "gave 1 among others"),
    ("datasets", "return None", "gave None"),
    ("absent", "return 'mnist'", "gave 'mnist': it gives names of data sets in a tuple"),
    ("absent", "return [1]", "gave 1 among others"),
    ("absent", "return None", "gave None"),
])  # fmt: skip
def test_what_is_wrong_before_any_cell_is_refused_with_the_question_and_the_answer(
    name, body, answer, own, store, offtangent
):
    told = offtangent("run", own(function(name, body)), *HOW, "--out", store)
    assert told.status == 2, told.err
    assert answer in told.err
    assert f"{name}(" in told.err
    assert "Traceback" not in told.err
    assert not list(store.glob("cells/*/*.npz"))


NO_FILES = {"folder": "a folder", "pipe": "a named pipe", "/dev/zero": "a device", "none": "there is no such file"}


@pytest.mark.parametrize(("name", "kind"), [*NO_FILES.items(), ("a\0b", "it cannot be looked at")])
def test_what_datasets_names_and_is_no_file_is_told(name, kind, own, store, offtangent):
    path = own(function("datasets", f"return [{name!r}]"))
    (path.parent / "folder").mkdir()
    os.mkfifo(path.parent / "pipe")
    told = offtangent("run", path, *HOW, "--out", store)
    assert told.status == 2
    assert kind in told.err


def test_the_line_in_the_user_s_file_is_told(own, store, offtangent):
    path = own(function("cells", "return helper()") + "def helper():\n    raise KeyError('x')\n")
    line = path.read_text().splitlines().index("    raise KeyError('x')") + 1
    assert f"trial.py, line {line}: cells(config) raised" in offtangent("run", path, *HOW, "--out", store).err


@pytest.mark.parametrize(("body", "answer"), [
    ("import sys; sys.exit()", "raised SystemExit"),
    ("import sys; sys.exit(0)", "raised SystemExit: 0"),
    ("1 / 0", "raised ZeroDivisionError"),
    ("def (", "raised SyntaxError"),
    ("run = 3", "run is an int, where a function belongs"),
    ("cost = 3", "cost is an int, where a function belongs"),
    ("PROFILES = ['smoke']", "PROFILES must map"),
    ("PROFILES = {1: 2}", "a profile is called 1"),
])  # fmt: skip
def test_a_file_that_is_no_experiment_is_refused(body, answer, own, store, offtangent):
    told = offtangent("run", own(body), *HOW, "--out", store)
    assert told.status == 2
    assert answer in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("docstring", ['"""  \n  """', "", "__doc__ = 3"])
def test_a_file_without_a_docstring_is_called_by_its_name(docstring, own, store, offtangent):
    told = offtangent(
        "run", own(source=SOURCE.replace('"""A trial of my own."""', docstring)), *HOW, "--out", store
    )  # fmt: skip
    assert told.status == 0, told.err
    assert ">trial</a></h2>" in (store / "report.html").read_text()


@pytest.mark.parametrize(("content", "status"), [
    (b"\xef\xbb\xbf" + SOURCE.strip().encode(), 0),
    (f"# -*- coding: latin-1 -*-\n{SOURCE.replace('own', 'owné')}".encode("latin-1"), 0),
    (SOURCE.replace("own", "owné").encode("latin-1"), 2),
    (SOURCE.encode("utf-16"), 2),
    (SOURCE.encode() + b"\0", 2),
])  # fmt: skip
def test_a_file_is_read_as_python_reads_it_or_refused(content, status, own, store, offtangent):
    path = own()
    path.write_bytes(content)
    told = offtangent("run", path, *HOW, "--out", store)
    assert told.status == status, told.err
    assert ("cannot be imported" in told.err) == bool(status)


@pytest.mark.parametrize(("body", "answer"), [
    *RAISES,
    ("return None", "gave None: it gives Claims"),
    ("return 'abc'", "gave 'abc': it gives Claims"),
    ("return [1]", "gave 1 as number 1: it gives Claims"),
    ("return Claim.at_most(1, 2, **WORDS)", "it gives Claims, yielded or in a list"),
    ("yield Claim.at_most(1, 2, **WORDS); raise ValueError('midway')", "raised ValueError: midway"),
    ("while True: yield ODD", "gives more than 100000 Claims: does it end?"),
    ("return [made(Claim, **vars(ODD) | {'verdict': 'great'})]", "'great' is not a valid Verdict"),
    ("return [made(Claim, **vars(ODD) | {'statement': 3})]", "A claim's statement is 3: it must be text"),
    ("return [made(Claim, **vars(ODD) | {'value': 'a'})]", "The claim 'arithmetic' cannot be told"),
    ("return [made(Claim, **vars(ODD) | {'interval': (1.0,)})]", "The claim 'arithmetic' cannot be told"),
])  # fmt: skip
def test_wrong_claims_fail_the_run_and_cost_nothing_else(body, answer, own, store, offtangent):
    path = own(function("claims", body))
    told = offtangent("run", path, *HOW, "--out", store, "--json")
    assert told.status == 1
    assert answer in told.err
    assert told.json["computed"] == 2
    assert (store / "results" / "trial-smoke.json").is_file()
    assert "A figure of mine" in (store / "report.html").read_text()
    assert "could not be judged" in (store / "report.html").read_text()
    assert offtangent("report", store, path).status == 0


@pytest.mark.parametrize("claim", [
    "made(Claim, **vars(ODD) | {'value': np.float32(1), 'met': np.bool_(True)})",
    "made(Claim, **vars(ODD) | {'interval': np.ones(2, np.float32)})",
    "made(Claim, **vars(ODD) | {'verdict': 'holds'})",
    r"Claim.at_most(1, 2, source='\ud800', statement='[/b]', measured='m')",
])  # fmt: skip
def test_claims_of_numpy_s_numbers_or_of_odd_letters_are_told_on_the_page_in_json_and_in_words(
    claim, own, store, offtangent
):
    path = own(function("claims", f"return [{claim}]"))
    told = offtangent("run", path, *HOW, "--out", store, "--json")
    assert told.status == 0, told.err
    assert [one["verdict"] for one in told.json["claims"]] == ["holds"]
    assert (store / "report.html").is_file()


@pytest.mark.parametrize(("body", "answer"), [
    *RAISES,
    ("return None", "gave None: it gives Figures"),
    ("return [1]", "gave 1 as number 1"),
    ("return plot()", "it gives Figures"),
    ("return [made(Figure, title='a', caption='b', plot=3)]", "whose plot is an int"),
    ("return [made(Figure, title=None, caption='b', plot=plot())]", "whose title or caption is no text"),
    ("import nothing_of_that_name", "No module named"),
    ("p = plot(); p.add_scatter(x=[1], customdata=[object()]); return [Figure('odd', '', p)]", "cannot be shown"),
    ("p = plot(); p.add_scatter(x=[1j]); return [Figure('odd', '', p)]", "cannot be shown"),
])  # fmt: skip
def test_wrong_figures_are_told_on_the_page_and_cost_nothing_else(body, answer, own, store, offtangent):
    told = offtangent("run", own(function("draw", body)), *HOW, "--out", store, "--json")
    assert told.status == 0, told.err
    assert [claim["verdict"] for claim in told.json["claims"]] == ["holds"]
    page = (store / "report.html").read_text()
    assert answer.replace("'", "&#x27;") in page
    assert "squares are small" in page
    assert answer in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize(("result", "answer"), [
    ("{'square': ('i', np.array([1j]))}", "variable 'square' has dtype complex128"),
    ("{'square': ('i', np.array([b'a']))}", "variable 'square' has dtype |S1"),
    ("{'square': ('i', np.array([1], np.longdouble))}", "variable 'square' has dtype float128"),
    ("{'square': ('i', np.array([None]))}", "variable 'square' has dtype object"),
    ("{'square': ('i', np.ma.array(['a', 'b'], mask=[0, 1]))}", "variable 'square' has dtype object"),
    ("{'square': xr.Variable('i', np.ma.array([1.0, 2.0], mask=[0, 1]), fastpath=True)}", "is a masked array"),
    (r"{'square': ('i', np.array(['\ud800']))}", "variable 'square' holds text that UTF-8 cannot write"),
    ("{1: 4.0}", "is called 1; names must be text"),
    ("{('a', 1): 4.0}", "is called ('a', 1); names must be text"),
    ("{'square': xr.Variable((0,), [1.0])}", "has a dimension called 0"),
    ("{'x': ('i', [1.0])}, coords={'i': [1j]}", "variable 'i' has dtype complex128"),
    ("{'x': 1.0}, attrs={'f': print}", "the attribute 'f' of the result is a builtin_function_or_method"),
    ("{'x': ('i', [1.0], {'f': np.ones(2)})}", "the attribute 'f' of variable 'x' is an ndarray"),
])  # fmt: skip
def test_a_result_that_no_record_could_hold_fails_its_cell_by_the_variable_s_name(
    result, answer, own, store, offtangent
):
    path = own(f"def run(cell):\n    return xr.Dataset({result}) if cell.i else xr.Dataset({{'square': 4.0}})\n")
    told = offtangent("run", path, *HOW, "--out", store, "--json")
    assert told.status == 1
    (failure,) = told.json["failures"]
    assert failure["cell"] == "Cell(i=1)"
    assert answer in failure["error"]
    assert told.json["computed"] == 1
    assert [claim["verdict"] for claim in told.json["claims"]] == ["holds"]


@pytest.mark.parametrize("values", [
    "np.array([1, -5], 'M8[us]')", "np.array([1], 'M8[D]')", "np.array(['NaT', 3], 'm8[s]')",
    "np.ma.array([1, 2], mask=[0, 1])",
])  # fmt: skip
def test_dates_come_back_from_a_record_and_masked_numbers_as_nan(values, own, store, offtangent):
    path = own(f"def run(cell):\n    return xr.Dataset({{'when': ('i', {values})}})\n")
    assert offtangent("run", path, *HOW, "--out", store).status == 0
    experiment = lab.experiment.load_experiment(path)
    record = lab.records.read_record(store / "results" / "trial-smoke.json", {"trial": experiment})
    for cell, dataset in record.results:
        assert dataset.identical(experiment.run(cell))


@pytest.mark.parametrize("on", ["local", "processes:1"])
@pytest.mark.parametrize(("value", "answer"), [
    ("Level.LOW", "is a Level, not a plain int (give int(…) of it)"),
    ("Word.LOW", "is a Word, not a plain str (give str(…) of it)"),
    ("Pair(1, 2)", "is a Pair, not a plain tuple"),
    ("np.float64(1.5)", "is NumPy's float64, not a plain value (give .item() of it)"),
    ("np.bool_(1)", "is NumPy's bool, not a plain value"),
    ("10**5000", "has a whole number of more than 600 digits"),
    ("(1, 10**5000)", "has a whole number of more than 600 digits"),
    (r"'\ud800'", "is text that UTF-8 cannot write"),
])  # fmt: skip
def test_fields_that_are_not_plain_are_refused_alike_wherever_cells_run(value, answer, on, own, store, offtangent):
    path = own(function("cells", f"return [Cell({value})]"))
    told = offtangent("run", path, "--profile", "smoke", "--on", on, "--out", store)
    assert told.status == 2, told.err
    assert answer in told.err
    assert "The cell's field i=" in told.err
    assert "Traceback" not in told.err


def test_a_whole_number_of_as_many_digits_as_are_allowed_is_a_field(own):
    kind = lab.experiment.load_experiment(own()).module.Cell
    assert fields_of(kind(10**DIGITS - 1)) == {"i": 10**DIGITS - 1}
    with pytest.raises(InputError, match="digits"):
        fields_of(kind(10 ** (DIGITS + 1)))


def test_cells_whose_own_words_fail_are_told_by_their_fields(own, store, offtangent):
    source = SOURCE.replace("    i: object", "    i: object\n    def __repr__(self):\n        1 / 0\n")
    path = own("def run(cell):\n    raise ValueError('boom')\n", source=source)
    told = offtangent("run", path, *HOW, "--out", store)
    assert told.status == 1
    assert "Failed: trial Cell(i=0): ValueError: boom" in told.err


@pytest.mark.parametrize("on", ["local", "processes:1"])
def test_an_exception_beyond_exceptions_fails_its_cell_alone(on, own, store, offtangent):
    path = own("class Odd(BaseException):\n    pass\ndef run(cell):\n    raise Odd('x')\n")
    told = offtangent("run", path, "--profile", "smoke", "--on", on, "--out", store, "--json")
    assert told.status == 1
    assert [failure["error"] for failure in told.json["failures"]] == ["Odd: x"] * 2


def test_a_cell_that_closes_its_standard_output_closes_nobody_else_s(own, store, program):
    told = program("run", own(function("run", "import sys; sys.stdout.close(); return xr.Dataset({'square': 4.0})")),
                   "--profile", "smoke", "--out", store, "--on", "local")  # fmt: skip
    assert told.status == 0, told.err
    assert "2 cells computed" in told.out


def test_a_hundred_cells_that_fail_for_one_reason_are_told_once_with_their_number(own, store, offtangent):
    """The place in the code is the reason: what is said may name the cell."""
    source = SOURCE.replace('"smoke": 2', '"smoke": 100')
    path = own("def run(cell):\n    raise ValueError(f'boom {cell.i}')\n", source=source)
    told = offtangent("run", path, *HOW, "--out", store)
    assert told.status == 1
    assert "Failed: trial Cell(i=0): ValueError: boom 0 (and 99 more of its cells for the same reason)" in told.err
    assert "100 cells failed; tracebacks are in" in told.err
    assert told.err.count("boom") <= 5  # the first, the last, and one a second or so
    assert (store / "failures.log").read_text().count("ValueError: boom") == 100


def test_different_reasons_are_told_each(own, store, offtangent):
    path = own("def run(cell):\n    return 1 / 0 if cell.i else {}['x']\n")
    told = offtangent("run", path, *HOW, "--out", store)
    assert "Failed: trial Cell(i=0): KeyError: 'x'" in told.err
    assert "Failed: trial Cell(i=1): ZeroDivisionError" in told.err


LOUD = "".join(
    function(name, f"print('loud'); import os; os.write(1, b'loud'); return {answer}")
    for name, answer in {
        "cells": "[Cell(1)]", "cost": "Cost(1, 1)", "datasets": "()", "absent": "()", "claims": "[]", "draw": "[]",
        "run": "xr.Dataset({'square': 4.0})",
    }.items()
)  # fmt: skip


@pytest.mark.parametrize("words", [("--on", "local"), ("--on", "processes:1"), ("--on", "local", "--dry-run")])
def test_what_an_experiment_prints_does_not_break_json(words, own, store, program):
    """By `print`, and by another program or a library, which write to the descriptor."""
    path = own("print('loud')\nimport sys; sys.__stdout__.write('loud')\n" + LOUD)
    told = program("run", path, "--profile", "smoke", *words, "--out", store, "--json")
    assert told.status == 0, told.err
    json.loads(told.out)
    assert "loud" in told.err
