"""The page as a real browser shows it."""

import re

import pytest

from offtangent.report import points
from offtangent.report.page import Badge, Page, Section, Table, write

DESKTOP, PHONE = 1200, 390
MANY = 14  # figures, of which a few are within two screens of a view 900 pixels high
DRAWN = "[...document.querySelectorAll('.plot')].flatMap((plot, at) => plot.querySelector('.main-svg') ? [at] : [])"
# The words in badges that stand on more than one line.
BROKEN = """[...document.querySelectorAll('.badge')].flatMap((badge) => {
    const text = badge.firstChild, range = document.createRange();
    return [...text.data.matchAll(/\\S+/g)].filter((word) => {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map((word) => word[0]);
})"""
HEIGHTS = "[...document.querySelectorAll('.plot')].map((plot) => plot.offsetHeight)"


def settled(number):
    """Figure `number` is drawn, and no other is waiting."""
    return (
        f"document.querySelectorAll('.plot')[{number}].querySelector('.main-svg')"
        " && document.documentElement.dataset.figures === 'drawn'"
    )


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


def test_words_of_a_verdict_stay_whole_on_a_phone(chromium, tmp_path):
    rows = [(Badge(verdict, "neutral"), 11, 13) for verdict in ("outside the hypothesis", "holds with constants 1")]
    table = Table("Claims by verdict", ("verdict", "this run", "at the papers' sizes, shipped"), rows)
    page = write(Page("Papers", "", [Section("Arora", "", [table], "arora")], {}), tmp_path / "page.html")
    with chromium.tab(page, PHONE) as session:
        assert chromium.evaluate(session, BROKEN) == []


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


@pytest.fixture(scope="module")
def long_page(tmp_path_factory, make_figure):
    figures = [make_figure(f"In part {at}") for at in range(MANY)]
    for figure in figures:
        points(figure.plot, [100], [1], name="a name that is wider than any phone " * 2, colour="green")
    sections = [Section(figure.title, "", [figure], f"part-{at}") for at, figure in enumerate(figures)]
    return write(Page("Many figures", "", sections), tmp_path_factory.mktemp("long") / "report.html")


def test_figures_are_drawn_as_the_reader_comes_near(chromium, long_page):
    with chromium.tab(long_page) as session:
        first = chromium.evaluate(session, DRAWN)
        assert first == list(range(len(first)))
        assert 2 <= len(first) < MANY // 2  # what is in view and a little more
        last = MANY - 1
        chromium.evaluate(session, f"document.querySelectorAll('.plot')[{last}].scrollIntoView()")
        chromium.wait(session, settled(last))
        drawn = chromium.evaluate(session, DRAWN)
        assert set(first) < set(drawn)
        assert MANY // 2 not in drawn  # nobody has been near it


def test_a_figure_not_yet_drawn_has_its_room(chromium, long_page):
    """The names of its legend too: on a phone they take four rows and make the figure taller."""
    with chromium.tab(long_page, PHONE) as session:
        assert chromium.evaluate(session, "document.documentElement.scrollWidth") <= PHONE
        room = chromium.evaluate(session, HEIGHTS)
        chromium.evaluate(session, "dispatchEvent(new Event('beforeprint'))")
        assert chromium.evaluate(session, DRAWN) == list(range(MANY))
        assert chromium.evaluate(session, HEIGHTS) == room == [400 + 3 * 30] * MANY


def test_contents_lead_to_their_section_whatever_grows_above_it(chromium, long_page):
    with chromium.tab(long_page) as session:
        chromium.evaluate(session, "document.querySelectorAll('.plot').forEach((p) => p.style = '--height: 300px')")
        chromium.evaluate(session, f"document.querySelector('nav a[href=\"#part-{MANY - 4}\"]').click()")
        chromium.wait(session, settled(MANY - 4))
        assert MANY - 5 in chromium.evaluate(session, DRAWN)  # the one above it, which had too little room
        place = f"document.getElementById('part-{MANY - 4}').getBoundingClientRect().top"
        assert abs(chromium.evaluate(session, place)) < 2


def test_printing_draws_every_figure(chromium, long_page):
    with chromium.tab(long_page) as session:
        assert len(chromium.evaluate(session, DRAWN)) < MANY
        chromium.call("Page.printToPDF", session)
        assert chromium.evaluate(session, DRAWN) == list(range(MANY))


def test_a_browser_that_does_not_tell_what_is_near_draws_every_figure(chromium, long_page, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(long_page.read_text().replace("<title>", "<script>delete IntersectionObserver</script><title>", 1))
    with chromium.tab(path) as session:
        assert chromium.evaluate(session, DRAWN) == list(range(MANY))


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
