"""What is known of the code that made the shipped records: results/meta/fingerprints.json.

Records are as a run wrote them and are never edited, so what is found out later stands beside them: the hash of the
code at a record's own commit, and, where the code has changed since, whether today's gives the same numbers at smoke
size. `python -m tools.shipped` writes the file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offtangent._files import read_regular


@dataclass(frozen=True)
class Comparison:
    """Smoke results of a record's commit and of a later code, on one machine with one thread a process."""

    code: str  # the fingerprint of the later code
    cells: int  # that were compared: those of the same class and fields
    alone: int  # cells without a partner
    moved: Mapping[str, str]  # variable → by how much at most, where that is beyond rounding
    verdicts: tuple[str, ...]  # that changed

    @property
    def numbers_moved(self) -> bool:
        """Whether numbers or verdicts changed, in any cell that could be compared."""
        return bool(self.moved or self.verdicts)


@dataclass(frozen=True)
class Origin:
    """Where a shipped record's numbers come from, as far as is known today."""

    commit: str
    exact: bool  # False where the tree had been changed since its commit
    code: str  # the fingerprint of the code at that commit
    compared: Comparison | None  # None where the code has not changed since

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Origin":
        """From JSON."""
        compared = told["compared"]
        if compared is not None:
            compared = Comparison(**compared | {"verdicts": tuple(compared["verdicts"])})
        return cls(told["commit"], told["exact"], told["code"], compared)

    @property
    def looked_at(self) -> str:
        """The fingerprint of the latest code that is known to give these numbers, or not to."""
        return self.compared.code if self.compared else self.code


def origin_of(path: Path) -> Origin | None:
    """What is known of the shipped record in a file; None where nothing is."""
    try:
        told = json.loads(read_regular(path.parent / "meta" / "fingerprints.json"))
        return Origin.read(told[path.stem])
    except (OSError, ValueError, KeyError, TypeError):
        return None
