"""Ctrl-C during a run is remembered until the run has come to a place where it can stop.

Python raises KeyboardInterrupt wherever the main thread happens to be: in a callback of JAX's, which makes another
error of it; in a `__del__`, which drops it; or halfway through the birth of a worker. So during a run the signal is
only noted, and the run looks for the note wherever it may stop. A cell that runs in this process gets the exception,
and again every second until it has come out of the cell; at first not in places from which it would not come out, but
be printed.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

AGAIN = 1.0  # seconds until a cell that is still there gets the exception once more
SPARED = 2  # times that a callback or a finaliser is spared it, unless a cell consists of nothing else

P = ParamSpec("P")
T = TypeVar("T")


class Interrupts:
    """Used in a `with` block around a run; without effect outside of the main thread, which alone gets signals."""

    def __init__(self) -> None:
        self.came = False
        self._inside = False  # a cell, which is to get the exception
        self._spared = self._logged = 0
        self._before: Any = None
        self._over = threading.Event()

    def __enter__(self) -> "Interrupts":
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and before not in (None, signal.SIG_IGN):
            self._before = signal.signal(signal.SIGINT, self._note)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._overhear
            self._logged = logging.root.manager.disable
            threading.Thread(target=self._insist, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever ends the run, a Ctrl-C goes before it: it may well have been the cause, in a program called."""
        if self._before is not None:
            self._over.set()
            sys.unraisablehook = self._hook
            logging.disable(self._logged)
            signal.signal(signal.SIGINT, self._before)
        self.look()

    def look(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed since the run began."""
        if self.came:
            raise KeyboardInterrupt

    def expose(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that Ctrl-C may interrupt anywhere. It gets no further than this, whatever the call does."""
        try:
            self._inside = True
            return call(*args, **kwargs)
        finally:
            self._inside = False
            self.look()

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.came = True
        if not self._inside or frame is None or frame.f_code is Interrupts.expose.__code__:
            return
        if self._spared < SPARED and _would_swallow(frame):
            self._spared += 1
            return
        logging.disable(logging.CRITICAL)  # as errors, with tracebacks, JAX would tell what is the user's wish
        raise KeyboardInterrupt

    def _overhear(self, dropped: Any) -> None:
        """What Python prints of an exception that it drops, unless it is ours, which comes again."""
        if not (self.came and issubclass(dropped.exc_type, KeyboardInterrupt)):
            self._hook(dropped)

    def _insist(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while not self._over.wait(AGAIN):
            if self.came and self._inside:
                if hasattr(signal, "pthread_kill"):
                    signal.pthread_kill(main, signal.SIGINT)  # wakes it from a sleep, too
                else:
                    signal.raise_signal(signal.SIGINT)


def _would_swallow(frame: FrameType | None) -> bool:
    """Whether this is called by one that drops exceptions, a finaliser, or that logs them, a callback of JAX's."""
    while frame is not None and (code := frame.f_code) is not Interrupts.expose.__code__:
        file = code.co_filename.replace("\\", "/")
        if code.co_name == "__del__" or ("/jax/" in file and "callback" in f"{file} {code.co_name}"):
            return True
        frame = frame.f_back
    return False
