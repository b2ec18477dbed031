"""Labels ±1: two classes out of many, random ones, and noise.

Arora et al. (2019), Appendix A: a fraction of the labels is replaced by uniform ±1, so half of those change.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from offtangent._checks import (
    PRNGKeyArray,
    check_count,
    check_fraction,
    check_key,
    check_labels,
    check_numbers,
    check_real,
    check_several,
    require,
)
from offtangent._errors import InputError


class Labelled(NamedTuple):
    """Inputs and their labels: `X, y = ...`."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]


class Noisy(NamedTuple):
    """Labels with noise, and which rows the noise touched: `y, touched = ...`."""

    y: Float[np.ndarray, " n"]
    touched: Bool[np.ndarray, " n"]


def two_classes(X: object, labels: object, classes: Sequence[float | int]) -> Labelled:
    """The rows of two classes, in their order, with y = +1 for the first class and −1 for the second.

    >>> two_classes([[1.0], [2.0], [3.0]], [7, 5, 9], classes=(9, 7))
    Labelled(X=array([[1.], [3.]]), y=array([-1.,  1.]))
    """
    inputs, given = check_labels(X, labels)
    check_several(inputs)
    if not hasattr(classes, "__len__") or len(classes) != 2 or not classes[0] != classes[1]:
        raise InputError(f"classes={classes!r}: expected two different classes, (first, second).")
    for wanted in classes:
        check_real("a class", wanted)
    first, second = given == classes[0], given == classes[1]
    for wanted, rows in zip(classes, (first, second), strict=True):
        if not rows.any():
            known = ", ".join(f"{label:g}" for label in np.unique(given)[:20])
            raise InputError(f"No sample is of class {wanted:g}. The first classes here: {known}.")
    chosen = first | second
    return Labelled(inputs[chosen], np.where(first[chosen], 1.0, -1.0))


def random_labels(n: int, *, key: PRNGKeyArray) -> Float[np.ndarray, " n"]:
    """Labels uniform on {−1, +1}, n of them, independent of any input."""
    import jax

    check_count("n", n)
    check_key(key)
    with jax.enable_x64(True):
        return np.array(jax.random.rademacher(key, (n,), dtype=np.float64))


def add_label_noise(y: object, fraction: float | int, *, key: PRNGKeyArray) -> Noisy:
    """Labels y with those of exactly round(fraction·n) uniformly chosen rows drawn anew from unif{±1}.

    About half of the touched rows keep their label by chance. Time O(n).
    """
    import jax

    labels = _check_signs(y)
    where, what = _split(key)
    touched = _choose(len(labels), fraction, key=where)
    with jax.enable_x64(True):
        drawn = np.asarray(jax.random.rademacher(what, (len(labels),), dtype=np.float64))
    return Noisy(np.where(touched, drawn, labels), touched)


def flip_labels(y: object, fraction: float | int, *, key: PRNGKeyArray) -> Noisy:
    """Labels y with those of exactly round(fraction·n) uniformly chosen rows negated. Time O(n)."""
    labels = _check_signs(y)
    check_key(key)
    touched = _choose(len(labels), fraction, key=key)
    return Noisy(np.where(touched, -labels, labels), touched)


def _split(key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    import jax

    check_key(key)
    where, what = jax.random.split(key)
    return where, what


def _choose(n: int, fraction: float | int, *, key: PRNGKeyArray) -> Bool[np.ndarray, " n"]:
    import jax

    check_fraction(fraction)
    with jax.enable_x64(True):  # rows by random 64-bit ranks: compiles faster than jax.random.permutation
        ranks = np.asarray(jax.random.bits(key, (n,), dtype=np.uint64))
    chosen = np.argsort(ranks, kind="stable")[: round(fraction * n)]
    mask = np.zeros(n, dtype=bool)
    mask[chosen] = True
    return mask


def _check_signs(y: object) -> Float[np.ndarray, " n"]:
    labels = check_numbers(y, "y")
    require(
        labels.ndim == 1 and len(labels) != 0,
        f"y has shape {labels.shape}: expected one dimension and at least one label.",
    )
    wrong = np.flatnonzero((labels != 1) & (labels != -1))
    if len(wrong):
        raise InputError(
            f"y has {len(wrong)} labels that are not ±1; the first is {labels[wrong[0]]} in row {wrong[0]} "
            "(counted from 0). For labels 0 and 1 give 2 * y - 1; for many classes see two_classes."
        )
    return labels.astype(np.float64)
