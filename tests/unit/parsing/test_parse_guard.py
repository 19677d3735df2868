"""Pages that are safe to parse into a tree, and pages whose tree would be too large."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.parsing.page import parse
from orbweaver.parsing.parse_guard import (
    DEPTH_MAX,
    TAGS_MAX,
    UnsafePageError,
    _Walk,
    is_orderly,
    why_unsafe,
)
from tests.costs import within

DEEP = "elements are nested more than 256 deep"
OPEN = "too many formatting elements are left open"
ATTRIBUTES = "tags have too many attributes"


def many(text: str, number: int) -> bytes:
    return b"".join(text.replace("#", str(at)).encode() for at in range(number))


UNSAFE = [
    (many("<div>", 5_000), DEEP),
    (many("<p><font x=#>", 8_000), DEEP),
    (many("<b x=#><table><td></b></table>", 8_000), DEEP),
    (many("<b x=#><object></b>", 8_000), DEEP),
    (b"<svg><style>" + many("<div>", 20_000), DEEP),
    (b"<svg><p>" + many("<path/>", 20_000), DEEP),
    (b"<svg><title>" + many("<div/>", 20_000), DEEP),
    (many("<li><ul>", 20_000), DEEP),
    (b"<p>" + many("<b x=#>", 200) + b"</p>" + many("<p>x</p>", 20_000), OPEN),
    (b"<select>" + many("<option>x", 20_000), "a select has too many options"),
    (
        b"</q>" + b"<b x='&amp;'>" * 3 + b"<b x=A>" + b"<p>x</p>" * 2_000,
        "attributes that decide what is nested hold references",
    ),
    (b"<a " + many("a# ", 100_000) + b">", ATTRIBUTES),
    (b"<script " + many("a# ", 100_000) + b">x</script>", ATTRIBUTES),
    (many("<body a#=1>", 10_000), ATTRIBUTES),
    (many("<i></i>", TAGS_MAX), f"the page has more than {TAGS_MAX:,} tags"),
    (
        many("<svg>", 240) + many("</span>", 40_000),
        "too many end tags have no beginning",
    ),
    (b"x" * (10 * 1024 * 1024 + 1), "the page has more than 10,485,760 bytes"),
    (b"<" * 200_001, f"the page has more than {TAGS_MAX:,} tags"),
]
# How a tag is read depends on the open elements. Each of these pages would hide the rest.
HIDDEN = [
    *(
        f"<svg><{name}><style>".encode() + b"<div>" * 60_000
        for name in ["object", "applet", "caption", "marquee", "td", "th", "template", "mi"]
    ),
    b"<math><annotation-xml><style>" + b"<div>" * 60_000,
    b"<math><desc><style>" + b"<div>" * 60_000,
    b"<table><tr><td>" + b"<svg><td></td>" * 25_000,
    b"<title/></title><svg><g a=x/><style>" + b"<x>" * 5_000,
    b"<svg><style><title><style></style>" + b"<svg>" * 5_000,
    b"<svg><![CDATA[></svg><style>]]>" + b"<x>" * 5_000,
    b"<svg><![CDATA[></svg><!--]]>" + b"<g>" * 5_000 + b"-->",
    b"<script><!--<script></script><style></script>" + b"<div>" * 5_000,
    b"<template><col><xmp></template>" + b"<div>" * 5_000,
    b"<noscript><svg></noscript><style>" + b"<x>" * 5_000,
    b"<frameset><style>" + b"<frameset>" * 5_000,
    b'<p =">' + b"<div>" * 5_000,
    b'<p a="b"=">' + b"<div>" * 5_000,
    b"<div><title></div></title>" * 5_000,
    b"<title><!--</title>" + b"<div>" * 5_000 + b"--></title>",
    b"<span><div></span>" * 5_000,
    b"<li><dd>" * 5_000,
    b"<rp>" * 5_000,
    b"<optgroup>" * 5_000,
    many("<div><font x=#></div>", 5_000),
    b"<p><table></table><x-y></p>" * 5_000,
    b"<!DOCTYPE html>" + b"<p><table></table><x-y></p>" * 5_000,
]
# Its elements end in the order in which they begin, so a walk that ignores ends would count all.
ENDED = [b"<svg/>", b"<svg></p>", b"<svg><g></br>", b"<svg><b></b>", b"<math><font color=x></font>"]
SCRIPT = "<script>if (a<b) { s += '<div><div><div>' } </script><!-- <div> --><svg><path/></svg>"
SAFE = [
    many("<p>x", 5_000),
    b"<ul>" + many("<li><a href=/#>x</a>", 5_000),
    b"<table>" + many("<tr><td>x<td><b>y</b>", 3_000),
    many(SCRIPT, 1_000),
    many("<li><div>", 20_000),
    many("<b>", 200) + many("<p>x</p>", 20_000),
    b"<div><span><table><td>" + many("<div>", 240) + many("</span>", 40_000),
    many(
        "<SVG><style>a > b {}</style><title>t</title><defs><path d='x'/></defs><foreignObject><p>x"
        "</p><br></foreignObject><image/></SVG><math><mi>x</mi><annotation-xml encoding=text/html>"
        "<p>y</p></annotation-xml></math>",
        1_000,
    ),
    many("<svg><style><![CDATA[ a > b </svg> ]]></style></svg><p>x", 1_000),
    many("<svg viewBox=x><g><path d=x /><title>t</title></g></svg><a href=#>x", 1_000),
    many("<math><mi>x</mi></math><div class='a b' title=\"<div><div>\">x</div>", 1_000),
    many("<dl><dt>a<dd>b</dl><select><option>x<option>y</select><form><h2>z</h2></form>", 800),
]


@pytest.mark.parametrize(("html", "why"), UNSAFE)
def test_unsafe_page_is_refused_with_reason(html: bytes, why: str) -> None:
    assert why_unsafe(html) == why
    page = parse(html + b"<title>t</title>", "https://a.example/", "text/html")
    with pytest.raises(UnsafePageError, match=why):
        _ = page.tree


@pytest.mark.parametrize("html", SAFE)
def test_ordinary_page_is_safe_at_any_size(html: bytes) -> None:
    assert why_unsafe(html) is None
    began_s = time.process_time()
    tree = LexborHTMLParser(html)
    assert time.process_time() - began_s < 2
    page = parse(html, "https://a.example/", "text/html")
    assert len(page.tree.css("*")) == len(tree.css("*"))


@pytest.mark.parametrize("html", HIDDEN)
def test_walk_sees_tags_behind_raw_text_cdata_and_quotes(html: bytes) -> None:
    assert why_unsafe(html + b"x" * 70_000) == DEEP


@pytest.mark.parametrize("beginning", ENDED)
def test_foreign_content_ends_like_in_html_standard(beginning: bytes) -> None:
    assert why_unsafe(beginning + b"<x/>" * 5_000) == DEEP
    assert why_unsafe(beginning + b"<style>" + b"<div>" * 5_000) is None


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
def test_page_with_balanced_elements_is_orderly(html: bytes) -> None:
    assert is_orderly(html)
    assert _Walk().over(html) is None


@pytest.mark.parametrize("html", DISORDERLY)
def test_other_page_is_not_orderly(html: bytes) -> None:
    assert not is_orderly(html)


TAGS = (
    "<p> </p> <b> </b> <i> </i> <a> </a> <div> </div> <table> </table> <tr> </tr> <td> </td> <h1>"
    " </h1> <li> </li> <ul> </ul> <dd> </dd> <svg> </svg> <path> <path/> </path> <title> </title>"
    " <br> <form> </form> <button> </button> <object> </object> x"
)


@given(st.lists(st.sampled_from(TAGS.split()), max_size=30).map("".join), st.integers(1, 400))
def test_orderly_page_is_safe_for_walk_and_tree(piece: str, times: int) -> None:
    html = piece.encode() * times
    if is_orderly(html):
        assert _Walk().over(html) is None
        deepest = LexborHTMLParser(html).css_first(" > ".join(["*"] * 90))
        assert deepest is None


# Tags that tree construction treats differently, mixed by a fixed seed.
SOUP = (
    "a b i nobr p div span li ul dd h1 table caption colgroup col tbody tr td form button object"
    " select option optgroup hr br input svg math g path title desc foreignobject mi annotation-xml"
    " mglyph style script textarea xmp iframe template noscript ruby rp rt x-y pre body head center"
)
ODD = [
    *(
        "<font x=1>",
        "<font color=red>",
        "<b a=1>",
        "<g/>",
        "<svg/>",
        "<g a=x/>",
        '<p =">',
        "x",
        " ",
    ),
    *(
        "<annotation-xml encoding=text/html>",
        "<input type=hidden>",
        "<![CDATA[",
        "]]>",
        "-->",
        "<!--",
    ),
    *("</>", "<script><!--<script>", "<!DOCTYPE html>", "'", "<div a='", "\0"),
]
# Depth limit of a tree whose page passes the walk. The tree also has copied elements and forms
# that left the stack.
TREE_DEPTH_MAX = 2 * DEPTH_MAX + 16


def soup(chance: Random) -> bytes:
    names = chance.sample(SOUP.split(), chance.randint(2, 9))
    tags = [f"<{name}>" for name in names] + [f"</{name}>" for name in names]
    tags += chance.sample(ODD, chance.randint(0, 3))
    first = chance.choices(tags, k=chance.randint(0, 4))
    piece = chance.choices(tags, k=chance.randint(2, 12))
    return ("".join(first) + "".join(piece) * 600).encode()


def depth_of(html: bytes) -> int:
    node = LexborHTMLParser(html).root
    depth = deepest = 1
    while node is not None:
        deepest = max(deepest, depth)
        if node.child is not None:
            node, depth = node.child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node and node.next
    return deepest


@pytest.mark.parametrize("seed", range(120))
def test_tree_is_no_deeper_than_walk_allows(seed: int) -> None:
    html = soup(Random(seed))
    walk = _Walk()
    why = walk.over(html)
    if why is None and walk.elements.quirks_matter:
        why = _Walk(quirks=True).over(html)
    assert why is not None or depth_of(html) <= TREE_DEPTH_MAX


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
def test_tree_of_small_orderly_page_is_built_quickly(html: bytes) -> None:
    """Small: at most 64 KB and 2,000 tags."""
    assert len(html) <= 65_536
    assert html.count(b"<") <= 2_000
    assert within(0.02, lambda: LexborHTMLParser(html))


def bold(value: int) -> bytes:
    """Open a formatting element with 70 attributes."""
    return b"<b" + many(f" a#={value}", 70) + b">"


@pytest.mark.parametrize(
    "html",
    [
        b"".join(map(bold, range(240))) + (bold(0) + b"</b>") * 1_000,
        b"<frameset>" * 250 + b"x<p>" * 20_000 + b" " * 8_000_000,
        b"<a>" * 255_000,
        b"<a b='" * 17_000,
    ],
    ids=["attributes", "framesets", "tags", "open values"],
)
def test_why_unsafe_takes_time_linear_in_page_size(html: bytes) -> None:
    assert within(0.5 if len(html) > 1_000_000 else 0.25, lambda: why_unsafe(html))
