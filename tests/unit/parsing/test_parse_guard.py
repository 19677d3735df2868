"""Which pages may be parsed into a tree: ordinary ones of any size, and none that explodes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing.page import parse
from orbweaver.parsing.parse_guard import TAGS_MAX, WildPageError, _Walk, is_orderly, why_wild
from tests.costs import within

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
    (b"<script " + many("a# ", 100_000) + b">x</script>", ATTRIBUTES),
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


ICON = '<svg viewBox=\'0\'><path d="M 0 0" fill="none" /><g><path></path></g></svg>'
ORDERLY = [
    b"",
    b"no tags, 1 < 2",
    b"<!DOCTYPE html><html lang=en><head><title>t</title><script>a<b</script></head><body>x</html>",
    many("<h2 id=#>x</h2><p>x <code class=y>y</code><br/><a href=#><em>z</em></a></p>", 2_000),
    many("<ul><li>a<li>b</ul><dl><dt>c<dd><p>d</dl><p>e<p>f", 1_000),
    many("<div><table><tr><td>x</td><th></th></tr></table><form><input></form></div>", 1_000),
    many("<!-- <div> --><style>a > b {}</style><textarea><b></textarea>", 1_000),
    ICON.replace("'", '"').encode() * 1_000,
    b"<div>" * 64 + b"</div>" * 64,
]
DISORDERLY = [
    b"<div><b></div>",
    b"</p>",
    b"<i><b>x</i></b>",
    b"<DIV></DIV>",
    b"<made-up></made-up>",
    b"<select><option>x</option></select>",
    b"<div>" * 65,
    b"<svg><p>x</p></svg>",
    b"<svg><path d= /></svg>",
    b"<path/>",
    b"<div/></div></div>",
    b"<script " + many("a# ", 300) + b"></script>",
    b"<p " + many("a# ", 300) + b">",
    b"<html><html><html></html></html></html>",
    b"<i>" * 12 + b"<p>x</p>" * 99 + b"</i>" * 12,
]


@pytest.mark.parametrize("html", ORDERLY)
def test_what_ends_all_that_it_begins_is_orderly(html: bytes) -> None:
    """With what usually is left open, drawings, scripts, and elements without an end."""
    assert is_orderly(html)
    assert _Walk().over(html) is None


@pytest.mark.parametrize("html", DISORDERLY)
def test_all_else_is_disorderly(html: bytes) -> None:
    """Also what might be harmless: it is looked at by the walk, or elsewhere."""
    assert not is_orderly(html)


TAGS = (
    "<p> </p> <b> </b> <i> </i> <a> </a> <div> </div> <table> </table> <tr> </tr> <td> </td> <h1>"
    " </h1> <li> </li> <ul> </ul> <dd> </dd> <svg> </svg> <path> <path/> </path> <title> </title>"
    " <br> <form> </form> <button> </button> <object> </object> x"
)


@given(st.lists(st.sampled_from(TAGS.split()), max_size=30).map("".join), st.integers(1, 400))
def test_an_orderly_page_is_not_wild(piece: str, times: int) -> None:
    """Whatever it is made of: the walk would not refuse it, and its tree is not deep."""
    html = piece.encode() * times
    if is_orderly(html):
        assert _Walk().over(html) is None
        deepest = LexborHTMLParser(html).css_first(" > ".join(["*"] * 90))
        assert deepest is None


@pytest.mark.parametrize(
    "html",
    [
        b"<p>" + many("<i a=#>", 10) + b"<div>x</div>" * 950 + b"</i>" * 10,
        b"<div>" * 60 + b"<p>x</p>" * 930 + b"</div>" * 60,
        b"".join(b"<p " + many("a# ", 100) + b"></p>" for _ in range(120)),
        b"<table>" + b"x<p></p>" * 990 + b"</table>",
        b"<h1><a>" * 400 + b"</a></h1>" * 400,
    ],
)
def test_the_tree_of_a_small_orderly_page_is_made_at_once(html: bytes) -> None:
    """Of at most 64 KB and 2,000 tags: copies, depth, attributes, what is put before a table."""
    assert len(html) <= 65_536
    assert html.count(b"<") <= 2_000
    assert within(0.02, lambda: LexborHTMLParser(html))
