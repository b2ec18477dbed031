"""The words a person types."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.table import Table
from rich.text import Text

from offtangent import __version__
from offtangent._errors import InputError
from offtangent._files import shown
from offtangent._telling import (
    Untold,
    err,
    out,
    own_stdout,
    print_absent,
    print_claims,
    print_failures,
    print_forecast,
    print_json,
    print_unnamed,
    show_every_letter,
    telling,
    told_of,
)
from offtangent.labels.command import EPILOG, labels
from offtangent.papers import PAPERS

if TYPE_CHECKING:
    from offtangent import lab

PAGE = "report.html"

app = typer.Typer(
    help="What a neural network learns on, and beyond, its tangent kernel: five papers, measured.",
    epilog="Start with: offtangent run arora/fig1 --profile smoke",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    show_every_letter()
    app()


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


def _warn(message: str) -> None:
    err.print(Text(message, style="yellow"), soft_wrap=True)


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
    table = Table("experiment", "what it shows", "profiles", box=None, pad_edge=False)
    for paper in PAPERS:
        table.add_row(Text(paper.name, style="bold"), Text(f"{paper.authors} ({paper.year}): {paper.title}"), "")
        for experiment in _experiments(paper.name):
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
    Exit status: 0, 1 if a claim failed or a cell could not be computed, 2 for a usage error or refused input.
    """
    from offtangent import lab
    from offtangent.lab.compiled import keep_compiled
    from offtangent.lab.executors import check_timeout
    from offtangent.lab.progress import shown_progress
    from offtangent.lab.publish import judge
    from offtangent.lab.records import record_of, too_large
    from offtangent.lab.worker import sharing_settings

    folder = Path(os.path.abspath(folder))  # whatever folder a user's file changes to
    experiments = lab.selection.select(selectors or [], _experiments())
    lab.selection.check_profile(profile, experiments)
    store = lab.store.Store.open(folder)
    placement = lab.executors.parse_placement(on)
    check_timeout(timeout, placement)
    if placement.kind == "processes":
        os.environ.update(sharing_settings())  # before JAX looks for a GPU in here, too
    todo = lab.runner.plan(experiments, profile, store, placement, fresh=fresh)
    for experiment in experiments:
        if absent := experiment.absent(profile):
            print_absent(experiment.name, absent)
    if dry_run:
        print_forecast(todo, placement, as_json)
        return
    if todo.missing:
        if "jax" in sys.modules and (fault := keep_compiled()):
            err.print(Text(fault, style="yellow"), soft_wrap=True)
        err.print(f"{len(todo.missing)} of {len(todo.jobs)} cells to compute on {placement} …")
    with shown_progress(todo.missing, err) as on_done:
        outcomes = lab.runner.run(todo, store, timeout=timeout, on_done=on_done, tell=_warn)
    for line in store.damaged:
        err.print(Text(f"Damaged and computed again: {line}", style="yellow"), soft_wrap=True)
    for outcome in outcomes:
        if told_size := too_large(outcome.results):
            err.print(Text(f"{outcome.experiment.name}: {told_size}", style="yellow"), soft_wrap=True)
        print_unnamed(outcome)
    records = [record_of(outcome) for outcome in outcomes]
    paths = [lab.records.write_record(record, folder / "results") for record in records]
    failures = [(job, done) for outcome in outcomes for job, done in outcome.failures]
    judged = {outcome.experiment.name: judge(outcome.experiment, outcome.results) for outcome in outcomes}
    claims = [(name, claim) for name, judgement in judged.items() for claim in judgement.claims]
    page = _page(experiments, records, folder, {"profile": profile, "executor": str(placement)})
    print_failures(failures, judged, folder)
    computed, reused = sum(o.computed for o in outcomes), sum(o.reused for o in outcomes)
    with telling():
        if as_json:
            told = {"profile": profile, "computed": computed, "reused": reused, "damaged": store.damaged}
            written = {"results": [shown(path) for path in paths], "report": shown(page) if page else None}
            print_json(told | told_of(failures, claims) | written)
        else:
            print_claims(claims)
            out.print(f"{computed} cells computed, {reused} taken from {shown(folder)}.")
            if page:
                out.print(Text(f"Report: {shown(page)}"), soft_wrap=True)
    if any(done.refused for _, done in failures):
        raise typer.Exit(2)
    failed = any(claim.verdict == lab.Verdict.FAILS for _, claim in claims)
    if failed or failures or any(judgement.error for judgement in judged.values()):
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
    from offtangent import lab
    from offtangent.lab.mending import read_or_remake
    from offtangent.lab.store import check_output

    own = lab.selection.select(selectors, _experiments()) if selectors else []
    known = {experiment.name: experiment for experiment in [*_experiments(), *own]}
    check_output(folder)
    paths = sorted((folder / "results").glob("*.json"))
    if not paths:
        raise InputError(f"There are no results in {folder / 'results'}. Make some with: offtangent run --out {folder}")
    read = [read_or_remake(path, known) for path in paths]
    for record, fault in read:
        if fault:
            err.print(Text(fault, style="yellow" if record else "red"), soft_wrap=True)
    records = [record for record, _ in read if record is not None]
    lost = [fault for record, fault in read if record is None]
    names = {record.name for record in records}
    these = [experiment for experiment in known.values() if experiment.name in names]  # as their papers go, not by file
    altered: list[str] = []
    page = _page(these, records, folder, {}, lost, altered)
    if page is not None:
        with telling():
            out.print(Text(f"Report: {shown(page)}"), soft_wrap=True)
    if page is None or lost or altered:
        raise typer.Exit(1)


