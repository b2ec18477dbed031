"""The page as a real browser shows it."""

import re

import pytest

from offtangent.report import Page, write

DESKTOP, PHONE = 1200, 390


@pytest.fixture(scope="module", params=[DESKTOP, PHONE])
def opened(request, browse, tmp_path_factory, make_page):
    folder = tmp_path_factory.mktemp("page")
    return browse(write(make_page(), folder / "report.html"), request.param, screenshot=folder / "report.png")


def test_the_console_is_silent(opened):
    assert opened.console == []


def test_nothing_is_asked_of_any_network(opened):
    assert opened.requests == []


def test_every_figure_is_drawn(opened):
    assert len(opened.figures) == 3
    assert all(figure["traces"] == 4 for figure in opened.figures.values())  # band, line, points, bound


def test_the_page_does_not_scroll_sideways(opened):
    assert opened.scroll_width <= opened.width


def test_no_figure_is_wider_than_the_page(opened):
    assert all(0 < figure["width"] <= opened.width for figure in opened.figures.values())


def test_formulas_take_up_space(opened):
    assert opened.formulas == 9  # every one of conftest.py: titles, leads, captions and a cell


def test_no_logo_and_no_share_button(opened):
    buttons = re.findall(r'data-title="([^"]*)"', opened.dom)
    assert not [name for name in buttons if re.search("plotly|edit|share|cloud|studio", name, re.IGNORECASE)]
    assert "modebar-btn--logo" not in opened.dom


def test_a_picture_was_taken(opened):
    assert opened.screenshot.read_bytes().startswith(b"\x89PNG")


def test_a_request_would_have_been_seen(browse, tmp_path):
    """The two silences above mean something only if a page that does ask is caught."""
    path = tmp_path / "loud.html"
    path.write_text('<img src="http://127.0.0.1:9/x.png"><script>console.error("loud"); nosuchname()</script>')
    loud = browse(path)
    assert set(loud.requests) == {"http://127.0.0.1:9/x.png"}
    assert any("loud" in message for message in loud.console)
    assert any("nosuchname" in message for message in loud.console)


def test_the_page_forbids_itself_the_network(browse, tmp_path, make_page):
    """Even a script that got into the page could not send anything. Tried without figures, which take long to draw."""
    text = write(Page("Words alone", "None.", []), tmp_path / "words.html").read_text()
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy"[^>]*>', text)
    assert policy in write(make_page(), tmp_path / "report.html").read_text()
    path = tmp_path / "sending.html"
    path.write_text(text.replace("</body>", '<script>fetch("http://127.0.0.1:9/x")</script></body>'))
    assert any("Content Security Policy" in message for message in browse(path).console)
