"""Ctrl-C ends the program with a sentence and status 130, from its first moment to its last.

Python would raise KeyboardInterrupt, which becomes a traceback while modules are imported or the interpreter ends, and
which any code may swallow. Outside of a run of cells, which sees to itself, the program has nothing to tidy up: it ends
at once. And should it still be there a while after a Ctrl-C, wherever it hangs, it is ended all the same.
"""

import os
import signal
import threading
import time

STATUS = 130  # what a shell tells of a program that was interrupted
PATIENCE = 10.0  # seconds that what runs has to come to an end of itself
SENTENCE = b"offtangent: Interrupted. What was finished is kept.\n"


def end_with_a_sentence(*_: object) -> None:
    """End the process here and now, from whatever code and whatever thread this is called."""
    try:
        cursor = b"\r\x1b[?25h" if os.isatty(2) else b""  # a progress bar hides it
        os.write(2, cursor + SENTENCE)
    except OSError:
        pass  # nobody listens
    os._exit(STATUS)


def honour_interrupts() -> None:
    """From now on Ctrl-C ends this process. Where it is ignored, as under nohup, it stays so."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, end_with_a_sentence)
    if os.name == "nt":
        return  # where only sockets wake
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)  # is written to even if Python's own handler cannot run
    threading.Thread(target=_end_what_stays, args=(ear,), daemon=True).start()


def _end_what_stays(ear: int) -> None:
    while signal.SIGINT not in os.read(ear, 512):
        pass  # it was another signal
    time.sleep(PATIENCE)
    end_with_a_sentence()
