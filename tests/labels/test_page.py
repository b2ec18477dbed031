"""The page about a user's labels."""

import numpy as np
import pytest

from offtangent.labels.analysis import analyse
from offtangent.labels.page import answers, labels_page
from offtangent.report.page import render, write
from offtangent.report.text import escaped

RNG = np.random.default_rng(0)
X = np.vstack([RNG.standard_normal((60, 5)), np.ones((2, 5))])


@pytest.fixture(scope="module")
def classes():
    y = (X[:, 0] > 0).astype(float)
    y[[3, 61]] = 1 - y[[3, 61]]
    return analyse(X, y, classes=["$cheap$", "<dear> & more"])


@pytest.fixture(scope="module")
def numbers():
    return analyse(X, X @ RNG.standard_normal(5) + 0.1 * RNG.standard_normal(62))


@pytest.fixture(scope="module")
def many():
    return analyse(X, np.arange(62.0) % 4)


def blocks(page):
    return {section.anchor: section for section in page.sections}


def test_every_part_of_the_analysis_has_its_place(classes, numbers, many):
    for found in (classes, numbers, many):
        page = labels_page(found, "mine.csv")
        assert list(blocks(page)) == ["inputs", "spectrum", "complexity", "noise", "training", "suspects"]
        assert len(render(page)) > 1e6  # with plotly's script


def test_names_of_classes_are_shown_as_they_are_written(classes):
    html = render(labels_page(classes, "my $data$ <b>.csv"))
    assert "$cheap$" in html
    assert "&lt;dear&gt; &amp; more" in html
    assert "<dear>" not in html
    assert "my $data$ &lt;b&gt;.csv" in html


def test_the_suspects_stand_with_their_labels_and_what_is_predicted(classes):
    table = blocks(labels_page(classes, "mine.csv"))["suspects"].blocks[0]
    assert len(table.rows) == 50
    assert [row[0] for row in table.rows] == classes.suspects.rows[:50].tolist()
    row, label, predicted, *_ = table.rows[0]
    assert label == escaped(classes.classes[int(classes.y[row])])
    assert predicted != label


def test_equal_rows_with_different_labels_are_listed(classes):
    tables = blocks(labels_page(classes, "mine.csv"))["inputs"].blocks
    assert tables[-1].rows[0][0] == "60, 61"
    assert "Equal rows" in tables[-1].caption
    assert "Duplicate rows?" in dict(answers(classes))


def test_numbers_get_no_fraction_of_wrong_labels(numbers):
    assert "no number is right or wrong" in dict(answers(numbers))["How many labels are wrong?"]
    assert "R²" in dict(answers(numbers))["How well does a label follow from the others?"]


def test_each_of_many_classes_has_its_complexity(many):
    table = blocks(labels_page(many, "mine.csv"))["inputs"].blocks[0]
    assert table.columns == ("class", "rows", "complexity against the rest")
    assert len(table.rows) == 4


def test_the_page_reads_on_a_phone(classes, browse, tmp_path):
    opened = browse(write(labels_page(classes, "mine.csv", {"file": "x" * 150}), tmp_path / "labels.html"), 390)
    assert opened.console == []
    assert opened.requests == []
    assert opened.scroll_width <= opened.width
    assert len(opened.figures) == 5
