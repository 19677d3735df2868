"""Pages with any bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from orbweaver.model.url import canonicalize
from orbweaver.parsing.html_scan import outline, text_of
from orbweaver.parsing.page import parse

# Pieces of markup, whole and broken.
PIECES = r"""
<div> </div> <p_class="x"> </p> <a_href="/1"> <a_href=/2> <A_HREF='/3'> </a> <area_href=/4> <b> </b>
<!--_<a_href=/x>_--> <!-- --> --!> <!--> <!---> <script> </script> <script_src="x>y"> <style>
</style> <textarea> </textarea> <title> </title> <title>t<a_href=/x></title>
<div_title="<a_href=/x>"> <div_x='>'> text " ' > < </ <! <? </> <_a_href=/5> <a_href=/6_
<a/href=/8/> <base_href=/9>
<meta_name=robots_content=x> <meta_charset=koi8-r> <link_rel=canonical_href=/10> <html_lang=en>
<a-b_href=/x> <iframe> </iframe> <xmp> </xmp> <noembed> </noembed> </SCRIPT_> <a_href="/11"rel=x>
<a_href=/q?a="b>c"> <a_title=it's_href=/12> \0 é &amp; &#9; <a_href="/13?x&amp;y"> <br/> <a_href>
<a_HREF=/14_href=/x> <noscript> </noscript> </_a_href=/x> <!doctype_html> <![CDATA[<a_href=/15>]]>
<template> </template> <svg> </svg> <table> <td> </table> <select> <font_x=1> <plaintext>
<a_href=mailto:x> <a_href=http://[> <a_href=//b/c> <a_rel=nofollow_href=/16> <a_href=?y_#z>
"""
WORDS = [word.replace("_", " ").replace(r"\0", "\0") for word in PIECES.split()]
MARKUP = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)
TYPES = st.none() | st.text() | st.sampled_from(["text/html", "text/html; charset=utf-16le"])
# Hidden links, and links in a script within a comment, which only a tree excludes.
OF_TREES = ("<template", "<select", "<svg", "<plaintext", "<script", "<table")


@given(st.binary() | MARKUP.map(str.encode), st.text() | st.just("https://a/b"), TYPES)
def test_any_bytes_are_parsed(body: bytes, url: str, content_type: str | None) -> None:
    page = parse(body, url, content_type)
    assert len(set(page.links)) == len(page.links)
    assert all(canonicalize(link) == link for link in page.links)
    assert page.title is None or page.title == " ".join(page.title.split())
    assert page.text == " ".join(page.text.split())


@given(MARKUP.filter(lambda html: not any(word in html for word in OF_TREES)))
def test_outline_has_links_of_tree(html: str) -> None:
    assert links(outline(html.encode())) == links(html.encode())


@given(st.binary() | MARKUP.map(str.encode))
def test_text_has_no_tags(html: bytes) -> None:
    assert "<p class" not in text_of(html)


def links(html: bytes) -> set[str | None]:
    """Return links of a page; a tree has some elements twice."""
    return {node.attributes["href"] for node in LexborHTMLParser(html).css("a[href], area[href]")}
