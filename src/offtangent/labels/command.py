"""The command `offtangent labels`: anyone's labelled data, analysed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from offtangent._files import READ_LIMIT, shown
from offtangent._telling import check_folder, going_on, out, print_json, telling, write_found

if TYPE_CHECKING:
    from offtangent.labels.analysis import LabelAnalysis
    from offtangent.report.page import Page

PAGE, NUMBERS = "labels.html", "labels.json"
EPILOG = "Example: offtangent labels mine.csv --label species"


def labels(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=".csv, .parquet, .npz (X and y) or .npy (with --label).")
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="The label column's name or position (0, 1, … or -1), by default the last; of .npz the array, of .npy "
            "a file."
        ),
    ] = None,
    task: Annotated[str, typer.Option(help="classification, regression, or auto.")] = "auto",
    preprocess: Annotated[str, typer.Option(help="Features standardised, centred or raw.")] = "standardised",
    bias: Annotated[bool, typer.Option(help="Add a bias coordinate before rows are put on the sphere.")] = True,
    kernel: Annotated[
        str, typer.Option(help="relu_hidden, relu_output, relu_both, relu3_hidden, step, gaussian, erf_output.")
    ] = "relu_hidden",
    ridge: Annotated[float, typer.Option(help="Added to the kernel matrix, for rows in the same direction.")] = 0.0,
    rows_at_once: Annotated[
        int | None, typer.Option(help="Larger data are predicted in random parts of this size; default: up to 12000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of shuffles and parts.", min=0, max=2**32 - 1)] = 0,
    limit: Annotated[
        int, typer.Option(help="Megabytes of data, unpacked, above which a file is not read.", min=1)
    ] = READ_LIMIT,
    folder: Annotated[Path, typer.Option("--out", help="Where the page and the numbers are written.")] = Path(
        "offtangent-labels"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Tell how hard the labels of a file are, how many look wrong and which, and how fast training will go.

    Nothing is trained: all follows from the kernel of an infinitely wide network. Equal rows are merged. By default
    features are standardised and rows put on a sphere with a bias coordinate. Writes labels.html and labels.json.
    Exit status: 0, or 2 for a usage error or refused input.
    """
    from offtangent.data import load

    with going_on() as watch:
        watch(f"reading {file}")
        data = load(file, labels=label, limit=limit)
        check_folder(folder)  # which a file that is refused leaves alone
        watch("loading the library")
        import jax

        from offtangent.labels.analysis import analyse

        found = analyse(
            data.X,
            data.y,
            task=task,
            classes=data.classes,
            preprocess=preprocess,
            bias=bias,
            kernel=kernel,
            ridge=ridge,
            rows_at_once=rows_at_once,
            key=jax.random.key(seed),
            watch=watch,
        )
        watch("writing the page")
        page = write_found(found, data.source, folder / NUMBERS, folder / PAGE, _page)
    with telling():
        (_print_numbers if as_json else _print)(found, data.source, page)


def _page(found: "LabelAnalysis", name: str, facts: dict[str, str]) -> "Page":
    """The page; it is made last, since it takes plotly, which may be missing."""
    from offtangent.labels.page import labels_page

    return labels_page(found, name, facts)


def _print_numbers(found: "LabelAnalysis", source: Path, page: Path | None) -> None:
    print_json(found.summary() | {"file": shown(source), "report": shown(page) if page else None})


def _print(found: "LabelAnalysis", source: Path, page: Path | None) -> None:
    from offtangent.labels.analysis import describe
    from offtangent.labels.page import answers, doubt

    if found.classes is None:
        kind = "labels are numbers"
    else:
        counts = [f"{name}: {count}" for name, count in zip(found.classes, found.counts or (), strict=True)]
        kind = f"{len(counts)} classes ({', '.join(counts[:10])}{', …' if len(counts) > 10 else ''})"
    out.print(Text(f"{shown(source)}: {found.n} rows, {found.features} features, {kind}"), soft_wrap=True)
    out.print(Text(f"Inputs: {describe(found.preprocessing)}. Kernel: {found.kernel}."), soft_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False)
    for question, answer in answers(found):
        table.add_row(Text(question, style="bold"), Text(answer))
    out.print(table)
    if found.noise.estimate is not None:
        style = "yellow" if found.noise.estimate.doubtful else "dim"
        text = doubt(found) if found.noise.estimate.doubtful else found.noise.estimate.assumption
        out.print(Text(f"The interval's assumption: {text}", style=style))
    if len(found.parts) > 1:
        out.print(f"Predictions were made within {len(found.parts)} random parts of the rows.")
    if found.rows < len(found.merged.X):
        out.print(f"Spectrum, complexity and training are those of {found.rows} random rows.")
    if page:
        out.print(Text(f"Report: {shown(page)}"), soft_wrap=True)