app.command(epilog=EPILOG)(polite(labels))


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


def _experiments(paper: str | None = None) -> "list[lab.experiment.Experiment]":
    from offtangent.lab.experiment import Experiment

    return [
        Experiment(f"{p.name}/{name}", f"offtangent.papers.{p.name}.{name}")
        for p in PAPERS
        for name in p.experiments
        if paper in (None, p.name)
    ]


def _page(
    experiments: "Sequence[lab.experiment.Experiment]",
    records: "Sequence[lab.records.Record]",
    folder: Path,
    facts: dict[str, str],
    lost: Sequence[str] = (),
    altered: list[str] | None = None,
) -> Path | None:
    """The report of these records, next to the ones that come with the package; None where plotly is missing.

    `lost` tells of records that are left out; what is wrong with shipped ones is told too, and added to `altered`.
    """
    from offtangent.lab.naming import record_name
    from offtangent.lab.publish import Chapter, publish
    from offtangent.lab.records import committed_records, read_shipped, shipped_fault

    known = {experiment.name: experiment for experiment in experiments}
    ours = {record_name(experiment.name, profile) for experiment in experiments for profile in experiment.profiles}
    committed = [path for path in committed_records() if path.name in ours]
    faults = {path: shipped_fault(path) for path in committed}
    told_faults = [fault for fault in faults.values() if fault]
    if altered is not None:
        altered += told_faults
    for fault in told_faults:
        err.print(Text(fault, style="red"), soft_wrap=True)
    shipped = [read_shipped(path, known) for path in committed if not faults[path]]
    everything = [*records, *shipped]
    chapters = []
    for (name, own), group in _by_paper(experiments).items():
        paper = None if own else next((p for p in PAPERS if p.name == name), None)
        title = f"{paper.authors} ({paper.year})" if paper else name
        entries = tuple((e, [record for record in everything if record.name == e.name]) for e in group)
        chapters.append(Chapter(name, title, paper.title if paper else "", entries))
    told = {
        **facts,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "offtangent " + " ".join(map(shown, sys.argv[1:])),
    }
    try:
        return publish(chapters, folder / PAGE, told, shipped, [*lost, *told_faults]).resolve()
    except ImportError as error:
        told_error = f"No report was written: {error}. Elsewhere: offtangent report {shown(folder)}"
        err.print(Text(told_error, style="yellow"), soft_wrap=True)
        return None


def _by_paper(
    experiments: "Sequence[lab.experiment.Experiment]",
) -> "dict[tuple[str, bool], list[lab.experiment.Experiment]]":
    """By the names of papers, and of a user's own files, which may be called like a paper."""
    groups: dict[tuple[str, bool], list[lab.experiment.Experiment]] = {}
    for experiment in experiments:
        name, inside, _ = experiment.name.partition("/")
        groups.setdefault((name, not inside), []).append(experiment)
    return groups
