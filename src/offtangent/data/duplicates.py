"""Rows that occur more than once, and what their labels say."""

import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._checks import check_labels, check_several


@dataclass(frozen=True)
class Merged:
    """Every different row once, in the order in which they first occur."""

    X: Float[np.ndarray, "m d"]
    y: Float[np.ndarray, " m"]  # the label most of the copies have; of a tie, the one that occurs first
    first: Int[np.ndarray, " m"]  # where each row stood first
    of_row: Int[np.ndarray, " n"]  # row i of what was given is row of_row[i] here
    groups: tuple[tuple[int, ...], ...]  # the rows given that are equal, where there are several
    disagreeing: tuple[tuple[int, ...], ...]  # those groups whose labels differ

    @property
    def dropped(self) -> int:
        """How many rows were copies of an earlier one."""
        return len(self.of_row) - len(self.first)


def merge_duplicates(X: object, y: object, *, average: bool = False) -> Merged:
    """Equal rows merged into one, with the label that most of them have, or with `average` the mean of their labels.

    Rows are equal when all their numbers are (0 and −0 are equal). Time O(nd), memory that of X.

    >>> merged = merge_duplicates([[1.0], [2.0], [1.0], [1.0]], [0, 1, 1, 1])
    >>> merged.X.ravel(), merged.y, merged.groups
    (array([1., 2.]), array([1., 1.]), ((0, 2, 3),))
    """
    inputs, labels = check_labels(X, y)
    check_several(inputs)
    return merge_checked(inputs, labels, average=average)


def merge_checked(inputs: Float[np.ndarray, "n d"], labels: Float[np.ndarray, " n"], *, average: bool) -> Merged:
    """What `merge_duplicates` returns, of inputs and labels that are checked already."""
    places: dict[bytes, int] = {}
    of_row = np.empty(len(inputs), np.int64)
    members: list[list[int]] = []
    for i, row in enumerate(inputs):
        content = hashlib.blake2b((row + 0.0).tobytes(), digest_size=16).digest()  # −0 + 0 = 0
        at = places.setdefault(content, len(places))
        of_row[i] = at
        if at == len(members):
            members.append([])
        members[at].append(i)
    first = np.array([rows[0] for rows in members])
    merged = labels[first].copy()
    groups = tuple(tuple(rows) for rows in members if len(rows) > 1)
    disagreeing = tuple(rows for rows in groups if (labels[list(rows)] != labels[rows[0]]).any())
    for rows in disagreeing:
        held = labels[list(rows)]
        merged[of_row[rows[0]]] = held.mean() if average else Counter(held.tolist()).most_common(1)[0][0]
    return Merged(inputs[first], merged, first, of_row, groups, disagreeing)
