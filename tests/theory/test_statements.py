"""Each paper's room opens with its table, statement → where it lives: complete, and every name is what it says.

The checklist numbers what the five papers have, 160 items: A for Bai & Lee, B for Arora et al., C for Allen-Zhu & Li, D
for Ge, Wang & Zhao, E for Nichani, Bai & Lee; with V- what can be verified, with X- experiments.
"""

import functools
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import offtangent
from offtangent.papers import PAPERS

# How many items of each kind the checklist has for each paper, numbered from 1.
CHECKLIST = {
    "bai_lee": {"A": 23, "V-A": 10, "X-A": 4},
    "arora": {"B": 14, "V-B": 12, "X-B": 2},
    "allen_zhu_li": {"C": 19, "V-C": 11, "X-C": 3},
    "ge_wang_zhao": {"D": 13, "V-D": 10, "X-D": 5},
    "nichani": {"E": 18, "V-E": 10, "X-E": 6},
}
MISSING = {
    "X-E5": "Taylorised training of orders 1 to 4 on CIFAR-10 is an experiment of a reference, heavy and optional",
}
EXPERIMENTS = {f"{paper.name}/{experiment}" for paper in PAPERS for experiment in paper.experiments}
GOLDEN = Path(__file__).parents[1] / "golden" / "claims.json"
HEAD = re.compile(r" {4}no\. +statement +where")
ROW = re.compile(r" {4}(\S+) {2,}(\S+(?: \S+)*) {2,}(\S+)")
KINDS = "Theorem|Lemma|Corollary|Proposition|Claim|Fact|Definition|Example|Remark|Assumption|Algorithm|Figure"
# "Lemmas 10, 12 and 14", "Figures 3a and 7", "Lemma D.1(a)"
NUMBER = r"(?:[A-Z]\.)?[0-9A-Z][0-9a-z.]*(?:\([a-z]\))?"
CITED = re.compile(rf"({KINDS})s? ({NUMBER}(?:(?:, | and )(?:[A-Z]\.)?[0-9][0-9a-z.]*)*)")
OTHERS = r"(?:[A-Z0-9.()a-z–-]+(?:, | and |, and | to ))*"  # numbers before the one that is looked for


class Row(NamedTuple):
    number: str
    statement: str
    where: str


def table(text: str) -> list[Row]:
    """The rows of the one table in a module's docstring: from its head to the next empty line."""
    lines = text.splitlines()
    (start,) = [at for at, line in enumerate(lines) if HEAD.fullmatch(line)]
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        found = ROW.fullmatch(line)
        assert found, line
        rows.append(Row(*found.groups()))
    return rows


def checklist(paper: str) -> set[str]:
    return {f"{kind}{number}" for kind, count in CHECKLIST[paper].items() for number in range(1, count + 1)}


TABLES = {paper: table(importlib.import_module(f"offtangent.theory.{paper}").__doc__) for paper in CHECKLIST}
ROWS = [row for rows in TABLES.values() for row in rows]


def found(where: str) -> Any:
    return functools.reduce(getattr, where.split("."), offtangent)


def own(where: str) -> str:
    """The docstring of a name."""
    one = found(where)
    return " ".join((inspect.getdoc(getattr(one, "fget", None) or one) or "").split())


@functools.cache
def told(where: str) -> str:
    """What is written where a statement lives: in its module, or in an experiment's docstring and claims."""
    if where in EXPERIMENTS:
        claims = [claim for claim in json.loads(GOLDEN.read_text()) if claim["experiment"] == where]
        written = importlib.import_module(f"offtangent.papers.{where.replace('/', '.')}").__doc__
        text = "\n".join([written, *(f"{claim['source']}: {claim['statement']}" for claim in claims)])
    else:
        text = inspect.getsource(inspect.getmodule(found(".".join(where.split(".")[:3]))))
    return " ".join(text.split())


def cited(statement: str) -> Iterator[tuple[str, str]]:
    for kind, numbers in CITED.findall(statement):
        yield from ((kind, re.sub(r"\(.*|\.$", "", number)) for number in re.split(", | and ", numbers))


def uncited(row: Row, text: str) -> list[tuple[str, str]]:
    """What of a row's citations a text does not name: "Lemma 10", or "Lemmas 9, 10 and 12"."""
    asked = [(*one, rf"{one[0]}s? {OTHERS}{re.escape(one[1])}(?![0-9]|\.[0-9])") for one in cited(row.statement)]
    return [(kind, number) for kind, number, pattern in asked if not re.search(pattern, text)]


