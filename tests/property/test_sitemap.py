"""Sitemaps: any bytes are read, and lists read back."""

from __future__ import annotations

import gzip
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.model.url import canonicalize
from orbweaver.parsing.sitemap import moment_ms, read

URL = "https://example.com/sitemap.xml"
PATHS = st.lists(
    st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), max_size=20).map(
        lambda text: canonicalize(f"https://example.com/{text.replace('#', '')}")
    ),
    unique=True,
    max_size=12,
)
PIECES = st.lists(
    st.sampled_from(
        (
            *("<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "<sitemapindex>"),
            *("<sitemap>", "<rss>", "<item>", "<feed>", "<entry>", "<link href='x'>", "<lastmod>"),
            *("<!DOCTYPE a [", "<!DOCTYPE a>", "]]>", "<![CDATA[", "<!--", "-->", "&amp;", "&x;"),
            *("http://e.com/", "2026-01-01", "<?xml version='1.0'?>", "\0", "\ufeff", "\n", "é"),
        )
    )
    | st.text(max_size=5),
    max_size=30,
).map("".join)


@given(st.binary(max_size=500) | PIECES.map(str.encode) | PIECES.map(lambda x: x.encode("utf-16")))
def test_any_bytes_are_read(body: bytes) -> None:
    for each in (body, gzip.compress(body), b"\x1f\x8b" + body):
        sitemap = read(each, URL)
        kept = len(sitemap.entries) + len(sitemap.sitemaps)
        assert kept + sum(sitemap.dropped.values()) <= sitemap.listed
        assert sitemap.usable or kept == 0


@given(PATHS, st.sampled_from(["xml", "text"]), st.booleans(), st.integers(1, 5))
def test_parts_of_list_read_back_in_order(
    urls: list[str],
    form: str,
    zipped: bool,
    count: int,
) -> None:
    if form == "xml":
        items = "".join(f"<url><loc>{escape(url)}</loc></url>" for url in urls)
        body = f"<urlset>{items}</urlset>".encode()
    else:
        body = "\n".join(urls).encode()
    body = gzip.compress(body) if zipped else body
    found, first, more = [], 0, True
    while more:
        part = read(body, URL, first=first, count=count)
        found += [entry.url for entry in part.entries]
        first, more = part.listed, part.more
    assert found == urls


@given(st.text(max_size=40) | st.from_regex(r"\d{4}(-\d\d(-\d\d(T\d\d:\d\d(:\d\d)?Z?)?)?)?"))
def test_any_date_is_moment_or_none(text: str) -> None:
    at_ms = moment_ms(text)
    assert at_ms is None or at_ms >= 0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_part_has_requested_number_of_references(count: int) -> None:
    body = "\n".join(f"https://example.com/{place}" for place in range(8)).encode()
    part = read(body, URL, count=count)
    assert (part.listed, part.more) == (count, True)
