"""How the command line tells things: standard output is its own, and nothing it holds can break a run."""

import errno
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from offtangent import __version__
from offtangent._errors import InputError
from offtangent._files import shown

if TYPE_CHECKING:
    from offtangent import lab
    from offtangent.lab.judging import Judged
    from offtangent.lab.worker import Done
    from offtangent.report.page import Page

    Failure = tuple[lab.runner.Job, Done]

COLOURS = {"holds": "green", "holds with constants 1": "green", "fails": "bold red", "refuted as printed": "yellow"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
QUIET = 5.0  # seconds between two lines of progress where there is no terminal
REASONS = 10  # of failures that are told; the log has all of them


@runtime_checkable
class _Found(Protocol):
    """What a command found: it has its numbers as a dictionary."""

    def summary(self) -> dict[str, Any]: ...


class Untold(Exception):
    """Standard output takes no more: its disk is full, say."""


class _Outspoken(Console):
    """What the program says on standard output, or the reason why it cannot be said."""

    def print(self, *words: Any, **more: Any) -> None:
        try:
            super().print(*words, **more)
        except OSError as error:
            raise untold(error) from None


# No markup: names of files and folders, and what an experiment says, may hold brackets.
out = _Outspoken(highlight=False, markup=False, emoji=False)


class _Patient(Console):
    """Progress that cannot be told, because standard error is on a full disk, say, does not end the work."""

    def print(self, *words: Any, **more: Any) -> None:
        with suppress(OSError):
            super().print(*words, **more)

    def out(self, *words: Any, **more: Any) -> None:
        with suppress(OSError):
            super().out(*words, **more)


err = _Patient(stderr=True, highlight=False, markup=False, emoji=False)


def show_every_letter() -> None:
    """Let letters that a terminal's encoding does not know be written by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # not every stream is a file
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


@contextmanager
def own_stdout() -> Iterator[None]:
    """Keep standard output for what the program itself says: whatever else is written there goes to standard error.

    A cell may start another program, or call a library that writes to the descriptor itself, and JSON must stay JSON.
    Raises `Untold` where what was said cannot be written.
    """
    stream = sys.stdout
    try:
        if stream.fileno() != 1 or sys.stderr is None:
            raise OSError
        stream.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (AttributeError, ValueError, OSError):  # a stream of a test's or a notebook's; no standard error
        yield
        return
    sys.stdout = open(kept, "w", encoding=stream.encoding, errors=stream.errors, closefd=False)  # noqa: SIM115
    try:
        yield
        _flush()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        with suppress(OSError):  # what is left in it has been told to be lost
            sys.stdout.close()
        os.close(kept)
        sys.stdout = stream


def _flush() -> None:
    try:
        if sys.stdout is not None:  # as it is where it was closed from the start
            sys.stdout.flush()
    except OSError as error:
        raise untold(error) from None


def give_stdout_up() -> None:
    """Let what could not be written go, or Python would try once more when it ends, and complain."""
    with suppress(AttributeError, ValueError, OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def telling() -> Iterator[None]:
    """What is written to standard output in here, or the reason why it cannot be, after something was computed."""
    try:
        try:
            yield
        except OSError as error:
            raise untold(error) from None
        _flush()
    except Untold as why:
        raise Untold(f"{why}. What was computed is stored") from None


def untold(error: OSError) -> Exception:
    """Why standard output cannot be written, for a person; another error is none of its business."""
    if error.errno not in FULL:  # EPIPE among them: whoever read it has seen enough
        return error
    return Untold(f"Standard output cannot be written ({error.strerror or error})")


def print_json(told: Any) -> None:
    """JSON on standard output, in plain ASCII where that is all it takes."""
    from offtangent.lab.records import finite

    text = json.dumps(finite(told), ensure_ascii=False, indent=1, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(finite(told), indent=1, allow_nan=False)
    print(text)


def print_claims(claims: "Sequence[tuple[str, lab.Claim]]") -> None:
    """The table of claims, and how many there are of each verdict."""
    from offtangent.lab.claims import Verdict
    from offtangent.report.text import plain

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("verdict", max_width=12)
    table.add_column("claim")
    table.add_column("measured", max_width=18)
    table.add_column("expected", max_width=18)
    for _, claim in claims:
        verdict = Text(claim.verdict.value, style=COLOURS.get(claim.verdict.value, "dim"))
        table.add_row(verdict, Text(f"{claim.source}: {plain(claim.statement)}"), claim.number, claim.wanted)
    out.print(table)
    counts = Counter(claim.verdict for _, claim in claims if claim.kind == "claim")
    identities = sum(claim.kind == "identity" for _, claim in claims)
    told = [f"{counts[one]} {one}" for one in Verdict if counts[one]]
    if identities:
        told.append(f"{identities} identities are not counted")
    if told:
        out.print(f"Claims: {', '.join(told)}.")


def told_of(found: "lab.execution.Run") -> dict[str, Any]:
    """A run for JSON, every cell that failed by itself."""
    from offtangent.lab.experiment import name_of

    return {
        "profile": found.profile,
        "computed": found.computed,
        "reused": found.reused,
        "damaged": found.damaged,
        "failures": [
            {"experiment": job.experiment.name, "cell": name_of(job.cell), "error": done.error}
            for job, done in found.failures
        ],
        "claims": [{"experiment": name, **asdict(claim)} for name, claim in found.claims],
        "results": [shown(path) for path in found.records],
        "report": shown(found.page) if found.page else None,
    }


def print_failures(failures: "Sequence[Failure]", judged: "Mapping[str, Judged]", folder: Path) -> None:
    """Tell what went wrong, each reason once with how many cells it cost, and in full in a log beside the results."""
    from offtangent._files import write_whole
    from offtangent.lab.experiment import name_of
    from offtangent.lab.progress import reason

    alike = Counter(reason(job, done) for job, done in failures)
    first = {reason(job, done): (job, done) for job, done in reversed(failures)}
    for why, count in list(alike.items())[:REASONS]:
        job, done = first[why]
        others = "" if count == 1 else f" (and {count - 1} more of its cells for the same reason)"
        _warn(f"Failed: {job.experiment.name} {name_of(job.cell)}: {done.error}{others}")
    failed = {job.experiment.name for job, _ in failures}
    unjudged = {name: one for name, one in judged.items() if one.error and (one.trace or name not in failed)}
    for name, one in unjudged.items():
        _warn(f"The claims of {name} could not be judged: {one.error}")
    full = [f"{job.experiment.name} {name_of(job.cell)}\n{done.trace or done.error}" for job, done in failures]
    full += [f"{name}: its claims\n{one.trace}" for name, one in unjudged.items() if one.trace]
    if not full:
        return
    log = folder / "failures.log"
    try:
        write_whole(log, "\n".join(full).encode(errors="backslashreplace"))
    except OSError as error:  # what could be computed is told all the same
        _warn(f"{shown(log)} could not be written: {error.strerror or error}.")
        return
    more = f" for {len(alike)} reasons" if len(alike) > REASONS else ""
    how_many = f"{len(failures)} cells failed{more}; " if failures else ""
    err.print(f"{how_many}tracebacks are in {shown(log)}. What was computed is stored.", soft_wrap=True)


@contextmanager
def going_on() -> Iterator[Callable[[str], None]]:
    """Where to tell what is going on: a line that changes on a terminal, a line now and then elsewhere."""
    if err.is_terminal:
        with err.status("") as status:
            yield lambda text: status.update(Text(f"{text} …"))
        return
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= QUIET:
            last = time.monotonic()
            err.print(Text(f"{text} …"), soft_wrap=True)

    yield tell


def check_folder(folder: Path) -> None:
    """Refuse an output folder that cannot be written, before long work; it is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"The output folder {folder} cannot be written: {error.strerror or error}. Give another with --out."
        ) from None


