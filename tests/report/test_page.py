"""Pages from plain data."""

import json
import re
from dataclasses import replace

import pytest
from jaxtyping import TypeCheckError

from offtangent._errors import InputError
from offtangent.report.page import Badge, Note, Page, Section, Table, render, write


def body(html: str) -> str:
    """The page without plotly's script, whose five megabytes hold every word there is."""
    return "".join(part for part in re.split(r"(?<=</script>)", html) if len(part) < 1_000_000)


def test_the_same_page_gives_the_same_bytes(page):
    assert render(page) == render(page)


def test_plotly_is_in_it_once(page):
    assert render(page).count("* plotly.js v") == 1


def test_a_page_without_figures_is_small():
    assert len(render(Page("t", "", [Section("s", "", [], "s")]))) < 30_000


def test_a_page_with_figures_stays_below_seven_megabytes(page):
    assert len(render(page).encode()) < 7e6


def test_no_element_points_outside(page):
    addresses = re.findall(r"""(?:src|href|action|data)=["']([^"']*)""", body(render(page)))
    assert all(address.startswith(("#", "data:")) for address in addresses)


def test_contents_link_to_sections_that_exist(page):
    html = body(render(page))
    linked = re.findall(r'<a href="#([^"]+)"', html)
    assert {"arora", "arora-figure-1", "bai-lee"} <= set(linked)
    assert set(linked) <= set(re.findall(r'id="([^"]+)"', html))


def test_ids_are_unique(page):
    ids = re.findall(r' id="([^"]+)"', body(render(page)))
    assert len(ids) == len(set(ids))


def test_texts_are_escaped_and_formulas_drawn(page):
    html = body(render(page))
    assert "<h1>Papers &amp; &lt;kernels&gt; with <math" in html
    assert "<title>Papers &amp; &lt;kernels&gt; with H^\\infty</title>" in html


def test_a_figure_s_numbers_cannot_end_their_script(page):
    figure = page.sections[1].blocks[0]
    figure.plot.data[0].name = "</script><b>"
    html = render(Page("t", "", [Section("s", "", [figure], "s")]))
    assert "</script><b>" not in html
    encoded = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert json.loads(encoded[1])["data"][0]["name"] == "</script><b>"


def test_numbers_stand_to_the_right_and_are_rounded():
    html = render(Page("t", "", [Section("s", "", [Table("c", ("a", "b"), [("x", 0.123456)])], "s")]))
    assert '<td role="cell" class="numeric">' in html
    assert "0.1235" in html
    assert "0.123456" not in html


def test_facts_are_listed(page):
    assert "<dt>seeds</dt><dd>0–9</dd>" in render(page)


def test_write_leaves_one_whole_file(page, tmp_path):
    path = write(page, tmp_path / "new" / "report.html")
    assert path.read_text() == render(page)
    assert list(path.parent.iterdir()) == [path]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="Row 2 of the table 'c' has 1 cells for 2 columns"):
        Table("c", ("a", "b"), [("x", "y"), ("x",)])


@pytest.mark.parametrize("block", [Badge, Note])
def test_an_unknown_kind_is_refused(block):
    with pytest.raises((InputError, TypeCheckError), match="kind"):
        block("text", "great")


@pytest.mark.parametrize("anchor", ["", "Two words", "1st", "a#b", '"'])
def test_an_anchor_that_is_no_address_is_refused(anchor):
    with pytest.raises(InputError, match="cannot be an address"):
        Section("s", "", [], anchor)


@pytest.mark.parametrize("anchor", ["arora-sizes", "facts"])
def test_an_anchor_that_is_taken_is_refused(page, anchor):
    with pytest.raises(InputError, match="is taken"):
        render(replace(page, sections=[*page.sections, Section("s", "", [], anchor)]))


def test_sections_four_deep_are_refused():
    section = Section("4", "", [], "s4")
    for depth in (3, 2, 1):
        section = Section(str(depth), "", [section], f"s{depth}")
    with pytest.raises(InputError, match="'4' lies 4 deep"):
        render(Page("t", "", [section]))
