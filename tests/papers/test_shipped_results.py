"""The results that come with the package: each can be read and judged, and says where it comes from."""

import numpy as np
import pytest

from offtangent import lab
from offtangent.lab.claims import HELD
from offtangent.lab.records import committed_records
from offtangent.papers import PAPERS

NAMES = [(paper.name, name) for paper in PAPERS for name in paper.experiments]
KNOWN = {f"{p}/{name}": lab.experiment.Experiment(f"{p}/{name}", f"offtangent.papers.{p}.{name}") for p, name in NAMES}
SHIPPED = {path.stem: path for path in committed_records()}


def test_every_experiment_comes_with_the_results_of_its_paper_profile():
    assert set(SHIPPED) == {f"{name.replace('/', '-')}-paper" for name in KNOWN}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_results_are_whole_and_can_be_judged_and_drawn(name):
    record = lab.records.read_record(SHIPPED[name], KNOWN)
    experiment = KNOWN[record.name]
    assert record.results.complete
    assert all((record.provenance.commit, record.provenance.device, record.provenance.date))
    claims = experiment.claims(record.results)
    assert any(claim.verdict in HELD for claim in claims if claim.kind == "claim")
    assert all(claim.note for claim in claims if claim.verdict == "fails")  # why, as far as we know
    assert experiment.draw(record.results)


# What each paper is read for, and where: an experiment and the beginning of a source.
HEADLINES = {
    "allen_zhu_li": (("fig2", "Section 6, Figure 2(a)"), ("descent", "Theorem 1"), ("theorem2", "Theorem 2")),
    "arora": (
        ("fig1", "Figure 1, Section 4, MNIST 0/1, η = 10⁻³"),
        ("fig1", "Figure 1, Section 4, CIFAR-10"),
        ("again", "Figure 2, MNIST 0/1"),
        ("again", "Figure 2, CIFAR-10"),
        ("section6", "Theorem 5.1"),
        ("section6", "Theorem 6.1"),
    ),
    "bai_lee": (("landscape", "Theorem 2, eq. (7)"), ("samples", "Section 5.2"), ("again", "Section 5.2")),
    "ge_wang_zhao": (("phases", "Theorem 1"), ("phases", "Theorems 2, 5"), ("mnist", "Figures 3a, 7")),
    "nichani": (("fig1", "Figure 1, Section 5"), ("constructions", "Theorem 4, eq. (32)")),
}


@pytest.mark.parametrize("paper", [paper.name for paper in PAPERS])
def test_what_a_paper_is_read_for_holds_on_its_records(paper):
    """With its hypotheses met: a record too old for its claims, or one that is outside, shows here."""
    for experiment, source in HEADLINES[paper]:
        record = lab.records.read_record(SHIPPED[f"{paper}-{experiment}-paper"], KNOWN)
        claims = [one for one in KNOWN[record.name].claims(record.results) if one.kind == "claim"]
        assert any(one.verdict in HELD for one in claims if one.source.startswith(source)), (experiment, source)


OURS = [name for name in SHIPPED if name.startswith("allen_zhu_li-")]


@pytest.fixture(scope="module")
def records():
    return {name: lab.records.read_record(SHIPPED[name], KNOWN) for name in OURS}


def some(record, kept):
    """Results with these cells alone, as a run that was broken off has them."""
    pairs = record.results.pairs
    return lab.Results(record.results.profile, tuple(pairs[i] for i in kept), complete=False)


def less_one(record, most):
    """Results without one cell, for some cells from the first to the last."""
    count = len(record.results)
    for missing in sorted({round(i) for i in np.linspace(0, count - 1, most)}):
        yield some(record, [i for i in range(count) if i != missing])


@pytest.mark.parametrize("name", OURS)
def test_a_record_that_lacks_a_cell_can_be_judged(records, name):
    """Any of twenty, from the first to the last: all 254 in turn would take twice as long."""
    assert all(KNOWN[records[name].name].claims(part) for part in less_one(records[name], 20))


@pytest.mark.parametrize("name", OURS)
def test_a_record_that_lacks_a_cell_can_be_drawn(records, name):
    assert all(KNOWN[records[name].name].draw(part) for part in less_one(records[name], 6))


@pytest.mark.parametrize("first", [1, 3, 10])
@pytest.mark.parametrize("name", OURS)
def test_the_first_cells_of_a_record_can_be_judged_and_drawn(records, name, first):
    """Whether there is anything to say yet or not."""
    record = records[name]
    part = some(record, range(min(first, len(record.results) - 1)))
    KNOWN[record.name].claims(part)
    KNOWN[record.name].draw(part)
