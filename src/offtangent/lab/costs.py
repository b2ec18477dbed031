"""What a cell is expected to cost, for --dry-run and for the time left."""

import os
import time
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Cost:
    """Floating-point operations and peak memory of one cell, counted by hand from its sizes."""

    flops: float
    bytes: float


@cache
def rate() -> float:
    """Floating-point operations a second of one worker here, from one small float32 matrix product on one thread.

    A rough figure for a forecast: a tenth of a second, once a process.
    """
    import numpy as np

    a = np.ones((512, 512), np.float32)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return 2 * 512**3 / best / threads


def seconds(text: float | None) -> str:
    """A duration for a person: '0.4 s', '12 s', '3 min 20 s', '2 h 05 min', or '?' when unknown."""
    if text is None:
        return "?"
    if text < 10:
        return f"{text:.1f} s"
    whole = round(text)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory(count: float | None) -> str:
    """An amount of memory for a person: '12 MB', '1.3 GB', or '?'."""
    if count is None:
        return "?"
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1):.0f} MB"
