"""The words a person types."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.table import Table
from rich.text import Text

from offtangent import __version__
from offtangent._errors import InputError
from offtangent._files import shown
from offtangent._papers import PAPERS
from offtangent._telling import (
    Untold,
    err,
    give_stdout_up,
    out,
    own_stdout,
    print_claims,
    print_failures,
    print_forecast,
    print_json,
    show_every_letter,
    telling,
    told_of,
    untold,
)
from offtangent.lab import training_command as of_regime
from offtangent.labels import command as of_labels

if TYPE_CHECKING:
    pass

app = typer.Typer(
    help="What a neural network learns on, and beyond, its tangent kernel: five papers, measured.",
    epilog="Start with: offtangent run arora/fig1 --profile smoke",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    """Run the program with the words that were typed."""
    show_every_letter()
    try:
        app()
    except (OSError, Untold) as error:
        # What is said of --help and --version does not pass through a command.
        why = untold(error) if isinstance(error, OSError) and error.filename is None else error
        if not isinstance(why, Untold):
            raise
        err.print(Text(f"offtangent: {why}."), soft_wrap=True)
        give_stdout_up()
        sys.exit(1)


def polite(command: Callable[..., None]) -> Callable[..., None]:
    """What a person can mend is told in a sentence, without a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        from offtangent.lab.runner import Interrupted
        from offtangent.lab.store import StoreFailed
        from offtangent.lab.workers import ClusterLost

        try:
            with own_stdout():
                command(*args, **kwargs)
        except InputError as error:
            _stop(str(error), 2)
        except StoreFailed as error:
            _stop(str(error.strerror or error), 1)
        except Untold as error:
            _stop(f"{error}.", 1)
        except ClusterLost as error:
            _stop(str(error), 1)
        except Interrupted as error:
            _stop(str(error), 130)
        except KeyboardInterrupt:
            _stop("Interrupted.", 130)

    return wrapped


def _stop(message: str, status: int) -> NoReturn:
    err.print(Text(f"offtangent: {message}"), soft_wrap=True)
    raise typer.Exit(status)


def _version(wanted: bool | None) -> None:
    if wanted:
        out.print(f"offtangent {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = None,
) -> None: ...


@app.command("list", epilog="Example: offtangent list")
@polite
def list_() -> None:
    """List the experiments, with the selector that `run` takes."""
    from offtangent.lab.selection import of_papers

    table = Table("experiment", "what it shows", "profiles", box=None, pad_edge=False)
    for paper in PAPERS:
        table.add_row(Text(paper.name, style="bold"), Text(f"{paper.authors} ({paper.year}): {paper.title}"), "")
        for experiment in of_papers(paper.name):
            table.add_row(experiment.name, Text(experiment.title), ", ".join(experiment.profiles))
    out.print(table)


@app.command(epilog="Example: offtangent run arora/fig1 --profile smoke --on processes:2 --out my-run")
@polite
def run(
    selectors: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SELECTOR]...", help="arora, arora/fig1, a glob, or a file of your own; default: all."),
    ] = None,
    profile: Annotated[str, typer.Option(help="smoke (seconds), laptop (minutes) or paper (a GPU).")] = "laptop",
    on: Annotated[
        str | None,
        typer.Option(
            help="local, processes:N, dask:ADDRESS or slurm:PARTITION; default: a process a core, local on a GPU."
        ),
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where results are kept and the page is written.")] = Path(
        "offtangent-run"
    ),
    fresh: Annotated[bool, typer.Option(help="Compute everything again, whatever is stored.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cells with expected time and memory; run nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print claims and paths as JSON.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End cells that take longer (processes, slurm); the others go on."),
    ] = None,
) -> None:
    """Run experiments, judge their claims, and write the report.

    Finished cells are kept in the output folder: stop a run at any moment, start it again, and it goes on.
    Exit status: 0, 1 if a claim failed or a cell could not be computed, 2 for a usage error or refused input. Figures
    that cannot be drawn are told, and leave it as it is.
    """
    from offtangent import lab
    from offtangent.lab.claims import Verdict
    from offtangent.lab.execution import absences, forecast
    from offtangent.lab.progress import Shown

    if dry_run:
        todo = forecast(selectors or [], profile, folder, on=on, fresh=fresh, timeout=timeout)
        for sentence in absences(todo):
            err.print(Text(sentence, style="yellow"), soft_wrap=True)
        print_forecast(todo, as_json)
        return
    words, progress = selectors or [], Shown(err)
    found = lab.execute(words, profile, folder, on=on, fresh=fresh, timeout=timeout, progress=progress)
    print_failures(found.failures, found.judged, folder)
    with telling():
        if as_json:
            print_json(told_of(found))
        else:
            print_claims(found.claims)
            out.print(f"{found.computed} cells computed, {found.reused} taken from {shown(folder.resolve())}.")
            _print_path(found.page)
    if any(done.refused for _, done in found.failures):
        raise typer.Exit(2)
    failed = any(claim.verdict == Verdict.FAILS for _, claim in found.claims)
    if failed or found.failures or any(judged.error for judged in found.judged.values()):
        raise typer.Exit(1)


@app.command(epilog="Example: offtangent report my-run")
@polite
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The output folder of a run.")],
    selectors: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Your own experiments, if the run had any."),
    ] = None,
) -> None:
    """Write the report of an earlier run again, from its results and those that come with the package."""
    from offtangent.lab.execution import report_again
    from offtangent.lab.progress import Shown

    page, left_out = report_again(folder, selectors or [], progress=Shown(err))
    with telling():
        _print_path(page)
    if page is None or left_out:
        raise typer.Exit(1)


def _print_path(page: Path | None) -> None:
    if page is not None:
        out.print(Text(f"Report: {shown(page)}"), soft_wrap=True)


app.command(epilog=of_labels.EPILOG)(polite(of_labels.labels))
app.command(epilog=of_regime.EPILOG)(polite(of_regime.regime))


@app.command(epilog="Example: offtangent info")
@polite
def info() -> None:
    """Show versions, devices and the data sets found."""
    from importlib.metadata import PackageNotFoundError, version

    import jax

    from offtangent import data
    from offtangent.data.catalogue import data_folder
    from offtangent.lab.records import committed_records

    table = Table.grid(padding=(0, 2))
    table.add_row("offtangent", __version__)
    for package in (
        "jax",
        "equinox",
        "optax",
        "numpy",
        "xarray",
        "plotly",
        "distributed",
        "submitit",
        "pyarrow",
    ):
        try:
            table.add_row(package, version(package))
        except PackageNotFoundError:
            table.add_row(package, "not installed")
    table.add_row("python", sys.version.split()[0])
    for device in jax.devices():
        table.add_row("device", f"{device.platform}: {device.device_kind}")
    table.add_row("data folder", Text(f"{data_folder()} (set OFFTANGENT_DATA to change it)"))
    for name in ("digits", "mnist", "cifar10"):
        missing = f"not found; offtangent.data.download({name!r}) fetches it"
        table.add_row(f"  {name}", "found" if data.fetch.available(name) else missing)
    table.add_row("results at the papers' sizes", ", ".join(path.stem for path in committed_records()) or "none")
    out.print(table)