def agrees(row: Row, text: str) -> bool:
    """Whether a text that cites a theorem (or a lemma, ...) at all names one of the row's theorems (or lemmas)."""
    for kind in {kind for kind, _ in cited(row.statement)} & {kind for kind, _ in cited(text)}:
        numbers = [re.escape(number) for other, number in cited(row.statement) if other == kind]
        if not any(re.search(rf"(?<![\w.]){number}(?![0-9]|\.[0-9])", text) for number in numbers):
            return False
    return True


def test_the_checklist_has_160_items_and_no_two_papers_share_one():
    items = [item for paper in CHECKLIST for item in checklist(paper)]
    assert len(items) == len(set(items)) == 160
    assert set(CHECKLIST) == {paper.name for paper in PAPERS}
    assert len(EXPERIMENTS) == 31


@pytest.mark.parametrize("paper", CHECKLIST)
def test_a_table_has_all_of_its_paper_s_items_but_those_known_to_be_missing(paper):
    items = {row.number for row in TABLES[paper]}
    assert items <= checklist(paper)
    assert checklist(paper) - items == set(MISSING) & checklist(paper)
    written = importlib.import_module(f"offtangent.theory.{paper}").__doc__
    assert all(item in written for item in set(MISSING) & checklist(paper)), "a reader is told what is missing"


@pytest.mark.parametrize("paper", CHECKLIST)
def test_a_table_says_nothing_twice(paper):
    assert len(TABLES[paper]) == len(set(TABLES[paper]))


@pytest.mark.parametrize("paper", CHECKLIST)
def test_every_name_of_a_table_is_there_and_public(paper):
    for where in {row.where for row in TABLES[paper]}:
        if "/" in where:
            assert where in EXPERIMENTS
        else:
            assert not isinstance(found(where), ModuleType), f"{where}: a name, not the file that it is in"
            assert not any(part.startswith("_") for part in where.split("."))


@pytest.mark.parametrize("paper", CHECKLIST)
def test_every_function_that_a_paper_s_room_offers_stands_in_its_table(paper):
    room = importlib.import_module(f"offtangent.theory.{paper}")
    named = {row.where for row in TABLES[paper]}
    functions = [name for name in room.__all__ if inspect.isfunction(getattr(room, name))]
    assert [name for name in functions if f"theory.{paper}.{name}" not in named] == []


def test_every_experiment_stands_in_its_paper_s_table():
    assert {row.where for row in ROWS if "/" in row.where} == EXPERIMENTS
    assert all(row.where.startswith(f"{paper}/") for paper, rows in TABLES.items() for row in rows if "/" in row.where)


@pytest.mark.parametrize("paper", CHECKLIST)
def test_what_a_row_cites_is_cited_where_it_points_to(paper):
    """A theorem of the table is named in the module where it lives, or among an experiment's claims."""
    for row in TABLES[paper]:
        if row.where.startswith("theory.") or "/" in row.where:
            assert uncited(row, told(row.where)) == [], row


@pytest.mark.parametrize("paper", CHECKLIST)
def test_a_docstring_that_cites_theorems_cites_that_of_the_table(paper):
    for row in TABLES[paper]:
        if "/" not in row.where:
            assert agrees(row, own(row.where)), row


def test_the_checks_find_what_is_wrong():
    rows = "    no.  statement  where\n    B1   One: two    a.b\n\nThe end."
    assert table(rows) == [Row("B1", "One: two", "a.b")]
    with pytest.raises(AssertionError):
        table(rows.replace("One: two", "One:  two"))
    assert list(cited("Lemmas 10, 12 and 14, Lemma D.1(a): f; Figures 3a and 7")) == [
        ("Lemma", "10"), ("Lemma", "12"), ("Lemma", "14"), ("Lemma", "D.1"), ("Figure", "3a"), ("Figure", "7")
    ]  # fmt: skip
    row = Row("B1", "Lemma 4: a bound", "a.b")
    assert uncited(row, "Lemmas 3, 4 and 5 say so.") == []
    assert uncited(row, "Lemma 14 and Theorem 4 say so, and Lemma 4.1.") == [("Lemma", "4")]
    assert agrees(row, "Theorem 3's bound.")
    assert agrees(row, "The bound of Lemmas 3 and 4.")
    assert not agrees(row, "The bound of Lemma 3.")
