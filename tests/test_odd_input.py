"""Odd arrays through every public function of `theory`, `kernels` and `special`: a right number, or an InputError.

`odd_calls` has a valid call of each, `odd_variants` puts NaN, infinity, whole numbers, float16, a column, nothing, and
numbers of size 10²⁰⁰ and 10⁻²⁰⁰ in place of each array in turn, and says what is wrong with the answers.
"""

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import odd_calls
from offtangent import kernels, special

NAMES = list(odd_calls.calls())
# A call of one stands for its whole family: all angular kernels share one class, and all losses and activations theirs.
FAMILY = {
    "relu_both", "relu_output", "relu3_hidden", "tensor_square", "linear", "gaussian", "erf_output", "deep", "resnet",
    "convolutional", "named_kernel", "arc_cosine", "recursive", "linear_plus_power",
}  # fmt: skip
# Behind the door: called by jitted code or by functions that have checked already.
INNER = (
    "kernels.arcs", "kernels.moments", "kernels.pairs", "kernels.solves", "kernels.rounding", "kernels.series",
    "kernels.definiteness", "kernels.expansion", "kernels.names", "kernels.inverse", "kernels.angular",
    "kernels.correlation", "kernels.cross", "kernels.trusting", "kernels.backward", "kernels.uses", "kernels.factors",
    "kernels.gradients", "kernels.blocks", "kernels.passes", "kernels.tangent", "special.derivatives",
)  # fmt: skip
ALONE = {
    "theory.bai_lee.expected_input_spread": "it draws its inputs from a function",
    "theory.bai_lee.express": "its targets are objects, whose arrays RidgePower has checked",
    "theory.bai_lee.random_signs": "it takes a key alone",
    "theory.bai_lee.assumption_a": "it takes an activation",
    "theory.nichani.bounded_assumption": "it takes an activation",
    "theory.nichani.harmonic_assumption": "it takes an activation",
    "theory.nichani.finite_levels": "it takes an activation",
    "theory.nichani.express_jointly": "its target is an object that has checked its arrays",
    "theory.nichani.express_sparse": "its target is an object that has checked its arrays",
    "theory.allen_zhu_li.existence_hidden": "its arrays are those of a network and of targets that have checked theirs",
    "kernels.coordinates.cube_coefficients": "it takes a kernel and a number",
    "special.activations.activation": "it takes a function",
    "special.activations.shifted": "it takes an activation",
    "special.hermite_polynomials.hermite_coefficients": "it takes an activation",
    "special.hermite_polynomials.hermite_energy": "it takes an activation",
    "special.sphere.harmonic_coefficients": "it takes an activation",
    "special.sphere.harmonic_energies": "it takes an activation",
    "special.sphere.tangent_eigenvalues": "it takes an activation",
}


def takes_arrays(function):
    """Whether a parameter is an array, by the types that are written down."""
    written = inspect.signature(inspect.unwrap(function), eval_str=False).parameters.values()
    kinds = [str(one.annotation) for one in written]
    return any(re.search(r"Float\[|Array|Numbers|Vector|\bobject\b|PyTree", kind) for kind in kinds)


def public_functions():
    """Every function of the three rooms that takes arrays: those that papers name, and those of the other modules."""
    for paper in ("allen_zhu_li", "arora", "bai_lee", "ge_wang_zhao", "nichani"):
        room = importlib.import_module(f"offtangent.theory.{paper}")
        for name in room.__all__:
            if inspect.isfunction(inspect.unwrap(getattr(room, name))) and takes_arrays(getattr(room, name)):
                yield f"theory.{paper}.{name}"
    for room in (kernels, special):
        for found in pkgutil.iter_modules(room.__path__, room.__name__ + "."):
            module = importlib.import_module(found.name)
            short = found.name.removeprefix("offtangent.")
            for name, function in vars(module).items():
                own = inspect.isfunction(function) and function.__module__ == found.name
                if own and not name.startswith(("_", "check_")) and short not in INNER and takes_arrays(function):
                    yield f"{short}.{name}"


@pytest.fixture(scope="module")
def answers():
    program = Path(__file__).with_name("odd_variants.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_odd_input_gives_a_right_number_or_an_input_error(answers, name):
    assert answers["looked"][name] >= 9
    assert answers["wrong"][name] == []


def test_every_public_function_with_arrays_is_in_the_table():
    listed = {name.split(".")[-1] for name in NAMES} | FAMILY
    assert [name for name in public_functions() if name.split(".")[-1] not in listed and name not in ALONE] == []
