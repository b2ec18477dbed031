"""How far a run is and how long it will still take."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from offtangent.lab.runner import Job


@dataclass
class TimeLeft:
    """Counts cells as they come back, weighed by their expected cost."""

    jobs: Sequence[Job]
    finished: int = 0
    _start: float = field(default_factory=time.monotonic)
    _weight: float = 0.0

    @property
    def total(self) -> int:
        return len(self.jobs)

    def done(self, job: Job) -> None:
        self.finished += 1
        self._weight += self._weigh(job)

    @property
    def seconds(self) -> float | None:
        """The time left at the pace so far, or None before the first cell has come back."""
        if self._weight == 0:
            return None
        whole = sum(self._weigh(job) for job in self.jobs)
        return (time.monotonic() - self._start) * max(whole - self._weight, 0.0) / self._weight

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def _weigh(self, job: Job) -> float:
        """Expected seconds plus a little for what every cell pays; the same for all where nothing is counted."""
        return 1.0 + (job.seconds or 0.0)
