"""The monomials x^i of degree p in d variables: their multi-indices i ∈ I_d^p, the largest first, and where they stand.

Ge, Wang & Zhao (2019), Appendix E.1. There are D_d^p = C(p + d − 1, p) of them, as many as a symmetric tensor of order
p on R^d has different entries. Tables are computed once for each d and p, and read-only.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_count
from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension

MOST = 2_000_000  # entries of a reduced form


def multi_indices(dim: int, power: int) -> Int[np.ndarray, "D d"]:
    """I_d^p: all (i_1, …, i_d) that sum to p, the largest first.

    >>> multi_indices(2, 2)
    array([[2, 0], [1, 1], [0, 2]])
    """
    check_count("dim", dim)
    check_count("power", power, least=0)
    return exponents(dim, power).copy()


def multiplicities(dim: int, power: int) -> Float[np.ndarray, "D"]:
    """‖s_i‖₂² = p!/(i_1! ⋯ i_d!), the number of entries of the tensor that M_i stands for.

    >>> multiplicities(2, 3)
    array([1., 3., 3., 1.])
    """
    check_count("dim", dim)
    check_count("power", power, least=0)
    return permutations(dim, power).copy()


@lru_cache(maxsize=32)
def letters(dim: int, power: int) -> Int[np.ndarray, "D p"]:
    """The multi-indices as sorted words j_1 ≤ … ≤ j_p."""
    count = symmetric_dimension(dim, power)
    if count > MOST or dim**power >= 2**63:  # the second for positions
        raise InputError(
            f"symmetric tensors of order {power} on R^{dim} have {count} different entries, of {dim}^{power}: at most "
            f"{MOST}, of 2^63, are kept. Take a smaller dim or power."
        )
    words = list(itertools.combinations_with_replacement(range(dim), power))
    return _frozen(np.array(words, np.int64).reshape(count, power))


@lru_cache(maxsize=32)
def exponents(dim: int, power: int) -> Int[np.ndarray, "D d"]:
    """The multi-indices themselves, a row each."""
    words = letters(dim, power)
    counts = np.zeros((len(words), dim), np.int64)
    np.add.at(counts, (np.arange(len(words))[:, None], words), 1)
    return _frozen(counts)


@lru_cache(maxsize=32)
def permutations(dim: int, power: int) -> Float[np.ndarray, "D"]:
    """p!/Πi_j! for each multi-index: how many different permutations its word has."""
    factorials = np.array([float(math.factorial(k)) for k in range(power + 1)])
    return _frozen(factorials[power] / factorials[exponents(dim, power)].prod(axis=1))


@lru_cache(maxsize=32)
def exponents_up_to(dim: int, order: int) -> Int[np.ndarray, "c d"]:
    """The multi-indices of the degrees 0, 1, …, one after the other."""
    return _frozen(np.concatenate([exponents(dim, degree) for degree in range(order + 1)]))


@lru_cache(maxsize=32)
def product_places(dim: int, p: int, q: int) -> Int[np.ndarray, "D E"]:
    """Where i + j stands among the multi-indices of degree p + q."""
    first, second = letters(dim, p), letters(dim, q)
    shape = (len(first), len(second))
    words = np.concatenate(
        [np.broadcast_to(first[:, None], (*shape, p)), np.broadcast_to(second, (*shape, q))], axis=-1
    )
    return _frozen(positions(np.sort(words, axis=-1), dim))


def positions(words: Int[np.ndarray, "*shape p"], dim: int) -> Int[np.ndarray, "*shape"]:
    """Where sorted words stand: read as numbers to the base d, they come in their own order."""
    digits = dim ** np.arange(words.shape[-1])[::-1]
    return np.searchsorted(letters(dim, words.shape[-1]) @ digits, words @ digits)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
