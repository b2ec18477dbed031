"""How much is read of a file: a limit on its data, unpacked, so that a small file cannot fill the memory."""

from dataclasses import dataclass
from pathlib import Path

from offtangent._errors import InputError
from offtangent._files import READ_LIMIT

MEGABYTE = 10**6
LONGEST = 2**60  # what a file can be asked to read at once
ROW_SHARE = 32  # a row of text takes at most a 32nd of the limit: its cells need far more memory than their text


@dataclass(frozen=True)
class Limit:
    """The most data that may be read of one file."""

    megabytes: int = READ_LIMIT

    @property
    def row(self) -> int:
        """The most characters of one row of text."""
        return min(self.megabytes * MEGABYTE // ROW_SHARE, LONGEST)

    def check(self, source: Path, size: int) -> None:
        """Refuse data of `size` bytes, unpacked, where this is more than the limit."""
        if size > self.megabytes * MEGABYTE:
            raise InputError(
                f"{source} holds {_megabytes(size)} MB of data, unpacked: more than the limit of {self.megabytes} MB. "
                f"{self._raised(_megabytes(size))}"
            )

    def check_so_far(self, source: Path, size: int) -> None:
        """Refuse to read on once `size` bytes are more than the limit, where nobody knows how many will come."""
        if size > self.megabytes * MEGABYTE:
            raise InputError(
                f"{source} holds more data than the limit of {self.megabytes} MB. {self._raised(4 * self.megabytes)}"
            )

    def check_row(self, source: Path, line: int, size: int) -> None:
        """Refuse to read on in one row of text of so far `size` characters."""
        if size > self.row:
            raise InputError(
                f"{source} has a row of more than {self.row / MEGABYTE:g} million characters, up to line {line}: a row "
                f"may take a 32nd of the limit of {self.megabytes} MB. Are line ends or a closing quotation "
                f"mark missing? {self._raised(4 * self.megabytes)}"
            )

    def _raised(self, megabytes: int) -> str:
        return (
            f"If you trust the file and have the memory, raise the limit: --limit {megabytes} on the command line, "
            f"limit={megabytes} in Python."
        )


def _megabytes(size: int) -> int:
    return -(-size // MEGABYTE)
