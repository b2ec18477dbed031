"""Random edits of code that smoke cells really execute: every one must change the key of its cells."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from offtangent.papers import PAPERS

HERE = Path(__file__).parent
EDITS = 200

pytestmark = pytest.mark.timeout(1200)  # one cell of each class is run under a tracer


@pytest.fixture(scope="module")
def edits(tmp_path_factory):
    """What became of edits of executed code, and of those in refusals.

    Other processes look: the types of every call are checked in this one.
    """
    folder, found = tmp_path_factory.mktemp("lines"), {}
    for paper in PAPERS:
        path = folder / f"{paper.name}.json"
        subprocess.run([sys.executable, HERE / "watcher.py", paper.name, path], check=True, timeout=600)
        found |= json.loads(path.read_text())
    (folder / "executed.json").write_text(json.dumps(found))
    words = [sys.executable, HERE / "mutator.py", folder / "executed.json", str(EDITS)]
    return json.loads(subprocess.run(words, check=True, timeout=600, capture_output=True, text=True).stdout)


def test_every_edit_of_executed_code_changes_the_key(edits):
    unseen = [told for told, _, became, _ in edits["executed"] if became == "unseen"]
    assert not unseen, "\n".join(unseen)


def test_code_of_every_experiment_is_edited(edits):
    edited = Counter(name for *_, name in edits["executed"])
    assert set(edited) == {f"{paper.name}/{name}" for paper in PAPERS for name in paper.experiments}
    assert min(edited.values()) >= EDITS // len(edited)


def test_edits_are_of_many_kinds(edits):
    kinds = Counter(kind for _, kind, _, _ in edits["executed"])
    assert sum(kinds.values()) == EDITS
    assert set(kinds) == {"Constant", "BinOp", "Compare", "Call", "Module"}


def test_no_edit_inside_a_statement_that_only_raises_changes_the_key(edits):
    assert len(edits["raising"]) >= EDITS // 4
    seen = [told for told, _, became, _ in edits["raising"] if became == "seen"]
    assert not seen, "\n".join(seen)
