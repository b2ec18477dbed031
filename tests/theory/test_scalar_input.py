"""Functions of the theory that take numbers alone: text, NaN and what is too large for float64 are refused by name."""

import json
import math
import subprocess
import sys

import pytest

from offtangent.theory import arora, bai_lee, ge_wang_zhao, nichani

ALGORITHM = {"smoothness": 1.0, "hessian": 1.0, "epsilon": 0.01, "parameters": 10, "gap": 1.0, "c": 1.0, "delta": 0.1}
THEOREM = {"samples": 3, "dim": 2, "width": 6, "smallest": 0.5, "radius": 1.0, "label": 1.0, "start": 0.1}
BOUND = {"quadratic": 1.0, "n": 100, "smallest": 0.1, "delta": 0.1, "width": 100, "scale": 0.1, "training": 0.0}
MOVEMENT = {"quadratic": 1.0, "n": 100, "width": 100, "scale": 0.1, "smallest": 0.1, "delta": 0.1}
FUNCTIONS = {
    arora.generalisation_bound: BOUND,
    arora.movement_bound: MOVEMENT,
    arora.sample_size: {"quadratic": 1.0, "epsilon": 0.1, "delta": 0.1},
    arora.rademacher_gap_bound: {"rademacher": 0.1, "n": 100, "delta": 0.1, "lipschitz": 1.0, "ceiling": 1.0},
    arora.rademacher_bound: {"n": 9, "width": 9, "radius": 0.1, "movement": 1.0, "scale": 1.0, "delta": 0.1},
    arora.movement_radius: {"n": 4, "width": 100, "smallest": 0.5, "residual": 2.0},
    arora.flip_probability: {"radius": 1.0, "scale": 1.0},
    ge_wang_zhao.theorem4: {**THEOREM, "epsilon": 0.1, "delta": 0.1},
    ge_wang_zhao.algorithm1_settings: ALGORITHM,
    ge_wang_zhao.feature_norm_bound: {"dim": 3, "features": 2, "power": 1, "radius": 1.0, "delta": 0.1},
    nichani.regulariser_choice: {"dim": 10, "width": 100, "degree": 2, "epsilon": 0.1},
    bai_lee.relu_series: {"power": 2},
    bai_lee.relu_series_bound: {"power": 2},
    bai_lee.relu_hermite: {"power": 2},
    bai_lee.polynomial_samples: {"power": 4, "dim": 100, "epsilon": 0.1, "coefficient": 1.0, "length": 1.0},
}
BEYOND = [
    (ge_wang_zhao.algorithm1_settings, {"smoothness": 1e300, "gap": 1e300, "epsilon": 1e-300}),
    (ge_wang_zhao.theorem4, {"radius": 1e60}),
    (ge_wang_zhao.theorem4, {"smallest": 1e-19, "epsilon": 1e-19, "radius": 1e19}),
    (bai_lee.polynomial_samples, {"coefficient": 1e200}),
    (bai_lee.polynomial_samples, {"length": 1e80}),
    (arora.generalisation_bound, {"quadratic": math.inf}),
    (arora.generalisation_bound, {"smallest": math.inf}),
    (arora.generalisation_bound, {"n": math.inf}),
]
CALLS = [(f, {name: bad}) for f, given in FUNCTIONS.items() for name in given for bad in ("0.1", math.nan)] + BEYOND


def answer(function, words):
    """The kind of what comes of a call, and its message."""
    try:
        return "a result", repr(function(**{**FUNCTIONS[function], **words}))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.fixture(scope="module")
def said():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_valid_calls_pass():
    assert [function.__name__ for function in FUNCTIONS if answer(function, {})[0] != "a result"] == []


def test_text_nan_and_what_leads_beyond_float64_are_refused(said):
    told = zip(CALLS, said, strict=True)
    assert [(f.__name__, words, answer) for (f, words), answer in told if answer[0] != "InputError"] == []


def test_the_message_names_the_argument(said):
    single = list(zip(CALLS, said, strict=True))[: -len(BEYOND)]
    written = {"quadratic": ("quadratic", "yᵀH⁻¹y", "M_g")}  # as the formulas of the paper have it
    named = [any(word in text for word in written.get(next(iter(words)), words)) for (_, words), (_, text) in single]
    assert [call for call, right in zip(single, named, strict=True) if not right] == []


def test_the_limit_of_infinite_width_is_a_bound():
    infinite = {**BOUND, "width": math.inf, "scale": 0.0}
    assert arora.generalisation_bound(**infinite).total < arora.generalisation_bound(**BOUND).total


if __name__ == "__main__":
    json.dump([answer(*call) for call in CALLS], sys.stdout)
