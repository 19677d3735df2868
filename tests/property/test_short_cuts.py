"""Fast paths give the same results as the full computation."""

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
def test_prescan_finds_charset_of_full_walk(head: bytes) -> None:
    walked = next(filter(None, map(charset._of_meta, charset._metas(head))), None)
    if walked is None and (xml := charset._XML.match(head)):
        walked = charset._self_named(xml[2])
    assert charset.prescan(head) == (charset.WINDOWS_1252 if walked == "x-user-defined" else walked)


@given(st.from_regex(soft_404._TITLE))
def test_every_soft_404_title_has_a_hint(title: str) -> None:
    assert soft_404._says_so(title)


@given(st.binary())
@example(bytes(range(256)))
def test_binary_bytes_match_sniffing_standard(body: bytes) -> None:
    """The bytes are the "binary data bytes" of the MIME Sniffing Standard, section 3."""
    strange = re.search(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]", body) is not None
    assert bool(body.translate(None, sniffing._OF_TEXT)) is strange


@given(URLS, URLS)
def test_host_scope_equals_comparison_of_origins(url: str, page_url: str) -> None:
    crawl = Crawl(id="c", name="c", started_at_ms=0, seeds=(page_url,), scope=Scope.HOST)
    assert in_scope(crawl, url, page_url) is (host_of(url) == host_of(page_url))
