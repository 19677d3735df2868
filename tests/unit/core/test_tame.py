"""Which pages may be parsed into a tree: ordinary ones of any size, and none that explodes."""

from __future__ import annotations

import time

import pytest
from selectolax.lexbor import LexborHTMLParser

from orbweaver.core.page import parse
from orbweaver.core.tame import TAGS_MAX, WildPageError, why_wild

DEEP = "elements are nested more than 256 deep"
OPEN = "too many formatting elements are left open"
ATTRIBUTES = "tags have too many attributes"


def many(text: str, number: int) -> bytes:
    """Repeat a text, with the number of each in it."""
    return b"".join(text.replace("#", str(at)).encode() for at in range(number))


WILD = [
    (many("<div>", 5_000), DEEP),
    (many("<p><font x=#>", 8_000), DEEP),
    (many("<b x=#><table><td></b></table>", 8_000), DEEP),
    (many("<b x=#><object></b>", 8_000), DEEP),
    (b"<svg><style>" + many("<div>", 20_000), DEEP),
    (b"<svg><p>" + many("<path/>", 20_000), DEEP),
    (b"<svg><title>" + many("<div/>", 20_000), DEEP),
    (many("<li><div>", 20_000), DEEP),
    (many("<b>", 200) + many("<p>x</p>", 20_000), OPEN),
    (b"<a " + many("a# ", 100_000) + b">", ATTRIBUTES),
    (many("<body a#=1>", 10_000), ATTRIBUTES),
    (many("<i></i>", TAGS_MAX), f"the page has more than {TAGS_MAX:,} tags"),
    (
        b"<div><span><table><td>" + many("<div>", 240) + many("</span>", 40_000),
        "too many end tags have no beginning",
    ),
    (b"x" * (10 * 1024 * 1024 + 1), "the page has more than 10,485,760 bytes"),
    (b"<" * 300_001, f"the page has more than {TAGS_MAX:,} tags"),
]
SCRIPT = "<script>if (a<b) { s += '<div><div><div>' } </script><!-- <div> --><svg><path/></svg>"
TAME = [
    many("<p>x", 5_000),
    b"<ul>" + many("<li><a href=/#>x</a>", 5_000),
    b"<table>" + many("<tr><td>x<td><b>y</b>", 3_000),
    many(SCRIPT, 1_000),
    many("<svg viewBox=x><g><path d=x /><title>t</title></g></svg><a href=#>x", 1_000),
    many("<math><mi>x</mi></math><div class='a b' title=\"<div><div>\">x</div>", 1_000),
    many("<dl><dt>a<dd>b</dl><select><option>x<option>y</select><form><h2>z</h2></form>", 800),
]


@pytest.mark.parametrize(("html", "why"), WILD)
def test_wild_pages_are_told(html: bytes, why: str) -> None:
    """By what their tree would come to; rules that need it are told, and links are read as ever."""
    assert why_wild(html) == why
    page = parse(html + b"<title>t</title>", "https://a.example/", "text/html")
    with pytest.raises(WildPageError, match=why):
        _ = page.tree


@pytest.mark.parametrize("html", TAME)
def test_ordinary_pages_are_tame(html: bytes) -> None:
    """However large: what is left open as usual, markup in scripts, drawings, tables."""
    assert why_wild(html) is None
    began_s = time.process_time()
    tree = LexborHTMLParser(html)
    assert time.process_time() - began_s < 2
    page = parse(html, "https://a.example/", "text/html")
    assert len(page.tree.css("*")) == len(tree.css("*"))
