"""Questions to code of a user's own: what it raises becomes a sentence, and what it prints goes to stderr."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from offtangent._errors import InputError

LONG = 500  # letters of an exception's text that a sentence holds


def told(error: BaseException) -> str:
    """An exception's class and text, in one sentence's length; its own `__str__` may fail, too."""
    try:
        text = str(error).strip()
    except Exception:
        text = "(what it says cannot be shown)"
    return f"{type(error).__name__}{f': {text}' if text else ''}"


@contextlib.contextmanager
def asking(where: str, question: str) -> Iterator[None]:
    """Whatever is raised in here, `sys.exit()` among it, is told in a sentence with its line in the user's file.

    Standard output may be the run's JSON, so what is printed in here goes to standard error. `where` is the user's
    file, or the name of a module.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # A generator of ours that asks, and is closed before its end, passes through here as well.
        if isinstance(error, GeneratorExit) and not _lines(where, error):
            raise
        said = told(error)
        said = said if len(said) <= LONG else f"{said[:LONG]} …"
        raise InputError(f"{_place(where, error)}: {question} raised {said}") from error


def _place(where: str, error: BaseException) -> str:
    """The user's file, with the last line of it that was reached."""
    lines = _lines(where, error)
    name = Path(where).name if where.endswith(".py") else where
    return f"{name}, line {lines[-1]}" if lines else name


def _lines(where: str, error: BaseException) -> list[int]:
    """The lines of a file that an exception came through."""
    lines = []
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == where:
            lines.append(step.tb_lineno)
        step = step.tb_next
    return lines
