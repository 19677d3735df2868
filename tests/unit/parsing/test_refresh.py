"""Refresh headers and meta elements: their syntax and their effect on a page."""

from __future__ import annotations

import pytest

from orbweaver.parsing.links import REFRESH_S_MAX, Refresh, refresh_of
from orbweaver.parsing.page import parse
from tests.costs import within

URL = "https://example.com/a/b"
# The longest value that is read.
CHARS_MAX = 10_000


@pytest.mark.parametrize(
    ("value", "delay_s", "reference"),
    [
        ("0;url=/x", 0, "/x"),
        ("5; url=/x", 5, "/x"),
        ("  5 ;  URL  =  /x", 5, "/x"),
        ("5, url=/x", 5, "/x"),
        ("5 url=/x", 5, "/x"),
        ("5;/x", 5, "/x"),
        ("5 /x", 5, "/x"),
        ("0; url='/x' y", 0, "/x"),
        ('0; url="/x', 0, "/x"),
        ("0; '/x'", 0, "/x"),
        ("0; url=/x;y=1", 0, "/x;y=1"),
        ("0; urlx", 0, "urlx"),
        ("0; url", 0, "url"),
        ("1.9; url=/x", 1, "/x"),
        (".5; url=/x", 0, "/x"),
        ("1.2.3.; url=/x", 1, "/x"),
        ("5", 5, None),
        ("5;", 5, None),
        ("5; url=", 5, None),
        ("5; url=''", 5, None),
        ("9" * 5_000 + ";url=/x", 999_999_999, "/x"),
    ],
)
def test_refresh_of_reads_value_like_browsers(
    value: str, delay_s: int, reference: str | None
) -> None:
    assert refresh_of(value) == Refresh(delay_s=delay_s, reference=reference)


@pytest.mark.parametrize(
    "value", ["", " ", "soon", "-1; url=/x", "url=/x", "5x; url=/x", "5:url=/x", "٣;url=/x"]
)
def test_invalid_refresh_is_ignored(value: str) -> None:
    assert refresh_of(value) is None


@pytest.mark.parametrize("begins", ["0", "1.", " ", "5 ", "5;"])
def test_refresh_of_long_value_takes_linear_time(begins: str) -> None:
    """The parser never backtracks (case 66)."""
    value = (begins * CHARS_MAX)[: CHARS_MAX - 1] + "x"
    assert within(0.02, lambda: refresh_of(value))
    assert refresh_of(value * 1_000) == refresh_of(value)  # the rest is not read


@pytest.mark.parametrize(
    ("html", "refresh", "links"),
    [
        ('<meta http-equiv="refresh" content="0; url=../c">', "https://example.com/c", ()),
        ('<META HTTP-EQUIV=Refresh CONTENT="10;URL=c">', "https://example.com/a/c", ()),
        ('<meta http-equiv=refresh content="11;url=c">', None, ("https://example.com/a/c",)),
        ('<noscript><meta http-equiv=refresh content="0;url=c"></noscript>',
         "https://example.com/a/c", ()),
        ("<body><noscript><meta http-equiv=refresh content='0;url=c'></noscript>",
         "https://example.com/a/c", ()),
        ('<base href=/z/><meta http-equiv=refresh content="0;c">', "https://example.com/z/c", ()),
        ("".join(f"<meta http-equiv=refresh content='{it}'>" for it in ("x", "0;c", "0;d")),
         "https://example.com/a/c", ()),
        ('<meta http-equiv=refresh content="0">', None, ()),
        ('<meta http-equiv=refresh content="0;b#x">', None, ()),
        ('<meta http-equiv=refresh content="0;javascript:x()">', None, ()),
        ('<meta http-equiv=refresh content="0;http://[">', None, ()),
        ('<!-- <meta http-equiv=refresh content="0;c"> -->', None, ()),
        ('<meta name=refresh content="0;c">', None, ()),
        ('<meta name=robots http-equiv=refresh content="60">', None, ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("filler", ["", "<p>x</p>" * 3_000], ids=["tree", "outline"])
def test_early_refresh_is_redirect_and_late_refresh_is_link(
    html: str, refresh: str | None, links: tuple[str, ...], filler: str
) -> None:
    """An early refresh to another URL is a redirect, a late one a link (case 63)."""
    page = parse((html + filler).encode(), URL, "text/html")
    assert (page.refresh, page.links) == (refresh, links)


def test_refresh_header_wins_over_meta_element() -> None:
    html = f'<base href=/z/><meta http-equiv=refresh content="{REFRESH_S_MAX};c">'.encode()
    assert parse(html, URL, None, refresh="0; url=d").refresh == "https://example.com/z/d"
    assert parse(html, URL, None, refresh="never").refresh == "https://example.com/z/c"
    assert parse(html, URL, None, refresh="0").refresh is None
