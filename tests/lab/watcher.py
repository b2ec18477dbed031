"""Run the cheapest smoke cell of each class of a paper's experiments; write down what lines of offtangent ran."""

import json
import sys
from collections import Counter
from pathlib import Path

import offtangent
from offtangent.lab.experiment import Experiment
from offtangent.papers import PAPERS

PACKAGE = str(Path(offtangent.__file__).parent)
OFTEN = 3  # calls of one function that are looked at: watching every line is slow


def watch(experiment: Experiment) -> tuple[list[str], dict[str, list[int]]]:
    """The classes of cells and, by file, the lines inside functions that ran."""
    lines: dict[str, set[int]] = {}
    entered: Counter[object] = Counter()

    def inner(frame, event, _):
        if event == "line":
            lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return inner

    def enter(frame, *_):
        code = frame.f_code
        entered[code] += 1
        ours = code.co_filename.startswith(PACKAGE) and code.co_name != "<module>"
        return inner if ours and entered[code] <= OFTEN else None

    # Of a name the last cell stays.
    dearest_first = sorted(experiment.cells("smoke"), key=lambda cell: -experiment.cost(cell).flops)
    cells = {type(cell).__name__: cell for cell in dearest_first}
    for cell in cells.values():
        sys.settrace(enter)
        try:
            experiment.run(cell)
        finally:
            sys.settrace(None)
    return sorted(cells), {path: sorted(found) for path, found in lines.items()}


if __name__ == "__main__":
    (paper,) = (one for one in PAPERS if one.name == sys.argv[1])
    found = {
        f"{paper.name}/{name}": watch(Experiment(f"{paper.name}/{name}", f"offtangent.papers.{paper.name}.{name}"))
        for name in paper.experiments
    }
    Path(sys.argv[2]).write_text(json.dumps(found))
