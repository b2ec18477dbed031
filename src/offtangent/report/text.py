"""Text with formulas between dollar signs, as HTML that cannot do harm."""

import math
import re
import unicodedata
from functools import lru_cache
from html import escape, unescape
from xml.etree.ElementTree import Element, tostring

# A formula opens with a $ before a non-space and closes with a $ after a non-space and not before a digit
# (pandoc's rule), so that "$5 and $6" stays money. \$ is a dollar sign; $$…$$ is a formula on its own line.
_FORMULA = re.compile(r"\\\$|\$\$(?P<display>[^$]+?)\$\$|\$(?!\s)(?P<inline>(?:\\\$|[^$])+?)(?<!\s)\$(?!\d)")
_UNKNOWN = re.compile(r"\\[A-Za-z]+")
_UNSAFE = {"class", "href", "id", "style", "xmlns"}  # what LaTeX may set on an element and we never want
_THIN = "\u202f"  # narrow no-break space, between thousands
_MINUS = "\u2212"


def to_html(text: str) -> str:
    """`text` as inline HTML: `$latex$` becomes MathML, what stands between backticks code, everything else is escaped.

    A formula that cannot be read is shown as its own source in a `<code>`; nothing raises. Linear in the
    length of the text; a formula costs about a millisecond, once per process.

    >>> to_html("a < b for $x$, at a price of $5 or $6")
    'a &lt; b for <math display="inline"><mrow><mi>x</mi></mrow></math>, at a price of $5 or $6'
    """
    pieces, at = [], 0
    for found in _FORMULA.finditer(text):
        pieces.append(_words(text[at : found.start()]))
        display, inline = found["display"], found["inline"]
        if display is not None:
            pieces.append(f'<span class="display">{_formula(display.strip(), "block")}</span>')
        else:
            pieces.append("$" if inline is None else _formula(inline, "inline"))
        at = found.end()
    return "".join([*pieces, _words(text[at:])])


def _words(text: str) -> str:
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def paragraphs(text: str) -> str:
    """`text` as `<p>` elements, one for each stretch between blank lines."""
    return "".join(f"<p>{to_html(part.strip())}</p>" for part in re.split(r"\n\s*\n", text) if part.strip())


def escaped(text: str) -> str:
    """`text` in which a dollar sign is a dollar sign: for names and words of a user's own."""
    return text.replace("$", r"\$")


def plain(text: str) -> str:
    """`text` without its dollar signs, unescaped: for a window's title, where no markup is possible."""
    return _FORMULA.sub(lambda found: found["display"] or found["inline"] or "$", text)


def number(value: int | float) -> str:
    """A number as HTML: whole numbers in full, others to 4 significant digits.

    >>> number(1234567), number(0.123456), number(-1.5e-7), number(2.0)
    ('1\u202f234\u202f567', '0.1235', '\u22121.5\u202f×\u202f10<sup>\u22127</sup>', '2')
    """
    if isinstance(value, int):
        return _grouped(f"{value:d}")
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    rounded = float(f"{value:.4g}")
    if rounded == value and value.is_integer() and abs(value) < 1e7:
        return _grouped(f"{value:.0f}" if value else "0")
    if 1e-3 <= abs(rounded) < 1e4:
        return _grouped(f"{rounded:.4g}")
    mantissa, exponent = f"{value:.3e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", _MINUS)
    power = f"10<sup>{str(int(exponent)).replace('-', _MINUS)}</sup>"
    return power if mantissa == "1" else f"{mantissa}{_THIN}×{_THIN}{power}"


def _grouped(digits: str) -> str:
    """Thousands set apart from five digits on, and a real minus sign."""
    if len(digits.lstrip("-")) > 4 and "." not in digits:
        digits = f"{int(digits):,}".replace(",", _THIN)
    return digits.replace("-", _MINUS)


@lru_cache(maxsize=4096)
def _formula(latex: str, display: str) -> str:
    from latex2mathml.converter import convert_to_element

    # latex2mathml's own string output unescapes what stands in \text{…}, so <script> would pass through it:
    # we take its tree and write it out ourselves.
    try:
        tree = convert_to_element(latex, display=display)
        for element in tree.iter():
            _clean(element)
        return tostring(tree, encoding="unicode")
    except Exception:  # a formula may be wrong in any way and the page must still be written
        return f"<code>{escape(latex)}</code>"


def _clean(element: Element) -> None:
    if element.text:
        element.text = unescape(element.text)
        if element.tag != "mtext" and _UNKNOWN.fullmatch(element.text):
            raise ValueError(f"unknown command {element.text}")
    for name in _UNSAFE.intersection(element.keys()):
        del element.attrib[name]
    if element.tag == "mo" and element.text == "|" and element.get("fence") != "true":  # |α| is no relation
        element.attrib.update(stretchy="false", lspace="0", rspace="0")
    # Browsers know only mathvariant="normal": a script N must be the character 𝒩.
    variant = element.get("mathvariant", "normal")
    if element.text and variant != "normal":
        styled = [_styled(letter, variant) for letter in element.text]
        if None not in styled:
            element.text = "".join(letter for letter in styled if letter)
            del element.attrib["mathvariant"]


def _styled(letter: str, variant: str) -> str | None:
    """The Unicode character of a letter or digit in a mathematical alphabet, if there is one."""
    name = unicodedata.name(letter, "").replace("LATIN ", "").replace("GREEK ", "").replace("LETTER ", "")
    alphabet = variant.upper().replace("FRAKTUR", "BLACK-LETTER" if variant == "fraktur" else "FRAKTUR")
    candidates = [f"MATHEMATICAL {variant.upper()} {name}", f"{alphabet} {name}"]
    candidates += [candidate.replace("-", " ") for candidate in candidates[:1]]
    for candidate in candidates:
        try:
            return unicodedata.lookup(candidate)
        except KeyError:
            continue
    return None
