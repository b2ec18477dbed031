"""What a theorem asks for, next to what a cell has: the conditions under which a claim may say that it holds."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from offtangent._checks import require

Relation = Literal["≤", "<", "≥", ">", "="]

COMPARE: Mapping[Relation, Callable[[Any, Any], bool]] = {
    "≤": operator.le,
    "<": operator.lt,
    "≥": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a statement, checked against what was measured on.

    Attributes:
        name: The quantity, in words with its letter: "width m", "step size η".
        value: What the cell has of it: a number, or a word where the condition names a thing ("relu").
        relation: How the value is to stand to the limit.
        limit: What the statement asks for, of the same type.
        source: Where the paper says so.
        given: Whether the paper gives the limit's constants. If not, they are hidden in an O, Ω or poly, are taken as
            1 here, and a claim inside the hypothesis says so.

    >>> wide = Hypothesis("width m", 10_000, "≥", 5e11, "Theorem 4.1")
    >>> wide.met, str(wide)
    (False, 'width m = 1e+04, asked ≥ 5e+11 (Theorem 4.1)')
    """

    name: str
    value: float | int | str
    relation: Relation
    limit: float | int | str
    source: str
    given: bool = True

    def __post_init__(self) -> None:
        require(self.relation in COMPARE, f"relation={self.relation!r}: expected one of {', '.join(COMPARE)}.")
        words = isinstance(self.value, str) or isinstance(self.limit, str)
        require(
            not words or (self.relation == "=" and isinstance(self.value, str) and isinstance(self.limit, str)),
            f"The hypothesis on {self.name} compares {self.value!r} and {self.limit!r}: words can only be equal to "
            'words, with relation="=".',
        )

    @property
    def met(self) -> bool:
        """Whether the value stands to the limit as it should; a value or a limit that is NaN does not."""
        return bool(COMPARE[self.relation](self.value, self.limit))

    def __str__(self) -> str:
        asked = f"{self.relation} {_shown(self.limit)}" if self.relation != "=" else _shown(self.limit)
        constant = "" if self.given else ", its constant taken as 1, not given"
        return f"{self.name} = {_shown(self.value)}, asked {asked} ({self.source}{constant})"


def unmet(hypotheses: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Those that what was measured on does not meet.

    Args:
        hypotheses: The conditions of a statement.

    Returns:
        The ones that fail, in the same order.
    """
    return tuple(one for one in hypotheses if not one.met)


def _shown(value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return "not a number" if math.isnan(value) else f"{value:.4g}"
