"""What a cell is expected to cost, for --dry-run and for the time left."""

import os
import time
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Cost:
    """What one cell of an experiment is expected to cost, counted by hand from its sizes.

    An experiment's `cost(cell)` returns one. `--dry-run` shows both numbers for each cell, and the time left is
    estimated from the operations.

    Attributes:
        flops: The number of floating-point operations.
        bytes: The peak memory in bytes.

    >>> n = 1000
    >>> Cost(flops=n**3 / 3, bytes=8 * n**2).bytes  # of a Cholesky factor
    8000000
    """

    flops: float | int
    bytes: float | int


@cache
def rate() -> float:
    """Floating-point operations a second of one worker here, from a float32 matrix product shared among all cores.

    A rough figure for a forecast: a tenth of a second, once a process; the best of many, since others may be busy.
    """
    import numpy as np

    a = np.ones((512, 512), np.float32)
    best = float("inf")
    for _ in range(25):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * 512**3 / best / cores()


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def seconds(time: float | None) -> str:
    """A duration for a person: '0.4 s', '12 s', '3 min 20 s', '2 h 05 min', or '?' when unknown."""
    if time is None:
        return "?"
    if time < 10:
        return f"{time:.1f} s"
    whole = round(time)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory(count: float | None) -> str:
    """An amount of memory for a person: '12 MB', '1.3 GB', or '?'."""
    if count is None:
        return "?"
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1):.0f} MB"
