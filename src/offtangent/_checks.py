"""Every check of the house, once.

Input is refused at the door, with what was given, what was expected, and how to mend it. A check either returns nothing
or the array it made of its input, in float64. JAX is imported by those alone that need it, so that `data`, `lab` and
the command line load without it.
"""

import math
import numbers
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from offtangent._errors import InputError, a_kind, shown

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray as PRNGKeyArray
else:
    PRNGKeyArray = Any  # jaxtyping's own name would import jax

EXACT = 2**53  # float64 holds every whole number up to here
SAME_DIRECTION = 1e-12  # ‖u − v‖ of two unit vectors that count as one direction: rounding, with room


def require(condition: object, message: str) -> None:
    """Refuse input with `message` where `condition` is false; for messages that cost nothing to put together."""
    if not condition:
        raise InputError(message)


def check_key(key: object) -> None:
    """Refuse what is not one JAX key, of the new (`jax.random.key`) or the old kind (`PRNGKey`)."""
    import jax

    if isinstance(key, jax.Array):
        if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.shape == ():
                return
        elif key.dtype == "uint32" and key.ndim == 1:
            return
    shape = getattr(key, "shape", None)
    given = a_kind(key) + ("" if shape is None else f" of shape {shape}")
    raise InputError(f"key must be one JAX key, and is {given}. Give key=jax.random.key(0), say.")


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Refuse a number of things that is no whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or np.ndim(value) or value < least:
        raise InputError(f"{name}={shown(value)}: it must be a whole number of at least {least}.")
    _check_range(name, value)


def check_real(name: str, value: Any) -> None:
    """Refuse what is not one real number of float64's range, as text is; NaN and infinity pass, an array () as well."""
    if isinstance(value, numbers.Real):
        _check_range(name, value)
    elif getattr(value, "shape", None) != () or not hasattr(value, "__float__") or np.iscomplexobj(value):
        hint = " Turn text into a number first: float(...)." if isinstance(value, str) else ""
        shape = getattr(value, "shape", ())
        told = f" has shape {shape}" if shape else f"={shown(value)} is {a_kind(value)}"
        raise InputError(f"{name}{told}: expected one real number.{hint}")


def _check_range(name: str, value: Any) -> None:
    if isinstance(value, int | Fraction) and not -sys.float_info.max <= value <= sys.float_info.max:
        raise InputError(f"{name} is beyond float64, whose numbers end at 1.8e308. Give a smaller one.")


def check_fraction(fraction: float | int) -> None:
    """Refuse a fraction outside [0, 1]."""
    check_real("fraction", fraction)
    if not (math.isfinite(fraction) and 0 <= fraction <= 1):
        hint = f" For {fraction:g} percent give {fraction / 100:g}." if 1 < fraction <= 100 else ""
        raise InputError(f"fraction={fraction:g} must lie in [0, 1].{hint}")


def check_bound(delta: float | int = 0.5, /, **positive: float | int) -> None:
    """Refuse sizes that are not positive, and a probability of failure outside (0, 1), where there is one."""
    for name, value in positive.items():
        check_real(name, value)
        if not value > 0:
            raise InputError(f"{name}={float(value):g}: the bound holds for positive {name} only.")
    check_real("delta", delta)
    if not 0 < delta < 1:
        raise InputError(f"delta={float(delta):g}: the probability of failure must lie between 0 and 1, such as 0.1.")


