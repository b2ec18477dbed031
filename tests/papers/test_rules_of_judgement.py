"""The rules of judgement, of docs/conventions.md, on every shipped record."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from offtangent import lab
from offtangent.lab.records import committed_records, read_record
from offtangent.papers import PAPERS

sys.path.append(str(Path(__file__).parents[1]))  # importlib mode leaves the tests' root off the path
import planted

EXPERIMENTS = {
    f"{paper.name}/{name}": lab.experiment.Experiment(f"{paper.name}/{name}", f"offtangent.papers.{paper.name}.{name}")
    for paper in PAPERS
    for name in paper.experiments
}


@pytest.fixture(params=committed_records(), ids=lambda path: path.stem)
def record(request):
    return read_record(request.param, EXPERIMENTS)


def test_every_claim_that_holds_fails_in_some_planted_world(record):
    assert planted.unmoved(EXPERIMENTS[record.name], record.results) == []


def test_the_verdict_of_the_same_data_is_the_same_under_every_profile_s_name(record):
    experiment = EXPERIMENTS[record.name]
    told = {
        profile: [
            (claim.source, claim.verdict, claim.value)
            for claim in experiment.claims(replace(record.results, profile=profile))
        ]
        for profile in ("smoke", "laptop", "paper")
    }
    assert told["smoke"] == told["paper"]
    assert told["laptop"] == told["paper"]
