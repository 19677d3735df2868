"""Cost of main texts, charsets and sitemaps for hostile bodies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orbweaver.parsing import charset
from orbweaver.parsing.html_scan import text_of
from orbweaver.parsing.main_text import main_text
from orbweaver.parsing.sitemap import read
from tests.costs import LINEAR, slope, within

SITEMAP = "https://example.com/sitemap.txt"
LINE = b"https://example.com/a\n"
TEXTS = {
    # The kernel limits the child that reads longer tags (tests/unit/adapters).
    "attributes": b"<p " + b" ".join(b"a%x" % n for n in range(5_000)) + b">x",
    "quoted signs": b"<p " + b" ".join(b"a%x='>'" % n for n in range(2_700)) + b">x",
    "no-break spaces": (b"\xc2\xa0" * 200 + b"x") * 1_200,
    "entities": b"&nbsp;" * 80_000,
    "paragraphs": b"<p>x" * 59_000,
    "links": b"<a href=x>" * 50_000,
    "table": b"<table>" + b"<tr><td rowspan=60000>x" * 19_000,
    "values": b"<p " + b"".join(b"e=%x" % n for n in range(70_000)) + b">x",
    "names": b"<p class='nav menu ad social related toc sidebar cookie'>x" * 7_000,
}


@pytest.mark.parametrize("html", TEXTS.values(), ids=TEXTS)
def test_main_text_of_hostile_page_takes_a_second_at_most(html: bytes) -> None:
    main_text(b"<p>x")  # imports the library once
    assert within(1, lambda: main_text(html))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words", [b"&", b"&notit;", b"&" + b"a" * 31, b"&#9", b"<", b"<!--", b"<a "]
)
def test_text_of_hostile_page_takes_linear_time(words: bytes) -> None:
    def made(size: int) -> Callable[[], str]:
        return lambda: text_of(words * (size // len(words)))

    assert slope(made, [500_000, 1_000_000], turns=2) < LINEAR
    assert within(1.5, made(5_000_000))


@pytest.mark.parametrize("words", [b"\n", b" \n", b"\r", b" ", b"x", b"\xc2\xa0\n"])
def test_sitemap_of_blank_lines_is_read_quickly(words: bytes) -> None:
    body = LINE + words * (50_000_000 // len(words)) + b"\n" + LINE.replace(b"/a", b"/b")
    found = read(body, SITEMAP)
    assert len(found.entries) == 2
    assert within(2, lambda: read(body, SITEMAP))


def test_text_sitemap_accepts_any_line_break() -> None:
    urls = [f"https://example.com/{n:05}" for n in range(20_000)]
    ends = ("\n \n", "\r\n")
    body = "".join(f"  {url} {ends[n % 2]}" for n, url in enumerate(urls)).rstrip()
    assert [entry.url for entry in read(body.encode(), SITEMAP).entries] == urls


def test_query_in_other_charset_is_encoded_in_linear_time() -> None:
    assert charset.encode_query("?a=é&b=\u20ac #'\"", "windows-1252") == "?a=%E9&b=%80 #'\""
    assert charset.encode_query("?\U0001f600", "gbk") == "?%949%FC6"
    assert charset.encode_query("?\U0001f600", "windows-1252") == "?%26%23128512%3B"

    def made(size: int) -> Callable[[], str]:
        return lambda: charset.encode_query("?" + "\u4e2d" * size, "gbk")

    assert within(1, made(1_000_000))
    assert slope(made, [250_000, 500_000, 1_000_000]) < LINEAR