def check_finite(tree: Any, what: str) -> None:
    """Refuse NaN and infinite numbers, and name the leaf. Inside a jitted function nobody knows them."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if not eqx.is_inexact_array(leaf):
            continue
        try:
            bad = 0 if bool(jnp.isfinite(leaf).all()) else int((~jnp.isfinite(leaf)).sum())
        except jax.errors.ConcretizationTypeError:
            return
        if bad:
            name = f" in {jax.tree_util.keystr(path)}" if path else ""
            raise InputError(
                f"{what} hold {bad} {'entry that is' if bad == 1 else 'entries that are'} NaN or infinite{name}: give "
                "finite numbers. After a training that diverged, take a smaller learning rate."
            )


def check_inputs(X: object, *, nonzero: bool = False) -> Float[np.ndarray, "n d"]:
    """X as an n×d float64 array of finite numbers, or an InputError; with `nonzero`, no row may be zero.

    A float64 array is returned as it is, not copied. Time and memory O(nd).

    >>> check_inputs([[1, 2], [3, 4]])
    array([[1., 2.], [3., 4.]])
    """
    array = check_numbers(X, "X")
    if array.ndim != 2:
        raise InputError(
            f"X has shape {array.shape}: expected 2 dimensions, one row per sample and one column per "
            f"feature. {_reshape_hint(array.ndim)}"
        )
    if 0 in array.shape:
        raise InputError(f"X has shape {array.shape}: expected at least one row and one column.")
    finite = np.isfinite(array)
    if not finite.all():
        bad, rows = int(np.count_nonzero(~finite)), int(np.count_nonzero(~finite.all(axis=1)))
        row, column = (int(i) for i in np.unravel_index(finite.argmin(), finite.shape))
        raise InputError(
            f"X has {bad} {_plural(bad, 'entry that is', 'entries that are')} NaN or infinite, in {rows} "
            f"{_plural(rows, 'row')}; the first is {array[row, column]} in row {row}, column {column} "
            "(counted from 0). Drop those rows, X[np.isfinite(X).all(axis=1)], or fill in the missing values."
        )
    if nonzero:
        check_nonzero(array)
    return array


def check_nonzero(array: Float[np.ndarray, "n d"]) -> None:
    """Refuse rows of zeros."""
    zero = np.flatnonzero(~array.any(axis=1))
    if len(zero):
        raise InputError(
            f"X has {len(zero)} zero {_plural(len(zero), 'row')}, the first is row {zero[0]} (counted "
            "from 0): a zero input has no direction. Drop those rows: X[X.any(axis=1)]."
        )


def check_columns(X: object, dim: int) -> Float[np.ndarray, "n d"]:
    """X as a float64 array with `dim` columns, or an InputError."""
    inputs = check_inputs(X)
    if inputs.shape[1] != dim:
        raise InputError(f"X has shape {inputs.shape}: expected {dim} columns, the dimension of this target.")
    return inputs


def check_labels(
    X: object, y: object, *, classes: bool = False
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """(X, y) as float64 arrays with one finite label for each row, or an InputError.

    With `classes`, y must take at least two values. Time and memory O(nd).
    """
    inputs, labels = check_inputs(X), check_numbers(y, "y")
    if labels.ndim != 1:
        hint = "Give y.ravel()." if labels.size == len(inputs) else "Give one number for each row of X."
        raise InputError(f"y has shape {labels.shape}: expected one dimension, ({len(inputs)},). {hint}")
    if len(labels) != len(inputs):
        hint = " X looks transposed: rows must be samples." if len(labels) == inputs.shape[1] else ""
        raise InputError(
            f"y has {len(labels)} labels and X has {len(inputs)} rows: expected one label for each row.{hint}"
        )
    bad = np.flatnonzero(~np.isfinite(labels))
    if len(bad):
        raise InputError(
            f"y has {len(bad)} {_plural(len(bad), 'label that is', 'labels that are')} NaN or infinite; the first is "
            f"{labels[bad[0]]} in row {bad[0]} (counted from 0). Drop those rows of X and y."
        )
    _check_told_apart(np.asarray(y), labels)
    if classes and (labels == labels[0]).all():
        raise InputError(
            f"All {len(labels)} labels are {labels[0]:g}: expected at least two classes. "
            "Take samples of another class too, or check which column holds the labels."
        )
    return inputs, labels


def check_several(samples: Float[np.ndarray, "n *d"]) -> None:
    """Refuse a single sample, of which nothing can be compared."""
    require(len(samples) > 1, "There is only 1 sample: expected at least 2.")


def _check_told_apart(whole: np.ndarray, labels: Float[np.ndarray, " n"]) -> None:
    """Refuse whole numbers of which float64 makes others: more than one in a hundred of them, or any of few classes."""
    if whole.dtype.kind not in "iu" or not (np.abs(labels) > EXACT).any():
        return
    different, kept = len(np.unique(whole)), len(np.unique(labels))
    if different - kept > different / 100:
        raise InputError(
            f"y has {different} different whole numbers, up to {whole[np.abs(labels).argmax()]}; float64 tells only "
            f"{kept} of them apart. If they name classes, number these: np.unique(y, return_inverse=True)[1]."
        )


def check_not_parallel(X: object) -> Float[np.ndarray, "n d"]:
    """X, or an InputError that names the first two rows with the same direction and counts such pairs.

    One row that is a positive multiple of another makes the Gram matrix of a homogeneous kernel singular.
    Antiparallel rows are fine. Directions count as equal when the unit vectors differ by at most 1e-12.
    Zero rows are refused. Time O(nd + n log n), memory O(nd).

    >>> check_not_parallel([[1.0, 0.0], [-1.0, 0.0]])
    array([[ 1.,  0.], [-1.,  0.]])
    """
    array = check_inputs(X)
    check_directions(array)
    return array


def check_directions(array: Float[np.ndarray, "n d"], rows: Int[np.ndarray, " n"] | None = None) -> None:
    """What `check_not_parallel` refuses, of an array whose numbers are checked already.

    `rows` are the numbers under which the message names its rows, where they were chosen from a larger table.
    """
    check_nonzero(array)
    found = _parallel_pairs(unit_rows(array))
    if found is None:
        return
    first, second = array[found.first], array[found.second]
    named = (found.first, found.second) if rows is None else (int(rows[found.first]), int(rows[found.second]))
    if np.array_equal(first, second):
        how = "are equal" if rows is None else "are equal once prepared"
    else:
        at = np.abs(first).argmax()
        with np.errstate(over="ignore"):
            how = f"point the same way (row {named[1]} is {second[at] / first[at]:.6g} times the other)"
    raise InputError(
        f"Rows {named[0]} and {named[1]} of X (counted from 0) {how}, so the Gram matrix is singular. "
        f"There {'is 1 such pair' if found.count == 1 else f'are {found.count} such pairs'}. "
        "Merge the duplicates into one row each, or add a ridge."
    )


@dataclass(frozen=True)
class _Parallel:
    first: int
    second: int
    count: int


def _parallel_pairs(units: Float[np.ndarray, "n d"]) -> _Parallel | None:
    """The first pair of equal unit rows, and how many pairs there are; None if there are none.

    Equal rows have equal projections on any vector. So rows are sorted by their projection on a random unit
    vector, and only runs of rows that agree there are compared in full. For n = 10⁴, d = 784 different rows
    agree there with a chance of about 1e-3, and then cost no more than comparing them.
    """
    probe = np.random.default_rng(0).standard_normal(units.shape[1])
    projection = units @ (probe / np.linalg.norm(probe))
    order = np.argsort(projection, kind="stable")
    close = np.diff(projection[order]) <= 2 * SAME_DIRECTION  # the second half is for rounding
    edges = np.diff(np.concatenate(([False], close, [False])).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) + 1
    pairs: list[tuple[int, int]] = []
    count = 0
    for start, end in zip(starts, ends, strict=True):
        run = np.sort(order[start:end])
        while len(run) > 1:
            same = np.linalg.norm(units[run] - units[run[0]], axis=1) <= SAME_DIRECTION
            group = run[same]
            if len(group) > 1:
                pairs.append((int(group[0]), int(group[1])))
                count += len(group) * (len(group) - 1) // 2
            run = run[~same]
    return _Parallel(*min(pairs), count) if pairs else None


def check_numbers(values: object, name: str) -> np.ndarray:
    """`values` as a float64 array of any shape, or an InputError; only real numbers (and truth values) pass."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is no array: {error}. Give rows of equal length.") from None
    if array.dtype.kind not in "buif":
        hints = {
            "c": "Give real numbers: take its real part, or stack real and imaginary parts as features.",
            "U": "Turn text into numbers first; offtangent.data.load does so for labels in a file.",
            "O": "Convert it to an array of numbers first (a sparse matrix: X.toarray()).",
        }
        hint = hints.get(array.dtype.kind, "Convert it to float64 first.")
        raise InputError(f"{name} has dtype {array.dtype}: expected real numbers. {hint}")
    return array.astype(np.float64, copy=False)


