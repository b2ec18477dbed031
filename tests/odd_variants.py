"""Runs every call of `odd_calls` with one array after the other made odd, and prints what is wrong with the answers.

It is a program of its own, so that the run-time types of the tests do not refuse the arrays before the functions do.
"""

import dataclasses
import json
import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import odd_calls
from offtangent._errors import InputError

# Jittable or elementwise: jitted code calls them, where nobody looks, and so NaN that goes in comes out.
PROPAGATES = (
    "special.activations.", "special.losses.", "special.hermite_polynomials.", "kernels.relu_hidden",
    "kernels.finite.tangent_gram", "bai_lee.penalty", "bai_lee.mean_penalty_hessian", "bai_lee.empirical_risk",
    "bai_lee.flip", "bai_lee.pair_terms", "ge_wang_zhao.negative_curvature_descent", "nichani.furthest",
)  # fmt: skip
# Where numbers beyond the precision of the call give NaN: differences of infinite terms, as IEEE has them, of functions
# that may be jitted; sin and gelu of a number that single precision holds as infinite; and a function of the caller's.
OVERFLOWS = (
    "bai_lee.penalty_hessian", "bai_lee.mean_penalty_hessian", "bai_lee.pair_terms", "bai_lee.empirical_risk",
    "ge_wang_zhao.negative_curvature_descent", "kernels.relu_hidden", "kernels.finite.tangent_gram",
    "kernels.empirical_conjugate", "special.activations.gelu", "special.activations.sin",
    "special.hermite_polynomials.",
)  # fmt: skip
ELEMENTWISE = ("special.activations.", "special.hermite", "special.sphere.", "special.boolean.walsh")
# A function of the caller's own decides which shapes it takes, and may saturate: tanh(∞) is 1.
OWN = ("bai_lee.population_risk params", "bai_lee.empirical_risk", "kernels.empirical_ntk params")
CALLS_OWN = (*OWN, "bai_lee.population_risk")
# f(sX) = sᵏf(X): what huge and tiny arrays must give, to rounding, or ∞ and 0 where that is beyond the precision.
DEGREES = {
    "arora.tensor_powers X": 2, "arora.zero_one_loss u": 0, "arora.flip_counts X": 0,
    "arora.linearised_outputs y": 1, "arora.linearised_distance y": 1, "arora.linearised_weights y": 1,
 "bai_lee.input_spread X": 0, "bai_lee.column_norm W": 1, "bai_lee.flip W": 1,
    "bai_lee.penalty W": 8, "bai_lee.penalty_gradient W": 7, "bai_lee.random_feature_energy beta": 4,
    "ge_wang_zhao.feature_rows R": 2, "ge_wang_zhao.isometric_power X": 2, "ge_wang_zhao.reduced_power X": 2,
    "ge_wang_zhao.leave_one_out_distances X": 2, "ge_wang_zhao.decoupled_subspace R": 1, "nichani.furthest W": 1,
    "nichani.sign_energy W": 2, "kernels.relu_hidden.exact X1": 1, "kernels.relu_hidden X1": 1,
    "kernels.regression.expansion coefficients": 1, "special.activations.relu z": 1, "special.activations.relu3 z": 3,
    "special.activations.quadratic z": 2, "special.boolean.walsh values": 1, "special.boolean.cube_values squares": 1,
    "special.boolean.hamming X1": 0, "special.boolean.signs X": 0,
}  # fmt: skip
# A column is as good as any shape where nothing else says how many there are; labels may be n × k; losses broadcast.
COLUMNS = (
    "allen_zhu_li.series_", "allen_zhu_li.memorise", "arora.tensor_powers", "arora.flip_candidates W0",
    "arora.gradient_descent", "bai_lee.input_spread", "bai_lee.column_norm", "bai_lee.penalty",
    "bai_lee.random_feature_weights W0", "ge_wang_zhao.decoupled_subspace", "ge_wang_zhao.feature_rows",
    "ge_wang_zhao.hermite_basis", "ge_wang_zhao.isometric_power", "ge_wang_zhao.reduced_power", "nichani.furthest",
    "kernels.relu_hidden.diag", "kernels.ridge_regression", "kernels.regression.", "kernels.ridges.regularised X",
    "kernels.empirical_conjugate X", "kernels.fully_connected.hermite_remainder", "kernels.coordinates.",
    "special.boolean.signs", "special.losses.",
)  # fmt: skip
# Of no rows there is nothing to say, and of no numbers the sum is zero.
EMPTY = (
    "allen_zhu_li.coupling X", "allen_zhu_li.gradient_parts X", "allen_zhu_li.sign_", "allen_zhu_li.indicator_mean",
    "arora.flip_", "bai_lee.column_norm", "bai_lee.flip", "bai_lee.landscape_survey W", "bai_lee.pair_terms X",
    "bai_lee.penalty", "nichani.furthest", "kernels.relu_hidden", "kernels.finite.tangent_gram X",
    "kernels.empirical_ntk X", "on_cube", "special.losses.",
)  # fmt: skip


def is_one(name, group):
    """Whether a name belongs to a group of names or beginnings of names."""
    return any(name.startswith(one) for one in group)


