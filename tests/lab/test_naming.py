"""Names: no two experiments and profiles share a record or an address, and none leads out of the folder."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab.naming import check_name, record_name
from offtangent.lab.records import committed_records
from offtangent.papers import PAPERS
from trials import HOW, SOURCE

NAMES = st.text("ab/-_.%A\\é\0", max_size=5) | st.text(max_size=5)


@given(NAMES, NAMES, NAMES, NAMES)
@example("a-b", "smoke", "a", "b-smoke")
@example("arora/fig1", "paper", "arora-fig1", "paper")
@example("arora/fig1", "paper", "arora", "fig1-paper")
@example("A", "smoke", "a", "smoke")
@example("%41", "smoke", "A", "smoke")
def test_a_record_s_name_is_one_experiment_s_and_one_profile_s_on_any_file_system(a, b, c, d):
    names = [record_name(a, b).casefold(), record_name(c, d).casefold()]
    assert (names[0] == names[1]) == ((a, b) == (c, d))
    assert all(re.fullmatch(r"[a-z0-9_%-]+\.json", name) for name in names)


def test_the_shipped_records_keep_their_names():
    names = {record_name(f"{paper.name}/{one}", "paper") for paper in PAPERS for one in paper.experiments}
    assert {path.name for path in committed_records()} == names


@pytest.mark.parametrize("name", [
    "x/../../evil", "a/b", "a\\b", "..", ".", "", " ", "a\nb", "\0", "\ud800", 3, None, "a" * 101, "é" * 20,
])  # fmt: skip
def test_names_that_could_lead_elsewhere_or_cannot_be_shown_are_refused(name):
    with pytest.raises(InputError, match="is called"):
        check_name(name, "It")


@pytest.mark.parametrize("name", ["smoke", "b-smoke", "Paper 2", "x.y", "größer", "a" * 100])
def test_other_names_are_taken(name):
    check_name(name, "It")


def test_a_profile_that_leads_out_of_the_folder_is_refused_before_anything_is_written(own, tmp_path, offtangent):
    profile = "x/../../../evil"
    path = own(source=SOURCE.replace('"smoke"', repr(profile)))
    told = offtangent("run", path, "--profile", profile, "--on", "local", "--out", tmp_path / "a" / "out")
    assert told.status == 2
    assert "a profile is called 'x/../../../evil': give it a name of printable text without / and" in told.err
    assert not list(tmp_path.rglob("*evil*"))
    assert not (tmp_path / "a").exists()


def test_fields_that_look_like_paths_stay_in_the_folder(own, tmp_path, offtangent):
    path = own("def cells(count):\n    return [Cell('../../../evil')]\n")
    assert offtangent("run", path, *HOW, "--out", tmp_path / "out").status == 0
    assert not list(tmp_path.rglob("*evil*"))


def ids(page):
    """Every address on a page, without plotly's script."""
    parts = re.split(r"(?<=</script>)", page.read_text())
    return [one for part in parts if len(part) < 1_000_000 for one in re.findall(r' id="([^"]+)"', part)]


@pytest.mark.parametrize("names", [
    ("arora",), ("nichani",), ("contents",), ("summary",), ("facts",), ("experiment",), ("x",), ("[b]",), ("é",),
    ("a-b", "a_b"), ("a", "a-1"), ("a", "a-experiment"), ("a", "figure-a-1-1"), ("arora-fig1", "arora"),
], ids="+".join)  # fmt: skip
def test_an_experiment_may_be_called_as_one_likes(names, own, store, offtangent):
    paths = [own(name=name) for name in names]
    told = offtangent("run", *paths, *HOW, "--out", store, "--json")
    assert told.status == 0, told.err
    page = store / "report.html"
    assert len(ids(page)) == len(set(ids(page))) > 0
    assert page.read_text().count("A figure of mine</p>") == len(names)
    assert len(list((store / "results").iterdir())) == len(names)
    assert offtangent("report", store, *paths).status == 0


def test_two_runs_whose_names_join_to_the_same_keep_a_record_each(own, store, offtangent):
    first, second = own(name="a-b"), own(name="a", source=SOURCE.replace('"smoke"', '"b-smoke"'))
    assert offtangent("run", first, *HOW, "--out", store).status == 0
    assert offtangent("run", second, "--profile", "b-smoke", "--on", "local", "--out", store).status == 0
    known = {path.stem: lab.experiment.load_experiment(path) for path in (first, second)}
    read = [lab.records.read_record(path, known) for path in (store / "results").iterdir()]
    assert {(record.name, record.results.profile) for record in read} == {("a-b", "smoke"), ("a", "b-smoke")}


def test_a_file_called_like_a_paper_is_no_chapter_of_it(own, store, offtangent):
    assert offtangent("run", own(name="arora"), *HOW, "--out", store).status == 0
    assert "Arora" not in (store / "report.html").read_text().split("<script")[0]


def test_a_file_whose_name_cannot_be_shown_is_refused(own, store, offtangent):
    told = offtangent("run", own(name="a\nb"), *HOW, "--out", store)
    assert told.status == 2
    assert r"is called 'a\nb'" in told.err
