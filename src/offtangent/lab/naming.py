"""Names of records: no two experiments and profiles share one, and none leads out of the folder."""

from offtangent._errors import InputError

FOLDERS, FILES = ("cells", "damaged", "results"), ("report.html", "failures.log")  # in an output folder
KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_")
LONGEST = 100  # letters of either part of a record's name: most file systems take 255, and a temporary file has more


def record_name(experiment: str, profile: str) -> str:
    """The name of a record's file, one for each experiment and profile, on any file system.

    Hyphens part a paper, its experiment and the profile. Whatever is not a lower-case letter, a digit or an underscore
    is written by its bytes: capitals, too, for some systems do not tell `A` from `a`.

    >>> record_name("arora/fig1", "paper"), record_name("a-b", "smoke"), record_name("a", "b-smoke")
    ('arora-fig1-paper.json', 'a%2db-smoke.json', 'a-b%2dsmoke.json')
    """
    return f"{'-'.join(map(_written, experiment.split('/')))}-{_written(profile)}.json"


def _written(name: str) -> str:
    return "".join(chr(byte) if byte in KEPT else f"%{byte:02x}" for byte in name.encode("utf-8", "surrogatepass"))


def check_name(name: object, what: str) -> None:
    """Refuse a name that could lead elsewhere as part of a path, or that cannot be shown."""
    plain = type(name) is str and name.isprintable() and not {"/", "\\"} & set(name) and name.strip(". ")
    if not plain:
        shown = ascii(name) if len(ascii(name)) <= 80 else f"{ascii(name)[:77]}…"
        raise InputError(f"{what} is called {shown}: give it a name of printable text without / and \\.")
    if len(_written(str(name))) > LONGEST:
        raise InputError(
            f"{what} is called {str(name)[:20]!r} …, {len(str(name))} letters: its results are kept in a file named "
            f"after it, which has {LONGEST} for it, one for a lower-case letter or digit, more for others. Shorten it."
        )