def spoil(value):
    """The odd ones made of an array, and what each must agree with: kind → (odd, the plain array it stands for)."""
    plain = np.asarray(value, np.float64)
    whole = np.rint(plain if np.array_equal(plain, np.rint(plain)) else 3 * plain)
    half, first = plain.astype(np.float16), np.zeros(plain.shape, bool)
    first.flat[0] = True
    column = plain[:, :1] if plain.ndim == 2 else plain.reshape(-1, 1)
    found = {
        "nan": (np.where(first, np.nan, plain), None),
        "inf": (np.where(first, np.inf, plain), None),
        "whole": (whole.astype(np.int64), whole),
        "int8": (whole.astype(np.int8), whole),
        "float16": (half, half.astype(np.float64)),
        "column": (column, plain if plain.ndim == 1 else None),
        "empty": (plain[:0], None),
        "huge": (plain * 1e200, None),
        "tiny": (plain * 1e-200, None),
    }
    if isinstance(value, jax.Array):  # JAX holds numbers in single precision, unless it is told otherwise
        return {kind: tuple(None if one is None else jnp.asarray(one) for one in pair) for kind, pair in found.items()}
    return found


def numbers(answer):
    """All numbers in an answer, as one vector of float64."""
    if isinstance(answer, int | float | complex | np.number | np.ndarray | jax.Array):
        array = np.asarray(answer)
        return array.astype(np.float64).ravel() if array.dtype.kind in "biuf" else np.zeros(0)
    if isinstance(answer, dict):
        parts = list(answer.values())
    elif isinstance(answer, tuple | list):
        parts = list(answer)
    elif isinstance(answer, eqx.Module):
        parts = [leaf for leaf in jax.tree.leaves(answer) if eqx.is_array(leaf)]
    elif dataclasses.is_dataclass(answer):
        parts = [getattr(answer, one.name) for one in dataclasses.fields(answer)]
    else:
        return np.zeros(0)
    return np.concatenate([np.zeros(0), *map(numbers, parts)])


def answer(function, arguments, name, value):
    """The numbers of an answer, or None where the input is refused."""
    try:
        return numbers(function(**arguments | {name: value}))
    except InputError:
        return None


def wrong(kind, given, plain, name):
    """What is wrong with an answer, in words; `plain` is that to the plain array that the odd one stands for."""
    if is_one(name, OWN):
        return ""
    if kind in ("nan", "inf"):
        through = is_one(name, PROPAGATES) and (kind == "inf" or np.isnan(given).any())
        return "" if through else "is answered"
    if np.isnan(given).any():
        return "" if kind == "huge" and is_one(name, OVERFLOWS) else "gives NaN"
    if kind in ("whole", "int8", "float16"):
        if plain is None:
            return "is answered, and the plain numbers are refused"
        scale = max(1.0, float(np.abs(plain[np.isfinite(plain)]).max(initial=0.0)))
        near = 5e-3 if kind == "float16" else 1e-5
        same = given.shape == plain.shape and np.allclose(given, plain, rtol=near, atol=near * scale)
        return "" if same else f"differs from the plain numbers: {given[:4]} and {plain[:4]}"
    if kind == "column" and is_one(name, ELEMENTWISE):
        same = plain is not None and given.shape == plain.shape and np.array_equal(given, plain)
        return "" if same else "is no list of the single answers"
    if kind in ("huge", "tiny") and plain is not None:
        factor = np.longdouble(1e200 if kind == "huge" else 1e-200) ** DEGREES[name]
        expected = (plain.astype(np.longdouble) * factor).astype(np.float64)
        # Single precision holds less: what is beyond it may be infinite there, or zero.
        beyond = (np.abs(expected) > 3e38) & np.isinf(given) | (np.abs(expected) < 1e-37) & (given == 0)
        near = beyond | np.isclose(given, expected, rtol=1e-5, atol=0)
        return "" if near.all() else f"is {given[~near][:3]} instead of {expected[~near][:3]}"
    if kind == "column":
        return "" if is_one(name, COLUMNS) else "is answered"
    if kind == "empty":
        return "" if is_one(name, (*EMPTY, *ELEMENTWISE)) else "is answered"
    return ""


def main():
    """One entry for each wrong answer, and how many were looked at."""
    warnings.simplefilter("ignore")
    found, looked = {}, {}
    for name, arguments in odd_calls.calls().items():
        function, found[name], looked[name] = odd_calls.named(name), [], 0
        for key, value in arguments.items():
            leaves, tree = jax.tree.flatten(value) if isinstance(value, tuple) else ([value], None)
            for place, leaf in enumerate(leaves):
                if not (isinstance(leaf, np.ndarray | jax.Array) and leaf.ndim and leaf.dtype.kind == "f"):
                    continue
                for kind, (odd, like) in spoil(leaf).items():
                    put = [odd if place == at else one for at, one in enumerate(leaves)]
                    looked[name] += 1
                    try:
                        given = answer(function, arguments, key, put[0] if tree is None else tree.unflatten(put))
                        if given is None:
                            continue
                        put[place] = like
                        plain = None
                        if kind in ("huge", "tiny") and DEGREES.get(f"{name} {key}") is not None:
                            plain = answer(function, arguments, key, value)
                        elif like is not None:
                            plain = answer(function, arguments, key, put[0] if tree is None else tree.unflatten(put))
                        fault = wrong(kind, given, plain, f"{name} {key}")
                    except Exception as error:
                        own = is_one(f"{name} {key}", CALLS_OWN)
                        fault = "" if own else f"raises {type(error).__name__}: {str(error)[:150]}"
                    if fault:
                        found[name].append(f"{key} {kind} {fault}")
    json.dump({"wrong": found, "looked": looked}, sys.stdout)


if __name__ == "__main__":
    main()
