"""Markup of XHTML and shadow roots, rewritten as HTML."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orbweaver import parse_page
from orbweaver.parsing.markup import as_html
from tests.costs import LINEAR, slope

HTML, XHTML = "text/html", "application/xhtml+xml; charset=utf-8"
URL = "http://example.com/"
NAMESPACE = b'<h:html xmlns:h="http://www.w3.org/1999/xhtml">'
# Each XHTML page, with the HTML that renders the same.
XHTML_PAGES = {
    "no XHTML": (b"<p>x</p>", b"<p>x</p>"),
    "self-closed": (b"<title/><p>x</p>", b"<title></title><p>x</p>"),
    "self-closed with a space": (b"<script src='/a' /><p>x", b"<script src='/a' ></script><p>x"),
    "void": (b"<br/><img alt='a>b'/>", b"<br><img alt='a>b'>"),
    "prefix": (NAMESPACE + b"<h:a href='/x'/>",
               NAMESPACE.replace(b"h:html", b"html") + b"<a href='/x'></a>"),
    "foreign prefix": (b"<svg:a href='/x'/>", b"<svg:a href='/x'></svg:a>"),
    "CDATA": (b"<p><![CDATA[a <b> & c]]></p>", b"<p>a &lt;b&gt; &amp; c</p>"),
    "CDATA of a script": (
        b"<script>//<![CDATA[\nx = '<a href=/no></script>'\n//]]></script><a href='/x'/>",
        b"<script>//\nx = '<a href=/no><\\/script>'\n//</script><a href='/x'></a>"),
    "instruction": (b"<?xml version='1.0'?><?php <a> ?><p>x</p>", b"<p>x</p>"),
    "comment": (b"<!-- <a/> --><p/>", b"<!-- <a/> --><p></p>"),
    "sign alone": (b"<p>1 < 2</p>", b"<p>1 < 2</p>"),
    "CDATA without an end": (b"<p>x</p><![CDATA[y", b"<p>x</p><![CDATA[y"),
    "tag without an end": (b"<p/><a href='", b"<p></p><a href='"),
}  # fmt: skip
SHADOW_PAGES = {
    "open": (b"<template shadowrootmode=open><a>x</a></template>",
             b"<div shadowrootmode=open><a>x</a></div>"),
    "in quotes and capitals": (
        b'<TEMPLATE id=a ShadowRootMode="Closed">x</TEMPLATE> shadowrootmode',
        b'<div id=a ShadowRootMode="Closed">x</div> shadowrootmode'),
    "nested": (
        b"<template shadowrootmode=open>1<template shadowrootmode=open>2</template>3</template>",
        b"<div shadowrootmode=open>1<div shadowrootmode=open>2</div>3</div>"),
    "ordinary template within": (
        b"<template shadowrootmode=open>1<template>2</template>3</template>",
        b"<div shadowrootmode=open>1<template>2</template>3</div>"),
    "end tag too many": (b"</template><template shadowrootmode=open>x</template>",
                         b"</template><div shadowrootmode=open>x</div>"),
    **{
        name: (page, page)
        for name, page in {
            "in a comment": b"<!--<template shadowrootmode=open>-->",
            "no mode": b"<template shadowrootmode=no>x</template>",
            "mode in a value": b"<template title=' shadowrootmode'>x</template>",
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("page", "html"), XHTML_PAGES.values(), ids=XHTML_PAGES)
def test_xhtml_page_becomes_html(page: bytes, html: bytes) -> None:
    assert as_html(page, XHTML) == html


@pytest.mark.parametrize(("page", "html"), SHADOW_PAGES.values(), ids=SHADOW_PAGES)
def test_shadow_root_becomes_part_of_page(page: bytes, html: bytes) -> None:
    assert as_html(page, HTML) == html


@pytest.mark.parametrize("page", [page for page, _ in XHTML_PAGES.values()], ids=XHTML_PAGES)
def test_html_page_is_not_rewritten(page: bytes) -> None:
    assert as_html(page, HTML) == page


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (b"<script src='/s.js'/><p><h:a href='/no'/><a href='/x'>x</a></p>", XHTML),
        (b"<div><template shadowrootmode=open><a href=/x>x</a></template></div>", HTML),
    ],
)
def test_links_of_rewritten_page_are_found(page: bytes, kind: str) -> None:
    assert parse_page(page, URL, kind).links == (f"{URL}x",)


@pytest.mark.parametrize("kind", [HTML, XHTML])
@pytest.mark.parametrize(
    "words",
    [b"<template shadowrootmode=open></a b='", b"<template shadowrootmode=open><", b"<a b='"],
)
def test_rewriting_page_takes_linear_time(words: bytes, kind: str) -> None:
    def made(size: int) -> Callable[[], bytes]:
        return lambda: as_html(words * (size // len(words)), kind)

    assert slope(made, [100_000, 200_000, 400_000]) < LINEAR