def check_entries(**arrays: object) -> None:
    """Refuse arrays that do not hold finite numbers, and whole numbers of few bits, whose products wrap around."""
    for name, values in arrays.items():
        numbers = check_numbers(values, name)
        bad = int(np.count_nonzero(~np.isfinite(numbers)))
        said = _plural(bad, "entry that is", "entries that are")
        require(not bad, f"{name} has {bad} {said} NaN or infinite: give finite numbers.")
        kind = np.asarray(values).dtype
        wide = kind.kind == "f" or (kind.kind == "i" and kind.itemsize == 8)
        require(wide, f"{name} has dtype {kind}, whose products wrap around. Give {name}.astype(float).")


def check_magnitude(power: int, *, dtype: Any = np.float64, **arrays: object) -> None:
    """Refuse arrays of numbers so large that sums of products of `power` entries, with room, are beyond a dtype."""
    for name, values in arrays.items():
        size = np.abs(np.asarray(values, np.float64))
        largest = float(size.max(initial=0.0)) or 1.0
        high = power * math.log(largest) + 2 * math.log(size.size + 1) >= math.log(float(np.finfo(dtype).max))
        require(
            not high, f"{name} has entries up to {largest:.3g}: their products are beyond {np.dtype(dtype)}. Divide."
        )


def check_inexact(**arrays: object) -> None:
    """Refuse whole numbers where all of some arrays hold them: sums of their products wrap around in 32 bits."""
    kinds = [str(getattr(values, "dtype", "float")) for values in arrays.values()]
    said = f"{' and '.join(arrays)} {_plural(len(arrays), 'holds', 'hold')}"
    require("float" in "".join(kinds), f"{said} whole numbers, whose products wrap around. Give floats.")


def _reshape_hint(ndim: int) -> str:
    if ndim == 1:
        return "For one feature give X[:, None], for one sample X[None, :]."
    return "Flatten each sample: X.reshape(len(X), -1)." if ndim > 2 else "Give a table of numbers."


def _plural(count: int, one: str, many: str | None = None) -> str:
    return one if count == 1 else many or one + "s"


def unit_rows(X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """x/‖x‖ for each row x ≠ 0. Time and memory O(nd).

    Rows are first divided by their largest entry, so that ‖x‖² is never 0 or infinite: 1e300 and 1e-300 are
    as good as 1.

    >>> unit_rows(np.array([[3e300, 4e300]]))
    array([[0.6, 0.8]])
    """
    scaled: np.ndarray = X / np.abs(X).max(axis=1, keepdims=True)
    scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return scaled
