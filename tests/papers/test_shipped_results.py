"""The results that come with the package: each can be read and judged, and says where it comes from."""

import pytest

from offtangent import lab
from offtangent.lab.records import committed_records
from offtangent.papers import PAPERS

NAMES = [(paper.name, name) for paper in PAPERS for name in paper.experiments]
KNOWN = {f"{p}/{name}": lab.Experiment(f"{p}/{name}", f"offtangent.papers.{p}.{name}") for p, name in NAMES}
SHIPPED = {path.stem: path for path in committed_records()}


def test_every_experiment_comes_with_the_results_of_its_paper_profile():
    assert set(SHIPPED) == {f"{name.replace('/', '-')}-paper" for name in KNOWN}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_results_are_whole_and_can_be_judged_and_drawn(name):
    record = lab.read_record(SHIPPED[name], KNOWN)
    experiment = KNOWN[record.name]
    assert record.results.complete
    assert all((record.provenance.commit, record.provenance.device, record.provenance.date))
    claims = experiment.claims(record.results)
    assert any(claim.verdict == "holds" for claim in claims)
    assert all(claim.note for claim in claims if claim.verdict == "fails")  # why, as far as we know
    assert experiment.draw(record.results)
