"""Pages that lead elsewhere by themselves: the syntax, and what it means for a page."""

from __future__ import annotations

import pytest

from orbweaver.parsing.page import parse
from orbweaver.parsing.refresh import REFRESH_S_MAX, Refresh, refresh_of
from tests.costs import within

URL = "https://example.com/a/b"
# As much as is read of a value.
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
def test_a_refresh_is_read_as_browsers_do(value: str, delay_s: int, reference: str | None) -> None:
    """Seconds, then a URL in any of the spellings that the HTML Standard takes."""
    assert refresh_of(value) == Refresh(delay_s=delay_s, reference=reference)


@pytest.mark.parametrize(
    "value", ["", " ", "soon", "-1; url=/x", "url=/x", "5x; url=/x", "5:url=/x", "٣;url=/x"]
)
def test_what_is_no_refresh_does_nothing(value: str) -> None:
    """Browsers stay on a page whose refresh they cannot read."""
    assert refresh_of(value) is None


@pytest.mark.parametrize("begins", ["0", "1.", " ", "5 ", "5;"])
def test_a_long_refresh_is_read_in_no_time(begins: str) -> None:
    """The syntax is read without ever looking back, whatever comes of it (case 66)."""
    value = (begins * CHARS_MAX)[: CHARS_MAX - 1] + "x"
    assert within(0.02, lambda: refresh_of(value))
    assert refresh_of(value * 1_000) == refresh_of(value)  # what stands behind is not looked at


@pytest.mark.parametrize(
    ("html", "refresh", "links"),
    [
        ('<meta http-equiv="refresh" content="0; url=../c">', "https://example.com/c", ()),
        ('<META HTTP-EQUIV=Refresh CONTENT="10;URL=c">', "https://example.com/a/c", ()),
        ('<meta http-equiv=refresh content="11;url=c">', None, ("https://example.com/a/c",)),
        (
            '<noscript><meta http-equiv=refresh content="0;url=c"></noscript>',
            "https://example.com/a/c",
            (),
        ),
        (
            "<body><noscript><meta http-equiv=refresh content='0;url=c'></noscript>",
            "https://example.com/a/c",
            (),
        ),
        ('<base href=/z/><meta http-equiv=refresh content="0;c">', "https://example.com/z/c", ()),
        (
            "".join(f"<meta http-equiv=refresh content='{it}'>" for it in ("x", "0;c", "0;d")),
            "https://example.com/a/c",
            (),
        ),
        ('<meta http-equiv=refresh content="0">', None, ()),
        ('<meta http-equiv=refresh content="0;b#x">', None, ()),
        ('<meta http-equiv=refresh content="0;javascript:x()">', None, ()),
        ('<meta http-equiv=refresh content="0;http://[">', None, ()),
        ('<!-- <meta http-equiv=refresh content="0;c"> -->', None, ()),
        ('<meta name=refresh content="0;c">', None, ()),
        ('<meta name=robots http-equiv=refresh content="60">', None, ()),
    ],
)
@pytest.mark.parametrize("filler", ["", "<p>x</p>" * 3_000], ids=["tree", "outline"])
def test_a_page_leads_on(
    html: str, refresh: str | None, links: tuple[str, ...], filler: str
) -> None:
    """An early refresh to elsewhere is a redirect, a late one a link (case 63)."""
    page = parse((html + filler).encode(), URL, "text/html")
    assert (page.refresh, page.links) == (refresh, links)


def test_the_header_goes_before_the_page() -> None:
    """A Refresh header is read first; one that says nothing leaves the word to the page."""
    html = f'<base href=/z/><meta http-equiv=refresh content="{REFRESH_S_MAX};c">'.encode()
    assert parse(html, URL, None, refresh="0; url=d").refresh == "https://example.com/z/d"
    assert parse(html, URL, None, refresh="never").refresh == "https://example.com/z/c"
    assert parse(html, URL, None, refresh="0").refresh is None
