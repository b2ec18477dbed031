"""Tells of cells that run far longer than expected, once each."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from offtangent.lab.costs import seconds

TIMES, MORE = 10.0, 60.0  # far longer is more than so many times the expectation, and more than so many seconds more
EVERY = 5.0  # seconds between looks


def late(name: str, expected: float | None, ran: float) -> str | None:
    """The sentence for something that runs far longer than expected.

    >>> late("fig1 Cell(1)", 20.0, 600.0)
    'fig1 Cell(1): expected 20 s, running for 10 min 00 s.'
    >>> late("fig1 Cell(1)", 20.0, 199.0), late("fig1 Cell(1)", 0.1, 60.0), late("fig1 Cell(1)", None, 600.0)
    (None, None, None)
    """
    if expected is None or ran <= max(TIMES * expected, expected + MORE):
        return None
    return f"{name}: expected {seconds(expected)}, running for {seconds(ran)}."


@contextmanager
def told_when_late(
    running: Callable[[float], Iterable[tuple[str, float | None, float]]], tell: Callable[[str], None]
) -> Iterator[None]:
    """Look again and again at what runs for more than some seconds: its name, what was expected of it, and how long.

    From a thread: where cells run in this process, the main thread has no time for it.
    """
    told: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            for name, expected, ran in running(MORE):
                sentence = late(name, expected, ran)
                if sentence is not None and name not in told:
                    told.add(name)
                    tell(sentence)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
