"""Hostile sitemaps: no entities, no requests, bounded memory and time (case 65)."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from orbweaver.model.outcome import Refusal
from orbweaver.parsing.sitemap import LISTED_MAX, read
from orbweaver.parsing.sitemap_xml import DECODED_BYTES_MAX, ELEMENTS_MAX

URL = "https://example.com/sitemap.xml"
MIB = 1024 * 1024
MEMORY_BYTES_MAX = MIB  # measured: at most 430 KiB
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "subset",
    [
        f'<!ENTITY l0 "ha">{LAUGHS}<!ENTITY x "&l9;">',
        f'<!ENTITY x "{"a" * 9_999}">',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY x SYSTEM "http://127.0.0.1:9/">',
        '<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;',
        '<!ATTLIST loc a CDATA "b">',
        "",
    ],
)
def test_internal_document_type_rejects_sitemap(subset: str) -> None:
    body = f"<!DOCTYPE urlset [{subset}]><urlset><url><loc>{URL}?&x;</loc></url></urlset>"
    sitemap = read(body.encode(), URL)
    assert (sitemap.usable, sitemap.entries) == (False, ())
    assert sitemap.problem == "it has a document type of its own"


def test_external_document_type_is_not_requested() -> None:
    body = (
        f'<!DOCTYPE a SYSTEM "file:///etc/passwd"><urlset><url><loc>{URL}?&x;</loc></url></urlset>'
    )
    (entry,) = read(body.encode(), URL).entries
    assert entry.url == f"{URL}?"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (gzip.compress(bytes(32 * MIB), mtime=0), "grows by more than 200 times"),
        (gzip.compress(b"x", mtime=0) * 1_001, "more than 1,000 gzip members"),
        (b"<urlset>" + b"<a>" * MIB, "elements, or 50 in one another"),
        (b"<urlset>" + b"<a/>" * (ELEMENTS_MAX + 1), "more than 1,000,000 elements"),
        (
            b"<urlset>" + "".join(f"<a{place}/>" for place in range(99_999)).encode(),
            "more than 1,000 different names",
        ),
        (
            b"<urlset>" + "".join(f"<a b{place}='c'/>" for place in range(99_999)).encode(),
            "more than 1,000 different names",
        ),
        (b"<urlset a='" + b"b" * MIB, "a tag of more than 262,144 bytes"),
        (b"<urlset><!--" + b"b" * MIB, "a tag of more than 262,144 bytes"),
        (b"<!DOCTYPE " + b"b" * MIB, "a tag of more than 262,144 bytes"),
        (b"<urlset><url><loc>" + b"b" * DECODED_BYTES_MAX, "larger than 52,428,800 bytes"),
        (b"b" * (4 * MIB), "no line of the text is a URL"),
        (b"x\n" * MIB, "no URL in 1,000 lines"),
        (b"https://example.com/\n" * LISTED_MAX, "60,000 URLs, and more"),
        (b"<urlset>" + b"<url>x</url>" * LISTED_MAX, "60,000 URLs, and more"),
    ],
)
def test_hostile_sitemap_uses_bounded_memory(body: bytes, problem: str) -> None:
    tracemalloc.start()
    try:
        sitemap = read(body, URL, count=5_000)
        if sitemap.more:
            sitemap = read(body, URL, first=49_000, count=5_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert problem in (sitemap.problem or "")
    assert peak < MEMORY_BYTES_MAX


def test_overlong_url_of_item_is_invalid() -> None:
    body = f"<urlset><url><loc>https://example.com/{'a' * MIB}</loc></url></urlset>"
    sitemap = read(body.encode(), URL)
    assert sitemap.dropped == {Refusal.INVALID: 1}


def test_gzip_bomb_keeps_entries_before_limit() -> None:
    sitemap = read(gzip.compress(b"https://example.com/a\n" + b"\n" * 16 * MIB, mtime=0), URL)
    assert [entry.url for entry in sitemap.entries] == ["https://example.com/a"]
    assert sitemap.usable
    assert sitemap.problem == "grows by more than 200 times when it is gunzipped"
