"""Texts with formulas become HTML that is right and cannot do harm."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offtangent.report.text import number, paragraphs, plain, to_html

TAGS = {"math", "code", "span", "sup"}


def tags(html: str) -> set[str]:
    """The elements of a piece of HTML, by a parser that refuses what is not well formed."""
    return {element.tag for element in ElementTree.fromstring(f"<p>{html}</p>").iter()} - {"p"}


def test_a_formula_becomes_mathml():
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in to_html("so $x^2$ grows")


def test_a_display_formula_stands_on_its_own_line():
    assert to_html("$$x$$") == '<span class="display"><math display="block"><mrow><mi>x</mi></mrow></math></span>'


def test_what_is_no_formula_is_escaped():
    assert to_html("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"


@pytest.mark.parametrize("text", ["from $5 to $6", "one $ alone", "$ x $", "5$"])
def test_money_is_not_a_formula(text):
    assert to_html(text) == text


def test_an_escaped_dollar_is_a_dollar():
    assert to_html(r"\$x\$") == "$x$"


@pytest.mark.parametrize("latex", [r"\frac{", r"\begin{x}", r"\nosuchcommand x", r"\left("])
def test_a_broken_formula_is_shown_as_its_source(latex):
    assert to_html(f"a ${latex}$ b") == f"a <code>{latex}</code> b"


@pytest.mark.parametrize(
    "latex",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(http://example.org)}{x}",
        r"\class{note}{x}",
    ],
)
def test_a_formula_cannot_carry_markup(latex):
    html = to_html(f"${latex}$")
    assert "script" not in tags(html)
    assert not re.search(r"<[^>]*(href|style|class)=", html)


@given(st.text(st.sampled_from("$\\{}<>&_^ax1 \n\"'") | st.characters(codec="utf-8", exclude_categories=["C"])))
def test_no_text_raises_or_breaks_the_markup(text):
    found = tags(to_html(text))
    assert found <= TAGS or all(tag in TAGS or tag.startswith("m") for tag in found)


@pytest.mark.parametrize(
    ("latex", "letter"),
    [(r"\mathcal{N}", "𝒩"), (r"\mathcal{L}", "ℒ"), (r"\mathbf{w}", "𝐰"), (r"\mathbb{E}", "𝔼")],
)
def test_letters_of_other_alphabets_are_characters(latex, letter):
    """Browsers ignore every mathvariant but "normal", so the letter itself must say it."""
    assert f"<mi>{letter}</mi>" in to_html(f"${latex}$")


def test_blank_lines_part_paragraphs():
    assert paragraphs("a\nb\n\n c \n") == "<p>a\nb</p><p>c</p>"


def test_a_plain_title_keeps_the_formula_s_letters():
    assert plain(r"Is $H$ worth \$5?") == "Is H worth $5?"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1234, "1234"),
        (-12345, "−12\u202f345"),
        (10_000.0, "10\u202f000"),
        (0.123456, "0.1235"),
        (9999.96, "10<sup>4</sup>"),
        (12345.6, "1.235\u202f×\u202f10<sup>4</sup>"),
        (1e-5, "10<sup>−5</sup>"),
        (-2.5e-5, "−2.5\u202f×\u202f10<sup>−5</sup>"),
        (float("nan"), "NaN"),
        (float("-inf"), "−∞"),
    ],
)
def test_numbers_have_four_significant_digits(value, shown):
    assert number(value) == shown


def test_words_between_backticks_are_code_and_a_backtick_alone_is_itself():
    assert to_html("`paper` has $x$, `a < b`").startswith("<code>paper</code> has <math")
    assert to_html("`a < b`") == "<code>a &lt; b</code>"
    assert to_html("one ` alone") == "one ` alone"