def write_found(
    found: "_Found", source: Path, numbers: Path, page: Path, make: "Callable[[Any, str, dict[str, str]], Page]"
) -> Path | None:
    """Write what a command found, its numbers as JSON and its page; its place, or None where plotly is missing."""
    from offtangent._files import write_whole
    from offtangent.lab.records import finite

    facts = {
        "file": shown(source),
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "offtangent": __version__,
        "command": "offtangent " + " ".join(map(shown, sys.argv[1:])),
    }
    try:
        text = json.dumps(finite(found.summary()), ensure_ascii=False, indent=1, allow_nan=False)
        write_whole(numbers, text.encode(errors="backslashreplace"))
        from offtangent.report.page import write

        return write(make(found, shown(source.name), facts), page).resolve()
    except ImportError as error:
        err.print(Text(f"No page was written: {error}.", style="yellow"))
        return None
    except OSError as error:
        raise InputError(f"The output folder {page.parent} cannot be written: {error.strerror or error}.") from None


def _warn(text: str) -> None:
    err.print(Text(text, style="red"), soft_wrap=True)


def print_forecast(todo: "lab.runner.Plan", as_json: bool) -> None:
    """The cells of a plan with their expected time and memory."""
    from offtangent.lab.costs import memory, seconds
    from offtangent.lab.experiment import name_of

    if as_json:
        told = [
            {
                "experiment": j.experiment.name,
                "cell": name_of(j.cell),
                "key": j.key,
                "stored": j.stored,
                "seconds": j.seconds,
                "bytes": j.cost.bytes if j.cost else None,
            }
            for j in todo.jobs
        ]
        print_json(told)
        return
    table = Table("cell", "state", "time", "memory", box=None, pad_edge=False)
    for job in todo.jobs:
        state = "stored" if job.stored else "to do"
        size = job.cost.bytes if job.cost else None
        table.add_row(
            Text(f"{job.experiment.name} {name_of(job.cell)}"),
            state,
            "" if job.stored else seconds(job.seconds),
            memory(size),
        )
    out.print(table)
    expected = [job.seconds for job in todo.missing]
    known = sum(s for s in expected if s is not None)
    unknown = sum(s is None for s in expected)
    parts = [f"about {seconds(known / todo.placement.workers)} on {todo.placement} after compilation"] if known else []
    parts += [f"{unknown} cells of unknown cost"] if unknown else []
    out.print(f"{len(todo.jobs)} cells, {len(todo.missing)} to do{': ' if parts else ''}{', '.join(parts)}.")
