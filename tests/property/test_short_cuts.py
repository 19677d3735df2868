"""Short cuts against the long way: what is guessed first must never change what comes out."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from orbweaver.frontier.admission import in_scope
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.url import host_of
from orbweaver.parsing import charset, sniffing, soft_404

# Pieces of a page's beginning, whole and broken.
PIECES = (
    b"<!doctype html>",
    b"<html lang='charset'>",
    b"<!--",
    b"-->",
    b"<meta charset=koi8-r>",
    b"<meta CHARSET='big5' >",
    b"<META charset=nothing>",
    b'<meta http-equiv="Content-Type" content="text/html; charset=latin1">',
    b'<meta title="charset>" charset=gbk>',
    b"<title charset=x>charset</title>",
    b"<meta name=a content='charset=utf-8'",
    b"<?xml version='1.0' encoding='koi8-u'?>",
    b" ",
    b">",
    b"<",
    b"charset",
    b"x" * 1_000,
)
HEADS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=12).map(b"".join)
URLS = st.sampled_from(
    ["http://a/", "http://a/b", "http://a:8080/", "http://ab/", "https://a/", "http://a.b/c"]
)


@given(HEADS)
@example(b"<meta title='a>charset=' charset=gbk>")
def test_a_known_start_says_what_the_whole_says(head: bytes) -> None:
    """The charset of a page is the one that a walk over all its tags finds first."""
    walked = next(filter(None, map(charset._of_meta, charset._metas(head))), None)
    if walked is None and (xml := charset._XML.match(head)):
        walked = charset._self_named(xml[2])
    assert charset.prescan(head) == (charset.WINDOWS_1252 if walked == "x-user-defined" else walked)


@given(st.from_regex(soft_404._TITLE))
def test_every_title_that_says_so_has_a_hint(title: str) -> None:
    """Looking for hints first passes no title over, in whatever case it is."""
    assert soft_404._says_so(title)


@given(st.binary())
@example(bytes(range(256)))
def test_bytes_that_no_text_has_are_found(body: bytes) -> None:
    """They are those of the standard: "binary data bytes" (section 3)."""
    strange = re.search(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]", body) is not None
    assert bool(body.translate(None, sniffing._OF_TEXT)) is strange


@given(URLS, URLS)
def test_a_host_is_the_beginning_of_its_urls(url: str, page_url: str) -> None:
    """A link is in a host's scope if its origin is the page's."""
    crawl = Crawl(id="c", name="c", started_at_ms=0, seeds=(page_url,), scope=Scope.HOST)
    assert in_scope(crawl, url, page_url) is (host_of(url) == host_of(page_url))
