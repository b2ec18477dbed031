"""The command `offtangent regime`: anyone's trained network, measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from offtangent._files import shown
from offtangent._telling import check_folder, going_on, out, print_json, telling, write_found

if TYPE_CHECKING:
    from offtangent.regime.course import Course
    from offtangent.report.page import Page

PAGE, NUMBERS = "regime.html", "regime.json"
EPILOG = "Examples: offtangent regime my_model.py     offtangent regime my_model.py --torch start.pt trained.pt"


def regime(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file with a function training().")],
    states: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[STATE]...", help="Of a PyTorch module: its state dicts along training, the start first."
        ),
    ] = None,
    torch: Annotated[
        bool, typer.Option("--torch", help="The network is a PyTorch module; .pt and .safetensors are read.")
    ] = False,
    order: Annotated[int, typer.Option(help="Of the Taylor series.", min=1, max=30)] = 2,
    samples: Annotated[int, typer.Option(help="Inputs drawn at random, and as many of those held out.", min=1)] = 500,
    seed: Annotated[int, typer.Option(help="Of that draw.", min=0, max=2**32 - 1)] = 0,
    memory: Annotated[int, typer.Option(help="Megabytes that gradients may take at once.", min=1)] = 512,
    folder: Annotated[Path, typer.Option("--out", help="Where the page and the numbers are written.")] = Path(
        "offtangent-regime"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Tell whether a trained network is lazy, and what each order of its Taylor series carries of what it learnt.

    FILE has a function training() that takes nothing and returns offtangent.regime.Training(f, [params0, ..., params],
    X, y): the network, its parameters from the start to the end of training, inputs and labels, and inputs held out if
    there are any. With a PyTorch module in place of f, the parameters are state dicts, or files that are named after
    FILE. Each checkpoint is stored as soon as it is measured: run the same command again to go on. Writes regime.html
    and regime.json. Exit status: 0, or 2 for a usage error or refused input.
    """
    check_folder(folder)
    with going_on() as watch:
        watch("loading the library")
        from offtangent.lab.trainings import KeptInFolder, read_training
        from offtangent.regime.course import follow

        watch(f"reading {file}")
        training = read_training(file, states or [], torch=torch)
        kept = KeptInFolder.open(folder)
        found = follow(training, order=order, samples=samples, seed=seed, memory=memory * 2**20, kept=kept, watch=watch)
        watch("writing the page")
        page = write_found(found, file, folder / NUMBERS, folder / PAGE, _page)
    with telling():
        if as_json:
            print_json(found.summary() | {"file": shown(file), "report": shown(page) if page else None})
        else:
            _print(found, file, page)


def _page(found: "Course", name: str, facts: dict[str, str]) -> "Page":
    """The page; it is made last, since it takes plotly, which may be missing."""
    from offtangent.regime.page import regime_page

    return regime_page(found, name, facts)


def _print(found: "Course", source: Path, page: Path | None) -> None:
    from offtangent.regime.words import answers

    last = found.last
    outputs = "1 output" if last.outputs == 1 else f"{last.outputs} outputs"
    count = len(found.regimes)
    told = "" if count == 1 else f", {count} checkpoints after the start, the last of which is:"
    out.print(Text(f"{shown(source)}: {last.parameters} parameters, {outputs}, {last.samples} inputs{told}"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for question, answer in answers(last):
        table.add_row(Text(question, style="bold"), Text(answer))
    out.print(table)
    if page:
        out.print(Text(f"Report: {shown(page)}"), soft_wrap=True)
