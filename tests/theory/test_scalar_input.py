"""Numbers given wrongly to the public functions of `theory`, `kernels` and `special`: refused by name, or right.

`scalar_calls` has a valid call of each function that takes numbers. In place of each number in turn come text, NaN,
nothing (None), whole numbers far beyond float64, and a list. The calls run in a process of their own, without the
run-time types of the tests, which would refuse some of them first.
"""

import inspect
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from scalar_calls import BOUND, calls, taking_numbers

import odd_calls

WRONG = {"text": "0.1", "nan": math.nan, "nothing": None, "10**400": 10**400, "-10**5000": -(10**5000), "list": [1, 2]}
BEYOND = [
    ("ge_wang_zhao.algorithm1_settings", {"smoothness": 1e300, "gap": 1e300, "epsilon": 1e-300}),
    ("ge_wang_zhao.theorem4", {"radius": 1e60}),
    ("ge_wang_zhao.theorem4", {"smallest": 1e-19, "epsilon": 1e-19, "radius": 1e19}),
    ("bai_lee.polynomial_samples", {"coefficient": 1e200}),
    ("bai_lee.polynomial_samples", {"length": 1e80}),
    ("arora.generalisation_bound", {"quadratic": math.inf}),
    ("arora.generalisation_bound", {"smallest": math.inf}),
    ("arora.generalisation_bound", {"n": math.inf}),
]
# As the formulas of the paper have them, or as the function that checks them calls them.
WRITTEN = {"quadratic": ("quadratic", "yᵀH⁻¹y", "M_g"), "coefficient": ("coefficient", "α")}
LONGEST = 400  # letters of a message: it does not write out all digits of a number
ALONE = {
    "special.activations.activation": "its number is the order of smoothness, or None",
    "special.hermite_polynomials.hermite_times": "behind the door: `hermite` has checked its order",
}


def optional(function, name):
    """Whether a parameter may be None."""
    parameter = inspect.signature(function).parameters.get(name)
    return parameter is not None and (parameter.default is None or "None" in str(parameter.annotation))


def answer(function, words):
    """The kind of what comes of a call, and its message."""
    try:
        return "a result", repr(function(**words))[:LONGEST]
    except Exception as error:
        return type(error).__name__, str(error)


def main():
    """What comes of every valid call, of every wrong number, and of numbers that lead beyond float64, as JSON."""
    warnings.simplefilter("ignore")
    valid, wrong = {}, []
    table = calls()
    for name, words in table.items():
        function = odd_calls.named(name)
        if numbers := {key: value for key, value in words.items() if type(value) in (int, float)}:
            valid[name] = answer(function, words)
        for key in numbers:
            for kind, bad in WRONG.items():
                if not (bad is None and optional(function, key)):
                    wrong.append((name, key, kind, *answer(function, words | {key: bad})))
    beyond = [(name, *answer(odd_calls.named(name), table[name] | words)) for name, words in BEYOND]
    listed = {name.rpartition(".")[2] for name in table}
    missing = [name for name in taking_numbers() if name.rpartition(".")[2] not in listed and name not in ALONE]
    json.dump({"valid": valid, "wrong": wrong, "beyond": beyond, "missing": missing}, sys.stdout)


@pytest.fixture(scope="module")
def said():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_valid_calls_pass(said):
    assert {name: told for name, told in said["valid"].items() if told[0] != "a result"} == {}


def test_a_wrong_number_is_refused(said):
    assert [told for told in said["wrong"] if told[3] != "InputError"] == []
    assert len(said["wrong"]) > 5 * len(said["valid"])


def test_the_message_names_the_argument_and_is_short(said):
    def names(argument, text):
        return any(word in text for word in WRITTEN.get(argument, (argument,)))

    assert [told for told in said["wrong"] if not names(told[1], told[4])] == []
    assert [told for told in said["wrong"] if len(told[4]) > LONGEST] == []


def test_what_leads_beyond_float64_is_refused(said):
    assert [told for told in said["beyond"] if told[1] != "InputError"] == []


def test_every_public_function_that_takes_numbers_is_in_the_table(said):
    assert said["missing"] == []


def test_the_limit_of_infinite_width_is_a_bound():
    infinite, bound = {**BOUND, "width": math.inf, "scale": 0.0}, odd_calls.named("arora.generalisation_bound")
    assert bound(**infinite).total < bound(**BOUND).total


if __name__ == "__main__":
    main()
